/* SPDX-License-Identifier: MIT */
/*
 * The list of disks and the scan that keeps it.
 *
 *   glob, stat (worker) ─▶ for each that nobody has: open ─▶ label? ─▶ signature (worker) ─▶ next
 *
 * Invariants:
 *  1. What is opened was matched by `disks`, or is a backing already. A file that a backing
 *     names is that backing, and one device with several names is one disk.
 *  2. A disk that an array or a user has stays as it is.
 *  3. One scan at a time; whoever asks while it runs gets one of their own.
 *  4. A disk is opened once: whoever wants it open while that is under way gets the same answer.
 *
 * Not here: what becomes of the labels found (arrays.c).
 */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backstore/backing.h"
#include "core/clean.h"
#include "core/log.h"
#include "raid/array.h"
#include "target/daemon.h"

#define DISKS_MAX 1024
#define OWN_WAIT_NS (5 * NS_PER_S)

struct found {
	char *path;
	bool device;
	dev_t dev;
	ino_t ino;
};

struct scan {
	struct env_work work;
	struct disks *disks;
	char **patterns;
	unsigned pattern_count;
	char **taken; /* paths of backings */
	unsigned taken_count;
	struct found *found;
	unsigned found_count;
	STAILQ_ENTRY(scan) link;
	struct disk *at;
	char path[PATH_MAX]; /* of the one that is looked at */
	bool only_busy;
	disks_scan_fn *done;
	void *arg;
};

struct disks {
	struct yoked *yoked;
	struct disk_list list;
	struct disk_list gone; /* closed; freed before the next scan */
	struct scan *now;
	STAILQ_HEAD(, scan) next;
};

/* ---- disks ---- */

struct disks *disks_new(struct yoked *yoked)
{
	struct disks *disks = calloc(1, sizeof(*disks));

	if (!disks)
		return NULL;
	disks->yoked = yoked;
	TAILQ_INIT(&disks->list);
	TAILQ_INIT(&disks->gone);
	STAILQ_INIT(&disks->next);
	return disks;
}

static void disk_close(struct disk *disk)
{
	if (!disk->blk)
		return;
	disk->closing = !disk->store;
	disk->blk->latency = NULL;
	blk_unref(disk->blk);
	disk->blk = NULL;
	free(disk->latency);
	disk->latency = NULL;
}

/* Members are compared by it. A device that is busy with somebody else's requests is not timed. */
static void disk_opened(struct disk *disk)
{
	struct blk *blk = disk->blk;

	disk->size_bytes = blk->size_bytes;
	disk->block_size = blk->block_size;
	if (blk->latency || blk->in_flight)
		return;
	disk->latency = calloc(1, sizeof(*disk->latency));
	blk->latency = disk->latency;
}

static void disk_goes(struct disks *disks, struct disk *disk)
{
	assert(!disk->array && !disk->users);
	TAILQ_REMOVE(&disks->list, disk, link);
	disk_close(disk);
	TAILQ_INSERT_TAIL(&disks->gone, disk, link);
}

static void gone_free(struct disks *disks)
{
	struct disk *disk, *next;

	TAILQ_FOREACH_SAFE(disk, &disks->gone, link, next) {
		TAILQ_REMOVE(&disks->gone, disk, link);
		free(disk->name);
		free(disk);
	}
}

void disks_free(struct disks *disks)
{
	struct disk *disk, *next;

	if (!disks)
		return;
	assert(!disks->now);
	TAILQ_FOREACH_SAFE(disk, &disks->list, link, next)
		disk_goes(disks, disk);
	gone_free(disks);
	free(disks);
}

void disks_forget(struct disks *disks, const struct store *store)
{
	struct disk *disk;

	TAILQ_FOREACH(disk, &disks->list, link)
		if (disk->store == store)
			break;
	if (!disk)
		return;
	assert(!disk->array);
	disk->store = NULL;
	if (!disk->users)
		disk_goes(disks, disk);
}

struct disk_list *disks_list(struct disks *disks)
{
	return &disks->list;
}

bool disks_scanning(const struct disks *disks)
{
	return disks->now != NULL;
}

static bool same_device(const struct disk *disk, const struct stat *st)
{
	if (disk->store || disk->device != S_ISBLK(st->st_mode))
		return false;
	return disk->device ? disk->dev == st->st_rdev :
			      disk->dev == st->st_dev && disk->ino == st->st_ino;
}

