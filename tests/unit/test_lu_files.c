/* SPDX-License-Identifier: MIT */
/* Blobs in the state directory: what comes back, what is not trusted, what a failure leaves. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/crc32c.h"
#include "core/event.h"
#include "core/log.h"
#include "core/wire.h"
#include "target/lu_files.h"
#include "tests/fake/fake_env.h"

#define FILE_NAME "backing-disk.mode"
#define TEMP_NAME FILE_NAME ".new"

static const uuid_t uuid = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
static const uint8_t saved[40] = "forty bytes that are worth their keeping";

static char dir[256], last[LOG_LINE_MAX];
static int dir_fd;
static struct env *env;
static struct lu_files *files;

static void keep(enum log_level level, const char *line)
{
	(void)level;
	strcpy(last, line);
}

static void setup(void)
{
	const char *top = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/lu-files.XXXXXX", top ? top : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(dir_fd, 0);
	env = fake_env_new(1);
	files = lu_files_new(env, dir_fd);
	log_redirect(keep);
	last[0] = '\0';
}

static void teardown(void)
{
	unlinkat(dir_fd, FILE_NAME, 0);
	unlinkat(dir_fd, FILE_NAME, AT_REMOVEDIR);
	unlinkat(dir_fd, TEMP_NAME, 0);
	unlinkat(dir_fd, TEMP_NAME, AT_REMOVEDIR);
	lu_files_free(files);
	fake_env_free(env);
	close(dir_fd);
	ck_assert_int_eq(rmdir(dir), 0); /* nothing else is left */
	log_redirect(NULL);
}

static void opened(void *arg, struct lu_store *store)
{
	*(struct lu_store **)arg = store;
}

static struct lu_store *open_as(const char *name, const uuid_t id)
{
	struct lu_store *store = NULL;

	lu_files_open(files, "backing", name, id, opened, &store);
	fake_env_run(env);
	ck_assert_ptr_nonnull(store);
	return store;
}

struct saving {
	struct lu_save save;
	unsigned done, order;
	int error;
};
static unsigned saves_done;

static void save_done(struct lu_save *save, int error)
{
	struct saving *saving = container_of(save, struct saving, save);

	saving->done++;
	saving->order = ++saves_done;
	saving->error = error;
}

static void begin(struct saving *saving, struct lu_store *store, const void *data, uint32_t length)
{
	*saving = (struct saving){
		.save = { .blob = LU_BLOB_MODE, .data = data, .length = length, .done = save_done }
	};
	store->save(store, &saving->save);
	ck_assert_uint_eq(saving->done, 0);
}

static int save_now(struct lu_store *store, const void *data, uint32_t length)
{
	struct saving saving;

	begin(&saving, store, data, length);
	fake_env_run(env);
	ck_assert_uint_eq(saving.done, 1);
	return saving.error;
}

static const void *load(struct lu_store *store, uint32_t *length)
{
	return store->load(store, LU_BLOB_MODE, length);
}

/* What a start finds. */
static void expect(const void *data, uint32_t length)
{
	struct lu_store *store = open_as("disk", uuid);
	uint32_t got = 0;
	const void *blob = load(store, &got);

	if (data) {
		ck_assert_ptr_nonnull(blob);
		ck_assert_uint_eq(got, length);
		ck_assert_mem_eq(blob, data, length);
		ck_assert_str_eq(last, "");
	} else {
		ck_assert_ptr_null(blob);
	}
	store->close(store);
}

static void put_file(const char *name, const void *bytes, size_t length)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
	close(fd);
}

static size_t get_file(uint8_t *bytes, size_t room)
{
	int fd = openat(dir_fd, FILE_NAME, O_RDONLY);
	ssize_t n = read(fd, bytes, room);

	ck_assert_int_ge(n, 0);
	close(fd);
	return (size_t)n;
}

