/* SPDX-License-Identifier: MIT */
/* The fault filter over a ram device: which ios a rule meets, and what happens to them. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backing_int.h"
#include "backstore/fault.h"
#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_env.h"

#define SIZE (1 * MIB)
#define OP(op) (1u << (op))

static struct env *env;
static struct blk *blk, *lower;
static struct fault *fault;
static uint8_t buf[64 * KIB], again[64 * KIB];

static void make(uint32_t block_size)
{
	struct backing_spec spec = {
		.name = "scratch",
		.driver = BACKING_RAM,
		.size_bytes = SIZE,
		.block_size = block_size,
	};

	lower = ram_new(env, &spec);
	blk = fault_new(lower);
	ck_assert_ptr_nonnull(blk);
	fault = fault_of(blk);
}

static void setup(void)
{
	log_redirect(NULL);
	env = fake_env_new(1);
	make(512);
}

static void teardown(void)
{
	blk_unref(blk);
	fake_env_run(env);
	fake_env_free(env);
}

static uint64_t add(struct fault_rule rule)
{
	uint64_t id = fault_add(fault, &rule);

	ck_assert_uint_gt(id, 0);
	return id;
}

static int rw(enum io_op op, uint64_t offset, uint64_t length)
{
	return fake_blk_rw(blk, op, offset, buf, length, 1, 0);
}

/* Submitted, not run: for what is held. */
struct pending {
	struct io io;
	struct iovec iov;
	struct fake_wait wait;
};

static void submit(struct pending *p, enum io_op op, uint64_t offset)
{
	memset(p, 0, sizeof(*p));
	p->iov = (struct iovec){ buf, 512 };
	io_init(&p->io, op, offset, 512, &p->iov, 1);
	blk_submit(blk, &p->io, fake_wait_done, &p->wait);
	fake_env_run(env);
}

START_TEST(without_rules_it_is_the_device_below)
{
	fake_fill(buf, 8192, 1);
	ck_assert_int_eq(rw(IO_WRITE, 4096, 8192), 0);
	ck_assert_int_eq(fake_blk_rw(lower, IO_READ, 4096, again, 8192, 2, 0), 0);
	ck_assert_mem_eq(buf, again, 8192);
	ck_assert_ptr_null(fault_of(lower));
	ck_assert_str_eq(blk->name, "scratch");
	ck_assert_uint_eq(blk->features, lower->features);
	blk_set_state(lower, BLK_FAILED, "pulled out");
	ck_assert_int_eq(blk->state, BLK_FAILED);
	ck_assert_str_eq(blk->state_cause, "pulled out");
	ck_assert_int_eq(rw(IO_READ, 0, 512), -ENXIO);
	blk_set_state(lower, BLK_ONLINE, "%s", "");
	blk_resize(lower, SIZE / 2);
	ck_assert_uint_eq(blk->size_bytes, SIZE / 2);
}
END_TEST

/* One rule over [8192, 12288) for writes; which ios it meets. */
static const struct {
	enum io_op op;
	uint64_t offset, length;
	enum io_purpose purpose;
	bool met;
} meets[] = {
	{ IO_WRITE, 8192, 4096, IO_HOST, true },  { IO_WRITE, 7680, 512, IO_HOST, false },
	{ IO_WRITE, 7680, 1024, IO_HOST, true },  { IO_WRITE, 12288, 512, IO_HOST, false },
	{ IO_WRITE, 11776, 1024, IO_HOST, true }, { IO_WRITE, 0, 32768, IO_HOST, true },
	{ IO_READ, 8192, 4096, IO_HOST, false },  { IO_WRITE, 8192, 4096, IO_RESYNC, false },
	{ IO_WRITE, 9216, 512, IO_LOG, true },
};

START_TEST(a_rule_meets_its_ops_ranges_and_purposes_only)
{
	struct iovec iov = { buf, meets[_i].length };
	struct io io;

	add((struct fault_rule){ .kind = FAULT_ERROR,
				 .ops = OP(IO_WRITE),
				 .purposes = OP(IO_HOST) | OP(IO_LOG),
				 .offset = 8192,
				 .length = 4096,
				 .error = -ENOSPC });
	io_init(&io, meets[_i].op, meets[_i].offset, meets[_i].length, &iov, 1);
	io.purpose = meets[_i].purpose;
	ck_assert_int_eq(fake_blk_do(blk, &io, 0), meets[_i].met ? -ENOSPC : 0);
	ck_assert_uint_eq(lower->counts.ops[meets[_i].op], !meets[_i].met);
}
END_TEST

