/* SPDX-License-Identifier: MIT */
/* A plan from the first login to the last file. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "bench/options.h"

enum bench_exit {
	BENCH_DONE = 0,
	BENCH_FAILED = 1,  /* an expectation, --verify, --cross-check */
	BENCH_REFUSED = 2, /* nothing was measured */
	BENCH_LOST = 3,    /* the target in the middle, or a file */
};

/* Where people read; zeroed but for what is known. */
struct run_streams {
	FILE *out, *err;
	bool out_tty, err_tty;
	unsigned out_width, err_width;
};

/* Runs OPTIONS, which options_plan() took. */
enum bench_exit run_plan(const struct options *options, const struct run_streams *streams);

/*
 * A line to err, `yoke-bench: text`. Control characters become `?`: some of it may be a target's
 * or a file's.
 */
void run_say(FILE *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
