/* SPDX-License-Identifier: MIT */
/*
 * Which disks form the array (I9).
 *
 * Invariants:
 *  1. An id names one label for ever, so what a label lists is the same wherever it is named.
 *  2. A label decides only if every disk that is there and that it lists has it in its chain:
 *     a membership change that reached some of them only, was acknowledged by nobody.
 *  3. Of two complete labels the descendant is the deeper one. Where neither chain has both, it
 *     is the one of the higher generation, provided both go back to the same start by force, or
 *     to none: without force there is one line of labels.
 *  4. A chain begins with a label that was on everyone whom it lists: no label before that one
 *     starts the array by itself, be its disks the only ones here. Chains are cut, so a member
 *     that is rebuilt by others does not name the last label that listed it, and where that one
 *     then fails, the one before it may look complete.
 *  5. Without a disk that is listed, the array starts by itself only if the absent ones could
 *     not run it among themselves: then no write can have been acknowledged without those here.
 *     One who is absent may lack the label, too, and have gone on from an ancestor, with whom the
 *     label excludes: so that holds for those whom any label of the chain lists.
 *
 * Not here: what a label holds (backstore/label.c), reading and writing them (member.c), the
 * delay before a degraded start (start.c).
 */
#include "raid/assembly.h"

#include <string.h>

#include "core/canary.h"

/* A label of the array, known from a disk that carries it or a descendant. */
struct known {
	uint64_t id;
	const struct label *in; /* a label with this id in its chain */
	unsigned depth;         /* ancestors before it there */
	uint64_t generation;
	uint64_t forced_id;
	uint32_t listed; /* over in->members */
};

struct chain {
	const struct label *labels[LABEL_MEMBERS_MAX];
	unsigned count;
};

static uint64_t chain_id(const struct label *label, unsigned depth)
{
	return depth == label->ancestor_count ? label->id : label->ancestors[depth].id;
}

static uint32_t chain_listed(const struct label *label, unsigned depth)
{
	return depth == label->ancestor_count ? label_listed(label) :
						label->ancestors[depth].listed;
}

static uint64_t chain_forced(const struct label *label, unsigned depth)
{
	return depth == label->ancestor_count ? label->forced_id :
						label->ancestors[depth].forced_id;
}

/* Where ID stands in LABEL's chain; -1: it does not. */
static int chain_find(const struct label *label, uint64_t id)
{
	for (unsigned depth = 0; depth <= label->ancestor_count; depth++)
		if (chain_id(label, depth) == id)
			return (int)depth;
	return -1;
}

/* The label of the disk that KNOWN lists at INDEX, or NULL: it is not there. */
static const struct label *disk_of(const struct chain *all, const struct known *known,
				   unsigned index)
{
	for (unsigned i = 0; i < all->count; i++) {
		const struct label *label = all->labels[i];

		if (uuid_compare(label->members[label->self].uuid,
				 known->in->members[index].uuid) == 0)
			return label;
	}
	return NULL;
}

static bool complete(const struct chain *all, const struct known *known)
{
	bool any = false;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		const struct label *disk;

		if (!(known->listed >> i & 1))
			continue;
		disk = disk_of(all, known, i);
		if (!disk)
			continue;
		if (chain_find(disk, known->id) < 0 && !canary(CANARY_GENERATION))
			return false;
		any = true;
	}
	return any;
}

static bool precedes(const struct chain *all, const struct known *a, const struct known *b)
{
	for (unsigned i = 0; i < all->count; i++) {
		int at = chain_find(all->labels[i], a->id);

		if (at >= 0 && at < chain_find(all->labels[i], b->id))
			return true;
	}
	return a->forced_id == b->forced_id && a->generation < b->generation;
}

/* A candidate against the DEEPEST found so far; true: two histories, neither before the other. */
static bool deepest_of(const struct chain *all, struct known *deepest, const struct known *next)
{
	if (!deepest->in || precedes(all, deepest, next)) {
		*deepest = *next;
		return false;
	}
	return deepest->id != next->id && !precedes(all, next, deepest);
}

