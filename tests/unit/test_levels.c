/* SPDX-License-Identifier: MIT */
/* The levels: how big, which member holds what, what making equal goes over. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/raid_rig.h"

#define SIZE (4 * MIB)
#define DATA (1 * MIB)
#define CHUNK (64 * KIB)

static const struct {
	unsigned level, min, max, step;
	bool chunked;
} known[] = { { 0, 1, 16, 1, true }, { 1, 2, 4, 1, false }, { 10, 4, 16, 2, true } };

START_TEST(each_level_says_how_many_disks_it_takes_and_whether_it_has_chunks)
{
	const struct raid_level *level = raid_level(known[_i].level);

	ck_assert_ptr_nonnull(level);
	ck_assert_uint_eq(level->level, known[_i].level);
	ck_assert_uint_eq(level->roles_min, known[_i].min);
	ck_assert_uint_eq(level->roles_max, known[_i].max);
	ck_assert_uint_eq(level->roles_step, known[_i].step);
	ck_assert_int_eq(level->chunked, known[_i].chunked);
	ck_assert_int_eq(level->equalise != NULL, known[_i].level != 0);
}
END_TEST

START_TEST(there_are_no_other_levels)
{
	static const unsigned none[] = { 2, 3, 4, 6, 7, 11, 50, 100 };

	ck_assert_ptr_null(raid_level(none[_i]));
}
END_TEST

static const struct {
	unsigned level, roles, chunk;
	uint64_t data, size;
} sizes[] = {
	{ 0, 1, 65536, 3 * MIB, 3 * MIB },
	{ 0, 3, 65536, 3 * MIB + 4096, 9 * MIB },
	{ 0, 16, 1048576, 2 * MIB - 4096, 16 * MIB },
	{ 1, 2, 0, 3 * MIB + 512, 3 * MIB + 512 },
	{ 1, 4, 0, 3 * MIB, 3 * MIB },
	{ 10, 4, 65536, 3 * MIB, 6 * MIB },
	{ 10, 6, 65536, 3 * MIB + 65535, 9 * MIB },
	{ 10, 16, 4096, 8192, 65536 },
};

START_TEST(the_size_follows_from_data_roles_and_chunk)
{
	const struct label label = {
		.level = sizes[_i].level,
		.roles = sizes[_i].roles,
		.chunk_bytes = sizes[_i].chunk,
		.data = { DATA, sizes[_i].data },
	};

	ck_assert_uint_eq(raid_level(sizes[_i].level)->size(&label), sizes[_i].size);
}
END_TEST

/* --- which member holds what --- */

static const struct {
	unsigned level, disks;
} shapes[] = { { 0, 1 }, { 0, 2 }, { 0, 5 }, { 1, 2 }, { 1, 4 }, { 10, 4 }, { 10, 8 } };

/* Whether chunk C lies on DISK, and in which row. */
static bool holds(unsigned level, unsigned disks, unsigned chunk, unsigned disk, unsigned *row)
{
	unsigned parts = level == 0 ? disks : level == 1 ? 1 : disks / 2;
	unsigned part = level == 0 ? disk : level == 1 ? 0 : disk / 2;

	*row = chunk / parts;
	return chunk % parts == part;
}

START_TEST(chunks_lie_where_the_level_says_on_every_copy)
{
	unsigned level = shapes[_i].level, disks = shapes[_i].disks, row;
	uint8_t data[CHUNK];

	rig_setup(disks, SIZE);
	rig_create_clean(level, disks);
	ck_assert_uint_eq(array_blk(rig.array)->size_bytes,
			  rig.array->level->size(&rig.array->label));
	for (unsigned chunk = 0; chunk < 20; chunk++)
		ck_assert_int_eq(rig_write(chunk * CHUNK, CHUNK, chunk + 1), 0);
	for (unsigned chunk = 0; chunk < 20; chunk++) {
		fake_fill(data, CHUNK, chunk + 1);
		for (unsigned disk = 0; disk < disks; disk++)
			if (holds(level, disks, chunk, disk, &row))
				ck_assert_mem_eq(rig_data(disk) + row * CHUNK, data, CHUNK);
		ck_assert_int_eq(rig_read(chunk * CHUNK, CHUNK, chunk + 1), 0);
	}
	memset(data, 0, CHUNK);
	for (unsigned disk = 0; disk < disks; disk++)
		for (uint64_t at = 20 * CHUNK; at < 2 * MIB; at += CHUNK)
			ck_assert_mem_eq(rig_data(disk) + at, data, CHUNK);
	rig_teardown();
}
END_TEST

