/* SPDX-License-Identifier: MIT */
/*
 * READ and WRITE (6, 10, 12, 16).
 *
 * Invariants:
 * 1. Checks come in the order: protection, transfer length, LBA range, write protection; each
 *    names its field.
 * 2. A WRITE that the initiator gave less data than the CDB says writes the whole blocks of
 *    what came, and no more; a READ with less room reads what fits.
 *
 * Not here: order, range lock, pieces (lu.c), residuals (the front).
 *
 * Spec: SBC-3 5.11 to 5.14, 5.32 to 5.36.
 */
#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

#define BYTE1_FUA 0x08
#define BYTE1_DPO 0x10
#define BYTE1_PROTECT 0xe0

struct range {
	uint64_t lba;
	uint64_t blocks;
	unsigned length_byte; /* where the CDB has it */
	uint8_t flags;        /* byte 1, if it has flags */
};

static struct range decode(const uint8_t *cdb)
{
	switch (cdb[0] & 0xe0) { /* the group code tells the layout */
	case 0x00:
		return (struct range){ get_be24(cdb + 1) & 0x1fffff, cdb[4] ? cdb[4] : 256, 4, 0 };
	case 0x20:
		return (struct range){ get_be32(cdb + 2), get_be16(cdb + 7), 7, cdb[1] };
	case 0xa0:
		return (struct range){ get_be32(cdb + 2), get_be32(cdb + 6), 6, cdb[1] };
	default:
		return (struct range){ get_be64(cdb + 2), get_be32(cdb + 10), 10, cdb[1] };
	}
}

uint64_t scsi_rw_length(const struct scsi_task *task)
{
	struct range r = decode(task->cdb);

	return r.flags & BYTE1_PROTECT ? UINT64_MAX : r.blocks * task->lu->block_size;
}

void scsi_read_write(struct scsi_task *task)
{
	bool write = task->op->flags & OP_WRITE;
	struct range r = decode(task->cdb);
	uint64_t block = task->lu->block_size, length = r.blocks * block;
	unsigned flags = 0;

	if (r.flags & BYTE1_PROTECT) { /* the medium has no protection information */
		scsi_fail_field(task, 1, 7);
	} else if (length > SCSI_TRANSFER_MAX) {
		scsi_fail_field(task, r.length_byte, 7);
	} else if (!lu_check_range(task, r.lba, r.blocks)) {
		/* has failed */
	} else if (write && lu_write_protected(task)) {
		scsi_fail(task, SCSI_R_WRITE_PROTECTED);
	} else {
		flags |= r.flags & BYTE1_FUA ? IO_FUA : 0;
		flags |= r.flags & BYTE1_DPO ? IO_DPO : 0;
		if (!write)
			task->data_in_length = length;
		length = min_u64(length, write ? task->data_out_length : task->data.length);
		length = align_down(length, block);
		lu_transfer(task, write, flags, r.lba * block, length);
		return;
	}
	scsi_complete(task);
}
