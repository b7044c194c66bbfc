/* SPDX-License-Identifier: MIT */
/* A mirror: when a write is sent and when it is answered, which leg is read, what failures do. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/raid_rig.h"

#define SIZE (8 * MIB)

static void setup(void)
{
	rig_setup_clean(1, 2, SIZE);
}

static unsigned doubtful(void)
{
	return rig_info().regions_doubtful;
}

/* Whether both legs hold LENGTH bytes of SEED at OFFSET. */
static bool legs_hold(unsigned legs, uint64_t offset, uint64_t length, uint64_t seed)
{
	uint8_t *wanted = malloc(length);
	bool same = true;

	ck_assert_ptr_nonnull(wanted);
	fake_fill(wanted, length, seed);
	for (unsigned i = 0; i < legs; i++)
		same &= memcmp(rig_data(i) + offset, wanted, length) == 0;
	free(wanted);
	return same;
}

/* --- writes --- */

START_TEST(a_write_is_sent_only_when_its_regions_are_dirty_on_all_legs)
{
	struct rig_io *io;

	rig_hold(MAPS);
	io = rig_send(IO_WRITE, MIB - 4096, 8192, 1); /* two regions, one page */
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_HOST), 0);
		ck_assert_uint_eq(rig_count(1, IO_WRITE, IO_HOST), 0);
		rig_release(_i ? 1 - i : i);
	}
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_HOST), 1);
	ck_assert_uint_eq(rig_count(1, IO_WRITE, IO_HOST), 1);
	ck_assert_int_eq(rig_take(io), 0);
	ck_assert_uint_eq(rig_info().regions_dirty, 2);
	/* They are dirty by now. */
	rig_hold(MAPS);
	ck_assert_int_eq(rig_write(MIB, 4096, 2), 0);
	rig_release(0);
	rig_release(1);
}
END_TEST

START_TEST(what_cannot_be_made_dirty_is_not_written)
{
	rig.disks[0]->fail = rig.disks[1]->fail = MAPS;
	ck_assert_int_eq(rig_write(0, 4096, 1), -EIO);
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_HOST), 0);
	ck_assert_uint_eq(rig_count(1, IO_WRITE, IO_HOST), 0);
}
END_TEST

START_TEST(a_write_is_answered_when_all_legs_have_it)
{
	struct rig_io *io;

	rig_hold(HOST);
	io = rig_send(IO_WRITE, 4096, 4096, 1);
	ck_assert_uint_eq(rig.disks[0]->records[rig.disks[0]->record_count - 1].flags, IO_FUA);
	rig_end(_i ? 1 : 0, 0);
	ck_assert(!rig_ended(io));
	rig_end(_i ? 0 : 1, 0);
	ck_assert_int_eq(rig_take(io), 0);
	ck_assert(legs_hold(2, 4096, 4096, 1));
}
END_TEST

START_TEST(one_leg_that_fails_is_excluded_and_the_write_is_good)
{
	unsigned bad = (unsigned)_i;
	struct rig_io *io;

	rig.disks[bad]->fail = HOST;
	rig.disks[1 - bad]->hold = LABELS;
	io = rig_send(IO_WRITE, 4096, 4096, 1);
	ck_assert(!rig_ended(io));
	rig_release(1 - bad);
	ck_assert_int_eq(rig_take(io), 0);
	ck_assert_int_eq(rig.array->members[bad]->state, MEMBER_OUT);
	ck_assert_int_eq(rig.array->label.members[bad].state, LABEL_FAILED);
	ck_assert_int_eq(rig_read(4096, 4096, 1), 0);
	ck_assert_uint_eq(rig_count(bad, IO_READ, IO_HOST), 0);
	ck_assert_uint_eq(doubtful(), 0);
}
END_TEST

