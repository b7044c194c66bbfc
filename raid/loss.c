/* SPDX-License-Identifier: MIT */
/*
 * RAID 5: blocks that were lost, and are written.
 *
 * Invariants:
 *  1. (I10) The label that says that a block is known again is written when what was written to
 *     it is held, and the write is answered when that label is durable.
 *
 * Not here: what becomes lost (replay.c), the list (backstore/bad_ranges.c).
 */
#include <errno.h>

#include "raid/stripe_int.h"

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
	struct bad_range range;

	for (unsigned i = 0; i < stripe->all->raid5->roles; i++) {
		range = written_range(stripe, i);
		if (writes(stripe, i) && !bad_ranges_remove(&array->bad, &range))
			return -EIO;
	}
	membership_change(array);
	array_changed(array);
	return 0;
}
