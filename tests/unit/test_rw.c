/* SPDX-License-Identifier: MIT */
/*
 * READ and WRITE in all four sizes over block sizes: data, limits, flags, residuals, errors;
 * SYNCHRONIZE CACHE.
 */
#include <check.h>
#include <errno.h>

#include "tests/fake/scsi_rig.h"

#define SIZE (32 * MIB)

/* By width: 6, 10, 12, 16. */
static const uint8_t reads[] = { 0x08, 0x28, 0xa8, 0x88 };
static const uint8_t writes[] = { 0x0a, 0x2a, 0xaa, 0x8a };
static const unsigned length_byte[] = { 4, 7, 6, 10 };

/* A loop index as width, block size and home. */
#define WIDTH(i) ((unsigned)(i) % 4)
#define BLOCK(i) ((unsigned)(i) / 4 % 2 ? 4096u : 512u)
#define REMOTE(i) ((unsigned)(i) / 8 % 2)
#define ALL 16

static struct scsi_nexus *nexus;
static struct fake_blk *fake;

static void start_ram(int i)
{
	rig_start(REMOTE(i));
	rig_map(0, rig_ram(SIZE, BLOCK(i)));
	nexus = rig_nexus(1);
	rig_clear_ua(nexus, 0);
}

static void start_fake(int i, bool write_cache, unsigned features)
{
	struct scsi_lu_config config;

	rig_start(REMOTE(i));
	fake = fake_blk_new(rig_env, SIZE, BLOCK(i), features);
	config = rig_config(&fake->blk);
	config.write_cache = write_cache;
	rig_map_config(0, &config);
	nexus = rig_nexus(1);
	rig_clear_ua(nexus, 0);
}

static void stop(void)
{
	scsi_nexus_free(nexus);
	rig_stop();
}

static struct rig_task *command(uint8_t opcode, uint64_t lba, uint32_t blocks)
{
	uint8_t cdb[SCSI_CDB_MAX];

	return rig_do(nexus, 0, rig_rw(cdb, opcode, lba, blocks));
}

/* The bytes of LENGTH that a WRITE with tag SEED carried. */
static void expect(const struct rig_task *rig, uint64_t seed)
{
	uint8_t want[4096];

	fake_fill(want, sizeof(want), seed);
	ck_assert_mem_eq(rig->data, want, min_u64(rig->task.data_in_length, sizeof(want)));
}

START_TEST(what_every_write_wrote_every_read_reads)
{
	unsigned r;
	uint64_t seed;
	struct rig_task *rig;

	start_ram(_i);
	rig = command(writes[WIDTH(_i)], 5, 3);
	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	ck_assert_uint_eq(rig->task.transfer_length, 3 * BLOCK(_i));
	seed = rig->task.tag;
	for (r = 0; r < 4; r++) {
		rig = command(reads[r], 5, 3);
		ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
		ck_assert_uint_eq(rig->task.data_in_length, 3 * BLOCK(_i));
		expect(rig, seed);
		rig = command(reads[r], 8, 1);
		ck_assert_uint_eq(rig->data[0] | rig->data[BLOCK(_i) - 1], 0);
	}
	stop();
}
END_TEST

START_TEST(the_range_is_exact_at_the_end_of_the_medium)
{
	uint64_t end = SIZE / BLOCK(_i);
	uint8_t opcode[2] = { reads[WIDTH(_i)], writes[WIDTH(_i)] };
	unsigned o;

	start_ram(_i);
	for (o = 0; o < 2; o++) {
		ck_assert_uint_eq(rig_sense(command(opcode[o], end - 1, 1)), 0);
		ck_assert_uint_eq(rig_sense(command(opcode[o], end - 2, 2)), 0);
		ck_assert_uint_eq(rig_sense(command(opcode[o], end - 1, 2)), 0x052100);
		ck_assert_uint_eq(rig_sense(command(opcode[o], end, 1)), 0x052100);
		if (WIDTH(_i) == 0)
			continue;
		ck_assert_uint_eq(rig_sense(command(opcode[o], end + 1, 0)), 0x052100);
		ck_assert_uint_eq(rig_sense(command(opcode[o], 0x80000000, 0)), 0x052100);
		ck_assert_uint_eq(rig_sense(command(opcode[o], UINT32_MAX, 1)), 0x052100);
		if (WIDTH(_i) == 3) {
			ck_assert_uint_eq(rig_sense(command(opcode[o], UINT64_MAX, 1)), 0x052100);
			ck_assert_uint_eq(rig_sense(command(opcode[o], UINT64_MAX, 2)), 0x052100);
			ck_assert_uint_eq(rig_sense(command(opcode[o], 1ull << 55, 1)), 0x052100);
		}
	}
	stop();
}
END_TEST

