/* SPDX-License-Identifier: MIT */
/* Dirty regions: bits are durable before a write, and go only after a flush (I10). */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/regions_rig.h"

START_TEST(a_write_waits_for_its_bit)
{
	struct write a, b;

	ck_assert(!enter(&a, 3, 1));
	fake_env_run(env);
	ck_assert(!a.granted);
	ck_assert(!on_disk(3));
	stored(0);
	ck_assert(a.granted);
	ck_assert(on_disk(3));
	ck_assert(enter(&b, 3, 1));
	ck_assert_uint_eq(stores, 1);
	leave(&a);
	leave(&b);
	ck_assert_uint_eq(counts().dirty, 1);
}
END_TEST

START_TEST(writes_that_come_meanwhile_share_the_next_store)
{
	struct write a, b, c;

	enter(&a, 1, 1);
	enter(&b, 2, 1);
	enter(&c, 7, 3);
	stored(0);
	ck_assert(a.granted && !b.granted && !c.granted);
	stored(0);
	ck_assert(b.granted && c.granted);
	ck_assert_uint_eq(stores, 2);
	for (unsigned i = 7; i < 10; i++)
		ck_assert(on_disk(i));
	leave(&a);
	leave(&b);
	leave(&c);
}
END_TEST

START_TEST(a_bit_goes_when_idle_and_flushed)
{
	struct write a;

	enter(&a, 3, 1);
	stored(0);
	fake_env_advance(env, 10 * AGE);
	ck_assert(!flushing);
	leave(&a);
	fake_env_advance(env, AGE - 1);
	ck_assert(!flushing);
	fake_env_advance(env, AGE);
	ck_assert(flushing);
	ck_assert(on_disk(3));
	flushed(0);
	stored(0);
	ck_assert(!on_disk(3));
	ck_assert_uint_eq(counts().dirty, 0);
}
END_TEST

START_TEST(a_write_during_the_flush_keeps_the_bit)
{
	struct write a;

	enter(&a, 3, 1);
	stored(0);
	leave(&a);
	fake_env_advance(env, 2 * AGE);
	ck_assert(flushing);
	ck_assert(enter(&a, 3, 1));
	leave(&a);
	flushed(0);
	ck_assert(!storing);
	ck_assert_uint_eq(counts().dirty, 1);
}
END_TEST

START_TEST(a_failed_flush_cleans_nothing)
{
	struct write a;

	enter(&a, 3, 1);
	stored(0);
	leave(&a);
	fake_env_advance(env, 2 * AGE);
	flushed(-EIO);
	ck_assert(!storing);
	ck_assert(on_disk(3));
	regions_doubt_unflushed(regions);
	ck_assert_uint_eq(counts().doubtful, 1);
	ck_assert(regions_doubtful(regions, 3 * MIB, 1));
	ck_assert(!regions_doubtful(regions, 4 * MIB, MIB));
}
END_TEST

START_TEST(while_somebody_is_missing_nothing_is_cleaned)
{
	struct write a;
	uint64_t doubts;

	regions_set_whole(regions, false);
	enter(&a, 3, 1);
	stored(0);
	leave(&a);
	fake_env_advance(env, 10 * AGE);
	ck_assert(!flushing);
	regions_doubt_dirty(regions);
	stored(0); /* on who comes, too */
	regions_set_whole(regions, true);
	fake_env_advance(env, 10 * AGE);
	ck_assert(!flushing); /* doubtful: it has to be made equal first */
	doubts = regions_doubts(regions, 3 * MIB);
	regions_doubt_unflushed(regions);
	regions_made_equal(regions, 3 * MIB, doubts);
	ck_assert(regions_doubtful(regions, 3 * MIB, 1)); /* doubted again meanwhile */
	regions_made_equal(regions, 3 * MIB, regions_doubts(regions, 3 * MIB));
	fake_env_advance(env, 10 * AGE);
	flushed(0);
	stored(0);
	ck_assert(!on_disk(3));
}
END_TEST

START_TEST(beyond_the_cap_one_waits_for_another_to_be_clean)
{
	struct write all[CAP], late, again;

	for (unsigned i = 0; i < CAP; i++)
		enter(&all[i], i, 1);
	while (storing)
		stored(0);
	ck_assert(!enter(&late, 30, 1));
	fake_env_run(env);
	ck_assert(!flushing);
	ck_assert(enter(&again, 2, 1)); /* what needs nothing new passes it */
	leave(&again);
	leave(&all[5]);
	fake_env_advance(env, 1);
	flushed(0);
	while (storing)
		stored(0);
	ck_assert(late.granted);
	ck_assert(!on_disk(5));
	ck_assert(on_disk(30));
	ck_assert_uint_eq(counts().dirty, CAP);
	for (unsigned i = 0; i < CAP; i++)
		if (i != 5)
			leave(&all[i]);
	leave(&late);
}
END_TEST

START_TEST(the_cap_does_not_stop_writes_while_somebody_is_missing)
{
	struct write all[40];

	regions_set_whole(regions, false);
	for (unsigned i = 0; i < 40; i++)
		enter(&all[i], i, 1);
	while (storing)
		stored(0);
	for (unsigned i = 0; i < 40; i++) {
		ck_assert(all[i].granted);
		leave(&all[i]);
	}
	ck_assert_uint_eq(counts().dirty, 40);
	regions_doubt_dirty(regions);
	while (storing)
		stored(0);
	ck_assert_uint_eq(counts().doubtful, 40);
}
END_TEST

