/* SPDX-License-Identifier: MIT */
/*
 * Which disks form the array: named cases. test_assembly_histories.c has random ones.
 */
#include <check.h>

#include "tests/fake/label_world.h"

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

static void gives(uint32_t present, enum assembly_verdict verdict)
{
	decide(present);
	ck_assert_msg(decision.verdict == verdict, "disks %x: %d, not %d", present,
		      decision.verdict, verdict);
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
		gives((1u << named.roles) - 1, ASSEMBLY_START);
		ck_assert_uint_eq(decision.joining, (1u << named.roles) - 1);
		ck_assert_uint_eq(decision.label.id, 1);
	}
}
END_TEST

START_TEST(raid0_needs_every_disk)
{
	world_init(&named, 0, 3, 1);
	gives(3, ASSEMBLY_IMPOSSIBLE);
	ck_assert_uint_eq(decision.needed, 1);
	gives(7, ASSEMBLY_START);
}
END_TEST

START_TEST(raid5_starts_without_the_disk_that_died_while_it_was_off)
{
	world_init(&named, 5, 4, 1);
	gives(0xd, ASSEMBLY_START);
	ck_assert_uint_eq(decision.joining, 0xd);
	ck_assert_uint_eq(decision.absent, 0x2);
}
END_TEST

START_TEST(raid5_without_two_says_how_many_it_needs)
{
	world_init(&named, 5, 4, 1);
	gives(0x5, ASSEMBLY_IMPOSSIBLE);
	ck_assert_uint_eq(decision.needed, 1);
}
END_TEST

START_TEST(half_a_mirror_waits_because_the_other_half_may_have_gone_on)
{
	world_init(&named, 1, 2, 1);
	gives(1, ASSEMBLY_WAIT);
	fails(1, 1);
	gives(1, ASSEMBLY_START);
	gives(2, ASSEMBLY_WAIT);
}
END_TEST

/* Legs cut one by one: the last one's data wins, the first one alone refuses. */
START_TEST(three_legs_cut_one_by_one)
{
	world_init(&named, 1, 3, 1);
	fails(0, 6);
	fails(1, 4);
	gives(7, ASSEMBLY_START);
	ck_assert_uint_eq(decision.joining, 4);
	gives(1, ASSEMBLY_WAIT);
	decide(3);
	ck_assert_int_ne(decision.verdict, ASSEMBLY_START);
	gives(4, ASSEMBLY_START);
}
END_TEST

START_TEST(a_label_that_reached_some_only_does_not_count)
{
	world_init(&named, 5, 4, 1);
	fails(3, 1);
	gives(0xf, ASSEMBLY_START);
	ck_assert_uint_eq(decision.label.id, 1);
	ck_assert_uint_eq(decision.joining, 0xf);
	ck_assert_int_eq(decision.label.members[3].state, LABEL_IN_SYNC);
	ck_assert_uint_eq(decision.label.ancestor_count, 0);
}
END_TEST

static void gets_bad(unsigned disk, uint64_t from)
{
	bad_ranges_add(&named.disks[disk].label.bad,
		       &(struct bad_range){ .role = 3, .from = from, .to = from + 4096 });
}

/* What a label that does not count says is bad, may be there for the one that does. */
START_TEST(what_is_bad_is_told_by_who_carries_the_label_itself)
{
	world_init(&named, 5, 4, 1);
	fails(3, 1);
	gets_bad(0, 0);
	decide(0xf);
	ck_assert_uint_eq(decision.label.id, 1);
	ck_assert_uint_eq(decision.label.bad.count, 0);
	decide(0x7);
	ck_assert_uint_eq(decision.label.bad.count, 0);
}
END_TEST

/* Two starts were cut, and each left a label on some. */
START_TEST(or_by_all_if_all_have_gone_on)
{
	struct label first;

	world_init(&named, 5, 4, 1);
	first = named.label;
	fails(3, 3);
	gets_bad(0, 0);
	named.label = first;
	fails(3, 4);
	gets_bad(2, 8192);
	decide(0x7);
	ck_assert_uint_eq(decision.label.id, 1);
	ck_assert_uint_eq(decision.label.bad.count, 2);
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
	gives(3, ASSEMBLY_ASK);
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
	gives(7, ASSEMBLY_ASK);
	/* Without it, or alone, there is no question. */
	gives(3, ASSEMBLY_START);
	ck_assert_uint_eq(decision.label.id, 601);
	gives(4, ASSEMBLY_IMPOSSIBLE);
}
END_TEST

static void succeeds(struct label *label, uint64_t id, uint32_t listed)
{
	ck_assert_int_eq(label_succeed(label, id), 0);
	for (unsigned i = 0; i < named.roles; i++)
		label->members[i].state = listed >> i & 1 ? LABEL_IN_SYNC : LABEL_FAILED;
}

static void lands(const struct label *label, uint32_t disks)
{
	for (unsigned i = 0; i < named.roles; i++) {
		if (!(disks >> i & 1))
			continue;
		named.disks[i].label = *label;
		named.disks[i].label.self = i;
	}
}

/*
 * Leg 1 was whole alone, took the others in, and missed what leg 0 wrote, first with leg 2, then
 * alone; leg 2 was being rebuilt when power went. KNOWN: what leg 1 remembers from before that.
 */
