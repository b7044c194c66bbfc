/* SPDX-License-Identifier: MIT */
/* A sanitize operation and restarts: what is noted when, and what a restart makes of it. */
#include <check.h>
#include <errno.h>

#include "tests/fake/fake_lu_store.h"
#include "tests/fake/sanitize_rig.h"

static struct fake_lu_store store;

static void begin_world(int i)
{
	struct scsi_lu_config config;

	start(i);
	fake = fake_blk_new(rig_env, SIZE, BLOCK(i), THIN);
	config = rig_config(&fake->blk);
	config.store = &store.store;
	rig_map_config(0, &config);
	clear_ua();
}

static void first_start(int i)
{
	fake_lu_store_init(&store);
	begin_world(i);
}

static void again(int i)
{
	stop();
	begin_world(i);
}

static void noted(int error)
{
	ck_assert_uint_eq(store.held_count, 1);
	fake_lu_store_end(&store, error);
	rig_run();
}

START_TEST(nothing_is_touched_and_nothing_answered_before_it_is_noted)
{
	unsigned immed = _i >> 2;
	struct rig_task rig;

	first_start(_i);
	send(&rig, BLOCK_ERASE | (immed ? IMMED : 0), 0);
	ck_assert_uint_eq(rig.done + fake->held_count, 0);
	ck_assert_uint_eq(tur(other), IN_PROGRESS);
	noted(0);
	ck_assert_uint_eq(rig.done, immed);
	serve(1000);
	ck_assert_uint_eq(fake->submits[IO_UNMAP], 1);
	ck_assert_uint_eq(tur(other), IN_PROGRESS); /* its end is not noted yet */
	ck_assert_uint_eq(rig.done, immed);
	noted(0);
	ck_assert_uint_eq(rig_sense(&rig), 0);
	ck_assert_uint_eq(rig.done, 1);
	ck_assert_uint_eq(tur(other), 0);
	again(_i);
	ck_assert_uint_eq(tur(other), 0);
	ck_assert_uint_eq(store.saves, 2);
	stop();
}
END_TEST

START_TEST(one_that_cannot_be_noted_does_not_begin)
{
	struct rig_task rig;

	first_start(_i);
	send(&rig, BLOCK_ERASE | (_i >> 2 ? IMMED : 0), 0);
	noted(-ENOSPC);
	ck_assert_uint_eq(rig_sense(&rig), 0x044400);
	ck_assert_uint_eq(fake->submits[IO_STATUS], 0);
	ck_assert_uint_eq(tur(other), 0);
	stop();
}
END_TEST

START_TEST(a_restart_in_the_middle_finds_it_failed)
{
	unsigned ause = _i >> 2 ? AUSE : 0;
	struct rig_task rig;

	first_start(_i);
	send(&rig, BLOCK_ERASE | IMMED | ause, 0);
	noted(0);
	serve(3);
	scsi_device_map(rig_device, 0, NULL, false);
	rig_run();
	serve(1); /* the io under way is the last one */
	ck_assert_uint_eq(store.closes, 1);
	again(_i);
	ck_assert_uint_eq(tur(other), FAILED);
	ck_assert_uint_eq(rig_sense(rig_do(other, 0, CDB(0x28, [8] = 1))), FAILED);
	send(&rig, EXIT_FAILURE_MODE, 0);
	if (ause) {
		ck_assert_uint_eq(rig.done, 0);
		ck_assert_uint_eq(sanitize(BLOCK_ERASE, 0)->task.status, SCSI_BUSY);
		noted(0);
		ck_assert_uint_eq(rig_sense(&rig), 0);
	} else {
		ck_assert_uint_eq(rig_sense(&rig), 0x052400);
		ck_assert_uint_eq(rig_sense(sanitize(BLOCK_ERASE | AUSE, 0)), 0x052400);
		send(&rig, BLOCK_ERASE, 0);
		noted(0);
		serve(1000);
		noted(0);
	}
	ck_assert_uint_eq(tur(other), 0);
	again(_i);
	ck_assert_uint_eq(tur(other), 0);
	stop();
}
END_TEST

