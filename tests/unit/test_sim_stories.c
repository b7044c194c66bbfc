/* SPDX-License-Identifier: MIT */
/*
 * Named life stories of arrays on the simulated machine: faults that other storage systems had.
 * timeout: 600
 */
#include "tests/fake/story_rig.h"

/* --- mirrors --- */

START_TEST(of_legs_cut_one_by_one_the_last_one_counts)
{
	begin(1, 3, false, (uint64_t)_i);
	heals();
	writes(20);
	gone(0);
	writes(20);
	gone(1);
	writes(20);
	machine_cut(machine, WORLD_CUT_ANY);
	back(0);
	back(1);
	ck_assert_int_eq(machine_start(machine, 1), -EAGAIN);
	ck_assert_int_eq(machine_start(machine, 2), -EAGAIN);
	ck_assert_int_eq(machine_start(machine, 3), -EAGAIN);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	machine_read_all(machine, true);
	ends_well();
}
END_TEST

START_TEST(the_last_leg_starts_alone)
{
	begin(1, 3, false, (uint64_t)_i);
	gone(0);
	writes(5);
	gone(1);
	writes(5);
	machine_cut(machine, WORLD_CUT_ANY);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	ck_assert_int_eq(info().state, ARRAY_DEGRADED);
	machine_read_all(machine, true);
	comes_back(0);
	comes_back(1);
	ends_well();
}
END_TEST

START_TEST(a_member_unplugged_twice_in_one_rebuild_is_copied_whole)
{
	begin_kind((unsigned)_i, false, (uint64_t)_i);
	heals();
	gone(1);
	writes(30);
	for (unsigned round = 0; round < 2; round++) {
		comes_back(1);
		ck_assert_int_eq(machine_member(machine, 1), LABEL_REBUILDING);
		steps(10 + world_below(world, 60));
		gone(1);
		writes(30);
		ck_assert_int_eq(machine_member(machine, 1), LABEL_FAILED);
	}
	comes_back(1);
	ends_well();
}
END_TEST

/* It is another disk to the array now: it gets everything. */
START_TEST(a_member_removed_in_a_rebuild_is_never_read_past_it)
{
	unsigned all;

	begin_kind((unsigned)_i, false, (uint64_t)_i);
	heals();
	gone(1);
	writes(30);
	comes_back(1);
	all = info().regions_doubtful;
	while (info().regions_doubtful > all / 2)
		ck_assert(world_step(world));
	ck_assert_int_eq(machine_remove(machine, 1), 0);
	writes(30);
	comes_back(1);
	ck_assert_int_eq(machine_member(machine, 1), LABEL_REBUILDING);
	ck_assert_uint_gt(info().regions_doubtful, all / 2);
	machine_cut(machine, WORLD_CUT_ANY);
	ck_assert_int_eq(machine_start(machine, 2), -EAGAIN);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	machine_read_all(machine, true);
	ends_well();
}
END_TEST

/*
 * Leg 2, which leg 0 alone is copied to, names no label any more that listed it, so the one that
 * brought both back is on leg 1 alone, and before that leg 1 was whole alone.
 */
START_TEST(a_leg_that_is_old_waits_for_who_rebuilt_another)
{
	begin(1, 3, false, (uint64_t)_i);
	heals();
	gone(0);
	gone(2);
	writes(10);
	machine_cut(machine, WORLD_CUT_ANY);
	back(0);
	back(2);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	is_taken_in(0);
	is_taken_in(2);
	gone(1);
	writes(10);
	gone(2);
	writes(10);
	comes_back(2);
	ck_assert_int_eq(machine_member(machine, 2), LABEL_REBUILDING);
	writes(1);
	machine_cut(machine, WORLD_CUT_ANY);
	back(1);
	ck_assert_int_eq(machine_start(machine, 1u << 1 | 1u << 2), -EAGAIN);
	ck_assert_int_eq(machine_start(machine, 1u << 1), -EAGAIN);
	ck_assert_int_eq(machine_start(machine, 1u << 2), -EAGAIN);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	machine_read_all(machine, true);
	ends_well();
}
END_TEST

