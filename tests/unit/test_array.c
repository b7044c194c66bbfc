/* SPDX-License-Identifier: MIT */
/* An array as a whole: roles and state, rounds of flushes, pages of regions, what it tells. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/raid_rig.h"

#define SIZE (4 * MIB)

static void setup(void)
{
	rig_setup_clean(1, 3, SIZE);
}

/* --- flush --- */

struct flush {
	struct flush_wait wait;
	unsigned calls;
	int error;
};

static void flushed(struct flush_wait *wait, int error)
{
	struct flush *flush = container_of(wait, struct flush, wait);

	flush->calls++;
	flush->error = error;
}

START_TEST(who_asks_during_a_round_of_flushes_gets_the_next_one)
{
	struct flush a = { .wait.fn = flushed }, b = a, c = a;

	rig_hold(MAPS);
	array_flush(rig.array, &a.wait);
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig.disks[0]->held_count, 1);
	array_flush(rig.array, &b.wait);
	array_flush(rig.array, &c.wait);
	rig_end(0, 0);
	rig_end(2, 0);
	ck_assert_uint_eq(a.calls, 0);
	ck_assert_uint_eq(rig_count(0, IO_FLUSH, IO_MAP), 1);
	rig_end(1, 0);
	ck_assert_uint_eq(a.calls, 1);
	ck_assert_uint_eq(b.calls, 0);
	/* One round for both. */
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(rig_count(i, IO_FLUSH, IO_MAP), 2);
		ck_assert_uint_eq(b.calls, 0);
		rig_end(i, 0);
	}
	ck_assert_uint_eq(b.calls, 1);
	ck_assert_uint_eq(c.calls, 1);
	ck_assert_uint_eq(a.calls, 1);
	ck_assert_uint_eq(rig_count(0, IO_FLUSH, IO_MAP), 2);
}
END_TEST

START_TEST(a_member_that_cannot_flush_is_out_and_the_round_is_good)
{
	struct flush a = { .wait.fn = flushed };

	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig.disks[1]->fail = MAPS;
	rig_hold(RESYNC);
	array_flush(rig.array, &a.wait);
	fake_env_run(rig.env);
	ck_assert_uint_eq(a.calls, 1);
	ck_assert_int_eq(a.error, 0);
	ck_assert_int_eq(rig.array->members[1]->state, MEMBER_OUT);
	/* What was written since the last good one may differ there. */
	ck_assert_uint_eq(rig_info().regions_doubtful, 1);
}
END_TEST

START_TEST(a_member_that_is_needed_and_cannot_flush_fails_the_round_and_not_the_next)
{
	struct flush a = { .wait.fn = flushed }, b = a;

	rig_remove(1);
	rig_remove(2);
	rig.disks[0]->fail = MAPS;
	array_flush(rig.array, &a.wait);
	fake_env_run(rig.env);
	ck_assert_int_eq(a.error, -EIO);
	ck_assert_int_eq(rig.array->members[0]->state, MEMBER_IN_SYNC);
	rig.disks[0]->fail = 0;
	array_flush(rig.array, &b.wait);
	fake_env_run(rig.env);
	ck_assert_uint_eq(b.calls, 1);
	ck_assert_int_eq(b.error, 0);
}
END_TEST

/* --- pages --- */

START_TEST(a_page_is_stored_when_every_member_has_it)
{
	static const unsigned orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 2, 0 } };
	struct rig_io *io;

	rig_hold(MAPS);
	io = rig_send(IO_WRITE, 0, 4096, 1);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(!rig_ended(io));
		rig_end(orders[_i][i], 0);
	}
	ck_assert_int_eq(rig_take(io), 0);
	rig_hold(0);
}
END_TEST

START_TEST(who_cannot_store_a_page_is_out_and_the_write_goes_on)
{
	rig.disks[1]->fail = MAPS;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	ck_assert_int_eq(rig.array->members[1]->state, MEMBER_OUT);
	ck_assert_int_eq(rig.array->label.members[1].state, LABEL_FAILED);
	ck_assert_uint_eq(rig_count(1, IO_WRITE, IO_HOST), 0);
}
END_TEST

