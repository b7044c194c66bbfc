/* SPDX-License-Identifier: MIT */
/*
 * Which disks form the array: random histories of writes, failures, additions, half-written labels,
 * crashes and absent disks, in which no acknowledged write may be missing from what is started. Two
 * wrong rules show that such a history finds out.
 */
#include <check.h>
#include <stdlib.h>

#include "tests/fake/label_world.h"

/* The rule under test, or a wrong one. */
enum rule { RULE_REAL, RULE_GENERATION, RULE_MAJORITY };

static unsigned chance(struct world *world, unsigned below)
{
	world->seed = world->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(world->seed >> 33) % below;
}

/* The disk comes and is copied to: it gets labels that do not list it. */
static void join(struct world *world, unsigned disk)
{
	if (world->unlabelled || !new_label(world))
		return;
	world->label.members[disk].state = LABEL_REBUILDING;
	world->unlabelled = members_of(&world->label);
}

/* Who comes was copied to while nothing was written; one label lists them all again. */
static void add_all(struct world *world)
{
	if (world->unlabelled || world->unwritten || world->written != world->acknowledged ||
	    !new_label(world))
		return;
	for (unsigned i = 0; i < world->roles; i++) {
		if (world->label.members[i].state != LABEL_REBUILDING)
			continue;
		world->label.members[i].state = LABEL_IN_SYNC;
		world->disks[i].version = world->written;
		world->added |= 1u << i;
	}
	world->unlabelled = members_of(&world->label);
}

static void comes_or_goes(struct world *world, unsigned disk)
{
	switch (world->label.members[disk].state) {
	case LABEL_IN_SYNC:
		if (!(world->added >> disk & 1))
			drop(world, disk);
		break;
	case LABEL_REBUILDING:
		if (chance(world, 3) == 0)
			drop(world, disk);
		else
			add_all(world);
		break;
	default:
		join(world, disk);
	}
}

static void step_running(struct world *world)
{
	uint32_t listed = label_listed(&world->label);
	unsigned disk = chance(world, world->roles);

	switch (chance(world, 8)) {
	case 0:
		if (world->written == world->acknowledged && !world->unlabelled) {
			world->written++;
			world->unwritten = listed;
		}
		break;
	case 1:
	case 2:
		if (world->unwritten >> disk & 1) {
			world->disks[disk].version = world->written;
			world->unwritten &= ~(1u << disk);
		}
		break;
	case 3:
	case 4:
		if (world->unlabelled >> disk & 1)
			label_lands(world, disk);
		break;
	case 5:
		comes_or_goes(world, disk);
		break;
	case 6:
		if (!world->unwritten && !world->unlabelled)
			world->acknowledged = world->written;
		break;
	default:
		if (chance(world, 3) == 0)
			world->running = false;
	}
}

/* What a rule that trusts generations would do. */
static void decide_wrong(const struct world *world, uint32_t present, enum rule rule,
			 struct assembly *decision)
{
	unsigned newest = (unsigned)__builtin_ctz(present);
	uint32_t listed;

	for (unsigned i = 0; i < world->roles; i++)
		if (present >> i & 1 &&
		    world->disks[i].label.generation > world->disks[newest].label.generation)
			newest = i;
	decision->label = world->disks[newest].label;
	listed = label_listed(&decision->label);
	decision->joining = listed & present;
	decision->absent = listed & ~present;
	decision->verdict = assembly_can_run(world->level, world->roles, decision->joining) &&
					    (rule != RULE_MAJORITY ||
					     2 * __builtin_popcount(decision->joining) >
						     __builtin_popcount(listed)) ?
				    ASSEMBLY_START :
				    ASSEMBLY_WAIT;
}

/* Who was being rebuilt goes on with that if it has the label that decides. */
static bool goes_on(const struct world *world, const struct assembly *decision, unsigned disk,
		    uint32_t present)
{
	if (world->label.members[disk].state == LABEL_REBUILDING)
		return present >> disk & 1 && world->disks[disk].label.id == decision->label.id;
	return decision->joining >> disk & 1;
}

