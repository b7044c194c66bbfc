/* SPDX-License-Identifier: MIT */
/*
 * The logical unit at its home: tasks that may run, the range lock, the block device.
 *
 *   lu_run() ─▶ op->run() ─▶ lu_transfer() ─▶ [waits for its range] ─▶ piece by piece ─▶ scsi_complete()
 *                   │                                 │ lu_sweep(): aborted        ▲
 *                   └── answered at once ─────────────┴────────────────────────────┘
 *
 * Invariants:
 * 1. (I11) A read waits behind overlapping writes in flight, overlapping writes go one after
 *    the other in the order of their coming; what it waits for, it cannot see half done.
 * 2. A task has one lu_task of the pool from lu_run() to scsi_complete(); an empty pool is
 *    TASK SET FULL, never an allocation.
 * 3. An aborted task that waits is withdrawn; one at the device ends with its current piece.
 * 4. With WCE=0 every write carries FUA: GOOD means durable.
 *
 * Not here: attributes and aborts (task_set.c, task_management.c), CDBs (rw.c and its neighbours).
 *
 * Spec: SAM-5 5, SBC-3 4.15 (caching).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

#define TASKS_DEFAULT 512

/* ---- life */

static void announce_resize(struct scsi_lu *lu);

static void destroy(struct scsi_lu *lu)
{
	assert(TAILQ_EMPTY(&lu->active));
	rangelock_free(lu->lock);
	blk_unref(lu->blk);
	free(lu->pool);
	free(lu);
}

/* Back from the front, where the hosts' nexuses have learnt of it. */
static void resize_told(struct shard_msg *msg)
{
	struct scsi_lu *lu = container_of(msg, struct scsi_lu, resized);

	lu->resize_travels = false;
	if (lu->dying)
		destroy(lu);
	else if (lu->resize_again)
		announce_resize(lu);
}

static void resize_at_front(struct shard_msg *msg)
{
	struct scsi_lu *lu = container_of(msg, struct scsi_lu, resized);

	device_raise(lu, UA_CAPACITY_CHANGED, NULL);
	msg->fn = resize_told;
	shard_send(lu->home, msg);
}

static void announce_resize(struct scsi_lu *lu)
{
	struct shard *front = atomic_load(&lu->front);

	if (lu->resize_travels) {
		lu->resize_again = true;
		return;
	}
	lu->resize_again = false;
	if (!front) /* nobody sees it */
		return;
	lu->resize_travels = true;
	lu->resized.fn = resize_at_front;
	shard_send(front, &lu->resized);
}

static void blk_changed(struct blk_watch *watch)
{
	struct scsi_lu *lu = container_of(watch, struct scsi_lu, watch);

	if (lu->blk->size_bytes == lu->size_bytes)
		return;
	lu->size_bytes = lu->blk->size_bytes;
	announce_resize(lu);
}

static void set_identity(struct scsi_lu *lu, const struct scsi_lu_config *config)
{
	uuid_copy(lu->uuid, config->uuid);
	uuid_unparse_lower(lu->uuid, lu->uuid_text);
	lu->oui = config->oui;
	strncpy(lu->product, config->product ? config->product : "disk", sizeof(lu->product) - 1);
}

void lu_reset(struct scsi_lu *lu)
{
	atomic_store(&lu->d_sense, false);
	atomic_store(&lu->swp, false);
	atomic_store(&lu->tas, true);
	lu->wce = lu->write_cache;
}

struct scsi_lu *scsi_lu_new(const struct scsi_lu_config *config)
{
	unsigned i, tasks = config->tasks_max ? config->tasks_max : TASKS_DEFAULT;
	struct scsi_lu *lu = calloc(1, sizeof(*lu));

	if (!lu)
		return NULL;
	lu->pool = calloc(tasks, sizeof(*lu->pool));
	lu->lock = rangelock_new(shard_env(config->home));
	if (!lu->pool || !lu->lock) {
		if (lu->lock)
			rangelock_free(lu->lock);
		free(lu->pool);
		free(lu);
		errno = ENOMEM;
		return NULL;
	}
	lu->home = config->home;
	set_identity(lu, config);
	lu->write_cache = config->write_cache;
	lu->read_only = config->read_only;
	lu_reset(lu);
	SLIST_INIT(&lu->free);
	TAILQ_INIT(&lu->active);
	LIST_INIT(&lu->mappings);
	task_set_init(&lu->set);
	for (i = tasks; i-- > 0;)
		SLIST_INSERT_HEAD(&lu->free, &lu->pool[i], free_link);
	lu->blk = blk_ref(config->blk);
	lu->block_size = lu->blk->block_size;
	lu->size_bytes = lu->blk->size_bytes;
	lu->watch.changed = blk_changed;
	blk_watch(lu->blk, &lu->watch);
	lu->refs = 1;
	return lu;
}

