/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/whole.h"

static char dir[200], name[256], beside[280];
static struct bench_fault fault;

static void setup(void)
{
	snprintf(dir, sizeof(dir), "%s/whole-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/file", dir);
	snprintf(beside, sizeof(beside), "%s.%d.part", name, (int)getpid());
}

static void teardown(void)
{
	ck_assert_int_ne(access(beside, F_OK), 0);
	unlink(name);
	ck_assert_int_eq(rmdir(dir), 0);
}

static int put_text(FILE *f, const void *text)
{
	return fputs(text, f) < 0 ? -EIO : 0;
}

static int put_half(FILE *f, const void *text)
{
	fputs(text, f);
	return -ENODATA;
}

static void expect_content(const char *wanted)
{
	char content[64] = "";
	FILE *f = fopen(name, "r");

	ck_assert_ptr_nonnull(f);
	ck_assert(fgets(content, sizeof(content), f) || !*wanted);
	fclose(f);
	ck_assert_str_eq(content, wanted);
}

START_TEST(a_file_has_what_was_put_and_replaces_the_one_before)
{
	ck_assert_int_eq(whole_write(name, put_text, "first, longer", &fault), 0);
	expect_content("first, longer");
	ck_assert_int_eq(whole_write(name, put_text, "second", &fault), 0);
	expect_content("second");
}
END_TEST

START_TEST(what_fails_in_the_middle_leaves_the_file_before)
{
	ck_assert_int_eq(whole_write(name, put_text, "first", &fault), 0);
	ck_assert_int_eq(whole_write(name, put_half, "sec", &fault), -ENODATA);
	ck_assert_ptr_nonnull(strstr(fault.text, "/file: No data available. Name a file"));
	expect_content("first");
}
END_TEST

START_TEST(a_place_that_is_not_there_is_refused)
{
	char gone[300];

	snprintf(gone, sizeof(gone), "%s/gone/file", dir);
	ck_assert_int_eq(whole_write(gone, put_text, "x", &fault), -ENOENT);
	ck_assert_ptr_nonnull(strstr(fault.text, "No such file or directory"));
}
END_TEST

START_TEST(a_folder_is_not_replaced)
{
	ck_assert_int_eq(whole_write(dir, put_text, "x", &fault), -EISDIR);
	ck_assert_int_eq(access(dir, F_OK), 0);
	snprintf(beside, sizeof(beside), "%s.%d.part", dir, (int)getpid());
}
END_TEST

START_TEST(a_full_disk_is_an_error)
{
	char *much = malloc(1 << 20);
	struct stat st;

	ck_assert_ptr_nonnull(much);
	memset(much, 'x', (1 << 20) - 1);
	much[(1 << 20) - 1] = '\0';
	/* By a link: a program that is wrong shall not harm the device. */
	ck_assert_int_eq(symlink("/dev/full", name), 0);
	ck_assert_int_eq(whole_write(name, put_text, much, &fault), -EIO);
	ck_assert_int_eq(whole_write(name, put_text, "x", &fault), -ENOSPC);
	ck_assert_ptr_nonnull(strstr(fault.text, "No space left"));
	ck_assert_int_eq(lstat(name, &st), 0);
	ck_assert(S_ISLNK(st.st_mode));
	free(much);
}
END_TEST

/* As root, --json /dev/null made a file of it. */
START_TEST(a_pipe_and_what_a_link_names_are_written_through)
{
	char got[16] = "", other[300];
	struct stat st;
	int fd;

	ck_assert_int_eq(mkfifo(name, 0600), 0);
	fd = open(name, O_RDONLY | O_NONBLOCK);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(whole_write(name, put_text, "through", &fault), 0);
	ck_assert_int_eq(read(fd, got, sizeof(got) - 1), 7);
	ck_assert_str_eq(got, "through");
	close(fd);
	ck_assert_int_eq(lstat(name, &st), 0);
	ck_assert(S_ISFIFO(st.st_mode));

	snprintf(other, sizeof(other), "%s/other", dir);
	unlink(name);
	ck_assert_int_eq(symlink("other", name), 0);
	ck_assert_int_eq(whole_write(name, put_text, "linked", &fault), 0);
	expect_content("linked");
	ck_assert_int_eq(lstat(name, &st), 0);
	ck_assert(S_ISLNK(st.st_mode));
	ck_assert_int_eq(unlink(other), 0);
}
END_TEST

/* A pipe there would be waited for, a link followed. */
START_TEST(what_lies_where_it_is_written_first_is_not_touched)
{
	struct stat st;

	ck_assert_int_eq(mkfifo(beside, 0600), 0);
	ck_assert_int_eq(whole_write(name, put_text, "x", &fault), -EEXIST);
	ck_assert_int_eq(lstat(beside, &st), 0);
	ck_assert(S_ISFIFO(st.st_mode));
	ck_assert_int_eq(unlink(beside), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("whole");
	TCase *tc = tcase_create("whole");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_file_has_what_was_put_and_replaces_the_one_before);
	tcase_add_test(tc, what_fails_in_the_middle_leaves_the_file_before);
	tcase_add_test(tc, a_place_that_is_not_there_is_refused);
	tcase_add_test(tc, a_folder_is_not_replaced);
	tcase_add_test(tc, a_full_disk_is_an_error);
	tcase_add_test(tc, a_pipe_and_what_a_link_names_are_written_through);
	tcase_add_test(tc, what_lies_where_it_is_written_first_is_not_touched);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
