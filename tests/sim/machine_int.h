/* SPDX-License-Identifier: MIT */
/* The machine's array side (machine.c) and host side (host.c). */
#ifndef TESTS_SIM_MACHINE_INT_H
#define TESTS_SIM_MACHINE_INT_H

#include "backstore/backing_int.h"
#include "raid/array_int.h"
#include "tests/sim/machine.h"

/* A host command. */
struct command {
	struct machine *machine;
	struct io io;
	struct iovec iov;
	struct rangelock_hold range;
	bool busy;
	bool strict; /* it must succeed */
	int *error;  /* where to say how it ended, or NULL */
	uint64_t mark;
	uint64_t pieces_end; /* if the read fails, it is read again in pieces, to here; or 0 */
	uint8_t buf[MACHINE_IO_MAX] __attribute__((aligned(64)));
};

struct machine {
	struct world *world;
	struct machine_shape shape;
	unsigned disks[SIM_DISKS_MAX];
	struct blk *leaves[SIM_DISKS_MAX];
	struct array *array;
	struct label_area data;
	unsigned in_role[LABEL_ROLES_MAX]; /* which disk was, when it was stopped last */
	uuid_t uuid;
	struct oracle *oracle;
	struct rangelock *lock;
	struct command commands[MACHINE_IOS];
	unsigned busy;
	bool idle; /* busy == 0, for world_run_until() */
	bool dark;
	bool must_work, say;
	bool done; /* an answer of the array */
	int error;
	char text[320];
	char violation[400];
	struct machine_counts counts;
};

void machine_violated(struct machine *machine, const char *text);

#endif