START_TEST(a_write_that_all_legs_refuse_fails_excludes_nobody_and_leaves_doubt)
{
	struct rig_io *io;
	unsigned legs = 2 + (unsigned)_i;

	rig_teardown();
	rig_setup_clean(1, legs, SIZE);
	rig_hold(HOST | RESYNC);
	io = rig_send(IO_WRITE, 4096, 4096, 1);
	for (unsigned i = 0; i < legs; i++) {
		/* A leg that failed may hold anything. */
		memset(rig_data(i) + 4096, (int)i + 1, 4096);
		rig_end(i, i ? -EIO : -ENXIO);
	}
	ck_assert_int_eq(rig_take(io), -ENXIO);
	for (unsigned i = 0; i < legs; i++)
		ck_assert_int_eq(rig.array->members[i]->state, MEMBER_IN_SYNC);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	ck_assert_uint_eq(doubtful(), 1);
	/* And that is put right without being asked. */
	for (unsigned i = 0; i < legs; i++)
		rig.disks[i]->hold = 0;
	for (unsigned i = 0; i < legs; i++)
		rig_release(i);
	ck_assert_uint_eq(doubtful(), 0);
	for (unsigned i = 1; i < legs; i++)
		ck_assert_mem_eq(rig_data(i), rig_data(0), MIB);
}
END_TEST

START_TEST(a_leg_that_rebuilds_does_not_make_a_write_good)
{
	struct rig_io *io;

	rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig.disks[1]->fail = 0;
	rig.disks[1]->hold = RESYNC;
	ck_assert_int_eq(rig_add(1), 0);
	rig.disks[0]->fail = HOST;
	io = rig_send(IO_WRITE, 2 * MIB, 4096, 2);
	ck_assert_int_eq(rig_take(io), -EIO);
	ck_assert_uint_eq(rig_count(1, IO_WRITE, IO_HOST), 2);
	ck_assert_int_eq(rig.array->members[0]->state, MEMBER_IN_SYNC);
	ck_assert_int_eq(rig.array->members[1]->state, MEMBER_REBUILDING);
	rig.disks[0]->fail = 0;
}
END_TEST

START_TEST(a_leg_that_rebuilds_gets_writes_and_may_fail_them)
{
	rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig.disks[1]->fail = 0;
	rig.disks[1]->hold = RESYNC;
	ck_assert_int_eq(rig_add(1), 0);
	ck_assert_int_eq(rig_write(2 * MIB, 4096, 2), 0);
	ck_assert(legs_hold(2, 2 * MIB, 4096, 2));
	rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_write(2 * MIB, 4096, 3), 0);
	ck_assert_int_eq(rig.array->members[1]->state, MEMBER_OUT);
	ck_assert_int_eq(rig.array->label.members[1].state, LABEL_FAILED);
}
END_TEST

START_TEST(unmap_and_zeroes_reach_all_legs)
{
	enum io_op op = _i ? IO_UNMAP : IO_WRITE_ZEROES;

	ck_assert_int_eq(rig_write(0, 64 * KIB, 1), 0);
	ck_assert_int_eq(rig_take(rig_send(op, 4096, 8192, 0)), 0);
	for (unsigned i = 0; i < 2; i++) {
		const uint8_t *data = rig_data(i);

		ck_assert_uint_eq(rig_count(i, op, IO_HOST), 1);
		for (unsigned at = 4096; at < 12288; at++)
			ck_assert_uint_eq(data[at], 0);
	}
	ck_assert(legs_hold(2, 0, 4096, 1));
}
END_TEST

#define MANY 600

START_TEST(more_writes_at_once_than_there_are_fans_wait_their_turn)
{
	static struct rig_io *ios[MANY];

	rig_hold(HOST);
	for (unsigned i = 0; i < MANY; i++)
		ios[i] = rig_send(IO_WRITE, (uint64_t)i * 4096, 4096, i);
	ck_assert_uint_lt(rig.disks[0]->held_count, MANY);
	ck_assert_uint_gt(rig.disks[0]->held_count, 100);
	while (rig.disks[0]->held_count) {
		rig_end(0, 0);
		rig_end(1, 0);
	}
	for (unsigned i = 0; i < MANY; i++) {
		ck_assert_int_eq(rig_take(ios[i]), 0);
		ck_assert(legs_hold(2, (uint64_t)i * 4096, 4096, i));
	}
}
END_TEST