START_TEST(a_pair_of_level_10_lives_without_one_of_it)
{
	rig_setup(6, SIZE);
	rig_create_clean(10, 6);
	/* One of each pair. */
	for (unsigned pair = 0; pair < 3; pair++)
		rig.disks[2 * pair + (pair & 1)]->fail = HOST;
	for (unsigned chunk = 0; chunk < 6; chunk++)
		ck_assert_int_eq(rig_write(chunk * CHUNK, CHUNK, chunk + 1), 0);
	for (unsigned chunk = 0; chunk < 6; chunk++)
		ck_assert_int_eq(rig_read(chunk * CHUNK, CHUNK, chunk + 1), 0);
	ck_assert_uint_eq(label_listed(&rig.array->label), 0x26);
	ck_assert_int_eq(rig_info().state, ARRAY_DEGRADED);
	/* The last one of a pair fails: only what it holds. */
	rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_write(0, CHUNK, 9), -EIO);
	ck_assert_int_eq(rig_write(CHUNK, CHUNK, 9), 0);
	ck_assert_int_eq(rig_write(CHUNK, 2 * CHUNK, 9), 0);
	ck_assert_int_eq(rig_write(CHUNK, 3 * CHUNK, 9), -EIO);
	rig_teardown();
}
END_TEST

/* --- making equal --- */

static unsigned equalised;
static int equalise_error;

static void equalise_done(struct array *array, int error)
{
	ck_assert_ptr_eq(array, rig.array);
	equalised++;
	equalise_error = error;
}

START_TEST(making_equal_goes_over_every_mirror_and_the_first_error_counts)
{
	unsigned disks = shapes[_i].disks, legs = shapes[_i].level == 1 ? disks : 2;
	bool fails = disks == 8;

	rig_setup(disks, SIZE);
	rig_create_clean(shapes[_i].level, disks);
	for (unsigned i = 0; i < disks; i++)
		memset(rig_data(i), (int)i + 1, MIB);
	if (fails) /* nobody of the second pair can read a block */
		for (unsigned i = 2; i < 4; i++) {
			rig.disks[i]->bad_offset = DATA + 128 * KIB;
			rig.disks[i]->bad_length = 4096;
		}
	equalised = 0;
	rig.array->level->equalise(rig.array, 128 * KIB, 256 * KIB, equalise_done);
	ck_assert_uint_eq(equalised, 0);
	fake_env_run(rig.env);
	ck_assert_uint_eq(equalised, 1);
	ck_assert_int_eq(equalise_error, fails ? -EIO : 0);
	for (unsigned i = 0; i < disks; i++) {
		const uint8_t *data = rig_data(i);

		ck_assert_uint_eq(data[128 * KIB - 1], i + 1);
		ck_assert_uint_eq(data[384 * KIB], i + 1);
		ck_assert_uint_eq(data[128 * KIB],
				  fails && i / 2 == 1 ? i + 1 : i / legs * legs + 1);
		ck_assert_uint_eq(data[384 * KIB - 1], i / legs * legs + 1);
	}
	rig_teardown();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("levels");
	TCase *tcase = tcase_create("levels");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase,
			    each_level_says_how_many_disks_it_takes_and_whether_it_has_chunks, 0,
			    (int)ARRAY_LEN(known));
	tcase_add_loop_test(tcase, there_are_no_other_levels, 0, 8);
	tcase_add_loop_test(tcase, the_size_follows_from_data_roles_and_chunk, 0,
			    (int)ARRAY_LEN(sizes));
	tcase_add_loop_test(tcase, chunks_lie_where_the_level_says_on_every_copy, 0,
			    (int)ARRAY_LEN(shapes));
	tcase_add_test(tcase, a_pair_of_level_10_lives_without_one_of_it);
	tcase_add_loop_test(tcase, making_equal_goes_over_every_mirror_and_the_first_error_counts,
			    3, (int)ARRAY_LEN(shapes));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
