/* SPDX-License-Identifier: MIT */
/* The running label: who is out or in counts when it is durable on everybody who remains (I9). */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/raid_rig.h"

#define SIZE (4 * MIB)

static void teardown(void)
{
	rig_teardown();
}

static void mirror_of(unsigned legs)
{
	rig_setup(legs, SIZE);
	rig_create_clean(1, legs);
}

static void setup(void)
{
	mirror_of(3);
}

static void hold_labels(uint32_t disks)
{
	for (unsigned i = 0; i < RIG_DISKS; i++)
		if (disks >> i & 1)
			rig.disks[i]->hold = LABELS;
}

static enum label_state state_on(unsigned disk, unsigned member)
{
	struct label label;

	ck_assert_int_eq(rig_label(disk, &label), 0);
	return label.members[member].state;
}

static bool settled(void)
{
	return membership_settled(rig.array);
}

/* --- excluding --- */

START_TEST(a_write_that_skipped_a_member_waits_for_the_label_on_all_that_remain)
{
	struct rig_io *io;
	/* The order in which the four slots (two disks of two) end. */
	static const unsigned orders[][4] = {
		{ 0, 0, 1, 1 },
		{ 1, 1, 0, 0 },
		{ 0, 1, 0, 1 },
		{ 1, 0, 0, 1 },
	};

	hold_labels(7);
	rig.disks[2]->fail = HOST;
	io = rig_send(IO_WRITE, 0, 4096, 1);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert(!rig_ended(io));
		ck_assert(!settled());
		rig_end(orders[_i][i], 0);
	}
	ck_assert(rig_ended(io));
	ck_assert(settled());
	ck_assert_int_eq(rig_take(io), 0);
	/* He who is out gets no label: his says what it said. */
	ck_assert_uint_eq(rig.disks[2]->held_count, 0);
	ck_assert_int_eq(state_on(2, 2), LABEL_IN_SYNC);
	ck_assert_int_eq(state_on(0, 2), LABEL_FAILED);
	ck_assert_int_eq(state_on(1, 2), LABEL_FAILED);
}
END_TEST

START_TEST(a_write_after_the_failure_waits_as_well)
{
	struct rig_io *first, *second;

	hold_labels(3);
	rig.disks[2]->fail = HOST;
	first = rig_send(IO_WRITE, 0, 4096, 1);
	second = rig_send(IO_WRITE, MIB, 4096, 1);
	ck_assert(!rig_ended(first));
	ck_assert(!rig_ended(second));
	rig_release(0);
	ck_assert(!rig_ended(second));
	rig_release(1);
	ck_assert_int_eq(rig_take(first), 0);
	ck_assert_int_eq(rig_take(second), 0);
}
END_TEST

START_TEST(who_is_out_is_sent_nothing_more)
{
	rig.disks[2]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig_forget();
	ck_assert_int_eq(rig_write(MIB, 4096, 2), 0);
	ck_assert_int_eq(rig_read(0, 4096, 1), 0);
	rig_settle();
	ck_assert_uint_eq(rig.disks[2]->record_count, 0);
}
END_TEST

START_TEST(a_label_that_excludes_names_the_one_before)
{
	struct label before, after;

	ck_assert_int_eq(rig_label(0, &before), 0);
	rig.disks[2]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	ck_assert_int_eq(rig_label(0, &after), 0);
	ck_assert_uint_ne(after.id, before.id);
	ck_assert_uint_eq(after.generation, before.generation + 1);
	ck_assert_uint_eq(after.ancestor_count, 1);
	ck_assert_uint_eq(after.ancestors[0].id, before.id);
	ck_assert_uint_eq(after.ancestors[0].listed, 7);
	/* It is settled: the next one goes back no further. */
	rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	ck_assert_int_eq(rig_label(0, &before), 0);
	ck_assert_uint_eq(before.ancestor_count, 1);
	ck_assert_uint_eq(before.ancestors[0].id, after.id);
	ck_assert_uint_eq(before.ancestors[0].listed, 3);
}
END_TEST

