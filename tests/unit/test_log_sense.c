/* SPDX-License-Identifier: MIT */
/* LOG SENSE: the pages that are there, and every way of asking for what is not. */
#include <check.h>

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

static struct rig_task *log_sense(uint8_t page, uint8_t subpage, uint16_t first)
{
	return rig_do(nexus, 0,
		      CDB(0x4d, 0, page, subpage, 0, (uint8_t)(first >> 8), (uint8_t)first, 0,
			  255));
}

/* On a thin unit too: see log_sense.c. */
START_TEST(supported_pages_are_those_that_answer)
{
	static const uint8_t want[] = { 0x00, 0x2f };
	static const uint8_t subpages[] = { 0x40, 0xff, 0, 6, 0x00, 0x00, 0x00, 0xff, 0x2f, 0x00 };
	struct rig_task *rig;
	unsigned code;

	start(_i ? BLK_UNMAP | BLK_UNMAP_ZEROES : 0);
	rig = log_sense(0x00, 0, 0);
	ck_assert_uint_eq(rig->task.data_in_length, 4 + sizeof(want));
	ck_assert_uint_eq(get_be32(rig->data), sizeof(want));
	ck_assert_mem_eq(rig->data + 4, want, sizeof(want));
	rig = log_sense(0x00, 0xff, 0);
	ck_assert_uint_eq(rig->task.data_in_length, sizeof(subpages));
	ck_assert_mem_eq(rig->data, subpages, sizeof(subpages));
	for (code = 0; code < 64; code++) {
		rig = log_sense((uint8_t)(0x40 | code), 0, 0);
		if (memchr(want, (int)code, sizeof(want))) {
			ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
			ck_assert_uint_eq(rig->data[0], code);
		} else {
			ck_assert_uint_eq(rig_sense(rig), 0x052400);
			ck_assert_int_eq(rig_field(rig), 2);
		}
	}
	stop();
}
END_TEST

START_TEST(no_subpage_is_there_but_the_list_of_them)
{
	unsigned code, subpage;

	start(0);
	for (code = 0; code < 64; code += 1 + 46 * (code == 0)) /* 00h, 2Fh and up */
		for (subpage = 1; subpage < 256; subpage++) {
			struct rig_task *rig =
				log_sense((uint8_t)(0x40 | code), (uint8_t)subpage, 0);

			ck_assert_uint_eq(rig_sense(rig),
					  code == 0 && subpage == 0xff ? 0 : 0x052400);
		}
	stop();
}
END_TEST

START_TEST(an_answer_is_cut_to_what_was_asked_for)
{
	struct rig_task *rig;
	uint8_t whole[12];
	unsigned length;

	start(0);
	memcpy(whole, log_sense(0x6f, 0, 0)->data, sizeof(whole));
	for (length = 0; length <= 14; length++) {
		unsigned n = length < 12 ? length : 12;

		rig = rig_do(nexus, 0, CDB(0x4d, 0, 0x6f, 0, 0, 0, 0, 0, (uint8_t)length));
		ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
		ck_assert_uint_eq(rig->task.data_in_length, n);
		ck_assert_mem_eq(rig->data, whole, n);
		ck_assert_uint_eq(rig->data[n], 0xee);
	}
	stop();
}
END_TEST

/* Byte, value, the bit that is pointed at. */
static const struct {
	uint8_t byte, value, bit;
} refused[] = {
	{ 1, 0x01, 0 },                 /* SP */
	{ 1, 0x02, 1 },                 /* PPC */
	{ 1, 0x03, 1 }, { 2, 0x2f, 7 }, /* threshold values */
	{ 2, 0xaf, 7 },                 /* default threshold values */
	{ 2, 0xef, 7 },                 /* default cumulative values */
	{ 5, 0x01, 7 },                 /* parameters from 0100h on */
	{ 6, 0x01, 7 },                 /* from 0001h on */
};

START_TEST(what_is_not_kept_is_refused_at_its_field)
{
	uint8_t cdb[SCSI_CDB_MAX] = { 0x4d, 0, 0x6f, 0, 0, 0, 0, 0, 255 };
	struct rig_task *rig;

	start(0);
	cdb[refused[_i].byte] = refused[_i].value;
	rig = rig_do(nexus, 0, cdb);
	ck_assert_uint_eq(rig_sense(rig), 0x052400);
	ck_assert_int_eq(rig_field(rig), refused[_i].byte == 6 ? 5 : refused[_i].byte);
	ck_assert_uint_eq(rig->task.sense[15], 0xc8 | refused[_i].bit);
	ck_assert_uint_eq(rig->task.data_in_length, 0);
	stop();
}
END_TEST

START_TEST(there_are_no_exceptions_and_no_temperature)
{
	static const uint8_t want[] = { 0x2f, 0, 0, 8, 0, 0, 3, 4, 0, 0, 0xff, 0 };
	struct rig_task *rig;

	start(0);
	rig = log_sense(0x6f, 0, 0);
	ck_assert_uint_eq(rig->task.data_in_length, sizeof(want));
	ck_assert_mem_eq(rig->data, want, sizeof(want));
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("log_sense");
	TCase *tc = tcase_create("log_sense");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, supported_pages_are_those_that_answer, 0, 2);
	tcase_add_test(tc, no_subpage_is_there_but_the_list_of_them);
	tcase_add_test(tc, an_answer_is_cut_to_what_was_asked_for);
	tcase_add_loop_test(tc, what_is_not_kept_is_refused_at_its_field, 0, ARRAY_LEN(refused));
	tcase_add_test(tc, there_are_no_exceptions_and_no_temperature);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
