/* SPDX-License-Identifier: MIT */
/* Dirty regions: bits are durable before a write, and go only after a flush (I10). */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/regions_int.h"
#include "tests/fake/fake_env.h"

#define TAG 77
#define CAP 16
#define AGE (5 * NS_PER_S)

static struct env *env;
static struct regions *regions;

/* The device: what it holds, what is on its way. */
static uint8_t stable[2][REGIONS_PAGE];
static const uint8_t *storing; /* NULL: nothing */
static unsigned copy;
static bool flushing;
static unsigned stores, flushes;

struct write {
	struct region_hold hold;
	bool granted;
	int error;
};

static void granted(struct region_hold *hold, int error)
{
	struct write *write = container_of(hold, struct write, hold);

	ck_assert(!write->granted);
	write->granted = true;
	write->error = error;
}

static void store(void *arg, unsigned page, unsigned which, const void *bytes)
{
	(void)arg;
	ck_assert_uint_eq(page, 0);
	ck_assert(!storing);
	storing = bytes;
	copy = which;
	stores++;
}

static void flush(void *arg)
{
	(void)arg;
	ck_assert(!flushing);
	flushing = true;
	flushes++;
}

static bool quiet;

static void idle(void *arg)
{
	(void)arg;
	ck_assert(!quiet);
	quiet = true;
}

static const struct regions_ops ops = { .store = store, .flush = flush, .idle = idle };

static void stored(int error)
{
	ck_assert_ptr_nonnull(storing);
	if (!error)
		memcpy(stable[copy], storing, REGIONS_PAGE);
	storing = NULL;
	regions_stored(regions, 0, error);
	fake_env_run(env);
}

static void flushed(int error)
{
	ck_assert(flushing);
	flushing = false;
	regions_flushed(regions, error);
	fake_env_run(env);
}

static void start(uint64_t size_bytes, bool lazy)
{
	const struct regions_conf conf = {
		.env = env,
		.size_bytes = size_bytes,
		.tag = TAG,
		.dirty_max = CAP,
		.clean_after_ns = AGE,
		.lazy = lazy,
		.ops = &ops,
	};

	regions = regions_new(&conf);
	ck_assert_ptr_nonnull(regions);
}

static void setup(void)
{
	env = fake_env_new(1);
	regions_page_empty(TAG, 0, stable[0]);
	memset(stable[1], 0xff, REGIONS_PAGE);
	start(40 * MIB, false);
}

static void teardown(void)
{
	regions_free(regions);
	fake_env_free(env);
}

static bool enter(struct write *write, unsigned region, unsigned count)
{
	*write = (struct write){ .hold = { .offset = region * MIB + 512,
					   .length = (count - 1) * MIB + 512,
					   .fn = granted } };
	write->granted = regions_enter(regions, &write->hold);
	return write->granted;
}

static void leave(struct write *write)
{
	regions_leave(regions, &write->hold, false);
}

/* What a start would find. */
static bool on_disk(unsigned region)
{
	uint64_t sequence;
	const void *page = regions_page_newest(TAG, 0, stable[0], stable[1], &sequence);

	return !page || regions_page_has(page, region);
}

static struct regions_counts counts(void)
{
	struct regions_counts now;

	regions_counts(regions, &now);
	return now;
}

START_TEST(a_write_waits_for_its_bit)
{
	struct write a, b;

	ck_assert(!enter(&a, 3, 1));
	fake_env_run(env);
	ck_assert(!a.granted);
	ck_assert(!on_disk(3));
	stored(0);
	ck_assert(a.granted);
	ck_assert(on_disk(3));
	ck_assert(enter(&b, 3, 1));
	ck_assert_uint_eq(stores, 1);
	leave(&a);
	leave(&b);
	ck_assert_uint_eq(counts().dirty, 1);
}
END_TEST

