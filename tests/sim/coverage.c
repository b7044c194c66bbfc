/* SPDX-License-Identifier: MIT */
/*
 * What many stories covered.
 *
 * Not here: when a fault counts (scenario.c).
 */
#include "tests/sim/coverage.h"

#include <inttypes.h>
#include <stdio.h>

const char *scenario_state_name(enum scenario_state state)
{
	static const char *const names[] = { "healthy", "degraded", "resyncing", "labelling" };

	return names[state];
}

const char *scenario_fault_name(unsigned fault)
{
	static const char *const names[] = {
		[WORLD_FAULT_NONE] = "none",     [WORLD_FAULT_GONE] = "gone",
		[WORLD_FAULT_ERRORS] = "errors", [WORLD_FAULT_WRITES] = "no writes",
		[WORLD_FAULT_FLUSH] = "flush",   [WORLD_FAULT_STUCK] = "stuck",
		[WORLD_FAULT_SLOW] = "slow",     [SCENARIO_BAD] = "bad",
		[SCENARIO_REMOVED] = "removed",  [SCENARIO_CUT] = "power cut",
	};

	return names[fault];
}

void coverage_add(struct coverage *coverage, const struct scenario_result *one)
{
	struct scenario_result *sum = &coverage->sum;

	coverage->stories++;
	sum->counts.reads += one->counts.reads;
	sum->counts.writes += one->counts.writes;
	sum->counts.flushes += one->counts.flushes;
	sum->counts.errors += one->counts.errors;
	sum->counts.starts += one->counts.starts;
	sum->counts.degraded_starts += one->counts.degraded_starts;
	sum->counts.waits += one->counts.waits;
	sum->counts.adds += one->counts.adds;
	sum->cuts += one->cuts;
	sum->faults += one->faults;
	for (unsigned state = 0; state < SCENARIO_STATES; state++)
		for (unsigned fault = 0; fault < SCENARIO_FAULTS; fault++)
			sum->covered[state][fault] += one->covered[state][fault];
}

void coverage_show(const struct coverage *coverage)
{
	const struct scenario_result *sum = &coverage->sum;
	const struct machine_counts *counts = &sum->counts;

	printf("%u stories: %" PRIu64 " reads, %" PRIu64 " writes, %" PRIu64 " flushes, %" PRIu64
	       " errors; %u faults, %u power cuts, %" PRIu64 " starts (%" PRIu64
	       " degraded, %" PRIu64 " had to wait), %" PRIu64 " disks given back\n%-10s",
	       coverage->stories, counts->reads, counts->writes, counts->flushes, counts->errors,
	       sum->faults, sum->cuts, counts->starts, counts->degraded_starts, counts->waits,
	       counts->adds, "");
	for (unsigned fault = 1; fault < SCENARIO_FAULTS; fault++)
		printf(" %9s", scenario_fault_name(fault));
	for (unsigned state = 0; state < SCENARIO_STATES; state++) {
		printf("\n%-10s", scenario_state_name(state));
		for (unsigned fault = 1; fault < SCENARIO_FAULTS; fault++)
			printf(" %9u", sum->covered[state][fault]);
	}
	putchar('\n');
}

/* Why no fault can meet STATE, or NULL: it can. */
static const char *impossible(int level, unsigned state)
{
	return level == 0 && state != SCENARIO_HEALTHY ?
		       "without copies nobody is missed or made equal, and no label is written" :
		       NULL;
}

bool coverage_enough(const struct coverage *coverage, int level)
{
	bool enough = true;

	for (unsigned state = 0; state < SCENARIO_STATES; state++) {
		if (impossible(level, state)) {
			printf("not possible: anything while %s: %s\n", scenario_state_name(state),
			       impossible(level, state));
			continue;
		}
		for (unsigned fault = 1; fault < SCENARIO_FAULTS; fault++) {
			unsigned count = coverage->sum.covered[state][fault];

			if (count >= COVERAGE_ENOUGH)
				continue;
			printf("not covered: %s while %s, %u times instead of %u\n",
			       scenario_fault_name(fault), scenario_state_name(state), count,
			       COVERAGE_ENOUGH);
			enough = false;
		}
	}
	return enough;
}
