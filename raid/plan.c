/* SPDX-License-Identifier: MIT */
/*
 * How a write round comes by its parity, and what it reads for that.
 *
 * Invariants:
 *  1. What is read can be believed; of the plans that can be done the one that reads least is taken.
 *  2. In a doubtful region of a whole array parity is believed only after a survey: what is modified
 *     would stay wrong, and the new data be lost with their member.
 *
 * Not here: carrying it out (round.c).
 */
#include "raid/stripe_int.h"

/* What of HULL is not in DATA, in one piece. */
static struct span rest(struct span hull, struct span data)
{
	if (!span_bytes(data) || (data.from > hull.from && data.to < hull.to))
		return hull;
	if (data.from > hull.from)
		return (struct span){ hull.from, data.from };
	return (struct span){ data.to, hull.to };
}

/* What is read from LANE by PLAN. */
static struct span old_span(const struct stripe *stripe, enum round_plan how,
			    const struct lane *lane)
{
	const struct span none = { 0, 0 };
	struct span hull = stripe->round.hull;

	if (how == PLAN_DATA_ONLY)
		return none;
	if (lane->role == stripe->parity_role)
		return how == PLAN_RECONSTRUCT ? none : hull;
	if (how == PLAN_MODIFY)
		return lane->data;
	if (how == PLAN_RECONSTRUCT)
		return rest(hull, lane->data);
	return lane->role == stripe->round.lost ? none : hull;
}

static bool readable(const struct stripe *stripe, unsigned role, bool doubtful)
{
	return raid5_usable(stripe->all->raid5, role, doubtful) &&
	       !(stripe->round.unreadable >> role & 1);
}

/* Bytes that the plan reads; UINT64_MAX: it cannot be done. */
static uint64_t cost(const struct stripe *stripe, enum round_plan how, bool doubtful)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < stripe->all->raid5->roles; i++) {
		struct span old = old_span(stripe, how, &stripe->lanes[i]);

		if (span_bytes(old) && !readable(stripe, i, doubtful))
			return UINT64_MAX;
		bytes += span_bytes(old);
	}
	return bytes;
}

/* The data role that cannot be read; the parity's if there is none. */
static unsigned lost_role(const struct stripe *stripe, bool doubtful)
{
	for (unsigned i = 0; i < stripe->all->raid5->roles; i++)
		if (i != stripe->parity_role && !readable(stripe, i, doubtful))
			return i;
	return stripe->parity_role;
}

static void read_as_planned(struct stripe *stripe)
{
	for (unsigned i = 0; i < stripe->all->raid5->roles; i++)
		stripe->lanes[i].old = old_span(stripe, stripe->round.plan, &stripe->lanes[i]);
}

static bool believed(const struct stripe *stripe, bool doubtful)
{
	return !doubtful || stripe->all->array->state != ARRAY_HEALTHY ||
	       stripe->agreement == AGREEMENT_REACHED;
}

bool plan_needs_agreement(const struct stripe *stripe)
{
	bool doubtful = raid5_doubtful(stripe->all->raid5, stripe->number);

	return stripe->all->array->roles[stripe->parity_role] && !believed(stripe, doubtful) &&
	       stripe->agreement == AGREEMENT_UNKNOWN &&
	       cost(stripe, PLAN_RECONSTRUCT, doubtful) == UINT64_MAX;
}

bool plan_choose(struct stripe *stripe)
{
	static const enum round_plan plans[] = { PLAN_RECONSTRUCT, PLAN_MODIFY, PLAN_EVERYTHING };
	struct round *round = &stripe->round;
	bool doubtful = raid5_doubtful(stripe->all->raid5, stripe->number);
	uint64_t least = UINT64_MAX;

	if (!stripe->all->array->roles[stripe->parity_role]) {
		round->plan = PLAN_DATA_ONLY;
		read_as_planned(stripe);
		return true;
	}
	round->lost = lost_role(stripe, doubtful);
	for (unsigned i = 0; i < ARRAY_LEN(plans); i++) {
		uint64_t bytes = cost(stripe, plans[i], doubtful);

		if (i && !believed(stripe, doubtful))
			break;
		if (bytes < least) {
			least = bytes;
			round->plan = plans[i];
		}
	}
	if (least == UINT64_MAX)
		return false;
	read_as_planned(stripe);
	return true;
}

bool plan_outdated(const struct stripe *stripe)
{
	bool doubtful = raid5_doubtful(stripe->all->raid5, stripe->number);

	if (!stripe->all->array->roles[stripe->parity_role])
		return true;
	for (unsigned i = 0; i < stripe->all->raid5->roles; i++)
		if (span_bytes(stripe->lanes[i].old) && !readable(stripe, i, doubtful))
			return true;
	return false;
}