START_TEST(writes_that_come_meanwhile_share_the_next_store)
{
	struct write a, b, c;

	enter(&a, 1, 1);
	enter(&b, 2, 1);
	enter(&c, 7, 3);
	stored(0);
	ck_assert(a.granted && !b.granted && !c.granted);
	stored(0);
	ck_assert(b.granted && c.granted);
	ck_assert_uint_eq(stores, 2);
	for (unsigned i = 7; i < 10; i++)
		ck_assert(on_disk(i));
	leave(&a);
	leave(&b);
	leave(&c);
}
END_TEST

START_TEST(a_bit_goes_when_idle_and_flushed)
{
	struct write a;

	enter(&a, 3, 1);
	stored(0);
	fake_env_advance(env, 10 * AGE);
	ck_assert(!flushing);
	leave(&a);
	fake_env_advance(env, AGE - 1);
	ck_assert(!flushing);
	fake_env_advance(env, AGE);
	ck_assert(flushing);
	ck_assert(on_disk(3));
	flushed(0);
	stored(0);
	ck_assert(!on_disk(3));
	ck_assert_uint_eq(counts().dirty, 0);
}
END_TEST

START_TEST(a_write_during_the_flush_keeps_the_bit)
{
	struct write a;

	enter(&a, 3, 1);
	stored(0);
	leave(&a);
	fake_env_advance(env, 2 * AGE);
	ck_assert(flushing);
	ck_assert(enter(&a, 3, 1));
	leave(&a);
	flushed(0);
	ck_assert(!storing);
	ck_assert_uint_eq(counts().dirty, 1);
}
END_TEST

START_TEST(a_failed_flush_cleans_nothing)
{
	struct write a;

	enter(&a, 3, 1);
	stored(0);
	leave(&a);
	fake_env_advance(env, 2 * AGE);
	flushed(-EIO);
	ck_assert(!storing);
	ck_assert(on_disk(3));
	regions_doubt_unflushed(regions);
	ck_assert_uint_eq(counts().doubtful, 1);
	ck_assert(regions_doubtful(regions, 3 * MIB, 1));
	ck_assert(!regions_doubtful(regions, 4 * MIB, MIB));
}
END_TEST

START_TEST(while_somebody_is_missing_nothing_is_cleaned)
{
	struct write a;
	uint64_t doubts;

	regions_set_whole(regions, false);
	enter(&a, 3, 1);
	stored(0);
	leave(&a);
	fake_env_advance(env, 10 * AGE);
	ck_assert(!flushing);
	regions_doubt_dirty(regions);
	stored(0); /* on who comes, too */
	regions_set_whole(regions, true);
	fake_env_advance(env, 10 * AGE);
	ck_assert(!flushing); /* doubtful: it has to be made equal first */
	doubts = regions_doubts(regions, 3 * MIB);
	regions_doubt_unflushed(regions);
	regions_made_equal(regions, 3 * MIB, doubts);
	ck_assert(regions_doubtful(regions, 3 * MIB, 1)); /* doubted again meanwhile */
	regions_made_equal(regions, 3 * MIB, regions_doubts(regions, 3 * MIB));
	fake_env_advance(env, 10 * AGE);
	flushed(0);
	stored(0);
	ck_assert(!on_disk(3));
}
END_TEST

START_TEST(beyond_the_cap_one_waits_for_another_to_be_clean)
{
	struct write all[CAP], late, again;

	for (unsigned i = 0; i < CAP; i++)
		enter(&all[i], i, 1);
	while (storing)
		stored(0);
	ck_assert(!enter(&late, 30, 1));
	fake_env_run(env);
	ck_assert(!flushing);
	ck_assert(enter(&again, 2, 1)); /* what needs nothing new passes it */
	leave(&again);
	leave(&all[5]);
	fake_env_advance(env, 1);
	flushed(0);
	while (storing)
		stored(0);
	ck_assert(late.granted);
	ck_assert(!on_disk(5));
	ck_assert(on_disk(30));
	ck_assert_uint_eq(counts().dirty, CAP);
	for (unsigned i = 0; i < CAP; i++)
		if (i != 5)
			leave(&all[i]);
	leave(&late);
}
END_TEST

