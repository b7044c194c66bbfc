/* SPDX-License-Identifier: MIT */
/* The file leaf on the fake env: shared flushes, failed ones, errors, power cuts. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backing_int.h"
#include "core/event.h"
#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_env.h"

#define SIZE (4 * MIB)
#define MANY 32

static struct env *env;
static struct blk *blk;
static int fd;
static int64_t size_now; /* what the file's size is found to be */
static unsigned sized, closed;
static uint8_t buf[SIZE];
static uint8_t again[SIZE];

static int64_t fake_size(const struct file_medium *medium)
{
	ck_assert_int_eq(medium->fd, fd);
	sized++;
	return size_now;
}

static void fake_close(const struct file_medium *medium)
{
	ck_assert_int_eq(medium->fd, fd);
	closed++;
}

static const struct file_calls calls = { .size = fake_size, .close = fake_close };

static void quiet(enum log_level level, const char *line)
{
	(void)level, (void)line;
}

static void open_disk(struct file_medium medium)
{
	const struct backing_spec spec = { .name = "image", .path = "/image" };

	medium.fd = fd;
	medium.size_bytes = SIZE;
	if (medium.block_size == 0)
		medium.block_size = 512;
	medium.physical_block = 4096;
	blk = file_new(env, &spec, &medium, &calls);
	ck_assert_ptr_nonnull(blk);
}

static void setup(void)
{
	log_redirect(quiet);
	env = fake_env_new(1);
	fd = fake_env_disk(env, SIZE);
	size_now = SIZE;
	sized = closed = 0;
	blk = NULL;
}

static void teardown(void)
{
	fake_env_release(env);
	fake_env_run(env);
	if (blk) {
		blk_unref(blk);
		fake_env_run(env);
		ck_assert_uint_eq(closed, 1);
	}
	fake_env_free(env);
}

/* Many small ios at once. */
struct many {
	struct io io;
	struct iovec iov;
	struct fake_wait wait;
};

static struct many many[MANY];

static void submit(unsigned i, enum io_op op, unsigned flags)
{
	struct many *m = &many[i];

	m->iov = (struct iovec){ buf + i * 512, 512 };
	m->wait = (struct fake_wait){ 0 };
	io_init(&m->io, op, i * 512, 512, &m->iov, 1);
	m->io.flags = flags;
	blk_submit(blk, &m->io, fake_wait_done, &m->wait);
}

static unsigned finished(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MANY; i++)
		n += many[i].wait.calls;
	return n;
}

static int simple(enum io_op op, unsigned flags)
{
	struct iovec iov = { buf, 4096 };
	struct io io;

	io_init(&io, op, 4096, 4096, &iov, 1);
	return fake_blk_do(blk, &io, flags);
}

static unsigned ops(enum env_disk_kind kind)
{
	return fake_env_count(env, kind);
}

/* --- data --- */

static const struct {
	uint32_t block_size;
	unsigned pieces;
	unsigned flags;
} shapes[] = {
	{ 512, 1, 0 },  { 512, 5, IO_FUA },  { 512, 33, IO_FUA },
	{ 4096, 1, 0 }, { 4096, 5, IO_FUA }, { 4096, 33, 0 },
};

START_TEST(what_was_written_is_read_whatever_the_shape_and_offset)
{
	uint32_t bs = shapes[_i].block_size;
	unsigned pieces = shapes[_i].pieces;
	static uint8_t model[SIZE];

	open_disk((struct file_medium){ .block_size = bs, .device = true });
	memset(model, 0, SIZE);
	for (unsigned round = 0; round < 32; round++) {
		uint64_t len = (pieces + round % 7) * (uint64_t)bs;
		uint64_t at = round * 7919 * (uint64_t)bs % (SIZE - len);

		fake_fill(buf, len, round);
		memcpy(model + at, buf, len);
		ck_assert_int_eq(fake_blk_rw(blk, IO_WRITE, at, buf, len, pieces, shapes[_i].flags),
				 0);
	}
	ck_assert_int_eq(fake_blk_rw(blk, IO_READ, 0, again, SIZE, 4, 0), 0);
	ck_assert_mem_eq(again, model, SIZE);
	if (shapes[_i].flags & IO_FUA)
		ck_assert_mem_eq(fake_env_disk_durable(env, fd), model, SIZE);
}
END_TEST

/* --- durability --- */

