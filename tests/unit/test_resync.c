/* SPDX-License-Identifier: MIT */
/* The resync: regions become equal, members come in, and only when nothing is doubtful (I10). */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/event.h"
#include "tests/fake/raid_rig.h"

#define SIZE (8 * MIB)
#define DATA (1 * MIB)

static void setup(void)
{
	rig_setup_clean(1, 2, SIZE);
}

/* Events of this name since AFTER. */
static unsigned events(enum event_id id, uint64_t after)
{
	json_t *list = event_list(after, EVENT_RING);
	unsigned count = 0;
	size_t i;
	json_t *row;

	json_array_foreach(list, i, row)
		count += strcmp(json_string_value(json_object_get(row, "name")), event_name(id)) ==
			 0;
	json_decref(list);
	return count;
}

static enum member_state state_of(unsigned member)
{
	return rig.array->members[member]->state;
}

/* Member 1 has missed a write of 4 KiB at OFFSET; it is not back yet. */
static void lose_one(uint64_t offset)
{
	rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_write(offset, 4096, 1), 0);
	rig.disks[1]->fail = 0;
	rig_forget();
}

/* --- regions --- */

static const struct {
	unsigned level, disks;
} levels[] = { { 1, 2 }, { 1, 4 }, { 10, 4 }, { 10, 6 } };

START_TEST(all_that_was_dirty_at_a_crash_is_equal_at_the_end_and_nothing_else_was_touched)
{
	unsigned disks = levels[_i].disks, legs = levels[_i].level == 1 ? disks : 2;
	static uint8_t before[RIG_DISKS][7 * MIB];

	rig_teardown();
	rig_setup_clean(levels[_i].level, disks, SIZE);
	ck_assert_int_eq(rig_write(MIB, 64 * KIB, 1), 0);
	ck_assert_int_eq(rig_write(3 * MIB, 64 * KIB, 1), 0);
	rig_power_cut();
	for (unsigned i = 0; i < disks; i++) {
		fake_fill(rig.bytes[i] + DATA, 6 * MIB, i + 1);
		memcpy(before[i], rig.bytes[i] + DATA, 6 * MIB);
	}
	ck_assert_int_eq(rig_start((1u << disks) - 1, false), 0);
	rig_settle();
	ck_assert_uint_eq(rig_info().regions_doubtful, 0);
	ck_assert_uint_eq(rig_info().regions_dirty, 0);
	for (unsigned i = 0; i < disks; i++) {
		unsigned first = i / legs * legs;
		unsigned equal = 0;

		/* Region by region of the members' data: as the first leg's, or as it was. */
		for (unsigned region = 0; region < 6; region++) {
			const uint8_t *now = rig.bytes[i] + DATA + region * MIB;

			if (memcmp(now, before[first] + region * MIB, MIB) == 0)
				equal++;
			else
				ck_assert_mem_eq(now, before[i] + region * MIB, MIB);
		}
		ck_assert_uint_eq(equal, i == first ? 6 : 2);
	}
	rig_forget();
	resync_kick(rig.array->resync);
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig_count(0, IO_READ, IO_RESYNC), 0);
}
END_TEST

START_TEST(a_region_that_is_doubted_meanwhile_is_made_equal_again)
{
	lose_one(0);
	rig.disks[1]->hold = RESYNC;
	ck_assert_int_eq(rig_add(1), 0);
	ck_assert_uint_eq(rig.disks[1]->held_count, 1);
	regions_doubt_dirty(rig.array->regions);
	rig_forget();
	rig_release(1);
	/* 8 pieces, and 7 more of the first time. */
	ck_assert_uint_eq(rig_count(0, IO_READ, IO_RESYNC), 15);
	ck_assert_int_eq(state_of(1), MEMBER_IN_SYNC);
}
END_TEST

