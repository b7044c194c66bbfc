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
 * Not here: what may be read (oracle.c), what fails (faults.c), power and starts (lives.c), leaving
 * steps out (shrink.c).
 */
#include "tests/sim/scenario_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HOUR_NS (3600 * NS_PER_S)
#define STEPS_MAX 100000

void say(struct scenario *scenario, const char *fmt, ...)
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

void violated(struct scenario *scenario, const char *text)
{
	if (!scenario->result->violation[0])
		snprintf(scenario->result->violation, sizeof(scenario->result->violation), "%s",
			 text);
}

bool broken(struct scenario *scenario)
{
	if (machine_violation(scenario->machine))
		violated(scenario, machine_violation(scenario->machine));
	return scenario->result->violation[0] != '\0';
}

/* --- what the array is --- */

bool redundant(const struct scenario *scenario)
{
	return scenario->result->shape.level != 0;
}

unsigned disk_count(const struct scenario *scenario)
{
	return scenario->result->shape.disks;
}

enum scenario_state state_of(struct scenario *scenario)
{
	struct array_info info;

	array_info(machine_array(scenario->machine), &info);
	if (!machine_settled(scenario->machine))
		return SCENARIO_LABELLING;
	if (info.regions_doubtful)
		return SCENARIO_RESYNCING;
	return info.state == ARRAY_HEALTHY ? SCENARIO_HEALTHY : SCENARIO_DEGRADED;
}

/* Fewer than BOUND happenings. */
void steps(struct scenario *scenario, unsigned bound)
{
	for (unsigned i = world_below(scenario->world, bound); i > 0; i--)
		world_step(scenario->world);
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
		{ 14, ambush_label },
		{ 15, restart },
		{ 16, pause_for_clean },
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
