/* SPDX-License-Identifier: MIT */
/* The steady-state test at its limits, and over series whose intervals do not fit the rounds. */
#include <check.h>
#include <stdlib.h>

#include "bench/steady.h"

#define N 100

static struct bench_interval series[N];

/* COUNT intervals of LENGTH seconds; ops and latency as functions of the time in their middle. */
static void make(unsigned count, double length, double (*iops)(double), double (*latency)(double))
{
	ck_assert_uint_le(count, N);
	for (unsigned i = 0; i < count; i++) {
		double at = (i + 0.5) * length;

		series[i] = (struct bench_interval){ .from_s = i * length,
						     .to_s = (i + 1) * length,
						     .mean_ns = latency(at) };
		series[i].ops[BENCH_TOTAL] = (uint64_t)(iops(at) * length + 0.5);
	}
}

static double flat(double at)
{
	(void)at;
	return 100000;
}

/* 10 rounds of 2 s: the last of them 90, 100, 100, 100, 110 thousand. */
static double wide(double at)
{
	return at < 12 ? 90000 : at >= 18 ? 110000 : 100000;
}

static double wider(double at)
{
	return at < 12 ? 89900 : at >= 18 ? 110000 : 100000;
}

/* Lowest and highest in the middle: it varies, but does not drift. */
static double hump(double at)
{
	return at >= 14 && at < 16 ? 120000 : 100000;
}

static double hump_too_high(double at)
{
	return at >= 14 && at < 16 ? 126100 : 100000;
}

/* Rises by 2500 a round: 10 % over the four steps between five rounds. */
static double rising(double at)
{
	return 100000 + 2500 * (at - 15) / 2;
}

static double rising_faster(double at)
{
	return 100000 + 2510 * (at - 15) / 2;
}

static double falling_faster(double at)
{
	return 100000 - 2510 * (at - 15) / 2;
}

static double silent_round(double at)
{
	return at >= 12 && at < 14 ? 0 : 100000;
}

START_TEST(a_flat_series_is_steady)
{
	struct steady s;

	make(20, 1, flat, flat);
	s = steady_judge(series, 20, 2);
	ck_assert(s.known && s.met);
	ck_assert_double_eq(s.range, 0);
	ck_assert_double_eq_tol(s.drift, 0, 1e-12);
	ck_assert_double_eq(s.round_s, 2);
}
END_TEST

