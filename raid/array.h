/* SPDX-License-Identifier: MIT */
/*
 * An array: disks that stand for one device.
 *
 * It is made once (array_create) and found again by its labels (array_start). What stands on it
 * sees array_blk(). Whoever submits orders overlapping ios of which one writes, as every LUN
 * does; the array orders its own work (resync, stripes) behind that.
 *
 * Callbacks run once, deferred or later. Texts are for people: object, cause, remedy.
 * Single-threaded, on the env's shard.
 */
#ifndef RAID_ARRAY_H
#define RAID_ARRAY_H

#include "backstore/blk.h"
#include "backstore/label.h"

struct array;

/* A device offered to an array, which takes references of its own. */
struct array_disk {
	const char *name; /* as the administrator knows it: a path or "backing:NAME" */
	struct blk *blk;
};

struct array_spec {
	const char *name;
	unsigned level;       /* 0, 1, 5, 10 */
	uint32_t chunk_bytes; /* a power of two, 4 KiB to 1 MiB; level 1: 0 */
	bool log_stripes;     /* level 5: full_stripe_log=data, else intent */
	int64_t created_s;    /* CLOCK_REALTIME, for people */
};

typedef void array_done_fn(void *arg, struct array *array, int error, const char *text);

/*
 * Writes labels on all DISKS (whose content is lost: looking at that is the caller's) and starts
 * the array. DONE has the array in any case: with an ERROR it is for array_stop(). -EINVAL:
 * level, number, chunk; mixed block sizes; a disk too small. NULL: no memory, no DONE.
 */
struct array *array_create(struct env *env, const struct array_spec *spec,
			   const struct array_disk *disks, unsigned count, array_done_fn *done,
			   void *arg);
/* Whether it could be made: 0, or -EINVAL and TEXT. Changes nothing. */
int array_check(const struct array_spec *spec, const struct array_disk *disks, unsigned count,
		char *text, size_t text_size);

/*
 * The newest label on DISK: 0 and LABEL, or -ENOENT: none, -EILSEQ: a damaged one, -ENOTSUP: of a
 * newer version, -EIO: it cannot be read, or one that cannot may be newer than those that can.
 * LABEL is valid during the callback. Returns -ENOMEM: no DONE.
 */
typedef void array_probe_fn(void *arg, int error, const struct label *label);
int array_probe(struct env *env, struct blk *disk, array_probe_fn *done, void *arg);

struct array_start {
	uint64_t wait_ns; /* for listed disks that are absent, where it could start without them */
	bool force;       /* starts where it would wait; never where it would ask */
};

/*
 * The array UUID of the DISKS whose labels name it; others are left out. DONE has the array in
 * any case. 0: online; -EAGAIN: it waits for disks (array_offer); -EBUSY: two histories, or a
 * disk and its copy; -EINVAL: labels contradict each other; -ECANCELED: it is being stopped;
 * -ENOENT, -ENOTSUP, -ENOMEM, -EIO. Not online, it is for array_stop() or waits.
 * NULL: no memory, no DONE. Stop it when it has said why it waits (array_info), or is online.
 */
struct array *array_start(struct env *env, const uuid_t uuid, const struct array_disk *disks,
			  unsigned count, const struct array_start *how, array_done_fn *done,
			  void *arg);

/*
 * A disk has come: an array that waits decides anew, one that is online takes it in as
 * array_add() does, one whose start failed for good says so again. Returns -ENOMEM: no DONE.
 */
int array_offer(struct array *array, const struct array_disk *disk, array_done_fn *done, void *arg);

/*
 * A member that was out returns and gets what it missed, or a new disk takes the role that is
 * free and gets everything. DONE (may be NULL) when a label has it as rebuilding. -EBUSY: no
 * role is free; -EEXIST: it works already; -EINVAL: block size, size; -ENOSPC: no entry is free in
 * the label; -EIO. Returns -ENOMEM: no DONE.
 */
int array_add(struct array *array, const struct array_disk *disk, array_done_fn *done, void *arg);
/* Whether DISK could be added, whatever it carries: 0, or -EBUSY, -EINVAL and TEXT. */
int array_add_check(const struct array *array, const struct array_disk *disk, char *text,
		    size_t text_size);
/* Takes MEMBER (index in the label) out for good. -EBUSY: the array needs it; -ENOENT. */
int array_remove(struct array *array, unsigned member, array_done_fn *done, void *arg);

/*
 * Ends the resync, cleans regions, writes a clean label, lets go of the disks and frees. Nobody
 * uses its blk any more. DONE's array is not to be used.
 */
void array_stop(struct array *array, array_done_fn *done, void *arg);

/* NULL while it waits. */
struct blk *array_blk(struct array *array);

enum array_state {
	ARRAY_WAITING, /* for disks */
	ARRAY_HEALTHY,
	ARRAY_DEGRADED, /* works, with less redundancy than it was made for */
	ARRAY_FAILED,   /* cannot work: too few members */
};

/* Why it is not online. */
enum array_waits {
	ARRAY_WAITS_NOT,
	ARRAY_WAITS_MOMENT, /* for absent disks, and starts without them soon */
	ARRAY_WAITS_FORCE,  /* for what may hold newer writes: a start by force goes without */
	ARRAY_WAITS_DISKS,  /* it cannot run with those that are here */
	ARRAY_WAITS_CHOICE, /* somebody has to decide or repair something */
};

struct array_member_info {
	char name[BLK_NAME_MAX];
	uuid_t uuid;
	unsigned index;
	uint8_t role; /* LABEL_NO_ROLE: none */
	enum label_state state;
	bool present;
	char cause[64]; /* failed: of what, if that was seen; "" */
	uint64_t read_errors, write_errors;
	uint64_t p99_ns;
};

struct array_info {
	uuid_t uuid;
	char name[LABEL_NAME_MAX];
	enum array_state state;
	char why[320]; /* what it waits for or what failed, for people; "": it is busy, or online */
	enum array_waits waits;
	unsigned level, roles;
	uint32_t chunk_bytes, block_bytes;
	uint64_t size_bytes;
	bool log_stripes;
	unsigned regions_total, regions_dirty, regions_doubtful; /* 0 at a level without copies */
	uint64_t region_bytes;
	unsigned bad_ranges; /* level 5: what nobody knows any more */
	uint64_t bad_bytes;
	struct array_member_info members[LABEL_MEMBERS_MAX];
	unsigned member_count;
};
void array_info(const struct array *array, struct array_info *info);

/* "[UU_U]": by role. TEXT has room for LABEL_ROLES_MAX + 3. */
void array_roles_text(const struct array_info *info, char *text);
const char *array_state_name(enum array_state state);

/* Who wants to know of a new state; embedded in its owner, until array_unwatch(). */
struct array_watch {
	LIST_ENTRY(array_watch) link;
	void (*changed)(struct array_watch *watch);
};
void array_watch(struct array *array, struct array_watch *watch);
void array_unwatch(struct array_watch *watch);

#endif
