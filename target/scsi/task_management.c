/* SPDX-License-Identifier: MIT */
/*
 * Task management functions.
 *
 *   scsi_tmf_submit() ─▶ mark ─▶ end what does not run ─▶ tell each home ─▶ wait ─▶ done()
 *                                                         lu_sweep()       until no task
 *                                                                          marked is left
 *
 * Invariants:
 * 1. A function is answered when every task it concerns has been answered or dropped; one at a
 *    stalled device is waited for, for a retry must not meet the first try's late effect.
 * 2. All tasks concerned are marked before the first one ends: the end of a barrier starts
 *    nothing that is to be aborted.
 * 3. Tasks entered after the function are not concerned.
 *
 * Not here: what the initiator is told of a dropped task (task_set.c), transport resets (the front).
 *
 * Spec: SAM-5 7, 5.14; SPC-4 6.36 (REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS).
 */
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

/* UADE DEPTH of SAM-5 7.10: unit attentions pending. */
#define EVENT_ONE 0x10
#define EVENT_SEVERAL 0x20

enum scope { ONE_TASK, OWN_TASKS, ALL_TASKS, EVERY_LU, NEXUS };

static const struct row {
	enum scope scope;
	bool supported;
	bool query;
	enum ua_condition condition; /* of a reset, for everybody; UA_NONE: none is */
	uint8_t byte, bit;           /* in REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS */
} rows[] = {
	[SCSI_ABORT_TASK] = { ONE_TASK, true, false, UA_NONE, 0, 0x80 },
	[SCSI_ABORT_TASK_SET] = { OWN_TASKS, true, false, UA_NONE, 0, 0x40 },
	[SCSI_CLEAR_TASK_SET] = { ALL_TASKS, true, false, UA_NONE, 0, 0x10 },
	[SCSI_LUN_RESET] = { ALL_TASKS, true, false, UA_LUN_RESET, 0, 0x08 },
	[SCSI_TARGET_RESET] = { EVERY_LU, true, false, UA_TARGET_RESET, 0, 0x02 },
	[SCSI_QUERY_TASK] = { ONE_TASK, true, true, UA_NONE, 0, 0x04 },
	[SCSI_QUERY_TASK_SET] = { OWN_TASKS, true, true, UA_NONE, 1, 0x02 },
	[SCSI_QUERY_ASYNC_EVENT] = { OWN_TASKS, true, true, UA_NONE, 1, 0x04 },
	[SCSI_NEXUS_RESET] = { NEXUS, true, false, UA_NONE, 1, 0x01 },
};

void tmf_supported(uint8_t out[2])
{
	unsigned i;

	out[0] = out[1] = 0;
	for (i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].supported)
			out[rows[i].byte] |= rows[i].bit;
}

static bool of_one_lun(const struct scsi_tmf *tmf)
{
	return rows[tmf->function].scope <= ALL_TASKS;
}

/* A reset of the target, as everything else, reaches what its initiator may see. */
static bool sees(const struct scsi_tmf *tmf, const struct scsi_lu *lu)
{
	const struct scsi_mapping *mapping;

	LIST_FOREACH(mapping, &lu->mappings, lu_link)
		if (mapping->device == tmf->nexus->device &&
		    device_admits(mapping, tmf->nexus->id.initiator))
			return true;
	return false;
}

static bool concerns(const struct scsi_tmf *tmf, const struct scsi_task *task)
{
	bool own = task->nexus == tmf->nexus;

	switch (rows[tmf->function].scope) {
	case ONE_TASK:
		return own && task->tag == tmf->tag && task->lun == tmf->lun;
	case OWN_TASKS:
		return own && task->lun == tmf->lun;
	case NEXUS:
		return own;
	case ALL_TASKS:
		/* At one that left the LUN, others have a right to theirs. */
		return task->lu == tmf->lu || (own && task->lun == tmf->lun) ||
		       (!task->lu && task->lun == tmf->lun);
	case EVERY_LU:
		return own || (task->lu && sees(tmf, task->lu));
	}
	return false;
}

/* The first mapping at or above KEY that TMF may concern: at its LUN, those that leave too. */
static struct scsi_mapping *next_of(const struct scsi_tmf *tmf, uint64_t key)
{
	struct scsi_device *device = tmf->nexus->device;
	int number = device_lun_number(tmf->lun);
	struct scsi_mapping *mapping;

