/* SPDX-License-Identifier: MIT */
/* GET LBA STATUS: runs, their limits, and what is never said. */
#include <check.h>
#include <errno.h>

#include "tests/fake/scsi_rig.h"

#define SIZE (64 * MIB)
#define BLOCK(i) ((i)&1 ? 4096u : 512u)
#define ALL 4 /* the rig's combinations: block size, home */
#define THIN (BLK_FUA | BLK_UNMAP | BLK_UNMAP_ZEROES)

static struct scsi_nexus *nexus;
static struct fake_blk *fake;

static void start(int i, struct blk *(*make)(int i))
{
	rig_start(i >> 1 & 1);
	rig_map(0, make(i));
	nexus = rig_nexus(1);
	rig_clear_ua(nexus, 0);
}

static struct blk *make_ram(int i)
{
	return rig_ram(SIZE, BLOCK(i));
}

static void stop(void)
{
	scsi_nexus_free(nexus);
	rig_stop();
}

static const uint8_t *cdb_of(uint64_t lba, uint32_t allocation)
{
	static uint8_t cdb[SCSI_CDB_MAX];

	memset(cdb, 0, sizeof(cdb));
	cdb[0] = 0x9e;
	cdb[1] = 0x12;
	put_be64(cdb + 2, lba);
	put_be32(cdb + 10, allocation);
	return cdb;
}

static struct rig_task *ask(uint64_t lba, uint32_t allocation)
{
	return rig_do(nexus, 0, cdb_of(lba, allocation));
}

static void expect(const struct rig_task *rig, unsigned n, uint64_t lba, uint64_t blocks,
		   unsigned status)
{
	const uint8_t *d = rig->data + 8 + n * 16;

	ck_assert_uint_eq(get_be64(d), lba);
	ck_assert_uint_eq(get_be32(d + 8), blocks);
	ck_assert_uint_eq(d[12], status);
	ck_assert_uint_eq(d[13] | d[14] | d[15], 0);
}

static unsigned descriptors(const struct rig_task *rig)
{
	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	ck_assert_uint_eq((get_be32(rig->data) - 4) % 16, 0);
	return (get_be32(rig->data) - 4) / 16;
}

static void write_blocks(uint64_t lba, uint32_t blocks)
{
	uint8_t cdb[SCSI_CDB_MAX];

	ck_assert_uint_eq(rig_do(nexus, 0, rig_rw(cdb, 0x8a, lba, blocks))->task.status, SCSI_GOOD);
}

START_TEST(written_blocks_are_mapped_and_the_others_deallocated)
{
	uint64_t page = 4096 / BLOCK(_i), end = SIZE / BLOCK(_i);
	struct rig_task *rig;

	start(_i, make_ram);
	rig = ask(5, 4096);
	ck_assert_uint_eq(descriptors(rig), 1);
	ck_assert_uint_eq(rig->task.data_in_length, 24);
	expect(rig, 0, 5, end - 5, 1);
	write_blocks(10 * page, (uint32_t)(2 * page));
	write_blocks(20 * page, 1);
	rig = ask(3, 4096);
	ck_assert_uint_eq(descriptors(rig), 5);
	expect(rig, 0, 3, 10 * page - 3, 1);
	expect(rig, 1, 10 * page, 2 * page, 0);
	expect(rig, 2, 12 * page, 8 * page, 1);
	expect(rig, 3, 20 * page, page, 0);
	expect(rig, 4, 21 * page, end - 21 * page, 1);
	rig = ask(11 * page, 4096);
	ck_assert_uint_eq(descriptors(rig), 4);
	expect(rig, 0, 11 * page, page, 0);
	rig = ask(end - 1, 4096);
	ck_assert_uint_eq(descriptors(rig), 1);
	expect(rig, 0, end - 1, 1, 1);
	ck_assert_uint_eq(rig_sense(ask(end, 4096)), 0x052100);
	ck_assert_uint_eq(rig_sense(ask(UINT64_MAX, 4096)), 0x052100);
	stop();
}
END_TEST

START_TEST(as_many_runs_are_told_as_the_allocation_length_holds_and_at_least_one)
{
	uint64_t page = 4096 / BLOCK(_i);
	static const struct {
		uint32_t allocation, told;
	} cases[] = { { 0, 1 },  { 4, 1 },  { 8, 1 },      { 23, 1 },          { 24, 1 },
		      { 39, 1 }, { 40, 2 }, { 4096, 255 }, { UINT32_MAX, 255 } };
	struct rig_task *rig;
	unsigned i;

	start(_i, make_ram);
	for (i = 0; i < 200; i++)
		write_blocks(2 * i * page, 1);
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t length = 8 + 16 * cases[i].told;

		rig = ask(0, cases[i].allocation);
		ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
		ck_assert_uint_eq(rig->task.data_in_length, min_u64(length, cases[i].allocation));
		if (cases[i].allocation >= 4)
			ck_assert_uint_eq(get_be32(rig->data), length - 4);
		ck_assert_uint_eq(rig->data[rig->task.data_in_length], 0xee);
		if (cases[i].allocation >= 40)
			expect(rig, 1, page, page, 1);
	}
	stop();
}
END_TEST

