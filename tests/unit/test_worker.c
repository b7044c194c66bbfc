/* SPDX-License-Identifier: MIT */
/* Commands without a path: how long they wait, on the clock of a turn that began before they did. */
#include <check.h>
#include <stdlib.h>

#include "bench/engine_int.h"

#define BLOCK 4096u
#define DEPTH 3u
#define TIMEOUT_NS (30 * NS_PER_S)
#define NOW_NS (1000 * NS_PER_S)

static struct engine engine;
static struct thread thread;
static struct worker worker;
static struct command commands[DEPTH];
static struct session session;
static struct bench_stream stream;
static struct workload_range range;
static struct path path;

/* One worker that reads; its only path is down. */
static void setup(void)
{
	static const struct bench_setup bench_setup = { .portal_count = 1 };
	static struct session *sessions[] = { &session };
	struct lane *lane = &thread.lanes[0];
	uint64_t bytes = 16 * BLOCK;

	engine.setup = &bench_setup;
	engine.timeout_ns = TIMEOUT_NS;
	engine.luns[0].block_bytes = 512;
	sem_init(&engine.wake, 0, 0);
	thread.engine = &engine;
	thread.open = &thread.parts[0];
	thread.measuring = true;
	thread.to_ns = UINT64_MAX;
	TAILQ_INIT(&thread.waiting);
	thread.lane_count = 1;
	stream = (struct bench_stream){
		.pattern = PATTERN_RANDOM, .block_bytes = BLOCK, .read_percent = 100, .depth = DEPTH
	};
	ck_assert(workload_range_init(&range, &stream, &bytes, 1));
	path_group_init(&lane->group, PATH_ROUND_ROBIN, &path, 1);
	lane->thread = &thread;
	lane->stream = &stream;
	lane->sessions = sessions;
	lane->workers = &worker;
	lane->worker_count = 1;
	worker.lane = lane;
	worker.commands = commands;
	workload_init(&worker.load, &stream, &range, 0, 1, 1);
	worker_init(&worker);
	workers_start(&thread, NOW_NS, true);
	ck_assert_uint_eq(thread.active, DEPTH);
}

START_TEST(a_command_that_began_to_wait_after_the_turn_did_has_not_waited)
{
	workers_look_for_timeouts(&thread, NOW_NS - 1);
	ck_assert_uint_eq(session.count.errors, 0);
	ck_assert_uint_eq(thread.error_count, 0);
}
END_TEST

START_TEST(a_command_without_a_path_fails_after_its_time_and_not_before)
{
	workers_look_for_timeouts(&thread, NOW_NS + TIMEOUT_NS);
	ck_assert_uint_eq(session.count.errors, 0);
	workers_look_for_timeouts(&thread, NOW_NS + TIMEOUT_NS + 1);
	ck_assert_uint_eq(session.count.errors, DEPTH);
	ck_assert_str_eq(thread.errors[0].kind, "no path");
	/* Those that follow them wait anew. */
	ck_assert_uint_eq(thread.active, DEPTH);
	workers_look_for_timeouts(&thread, NOW_NS + 2 * TIMEOUT_NS + 1);
	ck_assert_uint_eq(session.count.errors, DEPTH);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("worker");
	TCase *tc = tcase_create("worker");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, a_command_that_began_to_wait_after_the_turn_did_has_not_waited);
	tcase_add_test(tc, a_command_without_a_path_fails_after_its_time_and_not_before);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
