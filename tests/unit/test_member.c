/* SPDX-License-Identifier: MIT */
/* A member's labels and pages on its disk, torn and unreadable ones included. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/crc32c.h"
#include "core/wire.h"
#include "tests/fake/raid_rig.h"

#define SIZE (8 * MIB)

static struct member *member;
static struct label label;
static unsigned written;
static int write_error;

static void setup(void)
{
	rig_setup(2, SIZE);
	rig.array = array_new(rig.env);
	ck_assert_ptr_nonnull(rig.array);
	label = (struct label){
		.name = "a",
		.id = 7,
		.level = 1,
		.roles = 2,
		.block_bytes = 512,
		.maps = { { 8192, 2 * 4096 }, { 16384, 2 * 4096 } },
		.data = { MIB, MIB },
	};
	memset(label.array, 1, sizeof(label.array));
	for (unsigned i = 0; i < 2; i++) {
		memset(label.members[i].uuid, (int)i + 1, sizeof(uuid_t));
		label.members[i].state = LABEL_IN_SYNC;
		label.members[i].role = (uint8_t)i;
	}
	rig.array->label = label;
	member = member_new(rig.array, &(struct array_disk){ "d1", &rig_disk(1)->blk }, 1, 1, 2);
	ck_assert_ptr_nonnull(member);
	member->state = MEMBER_IN_SYNC;
	written = 0;
}

static void teardown(void)
{
	member_free(member);
	array_free(rig.array);
	rig.array = NULL;
	rig_teardown();
}

static void label_written(struct member *which, int error)
{
	ck_assert_ptr_eq(which, member);
	written++;
	write_error = error;
}

static int write_label(uint64_t id)
{
	unsigned before = written;

	label.id = id;
	member_write_label(member, &label, label_written);
	ck_assert(member->holds);
	fake_env_run(rig.env);
	ck_assert_uint_eq(written, before + 1);
	ck_assert(!member->holds);
	return write_error;
}

/* --- labels --- */

START_TEST(a_label_goes_to_one_slot_of_each_end_and_the_next_to_the_others)
{
	const struct rig_disk *disk = rig.disks[1];

	for (unsigned round = 0; round < 4; round++) {
		unsigned slot = (round + 1) & 1;

		rig_forget();
		ck_assert_int_eq(write_label(10 + round), 0);
		ck_assert_uint_eq(disk->record_count, 2);
		for (unsigned end = 0; end < 2; end++) {
			const struct rig_record *record = &disk->records[end];

			ck_assert_uint_eq(record->offset,
					  end ? SIZE - (2 - slot) * LABEL_SIZE : slot * LABEL_SIZE);
			ck_assert_uint_eq(record->length, LABEL_SIZE);
			ck_assert_uint_eq(record->flags, IO_FUA);
			ck_assert_int_eq(record->purpose, IO_LABEL);
		}
	}
}
END_TEST

START_TEST(the_label_says_which_member_the_disk_is_and_counts_its_labels)
{
	struct label found;

	member->sequence = 41;
	member->log_incarnation = 99;
	label.self = 0;
	ck_assert_int_eq(write_label(5), 0);
	ck_assert_int_eq(rig_probe(1, &found), 0);
	ck_assert_uint_eq(found.self, 1);
	ck_assert_uint_eq(found.sequence, 42);
	ck_assert_uint_eq(found.log_incarnation, 99);
	ck_assert_uint_eq(found.id, 5);
	ck_assert_uint_eq(member->sequence, 42);
}
END_TEST

/* A label of many ancestors, so that labels differ in several sectors; its successor. */
static void write_successor(uint64_t id)
{
	label.id = id - 1;
	label.generation = 99;
	for (label.ancestor_count = 0; label.ancestor_count < 40; label.ancestor_count++)
		label.ancestors[label.ancestor_count] =
			(struct label_ancestor){ .id = 1000 * id + label.ancestor_count,
						 .listed = 3 };
	ck_assert_int_eq(write_label(id), 0);
}

START_TEST(a_torn_label_leaves_the_one_before)
{
	struct label found;
	uint8_t before[LABEL_SLOTS][LABEL_SIZE];
	unsigned sectors = (unsigned)_i / 2;
	bool both_ends = _i % 2;

	write_successor(5);
	write_successor(6);
	for (unsigned slot = 0; slot < LABEL_SLOTS; slot++)
		memcpy(before[slot], rig.bytes[1] + label_slot_offset(SIZE, slot), LABEL_SIZE);
	write_successor(7);
	for (unsigned slot = 1; slot < (both_ends ? LABEL_SLOTS : 2); slot += 2)
		memcpy(rig.bytes[1] + label_slot_offset(SIZE, slot) + sectors * 512,
		       before[slot] + sectors * 512, LABEL_SIZE - sectors * 512);
	ck_assert_int_eq(rig_probe(1, &found), 0);
	/* Its bytes end in the fifth sector. */
	ck_assert_uint_eq(found.id, both_ends && sectors < 5 ? 6 : 7);
	ck_assert_uint_eq(found.ancestors[39].id, 1000 * found.id + 39);
}
END_TEST

