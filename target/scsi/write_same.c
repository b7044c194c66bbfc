/* SPDX-License-Identifier: MIT */
/*
 * WRITE SAME (10, 16).
 *
 * Invariants:
 * 1. The Data-Out is exactly one block, with NDOB none; anything else writes nothing.
 * 2. Zero blocks are those to the end of the medium (WSNZ=0); VPD B0h bounds those too.
 * 3. UNMAP unmaps, whatever the block that came: initiators that set it mean it, and the
 *    blocks read as zeroes afterwards (LBPRZ).
 * 4. A pattern of any length is written from one unit of memory.
 *
 * Not here: anchored blocks: there are none (ANC_SUP=0), ANCHOR is refused.
 *
 * Spec: SBC-3 5.42, 5.43.
 */
#include <string.h>

#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

#define NDOB 0x01
#define OBSOLETE 0x06 /* PBDATA, LBDATA */
#define UNMAP 0x08
#define ANCHOR 0x10

static bool no_data(const uint8_t *cdb)
{
	return cdb[0] == 0x93 && cdb[1] & NDOB;
}

static struct scsi_range decode(const uint8_t *cdb)
{
	if (cdb[0] == 0x41)
		return (struct scsi_range){ get_be32(cdb + 2), get_be16(cdb + 7), 7, cdb[1] };
	return scsi_range(cdb);
}

uint64_t scsi_write_same_length(const struct scsi_task *task)
{
	return no_data(task->cdb) ? 0 : task->lu->block_size;
}

/* At most 16 MiB: in one io. */
static void zeroes_held(struct lu_task *lt)
{
	lu_io(lt, lt->task->cdb[1] & UNMAP ? IO_UNMAP : IO_WRITE_ZEROES, lt->offset, lt->length, 0,
	      lu_end);
}

static void next_pattern(struct lu_task *lt);

static void pattern_written(struct lu_task *lt)
{
	lt->done += lt->io.length;
	next_pattern(lt);
}

static void next_pattern(struct lu_task *lt)
{
	unsigned count;
	uint64_t length;

	if (lt->done == lt->length) {
		scsi_complete(lt->task);
		return;
	}
	length = lu_scratch_iov(lt, lt->length - lt->done, &count);
	lu_io(lt, IO_WRITE, lt->offset + lt->done, length, count, pattern_written);
}

static bool all_zero(const uint8_t *p, uint64_t length)
{
	return p[0] == 0 && !memcmp(p, p + 1, length - 1);
}

static void start(struct lu_task *lt, const struct scsi_range *r)
{
	struct scsi_task *task = lt->task;
	uint64_t block = task->lu->block_size, at;
	uint8_t *memory = lu_scratch(lt);
	bool unmap = task->cdb[1] & UNMAP, zeroes;

	memset(memory, 0, block);
	if (!no_data(task->cdb))
		buf_read(&task->data, 0, memory, block);
	zeroes = unmap || (all_zero(memory, block) && task->lu->blk->features & BLK_WRITE_ZEROES);
	for (at = block; !zeroes && at < BUF_UNIT; at += block)
		memcpy(memory + at, memory, block);
	lt->offset = r->lba * block;
	lt->length = r->blocks * block;
	lu_hold(lt, true, lt->offset, lt->length, zeroes ? zeroes_held : next_pattern);
}

/* True: what byte 1 asks for is there. */
static bool check_flags(struct scsi_task *task)
{
	uint8_t flags = task->cdb[1];

	if (flags & SCSI_BYTE1_PROTECT)
		scsi_fail_field(task, 1, 7);
	else if (flags & ANCHOR)
		scsi_fail_field(task, 1, 4);
	else if (flags & UNMAP && !lu_thin(task->lu))
		scsi_fail_field(task, 1, 3);
	else if (flags & OBSOLETE)
		scsi_fail_field(task, 1, 2);
	else if (task->cdb[0] == 0x41 && flags & NDOB)
		scsi_fail_field(task, 1, 0);
	else
		return true;
	return false;
}

void scsi_write_same(struct scsi_task *task)
{
	struct scsi_range r = decode(task->cdb);
	uint64_t block = task->lu->block_size;

	if (!check_flags(task) || !lu_check_range(task, r.lba, r.blocks)) {
		scsi_complete(task);
		return;
	}
	if (!r.blocks)
		r.blocks = lu_blocks(task->lu) - r.lba;
	if (r.blocks > SCSI_WRITE_SAME_MAX / block) {
		scsi_fail_field(task, r.length_byte, 7);
	} else if (lu_write_protected(task)) {
		scsi_fail(task, SCSI_R_WRITE_PROTECTED);
	} else if (!no_data(task->cdb) && task->expected_out != block) {
		scsi_fail_field(task, r.length_byte, 7);
	} else {
		start(task->lu_private, &r);
		return;
	}
	scsi_complete(task);
}
