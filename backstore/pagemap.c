/* SPDX-License-Identifier: MIT */
/*
 * A bit for each page of a device in memory.
 *
 * Invariants:
 *  1. A page with a clear bit holds zeroes: who writes sets first and then writes, who unmaps
 *     clears when it is done.
 *  2. One look passes PAGEMAP_LOOK at most, so that it is a short one on any device.
 *
 * Not here: the memory (ram.c).
 */
#include "backstore/pagemap.h"

#include <stdlib.h>

#define WORD 64

static uint64_t page_count(const struct pagemap *map)
{
	return align_up(map->size_bytes, PAGEMAP_PAGE) / PAGEMAP_PAGE;
}

bool pagemap_init(struct pagemap *map, uint64_t size_bytes)
{
	map->size_bytes = size_bytes;
	map->words = calloc((page_count(map) + WORD - 1) / WORD, sizeof(*map->words));
	return map->words;
}

void pagemap_free(struct pagemap *map)
{
	free(map->words);
}

/* Bits FROM to TO - 1 of a word; FROM < TO <= WORD. */
static uint64_t mask(uint64_t from, uint64_t to)
{
	return (~UINT64_C(0) << from) & (~UINT64_C(0) >> (WORD - to));
}

static void change(struct pagemap *map, uint64_t page, uint64_t end, bool set)
{
	while (page < end) {
		uint64_t word = page / WORD, to = min_u64(end, (word + 1) * WORD);
		uint64_t bits = mask(page % WORD, to - word * WORD);

		if (set)
			map->words[word] |= bits;
		else
			map->words[word] &= ~bits;
		page = to;
	}
}

void pagemap_set(struct pagemap *map, uint64_t offset, uint64_t length)
{
	change(map, offset / PAGEMAP_PAGE, (offset + length + PAGEMAP_PAGE - 1) / PAGEMAP_PAGE,
	       true);
}

void pagemap_clear(struct pagemap *map, uint64_t offset, uint64_t length)
{
	uint64_t end = (offset + length) / PAGEMAP_PAGE;

	if (offset + length == map->size_bytes)
		end = page_count(map);
	change(map, align_up(offset, PAGEMAP_PAGE) / PAGEMAP_PAGE, end, false);
}

static bool bit(const struct pagemap *map, uint64_t page)
{
	return map->words[page / WORD] >> page % WORD & 1;
}

uint64_t pagemap_run(const struct pagemap *map, uint64_t offset, uint64_t length, bool *set)
{
	uint64_t page = offset / PAGEMAP_PAGE, last, end = offset + min_u64(length, PAGEMAP_LOOK);

	*set = bit(map, page);
	last = (end - 1) / PAGEMAP_PAGE;
	while (page <= last) {
		uint64_t other = map->words[page / WORD];

		if (*set)
			other = ~other;
		other >>= page % WORD;
		if (other) {
			page += (uint64_t)__builtin_ctzll(other);
			break;
		}
		page = (page / WORD + 1) * WORD;
	}
	return min_u64(page * PAGEMAP_PAGE, end) - offset;
}
