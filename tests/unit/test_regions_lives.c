/* SPDX-License-Identifier: MIT */
/* Dirty regions over lives: what a start finds is doubtful; no random life breaks the rule (I10). */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"
#include "tests/fake/regions_rig.h"

static uint64_t sequence_on(unsigned which)
{
	return get_le64(stable[which] + 16);
}

START_TEST(what_was_dirty_at_the_end_is_doubtful_at_the_start)
{
	struct write a;
	uint64_t offset, length;

	enter(&a, 39, 1);
	stored(0);
	leave(&a);
	regions_free(regions);
	start(40 * MIB - 512, false);
	regions_load(regions, 0, stable[0], stable[1]);
	regions_loaded(regions);
	ck_assert_uint_eq(counts().doubtful, 1);
	ck_assert(regions_next_doubtful(regions, 0, &offset, &length));
	ck_assert_uint_eq(offset, 39 * MIB);
	ck_assert_uint_eq(length, MIB - 512);
	ck_assert(!regions_next_doubtful(regions, offset + length, &offset, &length));
	ck_assert(!enter(&a, 39, 1)); /* one device may not have had the bit */
	stored(0);
	ck_assert(a.granted);
	leave(&a);
}
END_TEST

START_TEST(bits_of_the_last_life_go_when_copies_are_equal)
{
	struct write a;
	uint64_t offset, length;

	enter(&a, 3, 1);
	stored(0);
	leave(&a);
	regions_free(regions);
	start(40 * MIB, false);
	regions_load(regions, 0, stable[0], stable[1]);
	regions_loaded(regions);
	ck_assert(regions_next_doubtful(regions, 0, &offset, &length));
	regions_made_equal(regions, offset, regions_doubts(regions, offset));
	fake_env_advance(env, 2 * AGE);
	flushed(0);
	stored(0);
	ck_assert(!on_disk(3));
	ck_assert_uint_eq(counts().dirty, 0);
}
END_TEST

START_TEST(a_device_that_joins_gets_the_bits_before_they_count)
{
	struct write a, b, sync;

	regions_set_whole(regions, false);
	enter(&a, 3, 1);
	stored(0);
	leave(&a);
	ck_assert(!enter(&b, 7, 1)); /* on its way to those who were there */
	regions_doubt_dirty(regions);
	sync = (struct write){ .hold = { .fn = granted } };
	ck_assert(!regions_sync(regions, &sync.hold));
	stored(0);
	ck_assert(!b.granted && !sync.granted);
	stored(0);
	ck_assert(b.granted && sync.granted);
	ck_assert(on_disk(3) && on_disk(7));
	leave(&b);
}
END_TEST

/* It may have had bits when it left that are withdrawn since. */
START_TEST(a_device_that_joins_gets_pages_without_bits_too)
{
	struct write a;

	if (_i) { /* the page without the bit is on its way to the others */
		enter(&a, 3, 1);
		stored(0);
		leave(&a);
		fake_env_advance(env, 2 * AGE);
		flushed(0);
		ck_assert(storing);
	}
	regions_set_whole(regions, false);
	stores = 0;
	regions_doubt_dirty(regions);
	ck_assert(storing);
	while (storing)
		stored(0);
	ck_assert_uint_eq(stores, 1);
	ck_assert_uint_eq(counts().dirty, 0);
	ck_assert(!on_disk(3));
}
END_TEST

START_TEST(pages_that_nobody_can_read_are_all_ones)
{
	struct write a;

	regions_free(regions);
	start(40 * MIB, false);
	stable[0][100] ^= 1;
	regions_load(regions, 0, stable[0], stable[0]);
	regions_load(regions, 0, NULL, NULL);
	regions_loaded(regions);
	ck_assert_uint_eq(counts().doubtful, 40);
	ck_assert(!enter(&a, 1, 1)); /* nothing but doubt: the cap stops nobody */
	stored(0);
	ck_assert(a.granted);
	leave(&a);
}
END_TEST

/* The copy that is read may be the older one. */
START_TEST(a_page_of_which_a_copy_cannot_be_read_is_all_ones)
{
	struct write a;
	unsigned readable = (unsigned)_i % 2;
	uint64_t hidden;

	for (unsigned i = 0; i < 2 + (unsigned)_i / 2; i++) {
		enter(&a, i, 1);
		stored(0);
		leave(&a);
	}
	hidden = sequence_on(!readable);
	regions_free(regions);
	start(40 * MIB, false);
	regions_load(regions, 0, readable ? NULL : stable[0], readable ? stable[1] : NULL);
	regions_loaded(regions);
	ck_assert_uint_eq(counts().doubtful, 40);
	/* It can be read again one day, and then is not the newest. */
	ck_assert(!enter(&a, 1, 1));
	stored(0);
	ck_assert_uint_gt(sequence_on(copy), hidden);
	leave(&a);
}
END_TEST

/* Then nobody knows how far its sequence had come. */
START_TEST(a_page_of_which_no_copy_can_be_read_begins_above_the_floor)
{
	struct write a;

	regions_free(regions);
	floor_sequence = 1ull << 40;
	start(40 * MIB, false);
	regions_load(regions, 0, NULL, NULL);
	regions_loaded(regions);
	ck_assert(!enter(&a, 1, 1));
	stored(0);
	ck_assert_uint_gt(sequence_on(copy), 1ull << 40);
	leave(&a);
}
END_TEST

