/* SPDX-License-Identifier: MIT */
/* A fan: the first error is the fan's, who waits is served in order, data are cut where told. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "raid/fan.h"
#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_env.h"

#define FANS 3
#define CHILDREN 3
#define IOVS 16
#define PIECES 5

/* The layer that fans out: its ios end when their fans are done. */
static struct env *env;
static struct fan_pool *pool;
static struct fake_blk *parts[CHILDREN];
static struct fan *begun[16];
static unsigned begun_count, done_count;
static int done_error;

static void fan_done(struct fan *fan)
{
	done_count++;
	done_error = fan->error;
	fan_free(fan);
}

static void begin(void *arg, struct fan *fan)
{
	ck_assert_ptr_eq(arg, &env);
	begun[begun_count++] = fan;
	fan->done = fan_done;
}

static void setup(void)
{
	env = fake_env_new(1);
	pool = fan_pool_new(FANS, CHILDREN, IOVS, 24, begin, &env);
	ck_assert_ptr_nonnull(pool);
	for (unsigned i = 0; i < CHILDREN; i++)
		parts[i] = fake_blk_new(env, MIB, 512, BLK_FUA);
	begun_count = done_count = 0;
}

static void teardown(void)
{
	fan_pool_free(pool);
	for (unsigned i = 0; i < CHILDREN; i++)
		blk_unref(&parts[i]->blk);
	fake_env_run(env);
	fake_env_free(env);
}

static struct io parents[16];
static uint8_t data[PIECES][4096];
static struct iovec iov[PIECES];

static struct io *parent(unsigned number, enum io_op op)
{
	for (unsigned i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){ data[i], (i + 1) * 512 };
	io_init(&parents[number], op, 8192, 15 * 512, iov, PIECES);
	return &parents[number];
}

/* All parts, with nothing to carry. */
static void send_all(struct fan *fan)
{
	for (unsigned i = 0; i < CHILDREN; i++)
		fan_child(fan, IO_FLUSH, 0, 0);
	for (unsigned i = 0; i < CHILDREN; i++)
		fan_send(&fan->children[i], &parts[i]->blk);
}