/* A file with SAVED in it, as a test wants to spoil it. */
static size_t good_file(uint8_t bytes[256])
{
	struct lu_store *store = open_as("disk", uuid);

	ck_assert_int_eq(save_now(store, saved, sizeof(saved)), 0);
	store->close(store);
	return get_file(bytes, 256);
}

static void ignored(const uint8_t *bytes, size_t length, const char *cause)
{
	put_file(FILE_NAME, bytes, length);
	last[0] = '\0';
	expect(NULL, 0);
	ck_assert_msg(strstr(last, "state-ignored") && strstr(last, "backing=disk") &&
			      strstr(last, FILE_NAME) && strstr(last, cause),
		      "\"%s\" is not about: %s", last, cause);
}

START_TEST(a_blob_comes_back_as_it_was)
{
	static uint8_t large[LU_BLOB_MAX];
	static const uint32_t lengths[] = { 0, 1, 40, LU_BLOB_MAX };
	struct lu_store *store;
	uint32_t length = lengths[_i];

	for (uint32_t i = 0; i < length; i++)
		large[i] = (uint8_t)(i * 7 + (i >> 8));
	expect(NULL, 0);
	ck_assert_str_eq(last, ""); /* no file is nothing to complain about */
	store = open_as("disk", uuid);
	ck_assert_int_eq(save_now(store, saved, sizeof(saved)), 0);
	ck_assert_int_eq(save_now(store, large, length), 0);
	store->close(store);
	expect(large, length);
	ck_assert_int_eq(faccessat(dir_fd, TEMP_NAME, F_OK, 0), -1);
}
END_TEST

