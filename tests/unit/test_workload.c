/* SPDX-License-Identifier: MIT */
/* The generator: proportions, distributions, slices, and that a seed means a sequence. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/workload.h"

#define BLOCK 4096u

static struct bench_stream stream;
static struct workload_range range;
static struct workload workload;
static struct workload_op op;
static uint64_t sizes[BENCH_LUNS_MAX];

static void setup(void)
{
	stream = (struct bench_stream){ .pattern = PATTERN_RANDOM,
					.block_bytes = BLOCK,
					.read_percent = 100 };
}

/* LUNS of BLOCKS each. */
static void begin(unsigned luns, uint64_t blocks, unsigned worker, unsigned workers, uint64_t seed)
{
	for (unsigned i = 0; i < luns; i++)
		sizes[i] = blocks * BLOCK + stream.shift_bytes;
	ck_assert(workload_range_init(&range, &stream, sizes, luns));
	workload_init(&workload, &stream, &range, worker, workers, seed);
}

START_TEST(any_hundred_commands_have_the_share_of_reads)
{
	unsigned reads = 0;
	bool history[1000];

	stream.read_percent = (unsigned)_i;
	begin(1, 1000, 3, 7, 42);
	for (unsigned i = 0; i < ARRAY_LEN(history); i++) {
		workload_next(&workload, &op);
		history[i] = !op.write;
		reads += history[i];
		if (i >= 100)
			reads -= history[i - 100];
		if (i >= 99)
			ck_assert_uint_eq(reads, (unsigned)_i);
	}
}
END_TEST

START_TEST(offsets_are_aligned_moved_and_inside)
{
	stream.pattern = (enum bench_pattern)_i;
	stream.zipf_theta = 0.9;
	stream.shift_bytes = 512;
	begin(2, 1000, 1, 3, 1);
	sizes[0] = 10 * BLOCK; /* nine, as they are moved */
	ck_assert(workload_range_init(&range, &stream, sizes, 2));
	for (unsigned i = 0; i < 10000; i++) {
		workload_next(&workload, &op);
		ck_assert_uint_eq(op.offset % BLOCK, 512);
		ck_assert_uint_le(op.offset + BLOCK, sizes[op.lun]);
	}
}
END_TEST

START_TEST(random_offsets_reach_every_block_about_equally)
{
	unsigned hits[100] = { 0 };

	begin(1, 100, 0, 1, 7);
	for (unsigned i = 0; i < 100000; i++) {
		workload_next(&workload, &op);
		hits[op.offset / BLOCK]++;
	}
	/* Mean 1000, deviation 32: six of them. */
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_uint_gt(hits[i], 800);
		ck_assert_uint_lt(hits[i], 1200);
	}
}
END_TEST

START_TEST(a_seed_is_a_sequence_and_another_one_another)
{
	uint64_t first[64], same = 0, other = 0, neighbour = 0;

	begin(1, 1 << 20, 2, 8, 99);
	for (unsigned i = 0; i < 64; i++) {
		workload_next(&workload, &op);
		first[i] = op.offset;
	}
	begin(1, 1 << 20, 2, 8, 99);
	for (unsigned i = 0; i < 64; i++) {
		workload_next(&workload, &op);
		same += op.offset == first[i];
	}
	begin(1, 1 << 20, 2, 8, 100);
	for (unsigned i = 0; i < 64; i++) {
		workload_next(&workload, &op);
		other += op.offset == first[i];
	}
	begin(1, 1 << 20, 3, 8, 99);
	for (unsigned i = 0; i < 64; i++) {
		workload_next(&workload, &op);
		neighbour += op.offset == first[i];
	}
	ck_assert_uint_eq(same, 64);
	ck_assert_uint_lt(other, 3);
	ck_assert_uint_lt(neighbour, 3);
}
END_TEST

START_TEST(the_slices_of_all_workers_cover_every_block_once)
{
	/* Workers that divide the blocks and workers that do not. */
	static const unsigned counts[] = { 1, 2, 7, 48, 1000 };
	unsigned workers = counts[_i];
	unsigned visits[1000] = { 0 };

	stream.pattern = PATTERN_SEQUENTIAL;
	for (unsigned w = 0; w < workers; w++) {
		uint64_t from = 1000ull * w / workers, to = 1000ull * (w + 1) / workers;

		begin(1, 1000, w, workers, 5);
		for (uint64_t i = from; i < to; i++) {
			workload_next(&workload, &op);
			ck_assert_uint_eq(op.offset, i * BLOCK);
			visits[i]++;
		}
		/* And again from the slice's start. */
		workload_next(&workload, &op);
		ck_assert_uint_eq(op.offset, from * BLOCK);
	}
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_uint_eq(visits[i], 1);
}
END_TEST

START_TEST(more_workers_than_blocks_share_them)
{
	stream.pattern = PATTERN_SEQUENTIAL;
	for (unsigned w = 0; w < 16; w++) {
		begin(1, 3, w, 16, 5);
		for (unsigned i = 0; i < 4; i++) {
			workload_next(&workload, &op);
			ck_assert_uint_lt(op.offset, 3 * BLOCK);
		}
	}
}
END_TEST

START_TEST(luns_take_turns_and_each_is_sequential)
{
	stream.pattern = PATTERN_SEQUENTIAL;
	begin(3, 100, 1, 2, 5);
	for (unsigned i = 0; i < 300; i++) {
		workload_next(&workload, &op);
		ck_assert_uint_eq(op.lun, (1 + i) % 3);
		ck_assert_uint_eq(op.offset, (50 + i / 3 % 50) * BLOCK);
	}
}
END_TEST

