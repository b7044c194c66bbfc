/* SPDX-License-Identifier: MIT */
/* WRITE SAME over block sizes and homes: data, limits, what goes down to the device, what is refused. */
#include <check.h>
#include <errno.h>

#include "tests/fake/scsi_rig.h"

#define SIZE (32 * MIB)
#define BLOCK(i) ((unsigned)(i) % 2 ? 4096u : 512u)
#define REMOTE(i) ((unsigned)(i) / 2 % 2)
#define ALL 4
#define UNMAP 0x08
#define ANCHOR 0x10
#define NDOB 0x01

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

START_TEST(a_pattern_fills_its_range_and_no_more)
{
	uint32_t most = (uint32_t)(SCSI_WRITE_SAME_MAX / BLOCK(_i)), n[] = { 1, 200, most };
	struct rig_task *rig;
	unsigned i, ten;

	start_ram(_i);
	for (i = 0; i < ARRAY_LEN(n); i++) {
		for (ten = 0; ten < 2; ten++) {
			rig = same(ten, 0, 3, n[i], (uint8_t)(0x40 + 2 * i + ten));
			ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
			ck_assert_uint_eq(rig->task.transfer_length, BLOCK(_i));
			expect(2, 0);
			expect(3, (uint8_t)(0x40 + 2 * i + ten));
			expect(3 + n[i] / 2, (uint8_t)(0x40 + 2 * i + ten));
			expect(3 + n[i] - 1, (uint8_t)(0x40 + 2 * i + ten));
			expect(3 + n[i], 0);
		}
	}
	for (ten = 0; ten < 2; ten++) {
		rig = same(ten, 0, 0, most + 1, 1);
		ck_assert_uint_eq(rig_sense(rig), 0x052400);
		ck_assert_int_eq(rig_field(rig), ten ? 7 : 10);
	}
	rig = rig_do(nexus, 0, CDB(0x12, 1, 0xb0, 0, 64));
	ck_assert_uint_eq(rig->data[4] & 1, 0); /* WSNZ */
	ck_assert_uint_eq(get_be64(rig->data + 36), most);
	stop();
}
END_TEST

START_TEST(zero_blocks_are_those_to_the_end)
{
	uint64_t end = SIZE / BLOCK(_i);
	unsigned ten;

	start_ram(_i);
	for (ten = 0; ten < 2; ten++) {
		uint64_t first = end - SCSI_WRITE_SAME_MAX / BLOCK(_i);

		ck_assert_uint_eq(rig_sense(same(ten, 0, first - 1, 0, 1)), 0x052400);
		ck_assert_uint_eq(rig_sense(same(ten, 0, first, 0, (uint8_t)(0x66 + ten))), 0);
		expect(first - 1, 0);
		expect(first, (uint8_t)(0x66 + ten));
		expect(end - 1, (uint8_t)(0x66 + ten));
		ck_assert_uint_eq(rig_sense(same(ten, 0, end, 0, 1)), 0x052100);
		ck_assert_uint_eq(rig_sense(same(ten, 0, end - 1, 1, 1)), 0);
		ck_assert_uint_eq(rig_sense(same(ten, 0, end - 1, 2, 1)), 0x052100);
	}
	ck_assert_uint_eq(rig_sense(same(false, UNMAP, end - 3, 0, 0)), 0);
	expect(end - 1, 0);
	stop();
}
END_TEST

START_TEST(the_data_out_is_exactly_one_block_or_with_ndob_none)
{
	uint32_t block = BLOCK(_i);
	uint64_t lengths[] = { 0, 1, block - 1, block + 1, 2 * block };
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task *rig;
	unsigned i, ten;

	start_ram(_i);
	same(false, 0, 0, 10, 0x77);
	for (ten = 0; ten < 2; ten++) {
		for (i = 0; i < ARRAY_LEN(lengths); i++) {
			rig = send(same_cdb(cdb, ten, 0, 0, 1), lengths[i], 1);
			ck_assert_uint_eq(rig_sense(rig), 0x052400);
			ck_assert_uint_eq(rig->task.transfer_length, block);
			expect(0, 0x77);
		}
	}
	rig = send(same_cdb(cdb, false, NDOB, 0, 5), 0, 0);
	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	ck_assert_uint_eq(rig->task.transfer_length, 0);
	expect(4, 0);
	expect(5, 0x77);
	rig = send(same_cdb(cdb, false, NDOB | UNMAP, 0, 7), 0, 0);
	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	expect(6, 0);
	expect(7, 0x77);
	stop();
}
END_TEST

