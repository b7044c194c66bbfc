/* SPDX-License-Identifier: MIT */
/* RAID 5: every byte where it belongs, over a matrix of geometries, whole and with a member lost. */
#include "tests/fake/raid5_rig.h"

#define AREA (3 * MIB) /* that tests use */

static struct rig rig;

static const struct rig_shape shapes[] = {
	{ .disks = 3, .chunk = 4096, .block = 512 },
	{ .disks = 3, .chunk = 65536, .block = 4096 },
	{ .disks = 4, .chunk = 4096, .block = 4096 },
	{ .disks = 4, .chunk = 65536, .block = 512 },
	{ .disks = 4, .chunk = 65536, .block = 512, .intent = true },
	{ .disks = 5, .chunk = 16384, .block = 512 },
	{ .disks = 3, .chunk = 1048576, .block = 512 },
	{ .disks = 7, .chunk = 131072, .block = 4096 },
	{ .disks = 8, .chunk = 8192, .block = 512, .intent = true },
	{ .disks = 16, .chunk = 4096, .block = 512 },
	{ .disks = 16, .chunk = 262144, .block = 4096 },
};
#define SHAPES ((int)ARRAY_LEN(shapes))

static void start(int shape)
{
	struct rig_shape use = shapes[shape];

	use.disk_bytes = 8 * MIB + 4ull * use.disks * use.chunk;
	rig_create(&rig, &use);
	srand(1);
}

/* Somewhere, mostly small, with the edges of chunks and stripes likely. */
static void pick(uint64_t *at, uint64_t *length)
{
	uint64_t block = rig.blk->block_size, size = rig.blk->size_bytes;
	uint64_t chunk = rig.array->label.chunk_bytes;

	*at = (uint64_t)rand() % (min_u64(size, AREA) / block) * block;
	if (rand() % 2)
		*at = align_down(*at, chunk);
	*length = (1 + (uint64_t)rand() % 32) * block;
	if (rand() % 3 == 0)
		*length = (1 + (uint64_t)rand() % 8) * chunk;
	if (rand() % 4 == 0)
		*length = rig.blk->optimal_io;
	*length = min_u64(*length, min_u64(size - *at, rig.blk->max_io));
}

static void write_some(unsigned rounds)
{
	uint64_t at, length;

	for (unsigned i = 0; i < rounds; i++) {
		pick(&at, &length);
		if (i % 10 == 9) {
			length = min_u64(rig.blk->size_bytes - at, 2 * length);
			ck_assert_int_eq(rig_rw(&rig, IO_WRITE_ZEROES, at, NULL, length), 0);
			memset(rig.image + at, 0, length);
		} else {
			ck_assert_int_eq(rig_write(&rig, at, length, (uint64_t)rand()), 0);
		}
	}
}

static void check_all(void)
{
	rig_check(&rig, 0, min_u64(rig.blk->size_bytes, AREA + MIB));
}

START_TEST(what_is_written_anywhere_is_read_there_and_parity_is_right)
{
	start(_i);
	write_some(60);
	check_all();
	ck_assert(rig_parity_right(&rig));
	rig_stop_array(&rig);
	ck_assert(rig_start(&rig, (1u << rig.count) - 1));
	check_all();
	rig_free(&rig);
}
END_TEST

START_TEST(with_any_member_lost_everything_is_read_and_written)
{
	unsigned lost;

	start(_i);
	lost = (unsigned)_i % rig.count;
	write_some(40);
	rig.disks[lost]->fail = -EIO;
	check_all();
	write_some(40);
	ck_assert_int_eq(rig_state(&rig), ARRAY_DEGRADED);
	check_all();
	rig_stop_array(&rig);
	/* It is found without him, and nothing that he has counts. */
	rig.disks[lost]->fail = 0;
	ck_assert(rig_start(&rig, ((1u << rig.count) - 1) & ~(1u << lost)));
	check_all();
	write_some(20);
	check_all();
	rig_free(&rig);
}
END_TEST

