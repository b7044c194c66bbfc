/* SPDX-License-Identifier: MIT */
/* Unit attention sets: order, coalescing, and that none is ever lost. */
#include <check.h>
#include <stdlib.h>

#include "core/base.h"
#include "mpio/ua.h"

START_TEST(conditions_come_out_in_order_of_priority_whatever_the_order_of_raising)
{
	unsigned first = (unsigned)_i / UA_COUNT, second = (unsigned)_i % UA_COUNT;
	struct ua_set set = { 0 };
	enum ua_condition a, b;

	ua_raise(&set, (enum ua_condition)first);
	ua_raise(&set, (enum ua_condition)second);
	a = ua_take(&set);
	b = ua_take(&set);
	ck_assert_uint_eq(a, first < second ? first : second);
	/* Only resets and what they imply melt into one. */
	if (b == UA_NONE && first != second)
		ck_assert(a <= UA_LUN_RESET &&
			  (first > second ? first : second) <= UA_CLEARED_BY_OTHER);
	else if (first != second)
		ck_assert_uint_eq(b, first > second ? first : second);
	ck_assert(!ua_pending(&set));
}
END_TEST

START_TEST(raising_twice_reports_once)
{
	struct ua_set set = { 0 };

	ua_raise(&set, UA_CAPACITY_CHANGED);
	ua_raise(&set, UA_CAPACITY_CHANGED);
	ck_assert_uint_eq(ua_peek(&set), UA_CAPACITY_CHANGED);
	ck_assert_uint_eq(ua_take(&set), UA_CAPACITY_CHANGED);
	ck_assert_uint_eq(ua_take(&set), UA_NONE);
}
END_TEST

START_TEST(a_reset_keeps_news_of_capacity_and_map)
{
	struct ua_set set = { 0 };

	ua_raise(&set, UA_LUNS_CHANGED);
	ua_raise(&set, UA_CAPACITY_CHANGED);
	ua_raise(&set, UA_POWER_ON);
	ck_assert_uint_eq(ua_take(&set), UA_POWER_ON);
	ck_assert_uint_eq(ua_take(&set), UA_LUNS_CHANGED);
	ck_assert_uint_eq(ua_take(&set), UA_CAPACITY_CHANGED);
	ck_assert_uint_eq(ua_take(&set), UA_NONE);
}
END_TEST

START_TEST(a_lesser_reset_is_covered_by_one_still_to_be_reported)
{
	struct ua_set set = { 0 };

	ua_raise(&set, UA_POWER_ON);
	ua_raise(&set, UA_LUN_RESET);
	ck_assert_uint_eq(ua_take(&set), UA_POWER_ON);
	ck_assert_uint_eq(ua_take(&set), UA_NONE);
	ua_raise(&set, UA_LUN_RESET);
	ck_assert_uint_eq(ua_take(&set), UA_LUN_RESET);
}
END_TEST

START_TEST(clearing_by_name_leaves_the_others)
{
	struct ua_set set = { 0 };

	ua_raise(&set, UA_LUNS_CHANGED);
	ua_raise(&set, UA_MODE_CHANGED);
	ua_clear(&set, UA_LUNS_CHANGED);
	ck_assert_uint_eq(ua_take(&set), UA_MODE_CHANGED);
	ck_assert(!ua_pending(&set));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ua");
	TCase *tc = tcase_create("ua");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc,
			    conditions_come_out_in_order_of_priority_whatever_the_order_of_raising,
			    0, UA_COUNT * UA_COUNT);
	tcase_add_test(tc, raising_twice_reports_once);
	tcase_add_test(tc, a_reset_keeps_news_of_capacity_and_map);
	tcase_add_test(tc, a_lesser_reset_is_covered_by_one_still_to_be_reported);
	tcase_add_test(tc, clearing_by_name_leaves_the_others);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
