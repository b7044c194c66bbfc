/* SPDX-License-Identifier: MIT */
/*
 * Data buffers: page-aligned units of 64 KiB out of one region mapped at start.
 *
 * A scatter list is taken whole or not at all, so that two takers can never
 * hold half of what each needs. Who takes it gives it back. Single-threaded.
 */
#ifndef CORE_BUF_H
#define CORE_BUF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/base.h"

#define BUF_UNIT (64 * KIB)
#define BUF_INLINE 17 /* elements without a table of their own: 1 MiB and a bit */
#define BUF_LIST_MAX (64 * MIB)

struct buf_pool;

/* Bytes in memory, in order. Zeroed: empty. Points into itself: never copied as a struct. */
struct buf_list {
	struct iovec *iov; /* inline_iov, or a unit of the pool that holds the table */
	unsigned count;
	uint64_t length; /* what was asked for; the elements add up to exactly this */
	struct iovec inline_iov[BUF_INLINE];
};

/* NULL with errno set. SIZE_BYTES is rounded up to whole units. */
struct buf_pool *buf_pool_new(uint64_t size_bytes);
/*
 * While others are served: its memory is not touched yet, which would take longer than a turn of
 * the loop. buf_pool_touch() touches some of it, once a turn, until it returns false.
 */
struct buf_pool *buf_pool_new_untouched(uint64_t size_bytes);
bool buf_pool_touch(struct buf_pool *pool);
/* Asserts that everything was given back. */
void buf_pool_free(struct buf_pool *pool);

/*
 * Take LENGTH bytes (0: an empty list, always granted; at most BUF_LIST_MAX).
 * Every element but the last is a whole unit. False: not enough free, nothing
 * taken. Contents are whatever was there: the taker writes before it shows.
 */
bool buf_take(struct buf_pool *pool, uint64_t length, struct buf_list *list);
void buf_give(struct buf_pool *pool, struct buf_list *list);

/* Units that LENGTH bytes would take, the table of a long list included. */
unsigned buf_units(uint64_t length);
unsigned buf_pool_free_units(const struct buf_pool *pool);
unsigned buf_pool_units(const struct buf_pool *pool);

/*
 * The part [OFFSET, OFFSET + LENGTH) of LIST as iov elements: at most MAX of
 * them into OUT. Returns how many; *COVERED is the bytes they hold.
 */
unsigned buf_slice(const struct buf_list *list, uint64_t offset, uint64_t length, struct iovec *out,
		   unsigned max, uint64_t *covered);

/* Copies, for control data; the data path moves iov elements instead. */
void buf_write(const struct buf_list *list, uint64_t offset, const void *src, uint64_t length);
void buf_read(const struct buf_list *list, uint64_t offset, void *dst, uint64_t length);
void buf_zero(const struct buf_list *list, uint64_t offset, uint64_t length);

#endif
