/* SPDX-License-Identifier: MIT */
/* Saved mode parameters: when a save counts, what a restart and a reset bring back. */
#include <check.h>
#include <errno.h>

#include "core/event.h"
#include "core/log.h"
#include "tests/fake/fake_lu_store.h"
#include "tests/fake/scsi_rig.h"

#define SP 0x11 /* with PF */
#define PF 0x10
#define CACHING 0x08
#define CONTROL 0x0a
#define CURRENT 0x00
#define DEFAULTS 0x80
#define SAVED 0xc0
#define GLTSD 0x02
#define D_SENSE 0x04
#define WCE 0x04

static struct scsi_nexus *nexus, *other;
static struct fake_blk *fake;
static struct fake_lu_store store;
static unsigned lines;

static void count_line(enum log_level level, const char *line)
{
	(void)level;
	lines += strstr(line, "state-ignored") != NULL;
}

static void make(bool write_cache)
{
	struct scsi_lu_config config;

	fake = fake_blk_new(rig_env, 8 * MIB, 512, BLK_FUA);
	config = rig_config(&fake->blk);
	config.write_cache = write_cache;
	config.store = &store.store;
	lines = 0;
	rig_map_config(0, &config);
	nexus = rig_nexus(1);
	other = rig_nexus(2);
	rig_clear_ua(nexus, 0);
	rig_clear_ua(other, 0);
}

static void start(bool write_cache)
{
	log_redirect(count_line);
	fake_lu_store_init(&store);
	rig_start(false);
	make(write_cache);
}

static void stop(void)
{
	scsi_nexus_free(nexus);
	scsi_nexus_free(other);
	rig_stop();
	ck_assert_uint_eq(store.closes, 1);
	log_redirect(NULL);
}

/* All that the store has not got is lost. */
static void restart(bool write_cache)
{
	stop();
	store.closes = 0;
	log_redirect(count_line);
	rig_start(false);
	make(write_cache);
}

/* The page as MODE SENSE tells it with CONTROL (page control), its code first. */
static const uint8_t *page(uint8_t control, uint8_t code)
{
	struct rig_task *rig = rig_do(nexus, 0, CDB(0x1a, 0x08, control | code, 0, 255));

	ck_assert_uint_eq(rig_sense(rig), 0);
	return rig->data + 4;
}

/* Byte 2 of the page, where WCE and D_SENSE are. */
static uint8_t bits(uint8_t control, uint8_t code)
{
	return page(control, code)[2];
}

/* Submit a MODE SELECT that gives byte 2 of page CODE the value BITS. */
static void begin(struct rig_task *rig, struct scsi_nexus *from, uint8_t byte1, uint8_t code,
		  uint8_t value)
{
	uint8_t list[64] = { 0 };
	const uint8_t *now = page(CURRENT, code);
	unsigned length = 4 + 2 + now[1];

	memcpy(list + 4, now, length - 4);
	list[4] &= 0x3f;
	list[6] = value;
	rig_init(rig, from, 0, CDB(0x15, byte1, 0, 0, (uint8_t)length));
	rig_enter(rig, 1);
	buf_write(&rig->task.data, 0, list, length);
	scsi_task_submit(&rig->task);
	rig_run();
}

/* The same, done without an error. */
static void select_now(uint8_t byte1, uint8_t code, uint8_t value)
{
	struct rig_task rig;

	begin(&rig, nexus, byte1, code, value);
	while (!rig.done && (fake->held_count || store.held_count)) {
		if (fake->held_count)
			fake_blk_end(fake, 0);
		else
			fake_lu_store_end(&store, 0);
		rig_run();
	}
	ck_assert_uint_eq(rig.done, 1);
	ck_assert_uint_eq(rig_sense(&rig), 0);
	rig_clear_ua(other, 0);
}