/* The deepest complete label; in == NULL: none. True: there are two. */
static bool deciding(const struct chain *all, struct known *deepest)
{
	bool two = false;

	memset(deepest, 0, sizeof(*deepest));
	for (unsigned i = 0; i < all->count; i++) {
		for (unsigned depth = all->labels[i]->ancestor_count + 1; depth-- > 0;) {
			const struct known next = {
				.id = chain_id(all->labels[i], depth),
				.in = all->labels[i],
				.depth = depth,
				.generation = label_generation(all->labels[i], depth),
				.forced_id = chain_forced(all->labels[i], depth),
				.listed = chain_listed(all->labels[i], depth),
			};

			if (complete(all, &next)) {
				two |= deepest_of(all, deepest, &next);
				break; /* those before it are its ancestors */
			}
		}
	}
	return two;
}

static uint32_t roles_of(const struct label *label, uint32_t members)
{
	uint32_t roles = 0;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		if (members >> i & 1 && label->members[i].role < label->roles)
			roles |= 1u << label->members[i].role;
	return roles;
}

/* The disk that carries KNOWN itself; NULL: all that know it have gone on. */
static const struct label *carrier(const struct chain *all, const struct known *known)
{
	for (unsigned i = 0; i < all->count; i++)
		if (all->labels[i]->id == known->id)
			return all->labels[i];
	return NULL;
}

/*
 * What was bad then: at least what is in every descendant. They were incomplete, so what one
 * of them has no more may be bad for those who did not get it.
 */
static void gather_bad(const struct chain *all, const struct known *known, struct bad_ranges *bad)
{
	for (unsigned i = 0; i < all->count; i++) {
		const struct bad_ranges *theirs = &all->labels[i]->bad;

		if (chain_find(all->labels[i], known->id) < 0)
			continue;
		for (unsigned k = 0; k < theirs->count; k++)
			bad_ranges_add(bad, &theirs->all[k]);
	}
}

/* KNOWN as a label of its own: states by what it lists, ancestors up to it. */
static void reconstruct(const struct chain *all, const struct known *known, struct label *label)
{
	const struct label *itself = carrier(all, known);

	*label = itself ? *itself : *known->in;
	if (itself)
		return;
	gather_bad(all, known, &label->bad);
	label->id = known->id;
	label->generation = known->generation;
	label->forced_id = known->forced_id;
	label->ancestor_count = known->depth;
	memset(&label->ancestors[known->depth], 0,
	       (LABEL_ANCESTORS_MAX - known->depth) * sizeof(label->ancestors[0]));
	label->flags &= ~LABEL_CLEAN;
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		struct label_member *member = &label->members[i];

		if (known->listed >> i & 1)
			member->state = LABEL_IN_SYNC;
		else if (member->state == LABEL_IN_SYNC || member->state == LABEL_REBUILDING)
			member->state = LABEL_FAILED;
	}
}

/* --- newer ones who are not there --- */

static struct known root_of(const struct label *label)
{
	return (struct known){
		.id = chain_id(label, 0),
		.in = label,
		.generation = label_generation(label, 0),
		.forced_id = chain_forced(label, 0),
		.listed = chain_listed(label, 0),
	};
}

/* Bit I: KNOWN lists the member at I, and its disk is there. */
static uint32_t present(const struct chain *all, const struct known *known)
{
	uint32_t present = 0;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		if (known->listed >> i & 1 && disk_of(all, known, i))
			present |= 1u << i;
	return present;
}

/*
 * Whether ROOT, where a chain begins, comes after KNOWN, or may. What follows a start by force names
 * one: a root that names none does not come after a label that does.
 */
static bool outdates(const struct known *root, const struct known *known)
{
	return root->generation > known->generation &&
	       (root->forced_id == known->forced_id || root->forced_id);
}

/* Whether ROOT outdates what the disks that are there decide; without a decision, every chain. */
static bool outdates_all(const struct chain *all, const struct known *root,
			 const struct known *known)
{
	bool any = false;

	if (known->in)
		return outdates(root, known);
	for (unsigned i = 0; i < all->count; i++) {
		const struct known other = root_of(all->labels[i]);

		if (!present(all, &other))
			continue;
		if (!outdates(root, &other))
			return false;
		any = true;
	}
	return any;
}

/*
 * Invariant 4: one of ALL was being rebuilt by members who are not there, and whose label, NEWER,
 * outdates KNOWN. He is left out: he says that KNOWN is old, and holds nothing whole. False: none.
 */