/* How a FUA write is served, by what the medium is. */
static const struct {
	struct file_medium medium;
	bool fua_write;
	unsigned flushes;
} kinds[] = {
	{ { .device = true, .fua = true, .volatile_cache = true }, true, 0 },
	{ { .device = true, .fua = true, .volatile_cache = false }, true, 0 },
	{ { .device = true, .fua = false, .volatile_cache = true }, false, 1 },
	{ { .device = false, .fua = false, .volatile_cache = true }, false, 1 },
};

START_TEST(a_fua_write_is_a_fua_write_or_a_write_and_a_flush_by_the_kind_of_medium)
{
	open_disk(kinds[_i].medium);
	memset(buf, 7, 4096);
	ck_assert_int_eq(simple(IO_WRITE, IO_FUA | IO_LANE), 0);
	ck_assert_uint_eq(ops(ENV_DISK_WRITE), 1);
	ck_assert_int_eq(fake_env_record(env, 0)->fua, kinds[_i].fua_write);
	ck_assert(fake_env_record(env, 0)->nowait_lane);
	ck_assert_uint_eq(ops(ENV_DISK_FLUSH), kinds[_i].flushes);
	ck_assert_mem_eq(fake_env_disk_durable(env, fd) + 4096, buf, 4096);
	ck_assert_int_eq(simple(IO_WRITE, 0), 0);
	ck_assert_uint_eq(ops(ENV_DISK_FLUSH), kinds[_i].flushes);
}
END_TEST

START_TEST(writes_that_complete_in_one_turn_share_one_flush)
{
	open_disk((struct file_medium){ .volatile_cache = true });
	fake_env_hold(env);
	for (unsigned i = 0; i < MANY; i++)
		submit(i, IO_WRITE, IO_FUA);
	for (unsigned i = 0; i < MANY; i++)
		fake_env_serve_held(env, 0);
	fake_env_run(env);
	ck_assert_uint_eq(ops(ENV_DISK_FLUSH), 1);
	ck_assert_uint_eq(finished(), 0);
	fake_env_serve_held(env, 0);
	fake_env_run(env);
	ck_assert_uint_eq(finished(), MANY);
	ck_assert_uint_eq(ops(ENV_DISK_FLUSH), 1);
}
END_TEST

START_TEST(who_asks_while_a_flush_is_in_flight_shares_the_next_one)
{
	open_disk((struct file_medium){ .volatile_cache = true });
	fake_env_hold(env);
	submit(0, IO_WRITE, IO_FUA);
	fake_env_serve_held(env, 0);
	fake_env_run(env);
	ck_assert_uint_eq(ops(ENV_DISK_FLUSH), 1); /* held: in flight */
	for (unsigned i = 1; i < MANY; i++)
		submit(i, i % 4 ? IO_WRITE : IO_FLUSH, i % 4 ? IO_FUA : 0);
	while (fake_env_held(env) > 1)
		fake_env_serve_held(env, 1); /* the writes, not the flush */
	fake_env_run(env);
	ck_assert_uint_eq(ops(ENV_DISK_FLUSH), 1);
	fake_env_serve_held(env, 0);
	fake_env_run(env);
	ck_assert_uint_eq(finished(), 1);
	ck_assert_uint_eq(ops(ENV_DISK_FLUSH), 2);
	fake_env_serve_held(env, 0);
	fake_env_run(env);
	ck_assert_uint_eq(finished(), MANY);
	ck_assert_uint_eq(ops(ENV_DISK_FLUSH), 2);
}
END_TEST

START_TEST(a_write_not_yet_completed_waits_for_a_flush_that_begins_after_it)
{
	open_disk((struct file_medium){ .volatile_cache = true });
	fake_env_hold(env);
	submit(0, IO_WRITE, IO_FUA);
	submit(1, IO_WRITE, IO_FUA);
	fake_env_serve_held(env, 0);
	fake_env_run(env);
	fake_env_serve_held(env, 0); /* write 1, while flush 1 is in flight */
	fake_env_serve_held(env, 0); /* flush 1 */
	fake_env_run(env);
	ck_assert_uint_eq(many[0].wait.calls, 1);
	ck_assert_uint_eq(many[1].wait.calls, 0);
	ck_assert_uint_eq(ops(ENV_DISK_FLUSH), 2);
}
END_TEST

