/* SPDX-License-Identifier: MIT */
/* The device: LUN addressing, maps that come and go, unit attentions, transport errors. */
#include <check.h>
#include <errno.h>

#include "target/scsi/sense.h"
#include "tests/fake/scsi_rig.h"

static struct scsi_nexus *nexus;
static struct rig_task t[4];

static void start(bool remote)
{
	rig_start(remote);
	nexus = rig_nexus(1);
}

static void stop(void)
{
	scsi_nexus_free(nexus);
	rig_stop();
}

static const struct {
	uint64_t lun;
	int number;
} addresses[] = {
	{ 0x0000000000000000, 0 },   { 0x0001000000000000, 1 },     { 0x00ff000000000000, 255 },
	{ 0x4000000000000000, 0 },   { 0x4001000000000000, 1 },     { 0x40ff000000000000, 255 },
	{ 0x4100000000000000, 256 }, { 0x7fff000000000000, 16383 }, { 0x0100000000000000, -1 },
	{ 0x3f00000000000000, -1 },  { 0x0000000000000001, -1 },    { 0x0001000100000000, -1 },
	{ 0x8000000000000000, -1 },  { 0xc101000000000000, -1 },    { 0xd200000100000000, -1 },
	{ 0xffffffffffffffff, -1 },
};

START_TEST(a_lun_is_found_by_each_method_that_can_name_it)
{
	ck_assert_int_eq(device_lun_number(addresses[_i].lun), addresses[_i].number);
	if (addresses[_i].number < 0) {
		start(false);
		rig_map(0, rig_ram(1 * MIB, 512));
		rig_init(&t[0], nexus, 0, TUR);
		t[0].task.lun = addresses[_i].lun;
		rig_submit(&t[0]);
		ck_assert_uint_eq(rig_sense(&t[0]), 0x052500);
		stop();
	}
}
END_TEST

START_TEST(mapping_is_refused_with_the_reason)
{
	struct scsi_lu_config config;
	struct scsi_device *elsewhere;
	struct scsi_lu *lu;
	struct blk *blk;

	start(false);
	blk = rig_ram(1 * MIB, 512);
	config = rig_config(blk);
	lu = scsi_lu_new(&config);
	blk_unref(blk);
	ck_assert_int_eq(scsi_device_map(rig_device, 7, lu, false), 0);
	ck_assert_int_eq(scsi_device_map(rig_device, 7, lu, false), -EEXIST);
	ck_assert_int_eq(scsi_device_map(rig_device, 16384, lu, false), -EINVAL);
	elsewhere = scsi_device_new("iqn.2026-11.org.yoke:elsewhere", &rig_home);
	ck_assert_int_eq(scsi_device_map(elsewhere, 0, lu, false), -EXDEV);
	scsi_device_free(elsewhere);
	scsi_lu_unref(lu);
	stop();
}
END_TEST

START_TEST(a_read_only_mapping_protects_here_and_not_there)
{
	struct scsi_lu_config config;
	struct scsi_lu *lu;
	struct blk *blk;

	start(_i);
	blk = rig_ram(1 * MIB, 512);
	config = rig_config(blk);
	lu = scsi_lu_new(&config);
	blk_unref(blk);
	ck_assert_int_eq(scsi_device_map(rig_device, 0, lu, true), 0);
	ck_assert_int_eq(scsi_device_map(rig_device, 1, lu, false), 0);
	scsi_lu_unref(lu);
	rig_clear_ua(nexus, 0);
	rig_clear_ua(nexus, 1);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1))), 0x072700);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 1, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1))), 0);
	ck_assert_uint_eq(rig_do(nexus, 0, CDB(0x1a, 8, 0x3f, 0, 255))->data[2], 0x90);
	ck_assert_uint_eq(rig_do(nexus, 1, CDB(0x1a, 8, 0x3f, 0, 255))->data[2], 0x10);
	stop();
}
END_TEST

static void count(void *arg)
{
	++*(unsigned *)arg;
}

