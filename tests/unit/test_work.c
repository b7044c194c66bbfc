/* SPDX-License-Identifier: MIT */
/* Worker threads: blocked ones hold up nobody, and no more start than allowed. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "core/log.h"
#include "core/loop_int.h"

#define MAX 3

static struct loop *loop;
static struct workers *workers;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static unsigned waiting, most, passes; /* with the mutex */
static unsigned done, wanted;

static void setup(void)
{
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
	workers = workers_new(loop, MAX);
	ck_assert_ptr_nonnull(workers);
}

static void teardown(void)
{
	workers_free(workers);
	loop_free(loop);
}

static void pass(unsigned n)
{
	pthread_mutex_lock(&mutex);
	passes += n;
	pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&mutex);
}

/* Blocks until somebody gives a pass. */
static void run_blocked(struct env_work *work)
{
	sigset_t set;

	(void)work;
	ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &set), 0);
	ck_assert(sigismember(&set, SIGTERM) == 1);
	pthread_mutex_lock(&mutex);
	waiting++;
	most = waiting > most ? waiting : most;
	pthread_cond_broadcast(&opened);
	while (passes == 0)
		pthread_cond_wait(&opened, &mutex);
	passes--;
	waiting--;
	pthread_mutex_unlock(&mutex);
}

static void count_done(struct env_work *work)
{
	(void)work;
	if (++done == wanted)
		loop_stop(loop);
}

static void wait_until_blocked(unsigned n)
{
	pthread_mutex_lock(&mutex);
	while (waiting < n)
		pthread_cond_wait(&opened, &mutex);
	pthread_mutex_unlock(&mutex);
}

START_TEST(as_many_run_at_once_as_may_and_the_rest_waits)
{
	struct env_work works[10];

	setup();
	for (unsigned i = 0; i < 10; i++) {
		works[i] = (struct env_work){ .run = run_blocked, .done = count_done };
		workers_submit(workers, &works[i]);
	}
	wait_until_blocked(MAX);
	pass(10);
	wanted = 10;
	loop_run(loop);
	ck_assert_uint_eq(done, 10);
	ck_assert_uint_eq(most, MAX);
	teardown();
}
END_TEST

static void timer_passes(struct env_timer *timer)
{
	(void)timer;
	pass(1);
}

START_TEST(the_loop_goes_on_while_work_blocks)
{
	struct env_work work = { .run = run_blocked, .done = count_done };
	struct env_timer timer = { .fn = timer_passes };

	setup();
	workers_submit(workers, &work);
	wait_until_blocked(1);
	env_timer_set(loop_env(loop), &timer, 0);
	wanted = 1;
	loop_run(loop);
	ck_assert_uint_eq(done, 1);
	teardown();
}
END_TEST

static struct env_work chain;
static unsigned links;

static void run_nothing(struct env_work *work)
{
	(void)work;
}

static void submit_again(struct env_work *work)
{
	if (++links == 500)
		loop_stop(loop);
	else
		workers_submit(workers, work);
}

START_TEST(work_may_be_submitted_again_from_its_own_end)
{
	setup();
	chain = (struct env_work){ .run = run_nothing, .done = submit_again };
	workers_submit(workers, &chain);
	loop_run(loop);
	ck_assert_uint_eq(links, 500);
	teardown();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("work");
	TCase *tc = tcase_create("work");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, as_many_run_at_once_as_may_and_the_rest_waits);
	tcase_add_test(tc, the_loop_goes_on_while_work_blocks);
	tcase_add_test(tc, work_may_be_submitted_again_from_its_own_end);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