START_TEST(any_one_slot_is_enough_and_the_newest_counts)
{
	struct label found;
	unsigned readable = (unsigned)_i;

	ck_assert_int_eq(write_label(5), 0);
	ck_assert_int_eq(write_label(6), 0);
	for (unsigned slot = 0; slot < LABEL_SLOTS; slot++)
		if (!(readable >> slot & 1))
			memset(rig.bytes[1] + label_slot_offset(SIZE, slot), 0, LABEL_SIZE);
	ck_assert_int_eq(rig_probe(1, &found), 0);
	/* Sequence 1 lies in slots 1 and 3, 2 in 0 and 2. */
	ck_assert_uint_eq(found.id, readable & 5 ? 6 : 5);
}
END_TEST

START_TEST(a_slot_that_fails_fails_the_label_but_not_before_the_other_ended)
{
	rig.disks[1]->hold = LABELS;
	member_write_label(member, &label, label_written);
	rig_end(1, _i ? 0 : -EIO);
	ck_assert_uint_eq(written, 0);
	ck_assert(member->holds);
	rig_end(1, -ENXIO);
	ck_assert_uint_eq(written, 1);
	ck_assert_int_eq(write_error, _i ? -ENXIO : -EIO);
	ck_assert(!member->holds);
	rig.disks[1]->hold = 0;
	ck_assert_int_eq(write_label(8), 0);
}
END_TEST

/* --- probing --- */

static const struct {
	/*
	 * Of each slot: L label, l an older one, d damaged, n newer version, e unreadable. Where
	 * both places of a label are unreadable, it may be newer than any other.
	 */
	const char *slots;
	int error;
	unsigned sequence;
} probes[] = {
	{ "....", -ENOENT, 0 },  { "eeee", -EIO, 0 },    { "dddd", -EILSEQ, 0 },
	{ "nnnn", -ENOTSUP, 0 }, { "e..e", -ENOENT, 0 }, { ".ed.", -EILSEQ, 0 },
	{ "dned", -ENOTSUP, 0 }, { "dn.L", 0, 9 },       { "Lee.", 0, 9 },
	{ "ee.d", -EILSEQ, 0 },  { "lLlL", 0, 9 },       { "L...", 0, 9 },
	{ "lnll", 0, 4 },        { "Lddd", 0, 9 },       { "lelL", 0, 9 },
	{ "lele", -EIO, 0 },     { "eLe.", -EIO, 0 },    { "e.ed", -EIO, 0 },
};

static void seal(uint8_t *slot)
{
	memset(slot + 12, 0, 4);
	put_le32(slot + 12, crc32c(slot, LABEL_SIZE));
}

START_TEST(what_a_disk_carries_is_the_best_that_a_slot_says)
{
	struct label found;

	for (unsigned slot = 0; slot < LABEL_SLOTS; slot++) {
		uint8_t *at = rig.bytes[1] + label_slot_offset(SIZE, slot);
		char what = probes[_i].slots[slot];

		rig.disks[1]->fail_slots[slot] = what == 'e';
		label.sequence = what == 'l' ? 4 : 9;
		if (what != '.')
			label_encode(&label, at);
		if (what == 'd' || what == 'n')
			at[what == 'd' ? 300 : 8]++;
		if (what == 'n')
			seal(at);
	}
	ck_assert_int_eq(rig_probe(1, &found), probes[_i].error);
	if (!probes[_i].error)
		ck_assert_uint_eq(found.sequence, probes[_i].sequence);
}
END_TEST

START_TEST(a_disk_too_small_for_labels_carries_none)
{
	struct label found;

	rig.sizes[2] = _i ? 4 * LABEL_SIZE : 4 * LABEL_SIZE - 512;
	ck_assert_int_eq(rig_probe(2, &found), -ENOENT);
	ck_assert_uint_eq(rig.disks[2]->record_count, _i ? LABEL_SLOTS : 0);
}
END_TEST

/* --- pages of regions --- */

static unsigned pages_done, page_errors;

static void page_written(struct member *which, unsigned page, int error)
{
	ck_assert_ptr_eq(which, member);
	pages_done |= 1u << page;
	page_errors |= (unsigned)(error != 0) << page;
}

static uint8_t *page_on_disk(unsigned page, unsigned copy)
{
	return rig.bytes[1] + 8192 + 8192 * copy + 4096 * page;
}