START_TEST(a_page_that_only_a_rebuilding_member_has_is_not_stored)
{
	rig_remove(2);
	rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig.disks[1]->fail = 0;
	rig.disks[1]->hold = RESYNC;
	ck_assert_int_eq(rig_add(1), 0);
	rig.disks[0]->fail = MAPS;
	ck_assert_int_eq(rig_write(2 * MIB, 4096, 1), -EIO);
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_HOST), 1);
}
END_TEST

/* --- roles, state --- */

START_TEST(roles_and_state_follow_the_members)
{
	struct array *array = rig.array;

	ck_assert_uint_eq(array_held_roles(array), 7);
	ck_assert_int_eq(array->state, ARRAY_HEALTHY);
	array->members[1]->state = MEMBER_REBUILDING;
	array_members_changed(array);
	ck_assert_uint_eq(array_held_roles(array), 5);
	ck_assert_ptr_eq(array->roles[1], array->members[1]);
	ck_assert_int_eq(array->state, ARRAY_DEGRADED);
	array->members[1]->state = MEMBER_OUT;
	array_members_changed(array);
	ck_assert_ptr_null(array->roles[1]);
	array->members[1]->state = MEMBER_IN_SYNC;
	array_members_changed(array);
	ck_assert_int_eq(array->state, ARRAY_HEALTHY);
	ck_assert_uint_eq(array_held_roles(array), 7);
}
END_TEST

START_TEST(nothing_is_cleaned_while_somebody_is_missing)
{
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_write(2 * MIB, 4096, 1), 0);
	rig_settle();
	ck_assert_uint_eq(rig_info().regions_dirty, 2);
	rig.disks[1]->fail = 0;
	ck_assert_int_eq(rig_add(1), 0);
	rig_settle();
	ck_assert_uint_eq(rig_info().regions_dirty, 0);
}
END_TEST

START_TEST(a_member_that_comes_and_goes_a_hundred_times_is_no_harm)
{
	for (unsigned round = 0; round < 100; round++) {
		rig.disks[1]->fail = HOST;
		ck_assert_int_eq(rig_write(0, 4096, round), 0);
		rig.disks[1]->fail = 0;
		ck_assert_int_eq(rig_add(1), 0);
		ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
		rig_forget();
	}
	ck_assert_uint_eq(rig_info().member_count, 3);
	ck_assert_mem_eq(rig_data(0), rig_data(1), 2 * MIB);
}
END_TEST

/* --- what it tells --- */

START_TEST(its_info_is_that_of_label_members_and_regions)
{
	struct array_info info;
	char text[LABEL_ROLES_MAX + 3];

	rig.disks[2]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig.disks[2]->fail = 0;
	rig.disks[2]->hold = RESYNC;
	info = rig_info();
	ck_assert_str_eq(info.name, "a");
	ck_assert_int_eq(info.state, ARRAY_DEGRADED);
	ck_assert_uint_eq(info.level, 1);
	ck_assert_uint_eq(info.roles, 3);
	ck_assert_uint_eq(info.block_bytes, 512);
	ck_assert_uint_eq(info.size_bytes, array_blk(rig.array)->size_bytes);
	ck_assert_uint_eq(info.regions_total, 3);
	ck_assert_uint_eq(info.regions_dirty, 1);
	ck_assert_uint_eq(info.region_bytes, MIB);
	ck_assert_uint_eq(info.member_count, 3);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_str_eq(info.members[i].name, rig.disks[i]->name);
		ck_assert_uint_eq(info.members[i].index, i);
		ck_assert_uint_eq(info.members[i].role, i);
		ck_assert(info.members[i].present);
		ck_assert_int_eq(info.members[i].state, i == 2 ? LABEL_FAILED : LABEL_IN_SYNC);
		ck_assert_uint_eq(info.members[i].write_errors, i == 2 ? 1 : 0);
	}
	array_roles_text(&info, text);
	ck_assert_str_eq(text, "[UU_]");
	ck_assert_int_eq(rig_add(2), 0);
	info = rig_info();
	ck_assert_int_eq(info.members[2].state, LABEL_REBUILDING);
	array_roles_text(&info, text);
	ck_assert_str_eq(text, "[UUr]");
	rig_release(2);
	info = rig_info();
	array_roles_text(&info, text);
	ck_assert_str_eq(text, "[UUU]");
}
END_TEST

