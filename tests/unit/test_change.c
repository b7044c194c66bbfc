/* SPDX-License-Identifier: MIT */
/* Members that come and go: who gets what, what is durable before it counts, the end. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/regions_int.h"
#include "tests/fake/change_rig.h"

#define SIZE (8 * MIB)

static void setup(void)
{
	rig_setup_clean(1, 2, SIZE);
}

/* --- who comes back --- */

START_TEST(a_returning_member_gets_what_is_dirty_and_nothing_else)
{
	lose(1, 2 * MIB);
	/* What it had and still has is not asked for: a mark shows that nobody came there. */
	rig_data(1)[0] = 0xaa;
	rig_data(1)[4 * MIB] = 0xaa;
	ck_assert_int_eq(rig_add(1), 0);
	rig_settle();
	ck_assert_uint_eq(rig_count(1, IO_WRITE, IO_RESYNC), 8);
	ck_assert_uint_eq(rig_data(1)[0], 0xaa);
	ck_assert_uint_eq(rig_data(1)[4 * MIB], 0xaa);
	ck_assert_mem_eq(rig_data(0) + 2 * MIB, rig_data(1) + 2 * MIB, MIB);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	ck_assert_uint_eq(rig_info().member_count, 2);
}
END_TEST

/* Somebody kept the disk as it was some labels ago, and puts that back. */
START_TEST(an_old_copy_of_a_member_gets_everything)
{
	uint8_t *old = malloc(SIZE);

	ck_assert_ptr_nonnull(old);
	memcpy(old, rig.bytes[1], SIZE);
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(rig_stop(), 0);
		ck_assert_int_eq(rig_start(3, false), 0);
		rig_settle();
	}
	lose(1, 2 * MIB);
	memcpy(rig.bytes[1], old, SIZE);
	free(old);
	ck_assert_int_eq(rig_add(1), 0);
	rig_settle();
	ck_assert_mem_eq(rig_data(0), rig_data(1), rig.array->label.data.length);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
}
END_TEST

START_TEST(a_new_disk_gets_everything_and_the_role_that_is_free)
{
	struct label label;

	fake_fill(rig_data(0), 4 * MIB, 77);
	lose(1, 2 * MIB);
	ck_assert_int_eq(rig_add(2), 0);
	rig_settle();
	ck_assert_mem_eq(rig_data(0), rig_data(2), rig.array->label.data.length);
	ck_assert_int_eq(rig_label(2, &label), 0);
	ck_assert_uint_eq(label.self, 2);
	ck_assert_uint_eq(label.members[2].role, 1);
	ck_assert_int_eq(label.members[2].state, LABEL_IN_SYNC);
	ck_assert_int_eq(label.members[1].state, LABEL_REMOVED);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
}
END_TEST

START_TEST(whose_role_was_taken_comes_back_as_a_stranger)
{
	lose(1, 2 * MIB);
	ck_assert_int_eq(rig_add(2), 0);
	rig_settle();
	ck_assert_int_eq(rig_add(1), -EBUSY);
	ck_assert_str_eq(rig.text, "array a: no role is free for d1");
	lose(2, 4 * MIB);
	fake_fill(rig_data(0), MIB, 99);
	ck_assert_int_eq(rig_add(1), 0);
	rig_settle();
	/* Everything, and another entry. */
	ck_assert_mem_eq(rig_data(0), rig_data(1), rig.array->label.data.length);
	ck_assert_int_eq(entry(1), LABEL_REMOVED);
	ck_assert_int_eq(entry(2), LABEL_REMOVED);
	ck_assert_int_eq(entry(3), LABEL_IN_SYNC);
	ck_assert_uint_eq(rig.array->label.members[3].role, 1);
}
END_TEST

START_TEST(who_was_removed_comes_back_as_a_stranger)
{
	ck_assert_int_eq(rig_remove(1), 0);
	ck_assert_int_eq(entry(1), LABEL_REMOVED);
	fake_fill(rig_data(0), MIB, 99);
	ck_assert_int_eq(rig_add(1), 0);
	rig_settle();
	ck_assert_mem_eq(rig_data(0), rig_data(1), rig.array->label.data.length);
	ck_assert_int_eq(entry(2), LABEL_IN_SYNC);
}
END_TEST

