/* SPDX-License-Identifier: MIT */
/* Arrays are found again: which disks, what is waited for, what is durable before the first I/O. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/regions_int.h"
#include "raid/raid5_int.h"
#include "tests/fake/raid_rig.h"

#define SIZE (4 * MIB)

static void setup(void)
{
	rig_setup(0, SIZE);
}

/* A mirror of COUNT legs that was stopped in order. */
static void mirror_of(unsigned count)
{
	rig_create_clean(1, count);
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig_stop();
}

/* Disk WHO missed a write, and the array was stopped after that. */
static void mirror_without(unsigned count, unsigned who)
{
	rig_create_clean(1, count);
	rig.disks[who]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig_stop();
}

/* --- all are there --- */

static const struct {
	unsigned level, disks;
} shapes[] = { { 0, 1 }, { 0, 3 }, { 1, 2 }, { 1, 4 }, { 10, 4 }, { 10, 6 } };

START_TEST(an_array_is_what_it_was_whatever_the_order_of_its_disks)
{
	unsigned count = shapes[_i].disks;
	struct array_disk disks[RIG_DISKS];
	struct label label;

	rig_create_clean(shapes[_i].level, count);
	for (unsigned i = 0; i < 16; i++)
		ck_assert_int_eq(rig_write(i * 100 * KIB, 100 * KIB, i + 1), 0);
	rig_stop();
	ck_assert_int_eq(rig_label(0, &label), 0);
	ck_assert_uint_eq(label.flags & LABEL_CLEAN, LABEL_CLEAN);
	for (unsigned i = 0; i < count; i++)
		disks[i] = rig_offer(count - 1 - i);
	ck_assert_ptr_nonnull(array_start(rig.env, label.array, disks, count,
					  &(struct array_start){ 0 }, rig_answer, NULL));
	fake_env_run(rig.env);
	ck_assert_int_eq(rig.error, 0);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	for (unsigned i = 0; i < 16; i++)
		ck_assert_int_eq(rig_read(i * 100 * KIB, 100 * KIB, i + 1), 0);
	ck_assert_int_eq(rig_label(0, &label), 0);
	ck_assert_uint_eq(label.flags & LABEL_CLEAN, 0);
}
END_TEST

START_TEST(it_is_told_with_its_state_and_roles)
{
	mirror_of(3);
	ck_assert_int_eq(rig_start(7, false), 0);
	ck_assert_str_eq(rig.text, "array a: healthy [UUU]");
	rig_stop();
	ck_assert_int_eq(rig_start(3, true), 0);
	ck_assert_str_eq(rig.text, "array a: degraded [UU_]");
}
END_TEST

START_TEST(a_stop_in_order_leaves_nothing_doubtful_and_a_crash_what_was_dirty)
{
	rig_create_clean(1, 2);
	ck_assert_int_eq(rig_write(MIB, 4096, 1), 0);
	if (_i)
		rig_power_cut();
	else
		rig_stop();
	rig_disk(0)->hold = RESYNC;
	ck_assert_int_eq(rig_start(3, false), 0);
	ck_assert_uint_eq(rig_info().regions_doubtful, _i ? 1 : 0);
}
END_TEST

START_TEST(what_is_dirty_on_any_disk_is_doubtful_and_what_no_disk_can_tell_is_all)
{
	rig_create_clean(1, 2);
	ck_assert_int_eq(rig_write(MIB, 4096, 1), 0);
	rig_power_cut();
	for (unsigned i = 0; i < 2; i++) {
		struct label label;

		ck_assert_int_eq(rig_label(i, &label), 0);
		for (unsigned copy = 0; copy < 2; copy++) {
			uint8_t *page = rig.bytes[i] + label.maps[copy].offset;

			if (_i == 0 && i == 0)
				regions_page_empty(array_tag(&label), 0, page);
			else if (_i == 1)
				page[100] ^= 1;
		}
	}
	rig_disk(0)->hold = RESYNC;
	ck_assert_int_eq(rig_start(3, false), 0);
	ck_assert_uint_eq(rig_info().regions_doubtful, _i ? 3 : 1);
}
END_TEST

/* --- order --- */

