/* SPDX-License-Identifier: MIT */
/*
 * Data buffers out of one region, handed out as lists of 64 KiB units.
 *
 * Invariants:
 * 1. A unit is free or in exactly one list; `taken` says which, and giving twice is caught.
 * 2. free_units never falls below 0: a list is granted whole, its table included, or not at all.
 * 3. The last unit given back is the first taken again: its bytes are likely in a cache.
 *
 * Not here: who may take how much (the iSCSI command window, target/iscsi).
 */
#include "core/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(p) __asan_poison_memory_region(p, BUF_UNIT)
#define UNPOISON(p) __asan_unpoison_memory_region(p, BUF_UNIT)
#else
#define POISON(p) ((void)(p))
#define UNPOISON(p) ((void)(p))
#endif

struct buf_pool {
	uint8_t *region;
	unsigned units;
	unsigned free_units;
	size_t touched;  /* bytes of the region, from its start: what is taken first */
	uint32_t *stack; /* numbers of the free units */
	bool *taken;     /* by unit number */
};

static_assert(BUF_LIST_MAX / BUF_UNIT * sizeof(struct iovec) <= BUF_UNIT,
	      "the table of the longest list fits in one unit");

#define TOUCH (2 * MIB) /* in one turn: a huge page */

/* Touched at start: a first touch in a turn costs more than what it is touched for. */
static bool populate(uint8_t *region, size_t size)
{
	if (!madvise(region, size, MADV_POPULATE_WRITE))
		return true;
	if (errno != EINVAL)
		return false;
	/* Linux before 5.14. */
	for (size_t at = 0; at < size; at += 4096)
		*(volatile uint8_t *)(region + at) = 0;
	return true;
}

static struct buf_pool *pool_new(uint64_t size_bytes, size_t touch)
{
	uint64_t units = size_bytes / BUF_UNIT + (size_bytes % BUF_UNIT != 0);
	struct buf_pool *pool;

