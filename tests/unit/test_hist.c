/* SPDX-License-Identifier: MIT */
/* The histogram against sorted samples. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hist.h"

#define SAMPLES 20000

static const double percents[] = { 0, 1, 25, 50, 90, 95, 99, 99.9, 99.99, 100 };

static struct hist hist, other;
static uint64_t samples[SAMPLES];

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Uniform, narrow, over all magnitudes, and one outlier far away. */
static uint64_t sample(int shape, uint64_t r, unsigned i)
{
	switch (shape) {
	case 0:
		return r % 1000000;
	case 1:
		return 50000 + r % 100;
	case 2:
		return r >> (r % 64);
	default:
		return i ? 100 + r % 50 : 30 * NS_PER_S;
	}
}

START_TEST(percentiles_are_within_one_percent_of_the_sorted_sample)
{
	uint64_t state = 88172645463325252;
	double sum = 0;

	hist_reset(&hist);
	for (unsigned i = 0; i < SAMPLES; i++) {
		samples[i] = sample(_i, next_random(&state), i);
		hist_add(&hist, samples[i]);
		sum += (double)samples[i];
	}
	qsort(samples, SAMPLES, sizeof(samples[0]), compare);
	for (unsigned p = 0; p < ARRAY_LEN(percents); p++) {
		unsigned rank = (unsigned)ceil(percents[p] * SAMPLES / 100 - 1e-6);
		double truth = (double)samples[rank ? rank - 1 : 0];
		double got = (double)hist_percentile(&hist, percents[p]);

		ck_assert_msg(fabs(got - truth) <= truth / 100, "p%g: %g is not %g", percents[p],
			      got, truth);
	}
	ck_assert_uint_eq(hist.count, SAMPLES);
	ck_assert_uint_eq(hist.min, samples[0]);
	ck_assert_uint_eq(hist.max, samples[SAMPLES - 1]);
	ck_assert_uint_eq(hist_percentile(&hist, 100), samples[SAMPLES - 1]);
	ck_assert_double_eq_tol(hist_mean(&hist) * SAMPLES / sum, 1, 1e-9);
}
END_TEST

START_TEST(every_value_lies_in_its_bucket_and_buckets_leave_no_gap)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		for (int off = -1; off <= 1; off++) {
			uint64_t value = ((uint64_t)1 << bit) + (uint64_t)(int64_t)off;
			unsigned bucket = hist_bucket(value);

			ck_assert_uint_lt(bucket, HIST_BUCKETS);
			ck_assert_uint_ge(value, hist_bucket_low(bucket));
			ck_assert(value < hist_bucket_low(bucket + 1) || value == UINT64_MAX);
		}
	}
	for (unsigned i = 1; i < HIST_BUCKETS; i++) {
		ck_assert_uint_eq(hist_bucket(hist_bucket_low(i)), i);
		ck_assert_uint_eq(hist_bucket(hist_bucket_low(i) - 1), i - 1);
	}
	ck_assert_uint_eq(hist_bucket(UINT64_MAX), HIST_BUCKETS - 1);
}
END_TEST

START_TEST(values_below_128_are_exact)
{
	for (unsigned v = 0; v < 128; v++) {
		hist_reset(&hist);
		hist_add(&hist, 0);
		hist_add_many(&hist, v, 2);
		hist_add(&hist, 1000);
		ck_assert_uint_eq(hist_percentile(&hist, 50), v);
	}
}
END_TEST

START_TEST(an_empty_one_says_zero_and_merging_it_changes_nothing)
{
	hist_reset(&hist);
	hist_reset(&other);
	ck_assert_uint_eq(hist_percentile(&hist, 99), 0);
	ck_assert_double_eq(hist_mean(&hist), 0);
	hist_add_many(&hist, 77, 0);
	ck_assert_uint_eq(hist.count, 0);
	hist_add(&hist, 77);
	hist_merge(&hist, &other);
	ck_assert_uint_eq(hist.min, 77);
	ck_assert_uint_eq(hist.count, 1);
}
END_TEST

START_TEST(merged_halves_equal_the_whole)
{
	static struct hist whole;
	uint64_t state = 1;

	hist_reset(&hist);
	hist_reset(&other);
	hist_reset(&whole);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t v = next_random(&state) >> 20;

		hist_add(i % 2 ? &hist : &other, v);
		hist_add(&whole, v);
	}
	hist_merge(&hist, &other);
	ck_assert_mem_eq(&hist, &whole, sizeof(whole));
}
END_TEST

START_TEST(sums_of_the_largest_values_do_not_wrap)
{
	hist_reset(&hist);
	hist_add_many(&hist, UINT64_MAX, 1000);
	ck_assert_double_eq_tol(hist_mean(&hist) / (double)UINT64_MAX, 1, 1e-9);
}
END_TEST

START_TEST(the_deviation_is_that_of_the_samples)
{
	double sum = 0, squares = 0, mean;
	uint64_t state = 88172645463325252u;

	hist_reset(&hist);
	for (unsigned i = 0; i < SAMPLES; i++) {
		uint64_t value = 1000 + next_random(&state) % 9000000;

		hist_add(&hist, value);
		sum += (double)value;
		squares += (double)value * (double)value;
	}
	mean = sum / SAMPLES;
	ck_assert_double_eq_tol(hist_stddev(&hist) / sqrt(squares / SAMPLES - mean * mean), 1,
				0.005);
	hist_reset(&hist);
	ck_assert_double_eq(hist_stddev(&hist), 0);
	hist_add_many(&hist, 100, 5);
	ck_assert_double_eq(hist_stddev(&hist), 0);
	hist_add_many(&hist, 104, 5);
	ck_assert_double_eq_tol(hist_stddev(&hist), 2, 1e-9);
}
END_TEST

START_TEST(a_middle_is_at_most_one_128th_off)
{
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		uint64_t low = hist_bucket_low(i), middle = hist_bucket_middle(i);

		ck_assert_uint_eq(hist_bucket(middle), i);
		ck_assert_uint_le(middle - low, low / 128);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hist");
	TCase *tc = tcase_create("hist");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, percentiles_are_within_one_percent_of_the_sorted_sample, 0, 4);
	tcase_add_test(tc, every_value_lies_in_its_bucket_and_buckets_leave_no_gap);
	tcase_add_test(tc, values_below_128_are_exact);
	tcase_add_test(tc, an_empty_one_says_zero_and_merging_it_changes_nothing);
	tcase_add_test(tc, merged_halves_equal_the_whole);
	tcase_add_test(tc, the_deviation_is_that_of_the_samples);
	tcase_add_test(tc, a_middle_is_at_most_one_128th_off);
	tcase_add_test(tc, sums_of_the_largest_values_do_not_wrap);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
