/* SPDX-License-Identifier: MIT */
/*
 * The few sums that everyone who shows a result needs.
 *
 * Invariants:
 *  1. A result that measured no time has a rate of zero, not of infinity.
 *
 * Not here: whether a figure means anything (verdict.c).
 */
#include "bench/result.h"

#include <stdlib.h>

void bench_result_free(struct bench_result *result)
{
	if (!result)
		return;
	for (unsigned i = 0; i < result->series_count; i++)
		free(result->series[i].portal_ops);
	free(result->series);
	free(result->sessions);
	free(result->threads);
	free(result);
}

double bench_iops(const struct bench_result *result, enum bench_side side)
{
	return result->measured_s > 0 ? (double)result->sides[side].ops / result->measured_s : 0;
}

double bench_bytes_s(const struct bench_result *result, enum bench_side side)
{
	return result->measured_s > 0 ? (double)result->sides[side].bytes / result->measured_s : 0;
}
