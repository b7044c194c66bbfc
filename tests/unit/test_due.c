/* SPDX-License-Identifier: MIT */
/* The heap of due times. */
#include <check.h>
#include <stdlib.h>

#include "bench/due.h"

#define COUNT 500

static struct due_heap heap;
static struct due dues[COUNT];
static uint64_t ran[10 * COUNT];
static unsigned runs;

static void record(struct due *due, uint64_t now_ns)
{
	ck_assert_uint_le(due->at_ns, now_ns);
	ran[runs++] = due->at_ns;
}

static void again(struct due *due, uint64_t now_ns)
{
	record(due, now_ns);
	due_set(&heap, due, due->at_ns);
}

static void setup(void)
{
	ck_assert_int_eq(due_heap_grow(&heap, COUNT), 0);
	runs = 0;
	for (unsigned i = 0; i < COUNT; i++)
		dues[i] = (struct due){ .run = record };
}

static void teardown(void)
{
	due_heap_fini(&heap);
}

START_TEST(everything_runs_once_in_its_order_and_not_before_its_time)
{
	/* 389 and 500 have no common divisor: every time from 0 to 499 once. */
	for (unsigned i = 0; i < COUNT; i++)
		due_set(&heap, &dues[i], i * 389 % COUNT);
	for (uint64_t now = 0; now < COUNT; now += 100) {
		ck_assert_uint_eq(due_next(&heap), now ? now - 99 : 0);
		due_run(&heap, now);
		ck_assert_uint_eq(runs, now + 1);
	}
	due_run(&heap, COUNT);
	ck_assert_uint_eq(runs, COUNT);
	for (unsigned i = 0; i < COUNT; i++)
		ck_assert_uint_eq(ran[i], i);
	ck_assert_uint_eq(due_next(&heap), UINT64_MAX);
}
END_TEST

START_TEST(what_is_cleared_does_not_run_and_the_rest_keeps_its_order)
{
	for (unsigned i = 0; i < COUNT; i++)
		due_set(&heap, &dues[i], i * 389 % COUNT);
	for (unsigned i = 0; i < COUNT; i += 3) {
		due_clear(&heap, &dues[i]);
		due_clear(&heap, &dues[i]);
	}
	due_run(&heap, COUNT);
	ck_assert_uint_eq(runs, COUNT - (COUNT + 2) / 3);
	for (unsigned i = 1; i < runs; i++)
		ck_assert_uint_lt(ran[i - 1], ran[i]);
}
END_TEST

START_TEST(a_new_time_replaces_the_old_one)
{
	due_set(&heap, &dues[0], 10);
	due_set(&heap, &dues[1], 20);
	due_set(&heap, &dues[0], 30);
	due_set(&heap, &dues[1], 5);
	ck_assert_uint_eq(heap.count, 2);
	due_run(&heap, 20);
	ck_assert_uint_eq(runs, 1);
	ck_assert_uint_eq(ran[0], 5);
	due_run(&heap, 30);
	ck_assert_uint_eq(runs, 2);
	ck_assert_uint_eq(dues[0].place, 0);
}
END_TEST

START_TEST(what_is_due_again_at_once_does_not_keep_it)
{
	dues[0].run = dues[1].run = again;
	due_set(&heap, &dues[0], 1);
	due_set(&heap, &dues[1], 2);
	due_run(&heap, 10);
	ck_assert_uint_eq(runs, 2);
	ck_assert_uint_eq(heap.count, 2);
}
END_TEST

START_TEST(growing_keeps_what_waits)
{
	due_heap_fini(&heap);
	for (unsigned i = 0; i < COUNT; i++) {
		ck_assert_int_eq(due_heap_grow(&heap, i + 1), 0);
		ck_assert_int_eq(due_heap_grow(&heap, i), 0);
		due_set(&heap, &dues[i], COUNT - i);
	}
	due_run(&heap, COUNT);
	ck_assert_uint_eq(runs, COUNT);
	ck_assert_uint_eq(ran[0], 1);
}
END_TEST

START_TEST(what_is_due_is_late_if_its_loop_was_at_work_not_if_it_slept)
{
	const struct due due = { .at_ns = 1000 };

	ck_assert_uint_eq(due_lag(&due, 999, 1000), 0);
	ck_assert_uint_eq(due_lag(&due, 1000, 61000), 0); /* asleep, and woken by the timer */
	ck_assert_uint_eq(due_lag(&due, 1001, 1001), 1);
	ck_assert_uint_eq(due_lag(&due, 300000, 301000), 300000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("due");
	TCase *tc = tcase_create("due");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, everything_runs_once_in_its_order_and_not_before_its_time);
	tcase_add_test(tc, what_is_cleared_does_not_run_and_the_rest_keeps_its_order);
	tcase_add_test(tc, a_new_time_replaces_the_old_one);
	tcase_add_test(tc, what_is_due_again_at_once_does_not_keep_it);
	tcase_add_test(tc, what_is_due_is_late_if_its_loop_was_at_work_not_if_it_slept);
	tcase_add_test(tc, growing_keeps_what_waits);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
