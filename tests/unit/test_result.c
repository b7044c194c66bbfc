/* SPDX-License-Identifier: MIT */
/* Rates of a result, and its end. */
#include <check.h>

#include "tests/fake/fake_bench.h"

START_TEST(rates_are_over_the_measured_time)
{
	struct fake_bench *fake = fake_bench();

	fake->result->measured_s = 12;
	ck_assert_double_eq_tol(bench_iops(fake->result, BENCH_WRITE), 103380, 1e-6);
	ck_assert_double_eq_tol(bench_iops(fake->result, BENCH_TOTAL), 344600, 1e-6);
	ck_assert_double_eq_tol(bench_bytes_s(fake->result, BENCH_WRITE), 103380.0 * 4096, 1e-3);
	fake->result->measured_s = 0;
	ck_assert_double_eq(bench_iops(fake->result, BENCH_READ), 0);
	ck_assert_double_eq(bench_bytes_s(fake->result, BENCH_READ), 0);
	fake_bench_free(fake);
}
END_TEST

START_TEST(no_result_is_freed_as_well)
{
	bench_result_free(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("result");
	TCase *tcase = tcase_create("result");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, rates_are_over_the_measured_time);
	tcase_add_test(tcase, no_result_is_freed_as_well);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