START_TEST(limits_are_20_percent_of_range_and_10_percent_of_drift)
{
	static const struct {
		double (*iops)(double);
		bool met;
		double range, drift;
	} cases[] = {
		{ hump, true, 20000 / 104000.0, 0 },
		{ hump_too_high, false, 26100 / 105220.0, 0 },
		/* slope: (-2 * 90 + 2 * 110) / 10 = 4 thousand a round, times 4 is 16 % */
		{ wide, false, 0.2, 0.16 },
		{ wider, false, 20100 / 99980.0, 16080 / 99980.0 },
		{ rising, true, 0.1, 0.1 },
		{ rising_faster, false, 0.1004, 0.1004 },
		{ falling_faster, false, 0.1004, 0.1004 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct steady s;

		/* Of IOPS alone, and of latency alone. */
		make(20, 1, cases[i].iops, flat);
		s = steady_judge(series, 20, 2);
		ck_assert_msg(s.met == cases[i].met, "iops %u: %g %g", i, s.range, s.drift);
		ck_assert_double_eq_tol(s.range, cases[i].range, 1e-4);
		ck_assert_double_eq_tol(s.drift, cases[i].drift, 1e-4);
		ck_assert_double_eq_tol(s.latency.range, 0, 1e-9);
		make(20, 1, flat, cases[i].iops);
		s = steady_judge(series, 20, 2);
		ck_assert_msg(s.met == cases[i].met, "latency %u: %g %g", i, s.range, s.drift);
		ck_assert_double_eq_tol(s.latency.range, cases[i].range, 1e-4);
		ck_assert_double_eq_tol(s.iops.range, 0, 1e-9);
	}
}
END_TEST

START_TEST(drift_has_a_sign_in_its_figure_only)
{
	struct steady s;

	make(20, 1, falling_faster, flat);
	s = steady_judge(series, 20, 2);
	ck_assert_double_eq_tol(s.iops.drift, -0.1004, 1e-4);
	ck_assert_double_gt(s.drift, 0);
}
END_TEST

START_TEST(a_round_without_an_answer_is_not_steady)
{
	struct steady s;

	make(20, 1, silent_round, flat);
	s = steady_judge(series, 20, 2);
	ck_assert(s.known && !s.met);
}
END_TEST

static double early_trouble(double at)
{
	return at < 10 ? 500 : 100000;
}

START_TEST(only_the_last_five_rounds_count)
{
	make(20, 1, early_trouble, flat);
	ck_assert(steady_judge(series, 20, 2).met);
	ck_assert(!steady_judge(series, 20, 2.1).met);
}
END_TEST

START_TEST(intervals_on_a_border_belong_to_both_rounds)
{
	struct steady s;

	/* 33 intervals of 0.3 s, 9.9 s: no five rounds of 2 s, but five of 1.98. */
	make(33, 0.3, flat, flat);
	ck_assert(!steady_judge(series, 33, 2).known);
	s = steady_judge(series, 33, 1.98);
	ck_assert(s.known && s.met);
	ck_assert_double_eq_tol(s.range, 0, 1e-9);
}
END_TEST

START_TEST(latency_is_the_commands_mean_not_the_intervals)
{
	struct steady s;

	make(10, 1, flat, flat);
	/* Round 5: 300 commands of 1 ms, 100 of 5 ms: 2 ms; the intervals' mean would be 3 ms. */
	for (unsigned i = 0; i < 10; i++) {
		series[i].ops[BENCH_TOTAL] = 200;
		series[i].mean_ns = 2e6;
	}
	series[8].ops[BENCH_TOTAL] = 300;
	series[8].mean_ns = 1e6;
	series[9].ops[BENCH_TOTAL] = 100;
	series[9].mean_ns = 5e6;
	s = steady_judge(series, 10, 2);
	ck_assert_double_eq_tol(s.latency.range, 0, 1e-9);
	ck_assert_double_eq_tol(s.iops.range, 0, 1e-9);
}
END_TEST

START_TEST(rounds_are_a_fifth_of_the_time_and_2_s_at_least)
{
	struct bench_point point = { .time_ns = 30 * NS_PER_S };
	struct bench_result *result = calloc(1, sizeof(*result));

	ck_assert_double_eq(steady_round_s(&point), 6);
	point.time_ns = NS_PER_S;
	ck_assert_double_eq(steady_round_s(&point), 2);
	/* Ended by bytes after 12 of 30 s. */
	point.time_ns = 30 * NS_PER_S;
	make(12, 1, flat, flat);
	result->point = &point;
	result->series = series;
	result->series_count = 12;
	result->measured_s = 12;
	ck_assert(steady_of(result).known);
	ck_assert_double_eq_tol(steady_of(result).round_s, 2.4, 1e-12);
	result->measured_s = 5;
	result->series_count = 5;
	ck_assert(!steady_of(result).known);
	result->series_count = 0;
	ck_assert(!steady_of(result).known);
	free(result);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("steady");
	TCase *tcase = tcase_create("steady");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, a_flat_series_is_steady);
	tcase_add_test(tcase, limits_are_20_percent_of_range_and_10_percent_of_drift);
	tcase_add_test(tcase, drift_has_a_sign_in_its_figure_only);
	tcase_add_test(tcase, a_round_without_an_answer_is_not_steady);
	tcase_add_test(tcase, only_the_last_five_rounds_count);
	tcase_add_test(tcase, intervals_on_a_border_belong_to_both_rounds);
	tcase_add_test(tcase, latency_is_the_commands_mean_not_the_intervals);
	tcase_add_test(tcase, rounds_are_a_fifth_of_the_time_and_2_s_at_least);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
