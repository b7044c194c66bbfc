/* SPDX-License-Identifier: MIT */
/* A file that failed gets a second try, and what must hold before and after it. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backing_int.h"
#include "backstore/fault.h"
#include "core/event.h"
#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_env.h"

#define SIZE MIB

static struct env *env;
static struct blk *blk;
static int first, second; /* file descriptors: of the start, and of the second try */
static unsigned closed_first, closed_second;
static int probe_error;
static uint64_t probe_size;
static uint8_t buf[4096];

/* What blk_reopen() told. */
static unsigned told;
static int told_error;
static char told_text[128];

static int64_t whole(const struct file_medium *medium)
{
	(void)medium;
	return SIZE;
}

static void count_close(const struct file_medium *medium)
{
	closed_first += medium->fd == first;
	closed_second += medium->fd == second;
}

static int probe(const struct backing_spec *spec, struct file_medium *medium, char *text)
{
	ck_assert_str_eq(spec->path, "/image");
	ck_assert_str_eq(spec->name, "image");
	ck_assert_uint_eq(spec->size_bytes, 0);
	ck_assert_uint_eq(closed_first, 1);
	*medium = (struct file_medium){ .fd = probe_error ? -1 : second,
					.size_bytes = probe_size,
					.block_size = 512,
					.physical_block = 4096 };
	snprintf(text, BACKING_TEXT_MAX, "%s", probe_error ? "still broken" : "");
	return probe_error;
}

static const struct file_calls calls = { .size = whole, .close = count_close, .probe = probe };

static void quiet(enum log_level level, const char *line)
{
	(void)level, (void)line;
}

static void setup(void)
{
	const struct backing_spec spec = { .name = "image", .path = "/image", .size_bytes = SIZE };
	struct file_medium medium = { .size_bytes = SIZE,
				      .block_size = 512,
				      .physical_block = 4096 };

	log_redirect(quiet);
	env = fake_env_new(1);
	first = fake_env_disk(env, SIZE);
	second = fake_env_disk(env, SIZE);
	medium.fd = first;
	blk = file_new(env, &spec, &medium, &calls);
	ck_assert_ptr_nonnull(blk);
	closed_first = closed_second = told = 0;
	probe_error = 0;
	probe_size = SIZE;
}

static void teardown(void)
{
	fake_env_release(env);
	fake_env_run(env);
	blk_unref(blk);
	fake_env_run(env);
	fake_env_free(env);
}

static void tell(void *arg, int error, const char *text)
{
	ck_assert_ptr_eq(arg, &told);
	told++;
	told_error = error;
	snprintf(told_text, sizeof(told_text), "%s", text);
}

static void reopen(void)
{
	blk_reopen(blk, tell, &told);
	fake_env_run(env);
}

static int write_once(void)
{
	return fake_blk_rw(blk, IO_WRITE, 4096, buf, sizeof(buf), 1, IO_FUA);
}

static void lose_it(void)
{
	fake_env_fail_next(env, ENV_DISK_FLUSH, -EIO);
	ck_assert_int_eq(write_once(), -EIO);
	ck_assert_int_eq(blk->state, BLK_FAILED);
}

START_TEST(it_comes_back_over_another_descriptor)
{
	uint8_t back[sizeof(buf)];

	lose_it();
	reopen();
	ck_assert_uint_eq(told, 1);
	ck_assert_int_eq(told_error, 0);
	ck_assert_int_eq(blk->state, BLK_ONLINE);
	ck_assert_str_eq(blk->state_cause, "");
	memset(buf, 0x5a, sizeof(buf));
	ck_assert_int_eq(write_once(), 0);
	ck_assert_int_eq(fake_blk_rw(blk, IO_READ, 4096, back, sizeof(back), 1, 0), 0);
	ck_assert_mem_eq(back, buf, sizeof(back));
	teardown();
	ck_assert_uint_eq(closed_first, 1);
	ck_assert_uint_eq(closed_second, 1);
}
END_TEST

