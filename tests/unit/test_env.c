/* SPDX-License-Identifier: MIT */
/* The deferred queue, the timers, and the fake env that other tests stand on. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/fake_env.h"

static struct env *env;
static int order[64];
static unsigned ran;

static void setup(void)
{
	env = fake_env_new(7);
	ran = 0;
}

static void teardown(void)
{
	fake_env_free(env);
}

struct step {
	struct env_defer defer;
	struct env_timer timer;
	int number;
	struct step *next; /* deferred or armed anew by this one */
	uint64_t delay_ns;
};

static void defer_ran(struct env_defer *defer)
{
	struct step *step = container_of(defer, struct step, defer);

	order[ran++] = step->number;
	if (step->next)
		env_defer(env, &step->next->defer);
}

static void timer_ran(struct env_timer *timer)
{
	struct step *step = container_of(timer, struct step, timer);

	order[ran++] = step->number;
	ck_assert(!timer->armed);
	if (step->next)
		env_timer_set(env, &step->next->timer, step->next->delay_ns);
}

static struct step step_of(int number)
{
	return (struct step){ .defer.fn = defer_ran, .timer.fn = timer_ran, .number = number };
}

START_TEST(deferred_callbacks_run_in_order_and_those_they_defer_after_them)
{
	struct step a = step_of(1), b = step_of(2), c = step_of(3);

	a.next = &c;
	env_defer(env, &a.defer);
	env_defer(env, &b.defer);
	ck_assert_uint_eq(ran, 0);
	env_run_deferred(env);
	ck_assert_uint_eq(ran, 3);
	ck_assert_int_eq(order[0], 1);
	ck_assert_int_eq(order[1], 2);
	ck_assert_int_eq(order[2], 3);
}
END_TEST

START_TEST(a_cancelled_callback_does_not_run_and_may_be_deferred_again)
{
	struct step a = step_of(1), b = step_of(2), c = step_of(3);

	env_defer(env, &a.defer);
	env_defer(env, &b.defer);
	env_defer(env, &c.defer);
	env_defer_cancel(env, &b.defer);
	env_defer_cancel(env, &b.defer);
	env_run_deferred(env);
	ck_assert_uint_eq(ran, 2);
	ck_assert_int_eq(order[1], 3);
	env_defer(env, &b.defer);
	env_run_deferred(env);
	ck_assert_int_eq(order[2], 2);
}
END_TEST

START_TEST(timers_fire_by_due_time_and_equal_ones_in_the_order_of_arming)
{
	static const uint64_t delays[] = { 30, 10, 20, 10, 0, 30, 10 };
	static const int expected[] = { 4, 1, 3, 6, 2, 0, 5 };
	struct step steps[ARRAY_LEN(delays)];

	for (unsigned i = 0; i < ARRAY_LEN(delays); i++) {
		steps[i] = step_of((int)i);
		env_timer_set(env, &steps[i].timer, delays[i]);
	}
	fake_env_advance(env, 30);
	ck_assert_uint_eq(ran, ARRAY_LEN(delays));
	ck_assert_mem_eq(order, expected, sizeof(expected));
}
END_TEST

START_TEST(a_timer_fires_at_its_time_and_not_one_nanosecond_before)
{
	struct step a = step_of(1);

	env_timer_set(env, &a.timer, 1000);
	fake_env_advance(env, 999);
	ck_assert_uint_eq(ran, 0);
	ck_assert_uint_eq(env_next_timer_ns(env), env_now_ns(env) + 1);
	fake_env_advance(env, 1);
	ck_assert_uint_eq(ran, 1);
	ck_assert_uint_eq(env_next_timer_ns(env), UINT64_MAX);
}
END_TEST

START_TEST(arming_anew_moves_a_timer_and_puts_it_behind_its_equals)
{
	struct step a = step_of(1), b = step_of(2);

	env_timer_set(env, &a.timer, 10);
	env_timer_set(env, &b.timer, 20);
	env_timer_set(env, &a.timer, 20);
	fake_env_advance(env, 19);
	ck_assert_uint_eq(ran, 0);
	fake_env_advance(env, 1);
	ck_assert_int_eq(order[0], 2);
	ck_assert_int_eq(order[1], 1);
}
END_TEST

START_TEST(a_timer_armed_with_no_delay_by_a_timer_waits_for_the_next_run)
{
	struct step a = step_of(1), b = step_of(2);

	a.next = &b;
	env_timer_set(env, &a.timer, 0);
	env_run_timers(env);
	ck_assert_uint_eq(ran, 1);
	env_run_timers(env);
	ck_assert_uint_eq(ran, 2);
}
END_TEST

