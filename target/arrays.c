/* SPDX-License-Identifier: MIT */
/*
 * Arrays come, change and go as their disks and the administrator say.
 *
 *   label on a disk ─▶ entry ─▶ array_start() ─▶ waits or is online ─▶ array_stop()
 *                        │ name taken: refused, with the remedy
 *                        └ its disk again, later: array_offer()
 *
 * Invariants:
 *  1. Of two arrays of one name the one that was there first keeps it; the other is not started.
 *  2. disk->array says who has a disk; it is let go when its array ends or refuses it.
 *  3. An array is not stopped while its start or a change is under way.
 *
 * Not here: which disks there are (disks.c), LUNs on arrays (array_lun.c), control methods
 * (array_ctl.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/log.h"
#include "target/daemon.h"

#define POLL_NS (5 * NS_PER_MS)
#define BUSY_SCAN_NS (250 * NS_PER_MS)
#define BUSY_SCANS 40

struct arrays {
	struct yoked *yoked;
	struct array_list list;
	struct array_list gone; /* until the next scan: nobody has them */
	/* arrays_settle() and arrays_stop() */
	struct env_timer poll;
	uint64_t settle_by_ns;
	bool stopping;
	void (*done)(void *arg);
	void *arg;
	struct env_timer busy_scan;
	unsigned busy_scans_left;
	int changes;
};

static void poll_run(struct env_timer *timer);
static void busy_scan_run(struct env_timer *timer);

struct arrays *arrays_new(struct yoked *yoked)
{
	struct arrays *arrays = calloc(1, sizeof(*arrays));

	if (!arrays)
		return NULL;
	arrays->yoked = yoked;
	TAILQ_INIT(&arrays->list);
	TAILQ_INIT(&arrays->gone);
	arrays->poll.fn = poll_run;
	arrays->busy_scan.fn = busy_scan_run;
	return arrays;
}

static void entries_free(struct array_list *list)
{
	struct array_entry *entry, *next;

	TAILQ_FOREACH_SAFE(entry, list, link, next) {
		assert(!entry->array);
		TAILQ_REMOVE(list, entry, link);
		free(entry);
	}
}

void arrays_free(struct arrays *arrays)
{
	if (!arrays)
		return;
	entries_free(&arrays->gone);
	entries_free(&arrays->list);
	free(arrays);
}

void arrays_change(struct arrays *arrays, int change)
{
	arrays->changes += change;
}

struct yoked *arrays_yoked(const struct arrays *arrays)
{
	return arrays->yoked;
}

struct array_list *arrays_list(struct arrays *arrays)
{
	return &arrays->list;
}

bool array_entry_named(const struct array_entry *entry)
{
	return arrays_find(entry->arrays, entry->name) == entry;
}

struct array_entry *arrays_find(struct arrays *arrays, const char *name)
{
	struct array_entry *entry;

	TAILQ_FOREACH(entry, &arrays->list, link)
		if (!strcmp(entry->name, name))
			return entry;
	return NULL;
}

static struct array_entry *find_uuid(struct arrays *arrays, const uuid_t uuid)
{
	struct array_entry *entry;

	TAILQ_FOREACH(entry, &arrays->list, link)
		if (!uuid_compare(entry->uuid, uuid))
			return entry;
	return NULL;
}

struct disk *array_member_disk(const struct array_entry *entry, const uuid_t member)
{
	struct disk *disk, *found = NULL;

	TAILQ_FOREACH(disk, disks_list(entry->arrays->yoked->disks), link)
		if (disk->content == DISK_LABEL && !uuid_compare(disk->label.array, entry->uuid) &&
		    !uuid_compare(disk->label.members[disk->label.self].uuid, member) &&
		    (!found || disk->array == entry))
			found = disk;
	return found;
}

bool array_entry_ready(const struct array_entry *entry)
{
	struct array_info info;

	if (!entry->array)
		return !entry->stopping;
	array_info(entry->array, &info);
	return info.state != ARRAY_WAITING || info.why[0];
}

/* ---- entries ---- */

static void entry_changed(struct array_watch *watch)
{
	struct array_entry *entry = container_of(watch, struct array_entry, watch);
	struct array_info info;

	array_info(entry->array, &info);
	if (info.state != entry->state)
		entry->since_s = time(NULL);
	entry->state = info.state;
	array_entry_progress(entry, &info);
	array_lun_update(entry->arrays->yoked, entry);
}

