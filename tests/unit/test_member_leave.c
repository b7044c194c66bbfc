/* SPDX-License-Identifier: MIT */
/*
 * A member that leaves is let go, device and memory, when the last who had something under way
 * there has it back; and not before.
 * timeout: 300
 */
#include <check.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "raid/redo.h"
#include "tests/fake/raid_rig.h"

#define SIZE (16 * MIB)
#define CHUNK (64 * KIB)
#define ROLE 1u
#define ALL_IO (HOST | 1u << IO_PARITY | 1u << IO_LOG)

static const struct {
	unsigned level, disks;
	uint64_t offset; /* of what is written: some of it goes to ROLE */
	unsigned hold;   /* what waits there */
} cases[] = {
	{ 1, 2, 0, HOST },
	{ 10, 4, 0, HOST },
	{ 5, 4, CHUNK, HOST },
	{ 5, 4, 6 * CHUNK, 1u << IO_PARITY },
	{ 5, 4, 6 * CHUNK, 1u << IO_LOG },
};
#define CASES ((int)ARRAY_LEN(cases))

static void start(int number)
{
	rig_setup(cases[number].disks, SIZE);
	rig_create_clean(cases[number].level, cases[number].disks);
	ck_assert_uint_eq(rig.disks[ROLE]->blk.refs, 2);
}

static void teardown(void)
{
	rig_teardown();
}

static struct rig_disk *leaver(void)
{
	return rig.disks[ROLE];
}

/* A write of CASES[NUMBER] of which something waits there. */
static struct rig_io *write_held(int number, uint64_t seed)
{
	struct rig_io *io;

	leaver()->hold = cases[number].hold;
	io = rig_send(IO_WRITE, cases[number].offset, CHUNK, seed);
	fake_env_advance(rig.env, NS_PER_MS);
	ck_assert_uint_eq(leaver()->held_count, 1);
	ck_assert(!rig_ended(io));
	return io;
}

static struct member *member_of_role(void)
{
	return rig.array->roles[ROLE];
}

