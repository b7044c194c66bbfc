/* SPDX-License-Identifier: MIT */
/* The command window: order, duplicates, gaps, and a MaxCmdSN that never goes back. */
#include <check.h>
#include <stdlib.h>

#include "core/wire.h"
#include "target/iscsi/window.h"

static const uint32_t firsts[] = { 0, 1, 1000, 0x7ffffff0, 0x7fffffff, 0xfffffffe, 0xffffffff };
static const unsigned sizes[] = { 1, 2, 3, 4, 7, 32, 128, 200 };

static struct iscsi_window *made(unsigned size, uint32_t first)
{
	struct iscsi_window *w = malloc(sizeof(*w));

	ck_assert(iscsi_window_init(w, size, first));
	return w;
}

static void unmade(struct iscsi_window *w)
{
	iscsi_window_fini(w);
	free(w);
}

START_TEST(every_number_has_its_verdict)
{
	for (unsigned s = 0; s < ARRAY_LEN(sizes); s++) {
		struct iscsi_window *w = made(sizes[s], firsts[_i]);
		uint32_t exp = firsts[_i];

		ck_assert_uint_eq(iscsi_window_max(w), exp + sizes[s] - 1);
		ck_assert_int_eq(iscsi_window_check(w, exp - 1), ISCSI_WINDOW_DROP);
		ck_assert_int_eq(iscsi_window_check(w, exp), ISCSI_WINDOW_NEXT);
		for (unsigned i = 1; i < sizes[s]; i++)
			ck_assert_int_eq(iscsi_window_check(w, exp + i), ISCSI_WINDOW_HOLD);
		ck_assert_int_eq(iscsi_window_check(w, exp + sizes[s]), ISCSI_WINDOW_DROP);
		ck_assert_int_eq(iscsi_window_check(w, exp + 0x7fffffff), ISCSI_WINDOW_DROP);
		unmade(w);
	}
}
END_TEST

START_TEST(it_closes_with_the_last_and_opens_with_each_answer)
{
	for (unsigned s = 0; s < ARRAY_LEN(sizes); s++) {
		struct iscsi_window *w = made(sizes[s], firsts[_i]);
		uint32_t max = iscsi_window_max(w);

		for (unsigned i = 0; i < sizes[s]; i++) {
			ck_assert_int_eq(iscsi_window_check(w, w->exp), ISCSI_WINDOW_NEXT);
			iscsi_window_advance(w);
			ck_assert_uint_eq(iscsi_window_max(w), max);
		}
		ck_assert_uint_eq(iscsi_window_max(w), w->exp - 1);
		ck_assert_int_eq(iscsi_window_check(w, w->exp), ISCSI_WINDOW_DROP);
		for (unsigned i = 0; i < sizes[s]; i++) {
			iscsi_window_release(w);
			ck_assert_uint_eq(iscsi_window_max(w), max + i + 1);
		}
		ck_assert_int_eq(iscsi_window_check(w, w->exp), ISCSI_WINDOW_NEXT);
		unmade(w);
	}
}
END_TEST

START_TEST(numbers_that_come_backwards_run_in_order)
{
	for (unsigned s = 0; s < ARRAY_LEN(sizes); s++) {
		struct iscsi_window *w = made(sizes[s], firsts[_i]);
		unsigned marks[200];

		for (unsigned i = sizes[s] - 1; i > 0; i--) {
			uint32_t sn = firsts[_i] + i;

			marks[i] = i;
			ck_assert_int_eq(iscsi_window_check(w, sn), ISCSI_WINDOW_HOLD);
			iscsi_window_hold(w, sn, &marks[i]);
			/* A second one with the same number. */
			ck_assert_int_eq(iscsi_window_check(w, sn), ISCSI_WINDOW_DROP);
			ck_assert_ptr_null(iscsi_window_take(w));
		}
		iscsi_window_advance(w);
		for (unsigned i = 1; i < sizes[s]; i++)
			ck_assert_ptr_eq(iscsi_window_take(w), &marks[i]);
		ck_assert_ptr_null(iscsi_window_take(w));
		ck_assert_uint_eq(w->held_count, 0);
		ck_assert_uint_eq(w->outstanding, sizes[s]);
		unmade(w);
	}
}
END_TEST