START_TEST(the_cap_does_not_stop_writes_while_somebody_is_missing)
{
	struct write all[40];

	regions_set_whole(regions, false);
	for (unsigned i = 0; i < 40; i++)
		enter(&all[i], i, 1);
	while (storing)
		stored(0);
	for (unsigned i = 0; i < 40; i++) {
		ck_assert(all[i].granted);
		leave(&all[i]);
	}
	ck_assert_uint_eq(counts().dirty, 40);
	regions_doubt_dirty(regions);
	while (storing)
		stored(0);
	ck_assert_uint_eq(counts().doubtful, 40);
}
END_TEST

START_TEST(copies_that_differ_after_a_write_are_doubtful)
{
	struct write a;

	enter(&a, 3, 1);
	stored(0);
	regions_leave(regions, &a.hold, true);
	ck_assert(regions_doubtful(regions, 3 * MIB, 1));
}
END_TEST

START_TEST(at_the_end_everything_is_cleaned_that_can_be)
{
	struct write a, b;

	enter(&a, 3, 1);
	enter(&b, 9, 1);
	while (storing)
		stored(0);
	leave(&a);
	regions_leave(regions, &b.hold, true);
	regions_quiesce(regions);
	ck_assert(!quiet);
	fake_env_run(env);
	flushed(0);
	ck_assert(!quiet);
	stored(0);
	ck_assert(quiet);
	ck_assert(!on_disk(3));
	ck_assert(on_disk(9));
}
END_TEST

START_TEST(a_flush_under_way_at_the_end_is_not_the_last_one)
{
	struct write a, b;

	enter(&a, 3, 1);
	stored(0);
	leave(&a);
	fake_env_advance(env, 2 * AGE);
	ck_assert(flushing);
	enter(&b, 9, 1);
	stored(0);
	leave(&b); /* too late for that flush */
	quiet = false;
	regions_quiesce(regions);
	fake_env_advance(env, 1);
	flushed(0);
	ck_assert(!quiet);
	fake_env_advance(env, 1);
	flushed(0);
	while (storing)
		stored(0);
	ck_assert(quiet);
	ck_assert(!on_disk(3) && !on_disk(9));
}
END_TEST

START_TEST(with_nothing_to_clean_the_end_comes_at_once)
{
	regions_quiesce(regions);
	ck_assert(!quiet);
	fake_env_run(env);
	ck_assert(quiet);
}
END_TEST

START_TEST(bits_that_cannot_be_stored_let_nobody_write)
{
	struct write a, b;

	enter(&a, 3, 1);
	enter(&b, 4, 1);
	stored(-EIO);
	ck_assert(a.granted && b.granted);
	ck_assert_int_eq(a.error, -EIO);
	ck_assert_int_eq(b.error, -EIO);
	leave(&a);
	leave(&b);
	ck_assert(!enter(&a, 3, 1));
	fake_env_run(env);
	ck_assert_int_eq(a.error, -EIO);
	leave(&a);
}
END_TEST

START_TEST(lazy_bits_are_stored_when_somebody_is_missing)
{
	struct write a, b, sync = { .hold = { .fn = granted } };

	regions_free(regions);
	start(40 * MIB, true);
	ck_assert(enter(&a, 3, 1));
	ck_assert(!storing);
	ck_assert(regions_sync(regions, &sync.hold));
	regions_set_whole(regions, false);
	ck_assert(storing);
	ck_assert(!regions_sync(regions, &sync.hold));
	ck_assert(!enter(&b, 9, 1));
	while (storing)
		stored(0);
	ck_assert(sync.granted && b.granted);
	ck_assert(on_disk(3) && on_disk(9));
	leave(&a);
	leave(&b);
}
END_TEST

