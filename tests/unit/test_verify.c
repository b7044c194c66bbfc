/* SPDX-License-Identifier: MIT */
/* VERIFY and WRITE AND VERIFY in all three sizes over block sizes and homes. */
#include <check.h>
#include <errno.h>

#include "tests/fake/scsi_rig.h"

#define SIZE (32 * MIB)

/* By width: 10, 12, 16. */
static const uint8_t verifies[] = { 0x2f, 0xaf, 0x8f };
static const uint8_t write_verifies[] = { 0x2e, 0xae, 0x8e };
static const unsigned length_byte[] = { 7, 6, 10 };

#define WIDTH(i) ((unsigned)(i) % 3)
#define BLOCK(i) ((unsigned)(i) / 3 % 2 ? 4096u : 512u)
#define REMOTE(i) ((unsigned)(i) / 6 % 2)
#define ALL 12

#define BYTCHK(n) ((uint8_t)((n) << 1))

static struct scsi_nexus *nexus;
static struct fake_blk *fake;

static void start_ram(int i)
{
	rig_start(REMOTE(i));
	rig_map(0, rig_ram(SIZE, BLOCK(i)));
	nexus = rig_nexus(1);
	rig_clear_ua(nexus, 0);
}

static void start_fake(int i, bool write_cache)
{
	struct scsi_lu_config config;

	rig_start(REMOTE(i));
	fake = fake_blk_new(rig_env, SIZE, BLOCK(i), BLK_FUA | BLK_VOLATILE);
	config = rig_config(&fake->blk);
	config.write_cache = write_cache;
	rig_map_config(0, &config);
	nexus = rig_nexus(1);
	rig_clear_ua(nexus, 0);
}

static void stop(void)
{
	scsi_nexus_free(nexus);
	rig_stop();
}

/* A command whose Data-Out is LENGTH bytes that follow from SEED, with the byte at SPOIL changed. */
static struct rig_task *command(uint8_t opcode, uint8_t byte1, uint64_t lba, uint32_t blocks,
				uint64_t seed, int64_t spoil)
{
	static struct rig_task rig;
	uint8_t cdb[SCSI_CDB_MAX];

	rig_rw(cdb, opcode, lba, blocks);
	cdb[1] |= byte1;
	rig_init(&rig, nexus, 0, cdb);
	rig_enter(&rig, seed);
	if (spoil >= 0) {
		uint8_t *unit = rig.task.data.iov[(uint64_t)spoil / BUF_UNIT].iov_base;

		unit[(uint64_t)spoil % BUF_UNIT] ^= 1;
	}
	scsi_task_submit(&rig.task);
	rig_run();
	ck_assert_uint_eq(rig.done, 1);
	return &rig;
}

START_TEST(bytchk_1_compares_every_byte_and_names_the_block_that_differs)
{
	/* One unit of memory, one more block, and many; the first, the last and a middle byte. */
	uint32_t block = BLOCK(_i), unit = (uint32_t)(BUF_UNIT / block);
	uint32_t lengths[] = { 1, unit, unit + 1, 3 * unit + 2 };
	struct rig_task *rig;
	unsigned l, p;

	start_ram(_i);
	for (l = 0; l < ARRAY_LEN(lengths); l++) {
		uint64_t bytes = (uint64_t)lengths[l] * block;
		int64_t places[] = { 0, (int64_t)bytes - 1, (int64_t)bytes / 2 };

		rig = command(0x8a, 0, 7, lengths[l], 5, -1);
		ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
		rig = command(verifies[WIDTH(_i)], BYTCHK(1), 7, lengths[l], 5, -1);
		ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
		ck_assert_uint_eq(rig->task.transfer_length, bytes);
		for (p = 0; p < 3; p++) {
			rig = command(verifies[WIDTH(_i)], BYTCHK(1), 7, lengths[l], 5, places[p]);
			ck_assert_uint_eq(rig_sense(rig), 0x0e1d00);
			ck_assert_uint_eq(rig->task.sense[0], 0xf0);
			ck_assert_uint_eq(get_be32(rig->task.sense + 3),
					  7 + (uint64_t)places[p] / block);
		}
	}
	stop();
}
END_TEST

