/* SPDX-License-Identifier: MIT */
/* RAID 5 before its first resync is over: parity may be wrong, and what is written is covered. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "raid/raid5_int.h"
#include "tests/fake/raid_rig.h"

#define DISKS 4u
#define CHUNK (64 * KIB)
#define STRIPE 10u /* the resync is far from it */
#define PAGE 4096u

static unsigned role_of(unsigned column)
{
	return raid5_data_role(DISKS, STRIPE, column);
}

static uint64_t place(unsigned column)
{
	return ((uint64_t)STRIPE * (DISKS - 1) + column) * CHUNK;
}

static uint8_t *stripe_bytes(unsigned role)
{
	return rig_data(role) + (uint64_t)STRIPE * CHUNK;
}

/* Disks full of anything; the resync has begun, and stands. */
static void setup(void)
{
	rig_setup(DISKS, 8 * MIB);
	srand(1);
	for (unsigned i = 0; i < DISKS; i++) {
		for (uint64_t at = 0; at < 8 * MIB; at++)
			rig_disk(i)->bytes[at] = (uint8_t)rand();
		rig_disk(i)->hold = 1u << IO_RESYNC;
	}
	ck_assert_int_eq(rig_create(5, DISKS), 0);
	ck_assert_uint_gt(rig_info().regions_doubtful, 0);
}

/* One held io of each disk after the other: what came later than the resync's goes on, too. */
static int wait_for(struct rig_io *io)
{
	for (unsigned i = 0; i < 4000 && !rig_ended(io); i++)
		if (rig.disks[i % DISKS]->held_count)
			rig_end(i % DISKS, 0);
	return rig_take(io);
}

static void parity_is_right(void)
{
	for (unsigned i = 0; i < PAGE; i++) {
		uint8_t sum = 0;

		for (unsigned role = 0; role < DISKS; role++)
			sum ^= stripe_bytes(role)[i];
		ck_assert_uint_eq(sum, 0);
	}
}

/* Who cannot be read: only by the write, by nobody, by nobody and not written either. */
static const struct {
	unsigned reads, writes;
} faults[] = {
	{ 1u << IO_PARITY, 0 },
	{ 1u << IO_PARITY | 1u << IO_RESYNC, 0 },
	{ 1u << IO_PARITY | 1u << IO_RESYNC, 1u << IO_RESYNC },
};

START_TEST(new_data_are_covered_though_old_ones_cannot_be_read)
{
	unsigned other = role_of(1);
	struct rig_io *io;

	rig_disk(other)->fail_reads = faults[_i].reads;
	rig_disk(other)->fail = faults[_i].writes;
	io = rig_send(IO_WRITE, place(0), PAGE, 7);
	ck_assert_int_eq(wait_for(io), 0);
	if (!faults[_i].writes)
		parity_is_right();
	rig_power_cut();
	if (faults[_i].writes)
		return; /* a second one lost is one too many */
	ck_assert_int_eq(rig_start((1u << DISKS) - 1 - (1u << role_of(0)), false), 0);
	ck_assert_int_eq(rig_read(place(0), PAGE, 7), 0);
}
END_TEST

/* Then nobody can tell what parity is to be, and nothing is acknowledged that has none. */
START_TEST(a_write_fails_if_two_cannot_be_read)
{
	uint8_t before[PAGE];
	struct rig_io *io;

	memcpy(before, stripe_bytes(role_of(0)), PAGE);
	for (unsigned column = 1; column < 3; column++)
		rig_disk(role_of(column))->fail_reads = 1u << IO_PARITY | 1u << IO_RESYNC;
	io = rig_send(IO_WRITE, place(0), PAGE, 7);
	ck_assert_int_eq(wait_for(io), -EIO);
	ck_assert_mem_eq(stripe_bytes(role_of(0)), before, PAGE);
	/* They can again. */
	for (unsigned column = 1; column < 3; column++)
		rig_disk(role_of(column))->fail_reads = 0;
	ck_assert_int_eq(rig_write(place(0), PAGE, 7), 0);
	parity_is_right();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("raid5_doubt");
	TCase *tcase = tcase_create("raid5_doubt");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, rig_teardown);
	tcase_add_loop_test(tcase, new_data_are_covered_though_old_ones_cannot_be_read, 0,
			    (int)ARRAY_LEN(faults));
	tcase_add_test(tcase, a_write_fails_if_two_cannot_be_read);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
