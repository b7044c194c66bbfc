/* SPDX-License-Identifier: MIT */
/*
 * --cross-check: yoked's own counters beside the initiator's.
 *
 * Reads what sessions, LUNs and backings have counted before the measured time and after the
 * last answer, over yoked's control socket. Sessions that ended between are in the sum.
 */
#ifndef BENCH_CROSS_CHECK_H
#define BENCH_CROSS_CHECK_H

#include "bench/engine.h"

#define CROSS_CHECK_DEVIATION_MAX 0.01

struct cross_check;

/* Connects to the control socket PATH: 0, or -errno and FAULT. */
int cross_check_new(const char *path, const struct bench_setup *setup, struct cross_check **check,
		    struct bench_fault *fault);
void cross_check_free(struct cross_check *check);

/* Nothing is under way; the measured time begins. 0, or -errno and FAULT. */
int cross_check_before(struct cross_check *check, struct bench_fault *fault);
/* All commands are answered. Fails like cross_check_before(). */
int cross_check_after(struct cross_check *check, struct bench_fault *fault);

/*
 * Fills RESULT's cross check from both readings and the commands that RESULT counted. Without
 * both readings it says why not.
 */
void cross_check_fill(const struct cross_check *check, struct bench_result *result);

/* Whether they agree to 1 %; one that was not done does. */
bool cross_check_agrees(const struct bench_cross_check *check);

#endif
