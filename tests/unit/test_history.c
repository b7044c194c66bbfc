/* SPDX-License-Identifier: MIT */
/* The online checker against every order of every small history, and what it says and forgets. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/history.h"

#define OPS_MAX 9
#define NEVER HISTORY_NEVER
#define PRIOR (HISTORY_PRIOR | 7)

struct op {
	bool write;
	uint64_t value; /* PRIOR: what was there before */
	uint64_t begin, end;
	struct history_op *handle;
};

static uint64_t chance;

static unsigned below(unsigned n)
{
	chance = chance * 6364136223846793005 + 1442695040888963407;
	return (unsigned)((chance >> 33) % n);
}

/* Whether OPS that are not DONE have an order that explains them; VALUE is there now. */
static bool order_exists(const struct op *ops, unsigned count, unsigned done, uint64_t value)
{
	uint64_t first_end = NEVER;
	bool left = false;

	for (unsigned i = 0; i < count; i++) {
		if (done & 1u << i)
			continue;
		left |= ops[i].end != NEVER || !ops[i].write;
		if (ops[i].end < first_end)
			first_end = ops[i].end;
	}
	if (!left)
		return true;
	for (unsigned i = 0; i < count; i++) {
		if (done & 1u << i || ops[i].begin > first_end)
			continue;
		if (!ops[i].write && ops[i].value != value)
			continue;
		if (order_exists(ops, count, done | 1u << i, ops[i].value))
			return true;
	}
	return false;
}

/* A history of which about half can be explained: reads return what was there, mostly. */
static unsigned make(struct op *ops)
{
	unsigned count = 2 + below(OPS_MAX - 1), writes = 0;
	unsigned span = 4 + below(30), lie = below(2) ? 0 : 60;
	uint64_t at[OPS_MAX];

	for (unsigned i = 0; i < count; i++) {
		struct op *op = &ops[i];

		op->begin = 1 + below(span);
		op->end = op->begin + below(1 + span / 2);
		at[i] = op->begin + below((unsigned)(op->end - op->begin) + 1);
		op->write = below(2);
		op->value = 0;
		if (op->write) {
			op->value = ++writes;
			if (below(4) == 0) {
				at[i] = below(3) ? op->begin + below(span) : NEVER;
				op->end = NEVER;
			}
		}
	}
	for (unsigned i = 0; i < count; i++) {
		uint64_t best = 0;

		if (ops[i].write)
			continue;
		ops[i].value = PRIOR;
		for (unsigned w = 0; w < count; w++) {
			if (ops[w].write && at[w] <= at[i] && at[w] > best) {
				best = at[w];
				ops[i].value = ops[w].value;
			}
		}
		if (below(100) < lie)
			ops[i].value = below(writes + 1) ? 1 + below(writes ? writes : 1) : PRIOR;
	}
	return count;
}

/* Plays OPS in the order of their times; begins go before ends. */
static bool accepts(struct op *ops, unsigned count, uint64_t last)
{
	struct history *history = history_new(3, 100);
	bool fine = true;

	for (uint64_t now = 1; now <= last; now++) {
		for (unsigned i = 0; i < count; i++) {
			if (ops[i].begin != now)
				continue;
			if (ops[i].write)
				ops[i].handle =
					history_begin_write(history, 1, ops[i].value, now, 0);
			else
				ops[i].handle = history_begin_read(history, 1, now, 0);
		}
		/* A fate that stays unknown is known to be so at once, later, or never. */
		for (unsigned i = 0; i < count; i++) {
			if (ops[i].write && ops[i].end == NEVER && ops[i].begin <= now &&
			    ops[i].handle != NULL && i % 3 > 0 && now - ops[i].begin >= i % 3 * 4) {
				history_end_write(history, ops[i].handle, false, now);
				ops[i].handle = NULL;
			}
		}
		for (unsigned i = 0; i < count; i++) {
			if (ops[i].end != now)
				continue;
			if (ops[i].write) {
				history_end_write(history, ops[i].handle, true, now);
			} else {
				enum history_verdict verdict =
					history_end_read(history, ops[i].handle, ops[i].value, now);

				ck_assert_int_ne(verdict, HISTORY_UNJUDGED);
				fine &= verdict == HISTORY_FINE;
			}
		}
	}
	history_free(history);
	return fine;
}

