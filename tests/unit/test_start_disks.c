/* SPDX-License-Identifier: MIT */
/* Disks that are offered to an array that starts: late, foreign, twice, or not what they say. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/raid_rig.h"

#define SIZE (4 * MIB)

static void setup(void)
{
	rig_setup(0, SIZE);
}

static void mirror(void)
{
	rig_create_clean(1, 2);
	rig_stop();
}

/* --- offers --- */

struct answer {
	unsigned calls;
	int error;
	struct array *array;
};

static void answered(void *arg, struct array *array, int error, const char *text)
{
	struct answer *answer = arg;

	ck_assert_ptr_nonnull(text);
	answer->calls++;
	answer->error = error;
	answer->array = array;
}

static void offer(unsigned disk, struct answer *answer)
{
	struct array_disk offered = rig_offer(disk);

	ck_assert_int_eq(array_offer(rig.array, &offered, answered, answer), 0);
}

/* Four disks of level 10, of which those in DISKS are offered; the array waits. */
static void waiting(uint32_t disks)
{
	rig_create_clean(10, 4);
	rig_stop();
	ck_assert_int_eq(rig_start(disks, false), -EAGAIN);
}

START_TEST(everybody_who_offers_is_answered_once)
{
	struct answer one = { 0 }, two = { 0 }, three = { 0 };

	waiting(1);
	offer(1, &one); /* a pair: not enough */
	fake_env_run(rig.env);
	ck_assert_uint_eq(one.calls, 1);
	ck_assert_int_eq(one.error, -EAGAIN);
	offer(2, &two);
	offer(3, &three);
	fake_env_run(rig.env);
	ck_assert_uint_eq(one.calls, 1);
	ck_assert_uint_eq(two.calls, 1);
	ck_assert_uint_eq(three.calls, 1);
	ck_assert_int_eq(two.error, 0);
	ck_assert_int_eq(three.error, 0);
	ck_assert_ptr_eq(two.array, rig.array);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
}
END_TEST

START_TEST(who_comes_while_it_goes_online_is_taken_in_afterwards)
{
	struct answer two = { 0 }, three = { 0 };

	waiting(3);
	rig_disk(0)->hold = MAPS;
	offer(2, &two); /* one of the other pair: online, slowly */
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig.disks[0]->held_count, 1);
	offer(3, &three);
	fake_env_run(rig.env);
	ck_assert_uint_eq(two.calls, 0);
	ck_assert_uint_eq(three.calls, 0);
	rig_release(0);
	rig_settle();
	ck_assert_uint_eq(two.calls, 1);
	ck_assert_uint_eq(three.calls, 1);
	ck_assert_int_eq(two.error, 0);
	ck_assert_int_eq(three.error, 0);
	ck_assert_uint_eq(label_listed(&rig.array->label), 0xf);
}
END_TEST

START_TEST(an_end_answers_those_who_wait_first)
{
	struct answer two = { 0 };
	unsigned before;

	waiting(3);
	rig_disk(2)->hold = _i ? 0 : LABELS;
	rig_disk(0)->hold = _i ? MAPS : 0;
	offer(2, &two);
	fake_env_run(rig.env);
	before = rig.answers;
	array_stop(rig.array, rig_answer, NULL);
	fake_env_run(rig.env);
	ck_assert_uint_eq(two.calls, 0);
	ck_assert_uint_eq(rig.answers, before);
	rig_release(_i ? 0 : 2);
	rig_settle();
	ck_assert_uint_eq(two.calls, 1);
	ck_assert_int_eq(two.error, _i ? 0 : -ECANCELED);
	ck_assert_uint_eq(rig.answers, before + 1);
	rig.array = NULL;
}
END_TEST

START_TEST(the_delay_that_ends_while_a_disk_is_looked_at_waits_for_it)
{
	const struct array_start how = { .wait_ns = 30 * NS_PER_S };
	struct answer three = { 0 }, last = { 0 };
	unsigned before;

	rig_create_clean(10, 4);
	rig_stop();
	ck_assert_int_eq(rig_start_how(3, &how), 0);
	fake_env_run(rig.env);
	ck_assert_int_eq(rig.error, -EAGAIN);
	before = rig.answers;
	/* Enough with this one, after the delay. */
	offer(2, &three);
	fake_env_run(rig.env);
	ck_assert_uint_eq(three.calls, 0);
	rig_disk(3)->hold = LABELS;
	offer(3, &last);
	fake_env_advance(rig.env, 31 * NS_PER_S);
	ck_assert_uint_eq(three.calls, 0);
	ck_assert_uint_eq(rig.disks[3]->held_count, LABEL_SLOTS);
	rig_release(3);
	rig_settle();
	ck_assert_uint_eq(three.calls, 1);
	ck_assert_uint_eq(last.calls, 1);
	ck_assert_uint_eq(rig.answers, before);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
}
END_TEST