struct array_entry *array_entry_new(struct arrays *arrays, const char *name)
{
	struct array_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->yoked = arrays->yoked;
	entry->arrays = arrays;
	snprintf(entry->name, sizeof(entry->name), "%s", name);
	entry->watch.changed = entry_changed;
	entry->since_s = time(NULL);
	TAILQ_INSERT_TAIL(&arrays->list, entry, link);
	return entry;
}

static void let_go(struct array_entry *entry)
{
	struct disk *disk;

	TAILQ_FOREACH(disk, disks_list(entry->arrays->yoked->disks), link) {
		if (disk->array != entry)
			continue;
		disk->array = NULL;
		disk_release(disk);
	}
}

static void entry_goes(struct array_entry *entry)
{
	let_go(entry);
	TAILQ_REMOVE(&entry->arrays->list, entry, link);
	TAILQ_INSERT_TAIL(&entry->arrays->gone, entry, link);
}

static void stopped(void *arg, struct array *array, int error, const char *text)
{
	struct array_entry *entry = arg;

	(void)array;
	(void)error;
	(void)text;
	entry->stopping = false;
	let_go(entry);
}

/* Nothing of it is on its way, nobody uses its device. */
void array_entry_stop(struct array_entry *entry)
{
	struct array *array = entry->array;

	array_unwatch(&entry->watch);
	entry->array = NULL;
	entry->stopping = true;
	array_stop(array, stopped, entry);
}

/* ---- starting ---- */

static void started(void *arg, struct array *array, int error, const char *text)
{
	struct array_entry *entry = arg;

	(void)array;
	array_entry_started(entry, error);
	/* Those that wait say so by an event of their own. */
	if (error && error != -EAGAIN)
		log_line(LOG_L_WARN, "array", entry->name, "not-started", "cause=\"%s\"", text);
}

static bool tells_of(const struct disk *disk, const struct array_entry *entry)
{
	return disk->blk && disk->content == DISK_LABEL &&
	       !uuid_compare(disk->label.array, entry->uuid);
}

static int entry_start(struct array_entry *entry, struct disk *const *only, unsigned only_count,
		       bool force, uint64_t wait_ns, array_done_fn *done, void *arg)
{
	struct yoked *yoked = entry->arrays->yoked;
	const struct array_start how = { .wait_ns = wait_ns, .force = force };
	struct array_disk disks[LABEL_MEMBERS_MAX];
	unsigned count = 0;
	struct disk *disk;

	TAILQ_FOREACH(disk, disks_list(yoked->disks), link) {
		bool wanted = !only_count;

		for (unsigned i = 0; i < only_count; i++)
			wanted |= only[i] == disk;
		if (!wanted || count == LABEL_MEMBERS_MAX || !tells_of(disk, entry))
			continue;
		disk->array = entry;
		disks[count++] = (struct array_disk){ disk->short_name, disk->blk };
	}
	entry->refused[0] = '\0';
	entry->state = ARRAY_WAITING;
	entry->array = array_start(yoked->env, entry->uuid, disks, count, &how, done, arg);
	if (!entry->array) {
		snprintf(entry->refused, sizeof(entry->refused), "out of memory");
		let_go(entry);
		return -ENOMEM;
	}
	array_watch(entry->array, &entry->watch);
	return 0;
}

/* ---- starting by hand ---- */

struct restart {
	struct array_entry *entry;
	struct disk *only[LABEL_MEMBERS_MAX];
	unsigned count;
	bool force;
	arrays_done_fn *done;
	void *arg;
};

static void restart_end(struct restart *restart, int error, const char *text)
{
	array_entry_started(restart->entry, error);
	restart->entry->changes--;
	arrays_change(restart->entry->arrays, -1);
	restart->done(restart->arg, error, text);
	free(restart);
}

static void restarted(void *arg, struct array *array, int error, const char *text)
{
	(void)array;
	restart_end(arg, error, text);
}

static void restart_stopped(void *arg, struct array *array, int error, const char *text)
{
	struct restart *restart = arg;
	struct array_entry *entry = restart->entry;
	struct disk *disk;

	(void)array;
	(void)error;
	(void)text;
	entry->stopping = false;
	TAILQ_FOREACH(disk, disks_list(entry->arrays->yoked->disks), link)
		if (disk->array == entry)
			disk->array = NULL; /* and open, for those that start it again */
	if (entry_start(entry, restart->only, restart->count, restart->force, 0, restarted,
			restart))
		restart_end(restart, -ENOMEM, "out of memory");
}

