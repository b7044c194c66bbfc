/* SPDX-License-Identifier: MIT */
/*
 * Named stories of arrays: power is cut while what they know of themselves is being written.
 * timeout: 600
 */
#include "tests/fake/story_rig.h"

/* --- at every moment of a change of labels --- */

/* A write that has a part for every member. */
static void wide_write(void)
{
	ck_assert_int_eq(machine_do(machine, IO_WRITE, 0, 256 * KIB), 0);
}

static void a_member_drops_out(void)
{
	gone(1);
	submits(2);
}

static void a_member_is_removed(void)
{
	ck_assert(machine_begin_remove(machine, 1));
}

static void a_member_comes_back(void)
{
	gone(1);
	wide_write();
	back(1);
	ck_assert(machine_begin_add(machine, 1));
}

/* It is copied, so that the label that takes it in is near. */
static void a_member_is_in_again(void)
{
	a_member_comes_back();
	while (machine_member(machine, 1) != LABEL_IN_SYNC)
		ck_assert(world_step(world));
}

static void (*const changes[])(void) = {
	a_member_drops_out,
	a_member_is_removed,
	a_member_comes_back,
	a_member_is_in_again,
};

/* With everybody there it is found, holds everything, and takes back who is out. */
static void is_found(void)
{
	enum label_state state;

	back(1);
	ck_assert_int_eq(machine_start(machine, ALL), 0);
	machine_read_all(machine, true);
	state = machine_member(machine, 1);
	if (state != LABEL_IN_SYNC && state != LABEL_REBUILDING)
		machine_add(machine, 1); /* it may be on its way already */
	ends_well();
}

static const enum world_cut cuts[] = { WORLD_CUT_DROP, WORLD_CUT_ANY };

/* The story so far; it is the same for every moment. */
static void label_begins(unsigned i)
{
	begin_kind(i, i % 2, i);
	heals();
	writes(2);
	changes[i / STORY_KINDS]();
	for (unsigned n = 0; n < 5000 && machine_settled(machine); n++)
		ck_assert(world_step(world));
	ck_assert(!machine_settled(machine));
}

START_TEST(power_cut_at_every_moment_of_a_change_of_labels)
{
	unsigned moment = 0;

	for (bool under_way = true; under_way; moment++) {
		label_begins((unsigned)_i);
		steps(moment);
		under_way = !machine_settled(machine);
		machine_cut(machine, cuts[moment % 2]);
		is_found();
	}
	ck_assert_uint_gt(moment, 5);
}
END_TEST

/* Labels say that it runs, or without whom. */
START_TEST(power_cut_at_every_moment_of_a_start)
{
	bool without = (unsigned)_i / STORY_KINDS, early = true;
	unsigned moment;

	for (moment = (unsigned)_i % 5; early; moment += 5) {
		begin_kind((unsigned)_i, moment / 2 % 2, (uint64_t)_i * 100 + moment);
		heals();
		writes(2);
		if (without)
			gone(1);
		wide_write();
		submits(3);
		steps(moment % 20);
		machine_cut(machine, WORLD_CUT_ANY);
		early = machine_cut_in_start(machine, ALL, moment, cuts[moment % 2]);
		is_found();
	}
	ck_assert_uint_gt(moment, 15);
}
END_TEST

/* --- what is torn --- */

/* Goes on until writes to [FROM, TO) of disks are under way; false: there are none. */
static bool until_writes_in(uint64_t from, uint64_t to)
{
	for (unsigned i = 0; i < 1000; i++) {
		if (world_writes_in(world, from, to))
			return true;
		steps(1);
	}
	return false;
}

/* The area is cut in the midst of its writes, at several moments, on every disk. */
static void torn(unsigned i, bool log)
{
	unsigned met = 0;

	for (unsigned moment = 0; moment < 8; moment++) {
		const struct label_area *area;

		begin_kind(log ? 2 : i, false, i * 16 + moment);
		heals();
		writes(2);
		world_run_for(world, 7 * NS_PER_S); /* its bits are withdrawn */
		submits(12);
		area = log ? &machine_array(machine)->label.log :
			     &machine_array(machine)->label.maps[moment % 2];
		if (until_writes_in(area->offset, area->offset + area->length))
			met++;
		steps(2 * moment);
		machine_cut(machine, WORLD_CUT_ANY);
		ck_assert_int_eq(machine_start(machine, ALL), 0);
		machine_read_all(machine, true);
		ends_well();
	}
	ck_assert_uint_gt(met, 2);
}

