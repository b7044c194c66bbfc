/* SPDX-License-Identifier: MIT */
/* Messages between two shards on two threads, and to the own shard. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/loop_int.h"
#include "core/shard.h"

#define MESSAGES 20000
#define WINDOW 16 /* on their way at once: so that both sides sleep now and then */

struct letter {
	struct shard_msg msg;
	struct shard *from;
	struct shard *to;
	unsigned number;
	bool back;
};

struct side {
	pthread_t thread;
	struct loop *loop;
	struct shard *shard;
	unsigned sent;
	unsigned returned;
	unsigned next_in; /* the number expected from the other side */
	struct letter letters[WINDOW];
};

static struct side sides[2];
static unsigned finished; /* atomic */

static struct side *side_of(const struct shard *shard)
{
	return &sides[shard_number(shard)];
}

static void letter_arrived(struct shard_msg *msg);

static void post(struct side *side, struct letter *letter)
{
	letter->msg.fn = letter_arrived;
	letter->number = side->sent++;
	letter->back = false;
	shard_send(letter->to, &letter->msg);
}

static void stop_self(struct shard_msg *msg)
{
	(void)msg;
	loop_stop(shard_loop(shard_self()));
}

static struct shard_msg stops[2];

static void one_side_finished(void)
{
	if (__atomic_add_fetch(&finished, 1, __ATOMIC_SEQ_CST) < 2)
		return;
	for (unsigned i = 0; i < 2; i++) {
		stops[i].fn = stop_self;
		shard_send(sides[i].shard, &stops[i]);
	}
}

static void letter_arrived(struct shard_msg *msg)
{
	struct letter *letter = container_of(msg, struct letter, msg);
	struct side *side = side_of(shard_self());

	if (!letter->back) {
		ck_assert_ptr_eq(shard_self(), letter->to);
		ck_assert_uint_eq(letter->number, side->next_in++);
		letter->back = true;
		shard_send(letter->from, msg);
		return;
	}
	ck_assert_ptr_eq(shard_self(), letter->from);
	ck_assert_uint_eq(letter->number, side->returned++);
	if (side->sent < MESSAGES)
		post(side, letter);
	else if (side->returned == MESSAGES)
		one_side_finished();
}

static void *live(void *arg)
{
	struct side *side = arg;

	shard_enter(side->shard);
	for (unsigned i = 0; i < WINDOW; i++)
		post(side, &side->letters[i]);
	loop_run(side->loop);
	return NULL;
}

START_TEST(every_message_arrives_once_in_order_and_comes_back)
{
	for (unsigned i = 0; i < 2; i++) {
		sides[i].loop = loop_new();
		sides[i].shard = shard_new(sides[i].loop, i);
	}
	for (unsigned i = 0; i < 2; i++)
		for (unsigned j = 0; j < WINDOW; j++) {
			sides[i].letters[j].from = sides[i].shard;
			sides[i].letters[j].to = sides[!i].shard;
		}
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&sides[i].thread, NULL, live, &sides[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(sides[i].thread, NULL);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(sides[i].returned, MESSAGES);
		ck_assert_uint_eq(sides[i].next_in, MESSAGES);
		shard_free(sides[i].shard);
		loop_free(sides[i].loop);
	}
}
END_TEST

static unsigned ran;

static void count(struct shard_msg *msg)
{
	(void)msg;
	ran++;
}

START_TEST(to_the_own_shard_it_is_a_call_and_to_another_it_waits)
{
	struct loop *loop = loop_new(), *other_loop = loop_new();
	struct shard *own = shard_new(loop, 0), *other = shard_new(other_loop, 1);
	struct shard_msg msg = { .fn = count }, stop = { .fn = stop_self };

	ck_assert_ptr_null(shard_self());
	shard_enter(own);
	ck_assert_ptr_eq(shard_self(), own);
	ck_assert_ptr_eq(shard_env(own), loop_env(loop));
	shard_send(own, &msg);
	ck_assert_uint_eq(ran, 1);
	shard_send(other, &msg);
	shard_send(other, &stop);
	ck_assert_uint_eq(ran, 1);
	shard_enter(other);
	loop_run(other_loop);
	ck_assert_uint_eq(ran, 2);
	shard_free(own);
	shard_free(other);
	loop_free(loop);
	loop_free(other_loop);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shard");
	TCase *tc = tcase_create("shard");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, every_message_arrives_once_in_order_and_comes_back);
	tcase_add_test(tc, to_the_own_shard_it_is_a_call_and_to_another_it_waits);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
