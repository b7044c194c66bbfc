/* SPDX-License-Identifier: MIT */
/* Arrays are made: what is refused and why, where things lie, what is durable before what. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/regions_int.h"
#include "tests/fake/raid_rig.h"

#define SIZE (8 * MIB)

static void setup(void)
{
	rig_setup(0, SIZE);
}

static int create(const struct array_spec *spec, unsigned count)
{
	struct array_disk disks[RIG_DISKS];
	unsigned before = rig.answers;

	for (unsigned i = 0; i < count; i++)
		disks[i] = rig_offer(i);
	ck_assert_ptr_nonnull(array_create(rig.env, spec, disks, count, rig_answer, NULL));
	ck_assert_uint_eq(rig.answers, before);
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig.answers, before + 1);
	return rig.error;
}

/* --- refused --- */

#define LONG_63 "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0"

static const struct {
	const char *name;
	unsigned level, chunk, count;
	const char *text; /* NULL: it is made */
} shapes[] = {
	{ "", 1, 0, 2, "array : a name has 1 to 63 printable characters, and no blanks" },
	{ "a b", 1, 0, 2, "array a b: a name has 1 to 63 printable characters, and no blanks" },
	{ "a\n", 1, 0, 2, "array a\n: a name has 1 to 63 printable characters, and no blanks" },
	{ LONG_63 "x", 1, 0, 2,
	  "array " LONG_63 "x: a name has 1 to 63 printable characters, and no blanks" },
	{ LONG_63, 1, 0, 2, NULL },
	{ "a", 2, 0, 2, "there is no level 2" },
	{ "a", 0, 65536, 0, "array a: level 0 takes 1 to 16 disks, not 0" },
	{ "a", 0, 65536, 1, NULL },
	{ "a", 0, 65536, 16, NULL },
	{ "a", 0, 65536, 17, "array a: level 0 takes 1 to 16 disks, not 17" },
	{ "a", 1, 0, 1, "array a: level 1 takes 2 to 4 disks, not 1" },
	{ "a", 1, 0, 4, NULL },
	{ "a", 1, 0, 5, "array a: level 1 takes 2 to 4 disks, not 5" },
	{ "a", 1, 4096, 2, "array a: level 1 has no chunks" },
	{ "a", 10, 65536, 2, "array a: level 10 takes 4 to 16 disks, an even number, not 2" },
	{ "a", 10, 65536, 5, "array a: level 10 takes 4 to 16 disks, an even number, not 5" },
	{ "a", 10, 65536, 4, NULL },
	{ "a", 10, 65536, 16, NULL },
	{ "a", 10, 65536, 18, "array a: level 10 takes 4 to 16 disks, an even number, not 18" },
	{ "a", 0, 0, 2, "array a: a chunk is a power of two from 4K to 1M, not 0" },
	{ "a", 0, 2048, 2, "array a: a chunk is a power of two from 4K to 1M, not 2048" },
	{ "a", 0, 4096, 2, NULL },
	{ "a", 0, 12288, 2, "array a: a chunk is a power of two from 4K to 1M, not 12288" },
	{ "a", 10, 1048576, 4, NULL },
	{ "a", 5, 65536, 2, "array a: level 5 takes 3 to 16 disks, not 2" },
	{ "a", 5, 65536, 17, "array a: level 5 takes 3 to 16 disks, not 17" },
	{ "a", 5, 65536, 3, NULL },
	{ "a", 5, 65536, 16, NULL },
	{ "a", 5, 1048576, 3,
	  "array a: its disks are too small for a log and a chunk of 1024 KiB. Use smaller chunks or "
	  "larger disks" },
	{ "a", 10, 2097152, 4, "array a: a chunk is a power of two from 4K to 1M, not 2097152" },
};

