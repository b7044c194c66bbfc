/* SPDX-License-Identifier: MIT */
/*
 * Expectations: text to conditions, conditions to answers.
 *
 * Invariants:
 *  1. Text is taken exactly or refused with what is allowed; nothing is guessed.
 *  2. A percentile that chance made (verdict.c says which) meets nothing, whatever its value.
 *
 * Not here: what the exit status is (outcome.c).
 */
#include "bench/expect.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/verdict.h"
#include "core/units.h"

static const char allowed[] =
	"Allowed: [read.|write.]iops|MiB/s|mean|max|pNN, then >= <= > or <, then a number: "
	"iops>=100k, MiB/s>500, p99<=2ms, read.p99.9<800us";

static int refuse(struct bench_fault *fault, const char *text, size_t len, const char *why)
{
	snprintf(fault->text, sizeof(fault->text), "--expect \"%.*s\": %s. %s",
		 (int)(len < 48 ? len : 48), text, why, allowed);
	return -EINVAL;
}

static bool take(const char **at, const char *word)
{
	size_t len = strlen(word);

	if (strncasecmp(*at, word, len) != 0)
		return false;
	*at += len;
	return true;
}

/* Digits with at most one point; strtod() would take "inf", "0x1p3" and " 1". */
static bool take_number(const char **at, double *value)
{
	size_t whole = strspn(*at, "0123456789"), len = whole;
	char copy[24];

	if ((*at)[len] == '.')
		len += 1 + strspn(*at + len + 1, "0123456789");
	if (!whole || (*at)[len - 1] == '.' || len >= sizeof(copy))
		return false;
	memcpy(copy, *at, len);
	copy[len] = '\0';
	*value = strtod(copy, NULL);
	*at += len;
	return true;
}

static bool take_figure(const char **at, struct expect_condition *c)
{
	static const struct {
		const char *word;
		enum expect_figure figure;
	} words[] = {
		{ "iops", EXPECT_IOPS },
		{ "MiB/s", EXPECT_MIB_S },
		{ "mean", EXPECT_MEAN },
		{ "max", EXPECT_MAX_LATENCY },
	};

	c->side = take(at, "read.") ? BENCH_READ : take(at, "write.") ? BENCH_WRITE : BENCH_TOTAL;
	if (c->side == BENCH_TOTAL)
		take(at, "total.");
	for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
		if (take(at, words[i].word)) {
			c->figure = words[i].figure;
			return true;
		}
	}
	c->figure = EXPECT_PERCENTILE;
	return take(at, "p") && take_number(at, &c->percent) && c->percent > 0 && c->percent < 100;
}

static bool take_op(const char **at, struct expect_condition *c)
{
	static const struct {
		const char *word;
		enum expect_op op;
	} words[] = {
		{ ">=", EXPECT_GE },
		{ "<=", EXPECT_LE },
		{ ">", EXPECT_GT },
		{ "<", EXPECT_LT },
	};

	for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
		if (take(at, words[i].word)) {
			c->op = words[i].op;
			return true;
		}
	}
	return false;
}

/* NULL, or why not. */
static const char *take_limit(const char **at, struct expect_condition *c)
{
	static const struct {
		const char *name;
		double ns;
	} times[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };

	if (!take_number(at, &c->limit))
		return "no number after the comparison";
	if (c->figure == EXPECT_MIB_S)
		return NULL;
	if (c->figure == EXPECT_IOPS) {
		c->limit *= take(at, "k") ? 1e3 : take(at, "M") ? 1e6 : 1;
		return NULL;
	}
	for (unsigned i = 0; i < ARRAY_LEN(times); i++) {
		if (take(at, times[i].name)) {
			c->limit *= times[i].ns;
			return NULL;
		}
	}
	return "a latency needs its unit: ns, us, ms or s";
}

static void skip_blanks(const char **at)
{
	while (isspace((unsigned char)**at))
		++*at;
}