/* As deep as there are regions it must not recurse, nor hold up the loop. */
START_TEST(an_array_of_many_regions_and_one_leg_needs_no_stack)
{
	const struct array_spec spec = { .name = "big", .level = 1 };
	struct array_disk disks[2];
	struct array_info info;

	rig_teardown();
	rig_setup(0, 100 * GIB);
	for (unsigned i = 0; i < 2; i++)
		disks[i] = rig_offer(i);
	rig.disks[1]->hold = RESYNC;
	ck_assert_ptr_nonnull(array_create(rig.env, &spec, disks, 2, rig_answer, NULL));
	fake_env_run(rig.env);
	ck_assert_int_eq(rig.error, 0);
	info = rig_info();
	ck_assert_uint_gt(info.regions_doubtful, 100000);
	ck_assert_int_eq(rig_remove(1), 0);
	rig_release(1);
	ck_assert_uint_eq(rig_info().regions_doubtful, 0);
}
END_TEST

/* --- members --- */

START_TEST(a_member_is_in_after_a_flush_of_all_that_began_when_nothing_was_doubtful)
{
	unsigned flushing;

	lose_one(0);
	rig.disks[1]->hold = RESYNC;
	ck_assert_int_eq(rig_add(1), 0);
	rig.disks[0]->hold = MAPS;
	rig.disks[1]->hold = MAPS;
	ck_assert_uint_eq(rig_count(1, IO_FLUSH, IO_MAP), 0);
	while (STAILQ_FIRST(&rig.disks[1]->held)->op != IO_FLUSH) {
		ck_assert_uint_eq(rig_count(0, IO_FLUSH, IO_MAP), 0);
		rig_end(1, 0);
	}
	ck_assert_uint_eq(rig_info().regions_doubtful, 0);
	for (flushing = 0; flushing < 2; flushing++) {
		ck_assert_int_eq(state_of(1), MEMBER_REBUILDING);
		ck_assert_int_eq(rig.array->label.members[1].state, LABEL_REBUILDING);
		rig_end(_i ? 1 - flushing : flushing, 0);
	}
	ck_assert_int_eq(state_of(1), MEMBER_IN_SYNC);
	ck_assert_int_eq(rig.array->label.members[1].state, LABEL_IN_SYNC);
	ck_assert_mem_eq(rig_data(0), rig_data(1), SIZE - 2 * MIB);
}
END_TEST

/* Rebuilding member 1 is over but for the flushes, which are held. */
static void up_to_the_flush(void)
{
	lose_one(0);
	rig.disks[1]->hold = RESYNC;
	ck_assert_int_eq(rig_add(1), 0);
	rig.disks[0]->hold = MAPS;
	rig.disks[1]->hold = MAPS;
	rig_end(1, 0);
	ck_assert_uint_eq(rig_count(0, IO_FLUSH, IO_MAP), 1);
	ck_assert_uint_eq(rig_count(1, IO_FLUSH, IO_MAP), 1);
}

START_TEST(doubt_that_comes_during_that_flush_comes_first)
{
	up_to_the_flush();
	rig.disks[0]->hold = rig.disks[1]->hold = RESYNC;
	regions_doubt_dirty(rig.array->regions);
	rig_end(0, 0);
	rig_end(1, 0);
	ck_assert_int_eq(state_of(1), MEMBER_REBUILDING);
	ck_assert_uint_eq(rig_info().regions_doubtful, 1);
	rig_release(0);
	rig_release(1);
	ck_assert_int_eq(state_of(1), MEMBER_IN_SYNC);
	ck_assert_uint_eq(rig_count(1, IO_FLUSH, IO_MAP), 2);
}
END_TEST

START_TEST(if_that_flush_fails_nobody_comes_in)
{
	unsigned bad = (unsigned)_i;

	up_to_the_flush();
	rig_end(0, bad == 0 ? -EIO : 0);
	rig_end(1, bad == 1 ? -EIO : 0);
	rig_release(0);
	rig_release(1);
	if (bad == 1) {
		ck_assert_int_eq(state_of(1), MEMBER_OUT);
		ck_assert_int_eq(rig.array->label.members[1].state, LABEL_FAILED);
	} else {
		/* Leg 0 is all there is: it stays, and nothing that rests on it counts. */
		ck_assert_int_eq(state_of(0), MEMBER_IN_SYNC);
		ck_assert_int_eq(state_of(1), MEMBER_REBUILDING);
		ck_assert_int_eq(rig.array->label.members[1].state, LABEL_REBUILDING);
	}
	ck_assert_int_eq(rig_info().state, ARRAY_DEGRADED);
}
END_TEST

