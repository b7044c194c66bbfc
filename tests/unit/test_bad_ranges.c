/* SPDX-License-Identifier: MIT */
/* Bad ranges, against a map with a bit for every block. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/bad_ranges.h"

#define ROLES 4u
#define UNITS 200u
#define UNIT 512u

static bool model[ROLES][UNITS];
static struct bad_ranges ranges;

static void setup(void)
{
	memset(model, 0, sizeof(model));
	memset(&ranges, 0, sizeof(ranges));
	srand(5);
}

static struct bad_range of(unsigned role, unsigned from, unsigned to)
{
	return (struct bad_range){ role, (uint64_t)from * UNIT, (uint64_t)to * UNIT };
}

static void mark(unsigned role, unsigned from, unsigned to, bool bad)
{
	for (unsigned i = from; i < to; i++)
		model[role][i] = bad;
}

static uint64_t marked(void)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < ROLES; i++)
		for (unsigned k = 0; k < UNITS; k++)
			bytes += model[i][k] ? UNIT : 0;
	return bytes;
}

static void same(void)
{
	ck_assert(bad_ranges_sound(&ranges));
	for (unsigned i = 0; i < ROLES; i++) {
		for (unsigned k = 0; k < UNITS; k++) {
			struct bad_range one = of(i, k, k + 1);

			ck_assert(bad_ranges_hit(&ranges, &one) == model[i][k]);
		}
	}
	ck_assert_uint_eq(bad_ranges_bytes(&ranges), marked());
}

START_TEST(what_is_added_and_not_removed_is_bad_and_nothing_else)
{
	for (unsigned round = 0; round < 400; round++) {
		unsigned role = (unsigned)rand() % ROLES, from = (unsigned)rand() % UNITS;
		unsigned to = from + 1 + (unsigned)rand() % 12;
		struct bad_range range;

		to = to > UNITS ? UNITS : to;
		range = of(role, from, to);
		/* Few enough that there is always room. */
		if (ranges.count < BAD_RANGES_MAX / 2 && rand() % 2) {
			bad_ranges_add(&ranges, &range);
			mark(role, from, to, true);
		} else {
			ck_assert(bad_ranges_remove(&ranges, &range));
			mark(role, from, to, false);
		}
		same();
	}
}
END_TEST

START_TEST(neighbours_are_one)
{
	struct bad_range a = of(1, 0, 4), b = of(1, 8, 12), c = of(1, 4, 8), d = of(2, 4, 8);

	bad_ranges_add(&ranges, &a);
	bad_ranges_add(&ranges, &b);
	bad_ranges_add(&ranges, &d);
	ck_assert_uint_eq(ranges.count, 3);
	bad_ranges_add(&ranges, &c);
	ck_assert_uint_eq(ranges.count, 2);
	ck_assert_uint_eq(ranges.all[0].from, 0);
	ck_assert_uint_eq(ranges.all[0].to, 12 * UNIT);
}
END_TEST

/* Every other unit of role 0, but for a larger gap at FAR. */
static void fill(unsigned far)
{
	for (unsigned i = 0; i < BAD_RANGES_MAX; i++) {
		unsigned at = 3 * i + (i >= far ? 2 : 0);
		struct bad_range range = of(0, at, at + 1);

		bad_ranges_add(&ranges, &range);
		mark(0, at, at + 1, true);
	}
	ck_assert_uint_eq(ranges.count, BAD_RANGES_MAX);
	same();
}

START_TEST(with_too_many_the_nearest_become_one_and_none_is_forgotten)
{
	struct bad_range one = of(1, 7, 8), near = of(0, 3 * 20 + 1, 3 * 20 + 2);

	fill(10);
	bad_ranges_add(&ranges, &one);
	mark(1, 7, 8, true);
	ck_assert_uint_eq(ranges.count, BAD_RANGES_MAX);
	ck_assert(bad_ranges_sound(&ranges));
	for (unsigned i = 0; i < ROLES; i++) {
		for (unsigned k = 0; k < UNITS; k++) {
			struct bad_range unit = of(i, k, k + 1);

			ck_assert(!model[i][k] || bad_ranges_hit(&ranges, &unit));
		}
	}
	/* Two units between the nearest are bad with them. */
	ck_assert_uint_eq(bad_ranges_bytes(&ranges), marked() + 2 * UNIT);
	bad_ranges_add(&ranges, &near);
	ck_assert(bad_ranges_hit(&ranges, &near));
}
END_TEST

START_TEST(with_too_many_none_is_split_and_ends_are_cut)
{
	struct bad_range wide = of(0, 0, 3), middle = of(0, 1, 2), first = of(0, 0, 1);

	fill(1);
	bad_ranges_add(&ranges, &wide);
	ck_assert_uint_eq(ranges.count, BAD_RANGES_MAX);
	ck_assert(!bad_ranges_remove(&ranges, &middle));
	ck_assert(bad_ranges_hit(&ranges, &middle));
	ck_assert(bad_ranges_remove(&ranges, &first));
	ck_assert(!bad_ranges_hit(&ranges, &first));
	ck_assert(bad_ranges_hit(&ranges, &middle));
}
END_TEST

START_TEST(disorder_is_noticed)
{
	fill(1);
	ranges.all[5].to = ranges.all[6].from;
	ck_assert(!bad_ranges_sound(&ranges));
	setup();
	fill(1);
	ranges.all[5].to = ranges.all[5].from;
	ck_assert(!bad_ranges_sound(&ranges));
	setup();
	fill(1);
	ranges.all[5].role = 1;
	ck_assert(!bad_ranges_sound(&ranges));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bad_ranges");
	TCase *tcase = tcase_create("bad_ranges");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, what_is_added_and_not_removed_is_bad_and_nothing_else);
	tcase_add_test(tcase, neighbours_are_one);
	tcase_add_test(tcase, with_too_many_the_nearest_become_one_and_none_is_forgotten);
	tcase_add_test(tcase, with_too_many_none_is_split_and_ends_are_cut);
	tcase_add_test(tcase, disorder_is_noticed);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