START_TEST(bytchk_3_compares_one_block_with_each)
{
	uint32_t block = BLOCK(_i), blocks = (uint32_t)(2 * BUF_UNIT / block + 3);
	struct rig_task *rig;
	unsigned b;

	start_ram(_i);
	for (b = 0; b < blocks; b++)
		command(0x8a, 0, 100 + b, 1, 9, -1);
	rig = command(verifies[WIDTH(_i)], BYTCHK(3), 100, blocks, 9, -1);
	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	ck_assert_uint_eq(rig->task.transfer_length, block);
	rig = command(verifies[WIDTH(_i)], BYTCHK(3), 100, blocks, 9, block - 1);
	ck_assert_uint_eq(rig_sense(rig), 0x0e1d00);
	ck_assert_uint_eq(get_be32(rig->task.sense + 3), 100);
	rig = command(verifies[WIDTH(_i)], BYTCHK(3), 100, blocks + 1, 9, -1);
	ck_assert_uint_eq(rig_sense(rig), 0x0e1d00);
	ck_assert_uint_eq(get_be32(rig->task.sense + 3), 100 + blocks);
	stop();
}
END_TEST

START_TEST(bytchk_0_moves_nothing_and_reads_the_medium)
{
	uint32_t blocks = (uint32_t)(8 * MIB / BLOCK(_i));
	struct rig_task rig;
	uint8_t cdb[SCSI_CDB_MAX];
	uint64_t read = 0;

	start_fake(_i, false);
	rig_init(&rig, nexus, 0, rig_rw(cdb, verifies[WIDTH(_i)], 3, blocks));
	rig_submit(&rig);
	ck_assert_int_eq(rig.task.dir, SCSI_NO_DATA);
	while (fake->held_count) {
		struct io *io = STAILQ_FIRST(&fake->held);

		ck_assert_int_eq(io->op, IO_READ);
		ck_assert_uint_eq(io->offset, 3 * BLOCK(_i) + read);
		read += io->length;
		fake_blk_end(fake, read == 8 * MIB ? -EIO : 0);
		rig_run();
	}
	ck_assert_uint_eq(read, 8 * MIB);
	ck_assert_uint_eq(rig_sense(&rig), 0x031100);
	stop();
}
END_TEST

START_TEST(a_volatile_cache_is_flushed_before_the_medium_is_verified)
{
	struct rig_task rig;
	uint8_t cdb[SCSI_CDB_MAX];

	start_fake(_i, true);
	rig_init(&rig, nexus, 0, rig_rw(cdb, verifies[WIDTH(_i)], 0, 1));
	rig_submit(&rig);
	ck_assert_int_eq(STAILQ_FIRST(&fake->held)->op, IO_FLUSH);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_int_eq(STAILQ_FIRST(&fake->held)->op, IO_READ);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(rig.task.status, SCSI_GOOD);
	stop();
}
END_TEST

START_TEST(fields_and_ranges_are_refused_where_they_are_wrong)
{
	uint32_t most = (uint32_t)(SCSI_TRANSFER_MAX / BLOCK(_i));
	uint64_t end = SIZE / BLOCK(_i);
	uint8_t opcode[] = { verifies[WIDTH(_i)], write_verifies[WIDTH(_i)] };
	struct rig_task *rig;
	unsigned o, protect;

	start_ram(_i);
	for (o = 0; o < 2; o++) {
		rig = command(opcode[o], BYTCHK(2), 0, 1, 0, -1);
		ck_assert_uint_eq(rig_sense(rig), 0x052400);
		ck_assert_int_eq(rig_field(rig), 1);
		for (protect = 1; protect < 8; protect++) {
			rig = command(opcode[o], (uint8_t)(protect << 5), 0, 1, 0, -1);
			ck_assert_uint_eq(rig_sense(rig), 0x052400);
			ck_assert_uint_eq(rig->task.transfer_length, 0);
		}
		ck_assert_uint_eq(rig_sense(command(opcode[o], 0, end - 1, 1, 0, -1)), 0);
		ck_assert_uint_eq(rig_sense(command(opcode[o], 0, end - 1, 2, 0, -1)), 0x052100);
		ck_assert_uint_eq(rig_sense(command(opcode[o], 0, end, 0, 0, -1)), 0x052100);
		ck_assert_uint_eq(rig_sense(command(opcode[o], 0, 0, 0, 0, -1)), 0);
		if (WIDTH(_i) == 0)
			continue;
		ck_assert_uint_eq(rig_sense(command(opcode[o], BYTCHK(o), 0, most, 0, -1)), 0);
		rig = command(opcode[o], 0, 0, most + 1, 0, -1);
		ck_assert_uint_eq(rig_sense(rig), 0x052400);
		ck_assert_int_eq(rig_field(rig), (int)length_byte[WIDTH(_i)]);
	}
	rig = command(write_verifies[WIDTH(_i)], BYTCHK(3), 0, 1, 0, -1);
	ck_assert_uint_eq(rig_sense(rig), 0x052400);
	stop();
}
END_TEST