static uint64_t memory_used(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* The array alone lets go of it, and is as well as before. */
static void expect_gone(unsigned index)
{
	const struct member *member = rig.array->members[index];

	ck_assert_uint_eq(leaver()->blk.refs, 1);
	ck_assert(TAILQ_EMPTY(&rig.array->buried));
	if (!member)
		return;
	ck_assert_uint_eq(member->holds, 0);
	ck_assert_ptr_null(member->blk);
	ck_assert_ptr_null(member->redo);
	ck_assert_str_eq(member->name, "d1");
}

static void come_back(int number, uint64_t seed)
{
	ck_assert_int_eq(rig_add(ROLE), 0);
	rig_settle();
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	ck_assert_int_eq(rig_read(cases[number].offset, CHUNK, seed), 0);
	ck_assert_uint_eq(leaver()->blk.refs, 2);
	rig_forget();
}

START_TEST(who_fails_a_hundred_times_is_let_go_each_time)
{
	uint64_t used = 0;

	start(_i);
	for (unsigned round = 0; round < 100; round++) {
		unsigned index = member_of_role()->index;
		struct rig_io *io = write_held(_i, round);

		leaver()->fail = ALL_IO;
		ck_assert_uint_eq(leaver()->blk.refs, 2);
		rig_release(ROLE);
		ck_assert_int_eq(rig_take(io), 0);
		expect_gone(index);
		ck_assert_uint_eq(rig_info().members[index].state, LABEL_FAILED);
		ck_assert_uint_gt(rig_info().members[index].write_errors, round);
		ck_assert_uint_gt(strlen(rig_info().members[index].cause), 0);
		leaver()->fail = 0;
		come_back(_i, round);
		if (round == 9)
			used = memory_used();
	}
	ck_assert_uint_lt(memory_used(), used + 32 * KIB);
}
END_TEST

START_TEST(who_is_removed_is_let_go_when_what_it_was_asked_is_back)
{
	start(_i);
	for (unsigned round = 0; round < 100; round++) {
		unsigned index = member_of_role()->index;
		struct rig_io *io = write_held(_i, round);

		ck_assert_int_eq(rig_remove(index), 0);
		ck_assert_uint_eq(leaver()->blk.refs, 2);
		ck_assert_ptr_nonnull(rig.array->members[index]->blk);
		ck_assert_int_eq(rig_info().members[index].state, LABEL_REMOVED);
		rig_release(ROLE);
		ck_assert_int_eq(rig_take(io), 0);
		expect_gone(index);
		come_back(_i, round);
	}
}
END_TEST

START_TEST(who_is_replaced_is_freed_when_what_it_was_asked_is_back)
{
	unsigned next = cases[_i].disks, index;
	struct rig_io *io;

	start(_i);
	index = member_of_role()->index;
	io = write_held(_i, 1);
	ck_assert_int_eq(rig_remove(index), 0);
	ck_assert_int_eq(rig_add(next), 0);
	ck_assert_ptr_null(rig.array->members[index]);
	ck_assert_ptr_nonnull(TAILQ_FIRST(&rig.array->buried));
	ck_assert_uint_eq(leaver()->blk.refs, 2);
	rig_release(ROLE);
	ck_assert_int_eq(rig_take(io), 0);
	expect_gone(index);
	rig_settle();
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	ck_assert_int_eq(rig_read(cases[_i].offset, CHUNK, 1), 0);
	ck_assert_uint_eq(rig.disks[next]->blk.refs, 2);
}
END_TEST

/* _i: of CASES; nobody but the device knows of it. */
START_TEST(a_read_of_who_left_ends_as_any_other_and_then_the_device_goes)
{
	struct rig_io *reads[8];
	unsigned count = 0, index;

	start(_i);
	index = member_of_role()->index;
	for (unsigned i = 0; i < ARRAY_LEN(reads); i++) {
		reads[i] = rig_send(IO_WRITE, i * CHUNK, CHUNK, i);
		fake_env_advance(rig.env, 100 * NS_PER_MS); /* level 5 waits for more */
		ck_assert_int_eq(rig_take(reads[i]), 0);
	}
	rig_settle();
	leaver()->hold = HOST;
	while (!leaver()->held_count) {
		ck_assert_uint_lt(count, ARRAY_LEN(reads));
		/* Backwards: what goes on where a leg has read stays with it. */
		count++;
		reads[count - 1] = rig_send(IO_READ, (ARRAY_LEN(reads) - count) * CHUNK, CHUNK, 0);
	}
	ck_assert_int_eq(rig_remove(index), 0);
	ck_assert_ptr_null(rig.array->members[index]->blk);
	ck_assert_uint_eq(leaver()->blk.refs, 2);
	ck_assert(!rig_ended(reads[count - 1]));
	rig_release(ROLE);
	expect_gone(index);
	for (unsigned i = 0; i < count; i++) {
		uint8_t wanted[4096];

		fake_fill(wanted, sizeof(wanted), ARRAY_LEN(reads) - 1 - i);
		ck_assert_mem_eq(reads[i]->buf, wanted, sizeof(wanted));
		ck_assert_int_eq(rig_take(reads[i]), 0);
	}
}
END_TEST

/* It lacks its label still; who adds it is told of it by its name. */
START_TEST(who_fails_as_it_comes_is_let_go_when_that_has_been_told)
{
	struct array_disk offered;
	unsigned before, index;

	start(_i);
	index = member_of_role()->index;
	ck_assert_int_eq(rig_remove(index), 0);
	expect_gone(index);
	leaver()->hold = LABELS;
	offered = rig_offer(ROLE);
	before = rig.answers;
	ck_assert_int_eq(array_add(rig.array, &offered, rig_answer, NULL), 0);
	fake_env_run(rig.env);
	while (leaver()->held_count && !member_of_role())
		rig_end(ROLE, 0); /* its old labels are read */
	ck_assert_ptr_nonnull(member_of_role());
	index = member_of_role()->index;
	rig.disks[0]->hold = LABELS;
	leaver()->fail = RIG_ALL;
	rig_release(ROLE);
	fake_env_advance(rig.env, NS_PER_S);
	ck_assert_ptr_null(member_of_role());
	ck_assert_uint_eq(rig.answers, before);
	ck_assert_ptr_nonnull(rig.array->members[index]->blk);
	rig_release(0);
	fake_env_advance(rig.env, NS_PER_S);
	ck_assert_uint_eq(rig.answers, before + 1);
	ck_assert_int_eq(rig.error, -EIO);
	ck_assert_str_eq(rig.text, "array a: d1 failed as it came");
	leaver()->fail = 0;
	expect_gone(index);
}
END_TEST

/* Removed while something of the array's own waits there, and not let go before that is back. */
static void expect_held(unsigned index)
{
	ck_assert_uint_gt(leaver()->held_count, 0);
	ck_assert_int_eq(rig_remove(index), 0);
	ck_assert_ptr_nonnull(rig.array->members[index]->blk);
	ck_assert_uint_eq(leaver()->blk.refs, 2);
	rig_release(ROLE);
	fake_env_advance(rig.env, 100 * NS_PER_MS);
	expect_gone(index);
}

START_TEST(a_flush_holds_it)
{
	struct rig_io *io;

	start(_i);
	leaver()->hold = HOST;
	io = rig_send(IO_FLUSH, 0, 0, 0);
	ck_assert(!rig_ended(io));
	expect_held(member_of_role()->index);
	ck_assert_int_eq(rig_take(io), 0);
}
END_TEST

START_TEST(a_page_of_regions_holds_it)
{
	struct rig_io *io;

	start(_i);
	leaver()->hold = MAPS;
	io = rig_send(IO_WRITE, cases[_i].offset, CHUNK, 1);
	fake_env_advance(rig.env, 60 * NS_PER_S); /* dirty first, or clean then */
	expect_held(member_of_role()->index);
	ck_assert_int_eq(rig_take(io), 0);
}
END_TEST

START_TEST(the_resync_holds_it)
{
	start(_i);
	ck_assert_int_eq(rig_remove(member_of_role()->index), 0);
	leaver()->hold = RESYNC;
	ck_assert_int_eq(rig_add(ROLE), 0);
	fake_env_advance(rig.env, NS_PER_S);
	expect_held(member_of_role()->index);
}
END_TEST

/* Of what nothing was under way, nothing is left but who it was. */
START_TEST(who_has_nothing_to_do_is_let_go_at_once)
{
	unsigned index;

	start(_i);
	index = member_of_role()->index;
	ck_assert_int_eq(rig_remove(index), 0);
	expect_gone(index);
	blk_unref(&leaver()->blk);
	ck_assert(!rig.is_open[ROLE]);
	rig.disks[ROLE] = NULL;
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("member_leave");
	TCase *tcase = tcase_create("leave");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, who_fails_a_hundred_times_is_let_go_each_time, 0, CASES);
	tcase_add_loop_test(tcase, who_is_removed_is_let_go_when_what_it_was_asked_is_back, 0,
			    CASES);
	tcase_add_loop_test(tcase, who_is_replaced_is_freed_when_what_it_was_asked_is_back, 0,
			    CASES);
	tcase_add_loop_test(tcase, a_read_of_who_left_ends_as_any_other_and_then_the_device_goes, 0,
			    CASES);
	tcase_add_loop_test(tcase, who_fails_as_it_comes_is_let_go_when_that_has_been_told, 0,
			    CASES);
	tcase_add_loop_test(tcase, a_flush_holds_it, 0, CASES);
	tcase_add_loop_test(tcase, a_page_of_regions_holds_it, 0, CASES);
	tcase_add_loop_test(tcase, the_resync_holds_it, 0, CASES);
	tcase_add_loop_test(tcase, who_has_nothing_to_do_is_let_go_at_once, 0, CASES);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