/* Another device knows. */
START_TEST(a_copy_that_cannot_be_read_matters_if_nobody_has_both)
{
	regions_free(regions);
	start(40 * MIB, false);
	regions_load(regions, 0, stable[0], NULL);
	regions_load(regions, 0, stable[0], stable[1]);
	regions_loaded(regions);
	ck_assert_uint_eq(counts().doubtful, 0);
}
END_TEST

START_TEST(the_union_of_all_devices_counts)
{
	uint8_t one[REGIONS_PAGE] = { 0 }, two[REGIONS_PAGE] = { 0 };

	regions_page_set(one, 1);
	regions_page_seal(one, TAG, 0, 5);
	regions_page_set(two, 2);
	regions_page_seal(two, TAG, 0, 6);
	regions_load(regions, 0, one, one);
	regions_load(regions, 0, stable[0], two);
	regions_loaded(regions);
	ck_assert(regions_doubtful(regions, MIB, 1));
	ck_assert(regions_doubtful(regions, 2 * MIB, 1));
	ck_assert_uint_eq(counts().doubtful, 2);
}
END_TEST

/*
 * Random lives: whoever may write finds its bits durable in whatever a start would read, and no
 * bit goes without a flush that began after the last write of its region.
 */
#define WRITES 24

static unsigned step, last_leave[40], flush_began, good_flush;
static struct write writes[WRITES];
static bool active[WRITES];

static void check_bits(void)
{
	for (unsigned i = 0; i < WRITES; i++) {
		unsigned first = (unsigned)(writes[i].hold.offset / MIB);
		unsigned last =
			(unsigned)((writes[i].hold.offset + writes[i].hold.length - 1) / MIB);

		for (unsigned r = first; active[i] && writes[i].granted && r <= last; r++) {
			ck_assert(on_disk(r));
			ck_assert(!storing || regions_page_has(storing, r));
		}
	}
	for (unsigned r = 0; storing && r < 40; r++)
		ck_assert(regions_page_has(storing, r) || last_leave[r] < good_flush ||
			  !last_leave[r]);
}

static void random_step(void)
{
	unsigned i = (unsigned)rand() % WRITES;
	bool was_flushing = flushing;

	step++;
	switch (rand() % 6) {
	case 0:
	case 1:
		if (!active[i]) {
			enter(&writes[i], (unsigned)rand() % 36, 1 + (unsigned)rand() % 4);
			active[i] = true;
		}
		break;
	case 2:
		if (active[i] && writes[i].granted) {
			leave(&writes[i]);
			active[i] = false;
			for (unsigned r = (unsigned)(writes[i].hold.offset / MIB);
			     r <= (writes[i].hold.offset + writes[i].hold.length - 1) / MIB; r++)
				last_leave[r] = step;
		}
		break;
	case 3:
		if (storing)
			stored(0);
		break;
	case 4:
		if (flushing) {
			int error = rand() % 4 ? 0 : -EIO;

			if (!error)
				good_flush = flush_began;
			flushed(error);
			was_flushing = false;
		}
		break;
	default:
		fake_env_advance(env, (uint64_t)rand() % (2 * AGE));
	}
	if (flushing && !was_flushing)
		flush_began = step;
	check_bits();
}

START_TEST(no_life_breaks_the_rule)
{
	unsigned held = 0;

	srand((unsigned)_i + 1);
	for (unsigned i = 0; i < 4000; i++)
		random_step();
	for (unsigned round = 0; round < 10000; round++) {
		held = 0;
		for (unsigned i = 0; i < WRITES; i++) {
			held += active[i];
			if (active[i] && writes[i].granted) {
				leave(&writes[i]);
				active[i] = false;
			}
		}
		if (storing)
			stored(0);
		if (flushing)
			flushed(0);
		fake_env_advance(env, AGE);
	}
	ck_assert_uint_eq(held, 0);
	ck_assert_uint_eq(counts().dirty, 0);
	ck_assert_uint_gt(flushes, 20);
	ck_assert_uint_gt(counts().waits, 100);
	for (unsigned r = 0; r < 40; r++)
		ck_assert(!on_disk(r));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("regions_lives");
	TCase *tcase = tcase_create("regions_lives");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, rig_setup, rig_teardown);
	tcase_add_test(tcase, what_was_dirty_at_the_end_is_doubtful_at_the_start);
	tcase_add_test(tcase, bits_of_the_last_life_go_when_copies_are_equal);
	tcase_add_test(tcase, a_device_that_joins_gets_the_bits_before_they_count);
	tcase_add_loop_test(tcase, a_device_that_joins_gets_pages_without_bits_too, 0, 2);
	tcase_add_test(tcase, pages_that_nobody_can_read_are_all_ones);
	tcase_add_loop_test(tcase, a_page_of_which_a_copy_cannot_be_read_is_all_ones, 0, 4);
	tcase_add_test(tcase, a_page_of_which_no_copy_can_be_read_begins_above_the_floor);
	tcase_add_test(tcase, a_copy_that_cannot_be_read_matters_if_nobody_has_both);
	tcase_add_test(tcase, the_union_of_all_devices_counts);
	tcase_add_loop_test(tcase, no_life_breaks_the_rule, 0, 8);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