struct disk *disks_find(struct disks *disks, const char *name)
{
	struct disk *disk;
	struct stat st;

	TAILQ_FOREACH(disk, &disks->list, link)
		if (!strcmp(disk->name, name))
			return disk;
	if (*name != '/' || stat(name, &st))
		return NULL;
	TAILQ_FOREACH(disk, &disks->list, link)
		if (same_device(disk, &st))
			return disk;
	return NULL;
}

static struct disk *disk_new(struct disks *disks, const char *name)
{
	struct disk *disk = calloc(1, sizeof(*disk));
	size_t len = strlen(name), most = sizeof(disk->short_name) - 1;

	if (!disk)
		return NULL;
	disk->name = strdup(name);
	if (!disk->name) {
		free(disk);
		return NULL;
	}
	/* The end of a path tells more than its beginning. */
	snprintf(disk->short_name, sizeof(disk->short_name), "%s",
		 len > most ? name + len - most : name);
	clean_text(disk->short_name);
	STAILQ_INIT(&disk->openings);
	TAILQ_INSERT_TAIL(&disks->list, disk, link);
	return disk;
}

void disk_release(struct disk *disk)
{
	if (!disk->array && !disk->users && !disk->keep)
		disk_close(disk);
}

/* ---- opening ---- */

struct opening {
	struct disks *disks;
	struct disk *disk;
	bool direct;
	disk_open_fn *done;
	void *arg;
	STAILQ_ENTRY(opening) link;
};

static void open_file(struct opening *opening);

static void opened(void *arg, struct blk *blk, int error, const char *text)
{
	struct opening *opening = arg;
	struct disk *disk = opening->disk;
	const char *cause = strstr(text, "\": ");
	struct opening_list waited = STAILQ_HEAD_INITIALIZER(waited);

	/* Some file systems have no direct I/O. */
	if (error == -EINVAL && opening->direct && !disk->device) {
		opening->direct = false;
		open_file(opening);
		return;
	}
	disk->closing = false;
	disk->blk = blk;
	disk->busy = error == -EBUSY;
	disk->cause[0] = '\0';
	if (error) {
		disk->content = DISK_CLOSED;
		snprintf(disk->cause, sizeof(disk->cause), "%s", cause ? cause + 3 : text);
		clean_text(disk->cause);
	}
	if (blk)
		disk_opened(disk);
	STAILQ_CONCAT(&waited, &disk->openings);
	while ((opening = STAILQ_FIRST(&waited))) {
		STAILQ_REMOVE_HEAD(&waited, link);
		disk->users--;
		opening->done(opening->arg, disk, error, disk->cause);
		free(opening);
	}
}

static void open_file(struct opening *opening)
{
	const struct backing_spec spec = {
		.name = opening->disk->short_name,
		.driver = BACKING_FILE,
		.path = opening->disk->name,
		.direct = opening->direct,
		.faults = opening->disks->yoked->faults,
		/* Who else has it is told; the next scan asks again. */
		.wait_ns = opening->disk->closing ? OWN_WAIT_NS : 1,
	};

	backing_open(opening->disks->yoked->env, &spec, opened, opening);
}

void disk_open(struct disks *disks, struct disk *disk, disk_open_fn *done, void *arg)
{
	struct opening *opening;
	bool first;

	if (!disk->blk && disk->store) {
		disk->blk = blk_ref(disk->store->blk);
		disk_opened(disk);
	}
	if (disk->blk) {
		done(arg, disk, 0, "");
		return;
	}
	opening = calloc(1, sizeof(*opening));
	if (!opening) {
		done(arg, disk, -ENOMEM, "out of memory");
		return;
	}
	disk->users++;
	first = STAILQ_EMPTY(&disk->openings);
	*opening = (struct opening){ disks, disk, true, done, arg, { NULL } };
	STAILQ_INSERT_TAIL(&disk->openings, opening, link);
	if (first)
		open_file(opening);
}

/* ---- the scan: what is there ---- */

static bool found_already(const struct scan *scan, const struct found *new)
{
	for (unsigned i = 0; i < scan->found_count; i++) {
		const struct found *old = &scan->found[i];

		if (old->device == new->device && old->dev == new->dev &&
		    (new->device || old->ino == new->ino))
			return true;
	}
	return false;
}

