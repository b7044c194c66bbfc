/* SPDX-License-Identifier: MIT */
/*
 * The member `yoke` of a measurement's JSON: all of it, with the unit in each key.
 *
 * Invariants:
 *  1. What is not known is null; a percentile without ten samples beyond it is not known.
 *  2. Numbers of 64 bits that are identifiers are strings.
 *  3. Secrets are no part of it.
 *
 * Not here: fio's members (json_fio.c).
 * Spec: man/yoke-bench-json.5.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <time.h>

#include "bench/json_int.h"
#include "core/version.h"

static json_t *seconds(uint64_t ns)
{
	return json_real((double)ns / (double)NS_PER_S);
}

static json_t *us(double ns)
{
	return json_real(ns / (double)NS_PER_US);
}

static json_t *known_us(const struct hist *hist, double percent)
{
	return verdict_percentile_known(hist, percent) ?
		       us((double)hist_percentile(hist, percent)) :
		       json_null();
}

static json_t *text_or_null(const char *text)
{
	return text && *text ? json_text(text) : json_null();
}

static json_t *latency(const struct hist *hist)
{
	json_t *object = json_object();
	bool any = hist->count > 0;

	json_put(object, "mean_us", any ? us(hist_mean(hist)) : json_null());
	json_put(object, "stddev_us", any ? us(hist_stddev(hist)) : json_null());
	json_put(object, "p50_us", known_us(hist, 50));
	json_put(object, "p90_us", known_us(hist, 90));
	json_put(object, "p99_us", known_us(hist, 99));
	json_put(object, "p99_9_us", known_us(hist, 99.9));
	json_put(object, "p99_99_us", known_us(hist, 99.99));
	json_put(object, "max_us", any ? us((double)hist->max) : json_null());
	return object;
}

static json_t *stream(const struct bench_stream *s)
{
	json_t *object = json_pack("{s:s, s:I, s:I, s:i, s:i, s:i, s:i}", "pattern",
				   bench_pattern_name(s->pattern), "block_bytes",
				   (json_int_t)s->block_bytes, "shift_bytes",
				   (json_int_t)s->shift_bytes, "read_percent", s->read_percent,
				   "workers", s->workers, "depth", s->depth, "sessions",
				   s->sessions);

	json_put(object, "zipf_theta",
		 s->pattern == PATTERN_ZIPF ? json_real(s->zipf_theta) : json_null());
	json_put(object, "think_us", us((double)s->think_ns));
	json_put(object, "rate_per_s", s->rate > 0 ? json_real(s->rate) : json_null());
	return object;
}

static json_t *point(const struct outcome *outcome)
{
	const struct bench_point *p = outcome->result->point;
	json_t *streams = json_array(), *object;
	char seed[24];

	snprintf(seed, sizeof(seed), "%" PRIu64, p->seed);
	for (unsigned i = 0; i < p->stream_count; i++)
		json_array_append_new(streams, stream(&p->streams[i]));
	object = json_pack("{s:o, s:i, s:i, s:i, s:i, s:o}", "name", json_text(p->name), "number",
			   outcome->point, "of", outcome->plan->point_count, "repeat",
			   outcome->repeat, "repeats", outcome->plan->repeat, "streams", streams);
	json_put(object, "sessions_per_portal", json_integer(p->sessions));
	json_put(object, "sessions", json_integer(outcome->result->session_count));
	json_put(object, "depth", json_integer(outcome->result->depth_asked));
	json_put(object, "data", json_string(bench_data_name(p->data)));
	json_put(object, "fill", json_boolean(outcome->result->setup->fill));
	json_put(object, "range_bytes", json_integer((json_int_t)p->range_bytes));
	json_put(object, "cache_bytes",
		 json_integer((json_int_t)outcome->result->setup->cache_bytes));
	json_put(object, "time_s", seconds(p->time_ns));
	json_put(object, "warmup_s", seconds(p->warmup_ns));
	json_put(object, "ramp_s", seconds(p->ramp_ns));
	json_put(object, "max_bytes", json_integer((json_int_t)p->max_bytes));
	json_put(object, "until_steady", json_boolean(p->steady));
	json_put(object, "seed", json_string(seed));
	return object;
}

static json_t *sides(const struct bench_result *result)
{
	static const char *const names[BENCH_SIDES] = { "read", "write", "total" };
	json_t *object = json_object();

	for (unsigned side = 0; side < BENCH_SIDES; side++) {
		const struct bench_counts *c = &result->sides[side];

		json_put(object, names[side],
			 json_pack("{s:I, s:I, s:f, s:f, s:o, s:o}", "ops", (json_int_t)c->ops,
				   "bytes", (json_int_t)c->bytes, "iops", bench_iops(result, side),
				   "bytes_per_s", bench_bytes_s(result, side), "latency",
				   latency(&c->latency), "service", latency(&c->service)));
	}
	return object;
}

static json_t *target(const struct bench_result *result)
{
	const struct bench_setup *setup = result->setup;
	json_t *portals = json_array(), *luns = json_array();

	for (unsigned i = 0; i < setup->portal_count; i++)
		json_array_append_new(portals,
				      json_pack("{s:o, s:o}", "address",
						json_text(setup->portals[i].address), "target",
						json_text(setup->portals[i].target)));
	for (unsigned i = 0; i < setup->lun_count; i++) {
		const struct bench_lun *lun = &result->luns[i];

		json_array_append_new(
			luns, json_pack("{s:i, s:I, s:I, s:b, s:o, s:I, s:I}", "lun", lun->lun,
					"size_bytes", (json_int_t)lun->size_bytes, "block_bytes",
					(json_int_t)lun->block_bytes, "write_cache",
					lun->write_cache, "mapped_share",
					lun->mapped >= 0 ? json_real(lun->mapped) : json_null(),
					"reads_sampled", (json_int_t)lun->samples, "reads_zero",
					(json_int_t)lun->zero_samples));
	}
	return json_pack("{s:o, s:s, s:b, s:b, s:o, s:o}", "initiator", json_text(setup->initiator),
			 "policy", path_policy_name(setup->policy), "header_digest",
			 setup->header_digest, "local", result->local, "portals", portals, "luns",
			 luns);
}

static json_t *sessions(const struct bench_result *result)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < result->session_count; i++) {
		const struct bench_session *s = &result->sessions[i];

		json_array_append_new(
			rows,
			json_pack("{s:i, s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
				  "portal", s->portal, "thread", s->thread, "isid", s->isid, "ops",
				  (json_int_t)s->ops, "bytes", (json_int_t)s->bytes, "errors",
				  (json_int_t)s->errors, "retries", (json_int_t)s->retries,
				  "backoffs", (json_int_t)s->backoffs, "stalls",
				  (json_int_t)s->stalls, "reconnects", (json_int_t)s->reconnects,
				  "latency", latency(&s->latency)));
	}
	return rows;
}

static json_t *paths(const struct bench_result *result)
{
	json_t *rows = json_array();
	double sum = 0;

	for (unsigned i = 0; i < result->setup->portal_count; i++)
		sum += (double)result->paths[i].ops;
	for (unsigned i = 0; i < result->setup->portal_count; i++) {
		const struct bench_path *p = &result->paths[i];
		double share = sum > 0 ? (double)p->ops / sum : 0;

		json_array_append_new(
			rows,
			json_pack("{s:o, s:o, s:I, s:I, s:f, s:I, s:I, s:I, s:o}", "address",
				  json_text(result->setup->portals[i].address), "target",
				  json_text(result->setup->portals[i].target), "ops",
				  (json_int_t)p->ops, "bytes", (json_int_t)p->bytes, "share", share,
				  "errors", (json_int_t)p->errors, "retries",
				  (json_int_t)p->retries, "reconnects", (json_int_t)p->reconnects,
				  "latency", latency(&p->latency)));
	}
	return rows;
}

static void put_row(json_t *object, const char *key, json_t *value)
{
	json_array_append_new(json_object_get(object, key), value);
}

/* Columns, not rows: a third of the size, and what charts want. */
static json_t *series(const struct bench_result *result)
{
	static const char *const columns[] = {
		"from_s",           "to_s",
		"read_iops",        "write_iops",
		"read_bytes_per_s", "write_bytes_per_s",
		"mean_us",          "p50_us",
		"p99_us",           "p99_9_us",
		"p99_99_us",        "max_us",
		"in_flight",        "cpu",
	};
	json_t *object = json_object(), *by_path = json_array();

	for (unsigned i = 0; i < ARRAY_LEN(columns); i++)
		json_put(object, columns[i], json_array());
	for (unsigned p = 0; p < result->setup->portal_count; p++)
		json_array_append_new(by_path, json_array());
	for (unsigned i = 0; i < result->series_count; i++) {
		const struct bench_interval *t = &result->series[i];
		double length = t->to_s > t->from_s ? t->to_s - t->from_s : 1;

		put_row(object, "from_s", json_real(t->from_s));
		put_row(object, "to_s", json_real(t->to_s));
		put_row(object, "read_iops", json_real((double)t->ops[BENCH_READ] / length));
		put_row(object, "write_iops", json_real((double)t->ops[BENCH_WRITE] / length));
		put_row(object, "read_bytes_per_s",
			json_real((double)t->bytes[BENCH_READ] / length));
		put_row(object, "write_bytes_per_s",
			json_real((double)t->bytes[BENCH_WRITE] / length));
		put_row(object, "mean_us", us(t->mean_ns));
		put_row(object, "p50_us", us((double)t->p50_ns));
		put_row(object, "p99_us", us((double)t->p99_ns));
		put_row(object, "p99_9_us", us((double)t->p999_ns));
		put_row(object, "p99_99_us", us((double)t->p9999_ns));
		put_row(object, "max_us", us((double)t->max_ns));
		put_row(object, "in_flight", json_real(t->in_flight));
		put_row(object, "cpu", json_real(t->cpu));
		for (unsigned p = 0; p < result->setup->portal_count; p++)
			json_array_append_new(json_array_get(by_path, p),
					      json_real((double)t->portal_ops[p] / length));
	}
	json_put(object, "path_iops", by_path);
	return object;
}