struct scsi_lu *scsi_lu_ref(struct scsi_lu *lu)
{
	assert(lu->refs > 0);
	lu->refs++;
	return lu;
}

static void leave_home(struct shard_msg *msg)
{
	struct scsi_lu *lu = container_of(msg, struct scsi_lu, bye);

	blk_unwatch(&lu->watch);
	lu->dying = true;
	if (!lu->resize_travels)
		destroy(lu);
}

void scsi_lu_unref(struct scsi_lu *lu)
{
	assert(lu->refs > 0);
	if (--lu->refs > 0)
		return;
	assert(lu->set.count == 0 && LIST_EMPTY(&lu->mappings));
	lu->bye.fn = leave_home;
	shard_send(lu->home, &lu->bye);
}

struct blk *scsi_lu_blk(struct scsi_lu *lu)
{
	return lu->blk;
}

void scsi_lu_stats(const struct scsi_lu *lu, struct scsi_lu_stats *stats)
{
	*stats = lu->stats;
	stats->in_flight = lu->set.count;
}

/* ---- tasks come and go */

void lu_run(struct shard_msg *msg)
{
	struct scsi_task *task = container_of(msg, struct scsi_task, msg);
	struct scsi_lu *lu = task->lu;
	struct lu_task *lt = SLIST_FIRST(&lu->free);

	if (!lt) {
		task->status = SCSI_TASK_SET_FULL;
		scsi_complete(task);
		return;
	}
	SLIST_REMOVE_HEAD(&lu->free, free_link);
	TAILQ_INSERT_TAIL(&lu->active, lt, active_link);
	lt->task = task;
	lt->lu = lu;
	lt->waits = lt->locked = false;
	lt->done = 0;
	lt->drained = NULL;
	task->lu_private = lt;
	if (atomic_load(&task->aborting))
		scsi_complete(task);
	else
		task->op->run(task);
}

static void count(struct scsi_lu *lu, const struct scsi_task *task, const struct lu_task *lt)
{
	if (task->status != SCSI_GOOD)
		lu->stats.errors++;
	if (task->op->length != scsi_rw_length) {
		lu->stats.others++;
	} else if (task->op->flags & OP_WRITE) {
		lu->stats.writes++;
		lu->stats.write_bytes += lt ? lt->done : 0;
	} else {
		lu->stats.reads++;
		lu->stats.read_bytes += lt ? lt->done : 0;
	}
}

void scsi_complete(struct scsi_task *task)
{
	struct lu_task *lt = task->lu_private;
	struct scsi_lu *lu = task->lu;

	if (!task->running) {
		task_set_end(task);
		return;
	}
	count(lu, task, lt);
	if (lt) {
		assert(!lt->waits);
		if (lt->locked)
			rangelock_release(lu->lock, &lt->hold);
		TAILQ_REMOVE(&lu->active, lt, active_link);
		SLIST_INSERT_HEAD(&lu->free, lt, free_link);
		task->lu_private = NULL;
	}
	task->msg.fn = task_set_back;
	shard_send(task->nexus->device->front, &task->msg);
}

void scsi_reply(struct scsi_task *task, const void *data, uint64_t length)
{
	uint64_t room = task->data.length;

	length = min_u64(length, task->transfer_length);
	if (length && room)
		buf_write(&task->data, 0, data, min_u64(length, room));
	task->data_in_length = length;
	scsi_complete(task);
}

void lu_sweep(struct scsi_lu *lu)
{
	struct lu_task *lt;

	do {
		TAILQ_FOREACH(lt, &lu->active, active_link)
			if (lt->waits && atomic_load(&lt->task->aborting))
				break;
		if (lt) {
			rangelock_withdraw(lu->lock, &lt->hold);
			lt->waits = false;
			scsi_complete(lt->task);
		}
	} while (lt);
}

/* ---- checks */

bool lu_write_protected(const struct scsi_task *task)
{
	const struct scsi_lu *lu = task->lu;

	return task->read_only || lu->read_only || lu->blk->features & BLK_READ_ONLY ||
	       lu->blk->state == BLK_READ_ONLY_NOW || atomic_load(&lu->swp);
}

bool lu_thin(const struct scsi_lu *lu)
{
	static const uint8_t unmap[SCSI_CDB_MAX] = { 0x42 };
	bool known;

	return lu->blk->features & BLK_UNMAP && optable_find(unmap, &known);
}