START_TEST(who_is_found_bad_is_told_as_failed_before_the_label_says_so)
{
	struct rig_io *io, *other;

	rig_hold(LABELS);
	rig.disks[2]->fail = HOST;
	io = rig_send(IO_WRITE, 0, 4096, 1);
	ck_assert_int_eq(rig_info().members[2].state, LABEL_FAILED);
	rig.disks[1]->fail = HOST;
	other = rig_send(IO_WRITE, MIB, 4096, 1);
	ck_assert_int_eq(rig.array->label.members[1].state, LABEL_IN_SYNC);
	ck_assert_int_eq(rig_info().members[1].state, LABEL_FAILED);
	for (unsigned i = 0; i < 3; i++)
		rig_release(i);
	ck_assert_int_eq(rig_take(io), 0);
	ck_assert_int_eq(rig_take(other), 0);
}
END_TEST

START_TEST(who_is_absent_is_told_as_such)
{
	struct array_info info;
	char text[LABEL_ROLES_MAX + 3];

	rig_stop();
	ck_assert_int_eq(rig_start(3, true), 0);
	info = rig_info();
	ck_assert_uint_eq(info.member_count, 3);
	ck_assert(!info.members[2].present);
	ck_assert_str_eq(info.members[2].name, "");
	array_roles_text(&info, text);
	ck_assert_str_eq(text, "[UU_]");
}
END_TEST

struct watcher {
	struct array_watch watch;
	unsigned calls;
	enum array_state state;
	bool leaves;
};

static void changed(struct array_watch *watch)
{
	struct watcher *watcher = container_of(watch, struct watcher, watch);

	watcher->calls++;
	watcher->state = rig.array->state;
	if (watcher->leaves)
		array_unwatch(watch);
}

START_TEST(who_watches_hears_of_changes_until_he_leaves)
{
	struct watcher stays = { .watch.changed = changed };
	struct watcher leaves = { .watch.changed = changed, .leaves = true };

	array_watch(rig.array, &stays.watch);
	array_watch(rig.array, &leaves.watch);
	rig.disks[2]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	ck_assert_uint_eq(leaves.calls, 1);
	ck_assert_uint_ge(stays.calls, 1);
	ck_assert_int_eq(stays.state, ARRAY_DEGRADED);
	rig.disks[2]->fail = 0;
	ck_assert_int_eq(rig_add(2), 0);
	ck_assert_int_eq(stays.state, ARRAY_HEALTHY);
	ck_assert_uint_eq(leaves.calls, 1);
	array_unwatch(&stays.watch);
}
END_TEST

START_TEST(states_have_names)
{
	ck_assert_str_eq(array_state_name(ARRAY_WAITING), "incomplete");
	ck_assert_str_eq(array_state_name(ARRAY_HEALTHY), "healthy");
	ck_assert_str_eq(array_state_name(ARRAY_DEGRADED), "degraded");
	ck_assert_str_eq(array_state_name(ARRAY_FAILED), "failed");
}
END_TEST

START_TEST(pages_of_one_array_are_none_of_another)
{
	struct label a = { .level = 1 }, b = { .level = 1 };

	for (unsigned i = 0; i < sizeof(uuid_t); i++)
		a.array[i] = b.array[i] = (uint8_t)(i * 7);
	ck_assert_uint_eq(array_tag(&a), array_tag(&b));
	for (unsigned i = 0; i < sizeof(uuid_t); i++) {
		b.array[i] ^= 0x10;
		ck_assert_uint_ne(array_tag(&a), array_tag(&b));
		b.array[i] ^= 0x10;
	}
}
END_TEST

