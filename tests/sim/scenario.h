/* SPDX-License-Identifier: MIT */
/*
 * A life story of an array, from a seed: commands, faults one tolerated at a time, power cuts,
 * restarts with and without a disk; at the end everything is healed, read and compared.
 */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

#include "tests/sim/machine.h"

/* What a fault can meet: rows of the coverage table. */
enum scenario_state { SCENARIO_HEALTHY, SCENARIO_DEGRADED, SCENARIO_RESYNCING, SCENARIO_STATES };

struct scenario_result {
	char violation[400]; /* "" if none */
	struct machine_shape shape;
	struct machine_counts counts;
	unsigned cuts, faults;
	/* How often a fault began in a state; the last column is power cuts. */
	unsigned covered[SCENARIO_STATES][WORLD_FAULTS + 1];
};

/* LEVEL: of the array, or -1 for any. VERBOSE: says what happens. */
void scenario_run(uint64_t seed, unsigned commands, int level, bool verbose,
		  struct scenario_result *result);

const char *scenario_state_name(enum scenario_state state);
const char *scenario_fault_name(unsigned fault); /* WORLD_FAULTS: a power cut */

#endif