START_TEST(no_blocks_move_nothing_but_in_six_bytes_where_they_are_256)
{
	struct rig_task *rig;

	start_fake(_i, false, BLK_FUA);
	if (WIDTH(_i) == 0) {
		struct rig_task six;
		uint8_t cdb[SCSI_CDB_MAX];

		rig_init(&six, nexus, 0, rig_rw(cdb, 0x08, 0, 0));
		rig_submit(&six);
		ck_assert_uint_eq(six.task.transfer_length, 256 * BLOCK(_i));
		ck_assert_uint_eq(STAILQ_FIRST(&fake->held)->length, 256 * BLOCK(_i));
		fake_blk_end(fake, 0);
		rig_run();
		ck_assert_uint_eq(six.task.data_in_length, 256 * BLOCK(_i));
	} else {
		rig = command(reads[WIDTH(_i)], 0, 0);
		ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
		ck_assert_uint_eq(rig->task.data_in_length, 0);
		rig = command(writes[WIDTH(_i)], 0, 0);
		ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
		ck_assert_uint_eq(fake->submits[IO_READ] + fake->submits[IO_WRITE], 0);
	}
	stop();
}
END_TEST

START_TEST(the_maximum_transfer_works_and_one_block_more_is_pointed_at)
{
	uint32_t most = (uint32_t)(SCSI_TRANSFER_MAX / BLOCK(_i));
	struct rig_task *rig;

	start_ram(_i);
	if (WIDTH(_i) > 1) {
		rig = command(writes[WIDTH(_i)], 0, most);
		ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
		rig = command(reads[WIDTH(_i)], 0, most);
		ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
		ck_assert_uint_eq(rig->task.data_in_length, SCSI_TRANSFER_MAX);
		rig = command(writes[WIDTH(_i)], 0, most + 1);
		ck_assert_uint_eq(rig_sense(rig), 0x052400);
		ck_assert_int_eq(rig_field(rig), (int)length_byte[WIDTH(_i)]);
		ck_assert_uint_eq(rig->task.transfer_length, 0);
		ck_assert_int_eq(rig->task.dir, SCSI_NO_DATA);
		rig = command(reads[WIDTH(_i)], 0, UINT32_MAX);
		ck_assert_uint_eq(rig_sense(rig), 0x052400);
	}
	stop();
}
END_TEST

START_TEST(protection_is_refused_at_its_field)
{
	unsigned protect, o;
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task *rig;

	start_ram(_i);
	for (protect = 1; protect < 8 && WIDTH(_i) > 0; protect++) {
		for (o = 0; o < 2; o++) {
			rig_rw(cdb, o ? writes[WIDTH(_i)] : reads[WIDTH(_i)], 0, 1);
			cdb[1] |= (uint8_t)(protect << 5);
			rig = rig_do(nexus, 0, cdb);
			ck_assert_uint_eq(rig_sense(rig), 0x052400);
			ck_assert_uint_eq(rig->task.sense[15], 0xcf);
			ck_assert_int_eq(rig_field(rig), 1);
		}
	}
	stop();
}
END_TEST

static const struct {
	bool write_cache;
	uint8_t byte1;
	unsigned flags;
} durability[] = {
	{ false, 0x00, IO_FUA },          { false, 0x08, IO_FUA },
	{ false, 0x18, IO_FUA | IO_DPO }, { true, 0x00, 0 },
	{ true, 0x08, IO_FUA },           { true, 0x10, IO_DPO },
	{ true, 0x18, IO_FUA | IO_DPO },  { true, 0x02, 0 },
};

