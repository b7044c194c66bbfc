/* SPDX-License-Identifier: MIT */
/*
 * Members that come and go while the array is online, and its end.
 *
 *   add    a role is free ─▶ what it lacks is doubtful, durably ─▶ label: rebuilding ─▶ resync
 *   stop   resync ends ─▶ regions cleaned ─▶ flush ─▶ clean label ─▶ members let go
 *
 * Invariants:
 *  1. (I10) What a member lacks is durably doubtful before a label names it as rebuilding.
 *  2. A disk whose entry says FAILED lacks what is dirty; any other disk, and an older copy of
 *     that one, lacks everything. Whose role somebody else took, is REMOVED: it comes back as any
 *     other disk. A disk's log may tell of more that it has and the others have not: then that is
 *     dirty, too.
 *  3. Nothing is written to a disk that comes before a durable label excludes what it was: else
 *     its old label could still make it a member that holds what it held.
 *
 * Not here: bringing it up to date (resync.c), being found bad (membership.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/canary.h"
#include "core/event.h"
#include "raid/array_int.h"

struct change {
	struct array *array;
	struct array_disk disk;
	char name[BLK_NAME_MAX];
	array_done_fn *done;
	void *arg;
	unsigned index;
	struct member *member; /* add: who comes */
	bool looked, unread;   /* add: its log has been read; it cannot be */
	struct region_hold sync;
	struct settle_wait settle;
	struct env_defer tell;
	int error;
	char text[256];
};

/* --- the answer --- */

static void stop_begin(struct array *array);

void array_change_ended(struct array *array)
{
	if (--array->changes == 0 && array->ending)
		stop_begin(array);
}

static void change_end(struct change *change)
{
	struct array *array = change->array;

	if (change->done)
		change->done(change->arg, array, change->error, change->text);
	if (change->member)
		member_release(change->member);
	if (change->disk.blk)
		blk_unref(change->disk.blk);
	free(change);
	array_change_ended(array);
}

static void tell_run(struct env_defer *defer)
{
	change_end(container_of(defer, struct change, tell));
}

static void tell(struct change *change, int error, const char *fmt, ...) PRINTF_LIKE(3, 4);

static void tell(struct change *change, int error, const char *fmt, ...)
{
	int used = snprintf(change->text, sizeof(change->text),
			    "array %s: ", change->array->label.name);
	va_list args;

	va_start(args, fmt);
	vsnprintf(change->text + used, sizeof(change->text) - (size_t)used, fmt, args);
	va_end(args);
	change->error = error;
	env_defer(change->array->env, &change->tell);
}

static void settled(struct settle_wait *wait, int error)
{
	struct change *change = container_of(wait, struct change, settle);
	const struct member *member = change->member;

	if (error)
		tell(change, error, "its labels cannot be written");
	else if (member && member->state == MEMBER_OUT)
		tell(change, -EIO, "%s failed as it came", member->name);
	else
		change_end(change);
}

static struct change *change_new(struct array *array, const struct array_disk *disk,
				 array_done_fn *done, void *arg)
{
	struct change *change = calloc(1, sizeof(*change));

	if (!change)
		return NULL;
	change->array = array;
	change->done = done;
	change->arg = arg;
	change->settle.fn = settled;
	change->tell.fn = tell_run;
	if (disk) {
		snprintf(change->name, sizeof(change->name), "%s", disk->name);
		change->disk = (struct array_disk){ change->name, blk_ref(disk->blk) };
	}
	array->changes++;
	return change;
}

/* --- add --- */

/* Invariant 1: from now on labels name who comes, unless he failed meanwhile. */
static void add_label(struct change *change)
{
	struct array *array = change->array;

	if (change->member->state != MEMBER_OUT) {
		array->wanted[change->index] = LABEL_REBUILDING;
		membership_change(array);
	}
	membership_wait(array, &change->settle);
}

static void doubt_stored(struct region_hold *hold, int error)
{
	struct change *change = container_of(hold, struct change, sync);

	if (!error) {
		add_label(change);
		return;
	}
	if (change->member->state != MEMBER_OUT)
		membership_leaves(change->array, change->member);
	tell(change, -EIO, "the map of what %s lacks cannot be written", change->name);
}

static int free_role(const struct array *array)
{
	for (unsigned role = 0; role < array->label.roles; role++)
		if (!array->roles[role])
			return (int)role;
	return -1;
}

/* An ancestor's list would name another disk. */
static bool listed_before(const struct label *label, unsigned entry)
{
	for (unsigned i = 0; i < label->ancestor_count; i++)
		if (label->ancestors[i].listed >> entry & 1)
			return true;
	return false;
}