START_TEST(a_second_failure_while_a_label_is_written_makes_another_one)
{
	struct rig_io *io, *other;
	struct label label;

	hold_labels(3);
	rig.disks[2]->fail = HOST;
	io = rig_send(IO_WRITE, 0, 4096, 1);
	rig.disks[1]->fail = HOST;
	other = rig_send(IO_WRITE, MIB, 4096, 2);
	ck_assert_uint_eq(rig.disks[0]->held_count, 2);
	ck_assert_uint_eq(rig.disks[1]->held_count, 2);
	rig_end(0, 0);
	rig_end(0, 0);
	rig_end(1, 0);
	rig_end(1, 0);
	/* The first label is everywhere; it does not exclude disk 1, so nothing is answered. */
	ck_assert(!rig_ended(io));
	ck_assert(!rig_ended(other));
	ck_assert_uint_eq(rig.disks[0]->held_count, 2);
	ck_assert_uint_eq(rig.disks[1]->held_count, 0);
	rig_release(0);
	ck_assert_int_eq(rig_take(io), 0);
	ck_assert_int_eq(rig_take(other), 0);
	ck_assert_int_eq(rig_label(0, &label), 0);
	ck_assert_uint_eq(label_listed(&label), 1);
	ck_assert_uint_eq(label.ancestor_count, 2);
	ck_assert_uint_eq(label.ancestors[1].listed, 3);
}
END_TEST

START_TEST(who_cannot_take_the_label_is_out_by_the_next_one)
{
	struct rig_io *io;

	hold_labels(3);
	rig.disks[2]->fail = HOST;
	io = rig_send(IO_WRITE, 0, 4096, 1);
	rig_end(1, -EIO);
	rig_end(1, 0);
	rig_end(0, 0);
	rig_end(0, 0);
	ck_assert(!rig_ended(io));
	ck_assert_uint_eq(rig.disks[0]->held_count, 2);
	rig_release(0);
	ck_assert_int_eq(rig_take(io), 0);
	ck_assert_int_eq(state_on(0, 1), LABEL_FAILED);
	ck_assert_int_eq(state_on(0, 2), LABEL_FAILED);
	ck_assert_int_eq(rig_info().state, ARRAY_DEGRADED);
}
END_TEST

START_TEST(without_a_label_on_the_last_one_nothing_is_acknowledged)
{
	struct rig_io *io;

	rig.disks[0]->fail = LABELS;
	rig.disks[1]->fail = HOST;
	rig.disks[2]->fail = HOST;
	io = rig_send(IO_WRITE, 0, 4096, 1);
	/* Only 0 took it, and it cannot say so. */
	ck_assert_int_eq(rig_take(io), -EIO);
	ck_assert(!settled());
	ck_assert_int_eq(rig_write(MIB, 4096, 1), -EIO);
	rig.disks[0]->fail = 0;
	ck_assert_int_eq(rig_write(MIB, 4096, 1), -EIO);
}
END_TEST

/* --- whom the array needs --- */

static const struct {
	unsigned level, disks;
	uint32_t fail; /* in this order of bits */
	uint32_t stay; /* of those, who cannot go */
} needs[] = {
	{ 0, 1, 0x1, 0x1 }, { 0, 3, 0x7, 0x7 },    { 1, 2, 0x3, 0x2 }, { 1, 4, 0xf, 0x8 },
	{ 1, 3, 0x6, 0 },   { 10, 4, 0x3, 0x2 },   { 10, 4, 0x5, 0 },  { 10, 4, 0xf, 0xa },
	{ 10, 8, 0x55, 0 }, { 10, 8, 0xff, 0xaa },
};

START_TEST(nobody_goes_whom_the_array_cannot_do_without)
{
	rig_setup(needs[_i].disks, SIZE);
	rig_create_clean(needs[_i].level, needs[_i].disks);
	for (unsigned i = 0; i < needs[_i].disks; i++) {
		bool stays = needs[_i].stay >> i & 1;
		struct member *member = rig.array->members[i];

		if (!(needs[_i].fail >> i & 1))
			continue;
		ck_assert_int_eq(membership_failed(rig.array, member, -EIO, "test"), !stays);
		ck_assert_int_eq(member->state, stays ? MEMBER_IN_SYNC : MEMBER_OUT);
		ck_assert_ptr_eq(rig.array->roles[i], stays ? member : NULL);
		/* Once out, always told so. */
		ck_assert_int_eq(membership_failed(rig.array, member, -EIO, "test"), !stays);
	}
	fake_env_run(rig.env);
	ck_assert(settled());
	for (unsigned i = 0; i < needs[_i].disks; i++) {
		bool out = (needs[_i].fail & ~needs[_i].stay) >> i & 1;

		ck_assert_int_eq(rig.array->label.members[i].state,
				 out ? LABEL_FAILED : LABEL_IN_SYNC);
	}
	rig_teardown();
}
END_TEST

