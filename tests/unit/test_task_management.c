/* SPDX-License-Identifier: MIT */
/* Task management with tasks in every state, held ios, and the home here and elsewhere. */
#include <check.h>
#include <errno.h>

#include "tests/fake/scsi_rig.h"

static struct scsi_nexus *a, *b;
static struct fake_blk *fake, *second;
static struct scsi_lu *lu;
static struct rig_task t[64];

static void start(bool remote)
{
	rig_start(remote);
	fake = fake_blk_new(rig_env, 8 * MIB, 512, BLK_FUA);
	second = fake_blk_new(rig_env, 8 * MIB, 512, BLK_FUA);
	lu = rig_map(0, &fake->blk);
	rig_map(5, &second->blk);
	a = rig_nexus(1);
	b = rig_nexus(2);
	rig_clear_ua(a, 0);
	rig_clear_ua(b, 0);
	rig_clear_ua(a, 5);
	rig_clear_ua(b, 5);
}

static void stop(void)
{
	while (fake->held_count) {
		fake_blk_end(fake, 0);
		rig_run();
	}
	while (second->held_count) {
		fake_blk_end(second, 0);
		rig_run();
	}
	scsi_nexus_free(a);
	scsi_nexus_free(b);
	rig_stop();
}

static struct rig_task *init(unsigned i, struct scsi_nexus *nexus, uint16_t lun, bool write,
			     uint64_t lba)
{
	uint8_t cdb[SCSI_CDB_MAX];

	rig_init(&t[i], nexus, lun, rig_rw(cdb, write ? 0x2a : 0x28, lba, 8));
	return &t[i];
}

/* A write that runs, one that waits behind it, one whose data is gathered; all of NEXUS. */
static void three(unsigned i, struct scsi_nexus *nexus, uint16_t lun)
{
	rig_submit(init(i, nexus, lun, true, i * 16));
	rig_submit(init(i + 1, nexus, lun, true, i * 16));
	rig_enter(init(i + 2, nexus, lun, true, i * 16), 1);
}

static void end(struct fake_blk *blk)
{
	fake_blk_end(blk, 0);
	rig_run();
}

START_TEST(a_task_whose_data_is_gathered_is_aborted_at_once)
{
	struct rig_tmf tmf;

	start(_i);
	rig_enter(init(0, a, 0, true, 0), 1);
	rig_tmf(&tmf, a, SCSI_ABORT_TASK, 0, t[0].task.tag);
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_COMPLETE);
	ck_assert_uint_eq(t[0].done, 1);
	ck_assert_int_eq(t[0].task.outcome, SCSI_ABORTED);
	ck_assert_int_eq(t[0].task.state, SCSI_TASK_IDLE);
	ck_assert_uint_lt(t[0].order, tmf.order);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 0);
	stop();
}
END_TEST

START_TEST(a_task_that_waits_for_its_range_is_withdrawn)
{
	struct rig_tmf tmf;

	start(_i);
	three(0, a, 0);
	rig_tmf(&tmf, a, SCSI_ABORT_TASK, 0, t[1].task.tag);
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_int_eq(t[1].task.outcome, SCSI_ABORTED);
	ck_assert_uint_eq(t[0].done, 0);
	end(fake);
	ck_assert_uint_eq(t[0].done, 1);
	ck_assert_int_eq(t[0].task.outcome, SCSI_COMPLETED);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 1);
	rig_tmf(&tmf, a, SCSI_ABORT_TASK, 0, t[2].task.tag);
	stop();
}
END_TEST

