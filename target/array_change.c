/* SPDX-License-Identifier: MIT */
/*
 * What an administrator does with arrays: make one, add a disk, take a member out, start one
 * that waits.
 *
 *   disks open ─▶ check ─▶ wipe ─▶ array_create(), array_add()
 *
 * Invariants:
 *  1. A disk is wiped where labels and other people's signatures lie before it becomes a member:
 *     nothing finds there what is not there any more.
 *  2. Nothing is wiped before everything that can be refused was checked.
 *
 * Not here: whether a disk may be overwritten (array_ctl.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "target/daemon.h"

#define WIPE_BYTES MIB /* at each end */
#define WIPE_STEP (128 * KIB)

struct change {
	struct arrays *arrays;
	struct array_entry *entry;
	struct array_spec spec;
	char name[LABEL_NAME_MAX];
	struct disk *disks[LABEL_ROLES_MAX];
	unsigned count;
	unsigned member;
	bool had; /* the disk was the array's before */
	/* The wipe. */
	unsigned wiping;
	uint64_t wiped;
	void (*then)(struct change *change);
	struct io io;
	struct iovec iov;
	void *zeroes;
	arrays_done_fn *done;
	void *arg;
};

static struct change *change_new(struct arrays *arrays, struct array_entry *entry,
				 struct disk *const *disks, unsigned count, arrays_done_fn *done,
				 void *arg)
{
	struct change *change = calloc(1, sizeof(*change));

	assert(count <= LABEL_ROLES_MAX);
	if (!change) {
		done(arg, -ENOMEM, "out of memory");
		return NULL;
	}
	arrays_change(arrays, 1);
	change->arrays = arrays;
	change->entry = entry;
	if (entry)
		entry->changes++;
	for (unsigned i = 0; i < count; i++) {
		change->disks[i] = disks[i];
		disks[i]->users++;
	}
	change->count = count;
	change->done = done;
	change->arg = arg;
	return change;
}

static void change_end(struct change *change, int error, const char *text)
{
	for (unsigned i = 0; i < change->count; i++) {
		struct disk *disk = change->disks[i];

		disk->users--;
		if (error && change->entry && change->entry->array && !change->had)
			disk->array = NULL;
		disk_release(disk);
	}
	if (change->entry)
		change->entry->changes--;
	arrays_change(change->arrays, -1);
	change->done(change->arg, error, text);
	free(change->zeroes);
	free(change);
}

/* ---- wipe ---- */

static void wipe_next(struct change *change);

static void wiped(struct io *io, void *arg)
{
	struct change *change = arg;
	const struct disk *disk = change->disks[change->wiping];
	char text[256];

	if (io->error) {
		snprintf(text, sizeof(text), "%s: cannot be written: %s. Check the disk",
			 disk->name, strerror(-io->error));
		change_end(change, io->error, text);
		return;
	}
	if (io->op == IO_FLUSH) {
		change->wiping++;
		change->wiped = 0;
	} else {
		change->wiped += WIPE_STEP;
	}
	wipe_next(change);
}

static void wipe_next(struct change *change)
{
	struct blk *blk;
	uint64_t offset = change->wiped;

	if (change->wiping == change->count) {
		change->then(change);
		return;
	}
	blk = change->disks[change->wiping]->blk;
	if (offset >= WIPE_BYTES)
		offset += align_down(blk->size_bytes, 4096) - 2 * WIPE_BYTES;
	change->iov = (struct iovec){ change->zeroes, WIPE_STEP };
	if (change->wiped == 2 * WIPE_BYTES)
		io_init(&change->io, IO_FLUSH, 0, 0, NULL, 0);
	else
		io_init(&change->io, IO_WRITE, offset, WIPE_STEP, &change->iov, 1);
	change->io.purpose = IO_LABEL;
	blk_submit(blk, &change->io, wiped, change);
}

static void wipe(struct change *change, void (*then)(struct change *change))
{
	change->then = then;
	change->zeroes = aligned_alloc(4096, WIPE_STEP);
	if (!change->zeroes) {
		change_end(change, -ENOMEM, "out of memory");
		return;
	}
	memset(change->zeroes, 0, WIPE_STEP);
	wipe_next(change);
}

static void list_disks(const struct change *change, struct array_disk *disks)
{
	for (unsigned i = 0; i < change->count; i++)
		disks[i] =
			(struct array_disk){ change->disks[i]->short_name, change->disks[i]->blk };
}

/* A disk's label is new: what is known of it follows. */
static void note_labels(struct change *change)
{
	struct array_info info;

	array_info(change->entry->array, &info);
	for (unsigned i = 0; i < change->count; i++) {
		struct disk *disk = change->disks[i];

		for (unsigned k = 0; k < info.member_count; k++) {
			const struct array_member_info *member = &info.members[k];

			if (!member->present || strcmp(member->name, disk->short_name) ||
			    member->state == LABEL_FAILED || member->state == LABEL_REMOVED)
				continue;
			memset(&disk->label, 0, sizeof(disk->label));
			uuid_copy(disk->label.array, info.uuid);
			snprintf(disk->label.name, sizeof(disk->label.name), "%s", info.name);
			disk->label.self = member->index;
			uuid_copy(disk->label.members[member->index].uuid, member->uuid);
			disk->content = DISK_LABEL;
			snprintf(disk->carries, sizeof(disk->carries), "array %s", info.name);
		}
	}
}

/* ---- create ---- */