START_TEST(verdicts_are_those_of_trying_every_order)
{
	unsigned explained = 0, rounds = 40000;

	chance = 1000 + (uint64_t)_i;
	for (unsigned round = 0; round < rounds; round++) {
		struct op ops[OPS_MAX] = { 0 };
		uint64_t seed = chance;
		unsigned count = make(ops);
		bool wanted = order_exists(ops, count, 0, PRIOR);
		bool got = accepts(ops, count, 100);

		explained += wanted;
		if (wanted == got)
			continue;
		for (unsigned i = 0; i < count; i++)
			printf("%s %" PRIx64 ": %" PRIu64 " to %" PRIx64 "\n",
			       ops[i].write ? "write" : "read", ops[i].value, ops[i].begin,
			       ops[i].end);
		ck_abort_msg("seed %" PRIu64 ": an order %s", seed,
			     wanted ? "exists" : "does not exist");
	}
	ck_assert_uint_gt(explained, rounds / 4);
	ck_assert_uint_lt(explained, rounds * 9 / 10);
}
END_TEST

static struct history *h;
static uint64_t t;

static void setup(void)
{
	h = history_new(10, 1000);
	t = 1;
}

static void teardown(void)
{
	history_free(h);
}

static void put(uint64_t value, bool known)
{
	struct history_op *op = history_begin_write(h, 0, value, t++, 3);

	history_end_write(h, op, known, t++);
}

static enum history_verdict get(uint64_t value)
{
	struct history_op *op = history_begin_read(h, 0, t++, 4);

	return history_end_read(h, op, value, t++);
}

static unsigned versions(void)
{
	struct history_value values[64];

	return history_values(h, 0, values, 64);
}

START_TEST(a_stale_read_comes_with_both_histories)
{
	const struct history_conflict *conflict = history_conflict(h);

	put(10, true); /* 1 to 2 */
	ck_assert_int_eq(get(10), HISTORY_FINE);
	put(11, true); /* 5 to 6 */
	ck_assert_int_eq(get(11), HISTORY_FINE);
	ck_assert_int_eq(get(10), HISTORY_STALE);
	ck_assert(conflict->read_known && conflict->other_known);
	ck_assert_uint_eq(conflict->read.value, 10);
	ck_assert_uint_eq(conflict->read.write.begin, 1);
	ck_assert_uint_eq(conflict->read.write.end, 2);
	ck_assert_uint_eq(conflict->read.write.who, 3);
	ck_assert_uint_eq(conflict->read.reads, 1);
	ck_assert_uint_eq(conflict->read.first_read.begin, 3);
	ck_assert_uint_eq(conflict->other.value, 11);
	ck_assert_uint_eq(conflict->other.write.begin, 5);
	ck_assert_uint_eq(conflict->other.reads, 1);
	ck_assert_uint_eq(conflict->other.last_read.begin, 7);
	ck_assert_uint_eq(conflict->other.last_read.who, 4);
}
END_TEST

START_TEST(what_was_there_before_is_one_value_until_it_is_overwritten)
{
	ck_assert_int_eq(get(PRIOR), HISTORY_FINE);
	ck_assert_int_eq(get(PRIOR + 1), HISTORY_STRANGE);
	ck_assert_int_eq(get(PRIOR), HISTORY_FINE);
	put(1, true);
	ck_assert_int_eq(get(1), HISTORY_FINE);
	ck_assert_int_eq(get(PRIOR), HISTORY_STALE);
}
END_TEST

START_TEST(an_unknown_write_may_happen_late_but_only_once)
{
	put(1, true);
	put(2, false);
	put(3, true);
	ck_assert_int_eq(get(3), HISTORY_FINE);
	ck_assert_int_eq(get(2), HISTORY_FINE);
	ck_assert_int_eq(get(3), HISTORY_STALE);
	put(4, true);
	ck_assert_int_eq(get(2), HISTORY_STALE);
	ck_assert_int_eq(get(4), HISTORY_FINE);
}
END_TEST

START_TEST(memory_is_what_may_still_be_read)
{
	for (uint64_t value = 1; value < 100000; value++)
		put(value, true);
	ck_assert_uint_eq(versions(), 1);
	ck_assert_int_eq(get(5), HISTORY_STALE);
	ck_assert(!history_conflict(h)->read_known);
	ck_assert_uint_eq(history_conflict(h)->other.value, 99999);
}
END_TEST

START_TEST(unknown_writes_are_bounded_and_the_forgotten_are_not_judged)
{
	for (uint64_t value = 1; value <= 1000; value++)
		put(value, false);
	put(1001, true);
	ck_assert_uint_eq(versions(), HISTORY_UNKNOWN_MAX + 1);
	ck_assert_uint_eq(history_forgotten(h, 0), 1000 - HISTORY_UNKNOWN_MAX);
	ck_assert_int_eq(get(3), HISTORY_UNJUDGED);
	ck_assert_int_eq(get(1000), HISTORY_FINE);
	put(1002, true);
	put(1003, true);
	ck_assert_int_eq(get(1000), HISTORY_STALE);
	ck_assert_int_eq(get(1002), HISTORY_STALE);
	ck_assert_int_eq(get(999), HISTORY_FINE);
}
END_TEST

