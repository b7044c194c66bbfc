/* SPDX-License-Identifier: MIT */
/* RAID 0: every byte where it belongs, over a matrix of geometries; what fails when a part does. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backing_int.h"
#include "raid/raid0.h"
#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_env.h"

#define PART (300 * KIB)

static struct env *env;
static struct blk *raid0;
static struct blk *parts[RAID0_PARTS_MAX];
static unsigned part_count;
static uint8_t *mirror; /* what the array should hold */

static const struct {
	unsigned parts, chunk, block;
} geometries[] = {
	{ 1, 4096, 512 },  { 2, 4096, 512 },    { 2, 65536, 4096 }, { 3, 4096, 4096 },
	{ 3, 16384, 512 }, { 4, 65536, 512 },   { 5, 8192, 512 },   { 7, 32768, 4096 },
	{ 16, 4096, 512 }, { 16, 131072, 512 },
};

static void start(unsigned count, unsigned chunk, unsigned block)
{
	struct raid0_part use[RAID0_PARTS_MAX];

	env = fake_env_new(1);
	part_count = count;
	for (unsigned i = 0; i < count; i++) {
		const struct backing_spec spec = { .name = "part",
						   .driver = BACKING_RAM,
						   .size_bytes = PART + MIB,
						   .block_size = block };

		parts[i] = ram_new(env, &spec);
		/* Not equally long: the shortest counts. */
		use[i] = (struct raid0_part){ parts[i], MIB, PART - (i % 2) * block };
	}
	raid0 = raid0_new(env, "r0", chunk, use, count);
	ck_assert_ptr_nonnull(raid0);
	for (unsigned i = 0; i < count; i++)
		blk_unref(parts[i]);
	mirror = calloc(1, raid0->size_bytes);
	ck_assert_ptr_nonnull(mirror);
}

static void stop(void)
{
	blk_unref(raid0);
	fake_env_run(env);
	fake_env_free(env);
	free(mirror);
}

static void check_all(void)
{
	static uint8_t buf[MIB];

	for (uint64_t at = 0; at < raid0->size_bytes; at += sizeof(buf)) {
		uint64_t length = min_u64(sizeof(buf), raid0->size_bytes - at);

		ck_assert_int_eq(fake_blk_rw(raid0, IO_READ, at, buf, length, 1, 0), 0);
		ck_assert_mem_eq(buf, mirror + at, length);
	}
}

START_TEST(what_is_written_anywhere_is_read_there)
{
	unsigned block = geometries[_i].block;
	static uint8_t buf[MIB];

	start(geometries[_i].parts, geometries[_i].chunk, block);
	srand(1);
	for (unsigned round = 0; round < 300; round++) {
		uint64_t blocks = raid0->size_bytes / block;
		uint64_t at = (uint64_t)rand() % blocks * block;
		uint64_t most = min_u64(raid0->size_bytes - at, MIB);
		uint64_t length = (1 + (uint64_t)rand() % (most / block)) * block;
		unsigned pieces;

		if (round % 3)
			length = min_u64(length, (1 + (uint64_t)rand() % 32) * block);
		pieces = 1 + (unsigned)rand() % (unsigned)min_u64(length / block, 8);
		fake_fill(buf, length, round);
		ck_assert_int_eq(fake_blk_rw(raid0, IO_WRITE, at, buf, length, pieces, 0), 0);
		memcpy(mirror + at, buf, length);
	}
	check_all();
	stop();
}
END_TEST

