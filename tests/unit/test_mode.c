/* SPDX-License-Identifier: MIT */
/* MODE SENSE: pages, page control, block descriptors. */
#include <check.h>

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

START_TEST(all_pages_are_the_table_in_order)
{
	static const uint8_t plain[] = { 0x02, 0x08, 0x0a, 0x1c };
	static const uint8_t with_subpages[] = { 0x02, 0x08, 0x0a, 0x4a, 0x1c };
	const uint8_t *want = _i ? with_subpages : plain;
	unsigned count = _i ? 5 : 4, i;
	const uint8_t *d, *p, *end;

	start(false, false, 512);
	d = six(0x08, 0x3f, _i ? 0xff : 0);
	end = d + d[0] + 1;
	p = d + 4;
	for (i = 0; i < count; i++) {
		ck_assert_uint_eq(p[0], want[i]);
		p += p[0] & 0x40 ? 4 + get_be16(p + 2) : 2 + p[1];
	}
	ck_assert_ptr_eq(p, end);
	stop();
}
END_TEST

START_TEST(one_page_alone_equals_the_one_among_all)
{
	static const uint8_t codes[] = { 0x02, 0x08, 0x0a, 0x1c };
	uint8_t all[256];
	const uint8_t *d, *p = all + 4;
	unsigned i;

	start(true, false, 512);
	memcpy(all, six(0x08, 0x3f, 0), sizeof(all));
	for (i = 0; i < ARRAY_LEN(codes); i++) {
		d = six(0x08, codes[i], 0);
		ck_assert_uint_eq(d[0] + 1u, 4u + 2 + d[5]);
		ck_assert_mem_eq(d + 4, p, 2 + d[5]);
		p += 2 + p[1];
	}
	stop();
}
END_TEST

START_TEST(wce_says_whether_good_means_durable)
{
	const uint8_t *d;

	start(_i, false, 512);
	d = six(0x08, 0x08, 0);
	ck_assert_uint_eq(d[4], 0x08);
	ck_assert_uint_eq(d[5], 0x12);
	ck_assert_uint_eq(d[6], _i ? 0x04 : 0);
	d = six(0x08, 0x48, 0); /* changeable only where it may be on */
	ck_assert_uint_eq(d[6], _i ? 0x04 : 0);
	d = six(0x08, 0x88, 0); /* default */
	ck_assert_uint_eq(d[6], _i ? 0x04 : 0);
	stop();
}
END_TEST

START_TEST(the_control_page_shows_what_is_in_force)
{
	const uint8_t *d;

	start(false, false, 512);
	d = six(0x08, 0x0a, 0);
	ck_assert_uint_eq(d[6], 0x02);
	ck_assert_uint_eq(d[7], 0x10);
	ck_assert_uint_eq(d[8], 0x00);
	ck_assert_uint_eq(d[9], 0x40);
	atomic_store(&lu->d_sense, true);
	atomic_store(&lu->swp, true);
	atomic_store(&lu->tas, false);
	d = six(0x08, 0x0a, 0);
	ck_assert_uint_eq(d[2], 0x90); /* WP, DPOFUA */
	ck_assert_uint_eq(d[6], 0x06);
	ck_assert_uint_eq(d[8], 0x08);
	ck_assert_uint_eq(d[9], 0x00);
	d = six(0x08, 0x8a, 0); /* the default is as it was */
	ck_assert_uint_eq(d[6], 0x02);
	ck_assert_uint_eq(d[8], 0x00);
	ck_assert_uint_eq(d[9], 0x40);
	d = six(0x08, 0x0a, 0x01);
	ck_assert_uint_eq(d[4], 0x4a);
	ck_assert_uint_eq(d[5], 0x01);
	ck_assert_uint_eq(get_be16(d + 6), 0x1c);
	stop();
}
END_TEST

START_TEST(d_sense_turns_sense_into_descriptors)
{
	struct rig_task *rig;

	start(false, false, 512);
	atomic_store(&lu->d_sense, true);
	rig = rig_do(nexus, 0, CDB(0x1a, 0, 0x3e, 0, 255));
	ck_assert_uint_eq(rig_sense(rig), 0x052400);
	ck_assert_uint_eq(rig->task.sense[0], 0x72);
	ck_assert_uint_eq(rig->task.sense_length, 16);
	ck_assert_uint_eq(rig->task.sense[12], 0xcd); /* SKSV, C/D, BPV, bit 5 */
	ck_assert_uint_eq(get_be16(rig->task.sense + 13), 2);
	stop();
}
END_TEST

