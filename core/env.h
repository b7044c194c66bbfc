/* SPDX-License-Identifier: MIT */
/*
 * The seam: everything that storage logic may ask of the world.
 *
 * Production binds it to libev, io_uring and files (core/loop.h), tests to
 * tests/fake/fake_env.h, the simulator to a virtual clock. Code above the seam
 * is single-threaded event code: callbacks run one after the other, never from
 * inside the call that asked for them.
 *
 * Times are nanoseconds. Errors are 0 or a negative errno.
 */
#ifndef CORE_ENV_H
#define CORE_ENV_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/base.h"

struct env;

/*
 * A callback that runs later in this turn, in the order of the calls. Embedded
 * in what it belongs to; zeroed with fn set is idle. Queued once at a time:
 * asking again while it waits is a mistake, from inside fn it is not.
 */
struct env_defer {
	STAILQ_ENTRY(env_defer) link;
	void (*fn)(struct env_defer *defer);
	bool queued;
};
STAILQ_HEAD(env_defer_list, env_defer);

/* A one-shot timer, embedded in its owner. Zeroed with fn set is disarmed. */
struct env_timer {
	RB_ENTRY(env_timer) node;
	void (*fn)(struct env_timer *timer);
	uint64_t due_ns; /* on env_now_ns()'s clock */
	uint64_t seq;    /* equal due times fire in the order of arming */
	bool armed;
};
RB_HEAD(env_timer_tree, env_timer);

enum env_disk_kind {
	ENV_DISK_READ,
	ENV_DISK_WRITE,
	ENV_DISK_FLUSH, /* fdatasync: everything completed before it is durable after it */
	ENV_DISK_PUNCH, /* deallocate; reads as zeroes afterwards */
	ENV_DISK_ZERO,  /* write zeroes, allocated */
};

/*
 * One request to a file or device, embedded in its owner and untouched by it
 * from env_disk_submit() to done(). Short transfers are resubmitted below the
 * seam: result is 0 when the whole length was moved, else a negative errno
 * (-ENODATA: end of file before the end of a read; -EOPNOTSUPP: this file or
 * device can not punch or zero).
 */
struct env_disk_op {
	STAILQ_ENTRY(env_disk_op) link; /* the binding's */
	enum env_disk_kind kind;
	bool fua;         /* WRITE: durable at completion (RWF_DSYNC) */
	bool nowait_lane; /* ahead of what waits for room in the ring */
	int fd;
	uint64_t offset;
	uint64_t length;
	struct iovec *iov; /* READ, WRITE: sums up to length; at done() as it was */
	unsigned iov_count;
	int result;
	void (*done)(struct env_disk_op *op);
	uint64_t moved;     /* the binding's */
	struct iovec whole; /* the binding's: *iov before a short transfer cut it */
	bool cut;
	unsigned tries; /* the binding's */
};

/* Work that may block, run on another thread; done() runs on the loop. */
struct env_work {
	STAILQ_ENTRY(env_work) link; /* the binding's */
	void (*run)(struct env_work *work);
	void (*done)(struct env_work *work);
};

struct env_ops {
	uint64_t (*now_ns)(struct env *env);
	uint64_t (*boottime_ns)(struct env *env);
	void (*random)(struct env *env, void *buf, size_t len_bytes);
	void (*disk_submit)(struct env *env, struct env_disk_op *op);
	void (*work_submit)(struct env *env, struct env_work *work);
};

struct env {
	const struct env_ops *ops;
	struct env_defer_list deferred;
	struct env_timer_tree timers;
	uint64_t timer_seq;
};

void env_init(struct env *env, const struct env_ops *ops);

/* CLOCK_MONOTONIC, read once a turn: constant within a callback. */
static inline uint64_t env_now_ns(struct env *env)
{
	return env->ops->now_ns(env);
}

/* CLOCK_BOOTTIME, read at the call: for leases, which run on while suspended. */
static inline uint64_t env_boottime_ns(struct env *env)
{
	return env->ops->boottime_ns(env);
}

/* Cryptographically secure in production. Cannot fail. */
static inline void env_random(struct env *env, void *buf, size_t len_bytes)
{
	env->ops->random(env, buf, len_bytes);
}

/* Exactly one op->done, never from inside this call. */
static inline void env_disk_submit(struct env *env, struct env_disk_op *op)
{
	env->ops->disk_submit(env, op);
}

static inline void env_work_submit(struct env *env, struct env_work *work)
{
	env->ops->work_submit(env, work);
}

static inline void env_defer(struct env *env, struct env_defer *defer)
{
	assert(!defer->queued);
	defer->queued = true;
	STAILQ_INSERT_TAIL(&env->deferred, defer, link);
}

/* Take it out of the queue again; nothing happens if it is not there. */
void env_defer_cancel(struct env *env, struct env_defer *defer);

/* Arm, or arm anew, to fire DELAY_NS from now. */
void env_timer_set(struct env *env, struct env_timer *timer, uint64_t delay_ns);
void env_timer_cancel(struct env *env, struct env_timer *timer);

/*
 * For bindings: run what is due, what is deferred; the next due time or UINT64_MAX.
 * A timer armed by one of the callbacks waits for the next env_run_timers(), even
 * with no delay; a callback deferred by another runs in the same call.
 */
void env_run_timers(struct env *env);
void env_run_deferred(struct env *env);
uint64_t env_next_timer_ns(struct env *env);

#endif
