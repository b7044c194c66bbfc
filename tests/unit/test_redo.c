/* SPDX-License-Identifier: MIT */
/* The redo log: heads, which records count, group commit, and the ring. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "raid/redo.h"
#include "raid/redo_chain.h"
#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_disk.h"
#include "tests/fake/fake_env.h"

#define AREA_AT 65536u
#define AREA ((uint64_t)MIB)
#define BLOCK 512u

/* ---- heads */

static struct redo_head a_head(void)
{
	return (struct redo_head){ .tag = 1,
				   .incarnation = 2,
				   .sequence = 9,
				   .batch = 8,
				   .attempt = 1,
				   .tail = 4,
				   .stripe = 77,
				   .from = 512,
				   .to = 2048,
				   .span_count = 2,
				   .spans = { { 0, 512, 1024 }, { 3, 1024, 2048 } } };
}

static uint8_t record[8 * BLOCK];

static void encode(const struct redo_head *head)
{
	struct iovec iov = { record + BLOCK, redo_payload_bytes(head) };

	for (unsigned i = 0; i < sizeof(record); i++)
		record[i] = (uint8_t)(i * 7);
	redo_encode(head, record, BLOCK, &iov, iov.iov_len > 0);
}

static bool decode(struct redo_head *head)
{
	return redo_decode(record, sizeof(record), BLOCK, 1, 2, head);
}

START_TEST(what_is_written_is_read)
{
	struct redo_head head = a_head(), back;

	ck_assert_uint_eq(redo_payload_bytes(&head), 1536 + 512 + 1024);
	encode(&head);
	ck_assert(decode(&back));
	ck_assert_mem_eq(&back, &head, sizeof(head));
	head.intent = true;
	for (unsigned i = 0; i < REDO_CRCS; i++)
		head.crcs[i] = 0xc0ffee00 + i;
	ck_assert_uint_eq(redo_payload_bytes(&head), 0);
	encode(&head);
	ck_assert_mem_eq(record + 268 + 15 * 4, "\x0f\xee\xff\xc0", 4);
	ck_assert(decode(&back));
	ck_assert_mem_eq(&back, &head, sizeof(head));
}
END_TEST

START_TEST(its_bytes_are_those_of_the_manual)
{
	struct redo_head head = a_head();

	encode(&head);
	ck_assert_mem_eq(record, "YOKEREDO", 8);
	ck_assert_mem_eq(record + 12, "\1\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\11\0", 22);
	ck_assert_mem_eq(record + 40, "\10\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\115\0",
			 26);
	ck_assert_mem_eq(record + 72, "\0\2\0\0\0\10\0\0\0\0\0\0\2\0\0\0", 16);
	ck_assert_mem_eq(record + 88 + 12, "\3\0\0\0\0\4\0\0\0\10\0\0", 12);
}
END_TEST