START_TEST(ps_is_set_where_something_can_be_saved)
{
	static const uint8_t codes[] = { 0x02, 0x08, 0x0a, 0x1c };
	unsigned i;

	start(_i);
	for (i = 0; i < ARRAY_LEN(codes); i++) {
		bool savable = codes[i] == CONTROL || (codes[i] == CACHING && _i);
		uint8_t initial[32];

		ck_assert_uint_eq(page(CURRENT, codes[i])[0], codes[i] | (savable ? 0x80 : 0));
		memcpy(initial, page(DEFAULTS, codes[i]), sizeof(initial));
		ck_assert_mem_eq(page(SAVED, codes[i]), initial, 2 + initial[1]);
	}
	stop();
}
END_TEST

START_TEST(good_comes_once_it_is_durable_and_nothing_is_in_force_before)
{
	struct rig_task rig;

	start(false);
	begin(&rig, nexus, SP, CONTROL, GLTSD | D_SENSE);
	ck_assert_uint_eq(rig.done, 0);
	ck_assert_uint_eq(store.held_count, 1);
	ck_assert_uint_eq(bits(CURRENT, CONTROL), GLTSD);
	ck_assert_uint_eq(bits(SAVED, CONTROL), GLTSD);
	fake_lu_store_end(&store, 0);
	rig_run();
	ck_assert_uint_eq(rig.done, 1);
	ck_assert_uint_eq(rig_sense(&rig), 0);
	ck_assert_uint_eq(bits(CURRENT, CONTROL), GLTSD | D_SENSE);
	ck_assert_uint_eq(bits(SAVED, CONTROL), GLTSD | D_SENSE);
	ck_assert_uint_eq(bits(DEFAULTS, CONTROL), GLTSD);
	ck_assert_uint_eq(rig_sense(rig_do(nexus, 0, TUR)), 0);
	ck_assert_uint_eq(rig_sense(rig_do(other, 0, TUR)), 0x062a01);
	stop();
}
END_TEST

START_TEST(a_failing_save_changes_nothing)
{
	struct rig_task rig;

	start(false);
	begin(&rig, nexus, SP, CONTROL, GLTSD | D_SENSE);
	fake_lu_store_end(&store, -ENOSPC);
	rig_run();
	ck_assert_uint_eq(rig_sense(&rig), 0x044400);
	ck_assert_uint_eq(bits(CURRENT, CONTROL), GLTSD);
	ck_assert_uint_eq(bits(SAVED, CONTROL), GLTSD);
	ck_assert_uint_eq(rig_sense(rig_do(other, 0, TUR)), 0);
	restart(false);
	ck_assert_uint_eq(bits(CURRENT, CONTROL), GLTSD);
	stop();
}
END_TEST

START_TEST(a_restart_brings_back_what_was_saved_and_no_more)
{
	start(true);
	select_now(SP, CONTROL, GLTSD | D_SENSE);
	select_now(PF, CACHING, 0);
	ck_assert_uint_eq(store.saves, 1);
	restart(true);
	ck_assert_uint_eq(lines, 0);
	ck_assert_uint_eq(bits(CURRENT, CONTROL), GLTSD | D_SENSE);
	ck_assert_uint_eq(bits(CURRENT, CACHING), WCE);
	stop();
}
END_TEST

/* SPC-4: SP saves all the savable pages, those of the list among them. */
START_TEST(saving_one_page_saves_the_others_as_they_are)
{
	struct rig_task *rig;

	start(true);
	select_now(PF, CACHING, 0);
	if (_i) {
		select_now(SP, CONTROL, GLTSD | D_SENSE);
	} else { /* an empty list is no page at all */
		struct rig_task empty;

		rig_init(&empty, nexus, 0, CDB(0x15, SP));
		rig_submit(&empty);
		fake_lu_store_end(&store, 0);
		rig_run();
		ck_assert_uint_eq(empty.done, 1);
		rig = &empty;
		ck_assert_uint_eq(rig_sense(rig), 0);
	}
	restart(true);
	ck_assert_uint_eq(bits(CURRENT, CACHING), 0);
	ck_assert_uint_eq(bits(CURRENT, CONTROL), _i ? GLTSD | D_SENSE : GLTSD);
	stop();
}
END_TEST

