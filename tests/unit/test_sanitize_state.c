/* SPDX-License-Identifier: MIT */
/* A sanitize operation: what it means for other commands, and what ends it. */
#include <check.h>
#include <errno.h>

#include "tests/fake/sanitize_rig.h"

/* ---- while it runs */

/* TEST UNIT READY stands for what has no row of its own here. */
static const struct {
	uint8_t cdb[SCSI_CDB_MAX];
	bool works;
} commands[] = {
	{ { 0x00 }, false },
	{ { 0x12, 0, 0, 0, 36 }, true },
	{ { 0x03, 0, 0, 0, 18 }, true },
	{ { 0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 16 }, true },
	{ { 0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0, 64 }, true },
	{ { 0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 16 }, true },
	{ { 0x28, 0, 0, 0, 0, 0, 0, 0, 1 }, false },
	{ { 0x2a, 0, 0, 0, 0, 0, 0, 0, 1 }, false },
	{ { 0x35 }, false },
	{ { 0x25 }, false },
	{ { 0x16 }, false },
	{ { 0x17 }, false },
	{ { 0x1a, 0, 0x3f, 0, 64 }, false },
	{ { 0x1b, 0, 0, 0, 1 }, false },
	{ { 0x9e, 0x12, [13] = 24 }, false },
};

static void others_get(unsigned sense)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(commands); i++) {
		struct rig_task *rig = rig_do(other, 0, commands[i].cdb);

		ck_assert_uint_eq(rig_sense(rig), commands[i].works ? 0 : sense);
	}
}

START_TEST(while_it_runs_others_hear_so_and_the_medium_is_left_alone)
{
	unsigned immed = _i >> 2, ios;
	struct rig_task rig;

	start_fake(_i, THIN);
	send(&rig, BLOCK_ERASE | (immed ? IMMED : 0), 0);
	ck_assert_uint_eq(rig.done, immed);
	for (ios = 0; fake->held_count; ios++) {
		ck_assert_uint_eq(fake->held_count, 1);
		others_get(IN_PROGRESS);
		ck_assert_uint_eq(rig_sense(rig_do(other, 0, CDB(0x48, BLOCK_ERASE))), IN_PROGRESS);
		ck_assert_uint_eq(rig_sense(rig_do(other, 0, CDB(0x48, EXIT_FAILURE_MODE))),
				  IN_PROGRESS);
		serve(1);
	}
	ck_assert_uint_eq(ios, 1 + SIZE / (256 * KIB) + 1 + 1 + 1);
	ck_assert_uint_eq(fake->submits[IO_READ], 0);
	ck_assert_uint_eq(rig.done, 1);
	ck_assert_uint_eq(rig.task.status, SCSI_GOOD);
	ck_assert_uint_eq(tur(other), 0);
	stop();
}
END_TEST

START_TEST(progress_rises_in_request_sense_and_in_the_refusals)
{
	unsigned last = 0, seen = 0, progress;
	struct rig_task rig, *sense;

	start_fake(_i, BLK_VOLATILE);
	send(&rig, OVERWRITE | IMMED, pattern(2, 4, 0));
	while (fake->held_count) {
		sense = rig_do(other, 0, CDB(0x03, 0, 0, 0, 18));
		ck_assert_uint_eq(rig_code(sense->data), IN_PROGRESS);
		ck_assert_uint_eq(sense->data[15], 0x80);
		progress = get_be16(sense->data + 16);
		ck_assert_uint_ge(progress, last);
		seen += progress > last;
		last = progress;
		sense = rig_do(other, 0, TUR);
		ck_assert_uint_eq(sense->task.sense[15], 0x80);
		ck_assert_uint_eq(get_be16(sense->task.sense + 16), last);
		serve(1);
	}
	ck_assert_uint_ge(seen, 15);
	ck_assert_uint_gt(last, 0xf000);
	sense = rig_do(other, 0, CDB(0x03, 1, 0, 0, 64));
	ck_assert_uint_eq(rig_code(sense->data), 0);
	stop();
}
END_TEST

START_TEST(commands_that_had_their_range_end_first_and_no_other_gets_one)
{
	struct rig_task before, san, unmap;
	uint8_t cdb[SCSI_CDB_MAX], ranges[40] = { 0, 38, 0, 32 };

	start_fake(_i, THIN);
	rig_init(&before, nexus, 0, rig_rw(cdb, 0x8a, 0, 1));
	rig_submit(&before);
	put_be32(ranges + 8 + 8, 1);
	put_be64(ranges + 24, 50);
	put_be32(ranges + 24 + 8, 1);
	rig_init(&unmap, nexus, 0, CDB(0x42, 0, 0, 0, 0, 0, 0, 0, 40));
	put_be64(ranges + 8, 100);
	rig_enter(&unmap, 0);
	buf_write(&unmap.task.data, 0, ranges, sizeof(ranges));
	scsi_task_submit(&unmap.task);
	rig_run();
	ck_assert_uint_eq(fake->held_count, 2);
	send(&san, BLOCK_ERASE | IMMED, 0);
	ck_assert_uint_eq(san.done, 1);
	ck_assert_uint_eq(fake->submits[IO_STATUS], 0); /* waits for both */
	ck_assert_uint_eq(tur(other), IN_PROGRESS);
	serve(1);
	ck_assert_uint_eq(rig_sense(&before), 0);
	ck_assert_uint_eq(fake->submits[IO_STATUS], 0);
	serve(1);
	ck_assert_uint_eq(rig_sense(&unmap), IN_PROGRESS); /* its second range */
	ck_assert_uint_eq(fake->submits[IO_STATUS], 1);
	serve(1000);
	ck_assert_uint_eq(tur(other), 0);
	stop();
}
END_TEST

