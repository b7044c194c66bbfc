/* SPDX-License-Identifier: MIT */
/* Object pools: fixed memory, last in first out, counts. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "core/pool.h"

static const size_t sizes[] = { 1, 8, 63, 64, 65, 200, 4096 };

START_TEST(all_objects_are_distinct_aligned_and_zero_and_then_there_is_none)
{
	enum { COUNT = 37 };
	static const uint8_t zeroes[4096];
	uint8_t *objects[COUNT];
	struct pool pool;

	ck_assert_int_eq(pool_init(&pool, sizes[_i], COUNT), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		objects[i] = pool_get(&pool);
		ck_assert_ptr_nonnull(objects[i]);
		ck_assert_uint_eq((uintptr_t)objects[i] % 64, 0);
		ck_assert_mem_eq(objects[i], zeroes, sizes[_i]);
		memset(objects[i], (int)i + 1, sizes[_i]);
		ck_assert_uint_eq(pool_used(&pool), i + 1);
	}
	ck_assert_ptr_null(pool_get(&pool));
	for (unsigned i = 0; i < COUNT; i++) {
		ck_assert_int_eq(objects[i][0], (int)i + 1);
		ck_assert_int_eq(objects[i][sizes[_i] - 1], (int)i + 1);
	}
	for (unsigned i = 0; i < COUNT; i++)
		pool_put(&pool, objects[i]);
	ck_assert_uint_eq(pool_used(&pool), 0);
	ck_assert_uint_eq(pool.lowest, 0);
	pool_destroy(&pool);
}
END_TEST

START_TEST(the_last_given_back_is_the_first_taken)
{
	struct pool pool;
	void *a, *b;

	ck_assert_int_eq(pool_init(&pool, 100, 4), 0);
	a = pool_get(&pool);
	b = pool_get(&pool);
	ck_assert_uint_eq(pool.lowest, 2);
	pool_put(&pool, b);
	pool_put(&pool, a);
	ck_assert_ptr_eq(pool_get(&pool), a);
	ck_assert_ptr_eq(pool_get(&pool), b);
	pool_put(&pool, a);
	pool_put(&pool, b);
	pool_destroy(&pool);
}
END_TEST

START_TEST(sizes_that_cannot_be_are_refused)
{
	struct pool pool;

	ck_assert_int_eq(pool_init(&pool, 0, 4), -EINVAL);
	ck_assert_int_eq(pool_init(&pool, 64, 0), -EINVAL);
	ck_assert_int_eq(pool_init(&pool, SIZE_MAX, 1), -EINVAL);
	ck_assert_int_eq(pool_init(&pool, SIZE_MAX / 4, 8), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pool");
	TCase *tc = tcase_create("pool");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, all_objects_are_distinct_aligned_and_zero_and_then_there_is_none, 0,
			    (int)ARRAY_LEN(sizes));
	tcase_add_test(tc, the_last_given_back_is_the_first_taken);
	tcase_add_test(tc, sizes_that_cannot_be_are_refused);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