START_TEST(the_longest_delay_does_not_wrap_into_the_past)
{
	struct step a = step_of(1);

	env_timer_set(env, &a.timer, UINT64_MAX);
	fake_env_advance(env, 1000 * NS_PER_S);
	ck_assert_uint_eq(ran, 0);
	ck_assert_uint_eq(env_next_timer_ns(env), UINT64_MAX - 1);
	env_timer_cancel(env, &a.timer);
	env_timer_cancel(env, &a.timer);
	ck_assert_uint_eq(env_next_timer_ns(env), UINT64_MAX);
}
END_TEST

START_TEST(a_thousand_timers_fire_in_order_whatever_was_cancelled)
{
	static struct step steps[1000];
	uint64_t last_ns = 0;

	for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
		uint32_t r;

		steps[i] = step_of((int)i);
		env_random(env, &r, sizeof(r));
		env_timer_set(env, &steps[i].timer, r % 5000);
		if (i % 3 == 2)
			env_timer_cancel(env, &steps[i - 1].timer);
	}
	for (unsigned left = 0; left < 667; left++) {
		struct env_timer *timer = RB_ROOT(&env->timers);

		while (timer && RB_LEFT(timer, node))
			timer = RB_LEFT(timer, node);
		ck_assert_ptr_nonnull(timer);
		ck_assert_uint_ge(timer->due_ns, last_ns);
		ck_assert_uint_eq(timer->due_ns, env_next_timer_ns(env));
		last_ns = timer->due_ns;
		env_timer_cancel(env, timer);
	}
	ck_assert_uint_eq(env_next_timer_ns(env), UINT64_MAX);
}
END_TEST

struct disk_call {
	struct env_disk_op op;
	struct iovec iov;
	unsigned done;
};

static void op_done(struct env_disk_op *op)
{
	container_of(op, struct disk_call, op)->done++;
}

static void submit(struct disk_call *call, enum env_disk_kind kind, int fd, uint64_t offset,
		   void *data, uint64_t length, bool fua)
{
	*call = (struct disk_call){
		.op = { .kind = kind,
			.fd = fd,
			.offset = offset,
			.length = length,
			.fua = fua,
			.iov = &call->iov,
			.iov_count = data ? 1 : 0,
			.done = op_done },
		.iov = { data, length },
	};
	env_disk_submit(env, &call->op);
}

START_TEST(a_power_cut_keeps_what_was_flushed_or_forced_and_nothing_else)
{
	int fd = fake_env_disk(env, 4096);
	struct disk_call flushed, flush, forced, lost, pending;
	char data[] = "fluslostforcpend", back[12];

	submit(&flushed, ENV_DISK_WRITE, fd, 0, data, 4, false);
	submit(&flush, ENV_DISK_FLUSH, fd, 0, NULL, 0, false);
	submit(&lost, ENV_DISK_WRITE, fd, 4, data + 4, 4, false);
	submit(&forced, ENV_DISK_WRITE, fd, 8, data + 8, 4, true);
	ck_assert_uint_eq(flushed.done + flush.done + lost.done + forced.done, 0);
	fake_env_run(env);
	ck_assert_uint_eq(flushed.done + flush.done + lost.done + forced.done, 4);
	fake_env_hold(env);
	submit(&pending, ENV_DISK_WRITE, fd, 0, data + 12, 4, true);
	fake_env_run(env);
	ck_assert_mem_eq(fake_env_disk_bytes(env, fd), "fluslostforc", 12);
	fake_env_power_cut(env);
	ck_assert_uint_eq(pending.done, 0);
	submit(&lost, ENV_DISK_READ, fd, 0, back, 12, false);
	fake_env_run(env);
	ck_assert_int_eq(lost.op.result, 0);
	ck_assert_mem_eq(back, "flus\0\0\0\0forc", 12);
}
END_TEST

START_TEST(failures_hit_the_next_of_their_kind_in_turn_and_have_no_effect)
{
	int fd = fake_env_disk(env, 4096);
	struct disk_call a, b, c, d;
	char data[] = "abcd";

	fake_env_fail_next(env, ENV_DISK_WRITE, -EIO);
	fake_env_fail_next(env, ENV_DISK_WRITE, -ENOSPC);
	submit(&a, ENV_DISK_FLUSH, fd, 0, NULL, 0, false);
	submit(&b, ENV_DISK_WRITE, fd, 0, data, 4, false);
	submit(&c, ENV_DISK_WRITE, fd, 4, data, 4, false);
	submit(&d, ENV_DISK_WRITE, fd, 8, data, 4, false);
	fake_env_run(env);
	ck_assert_int_eq(a.op.result, 0);
	ck_assert_int_eq(b.op.result, -EIO);
	ck_assert_int_eq(c.op.result, -ENOSPC);
	ck_assert_int_eq(d.op.result, 0);
	ck_assert_mem_eq(fake_env_disk_bytes(env, fd), "\0\0\0\0\0\0\0\0abcd", 12);
	fake_env_fail_disk(env, fd, -ENXIO);
	submit(&a, ENV_DISK_READ, fd, 0, data, 4, false);
	fake_env_run(env);
	ck_assert_int_eq(a.op.result, -ENXIO);
	fake_env_fail_disk(env, fd, 0);
	submit(&a, ENV_DISK_READ, fd, 4094, data, 4, false);
	fake_env_run(env);
	ck_assert_int_eq(a.op.result, -ENODATA);
}
END_TEST

