/* SPDX-License-Identifier: MIT */
/* Task attributes as barriers, with the home here and elsewhere. */
#include <check.h>
#include <errno.h>

#include "tests/fake/scsi_rig.h"

static struct scsi_nexus *a, *b;
static struct fake_blk *fake;
static struct rig_task tasks[200];

static void start(bool remote)
{
	rig_start(remote);
	fake = fake_blk_new(rig_env, 8 * MIB, 512, BLK_FUA);
	rig_map(0, &fake->blk);
	a = rig_nexus(1);
	b = rig_nexus(2);
	rig_clear_ua(a, 0);
	rig_clear_ua(b, 0);
}

static void stop(void)
{
	scsi_nexus_free(a);
	scsi_nexus_free(b);
	rig_stop();
}

static struct rig_task *init(unsigned i, struct scsi_nexus *nexus, enum scsi_attr attr, bool write)
{
	uint8_t cdb[SCSI_CDB_MAX];

	rig_init(&tasks[i], nexus, 0, rig_rw(cdb, write ? 0x2a : 0x28, i * 8, 1));
	tasks[i].task.attr = attr;
	return &tasks[i];
}

static void submit(unsigned i, struct scsi_nexus *nexus, enum scsi_attr attr)
{
	rig_submit(init(i, nexus, attr, false));
}

static void end_oldest(void)
{
	fake_blk_end(fake, 0);
	rig_run();
}

/* The LBA of the Nth io at the device, as a task's index. */
static unsigned at_device(unsigned n)
{
	struct io *io = STAILQ_FIRST(&fake->held);

	while (n-- > 0)
		io = STAILQ_NEXT(io, link);
	return (unsigned)(io->offset / 512 / 8);
}

START_TEST(simple_tasks_run_side_by_side)
{
	unsigned i;

	start(_i);
	for (i = 0; i < 20; i++)
		submit(i, i % 2 ? a : b, SCSI_SIMPLE);
	ck_assert_uint_eq(fake->held_count, 20);
	while (fake->held_count)
		end_oldest();
	for (i = 0; i < 20; i++)
		ck_assert_uint_eq(tasks[i].done, 1);
	stop();
}
END_TEST

START_TEST(an_ordered_task_waits_for_all_before_and_all_after_wait_for_it)
{
	start(_i);
	submit(0, a, SCSI_SIMPLE);
	submit(1, b, SCSI_SIMPLE);
	submit(2, a, SCSI_ORDERED);
	submit(3, b, SCSI_SIMPLE);
	submit(4, a, SCSI_SIMPLE);
	ck_assert_uint_eq(fake->held_count, 2);
	end_oldest();
	ck_assert_uint_eq(fake->held_count, 1);
	end_oldest();
	ck_assert_uint_eq(fake->held_count, 1);
	ck_assert_uint_eq(at_device(0), 2);
	end_oldest();
	ck_assert_uint_eq(fake->held_count, 2);
	ck_assert_uint_eq(at_device(0), 3);
	ck_assert_uint_eq(at_device(1), 4);
	end_oldest();
	end_oldest();
	ck_assert_uint_eq(tasks[4].done, 1);
	stop();
}
END_TEST

START_TEST(head_of_queue_passes_what_waits)
{
	start(_i);
	submit(0, a, SCSI_SIMPLE);
	submit(1, a, SCSI_ORDERED);
	submit(2, b, SCSI_HEAD_OF_QUEUE);
	ck_assert_uint_eq(fake->held_count, 2);
	ck_assert_uint_eq(at_device(1), 2);
	submit(3, a, SCSI_SIMPLE);
	end_oldest();
	end_oldest();
	ck_assert_uint_eq(fake->held_count, 1);
	ck_assert_uint_eq(at_device(0), 1);
	end_oldest();
	ck_assert_uint_eq(at_device(0), 3);
	end_oldest();
	stop();
}
END_TEST

START_TEST(an_ordered_write_keeps_its_place_while_its_data_is_gathered)
{
	start(_i);
	rig_enter(init(0, a, SCSI_ORDERED, true), 1);
	submit(1, a, SCSI_SIMPLE);
	ck_assert_uint_eq(fake->held_count, 0);
	/* Another initiator cannot tell that the write has arrived, and is not held up by it. */
	submit(2, b, SCSI_SIMPLE);
	ck_assert_uint_eq(fake->held_count, 1);
	end_oldest();
	scsi_task_submit(&tasks[0].task);
	rig_run();
	ck_assert_uint_eq(fake->held_count, 1);
	ck_assert_uint_eq(at_device(0), 0);
	end_oldest();
	ck_assert_uint_eq(at_device(0), 1);
	end_oldest();
	ck_assert_uint_lt(tasks[0].order, tasks[1].order);
	stop();
}
END_TEST

