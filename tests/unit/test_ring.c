/* SPDX-License-Identifier: MIT */
/* io_uring without a loop: its depth, its notifications, its waiting room. */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/ring.h"

#define DEPTH 4

static struct ring *ring;
static int wake_fd;
static FILE *file;
static unsigned done;

/* False where io_uring is refused. */
static bool setup(void)
{
	wake_fd = eventfd(0, EFD_NONBLOCK);
	file = tmpfile();
	ck_assert_ptr_nonnull(file);
	ring = ring_new(DEPTH, wake_fd);
	ck_assert(ring || errno == EPERM || errno == ENOSYS);
	return ring;
}

static bool woken(void)
{
	uint64_t count;

	return read(wake_fd, &count, sizeof(count)) == sizeof(count);
}

static void reap_until(unsigned wanted)
{
	for (unsigned i = 0; done < wanted; i++) {
		ck_assert_uint_lt(i, 30000);
		if (ring_ready(ring))
			ring_flush(ring);
		ring_reap(ring);
		/* Not a wait for luck: completions run when this thread enters the kernel. */
		poll(NULL, 0, 1);
	}
}

static void op_done(struct env_disk_op *op)
{
	ck_assert_int_eq(op->result, 0);
	done++;
}

static char byte[1] = "x";
static struct iovec iovs[64];

static struct env_disk_op op_of(enum env_disk_kind kind, int fd, unsigned i)
{
	iovs[i] = (struct iovec){ byte, kind == ENV_DISK_FLUSH ? 0 : 1 };
	return (struct env_disk_op){ .kind = kind,
				     .fd = fd,
				     .offset = i,
				     .length = iovs[i].iov_len,
				     .iov = &iovs[i],
				     .iov_count = 1,
				     .done = op_done };
}

START_TEST(nothing_is_submitted_without_a_flush_and_no_call_made_for_nothing)
{
	struct env_disk_op op;

	if (!setup())
		return;
	ck_assert_uint_eq(ring_flush(ring), 0);
	op = op_of(ENV_DISK_WRITE, fileno(file), 0);
	ck_assert(!ring_ready(ring));
	ring_submit(ring, &op);
	ck_assert(ring_ready(ring) && !ring_completions(ring));
	ck_assert_uint_ge(ring_flush(ring), 1);
	reap_until(1);
	ck_assert_uint_eq(ring_flush(ring), 0);
	ck_assert(!ring_ready(ring));
	ring_free(ring);
}
END_TEST

START_TEST(the_kernel_holds_no_more_than_the_depth)
{
	struct env_disk_op ops[3 * DEPTH];

	if (!setup())
		return;
	for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
		ops[i] = op_of(ENV_DISK_WRITE, fileno(file), i);
		ring_submit(ring, &ops[i]);
	}
	ring_flush(ring);
	for (unsigned i = 0; i < 100 && !ring_completions(ring); i++)
		poll(NULL, 0, 1);
	ring_reap(ring);
	ck_assert_uint_le(done, DEPTH);
	reap_until(ARRAY_LEN(ops));
	ck_assert_uint_eq(done, ARRAY_LEN(ops));
	ring_free(ring);
}
END_TEST

START_TEST(what_waits_for_room_is_not_handed_over_while_the_kernel_is_full)
{
	struct env_disk_op reads[DEPTH], write_op;
	int pipes[2];

	if (!setup())
		return;
	ck_assert_int_eq(pipe(pipes), 0);
	for (unsigned i = 0; i < DEPTH; i++) {
		reads[i] = op_of(ENV_DISK_READ, pipes[0], i);
		reads[i].offset = 0;
		ring_submit(ring, &reads[i]);
	}
	ring_flush(ring);
	write_op = op_of(ENV_DISK_WRITE, fileno(file), DEPTH);
	ring_submit(ring, &write_op);
	ck_assert(!ring_ready(ring));
	ck_assert_uint_eq(ring_flush(ring), 0);
	ck_assert_int_eq(write(pipes[1], "1234", DEPTH), DEPTH);
	reap_until(DEPTH + 1);
	ring_free(ring);
}
END_TEST

START_TEST(a_completion_wakes_only_while_notifications_are_on)
{
	struct env_disk_op op;

	if (!setup())
		return;
	op = op_of(ENV_DISK_WRITE, fileno(file), 0);
	ring_notify(ring, false);
	ring_submit(ring, &op);
	ring_flush(ring);
	reap_until(1);
	ck_assert(!woken());
	for (unsigned i = 0; i < 2; i++) {
		struct pollfd pfd = { .fd = wake_fd, .events = POLLIN };

		op = op_of(i ? ENV_DISK_FLUSH : ENV_DISK_WRITE, fileno(file), 0);
		ring_submit(ring, &op);
		ring_notify(ring, true);
		ring_flush(ring);
		/* An interruption is a completion that ran on this thread; the next look sees it. */
		while (poll(&pfd, 1, 30000) < 0)
			ck_assert_int_eq(errno, EINTR);
		ck_assert(woken());
		ck_assert(ring_completions(ring));
		reap_until(2 + i);
		ring_notify(ring, false);
	}
	ring_free(ring);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring");
	TCase *tc = tcase_create("ring");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, nothing_is_submitted_without_a_flush_and_no_call_made_for_nothing);
	tcase_add_test(tc, the_kernel_holds_no_more_than_the_depth);
	tcase_add_test(tc, what_waits_for_room_is_not_handed_over_while_the_kernel_is_full);
	tcase_add_test(tc, a_completion_wakes_only_while_notifications_are_on);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