START_TEST(a_flush_meets_a_rule_with_a_range)
{
	struct io io;

	add((struct fault_rule){ .kind = FAULT_ERROR,
				 .ops = OP(IO_FLUSH),
				 .offset = 4096,
				 .length = 512,
				 .error = -EIO });
	io_init(&io, IO_FLUSH, 0, 0, NULL, 0);
	ck_assert_int_eq(fake_blk_do(blk, &io, 0), -EIO);
}
END_TEST

static void count_rules(void *arg, uint64_t id, const struct fault_rule *rule, uint64_t hits,
			unsigned held)
{
	(void)id, (void)rule, (void)hits, (void)held;
	++*(unsigned *)arg;
}

static unsigned rules(void)
{
	unsigned n = 0;

	fault_each(fault, count_rules, &n);
	return n;
}

START_TEST(a_counted_rule_acts_that_often_and_goes)
{
	unsigned failed = 0;

	add((struct fault_rule){
		.kind = FAULT_ERROR, .ops = OP(IO_READ), .error = -EIO, .count = 3 });
	for (unsigned i = 0; i < 10; i++)
		failed += rw(IO_READ, 0, 512) == -EIO;
	ck_assert_uint_eq(failed, 3);
	ck_assert_uint_eq(rules(), 0);
}
END_TEST

START_TEST(the_first_rule_that_matches_acts)
{
	uint64_t first = add((struct fault_rule){ .kind = FAULT_ERROR,
						  .ops = OP(IO_READ),
						  .offset = 512,
						  .length = 512,
						  .error = -EIO });

	add((struct fault_rule){ .kind = FAULT_ERROR, .ops = OP(IO_READ), .error = -EAGAIN });
	ck_assert_int_eq(rw(IO_READ, 512, 512), -EIO);
	ck_assert_int_eq(rw(IO_READ, 1024, 512), -EAGAIN);
	ck_assert(fault_remove(fault, first));
	ck_assert(!fault_remove(fault, first));
	ck_assert_int_eq(rw(IO_READ, 512, 512), -EAGAIN);
}
END_TEST

START_TEST(a_delayed_io_goes_on_at_its_time_and_not_before)
{
	struct pending a, b;

	add((struct fault_rule){
		.kind = FAULT_DELAY, .ops = OP(IO_READ), .delay_ns = 5 * NS_PER_MS, .count = 2 });
	submit(&a, IO_READ, 0);
	fake_env_advance(env, 2 * NS_PER_MS);
	submit(&b, IO_READ, 0);
	fake_env_advance(env, 3 * NS_PER_MS - 1);
	ck_assert_uint_eq(a.wait.calls, 0);
	fake_env_advance(env, 1);
	ck_assert_uint_eq(a.wait.calls, 1);
	ck_assert_uint_eq(b.wait.calls, 0);
	ck_assert_uint_eq(rules(), 1);
	fake_env_advance(env, 2 * NS_PER_MS);
	ck_assert_uint_eq(b.wait.calls, 1);
	ck_assert_int_eq(b.wait.error, 0);
	ck_assert_uint_eq(rules(), 0);
}
END_TEST

struct seen {
	uint64_t hits;
	unsigned held;
};

static void see(void *arg, uint64_t id, const struct fault_rule *rule, uint64_t hits, unsigned held)
{
	(void)id, (void)rule;
	*(struct seen *)arg = (struct seen){ hits, held };
}

START_TEST(what_is_held_goes_on_when_the_rule_is_removed)
{
	enum fault_kind kind = _i ? FAULT_DELAY : FAULT_STUCK;
	struct pending p[3];
	struct seen seen;
	uint64_t id = add((struct fault_rule){
		.kind = kind, .ops = OP(IO_WRITE), .delay_ns = NS_PER_S, .count = 2 });

	for (unsigned i = 0; i < 3; i++)
		submit(&p[i], IO_WRITE, i * 512);
	fake_env_advance(env, NS_PER_S / 2);
	fault_each(fault, see, &seen);
	ck_assert_uint_eq(seen.hits, 2);
	ck_assert_uint_eq(seen.held, 2);
	ck_assert_uint_eq(p[2].wait.calls, 1);
	ck_assert_uint_eq(p[0].wait.calls + p[1].wait.calls, 0);
	ck_assert_uint_eq(blk->in_flight, 2);
	ck_assert(fault_remove(fault, id));
	fake_env_run(env);
	ck_assert_uint_eq(p[0].wait.calls + p[1].wait.calls, 2);
	fake_env_advance(env, 2 * NS_PER_S);
	ck_assert_uint_eq(lower->counts.ops[IO_WRITE], 3);
}
END_TEST