/* --- flush --- */

START_TEST(a_flush_asks_every_leg_and_needs_all)
{
	struct rig_io *io;

	rig_hold(HOST);
	io = rig_send(IO_FLUSH, 0, 0, 0);
	rig_end(0, 0);
	ck_assert(!rig_ended(io));
	rig_end(1, 0);
	ck_assert_int_eq(rig_take(io), 0);
	ck_assert_uint_eq(rig_count(0, IO_FLUSH, IO_HOST), 1);
	ck_assert_uint_eq(rig_count(1, IO_FLUSH, IO_HOST), 1);
}
END_TEST

START_TEST(a_leg_that_cannot_flush_is_excluded_before_the_answer)
{
	struct rig_io *io;

	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig.disks[1]->fail = HOST;
	rig.disks[0]->hold = LABELS;
	io = rig_send(IO_FLUSH, 0, 0, 0);
	ck_assert(!rig_ended(io));
	rig_release(0);
	ck_assert_int_eq(rig_take(io), 0);
	ck_assert_int_eq(rig.array->label.members[1].state, LABEL_FAILED);
	/* Any of it may be lost there: when it comes back it gets it again. */
	rig.disks[1]->fail = 0;
	rig.disks[1]->hold = RESYNC;
	ck_assert_int_eq(rig_add(1), 0);
	ck_assert_uint_eq(doubtful(), 1);
}
END_TEST

START_TEST(if_no_leg_can_flush_what_was_written_since_is_doubtful)
{
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	ck_assert_int_eq(rig_write(3 * MIB, 4096, 1), 0);
	rig_hold(RESYNC);
	rig.disks[0]->fail = rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_take(rig_send(IO_FLUSH, 0, 0, 0)), -EIO);
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
	ck_assert_uint_eq(doubtful(), 2);
	rig.disks[0]->fail = rig.disks[1]->fail = 0;
}
END_TEST

/* --- reads --- */

static unsigned reads(unsigned leg)
{
	return rig_count(leg, IO_READ, IO_HOST);
}

START_TEST(a_sequential_reader_stays_on_its_leg)
{
	for (uint64_t at = 0; at < 32; at++)
		rig_take(rig_send(IO_READ, MIB + at * 4096, 4096, 0));
	ck_assert_uint_eq(reads(0) + reads(1), 32);
	ck_assert(reads(0) == 0 || reads(1) == 0);
}
END_TEST

START_TEST(two_sequential_readers_have_a_leg_each)
{
	struct rig_io *a, *b;

	rig_hold(HOST);
	a = rig_send(IO_READ, MIB, 4096, 0);
	b = rig_send(IO_READ, 4 * MIB, 4096, 0);
	ck_assert_uint_eq(rig.disks[0]->held_count, 1);
	ck_assert_uint_eq(rig.disks[1]->held_count, 1);
	rig_release(0);
	rig_release(1);
	rig_take(a);
	rig_take(b);
	for (uint64_t at = 1; at < 16; at++) {
		rig_take(rig_send(IO_READ, MIB + at * 4096, 4096, 0));
		rig_take(rig_send(IO_READ, 4 * MIB + at * 4096, 4096, 0));
		ck_assert_uint_eq(reads(0), at + 1);
		ck_assert_uint_eq(reads(1), at + 1);
	}
}
END_TEST

START_TEST(reads_here_and_there_go_to_the_leg_with_the_least_to_do)
{
	struct rig_io *ios[12], *last;
	unsigned legs = 2 + (unsigned)_i;

	rig_teardown();
	rig_setup_clean(1, legs, SIZE);
	rig_hold(HOST);
	for (unsigned i = 0; i < 12; i++)
		ios[i] = rig_send(IO_READ, (uint64_t)(12 - i) * 64 * KIB, 4096, 0);
	for (unsigned i = 0; i < legs; i++)
		ck_assert_uint_eq(rig.disks[i]->held_count, 12 / legs);
	/* One leg has caught up: the next one goes there. */
	while (rig.disks[1]->held_count)
		rig_end(1, 0);
	last = rig_send(IO_READ, 0, 4096, 0);
	ck_assert_uint_eq(rig.disks[1]->held_count, 1);
	for (unsigned i = 0; i < legs; i++)
		rig_release(i);
	rig_take(last);
	for (unsigned i = 0; i < 12; i++)
		rig_take(ios[i]);
}
END_TEST

