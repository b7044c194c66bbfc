/* SPDX-License-Identifier: MIT */
/* What RAID 5 costs, by the counters of its members and its own. */
#include "tests/fake/raid5_rig.h"

#define DEPTH_MAX 64u
#define LATENCY_NS (100 * NS_PER_US)

static struct rig rig;
static struct raid5_counts counts;

static void start(unsigned disks, uint32_t chunk, bool intent)
{
	struct rig_shape shape = { .disks = disks,
				   .chunk = chunk,
				   .block = 512,
				   .disk_bytes = 24 * MIB + 4ull * disks * chunk,
				   .intent = intent };

	rig_create(&rig, &shape);
	srand(3);
}

static void reset(void)
{
	for (unsigned i = 0; i < rig.count; i++)
		memset(&rig.disks[i]->blk.counts, 0, sizeof(rig.disks[i]->blk.counts));
	raid5_count(rig.blk, &counts);
}

static void latency(uint64_t ns)
{
	for (unsigned i = 0; i < rig.count; i++)
		rig.disks[i]->latency_ns = ns;
}

static uint64_t by_purpose(enum io_purpose purpose)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < rig.count; i++)
		sum += rig.disks[i]->blk.counts.by_purpose[purpose];
	return sum;
}

/* What grew since reset(). */
static struct raid5_counts grown(void)
{
	struct raid5_counts now;

	raid5_count(rig.blk, &now);
	now.rounds -= counts.rounds;
	now.full_rounds -= counts.full_rounds;
	now.bytes -= counts.bytes;
	now.full_bytes -= counts.full_bytes;
	now.xored -= counts.xored;
	now.log.writes -= counts.log.writes;
	now.log.records -= counts.log.records;
	now.log.bytes -= counts.log.bytes;
	now.log.crc_bytes -= counts.log.crc_bytes;
	return now;
}

/* ---- a host with so many writes under way at any time */

struct host {
	struct io ios[DEPTH_MAX];
	struct iovec iov[DEPTH_MAX];
	uint64_t length, left;
	uint64_t next; /* sequential; UINT64_MAX: random */
	unsigned flags, done;
	uint8_t *memory;
};
static struct host host;

static void host_done(struct io *io, void *arg);

static void host_next(struct io *io)
{
	unsigned i = (unsigned)(io - host.ios);
	uint64_t at = host.next;

	if (!host.left)
		return;
	host.left--;
	if (at == UINT64_MAX)
		at = (uint64_t)rand() % (rig.blk->size_bytes / host.length) * host.length;
	else
		host.next += host.length;
	host.iov[i] = (struct iovec){ host.memory + i * host.length, host.length };
	io_init(io, IO_WRITE, at, host.length, &host.iov[i], 1);
	io->flags = host.flags;
	blk_submit(rig.blk, io, host_done, NULL);
}

static void host_done(struct io *io, void *arg)
{
	(void)arg;
	ck_assert_int_eq(io->error, 0);
	host.done++;
	host_next(io);
}

/* COUNT writes of LENGTH, DEPTH at a time; how long they took. */
static uint64_t run(unsigned depth, unsigned count, uint64_t length, bool sequential)
{
	uint64_t before_ns = env_now_ns(rig.env);

	host = (struct host){ .length = length,
			      .left = count,
			      .next = sequential ? 0 : UINT64_MAX };
	host.memory = aligned_alloc(4096, depth * length);
	ck_assert_ptr_nonnull(host.memory);
	memset(host.memory, 7, depth * length);
	for (unsigned i = 0; i < depth; i++)
		host_next(&host.ios[i]);
	for (unsigned i = 0; i < 1000000 && host.done < count; i++)
		fake_env_advance(rig.env, 100 * NS_PER_US);
	ck_assert_uint_eq(host.done, count);
	free(host.memory);
	return env_now_ns(rig.env) - before_ns;
}

START_TEST(a_small_write_costs_two_reads_two_writes_and_a_share_in_a_log_write)
{
	struct raid5_counts now;
	uint64_t reads, writes;

	start((unsigned)_i, 65536, false);
	latency(LATENCY_NS);
	reset();
	run(64, 4000, 4096, false);
	now = grown();
	reads = rig_ops(&rig, IO_READ);
	writes = rig_ops(&rig, IO_WRITE) - by_purpose(IO_MAP) - by_purpose(IO_LABEL);
	ck_assert_uint_le(reads, 2 * 4000);
	ck_assert_uint_le(writes - by_purpose(IO_LOG), 2 * 4000);
	ck_assert_uint_le(by_purpose(IO_LOG) * 4, 4000);
	/* One byte of data and one of parity a byte written; less where two share parity. */
	ck_assert_uint_le(now.log.crc_bytes, 2 * now.bytes);
	ck_assert_uint_ge(now.log.crc_bytes * 10, 19 * now.bytes);
	ck_assert_uint_eq(now.bytes, 4000 * 4096);
	latency(0);
	rig_free(&rig);
}
END_TEST

