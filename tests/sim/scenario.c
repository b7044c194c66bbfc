/* SPDX-License-Identifier: MIT */
/*
 * A life story from a seed.
 *
 * Invariants:
 *  1. Only one disk is a victim at a time, from its fault on until it is in-sync again: one
 *     tolerated fault. Power cuts come on top.
 *  2. At the end every disk is well: the array must become healthy, hold everything, and its
 *     copies must be equal.
 *
 * Not here: what may be read (oracle.c).
 */
#include "tests/sim/scenario.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HOUR_NS (3600 * NS_PER_S)
#define WELL 100

struct scenario {
	struct world *world;
	struct machine *machine;
	struct scenario_result *result;
	int victim;    /* disk, or -1 */
	unsigned well; /* for so many happenings nothing was seen wrong */
	bool verbose;
};

static void say(struct scenario *scenario, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void say(struct scenario *scenario, const char *fmt, ...)
{
	va_list args;

	if (!scenario->verbose)
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

static enum scenario_state state_of(struct scenario *scenario)
{
	struct array_info info;

	array_info(machine_array(scenario->machine), &info);
	if (info.regions_doubtful)
		return SCENARIO_RESYNCING;
	return info.state == ARRAY_HEALTHY ? SCENARIO_HEALTHY : SCENARIO_DEGRADED;
}

static void cover(struct scenario *scenario, unsigned fault)
{
	scenario->result->covered[state_of(scenario)][fault]++;
}

/* --- faults --- */

static void hurt(struct scenario *scenario)
{
	static const enum world_fault kinds[] = {
		WORLD_FAULT_SLOW,   WORLD_FAULT_STUCK, WORLD_FAULT_ERRORS,
		WORLD_FAULT_WRITES, WORLD_FAULT_FLUSH, WORLD_FAULT_GONE,
	};
	enum world_fault fault = kinds[world_below(scenario->world, redundant(scenario) ? 6 : 2)];

	if (scenario->victim < 0)
		scenario->victim = (int)world_below(scenario->world, scenario->result->shape.disks);
	cover(scenario, fault);
	scenario->result->faults++;
	say(scenario, "disk %d: %s", scenario->victim, scenario_fault_name(fault));
	world_disk_fault(scenario->world, (unsigned)scenario->victim, fault);
}

/* The victim's disk is well again, and given back if the array had excluded it. */
static void heal(struct scenario *scenario)
{
	struct array_info info;
	bool in_sync = false;
	char name[16];
	int error;

	if (scenario->victim < 0)
		return;
	snprintf(name, sizeof(name), "d%d", scenario->victim);
	world_disk_fault(scenario->world, (unsigned)scenario->victim, WORLD_FAULT_NONE);
	array_info(machine_array(scenario->machine), &info);
	for (unsigned i = 0; i < info.member_count; i++)
		in_sync |= strcmp(info.members[i].name, name) == 0 &&
			   info.members[i].state != LABEL_FAILED;
	if (!in_sync) {
		error = machine_add(scenario->machine, (unsigned)scenario->victim);
		say(scenario, "disk %d given back: %d", scenario->victim, error);
	}
}

/* The victim is one no more when all has been well for a while: what failed may not be known yet. */
static void forget_victim(struct scenario *scenario)
{
	if (scenario->victim < 0 || state_of(scenario) != SCENARIO_HEALTHY ||
	    world_disk_fault_now(scenario->world, (unsigned)scenario->victim) != WORLD_FAULT_NONE)
		scenario->well = 0;
	else if (++scenario->well > WELL)
		scenario->victim = -1;
}

/* --- lives --- */

static uint32_t all_disks(const struct scenario *scenario)
{
	return (1u << scenario->result->shape.disks) - 1;
}

/* With all disks it must start; without the victim it may have to wait. */
static void start_again(struct scenario *scenario)
{
	uint32_t present = all_disks(scenario);
	int error;

	if (scenario->victim >= 0 && world_chance(scenario->world, 50))
		present &= ~(1u << scenario->victim);
	else if (scenario->victim < 0 && redundant(scenario) && world_chance(scenario->world, 20)) {
		scenario->victim = (int)world_below(scenario->world, scenario->result->shape.disks);
		present &= ~(1u << scenario->victim);
	}
	error = machine_start(scenario->machine, present);
	say(scenario, "start with %x: %d", present, error);
	if (!error)
		return;
	if (scenario->victim >= 0)
		world_disk_fault(scenario->world, (unsigned)scenario->victim, WORLD_FAULT_NONE);
	error = machine_start(scenario->machine, all_disks(scenario));
	say(scenario, "start with all: %d", error);
	if (error)
		violated(scenario, "every disk is there, and it does not start");
}

static void cut(struct scenario *scenario)
{
	static const enum world_cut kinds[] = { WORLD_CUT_ANY, WORLD_CUT_ANY, WORLD_CUT_DROP,
						WORLD_CUT_KEEP };

	cover(scenario, WORLD_FAULTS);
	scenario->result->cuts++;
	say(scenario, "power cut");
	machine_cut(scenario->machine, kinds[world_below(scenario->world, 4)]);
	if (scenario->victim >= 0 &&
	    world_disk_fault_now(scenario->world, (unsigned)scenario->victim) == WORLD_FAULT_STUCK)
		world_disk_fault(scenario->world, (unsigned)scenario->victim, WORLD_FAULT_NONE);
	start_again(scenario);
}

static void restart(struct scenario *scenario)
{
	if (scenario->victim >= 0)
		world_disk_fault(scenario->world, (unsigned)scenario->victim, WORLD_FAULT_NONE);
	machine_drain(scenario->machine);
	say(scenario, "restart");
	machine_stop(scenario->machine);
	start_again(scenario);
}

/* --- the story --- */

static void something_happens(struct scenario *scenario)
{
	unsigned kind = world_below(scenario->world, 1000);

	if (kind < 4)
		hurt(scenario);
	else if (kind < 8)
		heal(scenario);
	else if (kind < 10)
		cut(scenario);
	else if (kind < 11)
		restart(scenario);
	else if (kind < 600)
		for (unsigned i = world_below(scenario->world, 12); i > 0; i--)
			world_step(scenario->world);
	else
		machine_submit(scenario->machine);
	if (machine_array(scenario->machine))
		forget_victim(scenario);
}

/* Give the victim back, and an hour's time. */
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

static void happy_end(struct scenario *scenario)
{
	struct array_info info;

	/* What failed before the disk was well may be found only now. */
	become_healthy(scenario);
	become_healthy(scenario);
	array_info(machine_array(scenario->machine), &info);
	if (info.state != ARRAY_HEALTHY || info.regions_doubtful)
		violated(scenario, "every disk is well, and it does not become healthy");
	machine_read_all(scenario->machine, true);
	machine_stop(scenario->machine);
	if (info.regions_total)
		machine_check_copies(scenario->machine);
}

static void choose_shape(struct world *world, int level, struct machine_shape *shape)
{
	static const unsigned levels[] = { 0, 1, 1, 5, 5, 5, 10, 10 };

	shape->level = level >= 0 ? (unsigned)level : levels[world_below(world, ARRAY_LEN(levels))];
	switch (shape->level) {
	case 0:
		shape->disks = 1 + world_below(world, 5);
		break;
	case 1:
		shape->disks = 2 + world_below(world, 3);
		break;
	case 5:
		shape->disks = 3 + world_below(world, 4);
		break;
	default:
		shape->disks = 4 + 2 * world_below(world, 2);
	}
	shape->chunk_bytes = shape->level == 1 ? 0 : 4096u << world_below(world, 6);
	shape->block_bytes = world_chance(world, 50) ? 512 : 4096;
	shape->disk_bytes = (4 + world_below(world, 4)) * MIB + world_below(world, 64) * 4096;
	if (shape->level == 5) /* its log has room for stripes */
		shape->disk_bytes += align_up(4ull * shape->disks * shape->chunk_bytes, MIB);
	shape->fua_disks = world_chance(world, 50);
	shape->write_cache = world_chance(world, 30);
}

void scenario_run(uint64_t seed, unsigned commands, int level, bool verbose,
		  struct scenario_result *result)
{
	struct scenario scenario = { .result = result, .victim = -1, .verbose = verbose };
	const struct machine_counts *counts;

	memset(result, 0, sizeof(*result));
	scenario.world = world_new(seed);
	choose_shape(scenario.world, level, &result->shape);
	scenario.machine = machine_new(scenario.world, &result->shape);
	counts = machine_counts(scenario.machine);
	while (!broken(&scenario) && counts->reads + counts->writes + counts->flushes < commands)
		something_happens(&scenario);
	if (!broken(&scenario))
		happy_end(&scenario);
	broken(&scenario);
	result->counts = *counts;
	if (result->violation[0])
		return; /* its objects are as they are: whoever looks into it has them */
	machine_free(scenario.machine);
	world_free(scenario.world);
}

const char *scenario_state_name(enum scenario_state state)
{
	static const char *const names[] = { "healthy", "degraded", "resyncing" };

	return names[state];
}

const char *scenario_fault_name(unsigned fault)
{
	static const char *const names[] = {
		[WORLD_FAULT_NONE] = "none",     [WORLD_FAULT_GONE] = "gone",
		[WORLD_FAULT_ERRORS] = "errors", [WORLD_FAULT_WRITES] = "no writes",
		[WORLD_FAULT_FLUSH] = "flush",   [WORLD_FAULT_STUCK] = "stuck",
		[WORLD_FAULT_SLOW] = "slow",     [WORLD_FAULTS] = "power cut",
	};

	return names[fault];
}