START_TEST(good_means_durable_unless_the_cache_is_on)
{
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task rig;
	unsigned w;

	for (w = 1; w < 4; w++) {
		start_fake(0, durability[_i].write_cache, BLK_FUA | BLK_VOLATILE);
		rig_rw(cdb, writes[w], 1, 1);
		cdb[1] |= durability[_i].byte1;
		rig_init(&rig, nexus, 0, cdb);
		rig_submit(&rig);
		ck_assert_uint_eq(fake->held_count, 1);
		ck_assert_uint_eq(fake->last_flags, durability[_i].flags);
		ck_assert_uint_eq(rig.done, 0);
		fake_blk_end(fake, 0);
		rig_run();
		ck_assert_uint_eq(rig.task.status, SCSI_GOOD);
		stop();
	}
}
END_TEST

START_TEST(a_read_with_fua_flushes_a_volatile_cache_first)
{
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task rig;

	start_fake(0, true, BLK_FUA | BLK_VOLATILE);
	rig_rw(cdb, 0x28, 1, 1);
	cdb[1] |= 0x08;
	rig_init(&rig, nexus, 0, cdb);
	rig_submit(&rig);
	ck_assert_uint_eq(fake->submits[IO_FLUSH], 1);
	ck_assert_uint_eq(fake->submits[IO_READ], 0);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(fake->submits[IO_READ], 1);
	ck_assert_uint_eq(fake->last_flags, 0);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(rig.task.status, SCSI_GOOD);
	stop();
}
END_TEST

/* Expected data transfer lengths against a command of two blocks. */
START_TEST(a_write_with_less_data_writes_its_whole_blocks_and_no_more)
{
	uint32_t block = BLOCK(_i);
	uint64_t expected[] = { 0, 200, block, block + 200, 2 * block, 3 * block };
	uint64_t written[] = { 0, 0, 1, 1, 2, 2 };
	uint8_t cdb[SCSI_CDB_MAX], old[512] = { 0 };
	unsigned e, b;

	start_ram(_i);
	for (e = 0; e < ARRAY_LEN(expected); e++) {
		struct rig_task write, *read;
		uint64_t lba = 10 * e;

		rig_init(&write, nexus, 0, rig_rw(cdb, writes[WIDTH(_i)], lba, 2));
		write.task.expected_out = expected[e];
		rig_submit(&write);
		ck_assert_uint_eq(write.task.status, SCSI_GOOD);
		ck_assert_uint_eq(write.task.transfer_length, 2 * block);
		ck_assert_uint_eq(write.task.data_out_length, min_u64(expected[e], 2 * block));
		for (b = 0; b < 3; b++) {
			read = command(0x28, lba + b, 1);
			if (b < written[e])
				ck_assert_mem_ne(read->data, old, sizeof(old));
			else
				ck_assert_mem_eq(read->data, old, sizeof(old));
		}
	}
	stop();
}
END_TEST

START_TEST(a_read_yields_its_whole_length_whatever_was_expected)
{
	uint64_t expected[] = { 0, 200, 1 << 20 };
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task rig;
	unsigned e;

	start_ram(_i);
	for (e = 0; e < ARRAY_LEN(expected); e++) {
		rig_init(&rig, nexus, 0, rig_rw(cdb, reads[WIDTH(_i)], 0, 2));
		rig.task.expected_in = expected[e];
		rig_submit(&rig);
		ck_assert_uint_eq(rig.task.status, SCSI_GOOD);
		ck_assert_uint_eq(rig.task.data_in_length, 2 * BLOCK(_i));
	}
	stop();
}
END_TEST

START_TEST(a_read_without_room_moves_nothing_and_still_tells_its_length)
{
	uint64_t room[] = { 0, 200, BLOCK(_i), BLOCK(_i) + 512 };
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task rig;
	unsigned r;

	for (r = 0; r < ARRAY_LEN(room); r++) {
		start_fake(_i, false, BLK_FUA);
		rig_init(&rig, nexus, 0, rig_rw(cdb, reads[WIDTH(_i)], 0, 2));
		scsi_task_enter(&rig.task);
		ck_assert(buf_take(rig_pool, room[r], &rig.task.data));
		scsi_task_submit(&rig.task);
		rig_run();
		ck_assert_uint_eq(fake->held_count, r < 2 ? 0 : 1);
		if (fake->held_count) {
			ck_assert_uint_eq(STAILQ_FIRST(&fake->held)->length,
					  align_down(room[r], BLOCK(_i)));
			fake_blk_end(fake, 0);
			rig_run();
		}
		ck_assert_uint_eq(rig.task.status, SCSI_GOOD);
		ck_assert_uint_eq(rig.task.data_in_length, 2 * BLOCK(_i));
		stop();
	}
}
END_TEST