START_TEST(aligned_full_stripes_read_nothing_and_xor_and_sum_each_byte_once)
{
	struct raid5_counts now;
	uint64_t stripe;

	start(5, 16384, false);
	stripe = rig.blk->optimal_io;
	reset();
	for (unsigned i = 0; i < 50; i++)
		ck_assert_int_eq(rig_write(&rig, i * stripe, stripe, i), 0);
	now = grown();
	ck_assert_uint_eq(rig_ops(&rig, IO_READ), 0);
	ck_assert_uint_eq(now.full_rounds, 50);
	ck_assert_uint_eq(now.xored, 50 * stripe);
	ck_assert_uint_eq(now.log.crc_bytes, 50 * (stripe + 16384));
	ck_assert_uint_eq(rig_ops(&rig, IO_WRITE) - by_purpose(IO_LOG), 50 * 5);
	rig_free(&rig);
}
END_TEST

START_TEST(a_small_write_xors_old_and_new_once)
{
	start(5, 16384, false);
	reset();
	ck_assert_int_eq(rig_write(&rig, 4096, 4096, 1), 0);
	/* Old data, new data, old parity. */
	ck_assert_uint_eq(grown().xored, 3 * 4096);
	ck_assert_uint_eq(rig_ops(&rig, IO_READ), 2);
	rig_free(&rig);
}
END_TEST

static const struct {
	unsigned disks;
	uint32_t chunk;
	uint64_t length;
} streams[] = {
	{ 4, 65536, 65536 }, { 3, 65536, 65536 },  { 5, 16384, 65536 }, { 5, 65536, 65536 },
	{ 4, 65536, 16384 }, { 7, 131072, 65536 }, { 4, 4096, 65536 },
};

START_TEST(a_sequential_stream_lands_as_full_stripes)
{
	struct raid5_counts now;

	start(streams[_i].disks, streams[_i].chunk, false);
	latency(LATENCY_NS);
	reset();
	run(16, (unsigned)(16 * MIB / streams[_i].length), streams[_i].length, true);
	now = grown();
	ck_assert_uint_eq(now.bytes, 16 * MIB);
	ck_assert_msg(now.full_bytes * 100 >= now.bytes * 95, "%llu of %llu",
		      (unsigned long long)now.full_bytes, (unsigned long long)now.bytes);
	latency(0);
	rig_free(&rig);
}
END_TEST

START_TEST(a_stream_that_waits_for_each_write_is_not_held_up)
{
	uint64_t sequential, random;

	start(4, 65536, false);
	latency(LATENCY_NS);
	random = run(1, 200, 65536, false);
	sequential = run(1, 200, 65536, true);
	ck_assert_uint_le(sequential, random + 20 * NS_PER_MS);
	latency(0);
	rig_free(&rig);
}
END_TEST

START_TEST(a_read_of_a_chunk_is_one_read_of_its_member)
{
	static uint8_t buf[4096] __attribute__((aligned(4096)));

	start(4, 65536, false);
	reset();
	for (unsigned i = 0; i < 30; i++)
		ck_assert_int_eq(rig_rw(&rig, IO_READ, i * 65536, buf, sizeof(buf)), 0);
	ck_assert_uint_eq(rig_ops(&rig, IO_READ), 30);
	rig_free(&rig);
}
END_TEST

START_TEST(under_intent_a_full_stripe_logs_one_block)
{
	struct raid5_counts now;

	start(4, 65536, true);
	reset();
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(rig_write(&rig, i * 196608, 196608, i), 0);
	now = grown();
	ck_assert_uint_eq(now.log.bytes, 10 * 512);
	ck_assert_uint_eq(now.log.crc_bytes, 10 * 4 * 65536); /* each byte once */
	rig_free(&rig);
}
END_TEST

/* More is written between two flushes than the logs hold: room is made, all the same. */
START_TEST(logs_go_round)
{
	struct raid5_counts now;

	start(3, 4096, false);
	latency(LATENCY_NS);
	reset();
	run(64, 4000, 4096, false);
	now = grown();
	ck_assert_uint_gt(now.log.bytes, 8 * MIB);
	ck_assert_uint_gt(rig_ops(&rig, IO_FLUSH), 0);
	latency(0);
	ck_assert(rig_parity_right(&rig));
	rig_free(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("raid5_cost");
	TCase *tcase = tcase_create("cost");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(
		tcase, a_small_write_costs_two_reads_two_writes_and_a_share_in_a_log_write, 3, 7);
	tcase_add_test(tcase, aligned_full_stripes_read_nothing_and_xor_and_sum_each_byte_once);
	tcase_add_test(tcase, a_small_write_xors_old_and_new_once);
	tcase_add_loop_test(tcase, a_sequential_stream_lands_as_full_stripes, 0,
			    (int)ARRAY_LEN(streams));
	tcase_add_test(tcase, a_stream_that_waits_for_each_write_is_not_held_up);
	tcase_add_test(tcase, a_read_of_a_chunk_is_one_read_of_its_member);
	tcase_add_test(tcase, under_intent_a_full_stripe_logs_one_block);
	tcase_add_test(tcase, logs_go_round);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