START_TEST(zeroes_and_unmap_reach_every_part_of_the_range)
{
	struct io io;
	unsigned block = geometries[_i].block;
	static uint8_t buf[MIB];

	start(geometries[_i].parts, geometries[_i].chunk, block);
	for (uint64_t at = 0; at < raid0->size_bytes; at += MIB) {
		uint64_t length = min_u64(MIB, raid0->size_bytes - at);

		fake_fill(buf, length, at + 1);
		ck_assert_int_eq(fake_blk_rw(raid0, IO_WRITE, at, buf, length, 1, 0), 0);
		memcpy(mirror + at, buf, length);
	}
	io_init(&io, IO_UNMAP, block, raid0->size_bytes / 2, NULL, 0);
	ck_assert_int_eq(fake_blk_do(raid0, &io, 0), 0);
	memset(mirror + block, 0, raid0->size_bytes / 2);
	check_all();
	io_init(&io, IO_WRITE_ZEROES, 0, raid0->size_bytes - block, NULL, 0);
	ck_assert_int_eq(fake_blk_do(raid0, &io, 0), 0);
	memset(mirror, 0, raid0->size_bytes - block);
	check_all();
	stop();
}
END_TEST

START_TEST(chunks_go_round)
{
	uint8_t buf[16384], part[4096];

	start(3, 4096, 512);
	fake_fill(buf, sizeof(buf), 5);
	ck_assert_int_eq(fake_blk_rw(raid0, IO_WRITE, 4096, buf, sizeof(buf), 1, 0), 0);
	/* Chunks 1, 2, 3, 4: parts 1, 2, 0, 1, rows 0, 0, 1, 1. */
	ck_assert_int_eq(fake_blk_rw(parts[0], IO_READ, MIB + 4096, part, 4096, 1, 0), 0);
	ck_assert_mem_eq(part, buf + 8192, 4096);
	ck_assert_int_eq(fake_blk_rw(parts[1], IO_READ, MIB + 4096, part, 4096, 1, 0), 0);
	ck_assert_mem_eq(part, buf + 12288, 4096);
	ck_assert_uint_eq(parts[1]->counts.ops[IO_WRITE], 1);
	stop();
}
END_TEST

START_TEST(its_size_is_whole_chunks_of_the_shortest_part)
{
	start(3, 65536, 512);
	ck_assert_uint_eq(raid0->size_bytes, 3 * 4 * 65536);
	ck_assert_uint_eq(raid0->optimal_io, 3 * 65536);
	stop();
}
END_TEST

START_TEST(where_something_is_allocated_is_told_chunk_by_chunk)
{
	struct io io;
	uint8_t buf[4096];

	start(2, 65536, 512);
	fake_fill(buf, sizeof(buf), 1);
	ck_assert_int_eq(fake_blk_rw(raid0, IO_WRITE, 65536, buf, sizeof(buf), 1, 0), 0);
	io_init(&io, IO_STATUS, 0, raid0->size_bytes, NULL, 0);
	ck_assert_int_eq(fake_blk_do(raid0, &io, 0), 0);
	ck_assert_int_eq(io.run, IO_RUN_ZEROES);
	ck_assert_uint_eq(io.run_bytes, 65536);
	ck_assert_uint_eq(io.length, raid0->size_bytes);
	io_init(&io, IO_STATUS, 65536, raid0->size_bytes - 65536, NULL, 0);
	ck_assert_int_eq(fake_blk_do(raid0, &io, 0), 0);
	ck_assert_int_eq(io.run, IO_RUN_DATA);
	ck_assert_uint_eq(io.run_bytes, 4096);
	stop();
}
END_TEST

/* --- parts that the test ends by hand --- */

static struct fake_blk *fakes[3];

static void setup_fakes(void)
{
	struct raid0_part use[3];

	env = fake_env_new(1);
	for (unsigned i = 0; i < 3; i++) {
		fakes[i] = fake_blk_new(env, PART, 512, BLK_FUA | (i == 1 ? 0 : BLK_UNMAP));
		use[i] = (struct raid0_part){ &fakes[i]->blk, 0, PART };
	}
	raid0 = raid0_new(env, "r0", 4096, use, 3);
	for (unsigned i = 0; i < 3; i++)
		blk_unref(&fakes[i]->blk);
	mirror = NULL;
}

static uint8_t data[3 * 4096];
static struct iovec iov = { data, sizeof(data) };

