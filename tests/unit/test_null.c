/* SPDX-License-Identifier: MIT */
/* The null leaf: zeroes out, nothing kept. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "backstore/backing_int.h"
#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_env.h"

static struct env *env;
static struct blk *null;
static uint8_t buf[64 * KIB];

static const struct {
	uint32_t block_size;
	unsigned pieces;
} shapes[] = { { 512, 1 }, { 512, 9 }, { 4096, 1 }, { 4096, 9 } };

static void make(uint32_t block_size, bool read_only)
{
	struct backing_spec spec = {
		.name = "void",
		.driver = BACKING_NULL,
		.size_bytes = 1 << 30,
		.block_size = block_size,
		.read_only = read_only,
	};

	null = null_new(env, &spec);
	ck_assert_ptr_nonnull(null);
}

static void setup(void)
{
	env = fake_env_new(1);
}

static void teardown(void)
{
	blk_unref(null);
	fake_env_run(env);
	fake_env_free(env);
}

START_TEST(writes_are_swallowed_and_reads_are_zeroes)
{
	make(shapes[_i].block_size, false);
	memset(buf, 0xa5, sizeof(buf));
	ck_assert_int_eq(
		fake_blk_rw(null, IO_WRITE, 4096, buf, sizeof(buf), shapes[_i].pieces, IO_FUA), 0);
	ck_assert_uint_eq(buf[100], 0xa5);
	ck_assert_int_eq(fake_blk_rw(null, IO_READ, 4096, buf, sizeof(buf), shapes[_i].pieces, 0),
			 0);
	ck_assert(buf[0] == 0 && memcmp(buf, buf + 1, sizeof(buf) - 1) == 0);
}
END_TEST

START_TEST(a_read_only_one_refuses_writes_and_unmaps)
{
	static const enum io_op ops[] = { IO_UNMAP, IO_WRITE_ZEROES };
	struct io io;

	make(4096, _i == 1);
	for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
		io_init(&io, ops[i], 0, 1 << 30, NULL, 0);
		ck_assert_int_eq(fake_blk_do(null, &io, IO_FUA), _i == 1 ? -EROFS : 0);
	}
	io_init(&io, IO_FLUSH, 0, 0, NULL, 0);
	ck_assert_int_eq(fake_blk_do(null, &io, 0), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("null");
	TCase *tc = tcase_create("null");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, writes_are_swallowed_and_reads_are_zeroes, 0, ARRAY_LEN(shapes));
	tcase_add_loop_test(tc, a_read_only_one_refuses_writes_and_unmaps, 0, 2);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