START_TEST(of_a_map_half_written_the_copy_before_it_counts)
{
	torn((unsigned)_i, false);
}
END_TEST

START_TEST(a_log_record_half_written_is_none)
{
	torn((unsigned)_i, true);
}
END_TEST

/* --- stripes --- */

/* All stripes are replayed before anybody reads, whoever is lost. */
START_TEST(of_a_stripe_half_written_with_a_member_lost_every_block_is_old_or_new)
{
	unsigned lost = (unsigned)_i % 4, degraded = 0;

	for (unsigned moment = 0; moment < 20; moment += 2) {
		begin_on(5, 4, false, moment < 4, (uint64_t)_i * 100 + moment);
		heals();
		writes(6);
		submits(8);
		until_writes_in(machine_data_offset(machine), UINT64_MAX);
		steps(moment);
		machine_cut(machine, WORLD_CUT_ANY);
		ck_assert_int_eq(machine_start(machine, ALL & ~(1u << lost)), 0);
		degraded += info().state == ARRAY_DEGRADED;
		machine_read_all(machine, true);
		writes(2);
		comes_back(lost);
		ends_well();
	}
	ck_assert_uint_eq(degraded, 10);
}
END_TEST

/*
 * Whole stripes of which only intents are in the logs are half written, and a member is lost. The
 * next start finds some blocks lost for good, is cut itself at any moment, and so is the next one.
 */
START_TEST(what_a_start_found_lost_is_so_for_the_next_one)
{
	unsigned lost = (unsigned)_i % 4, gaps = 0;

	for (unsigned moment = 0; moment < 70; moment++) {
		shape = (struct machine_shape){ .level = 5,
						.disks = 4,
						.chunk_bytes = 16 * KIB,
						.block_bytes = 512,
						.disk_bytes = 5 * MIB,
						.garbage = true,
						.intent = true };
		begin_shape((uint64_t)_i * 1000 + moment);
		heals();
		wide_write();
		ck_assert(machine_begin(machine, IO_WRITE, 0, 256 * KIB));
		until_writes_in(machine_data_offset(machine), UINT64_MAX);
		steps(28 + moment % 17);
		machine_cut(machine, WORLD_CUT_ANY);
		machine_cut_in_start(machine, ALL & ~(1u << lost), 40 + moment, WORLD_CUT_ANY);
		ck_assert_int_eq(machine_start(machine, ALL & ~(1u << lost)), 0);
		gaps += info().bad_bytes > 0;
		machine_read_all(machine, false);
		comes_back(lost);
		heals();
		machine_read_all(machine, false);
		end();
	}
	ck_assert_uint_gt(gaps, 5);
}
END_TEST

/* The same, and the member is lost after the start: what was replayed counts. */
START_TEST(a_member_lost_after_the_replay_takes_nothing_along)
{
	unsigned lost = (unsigned)_i % 4;

	for (unsigned moment = 0; moment < 20; moment += 3) {
		begin_on(5, 4, false, moment < 4, (uint64_t)_i * 100 + moment);
		heals();
		writes(6);
		submits(8);
		until_writes_in(machine_data_offset(machine), UINT64_MAX);
		steps(moment);
		machine_cut(machine, WORLD_CUT_ANY);
		ck_assert_int_eq(machine_start(machine, ALL), 0);
		gone(lost);
		machine_read_all(machine, true);
		writes(1);
		ck_assert_int_eq(machine_member(machine, lost), LABEL_FAILED);
		comes_back(lost);
		ends_well();
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim_commits");
	TCase *tcase = tcase_create("sim_commits");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300); /* simulations are slow on a busy machine */
	tcase_add_loop_test(tcase, power_cut_at_every_moment_of_a_change_of_labels, 0,
			    ARRAY_LEN(changes) * STORY_KINDS);
	tcase_add_loop_test(tcase, power_cut_at_every_moment_of_a_start, 0, 2 * STORY_KINDS);
	tcase_add_loop_test(tcase, of_a_map_half_written_the_copy_before_it_counts, 0, 3);
	tcase_add_loop_test(tcase, a_log_record_half_written_is_none, 0, 2);
	tcase_add_loop_test(
		tcase, of_a_stripe_half_written_with_a_member_lost_every_block_is_old_or_new, 0, 4);
	tcase_add_loop_test(tcase, what_a_start_found_lost_is_so_for_the_next_one, 0, 4);
	tcase_add_loop_test(tcase, a_member_lost_after_the_replay_takes_nothing_along, 0, 4);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
