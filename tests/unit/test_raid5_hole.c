/* SPDX-License-Identifier: MIT */
/*
 * The write hole, exhaustively: three data chunks and parity, a write of one, two or three
 * chunks, two sectors each; the power goes with any subset of the sectors written that were on
 * their way, and with any one member. Every sector is old or new, bystanders are untouched, and
 * that holds for what the array says with another member lost, too.
 * timeout: 600
 */
#include <sys/prctl.h>

#include "tests/fake/raid5_rig.h"

#define CHUNK 4096u
#define PART 1024u /* of a chunk that is written */
#define CHUNKS 3u
#define SECTORS_MAX 16u

static const struct rig_shape shape = { .disks = 4,
					.chunk = CHUNK,
					.block = 512,
					.disk_bytes = 4 * MIB };
static struct rig rig;
static uint8_t before[CHUNKS * CHUNK], after[CHUNKS * CHUNK];

/* Writes that are under way when the power goes. */
static struct io ios[CHUNKS];
static struct iovec iov[CHUNKS];
static struct fake_wait waits[CHUNKS];
static uint8_t bytes[CHUNKS][PART] __attribute__((aligned(4096)));

struct torn {
	unsigned disk, sector;
};

/* Old data everywhere, new data for the chunks of SET under way; writes of PURPOSES are held. */
static unsigned begin(unsigned set, unsigned purposes, struct torn *torn)
{
	unsigned count = 0;

	rig_create(&rig, &shape);
	ck_assert_int_eq(rig_write(&rig, 0, sizeof(before), 77), 0);
	/* Regions are clean: it is by the log alone that anybody knows. */
	fake_env_advance(rig.env, 20 * NS_PER_S);
	memcpy(before, rig.image, sizeof(before));
	memcpy(after, before, sizeof(after));
	for (unsigned i = 0; i < rig.count; i++)
		rig.disks[i]->hold_purposes = purposes;
	for (unsigned i = 0; i < CHUNKS; i++) {
		if (!(set >> i & 1))
			continue;
		fake_fill(bytes[i], PART, 100 + i);
		memcpy(after + i * CHUNK, bytes[i], PART);
		iov[i] = (struct iovec){ bytes[i], PART };
		waits[i] = (struct fake_wait){ 0 };
		io_init(&ios[i], IO_WRITE, i * CHUNK, PART, &iov[i], 1);
		blk_submit(rig.blk, &ios[i], fake_wait_done, &waits[i]);
	}
	rig_run(&rig);
	for (unsigned i = 0; i < rig.count; i++)
		for (unsigned k = 0; k < fake_disk_held_sectors(rig.disks[i]); k++)
			torn[count++] = (struct torn){ i, k };
	ck_assert_uint_gt(count, 0);
	ck_assert_uint_le(count, SECTORS_MAX);
	return count;
}

static void finish(void)
{
	for (unsigned i = 0; i < rig.count; i++)
		fake_disk_release(rig.disks[i], 0);
	rig_run(&rig);
	rig_free(&rig);
}

/* Each sector is old or new; those that are not written are old. */
static bool sound(struct rig *found)
{
	static uint8_t buf[CHUNKS * CHUNK] __attribute__((aligned(4096)));
	bool good = true;

	ck_assert_int_eq(rig_rw(found, IO_READ, 0, buf, sizeof(buf)), 0);
	for (unsigned at = 0; at < sizeof(buf); at += FAKE_SECTOR)
		good &= memcmp(buf + at, before + at, FAKE_SECTOR) == 0 ||
			memcmp(buf + at, after + at, FAKE_SECTOR) == 0;
	return good;
}

/* LOST comes back, then another one is lost: what it missed, by the log, it has got. */
static bool sound_again(struct rig *found, unsigned lost)
{
	struct fake_disk *next = found->disks[lost ? 0 : 1];
	bool good;

	array_add(found->array, &(struct array_disk){ "disk", &found->disks[lost]->blk }, rig_told,
		  found);
	rig_run(found);
	ck_assert_int_eq(found->error, 0);
	ck_assert_int_eq(rig_state(found), ARRAY_HEALTHY);
	next->fail = -EIO;
	good = sound(found);
	next->fail = 0;
	return good;
}

