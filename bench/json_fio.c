/* SPDX-License-Identifier: MIT */
/*
 * What fio's readers look for, out of our result.
 *
 * Invariants:
 *  1. clat is from the sending, lat from the intended start; slat is what lies between, of which
 *     only the mean is known.
 *  2. A side without commands has neither percentiles nor bins, as in fio's own files:
 *     fio_jsonplus_clat2csv cannot read empty ones.
 *  3. No bin is beyond fio's last: its scripts would look for one for ever.
 *
 * Not here: anything that fio has no word for (json_yoke.c).
 * Spec: the json+ output of fio 3.x.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/json_int.h"
#include "core/version.h"

#define FIO_BIN_MAX 17112760320ull /* ns */

static const double percents[] = { 1,  5,  10, 20, 30,   40,   50,    60,   70,
				   80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99 };

static json_t *percentiles(const struct hist *hist)
{
	json_t *object = json_object();
	char key[16];

	for (unsigned i = 0; i < ARRAY_LEN(percents); i++) {
		snprintf(key, sizeof(key), "%.6f", percents[i]);
		json_put(object, key, json_integer((json_int_t)hist_percentile(hist, percents[i])));
	}
	return object;
}

static json_t *bins(const struct hist *hist)
{
	json_t *object = json_object();
	uint64_t beyond = 0;
	char key[24];

	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		uint64_t middle = hist_bucket_middle(i);

		if (!hist->buckets[i])
			continue;
		if (middle >= FIO_BIN_MAX) {
			beyond += hist->buckets[i];
			continue;
		}
		snprintf(key, sizeof(key), "%" PRIu64, middle);
		json_put(object, key, json_integer((json_int_t)hist->buckets[i]));
	}
	if (beyond) {
		snprintf(key, sizeof(key), "%llu", FIO_BIN_MAX);
		json_put(object, key, json_integer((json_int_t)beyond));
	}
	return object;
}

static json_t *latency(const struct hist *hist)
{
	json_t *object = json_pack("{s:I, s:I, s:f, s:f, s:I}", "min",
				   (json_int_t)(hist->count ? hist->min : 0), "max",
				   (json_int_t)hist->max, "mean", hist_mean(hist), "stddev",
				   hist_stddev(hist), "N", (json_int_t)hist->count);

	if (hist->count) {
		json_put(object, "percentile", percentiles(hist));
		json_put(object, "bins", bins(hist));
	}
	return object;
}

struct spread {
	double min, max, mean, stddev;
	unsigned samples;
};

/* Of the intervals' rates; what() of one interval. */
static struct spread spread_of(const struct bench_result *result, enum bench_side side, bool bytes)
{
	struct spread spread = { 0 };
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < result->series_count; i++) {
		const struct bench_interval *interval = &result->series[i];
		double length = interval->to_s - interval->from_s, rate;

		if (length <= 0)
			continue;
		rate = (double)(bytes ? interval->bytes[side] / KIB : interval->ops[side]) / length;
		spread.min = spread.samples ? fmin(spread.min, rate) : rate;
		spread.max = fmax(spread.max, rate);
		spread.samples++;
		sum += rate;
		squares += rate * rate;
	}
	if (spread.samples) {
		spread.mean = sum / spread.samples;
		spread.stddev = sqrt(fmax(squares / spread.samples - spread.mean * spread.mean, 0));
	}
	return spread;
}

