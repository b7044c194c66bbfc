/* SPDX-License-Identifier: MIT */
/* --verify over a store in memory: every lie has its name, and honesty is never doubted. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/stamp.h"
#include "bench/verify.h"

#define BLOCKS 64u
#define B VERIFY_BLOCK

static struct verify *verify;
static struct bench_fault fault;
static struct bench_lun luns[2];
static struct verify_conf conf;
static uint8_t *store; /* of LUN 0; shared with children */
static uint8_t buf[16 * B];
static uint64_t t, chance;

static unsigned below(unsigned n)
{
	chance = chance * 6364136223846793005 + 1442695040888963407;
	return (unsigned)((chance >> 33) % n);
}

static void setup(void)
{
	luns[0] = (struct bench_lun){ .lun = 4, .size_bytes = BLOCKS * B, .block_bytes = 512 };
	luns[1] = (struct bench_lun){ .lun = 9, .size_bytes = 8 * B, .block_bytes = 4096 };
	conf = (struct verify_conf){ .luns = luns, .lun_count = 2 };
	store = mmap(NULL, BLOCKS * B, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(store, MAP_FAILED);
	ck_assert_int_eq(verify_new(&conf, &verify, &fault), 0);
	t = 1000;
}

static void teardown(void)
{
	verify_free(verify);
	munmap(store, BLOCKS * B);
}

static struct verify_op *begin(bool write, unsigned block, unsigned count, void *to)
{
	struct verify_op *op =
		verify_begin(verify, 0, write, (uint64_t)block * B, to, count * B, t += 1000);

	verify_sent(op, write, block);
	return op;
}

static bool end(struct verify_op *op)
{
	return verify_end(verify, op, VERIFY_GOOD, t += 1000);
}

/* A write that is answered GOOD; what reaches the store is the caller's affair. */
static void promise(unsigned block, unsigned count)
{
	ck_assert(end(begin(true, block, count, buf)));
}

static void put(unsigned block, unsigned count)
{
	promise(block, count);
	memcpy(store + (size_t)block * B, buf, (size_t)count * B);
}

static bool get(unsigned block, unsigned count)
{
	struct verify_op *op = begin(false, block, count, buf);

	memcpy(buf, store + (size_t)block * B, (size_t)count * B);
	return end(op);
}

/* The violation has NAME and says WHAT. */
static void says(const char *name, const char *what)
{
	const char *text = verify_violation(verify);

	ck_assert_ptr_nonnull(text);
	ck_assert_msg(strstr(text, name) != NULL, "%s", text);
	ck_assert_msg(strstr(text, what) != NULL, "%s", text);
}

START_TEST(what_was_written_is_fine_as_often_as_it_is_read)
{
	struct verify_counts counts;

	ck_assert(get(0, 16));
	put(3, 4);
	ck_assert(get(0, 16));
	put(4, 1);
	ck_assert(get(0, 16));
	ck_assert_ptr_null(verify_violation(verify));
	verify_counts(verify, &counts);
	ck_assert_uint_eq(counts.blocks_written, 5);
	ck_assert_uint_eq(counts.blocks_read, 48);
	ck_assert_uint_eq(counts.unknown + counts.torn + counts.unjudged + counts.promised, 0);
}
END_TEST

START_TEST(a_lost_write_is_named_with_both_histories)
{
	put(7, 1);
	ck_assert(get(7, 1));
	promise(7, 1);
	ck_assert(!get(7, 1));
	says("LUN 4, block 7 (bytes 28672 to 32767): lost write", "version 1\n");
	says("read 0.000006 to 0.000007 s by session 8 of portal 1: version 1", "");
	says("\n  version 1: written 0.000000 to 0.000001 s by session 8 of portal 2, GOOD; "
	     "read 1 time, first 0.000002 to 0.000003 s by session 8 of portal 1\n",
	     "\n  version 2: written 0.000004 to 0.000005 s by session 8 of portal 2, GOOD; "
	     "never read");
}
END_TEST

START_TEST(a_write_lost_on_fresh_storage_leaves_zeroes)
{
	ck_assert(get(7, 1));
	promise(7, 1);
	ck_assert(!get(7, 1));
	says("lost write", "zeroes from before this run: there before this run; read 1 time");
}
END_TEST

START_TEST(stale_data_is_named)
{
	uint8_t old[B];

	put(7, 1);
	memcpy(old, store + 7 * B, B);
	put(7, 1);
	ck_assert(get(7, 1));
	memcpy(store + 7 * B, old, B);
	ck_assert(!get(7, 1));
	says("stale data: a newer version had been read before", "version 2: written");
}
END_TEST

START_TEST(swapped_blocks_are_named_with_where_they_belong)
{
	uint8_t block[B];

	put(7, 2);
	memcpy(block, store + 7 * B, B);
	memcpy(store + 7 * B, store + 8 * B, B);
	memcpy(store + 8 * B, block, B);
	ck_assert(!get(8, 1));
	says("LUN 4, block 8 (bytes 32768 to 36863): misplaced block",
	     "sectors of 512 bytes: 0 to 7 version 1 of block 7 of LUN 4");
}
END_TEST

START_TEST(a_tear_is_named_with_its_border)
{
	uint8_t old[B];

	put(7, 1);
	memcpy(old, store + 7 * B, B);
	put(7, 1);
	memcpy(store + 7 * B + 3 * 512, old + 3 * 512, 512);
	ck_assert(!get(7, 1));
	says("torn block", "sectors of 512 bytes: 0 to 2 version 2, 3 version 1, 4 to 7 version 2");
	says("\n  version 1: written 0.0", "\n  version 2: written 0.0");
}
END_TEST

START_TEST(changed_bytes_are_named)
{
	put(7, 1);
	store[7 * B + 1000] ^= 1;
	ck_assert(!get(7, 1));
	says("corrupt block", "0 version 1, 1 corrupt, 2 to 7 version 1");
}
END_TEST

START_TEST(a_block_overwritten_by_somebody_is_named)
{
	put(7, 1);
	memset(store + 7 * B, 0x55, B);
	ck_assert(!get(7, 1));
	says("destroyed block", "not written by yoke-bench");
	says("version 1: written", "never read");
}
END_TEST

START_TEST(somebody_elses_writes_are_noticed_where_nobody_wrote_here)
{
	ck_assert(get(7, 1));
	memset(store + 7 * B, 0x55, B);
	ck_assert(!get(7, 1));
	says("strange contents", "zeroes from before this run: there before");
}
END_TEST

START_TEST(data_that_never_arrived_are_noticed)
{
	struct verify_op *op;

	put(7, 2);
	op = begin(false, 7, 2, buf);
	memcpy(buf, store + 7 * B, B + 1024);
	ck_assert(!end(op));
	says("block 8", "torn block");
	says("0 to 1 version 1, 2 to 7 not filled: nothing arrived", "");
}
END_TEST

START_TEST(pieces_are_fine_while_both_versions_are)
{
	struct verify_op *w, *r;
	struct verify_counts counts;
	uint8_t mine[B];

	put(7, 1);
	w = begin(true, 7, 1, mine);
	r = begin(false, 7, 1, buf);
	memcpy(buf, mine, 1024);
	memcpy(buf + 1024, store + 7 * B + 1024, B - 1024);
	ck_assert(end(r));
	ck_assert(end(w));
	verify_counts(verify, &counts);
	ck_assert_uint_eq(counts.torn, 1);
	r = begin(false, 7, 1, buf);
	memcpy(buf, mine, 1024);
	memcpy(buf + 1024, store + 7 * B + 1024, B - 1024);
	ck_assert(!end(r));
	says("torn block", "0 to 1 version 2, 2 to 7 version 1");
}
END_TEST

START_TEST(pieces_of_a_logical_block_are_never_fine)
{
	struct verify_op *w = verify_begin(verify, 1, true, 0, buf, B, ++t);
	struct verify_op *r = verify_begin(verify, 1, false, 0, buf + B, B, ++t);

	memcpy(buf + B, buf, 1024);
	memset(buf + B + 1024, 0, B - 1024);
	ck_assert(!end(r));
	ck_assert(end(w));
	says("LUN 9, block 0", "torn block");
}
END_TEST

START_TEST(an_unanswered_write_may_come_late_but_once)
{
	uint8_t late[B];

	verify_end(verify, begin(true, 7, 1, late), VERIFY_UNKNOWN, ++t);
	put(7, 1);
	ck_assert(get(7, 1));
	memcpy(store + 7 * B, late, B);
	ck_assert(get(7, 1));
	put(7, 1);
	ck_assert(get(7, 1));
	memcpy(store + 7 * B, late, B);
	ck_assert(!get(7, 1));
	says("stale data", "fate unknown; read 1 time, ");
}
END_TEST

START_TEST(only_the_first_violation_is_told)
{
	put(7, 2);
	memset(store + 7 * B, 0, 2 * B);
	ck_assert(!get(8, 1));
	ck_assert(!get(7, 1));
	says("block 8 ", "");
	verify_report(verify, "an answer to nothing");
	says("block 8 ", "");
}
END_TEST

START_TEST(what_is_not_whole_blocks_is_refused)
{
	struct bench_point point = { .name = "4K shifted", .stream_count = 1 };

	point.streams[0] = (struct bench_stream){ .block_bytes = 65536 };
	ck_assert_int_eq(verify_fits(&point, &fault), 0);
	point.streams[0].shift_bytes = 512;
	ck_assert_int_eq(verify_fits(&point, &fault), -EINVAL);
	point.streams[0] = (struct bench_stream){ .block_bytes = 512 };
	ck_assert_int_eq(verify_fits(&point, &fault), -EINVAL);
	ck_assert_ptr_nonnull(strstr(fault.text, "use a multiple of 4k"));
}
END_TEST

START_TEST(a_range_too_large_for_memory_is_refused)
{
	struct verify_conf big = conf;
	struct verify *none;

	luns[0].size_bytes = 4096 * GIB;
	ck_assert_int_eq(verify_new(&big, &none, &fault), -ENOMEM);
	ck_assert_ptr_nonnull(strstr(fault.text, "verify less, with --size"));
	big.range_bytes = 1 * MIB;
	ck_assert_int_eq(verify_new(&big, &none, &fault), 0);
	verify_free(none);
	big.memory_max = 1 * MIB;
	ck_assert_int_eq(verify_new(&big, &none, &fault), -ENOMEM);
}
END_TEST

/*
 * An honest store under load: commands overlap, take effect a sector at a time at any moment
 * before their answer, lose their answers, and then take effect late or never.
 */
#define SLOTS 48u

struct slot {
	struct verify_op *op;
	bool write, lost;
	unsigned block, count, left; /* sectors still to move; in random order */
	uint8_t moved[16 * 8];
	uint8_t buf[16 * B];
};

static struct slot *slots;

static void slot_begin(struct slot *slot)
{
	slot->write = below(2);
	slot->count = 1 + below(below(4) ? 1 : 16);
	slot->block = below(4) ? below(4) : below(BLOCKS - slot->count);
	slot->left = slot->count * 8;
	slot->lost = false;
	memset(slot->moved, 0, sizeof(slot->moved));
	slot->op = begin(slot->write, slot->block, slot->count, slot->buf);
}

static void slot_move(struct slot *slot)
{
	unsigned from = below(slot->count * 8);

	while (slot->moved[from])
		from = (from + 1) % (slot->count * 8);
	slot->moved[from] = 1;
	slot->left--;
	if (slot->write)
		memcpy(store + (size_t)slot->block * B + from * 512, slot->buf + from * 512, 512);
	else
		memcpy(slot->buf + from * 512, store + (size_t)slot->block * B + from * 512, 512);
}

/* False: a violation. */
static bool slot_step(struct slot *slot)
{
	bool fine = true;

	if (slot->op == NULL && !slot->lost) {
		slot_begin(slot);
	} else if (slot->lost && below(40) == 0) {
		slot->lost = false; /* never */
	} else if (slot->op && below(200) == 0) {
		fine = verify_end(verify, slot->op, VERIFY_UNKNOWN, t += below(3));
		slot->op = NULL;
		slot->lost = slot->write && slot->left > 0;
	} else if (slot->left > 0) {
		for (unsigned n = 1 + below(below(3) ? 128 : 3); n > 0 && slot->left > 0; n--)
			slot_move(slot);
	} else if (slot->op) {
		fine = verify_end(verify, slot->op, VERIFY_GOOD, t += below(3));
		slot->op = NULL;
	} else {
		slot->lost = false;
	}
	return fine;
}

static void run_honestly(unsigned steps)
{
	for (unsigned i = 0; i < steps; i++) {
		t += below(2);
		if (!slot_step(&slots[below(SLOTS)]))
			ck_abort_msg("%s", verify_violation(verify));
	}
}

static void end_all(void)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (slots[i].op)
			verify_end(verify, slots[i].op, VERIFY_UNKNOWN, ++t);
}