START_TEST(nobody_comes_in_while_a_region_cannot_be_read)
{
	/* The last region is a shorter one. */
	uint64_t last = array_blk(rig.array)->size_bytes - 64 * KIB;
	uint64_t bad = _i ? last : 300 * KIB;

	lose_one(align_down(bad, MIB));
	rig.disks[0]->bad_offset = DATA + bad;
	rig.disks[0]->bad_length = 4096;
	ck_assert_int_eq(rig_add(1), 0);
	ck_assert_int_eq(state_of(1), MEMBER_REBUILDING);
	ck_assert_uint_eq(rig_info().regions_doubtful, 1);
	/* What could be read is there. */
	ck_assert_mem_eq(rig_data(0), rig_data(1), bad);
	ck_assert_int_eq(rig_write(bad, 4096, 9), 0);
	resync_kick(rig.array->resync);
	fake_env_run(rig.env);
	ck_assert_int_eq(state_of(1), MEMBER_IN_SYNC);
	ck_assert_mem_eq(rig_data(0), rig_data(1), SIZE - 2 * MIB);
}
END_TEST

START_TEST(a_member_that_comes_while_another_rebuilds_comes_in_with_it)
{
	rig_teardown();
	rig_setup_clean(1, 3, SIZE);
	rig.disks[1]->fail = rig.disks[2]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	ck_assert_int_eq(rig_write(4 * MIB, 4096, 1), 0);
	rig.disks[1]->fail = rig.disks[2]->fail = 0;
	rig.disks[1]->hold = RESYNC;
	ck_assert_int_eq(rig_add(1), 0);
	ck_assert_int_eq(rig_add(2), 0);
	rig_release(1);
	ck_assert_int_eq(state_of(1), MEMBER_IN_SYNC);
	ck_assert_int_eq(state_of(2), MEMBER_IN_SYNC);
	ck_assert_mem_eq(rig_data(0), rig_data(1), SIZE - 2 * MIB);
	ck_assert_mem_eq(rig_data(0), rig_data(2), SIZE - 2 * MIB);
}
END_TEST

START_TEST(a_member_that_fails_and_comes_back_in_its_rebuild_is_copied_in_full)
{
	lose_one(0);
	ck_assert_int_eq(rig_write(4 * MIB, 4096, 2), 0);
	rig.disks[1]->hold = RESYNC;
	for (unsigned round = 0; round < 2; round++) {
		ck_assert_int_eq(rig_add(1), 0);
		for (unsigned i = 0; i < 3; i++)
			rig_end(1, 0);
		rig_end(1, -EIO);
		ck_assert_int_eq(rig_info().state, ARRAY_DEGRADED);
		ck_assert_int_eq(rig.array->label.members[1].state, LABEL_FAILED);
		memset(rig.bytes[1] + DATA, 0x77, 4096);
	}
	rig.disks[1]->hold = 0;
	ck_assert_int_eq(rig_add(1), 0);
	ck_assert_int_eq(state_of(1), MEMBER_IN_SYNC);
	ck_assert_mem_eq(rig_data(0), rig_data(1), SIZE - 2 * MIB);
}
END_TEST

START_TEST(without_labels_it_gives_up_instead_of_trying_for_ever)
{
	unsigned flushes;

	up_to_the_flush();
	rig.disks[0]->fail = LABELS;
	rig_release(0);
	rig_release(1);
	ck_assert_int_eq(state_of(1), MEMBER_REBUILDING);
	flushes = rig_count(0, IO_FLUSH, IO_MAP);
	fake_env_advance(rig.env, 3600 * NS_PER_S);
	ck_assert_uint_eq(rig_count(0, IO_FLUSH, IO_MAP), flushes);
	ck_assert_int_eq(rig_write(0, 4096, 1), -EIO);
}
END_TEST