void arrays_start(struct array_entry *entry, struct disk *const *only, unsigned count, bool force,
		  arrays_done_fn *done, void *arg)
{
	struct restart *restart = calloc(1, sizeof(*restart));
	struct array *array = entry->array;

	assert(count <= LABEL_MEMBERS_MAX && !entry->stopping && array_entry_ready(entry));
	if (!restart) {
		done(arg, -ENOMEM, "out of memory");
		return;
	}
	*restart = (struct restart){
		.entry = entry, .count = count, .force = force, .done = done, .arg = arg
	};
	memcpy(restart->only, only, count * sizeof(struct disk *));
	entry->changes++;
	arrays_change(entry->arrays, 1);
	if (!array) {
		restart_stopped(restart, NULL, 0, "");
		return;
	}
	array_unwatch(&entry->watch);
	entry->array = NULL;
	entry->stopping = true;
	array_stop(array, restart_stopped, restart);
}

/* ---- disks come ---- */

static void offered(void *arg, struct array *array, int error, const char *text)
{
	struct disk *disk = arg;

	(void)array;
	disk->users--;
	if (!error || !disk->array)
		return;
	log_line(LOG_L_WARN, "array", disk->array->name, "disk-not-taken", "disk=%s cause=\"%s\"",
		 disk->name, text);
	disk->array = NULL;
	disk_release(disk);
}

/* Whether the array expects the one whose label DISK has: it was out, not taken out. */
static bool expected(const struct array_info *info, const struct disk *disk)
{
	const uuid_t *self = &disk->label.members[disk->label.self].uuid;

	for (unsigned i = 0; i < info->member_count; i++)
		if (!uuid_compare(info->members[i].uuid, *self))
			return info->members[i].state == LABEL_FAILED;
	return false;
}

static void offer(struct array_entry *entry, struct disk *disk)
{
	const struct array_disk offer = { disk->short_name, disk->blk };
	struct array_info info;

	if (!entry->array)
		return;
	array_info(entry->array, &info);
	if (info.state != ARRAY_WAITING && !expected(&info, disk))
		return;
	disk->array = entry;
	if (info.state == ARRAY_WAITING) {
		if (array_offer(entry->array, &offer, started, entry))
			disk->array = NULL;
		return;
	}
	disk->users++;
	if (array_offer(entry->array, &offer, offered, disk))
		offered(disk, entry->array, -ENOMEM, "out of memory");
}

static void entry_refuse(struct array_entry *entry, const struct array_entry *first)
{
	char uuid[UUID_STR_LEN];

	uuid_unparse_lower(first->uuid, uuid);
	snprintf(entry->refused, sizeof(entry->refused),
		 "array %s of uuid %s has this name. Disconnect the disks of one of them",
		 first->name, uuid);
	log_line(LOG_L_WARN, "array", entry->name, "not-started", "cause=\"%s\"", entry->refused);
}

/* A label that names an array nobody has heard of. The older of two with a name has it. */
static void new_entries(struct arrays *arrays)
{
	struct disk *disk, *oldest;

	for (;;) {
		struct array_entry *entry;

		oldest = NULL;
		TAILQ_FOREACH(disk, disks_list(arrays->yoked->disks), link)
			if (disk->content == DISK_LABEL && disk->blk && !disk->array &&
			    !find_uuid(arrays, disk->label.array) &&
			    (!oldest || disk->label.created_s < oldest->label.created_s))
				oldest = disk;
		if (!oldest)
			return;
		entry = array_entry_new(arrays, oldest->label.name);
		if (!entry)
			return;
		uuid_copy(entry->uuid, oldest->label.array);
	}
}

void arrays_show(struct arrays *arrays)
{
	struct array_entry *entry;

	TAILQ_FOREACH(entry, &arrays->list, link)
		array_lun_update(arrays->yoked, entry);
}

void arrays_scanned(struct arrays *arrays)
{
	struct array_entry *entry, *next;
	struct disk *disk;

	if (arrays->stopping)
		return;
	entries_free(&arrays->gone);
	TAILQ_FOREACH(disk, disks_list(arrays->yoked->disks), link) {
		if (disk->content != DISK_LABEL || !disk->blk || disk->array)
			continue;
		entry = find_uuid(arrays, disk->label.array);
		if (entry)
			offer(entry, disk);
	}
	new_entries(arrays);
	TAILQ_FOREACH_SAFE(entry, &arrays->list, link, next) {
		struct array_entry *first = arrays_find(arrays, entry->name);
		bool told = false;

		if (entry->array || entry->stopping || entry->showing || entry->changes)
			continue;
		TAILQ_FOREACH(disk, disks_list(arrays->yoked->disks), link)
			told |= tells_of(disk, entry);
		if (!told)
			entry_goes(entry);
		else if (first != entry)
			entry_refuse(entry, first);
		else
			entry_start(entry, NULL, 0, false, arrays->yoked->array_wait_ns, started,
				    entry);
	}
	/* What nobody took is not ours to hold. */
	TAILQ_FOREACH(disk, disks_list(arrays->yoked->disks), link)
		disk_release(disk);
}