static struct blk *make_fake(int i)
{
	fake = fake_blk_new(rig_env, SIZE, BLOCK(i), THIN);
	return &fake->blk;
}

static struct blk *make_thick(int i)
{
	fake = fake_blk_new(rig_env, SIZE, BLOCK(i), BLK_FUA);
	return &fake->blk;
}

static void say(enum io_run run, uint64_t bytes)
{
	struct io *io = STAILQ_FIRST(&fake->held);

	ck_assert_int_eq(io->op, IO_STATUS);
	io->run = run;
	io->run_bytes = bytes;
	fake_blk_end(fake, 0);
	rig_run();
}

START_TEST(what_a_device_calls_zeroes_only_a_thin_unit_calls_deallocated)
{
	uint32_t block = BLOCK(_i);
	struct rig_task rig;
	unsigned thin;

	for (thin = 0; thin < 2; thin++) {
		start(_i, thin ? make_fake : make_thick);
		rig_init(&rig, nexus, 0, cdb_of(0, 4096));
		rig_submit(&rig);
		say(IO_RUN_ZEROES, 4 * block);
		say(IO_RUN_ZEROES, 3 * block); /* the same run, told in pieces */
		say(IO_RUN_UNKNOWN, SIZE - 7 * block);
		ck_assert_uint_eq(rig.done, 1);
		if (thin) {
			ck_assert_uint_eq(descriptors(&rig), 2);
			expect(&rig, 0, 0, 7, 1);
			expect(&rig, 1, 7, SIZE / block - 7, 0);
		} else {
			ck_assert_uint_eq(descriptors(&rig), 1);
			expect(&rig, 0, 0, SIZE / block, 0);
		}
		stop();
	}
}
END_TEST

START_TEST(the_questions_to_the_device_are_bounded)
{
	struct rig_task rig;
	unsigned asked;

	start(_i, make_fake);
	rig_init(&rig, nexus, 0, cdb_of(0, 4096));
	rig_submit(&rig);
	for (asked = 0; !rig.done; asked++)
		say(IO_RUN_DATA, BLOCK(_i));
	ck_assert_uint_eq(asked, 512);
	ck_assert_uint_eq(descriptors(&rig), 1);
	expect(&rig, 0, 0, 512, 0);
	stop();
}
END_TEST

START_TEST(a_device_that_fails_is_told_and_an_abort_ends_it)
{
	struct rig_task rig;
	struct rig_tmf tmf;

	start(_i, make_fake);
	rig_init(&rig, nexus, 0, cdb_of(0, 4096));
	rig_submit(&rig);
	say(IO_RUN_DATA, BLOCK(_i));
	fake_blk_end(fake, -EIO);
	rig_run();
	ck_assert_uint_eq(rig_sense(&rig), 0x031100);
	rig_init(&rig, nexus, 0, cdb_of(0, 4096));
	rig_submit(&rig);
	rig_tmf(&tmf, nexus, SCSI_ABORT_TASK, 0, rig.task.tag);
	ck_assert_uint_eq(tmf.done, 0); /* the device still has its question */
	say(IO_RUN_DATA, BLOCK(_i));
	ck_assert_uint_eq(rig.done, 1);
	ck_assert_int_eq(rig.task.outcome, SCSI_ABORTED);
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_uint_eq(fake->held_count, 0);
	stop();
}
END_TEST

/* A write under way has the whole medium; the answer neither waits for it nor holds it up. */
START_TEST(no_write_is_waited_for_or_held_up)
{
	struct rig_task write, status, after;
	uint8_t cdb[SCSI_CDB_MAX];

	start(_i, make_fake);
	rig_init(&write, nexus, 0, rig_rw(cdb, 0x8a, 0, 8));
	rig_submit(&write);
	rig_init(&status, nexus, 0, cdb_of(0, 24));
	rig_submit(&status);
	ck_assert_uint_eq(fake->submits[IO_STATUS], 1);
	rig_init(&after, nexus, 0, rig_rw(cdb, 0x8a, 100, 8));
	rig_submit(&after);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 2);
	while (fake->held_count) {
		fake_blk_end(fake, 0);
		rig_run();
	}
	ck_assert_uint_eq(write.done + status.done + after.done, 3);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lba_status");
	TCase *tc = tcase_create("lba_status");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, written_blocks_are_mapped_and_the_others_deallocated, 0, ALL);
	tcase_add_loop_test(
		tc, as_many_runs_are_told_as_the_allocation_length_holds_and_at_least_one, 0, ALL);
	tcase_add_loop_test(tc, what_a_device_calls_zeroes_only_a_thin_unit_calls_deallocated, 0,
			    ALL);
	tcase_add_loop_test(tc, the_questions_to_the_device_are_bounded, 0, ALL);
	tcase_add_loop_test(tc, a_device_that_fails_is_told_and_an_abort_ends_it, 0, ALL);
	tcase_add_loop_test(tc, no_write_is_waited_for_or_held_up, 0, ALL);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
