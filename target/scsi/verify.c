/* SPDX-License-Identifier: MIT */
/*
 * VERIFY and WRITE AND VERIFY (10, 12, 16).
 *
 * Invariants:
 * 1. BYTCHK 0 reads the blocks from the medium, 1 compares each with its own in the Data-Out,
 *    3 compares each with the one block that came. What a volatile cache has goes to the
 *    medium first.
 * 2. A difference is 0E/1D/00; INFORMATION is the LBA of the first block that differs.
 * 3. Data-Out shorter than the CDB says: the whole blocks of what came are compared, no more.
 *    The one block of BYTCHK 3 has to be there: GOOD would say that something was compared.
 * 4. WRITE AND VERIFY holds its range over both halves: it reads what it wrote itself.
 *
 * Not here: residuals (the front).
 *
 * Spec: SBC-3 5.29 to 5.31 (VERIFY), 5.37 to 5.39 (WRITE AND VERIFY).
 */
#include <string.h>

#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

/* BYTCHK. */
enum { MEDIUM, EACH, RESERVED, ONE };

static unsigned bytchk(const struct scsi_task *task)
{
	return task->cdb[1] >> 1 & 3;
}

/* Bit 3 of byte 1 is reserved here, not FUA. */
static struct scsi_range decode(const uint8_t *cdb)
{
	struct scsi_range r = scsi_range(cdb);

	r.flags &= (uint8_t)~SCSI_BYTE1_FUA;
	return r;
}

uint64_t scsi_verify_length(const struct scsi_task *task)
{
	struct scsi_range r = decode(task->cdb);
	uint64_t length = r.blocks * task->lu->block_size;

	if (r.flags & SCSI_BYTE1_PROTECT || length > SCSI_TRANSFER_MAX)
		return UINT64_MAX;
	switch (bytchk(task)) {
	case EACH:
		return length;
	case ONE:
		return r.blocks ? task->lu->block_size : 0;
	default:
		return 0;
	}
}

static void next_part(struct lu_task *lt);

/* The first byte in which what was read differs from what it should be; LENGTH: none. */
static uint64_t difference(const struct lu_task *lt, uint64_t length)
{
	uint64_t block = lt->lu->block_size, done, at;
	const uint8_t *mem = lu_scratch(lt);
	struct iovec one;

	if (bytchk(lt->task) == EACH)
		return lu_difference(lt, lt->done, length);
	buf_slice(&lt->task->data, 0, block, &one, 1, &at);
	for (done = 0; done < length; done += block)
		if (memcmp(mem + done, one.iov_base, block))
			return done;
	return length;
}

static void part_read(struct lu_task *lt)
{
	uint64_t length = lt->io.length, same = length;

	if (bytchk(lt->task) != MEDIUM)
		same = difference(lt, length);
	if (same < length) {
		scsi_fail_info(lt->task, SCSI_R_MISCOMPARE,
			       (lt->offset + lt->done + same) / lt->lu->block_size);
		scsi_complete(lt->task);
		return;
	}
	lt->done += length;
	next_part(lt);
}

static void next_part(struct lu_task *lt)
{
	uint64_t left = lt->length - lt->done;
	unsigned count;

	if (!left) {
		scsi_complete(lt->task);
		return;
	}
	/* What nobody looks at may be read on top of each other. */
	if (bytchk(lt->task) != MEDIUM)
		left = min_u64(left, BUF_UNIT);
	left = lu_scratch_iov(lt, left, &count);
	lu_io(lt, IO_READ, lt->offset + lt->done, left, count, part_read);
}

static void from_medium(struct lu_task *lt)
{
	lt->done = 0;
	if (lt->lu->wce)
		lu_io(lt, IO_FLUSH, 0, 0, 0, next_part);
	else
		next_part(lt);
}

void scsi_verify(struct scsi_task *task)
{
	struct scsi_range r = decode(task->cdb);
	struct lu_task *lt = task->lu_private;
	uint64_t block = task->lu->block_size;

	if (bytchk(task) == RESERVED) {
		scsi_fail_field(task, 1, 2);
	} else if (!scsi_range_check(task, &r)) {
		/* it has failed */
	} else if (bytchk(task) == ONE && r.blocks && task->data_out_length < block) {
		scsi_fail_field(task, r.length_byte, 7);
	} else {
		lt->length = r.blocks * block;
		if (bytchk(task) == EACH)
			lt->length = scsi_range_came(task, &r);
		lt->offset = r.lba * block;
		lt->flags = scsi_range_flags(&r);
		if (lt->length) {
			lu_hold(lt, false, lt->offset, lt->length, from_medium);
			return;
		}
	}
	scsi_complete(task);
}

void scsi_write_verify(struct scsi_task *task)
{
	struct scsi_range r = decode(task->cdb);

	if (bytchk(task) > EACH)
		scsi_fail_field(task, 1, 2);
	else if (scsi_range_check(task, &r)) {
		lu_transfer(task, true, scsi_range_flags(&r), r.lba * task->lu->block_size,
			    scsi_range_came(task, &r), from_medium);
		return;
	}
	scsi_complete(task);
}
