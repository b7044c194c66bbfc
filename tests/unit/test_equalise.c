/* SPDX-License-Identifier: MIT */
/* Making legs equal: what a doubtful read shows is held, what cannot be read is healed. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/raid_rig.h"

#define SIZE (8 * MIB)
#define DATA (1 * MIB)

static void setup(void)
{
	rig_setup_clean(1, 2, SIZE);
}

static unsigned resync_writes(unsigned leg)
{
	return rig_count(leg, IO_WRITE, IO_RESYNC);
}

/* The newest write that the resync made on LEG. */
static const struct rig_record *last_write(unsigned leg)
{
	const struct rig_disk *disk = rig.disks[leg];

	for (unsigned i = disk->record_count; i-- > 0;)
		if (disk->records[i].op == IO_WRITE && disk->records[i].purpose == IO_RESYNC)
			return &disk->records[i];
	ck_abort_msg("nothing was written");
	return NULL;
}

/* --- read errors --- */

static void bad(unsigned leg, uint64_t offset, uint64_t length)
{
	rig.disks[leg]->bad_offset = DATA + offset;
	rig.disks[leg]->bad_length = length;
}

/* Reads until LEG is asked: reads take turns. */
static void read_until_asked(unsigned leg, uint64_t offset, uint64_t length, uint64_t seed)
{
	unsigned before = rig_count(leg, IO_READ, IO_HOST);

	for (unsigned i = 0; i < 8 && rig_count(leg, IO_READ, IO_HOST) == before; i++)
		ck_assert_int_eq(rig_read(offset, length, seed), 0);
	ck_assert_uint_gt(rig_count(leg, IO_READ, IO_HOST), before);
}

static const struct {
	uint64_t offset, length; /* of the read */
	uint64_t bad, bad_length;
	uint64_t healed, healed_length;
} healings[] = {
	{ 64 * KIB, 64 * KIB, 80 * KIB, 4 * KIB, 80 * KIB, 4 * KIB },
	{ 64 * KIB, 64 * KIB, 80 * KIB, 512, 80 * KIB, 4 * KIB },
	{ 64 * KIB, 64 * KIB, 64 * KIB, 512, 64 * KIB, 4 * KIB },
	{ 64 * KIB, 64 * KIB, 127 * KIB, 512, 124 * KIB, 4 * KIB },
	{ 64 * KIB, 512, 64 * KIB, 512, 64 * KIB, 512 },
	{ 1536, 6 * KIB, 7 * KIB, 512, 5632, 2048 },
};

START_TEST(a_block_that_a_leg_cannot_read_is_healed_and_no_other)
{
	unsigned leg = (unsigned)_i % 2, other = 1 - leg;
	uint64_t offset = healings[_i / 2].offset, length = healings[_i / 2].length;

	ck_assert_int_eq(rig_write(offset, length, 1), 0);
	rig_settle();
	rig_forget();
	bad(leg, healings[_i / 2].bad, healings[_i / 2].bad_length);
	memset(rig_data(leg) + healings[_i / 2].bad, 0xee, healings[_i / 2].bad_length);
	read_until_asked(leg, offset, length, 1);
	ck_assert_uint_eq(resync_writes(leg), 1);
	ck_assert_uint_eq(last_write(leg)->offset, DATA + healings[_i / 2].healed);
	ck_assert_uint_eq(last_write(leg)->length, healings[_i / 2].healed_length);
	ck_assert_uint_eq(last_write(leg)->flags, IO_FUA);
	ck_assert_uint_eq(resync_writes(other), 0);
	ck_assert_mem_eq(rig_data(leg) + offset, rig_data(other) + offset, length);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	/* And from now on it is read there as before. */
	rig_forget();
	read_until_asked(leg, offset, length, 1);
	ck_assert_uint_eq(resync_writes(leg), 0);
}
END_TEST