/* ---- scanning ---- */

struct asking {
	struct arrays *arrays;
	disks_scan_fn *done;
	void *arg;
};

static void busy_scanned(void *arg)
{
	struct arrays *arrays = arg;
	struct disk *disk;
	bool busy = false;

	TAILQ_FOREACH(disk, disks_list(arrays->yoked->disks), link)
		busy |= disk->content == DISK_CLOSED && disk->busy;
	if (busy && arrays->busy_scans_left && !arrays->stopping) {
		arrays->busy_scans_left--;
		env_timer_set(arrays->yoked->env, &arrays->busy_scan, BUSY_SCAN_NS);
	}
}

static void busy_scan_run(struct env_timer *timer)
{
	struct arrays *arrays = container_of(timer, struct arrays, busy_scan);

	if (arrays->yoked->conf)
		disks_scan(arrays->yoked->disks, arrays->yoked->conf, true, busy_scanned, arrays);
	else
		busy_scanned(arrays);
}

static void asked_scanned(void *arg)
{
	struct asking *asking = arg;

	asking->arrays->busy_scans_left = BUSY_SCANS;
	busy_scanned(asking->arrays);
	asking->done(asking->arg);
	free(asking);
}

void arrays_scan(struct arrays *arrays, const struct conf *conf, disks_scan_fn *done, void *arg)
{
	struct asking *asking = calloc(1, sizeof(*asking));

	if (!asking) {
		done(arg);
		return;
	}
	*asking = (struct asking){ arrays, done, arg };
	env_timer_cancel(arrays->yoked->env, &arrays->busy_scan);
	disks_scan(arrays->yoked->disks, conf, false, asked_scanned, asking);
}

/* ---- waiting for all ---- */

static void poll_again(struct arrays *arrays)
{
	env_timer_set(arrays->yoked->env, &arrays->poll, POLL_NS);
}

static void poll_end(struct arrays *arrays)
{
	void (*done)(void *arg) = arrays->done;

	arrays->done = NULL;
	done(arrays->arg);
}

static void poll_settle(struct arrays *arrays)
{
	struct array_entry *entry;
	bool ready = true;

	TAILQ_FOREACH(entry, &arrays->list, link)
		ready &= array_entry_ready(entry);
	if (ready || env_now_ns(arrays->yoked->env) >= arrays->settle_by_ns)
		poll_end(arrays);
	else
		poll_again(arrays);
}

/* A logical unit lets go of a device a little after its last LUN has gone. */
static bool in_use(const struct array_entry *entry)
{
	const struct blk *blk = array_blk(entry->array);

	return entry->changes || !array_entry_ready(entry) || (blk && blk->refs > 1);
}

static void poll_stop(struct arrays *arrays)
{
	struct array_entry *entry;
	struct disk *disk;
	bool ended = !disks_scanning(arrays->yoked->disks) && !arrays->changes;

	TAILQ_FOREACH(disk, disks_list(arrays->yoked->disks), link)
		ended &= !disk->users;
	TAILQ_FOREACH(entry, &arrays->list, link) {
		if (entry->array && ended && !in_use(entry))
			array_entry_stop(entry);
		ended &= !entry->array && !entry->stopping;
	}
	if (ended)
		poll_end(arrays);
	else
		poll_again(arrays);
}

static void poll_run(struct env_timer *timer)
{
	struct arrays *arrays = container_of(timer, struct arrays, poll);

	if (arrays->stopping)
		poll_stop(arrays);
	else
		poll_settle(arrays);
}

void arrays_settle(struct arrays *arrays, uint64_t limit_ns, void (*done)(void *arg), void *arg)
{
	assert(!arrays->done);
	arrays->done = done;
	arrays->arg = arg;
	arrays->settle_by_ns = env_now_ns(arrays->yoked->env) + limit_ns;
	poll_again(arrays);
}

void arrays_stop(struct arrays *arrays, void (*done)(void *arg), void *arg)
{
	assert(!arrays->done);
	arrays->stopping = true;
	env_timer_cancel(arrays->yoked->env, &arrays->busy_scan);
	arrays->done = done;
	arrays->arg = arg;
	poll_again(arrays);
}
