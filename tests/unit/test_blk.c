/* SPDX-License-Identifier: MIT */
/* The contract between layers: what blk.c refuses, restores, counts, and asserts. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_env.h"

#define ALL_FEATURES (BLK_FUA | BLK_UNMAP | BLK_WRITE_ZEROES | BLK_VOLATILE)
#define SIZE (1 * MIB)

static struct env *env;
static struct fake_blk *fake;
static bool closed;
static unsigned lines; /* logged */
static char last_line[1024];
static uint8_t memory[64 * KIB] __attribute__((aligned(4096)));

static const uint32_t block_sizes[] = { 512, 4096 };

static void note_line(enum log_level level, const char *line)
{
	(void)level;
	lines++;
	strncpy(last_line, line, sizeof(last_line) - 1);
}

static void setup(void)
{
	log_redirect(note_line);
	env = fake_env_new(1);
	closed = false;
	lines = 0;
	fake = NULL;
}

static void make(uint32_t block_size, unsigned features)
{
	fake = fake_blk_new(env, SIZE, block_size, features);
	fake->closed = &closed;
}

static void teardown(void)
{
	if (fake) {
		blk_unref(&fake->blk);
		ck_assert(closed);
	}
	fake_env_free(env);
}

/* In blocks where `unit` says so; each breaks the contract by one thing. */
struct breach {
	enum io_op op;
	unsigned flags;
	uint64_t offset_blocks, offset_bytes;
	uint64_t length_blocks, length_bytes;
	unsigned pieces;      /* 0: no iov at all */
	uint64_t first_short; /* bytes taken off the first element */
	const char *what;
};

static const struct breach breaches[] = {
	{ IO_READ, 0, 0, 1, 1, 0, 1, 0, "alignment" },
	{ IO_READ, 0, 0, 0, 1, 1, 1, 0, "alignment" },
	{ IO_WRITE, 0, 0, 0, 0, 256, 1, 0, "alignment" },
	{ IO_READ, 0, 0, 0, 0, 0, 1, 0, "alignment" },
	{ IO_UNMAP, 0, 0, 0, 0, 0, 0, 0, "alignment" },
	{ IO_STATUS, 0, 0, 0, 0, 0, 0, 0, "alignment" },
	{ IO_STATUS, IO_FUA, 0, 0, 1, 0, 0, 0, "flags" },
	{ IO_STATUS, 0, UINT64_MAX, 0, 1, 0, 0, 0, "range" },
	{ IO_READ, 0, UINT64_MAX, 0, 1, 0, 1, 0, "range" },
	{ IO_WRITE_ZEROES, 0, 1, 0, UINT64_MAX, 0, 0, 0, "range" },
	{ IO_READ, 0, 0, 0, 2, 0, 0, 0, "iov count" },
	{ IO_READ, 0, 0, 0, 2, 0, 1, 256, "iov element" },
	{ IO_WRITE, 0, 0, 0, 3, 0, 2, 256, "iov element" },
	{ IO_READ, IO_FUA, 0, 0, 1, 0, 1, 0, "flags" },
	{ IO_FLUSH, IO_FUA, 0, 0, 0, 0, 0, 0, "flags" },
	{ IO_WRITE, 8, 0, 0, 1, 0, 1, 0, "flags" },
	{ IO_OP_COUNT, 0, 0, 0, 1, 0, 1, 0, "op or purpose" },
};

/* UINT64_MAX blocks stands for "the device's end", one block before it when it is a length. */
static uint64_t in_bytes(uint64_t blocks, uint64_t bytes, uint32_t block_size)
{
	return blocks == UINT64_MAX ? SIZE : blocks * block_size + bytes;
}