START_TEST(each_leg_heals_what_the_other_cannot_read)
{
	ck_assert_int_eq(rig_write(0, 64 * KIB, 1), 0);
	rig_settle();
	rig_forget();
	bad(0, 8 * KIB, 4 * KIB);
	bad(1, 40 * KIB, 4 * KIB);
	ck_assert_int_eq(rig_read(0, 64 * KIB, 1), 0);
	ck_assert_uint_eq(resync_writes(0), 1);
	ck_assert_uint_eq(resync_writes(1), 1);
	ck_assert_uint_eq(last_write(0)->offset, DATA + 8 * KIB);
	ck_assert_uint_eq(last_write(1)->offset, DATA + 40 * KIB);
}
END_TEST

START_TEST(a_block_that_no_leg_can_read_is_an_error_and_is_not_guessed)
{
	ck_assert_int_eq(rig_write(0, 64 * KIB, 1), 0);
	rig_settle();
	rig_forget();
	bad(0, 8 * KIB, 4 * KIB);
	bad(1, 8 * KIB, 4 * KIB);
	ck_assert_int_eq(rig_read(0, 64 * KIB, 1), -EIO);
	ck_assert_uint_eq(resync_writes(0), 0);
	ck_assert_uint_eq(resync_writes(1), 0);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	/* What is beside it reads on, and writing it puts it right. */
	ck_assert_int_eq(rig_take(rig_send(IO_READ, 12 * KIB, 4 * KIB, 0)), 0);
	ck_assert_int_eq(rig_write(8 * KIB, 4 * KIB, 2), 0);
	ck_assert_int_eq(rig_read(8 * KIB, 4 * KIB, 2), 0);
}
END_TEST

START_TEST(legs_that_differ_without_a_reason_are_not_touched_by_healing)
{
	ck_assert_int_eq(rig_write(0, 64 * KIB, 1), 0);
	rig_settle();
	rig_forget();
	memset(rig_data(1) + 32 * KIB, 0xdd, 512);
	bad(0, 8 * KIB, 4 * KIB);
	for (unsigned i = 0; i < 4; i++)
		rig_take(rig_send(IO_READ, 0, 64 * KIB, 0));
	ck_assert_uint_eq(resync_writes(0), 1);
	ck_assert_uint_eq(resync_writes(1), 0);
	ck_assert_uint_eq(rig_data(1)[32 * KIB], 0xdd);
}
END_TEST

START_TEST(a_leg_that_cannot_be_healed_is_excluded_and_the_read_is_good)
{
	ck_assert_int_eq(rig_write(0, 64 * KIB, 1), 0);
	rig_settle();
	rig_forget();
	bad(0, 8 * KIB, 4 * KIB);
	rig.disks[0]->fail = RESYNC;
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(rig_read(0, 64 * KIB, 1), 0);
	ck_assert_int_eq(rig.array->label.members[0].state, LABEL_FAILED);
}
END_TEST

START_TEST(the_only_leg_cannot_be_healed)
{
	ck_assert_int_eq(rig_write(0, 64 * KIB, 1), 0);
	rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 64 * KIB, 2), 0);
	rig_settle();
	rig_forget();
	bad(0, 8 * KIB, 4 * KIB);
	ck_assert_int_eq(rig_read(0, 64 * KIB, 2), -EIO);
	ck_assert_uint_eq(resync_writes(0), 0);
	ck_assert_int_eq(rig.array->members[0]->state, MEMBER_IN_SYNC);
}
END_TEST

/* --- doubtful reads --- */

/* After a power cut all regions up to MARK are doubtful; leg I holds bytes of I + 1 there. */
static void crash(unsigned legs, uint64_t mark)
{
	for (uint64_t at = 0; at < mark; at += MIB)
		ck_assert_int_eq(rig_write(at, 4096, 1), 0);
	rig_power_cut();
	for (unsigned i = 0; i < legs; i++)
		memset(rig.bytes[i] + DATA, (int)i + 1, mark);
}

/* The byte at OFFSET as a host sees it. */
static int seen(uint64_t offset)
{
	struct rig_io *io = rig_send(IO_READ, offset, 4096, 0);
	int byte = io->buf[0];

	for (unsigned i = 1; i < 4096; i++)
		ck_assert_uint_eq(io->buf[i], byte);
	ck_assert_int_eq(rig_take(io), 0);
	return byte;
}

