/* SPDX-License-Identifier: MIT */
/*
 * Fixed-size objects out of one allocation made at start. Single-threaded.
 *
 * Contents are whatever the last owner left, all zeroes the first time.
 */
#ifndef CORE_POOL_H
#define CORE_POOL_H

#include <stdbool.h>

#include "core/base.h"

struct pool {
	uint8_t *memory;
	void **stack; /* the free ones; the last given back is the first taken */
	size_t size_bytes;
	unsigned count;
	unsigned available;
	unsigned lowest; /* the fewest that were ever available */
};

/* COUNT objects of at least SIZE_BYTES, each aligned to 64. 0, -EINVAL or -ENOMEM. */
int pool_init(struct pool *pool, size_t size_bytes, unsigned count);
/* Asserts that everything was given back. */
void pool_destroy(struct pool *pool);

/* NULL when all are taken. */
void *pool_get(struct pool *pool);
void pool_put(struct pool *pool, void *object);

static inline unsigned pool_used(const struct pool *pool)
{
	return pool->count - pool->available;
}

#endif
