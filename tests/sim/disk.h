/* SPDX-License-Identifier: MIT */
/*
 * A simulated disk: what reads see, what is durable, and what lies between.
 *
 * Private to the simulated machine (world.c), which says when things happen and draws chance.
 */
#ifndef TESTS_SIM_DISK_H
#define TESTS_SIM_DISK_H

#include "tests/sim/world.h"

/* A write that is not durable yet, in flight or completed. */
struct change {
	TAILQ_ENTRY(change) link; /* in the order of completion, those in flight behind */
	uint64_t sector, count;
	uint64_t version; /* 0: in flight */
	uint8_t *bytes;
};
TAILQ_HEAD(change_list, change);

#define DISK_BLOCK (4 * KIB)

struct disk {
	uint64_t size_bytes;
	uint8_t *seen;      /* what reads see */
	uint8_t *stable;    /* what a power cut cannot take */
	uint64_t *versions; /* of `stable`, a sector each */
	uint8_t *bad;       /* a sector each: reads fail */
	uint8_t *memory;    /* of world_disk_remember() */
	uint8_t *differs;   /* a DISK_BLOCK each: `seen` may differ from `stable` */
	struct change_list changes;
	enum world_fault fault;
};

void disk_init(struct disk *disk, uint64_t size_bytes);
void disk_free(struct disk *disk);

/* What OP will change, its bytes taken now. */
struct change *disk_begin(struct disk *disk, const struct env_disk_op *op);
/*
 * OP ends. CHANGE: of a write, it is used up or kept by the disk; FLUSH_VERSION: a FLUSH covers
 * versions up to it; VERSION rises. 0 or a negative errno.
 */
int disk_end(struct disk *disk, const struct env_disk_op *op, struct change *change,
	     uint64_t flush_version, struct world *world, uint64_t *version);
/* What is not durable is forgotten, but for what reads see. False: some of it is in flight. */
bool disk_forget(struct disk *disk);
/* Nothing but what is durable is left. */
void disk_cut(struct disk *disk, enum world_cut cut, struct world *world, uint64_t *version,
	      struct world_counts *counts);

#endif
