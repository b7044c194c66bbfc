/* SPDX-License-Identifier: MIT */
/* Figures of one thread: what is counted where, and how long things were in flight. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "bench/engine_int.h"

static struct thread thread;
static struct session session;
static struct lane lane;
static struct worker worker;
static struct command command;

static void setup(void)
{
	static struct session *sessions[] = { &session };

	thread.id = pthread_self();
	thread.sessions = sessions;
	thread.session_count = 1;
	thread.open = &thread.parts[0];
	lane.thread = &thread;
	worker.lane = &lane;
	command.worker = &worker;
	command.session = &session;
	session.portal = session.count.portal = 3;
	strcpy(session.count.isid, "80abcdef0001");
}

/* COUNT commands are in flight from FROM_NS on. */
static void in_flight(unsigned count, uint64_t from_ns)
{
	tally_flight(&thread, from_ns);
	thread.in_flight = count;
}

START_TEST(the_mean_in_flight_is_weighted_by_time_and_ends_with_the_measurement)
{
	tally_reset(&thread, 1000, 2000);
	in_flight(10, 1000);
	in_flight(0, 1300);
	in_flight(4, 1900);
	in_flight(100, 2500); /* too late to count, as is what lasts beyond */
	in_flight(0, 3000);
	ck_assert_uint_eq(thread.flight_ns, 10 * 300 + 4 * 100);
}
END_TEST

START_TEST(a_command_counts_from_its_plan_and_from_its_sending)
{
	tally_reset(&thread, 0, UINT64_MAX);
	command.intended_ns = 1000;
	command.io.sent_ns = 1090;
	command.length = 4096;
	command.write = true;
	command.counted = true;
	tally_good(&command, 1100);
	ck_assert_uint_eq(thread.counts[BENCH_READ].ops, 0);
	ck_assert_uint_eq(thread.counts[BENCH_WRITE].ops, 1);
	ck_assert_uint_eq(thread.counts[BENCH_WRITE].bytes, 4096);
	ck_assert_uint_eq(thread.counts[BENCH_WRITE].latency.max, 100);
	ck_assert_uint_eq(thread.counts[BENCH_WRITE].service.max, 10);
	ck_assert_uint_eq(session.count.ops, 1);
	ck_assert_uint_eq(session.count.latency.max, 100);
	ck_assert_uint_eq(thread.open->ops[BENCH_WRITE], 1);
	ck_assert_uint_eq(thread.open->portal_ops[3], 1);
	ck_assert_uint_eq(thread.open->latency.max, 100);
}
END_TEST

START_TEST(what_is_not_counted_shows_in_the_interval_alone)
{
	tally_reset(&thread, 0, UINT64_MAX);
	command.counted = false;
	command.length = 512;
	tally_good(&command, 1100);
	ck_assert_uint_eq(thread.open->ops[BENCH_READ], 1);
	ck_assert_uint_eq(thread.counts[BENCH_READ].ops, 0);
	ck_assert_uint_eq(session.count.ops, 0);
}
END_TEST

START_TEST(a_new_measurement_starts_from_nothing_but_keeps_who_is_who)
{
	command.counted = true;
	tally_good(&command, 1100);
	session.count.retries = session.count.errors = 5;
	session.in.stalls = 7;
	tally_reset(&thread, 100, 200);
	ck_assert_uint_eq(session.count.ops, 0);
	ck_assert_uint_eq(session.count.retries + session.count.errors, 0);
	ck_assert_uint_eq(session.stalls_before, 7);
	ck_assert_uint_eq(session.count.portal, 3);
	ck_assert_str_eq(session.count.isid, "80abcdef0001");
	ck_assert_uint_eq(thread.open->ops[BENCH_READ], 0);
	ck_assert_uint_eq(thread.counts[BENCH_READ].latency.count, 0);
}
END_TEST

START_TEST(an_open_loop_plans_what_is_due_before_the_end)
{
	static const struct {
		double step;
		uint64_t base, to, planned;
	} cases[] = {
		{ 100, 1000, 2000, 10 }, /* 1000, 1100, ... 1900 */
		{ 100, 1000, 2001, 11 }, { 100, 1999, 2000, 1 },
		{ 100, 2000, 2000, 0 },  { 0, 1000, 2000, 0 }, /* closed loop */
		{ 100, 0, 2000, 0 },                           /* never begun */
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		worker.step_ns = cases[i].step;
		worker.base_ns = cases[i].base;
		ck_assert_uint_eq(tally_planned(&worker, cases[i].to), cases[i].planned);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tally");
	TCase *tc = tcase_create("tally");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, the_mean_in_flight_is_weighted_by_time_and_ends_with_the_measurement);
	tcase_add_test(tc, a_command_counts_from_its_plan_and_from_its_sending);
	tcase_add_test(tc, what_is_not_counted_shows_in_the_interval_alone);
	tcase_add_test(tc, a_new_measurement_starts_from_nothing_but_keeps_who_is_who);
	tcase_add_test(tc, an_open_loop_plans_what_is_due_before_the_end);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