START_TEST(a_reset_brings_back_what_was_saved)
{
	struct rig_tmf tmf;

	start(false);
	select_now(SP, CONTROL, GLTSD | D_SENSE);
	select_now(PF, CONTROL, GLTSD);
	ck_assert_uint_eq(bits(CURRENT, CONTROL), GLTSD);
	rig_tmf(&tmf, nexus, SCSI_LUN_RESET, 0, 0);
	rig_clear_ua(nexus, 0);
	ck_assert_uint_eq(bits(CURRENT, CONTROL), GLTSD | D_SENSE);
	stop();
}
END_TEST

/* Both succeed, or the first fails. */
START_TEST(of_two_at_once_the_second_saves_what_the_first_did)
{
	struct rig_task one, two;

	start(true);
	begin(&one, nexus, SP, CONTROL, GLTSD | D_SENSE);
	begin(&two, other, SP, CACHING, WCE);
	ck_assert_uint_eq(store.held_count, 1);
	fake_lu_store_end(&store, _i ? -EIO : 0);
	rig_run();
	ck_assert_uint_eq(one.done, 1);
	ck_assert_uint_eq(two.done, 0);
	ck_assert_uint_eq(store.held_count, 1);
	fake_lu_store_end(&store, 0);
	rig_run();
	ck_assert_uint_eq(rig_sense(&one), _i ? 0x044400 : 0);
	ck_assert_uint_eq(rig_sense(&two), 0);
	restart(true);
	ck_assert_uint_eq(bits(CURRENT, CONTROL), _i ? GLTSD : GLTSD | D_SENSE);
	stop();
}
END_TEST

/* While it is being saved: it has happened. While it waits for another: it has not. */
START_TEST(what_an_aborted_one_did_is_what_is_durable)
{
	struct rig_task one, two;
	struct rig_tmf tmf;
	bool waiting = _i;

	start(true);
	begin(&one, nexus, SP, CONTROL, GLTSD | D_SENSE);
	begin(&two, nexus, SP, CONTROL, GLTSD);
	rig_tmf(&tmf, nexus, SCSI_ABORT_TASK, 0, waiting ? two.task.tag : one.task.tag);
	ck_assert_uint_eq(tmf.done, 0);
	fake_lu_store_end(&store, 0);
	rig_run();
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_uint_eq(one.done, 1);
	ck_assert_uint_eq(bits(SAVED, CONTROL), GLTSD | D_SENSE);
	ck_assert_uint_eq(bits(CURRENT, CONTROL), GLTSD | D_SENSE);
	ck_assert_uint_eq(one.task.outcome, waiting ? SCSI_COMPLETED : SCSI_ABORTED);
	if (waiting) {
		ck_assert_uint_eq(two.task.outcome, SCSI_ABORTED);
		ck_assert_uint_eq(store.held_count, 0);
	} else {
		fake_lu_store_end(&store, 0);
		rig_run();
		ck_assert_uint_eq(bits(SAVED, CONTROL), GLTSD);
	}
	stop();
}
END_TEST

static void unmapped(void *arg)
{
	*(bool *)arg = true;
}

START_TEST(a_unit_that_is_removed_while_it_saves_stays_until_that_has_ended)
{
	struct rig_task rig;
	bool gone = false;

	start(false);
	begin(&rig, nexus, SP, CONTROL, GLTSD | D_SENSE);
	scsi_device_unmap(rig_device, 0, unmapped, &gone);
	rig_run();
	ck_assert(!gone);
	ck_assert_uint_eq(store.closes, 0);
	fake_lu_store_end(&store, 0);
	rig_run();
	ck_assert(gone);
	ck_assert_uint_eq(rig_sense(&rig), 0);
	ck_assert_uint_eq(store.closes, 1);
	stop();
}
END_TEST