START_TEST(a_leg_that_rebuilds_is_not_read)
{
	rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 4096, 1), 0);
	rig.disks[1]->fail = 0;
	rig.disks[1]->hold = RESYNC;
	ck_assert_int_eq(rig_add(1), 0);
	for (unsigned i = 0; i < 8; i++)
		rig_take(rig_send(IO_READ, (8 - i) * 128 * KIB, 4096, 0));
	ck_assert_uint_eq(reads(1), 0);
	ck_assert_uint_eq(reads(0), 8);
}
END_TEST

/* A value that only one leg has, and no label says that the other is out: nobody is shown it. */
START_TEST(a_doubtful_read_waits_until_a_label_says_which_leg_counts)
{
	struct rig_io *write, *read;

	rig_hold(RESYNC);
	rig.disks[0]->fail = rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_write(0, 4096, 1), -EIO);
	ck_assert_uint_eq(doubtful(), 1);
	rig.disks[1]->fail = 0;
	rig.disks[1]->hold = LABELS;
	write = rig_send(IO_WRITE, 3 * MIB, 4096, 2);
	ck_assert_int_eq(rig.array->members[0]->state, MEMBER_OUT);
	/* The resync is done with what was under way, and has nothing to make equal any more. */
	rig_release(0);
	ck_assert_int_eq(STAILQ_FIRST(&rig.disks[1]->held)->purpose, IO_RESYNC);
	rig_end(1, 0);
	ck_assert_uint_eq(rig.disks[1]->held_count, 2);
	read = rig_send(IO_READ, 0, 4096, 0);
	ck_assert(!rig_ended(write));
	ck_assert(!rig_ended(read));
	rig_end(1, 0);
	ck_assert(!rig_ended(read));
	rig_end(1, 0);
	ck_assert_int_eq(rig_take(write), 0);
	ck_assert_int_eq(rig_take(read), 0);
	ck_assert_uint_eq(doubtful(), 0);
}
END_TEST

START_TEST(a_status_that_fails_heals_nothing)
{
	rig.disks[0]->fail = rig.disks[1]->fail = HOST;
	ck_assert_int_eq(rig_take(rig_send(IO_STATUS, 0, MIB, 0)), -EIO);
	ck_assert_uint_eq(rig_count(0, IO_READ, IO_RESYNC), 0);
	ck_assert_uint_eq(rig_count(1, IO_READ, IO_RESYNC), 0);
}
END_TEST

/* --- as a device --- */

static const struct {
	unsigned legs, block;
} geometries[] = { { 2, 512 }, { 2, 4096 }, { 3, 512 }, { 4, 4096 } };

START_TEST(what_is_written_is_read_and_all_legs_are_equal)
{
	static uint8_t wanted[7 * MIB], buf[MIB];
	unsigned block = geometries[_i].block, legs = geometries[_i].legs;
	uint64_t size;

	rig_teardown();
	rig_setup(0, SIZE);
	rig.block_size = block;
	rig_create_clean(1, legs);
	size = array_blk(rig.array)->size_bytes;
	memset(wanted, 0, sizeof(wanted));
	srand(1);
	for (unsigned round = 0; round < 150; round++) {
		uint64_t at = (uint64_t)rand() % (size / block) * block;
		uint64_t most = min_u64(size - at, round % 4 ? 64 * KIB : MIB);
		uint64_t length = (1 + (uint64_t)rand() % (most / block)) * block;

		fake_fill(buf, length, round);
		ck_assert_int_eq(fake_blk_rw(array_blk(rig.array), IO_WRITE, at, buf, length,
					     1 + (unsigned)min_u64(length / block - 1, 7), 0),
				 0);
		memcpy(wanted + at, buf, length);
	}
	for (uint64_t at = 0; at < size; at += 64 * KIB) {
		ck_assert_int_eq(
			fake_blk_rw(array_blk(rig.array), IO_READ, at, buf, 64 * KIB, 3, 0), 0);
		ck_assert_mem_eq(buf, wanted + at, 64 * KIB);
	}
	for (unsigned i = 0; i < legs; i++)
		ck_assert_mem_eq(rig_data(i), wanted, size);
}
END_TEST