	if (!of_one_lun(tmf))
		return device_next(device, key);
	if (number < 0)
		return NULL;
	mapping = device_next(device, max_u64(key, mapping_key((unsigned)number)));
	return mapping && mapping->lun == number ? mapping : NULL;
}

/* For each set that TMF may concern; FN returning true ends it. */
static bool visit(struct scsi_tmf *tmf, bool (*fn)(struct scsi_tmf *tmf, struct task_set *set))
{
	struct scsi_mapping *mapping;
	uint64_t key;

	for (key = 0; (mapping = next_of(tmf, key)); key++) {
		key = mapping->key;
		if (fn(tmf, &mapping->lu->set))
			return true;
	}
	return fn(tmf, &tmf->nexus->device->absent);
}

static bool present(struct scsi_tmf *tmf, struct task_set *set)
{
	struct scsi_task *task;

	TAILQ_FOREACH(task, &set->tasks, set_link)
		if (!task->aborting && concerns(tmf, task))
			return true;
	return false;
}

static bool still_ending(struct scsi_tmf *tmf, struct task_set *set)
{
	struct scsi_task *task;

	TAILQ_FOREACH(task, &set->tasks, set_link)
		if (task->aborting && concerns(tmf, task))
			return true;
	return false;
}

/*
 * Another initiator's command vanishes. With TAS=1 its status says so; with TAS=0 and no
 * reset a unit attention is all that tells of it.
 */
static void tell_other(const struct scsi_tmf *tmf, struct scsi_task *task)
{
	struct ua_set *ua = device_ua(task);

	task->tell_aborted = task->lu && atomic_load(&task->lu->tas);
	if (!task->tell_aborted && ua && tmf->function == SCSI_CLEAR_TASK_SET)
		ua_raise(ua, UA_CLEARED_BY_OTHER);
}

static bool mark(struct scsi_tmf *tmf, struct task_set *set)
{
	struct scsi_task *task;

	TAILQ_FOREACH(task, &set->tasks, set_link) {
		if (task->aborting || !concerns(tmf, task))
			continue;
		if (task->nexus != tmf->nexus)
			tell_other(tmf, task);
		atomic_store(&task->aborting, true);
	}
	return false;
}

/* End the marked tasks that no home holds. Each end may change the list. */
static bool end_idle(struct scsi_tmf *tmf, struct task_set *set)
{
	struct scsi_task *task;

	do {
		TAILQ_FOREACH(task, &set->tasks, set_link)
			if (task->aborting && !task->running && concerns(tmf, task))
				break;
		if (task)
			task_set_end(task);
	} while (task);
	return false;
}

static bool resets(const struct scsi_tmf *tmf, const struct scsi_lu *lu)
{
	if (rows[tmf->function].condition == UA_NONE)
		return false;
	return of_one_lun(tmf) ? lu == tmf->lu : sees(tmf, lu);
}

static void raise_for_all(struct scsi_tmf *tmf)
{
	struct scsi_mapping *mapping;
	uint64_t key;

	for (key = 0; (mapping = next_of(tmf, key)); key++) {
		key = mapping->key;
		if (!resets(tmf, mapping->lu))
			continue;
		reserve_release(mapping->lu);
		device_raise(mapping->lu, rows[tmf->function].condition, NULL);
	}
}

static void finish(struct scsi_tmf *tmf, enum scsi_tmf_response response)
{
	tmf->response = response;
	tmf->done(tmf);
}

/* True: TMF has ended. */
static bool finish_if_final(struct scsi_tmf *tmf)
{
	if (!tmf->told || visit(tmf, still_ending))
		return false;
	TAILQ_REMOVE(&tmf->nexus->device->tmfs, tmf, link);
	finish(tmf, SCSI_TMF_COMPLETE);
	return true;
}

bool tmf_task_ended(struct scsi_device *device)
{
	struct scsi_tmf *tmf;

	TAILQ_FOREACH(tmf, &device->tmfs, link)
		if (finish_if_final(tmf))
			return true;
	return false;
}

static void tell(struct scsi_tmf *tmf);