START_TEST(a_failure_lasts_over_restarts_and_an_exit_that_is_not_noted_is_none)
{
	struct rig_task rig;
	unsigned n;

	first_start(_i);
	send(&rig, BLOCK_ERASE | AUSE, 0);
	noted(0);
	serve(1);
	fake_blk_end(fake, -EIO);
	rig_run();
	ck_assert_uint_eq(rig_sense(&rig), FAILED);
	ck_assert_uint_eq(store.held_count, 0);
	for (n = 0; n < 2; n++) {
		again(_i);
		ck_assert_uint_eq(tur(other), FAILED);
	}
	send(&rig, EXIT_FAILURE_MODE, 0);
	noted(-EIO);
	ck_assert_uint_eq(rig_sense(&rig), 0x044400);
	ck_assert_uint_eq(tur(other), FAILED);
	/* Another one that cannot begin leaves the failure as it is. */
	send(&rig, BLOCK_ERASE, 0);
	noted(-EIO);
	ck_assert_uint_eq(tur(other), FAILED);
	stop();
}
END_TEST

START_TEST(an_end_that_cannot_be_noted_is_a_failure_before_a_restart_and_after_it)
{
	struct rig_task rig;

	first_start(_i);
	send(&rig, BLOCK_ERASE | AUSE, 0);
	noted(0);
	serve(1000);
	noted(-EIO);
	ck_assert_uint_eq(rig_sense(&rig), FAILED);
	ck_assert_uint_eq(rig_sense(rig_do(other, 0, CDB(0x2a, [8] = 1))), FAILED);
	again(_i);
	ck_assert_uint_eq(tur(other), FAILED);
	send(&rig, EXIT_FAILURE_MODE, 0);
	noted(0);
	ck_assert_uint_eq(rig_sense(&rig), 0);
	ck_assert_uint_eq(tur(other), 0);
	stop();
}
END_TEST

START_TEST(a_task_aborted_while_it_is_noted_leaves_the_operation)
{
	struct rig_task rig;
	struct rig_tmf tmf;

	first_start(_i);
	send(&rig, BLOCK_ERASE | (_i >> 2 ? IMMED : 0), 0);
	rig_tmf(&tmf, nexus, SCSI_ABORT_TASK, 0, rig.task.tag);
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_int_eq(rig.task.outcome, SCSI_ABORTED);
	noted(0);
	ck_assert_uint_eq(tur(other), IN_PROGRESS);
	serve(1000);
	noted(0);
	ck_assert_uint_eq(tur(other), 0);
	stop();
}
END_TEST

/* What no version of ours has written is taken for the worst. */
START_TEST(a_note_that_is_not_understood_is_a_failure)
{
	static const struct {
		uint8_t bytes[3];
		uint32_t length;
		unsigned sense;
	} cases[] = {
		{ { 0 }, 0, FAILED },       { { 0, 0 }, 2, 0 },      { { 0 }, 1, 0 },
		{ { 1, 1 }, 2, FAILED },    { { 7, 0 }, 2, FAILED }, { { 1 }, 1, FAILED },
		{ { 1, 1, 1 }, 3, FAILED },
	};

	fake_lu_store_init(&store);
	store.there[LU_BLOB_SANITIZE] = true;
	memcpy(store.blobs[LU_BLOB_SANITIZE], cases[_i].bytes, 3);
	store.lengths[LU_BLOB_SANITIZE] = cases[_i].length;
	begin_world(0);
	ck_assert_uint_eq(tur(other), cases[_i].sense);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sanitize_save");
	TCase *tc = tcase_create("sanitize_save");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, nothing_is_touched_and_nothing_answered_before_it_is_noted, 0,
			    2 * ALL);
	tcase_add_loop_test(tc, one_that_cannot_be_noted_does_not_begin, 0, 2 * ALL);
	tcase_add_loop_test(tc, a_restart_in_the_middle_finds_it_failed, 0, 2 * ALL);
	tcase_add_loop_test(tc, a_failure_lasts_over_restarts_and_an_exit_that_is_not_noted_is_none,
			    0, ALL);
	tcase_add_loop_test(
		tc, an_end_that_cannot_be_noted_is_a_failure_before_a_restart_and_after_it, 0, ALL);
	tcase_add_loop_test(tc, a_task_aborted_while_it_is_noted_leaves_the_operation, 0, 2 * ALL);
	tcase_add_loop_test(tc, a_note_that_is_not_understood_is_a_failure, 0, 7);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