START_TEST(a_breach_of_the_contract_is_einval_logged_and_never_reaches_the_device)
{
	const struct breach *b = &breaches[_i % (int)ARRAY_LEN(breaches)];
	uint32_t bs = block_sizes[_i / (int)ARRAY_LEN(breaches)];
	struct iovec iov[2];
	struct io io;

	make(bs, ALL_FEATURES);
	for (unsigned i = 0; i < b->pieces; i++) {
		iov[i].iov_base = memory + (uint64_t)i * 8 * bs;
		iov[i].iov_len = bs;
	}
	if (b->pieces > 0) {
		uint64_t sum = in_bytes(b->length_blocks, b->length_bytes, bs);

		iov[0].iov_len = sum - (b->pieces - 1) * (uint64_t)bs - b->first_short;
		if (b->pieces > 1)
			iov[1].iov_len += b->first_short;
	}
	io_init(&io, b->op, in_bytes(b->offset_blocks, b->offset_bytes, bs),
		in_bytes(b->length_blocks, b->length_bytes, bs), iov, b->pieces);
	ck_assert_int_eq(fake_blk_do(&fake->blk, &io, b->flags), -EINVAL);
	ck_assert_uint_eq(fake->held_count, 0);
	ck_assert_uint_eq(lines, 1);
	ck_assert_ptr_nonnull(strstr(last_line, "contract-broken"));
	ck_assert_ptr_nonnull(strstr(last_line, b->what));
	ck_assert_uint_eq(fake->blk.in_flight, 0);
}
END_TEST

START_TEST(the_last_block_is_in_range_and_one_more_is_not)
{
	uint32_t bs = block_sizes[_i];
	struct fake_wait wait = { 0 };
	struct iovec iov = { memory, 2 * (size_t)bs };
	struct io io;

	make(bs, ALL_FEATURES);
	io_init(&io, IO_WRITE, SIZE - 2 * bs, 2 * bs, &iov, 1);
	blk_submit(&fake->blk, &io, fake_wait_done, &wait);
	ck_assert_uint_eq(fake->held_count, 1);
	fake_blk_end(fake, 0);
	fake_env_run(env);
	ck_assert_int_eq(wait.error, 0);
	io_init(&io, IO_WRITE, SIZE - bs, 2 * bs, &iov, 1);
	ck_assert_int_eq(fake_blk_do(&fake->blk, &io, 0), -EINVAL);
}
END_TEST

START_TEST(limits_on_length_elements_and_memory_are_exact)
{
	static struct iovec iov[IO_IOV_MAX + 1];
	struct io io;

	make(512, ALL_FEATURES);
	fake->blk.max_io = 4096;
	fake->blk.mem_align = 512;
	iov[0] = (struct iovec){ memory, 4096 };
	io_init(&io, IO_READ, 0, 4096, iov, 1);
	blk_submit(&fake->blk, &io, fake_wait_done, &(struct fake_wait){ 0 });
	ck_assert_uint_eq(fake->held_count, 1);
	fake_blk_end(fake, 0);
	fake_env_run(env);
	iov[0].iov_base = memory + 256;
	ck_assert_int_eq(fake_blk_do(&fake->blk, &io, 0), -EINVAL);
	iov[0] = (struct iovec){ memory, 4608 };
	io_init(&io, IO_READ, 0, 4608, iov, 1);
	ck_assert_int_eq(fake_blk_do(&fake->blk, &io, 0), -EINVAL);
	io_init(&io, IO_WRITE_ZEROES, 0, 4608, NULL, 0);
	blk_submit(&fake->blk, &io, fake_wait_done, &(struct fake_wait){ 0 });
	fake_blk_end(fake, 0);
	fake_env_run(env);

	fake->blk.max_io = 0;
	for (unsigned i = 0; i < ARRAY_LEN(iov); i++)
		iov[i] = (struct iovec){ memory, 512 };
	io_init(&io, IO_READ, 0, 512 * IO_IOV_MAX, iov, IO_IOV_MAX);
	blk_submit(&fake->blk, &io, fake_wait_done, &(struct fake_wait){ 0 });
	ck_assert_uint_eq(fake->held_count, 1);
	fake_blk_end(fake, 0);
	fake_env_run(env);
	io_init(&io, IO_READ, 0, 512 * (IO_IOV_MAX + 1), iov, IO_IOV_MAX + 1);
	ck_assert_int_eq(fake_blk_do(&fake->blk, &io, 0), -EINVAL);
}
END_TEST

static const struct {
	enum io_op op;
	unsigned feature;
} needs[] = {
	{ IO_UNMAP, BLK_UNMAP },
	{ IO_WRITE_ZEROES, BLK_WRITE_ZEROES },
};

