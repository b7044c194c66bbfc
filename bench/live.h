/* SPDX-License-Identifier: MIT */
/* How a run goes on: one line that is rewritten on a terminal, a line each 10 s elsewhere. */
#ifndef BENCH_LIVE_H
#define BENCH_LIVE_H

#include <stdio.h>

#include "bench/engine.h"

#define LIVE_PLAIN_TICKS 10 /* of about a second */

/* Zeroed but for the first three. */
struct live {
	FILE *out;
	bool tty;
	unsigned width; /* of the terminal; 0: not known */
	const char *phase;
	unsigned ticks; /* in this phase */
	bool shown;     /* the cursor is behind a line of ours */
};

/* For engine_hooks.progress: ARG is the struct live. */
void live_progress(void *arg, const struct engine_progress *progress);
/* Before anything else is written there. */
void live_end(struct live *live);

#endif
