/* SPDX-License-Identifier: MIT */
/*
 * The rules of what is not meaningful, as a table: each looks at the facts and, where it
 * applies, says so in a sentence with the numbers.
 *
 * Invariants:
 *  1. A rule that lacks what it needs to know says nothing: not known is no reproach.
 *  2. The table's order is the order in which reasons are told.
 *
 * Not here: measuring (engine.c), the steady-state test (steady.c), counting at the target
 * (cross_check.c).
 */
#include "bench/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "bench/cross_check.h"
#include "core/units.h"

#define DATA_MAPPED_MIN 0.99
#define ZERO_SAMPLES_MAX 0.01
#define DISKS_READ_MIN 0.90
#define CACHE_TIMES 2
#define CPU_MAX 0.90
#define WAIT_MAX 0.10
#define LAG_MAX 0.10 /* of the median latency */
#define LINK_MAX 0.95
#define THROUGHPUT_BLOCK (64 * KIB) /* such runs are meant to fill the links */
#define DEPTH_MIN 0.90
#define BOOKKEEPING_MAX 0.02
#define RATE_MIN 0.99
#define LATE_MAX_S 1.0
#define TIME_MIN_S 10.0
#define OPS_MIN 10000
#define SAMPLES_BEYOND 10
#define FAIR_SHARE_MIN 0.50
#define SPREAD_MAX 0.10
#define SLACK 1e-9 /* figures are sums of doubles: what is at a limit is within it */

static bool say(char *text, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool say(char *text, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(((struct verdict_line *)0)->text), fmt, ap);
	va_end(ap);
	return true;
}

bool verdict_percentile_known(const struct hist *hist, double percent)
{
	/* As in hist_percentile(): 99.9 has no exact double. */
	return (100 - percent) * (double)hist->count / 100 >= SAMPLES_BEYOND - 1e-6;
}

double verdict_spread(const double *values, unsigned count)
{
	double low, high, sum = 0;

	if (count < 2)
		return -1;
	low = high = values[0];
	for (unsigned i = 0; i < count; i++) {
		low = fmin(low, values[i]);
		high = fmax(high, values[i]);
		sum += values[i];
	}
	return sum > 0 ? (high - low) * count / sum : -1;
}

static bool open_loop(const struct bench_point *point)
{
	for (unsigned i = 0; i < point->stream_count; i++)
		if (point->streams[i].rate > 0)
			return true;
	return false;
}

static bool pauses(const struct bench_point *point)
{
	for (unsigned i = 0; i < point->stream_count; i++)
		if (point->streams[i].rate > 0 || point->streams[i].think_ns)
			return true;
	return false;
}

static bool zero_data(const struct verdict_facts *facts, char *text)
{
	const struct bench_point *point = facts->result->point;

	if (point->data == DATA_RANDOM ||
	    !(facts->result->setup->fill || bench_point_writes(point)))
		return false;
	return say(text, "the data were %s: a target may compress, deduplicate or not store them",
		   point->data == DATA_ZERO ? "zeroes" : "one block over and over");
}

static bool unmapped(const struct verdict_facts *facts, char *text)
{
	const struct bench_result *result = facts->result;

	for (unsigned i = 0; i < result->setup->lun_count; i++) {
		const struct bench_lun *lun = &result->luns[i];

		if (lun->mapped >= 0 && lun->mapped < DATA_MAPPED_MIN - SLACK)
			return say(text,
				   "LUN %u: %.1f %% of the range was allocated at the start, not "
				   "99 %%: fill it first",
				   lun->lun, lun->mapped * 100);
		if ((double)lun->zero_samples > ZERO_SAMPLES_MAX * (double)lun->samples + SLACK)
			return say(
				text,
				"LUN %u: %.1f %% of %" PRIu64
				" reads looked at were all zeroes, more than 1 %%: fill it first",
				lun->lun, 100 * (double)lun->zero_samples / (double)lun->samples,
				lun->samples);
	}
	return false;
}

