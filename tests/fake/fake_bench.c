/* SPDX-License-Identifier: MIT */
/*
 * The measurement that never took place; every figure follows from the few tables here.
 */
#include "tests/fake/fake_bench.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SECONDS 30
#define PORTALS 2
#define SESSIONS 4
#define THREADS 2
#define BLOCK 4096
#define SENT_AFTER_NS 4000 /* between the intended start and the sending */

#define SCALE 0.93 /* of the curve, so that 200 are in flight */

/* Quantiles of latency, in microseconds; straight lines between. */
static const struct {
	double share, read_us, write_us;
} curve[] = {
	{ 0, 420, 610 },      { 0.1, 790, 1080 },    { 0.5, 1220, 1660 },      { 0.9, 2010, 2760 },
	{ 0.99, 3410, 4900 }, { 0.999, 6020, 8770 }, { 0.9999, 11800, 15100 }, { 1, 18200, 22600 },
};

static double latency_us(double share, enum bench_side side)
{
	unsigned i = 1;
	double from, to, part;

	while (i < ARRAY_LEN(curve) - 1 && curve[i].share < share)
		i++;
	part = (share - curve[i - 1].share) / (curve[i].share - curve[i - 1].share);
	from = side == BENCH_READ ? curve[i - 1].read_us : curve[i - 1].write_us;
	to = side == BENCH_READ ? curve[i].read_us : curve[i].write_us;
	return SCALE * (from + part * (to - from));
}

void fake_bench_commands(struct bench_result *result, enum bench_side side, uint64_t count,
			 uint64_t latency_ns)
{
	uint64_t service_ns = latency_ns - (latency_ns > SENT_AFTER_NS ? SENT_AFTER_NS : 0);
	const enum bench_side both[] = { side, BENCH_TOTAL };

	assert(side != BENCH_TOTAL);
	for (unsigned i = 0; i < ARRAY_LEN(both); i++) {
		struct bench_counts *c = &result->sides[both[i]];

		c->ops += count;
		c->bytes += count * BLOCK;
		hist_add_many(&c->latency, latency_ns, count);
		hist_add_many(&c->service, service_ns, count);
	}
}

void fake_bench_clear(struct bench_result *result)
{
	for (unsigned side = 0; side < BENCH_SIDES; side++)
		result->sides[side] = (struct bench_counts){ 0 };
}

void fake_bench_shorten(struct bench_result *result, unsigned seconds)
{
	while (result->series_count > seconds)
		free(result->series[--result->series_count].portal_ops);
}

/* 10,000 equal slices of the curve; the last ones are single commands up to its end. */
static void add_curve(struct bench_result *result, enum bench_side side, uint64_t ops)
{
	uint64_t done = 0, tail = ops / 10000;

	for (unsigned i = 0; i < 10000; i++) {
		uint64_t upto = (ops - tail) * (i + 1) / 10000;
		double us = latency_us((i + 0.5) / 10000 * 0.9999, side);

		fake_bench_commands(result, side, upto - done, (uint64_t)(us * 1000));
		done = upto;
	}
	for (uint64_t i = 1; i <= tail; i++) {
		double us = latency_us(0.9999 + 0.0001 * (double)i / (double)tail, side);

		fake_bench_commands(result, side, 1, (uint64_t)(us * 1000));
	}
}

static void set_plan(struct fake_bench *fake)
{
	struct bench_setup *setup = &fake->plan.setup;

	fake->plan = (struct bench_plan){
		.profile = "diskspd-ha",
		.tells = "a pair",
		.points = &fake->point,
		.point_count = 1,
		.repeat = 1,
		.setup = { .portal_count = PORTALS,
			   .lun_count = 1,
			   .luns = { 1 },
			   .initiator = "iqn.2026-11.org.yoke:bench",
			   .policy = PATH_ROUND_ROBIN,
			   .threads = THREADS,
			   .cache_bytes = 8 * GIB,
			   .fill = true },
	};
	for (unsigned i = 0; i < PORTALS; i++) {
		snprintf(setup->portals[i].address, sizeof(setup->portals[i].address),
			 "192.0.2.%u:3260", i + 1);
		snprintf(setup->portals[i].target, sizeof(setup->portals[i].target),
			 "iqn.2026-11.org.yoke:demo");
	}
	fake->point = (struct bench_point){
		.name = "4K random 70/30",
		.stream_count = 1,
		.streams = { { .pattern = PATTERN_RANDOM,
			       .block_bytes = BLOCK,
			       .read_percent = 70,
			       .workers = 10,
			       .depth = 20 } },
		.sessions = SESSIONS / PORTALS,
		.data = DATA_RANDOM,
		.time_ns = SECONDS * NS_PER_S,
		.warmup_ns = 5 * NS_PER_S,
		.seed = 11400714819323198485u,
	};
}