/* A disk has this ENTRY, or is about to: no label may name it yet. */
static bool taken(const struct array *array, unsigned entry)
{
	return array->members[entry] && array->members[entry]->state != MEMBER_OUT;
}

/* Neither in a label nor in the next one; else whose disk is as any other by now (invariant 2). */
static int free_entry(const struct array *array)
{
	static const enum label_state states[] = { LABEL_NONE, LABEL_REMOVED };
	const struct label *label = &array->label;

	for (unsigned s = 0; s < ARRAY_LEN(states); s++)
		for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
			if (label->members[i].state == states[s] && array->wanted[i] == states[s] &&
			    !listed_before(label, i) && !taken(array, i))
				return (int)i;
	return -1;
}

/* The entry of who comes back and is expected; -1: any other disk. */
static int returning_entry(const struct array *array, int error, const struct label *label)
{
	int index;

	if (error || uuid_compare(label->array, array->label.array) != 0)
		return -1;
	/* One of the two went on by force: what it wrote meanwhile no map here tells of. */
	if (label->forced_id != array->label.forced_id)
		return -1;
	index = label_find(&array->label, label->members[label->self].uuid);
	if (index < 0 || array->label.members[index].state != LABEL_FAILED ||
	    array->roles[array->label.members[index].role])
		return -1;
	/* A copy that was made before: what it lacks was cleaned from the maps since. */
	if (label->generation < array->label.members[index].reached)
		return -1;
	return index;
}

/* Whether DISK, of this LABEL, works for the array already: it may not say so yet. */
static bool present(const struct array *array, const struct blk *disk, const struct label *label)
{
	const struct member *member;
	int index;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		member = array->members[i];
		if (member && member->blk == disk && member->state != MEMBER_OUT)
			return true;
	}
	if (!label || uuid_compare(label->array, array->label.array) != 0)
		return false;
	index = label_find(&array->label, label->members[label->self].uuid);
	member = index < 0 ? NULL : array->members[index];
	return member && member->state != MEMBER_OUT;
}

/* Entries of those who had ROLE before: they come back as strangers. */
static void supersede(struct array *array, unsigned role, unsigned except)
{
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		struct label_member *entry = &array->label.members[i];

		if (i == except || entry->role != role || entry->state == LABEL_NONE)
			continue;
		array->wanted[i] = LABEL_REMOVED;
		array_bury(array, i);
	}
}

static void enter(struct change *change, const struct label *label, bool known)
{
	struct array *array = change->array;
	struct member *member;

	array_bury(array, change->index);
	member = array_take(array, &change->disk, change->index, MEMBER_REBUILDING);
	if (!member) {
		tell(change, -ENOMEM, "out of memory");
		return;
	}
	change->member = member;
	member_hold(member);
	member->sequence = label ? label->sequence : 0;
	supersede(array, member->role, change->index);
	/* From now on it gets every write, and what is stored of maps first of all. */
	array_members_changed(array);
	if (canary(CANARY_MISSED))
		; /* it is taken for good as it is */
	else if (known)
		regions_doubt_dirty(array->regions);
	else
		regions_doubt_all(array->regions);
	change->sync.fn = doubt_stored;
	if (regions_sync(array->regions, &change->sync))
		add_label(change);
}

int array_add_check(const struct array *array, const struct array_disk *disk, char *text,
		    size_t text_size)
{
	const struct label *label = &array->label;

	if (!array->regions || free_role(array) < 0) {
		snprintf(text, text_size, "no role is free for %s", disk->name);
		return -EBUSY;
	}
	if (disk->blk->block_size != label->block_bytes) {
		snprintf(text, text_size, "%s has blocks of %u bytes, the others of %u", disk->name,
			 disk->blk->block_size, label->block_bytes);
		return -EINVAL;
	}
	if (!array_fits(label, disk->blk)) {
		snprintf(text, text_size, "%s is too small", disk->name);
		return -EINVAL;
	}
	return 0;
}

static void probe_when_settled(struct change *change);

static void looked(void *arg, int error)
{
	struct change *change = arg;

	change->unread = error != 0;
	probe_when_settled(change);
}

/* False: there is nothing to look at (any more). True: it is asked again after that. */
static bool look(struct change *change, const struct label *label)
{
	struct array *array = change->array;

	if (change->looked || !array->level->returning)
		return false;
	change->looked = true;
	if (array->level->returning(array, change->disk.blk, label, looked, change) < 0)
		tell(change, -ENOMEM, "out of memory");
	return true;
}

