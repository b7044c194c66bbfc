/* SPDX-License-Identifier: MIT */
/*
 * The arrays of this node: those that its disks tell of, and those that are made.
 *
 * They start by themselves (I9). An array has one entry for as long as yoked runs or until
 * nothing tells of it; its name is its handle for people, its uuid what tells it from others.
 */
#ifndef TARGET_ARRAYS_H
#define TARGET_ARRAYS_H

#include <bsd/sys/queue.h>
#include <jansson.h>

#include "raid/array.h"
#include "target/disks.h"

struct arrays;

struct array_entry {
	TAILQ_ENTRY(array_entry) link;
	struct yoked *yoked;
	struct arrays *arrays;
	uuid_t uuid;
	char name[LABEL_NAME_MAX];
	struct array *array; /* NULL: not started, or its end is under way */
	struct array_watch watch;
	char refused[256]; /* why it is not started */
	enum array_state state;
	int64_t since_s; /* wall clock of the last change of state */
	bool stopping;
	bool showing; /* a LUN of it is on its way */
	/* The most there was to do of the resync that runs, and since when. */
	unsigned doubtful_most;
	uint64_t doubtful_since_ns;
	unsigned changes; /* under way; it is not stopped meanwhile */
};
TAILQ_HEAD(array_list, array_entry);

/* NULL: no memory. */
struct arrays *arrays_new(struct yoked *yoked);
void arrays_free(struct arrays *arrays);
struct yoked *arrays_yoked(const struct arrays *arrays);
struct array_list *arrays_list(struct arrays *arrays);
struct array_entry *arrays_find(struct arrays *arrays, const char *name);
/* Of the two, the one that has the name. */
bool array_entry_named(const struct array_entry *entry);

/* LUNs of what has come are shown: those of a new configuration. */
void arrays_show(struct arrays *arrays);
/* The list of disks is new: labels become arrays, disks come back to theirs. */
void arrays_scanned(struct arrays *arrays);
/* Scan, and again while somebody else has one of the disks, as one that is being stopped does. */
void arrays_scan(struct arrays *arrays, const struct conf *conf, disks_scan_fn *done, void *arg);
/* DONE when none is on its way any more, or after LIMIT_NS. One at a time. */
void arrays_settle(struct arrays *arrays, uint64_t limit_ns, void (*done)(void *arg), void *arg);
/* Nobody uses a device of theirs. DONE, later: all have ended and let go of their disks. */
void arrays_stop(struct arrays *arrays, void (*done)(void *arg), void *arg);

/* Online, or waiting for something that is told of; else its start is under way. */
bool array_entry_ready(const struct array_entry *entry);

/*
 * What an administrator asks for. DONE runs once, later: 0, or a negative errno; TEXT is for
 * people. DISKS are open (disk_open()).
 */
typedef void arrays_done_fn(void *arg, int error, const char *text);
void arrays_create(struct arrays *arrays, const struct array_spec *spec, struct disk *const *disks,
		   unsigned count, arrays_done_fn *done, void *arg);
void arrays_add(struct array_entry *entry, struct disk *disk, arrays_done_fn *done, void *arg);
/* Whether DISK is one that the array misses; not another's, nor a copy of a member that works. */
bool array_entry_returns(const struct array_entry *entry, const struct disk *disk);
void arrays_remove(struct array_entry *entry, unsigned member, arrays_done_fn *done, void *arg);
/* One that waits: anew, of the COUNT disks ONLY or, with none, of all that tell of it. */
void arrays_start(struct array_entry *entry, struct disk *const *only, unsigned count, bool force,
		  arrays_done_fn *done, void *arg);

/* For array_change.c: an entry without an array; its end; changes that arrays_stop() waits for. */
struct array_entry *array_entry_new(struct arrays *arrays, const char *name);
void array_entry_stop(struct array_entry *entry);
/* Without ERROR it is online: disks that were taken out of it are others' to use. */
void array_entry_started(struct array_entry *entry, int error);
void arrays_change(struct arrays *arrays, int change);

/* The disk that is MEMBER, by its label; of copies the array's own. NULL: none is there. */
struct disk *array_member_disk(const struct array_entry *entry, const uuid_t member);

/* ---- array_show.c: as JSON, and what is wrong */
json_t *array_row(const struct array_entry *entry, bool members);
void array_problems(const struct array_entry *entry, json_t *problems);
void absent_problems(const struct yoked *yoked, json_t *problems);
void array_entry_progress(struct array_entry *entry, const struct array_info *info);

#endif