START_TEST(acknowledged_fua_survives_a_power_cut_and_what_was_never_flushed_does_not)
{
	open_disk(kinds[_i].medium);
	memset(buf, 0xaa, SIZE);
	for (unsigned i = 0; i < MANY; i++)
		submit(i, IO_WRITE, i % 2 ? IO_FUA : 0);
	fake_env_run(env);
	ck_assert_uint_eq(finished(), MANY);
	submit(0, IO_WRITE, 0);
	fake_env_run(env);
	/* After the last flush: lost. */
	memset(buf, 0xbb, SIZE);
	ck_assert_int_eq(fake_blk_rw(blk, IO_WRITE, MIB, buf, 4096, 1, 0), 0);
	fake_env_power_cut(env);
	ck_assert_int_eq(fake_blk_rw(blk, IO_READ, 0, again, 2 * MIB, 1, 0), 0);
	for (unsigned i = 1; i < MANY; i += 2)
		ck_assert_uint_eq(again[i * 512 + 511], 0xaa);
	ck_assert_uint_eq(again[MIB], 0);
}
END_TEST

START_TEST(a_failed_flush_fails_every_waiter_and_the_device_for_good)
{
	open_disk((struct file_medium){ .volatile_cache = true, .device = _i });
	fake_env_hold(env);
	for (unsigned i = 0; i < 4; i++)
		submit(i, IO_WRITE, i == 3 ? 0 : IO_FUA);
	submit(4, IO_FLUSH, 0);
	submit(5, IO_WRITE, 0); /* in flight when the flush fails */
	submit(6, IO_READ, 0);
	for (unsigned i = 0; i < 4; i++)
		fake_env_serve_held(env, 0);
	fake_env_run(env);
	ck_assert_uint_eq(many[3].wait.calls, 1);
	submit(7, IO_FLUSH, 0); /* waits for the next */
	fake_env_fail_next(env, ENV_DISK_FLUSH, -EIO);
	fake_env_release(env);
	fake_env_run(env);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(many[i].wait.error, -EIO);
	ck_assert_int_eq(many[4].wait.error, -EIO);
	ck_assert_int_eq(many[7].wait.error, -EIO);
	ck_assert_int_eq(blk->state, BLK_FAILED);
	ck_assert_str_eq(blk->state_cause, "flush failed: Input/output error");
	/* A flush would succeed now. Nobody may believe it. */
	fake_env_reset_counts(env);
	ck_assert_int_eq(simple(IO_FLUSH, 0), -ENXIO);
	ck_assert_int_eq(simple(IO_WRITE, IO_FUA), -ENXIO);
	ck_assert_int_eq(simple(IO_READ, 0), -ENXIO);
	ck_assert_uint_eq(fake_env_records(env), 0);
}
END_TEST

START_TEST(a_write_in_flight_when_a_flush_fails_is_not_acknowledged)
{
	open_disk((struct file_medium){ .volatile_cache = true });
	fake_env_hold(env);
	submit(0, IO_FLUSH, 0);
	fake_env_run(env);
	submit(1, IO_WRITE, 0);
	submit(2, IO_WRITE, IO_FUA);
	submit(3, IO_READ, 0);
	fake_env_fail_next(env, ENV_DISK_FLUSH, -EIO);
	fake_env_release(env);
	fake_env_run(env);
	ck_assert_int_eq(many[0].wait.error, -EIO);
	ck_assert_int_eq(many[1].wait.error, -EIO);
	ck_assert_int_eq(many[2].wait.error, -EIO);
	ck_assert_int_eq(many[3].wait.error, -ENXIO);
	ck_assert_uint_eq(ops(ENV_DISK_FLUSH), 1);
}
END_TEST

/* --- errors --- */

