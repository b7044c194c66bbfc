/* SPDX-License-Identifier: MIT */
/* MODE SELECT: what a parameter list may change, and when it takes effect. */
#include <check.h>
#include <errno.h>

#include "tests/fake/scsi_rig.h"

static struct scsi_nexus *nexus;
static struct scsi_lu *lu;
static struct fake_blk *fake;

static void start(bool write_cache, bool read_only, uint32_t block)
{
	struct scsi_lu_config config;

	rig_start(false);
	fake = fake_blk_new(rig_env, 8 * MIB, block, BLK_FUA);
	config = rig_config(&fake->blk);
	config.write_cache = write_cache;
	config.read_only = read_only;
	lu = rig_map_config(0, &config);
	nexus = rig_nexus(1);
	rig_clear_ua(nexus, 0);
}

static void stop(void)
{
	scsi_nexus_free(nexus);
	rig_stop();
}

static const uint8_t *six(uint8_t byte1, uint8_t page, uint8_t subpage)
{
	struct rig_task *rig = rig_do(nexus, 0, CDB(0x1a, byte1, page, subpage, 255));

	ck_assert_uint_eq(rig_sense(rig), 0);
	ck_assert_uint_eq(rig->task.data_in_length, rig->data[0] + 1u);
	return rig->data;
}

/* A MODE SELECT(6 or 10) of LENGTH bytes at LIST. */
static struct rig_task *sel(struct scsi_nexus *from, bool ten, const uint8_t *list, unsigned length)
{
	static struct rig_task rig;

	rig_init(&rig, from, 0,
		 ten ? CDB(0x55, 0x10, 0, 0, 0, 0, 0, 0, (uint8_t)length) :
		       CDB(0x15, 0x10, 0, 0, (uint8_t)length));
	rig_enter(&rig, 1);
	ck_assert_uint_eq(rig.task.data_out_length, length);
	buf_write(&rig.task.data, 0, list, length);
	scsi_task_submit(&rig.task);
	rig_run();
	return &rig;
}

/* The current control page after an empty header. */
static void control_list(uint8_t *list)
{
	memcpy(list, six(0x08, 0x0a, 0), 16);
	list[0] = list[2] = 0;
}

START_TEST(each_changeable_bit_of_the_control_page_is_taken_and_told)
{
	static const struct {
		uint8_t byte, bit;
	} bits[] = { { 6, 0x04 }, { 8, 0x08 }, { 9, 0x40 } };
	struct scsi_nexus *other;
	uint8_t list[16], now[16];

	start(false, false, 512);
	other = rig_nexus(2);
	rig_clear_ua(other, 0);
	control_list(list);
	ck_assert_uint_eq(six(0x08, 0x4a, 0)[bits[_i].byte], bits[_i].bit);
	list[bits[_i].byte] ^= bits[_i].bit;
	ck_assert_uint_eq(rig_sense(sel(nexus, false, list, 16)), 0);
	control_list(now);
	ck_assert_mem_eq(now, list, 16);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0);
	ck_assert_uint_eq(rig_sense(rig_do(other, 0, TUR)), 0x062a01);
	ck_assert_uint_eq(rig_sense(sel(nexus, false, list, 16)), 0);
	ck_assert_uint_eq(rig_sense(rig_do(other, 0, TUR)), 0); /* nothing changed */
	scsi_nexus_free(other);
	stop();
}
END_TEST

START_TEST(any_other_bit_is_refused_where_it_is_and_nothing_changes)
{
	uint8_t list[16], was[16];
	struct rig_task *rig;
	unsigned byte, bit;

	start(false, false, 512);
	for (byte = 5; byte < 16; byte++) {
		for (bit = 0; bit < 8; bit++) {
			control_list(was);
			memcpy(list, was, 16);
			if ((byte == 6 && bit == 2) || (byte == 8 && bit == 3) ||
			    (byte == 9 && bit == 6))
				continue;
			list[9] ^= byte > 9 ? 0x40 : 0; /* goes with it, and must not stay */
			list[byte] ^= (uint8_t)(1u << bit);
			rig = sel(nexus, false, list, 16);
			ck_assert_uint_eq(rig_sense(rig), 0x052600);
			ck_assert_int_eq(rig_field(rig), (int)byte);
			ck_assert_uint_eq(rig->task.sense[15], 0x88 | bit);
			control_list(list);
			ck_assert_mem_eq(list, was, 16);
		}
	}
	stop();
}
END_TEST

