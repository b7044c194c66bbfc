/* SPDX-License-Identifier: MIT */
/*
 * What disks suffer in a story, and how it is put right.
 *
 * Not here: when (scenario.c), power (lives.c), what a fault is (disk.c).
 */
#include "tests/sim/scenario_int.h"

#include <errno.h>

#define REPLACED_MAX 8
#define WELL 100

void cover(struct scenario *scenario, unsigned fault)
{
	scenario->result->covered[state_of(scenario)][fault]++;
	scenario->result->faults += fault != SCENARIO_CUT;
}

enum world_fault disk_fault(const struct scenario *scenario, unsigned disk)
{
	return world_disk_fault_now(scenario->world, disk);
}

bool all_well(const struct scenario *scenario)
{
	for (unsigned disk = 0; disk < disk_count(scenario); disk++)
		if (disk_fault(scenario, disk) || world_disk_has_bad(scenario->world, disk))
			return false;
	return true;
}

/* A few sectors of its data cannot be read: those that hosts use, mostly. */
static void go_bad(struct scenario *scenario, unsigned disk)
{
	struct world *world = scenario->world;
	uint64_t data = machine_data_offset(scenario->machine);

	for (unsigned i = 1 + world_below(world, 4); i > 0; i--)
		world_disk_bad(world, disk, data + world_below(world, 128) * 4096, 4096);
}

static void hurt_disk(struct scenario *scenario, unsigned disk, unsigned fault)
{
	cover(scenario, fault);
	say(scenario, "disk %u: %s", disk, scenario_fault_name(fault));
	if (fault == SCENARIO_BAD)
		go_bad(scenario, disk);
	else if (fault == SCENARIO_REMOVED)
		machine_remove(scenario->machine, disk);
	else
		world_disk_fault(scenario->world, disk, (enum world_fault)fault);
}

/*
 * A person removes nobody while a disk answers nothing: that would wait for it. Sectors go bad
 * where they can be asked for: whatever else its disk had is over.
 */
static bool possible(struct scenario *scenario, unsigned disk, unsigned fault)
{
	if (fault == SCENARIO_BAD)
		world_disk_fault(scenario->world, disk, WORLD_FAULT_NONE);
	if (fault == SCENARIO_REMOVED)
		for (unsigned i = 0; i < disk_count(scenario); i++)
			if (disk_fault(scenario, i) == WORLD_FAULT_STUCK)
				return false;
	return true;
}

void hurt_by(struct scenario *scenario, unsigned fault)
{
	if (scenario->many || scenario->victim < 0)
		scenario->victim = (int)world_below(scenario->world, disk_count(scenario));
	if (possible(scenario, (unsigned)scenario->victim, fault))
		hurt_disk(scenario, (unsigned)scenario->victim, fault);
}

/*
 * What a failed flush lost is seen until power is cut, and whoever starts before that knows of
 * nothing: only where a copy counts may the story go on.
 */
static void lose_flush(struct scenario *scenario)
{
	hurt_by(scenario, WORLD_FAULT_FLUSH);
	for (unsigned i = world_below(scenario->world, 6); i > 0; i--)
		machine_submit(scenario->machine);
	steps(scenario, 60);
	for (unsigned disk = 0; disk < disk_count(scenario); disk++)
		if (disk_fault(scenario, disk) == WORLD_FAULT_FLUSH)
			world_disk_fault(scenario->world, disk, WORLD_FAULT_NONE);
	cut(scenario);
}

void hurt(struct scenario *scenario)
{
	static const unsigned kinds[] = {
		WORLD_FAULT_SLOW,   WORLD_FAULT_STUCK, WORLD_FAULT_GONE, WORLD_FAULT_ERRORS,
		WORLD_FAULT_WRITES, SCENARIO_BAD,      SCENARIO_REMOVED, WORLD_FAULT_FLUSH,
	};

	unsigned fault = kinds[world_below(scenario->world, ARRAY_LEN(kinds))];

	if (fault == WORLD_FAULT_FLUSH && (scenario->many || !redundant(scenario)))
		lose_flush(scenario);
	else
		hurt_by(scenario, fault);
}

/* Its disk is well again. */
void mend(struct scenario *scenario, unsigned disk)
{
	world_disk_fault(scenario->world, disk, WORLD_FAULT_NONE);
	world_disk_mend(scenario->world, disk);
}

enum label_state member_state(struct scenario *scenario, unsigned disk)
{
	return machine_member(scenario->machine, disk);
}

/* Another disk in its place, once what it was asked is over. */
static void replace(struct scenario *scenario, unsigned disk)
{
	world_run_for(scenario->world, NS_PER_S);
	if (member_state(scenario, disk) == LABEL_FAILED && machine_settled(scenario->machine) &&
	    scenario->replaced++ < REPLACED_MAX && world_disk_fill(scenario->world, disk))
		say(scenario, "disk %u is replaced", disk);
}

/* A disk that the array excluded is given back to it. */
static void give_back(struct scenario *scenario, unsigned disk)
{
	enum label_state state = member_state(scenario, disk);
	int error;

	if (state == LABEL_IN_SYNC || state == LABEL_REBUILDING || !redundant(scenario))
		return;
	if (!scenario->many && world_chance(scenario->world, 15))
		replace(scenario, disk);
	error = machine_add(scenario->machine, disk);
	say(scenario, "disk %u given back: %d", disk, error);
}

void heal(struct scenario *scenario)
{
	for (unsigned disk = 0; disk < disk_count(scenario); disk++)
		if (scenario->many || (int)disk == scenario->victim)
			mend(scenario, disk);
	for (unsigned disk = 0; disk < disk_count(scenario); disk++)
		if (scenario->many || (int)disk == scenario->victim)
			give_back(scenario, disk);
}

/* The victim is one no more when all has been well for a while: what failed may not be known yet. */
void forget_victim(struct scenario *scenario)
{
	if (scenario->victim < 0 || state_of(scenario) != SCENARIO_HEALTHY || !all_well(scenario))
		scenario->well = 0;
	else if (++scenario->well > WELL)
		scenario->victim = -1;
}