/* A disk that comes, but was never told who it is, is not waited for. */
START_TEST(who_could_not_be_taken_in_is_not_needed_at_a_start)
{
	uint64_t end_ns;

	begin(1, 2, false, (uint64_t)_i);
	heals();
	ck_assert_int_eq(machine_remove(machine, 0), 0);
	writes(10);
	world_disk_fault(world, 1, WORLD_FAULT_WRITES);
	ck_assert_int_eq(machine_add(machine, 0), -EIO);
	back(1);
	world_disk_fault(world, 0, WORLD_FAULT_SLOW);
	end_ns = env_now_ns(world_env(world)) + NS_PER_S;
	while (machine_settled(machine) && env_now_ns(world_env(world)) < end_ns)
		if (!world_step(world))
			break;
	steps(world_below(world, 8));
	machine_cut(machine, WORLD_CUT_ANY);
	back(0);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	machine_read_all(machine, true);
	comes_back(0);
	ends_well();
}
END_TEST

START_TEST(an_array_waits_for_who_may_have_gone_on_alone)
{
	begin(1, 2, false, (uint64_t)_i);
	heals();
	writes(10);
	machine_cut(machine, WORLD_CUT_ANY);
	ck_assert_int_eq(machine_start(machine, 1), -EAGAIN);
	ck_assert_int_eq(machine_start(machine, 2), -EAGAIN);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	ends_well();
}
END_TEST

/* --- flushes --- */

START_TEST(a_failed_flush_without_copies_is_an_error_of_all_that_follows)
{
	begin(0, 1, true, (uint64_t)_i);
	writes(3);
	ck_assert_int_eq(machine_do(machine, IO_FLUSH, 0, 0), 0);
	writes(3);
	world_disk_fault(world, 0, WORLD_FAULT_FLUSH);
	ck_assert_int_ne(machine_do(machine, IO_FLUSH, 0, 0), 0);
	ck_assert_int_ne(machine_do(machine, IO_FLUSH, 0, 0), 0);
	ck_assert_int_ne(machine_do(machine, IO_WRITE, 0, 512), 0);
	machine_cut(machine, WORLD_CUT_DROP);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	machine_read_all(machine, true);
	end();
}
END_TEST

START_TEST(a_member_whose_flush_failed_is_out_and_gets_all_since_the_last_good_one)
{
	begin_kind((unsigned)_i, true, (uint64_t)_i);
	heals();
	writes(10);
	ck_assert_int_eq(machine_do(machine, IO_FLUSH, 0, 0), 0);
	writes(10);
	world_disk_fault(world, 0, WORLD_FAULT_FLUSH);
	ck_assert_int_eq(machine_do(machine, IO_FLUSH, 0, 0), 0);
	ck_assert_int_eq(machine_member(machine, 0), LABEL_FAILED);
	machine_cut(machine, WORLD_CUT_DROP);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	machine_read_all(machine, true);
	ends_well();
}
END_TEST

/* --- labels --- */

static unsigned torn_labels(unsigned disk)
{
	const uint8_t *bytes = world_disk_bytes(world, disk);
	unsigned torn = 0;
	struct label label;

	for (unsigned slot = 0; slot < LABEL_SLOTS; slot++)
		torn += label_decode(bytes + label_slot_offset(shape.disk_bytes, slot), &label) ==
			-EILSEQ;
	return torn;
}

START_TEST(of_a_label_half_written_the_one_before_it_counts)
{
	unsigned torn = 0;

	for (unsigned moment = 0; moment < 40; moment++) {
		unsigned lost = moment % 2, left = 1 - lost;

		begin_kind(moment, false, moment);
		heals();
		writes(3);
		gone(lost);
		for (unsigned i = 0; i < 4; i++)
			machine_submit(machine);
		for (unsigned i = 0; i < 1000 && !world_writes_in(world, 0, 2 * LABEL_SIZE); i++)
			steps(1);
		steps(moment / 2 % 5);
		machine_cut(machine, WORLD_CUT_ANY);
		ck_assert_uint_eq(torn_labels(lost), 0);
		torn += torn_labels(left) != 0;
		back(lost);
		ck_assert_int_eq(machine_start(machine, ALL), 0);
		machine_read_all(machine, true);
		ends_well();
	}
	ck_assert_uint_gt(torn, 5);
}
END_TEST