static bool cache(const struct verdict_facts *facts, char *text)
{
	const struct bench_result *result = facts->result;
	const struct bench_cross_check *check = &result->cross_check;
	uint64_t range = 0, cached = result->setup->cache_bytes;
	char range_text[UNITS_SIZE], cache_text[UNITS_SIZE];

	if (check->done && check->disks_known) {
		double read = (double)check->initiator_read_bytes;

		if ((double)check->disk_read_bytes >= DISKS_READ_MIN * read - SLACK)
			return false;
		return say(text,
			   "the disks served %.1f %% of the bytes read, less than 90 %%: the rest "
			   "came from a cache",
			   100 * (double)check->disk_read_bytes / read);
	}
	for (unsigned i = 0; i < result->setup->lun_count; i++) {
		uint64_t size = result->luns[i].size_bytes, asked = result->point->range_bytes;

		range += asked && asked < size ? asked : size;
	}
	if (range / CACHE_TIMES >= cached)
		return false;
	return say(text,
		   "a range of %s fits the target's cache: less than twice %s. Use more, or tell "
		   "its size with --cache",
		   units_size(range, range_text), units_size(cached, cache_text));
}

static bool client_bound(const struct verdict_facts *facts, char *text)
{
	const struct bench_result *result = facts->result;
	double median = (double)hist_percentile(&result->sides[BENCH_TOTAL].latency, 50);
	double all = result->measured_s > 0 ?
			     (result->cpu_user_s + result->cpu_system_s) / result->measured_s :
			     0;

	for (unsigned i = 0; i < result->thread_count; i++)
		if (result->threads[i].cpu >= CPU_MAX - SLACK)
			return say(text,
				   "thread %u used %.0f %% of a processor, 90 %% or more: this "
				   "client was the limit. Use more --threads",
				   i, result->threads[i].cpu * 100);
	if (result->cpus > 0 && all >= (CPU_MAX - SLACK) * result->cpus)
		return say(text,
			   "all %.0f processors allowed were %.0f %% used, 90 %% or more: this "
			   "client was the limit",
			   result->cpus, 100 * all / result->cpus);
	for (unsigned i = 0; i < result->thread_count; i++)
		if (result->threads[i].wait > WAIT_MAX + SLACK)
			return say(
				text,
				"thread %u waited for a processor %.1f %% of the time, more than "
				"10 %%: others are at work on this client",
				i, result->threads[i].wait * 100);
	for (unsigned i = 0; i < result->thread_count; i++) {
		const struct hist *lag = &result->threads[i].lag;
		double late = (double)hist_percentile(lag, 99);

		if (verdict_percentile_known(lag, 99) && median > 0 &&
		    late > LAG_MAX * median + SLACK)
			return say(text,
				   "thread %u's loop was at work up to %.0f us beyond what was due "
				   "(p99), more than 10 %% of the median latency of %.0f us: this "
				   "client was the limit",
				   i, late / 1e3, median / 1e3);
	}
	return false;
}

static bool link_bound(const struct verdict_facts *facts, char *text)
{
	const struct bench_result *result = facts->result;
	const struct bench_point *point = result->point;
	/* Links are full duplex: the busier direction counts. */
	double bytes_s =
		fmax(bench_bytes_s(result, BENCH_READ), bench_bytes_s(result, BENCH_WRITE));
	double link = (double)result->link_bytes_s;
	bool throughput = point->stream_count > 0;

	for (unsigned i = 0; i < point->stream_count; i++)
		throughput &= point->streams[i].block_bytes >= THROUGHPUT_BLOCK;
	if (throughput || !result->link_bytes_s || bytes_s < (LINK_MAX - SLACK) * link)
		return false;
	return say(text,
		   "%.1f MiB/s is %.0f %% of what the links allow, 95 %% or more: they were the "
		   "limit",
		   bytes_s / (double)MIB, 100 * bytes_s / link);
}

static bool depth(const struct verdict_facts *facts, char *text)
{
	const struct bench_result *result = facts->result;
	double asked = result->depth_asked;

	if (pauses(result->point) || result->measured_s <= 0)
		return false;
	/* Over the ramp it rises evenly from nothing. */
	asked *= 1 - fmin((double)result->point->ramp_ns / 1e9 / result->measured_s, 1) / 2;
	if (result->in_flight >= (DEPTH_MIN - SLACK) * asked)
		return false;
	return say(text,
		   "%.1f commands were in flight, less than 90 %% of the %.0f asked: the target's "
		   "command window, a lost path or this client held the rest back",
		   result->in_flight, asked);
}

