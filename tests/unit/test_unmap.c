/* SPDX-License-Identifier: MIT */
/* UNMAP over block sizes and homes: lists, limits, what is refused. */
#include <check.h>

#include "tests/fake/scsi_rig.h"

#define SIZE (32 * MIB)
#define BLOCK(i) ((unsigned)(i) % 2 ? 4096u : 512u)
#define REMOTE(i) ((unsigned)(i) / 2 % 2)
#define ALL 4
#define UNMAP 0x08

static struct scsi_nexus *nexus;
static struct fake_blk *fake;

static void start_ram(int i)
{
	rig_start(REMOTE(i));
	rig_map(0, rig_ram(SIZE, BLOCK(i)));
	nexus = rig_nexus(1);
	rig_clear_ua(nexus, 0);
}

static void start_fake(int i, uint64_t size, unsigned features)
{
	rig_start(REMOTE(i));
	fake = fake_blk_new(rig_env, size, BLOCK(i), features);
	rig_map(0, &fake->blk);
	nexus = rig_nexus(1);
	rig_clear_ua(nexus, 0);
}

static void stop(void)
{
	scsi_nexus_free(nexus);
	rig_stop();
}

static uint8_t *same_cdb(uint8_t *cdb, bool ten, uint8_t byte1, uint64_t lba, uint32_t blocks)
{
	memset(cdb, 0, SCSI_CDB_MAX);
	cdb[0] = ten ? 0x41 : 0x93;
	cdb[1] = byte1;
	if (ten) {
		put_be32(cdb + 2, (uint32_t)lba);
		put_be16(cdb + 7, (uint16_t)blocks);
	} else {
		put_be64(cdb + 2, lba);
		put_be32(cdb + 10, blocks);
	}
	return cdb;
}

/* Data-Out: LENGTH bytes of VALUE. */
static struct rig_task *send(const uint8_t *cdb, uint64_t length, uint8_t value)
{
	static struct rig_task rig;
	uint64_t at;

	rig_init(&rig, nexus, 0, cdb);
	rig.task.expected_out = length;
	rig_enter(&rig, 0);
	for (at = 0; at < rig.task.data_out_length; at++)
		buf_write(&rig.task.data, at, &value, 1);
	scsi_task_submit(&rig.task);
	rig_run();
	return &rig;
}

static struct rig_task *same(bool ten, uint8_t byte1, uint64_t lba, uint32_t blocks, uint8_t value)
{
	uint8_t cdb[SCSI_CDB_MAX];

	return send(same_cdb(cdb, ten, byte1, lba, blocks), rig_device->maps[0]->lu->block_size,
		    value);
}

static void expect(uint64_t lba, uint8_t value)
{
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task *rig = rig_do(nexus, 0, rig_rw(cdb, 0x88, lba, 1));

	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	ck_assert_uint_eq(rig->data[0], value);
	ck_assert_mem_eq(rig->data, rig->data + 1, rig->task.data_in_length - 1);
}

struct range {
	uint64_t lba;
	uint32_t blocks;
};

static struct rig_task *unmap(const struct range *ranges, unsigned count)
{
	static struct rig_task rig;
	uint8_t list[8 + 16 * 300] = { 0 };
	unsigned i, length = 8 + 16 * count;

	put_be16(list, (uint16_t)(length - 2));
	put_be16(list + 2, (uint16_t)(16 * count));
	for (i = 0; i < count; i++) {
		put_be64(list + 8 + 16 * i, ranges[i].lba);
		put_be32(list + 16 + 16 * i, ranges[i].blocks);
	}
	rig_init(&rig, nexus, 0,
		 CDB(0x42, 0, 0, 0, 0, 0, 0, (uint8_t)(length >> 8), (uint8_t)length));
	rig_enter(&rig, 0);
	buf_write(&rig.task.data, 0, list, length);
	scsi_task_submit(&rig.task);
	rig_run();
	return &rig;
}

START_TEST(unmapped_blocks_read_as_zeroes_and_their_neighbours_do_not)
{
	const struct range ranges[] = { { 1, 1 }, { 3, 0 }, { 5, 20 }, { 30, 1 } };
	unsigned lba;

	start_ram(_i);
	same(false, 0, 0, 40, 0x55);
	ck_assert_uint_eq(rig_sense(unmap(ranges, 4)), 0);
	for (lba = 0; lba < 40; lba++)
		expect(lba, lba == 1 || lba == 30 || (lba >= 5 && lba < 25) ? 0 : 0x55);
	stop();
}
END_TEST

START_TEST(ranges_off_the_medium_are_refused_and_nothing_is_unmapped)
{
	uint64_t end = SIZE / BLOCK(_i);
	const struct range bad[] = { { 0xfffffffffffff000, 0x2000 },
				     { UINT64_MAX, 1 },
				     { end, 1 },
				     { end - 1, 2 },
				     { end + 1, 0 } };
	unsigned i;

	start_ram(_i);
	same(false, 0, 0, 1, 0x55);
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		struct range list[] = { { 0, 1 }, bad[i] };

		ck_assert_uint_eq(rig_sense(unmap(list, 2)), 0x052100);
		expect(0, 0x55);
	}
	ck_assert_uint_eq(rig_sense(unmap((struct range[]){ { end - 1, 1 } }, 1)), 0);
	stop();
}
END_TEST

