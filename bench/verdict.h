/* SPDX-License-Identifier: MIT */
/*
 * Whether a result means what it seems to mean: every known way to fool oneself, looked for.
 *
 * Pure: reads a result, gives sentences. A reason makes the result NOT MEANINGFUL; a note is
 * what a reader has to know of a good one.
 */
#ifndef BENCH_VERDICT_H
#define BENCH_VERDICT_H

#include "bench/expect.h"
#include "bench/result.h"
#include "bench/steady.h"

struct verdict_line {
	const char *code; /* "client-bound" */
	char text[240];   /* with the numbers */
};

#define VERDICT_REASONS 16
#define VERDICT_NOTES 4

struct verdict {
	bool meaningful; /* no reasons */
	struct verdict_line reasons[VERDICT_REASONS];
	unsigned reason_count;
	struct verdict_line notes[VERDICT_NOTES];
	unsigned note_count;
};

/* What a verdict is made of. */
struct verdict_facts {
	const struct bench_result *result;
	const struct steady *steady;
	const struct expect *expect; /* NULL: none; its percentiles need samples */
	double spread;               /* of the IOPS of the point's repeats; negative: no repeats */
};

void verdict_judge(const struct verdict_facts *facts, struct verdict *verdict);

/* Largest less smallest over the mean of COUNT figures; -1 if there are fewer than two. */
double verdict_spread(const double *values, unsigned count);

/* Whether a percentile of HIST has 10 samples beyond it; without, it is chance. */
bool verdict_percentile_known(const struct hist *hist, double percent);

#endif
