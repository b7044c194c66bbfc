/* SPDX-License-Identifier: MIT */
/* Every rule of what is not meaningful, on both sides of its threshold. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "bench/verdict.h"
#include "tests/fake/fake_bench.h"

static struct fake_bench *fake;
static struct bench_result *r;
static struct verdict_facts facts;
static struct steady steady;
static struct expect expect;
static struct verdict verdict;

static void setup(void)
{
	fake = fake_bench();
	r = fake->result;
	steady = steady_of(r);
	facts = (struct verdict_facts){ .result = r, .steady = &steady, .spread = -1 };
}

static void teardown(void)
{
	fake_bench_free(fake);
}

static void judge(void)
{
	verdict_judge(&facts, &verdict);
	ck_assert(verdict.meaningful == (verdict.reason_count == 0));
}

/* Each sets what the rule looks at: just allowed, or just BEYOND. */

static void set_repeat(bool beyond)
{
	fake->point.data = beyond ? DATA_REPEAT : DATA_RANDOM;
}

static void set_zero_fill(bool beyond)
{
	/* Nothing of the kind reaches the target without fill or writes. */
	fake->point.streams[0].read_percent = 100;
	fake->point.data = DATA_ZERO;
	fake->plan.setup.fill = beyond;
}

static void set_zero_writes(bool beyond)
{
	fake->point.streams[0].read_percent = beyond ? 99 : 100;
	fake->point.data = DATA_ZERO;
	fake->plan.setup.fill = false;
}

static void set_mapped(bool beyond)
{
	r->luns[0].mapped = beyond ? 0.9899 : 0.99;
}

static void set_mapped_unknown(bool beyond)
{
	r->luns[0].mapped = beyond ? 0 : -1;
}

static void set_zero_reads(bool beyond)
{
	r->luns[0].zero_samples = beyond ? 11 : 10;
}

static void set_disks(bool beyond)
{
	/* A range that fits the cache is none of the rule's business once the disks are known. */
	r->luns[0].size_bytes = 1 * GIB;
	r->cross_check = (struct bench_cross_check){ .done = true,
						     .disks_known = true,
						     .initiator_read_bytes = 1000,
						     .disk_read_bytes = beyond ? 899 : 900 };
}

static void set_range(bool beyond)
{
	fake->point.range_bytes = 16 * GIB - beyond;
}

static void set_size(bool beyond)
{
	fake->plan.setup.cache_bytes = 32 * GIB + beyond;
}

static void set_range_of_luns(bool beyond)
{
	r->luns[1] = r->luns[0];
	fake->plan.setup.lun_count = 2;
	fake->point.range_bytes = 8 * GIB - beyond;
}

static void set_thread_cpu(bool beyond)
{
	r->threads[1].cpu = beyond ? 0.90 : 0.899;
}

static void set_all_cpus(bool beyond)
{
	r->cpus = 2;
	r->cpu_user_s = 30;
	r->cpu_system_s = beyond ? 24 : 23.9; /* of 60 */
}

static void set_lag(bool beyond)
{
	struct hist *lag = &r->threads[1].lag;
	uint64_t median = hist_percentile(&r->sides[BENCH_TOTAL].latency, 50);

	hist_reset(lag);
	/* Two percent are late, so the 99th percentile is. */
	hist_add_many(lag, 1000, 980);
	hist_add_many(lag, beyond ? median / 10 + median / 50 : median / 10 - median / 50, 20);
}

static void set_wait(bool beyond)
{
	r->threads[1].wait = beyond ? 0.101 : 0.10;
}

static void set_lag_known(bool beyond)
{
	struct hist *lag = &r->threads[0].lag;

	/* One sample fewer, and there are not ten beyond the 99th percentile. */
	hist_reset(lag);
	hist_add_many(lag, NS_PER_MS, 999 + beyond);
}

static void set_link(bool beyond)
{
	r->link_bytes_s = (uint64_t)(bench_bytes_s(r, BENCH_READ) / 0.95) + !beyond;
}

static void set_link_throughput(bool beyond)
{
	set_link(true);
	fake->point.streams[0].block_bytes = beyond ? 65535 : 65536;
}