static const struct {
	bool config, medium, state, swp;
} protections[] = { { 0, 0, 0, 0 }, { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 }, { 0, 0, 0, 1 } };

START_TEST(every_kind_of_write_protection_shows_wp_and_refuses_writes)
{
	bool protected = _i > 0;
	struct rig_task *rig;

	start(false, protections[_i].config, 512);
	if (protections[_i].medium)
		fake->blk.features |= BLK_READ_ONLY;
	if (protections[_i].state)
		blk_set_state(&fake->blk, BLK_READ_ONLY_NOW, "worn out");
	atomic_store(&lu->swp, protections[_i].swp);
	ck_assert_uint_eq(six(0x08, 0x3f, 0)[2], protected ? 0x90 : 0x10);
	if (protected) {
		rig = rig_do(nexus, 0, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1));
		ck_assert_uint_eq(rig_sense(rig), 0x072700);
		ck_assert_uint_eq(fake->submits[IO_WRITE], 0);
	}
	stop();
}
END_TEST

START_TEST(block_descriptors_follow_dbd_and_llbaa)
{
	uint32_t block = _i ? 4096 : 512;
	struct rig_task *rig;
	const uint8_t *d;

	start(false, false, block);
	d = six(0, 0x08, 0);
	ck_assert_uint_eq(d[3], 8);
	ck_assert_uint_eq(get_be32(d + 4), 8 * MIB / block);
	ck_assert_uint_eq(get_be32(d + 8), block);
	rig = rig_do(nexus, 0, CDB(0x5a, 0x10, 0x08, 0, 0, 0, 0, 1, 0));
	d = rig->data;
	ck_assert_uint_eq(get_be16(d), rig->task.data_in_length - 2);
	ck_assert_uint_eq(d[4], 0x01);
	ck_assert_uint_eq(get_be16(d + 6), 16);
	ck_assert_uint_eq(get_be64(d + 8), 8 * MIB / block);
	ck_assert_uint_eq(get_be32(d + 20), block);
	ck_assert_uint_eq(d[24], 0x08);
	rig = rig_do(nexus, 0, CDB(0x5a, 0x18, 0x08, 0, 0, 0, 0, 1, 0));
	ck_assert_uint_eq(get_be16(rig->data + 6), 0);
	ck_assert_uint_eq(rig->data[4], 0);
	ck_assert_uint_eq(rig->data[8], 0x08);
	stop();
}
END_TEST

START_TEST(what_is_not_there_is_pointed_at)
{
	static const struct {
		uint8_t page, subpage;
		unsigned sense;
		int field;
	} bad[] = { { 0x00, 0x00, 0x052400, 2 }, { 0x3e, 0x00, 0x052400, 2 },
		    { 0x08, 0x01, 0x052400, 3 }, { 0x0a, 0x02, 0x052400, 3 },
		    { 0x3f, 0x01, 0x052400, 3 }, { 0xc8, 0x00, 0x053900, -1 },
		    { 0xff, 0x00, 0x053900, -1 } };
	struct rig_task *rig;

	start(false, false, 512);
	rig = rig_do(nexus, 0, CDB(0x1a, 0, bad[_i].page, bad[_i].subpage, 255));
	ck_assert_uint_eq(rig_sense(rig), bad[_i].sense);
	ck_assert_int_eq(rig_field(rig), bad[_i].field);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mode");
	TCase *tc = tcase_create("mode");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, all_pages_are_the_table_in_order, 0, 2);
	tcase_add_test(tc, one_page_alone_equals_the_one_among_all);
	tcase_add_loop_test(tc, wce_says_whether_good_means_durable, 0, 2);
	tcase_add_test(tc, the_control_page_shows_what_is_in_force);
	tcase_add_test(tc, d_sense_turns_sense_into_descriptors);
	tcase_add_loop_test(tc, every_kind_of_write_protection_shows_wp_and_refuses_writes, 0, 5);
	tcase_add_loop_test(tc, block_descriptors_follow_dbd_and_llbaa, 0, 2);
	tcase_add_loop_test(tc, what_is_not_there_is_pointed_at, 0, 7);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