static bool bookkeeping(const struct verdict_facts *facts, char *text)
{
	const struct bench_result *result = facts->result;
	double law = bench_iops(result, BENCH_TOTAL) *
		     hist_mean(&result->sides[BENCH_TOTAL].service) / 1e9;

	if (result->in_flight <= 0 ||
	    fabs(law - result->in_flight) <= BOOKKEEPING_MAX * result->in_flight + SLACK)
		return false;
	return say(text,
		   "IOPS x mean service time is %.1f, but %.1f were in flight: more than 2 %% "
		   "apart, so the figures do not belong together",
		   law, result->in_flight);
}

static bool counts(const struct verdict_facts *facts, char *text)
{
	const struct bench_cross_check *check = &facts->result->cross_check;

	if (cross_check_agrees(check))
		return false;
	return say(text, "the counts differ by %.1f %%, more than 1 %%: %s", check->deviation * 100,
		   check->text);
}

static bool late(const struct verdict_facts *facts, char *text)
{
	const struct bench_result *result = facts->result;
	const struct bench_counts *total = &result->sides[BENCH_TOTAL];
	double lag_s = 0;

	if (!open_loop(result->point))
		return false;
	if ((double)total->ops < (RATE_MIN - SLACK) * (double)result->planned)
		return say(text,
			   "%.1f %% of the planned rate was reached, less than 99 %%: the figures "
			   "are those of an overload",
			   100 * (double)total->ops / (double)result->planned);
	/* The latest command was so late at least: what of its latency no service can explain. */
	if (total->latency.count && total->latency.max > total->service.max)
		lag_s = (double)(total->latency.max - total->service.max) / 1e9;
	for (unsigned i = 0; i < result->thread_count; i++)
		if (result->threads[i].lag.count)
			lag_s = fmax(lag_s, (double)result->threads[i].lag.max / 1e9);
	if (lag_s <= LATE_MAX_S + SLACK)
		return false;
	return say(text, "commands were sent up to %.1f s after their time, more than 1 s", lag_s);
}

static const char *const side_names[BENCH_SIDES] = { "read", "write", "total" };

static bool too_short(const struct verdict_facts *facts, char *text)
{
	const struct bench_result *result = facts->result;
	uint64_t ops = result->sides[BENCH_TOTAL].ops;
	char need[UNITS_SIZE], had[UNITS_SIZE];

	/* Clocks are read in turns: a thousandth may be missing. */
	if (result->measured_s < TIME_MIN_S * 0.999)
		return say(text, "%.1f s were measured, less than 10 s", result->measured_s);
	if (ops < OPS_MIN)
		return say(text, "%s commands were measured, less than 10,000",
			   units_count(ops, had));
	for (unsigned i = 0; facts->expect && i < facts->expect->count; i++) {
		const struct expect_condition *c = &facts->expect->conditions[i];
		const struct hist *hist = &result->sides[c->side].latency;

		if (c->figure != EXPECT_PERCENTILE || verdict_percentile_known(hist, c->percent))
			continue;
		units_count((uint64_t)ceil(SAMPLES_BEYOND * 100 / (100 - c->percent) - 1e-6), need);
		return say(text, "p%g of %s needs 10 samples beyond it: %s commands, not %s",
			   c->percent, side_names[c->side], need, units_count(hist->count, had));
	}
	return false;
}

static bool not_steady(const struct verdict_facts *facts, char *text)
{
	const struct steady *steady = facts->steady;

	if (!steady->known || steady->met)
		return false;
	return say(text,
		   "over the last five rounds of %.1f s it varied by %.1f %% (20 %% allowed) and "
		   "drifted by %.1f %% (10 %% allowed): let it run longer, or --steady",
		   steady->round_s, steady->range * 100, steady->drift * 100);
}

static bool errors(const struct verdict_facts *facts, char *text)
{
	const struct bench_result *result = facts->result;
	uint64_t failed = 0, retries = 0, reconnects = 0;

	for (unsigned i = 0; i < result->session_count; i++) {
		failed += result->sessions[i].errors;
		retries += result->sessions[i].retries;
		reconnects += result->sessions[i].reconnects;
	}
	if (!failed && !retries && !reconnects)
		return false;
	return say(text, "%" PRIu64 " errors, %" PRIu64 " retries, %" PRIu64 " reconnects%s%s",
		   failed, retries, reconnects, result->error_count ? ": first, " : "",
		   result->error_count ? result->errors[0].text : "");
}

