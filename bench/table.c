/* SPDX-License-Identifier: MIT */
/*
 * The end table.
 *
 * Invariants:
 *  1. A value is never cut, a line breaks between values; what is not known is `-`.
 *  2. The verdict is in the first line, and in words whether or not there are colours.
 *  3. What came from a target never reaches a terminal as a control character.
 *
 * Not here: judging (verdict.c), the same for programs (json.c, csv.c).
 */
#include "bench/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/clean.h"
#include "core/units.h"

#define WIDTH_NO_TERMINAL 100
#define COLUMNS 9
#define ROWS_MAX 4
#define CELL 80
#define GAP "  "

enum paint { PAINT_NONE, PAINT_GOOD, PAINT_BAD };

static void put(const struct table_output *output, enum paint paint, const char *text)
{
	bool on = output->color && paint != PAINT_NONE;

	if (on)
		fputs(paint == PAINT_BAD ? "\033[31m" : "\033[32m", output->out);
	clean_put(output->out, text);
	if (on)
		fputs("\033[0m", output->out);
}

/* Values one after the other, with a new line where the next would not fit. */
struct flow {
	const struct table_output *output;
	const char *gap;
	unsigned indent, used;
};

static struct flow flow_begin(const struct table_output *output, const char *head, const char *gap)
{
	struct flow flow = { output, gap, (unsigned)strlen(head), 0 };

	put(output, PAINT_NONE, head);
	return flow;
}