static const struct {
	enum io_op op;
	enum env_disk_kind kind;
	int from, error;
	enum blk_state state;
} errors[] = {
	{ IO_READ, ENV_DISK_READ, -EIO, -EIO, BLK_ONLINE },
	{ IO_READ, ENV_DISK_READ, -ENODATA, -EIO, BLK_ONLINE },
	{ IO_READ, ENV_DISK_READ, -EILSEQ, -EIO, BLK_ONLINE },
	{ IO_READ, ENV_DISK_READ, -ENOSPC, -EIO, BLK_ONLINE },
	{ IO_READ, ENV_DISK_READ, -EPERM, -EIO, BLK_ONLINE },
	{ IO_READ, ENV_DISK_READ, -ENODEV, -ENXIO, BLK_FAILED },
	{ IO_READ, ENV_DISK_READ, -ENXIO, -ENXIO, BLK_FAILED },
	{ IO_WRITE, ENV_DISK_WRITE, -EIO, -EIO, BLK_ONLINE },
	{ IO_WRITE, ENV_DISK_WRITE, -ETIMEDOUT, -EIO, BLK_ONLINE },
	{ IO_WRITE, ENV_DISK_WRITE, -ENOSPC, -ENOSPC, BLK_ONLINE },
	{ IO_WRITE, ENV_DISK_WRITE, -EDQUOT, -ENOSPC, BLK_ONLINE },
	{ IO_WRITE, ENV_DISK_WRITE, -EROFS, -EROFS, BLK_READ_ONLY_NOW },
	{ IO_WRITE, ENV_DISK_WRITE, -EPERM, -EROFS, BLK_READ_ONLY_NOW },
	{ IO_WRITE, ENV_DISK_WRITE, -ENODEV, -ENXIO, BLK_FAILED },
	{ IO_UNMAP, ENV_DISK_PUNCH, -EIO, -EIO, BLK_ONLINE },
	{ IO_UNMAP, ENV_DISK_PUNCH, -EROFS, -EROFS, BLK_READ_ONLY_NOW },
	{ IO_WRITE_ZEROES, ENV_DISK_ZERO, -ENOSPC, -ENOSPC, BLK_ONLINE },
	{ IO_FLUSH, ENV_DISK_FLUSH, -ENOSPC, -EIO, BLK_FAILED },
	{ IO_FLUSH, ENV_DISK_FLUSH, -EIO, -EIO, BLK_FAILED },
};

START_TEST(each_error_of_the_kernel_has_its_error_and_state)
{
	bool device = _i % 2;

	open_disk((struct file_medium){ .volatile_cache = true, .punch = true, .device = device });
	fake_env_fail_next(env, errors[_i / 2].kind, errors[_i / 2].from);
	ck_assert_int_eq(simple(errors[_i / 2].op, 0), errors[_i / 2].error);
	ck_assert_int_eq(blk->state, errors[_i / 2].state);
	if (blk->state == BLK_ONLINE)
		ck_assert_int_eq(simple(errors[_i / 2].op, 0), 0);
}
END_TEST

START_TEST(a_medium_turned_read_only_still_reads_and_flushes)
{
	open_disk((struct file_medium){ .volatile_cache = true });
	fake_env_fail_next(env, ENV_DISK_WRITE, -EROFS);
	ck_assert_int_eq(simple(IO_WRITE, IO_FUA), -EROFS);
	ck_assert_str_eq(blk->state_cause, "turned read-only: Read-only file system");
	ck_assert_int_eq(simple(IO_READ, 0), 0);
	ck_assert_int_eq(simple(IO_FLUSH, 0), 0);
	ck_assert_int_eq(simple(IO_WRITE, 0), -EROFS);
	ck_assert_uint_eq(ops(ENV_DISK_WRITE), 1);
}
END_TEST

static unsigned full_events(void)
{
	json_t *list = event_list(0, EVENT_RING);
	size_t at;
	json_t *row;
	unsigned n = 0;

	json_array_foreach(list, at, row) {
		char *text = json_dumps(row, 0);

		n += strstr(text, "backing-full") != NULL;
		free(text);
	}
	json_decref(list);
	return n;
}

START_TEST(a_full_file_system_is_told_once_a_minute)
{
	unsigned before = full_events();

	open_disk((struct file_medium){ .volatile_cache = true });
	for (unsigned i = 0; i < 10; i++) {
		fake_env_fail_next(env, ENV_DISK_WRITE, -ENOSPC);
		ck_assert_int_eq(simple(IO_WRITE, 0), -ENOSPC);
		fake_env_advance(env, 5 * NS_PER_S);
	}
	ck_assert_uint_eq(full_events() - before, 1);
	fake_env_advance(env, 11 * NS_PER_S);
	fake_env_fail_next(env, ENV_DISK_WRITE, -ENOSPC);
	ck_assert_int_eq(simple(IO_WRITE, 0), -ENOSPC);
	ck_assert_uint_eq(full_events() - before, 2);
	ck_assert_int_eq(blk->state, BLK_ONLINE);
	ck_assert_int_eq(simple(IO_WRITE, 0), 0);
}
END_TEST

/* --- cut short --- */

