/* SPDX-License-Identifier: MIT */
/*
 * Full stripes of which only an intent is logged: torn and with a member lost, that member's
 * blocks are an error, durably, until they are written; no others ever are. And stripes that a
 * write left half done when nobody was left to do without.
 */
#include "tests/fake/raid5_rig.h"

#define CHUNK 4096u
#define CHUNKS 3u
#define STRIPE (CHUNKS * CHUNK)
#define PARITY 3u /* the member with the first stripe's parity */
#define SECTORS (CHUNK / FAKE_SECTOR)

static const struct rig_shape shape = { .disks = 4,
					.chunk = CHUNK,
					.block = 512,
					.disk_bytes = 4 * MIB,
					.intent = true };
static struct rig rig;
static uint8_t before[2 * STRIPE] __attribute__((aligned(4096))), after[2 * STRIPE];

/* The full stripe that is under way when the power goes. */
static struct io io;
static struct iovec iov;
static struct fake_wait wait;
static uint8_t bytes[STRIPE] __attribute__((aligned(4096)));

static void begin(unsigned flags, unsigned hold)
{
	rig_create(&rig, &shape);
	ck_assert_int_eq(rig_write(&rig, 0, sizeof(before), 77), 0);
	ck_assert_int_eq(rig_rw(&rig, IO_FLUSH, 0, NULL, 0), 0);
	fake_env_advance(rig.env, 20 * NS_PER_S);
	memcpy(before, rig.image, sizeof(before));
	memcpy(after, before, sizeof(after));
	for (unsigned i = 0; i < rig.count; i++)
		rig.disks[i]->hold_purposes = hold;
	fake_fill(bytes, STRIPE, 100);
	memcpy(after, bytes, STRIPE);
	iov = (struct iovec){ bytes, STRIPE };
	wait = (struct fake_wait){ 0 };
	io_init(&io, IO_WRITE, 0, STRIPE, &iov, 1);
	io.flags = flags;
	blk_submit(rig.blk, &io, fake_wait_done, &wait);
	rig_run(&rig);
}

static void finish(void)
{
	for (unsigned i = 0; i < rig.count; i++)
		fake_disk_release(rig.disks[i], 0);
	rig_run(&rig);
	rig_free(&rig);
}

/* --- what is found --- */

/* Which sectors of the first two stripes cannot be read; the others are old or new. */
static uint64_t unread(struct rig *found)
{
	static uint8_t buf[FAKE_SECTOR] __attribute__((aligned(4096)));
	uint64_t bad = 0;

	for (unsigned i = 0; i < sizeof(before) / FAKE_SECTOR; i++) {
		unsigned at = i * FAKE_SECTOR;

		if (rig_rw(found, IO_READ, at, buf, FAKE_SECTOR) == -EIO)
			bad |= 1ull << i;
		else
			ck_assert_msg(memcmp(buf, before + at, FAKE_SECTOR) == 0 ||
					      memcmp(buf, after + at, FAKE_SECTOR) == 0,
				      "sector %u", i);
	}
	return bad;
}

/* How much of a member's chunk has landed: nothing, a half, every other sector, all. */
static bool lands(unsigned pattern, unsigned sector)
{
	switch (pattern) {
	case 1:
		return sector < SECTORS / 2;
	case 2:
		return sector % 2;
	default:
		return pattern == 3;
	}
}

static unsigned pattern_of(unsigned patterns, unsigned disk)
{
	return patterns >> 2 * disk & 3;
}

static void found_after(struct rig *found, unsigned patterns, unsigned lost)
{
	memset(found, 0, sizeof(*found));
	found->env = fake_env_new(2);
	found->count = rig.count;
	for (unsigned i = 0; i < rig.count; i++) {
		found->disks[i] = fake_disk_clone(found->env, rig.disks[i]);
		for (unsigned k = 0; k < fake_disk_held_sectors(rig.disks[i]); k++)
			if (lands(pattern_of(patterns, i), k))
				fake_disk_land(rig.disks[i], k, found->disks[i]);
	}
	ck_assert(rig_start(found, ((1u << rig.count) - 1) & ~(1u << lost)));
}