static void assemble(struct world *world, uint32_t present, enum rule rule)
{
	const struct label *labels[DISKS_MAX];
	struct assembly decision = { .verdict = ASSEMBLY_WAIT };
	unsigned count = 0, newest = 0;

	for (unsigned i = 0; i < world->roles; i++)
		if (present >> i & 1)
			labels[count++] = &world->disks[i].label;
	if (rule == RULE_REAL)
		assembly_decide(labels, count, &decision);
	else
		decide_wrong(world, present, rule, &decision);
	if (decision.verdict != ASSEMBLY_START) {
		world->waits++;
		ck_assert_msg(rule != RULE_REAL || present != (1u << world->roles) - 1,
			      "all disks are there, verdict %d", decision.verdict);
		return;
	}
	world->starts++;
	world->degraded += decision.absent != 0;
	for (unsigned i = 0; i < world->roles; i++) {
		if (!(decision.joining >> i & 1))
			continue;
		world->lost |= world->disks[i].version < world->acknowledged;
		if (world->disks[i].version > newest)
			newest = world->disks[i].version;
	}
	for (unsigned i = 0; i < world->roles; i++)
		if (decision.joining >> i & 1)
			world->disks[i].version = newest;
	world->label = decision.label;
	for (unsigned i = 0; i < world->roles; i++)
		if (!goes_on(world, &decision, i, present))
			world->label.members[i].state = LABEL_FAILED;
	/* The successor names the one that decided as it was. */
	{
		uint32_t listed = label_listed(&decision.label);

		if (!new_label(world))
			return;
		world->label.ancestors[world->label.ancestor_count - 1].listed = listed;
	}
	world->running = true;
	world->written = newest;
	world->unwritten = 0;
	world->unlabelled = members_of(&world->label);
	world->added = 0;
}

/* Often at most one disk is absent from a start, the fault that an array must bear; or any are. */
static uint32_t some_disks(struct world *world)
{
	uint32_t all = (1u << world->roles) - 1;

	if (chance(world, 2))
		return 1 + chance(world, all);
	return chance(world, 2) ? all : all & ~(1u << chance(world, world->roles));
}

static void walk(struct world *world, enum rule rule, unsigned steps)
{
	for (unsigned i = 0; i < steps && !world->lost; i++) {
		if (world->running) {
			step_running(world);
			continue;
		}
		assemble(world, some_disks(world), rule);
	}
}

START_TEST(no_history_loses_an_acknowledged_write)
{
	unsigned starts = 0, degraded = 0, waits = 0;

	for (uint64_t seed = 1; seed <= 8000; seed++) {
		struct world world;

		world_init(&world, geometries[_i].level, geometries[_i].roles, seed);
		walk(&world, RULE_REAL, 300);
		ck_assert_msg(!world.lost, "seed %u", (unsigned)seed);
		starts += world.starts;
		degraded += world.degraded;
		waits += world.waits;
	}
	/* The histories are not trivial ones. */
	ck_assert_uint_gt(starts, 10000);
	if (geometries[_i].level == 1) /* any leg could run it alone */
		ck_assert_uint_eq(degraded, 0);
	else
		ck_assert_uint_gt(degraded, 500);
	ck_assert_uint_gt(waits, geometries[_i].level == 1 ? 100 : 0);
}
END_TEST

static unsigned seeds_until_lost(enum rule rule, unsigned level, unsigned roles)
{
	for (unsigned seed = 1; seed <= 2000; seed++) {
		struct world world;

		world_init(&world, level, roles, seed);
		walk(&world, rule, 300);
		if (world.lost)
			return seed;
	}
	return 0;
}

START_TEST(the_newest_generation_is_found_to_lose_one)
{
	ck_assert_uint_gt(seeds_until_lost(RULE_GENERATION, 1, 2), 0);
	ck_assert_uint_gt(seeds_until_lost(RULE_GENERATION, 5, 3), 0);
}
END_TEST

START_TEST(so_is_the_newest_generation_with_a_majority)
{
	ck_assert_uint_gt(seeds_until_lost(RULE_MAJORITY, 5, 3), 0);
	ck_assert_uint_gt(seeds_until_lost(RULE_MAJORITY, 1, 3), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("assembly_histories");
	TCase *tcase = tcase_create("assembly_histories");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, no_history_loses_an_acknowledged_write, 0,
			    (int)ARRAY_LEN(geometries));
	tcase_add_test(tcase, the_newest_generation_is_found_to_lose_one);
	tcase_add_test(tcase, so_is_the_newest_generation_with_a_majority);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