START_TEST(an_unknown_page_is_refused_at_its_code)
{
	static const uint8_t lists[][8] = { { 0, 0, 0, 0, 0x3e, 2 },
					    { 0, 0, 0, 0, 0x4a, 0x02, 0, 0 },
					    { 0, 0, 0, 0, 0x4a, 0x00, 0, 0 },
					    { 0, 0, 0, 0, 0x3f, 0 } };
	struct rig_task *rig;

	start(false, false, 512);
	rig = sel(nexus, false, lists[_i], 8);
	ck_assert_uint_eq(rig_sense(rig), 0x052600);
	ck_assert_int_eq(rig_field(rig), 4);
	stop();
}
END_TEST

START_TEST(every_short_list_is_a_list_length_error)
{
	uint8_t list[40] = { 0 };
	unsigned length;
	bool ten = _i;

	start(false, false, 512);
	control_list(list);
	if (ten)
		memmove(list + 8, list + 4, 12);
	if (ten)
		memset(list, 0, 8);
	for (length = 0; length <= (ten ? 20u : 16u); length++) {
		bool whole = length == 0 || length == (ten ? 8 : 4) || length == (ten ? 20 : 16);

		ck_assert_uint_eq(rig_sense(sel(nexus, ten, list, length)), whole ? 0 : 0x051a00);
	}
	stop();
}
END_TEST

START_TEST(saving_and_foreign_formats_are_refused)
{
	struct rig_task *rig;

	start(false, false, 512);
	rig = rig_do(nexus, 0, CDB(0x15, 0x11, 0, 0, 4));
	ck_assert_uint_eq(rig_sense(rig), 0x052400);
	ck_assert_int_eq(rig_field(rig), 1);
	rig = rig_do(nexus, 0, CDB(0x15, 0x00, 0, 0, 4));
	ck_assert_uint_eq(rig_sense(rig), 0x052400);
	rig = rig_do(nexus, 0, CDB(0x15, 0x00, 0, 0, 0));
	ck_assert_uint_eq(rig_sense(rig), 0);
	stop();
}
END_TEST

START_TEST(a_block_descriptor_may_only_say_what_is_so)
{
	static const struct {
		uint32_t blocks, block;
		int field;
	} cases[] = { { 0, 512, -1 },    { 0xffffffff, 512, -1 }, { 16384, 512, -1 },
		      { 16383, 512, 4 }, { 0, 4096, 9 },          { 0, 0, 9 } };
	uint8_t list[12] = { 0, 0, 0, 8 };
	struct rig_task *rig;

	start(false, false, 512);
	put_be32(list + 4, cases[_i].blocks);
	put_be32(list + 8, cases[_i].block);
	rig = sel(nexus, false, list, 12);
	ck_assert_uint_eq(rig_sense(rig), cases[_i].field < 0 ? 0 : 0x052600);
	if (cases[_i].field >= 0)
		ck_assert_int_eq(rig_field(rig), cases[_i].field);
	list[3] = 7;
	ck_assert_uint_eq(rig_sense(sel(nexus, false, list, 12)), 0x052600);
	stop();
}
END_TEST