/* Online, with the resync held at its first piece on LEG. */
static void start_held(unsigned legs, unsigned leg)
{
	rig_disk(leg)->hold = RESYNC;
	ck_assert_int_eq(rig_start((1u << legs) - 1, false), 0);
	ck_assert_uint_eq(rig.disks[leg]->held_count, 1);
}

START_TEST(a_read_of_a_doubtful_region_is_answered_when_its_range_is_equal)
{
	unsigned legs = 2 + (unsigned)_i;
	struct rig_io *io;

	rig_teardown();
	rig_setup_clean(1, legs, SIZE);
	crash(legs, 6 * MIB);
	start_held(legs, legs - 1);
	io = rig_send(IO_READ, 4 * MIB + 8192, 4096, 0);
	while (!rig_ended(io)) {
		/* Nothing is shown that is not on all. */
		ck_assert_uint_gt(rig.disks[legs - 1]->held_count, 0);
		rig_end(legs - 1, 0);
	}
	ck_assert_uint_eq(io->buf[0], 1);
	ck_assert_int_eq(rig_take(io), 0);
	for (unsigned i = 0; i < legs; i++) {
		for (unsigned at = 0; at < 4096; at++)
			ck_assert_uint_eq(rig_data(i)[4 * MIB + 8192 + at], 1);
		/* Beside it nobody has been yet. */
		ck_assert_uint_eq(rig_data(i)[4 * MIB + 8191], i + 1);
		ck_assert_uint_eq(rig_data(i)[4 * MIB + 12288], i + 1);
	}
	ck_assert_uint_gt(rig_info().regions_doubtful, 3);
}
END_TEST

START_TEST(what_was_read_once_is_there_after_the_leg_it_came_from_is_lost)
{
	crash(2, 3 * MIB);
	start_held(2, 1);
	rig_release(1);
	ck_assert_int_eq(seen(2 * MIB), 1);
	rig_power_cut();
	ck_assert_int_eq(rig_start(2, true), 0);
	ck_assert_int_eq(seen(2 * MIB), 1);
}
END_TEST

START_TEST(only_legs_that_differ_are_written)
{
	rig_teardown();
	rig_setup_clean(1, 3, SIZE);
	crash(3, MIB);
	memset(rig.bytes[2] + DATA, 1, MIB);
	memset(rig.bytes[1] + DATA, 1, 512 * KIB);
	ck_assert_int_eq(rig_start(7, false), 0);
	ck_assert_uint_eq(resync_writes(0), 0);
	ck_assert_uint_eq(resync_writes(1), 4);
	ck_assert_uint_eq(resync_writes(2), 0);
	ck_assert_uint_eq(last_write(1)->flags, IO_FUA);
	ck_assert_mem_eq(rig.bytes[0] + DATA, rig.bytes[1] + DATA, MIB);
}
END_TEST

START_TEST(where_the_first_leg_cannot_be_read_the_next_one_counts)
{
	crash(2, MIB);
	rig_disk(0)->bad_offset = DATA + 200 * KIB;
	rig_disk(0)->bad_length = 512;
	ck_assert_int_eq(rig_start(3, false), 0);
	/* The piece of 128 KiB is taken from leg 1, as leg 0 cannot read all of it. */
	ck_assert_int_eq(seen(0), 1);
	ck_assert_int_eq(seen(128 * KIB), 2);
	ck_assert_int_eq(seen(252 * KIB), 2);
	ck_assert_int_eq(seen(256 * KIB), 1);
	ck_assert_mem_eq(rig.bytes[0] + DATA, rig.bytes[1] + DATA, MIB);
	ck_assert_uint_eq(rig_info().regions_doubtful, 0);
}
END_TEST

START_TEST(what_nobody_can_read_stays_doubtful_and_all_around_is_equal)
{
	crash(2, 2 * MIB);
	for (unsigned i = 0; i < 2; i++) {
		rig_disk(i)->bad_offset = DATA + 200 * KIB;
		rig_disk(i)->bad_length = 512;
	}
	ck_assert_int_eq(rig_start(3, false), 0);
	ck_assert_uint_eq(rig_info().regions_doubtful, 1);
	for (uint64_t at = 0; at < 2 * MIB; at += 4096) {
		bool unread = at == 200 * KIB;

		ck_assert_uint_eq(rig.bytes[0][DATA + at], 1);
		ck_assert_uint_eq(rig.bytes[1][DATA + at], unread ? 2 : 1);
		ck_assert_int_eq(rig_take(rig_send(IO_READ, at, 4096, 0)), unread ? -EIO : 0);
	}
	/* A write makes it readable; the next look makes it equal. */
	ck_assert_int_eq(rig_write(200 * KIB, 4096, 1), 0);
	resync_kick(rig.array->resync);
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig_info().regions_doubtful, 0);
}
END_TEST

