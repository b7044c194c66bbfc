/* SPDX-License-Identifier: MIT */
/* An array that is not online yet: what start.c and create.c share. */
#ifndef RAID_START_INT_H
#define RAID_START_INT_H

#include "raid/array_int.h"

/* A disk that was offered while the array is not online. */
struct offered {
	STAILQ_ENTRY(offered) link;
	struct array *array;
	struct array_disk disk;
	char name[BLK_NAME_MAX];
	struct label label;
	int error; /* 0: LABEL is of this array and fits the disk */
	bool probed;
	array_done_fn *done; /* of array_offer(); NULL: nobody waits, or once told */
	void *arg;
	bool due; /* is being told */
};

struct array_start_state {
	struct array *array;
	STAILQ_HEAD(, offered) disks;
	unsigned probing;
	uuid_t uuid;
	struct array_start how;
	struct assembly decision;
	struct env_timer delay;
	bool delayed;        /* the delay is over */
	bool begun;          /* members are taken: it goes online or fails for good */
	array_done_fn *done; /* of create or start; NULL once told */
	void *arg;
	struct env_defer tell;
	int error;
	char text[320];
	struct flush_wait flush;
	struct region_hold sync;
	bool replayed; /* what the logs told is on the members */
	bool voided;   /* and the next label says that they count no more */
	struct settle_wait settle;
	unsigned reading;            /* members whose pages are on their way */
	const struct member *unread; /* at create: a disk that cannot be read */
};

/* NULL: no memory. With an array of its own. */
struct array_start_state *array_start_new(struct env *env, array_done_fn *done, void *arg);
/* Members are taken: read what they have, then array_start_label(). */
void array_start_load(struct array_start_state *start);
/* A label is settled that says what came of the logs: the next one voids them. False: none do. */
bool array_start_void(struct array_start_state *start);
/* Members and regions are made: write the first label, go online, tell. */
void array_start_label(struct array_start_state *start);
/* The answer, later in this turn. */
void array_start_tell(struct array_start_state *start, int error, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

#endif