START_TEST(unmapping_lets_tasks_end_and_hides_the_lun_meanwhile)
{
	struct fake_blk *fake;
	bool closed = false;
	unsigned done = 0;
	struct rig_tmf tmf;

	start(_i % 2);
	fake = fake_blk_new(rig_env, 1 * MIB, 512, BLK_FUA);
	fake->closed = &closed;
	rig_map(0, &fake->blk);
	rig_clear_ua(nexus, 0);
	rig_init(&t[0], nexus, 0, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1));
	rig_submit(&t[0]);
	scsi_device_unmap(rig_device, 0, count, &done);
	ck_assert_uint_eq(done, 0);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0x052500);
	ck_assert_uint_eq(get_be32(rig_do(nexus, 0, CDB(0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0))->data),
			  0);
	if (_i / 2) { /* its own task may still be aborted */
		rig_tmf(&tmf, nexus, SCSI_ABORT_TASK, 0, t[0].task.tag);
		ck_assert_uint_eq(tmf.done, 0);
	}
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(t[0].done, 1);
	ck_assert_uint_eq(done, 1);
	ck_assert(closed);
	if (_i / 2)
		ck_assert_uint_eq(tmf.done, 1);
	scsi_device_unmap(rig_device, 0, count, &done);
	ck_assert_uint_eq(done, 2);
	stop();
}
END_TEST

static struct fake_blk *held_disk(bool *closed)
{
	struct fake_blk *fake = fake_blk_new(rig_env, 1 * MIB, 512, BLK_FUA);

	fake->closed = closed;
	return fake;
}

static void held_read(struct rig_task *rig, struct scsi_nexus *of)
{
	rig_init(rig, of, 0, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1));
	rig_submit(rig);
	ck_assert_uint_eq(rig->done, 0);
}

START_TEST(a_lun_becomes_another_while_tasks_of_the_one_before_run)
{
	struct fake_blk *fake[3];
	bool closed[3] = { false };
	unsigned i, done = 0;

	start(_i);
	for (i = 0; i < 3; i++) {
		fake[i] = held_disk(&closed[i]);
		rig_map(0, &fake[i]->blk);
		rig_clear_ua(nexus, 0);
		held_read(&t[i], nexus);
		scsi_device_unmap(rig_device, 0, NULL, NULL);
	}
	scsi_device_unmap(rig_device, 0, count, &done);
	ck_assert_uint_eq(done, 1);
	rig_map(0, rig_ram(2 * MIB, 512));
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0x062900);
	rig_clear_ua(nexus, 0);
	ck_assert_uint_eq(get_be32(rig_do(nexus, 0, CDB(0x25))->data), 4095);
	ck_assert_uint_eq(get_be32(rig_do(nexus, 0, CDB(0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0))->data),
			  8);
	for (i = 3; i-- > 0;) { /* the oldest last */
		fake_blk_end(fake[i], 0);
		rig_run();
		ck_assert_uint_eq(t[i].done, 1);
		ck_assert(closed[i]);
	}
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0);
	stop();
}
END_TEST

static const struct {
	enum scsi_tmf_function function;
	bool waits;  /* for its own task at the one before */
	bool resets; /* the one that is there now */
} at_another[] = {
	{ SCSI_ABORT_TASK, true, false },     { SCSI_ABORT_TASK_SET, true, false },
	{ SCSI_CLEAR_TASK_SET, true, false }, { SCSI_LUN_RESET, true, true },
	{ SCSI_TARGET_RESET, true, true },    { SCSI_NEXUS_RESET, true, false },
};

START_TEST(functions_reach_own_tasks_at_the_one_before)
{
	struct scsi_nexus *other;
	struct fake_blk *fake;
	struct rig_tmf tmf;

	start(_i % 2);
	other = rig_nexus(2);
	fake = held_disk(NULL);
	rig_map(0, &fake->blk);
	rig_clear_ua(nexus, 0);
	rig_clear_ua(other, 0);
	held_read(&t[0], nexus);
	held_read(&t[1], other);
	scsi_device_unmap(rig_device, 0, NULL, NULL);
	rig_map(0, rig_ram(1 * MIB, 512));
	rig_clear_ua(nexus, 0);
	rig_clear_ua(other, 0);
	rig_tmf(&tmf, nexus, at_another[_i / 2].function, 0, t[0].task.tag);
	ck_assert_uint_eq(tmf.done, !at_another[_i / 2].waits);
	ck_assert_uint_eq(rig_sense(rig_do(other, 0, TUR)) == 0, !at_another[_i / 2].resets);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(t[0].task.outcome, SCSI_ABORTED);
	/* What another left there is its own, unless all of the target is reset. */
	ck_assert_uint_eq(tmf.done, at_another[_i / 2].function != SCSI_TARGET_RESET);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_uint_eq(t[1].task.status, at_another[_i / 2].function == SCSI_TARGET_RESET ?
						    SCSI_TASK_ABORTED :
						    SCSI_GOOD);
	scsi_nexus_free(other);
	stop();
}
END_TEST

