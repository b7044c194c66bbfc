/* SPDX-License-Identifier: MIT */
/*
 * What a task does at the medium: holds a range, does one io after the other, gives it back.
 *
 * Invariants:
 * 1. (I11) A read waits behind overlapping writes in flight, overlapping writes go one after
 *    the other in the order of their coming; what it waits for, it cannot see half done.
 * 2. A task holds one range at a time and has all its memory before it asks for that: who
 *    holds waits for nothing but its device.
 * 3. An aborted task ends with the io that is under way.
 * 4. With WCE=0 every write carries FUA: GOOD means durable.
 *
 * Not here: which ios make up a command (the files named after them), the pool of tasks (lu.c).
 *
 * Spec: SBC-3 4.15 (caching).
 */
#include <string.h>

#include "target/scsi/lu_int.h"
#include "target/scsi/sanitize.h"
#include "target/scsi/sense.h"

/* ---- one io */

static void io_ended(struct io *io, void *arg)
{
	struct lu_task *lt = arg;
	bool writes = io_op_modifies(io->op) || io->op == IO_FLUSH;

	if (io->error) {
		scsi_fail_errno(lt->task, io->error, writes, io->offset / lt->lu->block_size);
		scsi_complete(lt->task);
	} else if (atomic_load(&lt->task->aborting)) {
		scsi_complete(lt->task);
	} else {
		lt->next(lt);
	}
}

void lu_io(struct lu_task *lt, enum io_op op, uint64_t offset, uint64_t length, unsigned iov_count,
	   lu_step_fn *next)
{
	lt->next = next;
	io_init(&lt->io, op, offset, length, iov_count ? lt->iov : NULL, iov_count);
	if (op != IO_FLUSH)
		lt->io.flags = io_op_modifies(op) ? lt->flags : lt->flags & ~IO_FUA;
	if (lt->task->express)
		lt->io.flags |= IO_LANE;
	blk_submit(lt->lu->blk, &lt->io, io_ended, lt);
}

uint64_t lu_most(const struct scsi_lu *lu, uint64_t length)
{
	if (!lu->blk->max_io)
		return length;
	return min_u64(length, align_down(lu->blk->max_io, lu->block_size));
}

/* ---- the range */

static void granted(struct rangelock_hold *hold)
{
	struct lu_task *lt = container_of(hold, struct lu_task, hold);

	lt->waits = false;
	lt->locked = true;
	/* Not before: while it waited the cache may have been turned off. */
	if (hold->exclusive && !lt->lu->wce)
		lt->flags |= IO_FUA;
	lt->next(lt);
}

void lu_hold(struct lu_task *lt, bool exclusive, uint64_t offset, uint64_t length, lu_step_fn *next)
{
	/* A command of several ranges does not go on behind a sanitize operation. */
	if (sanitize_refuses(lt->task)) {
		scsi_complete(lt->task);
		return;
	}
	lt->next = next;
	memset(&lt->hold, 0, sizeof(lt->hold));
	lt->hold.offset = offset;
	lt->hold.length = length;
	lt->hold.exclusive = exclusive;
	lt->hold.fn = granted;
	if (rangelock_take(lt->lu->lock, &lt->hold))
		granted(&lt->hold);
	else
		lt->waits = true;
}

void lu_release(struct lu_task *lt)
{
	if (lt->locked)
		rangelock_release(lt->lu->lock, &lt->hold);
	lt->locked = false;
}

/* ---- memory */

uint8_t *lu_scratch(const struct lu_task *lt)
{
	const struct buf_list *data = &lt->task->data;

	assert(lt->task->op->flags & OP_SCRATCH && data->iov[data->count - 1].iov_len == BUF_UNIT);
	return data->iov[data->count - 1].iov_base;
}

uint64_t lu_scratch_iov(struct lu_task *lt, uint64_t length, unsigned *count)
{
	uint64_t left = min_u64(lu_most(lt->lu, length), LU_IOV * BUF_UNIT), done = 0;
	unsigned n = 0;

	while (done < left) {
		lt->iov[n].iov_base = lu_scratch(lt);
		lt->iov[n].iov_len = min_u64(left - done, BUF_UNIT);
		done += lt->iov[n++].iov_len;
	}
	*count = n;
	return done;
}

uint64_t lu_difference(const struct lu_task *lt, uint64_t at, uint64_t length)
{
	const uint8_t *mem = lu_scratch(lt), *data;
	struct iovec iov[2];
	uint64_t covered, same = 0, i;
	unsigned n, e;

	assert(length <= BUF_UNIT);
	n = buf_slice(&lt->task->data, at, length, iov, 2, &covered);
	assert(covered == length);
	for (e = 0; e < n; same += iov[e++].iov_len) {
		data = iov[e].iov_base;
		if (!memcmp(mem + same, data, iov[e].iov_len))
			continue;
		for (i = 0; mem[same + i] == data[i]; i++)
			;
		return same + i;
	}
	return length;
}

/* ---- whole commands */

static void moved(struct lu_task *lt);

static void transfer(struct lu_task *lt)
{
	struct scsi_lu *lu = lt->lu;
	uint64_t covered;
	unsigned n;

	if (lt->done == lt->length) {
		lt->then(lt);
		return;
	}
	n = buf_slice(&lt->task->data, lt->done, lu_most(lu, lt->length - lt->done), lt->iov,
		      LU_IOV, &covered);
	assert(covered > 0 && covered % lu->block_size == 0);
	lu_io(lt, lt->write ? IO_WRITE : IO_READ, lt->offset + lt->done, covered, n, moved);
}

static void moved(struct lu_task *lt)
{
	lt->done += lt->io.length;
	transfer(lt);
}

static void transfer_held(struct lu_task *lt)
{
	/* A read with FUA comes from the medium: what a volatile cache has goes there first. */
	if (!lt->write && lt->flags & IO_FUA && lt->lu->wce)
		lu_io(lt, IO_FLUSH, 0, 0, 0, transfer);
	else
		transfer(lt);
}

void lu_transfer(struct scsi_task *task, bool write, unsigned flags, uint64_t offset,
		 uint64_t length, lu_step_fn *then)
{
	struct lu_task *lt = task->lu_private;

	if (length == 0) {
		scsi_complete(task);
		return;
	}
	lt->write = write;
	lt->flags = flags;
	lt->offset = offset;
	lt->length = length;
	lt->then = then;
	lu_hold(lt, write, offset, length, transfer_held);
}

void lu_end(struct lu_task *lt)
{
	scsi_complete(lt->task);
}

void lu_flush(struct scsi_task *task)
{
	lu_io(task->lu_private, IO_FLUSH, 0, 0, 0, lu_end);
}

static void drained(struct lu_task *lt)
{
	lu_io(lt, IO_FLUSH, 0, 0, 0, lt->then);
}

void lu_drain_and_flush(struct scsi_task *task, lu_step_fn *then)
{
	struct lu_task *lt = task->lu_private;

	lt->then = then;
	lu_hold(lt, true, 0, task->lu->blk->size_bytes, drained);
}