START_TEST(an_op_that_the_device_does_not_advertise_is_eopnotsupp)
{
	struct iovec iov = { memory, 512 };
	struct io io;

	make(512, ALL_FEATURES & ~needs[_i].feature);
	io_init(&io, needs[_i].op, 0, 512, &iov, 1);
	ck_assert_int_eq(fake_blk_do(&fake->blk, &io, 0), -EOPNOTSUPP);
	ck_assert_uint_eq(fake->held_count + lines, 0);
}
END_TEST

/* What each op gets in each state; 1: it reaches the device. */
static const struct {
	enum blk_state state;
	unsigned features;
	int expect[IO_OP_COUNT];
} states[] = {
	{ BLK_ONLINE, 0, { 1, 1, 1, 1, 1, 1 } },
	{ BLK_ONLINE, BLK_READ_ONLY, { 1, -EROFS, 1, -EROFS, -EROFS, 1 } },
	{ BLK_READ_ONLY_NOW, 0, { 1, -EROFS, 1, -EROFS, -EROFS, 1 } },
	{ BLK_FAILED, 0, { -ENXIO, -ENXIO, -ENXIO, -ENXIO, -ENXIO, -ENXIO } },
	{ BLK_WAITING, 0, { -EAGAIN, -EAGAIN, -EAGAIN, -EAGAIN, -EAGAIN, -EAGAIN } },
};

START_TEST(the_state_decides_what_reaches_the_device)
{
	struct iovec iov = { memory, 512 };

	make(512, ALL_FEATURES | states[_i].features);
	blk_set_state(&fake->blk, states[_i].state, "because %d", 7);
	for (unsigned op = 0; op < IO_OP_COUNT; op++) {
		struct fake_wait wait = { 0 };
		int expect = states[_i].expect[op];
		struct io io;

		io_init(&io, op, 0, 512, &iov, 1);
		blk_submit(&fake->blk, &io, fake_wait_done, &wait);
		ck_assert_uint_eq(fake->held_count, expect == 1);
		if (expect == 1)
			fake_blk_end(fake, 0);
		fake_env_run(env);
		ck_assert_int_eq(wait.error, expect == 1 ? 0 : expect);
		ck_assert_uint_eq(wait.calls, 1);
	}
}
END_TEST

/* --- FUA --- */

static const struct {
	unsigned features;
	int write_error, flush_error;
	bool device_sees_fua;
	unsigned flushes;
	int error;
} fua[] = {
	{ BLK_FUA | BLK_VOLATILE, 0, 0, true, 0, 0 },
	{ BLK_VOLATILE, 0, 0, false, 1, 0 },
	{ BLK_VOLATILE, 0, -EIO, false, 1, -EIO },
	{ BLK_VOLATILE, -ENOSPC, 0, false, 0, -ENOSPC },
	{ 0, 0, 0, false, 0, 0 },
};

START_TEST(fua_on_a_device_without_it_is_a_write_and_then_a_flush)
{
	struct fake_wait wait = { 0 };
	struct iovec iov = { memory, 1024 };
	struct io io;

	make(512, fua[_i].features);
	io_init(&io, IO_WRITE, 512, 1024, &iov, 1);
	io.flags = IO_FUA | IO_LANE;
	io.purpose = IO_LOG;
	blk_submit(&fake->blk, &io, fake_wait_done, &wait);
	ck_assert_uint_eq(fake->last_flags, IO_LANE | (fua[_i].device_sees_fua ? IO_FUA : 0));
	ck_assert_uint_eq(fake->submits[IO_FLUSH], 0);
	fake_blk_end(fake, fua[_i].write_error);
	fake_env_run(env);
	ck_assert_uint_eq(fake->submits[IO_FLUSH], fua[_i].flushes);
	if (fua[_i].flushes) {
		ck_assert_uint_eq(wait.calls, 0);
		ck_assert_uint_eq(fake->blk.in_flight, 1);
		fake_blk_end(fake, fua[_i].flush_error);
		fake_env_run(env);
	}
	ck_assert_uint_eq(wait.calls, 1);
	ck_assert_int_eq(wait.error, fua[_i].error);
	ck_assert_int_eq(io.op, IO_WRITE);
	ck_assert_uint_eq(io.flags, IO_FUA | IO_LANE);
	ck_assert_uint_eq(io.offset, 512);
	ck_assert_uint_eq(io.length, 1024);
	ck_assert_uint_eq(fake->blk.counts.ops[IO_FLUSH], fua[_i].flushes);
}
END_TEST