START_TEST(a_task_at_the_device_is_waited_for_and_its_result_dropped)
{
	struct rig_tmf tmf, again;

	start(_i);
	rig_submit(init(0, a, 0, true, 0));
	rig_tmf(&tmf, a, SCSI_ABORT_TASK, 0, t[0].task.tag);
	rig_tmf(&again, a, SCSI_ABORT_TASK, 0, t[0].task.tag);
	ck_assert_uint_eq(tmf.done + again.done, 0);
	/* Meanwhile the logical unit works. */
	ck_assert_uint_eq(rig_do(a, 0, TUR)->task.status, SCSI_GOOD);
	fake_blk_end(fake, _i / 2 ? -EIO : 0);
	rig_run();
	ck_assert_uint_eq(t[0].done, 1);
	ck_assert_int_eq(t[0].task.outcome, SCSI_ABORTED);
	ck_assert_uint_eq(tmf.done + again.done, 2);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_COMPLETE);
	ck_assert_uint_lt(t[0].order, tmf.order);
	rig_tmf(&tmf, a, SCSI_ABORT_TASK, 0, t[0].task.tag);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_NO_TASK);
	stop();
}
END_TEST

START_TEST(an_aborted_command_in_pieces_ends_with_its_piece)
{
	struct rig_tmf tmf;

	start(_i);
	fake->blk.max_io = 512;
	rig_submit(init(0, a, 0, true, 0));
	end(fake);
	rig_tmf(&tmf, a, SCSI_ABORT_TASK, 0, t[0].task.tag);
	ck_assert_uint_eq(tmf.done, 0);
	end(fake);
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 2);
	stop();
}
END_TEST

START_TEST(abort_task_knows_its_own_nexus_lun_and_tag_only)
{
	struct rig_tmf tmf;

	start(_i);
	rig_submit(init(0, a, 0, true, 0));
	rig_tmf(&tmf, b, SCSI_ABORT_TASK, 0, t[0].task.tag);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_NO_TASK);
	rig_tmf(&tmf, a, SCSI_ABORT_TASK, 0, t[0].task.tag + 1);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_NO_TASK);
	rig_tmf(&tmf, a, SCSI_ABORT_TASK, 5, t[0].task.tag);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_NO_TASK);
	rig_tmf(&tmf, a, SCSI_ABORT_TASK, 1, t[0].task.tag);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_NO_LUN);
	end(fake);
	ck_assert_int_eq(t[0].task.outcome, SCSI_COMPLETED);
	ck_assert_uint_eq(t[0].task.status, SCSI_GOOD);
	stop();
}
END_TEST

/* What each function ends: bit 0 own tasks at the LUN, 1 others' there, 2 own at another LUN, 3 others'. */
static const struct {
	enum scsi_tmf_function function;
	unsigned ends;
	unsigned ua_own, ua_other, ua_other_lun; /* pending afterwards, TAS=1 */
	unsigned ua_other_no_tas;
} functions[] = {
	{ SCSI_ABORT_TASK_SET, 1, 0, 0, 0, 0 },
	{ SCSI_CLEAR_TASK_SET, 3, 0, 0, 0, 0x062f00 },
	{ SCSI_LUN_RESET, 3, 0x062903, 0x062903, 0, 0x062903 },
	{ SCSI_TARGET_RESET, 15, 0x062902, 0x062902, 0x062902, 0x062902 },
	{ SCSI_NEXUS_RESET, 5, 0, 0, 0, 0 },
};

static void check_group(unsigned first, bool ended, bool own, bool tas)
{
	unsigned i;

	for (i = first; i < first + 3; i++) {
		ck_assert_uint_eq(t[i].done, ended);
		if (ended && (own || !tas)) {
			ck_assert_int_eq(t[i].task.outcome, SCSI_ABORTED);
		} else if (ended) {
			ck_assert_int_eq(t[i].task.outcome, SCSI_COMPLETED);
			ck_assert_uint_eq(t[i].task.status, SCSI_TASK_ABORTED);
			ck_assert_uint_eq(t[i].task.sense_length, 0);
		}
	}
}

static unsigned pending(struct scsi_nexus *nexus, uint16_t lun)
{
	return rig_sense(rig_do(nexus, lun, TUR));
}

