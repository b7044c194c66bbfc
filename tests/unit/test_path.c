/* SPDX-License-Identifier: MIT */
/* Which path takes the next command, policy by policy. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "mpio/path.h"

#define PATHS 4

static struct path paths[PATHS];
static struct path_group group;

static void start(enum path_policy policy, unsigned up)
{
	for (unsigned i = 0; i < PATHS; i++)
		paths[i] = (struct path){ .up = i < up };
	path_group_init(&group, policy, paths, PATHS);
}

static void expect_order(const int *order, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(path_choose(&group, 0), order[i]);
}

START_TEST(round_robin_takes_one_path_after_the_other)
{
	start(PATH_ROUND_ROBIN, 3);
	expect_order((int[]){ 0, 1, 2, 0, 1 }, 5);
	ck_assert_uint_eq(paths[0].sent, 2);
	ck_assert_uint_eq(paths[0].in_flight, 2);
	path_done(&paths[0]);
	ck_assert_uint_eq(paths[0].in_flight, 1);
	ck_assert_uint_eq(paths[0].sent, 2);
}
END_TEST

START_TEST(round_robin_leaves_out_what_is_down_and_takes_it_back)
{
	start(PATH_ROUND_ROBIN, 3);
	path_set_up(&paths[1], false, 0);
	expect_order((int[]){ 0, 2, 0 }, 3);
	path_set_up(&paths[1], true, 0);
	expect_order((int[]){ 1, 2, 0 }, 3);
}
END_TEST

START_TEST(round_robin_shares_exactly_with_unequal_loads)
{
	start(PATH_ROUND_ROBIN, 4);
	paths[2].in_flight = 1000;
	for (unsigned i = 0; i < 4000; i++)
		path_choose(&group, 0);
	for (unsigned i = 0; i < PATHS; i++)
		ck_assert_uint_eq(paths[i].sent, 1000);
}
END_TEST

START_TEST(least_in_flight_goes_where_the_fewest_are_open)
{
	start(PATH_LEAST_IN_FLIGHT, 3);
	paths[0].in_flight = 5;
	paths[1].in_flight = 3;
	paths[2].in_flight = 4;
	/* 1 has 3, then 4 beside 2's 4: in turn. */
	expect_order((int[]){ 1, 2, 1, 2, 0, 1 }, 6);
}
END_TEST

START_TEST(least_in_flight_takes_equal_paths_in_turn)
{
	start(PATH_LEAST_IN_FLIGHT, 4);
	for (unsigned i = 0; i < 12; i++) {
		ck_assert_int_eq(path_choose(&group, 0), (int)(i % 4));
		path_done(&paths[i % 4]);
	}
}
END_TEST

START_TEST(failover_stays_on_the_first_path)
{
	start(PATH_FAILOVER, 4);
	expect_order((int[]){ 0, 0, 0 }, 3);
	ck_assert_uint_eq(paths[1].sent, 0);
}
END_TEST

START_TEST(failover_takes_the_next_at_once_and_goes_back_after_a_while)
{
	start(PATH_FAILOVER, 2);
	group.failback_ns = 100;
	ck_assert_int_eq(path_choose(&group, 1000), 0);
	path_set_up(&paths[0], false, 1000);
	ck_assert_int_eq(path_choose(&group, 1000), 1);
	path_set_up(&paths[0], true, 2000);
	ck_assert_int_eq(path_choose(&group, 2000), 1);
	ck_assert_int_eq(path_choose(&group, 2099), 1);
	ck_assert_int_eq(path_choose(&group, 2100), 0);
}
END_TEST

START_TEST(failover_waits_for_nobody_when_the_current_path_is_down)
{
	start(PATH_FAILOVER, 2);
	group.failback_ns = 100;
	path_set_up(&paths[0], false, 0);
	ck_assert_int_eq(path_choose(&group, 10), 1);
	path_set_up(&paths[0], true, 20);
	path_set_up(&paths[1], false, 20);
	ck_assert_int_eq(path_choose(&group, 20), 0);
}
END_TEST

START_TEST(a_flapping_path_is_not_gone_back_to)
{
	start(PATH_FAILOVER, 2);
	group.failback_ns = 100;
	path_set_up(&paths[0], false, 0);
	ck_assert_int_eq(path_choose(&group, 0), 1);
	for (uint64_t now = 50; now < 1000; now += 50) {
		path_set_up(&paths[0], now % 100 == 50, now);
		ck_assert_int_eq(path_choose(&group, now), 1);
	}
	/* Being told again that it is up does not make it younger. */
	path_set_up(&paths[0], true, 1000);
	path_set_up(&paths[0], true, 1090);
	ck_assert_int_eq(path_choose(&group, 1100), 0);
}
END_TEST

START_TEST(the_best_rank_that_is_up_has_it_all)
{
	enum path_policy policy = (enum path_policy)_i;

	start(policy, 4);
	paths[0].rank = paths[1].rank = 1;
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_ge(path_choose(&group, 0), 2);
	path_set_up(&paths[2], false, 0);
	path_set_up(&paths[3], false, 0);
	for (unsigned i = 0; i < 10; i++) {
		int chosen = path_choose(&group, 0);

		ck_assert_int_ge(chosen, 0);
		ck_assert_int_le(chosen, 1);
	}
}
END_TEST

START_TEST(without_a_path_there_is_none)
{
	enum path_policy policy = (enum path_policy)_i;

	start(policy, 0);
	ck_assert_int_eq(path_choose(&group, 0), -1);
	path_set_up(&paths[3], true, 0);
	ck_assert_int_eq(path_choose(&group, 0), 3);
	path_set_up(&paths[3], false, 0);
	ck_assert_int_eq(path_choose(&group, 0), -1);
	ck_assert_uint_eq(paths[3].in_flight, 1);
	path_group_init(&group, policy, paths, 0);
	ck_assert_int_eq(path_choose(&group, 0), -1);
}
END_TEST

START_TEST(policies_are_read_and_written)
{
	enum path_policy policy = PATH_ROUND_ROBIN;

	for (int i = PATH_ROUND_ROBIN; i <= PATH_FAILOVER; i++) {
		ck_assert_int_eq(path_policy_parse(path_policy_name((enum path_policy)i), &policy),
				 0);
		ck_assert_int_eq(policy, i);
	}
	ck_assert_int_eq(path_policy_parse("round robin", &policy), -EINVAL);
	ck_assert_int_eq(path_policy_parse("", &policy), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("path");
	TCase *tcase = tcase_create("path");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, round_robin_takes_one_path_after_the_other);
	tcase_add_test(tcase, round_robin_leaves_out_what_is_down_and_takes_it_back);
	tcase_add_test(tcase, round_robin_shares_exactly_with_unequal_loads);
	tcase_add_test(tcase, least_in_flight_goes_where_the_fewest_are_open);
	tcase_add_test(tcase, least_in_flight_takes_equal_paths_in_turn);
	tcase_add_test(tcase, failover_stays_on_the_first_path);
	tcase_add_test(tcase, failover_takes_the_next_at_once_and_goes_back_after_a_while);
	tcase_add_test(tcase, failover_waits_for_nobody_when_the_current_path_is_down);
	tcase_add_test(tcase, a_flapping_path_is_not_gone_back_to);
	tcase_add_loop_test(tcase, the_best_rank_that_is_up_has_it_all, PATH_ROUND_ROBIN,
			    PATH_FAILOVER + 1);
	tcase_add_loop_test(tcase, without_a_path_there_is_none, PATH_ROUND_ROBIN,
			    PATH_FAILOVER + 1);
	tcase_add_test(tcase, policies_are_read_and_written);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