static void set_series(struct bench_result *result)
{
	result->series_count = SECONDS;
	result->series = calloc(SECONDS, sizeof(*result->series));
	for (unsigned i = 0; i < SECONDS; i++) {
		struct bench_interval *t = &result->series[i];
		double wave = 1 + 0.02 * sin(i / 2.0);

		t->from_s = i;
		t->to_s = i + 1;
		t->portal_ops = calloc(PORTALS, sizeof(*t->portal_ops));
		for (unsigned side = 0; side < BENCH_SIDES; side++) {
			t->ops[side] = (uint64_t)((double)result->sides[side].ops / SECONDS * wave);
			t->bytes[side] = t->ops[side] * BLOCK;
		}
		t->portal_ops[0] = t->ops[BENCH_TOTAL] * 501 / 1000;
		t->portal_ops[1] = t->ops[BENCH_TOTAL] - t->portal_ops[0];
		t->mean_ns = hist_mean(&result->sides[BENCH_TOTAL].latency) / wave;
		t->p50_ns = (uint64_t)(1340000 / wave);
		t->p99_ns = (uint64_t)(3920000 / wave);
		t->p999_ns = (uint64_t)(7100000 / wave);
		t->p9999_ns = (uint64_t)(13600000 / wave);
		t->max_ns = i == 17 ? 21018000 : (uint64_t)(15000000 / wave);
		t->in_flight = 199.9;
		t->cpu = 1.42 * wave;
	}
}

void fake_bench_settle(struct bench_result *result)
{
	const struct bench_counts *total = &result->sides[BENCH_TOTAL];

	result->in_flight = bench_iops(result, BENCH_TOTAL) * hist_mean(&total->service) / 1e9;
	result->depth_asked = (unsigned)(result->in_flight + 0.5);
	result->paths[0].ops = total->ops * 501 / 1000;
	result->paths[1].ops = total->ops - result->paths[0].ops;
}

static void set_sessions(struct bench_result *result)
{
	const struct bench_counts *total = &result->sides[BENCH_TOTAL];

	result->session_count = SESSIONS;
	result->sessions = calloc(SESSIONS, sizeof(*result->sessions));
	for (unsigned i = 0; i < SESSIONS; i++) {
		struct bench_session *s = &result->sessions[i];
		struct bench_path *path = &result->paths[i % PORTALS];

		s->portal = i % PORTALS;
		s->thread = i / PORTALS;
		snprintf(s->isid, sizeof(s->isid), "00023d%06x", i + 1);
		s->ops = i < PORTALS ? path->ops / 2 : path->ops - path->ops / 2;
		s->bytes = s->ops * BLOCK;
		path->bytes += s->bytes;
		for (unsigned b = 0; b < HIST_BUCKETS; b++)
			hist_add_many(&s->latency, hist_bucket_middle(b),
				      total->latency.buckets[b] / SESSIONS);
		hist_merge(&path->latency, &s->latency);
	}
	result->thread_count = THREADS;
	result->threads = calloc(THREADS, sizeof(*result->threads));
	for (unsigned i = 0; i < THREADS; i++) {
		result->threads[i].cpu = 0.71;
		hist_add_many(&result->threads[i].lag, 20000, 100000);
	}
}

struct fake_bench *fake_bench(void)
{
	static struct fake_bench fake;
	struct bench_result *result = calloc(1, sizeof(*result));

	set_plan(&fake);
	fake.result = result;
	result->setup = &fake.plan.setup;
	result->point = &fake.point;
	result->started_wall_ms = 1796047331000; /* 2026-11-30T14:02:11Z */
	result->measured_s = SECONDS;
	add_curve(result, BENCH_READ, 2894640);
	add_curve(result, BENCH_WRITE, 1240560);
	fake_bench_settle(result);
	set_series(result);
	set_sessions(result);
	result->luns[0] = (struct bench_lun){
		.lun = 1, .size_bytes = 64 * GIB, .block_bytes = 512, .mapped = 1, .samples = 1000
	};
	result->cpu_user_s = 18.2;
	result->cpu_system_s = 24.4;
	result->cpus = 8;
	result->link_bytes_s = 3125000000;
	return &fake;
}

void fake_bench_free(struct fake_bench *fake)
{
	bench_result_free(fake->result);
	fake->result = NULL;
}