START_TEST(an_end_does_not_wait_for_the_delay)
{
	const struct array_start how = { .wait_ns = 3600 * NS_PER_S };
	struct answer two = { 0 };
	unsigned before;

	rig_create_clean(10, 4);
	rig_stop();
	ck_assert_int_eq(rig_start_how(3, &how), 0);
	fake_env_run(rig.env);
	offer(2, &two);
	fake_env_run(rig.env);
	before = rig.answers;
	array_stop(rig.array, rig_answer, NULL);
	fake_env_run(rig.env);
	ck_assert_uint_eq(two.calls, 1);
	ck_assert_int_eq(two.error, -ECANCELED);
	ck_assert_uint_eq(rig.answers, before + 1);
	rig.array = NULL;
}
END_TEST

/* --- disks that are none of it, or not what they say --- */

static int start_both(const struct label *label, uint32_t disks)
{
	struct array_disk offered[RIG_DISKS];
	unsigned count = 0, before = rig.answers;

	for (unsigned i = 0; i < RIG_DISKS; i++)
		if (disks >> i & 1)
			offered[count++] = rig_offer(i);
	ck_assert_ptr_nonnull(array_start(rig.env, label->array, offered, count,
					  &(struct array_start){ 0 }, rig_answer, NULL));
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig.answers, before + 1);
	return rig.error;
}

START_TEST(foreign_and_empty_disks_are_left_alone)
{
	struct label label;

	mirror();
	ck_assert_int_eq(rig_label(0, &label), 0);
	rig_disk(2);
	rig_disk(3);
	label.array[3] ^= 1;
	rig_put_label(3, &label);
	label.array[3] ^= 1;
	ck_assert_int_eq(start_both(&label, 0xf), 0);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	ck_assert_uint_eq(rig_count(2, IO_WRITE, IO_LABEL), 0);
	ck_assert_uint_eq(rig_count(3, IO_WRITE, IO_LABEL), 0);
}
END_TEST

START_TEST(without_any_disk_of_it_there_is_no_array)
{
	struct label label;

	mirror();
	ck_assert_int_eq(rig_label(0, &label), 0);
	rig_disk(2);
	ck_assert_int_eq(start_both(&label, _i ? 0 : 4), -ENOENT);
	ck_assert_str_eq(rig.text, "no disk carries a label of this array");
}
END_TEST

START_TEST(a_disk_and_its_copy_are_refused)
{
	struct label label;

	mirror();
	ck_assert_int_eq(rig_label(0, &label), 0);
	rig_disk(2);
	memcpy(rig.bytes[2], rig.bytes[1], SIZE);
	ck_assert_int_eq(start_both(&label, 7), -EBUSY);
	ck_assert_str_eq(rig.text, "array a: d2 and d1 carry the same label. Disconnect the copy");
}
END_TEST

START_TEST(an_unreadable_disk_and_one_of_a_newer_version_count_as_absent)
{
	struct label label;

	mirror();
	if (_i) {
		for (unsigned slot = 0; slot < LABEL_SLOTS; slot++)
			rig.bytes[1][label_slot_offset(SIZE, slot) + 8] = 2;
	} else {
		rig_disk(1)->fail_reads = LABELS;
	}
	ck_assert_int_eq(rig_label(0, &label), 0);
	ck_assert_int_eq(start_both(&label, 3), -EAGAIN);
	ck_assert_uint_eq(rig_count(1, IO_WRITE, IO_LABEL), 0);
}
END_TEST

/* Sound labels that do not fit their disks: each would be read or written outside its areas. */
enum lie { LIE_DATA, LIE_MAPS, LIE_BLOCKS, LIE_HUGE, LIES };

static void lie(struct label *label, unsigned which)
{
	switch (which) {
	case LIE_DATA:
		label->data.length += 64 * KIB;
		break;
	case LIE_MAPS:
		label->maps[0].length = label->maps[1].length = 0;
		break;
	case LIE_BLOCKS:
		label->block_bytes = 4096;
		break;
	default:
		label->data.length = (uint64_t)1 << 62;
	}
}

