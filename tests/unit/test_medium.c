/* SPDX-License-Identifier: MIT */
/* PRE-FETCH, START STOP UNIT, PREVENT ALLOW, READ DEFECT DATA of a medium that stays. */
#include <check.h>
#include <errno.h>

#include "tests/fake/scsi_rig.h"

#define BLOCKS 2048

static struct scsi_nexus *nexus;
static struct fake_blk *fake;

static void start(unsigned features)
{
	rig_start(false);
	fake = fake_blk_new(rig_env, BLOCKS * 512, 512, BLK_FUA | features);
	rig_map(0, &fake->blk);
	nexus = rig_nexus(1);
	rig_clear_ua(nexus, 0);
}

static void stop(void)
{
	ck_assert_uint_eq(fake->held_count, 0);
	scsi_nexus_free(nexus);
	rig_stop();
}

START_TEST(prefetch_knows_where_the_medium_ends)
{
	static const struct {
		uint64_t lba;
		uint32_t blocks;
		unsigned sense;
	} cases[] = { { 0, 1, 0 },
		      { 0, 0, 0 },
		      { 0, BLOCKS, 0 },
		      { 0, BLOCKS + 1, 0x052100 },
		      { BLOCKS - 1, 1, 0 },
		      { BLOCKS, 0, 0x052100 },
		      { UINT32_MAX, 1, 0x052100 } };
	static const uint8_t opcodes[] = { 0x34, 0x90 };
	uint8_t cdb[SCSI_CDB_MAX];
	unsigned o, i;

	start(0);
	for (o = 0; o < 2; o++) {
		for (i = 0; i < ARRAY_LEN(cases); i++) {
			rig_rw(cdb, opcodes[o], cases[i].lba, cases[i].blocks);
			ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, cdb)), cases[i].sense);
			cdb[1] |= 0x02; /* IMMED */
			ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, cdb)), cases[i].sense);
		}
	}
	stop();
}
END_TEST

START_TEST(the_unit_can_be_started_and_nothing_else)
{
	unsigned byte4;

	start(0);
	for (byte4 = 0; byte4 < 256; byte4++) {
		struct rig_task *rig = rig_do(nexus, 0, CDB(0x1b, 0, 0, 0, (uint8_t)byte4));
		bool good = (byte4 & 0xf3) == 0x01;

		ck_assert_uint_eq(rig_sense(rig), good ? 0 : 0x052400);
		if (!good)
			ck_assert_int_eq(rig_field(rig), 4);
		ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0);
	}
	stop();
}
END_TEST

START_TEST(removal_is_prevented_anyhow)
{
	unsigned prevent;

	start(0);
	for (prevent = 0; prevent < 4; prevent++)
		ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, CDB(0x1e, 0, 0, 0, (uint8_t)prevent))),
				  prevent < 2 ? 0 : 0x052400);
	stop();
}
END_TEST

START_TEST(there_are_no_defects_in_any_list_or_format)
{
	struct rig_task *rig;
	unsigned what;

	start(0);
	for (what = 0; what < 32; what++) {
		rig = rig_do(nexus, 0, CDB(0x37, 0, (uint8_t)what, 0, 0, 0, 0, 0, 255));
		ck_assert_uint_eq(rig->task.data_in_length, 4);
		ck_assert_uint_eq(get_be32(rig->data), what << 16);
		rig = rig_do(nexus, 0, CDB(0xb7, (uint8_t)what, 0, 0, 0, 0, 0, 0, 0, 255));
		ck_assert_uint_eq(rig->task.data_in_length, 8);
		ck_assert_uint_eq(get_be64(rig->data), (uint64_t)what << 48);
	}
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("medium");
	TCase *tc = tcase_create("medium");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tc, prefetch_knows_where_the_medium_ends);
	tcase_add_test(tc, the_unit_can_be_started_and_nothing_else);
	tcase_add_test(tc, removal_is_prevented_anyhow);
	tcase_add_test(tc, there_are_no_defects_in_any_list_or_format);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
