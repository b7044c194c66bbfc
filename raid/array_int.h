/* SPDX-License-Identifier: MIT */
/*
 * What the files of raid/ share: an array's members and labels as its levels see them.
 *
 * array.c        the whole: members, flushes, pages of regions, info
 * create.c       arrays are made
 * start.c        and found again; assembly.c: which label decides; start_load.c: what they read
 * change.c       members come and go, the array ends
 * membership.c   the running label: who is a member; changes are durable before they count (I9)
 * member.c       a disk: label slots, region pages
 * levels.c       what the levels are, as a table; fan.c: an io that becomes several
 * raid0.c        a device over parts, chunk by chunk; knows no array
 * mirror.c       a device over the legs of one mirror (level 1, a pair of level 10); equalise.c
 * raid5.c        a device over all roles with parity (raid5_int.h has its files)
 * resync.c       makes doubtful regions equal, brings members in
 *
 * Level 10 is raid0 over mirrors of two roles each: roles 2k and 2k + 1.
 */
#ifndef RAID_ARRAY_INT_H
#define RAID_ARRAY_INT_H

#include "backstore/regions.h"
#include "raid/array.h"
#include "raid/assembly.h"

enum member_state {
	MEMBER_OUT,        /* nothing is sent to it any more */
	MEMBER_REBUILDING, /* writes; reads where nothing is doubtful */
	MEMBER_IN_SYNC,
};

/* A disk of the array that is there, or was: member.c has who may hold it, and how long. */
struct member {
	struct array *array;
	struct blk *blk; /* NULL: it is OUT and nobody held it any more: io and redo have gone, too */
	char name[BLK_NAME_MAX];
	unsigned index; /* in the label's members */
	unsigned role;
	/* Ahead of the label in the bad direction only: OUT as soon as it is found bad,
	 * IN_SYNC once the label that says so is durable. */
	enum member_state state;
	char cause[64];    /* why it is OUT; "": nobody said */
	uint64_t sequence; /* of the newest label on it */
	uint64_t log_incarnation;
	struct redo *redo; /* NULL: a level without logs */
	struct member_io *io;
	uint64_t read_errors, write_errors; /* of those that its device had, once that has gone */
	unsigned holds;
	struct env_defer leave;
	TAILQ_ENTRY(member) buried;
};

/* ---- member.c */

/* NULL: no memory. Takes a reference on BLK. PAGES: of its region maps. Its log is a new one. */
struct member *member_new(struct array *array, const struct array_disk *disk, unsigned index,
			  unsigned role, unsigned pages);
/* Asserts that nobody holds it. */
void member_free(struct member *member);

/* Whoever keeps a pointer to MEMBER longer than a callback lasts. */
static inline void member_hold(struct member *member)
{
	member->holds++;
}
/* It is still there until this callback ends. */
void member_release(struct member *member);
/* It is OUT, or OUT and buried: what nobody holds of it is let go, deferred. */
void member_left(struct member *member);

/* What its device counted of its failures, also when that has been let go. */
void member_errors(const struct member *member, uint64_t *reads, uint64_t *writes);

/* LABEL with this disk as `self`, durable in both its slots. One at a time. */
void member_write_label(struct member *member, const struct label *label,
			void (*done)(struct member *member, int error));
/* A page of regions; one at a time a page. */
void member_write_page(struct member *member, unsigned page, unsigned copy, const void *bytes,
		       void (*done)(struct member *member, unsigned page, int error));
/* Both copies of PAGE; NULL for one that cannot be read. Valid inside DONE. One at a time. */
void member_read_page(struct member *member, unsigned page,
		      void (*done)(struct member *member, unsigned page, const void *one,
				   const void *two));
/* One at a time. */
void member_flush(struct member *member, void (*done)(struct member *member, int error));

/* ---- membership.c */

struct membership;

struct membership *membership_new(struct array *array);
void membership_free(struct membership *membership);

/*
 * MEMBER did what members do not do (ERROR; WHAT: "write", "flush", ...). If the array works
 * without it, it is OUT at once, and a label that excludes it begins to be written. If not, it
 * stays: its errors are the host's to see. True: it is out.
 */
bool membership_failed(struct array *array, struct member *member, int error, const char *what);
/* The same of one that somebody takes out. */
bool membership_leaves(struct array *array, struct member *member);

/* What the label is to say (wanted, bad, its flags) has changed: write one that says so. */
void membership_change(struct array *array);

/* Somebody who waits; embedded. */
struct settle_wait {
	STAILQ_ENTRY(settle_wait) link;
	void (*fn)(struct settle_wait *wait, int error); /* deferred */
};

/*
 * Whether a label is durable on all its members that excludes everybody who is OUT: only then
 * may a write that skipped one be acknowledged (I9). Else wait; an ERROR says that no label can
 * be made durable any more.
 */
bool membership_settled(const struct array *array);
void membership_wait(struct array *array, struct settle_wait *wait);

/* ---- the levels */

