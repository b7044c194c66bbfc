/* SPDX-License-Identifier: MIT */
/*
 * READ and WRITE (6, 10, 12, 16), WRITE ATOMIC (16).
 *
 * Invariants:
 * 1. Checks come in the order: protection, transfer length, LBA range, write protection; each
 *    names its field.
 * 2. A WRITE that the initiator gave less data than the CDB says writes the whole blocks of
 *    what came, and no more; a READ with less room reads what fits.
 * 3. WRITE ATOMIC is one io: longer ones than an io of lu_io.c takes are refused, and the
 *    row is there only on a device that does a whole io or nothing of it.
 *
 * Not here: order, range lock, pieces (lu_io.c), residuals (the front).
 *
 * Spec: SBC-3 5.11 to 5.14, 5.32 to 5.36; SBC-4 5.50 (WRITE ATOMIC).
 */
#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

struct scsi_range scsi_range(const uint8_t *cdb)
{
	switch (cdb[0] & 0xe0) { /* the group code tells the layout */
	case 0x00:
		return (struct scsi_range){ get_be24(cdb + 1) & 0x1fffff, cdb[4] ? cdb[4] : 256, 4,
					    0 };
	case 0x20:
		return (struct scsi_range){ get_be32(cdb + 2), get_be16(cdb + 7), 7, cdb[1] };
	case 0xa0:
		return (struct scsi_range){ get_be32(cdb + 2), get_be32(cdb + 6), 6, cdb[1] };
	default:
		return (struct scsi_range){ get_be64(cdb + 2), get_be32(cdb + 10), 10, cdb[1] };
	}
}

bool scsi_range_check(struct scsi_task *task, const struct scsi_range *range)
{
	if (range->flags & SCSI_BYTE1_PROTECT) /* the medium has no protection information */
		scsi_fail_field(task, 1, 7);
	else if (range->blocks * task->lu->block_size > SCSI_TRANSFER_MAX)
		scsi_fail_field(task, range->length_byte, 7);
	else if (!lu_check_range(task, range->lba, range->blocks))
		return false;
	else if (task->op->flags & OP_WRITE && lu_write_protected(task))
		scsi_fail(task, SCSI_R_WRITE_PROTECTED);
	else
		return true;
	return false;
}

unsigned scsi_range_flags(const struct scsi_range *range)
{
	return (range->flags & SCSI_BYTE1_FUA ? IO_FUA : 0) |
	       (range->flags & SCSI_BYTE1_DPO ? IO_DPO : 0);
}

uint64_t scsi_range_came(const struct scsi_task *task, const struct scsi_range *range)
{
	uint64_t block = task->lu->block_size;

	return align_down(min_u64(range->blocks * block, task->data_out_length), block);
}

uint64_t scsi_rw_length(const struct scsi_task *task)
{
	struct scsi_range r = scsi_range(task->cdb);

	return r.flags & SCSI_BYTE1_PROTECT ? UINT64_MAX : r.blocks * task->lu->block_size;
}

void scsi_read_write(struct scsi_task *task)
{
	bool write = task->op->flags & OP_WRITE;
	struct scsi_range r = scsi_range(task->cdb);
	uint64_t block = task->lu->block_size, length;

	if (!scsi_range_check(task, &r)) {
		scsi_complete(task);
		return;
	}
	if (write) {
		length = scsi_range_came(task, &r);
	} else {
		task->data_in_length = r.blocks * block;
		length = align_down(min_u64(task->data_in_length, task->data.length), block);
	}
	lu_transfer(task, write, scsi_range_flags(&r), r.lba * block, length, lu_end);
}

/* ---- WRITE ATOMIC (16): its length has 16 bits; the atomic boundary is before it */

static struct scsi_range atomic_range(const uint8_t *cdb)
{
	return (struct scsi_range){ get_be64(cdb + 2), get_be16(cdb + 12), 12, cdb[1] };
}

uint64_t scsi_write_atomic_length(const struct scsi_task *task)
{
	struct scsi_range r = atomic_range(task->cdb);
	uint64_t length = r.blocks * task->lu->block_size;

	return r.flags & SCSI_BYTE1_PROTECT || length > SCSI_ATOMIC_MAX ? UINT64_MAX : length;
}

void scsi_write_atomic(struct scsi_task *task)
{
	struct scsi_range r = atomic_range(task->cdb);
	uint64_t block = task->lu->block_size;

	if (!scsi_range_check(task, &r)) {
		/* has failed */
	} else if (r.blocks * block > SCSI_ATOMIC_MAX) {
		scsi_fail_field(task, 12, 7);
	} else if (get_be16(task->cdb + 10)) { /* the boundary's maximum in B0h is 0 */
		scsi_fail_field(task, 10, 7);
	} else if (task->data_out_length < r.blocks * block) { /* all of it or nothing */
		scsi_fail_field(task, 12, 7);
	} else {
		lu_transfer(task, true, scsi_range_flags(&r), r.lba * block, r.blocks * block,
			    lu_end);
		return;
	}
	scsi_complete(task);
}
