/* SPDX-License-Identifier: MIT */
/* COMPARE AND WRITE and ORWRITE over block sizes and homes: atomic, exact at their limits. */
#include <check.h>
#include <errno.h>

#include "tests/fake/scsi_rig.h"

#define SIZE (32 * MIB)
#define BLOCK(i) ((unsigned)(i) % 2 ? 4096u : 512u)
#define REMOTE(i) ((unsigned)(i) / 2 % 2)
#define ALL 4

static struct scsi_nexus *nexus, *other;
static struct fake_blk *fake;

static void start_ram(int i)
{
	rig_start(REMOTE(i));
	rig_map(0, rig_ram(SIZE, BLOCK(i)));
	nexus = rig_nexus(1);
	other = rig_nexus(2);
	rig_clear_ua(nexus, 0);
	rig_clear_ua(other, 0);
}

static void start_fake(int i)
{
	rig_start(REMOTE(i));
	fake = fake_blk_new(rig_env, SIZE, BLOCK(i), BLK_FUA | BLK_VOLATILE);
	rig_map(0, &fake->blk);
	nexus = rig_nexus(1);
	other = rig_nexus(2);
	rig_clear_ua(nexus, 0);
	rig_clear_ua(other, 0);
}

static void stop(void)
{
	scsi_nexus_free(nexus);
	scsi_nexus_free(other);
	rig_stop();
}

static void caw_cdb(uint8_t *cdb, uint64_t lba, uint8_t blocks)
{
	memset(cdb, 0, SCSI_CDB_MAX);
	cdb[0] = 0x89;
	put_be64(cdb + 2, lba);
	cdb[13] = blocks;
}

/* Data-Out: BLOCKS of OLD, then BLOCKS of NEW, each byte the same. */
static void caw_enter(struct rig_task *rig, struct scsi_nexus *from, uint64_t lba, uint8_t blocks,
		      uint8_t old, uint8_t new)
{
	uint64_t half = (uint64_t)blocks * from->device->maps[0]->lu->block_size, at;
	uint8_t cdb[SCSI_CDB_MAX], piece[512];

	caw_cdb(cdb, lba, blocks);
	rig_init(rig, from, 0, cdb);
	rig->task.expected_out = 2 * half;
	rig_enter(rig, 0);
	if (rig->task.data_out_length < 2 * half)
		return;
	for (at = 0; at < 2 * half; at += sizeof(piece)) {
		memset(piece, at < half ? old : new, sizeof(piece));
		buf_write(&rig->task.data, at, piece, sizeof(piece));
	}
}

static struct rig_task *caw(uint64_t lba, uint8_t blocks, uint8_t old, uint8_t new)
{
	static struct rig_task rig;

	caw_enter(&rig, nexus, lba, blocks, old, new);
	scsi_task_submit(&rig.task);
	rig_run();
	ck_assert_uint_eq(rig.done, 1);
	return &rig;
}

static void expect(uint64_t lba, uint32_t blocks, uint8_t value)
{
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task *rig;
	uint32_t b;

	for (b = 0; b < blocks; b++) {
		rig = rig_do(other, 0, rig_rw(cdb, 0x88, lba + b, 1));
		ck_assert_uint_eq(rig->data[0], value);
		ck_assert_mem_eq(rig->data, rig->data + 1, rig->task.data_in_length - 1);
	}
}

START_TEST(what_is_equal_is_written_up_to_the_limit_and_not_past_it)
{
	uint8_t most = (uint8_t)(SCSI_CAW_MAX / BLOCK(_i)), n[] = { 1, 2, 3, most };
	struct rig_task *rig;
	unsigned i;

	start_ram(_i);
	for (i = 0; i < ARRAY_LEN(n); i++) {
		uint64_t lba = 1000 * (i + 1);

		rig = caw(lba, n[i], 0, 0x11);
		ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
		ck_assert_uint_eq(rig->task.transfer_length, 2 * n[i] * BLOCK(_i));
		expect(lba, n[i], 0x11);
		expect(lba - 1, 1, 0);
		expect(lba + n[i], 1, 0);
		ck_assert_uint_eq(rig_sense(caw(lba, n[i], 0x11, 0x22)), 0);
		expect(lba, n[i], 0x22);
	}
	rig = rig_do(nexus, 0, CDB(0x12, 1, 0xb0, 0, 64));
	ck_assert_uint_eq(rig->data[5], most);
	rig = caw(0, (uint8_t)(most + 1), 0, 1);
	ck_assert_uint_eq(rig_sense(rig), 0x052400);
	ck_assert_int_eq(rig_field(rig), 13);
	ck_assert_uint_eq(rig->task.transfer_length, 0);
	ck_assert_uint_eq(rig_sense(caw(0, 255, 0, 1)), 0x052400);
	ck_assert_uint_eq(rig_sense(caw(0, 0, 0, 1)), 0);
	expect(0, 1, 0);
	stop();
}
END_TEST