/* --- adding --- */

/* Disk 2 was out and is about to be listed again: the label that says so is held everywhere. */
static void about_to_add(void)
{
	rig.disks[2]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig.disks[2]->fail = 0;
	rig.disks[2]->hold = RESYNC;
	ck_assert_int_eq(rig_add(2), 0);
	ck_assert_int_eq(state_on(0, 2), LABEL_REBUILDING);
	ck_assert_uint_eq(rig.disks[2]->held_count, 1);
	hold_labels(7);
	rig_end(2, 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(rig.disks[i]->held_count, 2);
	ck_assert_int_eq(rig.array->members[2]->state, MEMBER_REBUILDING);
}

static void end_labels(unsigned disk)
{
	rig_end(disk, 0);
	rig_end(disk, 0);
}

START_TEST(somebody_is_in_only_when_the_label_is_on_everybody_it_lists)
{
	static const unsigned orders[][6] = {
		{ 0, 0, 1, 1, 2, 2 },
		{ 2, 2, 1, 1, 0, 0 },
		{ 1, 2, 0, 1, 2, 0 },
	};

	about_to_add();
	for (unsigned i = 0; i < 6; i++) {
		ck_assert_int_eq(rig.array->members[2]->state, MEMBER_REBUILDING);
		ck_assert_int_eq(rig_info().state, ARRAY_DEGRADED);
		rig_end(orders[_i][i], 0);
	}
	ck_assert_int_eq(rig.array->members[2]->state, MEMBER_IN_SYNC);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(state_on(i, 2), LABEL_IN_SYNC);
}
END_TEST

/* How disk 1 fails while the label that adds disk 2 is on its way, and when. */
enum failure { FAIL_LABEL, FAIL_WRITE, FAIL_WRITE_LATE };

START_TEST(if_somebody_fails_meanwhile_the_next_label_does_not_list_him)
{
	struct rig_io *io = NULL;
	struct label label;

	about_to_add();
	if (_i == FAIL_WRITE_LATE)
		end_labels(2);
	if (_i != FAIL_LABEL) {
		rig.disks[1]->fail = HOST;
		io = rig_send(IO_WRITE, 0, 4096, 5);
		ck_assert(!rig_ended(io));
	}
	rig_end(1, _i == FAIL_LABEL ? -EIO : 0);
	rig_end(1, 0);
	end_labels(0);
	if (_i != FAIL_WRITE_LATE)
		end_labels(2);
	/* The next one is on its way. */
	ck_assert_int_eq(rig.array->members[2]->state, MEMBER_REBUILDING);
	ck_assert_uint_eq(rig.disks[1]->held_count, 0);
	ck_assert(!io || !rig_ended(io));
	end_labels(0);
	ck_assert_int_eq(rig_label(0, &label), 0);
	ck_assert_uint_eq(label_listed(&label), 1);
	ck_assert_int_eq(label.members[1].state, LABEL_FAILED);
	ck_assert_int_eq(label.members[2].state, LABEL_REBUILDING);
	ck_assert_uint_eq(label.ancestors[label.ancestor_count - 1].listed, 7);
	end_labels(2);
	if (io)
		ck_assert_int_eq(rig_take(io), 0);
	/* And then he is added anew. */
	rig_release(0);
	rig_release(2);
	ck_assert_int_eq(rig.array->members[2]->state, MEMBER_IN_SYNC);
	ck_assert_int_eq(state_on(0, 2), LABEL_IN_SYNC);
	ck_assert_int_eq(state_on(0, 1), LABEL_FAILED);
}
END_TEST

START_TEST(who_is_being_added_and_fails_is_out)
{
	about_to_add();
	rig_end(2, -EIO);
	rig_end(2, 0);
	end_labels(0);
	end_labels(1);
	ck_assert_int_eq(rig.array->members[2]->state, MEMBER_OUT);
	ck_assert(!settled());
	rig_release(0);
	rig_release(1);
	ck_assert(settled());
	ck_assert_int_eq(state_on(0, 2), LABEL_FAILED);
	ck_assert_int_eq(state_on(1, 2), LABEL_FAILED);
	ck_assert_int_eq(rig_info().state, ARRAY_DEGRADED);
}
END_TEST

START_TEST(who_is_being_added_does_not_count_yet_as_one_that_holds_everything)
{
	struct member *last;

	about_to_add();
	last = rig.array->members[0];
	ck_assert(membership_failed(rig.array, rig.array->members[1], -EIO, "test"));
	ck_assert(!membership_failed(rig.array, last, -EIO, "test"));
	ck_assert_int_eq(last->state, MEMBER_IN_SYNC);
}
END_TEST

/* --- waiting --- */

struct waiting {
	struct settle_wait wait;
	unsigned calls;
	int error;
};

static void told(struct settle_wait *wait, int error)
{
	struct waiting *waiting = container_of(wait, struct waiting, wait);

	waiting->calls++;
	waiting->error = error;
}

START_TEST(who_waits_for_a_settled_label_is_told_once_and_later)
{
	struct waiting early = { .wait.fn = told }, late = { .wait.fn = told };

	membership_wait(rig.array, &early.wait);
	ck_assert_uint_eq(early.calls, 0);
	fake_env_run(rig.env);
	ck_assert_uint_eq(early.calls, 1);
	hold_labels(7);
	membership_change(rig.array);
	membership_wait(rig.array, &late.wait);
	fake_env_run(rig.env);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(late.calls, 0);
		rig_release(i);
	}
	ck_assert_uint_eq(late.calls, 1);
	ck_assert_int_eq(late.error, 0);
	ck_assert_uint_eq(early.calls, 1);
}
END_TEST