static void clean_up(unsigned ends)
{
	unsigned g;

	/* What a function left: the running ones end by themselves, the gathered ones go on. */
	for (g = 0; g < 4; g++)
		if (!(ends & 1u << g))
			scsi_task_submit(&t[3 * g + 2].task);
	rig_run();
	while (fake->held_count)
		end(fake);
	while (second->held_count)
		end(second);
	for (g = 0; g < 12; g++)
		ck_assert_uint_eq(t[g].done, 1);
}

START_TEST(each_function_ends_what_it_concerns_and_nothing_else)
{
	unsigned f = (unsigned)_i / 4, ends = functions[f].ends;
	bool tas = _i / 2 % 2;
	struct rig_tmf tmf;

	start(_i % 2);
	atomic_store(&lu->tas, tas);
	three(0, a, 0);
	three(3, b, 0);
	three(6, a, 5);
	three(9, b, 5);
	rig_tmf(&tmf, a, functions[f].function, 0, 0);
	ck_assert_uint_eq(tmf.done, 0);
	/* The two that did not run are gone; the one at the device is waited for. */
	ck_assert_uint_eq(t[0].done, 0);
	ck_assert_uint_eq(t[1].done + t[2].done, 2);
	ck_assert_uint_eq(t[4].done + t[5].done, ends & 2 ? 2 : 0);
	end(fake);
	if (ends & 2) {
		ck_assert_uint_eq(tmf.done, 0);
		end(fake);
	}
	if (ends & 4) {
		ck_assert_uint_eq(tmf.done, 0);
		end(second);
	}
	if (ends & 8) {
		ck_assert_uint_eq(tmf.done, 0);
		end(second);
	}
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_COMPLETE);
	check_group(0, true, true, tas);
	check_group(3, ends & 2, false, tas);
	check_group(6, ends & 4, true, true);
	check_group(9, ends & 8, false, true);
	ck_assert_uint_eq(pending(a, 0), functions[f].ua_own);
	ck_assert_uint_eq(pending(b, 0),
			  tas ? functions[f].ua_other : functions[f].ua_other_no_tas);
	ck_assert_uint_eq(pending(b, 5), functions[f].ua_other_lun);
	ck_assert_uint_eq(pending(a, 5), functions[f].ua_other_lun);
	clean_up(ends);
	stop();
}
END_TEST

START_TEST(tasks_that_come_after_a_reset_are_not_its_business)
{
	struct rig_tmf tmf;

	start(_i);
	rig_submit(init(0, a, 0, true, 0));
	rig_tmf(&tmf, a, SCSI_LUN_RESET, 0, 0);
	rig_clear_ua(b, 0);
	rig_submit(init(1, b, 0, true, 0)); /* waits behind the one that is stuck */
	ck_assert_uint_eq(fake->held_count, 1);
	end(fake);
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_uint_eq(t[1].done, 0);
	end(fake);
	ck_assert_uint_eq(t[1].task.status, SCSI_GOOD);
	ck_assert_int_eq(t[1].task.outcome, SCSI_COMPLETED);
	stop();
}
END_TEST

START_TEST(an_aborted_barrier_starts_only_what_is_left)
{
	struct rig_tmf tmf;

	start(_i);
	rig_submit(init(0, a, 0, true, 0));
	init(1, a, 0, true, 100)->task.attr = SCSI_ORDERED;
	rig_submit(&t[1]);
	rig_submit(init(2, a, 0, true, 200));
	rig_submit(init(3, b, 0, true, 300));
	ck_assert_uint_eq(fake->held_count, 1);
	rig_tmf(&tmf, a, SCSI_ABORT_TASK_SET, 0, 0);
	ck_assert_uint_eq(t[1].done + t[2].done, 2);
	ck_assert_uint_eq(tmf.done, 0);
	/* The barrier is gone, and what waited behind it runs beside the stuck one. */
	ck_assert_uint_eq(fake->held_count, 2);
	end(fake);
	ck_assert_uint_eq(tmf.done, 1);
	end(fake);
	ck_assert_uint_eq(t[3].task.status, SCSI_GOOD);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 2);
	stop();
}
END_TEST

