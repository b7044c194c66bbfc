/* SPDX-License-Identifier: MIT */
/*
 * SYNCHRONIZE CACHE (10, 16).
 *
 * Invariants:
 * 1. GOOD means that every write answered before it came is durable; a failed flush is its
 *    error. With IMMED too: an answer ahead of the flush would have nobody left to tell of
 *    its failure, and a target may take its time with an immediate command.
 *
 * Not here: what a flush reaches (the block layer: all of the device, whatever the range).
 *
 * Spec: SBC-3 5.22, 5.23.
 */
#include "core/wire.h"
#include "target/scsi/lu_int.h"

void scsi_synchronize_cache(struct scsi_task *task)
{
	const uint8_t *cdb = task->cdb;
	bool ten = cdb[0] == 0x35;
	uint64_t lba = ten ? get_be32(cdb + 2) : get_be64(cdb + 2);
	uint64_t blocks = ten ? get_be16(cdb + 7) : get_be32(cdb + 10); /* 0: to the end */

	if (!lu_check_range(task, lba, blocks))
		scsi_complete(task);
	else
		lu_flush(task);
}