/* --- layers --- */

/* A 1:1 layer that shifts by one block. */
struct shift {
	struct blk blk;
	struct blk *lower;
	bool pass;
	io_fn *rescue; /* of those that pass */
	unsigned returned;
};

static void shift_done(struct io *io, void *arg)
{
	struct shift *shift = arg;

	shift->returned++;
	ck_assert_uint_eq(io->offset, 512 * (uint64_t)io->depth);
	io_done(io, io->error);
}

static void shift_submit(struct blk *blk, struct io *io)
{
	struct shift *shift = container_of(blk, struct shift, blk);

	io->offset += 512;
	if (shift->pass)
		blk_pass(shift->lower, io, shift->rescue, shift);
	else
		blk_submit(shift->lower, io, shift_done, shift);
}

static void shift_close(struct blk *blk)
{
	blk_unref(container_of(blk, struct shift, blk)->lower);
}

static const struct blk_ops shift_ops = {
	.driver = "shift",
	.submit = shift_submit,
	.close = shift_close,
};

static void shift_over(struct shift *shift, struct blk *lower)
{
	shift->lower = lower;
	shift->blk = *lower;
	shift->blk.ops = &shift_ops;
	blk_init(&shift->blk);
}

/* Those of mask _i pass it on. */
START_TEST(an_io_comes_back_through_nine_layers_as_it_was)
{
	static struct shift layers[IO_DEPTH - 1];
	struct fake_wait wait = { 0 };
	struct iovec iov = { memory, 512 };
	struct blk *top;
	struct io io;

	make(512, ALL_FEATURES);
	top = &fake->blk;
	for (unsigned i = 0; i < ARRAY_LEN(layers); i++) {
		layers[i] = (struct shift){ .pass = _i >> i & 1 };
		shift_over(&layers[i], top);
		top = &layers[i].blk;
	}
	io_init(&io, IO_WRITE, 0, 512, &iov, 1);
	io.flags = IO_FUA;
	blk_submit(top, &io, fake_wait_done, &wait);
	ck_assert_uint_eq(io.offset, 512 * ARRAY_LEN(layers));
	ck_assert_uint_eq(fake->last_flags, IO_FUA);
	fake_blk_end(fake, -ENOSPC);
	fake_env_run(env);
	ck_assert_uint_eq(wait.calls, 1);
	ck_assert_int_eq(wait.error, -ENOSPC);
	ck_assert_uint_eq(io.offset, 0);
	ck_assert_uint_eq(io.depth, 0);
	for (unsigned i = 0; i < ARRAY_LEN(layers); i++) {
		ck_assert_uint_eq(layers[i].returned, layers[i].pass ? 0 : 1);
		ck_assert_uint_eq(layers[i].blk.counts.errors[IO_WRITE], 1);
		ck_assert_uint_eq(layers[i].blk.in_flight, 0);
	}
	blk_unref(top);
	fake = NULL;
	ck_assert(closed);
}
END_TEST

static void shift_rescued(struct io *io, void *arg)
{
	struct shift *shift = arg;

	shift->returned++;
	ck_assert_int_eq(io->error, -EIO);
	ck_assert_uint_eq(io->offset, 1024); /* as it was handed on */
	io_done(io, 0);
}