START_TEST(each_nexus_sees_power_on_once_at_each_lun_then_news_in_order)
{
	struct scsi_nexus *other;

	start(_i);
	rig_map(0, rig_ram(1 * MIB, 512));
	rig_map(9, rig_ram(1 * MIB, 512));
	other = rig_nexus(2);
	rig_map(3, rig_ram(1 * MIB, 512));
	ck_assert_uint_eq(rig_sense(rig_do(other, 0, TUR)), 0x062900);
	ck_assert_uint_eq(rig_sense(rig_do(other, 0, TUR)), 0x063f0e);
	ck_assert_uint_eq(rig_sense(rig_do(other, 0, TUR)), 0);
	ck_assert_uint_eq(rig_sense(rig_do(other, 9, TUR)), 0x062900);
	ck_assert_uint_eq(rig_sense(rig_do(other, 3, TUR)), 0x062900);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0x062900);
	scsi_nexus_free(other);
	stop();
}
END_TEST

START_TEST(a_lun_mapped_where_another_was_is_met_for_the_first_time)
{
	start(_i);
	rig_map(0, rig_ram(1 * MIB, 512));
	rig_map(1, rig_ram(1 * MIB, 512));
	rig_clear_ua(nexus, 0);
	rig_clear_ua(nexus, 1);
	scsi_device_unmap(rig_device, 0, NULL, NULL);
	rig_map(2, rig_ram(1 * MIB, 512));
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 2, TUR)), 0x062900);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 1, TUR)), 0x063f0e);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 1, TUR)), 0);
	stop();
}
END_TEST

START_TEST(what_the_transport_found_wrong_is_not_executed)
{
	start(_i);
	rig_map(0, rig_ram(1 * MIB, 512));
	rig_init(&t[0], nexus, 0, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1));
	t[0].task.transport_error = SCSI_TRANSPORT_DIGEST;
	rig_submit(&t[0]);
	ck_assert_uint_eq(rig_sense(&t[0]), 0x0b4705);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0x062900);
	rig_clear_ua(nexus, 0);
	ck_assert_uint_eq(rig_do(nexus, 0, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1))->data[0], 0);
	stop();
}
END_TEST

START_TEST(a_cdb_that_is_too_long_is_an_unknown_command)
{
	start(false);
	rig_map(0, rig_ram(1 * MIB, 512));
	rig_clear_ua(nexus, 0);
	rig_init(&t[0], nexus, 0, TUR);
	t[0].task.cdb_too_long = true;
	rig_submit(&t[0]);
	ck_assert_uint_eq(rig_sense(&t[0]), 0x052000);
	stop();
}
END_TEST

START_TEST(a_thousand_luns_come_and_go)
{
	unsigned i;

	start(_i);
	for (i = 0; i < 1000; i++) {
		struct scsi_lu_config config = rig_config(rig_ram(1 * MIB, 512));

		config.tasks_max = 1;
		rig_map_config((uint16_t)(i * 7 % 1000), &config);
	}
	for (i = 0; i < 1000; i++) {
		ck_assert_uint_eq(rig_sense(rig_do(nexus, (uint16_t)i, TUR)), 0x062900);
		scsi_device_unmap(rig_device, (uint16_t)i, NULL, NULL);
		ck_assert_uint_eq(rig_sense(rig_do(nexus, (uint16_t)i, TUR)), 0x052500);
	}
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("device");
	TCase *tc = tcase_create("device");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, a_lun_is_found_by_each_method_that_can_name_it, 0,
			    ARRAY_LEN(addresses));
	tcase_add_test(tc, mapping_is_refused_with_the_reason);
	tcase_add_loop_test(tc, a_read_only_mapping_protects_here_and_not_there, 0, 2);
	tcase_add_loop_test(tc, unmapping_lets_tasks_end_and_hides_the_lun_meanwhile, 0, 4);
	tcase_add_loop_test(tc, a_lun_becomes_another_while_tasks_of_the_one_before_run, 0, 2);
	tcase_add_loop_test(tc, functions_reach_own_tasks_at_the_one_before, 0,
			    2 * ARRAY_LEN(at_another));
	tcase_add_loop_test(tc, each_nexus_sees_power_on_once_at_each_lun_then_news_in_order, 0, 2);
	tcase_add_loop_test(tc, a_lun_mapped_where_another_was_is_met_for_the_first_time, 0, 2);
	tcase_add_loop_test(tc, what_the_transport_found_wrong_is_not_executed, 0, 2);
	tcase_add_test(tc, a_cdb_that_is_too_long_is_an_unknown_command);
	tcase_add_loop_test(tc, a_thousand_luns_come_and_go, 0, 2);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