START_TEST(members_are_flushed_before_their_maps_are_read_and_labelled_before_the_answer)
{
	struct array_disk disks[2];
	struct label label;
	unsigned before;

	mirror_of(2);
	before = rig.answers;
	for (unsigned i = 0; i < 2; i++) {
		disks[i] = rig_offer(i);
		rig.disks[i]->hold = MAPS;
	}
	ck_assert_int_eq(rig_label(0, &label), 0);
	ck_assert_ptr_nonnull(array_start(rig.env, label.array, disks, 2,
					  &(struct array_start){ 0 }, rig_answer, NULL));
	fake_env_run(rig.env);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(rig_count(0, IO_FLUSH, IO_MAP), 1);
		ck_assert_uint_eq(rig_count(0, IO_READ, IO_MAP), 0);
		ck_assert_uint_eq(rig_count(1, IO_READ, IO_MAP), 0);
		rig_end(i, 0);
	}
	ck_assert_uint_eq(rig_count(0, IO_READ, IO_MAP), 2);
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_LABEL), 0);
	rig_end(0, 0);
	rig_end(0, 0);
	rig_end(1, 0);
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_LABEL), 0);
	rig.disks[1]->hold = LABELS;
	rig_end(1, 0);
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_LABEL), 2);
	ck_assert_uint_eq(rig.answers, before);
	rig_end(1, 0);
	ck_assert_uint_eq(rig.answers, before);
	rig_end(1, 0);
	ck_assert_uint_eq(rig.answers, before + 1);
	ck_assert_int_eq(rig.error, 0);
}
END_TEST

START_TEST(a_member_that_cannot_flush_or_be_labelled_is_out_from_the_start)
{
	static const unsigned purposes[] = { MAPS, LABELS };

	mirror_of(2);
	rig_disk(1)->fail = purposes[_i];
	ck_assert_int_eq(rig_start(3, false), 0);
	ck_assert_int_eq(rig_info().state, ARRAY_DEGRADED);
	ck_assert_int_eq(rig.array->label.members[1].state, LABEL_FAILED);
	ck_assert_int_eq(rig_read(0, 4096, 1), 0);
}
END_TEST

START_TEST(if_the_last_one_cannot_the_array_does_not_start)
{
	static const unsigned purposes[] = { MAPS, LABELS };
	struct array_disk late;
	unsigned before;

	mirror_of(2);
	rig_disk(0)->fail = rig_disk(1)->fail = purposes[_i];
	ck_assert_int_eq(rig_start(3, false), -EIO);
	ck_assert_ptr_null(array_blk(rig.array));
	ck_assert_str_eq(rig.text, _i ? "array a: its labels cannot be written" :
					"array a: a member cannot flush");
	ck_assert_str_eq(rig_info().why, rig.text);
	ck_assert_int_eq(rig_info().state, ARRAY_WAITING);
	/* It is over; who comes now hears the same. */
	late = rig_offer(2);
	before = rig.answers;
	ck_assert_int_eq(array_offer(rig.array, &late, rig_answer, NULL), 0);
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig.answers, before + 1);
	ck_assert_int_eq(rig.error, -EIO);
}
END_TEST

/* --- some are missing --- */

START_TEST(it_waits_for_those_that_may_hold_newer_writes_and_starts_when_they_come)
{
	unsigned before;
	struct array_disk disk;

	mirror_of(2);
	ck_assert_int_eq(rig_start(1, false), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(rig.text, "is not there and may hold newer writes"));
	ck_assert_ptr_nonnull(strstr(rig.text, "--force"));
	ck_assert_int_eq(rig_info().state, ARRAY_WAITING);
	ck_assert_str_ne(rig_info().why, "");
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_LABEL), 0);
	before = rig.answers;
	disk = rig_offer(1);
	ck_assert_int_eq(array_offer(rig.array, &disk, rig_answer, NULL), 0);
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig.answers, before + 1);
	ck_assert_int_eq(rig.error, 0);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	ck_assert_str_eq(rig_info().why, "");
}
END_TEST

START_TEST(by_force_it_starts_without_them_and_they_come_back_later)
{
	struct label label;

	mirror_of(2);
	ck_assert_int_eq(rig_start(1, true), 0);
	ck_assert_int_eq(rig_info().state, ARRAY_DEGRADED);
	ck_assert_int_eq(rig_label(0, &label), 0);
	ck_assert_uint_eq(label.forced_id, label.id);
	ck_assert_int_eq(label.members[1].state, LABEL_FAILED);
	ck_assert_int_eq(rig_write(0, 4096, 2), 0);
	ck_assert_int_eq(rig_add(1), 0);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	ck_assert_mem_eq(rig_data(0), rig_data(1), 2 * MIB);
}
END_TEST