START_TEST(who_passes_an_io_on_may_have_it_again_if_it_fails)
{
	struct shift lower = { .pass = true, .rescue = shift_rescued }, upper = { .pass = true };
	struct fake_wait wait = { 0 };
	struct iovec iov = { memory, 512 };
	struct io io;

	make(512, ALL_FEATURES);
	shift_over(&lower, &fake->blk);
	shift_over(&upper, &lower.blk);
	io_init(&io, IO_READ, 0, 512, &iov, 1);
	blk_submit(&upper.blk, &io, fake_wait_done, &wait);
	fake_blk_end(fake, _i ? -EIO : 0);
	fake_env_run(env);
	ck_assert_uint_eq(wait.calls, 1);
	ck_assert_int_eq(wait.error, 0);
	ck_assert_uint_eq(lower.returned, _i ? 1 : 0);
	ck_assert_uint_eq(fake->blk.counts.errors[IO_READ], _i ? 1 : 0);
	ck_assert_uint_eq(lower.blk.counts.errors[IO_READ], 0);
	ck_assert_uint_eq(upper.blk.counts.bytes[IO_READ], 512);
	ck_assert_uint_eq(fake->blk.in_flight + lower.blk.in_flight + upper.blk.in_flight, 0);
	blk_unref(&upper.blk);
	fake = NULL;
}
END_TEST

START_TEST(fua_that_was_passed_on_is_a_flush_of_who_lacks_it)
{
	struct shift upper = { .pass = true };
	struct fake_wait wait = { 0 };
	struct iovec iov = { memory, 512 };
	struct io io;

	make(512, BLK_VOLATILE);
	shift_over(&upper, &fake->blk);
	upper.blk.features |= BLK_FUA;
	io_init(&io, IO_WRITE, 0, 512, &iov, 1);
	io.flags = IO_FUA;
	blk_submit(&upper.blk, &io, fake_wait_done, &wait);
	fake_blk_end(fake, 0);
	fake_env_run(env);
	ck_assert_uint_eq(wait.calls, 0);
	ck_assert_uint_eq(fake->submits[IO_FLUSH], 1);
	fake_blk_end(fake, _i ? -EIO : 0);
	fake_env_run(env);
	ck_assert_uint_eq(wait.calls, 1);
	ck_assert_int_eq(wait.error, _i ? -EIO : 0);
	ck_assert_uint_eq(upper.blk.counts.ops[IO_WRITE], 1);
	blk_unref(&upper.blk);
	fake = NULL;
}
END_TEST

START_TEST(counters_tell_ops_bytes_errors_and_purposes)
{
	struct iovec iov = { memory, 4096 };
	struct fake_wait wait;
	struct io io;

	make(512, ALL_FEATURES);
	for (int i = 0; i < 5; i++) {
		io_init(&io, i < 3 ? IO_READ : IO_WRITE, 0, 4096, &iov, 1);
		io.purpose = i % 2 ? IO_RESYNC : IO_HOST;
		blk_submit(&fake->blk, &io, fake_wait_done, &wait);
		fake_blk_end(fake, i == 0 ? -EIO : 0);
		fake_env_run(env);
	}
	ck_assert_uint_eq(fake->blk.counts.ops[IO_READ], 3);
	ck_assert_uint_eq(fake->blk.counts.errors[IO_READ], 1);
	ck_assert_uint_eq(fake->blk.counts.bytes[IO_READ], 8192);
	ck_assert_uint_eq(fake->blk.counts.ops[IO_WRITE], 2);
	ck_assert_uint_eq(fake->blk.counts.bytes[IO_WRITE], 8192);
	ck_assert_uint_eq(fake->blk.counts.by_purpose[IO_HOST], 3);
	ck_assert_uint_eq(fake->blk.counts.by_purpose[IO_RESYNC], 2);
}
END_TEST

static unsigned changes;

static void note_change(struct blk_watch *watch)
{
	(void)watch;
	changes++;
}

START_TEST(when_a_device_last_had_no_room_is_remembered)
{
	uint64_t then_ns;
	struct iovec iov = { memory, 4096 };
	struct fake_wait wait;
	struct io io;

	make(512, ALL_FEATURES);
	then_ns = env_now_ns(env);
	for (int error = -ENOSPC; error <= 0; error += ENOSPC) {
		io_init(&io, IO_WRITE, 0, 4096, &iov, 1);
		blk_submit(&fake->blk, &io, fake_wait_done, &wait);
		fake_blk_end(fake, error);
		fake_env_run(env);
		ck_assert_uint_eq(fake->blk.full_ns, then_ns);
		fake_env_advance(env, NS_PER_S);
	}
}
END_TEST