START_TEST(who_comes_back_gets_what_he_missed)
{
	struct array_disk disk;
	unsigned lost;

	start(_i);
	lost = (unsigned)(_i + 1) % rig.count;
	write_some(30);
	rig.disks[lost]->fail_writes = -EIO;
	write_some(40);
	ck_assert_int_eq(rig_state(&rig), ARRAY_DEGRADED);
	rig.disks[lost]->fail_writes = 0;
	disk = (struct array_disk){ "disk", &rig.disks[lost]->blk };
	ck_assert_int_eq(array_add(rig.array, &disk, rig_told, &rig), 0);
	/* While he is brought up to date. */
	write_some(20);
	check_all();
	rig_run(&rig);
	ck_assert_int_eq(rig_state(&rig), ARRAY_HEALTHY);
	ck_assert(rig_parity_right(&rig));
	check_all();
	/* What he got counts: another one goes. */
	rig.disks[(lost + 1) % rig.count]->fail = -EIO;
	check_all();
	rig_free(&rig);
}
END_TEST

START_TEST(many_at_once_are_all_there)
{
	static struct rig_burst burst;
	uint64_t block;

	start(_i);
	block = rig.blk->block_size;
	for (unsigned round = 0; round < 3; round++) {
		uint64_t apart = align_down(rig.blk->size_bytes / 200, block);

		apart = min_u64(apart, align_down(40000, block));
		rig_burst_begin(&burst, 8 * MIB);
		for (unsigned i = 0; i < 200; i++)
			rig_burst_write(&rig, &burst, i * apart,
					round == 0 ? apart : block * (1 + i % (apart / block)), 0);
		rig_burst_end(&rig, &burst);
	}
	check_all();
	ck_assert(rig_parity_right(&rig));
	rig_free(&rig);
}
END_TEST

/* ---- bad blocks */

START_TEST(a_block_that_cannot_be_read_is_read_all_the_same_and_written_anew)
{
	static uint8_t buf[16384] __attribute__((aligned(4096)));
	struct fake_disk *disk;
	uint64_t at;

	start(3);
	/* Chunk 1 of stripe 0 of four members: parity on 3, so it is on 1. */
	ck_assert_int_eq(rig_write(&rig, 0, 196608, 5), 0);
	disk = rig.disks[1];
	at = rig_data_at(&rig) + 8192;
	disk->bad_from = at + 512;
	disk->bad_to = at + 1024;
	ck_assert_int_eq(rig_rw(&rig, IO_READ, 65536 + 4096, buf, sizeof(buf)), 0);
	ck_assert_mem_eq(buf, rig.image + 65536 + 4096, sizeof(buf));
	ck_assert_uint_eq(disk->bad_to, 0);
	/* Nothing but that piece. */
	ck_assert_uint_eq(disk->last_write_offset, at);
	ck_assert_uint_eq(disk->last_write_length, 4096);
	ck_assert_int_eq(rig_state(&rig), ARRAY_HEALTHY);
	rig_free(&rig);
}
END_TEST

START_TEST(what_two_members_lack_is_an_error_of_exactly_that)
{
	static uint8_t buf[4096] __attribute__((aligned(4096)));

	start(3);
	ck_assert_int_eq(rig_write(&rig, 0, 196608, 5), 0);
	rig.disks[1]->bad_from = rig_data_at(&rig) + 8192;
	rig.disks[1]->bad_to = rig.disks[1]->bad_from + 512;
	rig.disks[2]->fail = -EIO;
	/* Chunk 2 is on member 2: rebuilt from the others, but for these. */
	for (uint64_t in = 0; in < 65536; in += 4096) {
		ck_assert_int_eq(rig_rw(&rig, IO_READ, 131072 + in, buf, 4096),
				 in == 8192 ? -EIO : 0);
		if (in != 8192)
			ck_assert_mem_eq(buf, rig.image + 131072 + in, 4096);
	}
	ck_assert_int_eq(rig_rw(&rig, IO_READ, 65536 + 8192, buf, 4096), -EIO);
	rig_free(&rig);
}
END_TEST

START_TEST(a_write_whose_old_data_cannot_be_read_goes_on)
{
	unsigned bad = (unsigned)_i;

	start(5);
	ck_assert_int_eq(rig_write(&rig, 0, rig.blk->optimal_io, 5), 0);
	rig.disks[bad]->bad_from = rig_data_at(&rig);
	rig.disks[bad]->bad_to = rig_data_at(&rig) + 4096;
	ck_assert_int_eq(rig_write(&rig, 1024, 512, 6), 0);
	ck_assert_int_eq(rig_state(&rig), ARRAY_HEALTHY);
	rig_check(&rig, 0, rig.blk->optimal_io);
	rig.disks[bad]->bad_to = 0;
	ck_assert(rig_parity_right(&rig));
	rig_free(&rig);
}
END_TEST