static uint8_t *atomic_cdb(uint8_t *cdb, uint64_t lba, uint16_t blocks)
{
	memset(cdb, 0, SCSI_CDB_MAX);
	cdb[0] = 0x9c;
	put_be64(cdb + 2, lba);
	put_be16(cdb + 12, blocks);
	return cdb;
}

START_TEST(an_atomic_write_is_one_io_up_to_its_limit_and_refused_past_it)
{
	uint16_t most = (uint16_t)(SCSI_ATOMIC_MAX / BLOCK(_i));
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task rig, *done;

	start_fake(_i, true, BLK_FUA | BLK_ATOMIC);
	rig_init(&rig, nexus, 0, atomic_cdb(cdb, 3, most));
	rig_submit(&rig);
	ck_assert_uint_eq(fake->held_count, 1);
	ck_assert_uint_eq(STAILQ_FIRST(&fake->held)->length, SCSI_ATOMIC_MAX);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(rig.task.status, SCSI_GOOD);
	ck_assert_uint_eq(rig.task.transfer_length, SCSI_ATOMIC_MAX);
	done = rig_do(nexus, 0, atomic_cdb(cdb, 3, (uint16_t)(most + 1)));
	ck_assert_uint_eq(rig_sense(done), 0x052400);
	ck_assert_int_eq(rig_field(done), 12);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, atomic_cdb(cdb, SIZE / BLOCK(_i), 1))),
			  0x052100);
	atomic_cdb(cdb, 0, 2);
	cdb[11] = 1;
	done = rig_do(nexus, 0, cdb);
	ck_assert_uint_eq(rig_sense(done), 0x052400);
	ck_assert_int_eq(rig_field(done), 10);
	/* Half of it is not it. */
	rig_init(&rig, nexus, 0, atomic_cdb(cdb, 0, 2));
	rig.task.expected_out = BLOCK(_i);
	rig_submit(&rig);
	ck_assert_uint_eq(rig_sense(&rig), 0x052400);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 1);
	stop();
	start_fake(_i, true, BLK_FUA);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, atomic_cdb(cdb, 0, 1))), 0x052000);
	stop();
}
END_TEST

static const struct {
	int error;
	unsigned read, write;
} errors[] = { { -EIO, 0x031100, 0x030c00 },
	       { -ENXIO, 0x020403, 0x020403 },
	       { -EROFS, 0x072700, 0x072700 },
	       { -ENOSPC, 0x072707, 0x072707 } };

START_TEST(device_errors_reach_the_initiator_with_the_first_lba)
{
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task rig;
	unsigned o, e = (unsigned)_i;

	for (o = 0; o < 2; o++) {
		if (!o && (errors[e].error == -EROFS || errors[e].error == -ENOSPC))
			continue;
		start_fake(0, false, BLK_FUA);
		rig_init(&rig, nexus, 0, rig_rw(cdb, o ? 0x2a : 0x28, 0x1234, 8));
		rig_submit(&rig);
		fake_blk_end(fake, errors[e].error);
		rig_run();
		ck_assert_uint_eq(rig_sense(&rig), o ? errors[e].write : errors[e].read);
		if (errors[e].error == -EIO)
			ck_assert_uint_eq(get_be32(rig.task.sense + 3), 0x1234);
		ck_assert_uint_eq(rig.task.data_in_length, 0);
		stop();
	}
}
END_TEST

START_TEST(a_long_command_goes_down_in_pieces_and_its_error_names_the_piece)
{
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task rig;
	unsigned pieces = 0;

	start_fake(0, false, BLK_FUA);
	fake->blk.max_io = 100 * KIB + 512 * (unsigned)_i;
	rig_init(&rig, nexus, 0, rig_rw(cdb, 0x28, 100, 1024));
	rig_submit(&rig);
	while (fake->held_count) {
		struct io *io = STAILQ_FIRST(&fake->held);

		ck_assert_uint_eq(io->offset, 100 * 512 + pieces * fake->blk.max_io);
		ck_assert_uint_le(io->length, fake->blk.max_io);
		fake_blk_end(fake, pieces == 3 ? -EIO : 0);
		rig_run();
		pieces++;
	}
	ck_assert_uint_eq(pieces, 4);
	ck_assert_uint_eq(rig_sense(&rig), 0x031100);
	ck_assert_uint_eq(get_be32(rig.task.sense + 3), 100 + 3 * fake->blk.max_io / 512);
	stop();
}
END_TEST