START_TEST(what_was_dirty_at_the_end_is_doubtful_at_the_start)
{
	struct write a;
	uint64_t offset, length;

	enter(&a, 39, 1);
	stored(0);
	leave(&a);
	regions_free(regions);
	start(40 * MIB - 512, false);
	regions_load(regions, 0, stable[0], stable[1]);
	regions_loaded(regions);
	ck_assert_uint_eq(counts().doubtful, 1);
	ck_assert(regions_next_doubtful(regions, 0, &offset, &length));
	ck_assert_uint_eq(offset, 39 * MIB);
	ck_assert_uint_eq(length, MIB - 512);
	ck_assert(!regions_next_doubtful(regions, offset + length, &offset, &length));
	ck_assert(!enter(&a, 39, 1)); /* one device may not have had the bit */
	stored(0);
	ck_assert(a.granted);
	leave(&a);
}
END_TEST

START_TEST(bits_of_the_last_life_go_when_copies_are_equal)
{
	struct write a;
	uint64_t offset, length;

	enter(&a, 3, 1);
	stored(0);
	leave(&a);
	regions_free(regions);
	start(40 * MIB, false);
	regions_load(regions, 0, stable[0], stable[1]);
	regions_loaded(regions);
	ck_assert(regions_next_doubtful(regions, 0, &offset, &length));
	regions_made_equal(regions, offset, regions_doubts(regions, offset));
	fake_env_advance(env, 2 * AGE);
	flushed(0);
	stored(0);
	ck_assert(!on_disk(3));
	ck_assert_uint_eq(counts().dirty, 0);
}
END_TEST

START_TEST(a_device_that_joins_gets_the_bits_before_they_count)
{
	struct write a, b, sync;

	regions_set_whole(regions, false);
	enter(&a, 3, 1);
	stored(0);
	leave(&a);
	ck_assert(!enter(&b, 7, 1)); /* on its way to those who were there */
	regions_doubt_dirty(regions);
	sync = (struct write){ .hold = { .fn = granted } };
	ck_assert(!regions_sync(regions, &sync.hold));
	stored(0);
	ck_assert(!b.granted && !sync.granted);
	stored(0);
	ck_assert(b.granted && sync.granted);
	ck_assert(on_disk(3) && on_disk(7));
	leave(&b);
}
END_TEST

START_TEST(pages_that_nobody_can_read_are_all_ones)
{
	struct write a;

	regions_free(regions);
	start(40 * MIB, false);
	stable[0][100] ^= 1;
	regions_load(regions, 0, stable[0], NULL);
	regions_load(regions, 0, NULL, stable[1]);
	regions_loaded(regions);
	ck_assert_uint_eq(counts().doubtful, 40);
	ck_assert(!enter(&a, 1, 1)); /* nothing but doubt: the cap stops nobody */
	stored(0);
	ck_assert(a.granted);
	leave(&a);
}
END_TEST

START_TEST(the_union_of_all_devices_counts)
{
	uint8_t one[REGIONS_PAGE] = { 0 }, two[REGIONS_PAGE] = { 0 };

	regions_page_set(one, 1);
	regions_page_seal(one, TAG, 0, 5);
	regions_page_set(two, 2);
	regions_page_seal(two, TAG, 0, 6);
	regions_load(regions, 0, one, NULL);
	regions_load(regions, 0, stable[0], two);
	regions_loaded(regions);
	ck_assert(regions_doubtful(regions, MIB, 1));
	ck_assert(regions_doubtful(regions, 2 * MIB, 1));
	ck_assert_uint_eq(counts().doubtful, 2);
}
END_TEST

/*
 * Random lives: whoever may write finds its bits durable in whatever a start would read, and no
 * bit goes without a flush that began after the last write of its region.
 */
#define WRITES 24

static unsigned step, last_leave[40], flush_began, good_flush;
static struct write writes[WRITES];
static bool active[WRITES];

static void check_bits(void)
{
	for (unsigned i = 0; i < WRITES; i++) {
		unsigned first = (unsigned)(writes[i].hold.offset / MIB);
		unsigned last =
			(unsigned)((writes[i].hold.offset + writes[i].hold.length - 1) / MIB);

		for (unsigned r = first; active[i] && writes[i].granted && r <= last; r++) {
			ck_assert(on_disk(r));
			ck_assert(!storing || regions_page_has(storing, r));
		}
	}
	for (unsigned r = 0; storing && r < 40; r++)
		ck_assert(regions_page_has(storing, r) || last_leave[r] < good_flush ||
			  !last_leave[r]);
}