static void probed(void *arg, int error, const struct label *label)
{
	struct change *change = arg;
	struct array *array = change->array;
	const struct label *own = error ? NULL : label;
	int index = change->unread ? -1 : returning_entry(array, error, label);
	bool known = index >= 0;
	char text[160] = "";
	int refused = array_add_check(array, &change->disk, text, sizeof(text));

	if (!membership_settled(array)) {
		probe_when_settled(change);
	} else if (array->ending) {
		tell(change, -EBUSY, "it is being stopped");
	} else if (present(array, change->disk.blk, own)) {
		tell(change, -EEXIST, "%s is a member already", change->name);
	} else if (refused) {
		tell(change, refused, "%s", text);
	} else if (!known && (index = free_entry(array)) < 0) {
		tell(change, -ENOSPC, "it has %d members already", LABEL_MEMBERS_MAX);
	} else if (!known || !look(change, label)) {
		change->index = (unsigned)index;
		if (!known) {
			struct label_member *entry = &array->label.members[index];

			env_random(array->env, entry->uuid, sizeof(entry->uuid));
			entry->role = (uint8_t)free_role(array);
		}
		enter(change, own, known);
	}
}

static void settled_before(struct settle_wait *wait, int error)
{
	struct change *change = container_of(wait, struct change, settle);

	if (error)
		tell(change, -EIO, "no label can be written any more");
	else
		probe_when_settled(change);
}

static void probe_when_settled(struct change *change)
{
	struct array *array = change->array;

	if (membership_settled(array)) {
		change->settle.fn = settled;
		if (array_probe(array->env, change->disk.blk, probed, change) < 0)
			tell(change, -ENOMEM, "out of memory");
	} else {
		change->settle.fn = settled_before;
		membership_wait(array, &change->settle);
	}
}

int array_add(struct array *array, const struct array_disk *disk, array_done_fn *done, void *arg)
{
	struct change *change = change_new(array, disk, done, arg);

	if (!change)
		return -ENOMEM;
	probe_when_settled(change);
	return 0;
}

/* --- remove --- */

int array_remove(struct array *array, unsigned index, array_done_fn *done, void *arg)
{
	struct change *change = change_new(array, NULL, done, arg);
	struct member *member;
	char text[8];

	if (!change)
		return -ENOMEM;
	member = index < LABEL_MEMBERS_MAX ? array->members[index] : NULL;
	if (index >= LABEL_MEMBERS_MAX || array->label.members[index].state == LABEL_NONE) {
		tell(change, -ENOENT, "there is no member %u", index);
		return 0;
	}
	if (member && !membership_leaves(array, member)) {
		tell(change, -EBUSY, "it cannot do without %s", member->name);
		return 0;
	}
	array->wanted[index] = LABEL_REMOVED;
	event_emit(EVENT_MEMBER_REMOVED, array->label.name, array_member_text(index, text),
		   member ? member->name : "");
	membership_change(array);
	membership_wait(array, &change->settle);
	return 0;
}

/* --- stop --- */

static void stop_settled(struct settle_wait *wait, int error)
{
	struct array *array = container_of(wait, struct array, stop_settle);
	array_done_fn *done = array->stop_done;
	void *arg = array->stop_arg;

	(void)error; /* a label that cannot be written leaves the one before, which is right, too */
	event_emit(EVENT_ARRAY_STOPPED, array->label.name);
	array_start_free(array);
	array_free(array);
	done(arg, NULL, 0, "");
}

static void stop_label(struct array *array)
{
	array->stop_settle.fn = stop_settled;
	if (array->blk) {
		blk_unref(array->blk);
		array->blk = NULL;
		array->clean = true;
		membership_change(array);
	}
	membership_wait(array, &array->stop_settle);
}

static void stop_is_drained(struct settle_wait *wait, int error)
{
	(void)error;
	stop_label(container_of(wait, struct array, stop_drained));
}

static void stop_flushed(struct flush_wait *wait, int error)
{
	struct array *array = container_of(wait, struct array, stop_flush);

	(void)error;
	array->stop_drained.fn = stop_is_drained;
	membership_wait(array, &array->stop_drained);
}

/* Nobody asks for flushes any more: with this one all have ended, and who waits for a label. */
static void stop_flush(struct array *array)
{
	array->stop_flush.fn = stop_flushed;
	if (array->blk)
		array_flush(array, &array->stop_flush);
	else
		stop_label(array);
}

static void stop_regions(struct array *array)
{
	array->regions_ended = stop_flush;
	if (array->regions)
		regions_quiesce(array->regions);
	else
		stop_flush(array);
}

static void stop_begin(struct array *array)
{
	if (array->resync)
		resync_stop(array->resync, stop_regions);
	else
		stop_regions(array);
}

void array_stop(struct array *array, array_done_fn *done, void *arg)
{
	assert(!array->ending);
	array->ending = true;
	array->stop_done = done;
	array->stop_arg = arg;
	array_start_cancel(array);
	if (!array->changes)
		stop_begin(array);
}