START_TEST(an_honest_store_is_never_doubted)
{
	struct verify_counts counts;

	chance = 77 + (uint64_t)_i;
	slots = calloc(SLOTS, sizeof(*slots));
	run_honestly(150000);
	end_all();
	free(slots);
	verify_counts(verify, &counts);
	ck_assert_uint_gt(counts.blocks_read, 10000);
	ck_assert_uint_gt(counts.torn, 100);
	ck_assert_uint_gt(counts.unknown, 100);
	ck_assert_uint_lt(counts.unjudged, counts.blocks_read / 10);
}
END_TEST

static char journal[64];

static int read_store(void *arg, unsigned lun, uint64_t offset, void *to, size_t length,
		      struct bench_fault *f)
{
	(void)arg;
	(void)f;
	if (lun == 0)
		memcpy(to, store + offset, length);
	return 0;
}

/* Opens verify with the journal, as a run does; returns what checking it gives. */
static int again(void)
{
	conf.journal = journal;
	verify_free(verify);
	verify = NULL;
	ck_assert_msg(verify_new(&conf, &verify, &fault) == 0, "%s", fault.text);
	return verify_check(verify, read_store, NULL, &fault);
}

static void name_journal(void)
{
	int fd;

	strcpy(journal, "/tmp/verify.XXXXXX");
	fd = mkstemp(journal);
	ck_assert_int_ge(fd, 0);
	close(fd);
	unlink(journal);
}