START_TEST(a_file_cut_short_fails_the_read_and_the_device)
{
	open_disk((struct file_medium){ .volatile_cache = true });
	size_now = 8192;
	fake_env_fail_next(env, ENV_DISK_READ, -ENODATA);
	ck_assert_int_eq(simple(IO_READ, 0), -EIO);
	ck_assert_int_eq(blk->state, BLK_FAILED);
	ck_assert_str_eq(blk->state_cause, "cut short: 8192 of 4194304 bytes left");
}
END_TEST

START_TEST(a_write_to_a_file_cut_short_does_not_make_it_longer)
{
	static const enum io_op kinds_of_write[] = { IO_WRITE, IO_WRITE_ZEROES, IO_UNMAP };

	open_disk((struct file_medium){ .volatile_cache = true, .punch = true });
	ck_assert_int_eq(simple(kinds_of_write[_i], 0), 0);
	fake_env_advance(env, 1000); /* another turn */
	fake_env_reset_counts(env);
	size_now = SIZE - 1;
	ck_assert_int_eq(simple(kinds_of_write[_i], 0), -EIO);
	ck_assert_uint_eq(fake_env_records(env), 0);
	ck_assert_int_eq(blk->state, BLK_FAILED);
}
END_TEST

START_TEST(a_file_cut_between_write_and_flush_acknowledges_nothing)
{
	open_disk((struct file_medium){ .volatile_cache = true });
	fake_env_hold(env);
	submit(0, IO_WRITE, IO_FUA);
	size_now = 512;
	fake_env_release(env);
	fake_env_run(env);
	ck_assert_int_eq(many[0].wait.error, -EIO);
	ck_assert_int_eq(blk->state, BLK_FAILED);
}
END_TEST

START_TEST(the_size_is_looked_at_once_a_turn_and_not_at_all_on_devices)
{
	open_disk((struct file_medium){ .volatile_cache = true, .device = _i });
	for (unsigned i = 0; i < MANY; i++)
		submit(i, IO_WRITE, 0);
	ck_assert_uint_eq(sized, _i ? 0 : 1);
	fake_env_run(env);
	ck_assert_uint_eq(finished(), MANY);
}
END_TEST

START_TEST(a_device_that_has_gone_is_found_by_its_size)
{
	open_disk((struct file_medium){ .device = true });
	size_now = 0;
	fake_env_fail_next(env, ENV_DISK_WRITE, -EIO);
	ck_assert_int_eq(simple(IO_WRITE, 0), -EIO);
	ck_assert_int_eq(blk->state, BLK_FAILED);
	ck_assert_str_eq(blk->state_cause, "the device is gone");
}
END_TEST

/* --- zeroes --- */

/* What the kernel refuses, and what is done instead. */
static const struct {
	enum io_op op;
	bool no_punch, no_zero;
	unsigned punches, zeroes, writes;
} clears[] = {
	{ IO_UNMAP, false, false, 1, 0, 0 },       { IO_UNMAP, true, false, 1, 1, 0 },
	{ IO_UNMAP, true, true, 1, 1, 3 },         { IO_WRITE_ZEROES, false, false, 0, 1, 0 },
	{ IO_WRITE_ZEROES, false, true, 0, 1, 3 },
};

START_TEST(what_the_kernel_cannot_clear_is_written_and_it_is_not_asked_again)
{
	uint64_t offset = 512, length = 2 * MIB + 4096;
	struct io io;

	open_disk((struct file_medium){ .volatile_cache = true, .punch = true });
	fake_fill(buf, SIZE, 2);
	ck_assert_int_eq(fake_blk_rw(blk, IO_WRITE, 0, buf, SIZE, 1, 0), 0);
	fake_env_reset_counts(env);
	if (clears[_i].no_punch)
		fake_env_fail_next(env, ENV_DISK_PUNCH, -EOPNOTSUPP);
	if (clears[_i].no_zero)
		fake_env_fail_next(env, ENV_DISK_ZERO, -EOPNOTSUPP);
	io_init(&io, clears[_i].op, offset, length, NULL, 0);
	ck_assert_int_eq(fake_blk_do(blk, &io, IO_FUA), 0);
	ck_assert_uint_eq(ops(ENV_DISK_PUNCH), clears[_i].punches);
	ck_assert_uint_eq(ops(ENV_DISK_ZERO), clears[_i].zeroes);
	ck_assert_uint_eq(ops(ENV_DISK_WRITE), clears[_i].writes);
	ck_assert_uint_eq(ops(ENV_DISK_FLUSH), 1);
	memset(buf + offset, 0, length);
	ck_assert_mem_eq(fake_env_disk_bytes(env, fd), buf, SIZE);
	ck_assert_mem_eq(fake_env_disk_durable(env, fd), buf, SIZE);
	fake_env_reset_counts(env);
	ck_assert_int_eq(fake_blk_do(blk, &io, 0), 0);
	ck_assert_uint_eq(ops(ENV_DISK_PUNCH), clears[_i].punches && !clears[_i].no_punch);
	ck_assert_uint_eq(ops(ENV_DISK_WRITE), clears[_i].writes);
}
END_TEST

