/* SPDX-License-Identifier: MIT */
/*
 * Power cuts, starts, and what they meet.
 *
 * Not here: disks' faults (faults.c), when (scenario.c).
 */
#include "tests/sim/scenario_int.h"

#define PAUSE_NS (7 * NS_PER_S) /* longer than regions stay dirty */

static uint32_t all_disks(const struct scenario *scenario)
{
	return (1u << disk_count(scenario)) - 1;
}

static uint32_t choose_present(struct scenario *scenario)
{
	struct world *world = scenario->world;
	uint32_t present = all_disks(scenario);

	if (scenario->many) {
		for (unsigned disk = 0; disk < disk_count(scenario); disk++)
			if (world_chance(world, 30))
				present &= ~(1u << disk);
	} else if (scenario->victim >= 0 && world_chance(world, 50)) {
		present &= ~(1u << scenario->victim);
	} else if (scenario->victim < 0 && redundant(scenario) && world_chance(world, 20)) {
		scenario->victim = (int)world_below(world, disk_count(scenario));
		present &= ~(1u << scenario->victim);
	}
	return present;
}

/* With all disks, and nothing wrong with them, it must start. */
void start_with_all(struct scenario *scenario)
{
	int error;

	for (unsigned disk = 0; disk < disk_count(scenario); disk++)
		mend(scenario, disk);
	error = machine_start(scenario->machine, all_disks(scenario));
	say(scenario, "start with all: %d", error);
	if (error)
		violated(scenario, "every disk is there, and it does not start");
}

/* Without one it may have to wait. */
static void start_again(struct scenario *scenario, uint32_t present)
{
	int error;

	if (world_chance(scenario->world, 10)) {
		say(scenario, "power cut in the start with %x", present);
		machine_cut_in_start(scenario->machine, present, world_below(scenario->world, 150),
				     WORLD_CUT_ANY);
		scenario->result->cuts++;
	}
	error = machine_start(scenario->machine, present);
	scenario->result->restarts++;
	say(scenario, "start with %x: %d", present, error);
	if (error)
		start_with_all(scenario);
	/* What is read now must be so even if the disk that it came from is lost. */
	if (broken(scenario) || !world_chance(scenario->world, 40))
		return;
	machine_look(scenario->machine);
	if (!redundant(scenario) || !world_chance(scenario->world, 50))
		return;
	machine_drain(scenario->machine);
	hurt_by(scenario, WORLD_FAULT_GONE);
	machine_look(scenario->machine);
}

/* Whoever answers nothing does so after a power cut. */
static void wake(struct scenario *scenario)
{
	for (unsigned disk = 0; disk < disk_count(scenario); disk++)
		if (disk_fault(scenario, disk) == WORLD_FAULT_STUCK)
			world_disk_fault(scenario->world, disk, WORLD_FAULT_NONE);
}

static void cut_power(struct scenario *scenario)
{
	static const enum world_cut kinds[] = { WORLD_CUT_ANY, WORLD_CUT_ANY, WORLD_CUT_DROP,
						WORLD_CUT_KEEP };

	cover(scenario, SCENARIO_CUT);
	scenario->result->cuts++;
	say(scenario, "power cut");
	machine_cut(scenario->machine, kinds[world_below(scenario->world, 4)]);
	wake(scenario);
}

void cut(struct scenario *scenario)
{
	cut_power(scenario);
	if (!broken(scenario))
		start_again(scenario, choose_present(scenario));
}

void pause_for_clean(struct scenario *scenario)
{
	say(scenario, "a pause");
	world_run_for(scenario->world, PAUSE_NS);
}

/* Power is cut while a label or a map of dirty regions is being written. */
void ambush(struct scenario *scenario)
{
	struct world *world = scenario->world;
	/* A label, or also a map: there are more of those. */
	uint64_t below = world_chance(world, 50) ? 2 * LABEL_SIZE :
						   machine_data_offset(scenario->machine);

	switch (world_below(world, 3)) {
	case 0:
		pause_for_clean(scenario);
		break;
	case 1:
		below = 2 * LABEL_SIZE;
		if (redundant(scenario))
			hurt_by(scenario,
				world_chance(world, 50) ? WORLD_FAULT_WRITES : WORLD_FAULT_GONE);
		break;
	default:
		break;
	}
	for (unsigned i = world_below(world, 5); i > 0; i--)
		machine_submit(scenario->machine);
	for (unsigned i = 0; i < 10000 && !world_writes_in(world, 0, below); i++)
		if (!world_step(world))
			break;
	steps(scenario, 8);
	cut(scenario);
}

static bool being_taken_in(struct scenario *scenario, unsigned disk)
{
	return member_state(scenario, disk) == LABEL_IN_SYNC && !machine_settled(scenario->machine);
}

/*
 * Power is cut while a label that takes a disk in is on its way, then the array goes on without
 * that disk, and then both are there.
 */
void ambush_taken_in(struct scenario *scenario)
{
	struct world *world = scenario->world;
	unsigned disk;

	if (!redundant(scenario))
		return;
	if (scenario->victim < 0)
		hurt_by(scenario, WORLD_FAULT_GONE);
	disk = (unsigned)scenario->victim;
	for (unsigned i = 0; i < 4; i++)
		machine_submit(scenario->machine);
	steps(scenario, 60);
	heal(scenario);
	for (unsigned i = 0; i < 20000 && !being_taken_in(scenario, disk); i++)
		if (!world_step(world))
			break;
	steps(scenario, 9);
	if (scenario->many) /* the label cannot be everywhere: nobody may count on the new one */
		hurt_by(scenario, WORLD_FAULT_WRITES);
	for (unsigned i = 0; i < 4; i++)
		machine_submit(scenario->machine);
	steps(scenario, scenario->many ? 60 : 1);
	cut_power(scenario);
	if (!broken(scenario))
		start_again(scenario, all_disks(scenario) & ~(1u << disk));
	if (broken(scenario))
		return;
	for (unsigned i = 0; i < 4; i++)
		machine_submit(scenario->machine);
	steps(scenario, 60);
	cut_power(scenario);
	if (!broken(scenario))
		start_again(scenario, all_disks(scenario));
}

/* A label is on its way, within a while. */
static bool labelling(struct scenario *scenario)
{
	for (unsigned i = 0; i < 20000; i++)
		if (!machine_settled(scenario->machine) || !world_step(scenario->world))
			break;
	steps(scenario, 4);
	return !machine_settled(scenario->machine);
}

/* The label says that a disk is out, or that it is in again. */
void ambush_label(struct scenario *scenario)
{
	if (!redundant(scenario))
		return;
	if (scenario->victim < 0 || world_chance(scenario->world, 50))
		hurt_by(scenario, WORLD_FAULT_GONE);
	else
		heal(scenario);
	for (unsigned i = 0; i < 4; i++)
		machine_submit(scenario->machine);
	if (labelling(scenario))
		hurt(scenario);
}

void restart(struct scenario *scenario)
{
	for (unsigned disk = 0; disk < disk_count(scenario); disk++)
		world_disk_fault(scenario->world, disk, WORLD_FAULT_NONE);
	machine_drain(scenario->machine);
	say(scenario, "restart");
	machine_stop(scenario->machine);
	if (!broken(scenario))
		start_again(scenario, choose_present(scenario));
}
