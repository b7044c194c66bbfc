/* SPDX-License-Identifier: MIT */
/*
 * GET LBA STATUS.
 *
 * Invariants:
 * 1. Deallocated (1h) is said only of blocks that the device calls deallocated and reading as
 *    zeroes, on a logical unit that says it is thin; of everything else mapped or unknown (0h).
 * 2. Each run was so at a moment between the command's arrival and its status: a write that
 *    ended before is seen. No range is held for that. A command still on its way may count or
 *    not, as SAM-5 has it of commands without an order, and a lock over all the rest of the
 *    medium would hold up every write for the sake of an answer that the next one changes.
 * 3. At most LOOKS questions to the device; what they did not get to, the answer leaves out.
 *    The first block asked for is always there.
 *
 * Not here: what is allocated (backstore/).
 *
 * Spec: SBC-3 5.4.
 */
#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

#define HEADER 8
#define DESCRIPTOR 16
#define LOOKS 512
#define DEALLOCATED 1

static void put(struct scsi_task *task, uint64_t at, const uint8_t *bytes, uint64_t length)
{
	uint64_t room = task->data.length;

	if (at < room)
		buf_write(&task->data, at, bytes, min_u64(length, room - at));
}

/* The run gathered so far becomes a descriptor. */
static void put_run(struct lu_task *lt)
{
	uint8_t d[DESCRIPTOR] = { 0 };

	put_be64(d, lt->offset / lt->lu->block_size);
	put_be32(d + 8, (uint32_t)(lt->length / lt->lu->block_size));
	d[12] = lt->provisioning;
	put(lt->task, HEADER + (uint64_t)lt->item++ * DESCRIPTOR, d, DESCRIPTOR);
	lt->offset += lt->length;
	lt->length = 0;
}

static bool room_for_more(const struct lu_task *lt)
{
	return HEADER + (lt->item + 1ull) * DESCRIPTOR <= lt->task->transfer_length;
}

static void answer(struct lu_task *lt)
{
	struct scsi_task *task = lt->task;
	uint8_t header[HEADER] = { 0 };
	uint64_t length;

	if (lt->length)
		put_run(lt);
	length = HEADER + (uint64_t)lt->item * DESCRIPTOR;
	put_be32(header, (uint32_t)(length - 4));
	put(task, 0, header, HEADER);
	task->data_in_length = min_u64(length, task->transfer_length);
	scsi_complete(task);
}

static void look(struct lu_task *lt);

static void looked(struct lu_task *lt)
{
	bool zeroes = lt->io.run == IO_RUN_ZEROES && lu_thin(lt->lu);
	uint8_t provisioning = zeroes ? DEALLOCATED : 0;
	uint64_t most = UINT32_MAX * (uint64_t)lt->lu->block_size; /* of a descriptor */

	lt->done++;
	if (lt->length && (lt->provisioning != provisioning || lt->length == most)) {
		put_run(lt);
		if (!room_for_more(lt)) {
			answer(lt);
			return;
		}
	}
	lt->provisioning = provisioning;
	lt->length = min_u64(lt->length + lt->io.run_bytes, most);
	look(lt);
}

static void look(struct lu_task *lt)
{
	uint64_t at = lt->offset + lt->length, size = lt->lu->blk->size_bytes;

	/* The size may have changed since the command came. */
	if (lt->done == LOOKS || at >= size)
		answer(lt);
	else
		lu_io(lt, IO_STATUS, at, size - at, 0, looked);
}

void scsi_get_lba_status(struct scsi_task *task)
{
	uint64_t lba = get_be64(task->cdb + 2);
	struct lu_task *lt = task->lu_private;

	if (!lu_check_range(task, lba, 1)) {
		scsi_complete(task);
		return;
	}
	lt->item = 0;
	lt->offset = lba * task->lu->block_size;
	lt->length = 0;
	look(lt);
}
