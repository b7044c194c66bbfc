/* SPDX-License-Identifier: MIT */
/*
 * RAID 0: a device over several, chunk by chunk. It knows no array: its parts are members, or
 * mirrors (RAID 10).
 */
#ifndef RAID_RAID0_H
#define RAID_RAID0_H

#include "backstore/blk.h"

#define RAID0_PARTS_MAX 16u

/* LENGTH bytes of BLK from OFFSET on; what is beyond the last whole chunk is not used. */
struct raid0_part {
	struct blk *blk;
	uint64_t offset;
	uint64_t length;
};

/* Bytes of a device over COUNT parts of LENGTH each. */
uint64_t raid0_size(uint64_t length, uint32_t chunk_bytes, unsigned count);

/*
 * PARTS have one block size, are at least a chunk long and equally long where it matters: the
 * shortest counts. References on them are taken. NULL: no memory.
 */
struct blk *raid0_new(struct env *env, const char *name, uint32_t chunk_bytes,
		      const struct raid0_part *parts, unsigned count);

#endif