START_TEST(flags_that_mean_nothing_here_are_refused_at_their_bit)
{
	static const struct {
		uint8_t byte1, ten, sense15;
	} cases[] = {
		{ 0x20, 0, 0xcf },   { 0x80, 1, 0xcf },           { ANCHOR, 0, 0xcc },
		{ ANCHOR, 1, 0xcc }, { ANCHOR | UNMAP, 0, 0xcc }, { 0x04, 0, 0xca },
		{ 0x02, 1, 0xca },   { NDOB, 1, 0xc8 },
	};
	struct rig_task *rig;
	unsigned i;

	start_ram(_i);
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		rig = same(cases[i].ten, cases[i].byte1, 0, 1, 1);
		ck_assert_uint_eq(rig_sense(rig), 0x052400);
		ck_assert_int_eq(rig_field(rig), 1);
		ck_assert_uint_eq(rig->task.sense[15], cases[i].sense15);
	}
	expect(0, 0);
	stop();
}
END_TEST

START_TEST(zeroes_go_down_as_what_the_device_does_best)
{
	static const struct {
		unsigned features;
		uint8_t byte1, value;
		enum io_op op;
	} cases[] = {
		{ BLK_WRITE_ZEROES, 0, 0, IO_WRITE_ZEROES },
		{ BLK_WRITE_ZEROES, 0, 1, IO_WRITE },
		{ 0, 0, 0, IO_WRITE },
		{ BLK_UNMAP | BLK_UNMAP_ZEROES, UNMAP, 0, IO_UNMAP },
		{ BLK_UNMAP | BLK_UNMAP_ZEROES, UNMAP, 1, IO_UNMAP },
		{ BLK_UNMAP | BLK_UNMAP_ZEROES, 0, 0, IO_WRITE },
	};
	struct rig_task *rig;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		start_fake(_i, SIZE, BLK_FUA | cases[i].features);
		rig = same(false, cases[i].byte1, 4, 9, cases[i].value);
		ck_assert_uint_eq(rig->done, 0);
		ck_assert_int_eq(STAILQ_FIRST(&fake->held)->op, cases[i].op);
		ck_assert_uint_eq(STAILQ_FIRST(&fake->held)->offset, 4 * BLOCK(_i));
		ck_assert_uint_eq(STAILQ_FIRST(&fake->held)->length, 9 * BLOCK(_i));
		ck_assert_uint_eq(fake->last_flags, IO_FUA);
		fake_blk_end(fake, -ENOSPC);
		rig_run();
		ck_assert_uint_eq(rig_sense(rig), 0x072707);
		stop();
	}
}
END_TEST

START_TEST(a_pattern_goes_down_in_pieces_and_stops_at_the_one_that_fails)
{
	uint64_t block = BLOCK(_i), piece = 128 * KIB, at = 0;
	struct rig_task *rig;

	start_fake(_i, SIZE, BLK_FUA);
	fake->blk.max_io = piece + block / 2; /* not whole blocks */
	rig = same(true, 0, 16, (uint32_t)(4 * piece / block), 0x5a);
	for (; at < 3 * piece; at += piece) {
		struct io *io = STAILQ_FIRST(&fake->held);

		ck_assert_uint_eq(fake->held_count, 1);
		ck_assert_uint_eq(io->offset, 16 * block + at);
		ck_assert_uint_eq(io->length, piece);
		for (unsigned e = 0; e < io->iov_count; e++) {
			const uint8_t *p = io->iov[e].iov_base;

			ck_assert_uint_eq(p[0], 0x5a);
			ck_assert_mem_eq(p, p + 1, io->iov[e].iov_len - 1);
		}
		fake_blk_end(fake, at == 2 * piece ? -EIO : 0);
		rig_run();
	}
	ck_assert_uint_eq(rig->done, 1);
	ck_assert_uint_eq(rig_sense(rig), 0x030c00);
	ck_assert_uint_eq(get_be32(rig->task.sense + 3), 16 + 2 * piece / block);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 3);
	stop();
}
END_TEST

START_TEST(nothing_is_filled_on_what_is_write_protected)
{
	start_ram(_i);
	atomic_store(&rig_device->maps[0]->lu->swp, true);
	ck_assert_uint_eq(rig_sense(same(_i % 2, 0, 0, 1, 1)), 0x072700);
	ck_assert_uint_eq(rig_sense(same(false, UNMAP, 0, 1, 0)), 0x072700);
	expect(0, 0);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("write_same");
	TCase *tc = tcase_create("write_same");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, a_pattern_fills_its_range_and_no_more, 0, ALL);
	tcase_add_loop_test(tc, zero_blocks_are_those_to_the_end, 0, ALL);
	tcase_add_loop_test(tc, the_data_out_is_exactly_one_block_or_with_ndob_none, 0, ALL);
	tcase_add_loop_test(tc, flags_that_mean_nothing_here_are_refused_at_their_bit, 0, ALL);
	tcase_add_loop_test(tc, zeroes_go_down_as_what_the_device_does_best, 0, ALL);
	tcase_add_loop_test(tc, a_pattern_goes_down_in_pieces_and_stops_at_the_one_that_fails, 0,
			    ALL);
	tcase_add_loop_test(tc, nothing_is_filled_on_what_is_write_protected, 0, ALL);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