static json_t *steady(const struct steady *s)
{
	if (!s->known)
		return json_pack("{s:n, s:f, s:n, s:n}", "met", "round_s", s->round_s,
				 "range_share", "drift_share");
	return json_pack("{s:b, s:f, s:f, s:f, s:{s:f, s:f}, s:{s:f, s:f}}", "met", s->met,
			 "round_s", s->round_s, "range_share", s->range, "drift_share", s->drift,
			 "iops", "range_share", s->iops.range, "drift_share", s->iops.drift,
			 "latency", "range_share", s->latency.range, "drift_share",
			 s->latency.drift);
}

static json_t *lines(const struct verdict_line *line, unsigned count)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(rows, json_pack("{s:s, s:o}", "code", line[i].code, "text",
						      json_text(line[i].text)));
	return rows;
}

static json_t *error_lines(const struct bench_result *result)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < result->error_count; i++)
		json_array_append_new(rows, json_pack("{s:o, s:I}", "text",
						      json_text(result->errors[i].text), "count",
						      (json_int_t)result->errors[i].count));
	return rows;
}

static json_t *expectation(const struct expect_condition *c, const struct bench_result *result)
{
	struct expect_answer answer = expect_judge(c, result);
	json_t *object = json_pack("{s:o, s:b}", "condition", json_text(c->text), "met",
				   answer.state == EXPECT_MET);
	const char *value = "value_us", *limit = "limit_us";
	double scale = (double)NS_PER_US;

	if (c->figure == EXPECT_IOPS || c->figure == EXPECT_MIB_S) {
		value = c->figure == EXPECT_IOPS ? "value_iops" : "value_mib_s";
		limit = c->figure == EXPECT_IOPS ? "limit_iops" : "limit_mib_s";
		scale = 1;
	}
	json_put(object, limit, json_real(c->limit / scale));
	json_put(object, value,
		 answer.state == EXPECT_UNKNOWN ? json_null() : json_real(answer.value / scale));
	return object;
}