/* Nobody could be told of it: answers are JSON, which has nothing but UTF-8. */
static bool unspeakable(const char *path)
{
	size_t n = 1;

	for (; *path && n; path += n)
		n = log_printable(path);
	return !n;
}

static void find_one(struct scan *scan, const char *path)
{
	struct found new = { 0 };
	struct stat st, taken;

	if (unspeakable(path) || stat(path, &st) || !(S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)))
		return;
	new.device = S_ISBLK(st.st_mode);
	new.dev = new.device ? st.st_rdev : st.st_dev;
	new.ino = st.st_ino;
	for (unsigned i = 0; i < scan->taken_count; i++)
		if (stat(scan->taken[i], &taken) == 0 &&
		    (new.device ? S_ISBLK(taken.st_mode) && taken.st_rdev == new.dev :
				  taken.st_dev == new.dev &&taken.st_ino == new.ino))
			return;
	if (scan->found_count == DISKS_MAX || found_already(scan, &new))
		return;
	new.path = strdup(path);
	if (new.path)
		scan->found[scan->found_count++] = new;
}

static void find_run(struct env_work *work)
{
	struct scan *scan = container_of(work, struct scan, work);

	for (unsigned i = 0; i < scan->pattern_count; i++) {
		glob_t paths = { 0 };

		if (glob(scan->patterns[i], 0, NULL, &paths) == 0)
			for (size_t k = 0; k < paths.gl_pathc; k++)
				find_one(scan, paths.gl_pathv[k]);
		globfree(&paths);
	}
}

/* ---- the scan: what it carries ---- */

static void scan_next(struct scan *scan);

static void scan_step_end(struct scan *scan)
{
	struct disk *disk = scan->at;

	scan->at = TAILQ_NEXT(disk, link);
	disk->users--;
	disk->known = true;
	if (disk->content != DISK_LABEL)
		disk_release(disk);
	scan_next(scan);
}

static void signature_run(struct env_work *work)
{
	struct scan *scan = container_of(work, struct scan, work);
	struct disk *disk = scan->at;

	if (*scan->path && signature_of(scan->path, disk->carries, sizeof(disk->carries)))
		disk->content = DISK_FOREIGN;
}

static void signature_done(struct env_work *work)
{
	scan_step_end(container_of(work, struct scan, work));
}

static void probed(void *arg, int error, const struct label *label)
{
	struct scan *scan = arg;
	struct disk *disk = scan->at;

	disk->carries[0] = '\0';
	disk->content = error == -ENOENT ? DISK_BLANK : DISK_FOREIGN;
	switch (error) {
	case 0:
		disk->content = DISK_LABEL;
		disk->label = *label;
		snprintf(disk->carries, sizeof(disk->carries), "array %s", label->name);
		break;
	case -ENOENT:
		snprintf(scan->path, sizeof(scan->path), "%s",
			 disk->store ? disk->store->conf->path : disk->name);
		scan->work.run = signature_run;
		scan->work.done = signature_done;
		env_work_submit(scan->disks->yoked->env, &scan->work);
		return;
	case -EILSEQ:
		snprintf(disk->carries, sizeof(disk->carries), "a damaged label of an array");
		break;
	case -ENOTSUP:
		snprintf(disk->carries, sizeof(disk->carries), "a label of a newer yoked");
		break;
	default:
		disk->content = DISK_CLOSED;
		snprintf(disk->cause, sizeof(disk->cause), "%s: cannot be read: %s. Check the disk",
			 disk->name, strerror(-error));
	}
	scan_step_end(scan);
}

static void scan_opened(void *arg, struct disk *disk, int error, const char *text)
{
	struct scan *scan = arg;

	(void)text;
	if (error)
		scan_step_end(scan);
	else if (array_probe(scan->disks->yoked->env, disk->blk, probed, scan))
		probed(scan, -ENOMEM, NULL);
}

static void scan_free(struct scan *scan)
{
	for (unsigned i = 0; i < scan->pattern_count; i++)
		free(scan->patterns[i]);
	for (unsigned i = 0; i < scan->taken_count; i++)
		free(scan->taken[i]);
	for (unsigned i = 0; i < scan->found_count; i++)
		free(scan->found[i].path);
	free(scan->patterns);
	free(scan->taken);
	free(scan->found);
	free(scan);
}

