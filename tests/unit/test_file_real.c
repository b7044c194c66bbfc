/* SPDX-License-Identifier: MIT */
/* The file leaf with real files on the production loop. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backstore/backing_int.h"
#include "core/loop.h"
#include "tests/fake/fake_blk.h"

#define SIZE (4 * MIB)
#define MANY 32

static uint8_t buf[SIZE] __attribute__((aligned(4096)));
static uint8_t again[SIZE] __attribute__((aligned(4096)));

static void quiet(enum log_level level, const char *line)
{
	(void)level, (void)line;
}

struct real {
	struct loop *loop;
	struct blk *blk;
	int fd;
	ino_t inode;
	char dir[32];
	char path[64];
	struct env_timer closed_yet;
	struct env_work after;
	struct io ios[MANY];
	struct iovec iov[MANY][3];
	int errors[MANY];
	unsigned left;
};

/* Where the temporary directory has no direct I/O, the page cache has to do. */
static void real_open(struct real *real, bool direct)
{
	struct backing_spec spec = {
		.name = "real",
		.driver = BACKING_FILE,
		.size_bytes = SIZE,
		.block_size = 4096,
		.direct = direct,
	};
	struct file_medium medium;
	char text[BACKING_TEXT_MAX];
	struct stat st;

	strcpy(real->dir, "/tmp/test_file.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(real->dir));
	snprintf(real->path, sizeof(real->path), "%s/image", real->dir);
	spec.path = real->path;
	if (file_probe(&spec, &medium, text) == -EINVAL)
		spec.direct = false;
	else
		close(medium.fd);
	ck_assert_msg(file_probe(&spec, &medium, text) == 0, "%s", text);
	ck_assert_int_eq(fstat(medium.fd, &st), 0);
	real->fd = medium.fd;
	real->inode = st.st_ino;
	real->loop = loop_new();
	ck_assert_ptr_nonnull(real->loop);
	real->blk = file_new(loop_env(real->loop), &spec, &medium, NULL);
	ck_assert_ptr_nonnull(real->blk);
}

static void real_done(struct io *io, void *arg)
{
	struct real *real = arg;

	real->errors[io - real->ios] = io->error;
	if (--real->left == 0)
		loop_stop(real->loop);
}

/* Io I: 12 KiB at I * 64 KiB, in three elements. */
static void real_rw(struct real *real, unsigned i, enum io_op op, uint8_t *memory, unsigned flags)
{
	for (unsigned j = 0; j < 3; j++)
		real->iov[i][j] = (struct iovec){ memory + i * 64 * KIB + j * 8192, 4096 };
	io_init(&real->ios[i], op, i * 64 * KIB, 12288, real->iov[i], 3);
	real->ios[i].flags = flags;
	real->left++;
	blk_submit(real->blk, &real->ios[i], real_done, real);
}

/* Closing is work on another thread: wait for the file to go, then for work begun after that. */
static void look_at_fd(struct env_timer *timer)
{
	struct real *real = container_of(timer, struct real, closed_yet);
	struct stat st;

	if (fstat(real->fd, &st) == 0 && st.st_ino == real->inode)
		env_timer_set(loop_env(real->loop), timer, NS_PER_MS);
	else
		env_work_submit(loop_env(real->loop), &real->after);
}

static void nothing(struct env_work *work)
{
	(void)work;
}

static void stop(struct env_work *work)
{
	loop_stop(container_of(work, struct real, after)->loop);
}

static void real_close(struct real *real)
{
	real->closed_yet.fn = look_at_fd;
	real->after.run = nothing;
	real->after.done = stop;
	blk_unref(real->blk);
	env_timer_set(loop_env(real->loop), &real->closed_yet, 0);
	loop_run(real->loop);
	loop_free(real->loop);
	unlink(real->path);
	rmdir(real->dir);
}

START_TEST(real_files_keep_what_was_written)
{
	static struct real real;

	real_open(&real, _i);
	fake_fill(buf, SIZE, 11);
	for (unsigned i = 0; i < MANY; i++)
		real_rw(&real, i, IO_WRITE, buf, i % 2 ? IO_FUA : 0);
	loop_run(real.loop);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_int_eq(real.errors[i], 0);
	for (unsigned i = 0; i < MANY; i++)
		real_rw(&real, i, IO_READ, again, 0);
	loop_run(real.loop);
	for (unsigned i = 0; i < MANY; i++)
		for (unsigned j = 0; j < 3; j++)
			ck_assert_mem_eq(buf + i * 64 * KIB + j * 8192,
					 again + i * 64 * KIB + j * 8192, 4096);
	real_close(&real);
}
END_TEST

START_TEST(a_real_file_cut_short_is_an_error_and_never_zeroes)
{
	static struct real real;
	struct iovec before[3];

	real_open(&real, _i);
	real_rw(&real, 0, IO_WRITE, buf, IO_FUA);
	loop_run(real.loop);
	ck_assert_int_eq(real.errors[0], 0);
	/* Inside the second element: a short read before the end of file is met. */
	ck_assert_int_eq(truncate(real.path, 4096 + 512), 0);
	real_rw(&real, 0, IO_READ, again, 0);
	memcpy(before, real.iov[0], sizeof(before));
	loop_run(real.loop);
	ck_assert_int_eq(real.errors[0], -EIO);
	ck_assert_mem_eq(before, real.iov[0], sizeof(before));
	ck_assert_int_eq(real.blk->state, BLK_FAILED);
	real_rw(&real, 1, IO_WRITE, buf, 0);
	loop_run(real.loop);
	ck_assert_int_eq(real.errors[1], -ENXIO);
	real_close(&real);
}
END_TEST

START_TEST(real_files_are_cleared_by_unmap_and_write_zeroes)
{
	static struct real real;
	unsigned which[] = { IO_UNMAP, IO_WRITE_ZEROES };

	real_open(&real, _i);
	fake_fill(buf, SIZE, 12);
	for (unsigned i = 0; i < 2; i++)
		real_rw(&real, i, IO_WRITE, buf, 0);
	loop_run(real.loop);
	for (unsigned i = 0; i < 2; i++) {
		if (which[i] == IO_UNMAP && !(real.blk->features & BLK_UNMAP))
			which[i] = IO_WRITE_ZEROES;
		io_init(&real.ios[i], which[i], i * 64 * KIB + 4096, 8192, NULL, 0);
		real.ios[i].flags = IO_FUA;
		real.left++;
		blk_submit(real.blk, &real.ios[i], real_done, &real);
	}
	loop_run(real.loop);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(real.errors[i], 0);
		real_rw(&real, i, IO_READ, again, 0);
	}
	loop_run(real.loop);
	for (unsigned i = 0; i < 2; i++) {
		uint8_t *at = again + i * 64 * KIB;

		ck_assert_mem_eq(at, buf + i * 64 * KIB, 4096);
		ck_assert(at[8192] == 0 && memcmp(at + 8192, at + 8193, 4095) == 0);
		ck_assert(at[16384] == 0 && memcmp(at + 16384, at + 16385, 4095) == 0);
	}
	real_close(&real);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("file_real");
	TCase *tc = tcase_create("file_real");
	SRunner *runner = srunner_create(suite);
	int failed;

	log_redirect(quiet);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, real_files_keep_what_was_written, 0, 2);
	tcase_add_loop_test(tc, a_real_file_cut_short_is_an_error_and_never_zeroes, 0, 2);
	tcase_add_loop_test(tc, real_files_are_cleared_by_unmap_and_write_zeroes, 0, 2);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