static json_t *side_object(const struct bench_result *result, enum bench_side side)
{
	static const struct bench_counts none; /* trim */
	const struct bench_counts *c = side == BENCH_TOTAL ? &none : &result->sides[side];
	bool any = side != BENCH_TOTAL;
	double bytes_s = any ? bench_bytes_s(result, side) : 0;
	struct spread iops = any ? spread_of(result, side, false) : (struct spread){ 0 };
	struct spread bw = any ? spread_of(result, side, true) : (struct spread){ 0 };
	json_t *object = json_pack("{s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:i, s:i}", "io_bytes",
				   (json_int_t)c->bytes, "io_kbytes", (json_int_t)(c->bytes / KIB),
				   "bw_bytes", (json_int_t)bytes_s, "bw",
				   (json_int_t)(bytes_s / (double)KIB), "iops",
				   any ? bench_iops(result, side) : 0.0, "runtime",
				   (json_int_t)(c->ops ? result->measured_s * 1000 : 0),
				   "total_ios", (json_int_t)c->ops, "short_ios", 0, "drop_ios", 0);

	json_put(object, "slat_ns",
		 json_pack("{s:i, s:i, s:f, s:f, s:I}", "min", 0, "max", 0, "mean",
			   fmax(hist_mean(&c->latency) - hist_mean(&c->service), 0), "stddev", 0.0,
			   "N", (json_int_t)c->latency.count));
	json_put(object, "clat_ns", latency(&c->service));
	json_put(object, "lat_ns", latency(&c->latency));
	json_put(object, "bw_min", json_integer((json_int_t)bw.min));
	json_put(object, "bw_max", json_integer((json_int_t)bw.max));
	json_put(object, "bw_agg", json_real(c->ops ? 100.0 : 0.0));
	json_put(object, "bw_mean", json_real(bw.mean));
	json_put(object, "bw_dev", json_real(bw.stddev));
	json_put(object, "bw_samples", json_integer(bw.samples));
	json_put(object, "iops_min", json_integer((json_int_t)iops.min));
	json_put(object, "iops_max", json_integer((json_int_t)iops.max));
	json_put(object, "iops_mean", json_real(iops.mean));
	json_put(object, "iops_stddev", json_real(iops.stddev));
	json_put(object, "iops_samples", json_integer(iops.samples));
	return object;
}

/* Shares of commands below each of LABELS (in UNIT_NS) and not below the one before. */
static json_t *latency_shares(const struct hist *hist, uint64_t unit_ns, const unsigned *labels,
			      unsigned count, uint64_t from_ns, bool rest)
{
	json_t *object = json_object();
	char key[16];

	for (unsigned i = 0; i < count + rest; i++) {
		uint64_t to_ns = i < count ? labels[i] * unit_ns : UINT64_MAX, n = 0;

		for (unsigned b = 0; b < HIST_BUCKETS; b++) {
			uint64_t middle = hist->buckets[b] ? hist_bucket_middle(b) : 0;

			if (hist->buckets[b] && middle >= from_ns && middle < to_ns)
				n += hist->buckets[b];
		}
		snprintf(key, sizeof(key), i < count ? "%u" : ">=%u",
			 labels[i < count ? i : count - 1]);
		json_put(object, key,
			 json_real(hist->count ? 100 * (double)n / (double)hist->count : 0));
		from_ns = to_ns;
	}
	return object;
}

/* Of the time: the intervals' means; single commands are not followed. */
static json_t *depth_levels(const struct bench_result *result)
{
	static const char *const names[] = { "1", "2", "4", "8", "16", "32", ">=64" };
	double time[ARRAY_LEN(names)] = { 0 }, sum = 0;
	json_t *object = json_object();

	for (unsigned i = 0; i < result->series_count; i++) {
		const struct bench_interval *interval = &result->series[i];
		unsigned level = 0;

		while (level < ARRAY_LEN(names) - 1 && interval->in_flight >= 2u << level)
			level++;
		time[level] += interval->to_s - interval->from_s;
		sum += interval->to_s - interval->from_s;
	}
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		json_put(object, names[i], json_real(sum > 0 ? 100 * time[i] / sum : 0));
	return object;
}

static const char *rw_name(const struct bench_point *point)
{
	bool random = false, reads = false, writes = bench_point_writes(point);

	for (unsigned i = 0; i < point->stream_count; i++) {
		random |= point->streams[i].pattern != PATTERN_SEQUENTIAL;
		reads |= point->streams[i].read_percent > 0;
	}
	if (reads && writes)
		return random ? "randrw" : "rw";
	if (writes)
		return random ? "randwrite" : "write";
	return random ? "randread" : "read";
}

