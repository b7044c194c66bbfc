/* SPDX-License-Identifier: MIT */
/*
 * Bad ranges.
 *
 * Invariants:
 *  1. Ranges are in order, not empty, and do not touch.
 *  2. What was added is bad until it is removed; what more becomes bad is only the room between
 *     two ranges, when there are too many.
 *
 * Not here: who makes them durable (raid/membership.c), bytes (backstore/label.c).
 */
#include "backstore/bad_ranges.h"

#include <string.h>

bool bad_ranges_hit(const struct bad_ranges *ranges, const struct bad_range *range)
{
	for (unsigned i = 0; i < ranges->count; i++) {
		const struct bad_range *bad = &ranges->all[i];

		if (bad->role == range->role && bad->from < range->to && bad->to > range->from)
			return true;
	}
	return false;
}

static void take_out(struct bad_ranges *ranges, unsigned index)
{
	ranges->count--;
	memmove(&ranges->all[index], &ranges->all[index + 1],
		(ranges->count - index) * sizeof(ranges->all[0]));
}

static void put_in(struct bad_ranges *ranges, unsigned index, const struct bad_range *range)
{
	assert(ranges->count < BAD_RANGES_MAX);
	memmove(&ranges->all[index + 1], &ranges->all[index],
		(ranges->count - index) * sizeof(ranges->all[0]));
	ranges->all[index] = *range;
	ranges->count++;
}

/* Bytes between range I and the next; UINT64_MAX: that is of another role. */
static uint64_t gap(const struct bad_ranges *ranges, unsigned i)
{
	const struct bad_range *range = &ranges->all[i];

	return range[0].role == range[1].role ? range[1].from - range[0].to : UINT64_MAX;
}

static void make_room(struct bad_ranges *ranges)
{
	unsigned best = 0;

	for (unsigned i = 1; i + 1 < ranges->count; i++)
		if (gap(ranges, i) < gap(ranges, best))
			best = i;
	/* There are more ranges than roles. */
	assert(gap(ranges, best) != UINT64_MAX);
	ranges->all[best].to = ranges->all[best + 1].to;
	take_out(ranges, best + 1);
}

void bad_ranges_add(struct bad_ranges *ranges, const struct bad_range *range)
{
	struct bad_range sum = *range;
	unsigned i = 0;

	assert(range->from < range->to);
	while (i < ranges->count) {
		const struct bad_range *bad = &ranges->all[i];

		if (bad->role > sum.role || (bad->role == sum.role && bad->from > sum.to))
			break;
		if (bad->role == sum.role && bad->to >= sum.from) {
			sum.from = min_u64(sum.from, bad->from);
			sum.to = max_u64(sum.to, bad->to);
			take_out(ranges, i);
		} else {
			i++;
		}
	}
	if (ranges->count < BAD_RANGES_MAX) {
		put_in(ranges, i, &sum);
		return;
	}
	make_room(ranges);
	bad_ranges_add(ranges, &sum);
}

/* False: there is no room for a second part. */
static bool cut(struct bad_ranges *ranges, unsigned i, const struct bad_range *range)
{
	struct bad_range *bad = &ranges->all[i];
	struct bad_range after = { bad->role, range->to, bad->to };

	if (bad->from < range->from && bad->to > range->to) {
		if (ranges->count == BAD_RANGES_MAX)
			return false;
		bad->to = range->from;
		put_in(ranges, i + 1, &after);
	} else if (bad->from < range->from) {
		bad->to = range->from;
	} else if (bad->to > range->to) {
		bad->from = range->to;
	} else {
		take_out(ranges, i);
	}
	return true;
}

bool bad_ranges_remove(struct bad_ranges *ranges, const struct bad_range *range)
{
	/* From the last on: those that go or come move only what was looked at. */
	for (unsigned i = ranges->count; i-- > 0;) {
		const struct bad_range *bad = &ranges->all[i];

		if (bad->role == range->role && bad->from < range->to && bad->to > range->from &&
		    !cut(ranges, i, range))
			return false;
	}
	return true;
}

uint64_t bad_ranges_bytes(const struct bad_ranges *ranges)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < ranges->count; i++)
		bytes += ranges->all[i].to - ranges->all[i].from;
	return bytes;
}

bool bad_ranges_sound(const struct bad_ranges *ranges)
{
	for (unsigned i = 0; i < ranges->count; i++) {
		const struct bad_range *range = &ranges->all[i];

		if (range->from >= range->to)
			return false;
		if (i && (range->role < range[-1].role ||
			  (range->role == range[-1].role && range->from <= range[-1].to)))
			return false;
	}
	return true;
}