START_TEST(the_layout_is_the_documented_one)
{
	uint8_t bytes[256], zero[16] = { 0 };

	ck_assert_uint_eq(good_file(bytes), 64 + sizeof(saved));
	ck_assert_mem_eq(bytes, "YokeBlob", 8);
	ck_assert_uint_eq(get_le32(bytes + 8), 1);
	ck_assert_uint_eq(get_le32(bytes + 12), sizeof(saved));
	ck_assert_mem_eq(bytes + 16, uuid, 16);
	ck_assert_mem_eq(bytes + 32, "mode\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	ck_assert_mem_eq(bytes + 48, zero, 12);
	ck_assert_mem_eq(bytes + 64, saved, sizeof(saved));
	memmove(bytes + 60, bytes + 64, sizeof(saved));
	ck_assert_uint_eq(crc32c(bytes, 60 + sizeof(saved)), 0xaded493b);
}
END_TEST

START_TEST(a_file_cut_anywhere_is_ignored)
{
	uint8_t bytes[256];
	size_t whole = good_file(bytes), length;

	for (length = 0; length < whole; length++)
		ignored(bytes, length, length < 64 ? "too short" : "length is wrong");
	bytes[whole] = 0;
	ignored(bytes, whole + 1, "length is wrong");
}
END_TEST

START_TEST(a_file_with_any_bit_wrong_is_ignored)
{
	uint8_t bytes[256];
	size_t whole = good_file(bytes), bit;

	for (bit = 0; bit < whole * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ignored(bytes, whole, "cause=");
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	put_file(FILE_NAME, bytes, whole);
	last[0] = '\0';
	expect(saved, sizeof(saved));
}
END_TEST

/* Right in itself, so that no checksum helps. */
START_TEST(what_is_not_for_this_backing_or_version_is_ignored)
{
	static const struct {
		unsigned byte;
		const char *cause;
	} rows[] = { { 0, "no saved state" },
		     { 8, "another version" },
		     { 16, "another identity" },
		     { 32, "another kind" },
		     { 50, "another kind" } };
	uint8_t bytes[256], covered[256];
	size_t whole = good_file(bytes);

	bytes[rows[_i].byte] ^= 1;
	memcpy(covered, bytes, 60);
	memcpy(covered + 60, bytes + 64, whole - 64);
	put_le32(bytes + 60, crc32c(covered, whole - 4));
	ignored(bytes, whole, rows[_i].cause);
}
END_TEST

START_TEST(what_is_too_large_or_no_file_is_not_even_read)
{
	uint8_t bytes[256];
	size_t whole = good_file(bytes);
	int fd;

	put_le32(bytes + 12, LU_BLOB_MAX + 1);
	put_file(FILE_NAME, bytes, whole);
	fd = openat(dir_fd, FILE_NAME, O_WRONLY);
	ck_assert_int_eq(ftruncate(fd, LU_FILE_HEADER + (off_t)LU_BLOB_MAX + 1), 0);
	close(fd);
	expect(NULL, 0);
	ck_assert_ptr_nonnull(strstr(last, "too large"));
	unlinkat(dir_fd, FILE_NAME, 0);
	ck_assert_int_eq(mkfifoat(dir_fd, FILE_NAME, 0600), 0);
	expect(NULL, 0);
	ck_assert_ptr_nonnull(strstr(last, "no file"));
	unlinkat(dir_fd, FILE_NAME, 0);
	ck_assert_int_eq(mkdirat(dir_fd, FILE_NAME, 0700), 0);
	expect(NULL, 0);
	ck_assert_ptr_nonnull(strstr(last, "no file"));
	unlinkat(dir_fd, FILE_NAME, AT_REMOVEDIR);
	put_file(TEMP_NAME, bytes, whole);
	ck_assert_int_eq(symlinkat(TEMP_NAME, dir_fd, FILE_NAME), 0);
	expect(NULL, 0);
	ck_assert_ptr_nonnull(strstr(last, "cannot be opened"));
}
END_TEST

/* Something lies where the new file is written, or where it goes. */
START_TEST(a_failing_save_leaves_the_old_blob_and_says_so)
{
	struct lu_store *store;
	uint8_t bytes[256];

	good_file(bytes);
	store = open_as("disk", uuid);
	if (_i) {
		unlinkat(dir_fd, FILE_NAME, 0);
		ck_assert_int_eq(mkdirat(dir_fd, FILE_NAME, 0700), 0);
	} else {
		ck_assert_int_eq(mkdirat(dir_fd, TEMP_NAME, 0700), 0);
	}
	ck_assert_int_eq(save_now(store, "new", 3), -EISDIR);
	ck_assert_ptr_nonnull(strstr(last, "state-not-saved"));
	ck_assert_ptr_nonnull(strstr(last, FILE_NAME));
	last[0] = '\0';
	if (_i) {
		unlinkat(dir_fd, FILE_NAME, AT_REMOVEDIR);
		ck_assert_int_eq(faccessat(dir_fd, TEMP_NAME, F_OK, 0), -1);
	} else {
		expect(saved, sizeof(saved));
		unlinkat(dir_fd, TEMP_NAME, AT_REMOVEDIR);
		store->close(store);
		store = open_as("disk", uuid);
	}
	ck_assert_int_eq(save_now(store, "new", 3), 0);
	store->close(store);
	expect("new", 3);
}
END_TEST

START_TEST(what_a_crash_left_half_written_is_not_looked_at)
{
	uint8_t bytes[256];
	size_t whole = good_file(bytes);
	struct lu_store *store;

	put_file(TEMP_NAME, bytes, whole - 1);
	expect(saved, sizeof(saved));
	store = open_as("disk", uuid);
	ck_assert_int_eq(save_now(store, "n", 1), 0);
	store->close(store);
	expect("n", 1);
}
END_TEST

/* A pipe would be waited for, with every other save behind it; a link would be followed. */
START_TEST(what_lies_where_the_new_file_is_written_goes)
{
	struct lu_store *store = open_as("disk", uuid);

	if (_i) {
		ck_assert_int_eq(symlinkat("elsewhere", dir_fd, TEMP_NAME), 0);
	} else {
		ck_assert_int_eq(mkfifoat(dir_fd, TEMP_NAME, 0600), 0);
	}
	ck_assert_int_eq(save_now(store, "n", 1), 0);
	ck_assert_int_eq(faccessat(dir_fd, "elsewhere", F_OK, 0), -1);
	store->close(store);
	expect("n", 1);
}
END_TEST

START_TEST(several_saves_are_done_in_their_order)
{
	struct lu_store *store = open_as("disk", uuid), *other = open_as("other", uuid);
	struct saving one, two, three;

	begin(&one, store, "one", 3);
	begin(&two, other, "two", 3);
	begin(&three, store, "three", 5);
	saves_done = 0;
	fake_env_run(env);
	ck_assert_uint_eq(one.order, 1);
	ck_assert_uint_eq(two.order, 2);
	ck_assert_uint_eq(three.order, 3);
	ck_assert_int_eq(one.error | two.error | three.error, 0);
	store->close(store);
	other->close(other);
	expect("three", 5);
	unlinkat(dir_fd, "backing-other.mode", 0);
}
END_TEST

/* A unit on its way out saves, and one of the same name is made meanwhile. */
START_TEST(a_store_that_was_opened_anew_is_the_only_one_that_saves)
{
	struct lu_store *old = open_as("disk", uuid), *new = NULL;
	struct saving under_way, waits, late;
	uint32_t length = 0;

	begin(&under_way, old, "first", 5);
	begin(&waits, old, "second", 6);
	lu_files_open(files, "backing", "disk", uuid, opened, &new);
	fake_env_run(env);
	ck_assert_int_eq(under_way.error, 0);
	ck_assert_int_eq(waits.error, -ESTALE);
	ck_assert_ptr_nonnull(new);
	ck_assert_mem_eq(load(new, &length), "first", 5); /* what it does not see is not there */
	ck_assert_uint_eq(length, 5);
	begin(&late, old, "late", 4);
	fake_env_run(env);
	ck_assert_int_eq(late.error, -ESTALE);
	old->close(old);
	ck_assert_int_eq(save_now(new, "mine", 4), 0);
	new->close(new);
	expect("mine", 4);
}
END_TEST

START_TEST(another_identity_has_a_state_of_its_own)
{
	uuid_t another = { 42 };
	struct lu_store *store;
	uint32_t length = 0;
	uint8_t bytes[256];

	good_file(bytes);
	store = open_as("disk", another);
	ck_assert_ptr_null(load(store, &length));
	ck_assert_ptr_nonnull(strstr(last, "another identity"));
	ck_assert_int_eq(save_now(store, "other", 5), 0);
	store->close(store);
	store = open_as("disk", another);
	ck_assert_mem_eq(load(store, &length), "other", 5);
	store->close(store);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lu_files");
	TCase *tc = tcase_create("lu_files");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, a_blob_comes_back_as_it_was, 0, 4);
	tcase_add_test(tc, the_layout_is_the_documented_one);
	tcase_add_test(tc, a_file_cut_anywhere_is_ignored);
	tcase_add_test(tc, a_file_with_any_bit_wrong_is_ignored);
	tcase_add_loop_test(tc, what_is_not_for_this_backing_or_version_is_ignored, 0, 5);
	tcase_add_test(tc, what_is_too_large_or_no_file_is_not_even_read);
	tcase_add_loop_test(tc, a_failing_save_leaves_the_old_blob_and_says_so, 0, 2);
	tcase_add_test(tc, what_a_crash_left_half_written_is_not_looked_at);
	tcase_add_loop_test(tc, what_lies_where_the_new_file_is_written_goes, 0, 2);
	tcase_add_test(tc, several_saves_are_done_in_their_order);
	tcase_add_test(tc, a_store_that_was_opened_anew_is_the_only_one_that_saves);
	tcase_add_test(tc, another_identity_has_a_state_of_its_own);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
