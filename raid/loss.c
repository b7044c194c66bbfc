/* SPDX-License-Identifier: MIT */
/*
 * RAID 5: what is lost, and what only the log can tell.
 *
 * Invariants:
 *  1. (I10) The label that says that a block is known again is written when what was written to
 *     it is held, and the write is answered when that label is durable.
 *  2. (I11) A stripe whose log may say more than its members show is not read until they agree.
 *
 * Not here: what becomes lost (replay.c), the list (backstore/bad_ranges.c).
 */
#include <errno.h>

#include "raid/stripe_int.h"

void loss_break(struct stripe *stripe)
{
	struct stripes *stripes = stripe->all;

	/* No round begins any more, so that there is one for each that was under way. */
	if (!loss_broken_stripe(stripes, stripe->number)) {
		assert(stripes->broken_count < STRIPES);
		stripes->broken[stripes->broken_count++] = stripe->number;
	}
	array_halt(stripes->array);
}

bool loss_broken_stripe(const struct stripes *stripes, uint64_t number)
{
	for (unsigned i = 0; i < stripes->broken_count; i++)
		if (stripes->broken[i] == number)
			return true;
	return false;
}

/* What the round writes of ROLE's data. */
static struct bad_range written_range(const struct stripe *stripe, unsigned role)
{
	uint64_t begin = stripe->number << stripe->all->raid5->chunk_shift;
	struct span data = stripe->lanes[role].data;

	return (struct bad_range){ role, begin + data.from, begin + data.to };
}

static bool writes(const struct stripe *stripe, unsigned role)
{
	return role != stripe->parity_role && span_bytes(stripe->lanes[role].data) > 0;
}

bool loss_touched(const struct stripe *stripe)
{
	const struct bad_ranges *bad = &stripe->all->array->bad;
	struct bad_range range;

	for (unsigned i = 0; bad->count && i < stripe->all->raid5->roles; i++) {
		range = written_range(stripe, i);
		if (writes(stripe, i) && bad_ranges_hit(bad, &range))
			return true;
	}
	return false;
}

int loss_regain(struct stripe *stripe)
{
	struct array *array = stripe->all->array;
	struct bad_ranges left = array->bad;
	struct bad_range range;

	for (unsigned i = 0; i < stripe->all->raid5->roles; i++) {
		range = written_range(stripe, i);
		if (writes(stripe, i) && !bad_ranges_remove(&left, &range))
			return -EIO;
	}
	array->bad = left;
	membership_change(array);
	array_changed(array);
	return 0;
}
