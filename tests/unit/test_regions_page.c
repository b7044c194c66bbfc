/* SPDX-License-Identifier: MIT */
/* Pages of dirty regions: whose they are, how many, how much a bit stands for. */
#include <check.h>

#include "backstore/regions_int.h"

#define TAG 77

START_TEST(pages_of_others_are_none)
{
	uint64_t sequence;
	uint8_t page[REGIONS_PAGE];

	regions_page_empty(TAG + 1, 0, page);
	ck_assert_ptr_null(regions_page_newest(TAG, 0, page, NULL, &sequence));
	regions_page_empty(TAG, 1, page);
	ck_assert_ptr_null(regions_page_newest(TAG, 0, NULL, page, &sequence));
	ck_assert_ptr_nonnull(regions_page_newest(TAG, 1, NULL, page, &sequence));
}
END_TEST

START_TEST(the_newer_of_two_copies_counts)
{
	uint8_t one[REGIONS_PAGE] = { 0 }, two[REGIONS_PAGE] = { 0 };
	uint64_t sequence;

	regions_page_seal(one, TAG, 0, 5);
	regions_page_seal(two, TAG, 0, 6);
	ck_assert_ptr_eq(regions_page_newest(TAG, 0, one, two, &sequence), two);
	ck_assert_ptr_eq(regions_page_newest(TAG, 0, two, one, &sequence), two);
	ck_assert_uint_eq(sequence, 6);
	two[REGIONS_PAGE - 1] ^= 1;
	ck_assert_ptr_eq(regions_page_newest(TAG, 0, one, two, &sequence), one);
}
END_TEST

START_TEST(a_page_that_none_could_follow_is_none)
{
	uint8_t one[REGIONS_PAGE] = { 0 }, two[REGIONS_PAGE] = { 0 };
	uint64_t sequence;

	regions_page_seal(one, TAG, 0, UINT64_MAX);
	regions_page_seal(two, TAG, 0, 6);
	ck_assert_ptr_null(regions_page_newest(TAG, 0, one, two, &sequence));
	ck_assert_ptr_null(regions_page_newest(TAG, 0, two, one, &sequence));
	regions_page_seal(one, TAG, 0, UINT64_MAX / 2);
	ck_assert_ptr_eq(regions_page_newest(TAG, 0, one, two, &sequence), one);
}
END_TEST

static const struct {
	uint64_t size, region;
	unsigned pages;
} sizes[] = {
	{ 1, MIB, 1 },
	{ 32512 * MIB, MIB, 1 },
	{ 32512 * MIB + 1, MIB, 2 },
	{ 8 * 32512 * MIB, MIB, 8 },
	{ 8 * 32512 * MIB + 1, 2 * MIB, 5 },
	{ 16 * 1024 * 1024 * MIB, 128 * MIB, 5 },
};

START_TEST(geometry_follows_from_the_size)
{
	ck_assert_uint_eq(regions_region_bytes(sizes[_i].size), sizes[_i].region);
	ck_assert_uint_eq(regions_pages(sizes[_i].size), sizes[_i].pages);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("regions_page");
	TCase *tcase = tcase_create("regions_page");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, pages_of_others_are_none);
	tcase_add_test(tcase, the_newer_of_two_copies_counts);
	tcase_add_test(tcase, a_page_that_none_could_follow_is_none);
	tcase_add_loop_test(tcase, geometry_follows_from_the_size, 0, (int)ARRAY_LEN(sizes));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