/* The label counts on where the disk's own had got to. */
START_TEST(a_disk_with_a_label_of_elsewhere_says_from_then_on_what_we_say)
{
	struct label label;

	ck_assert_int_eq(rig_label(0, &label), 0);
	label.array[0] ^= 1;
	label.sequence = 5000;
	rig_disk(2);
	rig_put_label(2, &label);
	lose(1, 0);
	ck_assert_int_eq(rig_add(2), 0);
	ck_assert_int_eq(rig_probe(2, &label), 0);
	ck_assert_int_eq(uuid_compare(label.array, rig.array->label.array), 0);
	ck_assert_uint_gt(label.sequence, 5000);
}
END_TEST

START_TEST(in_level_10_a_member_returns_to_its_own_pair)
{
	rig_teardown();
	rig_setup_clean(10, 6, SIZE);
	rig.disks[1]->fail = rig.disks[4]->fail = HOST;
	for (unsigned chunk = 0; chunk < 3; chunk++)
		ck_assert_int_eq(rig_write(chunk * 64 * KIB, 64 * KIB, chunk + 1), 0);
	rig.disks[1]->fail = rig.disks[4]->fail = 0;
	ck_assert_int_eq(rig_add(4), 0);
	rig_settle();
	ck_assert_int_eq(entry(4), LABEL_IN_SYNC);
	ck_assert_int_eq(entry(1), LABEL_FAILED);
	ck_assert_mem_eq(rig_data(4), rig_data(5), 64 * KIB);
	/* A new one takes what is left. */
	ck_assert_int_eq(rig_add(6), 0);
	rig_settle();
	ck_assert_uint_eq(rig.array->label.members[6].role, 1);
	ck_assert_mem_eq(rig_data(6), rig_data(0), rig.array->label.data.length);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
}
END_TEST

/* --- refused --- */

START_TEST(disks_that_cannot_be_members_are_refused)
{
	static const struct {
		int error;
		const char *text;
	} cases[] = {
		{ -EBUSY, "array a: no role is free for d2" },
		{ -EINVAL, "array a: d2 has blocks of 4096 bytes, the others of 512" },
		{ -EINVAL, "array a: d2 is too small" },
	};

	if (_i > 0)
		lose(1, 0);
	rig.block_size = _i == 1 ? 4096 : 512;
	rig.sizes[2] = _i == 2 ? SIZE - 64 * KIB : SIZE;
	ck_assert_int_eq(rig_add(2), cases[_i].error);
	ck_assert_str_eq(rig.text, cases[_i].text);
	ck_assert_uint_eq(rig_count(2, IO_WRITE, IO_LABEL), 0);
	ck_assert_int_eq(entry(2), LABEL_NONE);
}
END_TEST

START_TEST(level_0_takes_nobody_in)
{
	rig_teardown();
	rig_setup_clean(0, 2, SIZE);
	ck_assert_int_eq(rig_add(2), -EBUSY);
	ck_assert_int_eq(rig_remove(1), -EBUSY);
}
END_TEST

/* When there is no new entry any more, the first of those who were removed serves again. */
START_TEST(an_array_may_have_any_number_of_members_one_after_the_other)
{
	unsigned member = 1, next = 2;

	for (unsigned round = 0; round < 3 * LABEL_MEMBERS_MAX; round++) {
		ck_assert_int_eq(rig_remove(member), 0);
		ck_assert_int_eq(rig_add(1), 0);
		ck_assert_int_eq(entry(next), LABEL_IN_SYNC);
		rig_settle();
		rig_forget();
		member = next;
		next = member > 1 && member + 1 < LABEL_MEMBERS_MAX ? member + 1 : 1;
	}
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig_stop();
	ck_assert_int_eq(rig_start(3, false), 0);
	ck_assert_str_eq(rig.text, "array a: healthy [UU]");
	ck_assert_int_eq(rig_read(0, 4096, 1), 0);
}
END_TEST

START_TEST(two_adds_for_one_role_are_one)
{
	struct answer one, two;

	lose(1, 0);
	add(2, &one);
	add(3, &two);
	fake_env_run(rig.env);
	ck_assert_uint_eq(one.calls, 1);
	ck_assert_uint_eq(two.calls, 1);
	ck_assert_int_eq(one.error, 0);
	ck_assert_int_eq(two.error, -EBUSY);
	ck_assert_str_eq(two.text, "array a: no role is free for d3");
	ck_assert_int_eq(entry(2), LABEL_IN_SYNC);
	ck_assert_int_eq(entry(3), LABEL_NONE);
}
END_TEST

