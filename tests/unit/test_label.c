/* SPDX-License-Identifier: MIT */
/* The label on disk: what comes back, what is refused, where slots lie. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/label.h"
#include "core/crc32c.h"
#include "core/wire.h"

static struct label a_label(void)
{
	struct label label = {
		.name = "r5",
		.self = 1,
		.sequence = 7,
		.id = 0x1122334455667788,
		.generation = 9,
		.forced_id = 5,
		.level = 5,
		.roles = 4,
		.chunk_bytes = 65536,
		.block_bytes = 512,
		.flags = LABEL_LOG_STRIPES,
		.log_incarnation = 3,
		.created_s = 1796000000,
		.maps = { { 8192, 8192 }, { 16384, 8192 } },
		.log = { 24576, MIB - 24576 },
		.data = { MIB, 16 * MIB },
		.ancestors = { { .id = 5, .listed = 0xf }, { .id = 6, .listed = 0xe } },
		.ancestor_count = 2,
		.bad = { .all = { { 1, 4096, 8192 }, { 3, 0, 512 } }, .count = 2 },
	};

	memset(label.array, 0xa5, sizeof(label.array));
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		label.members[i].role = LABEL_NO_ROLE;
	for (unsigned i = 0; i < 5; i++) {
		memset(label.members[i].uuid, (int)i + 1, sizeof(uuid_t));
		label.members[i].state = LABEL_IN_SYNC;
		label.members[i].role = (uint8_t)i;
	}
	label.members[0].state = LABEL_FAILED;
	label.members[0].reached = 6;
	label.members[4].state = LABEL_REBUILDING;
	label.members[4].role = 0;
	return label;
}

static void seal(uint8_t *buf)
{
	put_le32(buf + 12, 0);
	put_le32(buf + 12, crc32c(buf, LABEL_SIZE));
}

START_TEST(what_is_written_is_read)
{
	struct label label = a_label(), back;
	uint8_t buf[LABEL_SIZE];

	label_encode(&label, buf);
	ck_assert_int_eq(label_decode(buf, &back), 0);
	ck_assert_mem_eq(&label, &back, sizeof(label));
}
END_TEST

START_TEST(its_bytes_are_those_of_the_manual)
{
	struct label label = a_label();
	uint8_t buf[LABEL_SIZE];

	label_encode(&label, buf);
	ck_assert_mem_eq(buf, "YOKEDISK\1\0\0\0", 12);
	ck_assert_mem_eq(buf + 32, "r5\0", 3);
	ck_assert_mem_eq(buf + 104, "\x88\x77\x66\x55\x44\x33\x22\x11", 8);
	ck_assert_mem_eq(buf + 112, "\5\4\2\1", 4);
	ck_assert_mem_eq(buf + 192, "\0\0\x10\0\0\0\0\0\0\0\0\1", 12);
	ck_assert_mem_eq(buf + 256 + 4 * 32 + 16, "\2\0", 2);
	ck_assert_mem_eq(buf + 1280 + 24, "\6\0\0\0\0\0\0\0", 8);
	ck_assert_mem_eq(buf + 1280 + 40, "\xe\0\0\0", 4);
	ck_assert_mem_eq(buf + 224, "\2\0\0\0", 4);
	ck_assert_mem_eq(buf + 2816, "\1\x10\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\3\0", 18);
	seal(buf);
	ck_assert_int_eq(label_decode(buf, &label), 0);
}
END_TEST

START_TEST(every_flipped_bit_is_noticed)
{
	struct label label = a_label(), back;
	uint8_t buf[LABEL_SIZE];

	label_encode(&label, buf);
	for (unsigned bit = 0; bit < LABEL_SIZE * 8; bit += 7) {
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ck_assert_int_eq(label_decode(buf, &back), bit < 64 ? -ENOENT : -EILSEQ);
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}
END_TEST

START_TEST(every_torn_write_of_512_is_noticed)
{
	struct label old = a_label(), new, back;
	uint8_t a[LABEL_SIZE], b[LABEL_SIZE];

	new = old;
	ck_assert_int_eq(label_succeed(&new, 99), 0);
	new.members[3].state = LABEL_FAILED;
	label_encode(&old, a);
	for (unsigned mask = 1; mask < 255; mask++) {
		label_encode(&new, b);
		for (unsigned sector = 0; sector < 8; sector++)
			if (mask >> sector & 1)
				memcpy(b + sector * 512, a + sector * 512, 512);
		if (label_decode(b, &back) == 0)
			ck_assert(back.id == 99 || back.id == old.id);
	}
}
END_TEST

/* Sound bytes, wrong sense: each would make later code go astray. */
START_TEST(what_makes_no_sense_is_refused)
{
	static const struct {
		unsigned offset, value;
	} wrong[] = {
		{ 16, 0 },    /* (all of the uuid, below) */
		{ 32, 0 },    /* no name */
		{ 32, 0x1b }, /* a control character in it */
		{ 112, 6 },   /* level */
		{ 113, 2 },   /* roles for level 5 */
		{ 113, 17 },
		{ 114, 4 },  /* flag */
		{ 115, 31 }, /* self is no member */
		{ 115, 32 },
		{ 117, 3 },              /* chunk no power of two */
		{ 120, 1 },              /* block */
		{ 124, 65 },             /* ancestors */
		{ 144, 1 },              /* area not on 4 KiB */
		{ 145, 0 },              /* area in the slots */
		{ 195, 0xff },           /* data far away but whole: fine, see below */
		{ 207, 0xff },           /* data longer than there are bytes */
		{ 186, 0x01 },           /* log shorter than a stripe */
		{ 256 + 16, 9 },         /* state */
		{ 256 + 32 + 17, 7 },    /* role beyond */
		{ 256 + 32 + 17, 2 },    /* role filled twice */
		{ 256 + 32 + 17, 0xff }, /* in-sync without a role */
		{ 208, 1 },              /* more ancestors than labels before it */
		{ 1280, 0 },             /* ancestor without id */
		{ 1280 + 16, 0 },        /* that listed nobody */
		{ 1280 + 17, 1 },        /* that listed an entry that is free */
		{ 103, 0x80 },           /* more labels than there can have been, on the disk */
		{ 215, 0x80 },           /* and of the array */
	};

	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
		struct label label = a_label(), back;
		uint8_t buf[LABEL_SIZE];

		label_encode(&label, buf);
		buf[wrong[i].offset] = (uint8_t)wrong[i].value;
		if (wrong[i].offset == 16)
			memset(buf + 16, 0, 16);
		seal(buf);
		ck_assert_msg(label_decode(buf, &back) == (wrong[i].offset == 195 ? 0 : -EILSEQ),
			      "byte %u as %u", wrong[i].offset, wrong[i].value);
	}
}
END_TEST