START_TEST(unmap_is_exact_at_both_of_its_limits)
{
	uint32_t most = (uint32_t)(SCSI_UNMAP_MAX / BLOCK(_i));
	struct range list[SCSI_UNMAP_RANGES + 1] = { { 0, most - 1 }, { most, 1 } };
	struct rig_task *rig;

	start_fake(_i, 2 * SCSI_UNMAP_MAX, BLK_FUA | BLK_UNMAP | BLK_UNMAP_ZEROES);
	rig = rig_do(nexus, 0, CDB(0x12, 1, 0xb0, 0, 64));
	ck_assert_uint_eq(get_be32(rig->data + 20), most);
	ck_assert_uint_eq(get_be32(rig->data + 24), SCSI_UNMAP_RANGES);
	rig = unmap(list, 2);
	ck_assert_uint_eq(fake->held_count, 1);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(fake->held_count, 1); /* one range after the other */
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	list[1].blocks = 2;
	rig = unmap(list, 2);
	ck_assert_uint_eq(rig_sense(rig), 0x052600);
	ck_assert_int_eq(rig_field(rig), 8 + 16 + 8);
	memset(list, 0, sizeof(list));
	ck_assert_uint_eq(rig_sense(unmap(list, SCSI_UNMAP_RANGES)), 0);
	rig = unmap(list, SCSI_UNMAP_RANGES + 1);
	ck_assert_uint_eq(rig_sense(rig), 0x052600);
	ck_assert_int_eq(rig_field(rig), 2);
	ck_assert_uint_eq(fake->submits[IO_UNMAP], 2);
	stop();
}
END_TEST

/* A list of LENGTH bytes, HAVE of which come, whose header says DATA and RANGES. */
START_TEST(parameter_lists_that_do_not_add_up_are_refused)
{
	static const struct {
		uint16_t length, have, data, ranges;
		unsigned sense;
	} cases[] = {
		{ 0, 0, 0, 0, 0 },
		{ 1, 1, 0, 0, 0x051a00 },
		{ 7, 7, 5, 0, 0x051a00 },
		{ 8, 8, 6, 0, 0 },
		{ 8, 0, 6, 0, 0x051a00 },
		{ 8, 8, 7, 0, 0x051a00 },
		{ 24, 24, 22, 16, 0 },
		{ 24, 23, 22, 16, 0x051a00 },
		{ 24, 24, 22, 17, 0x051a00 },
		{ 24, 24, 22, 15, 0 }, /* a range that is cut off is none */
		{ 23, 23, 21, 16, 0x051a00 },
		{ 65535, 65535, 65535, 16, 0x051a00 },
	};
	uint8_t header[8] = { 0 };
	struct rig_task rig;
	unsigned i;

	start_ram(_i);
	same(false, 0, 0, 1, 0x55);
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		put_be16(header, cases[i].data);
		put_be16(header + 2, cases[i].ranges);
		rig_init(&rig, nexus, 0,
			 CDB(0x42, 0, 0, 0, 0, 0, 0, (uint8_t)(cases[i].length >> 8),
			     (uint8_t)cases[i].length));
		rig.task.expected_out = cases[i].have;
		rig_enter(&rig, 0);
		if (rig.task.data.length) {
			buf_zero(&rig.task.data, 0, rig.task.data.length);
			buf_write(&rig.task.data, 0, header,
				  min_u64(sizeof(header), rig.task.data.length));
		}
		scsi_task_submit(&rig.task);
		rig_run();
		ck_assert_uint_eq(rig_sense(&rig), cases[i].sense);
	}
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, CDB(0x42, 1, 0, 0, 0, 0, 0, 0, 8))), 0x052400);
	expect(0, 0x55);
	stop();
}
END_TEST

START_TEST(where_blocks_cannot_be_unmapped_nothing_says_that_they_can)
{
	unsigned features[] = { BLK_FUA, BLK_FUA | BLK_UNMAP };
	struct rig_task *rig;
	unsigned f;

	for (f = 0; f < 2; f++) {
		start_fake(_i, SIZE, features[f]);
		rig = same(false, UNMAP, 0, 1, 0);
		ck_assert_uint_eq(rig_sense(rig), 0x052400);
		ck_assert_uint_eq(rig->task.sense[15], 0xcb);
		rig = rig_do(nexus, 0, CDB(0x42));
		ck_assert_uint_eq(rig_sense(rig), 0x052000);
		rig = rig_do(nexus, 0, CDB(0xa3, 0x0c, 1, 0x42, 0, 0, 0, 0, 0, 64));
		ck_assert_uint_eq(rig->data[1], 1);
		rig = rig_do(nexus, 0, CDB(0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32));
		ck_assert_uint_eq(rig->data[14], 0);
		rig = rig_do(nexus, 0, CDB(0x12, 1, 0xb0, 0, 64));
		ck_assert_uint_eq(get_be64(rig->data + 20) | get_be64(rig->data + 28), 0);
		rig = rig_do(nexus, 0, CDB(0x12, 1, 0xb2, 0, 64));
		ck_assert_uint_eq(get_be32(rig->data + 4), 0);
		stop();
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("unmap");
	TCase *tc = tcase_create("unmap");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, where_blocks_cannot_be_unmapped_nothing_says_that_they_can, 0, ALL);
	tcase_add_loop_test(tc, unmapped_blocks_read_as_zeroes_and_their_neighbours_do_not, 0, ALL);
	tcase_add_loop_test(tc, ranges_off_the_medium_are_refused_and_nothing_is_unmapped, 0, ALL);
	tcase_add_loop_test(tc, unmap_is_exact_at_both_of_its_limits, 0, ALL);
	tcase_add_loop_test(tc, parameter_lists_that_do_not_add_up_are_refused, 0, ALL);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
