/* SPDX-License-Identifier: MIT */
/* The journal file: what was set is there after a kill, and no bad file is believed. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/journal.h"
#include "core/crc32c.h"
#include "core/wire.h"

static char dir[64], file[80];
static struct journal *journal;
static struct bench_fault fault;
static const struct journal_lun luns[2] = { { 0, 1000 }, { 7, 24 } };

static void setup(void)
{
	strcpy(dir, "/tmp/journal.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/j", dir);
}

static void teardown(void)
{
	journal_close(journal);
	unlink(file);
	ck_assert_int_eq(rmdir(dir), 0);
}

static int reopen(void)
{
	journal_close(journal);
	return journal_open(file, luns, 2, false, &journal, &fault);
}

static void set(uint64_t block, enum journal_kind kind, uint64_t number)
{
	struct journal_entry entry = { kind, number };

	journal_set(journal, block, &entry, 1);
}

static void flip(off_t at)
{
	int fd = open(file, O_RDWR);
	uint8_t byte;

	ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
	byte ^= 0x10;
	ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

START_TEST(what_was_set_is_there_when_it_is_opened_again)
{
	struct journal_entry in[JOURNAL_ENTRIES], out[JOURNAL_ENTRIES];
	uint64_t id;

	ck_assert_int_eq(reopen(), 0);
	ck_assert(!journal_existed(journal));
	id = journal_id(journal);
	for (unsigned i = 0; i < JOURNAL_ENTRIES; i++)
		in[i] = (struct journal_entry){ JOURNAL_KNOWN + i % 5, JOURNAL_NUMBER_MAX - i };
	journal_set(journal, 1023, in, JOURNAL_ENTRIES);
	ck_assert_int_eq(reopen(), 0);
	ck_assert(journal_existed(journal));
	ck_assert_uint_eq(journal_id(journal), id);
	ck_assert_uint_eq(journal_get(journal, 1023, out), JOURNAL_ENTRIES);
	for (unsigned i = 0; i < JOURNAL_ENTRIES; i++) {
		unsigned same = 0;

		for (unsigned k = 0; k < JOURNAL_ENTRIES; k++)
			same += out[k].kind == in[i].kind && out[k].number == in[i].number;
		ck_assert_uint_eq(same, 1);
	}
	ck_assert_uint_eq(journal_get(journal, 1022, out), 0);
}
END_TEST

START_TEST(setting_replaces_what_was_there)
{
	struct journal_entry entries[JOURNAL_ENTRIES], out[JOURNAL_ENTRIES];

	ck_assert_int_eq(reopen(), 0);
	for (unsigned round = 0; round < 1000; round++) {
		unsigned count = 1 + round % JOURNAL_ENTRIES, got;
		uint64_t sum = 0;

		for (unsigned i = 0; i < count; i++) {
			entries[i] = (struct journal_entry){ JOURNAL_KNOWN, round + 1 + i };
			sum += entries[i].number;
		}
		journal_set(journal, 5, entries, count);
		got = journal_get(journal, 5, out);
		ck_assert_uint_eq(got, count);
		for (unsigned i = 0; i < got; i++)
			sum -= out[i].number;
		ck_assert_uint_eq(sum, 0);
	}
}
END_TEST

START_TEST(sequences_of_a_later_run_are_greater)
{
	uint64_t last = 0, next;

	for (unsigned run = 0; run < 3; run++) {
		ck_assert_int_eq(reopen(), 0);
		for (unsigned i = 0; i < 5; i++) {
			next = journal_sequence(journal);
			ck_assert_uint_gt(next, last);
			last = next;
		}
	}
	ck_assert_uint_lt(last, 10 * MIB);
}
END_TEST

/* The writer says through a pipe what is promised, and is killed in the middle of more. */
START_TEST(a_killed_writer_leaves_what_it_had_promised)
{
	struct journal_entry out[JOURNAL_ENTRIES];
	int pipes[2], status;
	uint64_t promised = 0;
	unsigned count;
	bool found = false;
	pid_t pid;

	ck_assert_int_eq(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		ck_assert_int_eq(reopen(), 0);
		for (uint64_t n = 1;; n++) {
			struct journal_entry both[2] = { { JOURNAL_KNOWN, n },
							 { JOURNAL_UNKNOWN, n + 1 } };

			journal_set(journal, 3, both, 2);
			if (write(pipes[1], &n, sizeof(n)) != sizeof(n))
				_exit(1);
		}
	}
	close(pipes[1]);
	for (unsigned i = 0; i < 5000; i++)
		ck_assert_int_eq(read(pipes[0], &promised, sizeof(promised)), sizeof(promised));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	while (read(pipes[0], &promised, sizeof(promised)) == sizeof(promised))
		continue;
	close(pipes[0]);
	ck_assert_int_eq(reopen(), 0);
	ck_assert(journal_existed(journal));
	/* The next round may have begun, but has not taken anything away before adding its own. */
	count = journal_get(journal, 3, out);
	ck_assert_uint_ge(count, 1);
	for (unsigned i = 0; i < count; i++)
		found |= out[i].number == promised || out[i].number == promised + 1;
	ck_assert(found);
}
END_TEST