static bool leave_out(struct chain *all, const struct known *known, struct known *newer)
{
	for (unsigned i = 0; i < all->count; i++) {
		const struct known root = root_of(all->labels[i]);

		if (present(all, &root) || !outdates_all(all, &root, known))
			continue;
		if (!newer->in || newer->generation < root.generation)
			*newer = root;
		all->labels[i] = all->labels[--all->count];
		return true;
	}
	return false;
}

/*
 * Whether a chain begins after KNOWN with somebody who is there: its root was on all that it lists,
 * so if no disk were an old copy it would have been complete, or KNOWN would come after it.
 */
static bool contradict(const struct chain *all, const struct known *known)
{
	for (unsigned i = 0; i < all->count; i++) {
		const struct known root = root_of(all->labels[i]);

		if (present(all, &root) &&
		    (!known->in || (root.forced_id == known->forced_id && outdates(&root, known))))
			return true;
	}
	return false;
}

/* --- the decision --- */

/* Nobody who is there was ever whole: what the newest history needs. */
static void nobody_whole(const struct chain *there, struct assembly *decision)
{
	const struct label *newest = there->labels[0];
	struct known known;

	for (unsigned i = 1; i < there->count; i++)
		if (label_generation(there->labels[i], 0) > label_generation(newest, 0))
			newest = there->labels[i];
	known = (struct known){ .in = newest, .listed = label_listed(newest) };
	decision->verdict = ASSEMBLY_IMPOSSIBLE;
	decision->label = *newest;
	decision->absent = known.listed & ~present(there, &known);
	decision->needed = assembly_missing(newest->level, newest->roles, 0);
}

/* Invariant 5: whether those who are not there could have gone on from KNOWN, or from before it. */
static bool others_could_run(const struct chain *all, const struct known *known)
{
	const struct label *label = known->in;

	for (unsigned depth = 0; depth <= known->depth; depth++) {
		struct known from = { .in = label, .listed = chain_listed(label, depth) };
		uint32_t lost = roles_of(label, from.listed & ~present(all, &from));

		if (lost && assembly_can_run(label->level, label->roles, lost))
			return true;
	}
	return false;
}

static void decide_on(const struct chain *all, const struct known *known, bool old,
		      struct assembly *decision)
{
	const struct label *label = &decision->label;
	uint32_t held;

	reconstruct(all, known, &decision->label);
	decision->joining = present(all, known);
	decision->absent = known->listed & ~decision->joining;
	held = roles_of(label, decision->joining);
	if (!assembly_can_run(label->level, label->roles, held)) {
		decision->verdict = ASSEMBLY_IMPOSSIBLE;
		decision->needed = assembly_missing(label->level, label->roles, held);
	} else if (old || (decision->absent && others_could_run(all, known))) {
		decision->verdict = ASSEMBLY_WAIT;
	} else {
		decision->verdict = ASSEMBLY_START;
	}
}

void assembly_decide(const struct label *const *labels, unsigned count, struct assembly *decision)
{
	struct known known, newer = { 0 };
	struct chain there, all;
	bool two;

	assert(count > 0 && count <= LABEL_MEMBERS_MAX);
	memset(decision, 0, sizeof(*decision));
	memcpy(there.labels, labels, count * sizeof(*labels));
	there.count = count;
	all = there;
	do
		two = deciding(&all, &known);
	while (!two && leave_out(&all, &known, &newer));
	if (two || contradict(&all, &known)) {
		decision->verdict = ASSEMBLY_ASK;
	} else if (!known.in) {
		nobody_whole(&there, decision);
	} else {
		decide_on(&all, &known, newer.in != NULL, decision);
		if (newer.in) /* who was left out is there, and it is not him whom they lack */
			decision->absent = (decision->absent & ~present(&there, &known)) |
					   newer.listed;
	}
}

/* Roles without which it does not run; RAID10's mirrors are the pairs 2k, 2k + 1. */
unsigned assembly_missing(unsigned level, unsigned roles, uint32_t held)
{
	unsigned missing = 0, empty = 0;

	for (unsigned i = 0; i < roles; i++)
		missing += !(held >> i & 1);
	for (unsigned i = 0; i + 1 < roles; i += 2)
		empty += !(held >> i & 3);
	switch (level) {
	case 1:
		return missing == roles;
	case 5:
		return missing > 1 ? missing - 1 : 0;
	case 10:
		return empty;
	default:
		return missing;
	}
}

bool assembly_can_run(unsigned level, unsigned roles, uint32_t held)
{
	return assembly_missing(level, roles, held) == 0;
}