static void set_depth(bool beyond)
{
	r->depth_asked = 1000;
	r->in_flight = beyond ? 899.9 : 900;
	/* The books agree. */
	fake_bench_clear(r);
	fake_bench_commands(r, BENCH_READ, 3000000, 9004000);
}

static void set_depth_ramp(bool beyond)
{
	set_depth(false);
	/* Half of the time the load rises: three quarters of 1200 are expected. */
	fake->point.ramp_ns = 15 * NS_PER_S;
	r->depth_asked = beyond ? 1334 : 1333;
}

static void set_bookkeeping(bool beyond)
{
	r->in_flight *= beyond ? 1.021 : 1.02;
}

static void set_counts(bool beyond)
{
	r->cross_check =
		(struct bench_cross_check){ .done = true, .deviation = beyond ? 0.0101 : 0.01 };
}

static void set_rate(bool beyond)
{
	fake->point.streams[0].rate = 140000;
	r->planned = r->sides[BENCH_TOTAL].ops * 100 / 99 + beyond;
}

static void set_late(bool beyond)
{
	fake->point.streams[0].rate = 140000;
	hist_add(&r->sides[BENCH_TOTAL].service, NS_PER_S);
	hist_add(&r->sides[BENCH_TOTAL].latency, 2 * NS_PER_S + beyond * 1000);
}

static void set_late_loop(bool beyond)
{
	fake->point.streams[0].rate = 140000;
	hist_add(&r->threads[0].lag, NS_PER_S + beyond * 1000);
}

static void set_time(bool beyond)
{
	/* Clocks are read in turns. */
	r->measured_s = beyond ? 9.98 : 9.995;
	fake_bench_settle(r);
	r->cpus = 0;
	r->link_bytes_s = 0;
}

static void set_ops(bool beyond)
{
	fake_bench_clear(r);
	fake_bench_commands(r, BENCH_READ, beyond ? 9999 : 10000, 1000000);
	fake_bench_settle(r);
}

static void set_samples(bool beyond)
{
	struct bench_fault fault;

	ck_assert_int_eq(expect_parse("iops>1, write.p99.9<1s", &expect, &fault), 0);
	facts.expect = &expect;
	fake_bench_clear(r);
	fake_bench_commands(r, BENCH_WRITE, beyond ? 9999 : 10000, 1000000);
	fake_bench_commands(r, BENCH_READ, 50000, 1000000);
	fake_bench_settle(r);
}

static void set_steady(bool beyond)
{
	steady = (struct steady){ .known = true, .met = !beyond, .range = 0.21, .drift = 0.02 };
}

static void set_steady_unknown(bool beyond)
{
	steady = (struct steady){ .known = beyond };
}

static void set_error(bool beyond)
{
	r->sessions[3].errors = beyond;
}

static void set_retry(bool beyond)
{
	r->sessions[0].retries = beyond;
}

static void set_reconnect(bool beyond)
{
	r->sessions[2].reconnects = beyond;
}

static void set_path(bool beyond)
{
	r->paths[0].ops = 3000;
	r->paths[1].ops = 1000 - beyond;
}

static void set_path_failover(bool beyond)
{
	r->paths[1].ops = 0;
	fake->plan.setup.policy = beyond ? PATH_LEAST_IN_FLIGHT : PATH_FAILOVER;
}

static void set_noise(bool beyond)
{
	facts.spread = beyond ? 0.101 : 0.1;
}

