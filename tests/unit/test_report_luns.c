/* SPDX-License-Identifier: MIT */
/* REPORT LUNS: what is listed, for whom, in which format, and what it clears. */
#include <check.h>

#include "tests/fake/scsi_rig.h"

static struct scsi_nexus *nexus;

static void setup(void)
{
	rig_start(false);
	nexus = rig_nexus(1);
}

static void teardown(void)
{
	scsi_nexus_free(nexus);
	rig_stop();
}

static struct rig_task *report(uint16_t lun, uint8_t select)
{
	return rig_do(nexus, lun, CDB(0xa0, 0, select, 0, 0, 0, 0, 1, 0, 0));
}

START_TEST(it_works_at_lun_0_with_nothing_mapped)
{
	struct rig_task *rig = report(0, 0);

	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	ck_assert_uint_eq(rig->task.data_in_length, 8);
	ck_assert_uint_eq(get_be64(rig->data), 0);
	ck_assert_uint_eq(rig_sense(report(1, 0)), 0x052500);
}
END_TEST

START_TEST(luns_are_listed_in_order_by_the_method_that_has_room)
{
	static const uint16_t map[] = { 300, 0, 16383, 255, 256, 7 };
	static const uint64_t want[] = { 0x0000, 0x0007, 0x00ff, 0x4100, 0x412c, 0x7fff };
	struct rig_task *rig;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(map); i++)
		rig_map(map[i], rig_ram(1 * MIB, 512));
	rig = report(0, (uint8_t)_i);
	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	if (_i == 1) { /* well known ones: none */
		ck_assert_uint_eq(get_be32(rig->data), 0);
		return;
	}
	ck_assert_uint_eq(get_be32(rig->data), 8 * ARRAY_LEN(want));
	ck_assert_uint_eq(rig->task.data_in_length, 8 + 8 * ARRAY_LEN(want));
	for (i = 0; i < ARRAY_LEN(want); i++)
		ck_assert_uint_eq(get_be64(rig->data + 8 + 8 * i), want[i] << 48);
}
END_TEST

START_TEST(a_short_allocation_still_tells_the_whole_length)
{
	struct rig_task *rig;
	unsigned i;

	for (i = 0; i < 40; i++)
		rig_map((uint16_t)i, rig_ram(1 * MIB, 512));
	rig = rig_do(nexus, 0, CDB(0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 20));
	ck_assert_uint_eq(rig->task.data_in_length, 20);
	ck_assert_uint_eq(get_be32(rig->data), 320);
	ck_assert_uint_eq(get_be64(rig->data + 8), 0);
	ck_assert_uint_eq(get_be32(rig->data + 16), 1 << 16);
	ck_assert_uint_eq(rig->data[20], 0xee);
	rig = rig_do(nexus, 0, CDB(0xa0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff));
	ck_assert_uint_eq(rig->task.data_in_length, 328);
}
END_TEST

START_TEST(a_reserved_selection_is_pointed_at)
{
	struct rig_task *rig = report(0, 3);

	ck_assert_uint_eq(rig_sense(rig), 0x052400);
	ck_assert_int_eq(rig_field(rig), 2);
}
END_TEST

static bool odd_only(void *arg, uint16_t lun, const char *initiator)
{
	return lun % 2 || strcmp(initiator, arg);
}

START_TEST(what_is_masked_is_neither_listed_nor_there)
{
	char name[] = "iqn.1994-05.com.host:1";
	struct scsi_nexus *other = rig_nexus(2);
	struct rig_task *rig;
	unsigned i;

	for (i = 0; i < 4; i++)
		rig_map((uint16_t)i, rig_ram(1 * MIB, 512));
	scsi_device_mask(rig_device, odd_only, name);
	rig = report(0, 0);
	ck_assert_uint_eq(get_be32(rig->data), 16);
	ck_assert_uint_eq(get_be64(rig->data + 8), 1ull << 48);
	ck_assert_uint_eq(get_be64(rig->data + 16), 3ull << 48);
	ck_assert_uint_eq(rig_do(nexus, 2, CDB(0x12, 0, 0, 0, 36))->data[0], 0x7f);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 2, TUR)), 0x052500);
	ck_assert_uint_eq(rig_do(other, 2, CDB(0x12, 0, 0, 0, 36))->data[0], 0x00);
	scsi_nexus_free(other);
}
END_TEST

START_TEST(it_clears_the_news_of_a_changed_list_at_every_lun)
{
	rig_map(0, rig_ram(1 * MIB, 512));
	rig_map(1, rig_ram(1 * MIB, 512));
	rig_clear_ua(nexus, 0);
	rig_clear_ua(nexus, 1);
	rig_map(2, rig_ram(1 * MIB, 512));
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0x063f0e);
	report(0, 0);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 1, TUR)), 0);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 2, TUR)), 0x062900);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("report_luns");
	TCase *tc = tcase_create("report_luns");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, it_works_at_lun_0_with_nothing_mapped);
	tcase_add_loop_test(tc, luns_are_listed_in_order_by_the_method_that_has_room, 0, 3);
	tcase_add_test(tc, a_short_allocation_still_tells_the_whole_length);
	tcase_add_test(tc, a_reserved_selection_is_pointed_at);
	tcase_add_test(tc, what_is_masked_is_neither_listed_nor_there);
	tcase_add_test(tc, it_clears_the_news_of_a_changed_list_at_every_lun);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
