/* SPDX-License-Identifier: MIT */
/* A story: what scenario.c, faults.c and lives.c share. */
#ifndef TESTS_SIM_SCENARIO_INT_H
#define TESTS_SIM_SCENARIO_INT_H

#include "tests/sim/scenario.h"

struct scenario {
	const struct scenario_how *how;
	struct world *world;
	struct machine *machine;
	struct scenario_result *result;
	bool many;  /* faults at once */
	int victim; /* disk, or -1 */
	unsigned replaced;
	unsigned well; /* for so many steps nothing was seen wrong */
};

/* scenario.c */
void say(struct scenario *scenario, const char *fmt, ...) PRINTF_LIKE(2, 3);
void violated(struct scenario *scenario, const char *text);
bool broken(struct scenario *scenario);
bool redundant(const struct scenario *scenario);
unsigned disk_count(const struct scenario *scenario);
enum scenario_state state_of(struct scenario *scenario);
/* Fewer than BOUND happenings. */
void steps(struct scenario *scenario, unsigned bound);

/* ---- faults.c */

/* FAULT begins, if it is one of a disk's or a person's: what it meets is covered. */
void cover(struct scenario *scenario, unsigned fault);
enum world_fault disk_fault(const struct scenario *scenario, unsigned disk);
enum label_state member_state(struct scenario *scenario, unsigned disk);
bool all_well(const struct scenario *scenario);
/* The victim, or a new one, suffers FAULT; or any fault. */
void hurt_by(struct scenario *scenario, unsigned fault);
void hurt(struct scenario *scenario);
/* Its disk is well again. */
void mend(struct scenario *scenario, unsigned disk);
/* Whoever is a victim is so no more, and is given back to the array. */
void heal(struct scenario *scenario);
void forget_victim(struct scenario *scenario);

/* ---- lives.c */

void start_with_all(struct scenario *scenario);
void cut(struct scenario *scenario);
void restart(struct scenario *scenario);
void pause_for_clean(struct scenario *scenario);
/* Power is cut while a label or a map of dirty regions is being written. */
void ambush(struct scenario *scenario);
/* Power is cut while a label that takes a disk in is on its way. */
void ambush_taken_in(struct scenario *scenario);
/* Something fails while a label is on its way. */
void ambush_label(struct scenario *scenario);

#endif