START_TEST(whose_role_is_just_being_taken_is_a_stranger_already)
{
	struct answer one, two;

	rig_teardown();
	rig_setup_clean(1, 3, SIZE);
	lose(1, 0);
	lose(2, 0);
	rig.disks[0]->hold = MAPS;
	add(3, &one);
	fake_env_run(rig.env);
	ck_assert_int_eq(entry(1), LABEL_FAILED); /* no label says otherwise yet */
	add(1, &two);
	fake_env_run(rig.env);
	rig_release(0);
	rig_settle();
	ck_assert_int_eq(one.error, 0);
	ck_assert_int_eq(two.error, 0);
	ck_assert_int_eq(entry(1), LABEL_REMOVED);
	ck_assert_int_eq(entry(2), LABEL_REMOVED);
	ck_assert_uint_eq(rig.array->label.members[3].role, 1);
	ck_assert_uint_eq(rig.array->label.members[4].role, 2);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
}
END_TEST

/* --- order --- */

START_TEST(what_a_member_lacks_is_durably_doubtful_before_a_label_names_it)
{
	struct answer answer;
	struct label label;
	uint64_t sequence;
	const void *page;

	lose(1, 2 * MIB);
	rig_disk(2)->hold = MAPS | RESYNC;
	rig.disks[0]->hold = MAPS | RESYNC;
	add(2, &answer);
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_MAP), 1);
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_LABEL), 0);
	rig.disks[0]->hold = RESYNC;
	while (STAILQ_FIRST(&rig.disks[0]->held)->purpose != IO_MAP)
		rig_end(0, 0);
	rig_end(0, 0);
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_LABEL), 0);
	ck_assert_uint_eq(answer.calls, 0);
	rig.disks[2]->hold = RESYNC;
	while (rig.disks[2]->held_count && !answer.calls)
		rig_end(2, 0);
	ck_assert_uint_eq(answer.calls, 1);
	ck_assert_int_eq(answer.error, 0);
	ck_assert_int_eq(rig_label(0, &label), 0);
	ck_assert_int_eq(label.members[2].state, LABEL_REBUILDING);
	for (unsigned disk = 0; disk < 3; disk += 2) {
		page = regions_page_newest(array_tag(&label), 0,
					   rig.bytes[disk] + label.maps[0].offset,
					   rig.bytes[disk] + label.maps[1].offset, &sequence);
		ck_assert_ptr_nonnull(page);
		for (unsigned i = 0; i < 7; i++)
			ck_assert(regions_page_has(page, i));
	}
}
END_TEST

START_TEST(the_answer_waits_for_the_label)
{
	struct answer answer;

	lose(1, 2 * MIB);
	rig.disks[0]->hold = LABELS;
	add(1, &answer);
	fake_env_run(rig.env);
	ck_assert_uint_eq(answer.calls, 0);
	rig_end(0, 0);
	ck_assert_uint_eq(answer.calls, 0);
	rig_end(0, 0);
	ck_assert_uint_eq(answer.calls, 1);
	ck_assert_int_eq(answer.error, 0);
}
END_TEST

START_TEST(who_fails_as_it_comes_is_told_so)
{
	struct answer answer;

	lose(1, 2 * MIB);
	rig_disk(2)->fail = _i ? MAPS : LABELS;
	add(2, &answer);
	fake_env_run(rig.env);
	ck_assert_uint_eq(answer.calls, 1);
	ck_assert_int_eq(answer.error, -EIO);
	ck_assert_str_eq(answer.text, "array a: d2 failed as it came");
	ck_assert_int_eq(rig_info().state, ARRAY_DEGRADED);
	/* And it may try again. */
	rig.disks[2]->fail = 0;
	ck_assert_int_eq(rig_add(2), 0);
	rig_settle();
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	ck_assert_mem_eq(rig_data(0), rig_data(2), rig.array->label.data.length);
}
END_TEST