static const struct {
	unsigned level, block_bytes, chunk;
	uint64_t maps, data; /* lengths */
	uint64_t size_bytes; /* of the disk */
	bool fits;
} fittings[] = {
	{ 1, 512, 0, 4096, 2 * MIB, 3 * MIB + 8192, true },
	{ 1, 512, 0, 4096, 2 * MIB, 3 * MIB + 8192 - 512, false },
	{ 1, 512, 0, 4096, 2 * MIB + 512, 3 * MIB + 8192, false },
	{ 1, 4096, 0, 4096, 2 * MIB, 3 * MIB + 8192, false }, /* the disk has 512 */
	{ 1, 512, 0, 0, 2 * MIB, 3 * MIB + 8192, false },     /* no room for regions */
	{ 0, 512, 65536, 0, 2 * MIB, 3 * MIB + 8192, true },
	{ 0, 512, 65536, 0, 2 * MIB, 512, false },
	{ 1, 512, 0, 4096, 40 * GIB, 60 * GIB, false }, /* two pages */
	{ 1, 512, 0, 8192, 40 * GIB, 60 * GIB, true },
	{ 0, 512, 65536, 0, UINT64_MAX / 2 - 2 * MIB + 1, 3 * MIB, false },
};

START_TEST(a_label_fits_a_disk_that_has_room_for_all_it_names)
{
	const struct label label = {
		.level = fittings[_i].level,
		.block_bytes = fittings[_i].block_bytes,
		.chunk_bytes = fittings[_i].chunk,
		.roles = 2,
		.maps = { { 8192, fittings[_i].maps }, { 65536, fittings[_i].maps } },
		.data = { MIB, fittings[_i].data },
	};

	rig.sizes[5] = fittings[_i].size_bytes;
	ck_assert_int_eq(array_fits(&label, &rig_disk(5)->blk), fittings[_i].fits);
}
END_TEST

START_TEST(both_copies_of_the_maps_must_have_room)
{
	struct label label = rig.array->label;

	ck_assert(array_fits(&label, &rig.disks[0]->blk));
	label.maps[_i].length = 0;
	ck_assert(!array_fits(&label, &rig.disks[0]->blk));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("array");
	TCase *tcase = tcase_create("array");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, rig_teardown);
	tcase_add_test(tcase, who_asks_during_a_round_of_flushes_gets_the_next_one);
	tcase_add_test(tcase, a_member_that_cannot_flush_is_out_and_the_round_is_good);
	tcase_add_test(tcase,
		       a_member_that_is_needed_and_cannot_flush_fails_the_round_and_not_the_next);
	tcase_add_loop_test(tcase, a_page_is_stored_when_every_member_has_it, 0, 3);
	tcase_add_test(tcase, who_cannot_store_a_page_is_out_and_the_write_goes_on);
	tcase_add_test(tcase, a_page_that_only_a_rebuilding_member_has_is_not_stored);
	tcase_add_test(tcase, roles_and_state_follow_the_members);
	tcase_add_test(tcase, nothing_is_cleaned_while_somebody_is_missing);
	tcase_add_test(tcase, a_member_that_comes_and_goes_a_hundred_times_is_no_harm);
	tcase_add_test(tcase, its_info_is_that_of_label_members_and_regions);
	tcase_add_test(tcase, who_is_found_bad_is_told_as_failed_before_the_label_says_so);
	tcase_add_test(tcase, who_is_absent_is_told_as_such);
	tcase_add_test(tcase, who_watches_hears_of_changes_until_he_leaves);
	tcase_add_test(tcase, states_have_names);
	tcase_add_test(tcase, pages_of_one_array_are_none_of_another);
	tcase_add_loop_test(tcase, a_label_fits_a_disk_that_has_room_for_all_it_names, 0,
			    (int)ARRAY_LEN(fittings));
	tcase_add_loop_test(tcase, both_copies_of_the_maps_must_have_room, 0, 2);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