/* ---- members that fail */

START_TEST(the_logs_member_failing_costs_nobody_a_write)
{
	start(5);
	write_some(20);
	rig.disks[_i]->fail_purposes = 1u << IO_LOG;
	write_some(60);
	ck_assert_int_eq(rig_state(&rig), ARRAY_DEGRADED);
	check_all();
	rig_free(&rig);
}
END_TEST

START_TEST(two_members_failing_fail_writes_and_nothing_is_acknowledged)
{
	start(5);
	write_some(10);
	rig.disks[0]->fail = -EIO;
	rig.disks[1]->fail_writes = -EIO;
	ck_assert_int_eq(rig_write(&rig, 0, rig.blk->optimal_io, 7), -EIO);
	rig.disks[0]->fail = 0;
	rig.disks[1]->fail_writes = 0;
	rig_free(&rig);
}
END_TEST

/*
 * What the others say of a member, and what parity that may be wrong does not contradict any more,
 * counts when a label says that he does not.
 */
static const struct {
	bool doubtful;
	uint64_t chunk; /* that is read */
	int label;      /* how the label ends */
} unsettled[] = {
	{ .chunk = 4 }, /* of member 0, in stripe 1 */
	{ .chunk = 4, .label = -EIO },
	{ .doubtful = true, .chunk = 30 }, /* of member 2, in stripe 10 */
	{ .doubtful = true, .chunk = 30, .label = -EIO },
};

START_TEST(while_no_label_excludes_who_is_out_nothing_is_read_that_he_could_take_back)
{
	static uint8_t new[4096] __attribute__((aligned(4096)));
	static uint8_t buf[4096] __attribute__((aligned(4096)));
	struct iovec new_iov = { new, sizeof(new) }, buf_iov = { buf, sizeof(buf) };
	struct fake_wait written = { 0 }, was_read = { 0 };
	uint64_t at = unsettled[_i].chunk * sizeof(buf), last;
	struct io write, read;
	unsigned doubtful;

	start(2);
	last = rig.blk->size_bytes / sizeof(new) - 1;
	while (raid5_data_role(4, last / 3, (unsigned)(last % 3)) != 0)
		last--;
	ck_assert_int_eq(rig_write(&rig, 0, 16 * rig.blk->optimal_io, 5), 0);
	for (unsigned i = 0; i < rig.count; i++)
		rig.disks[i]->hold_purposes = 1u << IO_LABEL;
	if (unsettled[_i].doubtful)
		regions_doubt_all(rig.array->regions);
	doubtful = rig_doubtful(&rig);
	rig.disks[0]->fail_purposes = 1u << IO_HOST;
	fake_fill(new, sizeof(new), 6);
	io_init(&write, IO_WRITE, last * sizeof(new), sizeof(new), &new_iov, 1);
	blk_submit(rig.blk, &write, fake_wait_done, &written);
	rig_run(&rig);
	ck_assert_int_eq(rig_state(&rig), ARRAY_DEGRADED);
	io_init(&read, IO_READ, at, sizeof(buf), &buf_iov, 1);
	blk_submit(rig.blk, &read, fake_wait_done, &was_read);
	rig_run(&rig);
	ck_assert_uint_eq(written.calls, 0);
	ck_assert_uint_eq(was_read.calls, 0);
	ck_assert_uint_eq(rig_doubtful(&rig), doubtful);
	for (unsigned i = 0; i < rig.count; i++)
		fake_disk_release(rig.disks[i], unsettled[_i].label);
	rig_run(&rig);
	ck_assert_uint_eq(written.calls, 1);
	ck_assert_uint_eq(was_read.calls, 1);
	ck_assert_int_eq(was_read.error, unsettled[_i].label);
	if (!unsettled[_i].label)
		ck_assert_mem_eq(buf, rig.image + at, sizeof(buf));
	rig_free(&rig);
}
END_TEST