START_TEST(whatever_its_attribute_it_runs_at_once_and_keeps_nobody_waiting)
{
	static const enum scsi_attr attrs[] = { SCSI_SIMPLE, SCSI_ORDERED, SCSI_HEAD_OF_QUEUE };
	struct rig_task san, ordered, simple;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(attrs); i++) {
		start_fake(_i, THIN);
		rig_init(&san, nexus, 0, CDB(0x48, BLOCK_ERASE));
		san.task.attr = attrs[i];
		rig_submit(&san);
		ck_assert_uint_eq(fake->submits[IO_STATUS], 1);
		rig_init(&ordered, nexus, 0, TUR);
		ordered.task.attr = SCSI_ORDERED;
		rig_submit(&ordered);
		rig_init(&simple, nexus, 0, TUR);
		rig_submit(&simple);
		ck_assert_uint_eq(rig_sense(&ordered), IN_PROGRESS);
		ck_assert_uint_eq(rig_sense(&simple), IN_PROGRESS);
		serve(1000);
		ck_assert_uint_eq(san.done, 1);
		stop();
	}
}
END_TEST

START_TEST(aborts_and_resets_end_the_task_and_not_the_operation)
{
	static const enum scsi_tmf_function functions[] = {
		SCSI_ABORT_TASK, SCSI_ABORT_TASK_SET, SCSI_CLEAR_TASK_SET,
		SCSI_LUN_RESET,  SCSI_TARGET_RESET,   SCSI_NEXUS_RESET,
	};
	struct rig_task rig;
	struct rig_tmf tmf;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(functions); i++) {
		start_fake(_i, THIN);
		send(&rig, BLOCK_ERASE, 0);
		serve(2);
		rig_tmf(&tmf, nexus, functions[i], 0, rig.task.tag);
		ck_assert_uint_eq(tmf.done, 1);
		ck_assert_uint_eq(rig.done, 1);
		ck_assert_int_eq(rig.task.outcome, SCSI_ABORTED);
		while (tur(other) == 0x062903 || tur(other) == 0x062902)
			;
		ck_assert_uint_eq(tur(other), IN_PROGRESS);
		ck_assert_uint_eq(fake->held_count, 1);
		serve(1000);
		ck_assert_uint_eq(tur(other), 0);
		ck_assert_uint_eq(fake->submits[IO_UNMAP], 1);
		stop();
	}
}
END_TEST

/* ---- failure, and the ways out of it */

/* Fails at its third io, which is a write. */
static void break_off(unsigned byte1, int error)
{
	struct rig_task rig;

	send(&rig, BLOCK_ERASE | byte1, 0);
	serve(2);
	fake_blk_end(fake, error);
	rig_run();
	ck_assert_uint_eq(rig.done, 1);
	ck_assert_uint_eq(rig_sense(&rig), byte1 & IMMED ? 0 : FAILED);
	ck_assert_uint_eq(fake->held_count, 0);
}

START_TEST(a_failed_one_keeps_everybody_from_the_medium)
{
	static const int errors[] = { -EIO, -ENOSPC, -EROFS, -ENXIO, -ECANCELED };
	struct rig_task *rig;
	struct rig_tmf tmf;

	start_fake(_i, THIN);
	break_off(_i & 4 ? IMMED : 0, errors[_i >> 3]);
	others_get(FAILED);
	rig = rig_do(other, 0, CDB(0x03, 0, 0, 0, 18));
	ck_assert_uint_eq(rig_code(rig->data), FAILED);
	rig_tmf(&tmf, nexus, SCSI_LUN_RESET, 0, 0);
	while (tur(nexus) == 0x062903)
		;
	ck_assert_uint_eq(tur(nexus), FAILED);
	ck_assert_uint_eq(fake->submits[IO_READ], 0);
	stop();
}
END_TEST

START_TEST(only_a_sanitize_that_succeeds_leads_out_of_a_restricted_failure)
{
	struct rig_task rig;

	start_fake(_i, THIN);
	break_off(0, -EIO);
	ck_assert_uint_eq(rig_sense(sanitize(EXIT_FAILURE_MODE, 0)), 0x052400);
	ck_assert_uint_eq(rig_sense(sanitize(BLOCK_ERASE | AUSE, 0)), 0x052400);
	ck_assert_uint_eq(tur(other), FAILED);
	break_off(0, -EIO);
	ck_assert_uint_eq(rig_sense(sanitize(EXIT_FAILURE_MODE, 0)), 0x052400);
	send(&rig, BLOCK_ERASE, 0);
	ck_assert_uint_eq(tur(other), IN_PROGRESS);
	serve(1000);
	ck_assert_uint_eq(rig_sense(&rig), 0);
	ck_assert_uint_eq(tur(other), 0);
	stop();
}
END_TEST

