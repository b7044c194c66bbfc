/* SPDX-License-Identifier: MIT */
/* The state directory: its lock, and identities that stay. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/daemon.h"

static char dir[256], text[512];
static int dir_fd;

static void setup(void)
{
	const char *top = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/identity.XXXXXX", top ? top : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	dir_fd = identity_open(dir, text, sizeof(text));
	ck_assert_msg(dir_fd >= 0, "%s", text);
}

static void teardown(void)
{
	static const char *const files[] = { "lock", "backing-a.uuid", "backing-b.uuid" };

	for (unsigned i = 0; i < ARRAY_LEN(files); i++)
		unlinkat(dir_fd, files[i], 0);
	close(dir_fd);
	rmdir(dir);
}

static void write_file(const char *name, const char *content)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
	close(fd);
}

START_TEST(an_identity_stays_and_differs_from_another)
{
	uuid_t a = { 0 }, again = { 0 }, b = { 0 };

	ck_assert_int_eq(identity_get(dir_fd, "a", a, text, sizeof(text)), 0);
	ck_assert_int_eq(identity_get(dir_fd, "b", b, text, sizeof(text)), 0);
	ck_assert_int_eq(identity_get(dir_fd, "a", again, text, sizeof(text)), 0);
	ck_assert_int_eq(uuid_compare(a, again), 0);
	ck_assert_int_ne(uuid_compare(a, b), 0);
	ck_assert_int_eq(uuid_is_null(a), 0);
}
END_TEST

static const char *const damaged[] = {
	"",
	"\n",
	"6f0c8a52-8d3f-4c43-9a6b-0f4a3f1f7f1\n",
	"6f0c8a52-8d3f-4c43-9a6b-0f4a3f1f7f10",
	"6f0c8a52-8d3f-4c43-9a6b-0f4a3f1f7f10\n6f0c8a52\n",
	"6f0c8a52x8d3f-4c43-9a6b-0f4a3f1f7f10\n",
};

/* A new one made up in its place would be another disk to every host. */
START_TEST(a_damaged_identity_is_refused_and_left_as_it_is)
{
	char back[128] = "";
	uuid_t uuid = { 0 };
	int fd;

	write_file("backing-a.uuid", damaged[_i]);
	ck_assert_int_eq(identity_get(dir_fd, "a", uuid, text, sizeof(text)), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(text, "backing \"a\": its identity file backing-a.uuid"));
	fd = openat(dir_fd, "backing-a.uuid", O_RDONLY);
	ck_assert_int_ge(read(fd, back, sizeof(back) - 1), 0);
	close(fd);
	ck_assert_str_eq(back, damaged[_i]);
}
END_TEST

START_TEST(a_good_identity_file_is_what_hosts_see)
{
	char back[37];
	uuid_t uuid = { 0 };

	write_file("backing-b.uuid", "6f0c8a52-8d3f-4c43-9a6b-0f4a3f1f7f10\n");
	ck_assert_int_eq(identity_get(dir_fd, "b", uuid, text, sizeof(text)), 0);
	uuid_unparse_lower(uuid, back);
	ck_assert_str_eq(back, "6f0c8a52-8d3f-4c43-9a6b-0f4a3f1f7f10");
}
END_TEST

/* yoked would wait for ever for who writes to them, or reads. */
START_TEST(pipes_among_the_files_are_not_waited_for)
{
	uuid_t uuid = { 0 };

	ck_assert_int_eq(mkfifoat(dir_fd, "backing-a.uuid", 0600), 0);
	ck_assert_int_eq(identity_get(dir_fd, "a", uuid, text, sizeof(text)), -EBADMSG);
	ck_assert_int_eq(mkfifoat(dir_fd, "backing-b.uuid.new", 0600), 0);
	ck_assert_int_eq(identity_get(dir_fd, "b", uuid, text, sizeof(text)), 0);
	ck_assert_int_eq(faccessat(dir_fd, "backing-b.uuid", F_OK, 0), 0);
}
END_TEST

START_TEST(an_array_is_known_by_the_uuid_it_was_last_seen_with)
{
	uuid_t first, second, back = { 0 };

	uuid_generate_random(first);
	uuid_generate_random(second);
	ck_assert_int_eq(identity_array(dir_fd, "r5", back, text, sizeof(text)), -ENOENT);
	ck_assert(uuid_is_null(back));
	ck_assert_int_eq(identity_array(dir_fd, "r5", first, text, sizeof(text)), 0);
	ck_assert_int_eq(identity_array(dir_fd, "r5", back, text, sizeof(text)), 0);
	ck_assert_int_eq(uuid_compare(back, first), 0);
	ck_assert_int_eq(identity_array(dir_fd, "r5", second, text, sizeof(text)), 0);
	uuid_clear(back);
	ck_assert_int_eq(identity_array(dir_fd, "r5", back, text, sizeof(text)), 0);
	ck_assert_int_eq(uuid_compare(back, second), 0);
	/* A damaged one is none, until the disks tell. */
	write_file("array-r5.uuid", "6f0c8a52-8d3f\n");
	uuid_clear(back);
	ck_assert_int_eq(identity_array(dir_fd, "r5", back, text, sizeof(text)), -ENOENT);
	ck_assert_int_eq(identity_array(dir_fd, "r5", first, text, sizeof(text)), 0);
	ck_assert_int_eq(identity_array(dir_fd, "r5", back, text, sizeof(text)), 0);
	ck_assert_int_eq(uuid_compare(back, first), 0);
}
END_TEST

START_TEST(a_directory_has_one_holder)
{
	ck_assert_int_lt(identity_open(dir, text, sizeof(text)), 0);
	ck_assert_ptr_nonnull(strstr(text, "held by another yoked"));
}
END_TEST

START_TEST(a_directory_that_cannot_be_had_is_named)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/no/such", dir);
	ck_assert_int_eq(identity_open(path, text, sizeof(text)), -ENOENT);
	ck_assert_ptr_nonnull(strstr(text, path));
	snprintf(path, sizeof(path), "%s/lock", dir);
	ck_assert_int_eq(identity_open(path, text, sizeof(text)), -ENOTDIR);
	ck_assert_ptr_nonnull(strstr(text, path));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("identity");
	TCase *tc = tcase_create("identity");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_identity_stays_and_differs_from_another);
	tcase_add_loop_test(tc, a_damaged_identity_is_refused_and_left_as_it_is, 0,
			    (int)ARRAY_LEN(damaged));
	tcase_add_test(tc, a_good_identity_file_is_what_hosts_see);
	tcase_add_test(tc, pipes_among_the_files_are_not_waited_for);
	tcase_add_test(tc, an_array_is_known_by_the_uuid_it_was_last_seen_with);
	tcase_add_test(tc, a_directory_has_one_holder);
	tcase_add_test(tc, a_directory_that_cannot_be_had_is_named);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
