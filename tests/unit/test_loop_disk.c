/* SPDX-License-Identifier: MIT */
/* The loop with real files, by both disk engines. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/fake/loop_rig.h"

static const enum loop_engine engines[] = { LOOP_ENGINE_RING, LOOP_ENGINE_THREADS };

struct call {
	struct env_disk_op op;
	struct iovec iov[4];
	unsigned serial; /* when it was done */
};

static unsigned serials;

static void call_done(struct env_disk_op *op)
{
	container_of(op, struct call, op)->serial = ++serials;
	ran_one();
}

static void prepare(struct call *call, enum env_disk_kind kind, uint64_t offset, void *data,
		    uint64_t length)
{
	*call = (struct call){
		.op = { .kind = kind,
			.fd = fd,
			.offset = offset,
			.length = length,
			.iov = call->iov,
			.iov_count = data ? 1 : 0,
			.done = call_done },
		.iov = { { data, length } },
	};
}

static int run_op(struct call *call)
{
	env_disk_submit(env, &call->op);
	ck_assert_uint_eq(call->serial, 0);
	run_until(1);
	return call->op.result;
}

static int simple(enum env_disk_kind kind, uint64_t offset, void *data, uint64_t length)
{
	struct call call;

	prepare(&call, kind, offset, data, length);
	return run_op(&call);
}

START_TEST(what_is_written_is_read_back_in_pieces)
{
	char data[] = "0123456789", back[4][4];
	struct call call;

	if (!start(engines[_i]))
		return;
	ck_assert_int_eq(simple(ENV_DISK_WRITE, 100, data, 10), 0);
	ck_assert_int_eq(simple(ENV_DISK_FLUSH, 0, NULL, 0), 0);
	prepare(&call, ENV_DISK_READ, 101, back, 9);
	for (unsigned i = 0; i < 4; i++)
		call.iov[i] = (struct iovec){ back[i], i == 1 ? 0 : 3 };
	call.op.iov_count = 4;
	ck_assert_int_eq(run_op(&call), 0);
	ck_assert_mem_eq(back[0], "123", 3);
	ck_assert_mem_eq(back[2], "456", 3);
	ck_assert_mem_eq(back[3], "789", 3);
	prepare(&call, ENV_DISK_WRITE, 0, data, 4);
	call.op.fua = true;
	ck_assert_int_eq(run_op(&call), 0);
	ck_assert_int_eq(simple(ENV_DISK_READ, 0, back[0], 4), 0);
	ck_assert_mem_eq(back[0], "0123", 4);
	ck_assert_int_eq(simple(ENV_DISK_READ, 0, NULL, 0), 0);
	stop();
}
END_TEST

START_TEST(a_read_past_the_end_of_the_file_has_no_data)
{
	char data[1000] = "x", back[2048];

	if (!start(engines[_i]))
		return;
	ck_assert_int_eq(simple(ENV_DISK_WRITE, 0, data, 1000), 0);
	ck_assert_int_eq(simple(ENV_DISK_READ, 0, back, 1000), 0);
	ck_assert_int_eq(simple(ENV_DISK_READ, 0, back, 1001), -ENODATA);
	ck_assert_int_eq(simple(ENV_DISK_READ, 500, back, 2048), -ENODATA);
	ck_assert_int_eq(simple(ENV_DISK_READ, 1000, back, 1), -ENODATA);
	stop();
}
END_TEST

START_TEST(a_direct_read_past_an_odd_end_has_no_data)
{
	char data[1000] = "x";
	void *back;

	if (!start(engines[_i]))
		return;
	back = aligned_alloc(4096, 8192);
	ck_assert_int_eq(simple(ENV_DISK_WRITE, 0, data, 1000), 0);
	close(fd);
	fd = open(path, O_RDWR | O_DIRECT);
	if (fd >= 0)
		ck_assert_int_eq(simple(ENV_DISK_READ, 0, back, 8192), -ENODATA);
	else
		ck_assert_int_eq(errno, EINVAL);
	free(back);
	stop();
}
END_TEST

START_TEST(errors_of_the_file_come_through)
{
	char data[16] = "";
	int read_only;

	if (!start(engines[_i]))
		return;
	read_only = open(path, O_RDONLY);
	close(fd);
	fd = read_only;
	ck_assert_int_eq(simple(ENV_DISK_WRITE, 0, data, 16), -EBADF);
	ck_assert_int_eq(simple(ENV_DISK_PUNCH, 0, NULL, 16), -EBADF);
	stop();
}
END_TEST

START_TEST(punch_and_zero_keep_the_size_or_say_that_they_cannot)
{
	static const enum env_disk_kind kinds[] = { ENV_DISK_PUNCH, ENV_DISK_ZERO };
	static uint8_t data[65536], back[65536];
	struct stat st;

	if (!start(engines[_i]))
		return;
	for (unsigned k = 0; k < ARRAY_LEN(kinds); k++) {
		int result;

		memset(data, 0xaa, sizeof(data));
		ck_assert_int_eq(simple(ENV_DISK_WRITE, 0, data, sizeof(data)), 0);
		result = simple(kinds[k], 4096, NULL, sizeof(data));
		if (result == -EOPNOTSUPP)
			continue;
		ck_assert_int_eq(result, 0);
		ck_assert_int_eq(simple(ENV_DISK_READ, 0, back, sizeof(back)), 0);
		memset(data + 4096, 0, sizeof(data) - 4096);
		ck_assert_mem_eq(back, data, sizeof(back));
		ck_assert_int_eq(fstat(fd, &st), 0);
		ck_assert_int_eq(st.st_size, sizeof(data));
	}
	close(fd);
	fd = open("/dev/null", O_RDWR);
	ck_assert_int_eq(simple(ENV_DISK_ZERO, 0, NULL, 4096), -EOPNOTSUPP);
	stop();
}
END_TEST

