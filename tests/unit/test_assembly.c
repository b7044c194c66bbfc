/* SPDX-License-Identifier: MIT */
/*
 * Which disks form the array: named cases, and random histories of writes, failures, additions,
 * half-written labels, crashes and absent disks, in which no acknowledged write may be missing
 * from what is started. Two wrong rules show that such a history finds out.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "raid/assembly.h"

#define DISKS_MAX 6

/* The rule under test, or a wrong one. */
enum rule { RULE_REAL, RULE_GENERATION, RULE_MAJORITY };

struct disk {
	struct label label;
	unsigned version; /* of the one value that is written over and over */
};

struct world {
	unsigned level, roles;
	struct disk disks[DISKS_MAX];
	bool running;
	struct label label;  /* of the running array */
	uint32_t unlabelled; /* listed disks that do not have it yet */
	int added;           /* the disk that this label adds; -1 */
	uint32_t unwritten;  /* listed disks that do not have `written` yet */
	unsigned written, acknowledged;
	uint64_t next_id;
	uint64_t seed;
	unsigned starts, degraded, waits;
	bool lost;
};

static unsigned chance(struct world *world, unsigned below)
{
	world->seed = world->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(world->seed >> 33) % below;
}

static struct label first_label(unsigned level, unsigned roles)
{
	struct label label = { .name = "a",
			       .id = 1,
			       .level = level,
			       .roles = roles,
			       .chunk_bytes = level == 1 ? 0 : 65536,
			       .block_bytes = 512,
			       .data = { MIB, MIB } };

	memset(label.array, 1, sizeof(label.array));
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		label.members[i].role = LABEL_NO_ROLE;
	for (unsigned i = 0; i < roles; i++) {
		memset(label.members[i].uuid, (int)i + 1, sizeof(uuid_t));
		label.members[i].state = LABEL_IN_SYNC;
		label.members[i].role = (uint8_t)i;
	}
	return label;
}

static void world_init(struct world *world, unsigned level, unsigned roles, uint64_t seed)
{
	memset(world, 0, sizeof(*world));
	world->level = level;
	world->roles = roles;
	world->seed = seed;
	world->label = first_label(level, roles);
	world->next_id = 2;
	world->added = -1;
	world->running = true;
	for (unsigned i = 0; i < roles; i++) {
		world->disks[i].label = world->label;
		world->disks[i].label.self = i;
	}
}

/* The running array's label changes; its listed members get it one by one. */
static bool new_label(struct world *world)
{
	if (label_succeed(&world->label, world->next_id) < 0)
		return false;
	world->next_id++;
	return true;
}

static void drop(struct world *world, unsigned disk)
{
	struct label next = world->label;
	uint32_t held;

	next.members[disk].state = LABEL_FAILED;
	if (world->added >= 0)
		next.members[world->added].state = LABEL_FAILED;
	held = label_listed(&next);
	if (!assembly_can_run(world->level, world->roles, held) || !new_label(world))
		return;
	world->label.members[disk].state = LABEL_FAILED;
	if (world->added >= 0)
		world->label.members[world->added].state = LABEL_FAILED;
	world->added = -1;
	world->unlabelled = held;
	world->unwritten &= held;
}

/* The disk was copied while nothing was written; it is listed again. */
static void add(struct world *world, unsigned disk)
{
	if (world->unlabelled || world->unwritten || world->written != world->acknowledged ||
	    !new_label(world))
		return;
	world->label.members[disk].state = LABEL_IN_SYNC;
	world->disks[disk].version = world->written;
	world->added = (int)disk;
	world->unlabelled = label_listed(&world->label);
}

static void label_lands(struct world *world, unsigned disk)
{
	world->disks[disk].label = world->label;
	world->disks[disk].label.self = disk;
	world->unlabelled &= ~(1u << disk);
	if (!world->unlabelled) {
		label_settled(&world->label);
		world->added = -1;
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
		if (listed >> disk & 1 && world->added != (int)disk)
			drop(world, disk);
		else if (!(listed >> disk & 1))
			add(world, disk);
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
		if (world->label.members[i].state == LABEL_IN_SYNC && !(decision.joining >> i & 1))
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
	world->unlabelled = decision.joining;
	world->added = -1;
}

/* At most one disk is absent from each start: the fault that an array must bear. */
static void walk(struct world *world, enum rule rule, unsigned steps)
{
	uint32_t all = (1u << world->roles) - 1;

	for (unsigned i = 0; i < steps && !world->lost; i++) {
		if (world->running) {
			step_running(world);
			continue;
		}
		assemble(world, chance(world, 2) ? all : all & ~(1u << chance(world, world->roles)),
			 rule);
	}
}

static const struct {
	unsigned level, roles;
} geometries[] = {
	{ 1, 2 }, { 1, 3 }, { 1, 4 }, { 5, 3 }, { 5, 4 }, { 5, 6 }, { 10, 4 }, { 10, 6 }
};

START_TEST(no_history_loses_an_acknowledged_write)
{
	unsigned starts = 0, degraded = 0, waits = 0;

	for (uint64_t seed = 1; seed <= 3000; seed++) {
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

/* --- named cases --- */

static struct world named;
static struct assembly decision;

static void decide(uint32_t present)
{
	const struct label *labels[DISKS_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < named.roles; i++)
		if (present >> i & 1)
			labels[count++] = &named.disks[i].label;
	assembly_decide(labels, count, &decision);
}

/* DISK fails; its label lands on the disks in LANDS. */
static void fails(unsigned disk, uint32_t lands)
{
	drop(&named, disk);
	for (unsigned i = 0; i < named.roles; i++)
		if (lands >> i & 1)
			label_lands(&named, i);
}

START_TEST(all_there_and_all_alike_start)
{
	for (unsigned i = 0; i < ARRAY_LEN(geometries); i++) {
		world_init(&named, geometries[i].level, geometries[i].roles, 1);
		decide((1u << named.roles) - 1);
		ck_assert_int_eq(decision.verdict, ASSEMBLY_START);
		ck_assert_uint_eq(decision.joining, (1u << named.roles) - 1);
		ck_assert_uint_eq(decision.label.id, 1);
	}
}
END_TEST

START_TEST(raid0_needs_every_disk)
{
	world_init(&named, 0, 3, 1);
	decide(3);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_IMPOSSIBLE);
	ck_assert_uint_eq(decision.needed, 1);
	decide(7);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_START);
}
END_TEST

START_TEST(raid5_starts_without_the_disk_that_died_while_it_was_off)
{
	world_init(&named, 5, 4, 1);
	decide(0xd);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_START);
	ck_assert_uint_eq(decision.joining, 0xd);
	ck_assert_uint_eq(decision.absent, 0x2);
}
END_TEST