START_TEST(an_open_read_keeps_what_it_may_return)
{
	struct history_op *slow;

	put(1, true);
	slow = history_begin_read(h, 0, t++, 4);
	for (uint64_t value = 2; value < 50; value++)
		put(value, true);
	ck_assert(history_possible(h, slow, 1));
	ck_assert(history_possible(h, slow, 20));
	ck_assert(!history_possible(h, slow, HISTORY_PRIOR));
	ck_assert_int_eq(history_end_read(h, slow, 20, t++), HISTORY_FINE);
	ck_assert_uint_eq(versions(), 1);
	slow = history_begin_read(h, 0, t++, 4);
	ck_assert(!history_possible(h, slow, 20));
	ck_assert(history_possible(h, slow, 49));
	history_drop_read(h, slow, t++);
}
END_TEST

/* Write 3 is overwritten by what read 2 proves, before anybody answers it. */
START_TEST(a_value_can_die_before_its_write_is_answered)
{
	struct history_op *w2 = history_begin_write(h, 0, 2, 11, 0), *w1, *w3, *r2, *r3;

	r3 = history_begin_read(h, 0, 14, 0);
	history_end_write(h, w2, true, 16);
	w3 = history_begin_write(h, 0, 3, 16, 0);
	w1 = history_begin_write(h, 0, 4, 17, 0);
	ck_assert_int_eq(history_end_read(h, r3, 3, 18), HISTORY_FINE);
	r2 = history_begin_read(h, 0, 20, 0);
	history_end_write(h, w1, true, 27);
	r3 = history_begin_read(h, 0, 28, 0);
	ck_assert_int_eq(history_end_read(h, r2, 2, 31), HISTORY_FINE);
	ck_assert_int_eq(history_end_read(h, r3, 3, 35), HISTORY_STALE);
	ck_assert_uint_eq(versions(), 1);
	history_end_write(h, w3, true, 36);
	ck_assert_uint_eq(versions(), 1);
}
END_TEST

START_TEST(seeds_of_an_earlier_run_are_all_it_may_hold)
{
	history_seed(h, 0, 5, true, false);
	history_seed(h, 0, 6, true, false);
	history_seed(h, 0, 7, false, false);
	ck_assert_int_eq(get(PRIOR), HISTORY_STRANGE);
	ck_assert_int_eq(get(4), HISTORY_STALE);
	ck_assert_int_eq(get(6), HISTORY_FINE);
	ck_assert_int_eq(get(5), HISTORY_STALE);
	ck_assert_int_eq(get(7), HISTORY_FINE);
	ck_assert_int_eq(get(6), HISTORY_STALE);
}
END_TEST

START_TEST(without_memory_nothing_is_reported)
{
	struct history *small = history_new(2, 1);
	struct history_op *first = history_begin_write(small, 0, 1, 1, 0), *second, *read;

	second = history_begin_write(small, 0, 2, 1, 0);
	ck_assert_ptr_null(second);
	history_end_write(small, second, true, 2);
	history_end_write(small, first, true, 2);
	read = history_begin_read(small, 0, 3, 0);
	ck_assert_ptr_null(read);
	ck_assert_int_eq(history_end_read(small, read, 1, 4), HISTORY_UNJUDGED);
	ck_assert_uint_eq(history_forgotten(small, 0), 2);
	history_free(small);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("history");
	TCase *tcase = tcase_create("history");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, verdicts_are_those_of_trying_every_order, 0, 4);
	tcase_add_test(tcase, a_stale_read_comes_with_both_histories);
	tcase_add_test(tcase, what_was_there_before_is_one_value_until_it_is_overwritten);
	tcase_add_test(tcase, an_unknown_write_may_happen_late_but_only_once);
	tcase_add_test(tcase, memory_is_what_may_still_be_read);
	tcase_add_test(tcase, unknown_writes_are_bounded_and_the_forgotten_are_not_judged);
	tcase_add_test(tcase, an_open_read_keeps_what_it_may_return);
	tcase_add_test(tcase, a_value_can_die_before_its_write_is_answered);
	tcase_add_test(tcase, seeds_of_an_earlier_run_are_all_it_may_hold);
	tcase_add_test(tcase, without_memory_nothing_is_reported);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