START_TEST(a_blob_cut_anywhere_is_ignored_and_said_so)
{
	uint32_t whole, length;

	start(true);
	select_now(SP, CONTROL, GLTSD | D_SENSE);
	whole = store.lengths[LU_BLOB_MODE];
	for (length = 0; length < whole; length++) {
		/* Between the pages it is a blob that says less. */
		bool pages = length == 0 || length == 0x14;

		store.lengths[LU_BLOB_MODE] = length;
		restart(true);
		ck_assert_uint_eq(bits(CURRENT, CONTROL), GLTSD);
		ck_assert_uint_eq(bits(CURRENT, CACHING), WCE);
		ck_assert_uint_eq(lines, pages ? 0 : 1);
	}
	stop();
}
END_TEST

START_TEST(whatever_bit_of_a_blob_is_wrong_no_other_bit_of_a_page_is)
{
	uint8_t was[FAKE_BLOB_MAX], initial[2][32];
	uint32_t whole, bit;

	start(true);
	memcpy(initial[0], page(DEFAULTS, CACHING), 32);
	memcpy(initial[1], page(DEFAULTS, CONTROL), 32);
	select_now(SP, CONTROL, GLTSD);
	whole = store.lengths[LU_BLOB_MODE];
	ck_assert_uint_eq(whole, 0x14 + 0x0c);
	memcpy(was, store.blobs[LU_BLOB_MODE], whole);
	for (bit = 0; bit < whole * 8; bit++) {
		uint8_t flip = (uint8_t)(1u << bit % 8), now[2][32];
		uint32_t byte = bit / 8;
		bool header = byte < 2 || byte == 0x14 || byte == 0x15;
		bool taken = (byte == 2 && flip == WCE) || (byte == 0x16 && flip == D_SENSE) ||
			     (byte == 0x18 && flip == 0x08) || (byte == 0x19 && flip == 0x40);

		memcpy(store.blobs[LU_BLOB_MODE], was, whole);
		store.blobs[LU_BLOB_MODE][byte] ^= flip;
		restart(true);
		memcpy(now[0], page(CURRENT, CACHING), 32);
		memcpy(now[1], page(CURRENT, CONTROL), 32);
		if (taken)
			now[byte >= 0x14][byte % 0x14] ^= flip;
		ck_assert_mem_eq(now[0], initial[0], 0x14);
		ck_assert_mem_eq(now[1], initial[1], 0x0c);
		ck_assert_uint_eq(lines, header ? 1 : 0);
	}
	stop();
}
END_TEST

START_TEST(a_saved_cache_is_not_on_where_none_is_allowed_any_more)
{
	start(true);
	select_now(SP, CACHING, WCE);
	restart(false);
	ck_assert_uint_eq(bits(CURRENT, CACHING), 0);
	ck_assert_uint_eq(bits(SAVED, CACHING), 0);
	stop();
}
END_TEST

/* The flush succeeds, fails, or the cache is wanted on again before it ends. */
START_TEST(a_reset_turns_the_cache_off_only_when_all_before_is_durable)
{
	struct rig_task write;
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_tmf tmf;

	start(true);
	select_now(SP, CACHING, 0);
	select_now(PF, CACHING, WCE);
	memset(fake->submits, 0, sizeof(fake->submits));
	rig_init(&write, nexus, 0, rig_rw(cdb, 0x2a, 0, 1));
	rig_submit(&write);
	ck_assert_uint_eq(fake->last_flags & IO_FUA, 0);
	rig_tmf(&tmf, nexus, SCSI_LUN_RESET, 0, 0);
	ck_assert_uint_eq(fake->submits[IO_FLUSH], 0);
	fake_blk_end(fake, 0);
	rig_run();
	rig_clear_ua(nexus, 0);
	rig_clear_ua(other, 0);
	ck_assert_uint_eq(fake->submits[IO_FLUSH], 1);
	ck_assert_uint_eq(bits(CURRENT, CACHING), WCE);
	if (_i == 2)
		select_now(PF, CACHING, WCE);
	if (fake->held_count)
		fake_blk_end(fake, _i == 1 ? -EIO : 0);
	rig_run();
	ck_assert_uint_eq(bits(CURRENT, CACHING), _i ? WCE : 0);
	stop();
}
END_TEST

