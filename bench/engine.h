/* SPDX-License-Identifier: MIT */
/*
 * Runs one point of a plan: sessions, workers, threads, clocks; gives a result.
 *
 * Threads have a libev loop each and share nothing but counters that the caller's thread takes
 * over once a tick; sessions are dealt over threads portal by portal, so that each thread has
 * every portal: there are never more threads than sessions of a portal. Sessions stay logged in
 * from point to point as long as their number does not change.
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include "bench/result.h"

struct engine;
struct verify; /* bench/verify.h: stamps what is written, judges what is read */

/* An error for people: object, cause, remedy. */
struct bench_fault {
	char text[320];
};

/* What the live line shows; of the last tick. */
struct engine_progress {
	double done_s, of_s; /* negative done_s: warming up */
	double iops[BENCH_SIDES];
	double bytes_s;
	uint64_t p99_ns;
	unsigned in_flight;
	double cpu;
	unsigned sessions_up, sessions;
	uint64_t errors;
	const char *phase; /* "connecting", "filling", "warming up", "measuring" */
	double share;      /* of filling, 0 to 1 */
};

struct engine_hooks {
	void *arg;
	void (*progress)(void *arg, const struct engine_progress *progress); /* once a second */
	/*
	 * The measured time begins and is over. At both moments no command is under way: what the
	 * target counts between them is what is counted here, and nothing else of this engine.
	 * More than one pair if the point wants a steady measurement.
	 */
	void (*began)(void *arg);
	void (*ended)(void *arg);
};

/*
 * Connects, reads capacities, checks that the plan fits them (LUN too small, block no multiple
 * of the LUN's). 0, or -errno with FAULT saying what to do.
 */
int engine_new(const struct bench_setup *setup, struct engine **engine, struct bench_fault *fault);
void engine_free(struct engine *engine);

/* Size, block size, write cache of the setup's LUNs, from the connected engine. */
const struct bench_lun *engine_luns(const struct engine *engine);
/* Reads LENGTH bytes of a LUN's blocks; for looking at what it carries before it is written. */
int engine_read(struct engine *engine, unsigned lun, uint64_t offset, void *buf, size_t length,
		struct bench_fault *fault);

/* Writes POINT's range of every LUN with POINT's kind of data, sequentially, unless done before. */
int engine_fill(struct engine *engine, const struct bench_point *point,
		const struct engine_hooks *hooks, struct bench_fault *fault);

/*
 * VERIFY may be NULL; with it there is one thread, and a violation ends the run early. RESULT is
 * the caller's (bench_result_free), also of a run that was interrupted; NULL if this fails.
 */
int engine_run(struct engine *engine, const struct bench_point *point, struct verify *verify,
	       const struct engine_hooks *hooks, struct bench_result **result,
	       struct bench_fault *fault);

/* After engine_run(): 0 if a session is up, or comes back within seconds; or -ENOTCONN and FAULT. */
int engine_lost(struct engine *engine, struct bench_fault *fault);

/* From a signal handler: the run ends early, as a whole result. */
void engine_interrupt(struct engine *engine);

#endif