START_TEST(fua_reaches_data_parity_and_log)
{
	static uint8_t buf[4096] __attribute__((aligned(4096)));
	struct iovec iov = { buf, sizeof(buf) };
	uint64_t before = 0, after = 0;
	struct io io;

	start(3);
	for (unsigned i = 0; i < rig.count; i++)
		before += rig.disks[i]->fua_writes;
	io_init(&io, IO_WRITE, 0, sizeof(buf), &iov, 1);
	ck_assert_int_eq(rig_do(&rig, &io, IO_FUA), 0);
	for (unsigned i = 0; i < rig.count; i++)
		after += rig.disks[i]->fua_writes;
	ck_assert_uint_eq(after - before, 3);
	rig_free(&rig);
}
END_TEST

START_TEST(a_flush_is_one_of_every_member_and_a_failed_one_excludes)
{
	struct io io;

	start(3);
	ck_assert_int_eq(rig_write(&rig, 0, 4096, 1), 0);
	io_init(&io, IO_FLUSH, 0, 0, NULL, 0);
	for (unsigned i = 0; i < rig.count; i++)
		memset(&rig.disks[i]->blk.counts, 0, sizeof(rig.disks[i]->blk.counts));
	ck_assert_int_eq(rig_do(&rig, &io, 0), 0);
	ck_assert_uint_eq(rig_ops(&rig, IO_FLUSH), rig.count);
	rig.disks[2]->fail = -EIO;
	io_init(&io, IO_FLUSH, 0, 0, NULL, 0);
	ck_assert_int_eq(rig_do(&rig, &io, 0), 0);
	ck_assert_int_eq(rig_state(&rig), ARRAY_DEGRADED);
	rig_free(&rig);
}
END_TEST

START_TEST(chunks_are_left_symmetric)
{
	uint8_t chunk[4096];

	start(2);
	ck_assert_int_eq(rig_write(&rig, 0, 2 * rig.blk->optimal_io, 3), 0);
	/* Data chunks 0..5 by member and row. */
	static const struct {
		unsigned disk, row;
	} where[] = { { 0, 0 }, { 1, 0 }, { 2, 0 }, { 3, 1 }, { 0, 1 }, { 1, 1 } };
	for (unsigned i = 0; i < ARRAY_LEN(where); i++) {
		fake_disk_read(rig.disks[where[i].disk], rig_data_at(&rig) + where[i].row * 4096,
			       chunk, sizeof(chunk));
		ck_assert_mem_eq(chunk, rig.image + i * 4096, sizeof(chunk));
	}
	ck_assert_uint_eq(rig.blk->size_bytes, rig.array->label.data.length * 3);
	rig_free(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("raid5");
	TCase *bytes = tcase_create("bytes"), *errors = tcase_create("errors");
	SRunner *runner;
	int failed;

	tcase_set_timeout(bytes, 120);
	tcase_add_test(bytes, chunks_are_left_symmetric);
	tcase_add_loop_test(bytes, what_is_written_anywhere_is_read_there_and_parity_is_right, 0,
			    SHAPES);
	tcase_add_loop_test(bytes, with_any_member_lost_everything_is_read_and_written, 0, SHAPES);
	tcase_add_loop_test(bytes, who_comes_back_gets_what_he_missed, 0, SHAPES);
	tcase_add_loop_test(bytes, many_at_once_are_all_there, 0, SHAPES);
	suite_add_tcase(suite, bytes);
	tcase_set_timeout(errors, 60);
	tcase_add_test(errors, a_block_that_cannot_be_read_is_read_all_the_same_and_written_anew);
	tcase_add_test(errors, what_two_members_lack_is_an_error_of_exactly_that);
	tcase_add_loop_test(errors, a_write_whose_old_data_cannot_be_read_goes_on, 0, 5);
	tcase_add_loop_test(errors, the_logs_member_failing_costs_nobody_a_write, 0, 5);
	tcase_add_test(errors, two_members_failing_fail_writes_and_nothing_is_acknowledged);
	tcase_add_loop_test(
		errors, while_no_label_excludes_who_is_out_nothing_is_read_that_he_could_take_back,
		0, (int)ARRAY_LEN(unsettled));
	tcase_add_test(errors, fua_reaches_data_parity_and_log);
	tcase_add_test(errors, a_flush_is_one_of_every_member_and_a_failed_one_excludes);
	suite_add_tcase(suite, errors);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