START_TEST(pages_lie_where_the_label_says_each_copy_apart)
{
	uint8_t bytes[REGIONS_PAGE];

	for (unsigned page = 0; page < 2; page++) {
		for (unsigned copy = 0; copy < 2; copy++) {
			memset(bytes, (int)(1 + page + 2 * copy), sizeof(bytes));
			pages_done = page_errors = 0;
			member_write_page(member, page, copy, bytes, page_written);
			memset(bytes, 0, sizeof(bytes)); /* it was copied */
			fake_env_run(rig.env);
			ck_assert_uint_eq(pages_done, 1u << page);
			ck_assert_uint_eq(page_errors, 0);
			ck_assert_uint_eq(rig.disks[1]->records[page * 2 + copy].flags, IO_FUA);
			ck_assert_int_eq(rig.disks[1]->records[0].purpose, IO_MAP);
		}
	}
	for (unsigned page = 0; page < 2; page++)
		for (unsigned copy = 0; copy < 2; copy++)
			for (unsigned i = 0; i < REGIONS_PAGE; i++)
				ck_assert_uint_eq(page_on_disk(page, copy)[i], 1 + page + 2 * copy);
}
END_TEST

START_TEST(two_pages_at_once_end_each_with_its_own_error)
{
	static uint8_t bytes[REGIONS_PAGE];

	pages_done = page_errors = 0;
	rig.disks[1]->hold = MAPS;
	member_write_page(member, 0, 0, bytes, page_written);
	member_write_page(member, 1, 1, bytes, page_written);
	rig_end(1, 0);
	ck_assert_uint_eq(pages_done, 1);
	ck_assert(member->holds);
	rig_end(1, -EIO);
	ck_assert_uint_eq(pages_done, 3);
	ck_assert_uint_eq(page_errors, 2);
	ck_assert(!member->holds);
}
END_TEST

static unsigned reads;
static int seen[2]; /* the first byte of each copy; -1: unreadable */

static void page_was_read(struct member *which, unsigned page, const void *one, const void *two)
{
	ck_assert_ptr_eq(which, member);
	ck_assert_uint_eq(page, 1);
	reads++;
	seen[0] = one ? *(const uint8_t *)one : -1;
	seen[1] = two ? *(const uint8_t *)two : -1;
}

START_TEST(a_page_is_read_in_both_copies_and_what_fails_is_none)
{
	bool one = _i & 1, two = _i & 2;

	reads = 0;
	*page_on_disk(1, 0) = 11;
	*page_on_disk(1, 1) = 12;
	rig.disks[1]->hold = MAPS;
	member_read_page(member, 1, page_was_read);
	rig_end(1, one ? 0 : -EIO);
	ck_assert_uint_eq(reads, 0);
	rig_end(1, two ? 0 : -EIO);
	ck_assert_uint_eq(reads, 1);
	ck_assert_int_eq(seen[0], one ? 11 : -1);
	ck_assert_int_eq(seen[1], two ? 12 : -1);
}
END_TEST

/* --- flush --- */

static unsigned flushes;
static int flush_error;

static void flush_done(struct member *which, int error)
{
	ck_assert_ptr_eq(which, member);
	flushes++;
	flush_error = error;
}

START_TEST(a_flush_is_one_of_the_disk_and_its_error_is_told)
{
	flushes = 0;
	rig.disks[1]->hold = RIG_ALL;
	member_flush(member, flush_done);
	ck_assert_uint_eq(rig_count(1, IO_FLUSH, IO_MAP), 1);
	ck_assert(member->holds);
	rig_end(1, _i ? -EIO : 0);
	ck_assert_uint_eq(flushes, 1);
	ck_assert_int_eq(flush_error, _i ? -EIO : 0);
	ck_assert(!member->holds);
}
END_TEST

START_TEST(a_member_holds_its_disk_as_long_as_it_lives)
{
	struct member *other =
		member_new(rig.array, &(struct array_disk){ "d0", &rig_disk(0)->blk }, 0, 0, 0);

	ck_assert_ptr_nonnull(other);
	blk_unref(&rig.disks[0]->blk);
	rig.disks[0] = NULL;
	ck_assert(rig.is_open[0]);
	member_free(other);
	ck_assert(!rig.is_open[0]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("member");
	TCase *tcase = tcase_create("member");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_label_goes_to_one_slot_of_each_end_and_the_next_to_the_others);
	tcase_add_test(tcase, the_label_says_which_member_the_disk_is_and_counts_its_labels);
	tcase_add_loop_test(tcase, a_torn_label_leaves_the_one_before, 0, 18);
	tcase_add_loop_test(tcase, any_one_slot_is_enough_and_the_newest_counts, 1, 16);
	tcase_add_loop_test(tcase, a_slot_that_fails_fails_the_label_but_not_before_the_other_ended,
			    0, 2);
	tcase_add_loop_test(tcase, what_a_disk_carries_is_the_best_that_a_slot_says, 0,
			    (int)ARRAY_LEN(probes));
	tcase_add_loop_test(tcase, a_disk_too_small_for_labels_carries_none, 0, 2);
	tcase_add_test(tcase, pages_lie_where_the_label_says_each_copy_apart);
	tcase_add_test(tcase, two_pages_at_once_end_each_with_its_own_error);
	tcase_add_loop_test(tcase, a_page_is_read_in_both_copies_and_what_fails_is_none, 0, 4);
	tcase_add_loop_test(tcase, a_flush_is_one_of_the_disk_and_its_error_is_told, 0, 2);
	tcase_add_test(tcase, a_member_holds_its_disk_as_long_as_it_lives);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
