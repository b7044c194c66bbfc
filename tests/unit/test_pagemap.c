/* SPDX-License-Identifier: MIT */
/* The bits of the pages that were written, against a plain array of them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/pagemap.h"

#define PAGES 1000
#define TAIL 512 /* of the last page */
#define SIZE ((PAGES - 1) * PAGEMAP_PAGE + TAIL)

static struct pagemap map;
static bool model[PAGES];

static void compare(void)
{
	uint64_t at = 0;

	while (at < SIZE) {
		bool set;
		uint64_t run = pagemap_run(&map, at, SIZE - at, &set), page = at / PAGEMAP_PAGE;

		ck_assert_uint_gt(run, 0);
		ck_assert_uint_le(at + run, SIZE);
		for (; page * PAGEMAP_PAGE < at + run; page++)
			ck_assert_msg(model[page] == set, "page %u", (unsigned)page);
		/* It is the whole run. */
		if (at + run < SIZE)
			ck_assert(model[page] != set);
		at += run;
	}
}

START_TEST(sets_every_page_touched_and_clears_those_that_lie_in_the_range_whole)
{
	ck_assert(pagemap_init(&map, SIZE));
	memset(model, 0, sizeof(model));
	srandom(7);
	compare();
	for (unsigned round = 0; round < 2000; round++) {
		uint64_t from = (uint64_t)random() % (SIZE / 512) * 512;
		uint64_t most = round % 3 ? 40 * PAGEMAP_PAGE : SIZE;
		uint64_t to = from + 512 + (uint64_t)random() % most / 512 * 512;
		bool set = random() % 2;

		if (to > SIZE)
			to = SIZE;
		for (uint64_t page = 0; page < PAGES; page++) {
			uint64_t begin = page * PAGEMAP_PAGE;
			uint64_t end = min_u64(begin + PAGEMAP_PAGE, SIZE);

			if (set ? begin < to && end > from : begin >= from && end <= to)
				model[page] = set;
		}
		if (set)
			pagemap_set(&map, from, to - from);
		else
			pagemap_clear(&map, from, to - from);
		compare();
	}
	pagemap_free(&map);
}
END_TEST

START_TEST(a_look_stays_in_its_range_and_within_its_limit)
{
	bool set;

	ck_assert(pagemap_init(&map, 4 * PAGEMAP_LOOK));
	ck_assert_uint_eq(pagemap_run(&map, 512, 1024, &set), 1024);
	ck_assert(!set);
	ck_assert_uint_eq(pagemap_run(&map, 512, 3 * PAGEMAP_LOOK, &set), PAGEMAP_LOOK);
	pagemap_set(&map, 3 * PAGEMAP_PAGE, 1);
	ck_assert_uint_eq(pagemap_run(&map, 512, PAGEMAP_LOOK, &set), 3 * PAGEMAP_PAGE - 512);
	ck_assert(!set);
	ck_assert_uint_eq(pagemap_run(&map, 3 * PAGEMAP_PAGE + 512, PAGEMAP_LOOK, &set),
			  PAGEMAP_PAGE - 512);
	ck_assert(set);
	pagemap_free(&map);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pagemap");
	TCase *tc = tcase_create("pagemap");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, sets_every_page_touched_and_clears_those_that_lie_in_the_range_whole);
	tcase_add_test(tc, a_look_stays_in_its_range_and_within_its_limit);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
