/* SPDX-License-Identifier: MIT */
/*
 * RAID 5: what raid5.c and its stripe engine share.
 *
 *   member 0   member 1   member 2   member 3     left-symmetric, four members, chunks of data d
 *   d0         d1         d2         P            column c of stripe s is chunk s * 3 + c
 *   d4         d5         P          d3
 *   d8         P          d6         d7
 *   P          d9         d10        d11
 *
 * raid5.c    the device: reads from members, everything else to the engine
 * stripe.c   which stripes are active, what is gathered for them and when they start
 * round.c    one write of a stripe: reads, parity, log, data
 * plan.c     how it comes by its parity: what is read for it
 * survey.c   one look at a stripe: reconstructing, healing, making parity right
 * replay.c   the redo logs at assembly
 * returning.c  the log of a member that comes back; redo_scan.c: the records of a log, turn by turn
 * loss.c     what is lost
 */
#ifndef RAID_RAID5_INT_H
#define RAID_RAID5_INT_H

#include "raid/array_int.h"
#include "raid/fan.h"
#include "raid/redo.h"

struct stripes;

struct raid5 {
	struct blk blk;
	struct blk chunk; /* reads inside one chunk, of multi-chunk reads */
	struct blk lost;  /* reads inside one chunk that need the engine */
	struct array *array;
	unsigned chunk_shift;
	uint32_t chunk_bytes;
	unsigned roles, columns;
	uint64_t stripe_bytes; /* of data */
	struct fan_pool *fans; /* reads of several chunks, flushes */
	struct stripes *stripes;
};

static inline unsigned raid5_parity_role(unsigned roles, uint64_t stripe)
{
	assert(roles);
	return roles - 1 - (unsigned)(stripe % roles);
}

static inline unsigned raid5_data_role(unsigned roles, uint64_t stripe, unsigned column)
{
	assert(roles);
	return (raid5_parity_role(roles, stripe) + 1 + column) % roles;
}

/* The data column that ROLE has in STRIPE; -1: parity. */
static inline int raid5_column(unsigned roles, uint64_t stripe, unsigned role)
{
	return (int)((role + roles - raid5_parity_role(roles, stripe)) % roles) - 1;
}

/* Whether the region of STRIPE is doubtful. */
static inline bool raid5_doubtful(const struct raid5 *raid5, uint64_t stripe)
{
	return regions_doubtful(raid5->array->regions, stripe << raid5->chunk_shift,
				raid5->chunk_bytes);
}

/* Whether somebody knows what bytes [FROM, TO) of ROLE's chunk in STRIPE hold. */
static inline bool raid5_known(const struct raid5 *raid5, unsigned role, uint64_t stripe,
			       uint64_t from, uint64_t to)
{
	uint64_t begin = stripe << raid5->chunk_shift;
	struct bad_range range = { role, begin + from, begin + to };

	return !raid5->array->bad.count || !bad_ranges_hit(&raid5->array->bad, &range);
}

/* What is in ROLE of a stripe can be believed; DOUBTFUL: its region is. */
static inline bool raid5_usable(const struct raid5 *raid5, unsigned role, bool doubtful)
{
	const struct member *member = raid5->array->roles[role];

	return member && (member->state == MEMBER_IN_SYNC || !doubtful);
}

/* ---- raid5.c */

struct blk *raid5_new(struct array *array);
void raid5_equalise(struct array *array, uint64_t offset, uint64_t length,
		    void (*done)(struct array *array, int error));

/* MEMBER's log, of a new incarnation. */
int raid5_take(struct member *member);

struct raid5_counts {
	uint64_t rounds, full_rounds;
	uint64_t bytes, full_bytes; /* of data written; by full stripes */
	uint64_t xored;             /* bytes that went into XOR */
	struct redo_counts log;     /* of all members that are there */
};
/* Of BLK's life, for tests of what a write costs: nothing else asks. */
void raid5_count(struct blk *blk, struct raid5_counts *counts);

/* ---- returning.c */

/*
 * BLK comes back with this LABEL: regions are told what its log has. DONE: not inline; an ERROR:
 * it cannot be read. -ENOMEM: no DONE.
 */
int raid5_returning(struct array *array, struct blk *blk, const struct label *label,
		    void (*done)(void *arg, int error), void *arg);

/* ---- replay.c */

/* Write again what the in-sync members' logs hold. DONE: once, deferred or later. */
void raid5_replay(struct array *array, void (*done)(struct array *array, int error));

#endif