static const unsigned orders[][CHILDREN] = {
	{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
};

START_TEST(the_error_that_comes_first_is_the_fans)
{
	static const int errors[CHILDREN] = { -EIO, -ENXIO, -ECANCELED };
	const unsigned *order = orders[_i];

	fan_begin(pool, parent(0, IO_WRITE));
	send_all(begun[0]);
	for (unsigned i = 0; i < CHILDREN; i++) {
		ck_assert_uint_eq(done_count, 0);
		fake_blk_end(parts[order[i]], i == 0 ? 0 : errors[order[i]]);
		fake_env_run(env);
	}
	ck_assert_uint_eq(done_count, 1);
	ck_assert_int_eq(done_error, errors[order[1]]);
}
END_TEST

START_TEST(a_fan_that_is_used_again_has_forgotten_its_error)
{
	for (unsigned round = 0; round < 2 * FANS; round++) {
		fan_begin(pool, parent(0, IO_WRITE));
		ck_assert_uint_eq(begun[round]->count, 0);
		ck_assert_uint_eq(begun[round]->iov_used, 0);
		send_all(begun[round]);
		for (unsigned i = 0; i < CHILDREN; i++)
			fake_blk_end(parts[i], round % 2 ? 0 : -EIO);
		fake_env_run(env);
		ck_assert_int_eq(done_error, round % 2 ? 0 : -EIO);
	}
	ck_assert_uint_eq(done_count, 2 * FANS);
}
END_TEST

START_TEST(who_finds_no_fan_free_waits_in_the_order_of_coming)
{
	for (unsigned i = 0; i < FANS + 4; i++)
		fan_begin(pool, parent(i, IO_WRITE));
	ck_assert_uint_eq(begun_count, FANS);
	for (unsigned i = 0; i < FANS; i++)
		ck_assert_ptr_eq(begun[i]->parent, &parents[i]);
	for (unsigned i = 0; i < FANS + 4; i++) {
		fan_free(begun[i]);
		ck_assert_uint_eq(begun_count, min_u64(FANS + 1 + i, FANS + 4));
		ck_assert_ptr_eq(begun[begun_count - 1]->parent, &parents[begun_count - 1]);
	}
}
END_TEST

START_TEST(children_have_flags_and_purpose_of_their_parent)
{
	struct io *io = parent(0, IO_WRITE);
	struct fan_child *child;

	io->flags = IO_FUA | IO_DPO;
	io->purpose = IO_MIRROR;
	fan_begin(pool, io);
	child = fan_child(begun[0], IO_WRITE, 4096, 1024);
	ck_assert_uint_eq(child->io.flags, IO_FUA | IO_DPO);
	ck_assert_int_eq(child->io.purpose, IO_MIRROR);
	ck_assert_uint_eq(child->io.offset, 4096);
	ck_assert_uint_eq(child->io.length, 1024);
	ck_assert_int_eq(child->io.op, IO_WRITE);
	ck_assert_ptr_eq(child->fan, begun[0]);
	fan_free(begun[0]);
}
END_TEST

/* Byte AT of the parent's data. */
static const uint8_t *byte_at(uint64_t at)
{
	for (unsigned i = 0;; i++) {
		if (at < iov[i].iov_len)
			return (uint8_t *)iov[i].iov_base + at;
		at -= iov[i].iov_len;
	}
}

static void check_slice(const struct iovec *piece, unsigned count, uint64_t from, uint64_t length)
{
	uint64_t at = 0;

	for (unsigned i = 0; i < count; i++)
		for (uint64_t k = 0; k < piece[i].iov_len; k++, at++)
			ck_assert_ptr_eq((uint8_t *)piece[i].iov_base + k, byte_at(from + at));
	ck_assert_uint_eq(at, length);
}

START_TEST(a_slice_is_exactly_those_bytes_of_the_parent)
{
	struct io *io = parent(0, IO_WRITE);

	for (uint64_t from = 0; from < io->length; from += 512) {
		for (uint64_t length = 512; from + length <= io->length; length += 512) {
			struct fan_child *child;

			begun_count = 0;
			fan_begin(pool, io);
			child = fan_child(begun[0], IO_WRITE, 0, length);
			fan_slice(begun[0], child, from, length);
			check_slice(child->io.iov, child->io.iov_count, from, length);
			fan_free(begun[0]);
		}
	}
}
END_TEST

START_TEST(slices_of_one_child_follow_each_other_and_those_of_the_next_begin_anew)
{
	struct fan_child *a, *b;

	fan_begin(pool, parent(0, IO_WRITE));
	a = fan_child(begun[0], IO_WRITE, 0, 2048);
	fan_slice(begun[0], a, 512, 1024); /* all of the second element */
	fan_slice(begun[0], a, 3072, 1024);
	b = fan_child(begun[0], IO_WRITE, 0, 1024);
	fan_slice(begun[0], b, 0, 1024);
	check_slice(a->io.iov, 1, 512, 1024);
	check_slice(a->io.iov + 1, a->io.iov_count - 1, 3072, 1024);
	check_slice(b->io.iov, b->io.iov_count, 0, 1024);
	ck_assert_ptr_eq(b->io.iov, a->io.iov + a->io.iov_count);
	fan_free(begun[0]);
}
END_TEST

START_TEST(each_fan_has_memory_of_its_own)
{
	for (unsigned i = 0; i < FANS; i++) {
		fan_begin(pool, parent(i, IO_WRITE));
		memset(begun[i]->own, (int)i + 1, 24);
		for (unsigned c = 0; c < CHILDREN; c++)
			fan_child(begun[i], IO_FLUSH, 0, 0)->arg = begun[i];
	}
	for (unsigned i = 0; i < FANS; i++) {
		for (unsigned k = 0; k < 24; k++)
			ck_assert_uint_eq(((uint8_t *)begun[i]->own)[k], i + 1);
		for (unsigned c = 0; c < CHILDREN; c++)
			ck_assert_ptr_eq(begun[i]->children[c].arg, begun[i]);
	}
	for (unsigned i = 0; i < FANS; i++)
		fan_free(begun[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fan");
	TCase *fan = tcase_create("fan");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(fan, setup, teardown);
	tcase_add_loop_test(fan, the_error_that_comes_first_is_the_fans, 0, (int)ARRAY_LEN(orders));
	tcase_add_test(fan, a_fan_that_is_used_again_has_forgotten_its_error);
	tcase_add_test(fan, who_finds_no_fan_free_waits_in_the_order_of_coming);
	tcase_add_test(fan, children_have_flags_and_purpose_of_their_parent);
	tcase_add_test(fan, a_slice_is_exactly_those_bytes_of_the_parent);
	tcase_add_test(fan, slices_of_one_child_follow_each_other_and_those_of_the_next_begin_anew);
	tcase_add_test(fan, each_fan_has_memory_of_its_own);
	suite_add_tcase(suite, fan);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
