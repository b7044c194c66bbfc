/* SPDX-License-Identifier: MIT */
/*
 * The logical unit at its home: tasks that may run, the range lock, the block device.
 *
 *   lu_run() ─▶ op->run() ─▶ lu_hold() ─▶ [waits for its range] ─▶ io by io, lu_io() ─▶ scsi_complete()
 *                   │                                 │ lu_sweep(): aborted        ▲
 *                   └── answered at once ─────────────┴────────────────────────────┘
 *
 * Invariants:
 * 1. A task has one lu_task of the pool from lu_run() to scsi_complete(); an empty pool is
 *    TASK SET FULL, never an allocation. Bulk I/O leaves some to what goes past it.
 * 2. An aborted task that waits for its range is withdrawn.
 * 3. WCE goes from 1 to 0 by a reset only after a flush, as it does by MODE SELECT.
 *
 * Not here: holds and ios (lu_io.c), attributes and aborts (task_set.c, task_management.c), CDBs (rw.c and its neighbours).
 *
 * Spec: SAM-5 5, SBC-3 4.15 (caching).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/scsi/lu_int.h"
#include "target/scsi/sanitize.h"
#include "target/scsi/sense.h"

#define TASKS_DEFAULT 512
#define TASKS_EXPRESS 16 /* more, for those that go past bulk I/O */

/* ---- life */

static void announce_resize(struct scsi_lu *lu);

static void destroy(struct scsi_lu *lu)
{
	assert(TAILQ_EMPTY(&lu->active) && STAILQ_EMPTY(&lu->savers));
	if (lu->store)
		lu->store->close(lu->store);
	rangelock_free(lu->lock);
	blk_unref(lu->blk);
	free(lu->pool);
	free(lu);
}

void lu_settle(struct scsi_lu *lu)
{
	if (lu->dying && !lu->resize_travels && !lu->cache_flushes && !lu->sanitize)
		destroy(lu);
}

