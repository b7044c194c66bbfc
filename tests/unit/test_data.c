/* SPDX-License-Identifier: MIT */
/* What is written: does it compress, is it alike. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/data.h"

#define LENGTH 65536u

static uint8_t one[LENGTH], two[LENGTH];

/* Bits a byte that an ideal compressor without memory would need. */
static double entropy(const uint8_t *buf, size_t length)
{
	unsigned counts[256] = { 0 };
	double bits = 0;

	for (size_t i = 0; i < length; i++)
		counts[buf[i]]++;
	for (unsigned i = 0; i < 256; i++)
		if (counts[i])
			bits -= counts[i] * log2((double)counts[i] / (double)length);
	return bits / (double)length;
}

START_TEST(random_data_do_not_compress)
{
	data_prepare(DATA_RANDOM, 1, one, LENGTH);
	data_stamp(DATA_RANDOM, 1, 1, one, LENGTH);
	ck_assert_double_gt(entropy(one, LENGTH), 7.99);
	/* Nor does anything come again within it. */
	for (unsigned i = 8; i + 8 <= LENGTH; i += 8)
		ck_assert_int_ne(memcmp(one, one + i, 8), 0);
}
END_TEST

START_TEST(no_two_pages_of_random_data_are_alike)
{
	static uint8_t pages[64][DATA_PAGE];
	unsigned n = 0;

	/* Two writers with equal buffers, twice each, 16 pages a write. */
	for (unsigned writer = 0; writer < 2; writer++) {
		data_prepare(DATA_RANDOM, 7, one, LENGTH);
		for (unsigned sequence = 0; sequence < 2; sequence++) {
			data_stamp(DATA_RANDOM, writer, sequence, one, LENGTH);
			for (unsigned i = 0; i < LENGTH / DATA_PAGE; i++)
				memcpy(pages[n++], one + i * DATA_PAGE, DATA_PAGE);
		}
	}
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < i; k++)
			ck_assert_int_ne(memcmp(pages[i], pages[k], DATA_PAGE), 0);
}
END_TEST

START_TEST(blocks_smaller_than_a_page_differ_too)
{
	data_prepare(DATA_RANDOM, 7, one, 512);
	memcpy(two, one, 512);
	data_stamp(DATA_RANDOM, 0, 1, one, 512);
	data_stamp(DATA_RANDOM, 0, 2, two, 512);
	ck_assert_int_ne(memcmp(one, two, 512), 0);
	ck_assert_int_eq(memcmp(one + DATA_STAMP, two + DATA_STAMP, 512 - DATA_STAMP), 0);
}
END_TEST

START_TEST(repeated_data_are_one_page_over_and_over_for_everybody)
{
	data_prepare(DATA_REPEAT, 1, one, LENGTH);
	data_prepare(DATA_REPEAT, 2, two, LENGTH);
	data_stamp(DATA_REPEAT, 2, 9, two, LENGTH);
	ck_assert_int_eq(memcmp(one, two, LENGTH), 0);
	for (unsigned i = DATA_PAGE; i < LENGTH; i += DATA_PAGE)
		ck_assert_int_eq(memcmp(one, one + i, DATA_PAGE), 0);
	ck_assert_double_gt(entropy(one, DATA_PAGE), 7.9);
}
END_TEST

START_TEST(zeroes_stay_zeroes)
{
	memset(one, 1, LENGTH);
	data_prepare(DATA_ZERO, 1, one, LENGTH);
	data_stamp(DATA_ZERO, 1, 1, one, LENGTH);
	ck_assert(data_is_zero(one, LENGTH));
	one[LENGTH - 1] = 1;
	ck_assert(!data_is_zero(one, LENGTH));
	one[LENGTH - 1] = 0;
	one[0] = 1;
	ck_assert(!data_is_zero(one, LENGTH));
	ck_assert(data_is_zero(one, 0));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("data");
	TCase *tc = tcase_create("data");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, random_data_do_not_compress);
	tcase_add_test(tc, no_two_pages_of_random_data_are_alike);
	tcase_add_test(tc, blocks_smaller_than_a_page_differ_too);
	tcase_add_test(tc, repeated_data_are_one_page_over_and_over_for_everybody);
	tcase_add_test(tc, zeroes_stay_zeroes);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