/* Leg 1 missed what leg 0 wrote alone; leg 2 was being rebuilt from leg 0, and lists it only. */
static void mirror_whose_leg_1_is_old(void)
{
	rig_create_clean(1, 3);
	rig.disks[0]->fail = rig.disks[2]->fail = RIG_ALL;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig_stop();
	ck_assert_int_eq(rig_start(7, false), 0);
	rig_settle();
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	rig.disks[1]->fail = RIG_ALL;
	ck_assert_int_eq(rig_write(0, 4096, 2), 0);
	rig.disks[2]->fail = RIG_ALL;
	ck_assert_int_eq(rig_write(0, 4096, 3), 0);
	rig.disks[2]->fail = 0;
	rig.disks[2]->hold = RESYNC;
	ck_assert_int_eq(rig_add(2), 0);
	rig_power_cut();
}

START_TEST(an_old_leg_starts_by_force_only_and_who_was_rebuilt_gets_what_it_has)
{
	mirror_whose_leg_1_is_old();
	ck_assert_int_eq(rig_start(6, false), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(rig.text, "array a: d0 is not there and may hold newer"));
	rig_stop();
	ck_assert_int_eq(rig_start(6, true), 0);
	ck_assert_int_eq(rig_read(0, 4096, 1), 0);
	rig_settle();
	ck_assert_int_eq(rig_info().state, ARRAY_DEGRADED);
	ck_assert_int_eq(rig_info().members[3].state, LABEL_IN_SYNC); /* leg 2, a stranger */
	ck_assert_mem_eq(rig_data(1), rig_data(2), 2 * MIB);
	ck_assert_int_eq(rig_read(0, 4096, 1), 0);
	rig_stop();
	/* With whom it went on by force it starts again. */
	ck_assert_int_eq(rig_start(6, false), 0);
	ck_assert_int_eq(rig_read(0, 4096, 1), 0);
}
END_TEST

START_TEST(two_histories_by_force_are_for_a_person_to_choose_from)
{
	mirror_of(2);
	ck_assert_int_eq(rig_start(1, true), 0);
	ck_assert_int_eq(rig_write(0, 4096, 5), 0);
	rig_stop();
	ck_assert_int_eq(rig_start(2, true), 0);
	ck_assert_int_eq(rig_write(0, 4096, 6), 0);
	rig_stop();
	ck_assert_int_eq(rig_start(3, _i), -EBUSY);
	ck_assert_str_eq(rig.text, "array a: its disks went on apart. Offer only those whose data "
				   "count");
	rig_stop();
	ck_assert_int_eq(rig_start(2, true), 0);
	ck_assert_int_eq(rig_read(0, 4096, 6), 0);
}
END_TEST

START_TEST(too_few_disks_are_too_few_by_force_as_well)
{
	rig_create_clean(0, 3);
	rig_stop();
	ck_assert_int_eq(rig_start(5, _i), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(rig.text, "needs 1 more of its 3 disks"));
	ck_assert_ptr_null(array_blk(rig.array));
}
END_TEST

START_TEST(who_was_left_behind_does_not_make_an_array_wait)
{
	mirror_without(2, 1);
	ck_assert_int_eq(rig_start(1, false), 0);
	ck_assert_int_eq(rig_read(0, 4096, 1), 0);
	rig_stop();
	/* And alone it does not count. */
	ck_assert_int_eq(rig_start(2, false), -EAGAIN);
}
END_TEST

START_TEST(who_was_left_behind_and_is_there_comes_back_by_itself)
{
	mirror_without(2, 1);
	ck_assert_int_eq(rig_start(3, false), 0);
	rig_settle();
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	ck_assert_mem_eq(rig_data(0), rig_data(1), 2 * MIB);
	/* Not more than it lacked. */
	ck_assert_uint_eq(rig_count(1, IO_WRITE, IO_RESYNC), 8);
}
END_TEST