START_TEST(held_operations_wait_and_may_be_served_out_of_order)
{
	int fd = fake_env_disk(env, 4096);
	struct disk_call calls[3];
	char data[] = "xyz";

	fake_env_hold(env);
	for (unsigned i = 0; i < 3; i++)
		submit(&calls[i], ENV_DISK_WRITE, fd, 0, data + i, 1, i == 1);
	fake_env_run(env);
	ck_assert_uint_eq(fake_env_held(env), 3);
	fake_env_serve_held(env, 2);
	ck_assert_uint_eq(calls[2].done, 1);
	fake_env_release(env);
	fake_env_run(env);
	ck_assert_uint_eq(calls[0].done + calls[1].done + calls[2].done, 3);
	ck_assert_int_eq(fake_env_disk_bytes(env, fd)[0], 'y');
	ck_assert_uint_eq(fake_env_count(env, ENV_DISK_WRITE), 3);
	ck_assert_uint_eq(fake_env_records(env), 3);
	ck_assert(fake_env_record(env, 1)->fua && !fake_env_record(env, 2)->fua);
	fake_env_reset_counts(env);
	ck_assert_uint_eq(fake_env_count(env, ENV_DISK_WRITE), 0);
}
END_TEST

START_TEST(punched_and_zeroed_ranges_read_as_zeroes_and_neighbours_stay)
{
	static const enum env_disk_kind kinds[] = { ENV_DISK_PUNCH, ENV_DISK_ZERO };
	int fd = fake_env_disk(env, 4096);
	struct disk_call call;

	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		memset(fake_env_disk_bytes(env, fd), 0xaa, 4096);
		submit(&call, kinds[i], fd, 512, NULL, 1024, false);
		fake_env_run(env);
		ck_assert_int_eq(call.op.result, 0);
		for (unsigned at = 0; at < 4096; at++)
			ck_assert_int_eq(fake_env_disk_bytes(env, fd)[at],
					 at >= 512 && at < 1536 ? 0 : 0xaa);
	}
}
END_TEST

START_TEST(one_seed_gives_one_sequence_of_random_bytes)
{
	struct env *same = fake_env_new(7), *other = fake_env_new(8);
	uint8_t a[32], b[32], c[32];

	env_random(env, a, sizeof(a));
	env_random(same, b, sizeof(b));
	env_random(other, c, sizeof(c));
	ck_assert_mem_eq(a, b, sizeof(a));
	ck_assert_mem_ne(a, c, sizeof(a));
	fake_env_free(same);
	fake_env_free(other);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("env");
	TCase *tc = tcase_create("env");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, deferred_callbacks_run_in_order_and_those_they_defer_after_them);
	tcase_add_test(tc, a_cancelled_callback_does_not_run_and_may_be_deferred_again);
	tcase_add_test(tc, timers_fire_by_due_time_and_equal_ones_in_the_order_of_arming);
	tcase_add_test(tc, a_timer_fires_at_its_time_and_not_one_nanosecond_before);
	tcase_add_test(tc, arming_anew_moves_a_timer_and_puts_it_behind_its_equals);
	tcase_add_test(tc, a_timer_armed_with_no_delay_by_a_timer_waits_for_the_next_run);
	tcase_add_test(tc, the_longest_delay_does_not_wrap_into_the_past);
	tcase_add_test(tc, a_thousand_timers_fire_in_order_whatever_was_cancelled);
	tcase_add_test(tc, a_power_cut_keeps_what_was_flushed_or_forced_and_nothing_else);
	tcase_add_test(tc, failures_hit_the_next_of_their_kind_in_turn_and_have_no_effect);
	tcase_add_test(tc, held_operations_wait_and_may_be_served_out_of_order);
	tcase_add_test(tc, punched_and_zeroed_ranges_read_as_zeroes_and_neighbours_stay);
	tcase_add_test(tc, one_seed_gives_one_sequence_of_random_bytes);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