/* The share of all accesses that the H hottest of N blocks get. */
static double expected_share(unsigned h, unsigned n, double theta)
{
	double hot = 0, all = 0;

	for (unsigned i = 1; i <= n; i++) {
		double p = pow(i, -theta);

		all += p;
		if (i <= h)
			hot += p;
	}
	return hot / all;
}

static int descending(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

START_TEST(zipf_prefers_a_few_blocks_as_much_as_it_says)
{
	static const double thetas[] = { 0.2, 0.6, 0.9, 0.99 };
	static unsigned hits[1000];
	unsigned hot = 0;

	memset(hits, 0, sizeof(hits));
	stream.pattern = PATTERN_ZIPF;
	stream.zipf_theta = thetas[_i];
	begin(1, 1000, 0, 1, 3);
	for (unsigned i = 0; i < 200000; i++) {
		workload_next(&workload, &op);
		hits[op.offset / BLOCK]++;
	}
	qsort(hits, 1000, sizeof(hits[0]), descending);
	for (unsigned i = 0; i < 100; i++)
		hot += hits[i];
	ck_assert_double_eq_tol(hot / 200000.0, expected_share(100, 1000, thetas[_i]), 0.02);
}
END_TEST

START_TEST(hot_blocks_do_not_lie_together)
{
	unsigned last = 0, close = 0;
	struct zipf zipf;

	zipf_init(&zipf, 1 << 20, 0.9);
	for (unsigned rank = 1; rank < 16; rank++) {
		unsigned block = (unsigned)(rank * zipf.stride % zipf.count);

		close += labs((long)block - (long)last) < 1000;
		last = block;
	}
	ck_assert_uint_eq(close, 0);
}
END_TEST

START_TEST(zipf_works_for_the_smallest_and_the_largest)
{
	static const uint64_t counts[] = { 1, 2, 3, UINT64_C(1) << 40 };
	struct zipf zipf;
	struct chance chance;

	chance_seed(&chance, 1);
	zipf_init(&zipf, counts[_i], 0.9);
	for (unsigned i = 0; i < 10000; i++)
		ck_assert_uint_lt(zipf_block(&zipf, &chance), counts[_i]);
}
END_TEST

START_TEST(a_range_without_room_for_a_block_is_refused)
{
	stream.shift_bytes = 512;
	sizes[0] = BLOCK + 511;
	ck_assert(!workload_range_init(&range, &stream, sizes, 1));
	sizes[0] = BLOCK + 512;
	ck_assert(workload_range_init(&range, &stream, sizes, 1));
	ck_assert_uint_eq(range.blocks[0], 1);
}
END_TEST

START_TEST(filling_writes_every_byte_once)
{
	static const uint64_t bytes[] = { 10 * BLOCK + 512, 512, 0, 64 * BLOCK };
	static const unsigned counts[] = { 1, 3, 16 };
	static uint8_t written[4][65 * BLOCK / 512];
	uint32_t length;

	memset(written, 0, sizeof(written));
	range.lun_count = ARRAY_LEN(bytes);
	for (unsigned w = 0; w < counts[_i]; w++) {
		workload_init(&workload, &stream, &range, w, counts[_i], 1);
		while (workload_fill(&workload, bytes, &op, &length)) {
			ck_assert(op.write);
			ck_assert_uint_le(length, BLOCK);
			ck_assert_uint_gt(length, 0);
			for (uint64_t i = op.offset; i < op.offset + length; i += 512)
				written[op.lun][i / 512]++;
		}
		ck_assert(!workload_fill(&workload, bytes, &op, &length));
	}
	for (unsigned l = 0; l < ARRAY_LEN(bytes); l++)
		for (unsigned i = 0; i < ARRAY_LEN(written[0]); i++)
			ck_assert_uint_eq(written[l][i], i * 512 < bytes[l]);
}
END_TEST

static const struct {
	uint32_t most, limit, block, piece;
} pieces[] = {
	{ 65536, UINT32_MAX, 512, 65536 }, { 65536, 20 * 512, 512, 20 * 512 },
	{ 65536, 20 * 512, 4096, 8192 },   { 262144, 256 * 1024 - 512, 65536, 196608 },
	{ 65536, 512, 4096, 4096 },
};

START_TEST(a_piece_is_whole_blocks_within_the_limit)
{
	ck_assert_uint_eq(workload_piece(pieces[_i].most, pieces[_i].limit, pieces[_i].block),
			  pieces[_i].piece);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("workload");
	TCase *tc = tcase_create("workload");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, a_piece_is_whole_blocks_within_the_limit, 0, ARRAY_LEN(pieces));
	tcase_add_loop_test(tc, any_hundred_commands_have_the_share_of_reads, 0, 101);
	tcase_add_loop_test(tc, offsets_are_aligned_moved_and_inside, PATTERN_RANDOM,
			    PATTERN_ZIPF + 1);
	tcase_add_test(tc, random_offsets_reach_every_block_about_equally);
	tcase_add_test(tc, a_seed_is_a_sequence_and_another_one_another);
	tcase_add_loop_test(tc, the_slices_of_all_workers_cover_every_block_once, 0, 5);
	tcase_add_test(tc, more_workers_than_blocks_share_them);
	tcase_add_test(tc, luns_take_turns_and_each_is_sequential);
	tcase_add_loop_test(tc, zipf_prefers_a_few_blocks_as_much_as_it_says, 0, 4);
	tcase_add_test(tc, hot_blocks_do_not_lie_together);
	tcase_add_loop_test(tc, zipf_works_for_the_smallest_and_the_largest, 0, 4);
	tcase_add_test(tc, a_range_without_room_for_a_block_is_refused);
	tcase_add_loop_test(tc, filling_writes_every_byte_once, 0, 3);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