START_TEST(more_elements_than_one_call_takes_are_all_moved)
{
	enum { COUNT = 2500, SIZE = 16 };
	static uint8_t data[COUNT * SIZE], back[COUNT * SIZE];
	static struct iovec iov[COUNT];
	struct call call;

	if (!start(engines[_i]))
		return;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + i / 256);
	for (unsigned pass = 0; pass < 2; pass++) {
		prepare(&call, pass ? ENV_DISK_READ : ENV_DISK_WRITE, 8, data, sizeof(data));
		for (unsigned i = 0; i < COUNT; i++)
			iov[i] = (struct iovec){ (pass ? back : data) + i * SIZE, SIZE };
		call.op.iov = iov;
		call.op.iov_count = COUNT;
		ck_assert_int_eq(run_op(&call), 0);
	}
	ck_assert_mem_eq(back, data, sizeof(data));
	stop();
}
END_TEST

START_TEST(what_does_not_fit_the_engine_waits_and_the_urgent_goes_first)
{
	enum { COUNT = 20 * DEPTH };
	static struct call calls[COUNT], urgent;
	static uint8_t data[COUNT], back[COUNT], late[1];

	if (!start(engines[_i]))
		return;
	for (unsigned i = 0; i < COUNT; i++) {
		data[i] = (uint8_t)(i + 1);
		prepare(&calls[i], ENV_DISK_WRITE, i, &data[i], 1);
		env_disk_submit(env, &calls[i].op);
	}
	prepare(&urgent, ENV_DISK_WRITE, COUNT, late, 1);
	urgent.op.nowait_lane = true;
	env_disk_submit(env, &urgent.op);
	run_until(COUNT + 1);
	for (unsigned i = 0; i < COUNT; i++)
		ck_assert(calls[i].serial > 0 && calls[i].op.result == 0);
	/* At most the first fill of the engine, and what finished with it, was before it. */
	for (unsigned i = 4 * DEPTH; i < COUNT; i++)
		ck_assert_uint_lt(urgent.serial, calls[i].serial);
	ck_assert_int_eq(simple(ENV_DISK_READ, 0, back, COUNT), 0);
	ck_assert_mem_eq(back, data, COUNT);
	stop();
}
END_TEST

START_TEST(operations_submitted_by_completions_are_served_too)
{
	static struct call chain[50];
	struct loop_stats stats;
	char byte[1];

	if (!start(engines[_i]))
		return;
	for (unsigned i = 0; i < ARRAY_LEN(chain); i++)
		ck_assert_int_eq(simple(ENV_DISK_WRITE, i, memset(byte, (int)i, 1), 1), 0);
	loop_stats(loop, &stats);
	ck_assert_uint_eq(stats.disk_ops, 50);
	ck_assert_uint_ge(stats.turns, 1);
	ck_assert_uint_ge(stats.syscalls, stats.turns / 2);
	stop();
}
END_TEST

static void *run_on_thread(void *arg)
{
	(void)arg;
	loop_run(loop);
	return NULL;
}

START_TEST(a_loop_may_be_made_on_one_thread_and_run_on_another)
{
	struct call call;
	char data[4] = "abc";
	pthread_t thread;

	if (!start(engines[_i]))
		return;
	prepare(&call, ENV_DISK_WRITE, 0, data, 4);
	env_disk_submit(env, &call.op);
	wanted = 1;
	ck_assert_int_eq(pthread_create(&thread, NULL, run_on_thread, NULL), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(call.op.result, 0);
	ck_assert_uint_gt(call.serial, 0);
	stop();
}
END_TEST

/* This process only: every test is one of its own. */
static void refuse_io_uring(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_LEN(rules), rules };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

START_TEST(where_io_uring_is_refused_threads_do_its_work)
{
	char data[] = "0123", back[4];

	refuse_io_uring();
	log_redirect(quiet);
	errno = 0;
	ck_assert_ptr_null(loop_new_with(LOOP_ENGINE_RING, DEPTH));
	ck_assert_int_eq(errno, EPERM);
	ck_assert(start(LOOP_ENGINE_AUTO));
	ck_assert_str_eq(loop_disk_engine(loop), "threads");
	ck_assert_int_eq(simple(ENV_DISK_WRITE, 0, data, 4), 0);
	ck_assert_int_eq(simple(ENV_DISK_READ, 0, back, 4), 0);
	ck_assert_mem_eq(back, data, 4);
	stop();
}
END_TEST

int main(void)
{
	const int both = (int)ARRAY_LEN(engines);
	Suite *suite = suite_create("loop disk");
	TCase *tc = tcase_create("loop disk");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, what_is_written_is_read_back_in_pieces, 0, both);
	tcase_add_loop_test(tc, a_read_past_the_end_of_the_file_has_no_data, 0, both);
	tcase_add_loop_test(tc, a_direct_read_past_an_odd_end_has_no_data, 0, both);
	tcase_add_loop_test(tc, errors_of_the_file_come_through, 0, both);
	tcase_add_loop_test(tc, punch_and_zero_keep_the_size_or_say_that_they_cannot, 0, both);
	tcase_add_loop_test(tc, more_elements_than_one_call_takes_are_all_moved, 0, both);
	tcase_add_loop_test(tc, what_does_not_fit_the_engine_waits_and_the_urgent_goes_first, 0,
			    both);
	tcase_add_loop_test(tc, operations_submitted_by_completions_are_served_too, 0, both);
	tcase_add_loop_test(tc, a_loop_may_be_made_on_one_thread_and_run_on_another, 0, both);
	tcase_add_test(tc, where_io_uring_is_refused_threads_do_its_work);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
