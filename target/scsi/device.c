/* SPDX-License-Identifier: MIT */
/*
 * The SCSI target device: which LUN is which logical unit, for whom; and the door
 * through which every task goes.
 *
 * Invariants:
 * 1. maps is in order of LUN; a mapping lives while it counts a task or a function. One that
 *    leaves keeps its place behind the one that took its LUN, if there is one.
 * 2. A LUN that is masked, leaving or not mapped is the same to an initiator: not there.
 * 3. Every registered nexus has a set of unit attentions for every mapping's slot.
 * 4. Unit attentions are reported before anything else about a command is judged.
 *
 * Not here: order and end of tasks (task_set.c), the medium (lu.c), nexus ids (mpio/nexus.h).
 *
 * Spec: SAM-5 4.7 (LUNs), 5.11 (incorrect LUN), 5.14; SPC-4 6.6.1.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sanitize.h"
#include "target/scsi/sense.h"

/* ---- LUNs */

int device_lun_number(uint64_t lun)
{
	unsigned method = (unsigned)(lun >> 62);
	unsigned field = (unsigned)(lun >> 48) & 0x3fff;

	if (lun & 0xffffffffffff) /* a second level */
		return -1;
	if (method == 1) /* flat */
		return (int)field;
	if (method == 0 && field <= 0xff) /* peripheral, bus 0 */
		return (int)field;
	return -1;
}

