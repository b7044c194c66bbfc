/* SPDX-License-Identifier: MIT */
/*
 * Bad ranges: blocks of an array that nobody can know any more, by role and place in the data
 * area of its member. A read of them is an error until they are written.
 *
 * Pure bookkeeping, a part of the label (backstore/label.h).
 */
#ifndef BACKSTORE_BAD_RANGES_H
#define BACKSTORE_BAD_RANGES_H

#include <stdbool.h>

#include "core/base.h"

#define BAD_RANGES_MAX 64u

struct bad_range {
	unsigned role;
	uint64_t from, to; /* bytes of the data area */
};

struct bad_ranges {
	struct bad_range all[BAD_RANGES_MAX]; /* by role, then place; apart */
	unsigned count;
};

/* Whether some of RANGE is bad. */
bool bad_ranges_hit(const struct bad_ranges *ranges, const struct bad_range *range);
/* RANGE is bad, too. With too many, the two of a role that are nearest become one. */
void bad_ranges_add(struct bad_ranges *ranges, const struct bad_range *range);
/* RANGE is good. False: one that it is the middle of cannot be split, there are too many. */
bool bad_ranges_remove(struct bad_ranges *ranges, const struct bad_range *range);
/* Bytes in all. */
uint64_t bad_ranges_bytes(const struct bad_ranges *ranges);
/* Whether they are in order and apart. */
bool bad_ranges_sound(const struct bad_ranges *ranges);

#endif