/* Whoever falls back to an ancestor puts its members into roles. */
START_TEST(an_ancestor_that_lists_a_member_without_a_role_or_a_role_twice_is_refused)
{
	struct label label = a_label(), back;
	uint8_t buf[LABEL_SIZE];

	label.ancestors[0].listed = 3;
	label.members[1].state = LABEL_REMOVED;
	label_encode(&label, buf);
	ck_assert_int_eq(label_decode(buf, &back), 0);
	label.members[1].role = _i ? LABEL_NO_ROLE : label.members[0].role;
	label_encode(&label, buf);
	ck_assert_int_eq(label_decode(buf, &back), -EILSEQ);
	for (unsigned i = 0; i < label.ancestor_count; i++)
		label.ancestors[i].listed = 1;
	label_encode(&label, buf);
	ck_assert_int_eq(label_decode(buf, &back), 0);
}
END_TEST

START_TEST(data_of_less_than_a_chunk_are_refused)
{
	struct label label = a_label(), back;
	uint8_t buf[LABEL_SIZE];

	label.data.length = label.chunk_bytes;
	label_encode(&label, buf);
	ck_assert_int_eq(label_decode(buf, &back), 0);
	label.data.length = label.chunk_bytes - label.block_bytes;
	label_encode(&label, buf);
	ck_assert_int_eq(label_decode(buf, &back), -EILSEQ);
}
END_TEST

/* Where an area ends must not come round to where the next one may begin. */
START_TEST(areas_that_end_beyond_all_disks_are_refused)
{
	static const struct label_area far[] = {
		{ UINT64_MAX - MIB + 1, MIB },
		{ 1ull << 63, MIB },
		{ (1ull << 63) - 4096, MIB },
		{ 8192, UINT64_MAX - 8191 },
	};
	struct label label, back;
	uint8_t buf[LABEL_SIZE];

	for (unsigned which = 0; which < 4; which++) {
		label = a_label();
		*(which < 2 ? &label.maps[which] : which == 2 ? &label.log : &label.data) = far[_i];
		label_encode(&label, buf);
		ck_assert_int_eq(label_decode(buf, &back), -EILSEQ);
	}
}
END_TEST

START_TEST(bad_ranges_that_are_not_as_they_should_be_are_refused)
{
	struct label label, back;
	uint8_t buf[LABEL_SIZE];

	for (unsigned i = 0; i < 8; i++) {
		label = a_label();
		label.bad.all[1].role = i == 0 ? 4 : i == 1 ? 1 : 3; /* none such; not apart */
		label.bad.all[1].from += i == 1 ? 8192 : i == 2 ? 512 : 0;
		label.bad.all[1].to += i == 1 ? 8192 : i == 3 ? 16 * MIB : i == 4 ? 256 : 0;
		label.bad.all[0].role = i == 5 ? 4 : 1; /* out of order */
		label_encode(&label, buf);
		if (i == 6)
			put_le32(buf + 224, BAD_RANGES_MAX + 1);
		seal(buf);
		ck_assert_int_eq(label_decode(buf, &back), i == 7 ? 0 : -EILSEQ);
	}
	label = a_label();
	label.level = 0;
	label_encode(&label, buf);
	ck_assert_int_eq(label_decode(buf, &back), -EILSEQ);
}
END_TEST

