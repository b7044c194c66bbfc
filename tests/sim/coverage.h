/* SPDX-License-Identifier: MIT */
/* What many stories covered: how often each fault met each state. */
#ifndef TESTS_SIM_COVERAGE_H
#define TESTS_SIM_COVERAGE_H

#include "tests/sim/scenario.h"

#define COVERAGE_ENOUGH 20u

struct coverage {
	unsigned stories;
	struct scenario_result sum; /* counts, faults and the table */
};

void coverage_add(struct coverage *coverage, const struct scenario_result *one);
/* Totals and the table on stdout. */
void coverage_show(const struct coverage *coverage);
/* Whether every possible cell has COVERAGE_ENOUGH; names those that have not on stdout. */
bool coverage_enough(const struct coverage *coverage, int level);

#endif
