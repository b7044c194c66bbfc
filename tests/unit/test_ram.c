/* SPDX-License-Identifier: MIT */
/* The ram leaf against a plain array, over block sizes, iov shapes and offsets. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backstore/backing_int.h"
#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_env.h"

#define SIZE (1 * MIB)

static struct env *env;
static struct blk *ram;
static uint8_t model[SIZE], buf[SIZE];

static const struct {
	uint32_t block_size;
	unsigned pieces;
} shapes[] = { { 512, 1 }, { 512, 3 }, { 512, 17 }, { 4096, 1 }, { 4096, 3 }, { 4096, 17 } };

static void make(uint64_t size, uint32_t block_size, bool read_only)
{
	struct backing_spec spec = {
		.name = "scratch",
		.driver = BACKING_RAM,
		.size_bytes = size,
		.block_size = block_size,
		.read_only = read_only,
	};

	ram = ram_new(env, &spec);
	ck_assert_ptr_nonnull(ram);
}

static void setup(void)
{
	env = fake_env_new(1);
}

static void teardown(void)
{
	blk_unref(ram);
	fake_env_run(env);
	fake_env_free(env);
}

static void check_against_model(void)
{
	ck_assert_int_eq(fake_blk_rw(ram, IO_READ, 0, buf, SIZE, 1, 0), 0);
	ck_assert_mem_eq(buf, model, SIZE);
}

START_TEST(sixty_four_gigabytes_take_no_memory_and_read_zeroes)
{
	uint8_t block[4096];

	make(64 * GIB, 4096, false);
	memset(block, 1, sizeof(block));
	ck_assert_int_eq(fake_blk_rw(ram, IO_READ, 64 * GIB - 4096, block, 4096, 1, 0), 0);
	for (unsigned i = 0; i < sizeof(block); i++)
		if (block[i] != 0)
			ck_abort_msg("byte %u is not zero", i);
}
END_TEST

START_TEST(what_was_written_is_read_whatever_the_shape_and_offset)
{
	uint32_t bs = shapes[_i].block_size;
	unsigned pieces = shapes[_i].pieces;

	make(SIZE, bs, false);
	memset(model, 0, SIZE);
	for (unsigned round = 0; round < 64; round++) {
		uint64_t blocks = pieces + round % 5;
		uint64_t at = round * 7919 % (SIZE / bs - blocks) * bs;

		fake_fill(buf, blocks * bs, round);
		memcpy(model + at, buf, blocks * bs);
		ck_assert_int_eq(fake_blk_rw(ram, IO_WRITE, at, buf, blocks * bs, pieces,
					     round % 2 ? IO_FUA : 0),
				 0);
		memset(buf, 0xee, blocks * bs);
		ck_assert_int_eq(fake_blk_rw(ram, IO_READ, at, buf, blocks * bs, pieces, 0), 0);
		ck_assert_mem_eq(buf, model + at, blocks * bs);
	}
	check_against_model();
}
END_TEST

/* In blocks of 512: crossing, inside, and at the edges of pages. */
static const struct {
	uint64_t offset, length;
} ranges[] = {
	{ 0, 512 },     { 512, 3584 },   { 4096, 4096 }, { 3584, 1024 },   { 3584, 9216 },
	{ 512, 16384 }, { 8192, 65536 }, { 0, 1048576 }, { 1048064, 512 }, { 4608, 512 },
};

START_TEST(unmap_and_write_zeroes_clear_exactly_their_range)
{
	enum io_op op = _i % 2 ? IO_UNMAP : IO_WRITE_ZEROES;
	uint64_t offset = ranges[_i / 2].offset, length = ranges[_i / 2].length;
	struct io io;

	make(SIZE, 512, false);
	fake_fill(model, SIZE, 3);
	ck_assert_int_eq(fake_blk_rw(ram, IO_WRITE, 0, model, SIZE, 4, 0), 0);
	io_init(&io, op, offset, length, NULL, 0);
	ck_assert_int_eq(fake_blk_do(ram, &io, 0), 0);
	memset(model + offset, 0, length);
	check_against_model();
}
END_TEST

