/* SPDX-License-Identifier: MIT */
/* Looking for a log's records: which are found, and how much of it a turn of the loop does. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "raid/redo_scan.h"
#include "tests/fake/fake_env.h"

#define BLOCK 512u
#define LOG (6 * MIB)
#define TAG 7u
#define INCARNATION 9u
#define PLACES 16u

static struct env *env;
static char *bytes;
static struct redo_scan scan;
static uint64_t places[PLACES], sequences[PLACES];
static unsigned found_count, calls;
static int result, refusal;

static int found(struct redo_scan *which, const struct redo_head *head, uint64_t at)
{
	ck_assert_ptr_eq(which, &scan);
	ck_assert_uint_lt(found_count, PLACES);
	places[found_count] = at;
	sequences[found_count++] = head->sequence;
	return refusal;
}

static void done(struct redo_scan *which, int error)
{
	ck_assert_ptr_eq(which, &scan);
	result = error;
	calls++;
}

static void setup(void)
{
	env = fake_env_new(1);
	bytes = malloc(LOG);
	for (uint64_t i = 0; i < LOG; i++)
		bytes[i] = (char)(i * 31 + i / BLOCK);
	found_count = calls = 0;
	refusal = 0;
	scan = (struct redo_scan){
		.env = env,
		.log = bytes,
		.length = LOG,
		.block_bytes = BLOCK,
		.tag = TAG,
		.incarnation = INCARNATION,
		.found = found,
		.done = done,
	};
}

static void teardown(void)
{
	free(bytes);
	fake_env_free(env);
}

/* A record of SEQUENCE at AT, with twice LENGTH bytes of what is there as its payload. */
static void put(uint64_t at, uint64_t sequence, uint32_t length)
{
	struct redo_head head = {
		.tag = TAG,
		.incarnation = INCARNATION,
		.sequence = sequence,
		.batch = sequence,
		.to = length,
		.span_count = 1,
		.spans = { { 0, 0, length } },
	};
	struct iovec payload = { bytes + at + BLOCK, 2 * (size_t)length };

	redo_encode(&head, bytes + at, BLOCK, &payload, 1);
}

/* Turns that it took; in none of them more than MOST bytes of the log are passed. */
static unsigned run(uint64_t most)
{
	unsigned turns = 1;
	uint64_t before = 0;

	redo_scan_start(&scan);
	for (;;) {
		/* What is deferred would run in the same turn. */
		env_run_deferred(env);
		ck_assert_uint_le(scan.at - before, most);
		before = scan.at;
		if (calls)
			break;
		ck_assert_uint_lt(turns, 100000);
		env_run_timers(env);
		turns++;
	}
	fake_env_advance(env, NS_PER_S);
	ck_assert_uint_eq(calls, 1);
	return turns;
}

static void expect(unsigned count, const uint64_t *at)
{
	ck_assert_int_eq(result, 0);
	ck_assert_uint_eq(found_count, count);
	for (unsigned i = 0; i < count; i++) {
		ck_assert_uint_eq(places[i], at[i]);
		ck_assert_uint_eq(sequences[i], 100 + i);
	}
}

/* By _i blocks before the end of the first turn, so that head or payload are on both sides of it. */
START_TEST(a_record_across_the_end_of_a_turn_is_found)
{
	const uint64_t at[] = { 5 * BLOCK, MIB - (uint64_t)_i * BLOCK, MIB + 40 * BLOCK,
				LOG - 3 * BLOCK };

	put(at[0], 100, BLOCK);
	put(at[1], 101, 8 * BLOCK);
	put(at[2], 102, BLOCK);
	put(at[3], 103, BLOCK);
	ck_assert_uint_eq(run(MIB + 17 * BLOCK), 6);
	expect(4, at);
}
END_TEST

START_TEST(a_payload_longer_than_a_turn_is_passed_over_with_what_it_seems_to_hold)
{
	const uint64_t at[] = { 0, MIB / 2, MIB / 2 + BLOCK + 2 * MIB };

	put(at[0], 100, BLOCK);
	put(MIB, 900, BLOCK); /* what a host wrote: another log's record, say */
	put(2 * MIB, 901, BLOCK);
	put(at[1], 101, MIB);
	put(at[2], 102, BLOCK);
	ck_assert_uint_lt(run(3 * MIB), 6);
	expect(3, at);
}
END_TEST

START_TEST(a_checksum_that_does_not_fit_hides_nothing_of_what_it_would_cover)
{
	const uint64_t at[] = { 4 * BLOCK, 2 * MIB - BLOCK };

	put(0, 900, MIB);
	put(at[0], 100, BLOCK);
	put(at[1], 101, 4 * BLOCK);
	run(MIB + 10 * BLOCK);
	expect(2, at);
}
END_TEST

/* Each of them is looked at as far as it says that it goes. */
START_TEST(what_only_seems_a_record_ends_a_turn_as_well)
{
	for (unsigned i = 64; i > 0; i--)
		put((i - 1) * BLOCK, 900 + i, MIB / 2);
	bytes[3 * MIB / 4] ^= 1;
	ck_assert_uint_ge(run(MIB), 64 + 5);
	ck_assert_uint_eq(found_count, 0);
	ck_assert_int_eq(result, 0);
}
END_TEST

START_TEST(a_log_of_one_turn_is_done_at_once_and_an_end_that_is_no_block_is_left_out)
{
	const uint64_t at[] = { 0 };

	put(0, 100, BLOCK);
	put(MIB - BLOCK, 900, BLOCK); /* goes on behind its end */
	scan.length = MIB - 1;
	ck_assert_uint_eq(run(MIB), 1);
	expect(1, at);
}
END_TEST

START_TEST(an_error_ends_it_where_it_is)
{
	put(3 * MIB, 100, BLOCK);
	put(4 * MIB, 101, BLOCK);
	refusal = -ENOMEM;
	run(MIB);
	ck_assert_int_eq(result, -ENOMEM);
	ck_assert_uint_eq(found_count, 1);
	ck_assert_uint_eq(scan.at, 3 * MIB);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("redo_scan");
	TCase *tcase = tcase_create("scan");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, a_record_across_the_end_of_a_turn_is_found, 0, 18);
	tcase_add_test(tcase,
		       a_payload_longer_than_a_turn_is_passed_over_with_what_it_seems_to_hold);
	tcase_add_test(tcase, a_checksum_that_does_not_fit_hides_nothing_of_what_it_would_cover);
	tcase_add_test(tcase, what_only_seems_a_record_ends_a_turn_as_well);
	tcase_add_test(tcase,
		       a_log_of_one_turn_is_done_at_once_and_an_end_that_is_no_block_is_left_out);
	tcase_add_test(tcase, an_error_ends_it_where_it_is);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