START_TEST(queries_tell_what_is_there)
{
	struct rig_tmf tmf;

	start(_i);
	rig_tmf(&tmf, a, SCSI_QUERY_TASK_SET, 0, 0);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_COMPLETE);
	rig_submit(init(0, a, 0, true, 0));
	rig_tmf(&tmf, a, SCSI_QUERY_TASK, 0, t[0].task.tag);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_SUCCEEDED);
	rig_tmf(&tmf, a, SCSI_QUERY_TASK, 0, t[0].task.tag + 1);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_COMPLETE);
	rig_tmf(&tmf, a, SCSI_QUERY_TASK_SET, 0, 0);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_SUCCEEDED);
	rig_tmf(&tmf, b, SCSI_QUERY_TASK_SET, 0, 0);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_COMPLETE);
	rig_tmf(&tmf, a, SCSI_QUERY_TASK_SET, 3, 0);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_NO_LUN);
	rig_tmf(&tmf, a, (enum scsi_tmf_function)99, 0, 0);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_NOT_SUPPORTED);
	ck_assert_uint_eq(t[0].done, 0);
	stop();
}
END_TEST

/* A query takes nothing away; what is pending is still a command's to report. */
START_TEST(a_query_for_an_event_tells_which_and_whether_more)
{
	struct rig_tmf tmf;

	start(_i);
	rig_tmf(&tmf, a, SCSI_QUERY_ASYNC_EVENT, 0, 0);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_COMPLETE);
	scsi_device_view_changed(rig_device);
	for (unsigned i = 0; i < 2; i++) {
		rig_tmf(&tmf, a, SCSI_QUERY_ASYNC_EVENT, 0, 0);
		ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_SUCCEEDED);
		ck_assert_mem_eq(tmf.tmf.event, "\x16\x3f\x0e", 3);
	}
	rig_tmf(&tmf, b, SCSI_LUN_RESET, 0, 0);
	rig_tmf(&tmf, a, SCSI_QUERY_ASYNC_EVENT, 0, 0);
	ck_assert_mem_eq(tmf.tmf.event, "\x26\x29\x03", 3);
	rig_clear_ua(a, 0);
	rig_tmf(&tmf, a, SCSI_QUERY_ASYNC_EVENT, 0, 0);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_COMPLETE);
	rig_tmf(&tmf, a, SCSI_QUERY_ASYNC_EVENT, 3, 0);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_NO_LUN);
	stop();
}
END_TEST

static bool first_only(void *arg, uint16_t lun, const char *initiator)
{
	(void)arg;
	return lun == 5 || strcmp(initiator, "iqn.1994-05.com.host:1") == 0;
}

START_TEST(a_masked_lun_cannot_be_reset)
{
	struct rig_tmf tmf;

	start(_i);
	scsi_device_mask(rig_device, first_only, NULL);
	three(0, a, 0);
	rig_tmf(&tmf, b, SCSI_LUN_RESET, 0, 0);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_NO_LUN);
	rig_tmf(&tmf, b, SCSI_CLEAR_TASK_SET, 0, 0);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_NO_LUN);
	ck_assert_uint_eq(t[0].done + t[1].done + t[2].done, 0);
	rig_tmf(&tmf, a, SCSI_ABORT_TASK_SET, 0, 0);
	stop();
}
END_TEST

START_TEST(a_stalled_device_delays_neither_a_new_login_nor_another_lun)
{
	struct scsi_nexus_id id;
	struct scsi_nexus *old;
	struct rig_tmf tmf;

	start(_i);
	three(0, a, 0);
	id = *scsi_nexus_id(a);
	ck_assert_ptr_null(scsi_nexus_new(rig_device, &id));
	ck_assert_int_eq(errno, EEXIST);
	scsi_nexus_retire(a);
	old = a;
	a = scsi_nexus_new(rig_device, &id);
	ck_assert_ptr_nonnull(a);
	rig_tmf(&tmf, old, SCSI_NEXUS_RESET, 0, 0);
	ck_assert_uint_eq(tmf.done, 0);
	ck_assert_uint_eq(scsi_nexus_tasks(old), 1);
	ck_assert_uint_eq(pending(a, 0), 0x062900);
	ck_assert_uint_eq(pending(a, 0), 0);
	rig_clear_ua(a, 5);
	rig_submit(init(8, a, 5, true, 0));
	end(second);
	ck_assert_uint_eq(t[8].task.status, SCSI_GOOD);
	end(fake);
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_uint_eq(scsi_nexus_tasks(old), 0);
	scsi_nexus_free(old);
	stop();
}
END_TEST