struct raid_level {
	unsigned level;
	unsigned roles_min, roles_max, roles_step;
	bool chunked;
	/* Bytes of the array, given a label with roles, chunk and data area. */
	uint64_t (*size)(const struct label *label);
	/* The level's device over array->roles. NULL: no memory. */
	struct blk *(*start)(struct array *array);
	/*
	 * Make LENGTH bytes at OFFSET of the members' data areas right on every member that is
	 * IN_SYNC or REBUILDING, held (I1), host writes to them waiting meanwhile. One at a time.
	 * NULL: the level has nothing that could differ.
	 */
	void (*equalise)(struct array *array, uint64_t offset, uint64_t length,
			 void (*done)(struct array *array, int error));
	/* MEMBER is taken: make what the level keeps of it, its log. -ENOMEM. NULL: nothing. */
	int (*take)(struct member *member);
	/*
	 * At start, before anything else: write again what members' logs hold. DONE once, deferred
	 * or, without memory, at once. NULL: the level has no logs.
	 */
	void (*replay)(struct array *array, void (*done)(struct array *array, int error));
	/*
	 * BLK, which left the array with LABEL, comes back: regions are told what its log alone
	 * has. DONE not inline; an ERROR: that cannot be known. -ENOMEM: no DONE. NULL: no logs.
	 */
	int (*returning)(struct array *array, struct blk *blk, const struct label *label,
			 void (*done)(void *arg, int error), void *arg);
};
/* NULL: none such. */
const struct raid_level *raid_level(unsigned level);

/* ---- mirror.c: over COUNT roles from FIRST on */
struct blk *mirror_new(struct array *array, unsigned first, unsigned count);
void mirror_equalise(struct blk *mirror, uint64_t offset, uint64_t length,
		     void (*done)(void *arg, int error), void *arg);

/* ---- resync.c */

struct resync;

struct resync *resync_new(struct array *array);
/* Ends what is under way; DONE when nothing of it is in flight; then it is freed. */
void resync_stop(struct resync *resync, void (*done)(struct array *array));
/* There may be something to do: doubt, a member that rebuilds. */
void resync_kick(struct resync *resync);

/* ---- array.c */

/* A range that is being made equal, mirror by mirror. */
struct equalising {
	unsigned mirror; /* the next one */
	uint64_t offset, length;
	int error;
	void (*done)(struct array *array, int error);
};

/*
 * FLUSH every member, a round that begins after the asking; embedded. ERROR: some member could
 * neither flush nor be spared. Members that fail are excluded as by membership_failed().
 */
struct flush_wait {
	STAILQ_ENTRY(flush_wait) link;
	void (*fn)(struct flush_wait *wait, int error);
};
struct array {
	struct env *env;
	const struct raid_level *level;
	struct label label; /* the running one; only membership.c changes it */
	struct member *members[LABEL_MEMBERS_MAX];  /* by index; NULL: absent */
	struct member *roles[LABEL_ROLES_MAX];      /* IN_SYNC or REBUILDING, else NULL */
	enum label_state wanted[LABEL_MEMBERS_MAX]; /* what the next label says of them */
	bool forced, clean;    /* the next label begins by force; ends in order */
	bool halted;           /* array_halt() */
	struct bad_ranges bad; /* what the next label says is lost */
	enum array_waits waits;
	enum array_state state;
	char why[320];
	uint64_t buffers_bytes; /* level 5: for what it reads, folds and logs; before it is online */
	struct blk *blk;        /* the level's; NULL while it waits */
	struct blk *mirrors[LABEL_ROLES_MAX / 2]; /* levels 1 and 10 */
	struct equalising equalising;
	struct regions *regions; /* NULL: a level without redundancy */
	struct membership *membership;
	struct resync *resync;
	struct array_start_state *start; /* start.c */

	/* A round of flushes; a page of regions on its way to everybody. */
	STAILQ_HEAD(, flush_wait) flush_next, flush_now;
	unsigned flushing;
	int flush_error;
	struct flush_wait regions_flush;
	void (*regions_ended)(struct array *array); /* after regions_quiesce() */
	struct {
		unsigned pending, held;
	} pages[REGIONS_PAGES_MAX];

	/* change.c */
	unsigned changes; /* that wait for something */
	bool ending;
	struct flush_wait stop_flush;
	struct settle_wait stop_drained, stop_settle;
	array_done_fn *stop_done;
	void *stop_arg;

	TAILQ_HEAD(, member) buried; /* replaced, and still held by somebody */
	LIST_HEAD(, array_watch) watches;
};

/* What marks an array's region pages as its own. */
uint64_t array_tag(const struct label *label);

/* array.c */
struct array *array_new(struct env *env);
/* Members, regions, membership and level's device have gone or go with it; nothing is in flight. */
void array_free(struct array *array);
/* A member of LABEL for DISK, at its index. NULL: no memory. */
struct member *array_take(struct array *array, const struct array_disk *disk, unsigned index,
			  enum member_state state);
/* The member at INDEX, if any, is out and another will be there. */
void array_bury(struct array *array, unsigned index);
/* Dirty regions over the members' data areas, for levels that have copies. -ENOMEM. */
int array_make_regions(struct array *array);
/* The level's device; ready for host I/O. -ENOMEM. */
int array_go_online(struct array *array);

void array_flush(struct array *array, struct flush_wait *wait);

/* What LABEL says of places and blocks is so on BLK; never trusted before. */
bool array_fits(const struct label *label, const struct blk *blk);

/* start.c: the state of coming, as long as the array lives. */
void array_start_free(struct array *array);
/* The array is ending: nobody waits for disks any more. */
void array_start_cancel(struct array *array);

/* change.c: one of `changes` is over. */
void array_change_ended(struct array *array);

/* The level writes nothing any more until the array is started anew: people are told. */
void array_halt(struct array *array);
/* Nobody knows any more what RANGE holds; reads of it fail, and the next label says so. */
void array_lose(struct array *array, const struct bad_range *range);

/* "d2": what people call the member at INDEX. TEXT has room for 8. */
const char *array_member_text(unsigned index, char *text);
/* Roles that are filled by somebody in-sync; whether that is all; what watchers should know. */
uint32_t array_held_roles(const struct array *array);
void array_changed(struct array *array);
/* A member went out or came in: roles, regions and state follow. */
void array_members_changed(struct array *array);

#endif
