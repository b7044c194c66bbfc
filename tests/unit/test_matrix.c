/* SPDX-License-Identifier: MIT */
/* Settings as people write them, and the points that lists of them multiply to. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/matrix.h"

static struct matrix matrix;
static struct bench_plan plan;
static struct bench_fault fault;
static char cause[280];

static void setup(void)
{
	memset(&matrix, 0, sizeof(matrix));
	memset(&plan, 0, sizeof(plan));
}

static void teardown(void)
{
	free(plan.points);
}

static void add(enum matrix_key key, const char *text)
{
	ck_assert_msg(matrix_add_list(&matrix, key, text, cause, sizeof(cause)) == 0, "%s: %s",
		      text, cause);
}

static const struct {
	enum matrix_key key;
	const char *text;
	uint64_t value;
} good[] = {
	{ MATRIX_BS, "512", 512 },
	{ MATRIX_BS, "4k", 4096 },
	{ MATRIX_BS, "4K", 4096 },
	{ MATRIX_BS, "1m", MIB },
	{ MATRIX_BS, "16M", 16 * MIB },
	{ MATRIX_SIZE, "2T", 2048 * GIB },
	{ MATRIX_TIME, "30", 30 * NS_PER_S },
	{ MATRIX_TIME, "30s", 30 * NS_PER_S },
	{ MATRIX_TIME, "300ms", 300 * NS_PER_MS },
	{ MATRIX_TIME, "2m", 120 * NS_PER_S },
	{ MATRIX_WARMUP, "0", 0 },
	{ MATRIX_RATE, "5000", 5000 },
	{ MATRIX_RATE, "5k", 5000 },
	{ MATRIX_ZIPF, "0.9", 900000 },
	{ MATRIX_ZIPF, ".5", 500000 },
	{ MATRIX_DATA, "zero", DATA_ZERO },
	{ MATRIX_SEED, "18446744073709551615", UINT64_MAX },
	{ MATRIX_STEADY, "true", 1 },
};

START_TEST(values_are_taken_as_they_are_written)
{
	add(good[_i].key, good[_i].text);
	ck_assert_uint_eq(matrix.of[good[_i].key].values[0], good[_i].value);
}
END_TEST

#define SIZE_LIKE "is not a size. Write it like 4K or 10G (K M G T are powers of 1024)"
#define TIME_LIKE "is not a time. Write it like 30s (ns us ms s m h)"

static const struct {
	enum matrix_key key;
	const char *text, *cause;
} bad[] = {
	{ MATRIX_BS, "4KB", "\"4KB\" " SIZE_LIKE },
	{ MATRIX_BS, "4KiB", "\"4KiB\" " SIZE_LIKE },
	{ MATRIX_SIZE, "1GB", "\"1GB\" " SIZE_LIKE },
	{ MATRIX_BS, "4s", "\"4s\" " SIZE_LIKE },
	{ MATRIX_BS, "", "\"\" " SIZE_LIKE },
	{ MATRIX_BS, "-4K", "\"-4K\" " SIZE_LIKE },
	{ MATRIX_BS, "1.5K", "\"1.5K\" " SIZE_LIKE },
	{ MATRIX_BS, "4K,", "\"\" " SIZE_LIKE },
	{ MATRIX_BS, "100", "100 is out of range. Write a multiple of 512 up to 16M" },
	{ MATRIX_BS, "0", "0 is out of range. Write a multiple of 512 up to 16M" },
	{ MATRIX_BS, "32M", "32M is out of range. Write a multiple of 512 up to 16M" },
	{ MATRIX_BS, "99999999999999999999",
	  "99999999999999999999 is out of range. Write a multiple of 512 up to 16M" },
	{ MATRIX_BS, "99999999999G",
	  "99999999999G is out of range. Write a multiple of 512 up to 16M" },
	{ MATRIX_TIME, "30x", "\"30x\" " TIME_LIKE },
	{ MATRIX_TIME, "4K", "\"4K\" " TIME_LIKE },
	{ MATRIX_TIME, "0s", "0s is out of range. Write 1ms to 720h" },
	{ MATRIX_DEPTH, "0", "0 is out of range. Write 1 to 4096" },
	{ MATRIX_DEPTH, "16K", "\"16K\" is not a number" },
	{ MATRIX_SESSIONS, "257", "257 is out of range. Write 1 to 256" },
	{ MATRIX_RATE, "5M", "\"5M\" is no rate. Write commands a second, like 5000 or 5k" },
	{ MATRIX_RATE, "0", "0 is out of range. Write 1 to 100 million" },
	{ MATRIX_RATE, "99999999999999999999k",
	  "99999999999999999999k is out of range. Write 1 to 100 million" },
	{ MATRIX_ZIPF, "1", "1 is out of range. Write more than 0 and less than 1" },
	{ MATRIX_ZIPF, "0.0", "0.0 is out of range. Write more than 0 and less than 1" },
	{ MATRIX_ZIPF, "nan", "\"nan\" is no skew. Write it like 0.9" },
	{ MATRIX_ZIPF, "1.2.3", "\"1.2.3\" is no skew. Write it like 0.9" },
	{ MATRIX_READ, "101", "101 is out of range. Write 0 to 100 (percent)" },
	{ MATRIX_PATTERN, "any", "\"any\" is no pattern. Write rand, seq or zipf" },
	{ MATRIX_DATA, "none", "\"none\" is no kind of data. Write random, repeat or zero" },
	{ MATRIX_REPEAT, "2,3", "a second value, 3. Write one" },
	{ MATRIX_STEADY, "maybe", "\"maybe\" is not true or false" },
};

START_TEST(a_wrong_value_is_refused_with_what_to_write)
{
	ck_assert_int_eq(matrix_add_list(&matrix, bad[_i].key, bad[_i].text, cause, sizeof(cause)),
			 -EINVAL);
	ck_assert_str_eq(cause, bad[_i].cause);
}
END_TEST

START_TEST(workloads_are_named_as_in_fio_and_the_number_is_the_percent_of_reads)
{
	static const struct {
		const char *text;
		enum bench_pattern pattern;
		unsigned read;
		const char *name;
	} cases[] = {
		{ "read", PATTERN_SEQUENTIAL, 100, "4K sequential read" },
		{ "write", PATTERN_SEQUENTIAL, 0, "4K sequential write" },
		{ "randread", PATTERN_RANDOM, 100, "4K random read" },
		{ "randwrite", PATTERN_RANDOM, 0, "4K random write" },
		{ "rw", PATTERN_SEQUENTIAL, 50, "4K sequential 50/50" },
		{ "rw:70", PATTERN_SEQUENTIAL, 70, "4K sequential 70/30" },
		{ "randrw:30", PATTERN_RANDOM, 30, "4K random 30/70" },
		{ "zipfrw:0", PATTERN_ZIPF, 0, "4K zipf write" },
		{ "zipfread", PATTERN_ZIPF, 100, "4K zipf read" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		setup();
		add(MATRIX_RW, cases[i].text);
		ck_assert_int_eq(matrix_points(&matrix, NULL, 0, &plan, &fault), 0);
		ck_assert_uint_eq(plan.point_count, 1);
		ck_assert_uint_eq(plan.points[0].streams[0].pattern, cases[i].pattern);
		ck_assert_uint_eq(plan.points[0].streams[0].read_percent, cases[i].read);
		ck_assert_str_eq(plan.points[0].name, cases[i].name);
		free(plan.points);
	}
	plan.points = NULL;
	for (const char **wrong = (const char *[]){ "randrw:101", "randrw:", "rw:-1", "rand",
						    "zipf", "Read", "readwrite:", "", NULL };
	     *wrong; wrong++)
		ck_assert_msg(matrix_add(&matrix, MATRIX_RW, *wrong, cause, sizeof(cause)) ==
				      -EINVAL,
			      "%s", *wrong);
}
END_TEST

START_TEST(lists_multiply_with_sessions_outermost_and_depth_innermost)
{
	static const unsigned depths[] = { 1, 16, 64 };

	add(MATRIX_RW, "randread,write");
	add(MATRIX_BS, "4K,64K");
	add(MATRIX_DEPTH, "1,16,64");
	add(MATRIX_SESSIONS, "1,2");
	ck_assert_int_eq(matrix_points(&matrix, NULL, 0, &plan, &fault), 0);
	ck_assert_uint_eq(plan.point_count, 2 * 2 * 3 * 2);
	for (unsigned i = 0; i < plan.point_count; i++) {
		const struct bench_stream *s = &plan.points[i].streams[0];

		ck_assert_uint_eq(s->depth, depths[i % 3]);
		ck_assert_uint_eq(s->read_percent, i / 3 % 2 ? 0 : 100);
		ck_assert_uint_eq(s->block_bytes, i / 6 % 2 ? 65536 : 4096);
		ck_assert_uint_eq(plan.points[i].sessions, i / 12 ? 2 : 1);
		ck_assert_uint_eq(plan.points[i].stream_count, 1);
	}
	ck_assert_str_eq(plan.points[9].name, "64K sequential write");
}
END_TEST

START_TEST(what_is_not_said_has_its_default)
{
	const struct bench_point *p;

	add(MATRIX_RW, "randread");
	ck_assert_int_eq(matrix_points(&matrix, NULL, 0, &plan, &fault), 0);
	p = &plan.points[0];
	ck_assert_uint_eq(p->streams[0].block_bytes, 4096);
	ck_assert_uint_eq(p->streams[0].depth, 32);
	ck_assert_uint_eq(p->streams[0].workers, 0);
	ck_assert_uint_eq(p->sessions, 1);
	ck_assert_uint_eq(p->time_ns, 30 * NS_PER_S);
	ck_assert_uint_eq(p->warmup_ns, 5 * NS_PER_S);
	ck_assert_uint_eq(p->ramp_ns, 0);
	ck_assert_uint_eq(p->data, DATA_RANDOM);
	ck_assert(p->streams[0].rate == 0 && !p->steady && !p->max_bytes && !p->range_bytes);
	ck_assert_uint_eq(plan.repeat, 1);
	/* Numbers in JSON end at 53 bits, and the seed is to be given again. */
	ck_assert_uint_lt(p->seed, 1ULL << 53);
}
END_TEST

