/* SPDX-License-Identifier: MIT */
/*
 * COMPARE AND WRITE, and ORWRITE (16): the medium is read, then written from what was read.
 *
 * Invariants:
 * 1. The range is held exclusively from before the read until after the write: to every other
 *    command, over whatever path, it happens at once.
 * 2. COMPARE AND WRITE writes nothing unless every byte was equal. A difference is 0E/1D/00
 *    with INFORMATION the offset of the first one in the Data-Out.
 * 3. COMPARE AND WRITE does not run with more or less Data-Out than the CDB says: nobody could
 *    tell which half is which.
 * 4. COMPARE AND WRITE goes past bulk I/O: hosts hold their locks and heartbeats with it.
 *
 * Not here: who waits for whom (rangelock.h), memory (device.c asks the front for it).
 *
 * Spec: SBC-3 5.2 (COMPARE AND WRITE), 5.8 (ORWRITE).
 */
#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

#define CAW_BLOCKS 13 /* byte of the CDB */

/* ---- COMPARE AND WRITE */

uint64_t scsi_compare_write_length(const struct scsi_task *task)
{
	uint64_t half = (uint64_t)task->cdb[CAW_BLOCKS] * task->lu->block_size;

	return half > SCSI_CAW_MAX || task->cdb[1] & SCSI_BYTE1_PROTECT ? UINT64_MAX : 2 * half;
}

static void write_part(struct lu_task *lt);

static void part_written(struct lu_task *lt)
{
	lt->done += lt->io.length;
	write_part(lt);
}

/* Through scratch memory: the second half may begin where the device cannot take it from. */
static void write_part(struct lu_task *lt)
{
	uint64_t length = lu_most(lt->lu, lt->length - lt->done);
	unsigned count;

	if (!length) {
		scsi_complete(lt->task);
		return;
	}
	buf_read(&lt->task->data, lt->length + lt->done, lu_scratch(lt), length);
	lu_scratch_iov(lt, length, &count);
	lu_io(lt, IO_WRITE, lt->offset + lt->done, length, count, part_written);
}

static void compare_part(struct lu_task *lt);

static void part_read(struct lu_task *lt)
{
	uint64_t same = lu_difference(lt, lt->done, lt->io.length);

	if (same < lt->io.length) {
		scsi_fail_info(lt->task, SCSI_R_MISCOMPARE, lt->done + same);
		scsi_complete(lt->task);
		return;
	}
	lt->done += same;
	compare_part(lt);
}

static void compare_part(struct lu_task *lt)
{
	uint64_t length = lu_most(lt->lu, lt->length - lt->done);
	unsigned count;

	if (!length) {
		lt->done = 0;
		write_part(lt);
		return;
	}
	lu_scratch_iov(lt, length, &count);
	lu_io(lt, IO_READ, lt->offset + lt->done, length, count, part_read);
}

void scsi_compare_write(struct scsi_task *task)
{
	struct scsi_range r = { get_be64(task->cdb + 2), task->cdb[CAW_BLOCKS], CAW_BLOCKS,
				task->cdb[1] };
	uint64_t half = r.blocks * task->lu->block_size;
	struct lu_task *lt = task->lu_private;

	if (!scsi_range_check(task, &r)) {
		/* has failed */
	} else if (half > SCSI_CAW_MAX || task->expected_out != 2 * half) {
		scsi_fail_field(task, CAW_BLOCKS, 7);
	} else if (half) {
		lt->flags = scsi_range_flags(&r);
		lt->offset = r.lba * task->lu->block_size;
		lt->length = half;
		lu_hold(lt, true, lt->offset, lt->length, compare_part);
		return;
	}
	scsi_complete(task);
}

/* ---- ORWRITE */

static void or_part(struct lu_task *lt);

static void or_written(struct lu_task *lt)
{
	lt->done += lt->io.length;
	or_part(lt);
}

static void or_read(struct lu_task *lt)
{
	uint64_t length = lt->io.length, at = 0, covered, i;
	uint8_t *mem = lu_scratch(lt);
	const uint8_t *data;
	struct iovec iov;

	while (at < length) {
		buf_slice(&lt->task->data, lt->done + at, length - at, &iov, 1, &covered);
		data = iov.iov_base;
		for (i = 0; i < covered; i++)
			mem[at + i] |= data[i];
		at += covered;
	}
	lu_io(lt, IO_WRITE, lt->offset + lt->done, length, 1, or_written);
}

static void or_part(struct lu_task *lt)
{
	uint64_t length = min_u64(lt->length - lt->done, BUF_UNIT);
	unsigned count;

	if (!length) {
		scsi_complete(lt->task);
		return;
	}
	length = lu_scratch_iov(lt, length, &count);
	lu_io(lt, IO_READ, lt->offset + lt->done, length, count, or_read);
}

void scsi_orwrite(struct scsi_task *task)
{
	struct scsi_range r = scsi_range(task->cdb);
	struct lu_task *lt = task->lu_private;

	if (scsi_range_check(task, &r)) {
		lt->flags = scsi_range_flags(&r);
		lt->offset = r.lba * task->lu->block_size;
		lt->length = scsi_range_came(task, &r);
		if (lt->length) {
			lu_hold(lt, true, lt->offset, lt->length, or_part);
			return;
		}
	}
	scsi_complete(task);
}
