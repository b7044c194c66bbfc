/* SPDX-License-Identifier: MIT */
/*
 * Assembly: which of the disks that are there form the array, and may it run (I9).
 *
 * Pure: labels in, a decision out. A label is *complete* if every present disk that it lists
 * as in-sync carries it or a descendant of it; the deepest complete label decides. A disk that
 * it lists and that is absent may have gone on alone: the array starts by itself only if those
 * absent could not have run it, under that label or one before it. One who was being rebuilt by
 * others, of whom nobody is there, does not count, but tells that they went on: then the array
 * starts by force only.
 */
#ifndef RAID_ASSEMBLY_H
#define RAID_ASSEMBLY_H

#include "backstore/label.h"

enum assembly_verdict {
	ASSEMBLY_START, /* what is there holds every acknowledged write */
	ASSEMBLY_WAIT,  /* what is absent may hold newer writes: wait, or be forced */
	ASSEMBLY_ASK,   /* two histories, an old copy: a person chooses which disks to leave out */
	ASSEMBLY_IMPOSSIBLE, /* too few disks hold everything, whatever anybody says */
};

struct assembly {
	enum assembly_verdict verdict;
	/*
	 * The deciding label as its disks should have it: members that do not hold everything
	 * are FAILED, ancestors end at it. Not for ASK. A start writes its successor.
	 */
	struct label label;
	uint32_t joining; /* bit I: label.members[I] is there and holds everything */
	uint32_t absent; /* bit I: label.members[I] is listed, or is in a newer label, and not there */
	unsigned needed; /* IMPOSSIBLE: how many more would do */
};

/*
 * LABELS: the newest of each disk that is there, one array's, at least one. Two labels with the
 * same `self` uuid are the same disk seen twice: the caller refuses that before.
 */
void assembly_decide(const struct label *const *labels, unsigned count, struct assembly *decision);

/*
 * Whether an array of this LEVEL and number of ROLES runs with only the roles in HELD (bit I:
 * role I), and how many more it needs at least.
 */
bool assembly_can_run(unsigned level, unsigned roles, uint32_t held);
unsigned assembly_missing(unsigned level, unsigned roles, uint32_t held);

#endif