/* A label says where it comes from until it is on all its members; then that is forgotten. */
START_TEST(what_a_disk_that_dropped_out_remembers_is_no_second_history)
{
	begin(_i % 2 ? 1 : 5, 3, false, (uint64_t)_i);
	heals();
	machine_cut(machine, WORLD_CUT_ANY);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	steps((unsigned)_i * 7);
	gone(2);
	writes(2);
	machine_cut(machine, WORLD_CUT_ANY);
	back(2);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(machine_start(machine, 3), 0);
		writes(2);
		machine_cut(machine, WORLD_CUT_ANY);
	}
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	machine_read_all(machine, true);
	ends_well();
}
END_TEST

START_TEST(a_disk_that_is_a_member_is_not_added_again)
{
	begin(1, 2, false, 1);
	heals();
	ck_assert_int_eq(machine_add(machine, 0), -EEXIST);
	ck_assert_int_eq(info().state, ARRAY_HEALTHY);
	ends_well();
}
END_TEST

static unsigned entries_of(const char *disk)
{
	const struct array_info now = info();
	unsigned count = 0;

	for (unsigned i = 0; i < now.member_count; i++)
		count += strcmp(now.members[i].name, disk) == 0 &&
			 now.members[i].state != LABEL_FAILED;
	return count;
}

/* Somebody gives it while it is on its way already: it fills one role, not two. */
START_TEST(a_disk_that_is_given_twice_at_once_comes_once)
{
	begin(1, 3, false, (uint64_t)_i);
	heals();
	ck_assert_int_eq(machine_remove(machine, 1), 0);
	ck_assert_int_eq(machine_remove(machine, 2), 0);
	ck_assert(machine_begin_add(machine, 1));
	steps((unsigned)_i * 3);
	machine_add(machine, 1);
	world_run_for(world, 60 * NS_PER_S);
	ck_assert_uint_eq(entries_of("d1"), 1);
	ck_assert_int_eq(machine_add(machine, 2), 0);
	ends_well();
}
END_TEST

START_TEST(a_member_may_come_and_go_often)
{
	begin(1, 2, false, 1);
	heals();
	for (unsigned i = 0; i < 40; i++) {
		gone(1);
		writes(1);
		comes_back(1);
		heals();
	}
	ends_well();
}
END_TEST

/* --- dirty regions --- */

/* The one that came back last had no part in the writes that the other one missed. */
START_TEST(who_comes_back_knows_what_others_miss)
{
	begin(1, 3, false, (uint64_t)_i);
	heals();
	world_run_for(world, 60 * NS_PER_S);
	gone(0);
	gone(1);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(machine_do(machine, IO_WRITE, i * MIB, 64 * KIB), 0);
	comes_back(1);
	is_taken_in(1);
	gone(2);
	ck_assert_int_eq(machine_do(machine, IO_WRITE, 0, 4096), 0);
	machine_cut(machine, WORLD_CUT_ANY);
	back(0);
	ck_assert_int_eq(machine_start(machine, 3), 0);
	is_taken_in(0);
	machine_read_all(machine, true);
	comes_back(2);
	ends_well();
}
END_TEST

START_TEST(what_was_made_equal_is_not_doubtful_in_the_next_life)
{
	begin(1, 2, false, (uint64_t)_i);
	heals();
	writes(5);
	machine_cut(machine, WORLD_CUT_ANY);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	ck_assert_uint_gt(info().regions_doubtful, 0);
	heals();
	machine_stop(machine);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	ck_assert_uint_eq(info().regions_doubtful, 0);
	ends_well();
}
END_TEST

START_TEST(nobody_could_read_a_short_last_region_and_it_comes_to_rest)
{
	begin(1, 2, false, (uint64_t)_i);
	heals();
	world_disk_bad(world, 0, shape.disk_bytes - 128 * KIB, 4096);
	world_disk_bad(world, 1, shape.disk_bytes - 128 * KIB, 4096);
	ck_assert_int_eq(machine_do(machine, IO_WRITE, info().size_bytes - 512, 512), 0);
	machine_cut(machine, WORLD_CUT_ANY);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	world_run_for(world, 60 * NS_PER_S);
	ck_assert_uint_eq(info().regions_doubtful, 1);
	ck_assert(machine_array(machine)->resync);
	end();
}
END_TEST

/* --- reads while copies are made equal --- */

START_TEST(reads_are_right_while_a_leg_comes_in)
{
	begin(_i % 2 ? 1 : 10, _i % 2 ? 2 : 4, false, (uint64_t)_i);
	for (unsigned round = 0; round < 3; round++) {
		gone(1);
		writes(10);
		comes_back(1);
		while (machine_member(machine, 1) != LABEL_IN_SYNC) {
			machine_submit(machine);
			steps(3);
			holds();
		}
		ck_assert(machine_drain(machine));
	}
	ends_well();
}
END_TEST