START_TEST(exit_failure_mode_leads_out_of_an_unrestricted_one)
{
	start_fake(_i, THIN);
	break_off(AUSE, -EIO);
	ck_assert_uint_eq(tur(other), FAILED);
	ck_assert_uint_eq(rig_sense(sanitize(EXIT_FAILURE_MODE, 0)), 0);
	ck_assert_uint_eq(tur(other), 0);
	break_off(AUSE, -EIO);
	break_off(0, -EIO); /* the newest one counts */
	ck_assert_uint_eq(rig_sense(sanitize(EXIT_FAILURE_MODE, 0)), 0x052400);
	stop();
}
END_TEST

/* ---- the logical unit goes, or changes */

START_TEST(a_unit_that_goes_stops_after_the_io_under_way)
{
	bool closed = false;
	struct rig_task rig;

	start_fake(_i, THIN);
	fake->closed = &closed;
	send(&rig, BLOCK_ERASE | IMMED, 0);
	serve(2);
	ck_assert_int_eq(scsi_device_map(rig_device, 0, NULL, false), 0);
	rig_run();
	ck_assert(!closed);
	ck_assert_uint_eq(fake->held_count, 1);
	fake_blk_end(fake, _i & 4 ? -EIO : 0);
	rig_run();
	ck_assert(closed);
	stop();
}
END_TEST

START_TEST(a_medium_that_grows_or_shrinks_meanwhile_is_followed)
{
	uint64_t sizes[] = { SIZE / 2, 2 * SIZE }, last = 0;
	struct rig_task rig;

	start_fake(_i, BLK_VOLATILE);
	send(&rig, OVERWRITE | IMMED, pattern(1, 4, 0));
	serve(5);
	blk_resize(&fake->blk, sizes[_i >> 2]);
	while (STAILQ_FIRST(&fake->held)->op == IO_WRITE) {
		last = STAILQ_FIRST(&fake->held)->offset + STAILQ_FIRST(&fake->held)->length;
		serve(1);
	}
	ck_assert_uint_eq(last, _i >> 2 ? sizes[1] : 6 * 256 * KIB);
	serve(1);
	while (tur(other) == 0x062a09)
		;
	ck_assert_uint_eq(tur(other), 0);
	stop();
}
END_TEST

/* A timer that a callback arms waits for the next turn. The unmap at the end is a worker's. */
START_TEST(it_makes_one_step_a_turn)
{
	struct rig_task rig;
	unsigned turns = 0;
	struct blk *blk;

	start_ram(_i, true);
	blk = rig_device->maps[0]->lu->blk;
	for (unsigned n = 0; n < 8; n++)
		write_at(SIZE / BLOCK(_i) / 8 * n);
	rig_init(&rig, nexus, 0, CDB(0x48, BLOCK_ERASE | IMMED));
	rig_enter(&rig, 0);
	scsi_task_submit(&rig.task);
	while (!blk->in_flight) {
		uint64_t before = blk->counts.by_purpose[IO_HOST];

		env_run_timers(rig_env);
		env_run_deferred(rig_env);
		ck_assert_uint_le(blk->counts.by_purpose[IO_HOST] - before, 1);
		ck_assert_uint_lt(++turns, 1000);
	}
	ck_assert_uint_ge(turns, 16 + 8 + 1);
	rig_run();
	ck_assert_uint_eq(tur(other), 0);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sanitize_state");
	TCase *tc = tcase_create("sanitize_state");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, while_it_runs_others_hear_so_and_the_medium_is_left_alone, 0,
			    2 * ALL);
	tcase_add_loop_test(tc, progress_rises_in_request_sense_and_in_the_refusals, 0, ALL);
	tcase_add_loop_test(tc, commands_that_had_their_range_end_first_and_no_other_gets_one, 0,
			    ALL);
	tcase_add_loop_test(tc, whatever_its_attribute_it_runs_at_once_and_keeps_nobody_waiting, 0,
			    ALL);
	tcase_add_loop_test(tc, aborts_and_resets_end_the_task_and_not_the_operation, 0, ALL);
	tcase_add_loop_test(tc, a_failed_one_keeps_everybody_from_the_medium, 0, 5 * 2 * ALL);
	tcase_add_loop_test(tc, only_a_sanitize_that_succeeds_leads_out_of_a_restricted_failure, 0,
			    ALL);
	tcase_add_loop_test(tc, exit_failure_mode_leads_out_of_an_unrestricted_one, 0, ALL);
	tcase_add_loop_test(tc, a_unit_that_goes_stops_after_the_io_under_way, 0, 2 * ALL);
	tcase_add_loop_test(tc, a_medium_that_grows_or_shrinks_meanwhile_is_followed, 0, 2 * ALL);
	tcase_add_loop_test(tc, it_makes_one_step_a_turn, 0, 2);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
