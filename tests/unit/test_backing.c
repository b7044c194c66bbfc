/* SPDX-License-Identifier: MIT */
/* Opening backings: what each wrong spec says, what is created, and waiting for a holder. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backstore/backing_int.h"
#include "backstore/fault.h"
#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_env.h"

static struct env *env;
static char dir[] = "/tmp/test_backing.XXXXXX";
static char path[64];

/* What backing_open() ended with. */
static struct blk *blk;
static int error;
static char text[1024];
static unsigned calls;

static void quiet(enum log_level level, const char *line)
{
	(void)level, (void)line;
}

static void setup(void)
{
	log_redirect(quiet);
	env = fake_env_new(1);
	strcpy(dir, "/tmp/test_backing.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/image", dir);
	blk = NULL;
	calls = 0;
}

static void teardown(void)
{
	if (blk)
		blk_unref(blk);
	fake_env_run(env);
	fake_env_free(env);
	unlink(path);
	rmdir(path);
	rmdir(dir);
}

static void opened(void *arg, struct blk *got, int err, const char *why)
{
	ck_assert_ptr_eq(arg, &calls);
	calls++;
	blk = got;
	error = err;
	snprintf(text, sizeof(text), "%s", why);
}

static struct backing_spec file_spec(void)
{
	return (struct backing_spec){
		.name = "image",
		.driver = BACKING_FILE,
		.path = path,
		.block_size = 512,
		.wait_ns = 1,
	};
}

static int try_open(const struct backing_spec *spec)
{
	backing_open(env, spec, opened, &calls);
	ck_assert_uint_eq(calls, 0);
	fake_env_advance(env, NS_PER_S);
	ck_assert_uint_eq(calls, 1);
	ck_assert_int_eq(blk != NULL, error == 0);
	calls = 0;
	return error;
}