START_TEST(a_seed_is_taken_and_else_another_each_time)
{
	uint64_t first;

	add(MATRIX_RW, "randread");
	ck_assert_int_eq(matrix_points(&matrix, NULL, 0, &plan, &fault), 0);
	first = plan.points[0].seed;
	free(plan.points);
	plan.point_count = 0;
	ck_assert_int_eq(matrix_points(&matrix, NULL, 0, &plan, &fault), 0);
	ck_assert_uint_ne(plan.points[0].seed, first);
	free(plan.points);
	plan.point_count = 0;
	add(MATRIX_SEED, "7");
	ck_assert_int_eq(matrix_points(&matrix, NULL, 0, &plan, &fault), 0);
	ck_assert_uint_eq(plan.points[0].seed, 7);
}
END_TEST

START_TEST(a_skew_makes_random_zipf)
{
	add(MATRIX_RW, "randread,read");
	add(MATRIX_ZIPF, "0.5");
	ck_assert_int_eq(matrix_points(&matrix, NULL, 0, &plan, &fault), 0);
	ck_assert_uint_eq(plan.points[0].streams[0].pattern, PATTERN_ZIPF);
	ck_assert_double_eq_tol(plan.points[0].streams[0].zipf_theta, 0.5, 1e-9);
	ck_assert_uint_eq(plan.points[1].streams[0].pattern, PATTERN_SEQUENTIAL);
}
END_TEST

