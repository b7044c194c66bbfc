/* SPDX-License-Identifier: MIT */
/* What mirror.c (host I/O) and equalise.c (making legs equal) share. */
#ifndef RAID_MIRROR_INT_H
#define RAID_MIRROR_INT_H

#include "backstore/rangelock.h"
#include "raid/array_int.h"
#include "raid/fan.h"

#define MIRROR_LEGS_MAX 4u

struct leg {
	struct mirror *mirror;
	unsigned role;
	uint64_t next_offset; /* where a sequential reader goes on */
};

struct mirror {
	struct blk blk;
	struct array *array;
	unsigned count;
	struct leg legs[MIRROR_LEGS_MAX];
	unsigned turn;
	struct fan_pool *fans;
	struct rangelock *lock; /* writes shared, making equal exclusive */
	struct equaliser *equaliser;
};

/* NULL: nobody is in that role. */
struct member *mirror_leg(const struct mirror *mirror, unsigned leg);

/* From the best leg. FINAL: nothing is healed any more, legs are tried one after the other. */
void mirror_read(struct mirror *mirror, struct io *io, bool final);

/* Make IO's range equal, then read it. HEAL: because a leg could not read it. */
void equaliser_read(struct equaliser *equaliser, struct io *io, bool heal);

/* Whether a piece is under way that may change what an in-sync leg has. */
bool equaliser_changes_sources(const struct equaliser *equaliser);

struct equaliser *equaliser_new(struct mirror *mirror);
void equaliser_free(struct equaliser *equaliser);

#endif