START_TEST(it_can_what_all_legs_can_and_unmap_only_where_that_makes_them_equal)
{
	static const struct {
		unsigned legs, array;
	} cases[] = {
		{ BLK_UNMAP | BLK_UNMAP_ZEROES | BLK_WRITE_ZEROES | BLK_VOLATILE,
		  BLK_UNMAP | BLK_UNMAP_ZEROES | BLK_WRITE_ZEROES | BLK_VOLATILE | BLK_FUA },
		{ BLK_UNMAP | BLK_WRITE_ZEROES, BLK_WRITE_ZEROES | BLK_FUA },
		{ BLK_ATOMIC, BLK_FUA },
	};

	rig_teardown();
	rig_setup(0, SIZE);
	rig.features = cases[_i].legs;
	rig_disk(0);
	rig.features |= BLK_WRITE_ZEROES | BLK_UNMAP | BLK_UNMAP_ZEROES;
	rig_create_clean(1, 2);
	ck_assert_uint_eq(array_blk(rig.array)->features, cases[_i].array);
	ck_assert_uint_eq(array_blk(rig.array)->max_io, MIB);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mirror");
	TCase *tcase = tcase_create("mirror");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, rig_teardown);
	tcase_add_loop_test(tcase, a_write_is_sent_only_when_its_regions_are_dirty_on_all_legs, 0,
			    2);
	tcase_add_test(tcase, what_cannot_be_made_dirty_is_not_written);
	tcase_add_loop_test(tcase, a_write_is_answered_when_all_legs_have_it, 0, 2);
	tcase_add_loop_test(tcase, one_leg_that_fails_is_excluded_and_the_write_is_good, 0, 2);
	tcase_add_loop_test(
		tcase, a_write_that_all_legs_refuse_fails_excludes_nobody_and_leaves_doubt, 0, 3);
	tcase_add_test(tcase, a_leg_that_rebuilds_does_not_make_a_write_good);
	tcase_add_test(tcase, a_leg_that_rebuilds_gets_writes_and_may_fail_them);
	tcase_add_loop_test(tcase, unmap_and_zeroes_reach_all_legs, 0, 2);
	tcase_add_test(tcase, more_writes_at_once_than_there_are_fans_wait_their_turn);
	tcase_add_test(tcase, a_flush_asks_every_leg_and_needs_all);
	tcase_add_test(tcase, a_leg_that_cannot_flush_is_excluded_before_the_answer);
	tcase_add_test(tcase, if_no_leg_can_flush_what_was_written_since_is_doubtful);
	tcase_add_test(tcase, a_sequential_reader_stays_on_its_leg);
	tcase_add_test(tcase, two_sequential_readers_have_a_leg_each);
	tcase_add_loop_test(tcase, reads_here_and_there_go_to_the_leg_with_the_least_to_do, 0, 3);
	tcase_add_test(tcase, a_leg_that_rebuilds_is_not_read);
	tcase_add_test(tcase, a_doubtful_read_waits_until_a_label_says_which_leg_counts);
	tcase_add_test(tcase, a_status_that_fails_heals_nothing);
	tcase_add_loop_test(tcase, what_is_written_is_read_and_all_legs_are_equal, 0,
			    (int)ARRAY_LEN(geometries));
	tcase_add_loop_test(
		tcase, it_can_what_all_legs_can_and_unmap_only_where_that_makes_them_equal, 0, 3);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