START_TEST(vms_multiply_workers_unless_an_option_says_how_many)
{
	struct matrix options = { 0 };

	add(MATRIX_PATTERN, "rand");
	add(MATRIX_READ, "100,70");
	add(MATRIX_VMS, "10");
	ck_assert_int_eq(matrix_points(&matrix, NULL, 0, &plan, &fault), 0);
	ck_assert_uint_eq(plan.points[0].streams[0].workers, 10);
	free(plan.points);
	plan.point_count = 0;
	add(MATRIX_WORKERS, "2");
	ck_assert_int_eq(matrix_points(&matrix, NULL, 0, &plan, &fault), 0);
	ck_assert_uint_eq(plan.points[1].streams[0].workers, 20);
	free(plan.points);
	plan.point_count = 0;
	ck_assert_int_eq(matrix_add(&options, MATRIX_WORKERS, "3", cause, sizeof(cause)), 0);
	matrix_overlay(&matrix, &options);
	ck_assert_int_eq(matrix_points(&matrix, NULL, 0, &plan, &fault), 0);
	ck_assert_uint_eq(plan.points[1].streams[0].workers, 3);
}
END_TEST

START_TEST(an_option_replaces_a_whole_list_and_rw_pattern_and_read)
{
	struct matrix options = { 0 };

	add(MATRIX_PATTERN, "rand,seq");
	add(MATRIX_READ, "100,0,70");
	add(MATRIX_BS, "4K,8K");
	add(MATRIX_DEPTH, "20");
	ck_assert_int_eq(matrix_points(&matrix, NULL, 0, &plan, &fault), 0);
	ck_assert_uint_eq(plan.point_count, 12);
	ck_assert_str_eq(plan.points[4].name, "4K sequential write");
	free(plan.points);
	plan.point_count = 0;
	ck_assert_int_eq(matrix_add(&options, MATRIX_RW, "randwrite", cause, sizeof(cause)), 0);
	ck_assert_int_eq(matrix_add(&options, MATRIX_BS, "16K", cause, sizeof(cause)), 0);
	matrix_overlay(&matrix, &options);
	ck_assert_int_eq(matrix_points(&matrix, NULL, 0, &plan, &fault), 0);
	ck_assert_uint_eq(plan.point_count, 1);
	ck_assert_str_eq(plan.points[0].name, "16K random write");
	ck_assert_uint_eq(plan.points[0].streams[0].depth, 20);
}
END_TEST