static void random_step(void)
{
	unsigned i = (unsigned)rand() % WRITES;
	bool was_flushing = flushing;

	step++;
	switch (rand() % 6) {
	case 0:
	case 1:
		if (!active[i]) {
			enter(&writes[i], (unsigned)rand() % 36, 1 + (unsigned)rand() % 4);
			active[i] = true;
		}
		break;
	case 2:
		if (active[i] && writes[i].granted) {
			leave(&writes[i]);
			active[i] = false;
			for (unsigned r = (unsigned)(writes[i].hold.offset / MIB);
			     r <= (writes[i].hold.offset + writes[i].hold.length - 1) / MIB; r++)
				last_leave[r] = step;
		}
		break;
	case 3:
		if (storing)
			stored(0);
		break;
	case 4:
		if (flushing) {
			int error = rand() % 4 ? 0 : -EIO;

			if (!error)
				good_flush = flush_began;
			flushed(error);
			was_flushing = false;
		}
		break;
	default:
		fake_env_advance(env, (uint64_t)rand() % (2 * AGE));
	}
	if (flushing && !was_flushing)
		flush_began = step;
	check_bits();
}

START_TEST(no_life_breaks_the_rule)
{
	unsigned held = 0;

	srand((unsigned)_i + 1);
	for (unsigned i = 0; i < 4000; i++)
		random_step();
	for (unsigned round = 0; round < 10000; round++) {
		held = 0;
		for (unsigned i = 0; i < WRITES; i++) {
			held += active[i];
			if (active[i] && writes[i].granted) {
				leave(&writes[i]);
				active[i] = false;
			}
		}
		if (storing)
			stored(0);
		if (flushing)
			flushed(0);
		fake_env_advance(env, AGE);
	}
	ck_assert_uint_eq(held, 0);
	ck_assert_uint_eq(counts().dirty, 0);
	ck_assert_uint_gt(flushes, 20);
	ck_assert_uint_gt(counts().waits, 100);
	for (unsigned r = 0; r < 40; r++)
		ck_assert(!on_disk(r));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("regions");
	TCase *tcase = tcase_create("regions");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_write_waits_for_its_bit);
	tcase_add_test(tcase, writes_that_come_meanwhile_share_the_next_store);
	tcase_add_test(tcase, a_bit_goes_when_idle_and_flushed);
	tcase_add_test(tcase, a_write_during_the_flush_keeps_the_bit);
	tcase_add_test(tcase, a_failed_flush_cleans_nothing);
	tcase_add_test(tcase, while_somebody_is_missing_nothing_is_cleaned);
	tcase_add_test(tcase, beyond_the_cap_one_waits_for_another_to_be_clean);
	tcase_add_test(tcase, the_cap_does_not_stop_writes_while_somebody_is_missing);
	tcase_add_test(tcase, copies_that_differ_after_a_write_are_doubtful);
	tcase_add_test(tcase, at_the_end_everything_is_cleaned_that_can_be);
	tcase_add_test(tcase, a_flush_under_way_at_the_end_is_not_the_last_one);
	tcase_add_test(tcase, with_nothing_to_clean_the_end_comes_at_once);
	tcase_add_test(tcase, bits_that_cannot_be_stored_let_nobody_write);
	tcase_add_test(tcase, lazy_bits_are_stored_when_somebody_is_missing);
	tcase_add_test(tcase, what_was_dirty_at_the_end_is_doubtful_at_the_start);
	tcase_add_test(tcase, bits_of_the_last_life_go_when_copies_are_equal);
	tcase_add_test(tcase, a_device_that_joins_gets_the_bits_before_they_count);
	tcase_add_test(tcase, pages_that_nobody_can_read_are_all_ones);
	tcase_add_test(tcase, the_union_of_all_devices_counts);
	tcase_add_loop_test(tcase, no_life_breaks_the_rule, 0, 8);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