/* One condition at TEXT, LEN long without blanks at its ends. */
static int parse_one(const char *text, size_t len, struct expect_condition *c,
		     struct bench_fault *fault)
{
	const char *at = c->text, *why;

	if (len == 0)
		return refuse(fault, text, len, "nothing between the commas");
	if (len >= sizeof(c->text))
		return refuse(fault, text, len, "too long");
	memcpy(c->text, text, len);
	c->text[len] = '\0';
	if (!take_figure(&at, c))
		return refuse(fault, text, len, "no such figure");
	skip_blanks(&at);
	if (!take_op(&at, c))
		return refuse(fault, text, len, "no comparison after the figure");
	skip_blanks(&at);
	why = take_limit(&at, c);
	if (why)
		return refuse(fault, text, len, why);
	return *at ? refuse(fault, text, len, "something follows the number") : 0;
}

int expect_parse(const char *text, struct expect *expect, struct bench_fault *fault)
{
	*expect = (struct expect){ 0 };
	for (;;) {
		size_t len;
		int err;

		skip_blanks(&text);
		len = strcspn(text, ",");
		if (expect->count == EXPECT_MAX)
			return refuse(fault, text, len, "more than 16 conditions");
		while (len && isspace((unsigned char)text[len - 1]))
			len--;
		err = parse_one(text, len, &expect->conditions[expect->count++], fault);
		if (err)
			return err;
		text = strchr(text, ',');
		if (!text)
			return 0;
		text++;
	}
}

static bool holds(enum expect_op op, double value, double limit)
{
	switch (op) {
	case EXPECT_GE:
		return value >= limit;
	case EXPECT_LE:
		return value <= limit;
	case EXPECT_GT:
		return value > limit;
	case EXPECT_LT:
		return value < limit;
	}
	return false;
}

struct expect_answer expect_judge(const struct expect_condition *condition,
				  const struct bench_result *result)
{
	const struct bench_counts *counts = &result->sides[condition->side];
	struct expect_answer answer = { EXPECT_UNKNOWN, 0 };

	switch (condition->figure) {
	case EXPECT_IOPS:
		answer.value = bench_iops(result, condition->side);
		break;
	case EXPECT_MIB_S:
		answer.value = bench_bytes_s(result, condition->side) / (double)MIB;
		break;
	case EXPECT_MEAN:
		answer.value = hist_mean(&counts->latency);
		break;
	case EXPECT_MAX_LATENCY:
		answer.value = (double)counts->latency.max;
		break;
	case EXPECT_PERCENTILE:
		if (!verdict_percentile_known(&counts->latency, condition->percent))
			return answer;
		answer.value = (double)hist_percentile(&counts->latency, condition->percent);
		break;
	}
	/* No command on this side: its latency is no small one. */
	if (condition->figure >= EXPECT_MEAN && !counts->latency.count)
		return answer;
	answer.state = holds(condition->op, answer.value, condition->limit) ? EXPECT_MET :
									      EXPECT_UNMET;
	return answer;
}

bool expect_met(const struct expect *expect, const struct bench_result *result)
{
	for (unsigned i = 0; expect && i < expect->count; i++)
		if (expect_judge(&expect->conditions[i], result).state != EXPECT_MET)
			return false;
	return true;
}

const char *expect_value_text(const struct expect_condition *condition,
			      const struct expect_answer *answer, char *buf, size_t size)
{
	char number[UNITS_SIZE];

	if (answer->state == EXPECT_UNKNOWN)
		snprintf(buf, size, "too few samples");
	else if (condition->figure == EXPECT_IOPS)
		snprintf(buf, size, "%s IOPS", units_rate(answer->value, number));
	else if (condition->figure == EXPECT_MIB_S)
		snprintf(buf, size, "%s MiB/s", units_rate(answer->value, number));
	else
		snprintf(buf, size, "%s", units_latency_us(answer->value / 1e3, number));
	return buf;
}
