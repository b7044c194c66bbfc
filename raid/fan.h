/* SPDX-License-Identifier: MIT */
/*
 * A fan: an io that becomes several, and the pool that bounds how many do so at once.
 *
 * Whoever finds no fan free waits in the order of coming, so no layer runs out of children half
 * way down. The children's first error is the fan's; nothing overwrites it.
 */
#ifndef RAID_FAN_H
#define RAID_FAN_H

#include "backstore/blk.h"

struct fan_pool;

struct fan_child {
	struct io io;
	struct fan *fan;
	struct blk *blk;
	void *arg; /* its owner's: where it went */
};

struct fan {
	STAILQ_ENTRY(fan) link;
	struct fan_pool *pool;
	struct io *parent;
	void (*done)(struct fan *fan); /* all children are back */
	unsigned count;                /* children used */
	unsigned pending;
	int error; /* the first */
	void *own; /* its owner's, of the size that the pool was made with */
	unsigned iov_used;
	struct iovec *iov; /* for children's data, pool->iov_max elements */
	struct fan_child *children;
};

/* BEGIN gets a fan with its parent: from fan_begin(), or later when one is free. NULL: no memory. */
struct fan_pool *fan_pool_new(unsigned fans, unsigned children, unsigned iov_max, size_t own_size,
			      void (*begin)(void *arg, struct fan *fan), void *arg);
/* Asserts that all are back. */
void fan_pool_free(struct fan_pool *pool);

/* PARENT is the pool's until BEGIN. */
void fan_begin(struct fan_pool *pool, struct io *parent);

/*
 * The next child of FAN: its io is fresh, with OP and range, the parent's flags and purpose. Its
 * data, if OP has any, are LENGTH bytes of the parent's from byte FROM on: fan_slice() once or
 * several times, in order.
 */
struct fan_child *fan_child(struct fan *fan, enum io_op op, uint64_t offset, uint64_t length);
void fan_slice(struct fan *fan, struct fan_child *child, uint64_t from, uint64_t length);
/* Send CHILD to BLK. All children are made before the first is sent. */
void fan_send(struct fan_child *child, struct blk *blk);

/* Back to its pool. The parent is still the caller's to end. */
void fan_free(struct fan *fan);

#endif