static json_t *expectations(const struct outcome *outcome)
{
	json_t *rows;

	if (!outcome->expect)
		return json_null();
	rows = json_array();
	for (unsigned i = 0; i < outcome->expect->count; i++)
		json_array_append_new(rows, expectation(&outcome->expect->conditions[i],
							outcome->result));
	return rows;
}

static json_t *cross_check(const struct bench_cross_check *c)
{
	json_t *object;

	if (!c->done)
		return c->text[0] ? json_pack("{s:b, s:o}", "done", 0, "text", json_text(c->text)) :
				    json_null();
	object = json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:f, s:o}", "done", 1, "initiator_ops",
			   (json_int_t)c->initiator, "session_ops", (json_int_t)c->sessions,
			   "lun_ops", (json_int_t)c->luns, "backing_ops", (json_int_t)c->disks,
			   "initiator_read_bytes", (json_int_t)c->initiator_read_bytes,
			   "deviation_share", c->deviation, "text", json_text(c->text));
	json_put(object, "disk_read_bytes",
		 c->disks_known ? json_integer((json_int_t)c->disk_read_bytes) : json_null());
	return object;
}

static json_t *verify(const struct outcome *outcome)
{
	if (!outcome->verified)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:o}", "blocks_written",
			 (json_int_t)outcome->verify.blocks_written, "blocks_read",
			 (json_int_t)outcome->verify.blocks_read, "writes_unknown",
			 (json_int_t)outcome->verify.unknown, "violation",
			 text_or_null(outcome->violation));
}

