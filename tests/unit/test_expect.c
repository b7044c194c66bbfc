/* SPDX-License-Identifier: MIT */
/* Expectations: what is taken, what is refused and how, what is met. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "bench/expect.h"
#include "tests/fake/fake_bench.h"

static struct fake_bench *fake;
static struct bench_fault fault;
static struct expect expect;

static void setup(void)
{
	fake = fake_bench();
}

static void teardown(void)
{
	fake_bench_free(fake);
}

START_TEST(conditions_are_taken_exactly)
{
	static const struct {
		const char *text;
		struct expect_condition c;
	} cases[] = {
		{ "iops>=100k", { "", BENCH_TOTAL, EXPECT_IOPS, 0, EXPECT_GE, 100000 } },
		{ "p99<=2ms", { "", BENCH_TOTAL, EXPECT_PERCENTILE, 99, EXPECT_LE, 2e6 } },
		{ "read.p99.9<1ms", { "", BENCH_READ, EXPECT_PERCENTILE, 99.9, EXPECT_LT, 1e6 } },
		{ "MiB/s>500", { "", BENCH_TOTAL, EXPECT_MIB_S, 0, EXPECT_GT, 500 } },
		{ "write.mib/s >= 1.5", { "", BENCH_WRITE, EXPECT_MIB_S, 0, EXPECT_GE, 1.5 } },
		{ "total.IOPS > 1.2M", { "", BENCH_TOTAL, EXPECT_IOPS, 0, EXPECT_GT, 1.2e6 } },
		{ "mean<850us", { "", BENCH_TOTAL, EXPECT_MEAN, 0, EXPECT_LT, 850e3 } },
		{ "max<=1s", { "", BENCH_TOTAL, EXPECT_MAX_LATENCY, 0, EXPECT_LE, 1e9 } },
		{ "p50<999ns", { "", BENCH_TOTAL, EXPECT_PERCENTILE, 50, EXPECT_LT, 999 } },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		const struct expect_condition *c = &expect.conditions[0];

		ck_assert_msg(expect_parse(cases[i].text, &expect, &fault) == 0, "%s", fault.text);
		ck_assert_uint_eq(expect.count, 1);
		ck_assert_str_eq(c->text, cases[i].text);
		ck_assert_int_eq(c->side, cases[i].c.side);
		ck_assert_int_eq(c->figure, cases[i].c.figure);
		ck_assert_int_eq(c->op, cases[i].c.op);
		ck_assert_double_eq(c->percent, cases[i].c.percent);
		ck_assert_double_eq_tol(c->limit, cases[i].c.limit, 1e-6);
	}
}
END_TEST

START_TEST(lists_have_commas_and_may_have_blanks)
{
	ck_assert_int_eq(expect_parse(" iops>=100k,p99<=2ms ,\tread.p99.9<1ms, MiB/s>500 ", &expect,
				      &fault),
			 0);
	ck_assert_uint_eq(expect.count, 4);
	ck_assert_str_eq(expect.conditions[0].text, "iops>=100k");
	ck_assert_str_eq(expect.conditions[1].text, "p99<=2ms");
	ck_assert_str_eq(expect.conditions[3].text, "MiB/s>500");
}
END_TEST

START_TEST(anything_else_is_refused_with_what_is_allowed)
{
	static const struct {
		const char *text, *said;
	} cases[] = {
		{ "", "--expect \"\": nothing between the commas. " },
		{ "iops>1,", "--expect \"\": nothing between the commas. " },
		{ "iops>1,,p99<1s", "nothing between the commas" },
		{ "iopsx>1", "--expect \"iopsx>1\": no comparison after the figure. " },
		{ "speed>1", "no such figure" },
		{ "p>1ms", "no such figure" },
		{ "p0<1ms", "no such figure" },
		{ "p100<1ms", "no such figure" },
		{ "p99.<1ms", "no such figure" },
		{ "trim.iops>1", "no such figure" },
		{ "iops=1", "no comparison" },
		{ "iops", "no comparison" },
		{ "iops>=", "no number" },
		{ "iops>=-1", "no number" },
		{ "iops>=inf", "no number" },
		{ "iops>=0x10", "something follows the number" },
		{ "iops>=100G", "something follows the number" },
		{ "iops>=100kk", "something follows the number" },
		{ "p99<=2", "a latency needs its unit: ns, us, ms or s" },
		{ "p99<=2min", "a latency needs its unit" },
		{ "p99<=2mss", "something follows the number" },
		{ "MiB/s>500M", "something follows the number" },
		{ "iops>=1;p99<1ms", "something follows the number" },
		{ "iops>=1 and p99 is less than twenty milliseconds or so, then", "something" },
		{ "iops>1                                                                1",
		  "too long" },
		{ "iops>1,iops>1,iops>1,iops>1,iops>1,iops>1,iops>1,iops>1,iops>1,iops>1,iops>1,"
		  "iops>1,iops>1,iops>1,iops>1,iops>1,iops>1",
		  "more than 16 conditions" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		ck_assert_msg(expect_parse(cases[i].text, &expect, &fault) == -EINVAL, "%s",
			      cases[i].text);
		ck_assert_msg(strstr(fault.text, cases[i].said) != NULL, "%s", fault.text);
		ck_assert_msg(strstr(fault.text, "iops>=100k, MiB/s>500, p99<=2ms") != NULL, "%s",
			      fault.text);
	}
}
END_TEST

static enum expect_state state_of(const char *text)
{
	ck_assert_msg(expect_parse(text, &expect, &fault) == 0, "%s", fault.text);
	return expect_judge(&expect.conditions[0], fake->result).state;
}

START_TEST(each_comparison_has_its_edge)
{
	/* 96,488 + 41,352 IOPS of 4 KiB. */
	ck_assert_int_eq(state_of("iops>=137840"), EXPECT_MET);
	ck_assert_int_eq(state_of("iops>137840"), EXPECT_UNMET);
	ck_assert_int_eq(state_of("iops<=137840"), EXPECT_MET);
	ck_assert_int_eq(state_of("iops<137840"), EXPECT_UNMET);
	ck_assert_int_eq(state_of("read.iops>=96489"), EXPECT_UNMET);
	ck_assert_int_eq(state_of("write.iops<=41352"), EXPECT_MET);
	ck_assert_int_eq(state_of("MiB/s>538.4"), EXPECT_MET);
	ck_assert_int_eq(state_of("MiB/s>538.5"), EXPECT_UNMET);
}
END_TEST