START_TEST(synchronize_cache_is_one_flush_and_its_failure_is_told)
{
	static const struct {
		uint8_t cdb[SCSI_CDB_MAX];
		unsigned sense;
	} cases[] = {
		{ { 0x35 }, 0 },
		{ { 0x35, 0x02 }, 0 },
		{ { 0x91 }, 0 },
		{ { 0x91, 0x02, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9 }, 0 },
		{ { 0x35, 0, 0x80 }, 0x052100 },
		{ { 0x35, 0, 0, 0, 0xff, 0xff, 0, 0, 2 }, 0x052100 },
		{ { 0x91, 0, 0x80 }, 0x052100 },
	};
	struct rig_task rig;
	int e;

	for (e = 0; e < 2; e++) {
		start_fake(0, true, BLK_FUA | BLK_VOLATILE);
		rig_init(&rig, nexus, 0, cases[_i].cdb);
		rig_submit(&rig);
		ck_assert_uint_eq(fake->submits[IO_FLUSH], cases[_i].sense ? 0 : 1);
		if (!cases[_i].sense) {
			ck_assert_uint_eq(rig.done, 0);
			fake_blk_end(fake, e ? -EIO : 0);
			rig_run();
		}
		ck_assert_uint_eq(rig.done, 1);
		ck_assert_uint_eq(rig_sense(&rig), cases[_i].sense ? cases[_i].sense :
						   e               ? 0x030c00 :
								     0);
		stop();
	}
}
END_TEST

START_TEST(a_failed_device_is_not_ready)
{
	start_fake(_i, false, BLK_FUA);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0);
	blk_set_state(&fake->blk, BLK_FAILED, "unplugged");
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0x020403);
	ck_assert_uint_eq(rig_sense(command(reads[WIDTH(_i)], 0, 1)), 0x020403);
	ck_assert_uint_eq(rig_sense(command(writes[WIDTH(_i)], 0, 1)), 0x020403);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rw");
	TCase *tc = tcase_create("rw");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, what_every_write_wrote_every_read_reads, 0, ALL);
	tcase_add_loop_test(tc, the_range_is_exact_at_the_end_of_the_medium, 0, ALL);
	tcase_add_loop_test(tc, no_blocks_move_nothing_but_in_six_bytes_where_they_are_256, 0, ALL);
	tcase_add_loop_test(tc, the_maximum_transfer_works_and_one_block_more_is_pointed_at, 0,
			    ALL);
	tcase_add_loop_test(tc, protection_is_refused_at_its_field, 0, ALL);
	tcase_add_loop_test(tc, good_means_durable_unless_the_cache_is_on, 0, 8);
	tcase_add_test(tc, a_read_with_fua_flushes_a_volatile_cache_first);
	tcase_add_loop_test(tc, a_write_with_less_data_writes_its_whole_blocks_and_no_more, 0, ALL);
	tcase_add_loop_test(tc, a_read_yields_its_whole_length_whatever_was_expected, 0, ALL);
	tcase_add_loop_test(tc, a_read_without_room_moves_nothing_and_still_tells_its_length, 0,
			    ALL);
	tcase_add_loop_test(tc, an_atomic_write_is_one_io_up_to_its_limit_and_refused_past_it, 0,
			    ALL);
	tcase_add_loop_test(tc, device_errors_reach_the_initiator_with_the_first_lba, 0, 4);
	tcase_add_loop_test(tc, a_long_command_goes_down_in_pieces_and_its_error_names_the_piece, 0,
			    2);
	tcase_add_loop_test(tc, synchronize_cache_is_one_flush_and_its_failure_is_told, 0, 7);
	tcase_add_loop_test(tc, a_failed_device_is_not_ready, 0, ALL);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