START_TEST(a_change_while_a_label_is_written_is_another_label)
{
	struct waiting wait = { .wait.fn = told };
	struct label label;
	uint64_t generation;

	ck_assert_int_eq(rig_label(0, &label), 0);
	generation = label.generation;
	hold_labels(1);
	membership_change(rig.array);
	membership_change(rig.array);
	membership_change(rig.array);
	membership_wait(rig.array, &wait.wait);
	fake_env_run(rig.env);
	end_labels(0);
	ck_assert_uint_eq(wait.calls, 0);
	end_labels(0);
	ck_assert_uint_eq(wait.calls, 1);
	ck_assert_int_eq(rig_label(0, &label), 0);
	ck_assert_uint_eq(label.generation, generation + 2);
	/* The one between was on all whom it lists. */
	ck_assert_uint_eq(label.ancestor_count, 1);
}
END_TEST

START_TEST(changes_may_come_without_end)
{
	hold_labels(1);
	membership_change(rig.array);
	for (unsigned i = 0; i < 3 * LABEL_ANCESTORS_MAX; i++) {
		membership_change(rig.array);
		end_labels(0);
		ck_assert(!settled());
	}
	end_labels(0);
	ck_assert(settled());
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("membership");
	TCase *out = tcase_create("out"), *need = tcase_create("need"), *in = tcase_create("in");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(out, setup, teardown);
	tcase_add_loop_test(
		out, a_write_that_skipped_a_member_waits_for_the_label_on_all_that_remain, 0, 4);
	tcase_add_test(out, a_write_after_the_failure_waits_as_well);
	tcase_add_test(out, who_is_out_is_sent_nothing_more);
	tcase_add_test(out, a_label_that_excludes_names_the_one_before);
	tcase_add_test(out, a_second_failure_while_a_label_is_written_makes_another_one);
	tcase_add_test(out, who_cannot_take_the_label_is_out_by_the_next_one);
	tcase_add_test(out, without_a_label_on_the_last_one_nothing_is_acknowledged);
	suite_add_tcase(suite, out);
	tcase_add_loop_test(need, nobody_goes_whom_the_array_cannot_do_without, 0,
			    (int)ARRAY_LEN(needs));
	suite_add_tcase(suite, need);
	tcase_add_checked_fixture(in, setup, teardown);
	tcase_add_loop_test(in, somebody_is_in_only_when_the_label_is_on_everybody_it_lists, 0, 3);
	tcase_add_loop_test(in, if_somebody_fails_meanwhile_the_next_label_does_not_list_him, 0, 3);
	tcase_add_test(in, who_is_being_added_and_fails_is_out);
	tcase_add_test(in, who_is_being_added_does_not_count_yet_as_one_that_holds_everything);
	tcase_add_test(in, who_waits_for_a_settled_label_is_told_once_and_later);
	tcase_add_test(in, a_change_while_a_label_is_written_is_another_label);
	tcase_add_test(in, changes_may_come_without_end);
	suite_add_tcase(suite, in);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