START_TEST(what_can_be_made_is_made_and_all_else_refused_with_its_reason)
{
	const struct array_spec spec = {
		.name = shapes[_i].name,
		.level = shapes[_i].level,
		.chunk_bytes = shapes[_i].chunk,
	};
	int error = create(&spec, shapes[_i].count);

	ck_assert_int_eq(error, shapes[_i].text ? -EINVAL : 0);
	if (shapes[_i].text)
		ck_assert_ptr_nonnull(strstr(rig.text, shapes[_i].text));
	for (unsigned i = 0; shapes[_i].text && i < shapes[_i].count; i++)
		ck_assert_uint_eq(rig.disks[i]->record_count, 0);
	if (!shapes[_i].text)
		ck_assert_str_eq(rig_info().name, shapes[_i].name);
}
END_TEST

START_TEST(a_name_of_any_length_is_refused)
{
	char name[2000];
	const struct array_spec spec = { .name = name, .level = 1 };

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	ck_assert_int_eq(create(&spec, 2), -EINVAL);
	ck_assert_ptr_nonnull(strstr(rig.text, "a name has 1 to 63"));
}
END_TEST

START_TEST(disks_that_do_not_go_together_are_refused)
{
	static const char *const texts[] = {
		"array a: d1 has blocks of 512 bytes",
		"array a: d1 is smaller than 4 MiB",
		"array a: d1 is read-only",
		"array a: d0 is named twice",
	};
	const struct array_spec spec = { .name = "a", .level = 1 };
	struct array_disk disks[2];

	disks[0] = rig_offer(0);
	rig.block_size = _i == 0 ? 4096 : 512;
	rig.sizes[1] = _i == 1 ? 4 * MIB - 512 : SIZE;
	rig.features |= _i == 2 ? BLK_READ_ONLY : 0;
	disks[1] = rig_offer(_i == 3 ? 0 : 1);
	ck_assert_ptr_nonnull(array_create(rig.env, &spec, disks, 2, rig_answer, NULL));
	fake_env_run(rig.env);
	ck_assert_int_eq(rig.error, -EINVAL);
	if (_i == 0)
		ck_assert_str_eq(rig.text, "array a: d0 has blocks of 512 bytes, d1 of 4096. Use "
					   "disks of one kind");
	else
		ck_assert_str_eq(rig.text, texts[_i]);
}
END_TEST

START_TEST(a_disk_that_cannot_be_read_or_written_is_named_or_the_array_is_not_made)
{
	const struct array_spec spec = { .name = "a", .level = 1 };

	rig_disk(1)->fail_reads = _i == 0 ? LABELS : 0;
	rig_disk(1)->fail = _i == 1 ? LABELS : _i == 2 ? MAPS : 0;
	if (_i == 0) {
		ck_assert_int_eq(create(&spec, 2), -EIO);
		ck_assert_str_eq(rig.text, "array a: d1 cannot be read");
		ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_LABEL), 0);
	} else {
		/* It fails like any other member. */
		ck_assert_int_eq(create(&spec, 2), 0);
		ck_assert_int_eq(rig_info().state, ARRAY_DEGRADED);
		ck_assert_int_eq(rig.array->label.members[1].state, LABEL_FAILED);
	}
}
END_TEST

/* --- where things lie --- */

static const struct {
	unsigned level, chunk;
	uint64_t smallest, data_length;
} layouts[] = {
	{ 1, 0, 4 * MIB, 3 * MIB - 64 * KIB },
	{ 1, 0, 4 * MIB + 8192, 3 * MIB },
	{ 1, 0, 4 * MIB + 8192 + 3584, 3 * MIB },
	{ 0, 65536, 4 * MIB, 3 * MIB - 64 * KIB },
	{ 0, 1048576, 4 * MIB, 2 * MIB },
	{ 0, 4096, 4 * MIB, 3 * MIB - 64 * KIB },
	{ 10, 131072, 5 * MIB, 4 * MIB - 128 * KIB },
};

