/* SPDX-License-Identifier: MIT */
/* SANITIZE: what it does to the medium, and what of it is refused. */
#include <check.h>
#include <errno.h>

#include "tests/fake/sanitize_rig.h"

/* ---- what it does to the medium */

START_TEST(block_erase_leaves_zeroes_and_everything_deallocated)
{
	uint64_t end = SIZE / BLOCK(_i), lbas[] = { 0, 77, end / 2, end - 1 };
	struct rig_task *rig;
	unsigned i, immed;

	start_ram(_i, true);
	for (immed = 0; immed < 2; immed++) {
		for (i = 0; i < ARRAY_LEN(lbas); i++)
			write_at(lbas[i]);
		rig = sanitize(BLOCK_ERASE | (immed ? IMMED : 0), 0);
		ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
		for (i = 0; i < ARRAY_LEN(lbas); i++) {
			const uint8_t *block = read_at(lbas[i]);

			ck_assert(block[0] == 0 && !memcmp(block, block + 1, BLOCK(_i) - 1));
		}
		rig = rig_do(nexus, 0, CDB(0x9e, 0x12, [12] = 1));
		ck_assert_uint_eq(get_be32(rig->data), 20);
		ck_assert_uint_eq(get_be32(rig->data + 16), end);
		ck_assert_uint_eq(rig->data[20], 1);
	}
	stop();
}
END_TEST

/* What was there goes to the medium as zeroes before it is given back. */
START_TEST(block_erase_overwrites_what_is_allocated_and_then_unmaps_everything)
{
	uint64_t ends[] = { MIB, MIB + 256 * KIB, MIB + 300 * KIB };
	struct rig_task rig;
	struct io *io;
	unsigned i;

	start_fake(_i, THIN);
	send(&rig, BLOCK_ERASE, 0);
	io = STAILQ_FIRST(&fake->held);
	ck_assert_int_eq(io->op, IO_STATUS);
	io->run = IO_RUN_ZEROES;
	io->run_bytes = MIB;
	serve(1);
	io = STAILQ_FIRST(&fake->held);
	ck_assert_int_eq(io->op, IO_STATUS);
	ck_assert_uint_eq(io->offset, MIB);
	io->run = IO_RUN_DATA;
	io->run_bytes = 300 * KIB;
	serve(1);
	for (i = 0; i < 2; i++) {
		io = STAILQ_FIRST(&fake->held);
		ck_assert_int_eq(io->op, IO_WRITE);
		ck_assert_uint_eq(io->offset, ends[i]);
		ck_assert_uint_eq(io->offset + io->length, ends[i + 1]);
		ck_assert(((uint8_t *)io->iov[0].iov_base)[0] == 0);
		serve(1);
	}
	io = STAILQ_FIRST(&fake->held);
	ck_assert_int_eq(io->op, IO_STATUS);
	io->run = IO_RUN_ZEROES;
	serve(1);
	ck_assert_int_eq(STAILQ_FIRST(&fake->held)->op, IO_FLUSH);
	ck_assert_uint_eq(fake->submits[IO_UNMAP], 0);
	serve(1);
	io = STAILQ_FIRST(&fake->held);
	ck_assert_int_eq(io->op, IO_UNMAP);
	ck_assert_uint_eq(io->offset, 0);
	ck_assert_uint_eq(io->length, SIZE);
	serve(1);
	ck_assert_int_eq(STAILQ_FIRST(&fake->held)->op, IO_FLUSH);
	ck_assert_uint_eq(rig.done, 0);
	serve(1);
	ck_assert_uint_eq(rig.done, 1);
	ck_assert_uint_eq(rig.task.status, SCSI_GOOD);
	stop();
}
END_TEST

START_TEST(overwrite_leaves_the_pattern_in_every_block)
{
	uint32_t block = BLOCK(_i);
	const uint32_t lengths[] = { 1, 4, 7, block / 2, block - 1, block };
	static const uint8_t flags[] = { 1, 2, 0x81, 0x82, 0x83 };
	uint64_t end = SIZE / block, lbas[] = { 0, 1, 31, 32, 511, end - 1 };
	unsigned l, f, i;

	start_ram(_i, false);
	for (l = 0; l < ARRAY_LEN(lengths); l++) {
		for (f = 0; f < ARRAY_LEN(flags); f++) {
			uint16_t length = pattern(flags[f], (uint16_t)lengths[l], l * 10 + f);

			ck_assert_uint_eq(rig_sense(sanitize(OVERWRITE, length)), 0);
			for (i = 0; i < ARRAY_LEN(lbas); i++) {
				const uint8_t *got = read_at(lbas[i]);

				ck_assert_mem_eq(got, list + 4, lengths[l]);
				/* And on: each byte is the one a pattern's length before. */
				ck_assert_mem_eq(got + lengths[l], got, block - lengths[l]);
			}
		}
	}
	stop();
}
END_TEST

