/* SPDX-License-Identifier: MIT */
/* Buffer lists: whole units, all or nothing, slices and copies. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"

static const uint64_t lengths[] = { 0,
				    1,
				    512,
				    BUF_UNIT - 1,
				    BUF_UNIT,
				    BUF_UNIT + 1,
				    5 * BUF_UNIT - 512,
				    BUF_INLINE *BUF_UNIT,
				    BUF_INLINE *BUF_UNIT + 1,
				    MIB + 4096,
				    8 * MIB,
				    BUF_LIST_MAX };

START_TEST(a_list_holds_exactly_its_length_in_aligned_units)
{
	uint64_t length = lengths[_i], sum = 0;
	struct buf_pool *pool = buf_pool_new(BUF_LIST_MAX + BUF_UNIT);
	unsigned units = buf_pool_units(pool);
	struct buf_list list;

	ck_assert(buf_take(pool, length, &list));
	ck_assert_uint_eq(list.length, length);
	ck_assert_uint_eq(list.count, (length + BUF_UNIT - 1) / BUF_UNIT);
	for (unsigned i = 0; i < list.count; i++) {
		ck_assert_uint_eq((uintptr_t)list.iov[i].iov_base % 4096, 0);
		if (i + 1 < list.count)
			ck_assert_uint_eq(list.iov[i].iov_len, BUF_UNIT);
		sum += list.iov[i].iov_len;
		memset(list.iov[i].iov_base, (int)i, list.iov[i].iov_len);
	}
	ck_assert_uint_eq(sum, length);
	for (unsigned i = 0; i < list.count; i++)
		ck_assert_int_eq(*(uint8_t *)list.iov[i].iov_base, (uint8_t)i);
	ck_assert_uint_eq(buf_pool_free_units(pool), units - buf_units(length));
	buf_give(pool, &list);
	ck_assert_uint_eq(list.count + list.length, 0);
	ck_assert_uint_eq(buf_pool_free_units(pool), units);
	buf_pool_free(pool);
}
END_TEST

START_TEST(a_list_that_does_not_fit_takes_nothing)
{
	struct buf_pool *pool = buf_pool_new(20 * BUF_UNIT);
	struct buf_list a, b, c;

	/* 19 units of data and one that holds the table. */
	ck_assert(!buf_take(pool, 20 * BUF_UNIT, &a));
	ck_assert_uint_eq(buf_pool_free_units(pool), 20);
	ck_assert(buf_take(pool, 19 * BUF_UNIT, &a));
	ck_assert_uint_eq(buf_pool_free_units(pool), 0);
	ck_assert(!buf_take(pool, 1, &b));
	ck_assert(buf_take(pool, 0, &b));
	buf_give(pool, &a);
	ck_assert(buf_take(pool, 17 * BUF_UNIT, &a));
	ck_assert(!buf_take(pool, 4 * BUF_UNIT, &c));
	ck_assert(buf_take(pool, 3 * BUF_UNIT, &c));
	buf_give(pool, &a);
	buf_give(pool, &b);
	buf_give(pool, &c);
	buf_pool_free(pool);
}
END_TEST

START_TEST(the_size_is_rounded_up_and_none_is_refused)
{
	struct buf_pool *pool = buf_pool_new(BUF_UNIT + 1);

	ck_assert_uint_eq(buf_pool_units(pool), 2);
	buf_pool_free(pool);
	ck_assert_ptr_null(buf_pool_new(0));
	ck_assert_ptr_null(buf_pool_new(UINT64_MAX));
}
END_TEST