START_TEST(state_and_size_changes_are_told_to_each_watcher_once)
{
	struct blk_watch first = { .changed = note_change }, second = first;

	make(512, ALL_FEATURES);
	changes = 0;
	blk_watch(&fake->blk, &first);
	blk_watch(&fake->blk, &second);
	blk_set_state(&fake->blk, BLK_FAILED, "gone after %u", 5u);
	blk_set_state(&fake->blk, BLK_FAILED, "gone after %u", 5u);
	ck_assert_uint_eq(changes, 2);
	ck_assert_str_eq(fake->blk.state_cause, "gone after 5");
	ck_assert_str_eq(blk_state_name(fake->blk.state), "failed");
	blk_resize(&fake->blk, 2 * SIZE);
	blk_resize(&fake->blk, 2 * SIZE);
	ck_assert_uint_eq(changes, 4);
	ck_assert_uint_eq(fake->blk.size_bytes, 2 * SIZE);
	blk_unwatch(&first);
	blk_resize(&fake->blk, SIZE);
	ck_assert_uint_eq(changes, 5);
	blk_unwatch(&second);
}
END_TEST

/* --- bugs of our own: asserted --- */

static const struct {
	enum io_op op;
	int error;
} odd[] = {
	{ IO_READ, 5 },       { IO_READ, -EROFS },    { IO_READ, -ENOSPC },  { IO_WRITE, -EBUSY },
	{ IO_WRITE, -EPERM }, { IO_WRITE, -ENODATA }, { IO_FLUSH, -ENOSPC },
};

START_TEST(a_device_that_ends_an_io_with_an_odd_error_is_caught)
{
	struct iovec iov = { memory, 512 };
	struct io io;

	make(512, ALL_FEATURES);
	io_init(&io, odd[_i].op, 0, 512, &iov, 1);
	blk_submit(&fake->blk, &io, fake_wait_done, &(struct fake_wait){ 0 });
	fake_blk_end(fake, odd[_i].error);
}
END_TEST

START_TEST(a_device_that_ends_an_io_twice_is_caught)
{
	struct iovec iov = { memory, 512 };
	struct io io;

	make(512, ALL_FEATURES);
	io_init(&io, IO_READ, 0, 512, &iov, 1);
	blk_submit(&fake->blk, &io, fake_wait_done, &(struct fake_wait){ 0 });
	fake_blk_end(fake, 0);
	io_done(&io, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("blk");
	TCase *tc = tcase_create("blk");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc,
			    a_breach_of_the_contract_is_einval_logged_and_never_reaches_the_device,
			    0, 2 * ARRAY_LEN(breaches));
	tcase_add_loop_test(tc, the_last_block_is_in_range_and_one_more_is_not, 0, 2);
	tcase_add_test(tc, limits_on_length_elements_and_memory_are_exact);
	tcase_add_loop_test(tc, an_op_that_the_device_does_not_advertise_is_eopnotsupp, 0,
			    ARRAY_LEN(needs));
	tcase_add_loop_test(tc, the_state_decides_what_reaches_the_device, 0, ARRAY_LEN(states));
	tcase_add_loop_test(tc, fua_on_a_device_without_it_is_a_write_and_then_a_flush, 0,
			    ARRAY_LEN(fua));
	tcase_add_loop_test(tc, an_io_comes_back_through_nine_layers_as_it_was, 0,
			    1 << (IO_DEPTH - 1));
	tcase_add_loop_test(tc, who_passes_an_io_on_may_have_it_again_if_it_fails, 0, 2);
	tcase_add_loop_test(tc, fua_that_was_passed_on_is_a_flush_of_who_lacks_it, 0, 2);
	tcase_add_test(tc, counters_tell_ops_bytes_errors_and_purposes);
	tcase_add_test(tc, when_a_device_last_had_no_room_is_remembered);
	tcase_add_test(tc, state_and_size_changes_are_told_to_each_watcher_once);
	tcase_add_loop_test_raise_signal(tc, a_device_that_ends_an_io_with_an_odd_error_is_caught,
					 SIGABRT, 0, ARRAY_LEN(odd));
	tcase_add_test_raise_signal(tc, a_device_that_ends_an_io_twice_is_caught, SIGABRT);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
