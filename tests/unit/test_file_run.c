/* SPDX-License-Identifier: MIT */
/* STATUS of every leaf, and of real files with holes. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backstore/backing_int.h"
#include "backstore/fault.h"
#include "backstore/pagemap.h"
#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_env.h"

#define SIZE (8 * MIB)

static struct env *env;
static struct io io; /* the last one */
static uint8_t buf[2 * MIB];

static void quiet(enum log_level level, const char *line)
{
	(void)level, (void)line;
}

static void setup(void)
{
	log_redirect(quiet);
	env = fake_env_new(1);
}

static void teardown(void)
{
	fake_env_free(env);
}

static struct backing_spec spec(uint32_t block)
{
	return (struct backing_spec){ .name = "x", .size_bytes = SIZE, .block_size = block };
}

static void close_blk(struct blk *blk)
{
	blk_unref(blk);
	fake_env_run(env);
}

static void expect(struct blk *blk, uint64_t offset, uint64_t length, enum io_run run,
		   uint64_t run_bytes)
{
	io_init(&io, IO_STATUS, offset, length, NULL, 0);
	ck_assert_int_eq(fake_blk_do(blk, &io, 0), 0);
	ck_assert_int_eq(io.run, run);
	ck_assert_uint_eq(io.run_bytes, run_bytes);
}

static void put(struct blk *blk, uint64_t offset, uint64_t length)
{
	ck_assert_int_eq(fake_blk_rw(blk, IO_WRITE, offset, buf, length, 1, 0), 0);
}

static void clear(struct blk *blk, enum io_op op, uint64_t offset, uint64_t length)
{
	io_init(&io, op, offset, length, NULL, 0);
	ck_assert_int_eq(fake_blk_do(blk, &io, 0), 0);
}

START_TEST(a_ram_device_knows_what_was_written_and_not_unmapped_since)
{
	struct backing_spec s = spec(512);
	struct blk *ram = ram_new(env, &s);

	expect(ram, 0, SIZE, IO_RUN_ZEROES, SIZE);
	put(ram, 8192 + 512, 1024);
	expect(ram, 0, SIZE, IO_RUN_ZEROES, 8192);
	expect(ram, 8192, SIZE - 8192, IO_RUN_DATA, 4096);
	expect(ram, 8192 + 512, 512, IO_RUN_DATA, 512);
	expect(ram, 12288, SIZE - 12288, IO_RUN_ZEROES, SIZE - 12288);
	clear(ram, IO_UNMAP, 8192 + 512, 1024); /* a part of a page */
	expect(ram, 8192, 8192, IO_RUN_DATA, 4096);
	clear(ram, IO_UNMAP, 4096, 8192);
	expect(ram, 0, SIZE, IO_RUN_ZEROES, SIZE);
	clear(ram, IO_WRITE_ZEROES, 4096, 4096);
	expect(ram, 4096, 8192, IO_RUN_DATA, 4096);
	close_blk(ram);
}
END_TEST

START_TEST(what_is_worked_on_off_the_loop_counts_too)
{
	struct backing_spec s = spec(4096);
	struct blk *ram = ram_new(env, &s);

	put(ram, 4096, sizeof(buf));
	expect(ram, 4096, SIZE - 4096, IO_RUN_DATA, sizeof(buf));
	clear(ram, IO_UNMAP, 0, RAM_INLINE_MAX + 8192);
	expect(ram, 0, SIZE, IO_RUN_ZEROES, RAM_INLINE_MAX + 8192);
	close_blk(ram);
}
END_TEST

START_TEST(a_null_device_holds_nothing)
{
	struct backing_spec s = spec(512);
	struct blk *null = null_new(env, &s);

	put(null, 0, 4096);
	expect(null, 512, SIZE - 512, IO_RUN_ZEROES, SIZE - 512);
	close_blk(null);
}
END_TEST

START_TEST(a_device_that_says_nothing_has_said_unknown)
{
	struct fake_blk *fake = fake_blk_new(env, SIZE, 512, 0);
	struct fake_wait wait = { 0 };

	io_init(&io, IO_STATUS, 512, 1024, NULL, 0);
	io.run = IO_RUN_ZEROES; /* of its life before */
	blk_submit(&fake->blk, &io, fake_wait_done, &wait);
	fake_blk_end(fake, 0);
	fake_env_run(env);
	ck_assert_int_eq(wait.error, 0);
	ck_assert_int_eq(io.run, IO_RUN_UNKNOWN);
	ck_assert_uint_eq(io.run_bytes, 1024);
	ck_assert_uint_eq(fake->blk.counts.ops[IO_STATUS], 1);
	ck_assert_uint_eq(fake->blk.counts.bytes[IO_STATUS], 0);
	close_blk(&fake->blk);
}
END_TEST

START_TEST(a_fault_filter_passes_it_on_or_fails_it)
{
	const struct fault_rule rule = { .kind = FAULT_ERROR,
					 .ops = 1u << IO_STATUS,
					 .offset = 4096,
					 .length = 512,
					 .error = -EIO };
	struct backing_spec s = spec(512);
	struct blk *blk = fault_new(ram_new(env, &s));

	put(blk, 0, 4096);
	expect(blk, 0, SIZE, IO_RUN_DATA, 4096);
	ck_assert_uint_gt(fault_add(fault_of(blk), &rule), 0);
	expect(blk, 0, 4096, IO_RUN_DATA, 4096);
	io_init(&io, IO_STATUS, 0, 8192, NULL, 0);
	ck_assert_int_eq(fake_blk_do(blk, &io, 0), -EIO);
	close_blk(blk);
}
END_TEST