START_TEST(raid5_without_two_says_how_many_it_needs)
{
	world_init(&named, 5, 4, 1);
	decide(0x5);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_IMPOSSIBLE);
	ck_assert_uint_eq(decision.needed, 1);
}
END_TEST

START_TEST(half_a_mirror_waits_because_the_other_half_may_have_gone_on)
{
	world_init(&named, 1, 2, 1);
	decide(1);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_WAIT);
	fails(1, 1);
	decide(1);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_START);
	decide(2);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_WAIT);
}
END_TEST

/* Legs cut one by one: the last one's data wins, the first one alone refuses. */
START_TEST(three_legs_cut_one_by_one)
{
	world_init(&named, 1, 3, 1);
	fails(0, 6);
	fails(1, 4);
	decide(7);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_START);
	ck_assert_uint_eq(decision.joining, 4);
	decide(1);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_WAIT);
	decide(3);
	ck_assert_int_ne(decision.verdict, ASSEMBLY_START);
	decide(4);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_START);
}
END_TEST

START_TEST(a_label_that_reached_some_only_does_not_count)
{
	world_init(&named, 5, 4, 1);
	fails(3, 1);
	decide(0xf);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_START);
	ck_assert_uint_eq(decision.label.id, 1);
	ck_assert_uint_eq(decision.joining, 0xf);
	ck_assert_int_eq(decision.label.members[3].state, LABEL_IN_SYNC);
	ck_assert_uint_eq(decision.label.ancestor_count, 0);
}
END_TEST

/* Force on one side only: the other may have gone on, too. */
START_TEST(two_histories_are_a_question)
{
	struct label other;

	world_init(&named, 1, 2, 1);
	other = named.label;
	fails(1, 1);
	ck_assert_int_eq(label_succeed(&other, 500), 0);
	other.members[0].state = LABEL_FAILED;
	other.self = 1;
	other.forced_id = other.id;
	named.disks[1].label = other;
	decide(3);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_ASK);
}
END_TEST

/* A disk as it was several labels ago: no label is on all that it lists. */
START_TEST(an_old_copy_among_new_disks_is_a_question)
{
	world_init(&named, 5, 3, 1);
	for (unsigned id = 600; id < 602; id++) {
		for (unsigned i = 0; i < 2; i++) {
			label_settled(&named.disks[i].label);
			ck_assert_int_eq(label_succeed(&named.disks[i].label, id), 0);
		}
	}
	decide(7);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_ASK);
	/* Without it, or alone, there is no question. */
	decide(3);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_START);
	ck_assert_uint_eq(decision.label.id, 601);
	decide(4);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_IMPOSSIBLE);
}
END_TEST

START_TEST(raid10_bears_one_of_each_pair)
{
	ck_assert(assembly_can_run(10, 6, 0x15));
	ck_assert(assembly_can_run(10, 6, 0x2a));
	ck_assert(!assembly_can_run(10, 6, 0x3c));
	ck_assert_uint_eq(assembly_missing(10, 6, 0x30), 2);
	world_init(&named, 10, 4, 1);
	decide(0xe);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_START);
	decide(0x5);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_WAIT);
	decide(0x3);
	ck_assert_int_eq(decision.verdict, ASSEMBLY_IMPOSSIBLE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("assembly");
	TCase *tcase = tcase_create("assembly");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, no_history_loses_an_acknowledged_write, 0,
			    (int)ARRAY_LEN(geometries));
	tcase_add_test(tcase, the_newest_generation_is_found_to_lose_one);
	tcase_add_test(tcase, so_is_the_newest_generation_with_a_majority);
	tcase_add_test(tcase, all_there_and_all_alike_start);
	tcase_add_test(tcase, raid0_needs_every_disk);
	tcase_add_test(tcase, raid5_starts_without_the_disk_that_died_while_it_was_off);
	tcase_add_test(tcase, raid5_without_two_says_how_many_it_needs);
	tcase_add_test(tcase, half_a_mirror_waits_because_the_other_half_may_have_gone_on);
	tcase_add_test(tcase, three_legs_cut_one_by_one);
	tcase_add_test(tcase, a_label_that_reached_some_only_does_not_count);
	tcase_add_test(tcase, two_histories_are_a_question);
	tcase_add_test(tcase, an_old_copy_among_new_disks_is_a_question);
	tcase_add_test(tcase, raid10_bears_one_of_each_pair);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
