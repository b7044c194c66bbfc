/* SPDX-License-Identifier: MIT */
/*
 * Object pools: one block of memory and a stack of what is free in it.
 *
 * Invariants:
 * 1. No allocation after pool_init(); objects never move.
 * 2. available never exceeds count, and only the pool's own objects come back.
 * 3. Objects are whole cache lines, so two of them never share one.
 *
 * Not here: data buffers (core/buf.c).
 */
#include "core/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POOL_ALIGN 64

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(pool, p) __asan_poison_memory_region(p, (pool)->size_bytes)
#define UNPOISON(pool, p) __asan_unpoison_memory_region(p, (pool)->size_bytes)
#else
#define POISON(pool, p) ((void)(p))
#define UNPOISON(pool, p) ((void)(p))
#endif

int pool_init(struct pool *pool, size_t size_bytes, unsigned count)
{
	memset(pool, 0, sizeof(*pool));
	if (size_bytes == 0 || count == 0 || size_bytes > (SIZE_MAX - POOL_ALIGN) / count)
		return -EINVAL;
	pool->size_bytes = align_up(size_bytes, POOL_ALIGN);
	if (__builtin_mul_overflow(pool->size_bytes, (size_t)count, &size_bytes))
		return -EINVAL;
	pool->memory = aligned_alloc(POOL_ALIGN, size_bytes);
	pool->stack = calloc(count, sizeof(*pool->stack));
	if (!pool->memory || !pool->stack) {
		free(pool->memory);
		free(pool->stack);
		memset(pool, 0, sizeof(*pool));
		return -ENOMEM;
	}
	memset(pool->memory, 0, size_bytes);
	pool->count = count;
	for (unsigned i = count; i-- > 0;) {
		pool->stack[pool->available++] = pool->memory + i * pool->size_bytes;
		POISON(pool, pool->memory + i * pool->size_bytes);
	}
	pool->lowest = count;
	return 0;
}

void pool_destroy(struct pool *pool)
{
	assert(pool->available == pool->count);
	for (unsigned i = 0; i < pool->count; i++)
		UNPOISON(pool, pool->stack[i]);
	free(pool->memory);
	free(pool->stack);
	memset(pool, 0, sizeof(*pool));
}

void *pool_get(struct pool *pool)
{
	void *object;

	if (pool->available == 0)
		return NULL;
	object = pool->stack[--pool->available];
	if (pool->available < pool->lowest)
		pool->lowest = pool->available;
	UNPOISON(pool, object);
	return object;
}

void pool_put(struct pool *pool, void *object)
{
	size_t offset = (size_t)((uint8_t *)object - pool->memory);

	assert(pool->available < pool->count);
	assert(offset % pool->size_bytes == 0 && offset / pool->size_bytes < pool->count);
	pool->stack[pool->available++] = object;
	POISON(pool, object);
}