static const struct {
	uint32_t block_size;
	unsigned pieces;
	uint64_t torn, reaches;
} tears[] = {
	{ 512, 1, 0, 0 },        { 512, 1, 511, 0 },         { 512, 1, 512, 512 },
	{ 512, 3, 7000, 6656 },  { 512, 16, 8192, 8192 },    { 4096, 1, 4095, 0 },
	{ 4096, 4, 9000, 8192 }, { 512, 2, 1 << 20, 16384 },
};

START_TEST(a_torn_write_reaches_the_device_in_part_and_fails)
{
	uint64_t length = 16384;

	blk_unref(blk);
	make(tears[_i].block_size);
	add((struct fault_rule){
		.kind = FAULT_TORN, .ops = OP(IO_WRITE), .torn_bytes = tears[_i].torn, .count = 1 });
	fake_fill(buf, length, 5);
	ck_assert_int_eq(fake_blk_rw(blk, IO_WRITE, 4096, buf, length, tears[_i].pieces, IO_FUA),
			 -EIO);
	ck_assert_int_eq(fake_blk_rw(lower, IO_READ, 4096, again, length, 1, 0), 0);
	memset(buf + tears[_i].reaches, 0, length - tears[_i].reaches);
	ck_assert_mem_eq(buf, again, length);
	ck_assert_int_eq(fake_blk_rw(blk, IO_WRITE, 4096, buf, length, tears[_i].pieces, 0), 0);
}
END_TEST

START_TEST(a_rule_by_chance_acts_about_that_often_and_alike_for_a_seed)
{
	unsigned failed = 0;

	add((struct fault_rule){
		.kind = FAULT_ERROR, .ops = OP(IO_READ), .error = -EIO, .probability = 250000 });
	for (unsigned i = 0; i < 4000; i++)
		failed += rw(IO_READ, 0, 512) == -EIO;
	ck_assert_uint_gt(failed, 850);
	ck_assert_uint_lt(failed, 1150);
}
END_TEST

static const struct fault_rule senseless[] = {
	{ .kind = FAULT_ERROR, .ops = 0, .error = -EIO },
	{ .kind = FAULT_ERROR, .ops = OP(IO_OP_COUNT), .error = -EIO },
	{ .kind = FAULT_ERROR, .ops = OP(IO_READ), .error = 0 },
	{ .kind = FAULT_ERROR, .ops = OP(IO_READ), .error = 5 },
	{ .kind = FAULT_ERROR, .ops = OP(IO_READ), .error = -EPERM },
	{ .kind = FAULT_ERROR, .ops = OP(IO_READ) | OP(IO_WRITE), .error = -ENOSPC },
	{ .kind = FAULT_TORN, .ops = OP(IO_READ) },
	{ .kind = FAULT_TORN, .ops = OP(IO_READ) | OP(IO_WRITE) },
	{ .kind = (enum fault_kind)9, .ops = OP(IO_READ) },
	{ .kind = FAULT_STUCK, .ops = OP(IO_READ), .purposes = OP(IO_PURPOSE_COUNT) },
	{ .kind = FAULT_STUCK, .ops = OP(IO_READ), .offset = 2, .length = UINT64_MAX },
	{ .kind = FAULT_STUCK, .ops = OP(IO_READ), .probability = 1000001 },
};

START_TEST(a_rule_that_makes_no_sense_is_refused)
{
	ck_assert_uint_eq(fault_add(fault, &senseless[_i]), 0);
	ck_assert_uint_eq(rules(), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fault");
	TCase *tc = tcase_create("fault");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, without_rules_it_is_the_device_below);
	tcase_add_loop_test(tc, a_rule_meets_its_ops_ranges_and_purposes_only, 0, ARRAY_LEN(meets));
	tcase_add_test(tc, a_flush_meets_a_rule_with_a_range);
	tcase_add_test(tc, a_counted_rule_acts_that_often_and_goes);
	tcase_add_test(tc, the_first_rule_that_matches_acts);
	tcase_add_test(tc, a_delayed_io_goes_on_at_its_time_and_not_before);
	tcase_add_loop_test(tc, what_is_held_goes_on_when_the_rule_is_removed, 0, 2);
	tcase_add_loop_test(tc, a_torn_write_reaches_the_device_in_part_and_fails, 0,
			    ARRAY_LEN(tears));
	tcase_add_test(tc, a_rule_by_chance_acts_about_that_often_and_alike_for_a_seed);
	tcase_add_loop_test(tc, a_rule_that_makes_no_sense_is_refused, 0, ARRAY_LEN(senseless));
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