/* One of three is out by the label; of the two that hold everything one is missing. */
START_TEST(the_delay_is_waited_for_absent_disks_that_could_not_have_gone_on)
{
	const struct array_start how = { .wait_ns = 30 * NS_PER_S };
	unsigned before;

	rig_create_clean(10, 4);
	rig_stop();
	before = rig.answers;
	ck_assert_int_eq(rig_start_how(7, &how), 0);
	fake_env_advance(rig.env, 29 * NS_PER_S);
	ck_assert_uint_eq(rig.answers, before);
	fake_env_advance(rig.env, 2 * NS_PER_S);
	ck_assert_uint_eq(rig.answers, before + 1);
	ck_assert_int_eq(rig.error, 0);
	ck_assert_int_eq(rig_info().state, ARRAY_DEGRADED);
}
END_TEST

START_TEST(nobody_waits_for_a_delay_who_has_all_or_uses_force)
{
	const struct array_start how = { .wait_ns = 30 * NS_PER_S, .force = _i == 1 };
	unsigned before;

	rig_create_clean(10, 4);
	rig_stop();
	before = rig.answers;
	ck_assert_int_eq(rig_start_how(_i ? 7 : 15, &how), 0);
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig.answers, before + 1);
	ck_assert_int_eq(rig.error, 0);
}
END_TEST

/* Without disk 3 it went on; by disk 0's older label all four had everything. */
START_TEST(a_disk_whose_newest_label_cannot_be_read_does_not_count_with_an_older_one)
{
	struct label newest;

	rig_create_clean(10, 4);
	rig_stop();
	ck_assert_int_eq(rig_start(7, false), 0);
	ck_assert_int_eq(rig_write(MIB - 64 * KIB, 128 * KIB, 1), 0);
	rig_power_cut();
	ck_assert_int_eq(rig_label(0, &newest), 0);
	for (unsigned end = 0; end < 2; end++)
		rig_disk(0)->fail_slots[label_slot(newest.sequence) + 2 * end] = true;
	ck_assert_int_eq(rig_start(15, false), 0);
	ck_assert_str_eq(rig.text, "array a: degraded [_UU_]");
	ck_assert_int_eq(rig_read(MIB - 64 * KIB, 128 * KIB, 1), 0);
}
END_TEST

/* A level 5 with a write in its log, whose start stands at ios of HOLD. BEFORE: disk 2's label. */
static void crash_and_start(unsigned hold, struct label *before)
{
	const struct array_start how = { .wait_ns = 1 };

	rig_teardown();
	rig_setup(4, 8 * MIB);
	rig_create(5, 4);
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig_power_cut();
	ck_assert_int_eq(rig_label(2, before), 0);
	for (unsigned i = 0; i < 4; i++)
		rig_disk(i)->hold = hold;
	rig_start_how(15, &how);
}

/* Who fails as what was replayed is flushed is out by a label that still names the logs. */
START_TEST(logs_are_void_only_when_what_they_held_is_flushed)
{
	struct label before, after;

	crash_and_start(MAPS, &before);
	fake_env_run(rig.env);
	for (unsigned i = 0; i < 4; i++)
		rig_end(i, 0);
	/* The logs are replayed. */
	rig_end(3, -EIO);
	ck_assert_int_eq(rig_label(2, &after), 0);
	ck_assert_int_eq(after.members[3].state, LABEL_FAILED);
	ck_assert_uint_eq(after.log_incarnation, before.log_incarnation);
	for (unsigned i = 0; i < 4; i++)
		rig_release(i);
	fake_env_run(rig.env);
	ck_assert_int_eq(rig_label(2, &after), 0);
	ck_assert_uint_ne(after.log_incarnation, before.log_incarnation);
	ck_assert_int_eq(rig_read(0, 4096, 1), 0);
}
END_TEST

/* The first block, and no flush after it. */
static void write_unheld(uint64_t seed)
{
	static uint8_t buf[4096] __attribute__((aligned(4096)));
	struct iovec iov = { buf, sizeof(buf) };
	struct fake_wait wait = { 0 };
	struct io io;

	fake_fill(buf, sizeof(buf), seed);
	io_init(&io, IO_WRITE, 0, sizeof(buf), &iov, 1);
	blk_submit(array_blk(rig.array), &io, fake_wait_done, &wait);
	fake_env_run(rig.env);
	ck_assert_uint_eq(wait.calls, 1);
	ck_assert_int_eq(wait.error, 0);
}