static const struct {
	const char *code;
	void (*set)(bool beyond);
	const char *text; /* part of the sentence */
} rules[] = {
	{ "zero-data", set_repeat, "one block over and over" },
	{ "zero-data", set_zero_fill, "the data were zeroes" },
	{ "zero-data", set_zero_writes, "the data were zeroes" },
	{ "unmapped", set_mapped, "LUN 1: 99.0 % of the range was allocated" },
	{ "unmapped", set_mapped_unknown, "LUN 1: 0.0 % of the range was allocated" },
	{ "unmapped", set_zero_reads, "LUN 1: 1.1 % of 1000 reads looked at" },
	{ "cache", set_disks, "the disks served 89.9 % of the bytes read" },
	{ "cache", set_range,
	  "a range of 16.0 GiB fits the target's cache: less than twice 8.0 GiB" },
	{ "cache", set_size, "a range of 64.0 GiB fits" },
	{ "cache", set_range_of_luns, "a range of 16.0 GiB fits" },
	{ "client-bound", set_thread_cpu, "thread 1 used 90 % of a processor" },
	{ "client-bound", set_all_cpus, "all 2 processors allowed were 90 % used" },
	{ "client-bound", set_wait, "thread 1 waited for a processor 10.1 % of the time" },
	{ "client-bound", set_lag, "thread 1's loop was at work up to" },
	{ "client-bound", set_lag_known, "thread 0's loop was at work up to 1000 us" },
	{ "link-bound", set_link, "95 % of what the links allow" },
	{ "link-bound", set_link_throughput, "of what the links allow" },
	{ "depth", set_depth, "899.9 commands were in flight, less than 90 % of the 1000 asked" },
	{ "depth", set_depth_ramp, "90 % of the 1000 asked" },
	{ "bookkeeping", set_bookkeeping, "IOPS x mean service time is 199.9, but 204.1 were" },
	{ "counts", set_counts, "the counts differ by 1.0 %" },
	{ "late", set_rate, "99.0 % of the planned rate" },
	{ "late", set_late, "sent up to 1.0 s after their time" },
	{ "late", set_late_loop, "sent up to 1.0 s after their time" },
	{ "short", set_time, "10.0 s were measured, less than 10 s" },
	{ "short", set_ops, "9,999 commands were measured, less than 10,000" },
	{ "short", set_samples,
	  "p99.9 of write needs 10 samples beyond it: 10,000 commands, not 9,999" },
	{ "not-steady", set_steady, "varied by 21.0 % (20 % allowed) and drifted by 2.0 %" },
	{ "not-steady", set_steady_unknown, "over the last five rounds" },
	{ "errors", set_error, "1 errors, 0 retries, 0 reconnects" },
	{ "errors", set_retry, "0 errors, 1 retries, 0 reconnects" },
	{ "errors", set_reconnect, "0 errors, 0 retries, 1 reconnects" },
	{ "paths", set_path,
	  "path 192.0.2.2:3260 served 25.0 %, less than half of its share of 50.0 %" },
	{ "paths", set_path_failover, "path 192.0.2.2:3260 served 0.0 %" },
	{ "noise", set_noise, "differ by 10.1 %" },
};

START_TEST(a_rule_says_nothing_up_to_its_threshold)
{
	rules[_i].set(false);
	judge();
	ck_assert_msg(verdict.meaningful, "%u %s: %s: %s", _i, rules[_i].code,
		      verdict.reasons[0].code, verdict.reasons[0].text);
}
END_TEST

START_TEST(a_rule_says_its_reason_beyond_its_threshold_and_nothing_else_does)
{
	rules[_i].set(true);
	judge();
	ck_assert_uint_eq(verdict.reason_count, 1);
	ck_assert_str_eq(verdict.reasons[0].code, rules[_i].code);
	ck_assert_msg(strstr(verdict.reasons[0].text, rules[_i].text) != NULL, "%s",
		      verdict.reasons[0].text);
}
END_TEST

START_TEST(every_rule_has_its_case)
{
	static const char *const codes[] = { "zero-data",  "unmapped", "cache",  "client-bound",
					     "link-bound", "depth",    "counts", "bookkeeping",
					     "late",       "short",    "errors", "not-steady",
					     "paths",      "noise" };

	for (unsigned i = 0; i < ARRAY_LEN(codes); i++) {
		unsigned found = 0;

		for (unsigned j = 0; j < ARRAY_LEN(rules); j++)
			found += strcmp(rules[j].code, codes[i]) == 0;
		ck_assert_msg(found > 0, "%s", codes[i]);
	}
}
END_TEST

START_TEST(all_reasons_are_told_the_worst_first)
{
	set_error(true);
	set_noise(true);
	set_steady(true);
	judge();
	ck_assert_uint_eq(verdict.reason_count, 3);
	ck_assert_str_eq(verdict.reasons[0].code, "errors");
	ck_assert_str_eq(verdict.reasons[1].code, "not-steady");
	ck_assert_str_eq(verdict.reasons[2].code, "noise");
}
END_TEST