static void put_file(const char *name, uint64_t size)
{
	int fd = open(name, O_CREAT | O_RDWR, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
	close(fd);
}

/* EXPECT without `backing "image": `; "%s" in it is the path. */
static void expect_refusal(const struct backing_spec *spec, int err, const char *expect)
{
	char whole[1024] = "backing \"image\": ";
	const char *at = strstr(expect, "%s");

	ck_assert_int_eq(try_open(spec), err);
	if (at)
		snprintf(whole + strlen(whole), sizeof(whole) - strlen(whole), "%.*s%s%s",
			 (int)(at - expect), expect, path, at + 2);
	else
		strcat(whole, expect);
	ck_assert_str_eq(text, whole);
	ck_assert_ptr_null(strchr(text, '\n'));
}

/* --- specs that are wrong by themselves --- */

static const struct {
	struct backing_spec spec;
	const char *text;
} wrong[] = {
	{ { .driver = BACKING_RAM, .size_bytes = 1000, .block_size = 1000 },
	  "block_size is 1000. Use 512 or 4096" },
	{ { .driver = BACKING_RAM, .size_bytes = 4096, .block_size = 4096, .physical_block = 512 },
	  "physical_block is 512. Use a power of two from 4096 to 65536, or leave it out" },
	{ { .driver = BACKING_NULL, .size_bytes = 4096, .block_size = 512, .physical_block = 1536 },
	  "physical_block is 1536. Use a power of two from 512 to 65536, or leave it out" },
	{ { .driver = BACKING_RAM, .size_bytes = 4608, .block_size = 4096 },
	  "size is 4608 bytes, not a multiple of block_size 4096. Round it" },
	{ { .driver = BACKING_NULL, .size_bytes = UINT64_MAX - 511, .block_size = 512 },
	  "size is 18446744073709551104 bytes. Use at most 8 EiB - 1" },
	{ { .driver = BACKING_RAM, .block_size = 512 }, "driver \"ram\" needs a size. Give one" },
	{ { .driver = BACKING_NULL, .block_size = 512 }, "driver \"null\" needs a size. Give one" },
	{ { .driver = BACKING_FILE, .block_size = 512 }, "driver \"file\" needs a path. Give one" },
	{ { .driver = BACKING_FILE, .path = "", .block_size = 512 },
	  "driver \"file\" needs a path. Give one" },
};

START_TEST(a_spec_that_is_wrong_by_itself_says_so_in_one_line)
{
	struct backing_spec spec = wrong[_i].spec;

	spec.name = "image";
	expect_refusal(&spec, -EINVAL, wrong[_i].text);
}
END_TEST

START_TEST(memory_that_cannot_be_had_is_told)
{
	struct backing_spec spec = {
		.name = "image",
		.driver = BACKING_RAM,
		.size_bytes = 1ull << 62,
		.block_size = 512,
	};

	expect_refusal(&spec, -ENOMEM,
		       "4611686018427387904 bytes of memory: Cannot allocate memory. Give a "
		       "smaller size");
}
END_TEST

/* --- files that do not do --- */

START_TEST(a_missing_file_is_told_with_its_remedy)
{
	struct backing_spec spec = file_spec();

	expect_refusal(&spec, -ENOENT, "%s: no such file. Create it or give a size");
	spec.read_only = true;
	spec.size_bytes = MIB;
	expect_refusal(&spec, -ENOENT, "%s: no such file. Create it");
	ck_assert_int_lt(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_missing_directory_is_told)
{
	struct backing_spec spec = file_spec();
	char deeper[96];

	snprintf(deeper, sizeof(deeper), "%s/none/image", dir);
	strcpy(path, deeper);
	spec.size_bytes = MIB;
	expect_refusal(&spec, -ENOENT, "%s: no such directory. Create it");
}
END_TEST

static void make_directory(void)
{
	ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void make_pipe(void)
{
	ck_assert_int_eq(mkfifo(path, 0600), 0);
}

static void make_empty(void)
{
	put_file(path, 0);
}

static void make_tiny(void)
{
	put_file(path, 100);
}

static void make_odd(void)
{
	put_file(path, 10000);
}

static void make_fitting(void)
{
	put_file(path, MIB);
}

static void use_null_device(void)
{
	strcpy(path, "/dev/null");
}

static void use_file_as_directory(void)
{
	strcpy(path, "/etc/passwd/image");
}

static const struct {
	void (*make)(void);
	uint64_t size_bytes;
	int error;
	const char *text;
} unfit[] = {
	{ make_directory, 0, -EINVAL, "%s: is a directory. Name a regular file or a block device" },
	{ make_pipe, 0, -EINVAL, "%s: is a pipe. Name a regular file or a block device" },
	{ use_null_device, 0, -EINVAL,
	  "%s: is a character device. Name a regular file or a block device" },
	{ use_file_as_directory, 0, -ENOTDIR,
	  "%s: Not a directory. Correct the path or the cause" },
	{ make_empty, 0, -EINVAL, "%s: is empty. Give a size, or fill it" },
	{ make_tiny, 0, -EINVAL, "%s: has 100 bytes, less than a block of 512. Make it longer" },
	{ make_odd, 0, -EINVAL,
	  "%s: has 10000 bytes, not a multiple of block_size 512. Make it 10240 long" },
	{ make_fitting, 2 * MIB, -EINVAL,
	  "%s: has 1048576 bytes, size says 2097152. Correct size, or leave it out" },
};

START_TEST(a_path_that_does_not_do_says_why_and_what_to_do)
{
	struct backing_spec spec = file_spec();

	spec.size_bytes = unfit[_i].size_bytes;
	unfit[_i].make();
	expect_refusal(&spec, unfit[_i].error, unfit[_i].text);
	if (strncmp(path, dir, strlen(dir)) != 0)
		path[0] = '\0'; /* not ours to remove */
}
END_TEST

START_TEST(no_permission_is_told)
{
	struct backing_spec spec = file_spec();

	put_file(path, MIB);
	ck_assert_int_eq(chmod(path, 0), 0);
	ck_assert_int_eq(chmod(dir, 0755), 0);
	/* Root may everything: be nobody meanwhile. */
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	expect_refusal(&spec, -EACCES,
		       "%s: no permission. Change its owner or mode, or yoked's user");
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

START_TEST(a_size_beyond_what_the_file_system_can_leaves_nothing_behind)
{
	struct backing_spec spec = file_spec();
	const struct rlimit limit = { GIB, GIB };

	/* Some file systems (tmpfs, XFS) can have anything: then this does not. */
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	spec.size_bytes = 1ull << 62;
	ck_assert_int_lt(try_open(&spec), 0);
	ck_assert_ptr_nonnull(strstr(text, "cannot be made 4611686018427387904 bytes long: "));
	ck_assert_ptr_nonnull(strstr(text, "Give a smaller size, or another path"));
	ck_assert_int_lt(access(path, F_OK), 0);
}
END_TEST

/* --- in use --- */

START_TEST(a_file_opened_twice_names_this_yoked)
{
	struct backing_spec spec = file_spec();
	struct blk *first;

	spec.size_bytes = MIB;
	ck_assert_int_eq(try_open(&spec), 0);
	first = blk;
	expect_refusal(&spec, -EBUSY,
		       "%s: in use by another backing of this yoked. Stop it, or name another "
		       "path");
	blk_unref(first);
	fake_env_run(env);
	ck_assert_int_eq(try_open(&spec), 0);
}
END_TEST

/* A process that holds the file until it is killed. */
static pid_t start_holder(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		int fd = open(path, O_RDWR);

		if (flock(fd, LOCK_EX) == 0 && write(ready[1], "x", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void stop_holder(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

START_TEST(who_holds_the_file_is_named_after_a_bounded_wait)
{
	struct backing_spec spec = file_spec();
	char expect[256];
	uint64_t began_ns;
	pid_t pid;

	put_file(path, MIB);
	pid = start_holder();
	snprintf(expect, sizeof(expect),
		 "backing \"image\": %s: in use by test_backing, pid %d. Stop it, or name another "
		 "path",
		 path, (int)pid);
	spec.wait_ns = 3 * NS_PER_S;
	began_ns = env_now_ns(env);
	backing_open(env, &spec, opened, &calls);
	fake_env_advance(env, 2900 * NS_PER_MS);
	ck_assert_uint_eq(calls, 0);
	fake_env_advance(env, 200 * NS_PER_MS);
	ck_assert_uint_eq(calls, 1);
	ck_assert_uint_le(env_now_ns(env) - began_ns, 3200 * NS_PER_MS);
	ck_assert_int_eq(error, -EBUSY);
	ck_assert_str_eq(text, expect);
	stop_holder(pid);
}
END_TEST

START_TEST(a_file_given_up_while_we_wait_is_opened)
{
	struct backing_spec spec = file_spec();
	pid_t pid;

	put_file(path, MIB);
	pid = start_holder();
	spec.wait_ns = 0; /* the default */
	backing_open(env, &spec, opened, &calls);
	fake_env_advance(env, BACKING_WAIT_NS / 2);
	ck_assert_uint_eq(calls, 0);
	stop_holder(pid);
	fake_env_advance(env, 200 * NS_PER_MS);
	ck_assert_uint_eq(calls, 1);
	ck_assert_int_eq(error, 0);
	ck_assert_ptr_nonnull(blk);
}
END_TEST

/* --- what is right --- */

START_TEST(a_missing_file_with_a_size_is_created_sparse_and_keeps_its_data)
{
	struct backing_spec spec = file_spec();
	uint8_t in[8192], out[8192];
	struct stat st;
	int fd;

	spec.size_bytes = 64 * MIB;
	ck_assert_int_eq(try_open(&spec), 0);
	ck_assert_uint_eq(blk->size_bytes, 64 * MIB);
	ck_assert_uint_eq(blk->block_size, 512);
	ck_assert_uint_eq(blk->physical_block, 4096);
	ck_assert_str_eq(blk->name, "image");
	ck_assert_str_eq(blk->ops->driver, "file");
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_size, 64 * MIB);
	ck_assert_int_lt(st.st_blocks, 64);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	fd = open(path, O_RDWR);
	fake_fill(in, sizeof(in), 1);
	ck_assert_int_eq(pwrite(fd, in, sizeof(in), 4096), sizeof(in));
	blk_unref(blk);
	fake_env_run(env);
	ck_assert_int_eq(try_open(&spec), 0);
	ck_assert_int_eq(pread(fd, out, sizeof(out), 4096), sizeof(out));
	ck_assert_mem_eq(in, out, sizeof(in));
	close(fd);
}
END_TEST

START_TEST(a_creation_that_was_cut_off_is_finished)
{
	struct backing_spec spec = file_spec();

	put_file(path, 0);
	spec.size_bytes = MIB;
	ck_assert_int_eq(try_open(&spec), 0);
	ck_assert_uint_eq(blk->size_bytes, MIB);
}
END_TEST

static const struct {
	bool direct;
	bool read_only;
	uint32_t block_size, physical_block, physical_expect;
} goods[] = {
	{ false, false, 512, 0, 4096 },    { false, true, 512, 512, 512 },
	{ false, false, 4096, 0, 4096 },   { false, false, 4096, 65536, 65536 },
	{ true, false, 4096, 8192, 8192 }, { true, true, 4096, 0, 4096 },
};

START_TEST(a_good_file_has_the_limits_of_its_spec)
{
	struct backing_spec spec = file_spec();

	put_file(path, 3 * 4096);
	spec.direct = goods[_i].direct;
	spec.read_only = goods[_i].read_only;
	spec.block_size = goods[_i].block_size;
	spec.physical_block = goods[_i].physical_block;
	if (try_open(&spec) == -EINVAL && spec.direct) {
		ck_assert_ptr_nonnull(strstr(text, "Set direct = false"));
		return; /* a file system without direct I/O */
	}
	ck_assert_msg(error == 0, "%s", text);
	ck_assert_uint_eq(blk->size_bytes, 3 * 4096);
	ck_assert_uint_eq(blk->block_size, goods[_i].block_size);
	ck_assert_uint_eq(blk->physical_block, goods[_i].physical_expect);
	ck_assert_int_eq(!!(blk->features & BLK_READ_ONLY), goods[_i].read_only);
	ck_assert(blk->features & BLK_FUA && blk->features & BLK_VOLATILE);
	ck_assert_uint_le(blk->mem_align, spec.block_size);
}
END_TEST

START_TEST(ram_and_null_open_too_and_faults_come_on_top_if_enabled)
{
	struct backing_spec spec = {
		.name = "scratch",
		.driver = _i % 2 ? BACKING_NULL : BACKING_RAM,
		.size_bytes = MIB,
		.block_size = 4096,
		.faults = _i / 2,
	};

	ck_assert_int_eq(try_open(&spec), 0);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(fault_of(blk) != NULL, _i / 2);
	ck_assert_uint_eq(blk->size_bytes, MIB);
	ck_assert_uint_eq(blk->refs, 1);
}
END_TEST

/* --- block devices, where loop devices can be made --- */

/* -1: not here. The device is PATH afterwards. */
static int attach_loop(uint32_t sector)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = {
		.block_size = sector,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR, /* gone with the last close, even a crash */
	};
	int n = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
	char name[32];
	int fd = -1, file;

	put_file(path, MIB);
	snprintf(name, sizeof(name), "/dev/loop%d", n);
	if (n >= 0)
		fd = open(name, O_RDWR | O_CLOEXEC);
	file = open(path, O_RDWR | O_CLOEXEC);
	config.fd = (uint32_t)file;
	if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &config) < 0) {
		close(fd);
		fd = -1;
	}
	close(file);
	close(control);
	if (fd >= 0) {
		unlink(path);
		strcpy(path, name);
	}
	return fd;
}

START_TEST(a_block_device_is_measured_and_held_alone)
{
	int fd = attach_loop(4096);
	struct backing_spec spec = file_spec();
	char expect[256];

	if (fd < 0)
		return;
	snprintf(
		expect, sizeof(expect),
		"%s: direct I/O here needs blocks of 4096 bytes, block_size is 512. Set block_size "
		"= 4096, or direct = false",
		path);
	spec.direct = true;
	expect_refusal(&spec, -EINVAL, expect);
	spec.block_size = 4096;
	spec.size_bytes = 2 * MIB;
	expect_refusal(&spec, -EINVAL,
		       "%s: a block device of 1048576 bytes, size says 2097152. Leave size out");
	spec.size_bytes = 0;
	ck_assert_msg(try_open(&spec) == 0, "%s", text);
	ck_assert_uint_eq(blk->size_bytes, MIB);
	ck_assert_uint_eq(blk->physical_block, 4096);
	ck_assert_int_lt(open(path, O_RDWR | O_EXCL), 0);
	ck_assert_int_eq(errno, EBUSY);
	blk_unref(blk);
	fake_env_run(env);
	blk = NULL;
	close(fd);
	path[0] = '\0';
}
END_TEST

START_TEST(a_block_device_that_somebody_has_is_refused)
{
	int fd = attach_loop(512), held;
	struct backing_spec spec = file_spec();

	if (fd < 0)
		return;
	held = open(path, O_RDWR | O_EXCL);
	ck_assert_int_ge(held, 0);
	expect_refusal(&spec, -EBUSY,
		       "%s: in use by another program. Stop it, or name another path");
	close(held);
	close(fd);
	path[0] = '\0';
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("backing");
	TCase *tc = tcase_create("backing");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, a_spec_that_is_wrong_by_itself_says_so_in_one_line, 0,
			    ARRAY_LEN(wrong));
	tcase_add_test(tc, memory_that_cannot_be_had_is_told);
	tcase_add_test(tc, a_missing_file_is_told_with_its_remedy);
	tcase_add_test(tc, a_missing_directory_is_told);
	tcase_add_loop_test(tc, a_path_that_does_not_do_says_why_and_what_to_do, 0,
			    ARRAY_LEN(unfit));
	tcase_add_test(tc, no_permission_is_told);
	tcase_add_test(tc, a_size_beyond_what_the_file_system_can_leaves_nothing_behind);
	tcase_add_test(tc, a_file_opened_twice_names_this_yoked);
	tcase_add_test(tc, who_holds_the_file_is_named_after_a_bounded_wait);
	tcase_add_test(tc, a_file_given_up_while_we_wait_is_opened);
	tcase_add_test(tc, a_missing_file_with_a_size_is_created_sparse_and_keeps_its_data);
	tcase_add_test(tc, a_creation_that_was_cut_off_is_finished);
	tcase_add_loop_test(tc, a_good_file_has_the_limits_of_its_spec, 0, ARRAY_LEN(goods));
	tcase_add_loop_test(tc, ram_and_null_open_too_and_faults_come_on_top_if_enabled, 0, 4);
	tcase_add_test(tc, a_block_device_is_measured_and_held_alone);
	tcase_add_test(tc, a_block_device_that_somebody_has_is_refused);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
