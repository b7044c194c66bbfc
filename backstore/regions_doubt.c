/* SPDX-License-Identifier: MIT */
/*
 * Dirty regions: which are doubtful, that is, may differ between copies that count (I11).
 *
 * Invariants:
 *  1. What was dirty when the last life ended is doubtful; a page that nobody can read was all
 *     dirty. Who can read one copy only does not know the page: the other may be newer.
 *  2. A device that joins has none of the bits: they are stored again before they count. It may
 *     have others, of before it left: pages without bits are stored, too, and nobody waits for that.
 *  3. Doubt that comes while a region is being made equal outlasts that.
 *
 * Not here: bits and who waits for them (regions.c).
 */
#include "backstore/regions_int.h"

void regions_load(struct regions *regions, unsigned number, const void *one, const void *two)
{
	struct page *page = &regions->pages[number];
	uint64_t sequence;
	const void *newest = regions_page_newest(regions->conf.tag, number, one, two, &sequence);

	page->hidden |= !one || !two;
	if (!newest)
		return;
	page->loaded |= one && two;
	page->sequence = max_u64(page->sequence, sequence);
	for (unsigned i = 0; i < REGIONS_PAGE_BITS; i++) {
		unsigned index = number * REGIONS_PAGE_BITS + i;

		if (index < regions->total && regions_page_has(newest, i))
			regions_set_dirty(regions, index, true);
	}
}

void regions_replayed(struct regions *regions, uint64_t offset, uint64_t length)
{
	const struct region_hold range = { .offset = offset, .length = length };

	for (unsigned i = regions_first(regions, &range); i <= regions_last(regions, &range); i++)
		regions->all[i].replayed = true;
}

void regions_loaded(struct regions *regions)
{
	/* What is stored from now on is newer than what may be read again one day. */
	for (unsigned i = 0; i < regions->page_count; i++)
		if (regions->pages[i].hidden)
			regions->pages[i].sequence = max_u64(regions->pages[i].sequence + 1,
							     regions->conf.sequence_floor);
	for (unsigned i = 0; i < regions->total; i++) {
		if (!regions->pages[i / REGIONS_PAGE_BITS].loaded ||
		    (regions->all[i].replayed && !regions->whole))
			regions_set_dirty(regions, i, true);
		if (!regions->all[i].dirty)
			continue;
		regions->pages[i / REGIONS_PAGE_BITS].stale = true;
		regions->all[i].doubtful = true;
		regions->doubtful++;
	}
	if (regions->conf.lazy)
		regions_store_uncovered(regions);
}

void regions_doubt_unflushed(struct regions *regions)
{
	for (unsigned i = 0; i < regions->total; i++)
		if (regions->all[i].unflushed || regions->all[i].holds)
			regions_mark_doubtful(regions, i);
}

static void device_joins(struct regions *regions)
{
	for (unsigned i = 0; i < regions->page_count; i++)
		regions->pages[i].joined = regions->pages[i].storing;
	for (unsigned i = 0; i < regions->total; i++)
		regions_set_durable(regions, i, false);
}

void regions_doubt_dirty(struct regions *regions)
{
	device_joins(regions);
	for (unsigned i = 0; i < regions->total; i++)
		if (regions->all[i].dirty)
			regions_mark_doubtful(regions, i);
	regions_store_rest(regions);
}

void regions_doubt(struct regions *regions, uint64_t offset, uint64_t length)
{
	const struct region_hold range = { .offset = offset, .length = length };

	for (unsigned i = regions_first(regions, &range); i <= regions_last(regions, &range); i++)
		regions_mark_doubtful(regions, i);
}

void regions_doubt_all(struct regions *regions)
{
	device_joins(regions);
	for (unsigned i = 0; i < regions->total; i++)
		regions_mark_doubtful(regions, i);
}

bool regions_doubtful(const struct regions *regions, uint64_t offset, uint64_t length)
{
	const struct region_hold range = { .offset = offset, .length = length };

	if (!regions->doubtful)
		return false;
	for (unsigned i = regions_first(regions, &range); i <= regions_last(regions, &range); i++)
		if (regions->all[i].doubtful)
			return true;
	return false;
}

bool regions_next_doubtful(const struct regions *regions, uint64_t offset, uint64_t *region_offset,
			   uint64_t *region_length)
{
	uint64_t bytes = (uint64_t)1 << regions->region_shift;

	/* The last region may end before its number of bytes is full. */
	if (!regions->doubtful || offset >= regions->conf.size_bytes)
		return false;
	for (unsigned i = (unsigned)(offset >> regions->region_shift); i < regions->total; i++) {
		if (!regions->all[i].doubtful)
			continue;
		*region_offset = i * bytes;
		*region_length = min_u64(bytes, regions->conf.size_bytes - *region_offset);
		return true;
	}
	return false;
}

uint64_t regions_doubts(const struct regions *regions, uint64_t offset)
{
	return regions->all[offset >> regions->region_shift].doubts;
}

void regions_made_equal(struct regions *regions, uint64_t offset, uint64_t doubts)
{
	struct region *region = &regions->all[offset >> regions->region_shift];

	if (!region->doubtful || region->doubts != doubts)
		return;
	region->doubtful = false;
	regions->doubtful--;
	if (!regions->doubtful)
		regions_grant_covered(regions);
	regions_clean_soon(regions, regions->conf.clean_after_ns);
}