START_TEST(the_first_error_is_in_the_sentence)
{
	set_error(true);
	r->errors[0] = (struct bench_error){ "READ(16) at 4096: medium error", 1 };
	r->error_count = 1;
	judge();
	ck_assert_str_eq(verdict.reasons[0].text, "1 errors, 0 retries, 0 reconnects: first, "
						  "READ(16) at 4096: medium error");
}
END_TEST

START_TEST(pauses_and_rates_do_not_ask_for_full_depth)
{
	set_depth(true);
	fake->point.streams[0].think_ns = 1000;
	judge();
	ck_assert(verdict.meaningful);
	fake->point.streams[0].think_ns = 0;
	fake->point.streams[0].rate = 1000;
	judge();
	ck_assert(verdict.meaningful);
}
END_TEST

START_TEST(notes_are_no_reproach)
{
	r->luns[0].write_cache = true;
	r->local = true;
	r->interrupted = true;
	judge();
	ck_assert(verdict.meaningful);
	ck_assert_uint_eq(verdict.note_count, 4);
	ck_assert_str_eq(verdict.notes[0].code, "interrupted");
	ck_assert_str_eq(verdict.notes[1].code, "write-cache");
	ck_assert_str_eq(verdict.notes[2].code, "local-target");
	ck_assert_str_eq(verdict.notes[3].code, "closed-loop");
	/* Without writes the cache has no part in it, and an open loop is none. */
	fake->point.streams[0].read_percent = 100;
	fake->point.streams[0].rate = 1000;
	r->local = r->interrupted = false;
	judge();
	ck_assert_uint_eq(verdict.note_count, 0);
}
END_TEST

START_TEST(nothing_measured_is_short_and_divides_by_nothing)
{
	fake_bench_clear(r);
	r->measured_s = 0;
	r->in_flight = 0;
	steady = (struct steady){ 0 };
	r->paths[0].ops = r->paths[1].ops = 0;
	judge();
	ck_assert_uint_eq(verdict.reason_count, 1);
	ck_assert_str_eq(verdict.reasons[0].text, "0.0 s were measured, less than 10 s");
}
END_TEST

START_TEST(a_percentile_needs_ten_samples_beyond_it)
{
	static const struct {
		double percent;
		uint64_t count;
	} cases[] = { { 50, 20 }, { 99, 1000 }, { 99.9, 10000 }, { 99.99, 100000 } };
	struct hist *hist = calloc(1, sizeof(*hist));

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		hist_reset(hist);
		hist_add_many(hist, 1, cases[i].count - 1);
		ck_assert(!verdict_percentile_known(hist, cases[i].percent));
		hist_add(hist, 1);
		ck_assert(verdict_percentile_known(hist, cases[i].percent));
	}
	free(hist);
}
END_TEST

START_TEST(spread_is_over_the_mean_and_needs_two)
{
	const double values[] = { 95, 105, 100 };

	ck_assert_double_eq_tol(verdict_spread(values, 3), 0.1, 1e-12);
	ck_assert_double_eq(verdict_spread(values, 1), -1);
	ck_assert_double_eq(verdict_spread((const double[]){ 0, 0 }, 2), -1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("verdict");
	TCase *tcase = tcase_create("verdict");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, a_rule_says_nothing_up_to_its_threshold, 0, ARRAY_LEN(rules));
	tcase_add_loop_test(tcase,
			    a_rule_says_its_reason_beyond_its_threshold_and_nothing_else_does, 0,
			    ARRAY_LEN(rules));
	tcase_add_test(tcase, every_rule_has_its_case);
	tcase_add_test(tcase, all_reasons_are_told_the_worst_first);
	tcase_add_test(tcase, the_first_error_is_in_the_sentence);
	tcase_add_test(tcase, pauses_and_rates_do_not_ask_for_full_depth);
	tcase_add_test(tcase, notes_are_no_reproach);
	tcase_add_test(tcase, nothing_measured_is_short_and_divides_by_nothing);
	tcase_add_test(tcase, a_percentile_needs_ten_samples_beyond_it);
	tcase_add_test(tcase, spread_is_over_the_mean_and_needs_two);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
