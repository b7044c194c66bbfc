/* SPDX-License-Identifier: MIT */
/*
 * An io that becomes several.
 *
 * Invariants:
 *  1. `error` is the error of the first child that came back with one.
 *  2. Who waits for a fan is served in the order of coming.
 *
 * Not here: what becomes of errors (the levels).
 */
#include "raid/fan.h"

#include <stdlib.h>

#include "core/canary.h"

struct fan_pool {
	STAILQ_HEAD(, fan) unused;
	struct io_list waiting;
	void (*begin)(void *arg, struct fan *fan);
	void *arg;
	unsigned fans, free_fans;
	unsigned children, iov_max;
	struct fan *all;
	struct fan_child *child_memory;
	struct iovec *iov_memory;
	char *own_memory;
};

struct fan_pool *fan_pool_new(unsigned fans, unsigned children, unsigned iov_max, size_t own_size,
			      void (*begin)(void *arg, struct fan *fan), void *arg)
{
	struct fan_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->all = calloc(fans, sizeof(*pool->all));
	pool->child_memory = calloc((size_t)fans * children, sizeof(*pool->child_memory));
	pool->iov_memory = calloc((size_t)fans * iov_max, sizeof(*pool->iov_memory));
	pool->own_memory = calloc(fans, max_u64(own_size, 1));
	STAILQ_INIT(&pool->unused);
	STAILQ_INIT(&pool->waiting);
	pool->begin = begin;
	pool->arg = arg;
	pool->fans = pool->free_fans = fans;
	pool->children = children;
	pool->iov_max = iov_max;
	if (!pool->all || !pool->child_memory || !pool->iov_memory || !pool->own_memory) {
		fan_pool_free(pool);
		return NULL;
	}
	for (unsigned i = 0; i < fans; i++) {
		struct fan *fan = &pool->all[i];

		fan->pool = pool;
		fan->children = &pool->child_memory[(size_t)i * children];
		fan->own = pool->own_memory + i * own_size;
		fan->iov = &pool->iov_memory[(size_t)i * iov_max];
		STAILQ_INSERT_TAIL(&pool->unused, fan, link);
	}
	return pool;
}

void fan_pool_free(struct fan_pool *pool)
{
	assert(pool->free_fans == pool->fans && STAILQ_EMPTY(&pool->waiting));
	free(pool->all);
	free(pool->child_memory);
	free(pool->iov_memory);
	free(pool->own_memory);
	free(pool);
}

static void start(struct fan_pool *pool, struct io *parent)
{
	struct fan *fan = STAILQ_FIRST(&pool->unused);

	STAILQ_REMOVE_HEAD(&pool->unused, link);
	pool->free_fans--;
	fan->parent = parent;
	fan->count = fan->pending = fan->iov_used = 0;
	fan->error = 0;
	pool->begin(pool->arg, fan);
}

void fan_begin(struct fan_pool *pool, struct io *parent)
{
	if (pool->free_fans && STAILQ_EMPTY(&pool->waiting))
		start(pool, parent);
	else
		STAILQ_INSERT_TAIL(&pool->waiting, parent, link);
}

void fan_free(struct fan *fan)
{
	struct fan_pool *pool = fan->pool;
	struct io *parent;

	assert(!fan->pending);
	STAILQ_INSERT_HEAD(&pool->unused, fan, link);
	pool->free_fans++;
	parent = STAILQ_FIRST(&pool->waiting);
	if (!parent)
		return;
	STAILQ_REMOVE_HEAD(&pool->waiting, link);
	start(pool, parent);
}

struct fan_child *fan_child(struct fan *fan, enum io_op op, uint64_t offset, uint64_t length)
{
	struct fan_child *child = &fan->children[fan->count];

	assert(fan->count < fan->pool->children);
	fan->count++;
	child->fan = fan;
	io_init(&child->io, op, offset, length, fan->iov + fan->iov_used, 0);
	child->io.flags = fan->parent->flags;
	if (canary(CANARY_FUA))
		child->io.flags &= ~(unsigned)IO_FUA;
	child->io.purpose = fan->parent->purpose;
	return child;
}

void fan_slice(struct fan *fan, struct fan_child *child, uint64_t from, uint64_t length)
{
	const struct iovec *iov = fan->parent->iov;

	assert(child == &fan->children[fan->count - 1]);
	for (; from >= iov->iov_len; iov++)
		from -= iov->iov_len;
	for (; length > 0; iov++) {
		uint64_t piece = min_u64(length, iov->iov_len - from);

		assert(fan->iov_used < fan->pool->iov_max);
		fan->iov[fan->iov_used++] = (struct iovec){
			.iov_base = (char *)iov->iov_base + from,
			.iov_len = piece,
		};
		child->io.iov_count++;
		length -= piece;
		from = 0;
	}
}

static void child_done(struct io *io, void *arg)
{
	struct fan_child *child = arg;
	struct fan *fan = child->fan;

	if ((io->error && !fan->error) || canary(CANARY_FIRST_ERROR))
		fan->error = io->error;
	if (--fan->pending == 0)
		fan->done(fan);
}

void fan_send(struct fan_child *child, struct blk *blk)
{
	child->fan->pending++;
	child->blk = blk;
	blk_submit(blk, &child->io, child_done, child);
}