START_TEST(a_label_that_does_not_fit_its_disk_is_not_followed)
{
	unsigned level = _i / LIES ? 0 : 1;
	struct label label;
	uint8_t *before = malloc(SIZE);

	rig_create_clean(level, 2);
	rig_stop();
	if (level == 0 && _i % LIES == LIE_MAPS) {
		free(before);
		return; /* it has none */
	}
	ck_assert_int_eq(rig_label(1, &label), 0);
	lie(&label, _i % LIES);
	rig_put_label(1, &label);
	ck_assert_int_eq(rig_label(1, &label), 0);
	memcpy(before, rig.bytes[1], SIZE);
	ck_assert_int_eq(start_both(&label, 3), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(rig.text, "d1 is not as its label says"));
	ck_assert_mem_eq(rig.bytes[1], before, SIZE);
	rig_stop();
	/* The other one says the same: there is nothing left. */
	ck_assert_int_eq(rig_label(0, &label), 0);
	lie(&label, _i % LIES);
	rig_put_label(0, &label);
	ck_assert_int_eq(start_both(&label, 3), -ENOENT);
	free(before);
}
END_TEST

/* The deciding label fits the disk that carries it, but not the other one. */
START_TEST(disks_whose_labels_contradict_each_other_do_not_start)
{
	struct label label;

	rig.sizes[0] = 2 * SIZE;
	mirror();
	ck_assert_int_eq(rig_label(0, &label), 0);
	label.data.length = 6 * MIB;
	rig_put_label(0, &label);
	ck_assert_int_eq(start_both(&label, 3), -EINVAL);
	ck_assert_str_eq(rig.text, "array a: the labels of its disks contradict each other");
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_LABEL), 0);
}
END_TEST

/* Labels that follow it would be none, and what it says of who was in-sync would stay true for ever. */
START_TEST(a_label_that_none_could_follow_is_damaged)
{
	const uint64_t limit = UINT64_MAX / 4;
	struct label label;

	mirror();
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(rig_label(i, &label), 0);
		label.sequence = limit + (_i == 1);
		label.generation = limit + (_i == 2);
		rig_put_label(i, &label);
	}
	ck_assert_int_eq(start_both(&label, 3), _i ? -ENOENT : 0);
}
END_TEST

START_TEST(a_level_that_is_not_known_is_not_started)
{
	struct label label;

	if (raid_level(5))
		return;
	rig_create_clean(0, 3);
	rig_stop();
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(rig_label(i, &label), 0);
		label.level = 5;
		rig_put_label(i, &label);
	}
	ck_assert_int_eq(start_both(&label, 7), -ENOTSUP);
	ck_assert_str_eq(rig.text, "array a: level 5 is not known to this version");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("start_disks");
	TCase *offers = tcase_create("offers"), *lies = tcase_create("lies");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(offers, setup, rig_teardown);
	tcase_add_test(offers, everybody_who_offers_is_answered_once);
	tcase_add_test(offers, who_comes_while_it_goes_online_is_taken_in_afterwards);
	tcase_add_loop_test(offers, an_end_answers_those_who_wait_first, 0, 2);
	tcase_add_test(offers, the_delay_that_ends_while_a_disk_is_looked_at_waits_for_it);
	tcase_add_test(offers, an_end_does_not_wait_for_the_delay);
	suite_add_tcase(suite, offers);
	tcase_add_checked_fixture(lies, setup, rig_teardown);
	tcase_add_test(lies, foreign_and_empty_disks_are_left_alone);
	tcase_add_loop_test(lies, without_any_disk_of_it_there_is_no_array, 0, 2);
	tcase_add_test(lies, a_disk_and_its_copy_are_refused);
	tcase_add_loop_test(lies, an_unreadable_disk_and_one_of_a_newer_version_count_as_absent, 0,
			    2);
	tcase_add_loop_test(lies, a_label_that_does_not_fit_its_disk_is_not_followed, 0, 2 * LIES);
	tcase_add_loop_test(lies, a_label_that_none_could_follow_is_damaged, 0, 3);
	tcase_add_test(lies, disks_whose_labels_contradict_each_other_do_not_start);
	tcase_add_test(lies, a_level_that_is_not_known_is_not_started);
	suite_add_tcase(suite, lies);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
