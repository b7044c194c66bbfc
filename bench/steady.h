/* SPDX-License-Identifier: MIT */
/*
 * Whether a measurement had become steady: five equal rounds at its end, compared.
 *
 * Pure. Of both IOPS and mean latency the largest round may differ from the smallest by 20 % of
 * their mean, and the line through the five may rise or fall by 10 % of it.
 */
#ifndef BENCH_STEADY_H
#define BENCH_STEADY_H

#include "bench/result.h"

#define STEADY_ROUNDS 5
#define STEADY_ROUND_MIN_S 2.0
#define STEADY_RANGE_MAX 0.20
#define STEADY_DRIFT_MAX 0.10

struct steady_figure {
	double range; /* largest less smallest round, over the mean */
	double drift; /* slope of the line through the rounds, times 4, over the mean; signed */
};

struct steady {
	bool known; /* there were five rounds */
	bool met;
	double round_s;
	struct steady_figure iops, latency;
	double range, drift; /* the worse of the two; drift without its sign */
};

/* The length of POINT's rounds: a fifth of its time, 2 s at least. */
double steady_round_s(const struct bench_point *point);

/* Judges the last five rounds of ROUND_S of a series; a hundredth of a round may be missing. */
struct steady steady_judge(const struct bench_interval *series, unsigned count, double round_s);

/* A result as it is: rounds are shorter if it ended before its time. */
struct steady steady_of(const struct bench_result *result);

#endif