START_TEST(what_is_still_broken_stays_failed_and_says_why)
{
	lose_it();
	probe_error = -EIO;
	reopen();
	ck_assert_int_eq(told_error, -EIO);
	ck_assert_str_eq(told_text, "still broken");
	ck_assert_int_eq(blk->state, BLK_FAILED);
	ck_assert_str_eq(blk->state_cause, "still broken");
	ck_assert_int_eq(write_once(), -ENXIO);
	probe_error = 0;
	reopen();
	ck_assert_int_eq(blk->state, BLK_ONLINE);
	teardown();
	ck_assert_uint_eq(closed_first, 1);
	ck_assert_uint_eq(closed_second, 1);
}
END_TEST

START_TEST(a_file_that_is_shorter_now_is_refused)
{
	lose_it();
	probe_size = SIZE - 512;
	reopen();
	ck_assert_int_ne(told_error, 0);
	ck_assert_ptr_nonnull(strstr(blk->state_cause, "cut short"));
	ck_assert_int_eq(blk->state, BLK_FAILED);
	ck_assert_uint_eq(closed_second, 1);
	teardown();
}
END_TEST

START_TEST(a_longer_file_keeps_the_size_that_hosts_know)
{
	lose_it();
	probe_size = 2 * SIZE;
	reopen();
	ck_assert_int_eq(blk->state, BLK_ONLINE);
	ck_assert_uint_eq(blk->size_bytes, SIZE);
	teardown();
}
END_TEST

/* Its descriptor must not be closed under it, or become another file's. */
START_TEST(with_io_of_before_under_way_it_waits_for_another_day)
{
	struct iovec iov = { buf, sizeof(buf) };
	struct fake_wait wait = { 0 };
	struct io io;

	fake_env_hold(env);
	io_init(&io, IO_READ, 0, sizeof(buf), &iov, 1);
	blk_submit(blk, &io, fake_wait_done, &wait);
	fake_env_run(env);
	blk_set_state(blk, BLK_FAILED, "the device is gone");
	reopen();
	ck_assert_int_eq(told_error, -EBUSY);
	ck_assert_uint_eq(closed_first, 0);
	ck_assert_int_eq(blk->state, BLK_FAILED);
	fake_env_release(env);
	fake_env_run(env);
	ck_assert_uint_eq(wait.calls, 1);
	reopen();
	ck_assert_int_eq(blk->state, BLK_ONLINE);
	teardown();
}
END_TEST

START_TEST(one_that_turned_read_only_is_tried_as_it_is)
{
	fake_env_fail_next(env, ENV_DISK_WRITE, -EROFS);
	ck_assert_int_eq(write_once(), -EROFS);
	ck_assert_int_eq(blk->state, BLK_READ_ONLY_NOW);
	reopen();
	ck_assert_int_eq(told_error, 0);
	ck_assert_int_eq(blk->state, BLK_ONLINE);
	ck_assert_int_eq(write_once(), 0);
	ck_assert_uint_eq(closed_first, 0);
	teardown();
}
END_TEST

START_TEST(the_fault_filter_passes_it_on_and_follows)
{
	struct blk *lower = blk;

	blk = fault_new(lower);
	ck_assert_ptr_nonnull(blk);
	lose_it();
	ck_assert_int_eq(lower->state, BLK_FAILED);
	reopen();
	ck_assert_int_eq(told_error, 0);
	ck_assert_int_eq(lower->state, BLK_ONLINE);
	ck_assert_int_eq(blk->state, BLK_ONLINE);
	teardown();
}
END_TEST

START_TEST(what_is_online_is_left_alone)
{
	reopen();
	ck_assert_uint_eq(told, 1);
	ck_assert_int_eq(told_error, 0);
	ck_assert_uint_eq(closed_first, 0);
	teardown();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("file_reopen");
	TCase *tc = tcase_create("file_reopen");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, it_comes_back_over_another_descriptor);
	tcase_add_test(tc, what_is_still_broken_stays_failed_and_says_why);
	tcase_add_test(tc, a_file_that_is_shorter_now_is_refused);
	tcase_add_test(tc, a_longer_file_keeps_the_size_that_hosts_know);
	tcase_add_test(tc, with_io_of_before_under_way_it_waits_for_another_day);
	tcase_add_test(tc, one_that_turned_read_only_is_tried_as_it_is);
	tcase_add_test(tc, the_fault_filter_passes_it_on_and_follows);
	tcase_add_test(tc, what_is_online_is_left_alone);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