START_TEST(a_damaged_or_cut_or_foreign_file_is_refused)
{
	struct stat st;
	int fd;

	ck_assert_int_eq(reopen(), 0);
	set(9, JOURNAL_KNOWN, 77);
	ck_assert_int_eq(reopen(), 0);
	stat(file, &st);
	ck_assert_int_eq(st.st_size, 4096 + 64 * 1024);

	flip(4096 + 9 * 64 + 3);
	ck_assert_int_eq(reopen(), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(fault.text, "record 9 is damaged"));
	flip(4096 + 9 * 64 + 3);
	flip(20);
	ck_assert_int_eq(reopen(), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(fault.text, "header is damaged"));
	flip(20);
	flip(2050);
	ck_assert_int_eq(reopen(), -EBADMSG);
	flip(2050);
	ck_assert_int_eq(reopen(), 0);
	journal_close(journal);
	journal = NULL;
	ck_assert_int_eq(truncate(file, st.st_size - 1), 0);
	ck_assert_int_eq(reopen(), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(fault.text, "is cut off"));
	ck_assert_int_eq(truncate(file, 100), 0);
	ck_assert_int_eq(reopen(), -EBADMSG);
	fd = open(file, O_WRONLY | O_TRUNC);
	ck_assert_int_eq(write(fd, "[profile]\nname = x\n", 19), 19);
	close(fd);
	ck_assert_int_eq(reopen(), -EINVAL);
	ck_assert_ptr_nonnull(strstr(fault.text, "is no journal of yoke-bench"));
	ck_assert_int_eq(journal_open("/dev/null", luns, 2, false, &journal, &fault), -EINVAL);
}
END_TEST

/* As whoever damages a file on purpose would: the check fits. */
START_TEST(a_limit_without_room_above_it_is_refused)
{
	uint64_t word = (uint64_t)JOURNAL_LIMIT << 61 | (JOURNAL_NUMBER_MAX - 5) << 16;
	uint8_t checked[24], bytes[8];
	uint32_t crc;
	int fd;

	ck_assert_int_eq(reopen(), 0);
	put_le64(checked, journal_id(journal));
	put_le64(checked + 8, UINT64_MAX);
	put_le64(checked + 16, word >> 16);
	crc = crc32c(checked, sizeof(checked));
	put_le64(bytes, word | (uint16_t)(crc ^ crc >> 16));
	fd = open(file, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, bytes, sizeof(bytes), 2048), sizeof(bytes));
	close(fd);
	ck_assert_int_eq(reopen(), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(fault.text, "used up"));
}
END_TEST

START_TEST(an_entry_of_another_block_or_journal_is_damage)
{
	uint8_t record[64];
	int fd;

	ck_assert_int_eq(reopen(), 0);
	set(9, JOURNAL_KNOWN, 77);
	fd = open(file, O_RDWR);
	ck_assert_int_eq(pread(fd, record, 64, 4096 + 64 * 9), 64);
	ck_assert_int_eq(pwrite(fd, record, 64, 4096 + 64 * 10), 64);
	close(fd);
	ck_assert_int_eq(reopen(), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(fault.text, "record 10 is damaged"));
}
END_TEST

START_TEST(other_luns_or_sizes_are_refused_with_both_named)
{
	const struct journal_lun other[2] = { { 0, 1000 }, { 7, 512 } };

	ck_assert_int_eq(reopen(), 0);
	journal_close(journal);
	ck_assert_int_eq(journal_open(file, other, 2, false, &journal, &fault), -EINVAL);
	ck_assert_ptr_nonnull(strstr(fault.text, "LUN 7 and 0 MiB, not LUN 7 and 2 MiB"));
	ck_assert_int_eq(journal_open(file, luns, 1, false, &journal, &fault), -EINVAL);
	ck_assert_ptr_nonnull(strstr(fault.text, "2 LUNs, not 1"));
}
END_TEST

START_TEST(two_runs_at_a_time_are_refused)
{
	struct journal *second;

	ck_assert_int_eq(reopen(), 0);
	ck_assert_int_eq(journal_open(file, luns, 2, false, &second, &fault), -EBUSY);
	ck_assert_ptr_nonnull(strstr(fault.text, "another yoke-bench uses it"));
	ck_assert_ptr_null(second);
}
END_TEST

START_TEST(one_that_must_exist_is_not_made)
{
	ck_assert_int_eq(journal_open(file, luns, 2, true, &journal, &fault), -ENOENT);
	ck_assert_int_eq(access(file, F_OK), -1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("journal");
	TCase *tcase = tcase_create("journal");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, what_was_set_is_there_when_it_is_opened_again);
	tcase_add_test(tcase, setting_replaces_what_was_there);
	tcase_add_test(tcase, sequences_of_a_later_run_are_greater);
	tcase_add_test(tcase, a_killed_writer_leaves_what_it_had_promised);
	tcase_add_test(tcase, a_damaged_or_cut_or_foreign_file_is_refused);
	tcase_add_test(tcase, a_limit_without_room_above_it_is_refused);
	tcase_add_test(tcase, an_entry_of_another_block_or_journal_is_damage);
	tcase_add_test(tcase, other_luns_or_sizes_are_refused_with_both_named);
	tcase_add_test(tcase, two_runs_at_a_time_are_refused);
	tcase_add_test(tcase, one_that_must_exist_is_not_made);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