static uint64_t chunk_of(unsigned member)
{
	return member < CHUNKS ? ((1ull << SECTORS) - 1) << member * SECTORS : 0;
}

START_TEST(torn_and_a_member_lost_its_blocks_are_errors_and_no_others)
{
	unsigned all = (1u << 2 * PARITY) - 1 + (3u << 2 * PARITY), whole = 0, torn = 0;
	struct rig found;

	begin(0, 1u << IO_HOST | 1u << IO_PARITY);
	for (unsigned patterns = 0; patterns <= all; patterns++) {
		for (unsigned lost = 0; lost <= rig.count; lost++) {
			bool landed = (patterns | 3u << 2 * lost) == (all | 3u << 2 * lost);
			uint64_t bad;

			found_after(&found, patterns, lost);
			bad = unread(&found);
			/* What is there is all new: so is what is not. */
			ck_assert_uint_eq(bad, landed ? 0 : chunk_of(lost));
			whole += landed;
			torn += bad != 0;
			rig_free(&found);
		}
	}
	ck_assert_uint_eq(whole, 4 * 4 + 1);
	ck_assert_uint_eq(torn, 3 * (256 - 4));
	finish();
}
END_TEST

START_TEST(what_was_acknowledged_is_there_whoever_is_lost)
{
	struct rig found;

	begin(IO_FUA, 0);
	ck_assert_uint_eq(wait.calls, 1);
	memcpy(before, after, sizeof(before));
	for (unsigned lost = 0; lost <= rig.count; lost++) {
		found_after(&found, 0, lost);
		ck_assert_uint_eq(unread(&found), 0);
		rig_free(&found);
	}
	finish();
}
END_TEST

static struct array_info info_of(struct rig *found)
{
	struct array_info info;

	array_info(found->array, &info);
	return info;
}

START_TEST(what_is_lost_stays_so_in_other_lives_until_it_is_written)
{
	uint8_t block[1024] __attribute__((aligned(4096)));
	uint64_t chunk = chunk_of(1), two = 3ull << (SECTORS + 2);
	struct rig found;

	begin(0, 1u << IO_HOST | 1u << IO_PARITY);
	found_after(&found, 3, 1);
	ck_assert_uint_eq(info_of(&found).bad_bytes, CHUNK);
	for (unsigned life = 0; life < 3; life++) {
		rig_stop_array(&found);
		ck_assert(rig_start(&found, life ? 15 : 13));
		ck_assert_uint_eq(unread(&found), chunk);
		ck_assert_uint_eq(info_of(&found).bad_ranges, 1);
	}
	/* A read that touches it fails whole, also one of several chunks. */
	ck_assert_int_eq(rig_rw(&found, IO_READ, CHUNK - 512, block, 1024), -EIO);
	fake_fill(block, 1024, 9);
	memcpy(after + CHUNK + 1024, block, 1024);
	ck_assert_int_eq(rig_rw(&found, IO_WRITE, CHUNK + 1024, block, 1024), 0);
	ck_assert_uint_eq(unread(&found), chunk & ~two);
	ck_assert_uint_eq(info_of(&found).bad_ranges, 2);
	rig_stop_array(&found);
	ck_assert(rig_start(&found, 15));
	ck_assert_uint_eq(unread(&found), chunk & ~two);
	ck_assert_int_eq(rig_rw(&found, IO_WRITE_ZEROES, 0, NULL, STRIPE), 0);
	memset(after, 0, STRIPE);
	ck_assert_uint_eq(unread(&found), 0);
	ck_assert_uint_eq(info_of(&found).bad_bytes, 0);
	ck_assert(rig_parity_right(&found));
	rig_free(&found);
	finish();
}
END_TEST