START_TEST(reads_are_stable_while_a_leg_fails_in_the_first_resync)
{
	begin(_i % 2 ? 1 : 10, _i % 2 ? 3 : 4, false, (uint64_t)_i);
	for (unsigned i = 0; i < 60; i++) {
		if (i == 20)
			world_disk_fault(world, (unsigned)_i % 2, WORLD_FAULT_WRITES);
		machine_look(machine);
		machine_submit(machine);
		steps(20);
		holds();
	}
	ck_assert(machine_drain(machine));
	machine_cut(machine, WORLD_CUT_ANY);
	back((unsigned)_i % 2);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	machine_read_all(machine, true);
	ends_well();
}
END_TEST

/* No label can say that leg 1 is out, as the last leg of the other pair takes none. */
START_TEST(what_a_leg_missed_that_still_counts_is_not_shown)
{
	begin(10, 4, false, (uint64_t)_i);
	heals();
	ck_assert_int_eq(machine_do(machine, IO_WRITE, 0, 256 * KIB), 0);
	gone(2);
	ck_assert_int_eq(machine_do(machine, IO_WRITE, 0, 256 * KIB), 0);
	gone(1);
	world_disk_fault(world, 3, WORLD_FAULT_WRITES);
	ck_assert_int_ne(machine_do(machine, IO_WRITE, 0, 4096), 0);
	back(3);
	machine_do(machine, IO_READ, 0, 4096);
	machine_stop(machine);
	back(1);
	/* It counts, unless the label that failed has reached disk 3 all the same. */
	if (machine_start(machine, 1u << 1 | 1u << 3))
		ck_assert_int_eq(machine_start(machine, ALL), 0);
	machine_read_all(machine, true);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim_stories");
	TCase *tcase = tcase_create("sim_stories");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300); /* simulations are slow on a busy machine */
	tcase_add_loop_test(tcase, of_legs_cut_one_by_one_the_last_one_counts, 0, 8);
	tcase_add_loop_test(tcase, the_last_leg_starts_alone, 0, 4);
	tcase_add_loop_test(tcase, a_member_unplugged_twice_in_one_rebuild_is_copied_whole, 0, 12);
	tcase_add_loop_test(tcase, a_member_removed_in_a_rebuild_is_never_read_past_it, 0, 6);
	tcase_add_loop_test(tcase, a_leg_that_is_old_waits_for_who_rebuilt_another, 0, 8);
	tcase_add_loop_test(tcase, who_could_not_be_taken_in_is_not_needed_at_a_start, 0, 8);
	tcase_add_loop_test(tcase, an_array_waits_for_who_may_have_gone_on_alone, 0, 2);
	tcase_add_loop_test(tcase, a_failed_flush_without_copies_is_an_error_of_all_that_follows, 0,
			    4);
	tcase_add_loop_test(tcase,
			    a_member_whose_flush_failed_is_out_and_gets_all_since_the_last_good_one,
			    0, 6);
	tcase_add_test(tcase, of_a_label_half_written_the_one_before_it_counts);
	tcase_add_loop_test(tcase, what_a_disk_that_dropped_out_remembers_is_no_second_history, 0,
			    8);
	tcase_add_test(tcase, a_disk_that_is_a_member_is_not_added_again);
	tcase_add_loop_test(tcase, a_disk_that_is_given_twice_at_once_comes_once, 0, 4);
	tcase_add_test(tcase, a_member_may_come_and_go_often);
	tcase_add_loop_test(tcase, who_comes_back_knows_what_others_miss, 0, 4);
	tcase_add_loop_test(tcase, what_was_made_equal_is_not_doubtful_in_the_next_life, 0, 2);
	tcase_add_loop_test(tcase, nobody_could_read_a_short_last_region_and_it_comes_to_rest, 0,
			    2);
	tcase_add_loop_test(tcase, reads_are_right_while_a_leg_comes_in, 0, 8);
	tcase_add_loop_test(tcase, reads_are_stable_while_a_leg_fails_in_the_first_resync, 0, 8);
	tcase_add_loop_test(tcase, what_a_leg_missed_that_still_counts_is_not_shown, 0, 4);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