START_TEST(the_layout_follows_from_the_smallest_disk_and_is_the_same_on_all)
{
	const struct array_spec spec = {
		.name = "a",
		.level = layouts[_i].level,
		.chunk_bytes = layouts[_i].chunk,
		.created_s = 1234,
	};
	unsigned count = layouts[_i].level == 10 ? 4 : 2;
	struct label label;

	rig.sizes[1] = layouts[_i].smallest;
	ck_assert_int_eq(create(&spec, count), 0);
	for (unsigned i = 0; i < count; i++) {
		ck_assert_int_eq(rig_label(i, &label), 0);
		ck_assert_uint_eq(label.data.offset, MIB);
		ck_assert_uint_eq(label.data.length, layouts[_i].data_length);
		ck_assert_int_eq(label.maps[0].length != 0, layouts[_i].level != 0);
		ck_assert_int_eq(label.created_s, 1234);
		ck_assert_uint_eq(label.self, i);
		ck_assert_uint_eq(label_listed(&label), (1u << count) - 1);
		for (unsigned k = 0; k < count; k++)
			ck_assert_uint_eq(label.members[k].role, k);
		ck_assert(array_fits(&label, &rig.disks[i]->blk));
	}
}
END_TEST

/* Just above a limit a disk has bigger regions than its data area, which are fewer. */
START_TEST(pages_of_regions_have_room_at_every_size)
{
	static const uint64_t limits[] = {
		(uint64_t)REGIONS_PAGE_BITS * REGIONS_PAGES_MAX * MIB,
		(uint64_t)REGIONS_PAGE_BITS * REGIONS_PAGES_MAX * 2 * MIB,
		(uint64_t)REGIONS_PAGE_BITS * MIB,
	};
	const struct array_spec spec = { .name = "a", .level = 1 };
	struct label label;

	rig.sizes[0] = rig.sizes[1] = limits[_i / 3] + (uint64_t)(_i % 3) * 512 * KIB;
	rig_disk(0)->hold = rig_disk(1)->hold = RESYNC;
	ck_assert_int_eq(create(&spec, 2), 0);
	ck_assert_int_eq(rig_label(0, &label), 0);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_uint_ge(label.maps[i].length,
				  (uint64_t)regions_pages(label.data.length) * REGIONS_PAGE);
	ck_assert_uint_ge(label.maps[1].offset, label.maps[0].offset + label.maps[0].length);
	ck_assert_uint_ge(label.data.offset, label.maps[1].offset + label.maps[1].length);
	/* Nobody wants to see the resync of all that. */
	ck_assert_int_eq(rig_remove(1), 0);
	rig_release(0);
	rig_release(1);
}
END_TEST

START_TEST(every_array_and_member_has_a_uuid_of_its_own)
{
	const struct array_spec spec = { .name = "a", .level = 0, .chunk_bytes = 65536 };
	struct label first, second;

	ck_assert_int_eq(create(&spec, 2), 0);
	ck_assert_int_eq(rig_label(0, &first), 0);
	ck_assert_uint_eq(first.array[6] >> 4, 4);
	ck_assert_uint_eq(first.array[8] >> 6, 2);
	ck_assert_int_ne(uuid_compare(first.members[0].uuid, first.members[1].uuid), 0);
	rig_stop();
	ck_assert_int_eq(create(&spec, 2), 0);
	ck_assert_int_eq(rig_label(0, &second), 0);
	ck_assert_int_ne(uuid_compare(first.array, second.array), 0);
	ck_assert_int_ne(uuid_compare(first.members[0].uuid, second.members[0].uuid), 0);
}
END_TEST

/* --- order --- */

