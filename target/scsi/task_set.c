/* SPDX-License-Identifier: MIT */
/*
 * Task sets: who may run, in what order, and how a task ends.
 *
 *   scsi_task_enter()      task_set_submit()            task_set_end()
 *   IDLE ─────────▶ ENTERED ─────────▶ SUBMITTED ──────────────────▶ IDLE, done()
 *                      │           waits for its turn, then
 *                      │           runs: device_run(), lu_run()         ▲
 *                      └──────────── aborted by task_management.c ──────────────────┘
 *
 * Invariants:
 * 1. A task is in its set from enter until just before its done(), which runs once.
 * 2. ORDERED starts when everything entered before it has ended; what was entered after it,
 *    HEAD OF QUEUE apart, starts when it has ended.
 * 3. A task of another nexus whose data is still being gathered has not arrived as far as
 *    the others can tell: an initiator that never sends its data delays only itself.
 * 4. A command that goes ahead (OP_AHEAD) neither waits nor is waited for: while it runs the
 *    others are to be answered, not kept.
 * 5. A set without barriers costs nothing: no list is walked.
 *
 * Not here: overlapping ranges (lu.c), who is aborted (task_management.c).
 *
 * Spec: SAM-5 8 (task attributes).
 */
#include "target/scsi/lu_int.h"

void task_set_init(struct task_set *set)
{
	TAILQ_INIT(&set->tasks);
	set->count = 0;
	set->barriers = 0;
	set->waiting = 0;
	set->waking = false;
	set->wake_again = false;
}

struct task_set *task_set_of(struct scsi_task *task)
{
	return task->lu ? &task->lu->set : &task->nexus->device->absent;
}

static bool goes_ahead(const struct scsi_task *task)
{
	return task->op && task->op->flags & OP_AHEAD;
}

static bool is_barrier(const struct scsi_task *task)
{
	return (task->attr == SCSI_ORDERED || task->attr == SCSI_HEAD_OF_QUEUE) &&
	       !goes_ahead(task);
}

void task_set_enter(struct task_set *set, struct scsi_task *task)
{
	TAILQ_INSERT_TAIL(&set->tasks, task, set_link);
	set->count++;
	set->barriers += is_barrier(task);
	task->state = SCSI_TASK_ENTERED;
}

static bool may_run(const struct task_set *set, const struct scsi_task *task)
{
	const struct scsi_task *before;

	/* What is about the device and not the medium, or not executed, has no order to keep. */
	if (!set->barriers || !task->lu || task->attr == SCSI_HEAD_OF_QUEUE || goes_ahead(task) ||
	    task->transport_error != SCSI_TRANSPORT_OK || (task->op && task->op->flags & OP_FRONT))
		return true;
	TAILQ_FOREACH(before, &set->tasks, set_link) {
		if (before == task)
			break;
		if (goes_ahead(before) ||
		    (before->state == SCSI_TASK_ENTERED && before->nexus != task->nexus))
			continue;
		if (task->attr == SCSI_ORDERED || is_barrier(before))
			return false;
	}
	return true;
}

static void start(struct scsi_task *task)
{
	if (device_run(task))
		return;
	task->running = true;
	task->msg.fn = lu_run;
	shard_send(task->lu->home, &task->msg);
}

void task_set_submit(struct scsi_task *task)
{
	struct task_set *set = task_set_of(task);

	task->state = SCSI_TASK_SUBMITTED;
	if (may_run(set, task)) {
		start(task);
		return;
	}
	task->dormant = true;
	set->waiting++;
}

/*
 * The first task that waits and need not; aborted ones are task_management.c's to end.
 * may_run() walks the list as well: only for those that what came before does not stop.
 */
static struct scsi_task *next_to_wake(const struct task_set *set)
{
	struct scsi_task *task;
	bool first = true; /* nothing that was submitted came before */

	TAILQ_FOREACH(task, &set->tasks, set_link) {
		if (task->dormant && !task->aborting && (first || task->attr != SCSI_ORDERED) &&
		    may_run(set, task))
			return task;
		if (task->state != SCSI_TASK_SUBMITTED || goes_ahead(task))
			continue;
		if (is_barrier(task))
			break;
		first = false;
	}
	return NULL;
}

/*
 * Starting a task may end it, which wakes again: the outermost call does the
 * work, so that a long queue is not a deep stack.
 */
static void wake(struct task_set *set)
{
	struct scsi_task *task;

	if (!set->waiting)
		return;
	if (set->waking) {
		set->wake_again = true;
		return;
	}
	set->waking = true;
	do {
		set->wake_again = false;
		while (set->waiting && (task = next_to_wake(set))) {
			task->dormant = false;
			set->waiting--;
			start(task);
		}
	} while (set->wake_again);
	set->waking = false;
}

/* TAS and whose wish it was decide whether the initiator hears of it. */
static void set_aborted(struct scsi_task *task)
{
	task->sense_length = 0;
	task->data_in_length = 0;
	if (task->tell_aborted) {
		task->outcome = SCSI_COMPLETED;
		task->status = SCSI_TASK_ABORTED;
	} else {
		task->outcome = SCSI_ABORTED;
	}
}

/* Functions wait at the devices that map LU. One that ends may take mappings with it. */
static void tell_functions(struct scsi_lu *lu)
{
	struct scsi_mapping *mapping;
	bool ended;

	do {
		ended = false;
		LIST_FOREACH(mapping, &lu->mappings, lu_link) {
			ended = tmf_task_ended(mapping->device);
			if (ended)
				break;
		}
	} while (ended);
}

void task_set_end(struct scsi_task *task)
{
	struct task_set *set = task_set_of(task);
	struct scsi_mapping *mapping = task->mapping;
	struct scsi_lu *lu = task->lu;
	bool aborted = task->aborting;

	assert(task->state != SCSI_TASK_IDLE && !task->running);
	TAILQ_REMOVE(&set->tasks, task, set_link);
	set->count--;
	set->barriers -= is_barrier(task);
	if (task->dormant) {
		task->dormant = false;
		set->waiting--;
	}
	if (aborted)
		set_aborted(task);
	task->nexus->tasks--;
	task->state = SCSI_TASK_IDLE;
	task->done(task);
	/*
	 * The task is gone, its nexus perhaps too. The mapping still counts it, which keeps the
	 * LU; without an LU nothing waits for its turn or for its end.
	 */
	if (!lu)
		return;
	wake(set);
	if (aborted)
		tell_functions(lu);
	device_mapping_put(mapping);
}

/* The task is back from its home. */
void task_set_back(struct shard_msg *msg)
{
	struct scsi_task *task = container_of(msg, struct scsi_task, msg);

	task->running = false;
	for (; task->raise_others; task->raise_others &= task->raise_others - 1)
		device_raise(task->lu, (enum ua_condition)__builtin_ctz(task->raise_others),
			     task->nexus);
	task_set_end(task);
}
