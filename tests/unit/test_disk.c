/* SPDX-License-Identifier: MIT */
/* The rules for short and failed transfers, and the lanes, without a kernel. */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/loop_int.h"

static struct env_disk_op op_of(enum env_disk_kind kind, struct iovec *iov, unsigned count)
{
	struct env_disk_op op = { .kind = kind, .iov = iov, .iov_count = count };

	for (unsigned i = 0; i < count; i++)
		op.length += iov[i].iov_len;
	return op;
}

/* Every split of 1 + 0 + 5 + 3 bytes into two short transfers and the rest. */
START_TEST(a_short_transfer_goes_on_exactly_where_it_stopped)
{
	char data[9];

	for (unsigned a = 1; a < 9; a++) {
		for (unsigned b = 1; a + b < 9; b++) {
			struct iovec iov[4] = {
				{ data, 1 }, { NULL, 0 }, { data + 1, 5 }, { data + 6, 3 }
			};
			struct env_disk_op op = op_of(ENV_DISK_WRITE, iov, 4);
			struct iovec before[4];
			uint64_t left = 0;

			memcpy(before, iov, sizeof(iov));
			ck_assert(!disk_op_step(&op, a));
			ck_assert(!disk_op_step(&op, b));
			ck_assert_uint_eq(op.moved, a + b);
			while (op.iov->iov_len == 0)
				op.iov++, op.iov_count--;
			ck_assert_ptr_eq(op.iov->iov_base, data + a + b);
			for (unsigned i = 0; i < op.iov_count; i++)
				left += op.iov[i].iov_len;
			ck_assert_uint_eq(left, 9 - a - b);
			ck_assert(disk_op_step(&op, 9 - a - b));
			ck_assert_int_eq(op.result, 0);
			ck_assert_mem_eq(iov, before, sizeof(iov));
		}
	}
}
END_TEST

START_TEST(nothing_moved_is_the_end_of_a_read_and_an_error_of_a_write)
{
	char data[8];
	struct iovec iov = { data, 8 };
	struct env_disk_op op = op_of(ENV_DISK_READ, &iov, 1);

	ck_assert(!disk_op_step(&op, 3));
	ck_assert(disk_op_step(&op, 0));
	ck_assert_int_eq(op.result, -ENODATA);
	iov = (struct iovec){ data, 8 };
	op = op_of(ENV_DISK_WRITE, &iov, 1);
	ck_assert(disk_op_step(&op, 0));
	ck_assert_int_eq(op.result, -EIO);
}
END_TEST

START_TEST(interruptions_are_retried_but_not_for_ever)
{
	static const int errors[] = { -EINTR, -EAGAIN };

	for (unsigned i = 0; i < ARRAY_LEN(errors); i++) {
		char data[8];
		struct iovec iov = { data, 8 };
		struct env_disk_op op = op_of(ENV_DISK_WRITE, &iov, 1);
		unsigned n = 1;

		while (!disk_op_step(&op, errors[i]))
			n++;
		ck_assert_uint_eq(n, 1000);
		ck_assert_int_eq(op.result, -EIO);
	}
}
END_TEST

START_TEST(errors_are_passed_on_and_only_two_of_fallocate_translated)
{
	static const struct {
		enum env_disk_kind kind;
		int in, out;
	} cases[] = {
		{ ENV_DISK_READ, -EIO, -EIO },
		{ ENV_DISK_WRITE, -ENOSPC, -ENOSPC },
		{ ENV_DISK_FLUSH, -EIO, -EIO },
		{ ENV_DISK_READ, -EINVAL, -EINVAL },
		{ ENV_DISK_FLUSH, -ENODEV, -ENODEV },
		{ ENV_DISK_PUNCH, -ENODEV, -EOPNOTSUPP },
		{ ENV_DISK_ZERO, -ENOSYS, -EOPNOTSUPP },
		{ ENV_DISK_WRITE, -ENODEV, -ENODEV },
		{ ENV_DISK_PUNCH, -EOPNOTSUPP, -EOPNOTSUPP },
		{ ENV_DISK_ZERO, -ENOSPC, -ENOSPC },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		char data[8];
		struct iovec iov = { data, 8 };
		struct env_disk_op op = op_of(cases[i].kind, &iov, 1);

		ck_assert(disk_op_step(&op, cases[i].in));
		ck_assert_int_eq(op.result, cases[i].out);
	}
}
END_TEST

START_TEST(an_unaligned_rest_that_is_refused_is_the_end_of_the_file)
{
	static char data[4096];
	struct iovec iov = { data, 4096 };
	struct env_disk_op op = op_of(ENV_DISK_READ, &iov, 1);

	ck_assert(!disk_op_step(&op, 1000));
	ck_assert(disk_op_step(&op, -EINVAL));
	ck_assert_int_eq(op.result, -ENODATA);
	iov = (struct iovec){ data, 4096 };
	op = op_of(ENV_DISK_READ, &iov, 1);
	ck_assert(!disk_op_step(&op, 1024));
	ck_assert(disk_op_step(&op, -EINVAL));
	ck_assert_int_eq(op.result, -EINVAL);
}
END_TEST

START_TEST(lanes_keep_their_order_and_the_urgent_one_goes_first)
{
	struct env_disk_op ops[5] = { { .fd = 0 },
				      { .fd = 1, .nowait_lane = true },
				      { .fd = 2 },
				      { .fd = 3, .nowait_lane = true },
				      { .fd = 4, .moved = 7, .tries = 9 } };
	static const int expected[] = { 3, 1, 2, 0, 4 };
	struct disk_lanes lanes;

	disk_lanes_init(&lanes);
	ck_assert(disk_lanes_empty(&lanes));
	disk_lanes_push(&lanes, &ops[0]);
	disk_lanes_push(&lanes, &ops[1]);
	disk_lanes_push(&lanes, &ops[4]);
	disk_lanes_again(&lanes, &ops[2]);
	disk_lanes_again(&lanes, &ops[3]);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(disk_lanes_pop(&lanes)->fd, expected[i]);
	ck_assert_ptr_null(disk_lanes_pop(&lanes));
	ck_assert_uint_eq(ops[4].moved + ops[4].tries, 0);
}
END_TEST

START_TEST(one_call_takes_no_more_elements_than_the_kernel)
{
	struct env_disk_op op = { .iov_count = IOV_MAX + 1 };

	ck_assert_uint_eq(disk_op_iovs(&op), IOV_MAX);
	op.iov_count = 3;
	ck_assert_uint_eq(disk_op_iovs(&op), 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("disk");
	TCase *tc = tcase_create("disk");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, a_short_transfer_goes_on_exactly_where_it_stopped);
	tcase_add_test(tc, nothing_moved_is_the_end_of_a_read_and_an_error_of_a_write);
	tcase_add_test(tc, interruptions_are_retried_but_not_for_ever);
	tcase_add_test(tc, errors_are_passed_on_and_only_two_of_fallocate_translated);
	tcase_add_test(tc, an_unaligned_rest_that_is_refused_is_the_end_of_the_file);
	tcase_add_test(tc, lanes_keep_their_order_and_the_urgent_one_goes_first);
	tcase_add_test(tc, one_call_takes_no_more_elements_than_the_kernel);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