static void back(struct shard_msg *msg)
{
	struct scsi_tmf *tmf = container_of(msg, struct scsi_tmf, msg);
	struct scsi_mapping *mapping = tmf->mapping;

	tmf->mapping = NULL;
	device_mapping_put(mapping);
	tmf->arrived = true;
	if (!tmf->telling)
		tell(tmf);
}

static void at_home(struct shard_msg *msg)
{
	struct scsi_tmf *tmf = container_of(msg, struct scsi_tmf, msg);

	if (tmf->resets)
		lu_reset(tmf->mapping->lu);
	lu_sweep(tmf->mapping->lu);
	msg->fn = back;
	shard_send(tmf->mapping->device->front, msg);
}

static struct scsi_mapping *next_to_tell(struct scsi_tmf *tmf)
{
	struct scsi_mapping *mapping = next_of(tmf, tmf->next_key);

	tmf->next_key = mapping ? mapping->key + 1 : UINT64_MAX;
	return mapping;
}

/*
 * Visit the homes, one after the other. A home on this shard answers before
 * shard_send() returns: a loop then, or thousands of LUNs were a deep stack.
 */
static void tell(struct scsi_tmf *tmf)
{
	struct scsi_mapping *mapping;

	tmf->telling = true;
	while ((mapping = next_to_tell(tmf))) {
		mapping->tasks++;
		tmf->mapping = mapping;
		tmf->arrived = false;
		tmf->resets = resets(tmf, mapping->lu);
		tmf->msg.fn = at_home;
		shard_send(mapping->lu->home, &tmf->msg);
		if (!tmf->arrived) {
			tmf->telling = false;
			return;
		}
	}
	tmf->told = true;
	finish_if_final(tmf);
}

/* Looks at what is pending; a command still has to report it. */
static void query_event(struct scsi_tmf *tmf)
{
	struct scsi_device *device = tmf->nexus->device;
	struct scsi_mapping *mapping = device_find(device, device_lun_number(tmf->lun));
	const struct ua_set *ua =
		mapping ? nexus_ua(&device->registry, &tmf->nexus->mpio, mapping->slot) : NULL;

	memset(tmf->event, 0, sizeof(tmf->event));
	if (!ua || !ua_pending(ua)) {
		finish(tmf, SCSI_TMF_COMPLETE);
		return;
	}
	scsi_sense_code(scsi_ua_reason(ua_peek(ua)), tmf->event);
	tmf->event[0] |= ua_several(ua) ? EVENT_SEVERAL : EVENT_ONE;
	finish(tmf, SCSI_TMF_SUCCEEDED);
}

static void query(struct scsi_tmf *tmf)
{
	if (tmf->function == SCSI_QUERY_ASYNC_EVENT)
		query_event(tmf);
	else
		finish(tmf, visit(tmf, present) ? SCSI_TMF_SUCCEEDED : SCSI_TMF_COMPLETE);
}

void scsi_tmf_submit(struct scsi_tmf *tmf)
{
	struct scsi_device *device = tmf->nexus->device;
	const struct scsi_mapping *there;
	const struct row *row;

	if ((unsigned)tmf->function >= ARRAY_LEN(rows) || !rows[tmf->function].supported) {
		finish(tmf, SCSI_TMF_NOT_SUPPORTED);
		return;
	}
	row = &rows[tmf->function];
	there = device_lookup(device, tmf->lun, tmf->nexus->id.initiator);
	tmf->lu = there ? there->lu : NULL;
	/* Its own tasks may be left at a LUN that went; the tasks of others are none of its business. */
	if (of_one_lun(tmf) && !there && (row->scope == ALL_TASKS || !visit(tmf, present))) {
		finish(tmf, SCSI_TMF_NO_LUN);
		return;
	}
	if (row->query) {
		query(tmf);
		return;
	}
	if (row->scope == ONE_TASK && !visit(tmf, present) && !visit(tmf, still_ending)) {
		finish(tmf, SCSI_TMF_NO_TASK);
		return;
	}
	tmf->next_key = 0;
	tmf->told = false;
	tmf->mapping = NULL;
	TAILQ_INSERT_TAIL(&device->tmfs, tmf, link);
	if (tmf->function == SCSI_NEXUS_RESET)
		reserve_nexus_lost(tmf->nexus);
	visit(tmf, mark);
	raise_for_all(tmf);
	visit(tmf, end_idle);
	tell(tmf);
}
