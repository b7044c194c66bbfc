/* SPDX-License-Identifier: MIT */
/* yoked's counts beside ours: agreeing, differing, and answers that are none. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/cross_check.h"
#include "tests/fake/fake_bench.h"
#include "tests/fake/fake_rpc.h"

static char dir[64], path[80];
static struct fake_bench *fake;
static struct cross_check *check;
static struct bench_fault fault;

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.40s/crosscheck-XXXXXX",
		 tmp && strlen(tmp) <= 40 ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
	fake = fake_bench();
	fake_bench_clear(fake->result);
	fake_bench_commands(fake->result, BENCH_READ, 700, 1000);
	fake_bench_commands(fake->result, BENCH_WRITE, 300, 1000);
	check = NULL;
}

static void teardown(void)
{
	cross_check_free(check);
	fake_bench_free(fake);
	ck_assert_int_eq(rmdir(dir), 0);
}

/* Reads and writes of sessions, unit and device; read bytes of the device. */
#define MOVED(r, w, rb, wb)                                                                        \
	"{\"read_ops\":" #r ",\"write_ops\":" #w ",\"read_bytes\":" #rb ",\"write_bytes\":" #wb "}"
#define COUNTS(r, w, b) MOVED(r, w, b, 1)
#define LUN(backing, disk, unit, device)                                                           \
	"{\"lun\":1,\"backing\":\"" backing "\",\"disk\":" disk ",\"unit\":" unit                  \
	",\"device\":" device "}"
#define ANSWER(sessions, luns)                                                                     \
	"{\"schema\":\"yoke.traffic/1\",\"target\":\"t\",\"sessions\":" sessions                   \
	",\"luns\":[" luns "]}"
#define ONE(disk, sessions, unit, device) ANSWER(sessions, LUN("b", disk, unit, device))

#define BEFORE ONE("true", COUNTS(10, 20, 0), COUNTS(110, 220, 0), MOVED(1000, 2000, 5000, 1))

/* Both readings, then the result's cross check. The requests are checked. */
static const struct bench_cross_check *compare(const char *const *answers)
{
	struct fake_rpc *rpc = fake_rpc_start(path, FAKE_RPC_RESULTS, answers);
	char *requests;

	ck_assert_int_eq(cross_check_new(path, &fake->plan.setup, &check, &fault), 0);
	cross_check_before(check, &fault);
	cross_check_after(check, &fault);
	cross_check_fill(check, fake->result);
	requests = fake_rpc_stop(rpc);
	ck_assert_ptr_nonnull(strstr(requests, "\"method\":\"traffic.show\",\"params\":{\"target\":"
					       "\"iqn.2026-11.org.yoke:demo\",\"luns\":[\"1\"]}"));
	free(requests);
	return &fake->result->cross_check;
}

static const struct {
	const char *after;
	double deviation;
	bool disks_known;
	const char *text;
} cases[] = {
	{ ONE("true", COUNTS(710, 320, 0), COUNTS(810, 520, 0),
	      MOVED(1700, 2300, 2872200, 1228801)),
	  0, true, "initiator 1,000 = sessions = LUNs = disks" },
	{ ONE("false", COUNTS(710, 320, 0), COUNTS(810, 520, 0),
	      MOVED(1700, 2300, 2872200, 1228801)),
	  0, false, "initiator 1,000 = sessions = LUNs = backings" },
	{ ONE("true", COUNTS(715, 325, 0), COUNTS(810, 520, 0),
	      MOVED(1700, 2300, 2872200, 1228801)),
	  0.01, true, "initiator 1,000; sessions 1,010 = LUNs = disks" },
	{ ONE("true", COUNTS(710, 320, 0), COUNTS(810, 509, 0),
	      MOVED(1700, 2300, 2872200, 1228801)),
	  0.011, true, "initiator 1,000 = sessions; LUNs 989 = disks" },
	{ ONE("true", COUNTS(710, 320, 0), COUNTS(810, 520, 0),
	      MOVED(1700, 2200, 2872200, 1228801)),
	  0.1, true, "initiator 1,000 = sessions = LUNs; disks 900" },
	/* Half of what was written never reached the disks. */
	{ ONE("true", COUNTS(710, 320, 0), COUNTS(810, 520, 0), MOVED(1700, 2300, 2872200, 614401)),
	  0.15, true, "initiator 1,000 = sessions = LUNs = disks; disks moved 3.3 MiB of 3.9 MiB" },
};