START_TEST(passes_are_counted_inverted_in_turn_and_each_flushed)
{
	static const struct {
		uint8_t flags;
		uint8_t passes[4];
		unsigned count;
	} cases[] = { { 1, { 0x5a }, 1 },
		      { 3, { 0x5a, 0x5a, 0x5a }, 3 },
		      { 0x81, { 0x5a }, 1 },
		      { 0x82, { 0xa5, 0x5a }, 2 },
		      { 0x84, { 0xa5, 0x5a, 0xa5, 0x5a }, 4 } };
	struct rig_task rig;
	unsigned c, pass;

	for (c = 0; c < ARRAY_LEN(cases); c++) {
		start_fake(_i, BLK_VOLATILE);
		pattern(cases[c].flags, 1, 0);
		list[4] = 0x5a;
		send(&rig, OVERWRITE, 5);
		for (pass = 0; pass < cases[c].count; pass++) {
			uint64_t at = 0;

			while (at < SIZE) {
				struct io *io = STAILQ_FIRST(&fake->held);
				const uint8_t *data = io->iov[0].iov_base;

				ck_assert_int_eq(io->op, IO_WRITE);
				ck_assert_uint_eq(io->offset, at);
				ck_assert_uint_le(io->length, 256 * KIB);
				ck_assert_uint_eq(fake->held_count, 1);
				ck_assert_uint_eq(data[0], cases[c].passes[pass]);
				ck_assert_mem_eq(data, data + 1, io->iov[0].iov_len - 1);
				at += io->length;
				serve(1);
			}
			ck_assert_int_eq(STAILQ_FIRST(&fake->held)->op, IO_FLUSH);
			ck_assert_uint_eq(rig.done, 0);
			serve(1);
		}
		ck_assert_uint_eq(fake->held_count, 0);
		ck_assert_uint_eq(rig.task.status, SCSI_GOOD);
		stop();
	}
}
END_TEST

START_TEST(a_device_takes_no_more_at_once_than_it_said)
{
	struct rig_task rig;

	start_fake(_i, BLK_VOLATILE);
	fake->blk.max_io = 12 * KIB;
	fake->blk.mem_align = 4096;
	send(&rig, OVERWRITE, pattern(1, 4, 0));
	ck_assert_uint_eq(STAILQ_FIRST(&fake->held)->length, 12 * KIB);
	serve(1000);
	ck_assert_uint_eq(rig.task.status, SCSI_GOOD);
	ck_assert_uint_eq(fake->submits[IO_WRITE], (SIZE + 12 * KIB - 1) / (12 * KIB));
	stop();
}
END_TEST

/* ---- which of them there is, and what is refused */

static bool reported(unsigned action)
{
	struct rig_task *rig =
		rig_do(nexus, 0, CDB(0xa3, 0x0c, 2, 0x48, 0, (uint8_t)action, 0, 0, 0, 64));

	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	return rig->data[1] == 3;
}

START_TEST(block_erase_is_there_where_blocks_can_be_unmapped_and_overwrite_where_not)
{
	struct rig_task *rig;
	unsigned thin;

	for (thin = 0; thin < 2; thin++) {
		start_ram(_i, thin);
		ck_assert_int_eq(reported(BLOCK_ERASE), thin);
		ck_assert_int_eq(reported(OVERWRITE), !thin);
		ck_assert(reported(EXIT_FAILURE_MODE));
		ck_assert(!reported(3)); /* CRYPTOGRAPHIC ERASE */
		rig = rig_do(nexus, 0, CDB(0x12, 1, 0xb1, 0, 64));
		ck_assert_uint_eq(rig->data[7], thin ? 0x40 : 0);
		rig = sanitize(thin ? OVERWRITE : BLOCK_ERASE, 0);
		ck_assert_uint_eq(rig_sense(rig), 0x052400);
		ck_assert_int_eq(rig_field(rig), 1);
		ck_assert_uint_eq(rig_sense(sanitize(3, 0)), 0x052400);
		ck_assert_uint_eq(rig_sense(sanitize(0, 0)), 0x052400);
		ck_assert_uint_eq(rig_sense(sanitize(EXIT_FAILURE_MODE, 0)), 0);
		stop();
	}
}
END_TEST

START_TEST(fields_that_must_be_zero_are_refused_where_they_are)
{
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task *rig;
	unsigned byte, action;

	start_ram(_i, true);
	write_at(0);
	for (action = BLOCK_ERASE; action <= EXIT_FAILURE_MODE;
	     action += EXIT_FAILURE_MODE - BLOCK_ERASE) {
		for (byte = 1; byte < 9; byte++) {
			memset(cdb, 0, sizeof(cdb));
			cdb[0] = 0x48;
			cdb[1] = (uint8_t)action;
			cdb[byte] |= byte == 1 ? 0x40 : 0x01;
			rig = rig_do(nexus, 0, cdb);
			ck_assert_uint_eq(rig_sense(rig), 0x052400);
			ck_assert_int_eq(rig_field(rig), byte == 8 ? 7 : (int)byte);
		}
	}
	ck_assert_uint_eq(tur(nexus), 0);
	stop();
}
END_TEST

