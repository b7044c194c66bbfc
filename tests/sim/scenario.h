/* SPDX-License-Identifier: MIT */
/*
 * A life story of an array, from a seed: commands, faults, power cuts, restarts with and without
 * disks; at the end everything is healed, read and compared.
 *
 * A story is a row of steps. What happens in step I follows from the seed, from I and from the
 * state of things, so that a story with steps left out is one, too.
 */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

#include "tests/sim/machine.h"

/* What a fault can meet. */
enum scenario_state {
	SCENARIO_HEALTHY,
	SCENARIO_DEGRADED,  /* somebody is missing, and nothing is doubtful */
	SCENARIO_RESYNCING, /* something is doubtful */
	SCENARIO_LABELLING, /* a label is on its way */
	SCENARIO_STATES
};

/* Beyond those of a disk. */
enum scenario_fault {
	SCENARIO_BAD = WORLD_FAULTS, /* sectors that cannot be read */
	SCENARIO_REMOVED,            /* a member is removed by a person */
	SCENARIO_CUT,                /* power */
	SCENARIO_FAULTS
};

struct scenario_how {
	uint64_t seed;
	int level;              /* of the array, or -1 for any */
	unsigned commands;      /* at least so many, unless STEPS */
	unsigned steps;         /* the story has so many; 0: as many as it takes */
	const uint8_t *without; /* a byte a step: it is left out; NULL: none */
	bool verbose;           /* says what happens on stdout */
};

struct scenario_result {
	char violation[400]; /* "" if none */
	struct machine_shape shape;
	struct machine_counts counts;
	unsigned steps; /* until it ended */
	unsigned cuts, faults, restarts;
	uint64_t trace; /* of all that disks were asked and answered */
	/* How often a fault began in a state. */
	unsigned covered[SCENARIO_STATES][SCENARIO_FAULTS];
};

/* After a violation, its objects are left as they are. */
void scenario_run(const struct scenario_how *how, struct scenario_result *result);

/* coverage.c */
const char *scenario_state_name(enum scenario_state state);
const char *scenario_fault_name(unsigned fault);

#endif