START_TEST(a_later_run_finds_what_was_promised)
{
	struct verify_counts counts;

	name_journal();
	ck_assert_int_eq(again(), 0);
	put(7, 4);
	put(8, 1);
	verify_end(verify, begin(true, 9, 1, buf), VERIFY_UNKNOWN, ++t);
	ck_assert_int_eq(again(), 0);
	verify_counts(verify, &counts);
	ck_assert_uint_eq(counts.promised, 4);
	ck_assert_uint_eq(counts.blocks_read, 4);
	/* The unknown write comes after all; then an acknowledged one is gone. */
	memcpy(store + 9 * B, buf, B);
	ck_assert_int_eq(again(), 0);
	memset(store + 10 * B, 0, B);
	ck_assert_int_eq(again(), -EILSEQ);
	says("block 10", "lost write: what an earlier run was promised is gone\n");
	says("by no session: all zeroes\n", "version 1: there before this run; never read");
	unlink(journal);
}
END_TEST

START_TEST(a_later_run_finds_an_older_version)
{
	uint8_t old[B];

	name_journal();
	ck_assert_int_eq(again(), 0);
	put(7, 1);
	memcpy(old, buf, B);
	put(7, 1);
	memcpy(store + 7 * B, old, B);
	ck_assert_int_eq(again(), -EILSEQ);
	says("block 7", "lost write");
	unlink(journal);
}
END_TEST