/* --- files --- */

static struct file_medium medium;

static void file_make(uint32_t block)
{
	char path[] = "/tmp/test_file_run.XXXXXX";

	medium = (struct file_medium){
		.fd = mkstemp(path), .size_bytes = SIZE, .block_size = block, .physical_block = 4096
	};
	ck_assert_int_ge(medium.fd, 0);
	unlink(path);
	ck_assert_int_eq(ftruncate(medium.fd, SIZE), 0);
}

static int look(uint64_t offset, uint64_t length)
{
	io_init(&io, IO_STATUS, offset, length, NULL, 0);
	io.run = IO_RUN_UNKNOWN;
	io.run_bytes = length;
	return file_run(&medium, &io);
}

/* Whatever granularity the file system has: what is called zeroes is, and data is not missed. */
START_TEST(a_files_holes_are_zeroes_and_what_was_written_is_data)
{
	uint32_t block = _i ? 4096 : 512;
	const uint64_t at = 2 * MIB, length = 64 * KIB;
	uint64_t offset = 0;
	bool holes = false;

	file_make(block);
	memset(buf, 0x5a, length);
	ck_assert_int_eq(pwrite(medium.fd, buf, length, (off_t)at), (ssize_t)length);
	while (offset < SIZE) {
		ck_assert_int_eq(look(offset, SIZE - offset), 0);
		ck_assert_uint_gt(io.run_bytes, 0);
		ck_assert_uint_eq(io.run_bytes % block, 0);
		ck_assert_uint_le(io.run_bytes, SIZE - offset);
		if (io.run == IO_RUN_ZEROES) {
			holes = true;
			ck_assert(offset + io.run_bytes <= at || offset >= at + length);
		}
		offset += io.run_bytes;
	}
	ck_assert(holes);
	/* A range that ends earlier than its run is answered as long as it is. */
	ck_assert_int_eq(look(0, block), 0);
	ck_assert_int_eq(io.run, IO_RUN_ZEROES);
	ck_assert_uint_eq(io.run_bytes, block);
	ck_assert_int_eq(look(at, block), 0);
	ck_assert_int_eq(io.run, IO_RUN_DATA);
	ck_assert_uint_eq(io.run_bytes, block);
	close(medium.fd);
}
END_TEST

START_TEST(a_file_cut_short_under_the_question_is_no_trap)
{
	file_make(4096);
	ck_assert_int_eq(ftruncate(medium.fd, MIB), 0);
	ck_assert_int_eq(look(4 * MIB, MIB), 0);
	ck_assert_uint_eq(io.run_bytes, MIB);
	close(medium.fd);
	ck_assert_int_eq(look(0, MIB), -EBADF);
}
END_TEST

static unsigned asked;
static int answer;

static int fake_run(const struct file_medium *m, struct io *question)
{
	ck_assert_int_eq(m->fd, medium.fd);
	asked++;
	question->run = IO_RUN_DATA;
	question->run_bytes = 512;
	return answer;
}

static int64_t fake_size(const struct file_medium *m)
{
	return (int64_t)m->size_bytes;
}

static void fake_close(const struct file_medium *m)
{
	close(m->fd);
}

/* A block device has no holes to tell of. ERROR: what becomes of one of the kernel's. */
START_TEST(a_file_is_asked_off_the_loop_and_a_device_is_not)
{
	static const struct file_calls calls = { .size = fake_size,
						 .close = fake_close,
						 .run = fake_run };
	const struct backing_spec s = { .name = "image", .path = "/image" };
	struct fake_wait wait = { 0 };
	struct blk *blk;

	asked = 0;
	answer = 0;
	file_make(512);
	medium.device = _i;
	blk = file_new(env, &s, &medium, &calls);
	io_init(&io, IO_STATUS, 0, SIZE, NULL, 0);
	blk_submit(blk, &io, fake_wait_done, &wait);
	ck_assert_uint_eq(asked, 0); /* not inside the call */
	fake_env_run(env);
	ck_assert_int_eq(wait.error, 0);
	ck_assert_uint_eq(asked, !_i);
	ck_assert_int_eq(io.run, _i ? IO_RUN_UNKNOWN : IO_RUN_DATA);
	ck_assert_uint_eq(io.run_bytes, _i ? SIZE : 512);
	answer = -ESTALE;
	ck_assert_int_eq(fake_blk_do(blk, &io, 0), _i ? 0 : -EIO);
	close_blk(blk);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("file_run");
	TCase *tc = tcase_create("file_run");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_ram_device_knows_what_was_written_and_not_unmapped_since);
	tcase_add_test(tc, what_is_worked_on_off_the_loop_counts_too);
	tcase_add_test(tc, a_null_device_holds_nothing);
	tcase_add_test(tc, a_device_that_says_nothing_has_said_unknown);
	tcase_add_test(tc, a_fault_filter_passes_it_on_or_fails_it);
	tcase_add_loop_test(tc, a_files_holes_are_zeroes_and_what_was_written_is_data, 0, 2);
	tcase_add_test(tc, a_file_cut_short_under_the_question_is_no_trap);
	tcase_add_loop_test(tc, a_file_is_asked_off_the_loop_and_a_device_is_not, 0, 2);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