START_TEST(counts_are_compared_by_their_difference)
{
	const char *answers[] = { BEFORE, cases[_i].after, NULL };
	const struct bench_cross_check *c = compare(answers);

	ck_assert(c->done);
	ck_assert_uint_eq(c->initiator, 1000);
	ck_assert_uint_eq(c->initiator_read_bytes, 700 * 4096);
	ck_assert_uint_eq(c->disk_read_bytes, 700 * 4096);
	ck_assert(c->disks_known == cases[_i].disks_known);
	ck_assert_double_eq_tol(c->deviation, cases[_i].deviation, 1e-9);
	ck_assert_str_eq(c->text, cases[_i].text);
	ck_assert(cross_check_agrees(c) == (cases[_i].deviation < 0.0105));
}
END_TEST

static const struct {
	const char *after;
	double deviation;
	const char *text;
} pieces[] = {
	{ ONE("true", COUNTS(710, 320, 0), COUNTS(810, 520, 0),
	      MOVED(2400, 2600, 2872200, 1228801)),
	  0, "initiator 1,000 = sessions = LUNs; disks agree in bytes" },
	{ ONE("true", COUNTS(710, 320, 0), COUNTS(810, 520, 0), MOVED(1700, 2300, 2872200, 1)), 0.3,
	  "initiator 1,000 = sessions = LUNs; disks moved 2.7 MiB of 3.9 MiB" },
	{ ONE("true", COUNTS(710, 320, 0), COUNTS(810, 420, 0),
	      MOVED(2400, 2600, 2872200, 1228801)),
	  0.1, "initiator 1,000 = sessions; LUNs 900; disks agree in bytes" },
};

START_TEST(commands_that_reach_devices_in_pieces_are_compared_there_by_bytes)
{
	const char *answers[] = { BEFORE, pieces[_i].after, NULL };
	const struct bench_cross_check *c;

	fake->point.streams[0].block_bytes = 4 * MIB + 4096;
	c = compare(answers);
	ck_assert(c->done);
	ck_assert_double_eq_tol(c->deviation, pieces[_i].deviation, 1e-9);
	ck_assert_str_eq(c->text, pieces[_i].text);
}
END_TEST

START_TEST(nothing_done_by_us_and_something_counted_is_a_disagreement)
{
	const char *answers[] = { BEFORE, cases[0].after, NULL };

	fake_bench_clear(fake->result);
	ck_assert_double_eq(compare(answers)->deviation, 1);
	ck_assert(!cross_check_agrees(&fake->result->cross_check));
}
END_TEST

START_TEST(a_backing_behind_two_luns_of_two_targets_is_counted_once)
{
	static const char before[] =
		ANSWER(COUNTS(0, 0, 0), LUN("a", "true", COUNTS(0, 0, 0), COUNTS(0, 0, 0)) "," LUN(
						"b", "true", COUNTS(0, 0, 0), COUNTS(0, 0, 0)));
	static const char after[] =
		ANSWER(COUNTS(500, 0, 0),
		       LUN("a", "true", COUNTS(600, 0, 0), MOVED(600, 0, 4096000, 1)) "," LUN(
			       "b", "true", COUNTS(400, 0, 0), COUNTS(400, 0, 0)));
	static const char *const answers[] = { before, before, after, after, NULL };
	struct bench_setup *setup = &fake->plan.setup;
	struct fake_rpc *rpc = fake_rpc_start(path, FAKE_RPC_RESULTS, answers);
	char *requests;

	setup->lun_count = 2;
	setup->luns[1] = 7;
	snprintf(setup->portals[1].target, sizeof(setup->portals[1].target), "iqn.x:other");
	setup->portals[2] = setup->portals[0];
	setup->portals[2].target[0] = 'I'; /* names are the same in any case */
	setup->portal_count = 3;
	ck_assert_int_eq(cross_check_new(path, setup, &check, &fault), 0);
	ck_assert_int_eq(cross_check_before(check, &fault), 0);
	ck_assert_int_eq(cross_check_after(check, &fault), 0);
	cross_check_fill(check, fake->result);
	requests = fake_rpc_stop(rpc);
	/* Four calls: two targets, twice. */
	ck_assert_ptr_nonnull(strstr(requests, "\"id\":4"));
	ck_assert_ptr_null(strstr(requests, "\"id\":5"));
	ck_assert_ptr_nonnull(strstr(requests, "iqn.x:other\",\"luns\":[\"1\",\"7\"]"));
	free(requests);
	ck_assert_str_eq(fake->result->cross_check.text, cases[0].text);
}
END_TEST