static json_t *host(const struct bench_result *result)
{
	json_t *threads = json_array(), *object;
	double cpu = result->measured_s > 0 ?
			     (result->cpu_user_s + result->cpu_system_s) / result->measured_s :
			     0;
	struct utsname name;

	for (unsigned i = 0; i < result->thread_count; i++)
		json_array_append_new(
			threads,
			json_pack("{s:f, s:o, s:o, s:o}", "cpu", result->threads[i].cpu,
				  "wait_share",
				  result->threads[i].wait < 0 ? json_null() :
								json_real(result->threads[i].wait),
				  "lag_p99_us", known_us(&result->threads[i].lag, 99), "lag_max_us",
				  us((double)result->threads[i].lag.max)));
	uname(&name);
	object = json_pack("{s:o, s:s, s:s, s:f, s:f, s:f, s:f, s:o}", "name",
			   json_text(name.nodename), "kernel", name.release, "machine",
			   name.machine, "cpus", result->cpus, "cpu", cpu, "cpu_user_s",
			   result->cpu_user_s, "cpu_system_s", result->cpu_system_s, "threads",
			   threads);
	json_put(object, "link_bytes_per_s",
		 result->link_bytes_s ? json_integer((json_int_t)result->link_bytes_s) :
					json_null());
	return object;
}

json_t *json_yoke(const struct outcome *outcome)
{
	const struct bench_result *result = outcome->result;
	const struct bench_counts *total = &result->sides[BENCH_TOTAL];
	time_t started = (time_t)(result->started_wall_ms / 1000);
	json_t *object =
		json_pack("{s:s, s:s}", "schema", "yoke.bench/1", "version", yoke_version());
	char when[40];
	struct tm tm;

	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&started, &tm));
	json_put(object, "profile", text_or_null(outcome->plan->profile));
	json_put(object, "tells", text_or_null(outcome->plan->tells));
	json_put(object, "point", point(outcome));
	json_put(object, "started_utc", json_string(when));
	json_put(object, "measured_s", json_real(result->measured_s));
	json_put(object, "interrupted", json_boolean(result->interrupted));
	json_put(object, "meaningful", json_boolean(outcome->verdict.meaningful));
	json_put(object, "warnings",
		 lines(outcome->verdict.reasons, outcome->verdict.reason_count));
	json_put(object, "notes", lines(outcome->verdict.notes, outcome->verdict.note_count));
	json_put(object, "sides", sides(result));
	json_put(object, "in_flight",
		 json_pack("{s:f, s:i, s:f}", "mean", result->in_flight, "asked",
			   result->depth_asked, "iops_x_service",
			   bench_iops(result, BENCH_TOTAL) * hist_mean(&total->service) /
				   (double)NS_PER_S));
	json_put(object, "planned_ops",
		 result->planned ? json_integer((json_int_t)result->planned) : json_null());
	json_put(object, "spread_share",
		 outcome->spread >= 0 ? json_real(outcome->spread) : json_null());
	json_put(object, "target", target(result));
	json_put(object, "sessions", sessions(result));
	json_put(object, "paths", paths(result));
	json_put(object, "series", series(result));
	json_put(object, "steady", steady(&outcome->steady));
	json_put(object, "errors", error_lines(result));
	json_put(object, "expect", expectations(outcome));
	json_put(object, "good", json_boolean(outcome->good));
	json_put(object, "cross_check", cross_check(&result->cross_check));
	json_put(object, "verify", verify(outcome));
	json_put(object, "host", host(result));
	return object;
}