START_TEST(every_flipped_bit_and_every_torn_sector_is_noticed)
{
	struct redo_head head = a_head(), back;
	uint64_t length = BLOCK + redo_payload_bytes(&head);

	encode(&head);
	for (unsigned bit = 0; bit < length * 8; bit += 5) {
		record[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ck_assert_msg(!decode(&back), "bit %u", bit);
		record[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (unsigned at = 0; at < length; at += 512) {
		encode(&head);
		memset(record + at, 0xee, 512);
		ck_assert(!decode(&back));
	}
}
END_TEST

START_TEST(what_makes_no_sense_is_no_record)
{
	struct redo_head head, back;

	for (unsigned i = 0; i < 9; i++) {
		head = a_head();
		head.incarnation += i == 0;
		head.tag += i == 1;
		head.to = i == 2 ? 100000 * 512 : head.to;
		head.spans[1].column = i == 3 ? 0 : head.spans[1].column;
		head.spans[1].column = i == 4 ? 15 : head.spans[1].column;
		head.spans[0].from = i == 5 ? 0 : head.spans[0].from;
		head.spans[1].to = i == 6 ? 2560 : head.spans[1].to;
		head.spans[0].to = i == 7 ? 1023 : head.spans[0].to;
		head.batch = i == 8 ? 10 : head.batch;
		memset(record, 0, sizeof(record));
		redo_encode(&head, record, BLOCK,
			    &(struct iovec){ record + BLOCK, sizeof(record) - BLOCK }, 1);
		ck_assert_msg(!decode(&back), "%u", i);
	}
}
END_TEST

/* ---- the chain */

/* Text: sequence:batch:attempt:tail ...; the sequences that are replayed, as text. */
static const struct {
	const char *found, *replayed;
} chains[] = {
	{ "", "" },
	{ "1:1:0:1", "1" },
	/* Any order; the newest's tail. */
	{ "3:3:0:2 1:1:0:1 2:1:0:1", "2 3" },
	/* A gap: what was before is overwritten. */
	{ "3:3:0:1 5:5:0:3 6:6:0:3", "5 6" },
	/* The newest write is torn: in its first, a middle, its last record. */
	{ "1:1:0:1 2:2:0:1 4:3:0:1 5:3:0:1", "1 2" },
	{ "1:1:0:1 2:2:0:1 3:3:0:1 5:3:0:1", "1 2 3" },
	{ "1:1:0:1 2:2:0:1 3:3:0:1 4:3:0:1", "1 2 3 4" },
	/* What a write that failed left, behind one that did not. */
	{ "1:1:0:1 2:2:1:1 3:2:0:1", "1 2" },
	{ "1:1:0:1 2:2:1:1 3:3:0:1", "1 2" },
	{ "1:1:0:1 2:2:0:1 2:2:1:1 3:3:1:1", "1 2 3" },
	/* Nothing but what is torn. */
	{ "5:4:0:1 6:4:0:1", "" },
};

START_TEST(the_newest_whole_run_is_replayed_from_its_tail)
{
	struct redo_found found[16];
	unsigned count = 0;
	char text[64] = "";
	int used, at = 0;

	while (sscanf(chains[_i].found + at, "%lu:%lu:%lu:%lu%n", &found[count].sequence,
		      &found[count].batch, &found[count].attempt, &found[count].tail, &used) == 4) {
		count++;
		at += used;
	}
	count = redo_chain(found, count);
	for (unsigned i = 0; i < count; i++)
		sprintf(text + strlen(text), "%s%lu", i ? " " : "", found[i].sequence);
	ck_assert_str_eq(text, chains[_i].replayed);
}
END_TEST

/* ---- a log */

#define ENTRIES 512u

struct item {
	struct redo_entry entry;
	unsigned done;
	int error;
};

static struct env *env;
static struct fake_disk *disk;
static struct redo *redo;
static struct item items[ENTRIES];
static unsigned flushes;
static uint64_t flush_begun;
static uint8_t payload[MIB] __attribute__((aligned(4096)));

static void ask_flush(void *arg)
{
	(void)arg;
	flushes++;
}

static uint64_t next_flush(void *arg)
{
	(void)arg;
	return flush_begun + 1;
}

static unsigned slice(struct redo_entry *entry, int column, uint32_t from, uint32_t to,
		      struct iovec *iov, unsigned room)
{
	(void)entry;
	(void)column;
	if (!room)
		return 0;
	iov[0] = (struct iovec){ payload + from, to - from };
	return 1;
}

static void done(struct redo_entry *entry, int error)
{
	struct item *item = container_of(entry, struct item, entry);

	item->done++;
	item->error = error;
}

static void setup(void)
{
	struct redo_conf conf = { .area = { AREA_AT, AREA },
				  .block_bytes = BLOCK,
				  .tag = 1,
				  .incarnation = 2,
				  .columns = 3,
				  .flush = ask_flush,
				  .next_flush = next_flush };

	env = fake_env_new(1);
	disk = fake_disk_new(env, 4 * MIB, BLOCK);
	conf.env = env;
	conf.blk = &disk->blk;
	redo = redo_new(&conf);
	ck_assert_ptr_nonnull(redo);
	flushes = 0;
	flush_begun = 0;
	fake_fill(payload, sizeof(payload), 4);
	memset(items, 0, sizeof(items));
}

static void teardown(void)
{
	redo_free(redo);
	blk_unref(&disk->blk);
	fake_env_run(env);
	fake_env_free(env);
}

/* One column's LENGTH bytes: a record of a block and twice that. */
static void write_item(unsigned i, uint32_t length)
{
	items[i].entry = (struct redo_entry){ .stripe = i,
					      .to = length,
					      .span_count = 1,
					      .spans = { { 0, 0, length } },
					      .slice = slice,
					      .done = done };
	items[i].done = 0;
	redo_write(redo, &items[i].entry);
}

static struct redo_counts counts(void)
{
	struct redo_counts now;

	redo_count(redo, &now);
	return now;
}

/* What replay would find. */
static unsigned find(struct redo_found *found, uint64_t *stripes)
{
	static uint8_t image[AREA];
	struct redo_head head;
	unsigned count = 0;

	fake_disk_read(disk, AREA_AT, image, AREA);
	for (uint64_t at = 0; at < AREA; at += BLOCK)
		if (redo_decode(image + at, AREA - at, BLOCK, 1, 2, &head))
			found[count++] = (struct redo_found){ .sequence = head.sequence,
							      .batch = head.batch,
							      .attempt = head.attempt,
							      .tail = head.tail,
							      .at = at };
	count = redo_chain(found, count);
	for (unsigned i = 0; i < count; i++) {
		ck_assert(redo_decode(image + found[i].at, AREA - found[i].at, BLOCK, 1, 2, &head));
		stripes[i] = head.stripe;
	}
	return count;
}

static struct redo_found found[4096];
static uint64_t stripes[4096];

START_TEST(all_of_a_turn_are_one_write)
{
	setup();
	for (unsigned i = 0; i < 20; i++)
		write_item(i, 4096);
	fake_env_run(env);
	ck_assert_uint_eq(counts().writes, 1);
	ck_assert_uint_eq(counts().records, 20);
	ck_assert_uint_eq(counts().crc_bytes, 20 * 8192);
	ck_assert_uint_eq(disk->fua_writes, 1);
	ck_assert_uint_eq(find(found, stripes), 20);
	for (unsigned i = 0; i < 20; i++) {
		ck_assert_uint_eq(items[i].done, 1);
		ck_assert_uint_eq(stripes[i], i);
		redo_over(redo, &items[i].entry, true);
	}
	teardown();
}
END_TEST

START_TEST(who_comes_while_one_is_on_its_way_goes_with_the_next)
{
	setup();
	disk->hold_purposes = 1u << IO_LOG;
	write_item(0, 4096);
	fake_env_run(env);
	for (unsigned i = 1; i < 9; i++)
		write_item(i, 4096);
	fake_env_run(env);
	ck_assert_uint_eq(items[0].done, 0);
	fake_disk_release(disk, 0);
	fake_env_run(env);
	ck_assert_uint_eq(counts().writes, 2);
	for (unsigned i = 0; i < 9; i++) {
		ck_assert_uint_eq(items[i].done, 1);
		redo_over(redo, &items[i].entry, true);
	}
	teardown();
}
END_TEST

START_TEST(room_is_given_back_only_by_a_flush_that_began_later)
{
	unsigned i = 0, before;

	setup();
	for (; i < ENTRIES; i++) {
		write_item(i, 8192);
		fake_env_run(env);
		if (!items[i].done)
			break;
		redo_over(redo, &items[i].entry, false);
	}
	/* Full: asked for a flush; one that had begun before says nothing. */
	ck_assert_uint_gt(i, 40);
	ck_assert_uint_lt(i, ENTRIES);
	ck_assert_uint_gt(flushes, 0);
	ck_assert(redo_has(redo, 0, false));
	redo_flushed(redo, flush_begun);
	fake_env_run(env);
	ck_assert_uint_eq(items[i].done, 0);
	redo_flushed(redo, ++flush_begun);
	fake_env_run(env);
	ck_assert_uint_eq(items[i].done, 1);
	ck_assert(!redo_has(redo, 0, false));
	ck_assert(redo_has(redo, i, false));
	/* What is not needed any more is behind the tail of what is. */
	before = find(found, stripes);
	ck_assert_uint_eq(before, 1);
	ck_assert_uint_eq(stripes[0], i);
	redo_over(redo, &items[i].entry, true);
	teardown();
}
END_TEST

START_TEST(it_goes_round_and_the_newest_are_always_found)
{
	setup();
	srand((unsigned)_i);
	for (unsigned round = 0; round < 3000; round++) {
		unsigned i = round % ENTRIES;
		/* Lengths that now and then end where the ring does. */
		uint32_t length = _i ? BLOCK * (1 + (uint32_t)rand() % 40) : 31 * BLOCK;

		write_item(i, length);
		fake_env_run(env);
		ck_assert_uint_eq(items[i].done, 1);
		if (round % 100 == 99) {
			unsigned count = find(found, stripes);

			ck_assert_uint_ge(count, 1);
			ck_assert_uint_eq(stripes[count - 1], i);
		}
		redo_over(redo, &items[i].entry, true);
	}
	/* Nothing beyond it. */
	for (uint64_t at = AREA_AT + AREA; at < AREA_AT + AREA + 65536; at += 4096)
		ck_assert_ptr_null(disk->pages[at / 4096]);
	teardown();
}
END_TEST

START_TEST(the_ring_may_end_exactly_with_a_record)
{
	/* 1 MiB is 64 records of 16 KiB. */
	const uint32_t length = (16384 - BLOCK) / 2 / BLOCK * BLOCK;

	setup();
	for (unsigned round = 0; round < 200; round++) {
		items[0].entry = (struct redo_entry){ .to = length + BLOCK,
						      .span_count = 1,
						      .spans = { { 0, 0, length } },
						      .slice = slice,
						      .done = done };
		items[0].done = 0;
		redo_write(redo, &items[0].entry);
		fake_env_run(env);
		ck_assert_uint_eq(items[0].done, 1);
		ck_assert_uint_eq(counts().bytes, (round + 1) * 16384ull);
		redo_over(redo, &items[0].entry, true);
	}
	ck_assert_ptr_null(disk->pages[(AREA_AT + AREA) / 4096]);
	teardown();
}
END_TEST

START_TEST(a_write_that_failed_leaves_nothing_that_counts)
{
	setup();
	write_item(0, 4096);
	fake_env_run(env);
	disk->fail_writes = -EIO;
	write_item(1, 4096);
	write_item(2, 4096);
	fake_env_run(env);
	ck_assert_int_eq(items[1].error, -EIO);
	ck_assert_int_eq(items[2].error, -EIO);
	disk->fail_writes = 0;
	write_item(3, 4096);
	fake_env_run(env);
	ck_assert_int_eq(items[3].error, 0);
	ck_assert_uint_eq(find(found, stripes), 2);
	ck_assert_uint_eq(stripes[0], 0);
	ck_assert_uint_eq(stripes[1], 3);
	redo_over(redo, &items[0].entry, true);
	redo_over(redo, &items[3].entry, true);
	teardown();
}
END_TEST

START_TEST(a_long_entry_becomes_records_that_are_each_whole)
{
	setup();
	write_item(0, 256 * KIB);
	fake_env_run(env);
	ck_assert_uint_eq(items[0].done, 1);
	ck_assert_uint_ge(counts().records, 4);
	ck_assert_uint_eq(counts().crc_bytes, 512 * KIB);
	ck_assert_uint_eq(find(found, stripes), counts().records);
	redo_over(redo, &items[0].entry, true);
	ck_assert(!redo_has(redo, 0, false));
	teardown();
}
END_TEST

START_TEST(who_is_expected_is_waited_for_and_not_for_long)
{
	setup();
	redo_expect(redo);
	redo_expect(redo);
	write_item(0, 4096);
	fake_env_run(env);
	ck_assert_uint_eq(items[0].done, 0);
	redo_expected(redo);
	redo_expected(redo);
	write_item(1, 4096);
	fake_env_run(env);
	ck_assert_uint_eq(items[0].done, 1);
	ck_assert_uint_eq(counts().writes, 1);
	redo_expect(redo);
	write_item(2, 4096);
	fake_env_advance(env, NS_PER_MS);
	ck_assert_uint_eq(items[2].done, 1);
	redo_expected(redo);
	for (unsigned i = 0; i < 3; i++)
		redo_over(redo, &items[i].entry, true);
	teardown();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("redo");
	TCase *pure = tcase_create("pure"), *log = tcase_create("log");
	SRunner *runner;
	int failed;

	tcase_add_test(pure, what_is_written_is_read);
	tcase_add_test(pure, its_bytes_are_those_of_the_manual);
	tcase_add_test(pure, every_flipped_bit_and_every_torn_sector_is_noticed);
	tcase_add_test(pure, what_makes_no_sense_is_no_record);
	tcase_add_loop_test(pure, the_newest_whole_run_is_replayed_from_its_tail, 0,
			    (int)ARRAY_LEN(chains));
	suite_add_tcase(suite, pure);
	tcase_set_timeout(log, 60);
	tcase_add_test(log, all_of_a_turn_are_one_write);
	tcase_add_test(log, who_comes_while_one_is_on_its_way_goes_with_the_next);
	tcase_add_test(log, room_is_given_back_only_by_a_flush_that_began_later);
	tcase_add_loop_test(log, it_goes_round_and_the_newest_are_always_found, 0, 4);
	tcase_add_test(log, the_ring_may_end_exactly_with_a_record);
	tcase_add_test(log, a_write_that_failed_leaves_nothing_that_counts);
	tcase_add_test(log, a_long_entry_becomes_records_that_are_each_whole);
	tcase_add_test(log, who_is_expected_is_waited_for_and_not_for_long);
	suite_add_tcase(suite, log);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
