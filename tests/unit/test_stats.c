/* SPDX-License-Identifier: MIT */
/* Counter tables and rates over the last seconds. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"

struct counters {
	int unrelated;
	uint64_t reads;
	uint64_t bytes;
	uint64_t hidden;
};

static const struct stats_field fields[] = {
	STATS_FIELD(struct counters, reads),
	STATS_FIELD(struct counters, bytes),
	STATS_END,
};

START_TEST(named_fields_are_read_summed_and_shown_and_others_left_alone)
{
	struct counters a = { 1, 10, 4096, 7 }, b = { 2, 5, 512, 9 };
	json_t *shown = json_object();

	ck_assert_uint_eq(stats_get(fields, &a, "bytes"), 4096);
	stats_add(fields, &a, &b);
	ck_assert_uint_eq(a.reads, 15);
	ck_assert_uint_eq(a.bytes, 4608);
	ck_assert_uint_eq(a.hidden, 7);
	stats_json(fields, &a, shown);
	ck_assert_uint_eq(json_object_size(shown), 2);
	ck_assert_int_eq(json_integer_value(json_object_get(shown, "reads")), 15);
	json_decref(shown);
}
END_TEST

START_TEST(a_steady_stream_is_shown_at_its_rate_once_and_after_a_minute)
{
	struct rate rate = { 0 };
	uint64_t now = 12345;

	for (unsigned i = 0; i <= 60000; i++, now += NS_PER_MS) {
		rate_add(&rate, now, 3);
		if (i >= 500 && i % 777 == 0)
			ck_assert_double_eq_tol(rate_per_second(&rate, now), 3000, 30);
	}
}
END_TEST

START_TEST(what_is_older_than_the_window_is_forgotten)
{
	struct rate rate = { 0 };
	uint64_t start = 5 * NS_PER_S;

	rate_add(&rate, start, 1000);
	ck_assert_double_gt(rate_per_second(&rate, start + 2 * NS_PER_S), 400);
	ck_assert_double_gt(rate_per_second(&rate, start + RATE_WINDOW_NS - 1), 150);
	ck_assert_double_eq(rate_per_second(&rate, start + RATE_WINDOW_NS + RATE_BUCKET_NS), 0);
	rate_add(&rate, start + 3600 * NS_PER_S, 50);
	ck_assert_double_eq_tol(rate_per_second(&rate, start + 3600 * NS_PER_S), 10, 1);
}
END_TEST

START_TEST(a_rate_that_falls_follows_within_the_window)
{
	struct rate rate = { 0 };
	uint64_t now = NS_PER_S;

	for (unsigned i = 0; i < 10000; i++, now += NS_PER_MS)
		rate_add(&rate, now, 10);
	for (unsigned i = 0; i < 6000; i++, now += NS_PER_MS)
		rate_add(&rate, now, 1);
	ck_assert_double_eq_tol(rate_per_second(&rate, now), 1000, 10);
}
END_TEST

START_TEST(the_first_moment_does_not_show_millions)
{
	struct rate rate = { 0 };

	rate_add(&rate, 1000, 1);
	ck_assert_double_le(rate_per_second(&rate, 1001), 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stats");
	TCase *tc = tcase_create("stats");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, named_fields_are_read_summed_and_shown_and_others_left_alone);
	tcase_add_test(tc, a_steady_stream_is_shown_at_its_rate_once_and_after_a_minute);
	tcase_add_test(tc, what_is_older_than_the_window_is_forgotten);
	tcase_add_test(tc, a_rate_that_falls_follows_within_the_window);
	tcase_add_test(tc, the_first_moment_does_not_show_millions);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