/* --- what is told, and the end --- */

START_TEST(its_start_its_end_and_who_came_in_are_told_once)
{
	uint64_t before = event_newest();

	lose_one(0);
	ck_assert_int_eq(rig_add(1), 0);
	ck_assert_uint_eq(events(EVENT_RESYNC_STARTED, before), 1);
	ck_assert_uint_eq(events(EVENT_MEMBER_ADDED, before), 1);
	ck_assert_uint_eq(events(EVENT_RESYNC_DONE, before), 1);
}
END_TEST

START_TEST(who_was_nearly_in_is_not_told_of)
{
	uint64_t before = event_newest();

	up_to_the_flush();
	rig.disks[1]->hold = LABELS;
	rig.disks[0]->hold = 0;
	rig_end(0, 0);
	rig_end(1, 0);
	rig_end(1, -EIO);
	rig_release(1);
	ck_assert_int_eq(state_of(1), MEMBER_OUT);
	ck_assert_uint_eq(events(EVENT_MEMBER_ADDED, before), 0);
}
END_TEST

START_TEST(a_stop_waits_for_the_piece_under_way_and_the_rest_is_done_after_the_next_start)
{
	unsigned before;

	lose_one(0);
	ck_assert_int_eq(rig_write(4 * MIB, 4096, 2), 0);
	rig.disks[1]->hold = RESYNC;
	ck_assert_int_eq(rig_add(1), 0);
	before = rig.answers;
	array_stop(rig.array, rig_answer, NULL);
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig.answers, before);
	rig.disks[1]->hold = 0;
	rig_end(1, 0);
	fake_env_advance(rig.env, NS_PER_S);
	ck_assert_uint_eq(rig.answers, before + 1);
	rig.array = NULL;
	/* It is still rebuilding, and goes on where it was. */
	rig_forget();
	ck_assert_int_eq(rig_start(3, false), 0);
	ck_assert_int_eq(state_of(1), MEMBER_IN_SYNC);
	ck_assert_uint_eq(rig_count(1, IO_WRITE, IO_RESYNC), 16);
	ck_assert_mem_eq(rig_data(0), rig_data(1), SIZE - 2 * MIB);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("resync");
	TCase *tcase = tcase_create("resync");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, rig_teardown);
	tcase_add_loop_test(
		tcase,
		all_that_was_dirty_at_a_crash_is_equal_at_the_end_and_nothing_else_was_touched, 0,
		(int)ARRAY_LEN(levels));
	tcase_add_test(tcase, a_region_that_is_doubted_meanwhile_is_made_equal_again);
	tcase_add_test(tcase, an_array_of_many_regions_and_one_leg_needs_no_stack);
	tcase_add_loop_test(
		tcase, a_member_is_in_after_a_flush_of_all_that_began_when_nothing_was_doubtful, 0,
		2);
	tcase_add_test(tcase, doubt_that_comes_during_that_flush_comes_first);
	tcase_add_loop_test(tcase, if_that_flush_fails_nobody_comes_in, 0, 2);
	tcase_add_loop_test(tcase, nobody_comes_in_while_a_region_cannot_be_read, 0, 2);
	tcase_add_test(tcase, a_member_that_comes_while_another_rebuilds_comes_in_with_it);
	tcase_add_test(tcase, a_member_that_fails_and_comes_back_in_its_rebuild_is_copied_in_full);
	tcase_add_test(tcase, without_labels_it_gives_up_instead_of_trying_for_ever);
	tcase_add_test(tcase, its_start_its_end_and_who_came_in_are_told_once);
	tcase_add_test(tcase, who_was_nearly_in_is_not_told_of);
	tcase_add_test(
		tcase,
		a_stop_waits_for_the_piece_under_way_and_the_rest_is_done_after_the_next_start);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