START_TEST(a_void_number_is_passed_over)
{
	struct iscsi_window *w = made(8, firsts[_i]);
	uint32_t exp = firsts[_i];
	int two = 2, five = 5;

	iscsi_window_hold(w, exp + 2, &two);
	iscsi_window_void(w, exp + 1);
	iscsi_window_hold(w, exp + 5, &five);
	iscsi_window_void(w, exp + 5); /* aborted while held */
	iscsi_window_void(w, exp + 8); /* outside: nothing happens */
	iscsi_window_void(w, exp - 1);
	ck_assert_int_eq(iscsi_window_check(w, exp + 1), ISCSI_WINDOW_DROP);
	ck_assert_ptr_null(iscsi_window_take(w));
	iscsi_window_void(w, exp);
	ck_assert_ptr_eq(iscsi_window_take(w), &two);
	ck_assert_uint_eq(w->exp, exp + 3);
	ck_assert_uint_eq(w->outstanding, 1);
	iscsi_window_advance(w);
	iscsi_window_advance(w);
	ck_assert_ptr_null(iscsi_window_take(w));
	ck_assert_uint_eq(w->exp, exp + 6);
	ck_assert_uint_eq(w->outstanding, 3);
	unmade(w);
}
END_TEST

START_TEST(draining_gives_each_held_command_once)
{
	struct iscsi_window *w = made(16, 5);
	int a, b;

	iscsi_window_hold(w, 7, &a);
	iscsi_window_hold(w, 20, &b);
	iscsi_window_void(w, 9);
	ck_assert_ptr_ne(iscsi_window_drain(w), iscsi_window_drain(w));
	ck_assert_ptr_null(iscsi_window_drain(w));
	ck_assert_uint_eq(w->held_count, 0);
	unmade(w);
}
END_TEST

START_TEST(whatever_happens_max_never_goes_back)
{
	struct iscsi_window *w = made(sizes[_i], 0xfffffff0);
	uint32_t max = iscsi_window_max(w);
	unsigned seed = 1;
	int mark;

	for (unsigned step = 0; step < 20000; step++) {
		uint32_t sn = w->exp + (seed = seed * 1103515245 + 12345) / 65536 % (sizes[_i] + 2);

		switch (iscsi_window_check(w, sn)) {
		case ISCSI_WINDOW_NEXT:
			iscsi_window_advance(w);
			while (iscsi_window_take(w))
				;
			break;
		case ISCSI_WINDOW_HOLD:
			if (step % 5)
				iscsi_window_hold(w, sn, &mark);
			else
				iscsi_window_void(w, sn);
			break;
		case ISCSI_WINDOW_DROP:
			break;
		}
		if (w->outstanding && seed / 1024 % 2)
			iscsi_window_release(w);
		ck_assert(sna_lte(max, iscsi_window_max(w)));
		max = iscsi_window_max(w);
		ck_assert_uint_le(max - (w->exp - 1), sizes[_i]);
		ck_assert_uint_le(w->held_count + w->outstanding, sizes[_i]);
	}
	ck_assert(sna_lt(0xfffffff0, w->exp));
	unmade(w);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("window");
	TCase *tcase = tcase_create("window");
	const int n = (int)ARRAY_LEN(firsts);
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tcase, every_number_has_its_verdict, 0, n);
	tcase_add_loop_test(tcase, it_closes_with_the_last_and_opens_with_each_answer, 0, n);
	tcase_add_loop_test(tcase, numbers_that_come_backwards_run_in_order, 0, n);
	tcase_add_loop_test(tcase, a_void_number_is_passed_over, 0, n);
	tcase_add_test(tcase, draining_gives_each_held_command_once);
	tcase_add_loop_test(tcase, whatever_happens_max_never_goes_back, 0, (int)ARRAY_LEN(sizes));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
