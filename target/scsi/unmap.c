/* SPDX-License-Identifier: MIT */
/*
 * UNMAP.
 *
 * Invariants:
 * 1. All of a list is checked before anything of it is unmapped.
 * 2. The ranges are unmapped one after the other, each held alone: there is no order in which
 *    two lists could wait for each other.
 *
 * Not here: unmapping by WRITE SAME (write_same.c), what is unmapped (lba_status.c).
 *
 * Spec: SBC-3 5.28.
 */
#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

#define HEADER 8
#define DESCRIPTOR 16

static void descriptor(const struct scsi_task *task, unsigned n, uint64_t *lba, uint32_t *blocks)
{
	uint8_t d[DESCRIPTOR];

	buf_read(&task->data, HEADER + (uint64_t)n * DESCRIPTOR, d, DESCRIPTOR);
	*lba = get_be64(d);
	*blocks = get_be32(d + 8);
}

/* Ranges of the list, which was checked; one that is cut off at its end does not count. */
static unsigned ranges(const struct scsi_task *task)
{
	uint8_t header[HEADER];

	buf_read(&task->data, 0, header, HEADER);
	return get_be16(header + 2) / DESCRIPTOR;
}

static bool check_header(struct scsi_task *task)
{
	uint64_t length = task->transfer_length;
	uint8_t header[HEADER];

	if (length < HEADER || task->data_out_length < length) {
		scsi_fail(task, SCSI_R_PARAMETER_LIST_LENGTH);
		return false;
	}
	buf_read(&task->data, 0, header, HEADER);
	if (get_be16(header) + 2u > length || get_be16(header + 2) + (uint64_t)HEADER > length)
		scsi_fail(task, SCSI_R_PARAMETER_LIST_LENGTH);
	else if (get_be16(header + 2) / DESCRIPTOR > SCSI_UNMAP_RANGES)
		scsi_fail_param(task, 2, 7);
	else
		return true;
	return false;
}

static bool check_ranges(struct scsi_task *task)
{
	uint64_t size = lu_blocks(task->lu), left = SCSI_UNMAP_MAX / task->lu->block_size, lba;
	unsigned n, count = ranges(task);
	uint32_t blocks;

	for (n = 0; n < count; n++) {
		descriptor(task, n, &lba, &blocks);
		if (lba > size || blocks > size - lba) {
			scsi_fail_info(task, SCSI_R_LBA_RANGE, lba);
			return false;
		}
		if (blocks > left) {
			scsi_fail_param(task, HEADER + n * DESCRIPTOR + 8, 7);
			return false;
		}
		left -= blocks;
	}
	return true;
}

static void unmap_range(struct lu_task *lt);

static void next_range(struct lu_task *lt)
{
	uint64_t block = lt->lu->block_size, lba;
	unsigned count = ranges(lt->task);
	uint32_t blocks = 0;

	lu_release(lt);
	while (lt->item < count && !blocks)
		descriptor(lt->task, lt->item++, &lba, &blocks);
	if (!blocks) {
		scsi_complete(lt->task);
		return;
	}
	lt->offset = lba * block;
	lt->length = blocks * block;
	lu_hold(lt, true, lt->offset, lt->length, unmap_range);
}

static void unmap_range(struct lu_task *lt)
{
	lu_io(lt, IO_UNMAP, lt->offset, lt->length, 0, next_range);
}

void scsi_unmap(struct scsi_task *task)
{
	struct lu_task *lt = task->lu_private;

	if (task->cdb[1] & 0x01) /* ANCHOR: ANC_SUP is 0 */
		scsi_fail_field(task, 1, 0);
	else if (lu_write_protected(task))
		scsi_fail(task, SCSI_R_WRITE_PROTECTED);
	else if (get_be16(task->cdb + 7) && check_header(task) && check_ranges(task)) {
		lt->item = 0;
		next_range(lt);
		return;
	}
	scsi_complete(task);
}
