/* SPDX-License-Identifier: MIT */
/*
 * A measurement that never took place: 30 s of 4K random 70/30 over two portals with two sessions
 * each, 200 outstanding, good in every respect. Tests change what they are about.
 */
#ifndef TESTS_FAKE_BENCH_H
#define TESTS_FAKE_BENCH_H

#include "bench/result.h"

struct fake_bench {
	struct bench_plan plan;
	struct bench_point point;
	struct bench_result *result;
};

/* Static storage apart from the result, which fake_bench_free() takes back. */
struct fake_bench *fake_bench(void);
void fake_bench_free(struct fake_bench *fake);

/* COUNT commands of LATENCY_NS each on a side and in the total, with service and bytes. */
void fake_bench_commands(struct bench_result *result, enum bench_side side, uint64_t count,
			 uint64_t latency_ns);
/* Its series ends after so many seconds. */
void fake_bench_shorten(struct bench_result *result, unsigned seconds);
/* Forgets all commands. */
void fake_bench_clear(struct bench_result *result);
/* What the rest would be by the laws of counting: paths, in flight. */
void fake_bench_settle(struct bench_result *result);

#endif
