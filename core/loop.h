/* SPDX-License-Identifier: MIT */
/*
 * The production event loop: libev, io_uring and worker threads under one env.
 *
 * A turn: epoll wakes, watchers run, then until nothing is left: due timers,
 * deferred callbacks, turn-end hooks; then one io_uring submit, then sleep.
 * One loop a shard; everything here is for its own thread, loop_wake() aside.
 */
#ifndef CORE_LOOP_H
#define CORE_LOOP_H

#include <ev.h>

#include "core/env.h"

struct loop;

struct loop_stats {
	uint64_t turns;
	/*
	 * Longest turn, less the time it waited for a processor. That wait counts from
	 * up to 20 ms before the turn, so it can be a little overestimated.
	 */
	uint64_t turn_max_ns;
	uint64_t slow_turn_ns;    /* length of the newest one above TURN_WARN_NS; 0: none */
	uint64_t slow_turn_at_ns; /* when it ended, on the clock of env_now_ns() */
	uint64_t slow_turns;      /* turns above TURN_WARN_NS */
	uint64_t syscalls;        /* made by the loop and by those who report theirs */
	uint64_t disk_ops;
};

/* NULL with errno set. Where io_uring is not to be had, threads do its work. */
struct loop *loop_new(void);
/* Asserts that nothing is in flight: no disk operation, work, deferred callback, hook or source. */
void loop_free(struct loop *loop);

struct env *loop_env(struct loop *loop);
struct ev_loop *loop_ev(struct loop *loop);

/*
 * Runs until loop_stop(), which ends it after this turn, or after the first one that leaves no
 * disk operation and no work to be done. Always on the same thread, which need not be the one
 * that called loop_new(). Signals are the caller's (ev_signal).
 */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* From any thread: one more turn, soon. No system call unless the loop sleeps. */
void loop_wake(struct loop *loop);

/*
 * What other threads fill and the loop looks into, each turn and last before it sleeps.
 * The filler publishes (sequentially consistent) and then calls loop_wake().
 */
struct loop_source {
	STAILQ_ENTRY(loop_source) link;
	void (*poll)(struct loop_source *source);  /* take what is there */
	bool (*ready)(struct loop_source *source); /* whether something is there; cheap */
};
void loop_source_add(struct loop *loop, struct loop_source *source);
void loop_source_remove(struct loop *loop, struct loop_source *source);

/* "io_uring" or "threads". */
const char *loop_disk_engine(const struct loop *loop);

void loop_stats(const struct loop *loop, struct loop_stats *stats);
/* For those who make system calls on the data path: keeps the count honest. */
void loop_count_syscalls(struct loop *loop, unsigned n);

/*
 * Runs once, at the end of this turn, after all deferred callbacks: where
 * answers gathered over the turn are sent. Asking twice in a turn is asking once.
 */
struct loop_hook {
	STAILQ_ENTRY(loop_hook) link;
	void (*fn)(struct loop_hook *hook);
	bool queued;
};
void loop_at_turn_end(struct loop *loop, struct loop_hook *hook);
void loop_hook_cancel(struct loop *loop, struct loop_hook *hook);

#endif