START_TEST(copies_that_differ_after_a_write_are_doubtful)
{
	struct write a;

	enter(&a, 3, 1);
	stored(0);
	regions_leave(regions, &a.hold, true);
	ck_assert(regions_doubtful(regions, 3 * MIB, 1));
}
END_TEST

START_TEST(at_the_end_everything_is_cleaned_that_can_be)
{
	struct write a, b;

	enter(&a, 3, 1);
	enter(&b, 9, 1);
	while (storing)
		stored(0);
	leave(&a);
	regions_leave(regions, &b.hold, true);
	regions_quiesce(regions);
	ck_assert(!quiet);
	fake_env_run(env);
	flushed(0);
	ck_assert(!quiet);
	stored(0);
	ck_assert(quiet);
	ck_assert(!on_disk(3));
	ck_assert(on_disk(9));
}
END_TEST

START_TEST(a_flush_under_way_at_the_end_is_not_the_last_one)
{
	struct write a, b;

	enter(&a, 3, 1);
	stored(0);
	leave(&a);
	fake_env_advance(env, 2 * AGE);
	ck_assert(flushing);
	enter(&b, 9, 1);
	stored(0);
	leave(&b); /* too late for that flush */
	quiet = false;
	regions_quiesce(regions);
	fake_env_advance(env, 1);
	flushed(0);
	ck_assert(!quiet);
	fake_env_advance(env, 1);
	flushed(0);
	while (storing)
		stored(0);
	ck_assert(quiet);
	ck_assert(!on_disk(3) && !on_disk(9));
}
END_TEST

START_TEST(with_nothing_to_clean_the_end_comes_at_once)
{
	regions_quiesce(regions);
	ck_assert(!quiet);
	fake_env_run(env);
	ck_assert(quiet);
}
END_TEST

START_TEST(bits_that_cannot_be_stored_let_nobody_write)
{
	struct write a, b;

	enter(&a, 3, 1);
	enter(&b, 4, 1);
	stored(-EIO);
	ck_assert(a.granted && b.granted);
	ck_assert_int_eq(a.error, -EIO);
	ck_assert_int_eq(b.error, -EIO);
	leave(&a);
	leave(&b);
	ck_assert(!enter(&a, 3, 1));
	fake_env_run(env);
	ck_assert_int_eq(a.error, -EIO);
	leave(&a);
}
END_TEST

START_TEST(lazy_bits_of_a_page_are_stored_at_once)
{
	struct write a, b;

	regions_free(regions);
	start(40 * MIB, true);
	ck_assert(enter(&a, 3, 2));
	ck_assert(enter(&b, 9, 1));
	stores = 0;
	regions_set_whole(regions, false);
	stored(0);
	ck_assert(!storing);
	ck_assert_uint_eq(stores, 1);
	ck_assert(on_disk(3) && on_disk(4) && on_disk(9));
	leave(&a);
	leave(&b);
}
END_TEST

START_TEST(lazy_bits_are_stored_when_somebody_is_missing)
{
	struct write a, b, sync = { .hold = { .fn = granted } };

	regions_free(regions);
	start(40 * MIB, true);
	ck_assert(enter(&a, 3, 1));
	ck_assert(!storing);
	ck_assert(regions_sync(regions, &sync.hold));
	regions_set_whole(regions, false);
	ck_assert(storing);
	ck_assert(!regions_sync(regions, &sync.hold));
	ck_assert(!enter(&b, 9, 1));
	while (storing)
		stored(0);
	ck_assert(sync.granted && b.granted);
	ck_assert(on_disk(3) && on_disk(9));
	leave(&a);
	leave(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("regions");
	TCase *tcase = tcase_create("regions");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, rig_setup, rig_teardown);
	tcase_add_test(tcase, a_write_waits_for_its_bit);
	tcase_add_test(tcase, writes_that_come_meanwhile_share_the_next_store);
	tcase_add_test(tcase, a_bit_goes_when_idle_and_flushed);
	tcase_add_test(tcase, a_write_during_the_flush_keeps_the_bit);
	tcase_add_test(tcase, a_failed_flush_cleans_nothing);
	tcase_add_test(tcase, while_somebody_is_missing_nothing_is_cleaned);
	tcase_add_test(tcase, beyond_the_cap_one_waits_for_another_to_be_clean);
	tcase_add_test(tcase, the_cap_does_not_stop_writes_while_somebody_is_missing);
	tcase_add_test(tcase, copies_that_differ_after_a_write_are_doubtful);
	tcase_add_test(tcase, at_the_end_everything_is_cleaned_that_can_be);
	tcase_add_test(tcase, a_flush_under_way_at_the_end_is_not_the_last_one);
	tcase_add_test(tcase, with_nothing_to_clean_the_end_comes_at_once);
	tcase_add_test(tcase, bits_that_cannot_be_stored_let_nobody_write);
	tcase_add_test(tcase, lazy_bits_of_a_page_are_stored_at_once);
	tcase_add_test(tcase, lazy_bits_are_stored_when_somebody_is_missing);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