START_TEST(turning_the_cache_off_drains_and_flushes_first)
{
	uint8_t list[24], cdb[SCSI_CDB_MAX];
	static struct rig_task write, select, late;

	start(true, false, 512);
	memcpy(list, six(0x08, 0x08, 0), 24);
	list[0] = list[2] = 0;
	list[6] = 0;
	rig_init(&write, nexus, 0, rig_rw(cdb, 0x2a, 0, 1));
	rig_submit(&write);
	ck_assert_uint_eq(fake->last_flags & IO_FUA, 0);
	rig_init(&select, nexus, 0, CDB(0x15, 0x10, 0, 0, 24));
	rig_enter(&select, 1);
	buf_write(&select.task.data, 0, list, 24);
	scsi_task_submit(&select.task);
	rig_run();
	rig_init(&late, nexus, 0, rig_rw(cdb, 0x2a, 8, 1));
	rig_submit(&late);
	ck_assert_uint_eq(fake->held_count, 1);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(write.done, 1);
	ck_assert_uint_eq(fake->submits[IO_FLUSH], 1);
	ck_assert_uint_eq(select.done, 0);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(rig_sense(&select), 0);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 2);
	ck_assert_uint_eq(fake->last_flags & IO_FUA, IO_FUA);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(six(0x08, 0x08, 0)[6], 0);
	stop();
}
END_TEST

/* While it drains, while it flushes; at the flush itself: an error, an abort. */
START_TEST(the_cache_stays_on_unless_all_before_is_durable)
{
	bool early = _i == 0, fails = _i == 1;
	static struct rig_task write, select;
	uint8_t list[24], cdb[SCSI_CDB_MAX];
	struct rig_tmf tmf;

	start(true, false, 512);
	memcpy(list, six(0x08, 0x08, 0), 24);
	list[0] = list[2] = list[6] = 0;
	rig_init(&write, nexus, 0, rig_rw(cdb, 0x2a, 0, 1));
	rig_submit(&write);
	rig_init(&select, nexus, 0, CDB(0x15, 0x10, 0, 0, 24));
	rig_enter(&select, 1);
	buf_write(&select.task.data, 0, list, 24);
	scsi_task_submit(&select.task);
	rig_run();
	ck_assert_uint_eq(six(0x08, 0x08, 0)[6], 0x04);
	if (early)
		rig_tmf(&tmf, nexus, SCSI_ABORT_TASK, 0, select.task.tag);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(write.done, 1);
	ck_assert_uint_eq(fake->held_count, early ? 0 : 1);
	if (!early) {
		ck_assert_uint_eq(six(0x08, 0x08, 0)[6], 0x04);
		if (!fails)
			rig_tmf(&tmf, nexus, SCSI_ABORT_TASK, 0, select.task.tag);
		fake_blk_end(fake, fails ? -EIO : 0);
		rig_run();
	}
	ck_assert_uint_eq(select.done, 1);
	if (fails)
		ck_assert_uint_eq(rig_sense(&select), 0x030c00);
	else
		ck_assert_uint_eq(select.task.outcome, SCSI_ABORTED);
	ck_assert_uint_eq(six(0x08, 0x08, 0)[6], 0x04);
	stop();
}
END_TEST

START_TEST(a_logical_unit_reset_brings_the_defaults_back)
{
	struct rig_tmf tmf;
	uint8_t list[16], was[16];

	start(false, false, 512);
	control_list(was);
	memcpy(list, was, 16);
	list[6] ^= 0x04;
	list[8] ^= 0x08;
	ck_assert_uint_eq(rig_sense(sel(nexus, false, list, 16)), 0);
	rig_tmf(&tmf, nexus, SCSI_LUN_RESET, 0, 0);
	rig_clear_ua(nexus, 0);
	control_list(list);
	ck_assert_mem_eq(list, was, 16);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mode_select");
	TCase *tc = tcase_create("mode_select");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, each_changeable_bit_of_the_control_page_is_taken_and_told, 0, 3);
	tcase_add_test(tc, any_other_bit_is_refused_where_it_is_and_nothing_changes);
	tcase_add_loop_test(tc, an_unknown_page_is_refused_at_its_code, 0, 4);
	tcase_add_loop_test(tc, every_short_list_is_a_list_length_error, 0, 2);
	tcase_add_test(tc, saving_and_foreign_formats_are_refused);
	tcase_add_loop_test(tc, a_block_descriptor_may_only_say_what_is_so, 0, 6);
	tcase_add_test(tc, turning_the_cache_off_drains_and_flushes_first);
	tcase_add_loop_test(tc, the_cache_stays_on_unless_all_before_is_durable, 0, 3);
	tcase_add_test(tc, a_logical_unit_reset_brings_the_defaults_back);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
