/* SPDX-License-Identifier: MIT */
/* A task at the medium: pieces, FUA, what an abort leaves undone, what it gives back. */
#include <check.h>
#include <errno.h>

#include "tests/fake/scsi_rig.h"

#define BLOCK(i) ((unsigned)(i) % 2 ? 4096u : 512u)
#define PIECE (64 * KIB)

static struct scsi_nexus *nexus;
static struct scsi_lu *lu;
static struct fake_blk *fake;
static struct rig_task t[4];

static void start(int i, bool write_cache, unsigned features)
{
	struct scsi_lu_config config;

	rig_start((unsigned)i / 2 % 2);
	fake = fake_blk_new(rig_env, 8 * MIB, BLOCK(i), features);
	config = rig_config(&fake->blk);
	config.write_cache = write_cache;
	lu = rig_map_config(0, &config);
	nexus = rig_nexus(1);
	rig_clear_ua(nexus, 0);
}

static void stop(void)
{
	ck_assert_uint_eq(fake->held_count, 0);
	scsi_nexus_free(nexus);
	rig_stop();
}

/* LENGTH bytes at OFFSET. */
static void submit(unsigned n, bool write, uint64_t offset, uint64_t length)
{
	uint8_t cdb[SCSI_CDB_MAX];
	uint32_t block = lu->block_size;

	rig_init(&t[n], nexus, 0,
		 rig_rw(cdb, write ? 0x8a : 0x88, offset / block, (uint32_t)(length / block)));
	rig_submit(&t[n]);
}

static void end(int error)
{
	fake_blk_end(fake, error);
	rig_run();
}

START_TEST(pieces_are_whole_blocks_and_cover_the_command_once)
{
	const uint64_t limits[] = { 4096, 4096 + 100, 3 * 4096, PIECE + 511, 1 * MIB, 0 };
	uint64_t length = 300 * KIB, at, most;
	unsigned l;
	bool write = _i / 4;

	start(_i, false, BLK_FUA);
	for (l = 0; l < ARRAY_LEN(limits); l++) {
		fake->blk.max_io = limits[l];
		most = limits[l] ? limits[l] / BLOCK(_i) * BLOCK(_i) : length;
		submit(0, write, 8192, length);
		for (at = 0; at < length;) {
			const struct io *io = STAILQ_FIRST(&fake->held);

			ck_assert_uint_eq(fake->held_count, 1);
			ck_assert_uint_eq(io->offset, 8192 + at);
			ck_assert_uint_eq(io->length, min_u64(most, length - at));
			ck_assert_uint_eq(io->flags, write ? IO_FUA : 0);
			at += io->length;
			end(0);
		}
		ck_assert_uint_eq(t[0].done, 1);
		ck_assert_uint_eq(t[0].task.status, SCSI_GOOD);
	}
	stop();
}
END_TEST

START_TEST(an_aborted_task_ends_with_the_io_under_way_and_gives_its_range_back)
{
	bool write = _i / 4, fails = _i / 8;
	struct rig_tmf tmf;

	start(_i, false, BLK_FUA);
	fake->blk.max_io = PIECE;
	submit(0, write, 0, 4 * PIECE);
	submit(1, true, 3 * PIECE, PIECE); /* behind it */
	end(0);
	rig_tmf(&tmf, nexus, SCSI_ABORT_TASK, 0, t[0].task.tag);
	ck_assert_uint_eq(tmf.done, 0);
	ck_assert_uint_eq(t[0].done, 0);
	ck_assert_uint_eq(fake->held_count, 1);
	end(fails ? -EIO : 0);
	ck_assert_uint_eq(t[0].task.outcome, SCSI_ABORTED);
	ck_assert_uint_eq(t[0].task.data_in_length, 0);
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_uint_eq(fake->held_count, 1);
	ck_assert_uint_eq(STAILQ_FIRST(&fake->held)->offset, 3 * PIECE);
	ck_assert_uint_eq(fake->submits[IO_READ] + fake->submits[IO_WRITE], 3);
	end(0);
	ck_assert_uint_eq(rig_sense(&t[1]), 0);
	stop();
}
END_TEST

START_TEST(one_that_is_aborted_while_it_waits_never_reaches_the_medium)
{
	struct rig_tmf tmf;

	start(_i, false, BLK_FUA);
	submit(0, true, 0, PIECE);
	submit(1, true, 0, PIECE);
	submit(2, false, 0, PIECE);
	rig_tmf(&tmf, nexus, SCSI_ABORT_TASK, 0, t[1].task.tag);
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_uint_eq(t[1].task.outcome, SCSI_ABORTED);
	end(0);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 1);
	ck_assert_uint_eq(fake->submits[IO_READ], 1); /* what waited behind it */
	end(0);
	stop();
}
END_TEST

/* It was submitted with the cache on, and starts with it off. */
START_TEST(whether_good_means_durable_is_decided_when_a_write_starts)
{
	start(_i, true, BLK_FUA);
	submit(0, true, 0, PIECE);
	submit(1, true, 0, PIECE);
	submit(2, true, 0, PIECE);
	ck_assert_uint_eq(fake->last_flags & IO_FUA, 0);
	lu->wce = false;
	end(0);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 2);
	ck_assert_uint_eq(fake->last_flags & IO_FUA, IO_FUA);
	lu->wce = true;
	end(0);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 3);
	ck_assert_uint_eq(fake->last_flags & IO_FUA, 0);
	end(0);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lu_io");
	TCase *tc = tcase_create("lu_io");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, pieces_are_whole_blocks_and_cover_the_command_once, 0, 8);
	tcase_add_loop_test(tc, an_aborted_task_ends_with_the_io_under_way_and_gives_its_range_back,
			    0, 16);
	tcase_add_loop_test(tc, one_that_is_aborted_while_it_waits_never_reaches_the_medium, 0, 4);
	tcase_add_loop_test(tc, whether_good_means_durable_is_decided_when_a_write_starts, 0, 4);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