START_TEST(an_error_in_the_middle_of_written_zeroes_ends_them)
{
	struct io io;

	open_disk((struct file_medium){ .volatile_cache = true });
	fake_env_fail_next(env, ENV_DISK_ZERO, -EOPNOTSUPP);
	io_init(&io, IO_WRITE_ZEROES, 0, SIZE, NULL, 0);
	fake_env_fail_next(env, ENV_DISK_WRITE, -EIO);
	ck_assert_int_eq(fake_blk_do(blk, &io, 0), -EIO);
	ck_assert_uint_eq(ops(ENV_DISK_WRITE), 1);
}
END_TEST

START_TEST(unmap_is_offered_only_where_it_can_be_done)
{
	open_disk((struct file_medium){ .punch = _i });
	ck_assert_uint_eq(blk->features & (BLK_UNMAP | BLK_UNMAP_ZEROES),
			  _i ? BLK_UNMAP | BLK_UNMAP_ZEROES : 0);
	ck_assert_int_eq(simple(IO_UNMAP, 0), _i ? 0 : -EOPNOTSUPP);
	ck_assert_int_eq(simple(IO_WRITE_ZEROES, 0), 0);
}
END_TEST

static void add_durability(TCase *tc)
{
	tcase_add_loop_test(tc,
			    a_fua_write_is_a_fua_write_or_a_write_and_a_flush_by_the_kind_of_medium,
			    0, ARRAY_LEN(kinds));
	tcase_add_test(tc, writes_that_complete_in_one_turn_share_one_flush);
	tcase_add_test(tc, who_asks_while_a_flush_is_in_flight_shares_the_next_one);
	tcase_add_test(tc, a_write_not_yet_completed_waits_for_a_flush_that_begins_after_it);
	tcase_add_loop_test(
		tc, acknowledged_fua_survives_a_power_cut_and_what_was_never_flushed_does_not, 0,
		ARRAY_LEN(kinds));
	tcase_add_loop_test(tc, a_failed_flush_fails_every_waiter_and_the_device_for_good, 0, 2);
	tcase_add_test(tc, a_write_in_flight_when_a_flush_fails_is_not_acknowledged);
}

int main(void)
{
	Suite *suite = suite_create("file");
	TCase *tc = tcase_create("file");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, what_was_written_is_read_whatever_the_shape_and_offset, 0,
			    ARRAY_LEN(shapes));
	add_durability(tc);
	tcase_add_loop_test(tc, each_error_of_the_kernel_has_its_error_and_state, 0,
			    2 * ARRAY_LEN(errors));
	tcase_add_test(tc, a_medium_turned_read_only_still_reads_and_flushes);
	tcase_add_test(tc, a_full_file_system_is_told_once_a_minute);
	tcase_add_test(tc, a_file_cut_short_fails_the_read_and_the_device);
	tcase_add_loop_test(tc, a_write_to_a_file_cut_short_does_not_make_it_longer, 0, 3);
	tcase_add_test(tc, a_file_cut_between_write_and_flush_acknowledges_nothing);
	tcase_add_loop_test(tc, the_size_is_looked_at_once_a_turn_and_not_at_all_on_devices, 0, 2);
	tcase_add_test(tc, a_device_that_has_gone_is_found_by_its_size);
	tcase_add_loop_test(tc, what_the_kernel_cannot_clear_is_written_and_it_is_not_asked_again,
			    0, ARRAY_LEN(clears));
	tcase_add_test(tc, an_error_in_the_middle_of_written_zeroes_ends_them);
	tcase_add_loop_test(tc, unmap_is_offered_only_where_it_can_be_done, 0, 2);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
