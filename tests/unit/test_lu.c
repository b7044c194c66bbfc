/* SPDX-License-Identifier: MIT */
/* The logical unit: overlapping ranges (I11), its pool of tasks, growing, counters. */
#include <check.h>
#include <errno.h>

#include "tests/fake/scsi_rig.h"

static struct scsi_nexus *nexus;
static struct fake_blk *fake;
static struct scsi_lu *lu;
static struct rig_task t[64];

static void start(bool remote, unsigned tasks_max)
{
	struct scsi_lu_config config;

	rig_start(remote);
	fake = fake_blk_new(rig_env, 8 * MIB, 512, BLK_FUA);
	config = rig_config(&fake->blk);
	config.tasks_max = tasks_max;
	lu = rig_map_config(0, &config);
	nexus = rig_nexus(1);
	rig_clear_ua(nexus, 0);
}

static void stop(void)
{
	scsi_nexus_free(nexus);
	rig_stop();
}

static void submit(unsigned i, bool write, uint64_t lba, uint32_t blocks)
{
	uint8_t cdb[SCSI_CDB_MAX];

	rig_init(&t[i], nexus, 0, rig_rw(cdb, write ? 0x8a : 0x88, lba, blocks));
	rig_submit(&t[i]);
}

static void end(int error)
{
	fake_blk_end(fake, error);
	rig_run();
}

/* Two commands, the second on a range beside, within, around or equal to the first's. */
static const struct {
	uint64_t lba;
	uint32_t blocks;
	bool overlaps;
} ranges[] = { { 100, 8, true }, { 104, 1, true },  { 90, 40, true }, { 107, 8, true },
	       { 93, 8, true },  { 108, 8, false }, { 92, 8, false }, { 0, 1, false } };

START_TEST(what_overlaps_a_write_in_flight_waits_for_it)
{
	bool first_write = _i & 1, second_write = _i & 2, remote = _i & 4;
	unsigned r = (unsigned)_i / 8;
	bool waits = ranges[r].overlaps && (first_write || second_write);

	start(remote, 0);
	submit(0, first_write, 100, 8);
	submit(1, second_write, ranges[r].lba, ranges[r].blocks);
	ck_assert_uint_eq(fake->held_count, waits ? 1 : 2);
	end(0);
	ck_assert_uint_eq(t[0].done, 1);
	ck_assert_uint_eq(fake->held_count, 1);
	end(0);
	ck_assert_uint_eq(t[1].done, 1);
	stop();
}
END_TEST

START_TEST(a_failed_write_lets_go_of_its_range)
{
	start(_i, 0);
	submit(0, true, 0, 8);
	submit(1, false, 4, 8);
	end(-EIO);
	ck_assert_uint_eq(rig_sense(&t[0]), 0x030c00);
	ck_assert_uint_eq(fake->held_count, 1);
	end(0);
	ck_assert_uint_eq(t[1].task.status, SCSI_GOOD);
	stop();
}
END_TEST

START_TEST(overlapping_writes_go_in_the_order_of_their_coming)
{
	unsigned i;

	start(_i, 0);
	for (i = 0; i < 20; i++)
		submit(i, i % 4 != 3, i % 3, 8);
	while (fake->held_count)
		end(0);
	for (i = 1; i < 20; i++)
		if (i % 4 != 3 || (i - 1) % 4 != 3)
			ck_assert_uint_lt(t[i - 1].order, t[i].order);
	stop();
}
END_TEST

START_TEST(an_empty_pool_is_task_set_full_until_one_ends)
{
	struct scsi_lu_stats stats;
	unsigned i;

	start(_i, 4);
	for (i = 0; i < 5; i++)
		submit(i, false, i * 8, 1);
	ck_assert_uint_eq(fake->held_count, 4);
	ck_assert_uint_eq(t[4].done, 1);
	ck_assert_uint_eq(t[4].task.status, SCSI_TASK_SET_FULL);
	ck_assert_uint_eq(t[4].task.sense_length, 0);
	end(0);
	submit(5, false, 100, 1);
	ck_assert_uint_eq(t[5].done, 0);
	while (fake->held_count)
		end(0);
	ck_assert_uint_eq(t[5].task.status, SCSI_GOOD);
	/* The initiator sends it again: it is not counted as a read twice. */
	scsi_lu_stats(lu, &stats);
	ck_assert_uint_eq(stats.reads, 5);
	ck_assert_uint_eq(stats.errors, 1);
	stop();
}
END_TEST

START_TEST(growing_tells_every_nexus_and_shows_at_once)
{
	struct scsi_nexus *other;

	start(_i, 0);
	other = rig_nexus(2);
	rig_clear_ua(other, 0);
	rig_current = rig_lu_home;
	blk_resize(&fake->blk, 16 * MIB);
	blk_resize(&fake->blk, 24 * MIB);
	rig_run();
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0x062a09);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0);
	ck_assert_uint_eq(rig_sense(rig_do(other, 0, TUR)), 0x062a09);
	ck_assert_uint_eq(get_be32(rig_do(nexus, 0, CDB(0x25))->data), 24 * MIB / 512 - 1);
	rig_current = rig_lu_home;
	blk_set_state(&fake->blk, BLK_READ_ONLY_NOW, "no news of capacity");
	rig_run();
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0);
	scsi_nexus_free(other);
	stop();
}
END_TEST

START_TEST(a_unit_that_goes_while_its_news_travel_is_freed_after_them)
{
	bool closed = false;

	start(_i, 0);
	fake->closed = &closed;
	rig_current = rig_lu_home;
	blk_resize(&fake->blk, 16 * MIB);
	rig_current = &rig_front;
	scsi_device_unmap(rig_device, 0, NULL, NULL);
	if (_i)
		ck_assert(!closed);
	rig_run();
	ck_assert(closed);
	stop();
}
END_TEST

START_TEST(counters_count_commands_bytes_and_errors)
{
	struct scsi_lu_stats stats, before;

	start(_i, 0);
	scsi_lu_stats(lu, &before);
	submit(0, true, 0, 8);
	end(0);
	submit(1, false, 0, 2);
	end(0);
	submit(2, false, 0, 2);
	scsi_lu_stats(lu, &stats);
	ck_assert_uint_eq(stats.in_flight, 1);
	end(-EIO);
	rig_do(nexus, 0, TUR);
	scsi_lu_stats(lu, &stats);
	ck_assert_uint_eq(stats.writes, 1);
	ck_assert_uint_eq(stats.write_bytes, 4096);
	ck_assert_uint_eq(stats.reads, 2);
	ck_assert_uint_eq(stats.read_bytes, 1024);
	ck_assert_uint_eq(stats.others, before.others + 1);
	ck_assert_uint_eq(stats.errors, before.errors + 1);
	ck_assert_uint_eq(stats.in_flight, 0);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lu");
	TCase *tc = tcase_create("lu");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, what_overlaps_a_write_in_flight_waits_for_it, 0,
			    8 * ARRAY_LEN(ranges));
	tcase_add_loop_test(tc, a_failed_write_lets_go_of_its_range, 0, 2);
	tcase_add_loop_test(tc, overlapping_writes_go_in_the_order_of_their_coming, 0, 2);
	tcase_add_loop_test(tc, an_empty_pool_is_task_set_full_until_one_ends, 0, 2);
	tcase_add_loop_test(tc, growing_tells_every_nexus_and_shows_at_once, 0, 2);
	tcase_add_loop_test(tc, a_unit_that_goes_while_its_news_travel_is_freed_after_them, 0, 2);
	tcase_add_loop_test(tc, counters_count_commands_bytes_and_errors, 0, 2);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