START_TEST(two_members_with_one_uuid_are_refused)
{
	struct label label = a_label(), back;
	uint8_t buf[LABEL_SIZE];

	uuid_copy(label.members[2].uuid, label.members[1].uuid);
	label_encode(&label, buf);
	ck_assert_int_eq(label_decode(buf, &back), -EILSEQ);
}
END_TEST

START_TEST(a_newer_version_is_told_from_damage)
{
	struct label label = a_label();
	uint8_t buf[LABEL_SIZE];

	label_encode(&label, buf);
	put_le32(buf + 8, 2);
	seal(buf);
	ck_assert_int_eq(label_decode(buf, &label), -ENOTSUP);
	memset(buf, 0, sizeof(buf));
	ck_assert_int_eq(label_decode(buf, &label), -ENOENT);
}
END_TEST

START_TEST(random_bytes_never_decode)
{
	struct label label;
	uint8_t buf[LABEL_SIZE];

	srand(1);
	for (unsigned round = 0; round < 2000; round++) {
		for (unsigned i = 0; i < LABEL_SIZE; i++)
			buf[i] = (uint8_t)(rand() % (round % 8 ? 256 : 4));
		memcpy(buf, "YOKEDISK\1\0\0\0", 12);
		seal(buf);
		ck_assert_int_eq(label_decode(buf, &label), -EILSEQ);
	}
}
END_TEST

START_TEST(slots_are_at_both_ends)
{
	ck_assert_uint_eq(label_slot_offset(MIB + 4095, 0), 0);
	ck_assert_uint_eq(label_slot_offset(MIB + 4095, 1), 4096);
	ck_assert_uint_eq(label_slot_offset(MIB + 4095, 2), MIB - 8192);
	ck_assert_uint_eq(label_slot_offset(MIB + 4095, 3), MIB - 4096);
	ck_assert_uint_eq(label_slot(6), 0);
	ck_assert_uint_eq(label_slot(7), 1);
}
END_TEST

START_TEST(a_successor_names_what_it_comes_from)
{
	struct label label = a_label();
	uint32_t listed = label_listed(&label);

	label.flags |= LABEL_CLEAN;
	ck_assert_uint_eq(listed, 0xe);
	ck_assert_int_eq(label_succeed(&label, 77), 0);
	ck_assert_uint_eq(label.ancestor_count, 3);
	ck_assert_uint_eq(label.ancestors[2].id, 0x1122334455667788);
	ck_assert_uint_eq(label.ancestors[2].listed, listed);
	ck_assert_uint_eq(label.id, 77);
	ck_assert_uint_eq(label.generation, 10);
	ck_assert_uint_eq(label_generation(&label, 2), 9);
	ck_assert_uint_eq(label.flags, LABEL_LOG_STRIPES);
	label_settled(&label);
	ck_assert_uint_eq(label.ancestor_count, 0);
	ck_assert_uint_eq(label.id, 77);
}
END_TEST

START_TEST(a_chain_has_an_end)
{
	struct label label = a_label();
	unsigned made = 0;

	while (label_succeed(&label, 1000 + made) == 0)
		made++;
	ck_assert_uint_eq(made, LABEL_ANCESTORS_MAX - 2);
	ck_assert_uint_eq(label.id, 1000 + made - 1);
}
END_TEST

START_TEST(members_are_found_by_uuid)
{
	struct label label = a_label();
	const uuid_t other = { 0x77 };

	ck_assert_int_eq(label_find(&label, label.members[3].uuid), 3);
	ck_assert_int_eq(label_find(&label, other), -1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("label");
	TCase *tcase = tcase_create("label");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, what_is_written_is_read);
	tcase_add_test(tcase, its_bytes_are_those_of_the_manual);
	tcase_add_test(tcase, every_flipped_bit_is_noticed);
	tcase_add_test(tcase, every_torn_write_of_512_is_noticed);
	tcase_add_test(tcase, what_makes_no_sense_is_refused);
	tcase_add_loop_test(
		tcase, an_ancestor_that_lists_a_member_without_a_role_or_a_role_twice_is_refused, 0,
		2);
	tcase_add_test(tcase, data_of_less_than_a_chunk_are_refused);
	tcase_add_loop_test(tcase, areas_that_end_beyond_all_disks_are_refused, 0, 4);
	tcase_add_test(tcase, bad_ranges_that_are_not_as_they_should_be_are_refused);
	tcase_add_test(tcase, two_members_with_one_uuid_are_refused);
	tcase_add_test(tcase, a_newer_version_is_told_from_damage);
	tcase_add_test(tcase, random_bytes_never_decode);
	tcase_add_test(tcase, slots_are_at_both_ends);
	tcase_add_test(tcase, a_successor_names_what_it_comes_from);
	tcase_add_test(tcase, a_chain_has_an_end);
	tcase_add_test(tcase, members_are_found_by_uuid);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