START_TEST(a_reset_that_flushes_outlives_the_unit_s_removal)
{
	struct rig_tmf tmf;
	bool gone = false;

	start(true);
	select_now(SP, CACHING, 0);
	select_now(PF, CACHING, WCE);
	rig_tmf(&tmf, nexus, SCSI_LUN_RESET, 0, 0);
	ck_assert_uint_eq(tmf.done, 1);
	ck_assert_uint_eq(fake->held_count, 1);
	scsi_device_unmap(rig_device, 0, unmapped, &gone);
	rig_run();
	ck_assert(gone);
	ck_assert_uint_eq(store.closes, 0);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(store.closes, 1);
	stop();
}
END_TEST

START_TEST(none_is_answered_out_of_the_cache_while_it_is_saved_off)
{
	struct rig_task save, write;
	uint8_t cdb[SCSI_CDB_MAX];

	start(true);
	select_now(PF, CACHING, 0);
	memset(fake->submits, 0, sizeof(fake->submits));
	begin(&save, nexus, SP, CACHING, 0);
	ck_assert_uint_eq(fake->submits[IO_FLUSH], 1);
	ck_assert_uint_eq(store.held_count, 0);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(store.held_count, 1);
	begin(&write, other, PF, CACHING, WCE); /* somebody turns it on meanwhile */
	ck_assert_uint_eq(write.done, 1);
	rig_clear_ua(nexus, 0);
	ck_assert_uint_eq(bits(CURRENT, CACHING), WCE);
	rig_init(&write, nexus, 0, rig_rw(cdb, 0x2a, 0, 1));
	rig_submit(&write);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 0);
	fake_lu_store_end(&store, 0);
	rig_run();
	ck_assert_uint_eq(save.done, 1);
	ck_assert_uint_eq(fake->submits[IO_WRITE], 1);
	ck_assert_uint_eq(fake->last_flags & IO_FUA, IO_FUA);
	ck_assert_uint_eq(bits(CURRENT, CACHING), 0);
	fake_blk_end(fake, 0);
	rig_run();
	ck_assert_uint_eq(rig_sense(&write), 0);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mode_save");
	TCase *tc = tcase_create("mode_save");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, ps_is_set_where_something_can_be_saved, 0, 2);
	tcase_add_test(tc, good_comes_once_it_is_durable_and_nothing_is_in_force_before);
	tcase_add_test(tc, a_failing_save_changes_nothing);
	tcase_add_test(tc, a_restart_brings_back_what_was_saved_and_no_more);
	tcase_add_loop_test(tc, saving_one_page_saves_the_others_as_they_are, 0, 2);
	tcase_add_test(tc, a_reset_brings_back_what_was_saved);
	tcase_add_loop_test(tc, of_two_at_once_the_second_saves_what_the_first_did, 0, 2);
	tcase_add_loop_test(tc, what_an_aborted_one_did_is_what_is_durable, 0, 2);
	tcase_add_test(tc, a_unit_that_is_removed_while_it_saves_stays_until_that_has_ended);
	tcase_add_test(tc, a_blob_cut_anywhere_is_ignored_and_said_so);
	tcase_add_test(tc, whatever_bit_of_a_blob_is_wrong_no_other_bit_of_a_page_is);
	tcase_add_test(tc, a_saved_cache_is_not_on_where_none_is_allowed_any_more);
	tcase_add_loop_test(tc, a_reset_turns_the_cache_off_only_when_all_before_is_durable, 0, 3);
	tcase_add_test(tc, a_reset_that_flushes_outlives_the_unit_s_removal);
	tcase_add_test(tc, none_is_answered_out_of_the_cache_while_it_is_saved_off);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