/* One beyond RAM_INLINE_MAX goes to the worker: the same result, and not before a turn. */
START_TEST(long_ios_are_worked_on_off_the_loop)
{
	uint64_t length = RAM_INLINE_MAX + 512 * (uint64_t)_i;
	uint8_t *big = malloc(length), *again = malloc(length);
	struct io io;

	ck_assert(big && again);
	make(2 * RAM_INLINE_MAX, 512, false);
	fake_fill(big, length, 4);
	ck_assert_int_eq(fake_blk_rw(ram, IO_WRITE, 512, big, length, 5, IO_FUA), 0);
	ck_assert_int_eq(fake_blk_rw(ram, IO_READ, 512, again, length, 7, 0), 0);
	ck_assert_mem_eq(big, again, length);
	io_init(&io, IO_UNMAP, 512, length, NULL, 0);
	ck_assert_int_eq(fake_blk_do(ram, &io, 0), 0);
	ck_assert_int_eq(fake_blk_rw(ram, IO_READ, 512, again, length, 1, 0), 0);
	ck_assert(again[0] == 0 && memcmp(again, again + 1, length - 1) == 0);
	free(big);
	free(again);
}
END_TEST

static void ended(struct io *io, void *arg)
{
	ck_assert_int_eq(io->error, 0);
	*(bool *)arg = true;
}

/* Whether a write of one block at OFFSET has ended once what is deferred has run. */
static bool write_is_done_at_once(uint64_t offset)
{
	struct iovec iov = { buf, 512 };
	bool done = false, at_once;
	struct io io;

	io_init(&io, IO_WRITE, offset, 512, &iov, 1);
	blk_submit(ram, &io, ended, &done);
	env_run_deferred(env);
	at_once = done;
	fake_env_run(env);
	ck_assert(done);
	return at_once;
}

START_TEST(the_first_write_to_a_piece_is_done_off_the_loop)
{
	struct io io;

	make(64 * MIB, 512, false);
	/* The last block of one piece, the first of another, and the first of them again. */
	ck_assert(!write_is_done_at_once(6 * MIB - 512));
	ck_assert(!write_is_done_at_once(6 * MIB));
	ck_assert(write_is_done_at_once(4 * MIB));
	/* Unmapped whole it is as it was; in part it still has its memory. */
	io_init(&io, IO_UNMAP, 3 * MIB, 4 * MIB, NULL, 0);
	ck_assert_int_eq(fake_blk_do(ram, &io, 0), 0);
	ck_assert(!write_is_done_at_once(4 * MIB));
	ck_assert(write_is_done_at_once(6 * MIB));
}
END_TEST

START_TEST(a_read_only_device_refuses_what_modifies)
{
	make(SIZE, 512, true);
	ck_assert_int_eq(fake_blk_rw(ram, IO_WRITE, 0, buf, 512, 1, 0), -EROFS);
	ck_assert_int_eq(fake_blk_rw(ram, IO_READ, 0, buf, 512, 1, 0), 0);
}
END_TEST

START_TEST(flush_succeeds_and_the_limits_are_the_specs)
{
	struct io io;

	make(SIZE, 4096, false);
	io_init(&io, IO_FLUSH, 0, 0, NULL, 0);
	ck_assert_int_eq(fake_blk_do(ram, &io, 0), 0);
	ck_assert_str_eq(ram->name, "scratch");
	ck_assert_str_eq(ram->ops->driver, "ram");
	ck_assert_uint_eq(ram->size_bytes, SIZE);
	ck_assert_uint_eq(ram->physical_block, 4096);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ram");
	TCase *tc = tcase_create("ram");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, sixty_four_gigabytes_take_no_memory_and_read_zeroes);
	tcase_add_loop_test(tc, what_was_written_is_read_whatever_the_shape_and_offset, 0,
			    ARRAY_LEN(shapes));
	tcase_add_loop_test(tc, unmap_and_write_zeroes_clear_exactly_their_range, 0,
			    2 * ARRAY_LEN(ranges));
	tcase_add_loop_test(tc, long_ios_are_worked_on_off_the_loop, 0, 2);
	tcase_add_test(tc, the_first_write_to_a_piece_is_done_off_the_loop);
	tcase_add_test(tc, a_read_only_device_refuses_what_modifies);
	tcase_add_test(tc, flush_succeeds_and_the_limits_are_the_specs);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