START_TEST(a_yoked_that_was_restarted_is_not_compared)
{
	const char *answers[] = {
		BEFORE,
		ONE("true", COUNTS(9, 20, 0), COUNTS(110, 220, 0), MOVED(1000, 2000, 5000, 1)), NULL
	};
	const struct bench_cross_check *c = compare(answers);

	ck_assert(!c->done && cross_check_agrees(c));
	ck_assert_str_eq(c->text, "not compared: yoked was restarted meanwhile");
}
END_TEST

static const char *const nonsense[] = {
	"1",
	"{}",
	ANSWER(COUNTS(1, 1, 1), ""),
	ANSWER("{}", LUN("b", "true", COUNTS(1, 1, 1), COUNTS(1, 1, 1))),
	ANSWER(COUNTS(1, 1, 1), "7"),
	ANSWER(COUNTS(1, 1, 1), LUN("b", "true", COUNTS(-1, 1, 1), COUNTS(1, 1, 1))),
	ANSWER(COUNTS(1, 1, 1), LUN("b", "true", COUNTS(1, 1, 1), COUNTS(1, "1", 1))),
	ANSWER(COUNTS(1, 1, 1), LUN("b", "true", COUNTS(1, 1, 1), COUNTS(1, 1, 1.5))),
	ANSWER(COUNTS(1, 1, 1), "{\"lun\":1,\"unit\":{},\"device\":{}}"),
};

START_TEST(an_answer_without_counters_is_refused)
{
	const char *const answers[] = { nonsense[_i], NULL };
	struct fake_rpc *rpc = fake_rpc_start(path, FAKE_RPC_RESULTS, answers);

	ck_assert_int_eq(cross_check_new(path, &fake->plan.setup, &check, &fault), 0);
	ck_assert_int_eq(cross_check_before(check, &fault), -EPROTO);
	ck_assert_str_eq(fault.text, "--cross-check: yoked's answer has no counters. Is it older "
				     "than this program?");
	cross_check_fill(check, fake->result);
	ck_assert(!fake->result->cross_check.done);
	ck_assert_ptr_nonnull(strstr(fake->result->cross_check.text, "has no counters"));
	free(fake_rpc_stop(rpc));
}
END_TEST

START_TEST(what_yoked_refuses_is_said)
{
	static const char *const answers[] = { "target t: not served", NULL };
	struct fake_rpc *rpc = fake_rpc_start(path, FAKE_RPC_ERROR, answers);

	ck_assert_int_eq(cross_check_new(path, &fake->plan.setup, &check, &fault), 0);
	ck_assert_int_eq(cross_check_before(check, &fault), -EREMOTEIO);
	ck_assert_str_eq(fault.text, "--cross-check: target t: not served");
	free(fake_rpc_stop(rpc));
}
END_TEST

START_TEST(nobody_there_is_said)
{
	ck_assert_int_lt(cross_check_new(path, &fake->plan.setup, &check, &fault), 0);
	ck_assert_ptr_nonnull(strstr(fault.text, "--cross-check: no yoked answers on "));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cross_check");
	TCase *tcase = tcase_create("cross check");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, counts_are_compared_by_their_difference, 0, ARRAY_LEN(cases));
	tcase_add_loop_test(tcase,
			    commands_that_reach_devices_in_pieces_are_compared_there_by_bytes, 0,
			    ARRAY_LEN(pieces));
	tcase_add_test(tcase, nothing_done_by_us_and_something_counted_is_a_disagreement);
	tcase_add_test(tcase, a_backing_behind_two_luns_of_two_targets_is_counted_once);
	tcase_add_test(tcase, a_yoked_that_was_restarted_is_not_compared);
	tcase_add_loop_test(tcase, an_answer_without_counters_is_refused, 0, ARRAY_LEN(nonsense));
	tcase_add_test(tcase, what_yoked_refuses_is_said);
	tcase_add_test(tcase, nobody_there_is_said);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
