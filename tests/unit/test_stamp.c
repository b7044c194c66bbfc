/* SPDX-License-Identifier: MIT */
/* Stamped blocks: what is written reads back, and each kind of damage has its name. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "bench/stamp.h"

static uint8_t block[STAMP_BLOCK], other[STAMP_BLOCK];
static struct stamp_found found;

static struct stamp stamp(uint64_t sequence)
{
	return (struct stamp){
		.run = 0x1122334455667788, .block = 77, .sequence = sequence, .writer = 5, .lun = 3
	};
}

static void write_version(uint8_t *to, uint64_t sequence)
{
	struct stamp s = stamp(sequence);

	stamp_write(to, &s);
}

static enum stamp_kind kind(void)
{
	stamp_read(block, 3, 77, &found);
	return found.kind;
}

START_TEST(what_was_stamped_reads_back)
{
	write_version(block, 41);
	ck_assert_int_eq(kind(), STAMP_GOOD);
	ck_assert_uint_eq(found.stamp.run, 0x1122334455667788);
	ck_assert_uint_eq(found.stamp.block, 77);
	ck_assert_uint_eq(found.stamp.sequence, 41);
	ck_assert_uint_eq(found.stamp.writer, 5);
	ck_assert_uint_eq(found.stamp.lun, 3);
}
END_TEST

START_TEST(the_format_on_the_lun_is_the_documented_one)
{
	static const uint8_t label[36] = "YkbS\1\2\3\0"
					 "\x88\x77\x66\x55\x44\x33\x22\x11"
					 "\x4d\0\0\0\0\0\0\0"
					 "\x29\0\0\0\0\0\0\0"
					 "\5\0\0";

	write_version(block, 41);
	ck_assert_mem_eq(block + 2 * STAMP_SECTOR, label, sizeof(label));
}
END_TEST

START_TEST(any_flipped_bit_is_noticed)
{
	write_version(block, 41);
	for (unsigned bit = 0; bit < STAMP_BLOCK * 8; bit += 7) {
		block[bit / 8] ^= 1u << bit % 8;
		ck_assert_int_ne(kind(), STAMP_GOOD);
		if (bit / 8 % STAMP_SECTOR >= 5) {
			ck_assert_int_eq(found.kind, STAMP_CORRUPT);
			ck_assert_int_eq(found.sectors[bit / 8 / STAMP_SECTOR].kind, STAMP_CORRUPT);
		}
		block[bit / 8] ^= 1u << bit % 8;
	}
	ck_assert_int_eq(kind(), STAMP_GOOD);
}
END_TEST

START_TEST(a_tear_shows_both_versions_and_the_border)
{
	unsigned border = (unsigned)_i;

	write_version(block, 41);
	write_version(other, 42);
	memcpy(block, other, (size_t)border * STAMP_SECTOR);
	ck_assert_int_eq(kind(), STAMP_TORN);
	for (unsigned i = 0; i < STAMP_SECTORS; i++) {
		ck_assert_int_eq(found.sectors[i].kind, STAMP_GOOD);
		ck_assert_uint_eq(found.sectors[i].stamp.sequence, i < border ? 42 : 41);
	}
	memset(block, 0, (size_t)border * STAMP_SECTOR);
	ck_assert_int_eq(kind(), STAMP_TORN);
	ck_assert_int_eq(found.sectors[0].kind, STAMP_ZERO);
}
END_TEST

START_TEST(a_block_of_another_place_or_lun_is_misplaced)
{
	write_version(block, 41);
	stamp_read(block, 3, 78, &found);
	ck_assert_int_eq(found.kind, STAMP_MISPLACED);
	ck_assert_uint_eq(found.stamp.block, 77);
	stamp_read(block, 2, 77, &found);
	ck_assert_int_eq(found.kind, STAMP_MISPLACED);
	ck_assert_uint_eq(found.stamp.lun, 3);
}
END_TEST

START_TEST(swapped_sectors_of_one_version_are_a_tear)
{
	write_version(block, 41);
	memcpy(other, block, STAMP_BLOCK);
	memcpy(block, other + STAMP_SECTOR, STAMP_SECTOR);
	memcpy(block + STAMP_SECTOR, other, STAMP_SECTOR);
	ck_assert_int_eq(kind(), STAMP_TORN);
	ck_assert_int_eq(found.sectors[0].kind, STAMP_MISPLACED);
	ck_assert_uint_eq(found.sectors[0].place, 1);
	ck_assert_int_eq(found.sectors[2].kind, STAMP_GOOD);
}
END_TEST

START_TEST(what_nobody_stamped_is_told_apart)
{
	memset(block, 0, sizeof(block));
	ck_assert_int_eq(kind(), STAMP_ZERO);
	memset(block, 7, sizeof(block));
	ck_assert_int_eq(kind(), STAMP_FOREIGN);
	write_version(block, 41);
	stamp_poison(block);
	ck_assert_int_eq(kind(), STAMP_MISSING);
}
END_TEST

START_TEST(the_hash_depends_on_every_byte)
{
	uint64_t before;

	write_version(block, 41);
	before = stamp_hash(block);
	ck_assert_uint_eq(stamp_hash(block), before);
	for (unsigned i = 0; i < STAMP_BLOCK; i += 129) {
		block[i] ^= 1;
		ck_assert_uint_ne(stamp_hash(block), before);
		ck_assert_uint_lt(stamp_hash(block), (uint64_t)1 << 63);
		block[i] ^= 1;
	}
}
END_TEST

/* No 8-byte word of the contents occurs twice in a block or in two versions of it. */
START_TEST(contents_neither_compress_nor_deduplicate)
{
	write_version(block, 41);
	write_version(other, 42);
	for (unsigned i = 40; i < STAMP_BLOCK; i += 8) {
		if (i % STAMP_SECTOR < 40)
			continue;
		for (unsigned j = 40; j < STAMP_BLOCK; j += 8) {
			if (j % STAMP_SECTOR < 40)
				continue;
			ck_assert(i == j || memcmp(block + i, block + j, 8) != 0);
			ck_assert(memcmp(block + i, other + j, 8) != 0);
		}
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stamp");
	TCase *tcase = tcase_create("stamp");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, what_was_stamped_reads_back);
	tcase_add_test(tcase, the_format_on_the_lun_is_the_documented_one);
	tcase_add_test(tcase, any_flipped_bit_is_noticed);
	tcase_add_loop_test(tcase, a_tear_shows_both_versions_and_the_border, 1, STAMP_SECTORS);
	tcase_add_test(tcase, a_block_of_another_place_or_lun_is_misplaced);
	tcase_add_test(tcase, swapped_sectors_of_one_version_are_a_tear);
	tcase_add_test(tcase, what_nobody_stamped_is_told_apart);
	tcase_add_test(tcase, the_hash_depends_on_every_byte);
	tcase_add_test(tcase, contents_neither_compress_nor_deduplicate);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