START_TEST(what_asks_about_the_device_never_waits)
{
	start(_i);
	submit(0, a, SCSI_ORDERED);
	ck_assert_uint_eq(rig_do(a, 0, CDB(0x12, 0, 0, 0, 36))->task.status, SCSI_GOOD);
	ck_assert_uint_eq(rig_do(b, 0, CDB(0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0))->task.status,
			  SCSI_GOOD);
	ck_assert_uint_eq(rig_do(b, 0, CDB(0x03, 0, 0, 0, 18))->task.status, SCSI_GOOD);
	ck_assert_uint_eq(tasks[0].done, 0);
	end_oldest();
	stop();
}
END_TEST

/* Its data was damaged: nothing runs, and the initiator is to send it again. */
START_TEST(a_task_that_is_not_executed_waits_for_no_turn)
{
	start(_i);
	submit(0, a, SCSI_SIMPLE);
	submit(1, a, SCSI_ORDERED);
	rig_enter(init(2, a, SCSI_SIMPLE, true), 1);
	tasks[2].task.transport_error = SCSI_TRANSPORT_DIGEST;
	scsi_task_submit(&tasks[2].task);
	rig_run();
	ck_assert_uint_eq(tasks[2].done, 1);
	ck_assert_uint_eq(rig_sense(&tasks[2]), 0x0b4705);
	ck_assert_uint_eq(tasks[1].done, 0);
	ck_assert_uint_eq(fake->held_count, 1);
	end_oldest();
	end_oldest();
	ck_assert_uint_eq(tasks[1].done, 1);
	stop();
}
END_TEST

START_TEST(two_hundred_ordered_tasks_end_in_their_order)
{
	unsigned i;

	start(_i);
	for (i = 0; i < 200; i++) {
		if (i % 3 == 2) {
			rig_init(&tasks[i], a, 0, TUR);
			tasks[i].task.attr = SCSI_ORDERED;
			rig_submit(&tasks[i]);
		} else {
			submit(i, i % 2 ? a : b, SCSI_ORDERED);
		}
	}
	ck_assert_uint_eq(fake->held_count, 1);
	while (fake->held_count)
		end_oldest();
	for (i = 1; i < 200; i++)
		ck_assert_uint_lt(tasks[i - 1].order, tasks[i].order);
	stop();
}
END_TEST

START_TEST(a_unit_attention_is_reported_to_the_task_that_runs_first_not_that_came_first)
{
	struct rig_tmf tmf;

	start(_i);
	submit(0, a, SCSI_SIMPLE);
	submit(1, a, SCSI_ORDERED);
	scsi_device_view_changed(rig_device);
	submit(2, a, SCSI_HEAD_OF_QUEUE);
	ck_assert_uint_eq(rig_sense(&tasks[2]), 0x063f0e);
	end_oldest();
	ck_assert_uint_eq(at_device(0), 1);
	end_oldest();
	ck_assert_uint_eq(rig_sense(&tasks[1]), 0);
	rig_tmf(&tmf, a, SCSI_QUERY_TASK_SET, 0, 0);
	ck_assert_int_eq(tmf.tmf.response, SCSI_TMF_COMPLETE);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("task_set");
	TCase *tc = tcase_create("task_set");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, simple_tasks_run_side_by_side, 0, 2);
	tcase_add_loop_test(tc, an_ordered_task_waits_for_all_before_and_all_after_wait_for_it, 0,
			    2);
	tcase_add_loop_test(tc, head_of_queue_passes_what_waits, 0, 2);
	tcase_add_loop_test(tc, an_ordered_write_keeps_its_place_while_its_data_is_gathered, 0, 2);
	tcase_add_loop_test(tc, what_asks_about_the_device_never_waits, 0, 2);
	tcase_add_loop_test(tc, a_task_that_is_not_executed_waits_for_no_turn, 0, 2);
	tcase_add_loop_test(tc, two_hundred_ordered_tasks_end_in_their_order, 0, 2);
	tcase_add_loop_test(
		tc, a_unit_attention_is_reported_to_the_task_that_runs_first_not_that_came_first, 0,
		2);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