static void send(struct io *io, struct fake_wait *wait, enum io_op op)
{
	*wait = (struct fake_wait){ 0 };
	io_init(io, op, 0, op == IO_FLUSH ? 0 : sizeof(data), op == IO_FLUSH ? NULL : &iov,
		op != IO_FLUSH);
	io->flags = op == IO_WRITE ? IO_FUA : 0;
	blk_submit(raid0, io, fake_wait_done, wait);
	fake_env_run(env);
}

START_TEST(a_part_that_fails_fails_the_whole_and_no_later_success_hides_it)
{
	struct io io;
	struct fake_wait wait;
	unsigned bad = (unsigned)_i;

	send(&io, &wait, IO_WRITE);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(fakes[i]->last_flags, IO_FUA);
		ck_assert_uint_eq(wait.calls, 0);
		fake_blk_end(fakes[i], i == bad ? -EIO : i > bad ? -ENOSPC : 0);
		fake_env_run(env);
	}
	ck_assert_uint_eq(wait.calls, 1);
	ck_assert_int_eq(wait.error, -EIO);
	blk_unref(raid0);
	fake_env_run(env);
	fake_env_free(env);
}
END_TEST

START_TEST(a_flush_is_one_of_every_part)
{
	struct io io;
	struct fake_wait wait;

	send(&io, &wait, IO_FLUSH);
	for (unsigned i = 0; i < 3; i++)
		fake_blk_end(fakes[i], i == 2 ? -EIO : 0);
	fake_env_run(env);
	ck_assert_int_eq(wait.error, -EIO);
	blk_unref(raid0);
	fake_env_run(env);
	fake_env_free(env);
}
END_TEST

START_TEST(it_can_what_all_parts_can)
{
	ck_assert_uint_eq(raid0->features, BLK_FUA);
	blk_unref(raid0);
	fake_env_run(env);
	fake_env_free(env);
}
END_TEST

#define MANY 600

START_TEST(more_at_once_than_there_are_fans_wait_their_turn)
{
	static struct io ios[MANY];
	static struct fake_wait waits[MANY];
	unsigned done = 0;

	for (unsigned i = 0; i < MANY; i++)
		send(&ios[i], &waits[i], IO_WRITE);
	ck_assert_uint_lt(fakes[0]->held_count, MANY);
	for (unsigned round = 0; round < MANY; round++) {
		for (unsigned i = 0; i < 3; i++)
			fake_blk_end(fakes[i], 0);
		fake_env_run(env);
		ck_assert_uint_eq(waits[round].calls, 1);
		done += waits[round].error == 0;
	}
	ck_assert_uint_eq(done, MANY);
	blk_unref(raid0);
	fake_env_run(env);
	fake_env_free(env);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("raid0");
	TCase *bytes = tcase_create("bytes"), *errors = tcase_create("errors");
	SRunner *runner;
	int failed;

	tcase_set_timeout(bytes, 60);
	tcase_add_loop_test(bytes, what_is_written_anywhere_is_read_there, 0,
			    (int)ARRAY_LEN(geometries));
	tcase_add_loop_test(bytes, zeroes_and_unmap_reach_every_part_of_the_range, 0,
			    (int)ARRAY_LEN(geometries));
	tcase_add_test(bytes, chunks_go_round);
	tcase_add_test(bytes, its_size_is_whole_chunks_of_the_shortest_part);
	tcase_add_test(bytes, where_something_is_allocated_is_told_chunk_by_chunk);
	suite_add_tcase(suite, bytes);
	tcase_add_checked_fixture(errors, setup_fakes, NULL);
	tcase_add_loop_test(errors, a_part_that_fails_fails_the_whole_and_no_later_success_hides_it,
			    0, 3);
	tcase_add_test(errors, a_flush_is_one_of_every_part);
	tcase_add_test(errors, it_can_what_all_parts_can);
	tcase_add_test(errors, more_at_once_than_there_are_fans_wait_their_turn);
	suite_add_tcase(suite, errors);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