START_TEST(write_and_verify_writes_durably_then_reads_back)
{
	struct rig_task rig;
	uint8_t cdb[SCSI_CDB_MAX];
	unsigned check;

	for (check = 0; check < 2; check++) {
		start_fake(_i, false);
		rig_rw(cdb, write_verifies[WIDTH(_i)], 4, 2);
		cdb[1] |= BYTCHK(check);
		rig_init(&rig, nexus, 0, cdb);
		rig_submit(&rig);
		ck_assert_int_eq(STAILQ_FIRST(&fake->held)->op, IO_WRITE);
		ck_assert_uint_eq(fake->last_flags, IO_FUA);
		fake_blk_end(fake, 0);
		rig_run();
		ck_assert_int_eq(STAILQ_FIRST(&fake->held)->op, IO_READ);
		ck_assert_uint_eq(STAILQ_FIRST(&fake->held)->offset, 4 * BLOCK(_i));
		/* The fake device reads nothing: what is compared is scratch memory. */
		memset(STAILQ_FIRST(&fake->held)->iov[0].iov_base, 0, BLOCK(_i));
		fake_blk_end(fake, 0);
		rig_run();
		ck_assert_uint_eq(rig_sense(&rig), check ? 0x0e1d00 : 0);
		stop();
	}
}
END_TEST

START_TEST(what_write_and_verify_wrote_is_there)
{
	struct rig_task *rig;

	start_ram(_i);
	rig = command(write_verifies[WIDTH(_i)], BYTCHK(1), 11, 300, 77, -1);
	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	ck_assert_uint_eq(rig->task.transfer_length, 300 * BLOCK(_i));
	ck_assert_uint_eq(rig_sense(command(0x8f, BYTCHK(1), 11, 300, 77, -1)), 0);
	ck_assert_uint_eq(rig_sense(command(0x8f, BYTCHK(1), 11, 300, 78, -1)), 0x0e1d00);
	stop();
}
END_TEST

/* A Data-Out of one block and a bit for a command of three. */
START_TEST(short_data_is_verified_as_far_as_it_goes)
{
	uint32_t block = BLOCK(_i);
	struct rig_task rig;
	uint8_t cdb[SCSI_CDB_MAX];

	start_ram(_i);
	command(0x8a, 0, 0, 1, 3, -1);
	rig_rw(cdb, verifies[WIDTH(_i)], 0, 3);
	cdb[1] |= BYTCHK(1);
	rig_init(&rig, nexus, 0, cdb);
	rig.task.expected_out = block + 100;
	rig_enter(&rig, 3);
	scsi_task_submit(&rig.task);
	rig_run();
	ck_assert_uint_eq(rig.task.status, SCSI_GOOD);
	ck_assert_uint_eq(rig.task.transfer_length, 3 * block);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("verify");
	TCase *tc = tcase_create("verify");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, bytchk_1_compares_every_byte_and_names_the_block_that_differs, 0,
			    ALL);
	tcase_add_loop_test(tc, bytchk_3_compares_one_block_with_each, 0, ALL);
	tcase_add_loop_test(tc, bytchk_0_moves_nothing_and_reads_the_medium, 0, ALL);
	tcase_add_loop_test(tc, a_volatile_cache_is_flushed_before_the_medium_is_verified, 0, ALL);
	tcase_add_loop_test(tc, fields_and_ranges_are_refused_where_they_are_wrong, 0, ALL);
	tcase_add_loop_test(tc, write_and_verify_writes_durably_then_reads_back, 0, ALL);
	tcase_add_loop_test(tc, what_write_and_verify_wrote_is_there, 0, ALL);
	tcase_add_loop_test(tc, short_data_is_verified_as_far_as_it_goes, 0, ALL);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