static void leg_1_is_old(bool known, uint64_t forced_id)
{
	struct label label;

	world_init(&named, 1, 3, 1);
	label = named.label;
	succeeds(&label, 10, 2);
	label_settled(&label);
	succeeds(&label, 11, 7);
	if (!known)
		label_settled(&label);
	lands(&label, 7);
	label_settled(&label);
	succeeds(&label, 12, 5);
	label_settled(&label);
	succeeds(&label, 13, 1);
	label.forced_id = forced_id;
	label_settled(&label);
	succeeds(&label, 14, 1);
	label.members[2].state = LABEL_REBUILDING;
	lands(&label, 5);
}

START_TEST(who_was_rebuilt_by_absent_ones_tells_that_they_went_on)
{
	leg_1_is_old(_i & 1, _i & 2 ? 13 : 0);
	gives(6, ASSEMBLY_WAIT);
	ck_assert_uint_eq(decision.absent, 1);
	/* By force leg 1 starts with what it had, and leg 2 is no part of it. */
	ck_assert_uint_eq(decision.label.id, 11);
	ck_assert_uint_eq(decision.joining, 2);
	gives(2, ASSEMBLY_WAIT);
	gives(4, ASSEMBLY_IMPOSSIBLE);
	ck_assert_uint_eq(decision.absent, 1);
	ck_assert_uint_eq(decision.needed, 1);
	gives(5, ASSEMBLY_START);
	ck_assert_uint_eq(decision.label.id, 14);
	ck_assert_uint_eq(decision.joining, 1);
}
END_TEST

/* The label that leg 0 lacks was on it once, whatever else it was whole with alone. */
START_TEST(an_old_copy_that_was_whole_alone_is_a_question)
{
	struct label label;

	world_init(&named, 1, 2, 1);
	label = named.label;
	succeeds(&label, 10, 1);
	label_settled(&label);
	succeeds(&label, 11, 3);
	lands(&label, 1);
	for (uint64_t id = 12; id < 14; id++) {
		label_settled(&label);
		succeeds(&label, id, 3);
	}
	lands(&label, 2);
	gives(3, ASSEMBLY_ASK);
}
END_TEST

/*
 * Disks 1 and 3 say that 0 is out. If 2 never heard, it may have gone on with 0 from what was before,
 * and with 3 at first, which then failed and missed that label.
 */
START_TEST(raid10_waits_if_absent_ones_could_have_gone_on_from_before_a_label)
{
	struct label label;

	world_init(&named, 10, 4, 1);
	fails(0, 0xa);
	gives(0xe, ASSEMBLY_START);
	ck_assert_uint_eq(decision.label.id, 1);
	gives(0xa, ASSEMBLY_WAIT);
	ck_assert_uint_eq(decision.absent, 0x4);
	label_lands(&named, 2);
	gives(0xe, ASSEMBLY_START);
	ck_assert_uint_eq(decision.label.id, 2);
	/* It heard, says the next label. */
	label = named.label;
	succeeds(&label, 3, 0xe);
	lands(&label, 0xa);
	gives(0xa, ASSEMBLY_START);
	ck_assert_uint_eq(decision.joining, 0xa);
}
END_TEST

START_TEST(raid10_bears_one_of_each_pair)
{
	ck_assert(assembly_can_run(10, 6, 0x15));
	ck_assert(assembly_can_run(10, 6, 0x2a));
	ck_assert(!assembly_can_run(10, 6, 0x3c));
	ck_assert_uint_eq(assembly_missing(10, 6, 0x30), 2);
	world_init(&named, 10, 4, 1);
	gives(0xe, ASSEMBLY_START);
	gives(0x5, ASSEMBLY_WAIT);
	gives(0x3, ASSEMBLY_IMPOSSIBLE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("assembly");
	TCase *tcase = tcase_create("assembly");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, all_there_and_all_alike_start);
	tcase_add_test(tcase, raid0_needs_every_disk);
	tcase_add_test(tcase, raid5_starts_without_the_disk_that_died_while_it_was_off);
	tcase_add_test(tcase, raid5_without_two_says_how_many_it_needs);
	tcase_add_test(tcase, half_a_mirror_waits_because_the_other_half_may_have_gone_on);
	tcase_add_test(tcase, three_legs_cut_one_by_one);
	tcase_add_test(tcase, a_label_that_reached_some_only_does_not_count);
	tcase_add_test(tcase, what_is_bad_is_told_by_who_carries_the_label_itself);
	tcase_add_test(tcase, or_by_all_if_all_have_gone_on);
	tcase_add_test(tcase, two_histories_are_a_question);
	tcase_add_test(tcase, an_old_copy_among_new_disks_is_a_question);
	tcase_add_loop_test(tcase, who_was_rebuilt_by_absent_ones_tells_that_they_went_on, 0, 4);
	tcase_add_test(tcase, an_old_copy_that_was_whole_alone_is_a_question);
	tcase_add_test(tcase, raid10_waits_if_absent_ones_could_have_gone_on_from_before_a_label);
	tcase_add_test(tcase, raid10_bears_one_of_each_pair);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