START_TEST(streams_run_side_by_side_in_one_point)
{
	struct matrix streams[2] = { 0 };

	matrix_add(&streams[0], MATRIX_RW, "read", cause, sizeof(cause));
	matrix_add(&streams[0], MATRIX_BS, "64K", cause, sizeof(cause));
	matrix_add(&streams[0], MATRIX_SESSIONS, "2", cause, sizeof(cause));
	matrix_add(&streams[1], MATRIX_RW, "randrw:30", cause, sizeof(cause));
	matrix_add(&streams[1], MATRIX_SHIFT, "512", cause, sizeof(cause));
	add(MATRIX_TIME, "2s");
	ck_assert_int_eq(matrix_points(&matrix, streams, 2, &plan, &fault), 0);
	ck_assert_uint_eq(plan.point_count, 1);
	ck_assert_uint_eq(plan.points[0].stream_count, 2);
	ck_assert_str_eq(plan.points[0].name, "64K sequential read | 4K random 30/70 +512");
	ck_assert_uint_eq(plan.points[0].sessions, 2);
	ck_assert_uint_eq(plan.points[0].streams[0].sessions, 2);
	ck_assert_uint_eq(plan.points[0].streams[1].sessions, 0);
	ck_assert_uint_eq(plan.points[0].time_ns, 2 * NS_PER_S);
}
END_TEST

START_TEST(too_many_points_are_refused_before_there_is_memory_for_them)
{
	for (unsigned i = 0; i < MATRIX_VALUES_MAX; i++) {
		add(MATRIX_RW, "read");
		add(MATRIX_BS, "4K");
		add(MATRIX_DEPTH, "1");
	}
	ck_assert_int_eq(matrix_points(&matrix, NULL, 0, &plan, &fault), -EINVAL);
	ck_assert_str_eq(fault.text, "262144 points are more than 512. Shorten a list");
	ck_assert_ptr_null(plan.points);
	ck_assert_int_eq(matrix_add(&matrix, MATRIX_BS, "4K", cause, sizeof(cause)), -EINVAL);
	ck_assert_str_eq(cause, "more than 64 values. Measure in several runs");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("matrix");
	TCase *tcase = tcase_create("matrix");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, values_are_taken_as_they_are_written, 0, ARRAY_LEN(good));
	tcase_add_loop_test(tcase, a_wrong_value_is_refused_with_what_to_write, 0, ARRAY_LEN(bad));
	tcase_add_test(tcase, workloads_are_named_as_in_fio_and_the_number_is_the_percent_of_reads);
	tcase_add_test(tcase, lists_multiply_with_sessions_outermost_and_depth_innermost);
	tcase_add_test(tcase, what_is_not_said_has_its_default);
	tcase_add_test(tcase, a_seed_is_taken_and_else_another_each_time);
	tcase_add_test(tcase, a_skew_makes_random_zipf);
	tcase_add_test(tcase, vms_multiply_workers_unless_an_option_says_how_many);
	tcase_add_test(tcase, an_option_replaces_a_whole_list_and_rw_pattern_and_read);
	tcase_add_test(tcase, streams_run_side_by_side_in_one_point);
	tcase_add_test(tcase, too_many_points_are_refused_before_there_is_memory_for_them);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