START_TEST(a_difference_writes_nothing_and_tells_its_offset)
{
	uint32_t block = BLOCK(_i);
	uint64_t at[] = { 0, 1, block - 1, block, 3 * block + 5, 4 * block - 1 };
	struct rig_task rig;
	uint8_t wrong = 0xaa;
	unsigned i;

	start_ram(_i);
	for (i = 0; i < ARRAY_LEN(at); i++) {
		caw_enter(&rig, nexus, 50, 4, 0, 0x33);
		buf_write(&rig.task.data, at[i], &wrong, 1);
		buf_write(&rig.task.data, 4 * block - 1, &wrong, 1);
		scsi_task_submit(&rig.task);
		rig_run();
		ck_assert_uint_eq(rig_sense(&rig), 0x0e1d00);
		ck_assert_uint_eq(rig.task.sense[0], 0xf0);
		ck_assert_uint_eq(get_be32(rig.task.sense + 3), at[i]);
		expect(50, 4, 0);
	}
	stop();
}
END_TEST

START_TEST(more_or_less_data_than_the_cdb_says_writes_nothing)
{
	uint64_t lengths[] = {
		0, 100, BLOCK(_i), 2 * BLOCK(_i) - 1, 2 * BLOCK(_i) + 1, 4 * BLOCK(_i)
	};
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task rig;
	unsigned i;

	start_ram(_i);
	for (i = 0; i < ARRAY_LEN(lengths); i++) {
		caw_cdb(cdb, 9, 1);
		rig_init(&rig, nexus, 0, cdb);
		rig.task.expected_out = lengths[i];
		rig_submit(&rig);
		ck_assert_uint_eq(rig_sense(&rig), 0x052400);
	}
	expect(9, 1, 0);
	stop();
}
END_TEST

START_TEST(nobody_gets_between_its_read_and_its_write)
{
	struct rig_task first, second, read;
	uint8_t cdb[SCSI_CDB_MAX];

	start_fake(_i);
	caw_enter(&first, nexus, 5, 1, 0, 1);
	caw_enter(&second, other, 5, 1, 0, 2);
	scsi_task_submit(&first.task);
	scsi_task_submit(&second.task);
	rig_init(&read, other, 0, rig_rw(cdb, 0x88, 5, 1));
	rig_submit(&read);
	ck_assert_uint_eq(fake->held_count, 1);
	ck_assert_uint_eq(fake->last_flags, IO_LANE);
	memset(STAILQ_FIRST(&fake->held)->iov[0].iov_base, 0, BLOCK(_i));
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(fake->held_count, 1);
	ck_assert_int_eq(STAILQ_FIRST(&fake->held)->op, IO_WRITE);
	ck_assert_uint_eq(fake->last_flags, IO_FUA | IO_LANE);
	ck_assert_uint_eq(((uint8_t *)STAILQ_FIRST(&fake->held)->iov[0].iov_base)[0], 1);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(first.task.status, SCSI_GOOD);
	ck_assert_uint_eq(first.done, 1);
	/* The second compares with what the first wrote. */
	memset(STAILQ_FIRST(&fake->held)->iov[0].iov_base, 1, BLOCK(_i));
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(rig_sense(&second), 0x0e1d00);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 1);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(read.done, 1);
	stop();
}
END_TEST

START_TEST(an_abort_after_the_read_writes_nothing_and_waits_for_the_read)
{
	struct rig_task rig;
	struct rig_tmf tmf;

	start_fake(_i);
	caw_enter(&rig, nexus, 5, 1, 0, 1);
	scsi_task_submit(&rig.task);
	rig_run();
	rig_tmf(&tmf, nexus, SCSI_ABORT_TASK, 0, rig.task.tag);
	ck_assert_uint_eq(tmf.done, 0);
	memset(STAILQ_FIRST(&fake->held)->iov[0].iov_base, 0, BLOCK(_i));
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_int_eq(rig.task.outcome, SCSI_ABORTED);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 0);
	stop();
}
END_TEST