START_TEST(lists_of_an_overwrite_are_checked)
{
	uint32_t block = BLOCK(_i);
	const struct {
		uint8_t flags;
		uint32_t pattern, length;
		uint64_t have;
		unsigned sense;
		int field;
	} cases[] = {
		{ 1, 4, 0, 0, 0x052400, 7 },
		{ 1, 4, 4, 4, 0x052400, 7 },
		{ 1, block, block + 5, block + 5, 0x052400, 7 },
		{ 0, 4, 8, 8, 0x052600, 0 },    /* OVERWRITE COUNT */
		{ 0x21, 4, 8, 8, 0x052600, 0 }, /* TEST */
		{ 1, 0, 8, 8, 0x052600, 2 },
		{ 1, block + 1, block + 4, block + 4, 0x052600, 2 },
		{ 1, 5, 8, 8, 0x051a00, -1 }, /* the list ends in the pattern */
		{ 1, 4, 8, 7, 0x051a00, -1 },
		{ 1, 4, 8, 0, 0x051a00, -1 },
		{ 1, 4, 8, 8, 0, -1 },
		{ 1, 1, 5, 5, 0, -1 },
		{ 1, block, block + 4, block + 4, 0, -1 },
	};
	static struct rig_task rig;
	unsigned i;

	start_ram(_i, false);
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t cdb[SCSI_CDB_MAX] = { 0x48, OVERWRITE };

		memset(list, 0x11, sizeof(list));
		list[0] = cases[i].flags;
		put_be16(list + 2, (uint16_t)cases[i].pattern);
		put_be16(cdb + 7, (uint16_t)cases[i].length);
		rig_init(&rig, nexus, 0, cdb);
		rig.task.expected_out = cases[i].have;
		rig_enter(&rig, 0);
		if (rig.task.data.length)
			buf_write(&rig.task.data, 0, list, rig.task.data.length);
		scsi_task_submit(&rig.task);
		rig_run();
		ck_assert_uint_eq(rig_sense(&rig), cases[i].sense);
		if (cases[i].field >= 0)
			ck_assert_int_eq(rig_field(&rig), cases[i].field);
		ck_assert_uint_eq(*read_at(0), cases[i].sense ? 0 : 0x11);
		if (!cases[i].sense) {
			pattern(1, 1, 0);
			list[4] = 0;
			ck_assert_uint_eq(rig_sense(sanitize(OVERWRITE, 5)), 0);
		}
	}
	stop();
}
END_TEST

START_TEST(a_protected_medium_and_a_reserved_or_failed_unit_are_left_alone)
{
	start_fake(_i, THIN);
	atomic_store(&rig_device->maps[0]->lu->swp, true);
	ck_assert_uint_eq(rig_sense(sanitize(BLOCK_ERASE, 0)), 0x072700);
	atomic_store(&rig_device->maps[0]->lu->swp, false);
	ck_assert_uint_eq(rig_do(other, 0, CDB(0x16))->task.status, SCSI_GOOD);
	ck_assert_uint_eq(sanitize(BLOCK_ERASE, 0)->task.status, SCSI_RESERVATION_CONFLICT);
	ck_assert_uint_eq(rig_do(other, 0, CDB(0x17))->task.status, SCSI_GOOD);
	blk_set_state(&fake->blk, BLK_FAILED, "gone");
	ck_assert_uint_eq(rig_sense(sanitize(BLOCK_ERASE, 0)), 0x020403);
	blk_set_state(&fake->blk, BLK_ONLINE, "%s", "");
	ck_assert_uint_eq(tur(nexus), 0);
	ck_assert_uint_eq(fake->submits[IO_STATUS], 0);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sanitize");
	TCase *tc = tcase_create("sanitize");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, block_erase_leaves_zeroes_and_everything_deallocated, 0, ALL);
	tcase_add_loop_test(tc, block_erase_overwrites_what_is_allocated_and_then_unmaps_everything,
			    0, ALL);
	tcase_add_loop_test(tc, overwrite_leaves_the_pattern_in_every_block, 0, ALL);
	tcase_add_loop_test(tc, passes_are_counted_inverted_in_turn_and_each_flushed, 0, ALL);
	tcase_add_loop_test(tc, a_device_takes_no_more_at_once_than_it_said, 0, ALL);
	tcase_add_loop_test(
		tc, block_erase_is_there_where_blocks_can_be_unmapped_and_overwrite_where_not, 0,
		ALL);
	tcase_add_loop_test(tc, fields_that_must_be_zero_are_refused_where_they_are, 0, ALL);
	tcase_add_loop_test(tc, lists_of_an_overwrite_are_checked, 0, ALL);
	tcase_add_loop_test(tc, a_protected_medium_and_a_reserved_or_failed_unit_are_left_alone, 0,
			    ALL);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