START_TEST(memory_is_touched_step_by_step_while_it_is_used)
{
	struct buf_pool *pool = buf_pool_new_untouched(5 * MIB);
	struct buf_list list;

	ck_assert(buf_take(pool, 5 * MIB - BUF_UNIT, &list));
	for (unsigned i = 0; i < list.count; i++)
		memset(list.iov[i].iov_base, (int)i + 1, list.iov[i].iov_len);
	ck_assert(buf_pool_touch(pool));
	ck_assert(buf_pool_touch(pool));
	ck_assert(!buf_pool_touch(pool));
	ck_assert(!buf_pool_touch(pool));
	for (unsigned i = 0; i < list.count; i++)
		ck_assert_int_eq(*(uint8_t *)list.iov[i].iov_base, (uint8_t)(i + 1));
	buf_give(pool, &list);
	buf_pool_free(pool);
}
END_TEST

START_TEST(the_same_memory_comes_back_in_the_same_order)
{
	struct buf_pool *pool = buf_pool_new(32 * BUF_UNIT);
	struct iovec before[25];
	struct buf_list list;

	ck_assert(buf_take(pool, 25 * BUF_UNIT, &list));
	memcpy(before, list.iov, sizeof(before));
	buf_give(pool, &list);
	ck_assert(buf_take(pool, 25 * BUF_UNIT, &list));
	ck_assert_mem_eq(list.iov, before, sizeof(before));
	buf_give(pool, &list);
	buf_pool_free(pool);
}
END_TEST

START_TEST(copies_and_slices_agree_at_every_unit_border)
{
	static const uint64_t offsets[] = {
		0, 1, BUF_UNIT - 1, BUF_UNIT, BUF_UNIT + 1, 3 * BUF_UNIT
	};
	static const uint64_t sizes[] = { 0, 1, 2, BUF_UNIT - 1, BUF_UNIT, 2 * BUF_UNIT + 2 };
	const uint64_t total = 6 * BUF_UNIT;
	struct buf_pool *pool = buf_pool_new(total);
	uint8_t *model = calloc(1, total), *back = malloc(total);
	struct iovec iov[8];
	struct buf_list list;
	uint64_t covered;

	ck_assert(buf_take(pool, total, &list));
	buf_zero(&list, 0, total);
	for (unsigned o = 0; o < ARRAY_LEN(offsets); o++) {
		for (unsigned s = 0; s < ARRAY_LEN(sizes); s++) {
			uint64_t at = offsets[o], size = sizes[s];
			unsigned n;

			for (uint64_t i = 0; i < size; i++)
				model[at + i] = (uint8_t)(i * 7 + o * 16 + s + 1);
			buf_write(&list, at, model + at, size);
			buf_read(&list, 0, back, total);
			ck_assert_mem_eq(back, model, total);
			n = buf_slice(&list, at, size, iov, 8, &covered);
			ck_assert_uint_eq(covered, size);
			for (unsigned i = 0; i < n; at += iov[i].iov_len, i++)
				ck_assert_mem_eq(iov[i].iov_base, model + at, iov[i].iov_len);
			ck_assert_uint_eq(at, offsets[o] + size);
		}
	}
	buf_zero(&list, BUF_UNIT - 3, 6);
	memset(model + BUF_UNIT - 3, 0, 6);
	buf_read(&list, 0, back, total);
	ck_assert_mem_eq(back, model, total);
	ck_assert_uint_eq(buf_slice(&list, 1, 4 * BUF_UNIT, iov, 2, &covered), 2);
	ck_assert_uint_eq(covered, 2 * BUF_UNIT - 1);
	buf_give(pool, &list);
	buf_pool_free(pool);
	free(model);
	free(back);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("buf");
	TCase *tc = tcase_create("buf");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, a_list_holds_exactly_its_length_in_aligned_units, 0,
			    (int)ARRAY_LEN(lengths));
	tcase_add_test(tc, a_list_that_does_not_fit_takes_nothing);
	tcase_add_test(tc, the_size_is_rounded_up_and_none_is_refused);
	tcase_add_test(tc, memory_is_touched_step_by_step_while_it_is_used);
	tcase_add_test(tc, the_same_memory_comes_back_in_the_same_order);
	tcase_add_test(tc, copies_and_slices_agree_at_every_unit_border);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