START_TEST(it_runs_where_bulk_io_finds_the_task_set_full)
{
	struct scsi_lu_config config;
	static struct rig_task bulk[9], rig;
	uint8_t cdb[SCSI_CDB_MAX];
	unsigned i;

	rig_start(REMOTE(_i));
	fake = fake_blk_new(rig_env, SIZE, BLOCK(_i), BLK_FUA);
	config = rig_config(&fake->blk);
	config.tasks_max = 8;
	rig_map_config(0, &config);
	nexus = rig_nexus(1);
	other = rig_nexus(2);
	rig_clear_ua(nexus, 0);
	for (i = 0; i < ARRAY_LEN(bulk); i++) {
		rig_init(&bulk[i], nexus, 0, rig_rw(cdb, 0x2a, 100 * i, 1));
		rig_submit(&bulk[i]);
	}
	ck_assert_uint_eq(bulk[8].task.status, SCSI_TASK_SET_FULL);
	ck_assert_uint_eq(bulk[7].done, 0);
	caw_enter(&rig, nexus, 5, 1, 0, 1);
	scsi_task_submit(&rig.task);
	rig_run();
	ck_assert_uint_eq(rig.done, 0);
	while (fake->held_count) {
		fake_blk_end(fake, -EIO);
		rig_run();
	}
	ck_assert_uint_eq(rig_sense(&rig), 0x031100);
	stop();
}
END_TEST

START_TEST(it_is_refused_where_it_may_not_write)
{
	uint64_t end = SIZE / BLOCK(_i);

	start_ram(_i);
	ck_assert_uint_eq(rig_sense(caw(end - 1, 1, 0, 1)), 0);
	ck_assert_uint_eq(rig_sense(caw(end - 1, 2, 0, 1)), 0x052100);
	ck_assert_uint_eq(rig_sense(caw(UINT64_MAX, 1, 0, 1)), 0x052100);
	atomic_store(&rig_device->maps[0]->lu->swp, true);
	ck_assert_uint_eq(rig_sense(caw(0, 1, 0, 1)), 0x072700);
	stop();
}
END_TEST

START_TEST(orwrite_sets_bits_and_clears_none)
{
	uint32_t blocks = (uint32_t)(3 * BUF_UNIT / BLOCK(_i)) + 1, b;
	uint8_t cdb[SCSI_CDB_MAX], fill;
	struct rig_task rig, *read;
	uint64_t at;

	start_ram(_i);
	for (fill = 1; fill <= 4; fill <<= 1) {
		rig_init(&rig, nexus, 0, rig_rw(cdb, 0x8b, 20, blocks));
		rig_enter(&rig, 0);
		for (at = 0; at < rig.task.transfer_length; at++)
			buf_write(&rig.task.data, at, &fill, 1);
		scsi_task_submit(&rig.task);
		rig_run();
		ck_assert_uint_eq(rig.task.status, SCSI_GOOD);
	}
	for (b = 0; b < blocks; b++) {
		read = rig_do(other, 0, rig_rw(cdb, 0x88, 20 + b, 1));
		ck_assert_uint_eq(read->data[0], 7);
		ck_assert_mem_eq(read->data, read->data + 1, BLOCK(_i) - 1);
	}
	expect(19, 1, 0);
	expect(20 + blocks, 1, 0);
	rig_do(nexus, 0, rig_rw(cdb, 0x8b, SIZE / BLOCK(_i), 1));
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, rig_rw(cdb, 0x8b, SIZE / BLOCK(_i), 1))),
			  0x052100);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("compare_write");
	TCase *tc = tcase_create("compare_write");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, what_is_equal_is_written_up_to_the_limit_and_not_past_it, 0, ALL);
	tcase_add_loop_test(tc, a_difference_writes_nothing_and_tells_its_offset, 0, ALL);
	tcase_add_loop_test(tc, more_or_less_data_than_the_cdb_says_writes_nothing, 0, ALL);
	tcase_add_loop_test(tc, nobody_gets_between_its_read_and_its_write, 0, ALL);
	tcase_add_loop_test(tc, an_abort_after_the_read_writes_nothing_and_waits_for_the_read, 0,
			    ALL);
	tcase_add_loop_test(tc, it_runs_where_bulk_io_finds_the_task_set_full, 0, ALL);
	tcase_add_loop_test(tc, it_is_refused_where_it_may_not_write, 0, ALL);
	tcase_add_loop_test(tc, orwrite_sets_bits_and_clears_none, 0, ALL);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