START_TEST(a_write_of_what_is_lost_is_answered_when_a_label_says_that_it_is_known)
{
	static uint8_t block[4096] __attribute__((aligned(4096)));
	struct iovec part = { block, 512 };
	struct fake_wait written = { 0 };
	struct rig found, later;
	struct io one;

	begin(0, 1u << IO_HOST | 1u << IO_PARITY);
	found_after(&found, 3, 1);
	for (unsigned i = 0; i < found.count; i++)
		found.disks[i]->hold_purposes = 1u << IO_LABEL;
	fake_fill(block, 512, 9);
	io_init(&one, IO_WRITE, CHUNK, 512, &part, 1);
	blk_submit(found.blk, &one, fake_wait_done, &written);
	rig_run(&found);
	ck_assert_uint_eq(written.calls, 0);
	for (unsigned turn = 0; turn < 8; turn++) {
		for (unsigned i = 0; i < found.count; i++)
			fake_disk_release(found.disks[i], 0);
		rig_run(&found);
	}
	ck_assert_uint_eq(written.calls, 1);
	ck_assert_int_eq(written.error, 0);
	memcpy(after + CHUNK, block, 512);
	memset(&later, 0, sizeof(later));
	later.env = fake_env_new(3);
	later.count = found.count;
	for (unsigned i = 0; i < found.count; i++)
		later.disks[i] = fake_disk_clone(later.env, found.disks[i]);
	ck_assert(rig_start(&later, 13));
	ck_assert_uint_eq(unread(&later), chunk_of(1) & ~(1ull << SECTORS));
	rig_free(&later);
	rig_free(&found);
	finish();
}
END_TEST

/* Regions know nothing of it: what the intent tells is all there is. */
START_TEST(who_was_missing_is_made_to_agree_with_an_intent_when_it_comes_back)
{
	unsigned lost = (unsigned)_i, next = (lost + 1) % shape.disks;
	struct rig found;

	begin(0, 1u << IO_HOST | 1u << IO_PARITY);
	for (unsigned patterns = 0; patterns < 256; patterns += 5) {
		found_after(&found, patterns & ~(3u << 2 * lost), lost);
		ck_assert_int_eq(array_add(found.array,
					   &(struct array_disk){ "disk", &found.disks[lost]->blk },
					   rig_told, &found),
				 0);
		rig_run(&found);
		ck_assert_int_eq(rig_state(&found), ARRAY_HEALTHY);
		ck_assert(rig_parity_right(&found));
		found.disks[next]->fail = -EIO;
		ck_assert_uint_eq(unread(&found) & ~chunk_of(lost), 0);
		found.disks[next]->fail = 0;
		rig_free(&found);
	}
	finish();
}
END_TEST

/* The middle of a lost range becomes known only if the list has room for what is left of it. */
START_TEST(what_cannot_be_said_to_be_known_stays_lost_and_nothing_else_suffers)
{
	uint64_t sector = chunk_of(1) & (1ull << (SECTORS + 1));
	uint8_t block[FAKE_SECTOR] __attribute__((aligned(4096)));
	struct rig found;

	begin(0, 1u << IO_HOST | 1u << IO_PARITY);
	found_after(&found, 3, 1);
	for (unsigned i = 1; i < BAD_RANGES_MAX; i++)
		array_lose(found.array,
			   &(struct bad_range){ 1, (2 + i) * CHUNK, (2 + i) * CHUNK + 512 });
	ck_assert_uint_eq(info_of(&found).bad_ranges, BAD_RANGES_MAX);
	fake_fill(block, sizeof(block), 9);
	memcpy(after + CHUNK + 512, block, sizeof(block));
	ck_assert_int_eq(rig_rw(&found, IO_WRITE, CHUNK + 512, block, sizeof(block)), -EIO);
	ck_assert_uint_eq(unread(&found), chunk_of(1));
	ck_assert_uint_eq(info_of(&found).bad_ranges, BAD_RANGES_MAX);
	/* From its edge on it can, and so there is room. */
	memcpy(after + CHUNK, block, sizeof(block));
	ck_assert_int_eq(rig_rw(&found, IO_WRITE, CHUNK, block, sizeof(block)), 0);
	ck_assert_int_eq(rig_rw(&found, IO_WRITE, CHUNK + 512, block, sizeof(block)), 0);
	ck_assert_uint_eq(unread(&found), chunk_of(1) & ~(sector | sector >> 1));
	rig_free(&found);
	finish();
}
END_TEST