static void put_number(json_t *object, const char *key, uint64_t value, const char *unit)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 "%s", value, unit);
	json_put(object, key, json_string(text));
}

/* fio gives options as text. Streams side by side are one job of their common depth. */
static json_t *job_options(const struct outcome *outcome)
{
	const struct bench_point *point = outcome->result->point;
	const struct bench_stream *first = &point->streams[0];
	json_t *object = json_pack("{s:o, s:s, s:s}", "name", json_text(point->name), "ioengine",
				   "libiscsi", "rw", rw_name(point));
	unsigned depth = outcome->result->depth_asked, jobs = 1;

	if (point->stream_count == 1 && first->depth && depth % first->depth == 0) {
		jobs = depth / first->depth;
		depth = first->depth;
	}
	if (first->block_bytes % KIB == 0)
		put_number(object, "bs", first->block_bytes / KIB, "k");
	else
		put_number(object, "bs", first->block_bytes, "");
	put_number(object, "iodepth", depth, "");
	put_number(object, "numjobs", jobs, "");
	put_number(object, "rwmixread", first->read_percent, "");
	put_number(object, "runtime", point->time_ns / NS_PER_S, "");
	return object;
}

static json_t *job(const struct outcome *outcome)
{
	static const unsigned small[] = { 2, 4, 10, 20, 50, 100, 250, 500, 750, 1000 };
	static const unsigned large[] = { 2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000 };
	const struct bench_result *result = outcome->result;
	const struct hist *hist = &result->sides[BENCH_TOTAL].service;
	double percent = result->measured_s > 0 ? 100 / result->measured_s : 0;
	json_t *object = json_pack("{s:o, s:i, s:i, s:i, s:I, s:o}", "jobname",
				   json_text(result->point->name), "groupid", 0, "error",
				   result->error_count ? 5 : 0, "eta", 0, "elapsed",
				   (json_int_t)(result->measured_s + 1), "job options",
				   job_options(outcome));

	json_put(object, "read", side_object(result, BENCH_READ));
	json_put(object, "write", side_object(result, BENCH_WRITE));
	json_put(object, "trim", side_object(result, BENCH_TOTAL));
	json_put(object, "job_runtime", json_integer((json_int_t)(result->measured_s * 1000)));
	json_put(object, "usr_cpu", json_real(result->cpu_user_s * percent));
	json_put(object, "sys_cpu", json_real(result->cpu_system_s * percent));
	json_put(object, "iodepth_level", depth_levels(result));
	json_put(object, "latency_ns", latency_shares(hist, 1, small, ARRAY_LEN(small), 0, false));
	json_put(object, "latency_us",
		 latency_shares(hist, NS_PER_US, small, ARRAY_LEN(small), NS_PER_US, false));
	json_put(object, "latency_ms",
		 latency_shares(hist, NS_PER_MS, large, ARRAY_LEN(large), NS_PER_MS, true));
	json_put(object, "latency_depth", json_integer(result->depth_asked));
	return object;
}

void json_fio(const struct outcome *outcome, json_t *root)
{
	const struct bench_result *result = outcome->result;
	int64_t ended_ms = result->started_wall_ms + (int64_t)(result->measured_s * 1000);
	time_t ended = (time_t)(ended_ms / 1000);
	char when[64], version[64];
	struct tm tm;

	snprintf(version, sizeof(version), "yoke-bench-%s", yoke_version());
	/* asctime()'s form, as fio has it. */
	strftime(when, sizeof(when), "%a %b %e %H:%M:%S %Y", localtime_r(&ended, &tm));
	json_put(root, "fio version", json_string(version));
	json_put(root, "timestamp", json_integer(ended));
	json_put(root, "timestamp_ms", json_integer(ended_ms));
	json_put(root, "time", json_string(when));
	json_put(root, "global options", json_object());
	json_put(root, "jobs", json_pack("[o]", job(outcome)));
}