static bool hides_lun_5_from_a(void *arg, uint16_t lun, const char *initiator)
{
	(void)arg;
	return lun != 5 || strcmp(initiator, scsi_nexus_id(a)->initiator);
}

START_TEST(a_target_reset_does_not_reach_what_its_initiator_may_not_see)
{
	struct scsi_lu *hidden;
	struct rig_tmf tmf;

	start(_i);
	hidden = device_find(rig_device, 5)->lu;
	scsi_device_mask(rig_device, hides_lun_5_from_a, NULL);
	atomic_store(&hidden->d_sense, true);
	rig_submit(init(0, b, 5, true, 0));
	rig_submit(init(1, b, 0, true, 0));
	rig_tmf(&tmf, a, SCSI_TARGET_RESET, 0, 0);
	end(fake);
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_uint_eq(t[1].task.status, SCSI_TASK_ABORTED);
	ck_assert_uint_eq(t[0].done, 0);
	end(second);
	ck_assert_uint_eq(t[0].done, 1);
	ck_assert_uint_eq(t[0].task.status, SCSI_GOOD);
	ck_assert(atomic_load(&hidden->d_sense));
	ck_assert_uint_eq(pending(b, 0), 0x062902);
	ck_assert_uint_eq(pending(b, 5), 0);
	stop();
}
END_TEST

START_TEST(a_target_reset_over_many_luns_is_answered_once)
{
	struct rig_tmf tmf;
	uint16_t lun;

	start(_i);
	for (lun = 10; lun < 400; lun++) {
		struct scsi_lu_config config = rig_config(rig_ram(1 * MIB, 512));

		config.tasks_max = 2;
		rig_map_config(lun, &config);
	}
	rig_tmf(&tmf, a, SCSI_TARGET_RESET, 0, 0);
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_COMPLETE);
	ck_assert_uint_eq(pending(b, 5), 0x062902);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("task_management");
	TCase *tc = tcase_create("task_management");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, a_task_whose_data_is_gathered_is_aborted_at_once, 0, 2);
	tcase_add_loop_test(tc, a_task_that_waits_for_its_range_is_withdrawn, 0, 2);
	tcase_add_loop_test(tc, a_task_at_the_device_is_waited_for_and_its_result_dropped, 0, 4);
	tcase_add_loop_test(tc, an_aborted_command_in_pieces_ends_with_its_piece, 0, 2);
	tcase_add_loop_test(tc, abort_task_knows_its_own_nexus_lun_and_tag_only, 0, 2);
	tcase_add_loop_test(tc, each_function_ends_what_it_concerns_and_nothing_else, 0, 20);
	tcase_add_loop_test(tc, tasks_that_come_after_a_reset_are_not_its_business, 0, 2);
	tcase_add_loop_test(tc, an_aborted_barrier_starts_only_what_is_left, 0, 2);
	tcase_add_loop_test(tc, queries_tell_what_is_there, 0, 2);
	tcase_add_loop_test(tc, a_query_for_an_event_tells_which_and_whether_more, 0, 2);
	tcase_add_loop_test(tc, a_masked_lun_cannot_be_reset, 0, 2);
	tcase_add_loop_test(tc, a_stalled_device_delays_neither_a_new_login_nor_another_lun, 0, 2);
	tcase_add_loop_test(tc, a_target_reset_does_not_reach_what_its_initiator_may_not_see, 0, 2);
	tcase_add_loop_test(tc, a_target_reset_over_many_luns_is_answered_once, 0, 2);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
