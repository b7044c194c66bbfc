/* SPDX-License-Identifier: MIT */
/* What follows from a plan: the depth that a point asks for, whether it writes. */
#include <check.h>

#include "bench/plan.h"

START_TEST(a_stream_without_workers_has_one_for_each_of_its_sessions_on_every_portal)
{
	struct bench_setup setup = { .portal_count = 2 };
	struct bench_point point = { .sessions = 4, .stream_count = 1 };

	point.streams[0] = (struct bench_stream){ .depth = 32 };
	ck_assert_uint_eq(bench_point_depth(&setup, &point), 2 * 4 * 32);
	point.streams[0].sessions = 1;
	ck_assert_uint_eq(bench_point_depth(&setup, &point), 2 * 1 * 32);
	point.streams[0].workers = 10;
	ck_assert_uint_eq(bench_point_depth(&setup, &point), 10 * 32);
}
END_TEST

START_TEST(streams_side_by_side_add_their_depths)
{
	struct bench_setup setup = { .portal_count = 1 };
	struct bench_point point = { .sessions = 2, .stream_count = 2 };

	point.streams[0] = (struct bench_stream){ .depth = 8 };
	point.streams[1] = (struct bench_stream){ .depth = 3, .workers = 5 };
	ck_assert_uint_eq(bench_point_depth(&setup, &point), 2 * 8 + 5 * 3);
}
END_TEST

START_TEST(a_point_writes_if_any_of_its_streams_does)
{
	struct bench_point point = { .stream_count = 2 };

	point.streams[0].read_percent = 100;
	point.streams[1].read_percent = 100;
	ck_assert(!bench_point_writes(&point));
	point.streams[1].read_percent = 99;
	ck_assert(bench_point_writes(&point));
	point.stream_count = 1;
	ck_assert(!bench_point_writes(&point));
}
END_TEST

START_TEST(names_are_the_words_of_the_options)
{
	ck_assert_str_eq(bench_pattern_name(PATTERN_RANDOM), "random");
	ck_assert_str_eq(bench_pattern_name(PATTERN_SEQUENTIAL), "sequential");
	ck_assert_str_eq(bench_pattern_name(PATTERN_ZIPF), "zipf");
	ck_assert_str_eq(bench_data_name(DATA_RANDOM), "random");
	ck_assert_str_eq(bench_data_name(DATA_REPEAT), "repeat");
	ck_assert_str_eq(bench_data_name(DATA_ZERO), "zero");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("plan");
	TCase *tcase = tcase_create("plan");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase,
		       a_stream_without_workers_has_one_for_each_of_its_sessions_on_every_portal);
	tcase_add_test(tcase, streams_side_by_side_add_their_depths);
	tcase_add_test(tcase, a_point_writes_if_any_of_its_streams_does);
	tcase_add_test(tcase, names_are_the_words_of_the_options);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
