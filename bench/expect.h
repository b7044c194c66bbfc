/* SPDX-License-Identifier: MIT */
/*
 * --expect: what a result has to reach, as text like "iops>=100k, read.p99.9<2ms".
 *
 * A condition is [read.|write.|total.]FIGURE OP NUMBER[UNIT]; FIGURE is iops, MiB/s, mean, max or
 * p and a percentile; OP one of >= <= > <. For iops k and M are thousands and millions; a latency
 * needs its unit: ns, us, ms, s. Without a side it is the total.
 */
#ifndef BENCH_EXPECT_H
#define BENCH_EXPECT_H

#include "bench/engine.h"

#define EXPECT_MAX 16

enum expect_figure {
	EXPECT_IOPS,
	EXPECT_MIB_S,
	EXPECT_MEAN,
	EXPECT_MAX_LATENCY,
	EXPECT_PERCENTILE,
};
enum expect_op { EXPECT_GE, EXPECT_LE, EXPECT_GT, EXPECT_LT };

struct expect_condition {
	char text[64]; /* as written */
	enum bench_side side;
	enum expect_figure figure;
	double percent; /* PERCENTILE */
	enum expect_op op;
	double limit; /* iops, MiB/s, nanoseconds */
};

struct expect {
	struct expect_condition conditions[EXPECT_MAX];
	unsigned count;
};

/* 0, or -EINVAL and FAULT, which says what is allowed. */
int expect_parse(const char *text, struct expect *expect, struct bench_fault *fault);

enum expect_state {
	EXPECT_MET,
	EXPECT_UNMET,
	EXPECT_UNKNOWN, /* too few samples for that percentile, or nothing on that side: not met */
};

struct expect_answer {
	enum expect_state state;
	double value; /* in the unit of `limit`; not of UNKNOWN */
};

struct expect_answer expect_judge(const struct expect_condition *condition,
				  const struct bench_result *result);
/* Whether all are met; NULL is. */
bool expect_met(const struct expect *expect, const struct bench_result *result);

/* "3.9 ms", "96,488 IOPS", "376.9 MiB/s", or why it is not known; returns BUF. */
const char *expect_value_text(const struct expect_condition *condition,
			      const struct expect_answer *answer, char *buf, size_t size);

#endif