/* kill -9 of the run, not of the store, at any time; the next run checks and goes on. */
START_TEST(runs_killed_at_any_time_are_never_doubted)
{
	name_journal();
	verify_free(verify);
	verify = NULL;
	slots = mmap(NULL, SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (unsigned run = 0; run < 25; run++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			chance = run;
			if (again())
				ck_abort_msg("%s", verify_violation(verify));
			/* What was on its way arrives during this run, or never. */
			for (unsigned i = 0; i < SLOTS; i++) {
				slots[i].lost = slots[i].write && slots[i].left > 0;
				slots[i].op = NULL;
			}
			run_honestly(500 + 100 * run);
			raise(SIGKILL);
		}
		waitpid(pid, &status, 0);
		ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	munmap(slots, SLOTS * sizeof(*slots));
	unlink(journal);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bench_verify");
	TCase *tcase = tcase_create("verify");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, what_was_written_is_fine_as_often_as_it_is_read);
	tcase_add_test(tcase, a_lost_write_is_named_with_both_histories);
	tcase_add_test(tcase, a_write_lost_on_fresh_storage_leaves_zeroes);
	tcase_add_test(tcase, stale_data_is_named);
	tcase_add_test(tcase, swapped_blocks_are_named_with_where_they_belong);
	tcase_add_test(tcase, a_tear_is_named_with_its_border);
	tcase_add_test(tcase, changed_bytes_are_named);
	tcase_add_test(tcase, a_block_overwritten_by_somebody_is_named);
	tcase_add_test(tcase, somebody_elses_writes_are_noticed_where_nobody_wrote_here);
	tcase_add_test(tcase, data_that_never_arrived_are_noticed);
	tcase_add_test(tcase, pieces_are_fine_while_both_versions_are);
	tcase_add_test(tcase, pieces_of_a_logical_block_are_never_fine);
	tcase_add_test(tcase, an_unanswered_write_may_come_late_but_once);
	tcase_add_test(tcase, only_the_first_violation_is_told);
	tcase_add_test(tcase, what_is_not_whole_blocks_is_refused);
	tcase_add_test(tcase, a_range_too_large_for_memory_is_refused);
	tcase_add_loop_test(tcase, an_honest_store_is_never_doubted, 0, 4);
	tcase_add_test(tcase, a_later_run_finds_what_was_promised);
	tcase_add_test(tcase, a_later_run_finds_an_older_version);
	tcase_add_test(tcase, runs_killed_at_any_time_are_never_doubted);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