START_TEST(a_disk_is_a_member_only_when_all_is_durably_doubtful)
{
	const struct array_spec spec = { .name = "a", .level = 1 };
	struct array_disk disks[2] = { rig_offer(0), rig_offer(1) };
	struct label label;
	uint64_t sequence;
	const void *page;

	rig.disks[0]->hold = rig.disks[1]->hold = MAPS;
	ck_assert_ptr_nonnull(array_create(rig.env, &spec, disks, 2, rig_answer, NULL));
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_LABEL), 0);
	rig_release(0);
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_LABEL), 0);
	rig.disks[0]->hold = LABELS | RESYNC;
	rig_release(1);
	ck_assert_uint_eq(rig_count(1, IO_WRITE, IO_LABEL), 2);
	ck_assert_uint_eq(rig.answers, 0);
	ck_assert_int_eq(rig_label(1, &label), 0);
	page = regions_page_newest(array_tag(&label), 0, rig.bytes[1] + label.maps[0].offset,
				   rig.bytes[1] + label.maps[1].offset, &sequence);
	ck_assert_ptr_nonnull(page);
	for (unsigned i = 0; i < 7; i++)
		ck_assert(regions_page_has(page, i));
	rig_end(0, 0);
	ck_assert_uint_eq(rig.answers, 0);
	rig_end(0, 0);
	ck_assert_uint_eq(rig.answers, 1);
	ck_assert_int_eq(rig.error, 0);
	ck_assert_uint_eq(rig_info().regions_doubtful, 7);
}
END_TEST

START_TEST(copies_are_made_equal_whatever_the_disks_held)
{
	static uint8_t what[2][8 * MIB];

	for (unsigned i = 0; i < 2; i++) {
		rig_disk(i);
		fake_fill(what[i], SIZE, i);
		memcpy(rig.bytes[i], what[i], SIZE);
	}
	ck_assert_int_eq(rig_create(1, 2), 0);
	ck_assert_uint_eq(rig_info().regions_doubtful, 0);
	ck_assert_mem_eq(rig_data(0), what[0] + MIB, rig.array->label.data.length);
	ck_assert_mem_eq(rig_data(1), what[0] + MIB, rig.array->label.data.length);
}
END_TEST

/* Whatever was there has counted its labels further than we would. */
START_TEST(a_disk_of_another_array_says_from_the_first_label_on_that_it_is_of_this_one)
{
	struct label old, now;

	ck_assert_int_eq(rig_create(1, 2), 0);
	for (unsigned i = 0; i < (unsigned)_i; i++) {
		membership_change(rig.array);
		fake_env_run(rig.env);
	}
	ck_assert_int_eq(rig_label(0, &old), 0);
	rig_stop();
	ck_assert_int_eq(rig_create(0, 2), 0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(rig_probe(i, &now), 0);
		ck_assert_uint_eq(now.level, 0);
		ck_assert_int_ne(uuid_compare(old.array, now.array), 0);
		ck_assert_uint_gt(now.sequence, old.sequence);
	}
	rig_stop();
	ck_assert_int_eq(rig_start(3, false), 0);
	ck_assert_uint_eq(rig_info().level, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("create");
	TCase *tcase = tcase_create("create");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, rig_teardown);
	tcase_add_loop_test(tcase, what_can_be_made_is_made_and_all_else_refused_with_its_reason, 0,
			    (int)ARRAY_LEN(shapes));
	tcase_add_test(tcase, a_name_of_any_length_is_refused);
	tcase_add_loop_test(tcase, disks_that_do_not_go_together_are_refused, 0, 4);
	tcase_add_loop_test(tcase,
			    a_disk_that_cannot_be_read_or_written_is_named_or_the_array_is_not_made,
			    0, 3);
	tcase_add_loop_test(tcase, the_layout_follows_from_the_smallest_disk_and_is_the_same_on_all,
			    0, (int)ARRAY_LEN(layouts));
	tcase_add_loop_test(tcase, pages_of_regions_have_room_at_every_size, 0, 9);
	tcase_add_test(tcase, every_array_and_member_has_a_uuid_of_its_own);
	tcase_add_test(tcase, a_disk_is_a_member_only_when_all_is_durably_doubtful);
	tcase_add_test(tcase, copies_are_made_equal_whatever_the_disks_held);
	tcase_add_loop_test(
		tcase, a_disk_of_another_array_says_from_the_first_label_on_that_it_is_of_this_one,
		0, 5);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