	if (units == 0 || units > UINT32_MAX) {
		errno = EINVAL;
		return NULL;
	}
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return NULL;
	pool->units = (unsigned)units;
	pool->stack = calloc(units, sizeof(*pool->stack));
	pool->taken = calloc(units, sizeof(*pool->taken));
	pool->region = mmap(NULL, units * BUF_UNIT, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pool->touched = min_u64(touch, units * BUF_UNIT);
	if (pool->region != MAP_FAILED)
		madvise(pool->region, units * BUF_UNIT, MADV_HUGEPAGE);
	if (!pool->stack || !pool->taken || pool->region == MAP_FAILED ||
	    !populate(pool->region, pool->touched)) {
		if (pool->region != MAP_FAILED)
			munmap(pool->region, units * BUF_UNIT);
		free(pool->stack);
		free(pool->taken);
		free(pool);
		errno = ENOMEM;
		return NULL;
	}
	while (pool->free_units < pool->units) {
		pool->stack[pool->free_units] = pool->units - 1 - pool->free_units;
		POISON(pool->region + pool->free_units * BUF_UNIT);
		pool->free_units++;
	}
	return pool;
}

struct buf_pool *buf_pool_new(uint64_t size_bytes)
{
	return pool_new(size_bytes, SIZE_MAX);
}

struct buf_pool *buf_pool_new_untouched(uint64_t size_bytes)
{
	return pool_new(size_bytes, 0);
}

bool buf_pool_touch(struct buf_pool *pool)
{
	size_t size = (size_t)pool->units * BUF_UNIT, more = min_u64(TOUCH, size - pool->touched);

	/* The old kernel's way would write into units that somebody has. */
	if (!more || madvise(pool->region + pool->touched, more, MADV_POPULATE_WRITE))
		return false;
	pool->touched += more;
	return pool->touched < size;
}

void buf_pool_free(struct buf_pool *pool)
{
	if (!pool)
		return;
	assert(pool->free_units == pool->units);
	for (unsigned i = 0; i < pool->units; i++)
		UNPOISON(pool->region + i * BUF_UNIT);
	munmap(pool->region, pool->units * BUF_UNIT);
	free(pool->stack);
	free(pool->taken);
	free(pool);
}

static void *unit_take(struct buf_pool *pool)
{
	uint32_t n = pool->stack[--pool->free_units];
	uint8_t *unit = pool->region + n * BUF_UNIT;

	pool->taken[n] = true;
	UNPOISON(unit);
	return unit;
}

static void unit_give(struct buf_pool *pool, void *unit)
{
	uint64_t offset = (uint64_t)((uint8_t *)unit - pool->region);
	uint64_t n = offset / BUF_UNIT;

	assert(offset % BUF_UNIT == 0 && n < pool->units && pool->taken[n]);
	pool->taken[n] = false;
	pool->stack[pool->free_units++] = (uint32_t)n;
	POISON(unit);
}

static unsigned data_units(uint64_t length)
{
	return (unsigned)((length + BUF_UNIT - 1) / BUF_UNIT);
}

unsigned buf_units(uint64_t length)
{
	unsigned units = data_units(length);

	return units > BUF_INLINE ? units + 1 : units;
}

bool buf_take(struct buf_pool *pool, uint64_t length, struct buf_list *list)
{
	unsigned count = data_units(length);

	assert(length <= BUF_LIST_MAX);
	if (buf_units(length) > pool->free_units)
		return false;
	list->iov = count > BUF_INLINE ? unit_take(pool) : list->inline_iov;
	list->count = count;
	list->length = length;
	for (unsigned i = 0; i < count; i++) {
		list->iov[i].iov_base = unit_take(pool);
		list->iov[i].iov_len = min_u64(length, BUF_UNIT);
		length -= list->iov[i].iov_len;
	}
	return true;
}

void buf_give(struct buf_pool *pool, struct buf_list *list)
{
	/* Backwards, so that the same list taken again is the same memory in order. */
	for (unsigned i = list->count; i-- > 0;)
		unit_give(pool, list->iov[i].iov_base);
	if (list->count > BUF_INLINE)
		unit_give(pool, list->iov);
	list->iov = NULL;
	list->count = 0;
	list->length = 0;
}

unsigned buf_pool_free_units(const struct buf_pool *pool)
{
	return pool->free_units;
}

unsigned buf_pool_units(const struct buf_pool *pool)
{
	return pool->units;
}

unsigned buf_slice(const struct buf_list *list, uint64_t offset, uint64_t length, struct iovec *out,
		   unsigned max, uint64_t *covered)
{
	unsigned i = (unsigned)(offset / BUF_UNIT);
	uint64_t skip = offset % BUF_UNIT;
	unsigned n = 0;

	assert(offset <= list->length && length <= list->length - offset);
	*covered = 0;
	for (; length > 0 && n < max; i++, n++) {
		uint64_t part = min_u64(length, list->iov[i].iov_len - skip);

		out[n].iov_base = (uint8_t *)list->iov[i].iov_base + skip;
		out[n].iov_len = part;
		*covered += part;
		length -= part;
		skip = 0;
	}
	return n;
}

/* The longest piece of LIST from OFFSET on that lies in one unit. */
static uint8_t *piece(const struct buf_list *list, uint64_t offset, uint64_t length, uint64_t *part)
{
	struct iovec iov;

	buf_slice(list, offset, length, &iov, 1, part);
	return iov.iov_base;
}

void buf_write(const struct buf_list *list, uint64_t offset, const void *src, uint64_t length)
{
	const uint8_t *from = src;
	uint64_t part;

	for (; length > 0; length -= part, offset += part, from += part) {
		uint8_t *to = piece(list, offset, length, &part);

		memcpy(to, from, part);
	}
}

void buf_read(const struct buf_list *list, uint64_t offset, void *dst, uint64_t length)
{
	uint8_t *to = dst;
	uint64_t part;

	for (; length > 0; length -= part, offset += part, to += part) {
		const uint8_t *from = piece(list, offset, length, &part);

		memcpy(to, from, part);
	}
}

void buf_zero(const struct buf_list *list, uint64_t offset, uint64_t length)
{
	uint64_t part;

	for (; length > 0; length -= part, offset += part) {
		uint8_t *to = piece(list, offset, length, &part);

		memset(to, 0, part);
	}
}
