/* SPDX-License-Identifier: MIT */
/*
 * A block device: leaf, filter or array. The contract between layers.
 *
 * A layer embeds struct blk, fills in `ops` and the limits and calls
 * blk_init(). blk_submit() checks range, alignment, flags and features at every
 * hop, counts and times it; io_done() checks the way back. A 1:1 layer moves
 * io->offset and hands the same io on with blk_submit(); op, flags and range
 * are again what it handed on when its callback runs. One that has nothing to do
 * then uses blk_pass(). A fan-out submits ios of its own.
 *
 * Refused here, without reaching the device: -EINVAL (contract broken; logged),
 * -ENXIO (device failed), -EAGAIN (waits), -EROFS (modifies a read-only device), -EOPNOTSUPP.
 *
 * References: blk_ref()/blk_unref(); the last one ends in ops->close, with no
 * io in flight (asserted). Single-threaded, on the env's shard.
 */
#ifndef BACKSTORE_BLK_H
#define BACKSTORE_BLK_H

#include "backstore/io.h"
#include "core/hist.h"
#include "core/log.h"

#define BLK_NAME_MAX 64

/* Features. */
#define BLK_FUA 1u          /* IO_FUA; if not, blk.c adds a FLUSH on VOLATILE ones */
#define BLK_UNMAP 2u        /* IO_UNMAP */
#define BLK_UNMAP_ZEROES 4u /* unmapped ranges read as zeroes */
#define BLK_WRITE_ZEROES 8u
#define BLK_READ_ONLY 16u
#define BLK_VOLATILE 32u /* completed writes need a FLUSH to be durable */
#define BLK_ATOMIC 64u   /* a WRITE is there whole or not at all, whatever happens */

enum blk_state {
	BLK_ONLINE,
	BLK_READ_ONLY_NOW, /* the medium turned read-only under us: writes -EROFS */
	BLK_FAILED,        /* -ENXIO */
	BLK_WAITING,       /* not there yet, may come: -EAGAIN */
};

/* Of completed ios. FLUSHes that blk.c adds for FUA are counted as FLUSHes. */
struct blk_counts {
	uint64_t ops[IO_OP_COUNT];   /* failed ones too */
	uint64_t bytes[IO_OP_COUNT]; /* of those that succeeded */
	uint64_t errors[IO_OP_COUNT];
	uint64_t by_purpose[IO_PURPOSE_COUNT]; /* ops, failed ones too */
};

/* ERROR 0: online. TEXT: why not, for people. */
typedef void blk_reopen_fn(void *arg, int error, const char *text);

struct blk_ops {
	const char *driver; /* "file", "ram", "raid5" */
	void (*submit)(struct blk *blk, struct io *io);
	/* The last reference has gone: release everything, then free, perhaps later. */
	void (*close)(struct blk *blk);
	/* See blk_reopen(); NULL: the device has no second try. */
	void (*reopen)(struct blk *blk, blk_reopen_fn *done, void *arg);
};

/* Who wants to know of a new state or size; embedded in its owner. */
struct blk_watch {
	LIST_ENTRY(blk_watch) link;
	void (*changed)(struct blk_watch *watch);
};

struct blk {
	const struct blk_ops *ops;
	struct env *env;
	char name[BLK_NAME_MAX];

	/* Limits; bytes; fixed after blk_init() but for size_bytes (blk_resize()). */
	uint64_t size_bytes;
	uint32_t block_size;     /* smallest addressable unit, 512 or 4096 */
	uint32_t physical_block; /* >= block_size */
	uint32_t optimal_io;     /* 0: no wish */
	uint32_t mem_align;      /* of iov bases, a power of two; 0: any */
	uint64_t max_io;         /* longest READ or WRITE; 0: no limit */
	unsigned features;

	enum blk_state state;
	char state_cause[128]; /* why it is not online, for people */
	LIST_HEAD(, blk_watch) watches;

	uint64_t full_ns; /* env_now_ns() of the newest -ENOSPC; 0: none */

	struct blk_counts counts;
	struct hist *latency; /* of completed ios, its owner's; NULL: not timed */
	struct log_limit broken_limit;
	unsigned in_flight;
	unsigned refs;
	unsigned parting; /* of refs: go as soon as nothing is in flight */
};

/* Name, env, limits and ops are set; one reference is the caller's. */
void blk_init(struct blk *blk);

/* Before blk_init(): an array over PART keeps to its physical block, alignment and io size. */
void blk_keep_to(struct blk *blk, const struct blk *part);

/* Not called as such: blk_submit(), blk_pass(). */
void blk_send(struct blk *blk, struct io *io, io_fn *fn, void *arg, bool pass);

static inline void blk_submit(struct blk *blk, struct io *io, io_fn *fn, void *arg)
{
	blk_send(blk, io, fn, arg, false);
}

/*
 * By a layer that has IO: what becomes of it there becomes of it here. If that is an error, RESCUE
 * has IO again instead; NULL: nobody has.
 */
static inline void blk_pass(struct blk *blk, struct io *io, io_fn *rescue, void *arg)
{
	blk_send(blk, io, rescue, arg, true);
}

struct blk *blk_ref(struct blk *blk);
void blk_unref(struct blk *blk);
/* The same, when no io is in flight: by who has let go of ios that he cannot wait for. */
void blk_unref_idle(struct blk *blk);

/*
 * The only ways to change them; they tell who watches, once a change. The text says
 * why, for people; "" when online again. Whoever finds the cause logs it.
 */
void blk_set_state(struct blk *blk, enum blk_state state, const char *fmt, ...) PRINTF_LIKE(3, 4);
void blk_resize(struct blk *blk, uint64_t size_bytes);

/* Until blk_unwatch(), which may come from inside its own callback. */
void blk_watch(struct blk *blk, struct blk_watch *watch);
void blk_unwatch(struct blk_watch *watch);

/*
 * Somebody put right what made BLK fail, or thinks so: try it anew. DONE runs once, perhaps
 * before this returns. -EBUSY: I/O of before is still under way; -EOPNOTSUPP.
 */
void blk_reopen(struct blk *blk, blk_reopen_fn *done, void *arg);

const char *blk_state_name(enum blk_state state);

#endif