START_TEST(what_follows_an_intent_waits_until_the_stripe_is_held)
{
	uint64_t flushes;

	begin(0, 0);
	ck_assert_uint_eq(wait.calls, 1);
	memcpy(rig.image, after, sizeof(after));
	flushes = rig_ops(&rig, IO_FLUSH);
	ck_assert_int_eq(rig_write(&rig, STRIPE, 512, 4), 0);
	ck_assert_uint_eq(rig_ops(&rig, IO_FLUSH), flushes);
	ck_assert_int_eq(rig_write(&rig, CHUNK, 512, 3), 0);
	ck_assert_uint_eq(rig_ops(&rig, IO_FLUSH), flushes + rig.count);
	ck_assert_int_eq(rig_write(&rig, CHUNK, 512, 5), 0);
	ck_assert_uint_eq(rig_ops(&rig, IO_FLUSH), flushes + rig.count);
	/* An intent waits for records, too: they would be written over it. */
	ck_assert_int_eq(rig_write(&rig, 0, STRIPE, 6), 0);
	ck_assert_uint_eq(rig_ops(&rig, IO_FLUSH), flushes + 2 * rig.count);
	rig_check(&rig, 0, 2 * STRIPE);
	rig_free(&rig);
}
END_TEST

/* Data and parity of what was logged are in place only in part, and nobody is left to do without. */
START_TEST(what_only_the_log_can_tell_is_not_read_before_the_next_start)
{
	static uint8_t buf[STRIPE] __attribute__((aligned(4096)));
	struct rig_shape data = shape;
	struct rig found;

	data.intent = false;
	rig_create(&rig, &data);
	ck_assert_int_eq(rig_write(&rig, 0, sizeof(before), 77), 0);
	memcpy(before, rig.image, sizeof(before));
	rig.disks[2]->fail = -EIO;
	ck_assert_int_eq(rig_write(&rig, 4 * STRIPE, STRIPE, 1), 0);
	ck_assert_int_eq(rig_state(&rig), ARRAY_DEGRADED);
	rig.disks[1]->fail_purposes = 1u << IO_HOST;
	ck_assert_int_eq(rig_write(&rig, CHUNK, 512, 5), -EIO);
	rig.disks[1]->fail_purposes = 0;
	ck_assert_int_eq(rig_state(&rig), ARRAY_FAILED);
	memcpy(after, before, sizeof(after));
	fake_fill(after + CHUNK, 512, 5);
	for (unsigned i = 0; i < CHUNKS; i++)
		ck_assert_int_eq(rig_rw(&rig, IO_READ, i * CHUNK, buf, 512), -EIO);
	ck_assert_int_eq(rig_rw(&rig, IO_READ, STRIPE, buf, STRIPE), 0);
	ck_assert_mem_eq(buf, before + STRIPE, STRIPE);
	ck_assert_int_eq(rig_write(&rig, STRIPE, 512, 6), -EIO);
	found_after(&found, 0, 2);
	ck_assert_int_eq(rig_state(&found), ARRAY_DEGRADED);
	ck_assert_uint_eq(unread(&found), 0);
	ck_assert_int_eq(rig_rw(&found, IO_READ, 0, buf, STRIPE), 0);
	ck_assert_mem_eq(buf, after, STRIPE);
	ck_assert_int_eq(rig_rw(&found, IO_WRITE, 0, before, STRIPE), 0);
	rig_free(&found);
	rig_free(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("raid5_lost");
	TCase *tcase = tcase_create("lost");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, torn_and_a_member_lost_its_blocks_are_errors_and_no_others);
	tcase_add_test(tcase, what_was_acknowledged_is_there_whoever_is_lost);
	tcase_add_test(tcase, what_is_lost_stays_so_in_other_lives_until_it_is_written);
	tcase_add_test(tcase,
		       a_write_of_what_is_lost_is_answered_when_a_label_says_that_it_is_known);
	tcase_add_loop_test(tcase,
			    who_was_missing_is_made_to_agree_with_an_intent_when_it_comes_back, 0,
			    (int)shape.disks);
	tcase_add_test(tcase, what_cannot_be_said_to_be_known_stays_lost_and_nothing_else_suffers);
	tcase_add_test(tcase, what_follows_an_intent_waits_until_the_stripe_is_held);
	tcase_add_test(tcase, what_only_the_log_can_tell_is_not_read_before_the_next_start);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
