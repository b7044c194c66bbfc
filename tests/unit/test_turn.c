/* SPDX-License-Identifier: MIT */
/* Turn lengths against a schedstat that the test writes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/turn.h"

static struct turn_clock turn;
static FILE *file;
static unsigned warnings;

static void count(enum log_level level, const char *line)
{
	ck_assert_int_eq(level, LOG_L_WARN);
	ck_assert_ptr_nonnull(strstr(line, "slow-turn"));
	warnings++;
}

static void waited(uint64_t ns)
{
	rewind(file);
	fprintf(file, "%d %llu 99\n", 123456789, (unsigned long long)ns);
	fflush(file);
}

static void setup(void)
{
	turn_clock_init(&turn);
	file = tmpfile();
	ck_assert_ptr_nonnull(file);
	turn.fd = fileno(file);
	waited(0);
	log_redirect(count);
	warnings = 0;
}

static uint64_t now = 1000 * NS_PER_S;

/* A turn of MS milliseconds; the system calls it cost. */
static unsigned turn_of(uint64_t ms)
{
	unsigned calls = turn_begins(&turn, now);

	now += ms * NS_PER_MS;
	return calls + turn_ends(&turn, now);
}

START_TEST(short_turns_cost_one_call_each_20_ms)
{
	unsigned calls = 0;

	setup();
	for (unsigned i = 0; i < 1000; i++)
		calls += turn_of(1);
	ck_assert_uint_eq(calls, 50);
	ck_assert_uint_eq(turn.max_ns, NS_PER_MS);
	ck_assert_uint_eq(warnings, 0);
}
END_TEST

START_TEST(the_wait_for_a_processor_is_taken_off_a_long_turn)
{
	setup();
	turn_begins(&turn, now);
	waited(27 * NS_PER_MS);
	now += 30 * NS_PER_MS;
	ck_assert_uint_eq(turn_ends(&turn, now), 1);
	ck_assert_uint_eq(turn.max_ns, 3 * NS_PER_MS);
	ck_assert_uint_eq(warnings, 0);
	turn_of(4);
	ck_assert_uint_eq(turn.max_ns, 4 * NS_PER_MS);
}
END_TEST

START_TEST(the_newest_slow_turn_is_remembered_with_its_time)
{
	uint64_t slow_at;

	setup();
	turn_of(9);
	ck_assert_uint_eq(turn.slow_ns, 0);
	turn_of(30);
	turn_of(11);
	slow_at = now;
	turn_of(2);
	ck_assert_uint_eq(turn.slow_ns, 11 * NS_PER_MS);
	ck_assert_uint_eq(turn.slow_at_ns, slow_at);
	ck_assert_uint_eq(turn.slow_turns, 2);
}
END_TEST

START_TEST(a_long_turn_is_reported_whole_and_warned_of)
{
	setup();
	turn_of(10);
	ck_assert_uint_eq(warnings, 0);
	turn_of(11);
	ck_assert_uint_eq(warnings, 1);
	ck_assert_uint_eq(turn.max_ns, 11 * NS_PER_MS);
}
END_TEST

START_TEST(a_wait_longer_than_the_turn_leaves_nothing_and_does_not_wrap)
{
	setup();
	turn_begins(&turn, now);
	waited(NS_PER_S);
	now += 5 * NS_PER_MS;
	turn_ends(&turn, now);
	ck_assert_uint_eq(turn.max_ns, 0);
}
END_TEST

START_TEST(without_schedstat_turns_are_reported_with_their_waits)
{
	setup();
	turn.fd = -1;
	ck_assert_uint_eq(turn_of(30), 0);
	ck_assert_uint_eq(turn.max_ns, 30 * NS_PER_MS);
}
END_TEST

START_TEST(what_cannot_be_parsed_counts_as_no_wait)
{
	setup();
	ck_assert_int_eq(ftruncate(turn.fd, 0), 0);
	turn_of(7);
	ck_assert_uint_eq(turn.max_ns, 7 * NS_PER_MS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("turn");
	TCase *tc = tcase_create("turn");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, short_turns_cost_one_call_each_20_ms);
	tcase_add_test(tc, the_wait_for_a_processor_is_taken_off_a_long_turn);
	tcase_add_test(tc, the_newest_slow_turn_is_remembered_with_its_time);
	tcase_add_test(tc, a_long_turn_is_reported_whole_and_warned_of);
	tcase_add_test(tc, a_wait_longer_than_the_turn_leaves_nothing_and_does_not_wrap);
	tcase_add_test(tc, without_schedstat_turns_are_reported_with_their_waits);
	tcase_add_test(tc, what_cannot_be_parsed_counts_as_no_wait);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