START_TEST(a_leg_that_does_not_take_it_is_out_by_a_durable_label_before_the_answer)
{
	struct rig_io *io;

	crash(2, 3 * MIB);
	rig_disk(1)->fail = RESYNC;
	rig_disk(0)->hold = RESYNC;
	ck_assert_int_eq(rig_start(3, false), 0);
	io = rig_send(IO_READ, 2 * MIB, 4096, 0);
	rig.disks[0]->hold = LABELS;
	rig_end(0, 0);
	ck_assert_int_eq(rig.array->members[1]->state, MEMBER_OUT);
	ck_assert_uint_eq(rig.disks[0]->held_count, 2);
	ck_assert(!rig_ended(io));
	/* What is asked later waits as well. */
	ck_assert_uint_gt(rig_info().regions_doubtful, 0);
	rig_end(0, 0);
	ck_assert(!rig_ended(io));
	rig_end(0, 0);
	ck_assert_uint_eq(io->buf[0], 1);
	ck_assert_int_eq(rig_take(io), 0);
}
END_TEST

START_TEST(without_that_label_a_doubtful_read_fails)
{
	struct rig_io *io;

	crash(2, 3 * MIB);
	rig_disk(1)->fail = RESYNC;
	rig_disk(0)->hold = RESYNC;
	ck_assert_int_eq(rig_start(3, false), 0);
	io = rig_send(IO_READ, 2 * MIB, 4096, 0);
	rig.disks[0]->fail = LABELS;
	rig_release(0);
	ck_assert_int_eq(rig_take(io), -EIO);
	ck_assert_uint_gt(rig_info().regions_doubtful, 0);
}
END_TEST

/* --- others meanwhile --- */

START_TEST(writes_to_what_is_made_equal_wait_and_others_do_not)
{
	struct rig_io *inside, *outside;

	crash(2, 3 * MIB);
	start_held(2, 1);
	inside = rig_send(IO_WRITE, 512 * KIB, 4096, 7);
	outside = rig_send(IO_WRITE, 5 * MIB, 4096, 8);
	ck_assert(!rig_ended(inside));
	ck_assert_int_eq(rig_take(outside), 0);
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_HOST), 1);
	rig_release(1);
	ck_assert_int_eq(rig_take(inside), 0);
	ck_assert_int_eq(rig_read(512 * KIB, 4096, 7), 0);
	ck_assert_mem_eq(rig.bytes[0] + DATA, rig.bytes[1] + DATA, 6 * MIB);
}
END_TEST

START_TEST(making_equal_waits_for_writes_that_are_under_way)
{
	struct rig_io *write, *read;

	crash(2, 3 * MIB);
	start_held(2, 1);
	rig.disks[1]->hold = RESYNC | HOST;
	write = rig_send(IO_WRITE, 2 * MIB, 4096, 7);
	ck_assert_uint_eq(rig.disks[1]->held_count, 2);
	read = rig_send(IO_READ, 2 * MIB + 4096, 4096, 0); /* elsewhere: need not wait */
	while (!rig_ended(read)) {
		const struct io *io = STAILQ_FIRST(&rig.disks[1]->held);

		if (io->purpose == IO_HOST) { /* move it to the end */
			STAILQ_REMOVE_HEAD(&rig.disks[1]->held, link);
			STAILQ_INSERT_TAIL(&rig.disks[1]->held, (struct io *)io, link);
			continue;
		}
		rig_end(1, 0);
	}
	ck_assert_int_eq(rig_take(read), 0);
	ck_assert(!rig_ended(write));
	ck_assert_uint_eq(rig_data(1)[2 * MIB], 2); /* leg 1 still has what it had */
	read = rig_send(IO_READ, 2 * MIB - 4096, 8192, 0);
	fake_env_run(rig.env);
	ck_assert(!rig_ended(read));
	rig_release(1);
	ck_assert_int_eq(rig_take(write), 0);
	ck_assert_int_eq(rig_take(read), 0);
	ck_assert_int_eq(rig_read(2 * MIB, 4096, 7), 0);
	ck_assert_mem_eq(rig.bytes[0] + DATA, rig.bytes[1] + DATA, 6 * MIB);
}
END_TEST

