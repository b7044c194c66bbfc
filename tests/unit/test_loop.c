/* SPDX-License-Identifier: MIT */
/* The loop itself: work, hooks, timers, turns, stopping. Disk I/O is in test_loop_disk.c. */
#include <check.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake/loop_rig.h"

struct job {
	struct env_work work;
	pthread_t thread;
	bool done;
};

static void job_run(struct env_work *work)
{
	container_of(work, struct job, work)->thread = pthread_self();
}

static void job_done(struct env_work *work)
{
	struct job *job = container_of(work, struct job, work);

	ck_assert(!pthread_equal(job->thread, pthread_self()));
	job->done = true;
	ran_one();
}

START_TEST(work_runs_on_another_thread_and_ends_on_the_loop)
{
	static struct job jobs[200];

	if (!start(LOOP_ENGINE_AUTO))
		return;
	for (unsigned i = 0; i < ARRAY_LEN(jobs); i++) {
		jobs[i] = (struct job){ .work = { .run = job_run, .done = job_done } };
		env_work_submit(env, &jobs[i].work);
		ck_assert(!jobs[i].done);
	}
	run_until(ARRAY_LEN(jobs));
	for (unsigned i = 0; i < ARRAY_LEN(jobs); i++)
		ck_assert(jobs[i].done);
	stop();
}
END_TEST

static char trace[64];
static struct loop_hook hook;
static struct env_defer first, second;

static void hook_ran(struct loop_hook *h)
{
	(void)h;
	strcat(trace, "h");
	ran_one();
}

static void first_ran(struct env_defer *defer)
{
	(void)defer;
	strcat(trace, "1");
	loop_at_turn_end(loop, &hook);
	loop_at_turn_end(loop, &hook);
	env_defer(env, &second);
}

static void second_ran(struct env_defer *defer)
{
	(void)defer;
	strcat(trace, "2");
	loop_at_turn_end(loop, &hook);
}

START_TEST(a_hook_runs_once_after_all_that_was_deferred)
{
	if (!start(LOOP_ENGINE_AUTO))
		return;
	trace[0] = '\0';
	hook = (struct loop_hook){ .fn = hook_ran };
	first = (struct env_defer){ .fn = first_ran };
	second = (struct env_defer){ .fn = second_ran };
	env_defer(env, &first);
	run_until(1);
	ck_assert_str_eq(trace, "12h");
	loop_at_turn_end(loop, &hook);
	loop_hook_cancel(loop, &hook);
	loop_hook_cancel(loop, &hook);
	env_defer(env, &first);
	run_until(1);
	ck_assert_str_eq(trace, "12h12h");
	stop();
}
END_TEST

struct tick {
	struct env_timer timer;
	uint64_t now_ns;
};

static void ticked(struct env_timer *timer)
{
	struct tick *tick = container_of(timer, struct tick, timer);

	tick->now_ns = env_now_ns(env);
	ran_one();
}

START_TEST(timers_fire_in_order_and_never_early_even_when_one_moved)
{
	struct tick ticks[3] = { { .timer.fn = ticked },
				 { .timer.fn = ticked },
				 { .timer.fn = ticked } };
	uint64_t start_ns;

	if (!start(LOOP_ENGINE_AUTO))
		return;
	start_ns = env_now_ns(env);
	env_timer_set(env, &ticks[0].timer, 2 * NS_PER_MS);
	env_timer_set(env, &ticks[1].timer, 4 * NS_PER_MS);
	env_timer_set(env, &ticks[2].timer, 0);
	env_timer_set(env, &ticks[0].timer, 8 * NS_PER_MS);
	run_until(3);
	ck_assert_uint_ge(ticks[0].now_ns, start_ns + 8 * NS_PER_MS);
	ck_assert_uint_ge(ticks[1].now_ns, start_ns + 4 * NS_PER_MS);
	ck_assert_uint_ge(ticks[0].now_ns, ticks[1].now_ns);
	ck_assert_uint_ge(ticks[1].now_ns, ticks[2].now_ns);
	/* The loop has slept for the deadline by now: an earlier timer must not wait for it. */
	for (unsigned i = 0; i < 3; i++) {
		env_timer_set(env, &ticks[i].timer, i * NS_PER_MS);
		run_until(1);
	}
	stop();
}
END_TEST

static void computed(struct env_timer *timer)
{
	/* The turn goes on: it must be counted although nobody else runs. */
	struct timespec until, now;

	(void)timer;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &until);
	until.tv_nsec += 15 * (long)NS_PER_MS;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - until.tv_sec) * (long)NS_PER_S + now.tv_nsec < until.tv_nsec);
	ran_one();
}

static unsigned warnings;

static void count_warnings(enum log_level level, const char *line)
{
	if (level == LOG_L_WARN && strstr(line, "slow-turn"))
		warnings++;
}

START_TEST(a_turn_that_computes_for_15_ms_is_reported_and_warned_of)
{
	struct env_timer timer = { .fn = computed };
	struct loop_stats stats;

	if (!start(LOOP_ENGINE_AUTO))
		return;
	log_redirect(count_warnings);
	warnings = 0;
	env_timer_set(env, &timer, 0);
	run_until(1);
	loop_stats(loop, &stats);
	ck_assert_uint_ge(stats.turn_max_ns, 12 * NS_PER_MS);
	ck_assert_uint_eq(warnings, 1);
	stop();
}
END_TEST

static bool late_work_done;

static void late_work_end(struct env_work *work)
{
	(void)work;
	late_work_done = true;
}

static void late_work_run(struct env_work *work)
{
	const struct timespec blocked = { .tv_nsec = 20 * 1000 * 1000 };

	(void)work;
	nanosleep(&blocked, NULL);
}

static void stop_with_work(struct env_timer *timer)
{
	static struct env_work work = { .run = late_work_run, .done = late_work_end };

	(void)timer;
	env_work_submit(loop_env(loop), &work);
	loop_stop(loop);
}

START_TEST(a_stop_waits_for_work_that_is_under_way)
{
	struct env_timer timer = { .fn = stop_with_work };

	ck_assert(start(LOOP_ENGINE_AUTO));
	late_work_done = false;
	env_timer_set(loop_env(loop), &timer, 0);
	loop_run(loop);
	ck_assert(late_work_done);
	stop();
}
END_TEST

START_TEST(random_bytes_differ_and_the_clocks_go_forward)
{
	uint8_t a[300], b[300];
	uint64_t boot_ns;

	if (!start(LOOP_ENGINE_AUTO))
		return;
	env_random(env, a, sizeof(a));
	env_random(env, b, sizeof(b));
	ck_assert_mem_ne(a, b, sizeof(a));
	boot_ns = env_boottime_ns(env);
	ck_assert_uint_ge(env_boottime_ns(env), boot_ns);
	ck_assert_uint_ge(boot_ns, NS_PER_MS);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("loop");
	TCase *tc = tcase_create("loop");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, work_runs_on_another_thread_and_ends_on_the_loop);
	tcase_add_test(tc, a_hook_runs_once_after_all_that_was_deferred);
	tcase_add_test(tc, timers_fire_in_order_and_never_early_even_when_one_moved);
	tcase_add_test(tc, a_turn_that_computes_for_15_ms_is_reported_and_warned_of);
	tcase_add_test(tc, a_stop_waits_for_work_that_is_under_way);
	tcase_add_test(tc, random_bytes_differ_and_the_clocks_go_forward);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