static void scan_start(struct disks *disks)
{
	gone_free(disks);
	disks->now = STAILQ_FIRST(&disks->next);
	if (!disks->now)
		return;
	STAILQ_REMOVE_HEAD(&disks->next, link);
	env_work_submit(disks->yoked->env, &disks->now->work);
}

static void scan_end(struct scan *scan)
{
	struct disks *disks = scan->disks;

	disks->now = NULL;
	arrays_scanned(disks->yoked->arrays);
	scan->done(scan->arg);
	scan_free(scan);
	if (!disks->now)
		scan_start(disks);
}

/* Those that an array or a user has say nothing new. */
static bool passed_over(const struct scan *scan, const struct disk *disk)
{
	return disk->array || disk->users || (scan->only_busy && disk->known && !disk->busy);
}

static void scan_next(struct scan *scan)
{
	struct disk *disk;

	while ((disk = scan->at) && passed_over(scan, disk))
		scan->at = TAILQ_NEXT(disk, link);
	if (!disk) {
		scan_end(scan);
		return;
	}
	disk->users++;
	disk_open(scan->disks, disk, scan_opened, scan);
}

static struct disk *disk_of(struct disks *disks, const struct found *found)
{
	struct disk *disk;

	TAILQ_FOREACH(disk, &disks->list, link)
		if (!disk->store && disk->device == found->device && disk->dev == found->dev &&
		    (found->device || disk->ino == found->ino))
			return disk;
	disk = disk_new(disks, found->path);
	if (!disk)
		return NULL;
	disk->device = found->device;
	disk->dev = found->dev;
	disk->ino = found->ino;
	return disk;
}

static void add_backings(struct disks *disks)
{
	struct store *store;
	struct disk *disk;
	char name[CONF_NAME_MAX + 16];

	TAILQ_FOREACH(store, &disks->yoked->stores, link) {
		if (store->array || store_has_lun(disks->yoked, store))
			continue;
		snprintf(name, sizeof(name), "backing:%s", store->name);
		disk = disks_find(disks, name);
		if (!disk)
			disk = disk_new(disks, name);
		if (!disk)
			continue;
		disk->store = store;
		disk->seen = true;
	}
}

static void find_done(struct env_work *work)
{
	struct scan *scan = container_of(work, struct scan, work);
	struct disks *disks = scan->disks;
	struct disk *disk, *next;

	TAILQ_FOREACH(disk, &disks->list, link)
		disk->seen = disk->array || disk->users;
	for (unsigned i = 0; i < scan->found_count; i++) {
		disk = disk_of(disks, &scan->found[i]);
		if (disk)
			disk->seen = true;
	}
	add_backings(disks);
	TAILQ_FOREACH_SAFE(disk, &disks->list, link, next)
		if (!disk->seen)
			disk_goes(disks, disk);
	scan->at = TAILQ_FIRST(&disks->list);
	scan_next(scan);
}

static int copy_names(struct scan *scan, const struct conf *conf)
{
	scan->patterns = calloc(conf->node.disks.count + 1, sizeof(char *));
	scan->taken = calloc(conf->backing_count + 1, sizeof(char *));
	scan->found = calloc(DISKS_MAX, sizeof(*scan->found));
	if (!scan->patterns || !scan->taken || !scan->found)
		return -ENOMEM;
	for (unsigned i = 0; i < conf->node.disks.count; i++)
		if ((scan->patterns[scan->pattern_count] = strdup(conf->node.disks.items[i])))
			scan->pattern_count++;
	for (unsigned i = 0; i < conf->backing_count; i++)
		if (*conf->backings[i].path &&
		    (scan->taken[scan->taken_count] = strdup(conf->backings[i].path)))
			scan->taken_count++;
	return 0;
}

void disks_scan(struct disks *disks, const struct conf *conf, bool only_busy, disks_scan_fn *done,
		void *arg)
{
	struct scan *scan = calloc(1, sizeof(*scan));

	if (!scan || copy_names(scan, conf)) {
		if (scan)
			scan_free(scan);
		done(arg);
		return;
	}
	scan->disks = disks;
	scan->work.run = find_run;
	scan->work.done = find_done;
	scan->only_busy = only_busy;
	scan->done = done;
	scan->arg = arg;
	STAILQ_INSERT_TAIL(&disks->next, scan, link);
	if (!disks->now)
		scan_start(disks);
}
