/* SPDX-License-Identifier: MIT */
/*
 * A result with everything that was found out about it: what table.c, json.c and csv.c show.
 */
#ifndef BENCH_OUTCOME_H
#define BENCH_OUTCOME_H

#include "bench/expect.h"
#include "bench/result.h"
#include "bench/steady.h"
#include "bench/verdict.h"
#include "bench/verify.h"

struct outcome {
	/* Set by its owner. */
	const struct bench_plan *plan;
	const struct bench_result *result;
	unsigned point;              /* from 1, of plan->point_count */
	unsigned repeat;             /* from 1, of plan->repeat */
	double spread;               /* verdict_spread() of the point's repeats; -1: no repeats */
	const struct expect *expect; /* NULL: none */
	bool verified;
	struct verify_counts verify;
	const char *violation; /* NULL: none */
	/* Found by outcome_judge(). */
	struct steady steady;
	struct verdict verdict;
	bool good; /* the run may end in 0: as expected, no violation, counts agree */
};

void outcome_judge(struct outcome *outcome);

#endif