static void created(void *arg, struct array *array, int error, const char *text)
{
	struct change *change = arg;
	struct array_info info;

	(void)array;
	if (error) {
		/* Its labels may be there in part: what they tell of shows at the next scan. */
		snprintf(change->entry->refused, sizeof(change->entry->refused), "%.250s", text);
		array_entry_stop(change->entry);
		change_end(change, error, text);
		return;
	}
	array_info(change->entry->array, &info);
	note_labels(change);
	array_lun_update(change->entry->yoked, change->entry);
	change_end(change, 0, text);
}

static void create_array(struct change *change)
{
	struct array_disk disks[LABEL_ROLES_MAX];
	struct array_entry *entry;
	struct array_info info;

	entry = arrays_find(change->arrays, change->name) ?
			NULL :
			array_entry_new(change->arrays, change->name);
	if (!entry) {
		change_end(change, -EEXIST, "an array of this name came meanwhile");
		return;
	}
	change->entry = entry;
	entry->changes++;
	list_disks(change, disks);
	change->spec.name = change->name;
	entry->array = array_create(entry->yoked->env, &change->spec, disks, change->count, created,
				    change);
	if (!entry->array) {
		change_end(change, -ENOMEM, "out of memory");
		return;
	}
	for (unsigned i = 0; i < change->count; i++)
		change->disks[i]->array = entry;
	array_info(entry->array, &info);
	uuid_copy(entry->uuid, info.uuid);
	array_watch(entry->array, &entry->watch);
}

void arrays_create(struct arrays *arrays, const struct array_spec *spec, struct disk *const *disks,
		   unsigned count, arrays_done_fn *done, void *arg)
{
	struct array_disk list[LABEL_ROLES_MAX];
	struct change *change;
	char text[320];

	for (unsigned i = 0; i < count; i++)
		list[i] = (struct array_disk){ disks[i]->short_name, disks[i]->blk };
	if (array_check(spec, list, count, text, sizeof(text))) {
		done(arg, -EINVAL, text);
		return;
	}
	change = change_new(arrays, NULL, disks, count, done, arg);
	if (!change)
		return;
	change->spec = *spec;
	snprintf(change->name, sizeof(change->name), "%s", spec->name);
	change->spec.created_s = time(NULL);
	wipe(change, create_array);
}

/* ---- add, remove ---- */

static void added(void *arg, struct array *array, int error, const char *text)
{
	struct change *change = arg;

	(void)array;
	if (!error)
		note_labels(change);
	change_end(change, error, text);
}

static void add_disk(struct change *change)
{
	struct array_disk disk;

	list_disks(change, &disk);
	change->had = change->disks[0]->array == change->entry;
	change->disks[0]->array = change->entry;
	if (!change->entry->array || array_add(change->entry->array, &disk, added, change))
		change_end(change, -ENOMEM, "out of memory");
}

bool array_entry_returns(const struct array_entry *entry, const struct disk *disk)
{
	struct array_info info;

	if (disk->content != DISK_LABEL || uuid_compare(disk->label.array, entry->uuid))
		return false;
	array_info(entry->array, &info);
	for (unsigned i = 0; i < info.member_count; i++)
		if (!uuid_compare(info.members[i].uuid, disk->label.members[disk->label.self].uuid))
			return disk->array == entry || !info.members[i].present;
	return true;
}

static void add_reopened(void *arg, int error, const char *text)
{
	struct change *change = arg;
	struct disk *disk = change->disks[0];
	char said[320];

	if (error) {
		snprintf(said, sizeof(said), "%s: %.250s", disk->name, text);
		change_end(change, error, said);
	} else if (array_entry_returns(change->entry, disk)) {
		add_disk(change);
	} else {
		wipe(change, add_disk);
	}
}

void arrays_add(struct array_entry *entry, struct disk *disk, arrays_done_fn *done, void *arg)
{
	const struct array_disk new = { disk->short_name, disk->blk };
	struct change *change;
	char why[192], text[320];
	int error = array_add_check(entry->array, &new, why, sizeof(why));

	if (error) {
		snprintf(text, sizeof(text), "array %s: %s", entry->name, why);
		done(arg, error, text);
		return;
	}
	change = change_new(entry->arrays, entry, &disk, 1, done, arg);
	if (change)
		blk_reopen(disk->blk, add_reopened, change);
}

/* The array uses its device no more: others may have it. */
static void removed(void *arg, struct array *array, int error, const char *text)
{
	struct change *change = arg;
	struct array_info info;
	struct disk *disk = NULL;

	array_info(array, &info);
	for (unsigned i = 0; !error && i < info.member_count; i++)
		if (info.members[i].index == change->member)
			disk = array_member_disk(change->entry, info.members[i].uuid);
	if (disk && disk->array == change->entry) {
		disk->array = NULL;
		disk->keep = true;
	}
	change_end(change, error, text);
}

void arrays_remove(struct array_entry *entry, unsigned member, arrays_done_fn *done, void *arg)
{
	struct change *change = change_new(entry->arrays, entry, NULL, 0, done, arg);

	if (!change)
		return;
	change->member = member;
	if (array_remove(entry->array, member, removed, change))
		change_end(change, -ENOMEM, "out of memory");
}

void array_entry_started(struct array_entry *entry, int error)
{
	struct array_info info;
	struct disk *disk;

	if (error)
		return;
	array_info(entry->array, &info);
	for (unsigned i = 0; i < info.member_count; i++) {
		if (info.members[i].state != LABEL_REMOVED)
			continue;
		disk = array_member_disk(entry, info.members[i].uuid);
		if (disk && disk->array == entry) {
			disk->array = NULL;
			disk_release(disk);
		}
	}
}