START_TEST(a_leg_that_goes_out_meanwhile_is_not_written_any_more)
{
	crash(2, 3 * MIB);
	start_held(2, 1);
	rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_write(5 * MIB, 4096, 7), 0);
	ck_assert_int_eq(rig.array->members[1]->state, MEMBER_OUT);
	rig_release(1);
	ck_assert_uint_eq(resync_writes(1), 0);
	ck_assert_uint_eq(rig.bytes[1][DATA], 2);
}
END_TEST

START_TEST(hosts_and_the_resync_take_turns)
{
	struct rig_io *ios[6];
	unsigned ended[6] = { 0 }, turns = 0;

	crash(2, 6 * MIB);
	start_held(2, 1);
	for (unsigned i = 0; i < 6; i++)
		ios[i] = rig_send(IO_READ, 5 * MIB + i * 8192, 4096, 0);
	/* Reads of leg 1 in order: the resync's are of its regions, a host's of its own block. */
	while (rig.disks[1]->held_count)
		rig_end(1, 0);
	for (unsigned i = 0; i < rig.disks[1]->record_count; i++) {
		const struct rig_record *record = &rig.disks[1]->records[i];
		bool host = record->purpose == IO_RESYNC && record->op == IO_READ &&
			    record->length == 4096;

		if (host)
			ended[turns++] = i;
	}
	ck_assert_uint_eq(turns, 6);
	/* Between two of them lies a piece of the resync, as long as it has one. */
	for (unsigned i = 1; i < 5; i++)
		ck_assert_uint_ge(ended[i] - ended[i - 1], 8);
	for (unsigned i = 0; i < 6; i++)
		ck_assert_int_eq(rig_take(ios[i]), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("equalise");
	TCase *tcase = tcase_create("equalise");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, rig_teardown);
	tcase_add_loop_test(tcase, a_block_that_a_leg_cannot_read_is_healed_and_no_other, 0,
			    2 * (int)ARRAY_LEN(healings));
	tcase_add_test(tcase, each_leg_heals_what_the_other_cannot_read);
	tcase_add_test(tcase, a_block_that_no_leg_can_read_is_an_error_and_is_not_guessed);
	tcase_add_test(tcase, legs_that_differ_without_a_reason_are_not_touched_by_healing);
	tcase_add_test(tcase, a_leg_that_cannot_be_healed_is_excluded_and_the_read_is_good);
	tcase_add_test(tcase, the_only_leg_cannot_be_healed);
	tcase_add_loop_test(tcase, a_read_of_a_doubtful_region_is_answered_when_its_range_is_equal,
			    0, 3);
	tcase_add_test(tcase, what_was_read_once_is_there_after_the_leg_it_came_from_is_lost);
	tcase_add_test(tcase, only_legs_that_differ_are_written);
	tcase_add_test(tcase, where_the_first_leg_cannot_be_read_the_next_one_counts);
	tcase_add_test(tcase, what_nobody_can_read_stays_doubtful_and_all_around_is_equal);
	tcase_add_test(tcase,
		       a_leg_that_does_not_take_it_is_out_by_a_durable_label_before_the_answer);
	tcase_add_test(tcase, without_that_label_a_doubtful_read_fails);
	tcase_add_test(tcase, writes_to_what_is_made_equal_wait_and_others_do_not);
	tcase_add_test(tcase, making_equal_waits_for_writes_that_are_under_way);
	tcase_add_test(tcase, a_leg_that_goes_out_meanwhile_is_not_written_any_more);
	tcase_add_test(tcase, hosts_and_the_resync_take_turns);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