static void flow_put(struct flow *flow, enum paint paint, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void flow_put(struct flow *flow, enum paint paint, const char *fmt, ...)
{
	unsigned width = flow->output->width ? flow->output->width : WIDTH_NO_TERMINAL;
	FILE *out = flow->output->out;
	size_t gap = strlen(flow->gap), len;
	char text[640];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	len = strlen(text);
	if (flow->used && flow->used + gap + len + flow->indent > width) {
		fprintf(out, "\n%*s", (int)flow->indent, "");
		flow->used = 0;
	}
	if (flow->used) {
		fputs(flow->gap, out);
		flow->used += (unsigned)gap;
	}
	put(flow->output, paint, text);
	flow->used += (unsigned)len;
}

static void flow_end(struct flow *flow)
{
	fputc('\n', flow->output->out);
}

/* Milliseconds with about three digits; the heading has the unit. */
static const char *ms(double ns, char *cell)
{
	double value = ns / 1e6;
	char count[UNITS_SIZE];

	if (value < 0.0995)
		snprintf(cell, CELL, "%.3f", value);
	else if (value < 9.995)
		snprintf(cell, CELL, "%.2f", value);
	else if (value < 99.95)
		snprintf(cell, CELL, "%.1f", value);
	else
		snprintf(cell, CELL, "%s", units_count((uint64_t)(value + 0.5), count));
	return cell;
}

static const char *percentile_ms(const struct hist *hist, double percent, char *cell)
{
	if (verdict_percentile_known(hist, percent))
		return ms((double)hist_percentile(hist, percent), cell);
	return strcpy(cell, "-");
}

/* IOPS, MiB/s and mean; the columns that both tables begin with. */
static void rate_cells(const struct bench_result *result, enum bench_side side, char cells[][CELL])
{
	const struct hist *latency = &result->sides[side].latency;
	char text[UNITS_SIZE];

	snprintf(cells[0], CELL, "%s",
		 units_count((uint64_t)(bench_iops(result, side) + 0.5), text));
	snprintf(cells[1], CELL, "%s", units_rate(bench_bytes_s(result, side) / (double)MIB, text));
	if (latency->count)
		ms(hist_mean(latency), cells[2]);
	else
		strcpy(cells[2], "-");
}

/* Columns as wide as what is in them; the first to the left, and the last if LAST_LEFT. */
static void print_grid(const struct table_output *output, char (*cells)[CELL], unsigned rows,
		       unsigned columns, bool last_left)
{
	for (unsigned i = 0; i < rows; i++) {
		for (unsigned j = 0; j < columns; j++) {
			int width = 0, pad;
			bool left;

			for (unsigned k = 0; k < rows; k++)
				width = (int)fmax(width, (double)strlen(cells[k * columns + j]));
			left = j == 0 || (last_left && j == columns - 1);
			pad = width - (int)strlen(cells[i * columns + j]);
			if (j)
				fputc(' ', output->out);
			if (!left)
				fprintf(output->out, "%*s", pad, "");
			put(output, PAINT_NONE, cells[i * columns + j]);
			if (left && j != columns - 1)
				fprintf(output->out, "%*s", pad, "");
		}
		fputc('\n', output->out);
	}
}

static void figures(const struct table_output *output, const struct bench_result *result)
{
	static const char *const head[COLUMNS] = { "ms from intended start",
						   "IOPS",
						   "MiB/s",
						   "mean",
						   "p50",
						   "p99",
						   "p99.9",
						   "p99.99",
						   "max" };
	static const char *const names[BENCH_SIDES] = { "read", "write", "total" };
	static const double percents[] = { 50, 99, 99.9, 99.99 };
	bool both = result->sides[BENCH_READ].ops && result->sides[BENCH_WRITE].ops;
	char cells[ROWS_MAX * COLUMNS][CELL];
	unsigned rows = 1;

	for (unsigned j = 0; j < COLUMNS; j++)
		snprintf(cells[j], CELL, "%s", head[j]);
	for (unsigned side = 0; side < BENCH_SIDES; side++) {
		const struct hist *latency = &result->sides[side].latency;
		char(*row)[CELL] = cells + rows * COLUMNS;

		/* The total of one side would say it twice. */
		if (side == BENCH_TOTAL ? !both && rows > 1 : !result->sides[side].ops)
			continue;
		snprintf(row[0], CELL, "%s", names[side]);
		rate_cells(result, side, row + 1);
		for (unsigned p = 0; p < ARRAY_LEN(percents); p++)
			percentile_ms(latency, percents[p], row[4 + p]);
		if (latency->count)
			ms((double)latency->max, row[8]);
		else
			strcpy(row[8], "-");
		rows++;
	}
	print_grid(output, cells, rows, COLUMNS, false);
}

static void put_verdict(struct flow *flow, const struct verdict *verdict)
{
	char codes[256] = "";

	for (unsigned i = 0; i < verdict->reason_count; i++) {
		size_t len = strlen(codes);

		snprintf(codes + len, sizeof(codes) - len, "%s%s", i ? ", " : "",
			 verdict->reasons[i].code);
	}
	if (verdict->meaningful)
		flow_put(flow, PAINT_GOOD, "MEANINGFUL");
	else
		flow_put(flow, PAINT_BAD, "NOT MEANINGFUL: %s", codes);
}

static void headline(const struct table_output *output, const struct outcome *outcome)
{
	const struct bench_result *result = outcome->result;
	const struct bench_point *point = result->point;
	const struct bench_plan *plan = outcome->plan;
	const struct bench_stream *first = &point->streams[0];
	struct flow flow = flow_begin(output, "", GAP);

	flow_put(&flow, PAINT_NONE, "%s%s%s", plan->profile, *plan->profile ? " " : "",
		 point->name);
	if (point->stream_count == 1 && first->depth)
		flow_put(&flow, PAINT_NONE, "%u x %u", result->depth_asked / first->depth,
			 first->depth);
	else
		flow_put(&flow, PAINT_NONE, "%u streams", point->stream_count);
	flow_put(&flow, PAINT_NONE, "%u session%s", result->session_count,
		 result->session_count == 1 ? "" : "s");
	flow_put(&flow, PAINT_NONE, "%.0f s after %.0f s", result->measured_s,
		 (double)point->warmup_ns / 1e9);
	if (plan->point_count > 1)
		flow_put(&flow, PAINT_NONE, "point %u of %u", outcome->point, plan->point_count);
	if (plan->repeat > 1)
		flow_put(&flow, PAINT_NONE, "run %u of %u", outcome->repeat, plan->repeat);
	put_verdict(&flow, &outcome->verdict);
	flow_end(&flow);
}

static void path_lines(const struct table_output *output, const struct bench_result *result)
{
	struct flow flow = flow_begin(output, "paths: ", " | ");
	double sum = 0;

	for (unsigned i = 0; i < result->setup->portal_count; i++)
		sum += (double)result->paths[i].ops;
	for (unsigned i = 0; i < result->setup->portal_count; i++) {
		const struct bench_path *path = &result->paths[i];
		char cell[CELL], trouble[64] = "";

		if (path->errors || path->retries || path->reconnects)
			snprintf(trouble, sizeof(trouble),
				 " err %" PRIu64 " retry %" PRIu64 " reconnect %" PRIu64,
				 path->errors, path->retries, path->reconnects);
		flow_put(&flow, PAINT_NONE, "%s %.1f %% p99 %s%s",
			 result->setup->portals[i].address,
			 sum > 0 ? 100 * (double)path->ops / sum : 0.0,
			 percentile_ms(&path->latency, 99, cell), trouble);
	}
	flow_end(&flow);
}

static void state_line(const struct table_output *output, const struct outcome *outcome)
{
	const struct bench_result *result = outcome->result;
	const struct steady *steady = &outcome->steady;
	double law = bench_iops(result, BENCH_TOTAL) *
		     hist_mean(&result->sides[BENCH_TOTAL].service) / 1e9;
	struct flow flow = flow_begin(output, "", GAP);
	double busiest = 0, all = 0;

	for (unsigned i = 0; i < result->thread_count; i++)
		busiest = fmax(busiest, result->threads[i].cpu);
	if (result->measured_s > 0 && result->cpus > 0)
		all = (result->cpu_user_s + result->cpu_system_s) / result->measured_s /
		      result->cpus;
	flow_put(&flow, PAINT_NONE, "in flight %.1f of %u (IOPS x mean %.1f)", result->in_flight,
		 result->depth_asked, law);
	flow_put(&flow, PAINT_NONE, "client cpu %.0f %% of its busiest thread, %.0f %% of %.0f",
		 busiest * 100, all * 100, result->cpus);
	if (steady->known)
		flow_put(&flow, PAINT_NONE, "%s: range %.1f %%, drift %.1f %%",
			 steady->met ? "steady" : "not steady", steady->range * 100,
			 steady->drift * 100);
	else
		flow_put(&flow, PAINT_NONE, "steady: -");
	flow_end(&flow);
}

static void check_lines(const struct table_output *output, const struct outcome *outcome)
{
	const struct bench_cross_check *check = &outcome->result->cross_check;
	char count[UNITS_SIZE];
	struct flow flow;

	if (check->done || check->text[0]) {
		flow = flow_begin(output, "counts: ", GAP);
		flow_put(&flow, PAINT_NONE, "%s", check->text);
		flow_end(&flow);
	}
	if (outcome->verified) {
		flow = flow_begin(output, "verify: ", GAP);
		flow_put(&flow, outcome->violation ? PAINT_BAD : PAINT_NONE, "%s",
			 outcome->violation ? "VIOLATION" : "no violation");
		flow_put(&flow, PAINT_NONE, "%s blocks written",
			 units_count(outcome->verify.blocks_written, count));
		flow_put(&flow, PAINT_NONE, "%s read",
			 units_count(outcome->verify.blocks_read, count));
		flow_put(&flow, PAINT_NONE, "%s writes of unknown fate",
			 units_count(outcome->verify.unknown, count));
		flow_end(&flow);
	}
	for (unsigned i = 0; outcome->expect && i < outcome->expect->count; i++) {
		const struct expect_condition *c = &outcome->expect->conditions[i];
		struct expect_answer answer = expect_judge(c, outcome->result);
		char value[64];

		flow = flow_begin(output, "expect: ", GAP);
		flow_put(&flow, PAINT_NONE, "%s", c->text);
		flow_put(&flow, answer.state == EXPECT_MET ? PAINT_GOOD : PAINT_BAD, "%s",
			 answer.state == EXPECT_MET ? "met" : "NOT MET");
		flow_put(&flow, PAINT_NONE, "%s",
			 expect_value_text(c, &answer, value, sizeof(value)));
		flow_end(&flow);
	}
}

/* "  code  text", the text word by word. */
static void verdict_lines(const struct table_output *output, const char *title,
			  const struct verdict_line *lines, unsigned count)
{
	if (count)
		fprintf(output->out, "%s:\n", title);
	for (unsigned i = 0; i < count; i++) {
		char head[64], words[sizeof(lines[i].text)];
		struct flow flow;

		snprintf(head, sizeof(head), "  %-13s ", lines[i].code);
		snprintf(words, sizeof(words), "%s", lines[i].text);
		flow = flow_begin(output, head, " ");
		for (char *at, *word = strtok_r(words, " ", &at); word;
		     word = strtok_r(NULL, " ", &at))
			flow_put(&flow, PAINT_NONE, "%s", word);
		flow_end(&flow);
	}
}

void table_outcome(const struct table_output *output, const struct outcome *outcome)
{
	const struct verdict *verdict = &outcome->verdict;

	headline(output, outcome);
	figures(output, outcome->result);
	path_lines(output, outcome->result);
	state_line(output, outcome);
	check_lines(output, outcome);
	for (unsigned i = 0; i < outcome->result->error_count; i++) {
		struct flow flow = flow_begin(output, "error: ", GAP);

		flow_put(&flow, PAINT_NONE, "%" PRIu64 " x %s", outcome->result->errors[i].count,
			 outcome->result->errors[i].text);
		flow_end(&flow);
	}
	verdict_lines(output, "not meaningful", verdict->reasons, verdict->reason_count);
	verdict_lines(output, "to be known", verdict->notes, verdict->note_count);
}

void table_points(const struct table_output *output, const struct outcome *outcomes, unsigned count)
{
	enum { POINT, SESSIONS, DEPTH, RATES, P99 = RATES + 3, VERDICT, POINT_COLUMNS };
	static const char *const head[POINT_COLUMNS] = { "POINT", "SESSIONS", "DEPTH",  "IOPS",
							 "MiB/s", "mean ms",  "p99 ms", "VERDICT" };
	char(*cells)[CELL] = calloc(((size_t)count + 1) * POINT_COLUMNS, CELL);

	if (!cells)
		return;
	for (unsigned j = 0; j < POINT_COLUMNS; j++)
		snprintf(cells[j], CELL, "%s", head[j]);
	for (unsigned i = 0; i < count; i++) {
		const struct bench_result *result = outcomes[i].result;
		const struct verdict *verdict = &outcomes[i].verdict;
		char(*row)[CELL] = cells + ((size_t)i + 1) * POINT_COLUMNS;

		snprintf(row[POINT], CELL, "%s", result->point->name);
		snprintf(row[SESSIONS], CELL, "%u", result->session_count);
		snprintf(row[DEPTH], CELL, "%u", result->depth_asked);
		rate_cells(result, BENCH_TOTAL, row + RATES);
		percentile_ms(&result->sides[BENCH_TOTAL].latency, 99, row[P99]);
		if (verdict->meaningful)
			strcpy(row[VERDICT], "MEANINGFUL");
		else if (verdict->reason_count == 1)
			snprintf(row[VERDICT], CELL, "NOT: %s", verdict->reasons[0].code);
		else
			snprintf(row[VERDICT], CELL, "NOT: %s +%u", verdict->reasons[0].code,
				 verdict->reason_count - 1);
	}
	print_grid(output, cells, count + 1, POINT_COLUMNS, true);
	free(cells);
}
