/* SPDX-License-Identifier: MIT */
/*
 * A life story from a seed.
 *
 * Invariants:
 *  1. In most stories only one disk is a victim at a time, from its fault on until all has been
 *     well for a while: then hosts see no error. In the others any disk may fail or be absent at
 *     any time: hosts may see errors, the array may wait, and nothing is lost all the same.
 *  2. Every disk keeps what it holds durably: no fault here is one that copies cannot explain.
 *  3. At the end every disk is well: the array must become healthy, hold everything, its copies
 *     must be equal, and nothing be doubtful when it is found again.
 *  4. A whole story has at least three faults, a power cut and a restart.
 *
 * Not here: what may be read (oracle.c), leaving steps out (shrink.c).
 */
#include "tests/sim/scenario.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HOUR_NS (3600 * NS_PER_S)
#define PAUSE_NS (7 * NS_PER_S) /* longer than regions stay dirty */
#define STEPS_MAX 100000
#define REPLACED_MAX 8
#define WELL 100

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

static void say(struct scenario *scenario, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void say(struct scenario *scenario, const char *fmt, ...)
{
	va_list args;

	if (!scenario->how->verbose)
		return;
	printf("%12.6f ", (double)(env_now_ns(world_env(scenario->world))) / NS_PER_S - 1000);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

static void violated(struct scenario *scenario, const char *text)
{
	if (!scenario->result->violation[0])
		snprintf(scenario->result->violation, sizeof(scenario->result->violation), "%s",
			 text);
}

static bool broken(struct scenario *scenario)
{
	if (machine_violation(scenario->machine))
		violated(scenario, machine_violation(scenario->machine));
	return scenario->result->violation[0] != '\0';
}

/* --- what the array is --- */

static bool redundant(const struct scenario *scenario)
{
	return scenario->result->shape.level != 0;
}

static unsigned disk_count(const struct scenario *scenario)
{
	return scenario->result->shape.disks;
}

static enum scenario_state state_of(struct scenario *scenario)
{
	struct array_info info;

	array_info(machine_array(scenario->machine), &info);
	if (!machine_settled(scenario->machine))
		return SCENARIO_LABELLING;
	if (info.regions_doubtful)
		return SCENARIO_RESYNCING;
	return info.state == ARRAY_HEALTHY ? SCENARIO_HEALTHY : SCENARIO_DEGRADED;
}

static void cover(struct scenario *scenario, unsigned fault)
{
	scenario->result->covered[state_of(scenario)][fault]++;
	scenario->result->faults += fault != SCENARIO_CUT;
}

static enum world_fault fault_of(const struct scenario *scenario, unsigned disk)
{
	return world_disk_fault_now(scenario->world, disk);
}

/* Fewer than BOUND happenings. */
static void steps(struct scenario *scenario, unsigned bound)
{
	for (unsigned i = world_below(scenario->world, bound); i > 0; i--)
		world_step(scenario->world);
}

/* --- faults --- */

static bool all_well(const struct scenario *scenario)
{
	for (unsigned disk = 0; disk < disk_count(scenario); disk++)
		if (fault_of(scenario, disk) || world_disk_has_bad(scenario->world, disk))
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

/* A person removes nobody while a disk answers nothing: that would wait for it. */
static bool possible(const struct scenario *scenario, unsigned disk, unsigned fault)
{
	if (fault == SCENARIO_REMOVED)
		for (unsigned i = 0; i < disk_count(scenario); i++)
			if (fault_of(scenario, i) == WORLD_FAULT_STUCK)
				return false;
	return fault != SCENARIO_BAD || !fault_of(scenario, disk);
}

static void hurt_by(struct scenario *scenario, unsigned fault)
{
	if (scenario->many || scenario->victim < 0)
		scenario->victim = (int)world_below(scenario->world, disk_count(scenario));
	if (possible(scenario, (unsigned)scenario->victim, fault))
		hurt_disk(scenario, (unsigned)scenario->victim, fault);
}

static void hurt(struct scenario *scenario)
{
	static const unsigned kinds[] = {
		WORLD_FAULT_SLOW,   WORLD_FAULT_STUCK, WORLD_FAULT_GONE, WORLD_FAULT_ERRORS,
		WORLD_FAULT_WRITES, WORLD_FAULT_FLUSH, SCENARIO_BAD,     SCENARIO_REMOVED,
	};
	unsigned count = ARRAY_LEN(kinds);

	if (!redundant(scenario))
		count = 2; /* what passes by */
	else if (scenario->many)
		count -= 3; /* each disk keeps what it has */
	hurt_by(scenario, kinds[world_below(scenario->world, count)]);
}

/* Its disk is well again. */
static void mend(struct scenario *scenario, unsigned disk)
{
	world_disk_fault(scenario->world, disk, WORLD_FAULT_NONE);
	world_disk_mend(scenario->world, disk);
}

static enum label_state member_state(struct scenario *scenario, unsigned disk)
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

static void heal(struct scenario *scenario)
{
	for (unsigned disk = 0; disk < disk_count(scenario); disk++)
		if (scenario->many || (int)disk == scenario->victim)
			mend(scenario, disk);
	for (unsigned disk = 0; disk < disk_count(scenario); disk++)
		if (scenario->many || (int)disk == scenario->victim)
			give_back(scenario, disk);
}

/* The victim is one no more when all has been well for a while: what failed may not be known yet. */
static void forget_victim(struct scenario *scenario)
{
	if (scenario->victim < 0 || state_of(scenario) != SCENARIO_HEALTHY || !all_well(scenario))
		scenario->well = 0;
	else if (++scenario->well > WELL)
		scenario->victim = -1;
}

/* --- lives --- */

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
static void start_with_all(struct scenario *scenario)
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
	int error = machine_start(scenario->machine, present);

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
		if (fault_of(scenario, disk) == WORLD_FAULT_STUCK)
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

static void cut(struct scenario *scenario)
{
	cut_power(scenario);
	if (!broken(scenario))
		start_again(scenario, choose_present(scenario));
}

static void pause_for_clean(struct scenario *scenario)
{
	say(scenario, "a pause");
	world_run_for(scenario->world, PAUSE_NS);
}

/* Power is cut while a label or a map of dirty regions is being written. */
static void ambush(struct scenario *scenario)
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
	for (unsigned i = 0; i < 10000 && !world_writes_below(world, below); i++)
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
static void ambush_taken_in(struct scenario *scenario)
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

static void restart(struct scenario *scenario)
{
	for (unsigned disk = 0; disk < disk_count(scenario); disk++)
		world_disk_fault(scenario->world, disk, WORLD_FAULT_NONE);
	machine_drain(scenario->machine);
	say(scenario, "restart");
	machine_stop(scenario->machine);
	if (!broken(scenario))
		start_again(scenario, choose_present(scenario));
}

/* --- the story --- */

static void run_a_little(struct scenario *scenario)
{
	steps(scenario, 12);
}

static void submit(struct scenario *scenario)
{
	machine_submit(scenario->machine);
}

struct step {
	unsigned per_mille; /* up to */
	void (*fn)(struct scenario *scenario);
};

/* Invariant 4. */
static void (*fixed_step(unsigned number))(struct scenario *scenario)
{
	static const struct {
		unsigned number;
		void (*fn)(struct scenario *scenario);
	} fixed[] = {
		{ 300, hurt }, { 900, hurt }, { 1500, hurt }, { 2100, cut }, { 2700, restart }
	};

	for (unsigned i = 0; i < ARRAY_LEN(fixed); i++)
		if (fixed[i].number == number)
			return fixed[i].fn;
	return NULL;
}

static void take_step(struct scenario *scenario, unsigned number)
{
	static const struct step kinds[] = {
		{ 4, hurt },
		{ 8, heal },
		{ 9, cut },
		{ 12, ambush },
		{ 13, ambush_taken_in },
		{ 14, restart },
		{ 15, pause_for_clean },
		{ 600, run_a_little },
		{ 1000, submit },
	};
	void (*fn)(struct scenario * scenario) = fixed_step(number);
	unsigned kind = world_below(scenario->world, 1000);

	for (unsigned i = 0; !fn; i++)
		if (kind < kinds[i].per_mille)
			fn = kinds[i].fn;
	fn(scenario);
	if (machine_array(scenario->machine) && !scenario->many)
		forget_victim(scenario);
}

static uint64_t chance_of(uint64_t seed, unsigned step)
{
	return (seed ^ (uint64_t)step << 32) * 0xd6e8feb86659fd93 + step;
}

static bool goes_on(const struct scenario *scenario, unsigned step)
{
	const struct machine_counts *counts = machine_counts(scenario->machine);

	if (scenario->how->steps)
		return step < scenario->how->steps;
	return counts->reads + counts->writes + counts->flushes < scenario->how->commands &&
	       step < STEPS_MAX;
}

static void live(struct scenario *scenario)
{
	const uint8_t *without = scenario->how->without;
	unsigned step = 0;

	for (; !broken(scenario) && goes_on(scenario, step); step++) {
		scenario->result->steps = step + 1;
		if (without && without[step])
			continue;
		world_chance_from(scenario->world, chance_of(scenario->how->seed, step + 1));
		take_step(scenario, step);
		scenario->result->trace = world_trace(scenario->world);
	}
}

/* --- the end --- */

/* Give everybody back, and an hour's time. */
static void become_healthy(struct scenario *scenario)
{
	uint64_t end_ns;

	heal(scenario);
	machine_drain(scenario->machine);
	end_ns = env_now_ns(world_env(scenario->world)) + HOUR_NS;
	while (state_of(scenario) != SCENARIO_HEALTHY &&
	       env_now_ns(world_env(scenario->world)) < end_ns)
		if (!world_step(scenario->world))
			break;
}

/* After errors that hosts saw, an array or a disk may need to be started anew. */
static void start_anew(struct scenario *scenario)
{
	restart(scenario);
	if (broken(scenario))
		return;
	heal(scenario);
	machine_drain(scenario->machine);
	machine_stop(scenario->machine);
	if (!broken(scenario))
		start_with_all(scenario);
}

static void must_be_healthy(struct scenario *scenario, const char *otherwise)
{
	struct array_info info;

	array_info(machine_array(scenario->machine), &info);
	if (info.state != ARRAY_HEALTHY || info.regions_doubtful)
		violated(scenario, otherwise);
}

static void happy_end(struct scenario *scenario)
{
	say(scenario, "the end: every disk is well");
	if (scenario->many || !redundant(scenario))
		start_anew(scenario);
	if (broken(scenario))
		return;
	/* What failed before the disk was well may be found only now. */
	become_healthy(scenario);
	become_healthy(scenario);
	must_be_healthy(scenario, "every disk is well, and it does not become healthy");
	machine_read_all(scenario->machine, true);
	machine_stop(scenario->machine);
	if (broken(scenario))
		return;
	machine_check_copies(scenario->machine);
	start_with_all(scenario);
	if (broken(scenario))
		return;
	must_be_healthy(scenario, "it was stopped in order, and is not healthy when started");
	machine_read_all(scenario->machine, true);
}

static void whole_enough(struct scenario *scenario)
{
	if (!scenario->how->steps && scenario->how->commands >= 2000 &&
	    (scenario->result->faults < 3 || scenario->result->restarts < 1))
		violated(scenario, "the story is too short: it says nothing");
}

void scenario_run(const struct scenario_how *how, struct scenario_result *result)
{
	struct scenario scenario = { .how = how, .result = result, .victim = -1 };

	memset(result, 0, sizeof(*result));
	scenario.world = world_new(chance_of(how->seed, 0));
	machine_shape_any(scenario.world, how->level, &result->shape);
	scenario.many = redundant(&scenario) && world_chance(scenario.world, 30);
	scenario.machine = machine_new(scenario.world, &result->shape);
	machine_say(scenario.machine, how->verbose);
	machine_must_work(scenario.machine, redundant(&scenario) && !scenario.many);
	if (!broken(&scenario))
		live(&scenario);
	if (!broken(&scenario))
		happy_end(&scenario);
	if (!broken(&scenario))
		whole_enough(&scenario);
	result->counts = *machine_counts(scenario.machine);
	result->trace = world_trace(scenario.world);
	if (broken(&scenario)) {
		say(&scenario, "%s", result->violation);
		return;
	}
	machine_free(scenario.machine);
	world_free(scenario.world);
}
