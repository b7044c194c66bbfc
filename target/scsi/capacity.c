/* SPDX-License-Identifier: MIT */
/*
 * READ CAPACITY (10, 16).
 *
 * Invariants:
 * 1. READ CAPACITY(10) of what 32 bits cannot say returns FFFFFFFFh, which sends hosts to (16).
 *
 * Not here: telling hosts of a change (lu.c raises the unit attention).
 *
 * Spec: SBC-3 5.15, 5.16.
 */
#include "core/wire.h"
#include "target/scsi/lu_int.h"

void scsi_read_capacity_10(struct scsi_task *task)
{
	uint64_t last = lu_blocks(task->lu) - 1;
	uint8_t data[8];

	put_be32(data, last < UINT32_MAX ? (uint32_t)last : UINT32_MAX);
	put_be32(data + 4, task->lu->block_size);
	scsi_reply(task, data, sizeof(data));
}

void scsi_read_capacity_16(struct scsi_task *task)
{
	const struct scsi_lu *lu = task->lu;
	uint8_t data[32] = { 0 };

	put_be64(data, lu_blocks(lu) - 1);
	put_be32(data + 8, lu->block_size);
	/* Logical blocks per physical block, as an exponent. */
	data[13] = (uint8_t)__builtin_ctz(lu->blk->physical_block / lu->block_size);
	if (lu_thin(lu))
		data[14] = 0xc0; /* LBPME, LBPRZ */
	scsi_reply(task, data, sizeof(data));
}