/* What its older records wrote is not what counts. */
START_TEST(a_log_whose_member_fails_as_it_is_replayed_is_replayed_to_its_end)
{
	unsigned parity = raid5_parity_role(4, 0);

	rig_teardown();
	rig_setup(4, 8 * MIB);
	rig.features |= BLK_VOLATILE; /* records stay until a flush */
	rig_create(5, 4);
	for (unsigned i = 0; i < 5; i++)
		write_unheld(i);
	rig_power_cut();
	rig_disk(parity)->fail = 1u << IO_LOG;
	ck_assert_int_eq(rig_start(15, false), 0);
	ck_assert_int_eq(rig_info().state, ARRAY_DEGRADED);
	ck_assert_int_eq(rig_read(0, 4096, 4), 0);
}
END_TEST

/* Reads that are held go on, as long as there are any. */
static void reads_go_on(unsigned disks)
{
	const struct io *io;
	bool any = true;

	while (any) {
		any = false;
		for (unsigned i = 0; i < disks; i++) {
			io = STAILQ_FIRST(&rig_disk(i)->held);
			if (!io || io->op != IO_READ)
				continue;
			any = true;
			rig_end(i, 0);
		}
	}
}

/* Another start may need what they hold: what this one found of them is not settled. */
START_TEST(a_label_that_reached_some_only_voids_no_log)
{
	struct label before, after;

	crash_and_start(LABELS, &before);
	reads_go_on(4);
	rig_release(2);
	fake_env_run(rig.env);
	ck_assert_int_eq(rig_label(2, &after), 0);
	ck_assert_uint_gt(after.generation, before.generation);
	ck_assert_uint_eq(after.log_incarnation, before.log_incarnation);
	for (unsigned i = 0; i < 4; i++)
		rig_release(i);
	fake_env_run(rig.env);
	ck_assert_int_eq(rig_label(2, &after), 0);
	ck_assert_uint_ne(after.log_incarnation, before.log_incarnation);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("start");
	TCase *tcase = tcase_create("start");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, rig_teardown);
	tcase_add_loop_test(tcase, an_array_is_what_it_was_whatever_the_order_of_its_disks, 0,
			    (int)ARRAY_LEN(shapes));
	tcase_add_test(tcase, it_is_told_with_its_state_and_roles);
	tcase_add_loop_test(
		tcase, a_stop_in_order_leaves_nothing_doubtful_and_a_crash_what_was_dirty, 0, 2);
	tcase_add_loop_test(tcase,
			    what_is_dirty_on_any_disk_is_doubtful_and_what_no_disk_can_tell_is_all,
			    0, 2);
	tcase_add_test(
		tcase,
		members_are_flushed_before_their_maps_are_read_and_labelled_before_the_answer);
	tcase_add_loop_test(tcase, a_member_that_cannot_flush_or_be_labelled_is_out_from_the_start,
			    0, 2);
	tcase_add_loop_test(tcase, if_the_last_one_cannot_the_array_does_not_start, 0, 2);
	tcase_add_test(tcase,
		       it_waits_for_those_that_may_hold_newer_writes_and_starts_when_they_come);
	tcase_add_test(tcase, by_force_it_starts_without_them_and_they_come_back_later);
	tcase_add_test(tcase, an_old_leg_starts_by_force_only_and_who_was_rebuilt_gets_what_it_has);
	tcase_add_loop_test(tcase, two_histories_by_force_are_for_a_person_to_choose_from, 0, 2);
	tcase_add_loop_test(tcase, too_few_disks_are_too_few_by_force_as_well, 0, 2);
	tcase_add_test(tcase, who_was_left_behind_does_not_make_an_array_wait);
	tcase_add_test(tcase, who_was_left_behind_and_is_there_comes_back_by_itself);
	tcase_add_test(tcase, the_delay_is_waited_for_absent_disks_that_could_not_have_gone_on);
	tcase_add_loop_test(tcase, nobody_waits_for_a_delay_who_has_all_or_uses_force, 0, 2);
	tcase_add_test(tcase,
		       a_disk_whose_newest_label_cannot_be_read_does_not_count_with_an_older_one);
	tcase_add_test(tcase, logs_are_void_only_when_what_they_held_is_flushed);
	tcase_add_test(tcase, a_label_that_reached_some_only_voids_no_log);
	tcase_add_test(tcase, a_log_whose_member_fails_as_it_is_replayed_is_replayed_to_its_end);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