static bool paths(const struct verdict_facts *facts, char *text)
{
	const struct bench_result *result = facts->result;
	const struct bench_setup *setup = result->setup;
	uint64_t sum = 0;

	/* On failover one path serves and the others wait: no share is fair. */
	if (setup->policy == PATH_FAILOVER)
		return false;
	for (unsigned i = 0; i < setup->portal_count; i++)
		sum += result->paths[i].ops;
	for (unsigned i = 0; i < setup->portal_count; i++) {
		double fair = (double)sum / setup->portal_count;

		if ((double)result->paths[i].ops < (FAIR_SHARE_MIN - SLACK) * fair)
			return say(text,
				   "path %s served %.1f %%, less than half of its share of %.1f %%",
				   setup->portals[i].address,
				   100 * (double)result->paths[i].ops / (double)sum,
				   100.0 / setup->portal_count);
	}
	return false;
}

static bool noise(const struct verdict_facts *facts, char *text)
{
	if (facts->spread <= SPREAD_MAX + SLACK)
		return false;
	return say(text, "the IOPS of its repeats differ by %.1f %%, more than 10 %%",
		   facts->spread * 100);
}

static bool write_cache(const struct verdict_facts *facts, char *text)
{
	for (unsigned i = 0; i < facts->result->setup->lun_count; i++)
		if (facts->result->luns[i].write_cache && bench_point_writes(facts->result->point))
			return say(text,
				   "LUN %u has a write cache (WCE=1): its writes were answered "
				   "before they were durable",
				   facts->result->luns[i].lun);
	return false;
}

static bool local_target(const struct verdict_facts *facts, char *text)
{
	return facts->result->local &&
	       say(text, "the target is on this machine: both share its processors, and no "
			 "network is in the figures");
}

static bool closed_loop(const struct verdict_facts *facts, char *text)
{
	return !open_loop(facts->result->point) &&
	       say(text, "a closed loop: a target that stalls is asked less. For the latency at a "
			 "given load use --rate");
}

static bool interrupted(const struct verdict_facts *facts, char *text)
{
	return facts->result->interrupted &&
	       say(text, "interrupted after %.1f s", facts->result->measured_s);
}

struct rule {
	const char *code;
	bool (*applies)(const struct verdict_facts *facts, char *text); /* writes the sentence */
};

static const struct rule reasons[] = {
	{ "errors", errors },
	{ "counts", counts },
	{ "short", too_short },
	{ "not-steady", not_steady },
	{ "zero-data", zero_data },
	{ "unmapped", unmapped },
	{ "cache", cache },
	{ "client-bound", client_bound },
	{ "link-bound", link_bound },
	{ "depth", depth },
	{ "late", late },
	{ "paths", paths },
	{ "bookkeeping", bookkeeping },
	{ "noise", noise },
};
static_assert(ARRAY_LEN(reasons) <= VERDICT_REASONS, "all may apply at once");

static const struct rule notes[] = {
	{ "interrupted", interrupted },
	{ "write-cache", write_cache },
	{ "local-target", local_target },
	{ "closed-loop", closed_loop },
};
static_assert(ARRAY_LEN(notes) <= VERDICT_NOTES, "all may apply at once");

static unsigned apply(const struct rule *rules, size_t count, const struct verdict_facts *facts,
		      struct verdict_line *lines)
{
	unsigned n = 0;

	for (size_t i = 0; i < count; i++)
		if (rules[i].applies(facts, lines[n].text))
			lines[n++].code = rules[i].code;
	return n;
}

void verdict_judge(const struct verdict_facts *facts, struct verdict *verdict)
{
	verdict->reason_count = apply(reasons, ARRAY_LEN(reasons), facts, verdict->reasons);
	verdict->note_count = apply(notes, ARRAY_LEN(notes), facts, verdict->notes);
	verdict->meaningful = verdict->reason_count == 0;
}