bool lu_check_range(struct scsi_task *task, uint64_t lba, uint64_t blocks)
{
	uint64_t size = lu_blocks(task->lu);

	if (lba < size && blocks <= size - lba)
		return true;
	scsi_fail_info(task, SCSI_R_LBA_RANGE, lba);
	return false;
}

/* ---- data */

static void step(struct lu_task *lt);

static void piece_done(struct io *io, void *arg)
{
	struct lu_task *lt = arg;

	if (io->error) {
		scsi_fail_errno(lt->task, io->error, lt->write,
				(lt->offset + lt->done) / lt->lu->block_size);
		scsi_complete(lt->task);
		return;
	}
	lt->done += io->length;
	step(lt);
}

static void piece(struct lu_task *lt)
{
	struct scsi_lu *lu = lt->lu;
	uint64_t most = lt->length - lt->done, covered;
	unsigned n;

	if (lu->blk->max_io)
		most = min_u64(most, align_down(lu->blk->max_io, lu->block_size));
	n = buf_slice(&lt->task->data, lt->done, most, lt->iov, LU_IOV, &covered);
	assert(covered > 0 && covered % lu->block_size == 0);
	io_init(&lt->io, lt->write ? IO_WRITE : IO_READ, lt->offset + lt->done, covered, lt->iov,
		n);
	lt->io.flags = lt->flags;
	blk_submit(lu->blk, &lt->io, piece_done, lt);
}

static void step(struct lu_task *lt)
{
	if (atomic_load(&lt->task->aborting) || lt->done == lt->length)
		scsi_complete(lt->task);
	else
		piece(lt);
}

static void flushed(struct io *io, void *arg)
{
	struct lu_task *lt = arg;

	if (io->error) {
		scsi_fail_errno(lt->task, io->error, true, lt->offset / lt->lu->block_size);
		scsi_complete(lt->task);
		return;
	}
	if (lt->drained && !atomic_load(&lt->task->aborting))
		lt->drained(lt->task);
	else
		step(lt);
}

/* A read with FUA comes from the medium: what a volatile cache has goes there first. */
static void granted(struct rangelock_hold *hold)
{
	struct lu_task *lt = container_of(hold, struct lu_task, hold);

	lt->waits = false;
	lt->locked = true;
	/* Not before: while it waited the cache may have been turned off. */
	if (lt->write && !lt->lu->wce)
		lt->flags |= IO_FUA;
	if (!lt->flush_first) {
		step(lt);
		return;
	}
	io_init(&lt->io, IO_FLUSH, 0, 0, NULL, 0);
	blk_submit(lt->lu->blk, &lt->io, flushed, lt);
}

static void take_range(struct lu_task *lt)
{
	memset(&lt->hold, 0, sizeof(lt->hold));
	lt->hold.offset = lt->offset;
	lt->hold.length = lt->length;
	lt->hold.exclusive = lt->write;
	lt->hold.fn = granted;
	if (rangelock_take(lt->lu->lock, &lt->hold))
		granted(&lt->hold);
	else
		lt->waits = true;
}

void lu_transfer(struct scsi_task *task, bool write, unsigned flags, uint64_t offset,
		 uint64_t length)
{
	struct lu_task *lt = task->lu_private;
	struct scsi_lu *lu = task->lu;

	if (length == 0) {
		scsi_complete(task);
		return;
	}
	lt->write = write;
	lt->flush_first = !write && flags & IO_FUA && lu->wce;
	lt->flags = write ? flags : flags & ~IO_FUA;
	lt->offset = offset;
	lt->length = length;
	take_range(lt);
}

static void flush_done(struct io *io, void *arg)
{
	struct lu_task *lt = arg;

	if (io->error)
		scsi_fail_errno(lt->task, io->error, true, 0);
	scsi_complete(lt->task);
}

void lu_flush(struct scsi_task *task)
{
	struct lu_task *lt = task->lu_private;

	io_init(&lt->io, IO_FLUSH, 0, 0, NULL, 0);
	blk_submit(task->lu->blk, &lt->io, flush_done, lt);
}

void lu_drain_and_flush(struct scsi_task *task, void (*then)(struct scsi_task *task))
{
	struct lu_task *lt = task->lu_private;

	lt->drained = then;
	lt->write = true;
	lt->flush_first = true;
	lt->offset = 0;
	lt->length = lt->done = task->lu->blk->size_bytes; /* nothing to move */
	take_range(lt);
}