/* What is left when the sectors of SUBSET have landed and member LOST (count: nobody) is gone. */
static bool case_sound(const struct torn *torn, unsigned count, unsigned subset, unsigned lost,
		       bool without_log)
{
	struct rig found = { .env = fake_env_new(2), .count = rig.count };
	struct fake_disk *next;
	bool good;

	for (unsigned i = 0; i < rig.count; i++)
		found.disks[i] = fake_disk_clone(found.env, rig.disks[i]);
	for (unsigned i = 0; i < count; i++)
		if (subset >> i & 1)
			fake_disk_land(rig.disks[torn[i].disk], torn[i].sector,
				       found.disks[torn[i].disk]);
	if (without_log) {
		static const uint8_t nothing[MIB];

		for (unsigned i = 0; i < rig.count; i++)
			fake_disk_write(found.disks[i], rig.array->label.log.offset, nothing,
					sizeof(nothing));
	}
	ck_assert(rig_start(&found, ((1u << rig.count) - 1) & ~(1u << lost)));
	good = sound(&found);
	/* The next one goes: what was said stays (parity is as good as the data). */
	if (lost == rig.count) {
		next = found.disks[subset & 1 ? 0 : lost - 1];
		next->fail = -EIO;
		good &= sound(&found);
		next->fail = 0;
	}
	if (lost < rig.count)
		good &= sound_again(&found, lost);
	rig_free(&found);
	return good;
}

/* Whether all cases are sound. */
static bool explore(unsigned set, unsigned purposes, bool without_log)
{
	struct torn torn[64];
	unsigned count = begin(set, purposes, torn);
	bool good = true;

	for (unsigned subset = 0; good && subset < 1u << count; subset++)
		for (unsigned lost = 0; good && lost <= rig.count; lost++)
			good = case_sound(torn, count, subset, lost, without_log);
	finish();
	return good;
}

static const unsigned sets[] = { 1, 2, 3, 5, 7 };

START_TEST(torn_data_and_parity_with_any_member_lost_leave_old_or_new)
{
	ck_assert(explore(sets[_i], 1u << IO_HOST | 1u << IO_PARITY, false));
}
END_TEST

START_TEST(a_torn_log_with_any_member_lost_leaves_old_or_new)
{
	ck_assert(explore(sets[_i], 1u << IO_LOG, false));
}
END_TEST

START_TEST(without_the_log_there_is_a_hole)
{
	ck_assert(!explore(sets[_i], 1u << IO_HOST | 1u << IO_PARITY, true));
}
END_TEST

START_TEST(what_was_acknowledged_is_new_whoever_is_lost)
{
	struct torn torn[64];

	begin(sets[_i], 1u << IO_HOST | 1u << IO_PARITY, torn);
	for (unsigned i = 0; i < rig.count; i++)
		fake_disk_release(rig.disks[i], 0);
	rig_run(&rig);
	for (unsigned i = 0; i < CHUNKS; i++)
		ck_assert_uint_eq(waits[i].calls, sets[_i] >> i & 1);
	memcpy(before, after, sizeof(before));
	for (unsigned lost = 0; lost <= rig.count; lost++)
		ck_assert(case_sound(torn, 0, 0, lost, false));
	finish();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("raid5_hole");
	TCase *tcase = tcase_create("hole");
	SRunner *runner;
	int failed;

	/* Thousands of arrays touch little of their memory: huge pages of it would all be cleared. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, torn_data_and_parity_with_any_member_lost_leave_old_or_new, 0,
			    (int)ARRAY_LEN(sets));
	tcase_add_loop_test(tcase, a_torn_log_with_any_member_lost_leaves_old_or_new, 0,
			    (int)ARRAY_LEN(sets));
	tcase_add_loop_test(tcase, without_the_log_there_is_a_hole, 0, (int)ARRAY_LEN(sets));
	tcase_add_loop_test(tcase, what_was_acknowledged_is_new_whoever_is_lost, 0,
			    (int)ARRAY_LEN(sets));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