START_TEST(without_labels_an_add_fails)
{
	struct answer answer;

	lose(1, 2 * MIB);
	rig.disks[0]->fail = LABELS;
	add(1, &answer);
	fake_env_run(rig.env);
	ck_assert_uint_eq(answer.calls, 1);
	ck_assert_int_eq(answer.error, -EIO);
	ck_assert_str_eq(answer.text, "array a: its labels cannot be written");
}
END_TEST

/* --- remove --- */

START_TEST(a_member_that_is_removed_is_out_by_a_durable_label)
{
	struct answer answer = { 0 };

	rig.disks[0]->hold = LABELS;
	ck_assert_int_eq(array_remove(rig.array, 1, answered, &answer), 0);
	fake_env_run(rig.env);
	ck_assert_uint_eq(answer.calls, 0);
	rig_release(0);
	ck_assert_uint_eq(answer.calls, 1);
	ck_assert_int_eq(answer.error, 0);
	ck_assert_int_eq(entry(1), LABEL_REMOVED);
	rig_forget();
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	ck_assert_uint_eq(rig.disks[1]->record_count, 0);
	/* Once more is no harm. */
	ck_assert_int_eq(rig_remove(1), 0);
}
END_TEST

START_TEST(who_is_needed_or_not_there_is_not_removed)
{
	static const unsigned none[] = { 2, 31, 32, 5000 };

	for (unsigned i = 0; i < ARRAY_LEN(none); i++)
		ck_assert_int_eq(rig_remove(none[i]), -ENOENT);
	lose(1, 0);
	ck_assert_int_eq(rig_remove(0), -EBUSY);
	ck_assert_str_eq(rig.text, "array a: it cannot do without d0");
	ck_assert_int_eq(entry(0), LABEL_IN_SYNC);
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	ck_assert_int_eq(rig_remove(1), 0);
	ck_assert_int_eq(entry(1), LABEL_REMOVED);
}
END_TEST

START_TEST(an_absent_member_can_be_removed)
{
	rig_stop();
	ck_assert_int_eq(rig_start(1, true), 0);
	ck_assert_int_eq(entry(1), LABEL_FAILED);
	ck_assert_int_eq(rig_remove(1), 0);
	ck_assert_int_eq(entry(1), LABEL_REMOVED);
}
END_TEST

START_TEST(a_rebuild_can_be_removed)
{
	lose(1, 2 * MIB);
	rig.disks[1]->hold = RESYNC;
	ck_assert_int_eq(rig_add(1), 0);
	ck_assert_int_eq(rig_remove(1), 0);
	ck_assert_int_eq(entry(1), LABEL_REMOVED);
	rig_release(1);
	rig_settle();
	ck_assert_int_eq(entry(1), LABEL_REMOVED);
}
END_TEST

/* --- stop --- */

START_TEST(a_stop_leaves_clean_maps_and_then_a_clean_label)
{
	struct label label;
	uint64_t sequence;
	unsigned before;
	const void *page;

	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig.disks[0]->hold = MAPS;
	before = rig.answers;
	array_stop(rig.array, rig_answer, NULL);
	fake_env_run(rig.env);
	while (rig.disks[0]->held_count) {
		ck_assert_uint_eq(rig.answers, before);
		ck_assert_int_eq(rig_label(0, &label), 0);
		ck_assert_uint_eq(label.flags & LABEL_CLEAN, 0);
		rig_end(0, 0);
	}
	ck_assert_uint_eq(rig.answers, before + 1);
	rig.array = NULL;
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(rig_label(i, &label), 0);
		ck_assert_uint_eq(label.flags & LABEL_CLEAN, LABEL_CLEAN);
		page = regions_page_newest(array_tag(&label), 0,
					   rig.bytes[i] + label.maps[0].offset,
					   rig.bytes[i] + label.maps[1].offset, &sequence);
		ck_assert_ptr_nonnull(page);
		for (unsigned k = 0; k < 7; k++)
			ck_assert(!regions_page_has(page, k));
	}
}
END_TEST

START_TEST(a_degraded_array_stays_dirty_over_a_stop)
{
	lose(1, 2 * MIB);
	rig_stop();
	ck_assert_int_eq(rig_start(1, false), 0);
	ck_assert_uint_eq(rig_info().regions_dirty, 1);
}
END_TEST