START_TEST(latencies_are_those_of_the_side)
{
	fake_bench_clear(fake->result);
	fake_bench_commands(fake->result, BENCH_READ, 1000, 1000000);
	fake_bench_commands(fake->result, BENCH_WRITE, 2000, 4000000);
	ck_assert_int_eq(state_of("read.p99<=1.01ms"), EXPECT_MET);
	ck_assert_int_eq(state_of("write.p99<=3.9ms"), EXPECT_UNMET);
	ck_assert_int_eq(state_of("mean<=3ms"), EXPECT_MET);
	ck_assert_int_eq(state_of("mean<3ms"), EXPECT_UNMET);
	ck_assert_int_eq(state_of("max<=4ms"), EXPECT_MET);
	ck_assert_int_eq(state_of("read.max<1ms"), EXPECT_UNMET);
}
END_TEST

START_TEST(what_too_few_samples_made_is_never_met)
{
	fake_bench_clear(fake->result);
	fake_bench_commands(fake->result, BENCH_READ, 9999, 1000);
	ck_assert_int_eq(state_of("p99.9<1s"), EXPECT_UNKNOWN);
	ck_assert(!expect_met(&expect, fake->result));
	fake_bench_commands(fake->result, BENCH_READ, 1, 1000);
	ck_assert_int_eq(state_of("p99.9<1s"), EXPECT_MET);
	ck_assert(expect_met(&expect, fake->result));
	/* Nothing was written: that has no small latency. */
	ck_assert_int_eq(state_of("write.mean<1s"), EXPECT_UNKNOWN);
	ck_assert_int_eq(state_of("write.max<1s"), EXPECT_UNKNOWN);
	ck_assert_int_eq(state_of("write.iops>0"), EXPECT_UNMET);
}
END_TEST

START_TEST(all_conditions_have_to_be_met_and_none_is_no_condition)
{
	ck_assert(expect_met(NULL, fake->result));
	ck_assert_int_eq(expect_parse("iops>1, mean<1s", &expect, &fault), 0);
	ck_assert(expect_met(&expect, fake->result));
	ck_assert_int_eq(expect_parse("iops>1, mean<1us", &expect, &fault), 0);
	ck_assert(!expect_met(&expect, fake->result));
}
END_TEST

START_TEST(values_have_their_units)
{
	static const struct {
		const char *text, *value;
	} cases[] = {
		{ "iops>1", "137,840 IOPS" },
		{ "MiB/s>1", "538.4 MiB/s" },
		{ "mean<1s", "1.5 ms" },
		{ "p99.9999<1s", "too few samples" },
	};
	char buf[64];

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct expect_answer answer;

		ck_assert_int_eq(expect_parse(cases[i].text, &expect, &fault), 0);
		answer = expect_judge(&expect.conditions[0], fake->result);
		ck_assert_str_eq(expect_value_text(&expect.conditions[0], &answer, buf,
						   sizeof(buf)),
				 cases[i].value);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("expect");
	TCase *tcase = tcase_create("expect");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, conditions_are_taken_exactly);
	tcase_add_test(tcase, lists_have_commas_and_may_have_blanks);
	tcase_add_test(tcase, anything_else_is_refused_with_what_is_allowed);
	tcase_add_test(tcase, each_comparison_has_its_edge);
	tcase_add_test(tcase, latencies_are_those_of_the_side);
	tcase_add_test(tcase, what_too_few_samples_made_is_never_met);
	tcase_add_test(tcase, all_conditions_have_to_be_met_and_none_is_no_condition);
	tcase_add_test(tcase, values_have_their_units);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
