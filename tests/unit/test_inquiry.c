/* SPDX-License-Identifier: MIT */
/* INQUIRY's standard data, its refusals, and REQUEST SENSE beside it. */
#include <check.h>

#include "core/version.h"
#include "tests/fake/scsi_rig.h"

static struct scsi_nexus *nexus;

static void setup(void)
{
	rig_start(false);
	rig_map(3, rig_ram(1 * MIB, 512));
	nexus = rig_nexus(1);
}

static void teardown(void)
{
	scsi_nexus_free(nexus);
	rig_stop();
}

START_TEST(standard_data_claims_what_there_is)
{
	struct rig_task *rig = rig_do(nexus, 3, CDB(0x12, 0, 0, 1, 0));
	const uint8_t *d = rig->data;

	ck_assert_uint_eq(rig->task.data_in_length, 96);
	ck_assert_uint_eq(d[0], 0x00);
	ck_assert_uint_eq(d[1], 0x00);
	ck_assert_uint_eq(d[2], 0x06);
	ck_assert_uint_eq(d[3], 0x12);
	ck_assert_uint_eq(d[4], 91);
	ck_assert_uint_eq(d[5], 0x00); /* no TPGS, no 3PC yet */
	ck_assert_uint_eq(d[6], 0x10);
	ck_assert_uint_eq(d[7], 0x02);
	ck_assert_mem_eq(d + 8, "YOKE    disk            ", 24);
	ck_assert_mem_eq(d + 32, yoke_version(), 3);
	ck_assert_uint_eq(get_be16(d + 58), 0x00a0);
	ck_assert_uint_eq(get_be16(d + 60), 0x0960);
	ck_assert_uint_eq(get_be16(d + 62), 0x0460);
	ck_assert_uint_eq(get_be16(d + 64), 0x04c0);
	ck_assert_uint_eq(get_be16(d + 66), 0);
}
END_TEST

START_TEST(it_leaves_unit_attentions_pending)
{
	rig_do(nexus, 3, CDB(0x12, 0, 0, 0, 255));
	rig_do(nexus, 3, CDB(0x12, 1, 0x83, 0, 255));
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 3, TUR)), 0x062900);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 3, TUR)), 0);
}
END_TEST

START_TEST(a_lun_that_is_not_there_is_qualifier_3_type_1f)
{
	static const uint16_t luns[] = { 0, 1, 2, 4, 255, 256, 16383 };
	struct rig_task *rig = rig_do(nexus, luns[_i], CDB(0x12, 0, 0, 0, 36));

	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	ck_assert_uint_eq(rig->data[0], 0x7f);
	ck_assert_uint_eq(rig->task.data_in_length, 36);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, luns[_i], CDB(0x12, 1, 0x00, 0, 36))), 0x052500);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, luns[_i], TUR)), 0x052500);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, luns[_i], CDB(0xff))), 0x052500);
}
END_TEST

START_TEST(bad_fields_are_pointed_at)
{
	static const struct {
		uint8_t flags, page;
		int field;
	} bad[] = { { 0, 0x83, 2 }, { 0, 0xff, 2 }, { 2, 0, 1 }, { 1, 0x01, 2 }, { 1, 0xff, 2 } };
	struct rig_task *rig = rig_do(nexus, 3, CDB(0x12, bad[_i].flags, bad[_i].page, 0, 255));

	ck_assert_uint_eq(rig_sense(rig), 0x052400);
	ck_assert_int_eq(rig_field(rig), bad[_i].field);
	ck_assert_uint_eq(rig->task.data_in_length, 0);
}
END_TEST

START_TEST(request_sense_reports_a_unit_attention_as_data_and_clears_it)
{
	bool descriptor = _i;
	struct rig_task *rig = rig_do(nexus, 3, CDB(0x03, descriptor, 0, 0, 252));

	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	ck_assert_uint_eq(rig->data[0], descriptor ? 0x72 : 0x70);
	ck_assert_uint_eq(rig->task.data_in_length, descriptor ? 8 : 18);
	ck_assert_uint_eq(rig_code(rig->data), 0x062900);
	rig = rig_do(nexus, 3, CDB(0x03, descriptor, 0, 0, 252));
	ck_assert_uint_eq(rig_code(rig->data), 0);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 3, TUR)), 0);
	rig = rig_do(nexus, 9, CDB(0x03, descriptor, 0, 0, 252));
	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	ck_assert_uint_eq(rig_code(rig->data), 0x052500);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("inquiry");
	TCase *tc = tcase_create("inquiry");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, standard_data_claims_what_there_is);
	tcase_add_test(tc, it_leaves_unit_attentions_pending);
	tcase_add_loop_test(tc, a_lun_that_is_not_there_is_qualifier_3_type_1f, 0, 7);
	tcase_add_loop_test(tc, bad_fields_are_pointed_at, 0, 5);
	tcase_add_loop_test(tc, request_sense_reports_a_unit_attention_as_data_and_clears_it, 0, 2);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
