/* SPDX-License-Identifier: MIT */
/* References on a block device, and ios that are in flight when one goes. */
#include <check.h>
#include <errno.h>
#include <signal.h>

#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_env.h"

#define SIZE MIB

static struct env *env;
static struct fake_blk *fake;
static bool closed;
static uint8_t memory[512] __attribute__((aligned(4096)));

static void make(void)
{
	env = fake_env_new(1);
	fake = fake_blk_new(env, SIZE, 512, BLK_FUA);
	closed = false;
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

START_TEST(the_last_reference_closes)
{
	make();
	blk_ref(&fake->blk);
	blk_unref(&fake->blk);
	ck_assert(!closed);
}
END_TEST

START_TEST(a_reference_that_waits_for_ios_goes_with_the_last_of_them)
{
	struct fake_wait waits[2] = { 0 };
	struct iovec iov = { memory, 512 };
	struct io ios[2];
	struct blk *blk;

	make();
	blk = &fake->blk;
	blk_unref_idle(blk_ref(blk_ref(blk)));
	ck_assert_uint_eq(blk->refs, 2);
	for (unsigned i = 0; i < 2; i++) {
		io_init(&ios[i], IO_READ, 0, 512, &iov, 1);
		blk_submit(blk, &ios[i], fake_wait_done, &waits[i]);
	}
	blk_unref_idle(blk);
	blk_unref_idle(blk);
	fake_blk_end(fake, 0);
	fake_env_run(env);
	ck_assert_uint_eq(waits[0].calls, 1);
	ck_assert_uint_eq(blk->refs, 2);
	ck_assert(!closed);
	fake_blk_end(fake, -EIO);
	fake_env_run(env);
	ck_assert(closed);
	ck_assert_uint_eq(waits[1].calls, 1);
	ck_assert_int_eq(waits[1].error, -EIO);
	fake = NULL;
}
END_TEST

START_TEST(closing_with_an_io_in_flight_is_caught)
{
	struct iovec iov = { memory, 512 };
	struct io io;

	make();
	io_init(&io, IO_READ, 0, 512, &iov, 1);
	blk_submit(&fake->blk, &io, fake_wait_done, &(struct fake_wait){ 0 });
	blk_unref(&fake->blk);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("blk_refs");
	TCase *tcase = tcase_create("refs");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_test(tcase, the_last_reference_closes);
	tcase_add_test(tcase, a_reference_that_waits_for_ios_goes_with_the_last_of_them);
	tcase_add_test_raise_signal(tcase, closing_with_an_io_in_flight_is_caught, SIGABRT);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