/* Index of the first mapping at or above KEY. */
static unsigned lower_bound(const struct scsi_device *device, uint64_t key)
{
	unsigned low = 0, high = device->map_count;

	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (device->maps[mid]->key < key)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct scsi_mapping *device_next(struct scsi_device *device, uint64_t key)
{
	unsigned i = lower_bound(device, key);

	return i < device->map_count ? device->maps[i] : NULL;
}

struct scsi_mapping *device_find(struct scsi_device *device, int number)
{
	struct scsi_mapping *mapping =
		number < 0 ? NULL : device_next(device, mapping_key((unsigned)number));

	return mapping && mapping->lun == number ? mapping : NULL;
}

bool device_admits(const struct scsi_mapping *mapping, const char *initiator)
{
	const struct scsi_device *device = mapping->device;

	return !device->mask || device->mask(device->mask_arg, mapping->lun, initiator);
}

bool device_visible(const struct scsi_mapping *mapping, const char *initiator)
{
	return !mapping->leaving && device_admits(mapping, initiator);
}

struct scsi_mapping *device_lookup(struct scsi_device *device, uint64_t lun, const char *initiator)
{
	struct scsi_mapping *mapping = device_find(device, device_lun_number(lun));

	return mapping && device_visible(mapping, initiator) ? mapping : NULL;
}

/* ---- the device */

struct scsi_device *scsi_device_new(const char *name, struct shard *front)
{
	struct scsi_device *device = calloc(1, sizeof(*device));

	if (!device)
		return NULL;
	if (strlen(name) >= sizeof(device->name)) {
		free(device);
		errno = ENAMETOOLONG;
		return NULL;
	}
	strcpy(device->name, name);
	device->front = front;
	nexus_registry_init(&device->registry);
	task_set_init(&device->absent);
	TAILQ_INIT(&device->tmfs);
	return device;
}

static void mapping_free(struct scsi_mapping *mapping)
{
	struct scsi_device *device = mapping->device;
	struct scsi_lu *lu = mapping->lu;
	void (*done)(void *arg) = mapping->done;
	void *done_arg = mapping->done_arg;
	unsigned i = lower_bound(device, mapping->key);

	assert(device->maps[i] == mapping && mapping->tasks == 0);
	device->map_count--;
	memmove(device->maps + i, device->maps + i + 1,
		(device->map_count - i) * sizeof(*device->maps));
	LIST_REMOVE(mapping, lu_link);
	if (LIST_EMPTY(&lu->mappings))
		lu->front = NULL;
	free(mapping);
	scsi_lu_unref(lu);
	if (done)
		done(done_arg);
}

void scsi_device_free(struct scsi_device *device)
{
	assert(device->nexuses == 0 && device->absent.count == 0 && TAILQ_EMPTY(&device->tmfs));
	while (device->map_count > 0)
		mapping_free(device->maps[device->map_count - 1]);
	free(device->maps);
	free(device);
}

void scsi_device_mask(struct scsi_device *device, scsi_mask_fn *mask, void *arg)
{
	device->mask = mask;
	device->mask_arg = arg;
}

int scsi_device_set_ports(struct scsi_device *device, const uint16_t *groups, unsigned count)
{
	if (count > SCSI_PORTS_MAX)
		return -EINVAL;
	memcpy(device->ports, groups, count * sizeof(*groups));
	device->port_count = count;
	return 0;
}

/* ---- maps */

void device_raise(struct scsi_lu *lu, enum ua_condition condition, const struct scsi_nexus *except)
{
	struct scsi_mapping *mapping;

	LIST_FOREACH(mapping, &lu->mappings, lu_link)
		nexus_raise(&mapping->device->registry, mapping->slot, condition,
			    except ? &except->mpio : NULL);
}

void scsi_device_view_changed(struct scsi_device *device)
{
	unsigned i;

	for (i = 0; i < device->map_count; i++)
		nexus_raise(&device->registry, device->maps[i]->slot, UA_LUNS_CHANGED, NULL);
}

/* The lowest slot that no mapping has. */
static unsigned free_slot(const struct scsi_device *device)
{
	unsigned slot, i;

	for (slot = 0; slot < device->map_count; slot++) {
		for (i = 0; i < device->map_count; i++)
			if (device->maps[i]->slot == slot)
				break;
		if (i == device->map_count)
			break;
	}
	return slot;
}

static int maps_reserve(struct scsi_device *device, unsigned count)
{
	struct scsi_mapping **maps;
	unsigned room = device->map_room ? device->map_room * 2 : 16;

	if (count <= device->map_room)
		return 0;
	maps = reallocarray(device->maps, room, sizeof(struct scsi_mapping *));
	if (!maps)
		return -ENOMEM;
	device->maps = maps;
	device->map_room = room;
	return 0;
}

static int map(struct scsi_device *device, uint16_t lun, struct scsi_lu *lu, bool read_only)
{
	unsigned i = lower_bound(device, mapping_key(lun)), slot = free_slot(device);
	struct scsi_mapping *mapping;

	if (maps_reserve(device, device->map_count + 1) ||
	    nexus_reserve_slots(&device->registry, slot + 1))
		return -ENOMEM;
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return -ENOMEM;
	mapping->device = device;
	mapping->lu = scsi_lu_ref(lu);
	mapping->lun = lun;
	mapping->key = mapping_key(lun + 1u) - ++device->mappings_made;
	mapping->slot = slot;
	mapping->read_only = read_only;
	lu->front = device->front;
	LIST_INSERT_HEAD(&lu->mappings, mapping, lu_link);
	memmove(device->maps + i + 1, device->maps + i,
		(device->map_count - i) * sizeof(*device->maps));
	device->maps[i] = mapping;
	device->map_count++;
	nexus_slot_fresh(&device->registry, slot);
	scsi_device_view_changed(device);
	return 0;
}

int scsi_device_map(struct scsi_device *device, uint16_t lun, struct scsi_lu *lu, bool read_only)
{
	const struct scsi_mapping *there;

	if (!lu) {
		scsi_device_unmap(device, lun, NULL, NULL);
		return 0;
	}
	if (lun > SCSI_LUN_MAX)
		return -EINVAL;
	there = device_find(device, lun);
	if (there && !there->leaving)
		return -EEXIST;
	if (lu->front && lu->front != device->front)
		return -EXDEV;
	return map(device, lun, lu, read_only);
}

void scsi_device_unmap(struct scsi_device *device, uint16_t lun, void (*done)(void *arg), void *arg)
{
	struct scsi_mapping *mapping = device_find(device, lun);

	if (!mapping || mapping->leaving) {
		if (done)
			done(arg);
		return;
	}
	mapping->leaving = true;
	mapping->done = done;
	mapping->done_arg = arg;
	scsi_device_view_changed(device);
	if (mapping->tasks == 0)
		mapping_free(mapping);
}

void device_mapping_put(struct scsi_mapping *mapping)
{
	assert(mapping->tasks > 0);
	if (--mapping->tasks == 0 && mapping->leaving)
		mapping_free(mapping);
}

/* ---- nexuses */

struct scsi_nexus *scsi_nexus_new(struct scsi_device *device, const struct scsi_nexus_id *id)
{
	struct scsi_nexus *nexus;
	int err;

	static_assert(sizeof(id->initiator) == NEXUS_NAME_MAX, "the same name");
	nexus = calloc(1, sizeof(*nexus));
	if (!nexus)
		return NULL;
	nexus->id = *id;
	nexus->id.initiator[sizeof(nexus->id.initiator) - 1] = '\0';
	nexus->device = device;
	memcpy(nexus->mpio.id.initiator, nexus->id.initiator, NEXUS_NAME_MAX);
	memcpy(nexus->mpio.id.isid, id->isid, sizeof(id->isid));
	nexus->mpio.id.portal_group = id->portal_group;
	err = nexus_register(&device->registry, &nexus->mpio);
	if (err) {
		free(nexus);
		errno = -err;
		return NULL;
	}
	device->nexuses++;
	return nexus;
}

void scsi_nexus_retire(struct scsi_nexus *nexus)
{
	reserve_nexus_lost(nexus);
	nexus_retire(&nexus->device->registry, &nexus->mpio);
}

void scsi_nexus_free(struct scsi_nexus *nexus)
{
	assert(nexus->tasks == 0);
	scsi_nexus_retire(nexus);
	nexus->device->nexuses--;
	free(nexus);
}

unsigned scsi_nexus_tasks(const struct scsi_nexus *nexus)
{
	return nexus->tasks;
}

const struct scsi_nexus_id *scsi_nexus_id(const struct scsi_nexus *nexus)
{
	return &nexus->id;
}

struct ua_set *device_ua(const struct scsi_task *task)
{
	if (!task->mapping)
		return NULL;
	return nexus_ua(&task->nexus->device->registry, &task->nexus->mpio, task->mapping->slot);
}

/* ---- tasks */

/* What TASK moves, as far as the CDB alone tells. What is wrong moves nothing. */
static void set_transfer(struct scsi_task *task)
{
	uint64_t length = 0;

	task->dir = SCSI_NO_DATA;
	task->transfer_length = 0;
	task->data_out_length = 0;
	task->buffer_length = 0;
	if (!task->op || (!task->lu && !(task->op->flags & OP_NO_LUN)))
		return;
	if (task->op->length)
		length = task->op->length(task);
	if (length > SCSI_TRANSFER_MAX)
		return;
	if (length > 0) {
		task->dir = task->op->dir;
		task->transfer_length = task->buffer_length = length;
	}
	if (task->dir == SCSI_DATA_OUT)
		task->buffer_length = task->data_out_length = min_u64(length, task->expected_out);
	if (task->op->flags & OP_SCRATCH)
		task->buffer_length = align_up(task->buffer_length, BUF_UNIT) + BUF_UNIT;
}

void scsi_task_enter(struct scsi_task *task)
{
	struct scsi_nexus *nexus = task->nexus;
	bool known;

	assert(task->state == SCSI_TASK_IDLE && task->done);
	task->mapping = device_lookup(nexus->device, task->lun, nexus->id.initiator);
	task->lu = task->mapping ? task->mapping->lu : NULL;
	task->read_only = task->mapping && task->mapping->read_only;
	task->op = task->cdb_too_long ? NULL : optable_find(task->cdb, &known);
	if (task->op && task->lu && !lu_has(task->lu, task->op))
		task->op = NULL;
	task->express = task->op && task->op->flags & OP_EXPRESS;
	atomic_store_explicit(&task->aborting, false, memory_order_relaxed);
	task->tell_aborted = task->dormant = task->running = false;
	task->lu_private = NULL;
	task->raise_others = 0;
	task->outcome = SCSI_COMPLETED;
	task->status = SCSI_GOOD;
	task->sense_length = 0;
	task->data_in_length = 0;
	set_transfer(task);
	nexus->tasks++;
	if (task->mapping)
		task->mapping->tasks++;
	task_set_enter(task_set_of(task), task);
}

void scsi_task_submit(struct scsi_task *task)
{
	assert(task->state == SCSI_TASK_ENTERED);
	assert(task->dir == SCSI_DATA_IN || task->transport_error != SCSI_TRANSPORT_OK ||
	       task->data.length >= task->buffer_length);
	task_set_submit(task);
}

static void fail_opcode(struct scsi_task *task)
{
	const struct scsi_op *row = NULL;
	bool known = false;

	if (!task->cdb_too_long)
		row = optable_find(task->cdb, &known);
	/* Of one that this logical unit alone lacks there are others. */
	if (known && (!row || row->flags & OP_SA))
		scsi_fail_field(task, 1, 4); /* the service action */
	else
		scsi_fail(task, SCSI_R_INVALID_OPCODE);
}

/* True: TASK failed before its command is looked at. */
static bool refused(struct scsi_task *task)
{
	const struct scsi_op *op = task->op;
	struct ua_set *ua = device_ua(task);

	if (task->transport_error != SCSI_TRANSPORT_OK)
		scsi_fail_transport(task);
	else if (!task->lu && !(op && op->flags & OP_NO_LUN))
		scsi_fail(task, SCSI_R_NO_LUN);
	else if (ua && ua_pending(ua) && !(op && op->flags & OP_UA_OK))
		scsi_fail(task, scsi_ua_reason(ua_take(ua)));
	else if (!op)
		fail_opcode(task);
	else if (reserve_conflicts(task))
		task->status = SCSI_RESERVATION_CONFLICT;
	else if (task->cdb[op->cdb_length - 1] & 0x04) /* NACA: NORMACA is 0 */
		scsi_fail_field(task, op->cdb_length - 1u, 2);
	else
		return op->flags & OP_FRONT && sanitize_refuses(task);
	return true;
}

bool device_run(struct scsi_task *task)
{
	if (refused(task)) {
		scsi_complete(task);
		return true;
	}
	if (!(task->op->flags & OP_FRONT))
		return false;
	task->op->run(task);
	return true;
}