/* Back from the front, where the hosts' nexuses have learnt of it. */
static void resize_told(struct shard_msg *msg)
{
	struct scsi_lu *lu = container_of(msg, struct scsi_lu, resized);

	lu->resize_travels = false;
	if (lu->resize_again && !lu->dying)
		announce_resize(lu);
	else
		lu_settle(lu);
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

/* ---- reset */

static void turn_cache_off(struct scsi_lu *lu);

static void cache_flushed(struct io *io, void *arg)
{
	struct scsi_lu *lu = arg;

	/* If it failed the cache stays on: MODE SENSE says so, and hosts go on flushing. */
	if (!io->error && lu->cache_goes_off)
		lu->wce = false;
	lu->cache_goes_off = false;
	rangelock_release(lu->lock, &lu->cache_hold);
	lu->cache_flushes = false; /* not before: what goes on now may let go of the unit */
	if (lu->cache_goes_off && !lu->dying)
		turn_cache_off(lu);
	else
		lu_settle(lu);
}

static void cache_drained(struct rangelock_hold *hold)
{
	struct scsi_lu *lu = container_of(hold, struct scsi_lu, cache_hold);

	io_init(&lu->cache_io, IO_FLUSH, 0, 0, NULL, 0);
	blk_submit(lu->blk, &lu->cache_io, cache_flushed, lu);
}

/* Off once every command that runs has ended and is durable. */
static void turn_cache_off(struct scsi_lu *lu)
{
	lu->cache_goes_off = true;
	if (lu->cache_flushes)
		return;
	lu->cache_flushes = true;
	memset(&lu->cache_hold, 0, sizeof(lu->cache_hold));
	lu->cache_hold.length = lu->blk->size_bytes;
	lu->cache_hold.exclusive = true;
	lu->cache_hold.fn = cache_drained;
	if (rangelock_take(lu->lock, &lu->cache_hold))
		cache_drained(&lu->cache_hold);
}

void lu_reset(struct scsi_lu *lu)
{
	struct lu_mode mode = lu->saved;
	bool cached = lu->wce;

	lu->cache_goes_off = false;
	mode.wce |= cached;
	lu_mode_set(lu, &mode);
	if (cached && !lu->saved.wce)
		turn_cache_off(lu);
}

struct scsi_lu *scsi_lu_new(const struct scsi_lu_config *config)
{
	unsigned i, tasks = (config->tasks_max ? config->tasks_max : TASKS_DEFAULT) + TASKS_EXPRESS;
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
	lu->blk = blk_ref(config->blk);
	lu->store = config->store;
	STAILQ_INIT(&lu->savers);
	lu_mode_load(lu);
	lu_mode_set(lu, &lu->saved);
	sanitize_load(lu);
	SLIST_INIT(&lu->free);
	TAILQ_INIT(&lu->active);
	LIST_INIT(&lu->mappings);
	task_set_init(&lu->set);
	for (i = tasks; i-- > 0;)
		SLIST_INSERT_HEAD(&lu->free, &lu->pool[i], free_link);
	lu->free_count = tasks;
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
	if (lu->sanitize)
		sanitize_stop(lu);
	else
		lu_settle(lu);
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

void scsi_lu_set_blk(struct scsi_lu *lu, struct blk *blk)
{
	struct blk *before = lu->blk;

	assert(before->state == BLK_WAITING || before->state == BLK_FAILED);
	blk_unwatch(&lu->watch);
	lu->blk = blk_ref(blk);
	lu->block_size = blk->block_size;
	blk_watch(blk, &lu->watch);
	blk_unref(before);
	blk_changed(&lu->watch);
}

/* ---- tasks come and go */

/* Sizes of what is not there mean nothing: only what asks for none of it may run. */
static bool not_there_yet(const struct scsi_task *task)
{
	return task->lu->blk->state == BLK_WAITING && !(task->op->flags & OP_NO_MEDIUM);
}

void lu_run(struct shard_msg *msg)
{
	struct scsi_task *task = container_of(msg, struct scsi_task, msg);
	struct scsi_lu *lu = task->lu;
	struct lu_task *lt = SLIST_FIRST(&lu->free);

	if (!lt || (lu->free_count <= TASKS_EXPRESS && !task->express)) {
		task->status = SCSI_TASK_SET_FULL;
		scsi_complete(task);
		return;
	}
	SLIST_REMOVE_HEAD(&lu->free, free_link);
	lu->free_count--;
	TAILQ_INSERT_TAIL(&lu->active, lt, active_link);
	lt->task = task;
	lt->lu = lu;
	lt->waits = lt->locked = false;
	lt->flags = 0;
	lt->done = 0;
	task->lu_private = lt;
	if (!atomic_load(&task->aborting) && not_there_yet(task)) {
		scsi_fail(task, SCSI_R_BECOMING_READY);
		scsi_complete(task);
	} else if (atomic_load(&task->aborting) || sanitize_refuses(task)) {
		scsi_complete(task);
	} else {
		task->op->run(task);
	}
}

static void count(struct scsi_lu *lu, const struct scsi_task *task, const struct lu_task *lt)
{
	if (task->status != SCSI_GOOD)
		lu->stats.errors++;
	if (task->op->length != scsi_rw_length || scsi_turned_away(task->status)) {
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
		lu_release(lt);
		TAILQ_REMOVE(&lu->active, lt, active_link);
		SLIST_INSERT_HEAD(&lu->free, lt, free_link);
		lu->free_count++;
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

	sanitize_sweep(lu);
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
	return lu->blk->features & BLK_UNMAP && lu->blk->features & BLK_UNMAP_ZEROES;
}

bool lu_has(const struct scsi_lu *lu, const struct scsi_op *op)
{
	return (!(op->flags & OP_THIN) || lu_thin(lu)) &&
	       (!(op->flags & OP_THICK) || !lu_thin(lu)) &&
	       (!(op->flags & OP_ATOMIC) || lu->blk->features & BLK_ATOMIC);
}

bool lu_check_range(struct scsi_task *task, uint64_t lba, uint64_t blocks)
{
	uint64_t size = lu_blocks(task->lu);

	if (lba < size && blocks <= size - lba)
		return true;
	scsi_fail_info(task, SCSI_R_LBA_RANGE, lba);
	return false;
}