START_TEST(an_add_while_it_is_stopped_is_refused_and_the_stop_waits_for_it)
{
	struct answer answer;
	unsigned before;

	lose(1, 2 * MIB);
	rig_disk(2)->hold = LABELS;
	add(2, &answer);
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig.disks[2]->held_count, LABEL_SLOTS);
	before = rig.answers;
	array_stop(rig.array, rig_answer, NULL);
	rig_settle();
	ck_assert_uint_eq(rig.answers, before);
	ck_assert_uint_eq(answer.calls, 0);
	rig_release(2);
	rig_settle();
	ck_assert_uint_eq(answer.calls, 1);
	ck_assert_int_eq(answer.error, -EBUSY);
	ck_assert_str_eq(answer.text, "array a: it is being stopped");
	ck_assert_uint_eq(rig.answers, before + 1);
	ck_assert_uint_eq(rig_count(2, IO_WRITE, IO_LABEL), 0);
	rig.array = NULL;
}
END_TEST

START_TEST(a_stop_waits_for_a_label_under_way)
{
	struct answer answer = { 0 };
	unsigned before = rig.answers;

	rig.disks[0]->hold = LABELS;
	ck_assert_int_eq(array_remove(rig.array, 1, answered, &answer), 0);
	array_stop(rig.array, rig_answer, NULL);
	fake_env_run(rig.env);
	ck_assert_uint_eq(answer.calls, 0);
	ck_assert_uint_eq(rig.answers, before);
	rig_release(0);
	rig_settle();
	ck_assert_uint_eq(answer.calls, 1);
	ck_assert_uint_eq(rig.answers, before + 1);
	rig.array = NULL;
}
END_TEST

START_TEST(nothing_that_fails_keeps_an_array_from_stopping)
{
	static const unsigned purposes[] = { LABELS, MAPS, HOST | MAPS | LABELS | RESYNC };

	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig.disks[0]->fail = rig.disks[1]->fail = purposes[_i];
	ck_assert_int_eq(rig_stop(), 0);
	ck_assert_int_eq(rig_start(3, false), 0);
	ck_assert_int_eq(rig_read(0, 4096, 1), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("change");
	TCase *tcase = tcase_create("change");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, rig_teardown);
	tcase_add_test(tcase, a_returning_member_gets_what_is_dirty_and_nothing_else);
	tcase_add_test(tcase, an_old_copy_of_a_member_gets_everything);
	tcase_add_test(tcase, a_new_disk_gets_everything_and_the_role_that_is_free);
	tcase_add_test(tcase, whose_role_was_taken_comes_back_as_a_stranger);
	tcase_add_test(tcase, who_was_removed_comes_back_as_a_stranger);
	tcase_add_test(tcase, a_disk_with_a_label_of_elsewhere_says_from_then_on_what_we_say);
	tcase_add_test(tcase, in_level_10_a_member_returns_to_its_own_pair);
	tcase_add_loop_test(tcase, disks_that_cannot_be_members_are_refused, 0, 3);
	tcase_add_test(tcase, level_0_takes_nobody_in);
	tcase_add_test(tcase, an_array_may_have_any_number_of_members_one_after_the_other);
	tcase_add_test(tcase, two_adds_for_one_role_are_one);
	tcase_add_test(tcase, whose_role_is_just_being_taken_is_a_stranger_already);
	tcase_add_test(tcase, what_a_member_lacks_is_durably_doubtful_before_a_label_names_it);
	tcase_add_test(tcase, the_answer_waits_for_the_label);
	tcase_add_loop_test(tcase, who_fails_as_it_comes_is_told_so, 0, 2);
	tcase_add_test(tcase, without_labels_an_add_fails);
	tcase_add_test(tcase, a_member_that_is_removed_is_out_by_a_durable_label);
	tcase_add_test(tcase, who_is_needed_or_not_there_is_not_removed);
	tcase_add_test(tcase, an_absent_member_can_be_removed);
	tcase_add_test(tcase, a_rebuild_can_be_removed);
	tcase_add_test(tcase, a_stop_leaves_clean_maps_and_then_a_clean_label);
	tcase_add_test(tcase, a_degraded_array_stays_dirty_over_a_stop);
	tcase_add_test(tcase, an_add_while_it_is_stopped_is_refused_and_the_stop_waits_for_it);
	tcase_add_test(tcase, a_stop_waits_for_a_label_under_way);
	tcase_add_loop_test(tcase, nothing_that_fails_keeps_an_array_from_stopping, 0, 3);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
