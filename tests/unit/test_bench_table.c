/* SPDX-License-Identifier: MIT */
/*
 * What measurements look like to people and to spreadsheets, held to tests/golden/bench-*.txt.
 * YOKE_GOLDEN=write writes them anew; look at the difference before you commit it.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "bench/csv.h"
#include "bench/table.h"
#include "tests/fake/fake_bench.h"

#define GOLDEN "tests/golden/"

static struct fake_bench *fake;
static struct bench_result *r;
static struct outcome outcome;
static struct expect expect;
static char *text;
static size_t size;
static FILE *out;

static void setup(void)
{
	fake = fake_bench();
	r = fake->result;
	outcome = (struct outcome){
		.plan = &fake->plan, .result = r, .point = 1, .repeat = 1, .spread = -1
	};
	out = open_memstream(&text, &size);
}

static void teardown(void)
{
	fake_bench_free(fake);
	fclose(out);
	free(text);
}

static void make_expect(const char *conditions)
{
	struct bench_fault fault;

	ck_assert_msg(expect_parse(conditions, &expect, &fault) == 0, "%s", fault.text);
	outcome.expect = &expect;
}

static void make_good(void)
{
	r->cross_check = (struct bench_cross_check){
		.done = true,
		.initiator = 4135200,
		.sessions = 4135200,
		.luns = 4135200,
		.disks = 4135200,
		.initiator_read_bytes = 11856445440,
		.disk_read_bytes = 11856445440,
		.disks_known = true,
		.text = "initiator 4,135,200 = sessions = LUNs = disks"
	};
}

static void make_bad(void)
{
	r->sessions[1].errors = r->paths[1].errors = 2;
	r->sessions[1].reconnects = r->paths[1].reconnects = 1;
	r->errors[0] = (struct bench_error){ "WRITE(16) timed out after 30 s \033[31m", 2 };
	r->error_count = 1;
	r->threads[1].cpu = 0.97;
	r->luns[0].mapped = 0.312;
	r->local = true;
	make_expect("iops>=100k, write.p99.9<1ms, p99.9999<1s");
	outcome.verified = true;
	outcome.verify = (struct verify_counts){ .blocks_written = 1240560,
						 .blocks_read = 2894640,
						 .unknown = 2 };
	outcome.violation = "LUN 1 block 7: a lost write";
}

/* Few reads and no writes: percentiles that nobody knows. */
static void make_small(void)
{
	fake_bench_clear(r);
	fake_bench_commands(r, BENCH_READ, 900, 42000);
	fake->point.streams[0].read_percent = 100;
	fake->point.streams[1] = fake->point.streams[0];
	fake->point.stream_count = 2;
	fake->plan.profile[0] = '\0';
	fake->plan.point_count = 3;
	fake->plan.repeat = 2;
	r->measured_s = 3;
	r->cpu_user_s = r->cpu_system_s = 1;
	fake_bench_shorten(r, 3);
	fake_bench_settle(r);
	r->session_count = 1;
}

static const struct {
	const char *name;
	void (*make)(void);
	unsigned width;
	bool color;
} shows[] = {
	{ "bench-good", make_good, 80, false },   { "bench-good", make_good, 0, false },
	{ "bench-bad", make_bad, 0, false },      { "bench-bad", make_bad, 60, true },
	{ "bench-small", make_small, 80, false },
};

static char *read_file(const char *name)
{
	char *content = calloc(1, 65536);
	FILE *f = fopen(name, "r");

	if (f) {
		ck_assert_uint_lt(fread(content, 1, 65535, f), 65535);
		fclose(f);
	}
	return content;
}

static void compare(const char *name)
{
	const char *golden = getenv("YOKE_GOLDEN");
	char file[128], *wanted;

	fflush(out);
	snprintf(file, sizeof(file), GOLDEN "%s.txt", name);
	if (golden && strcmp(golden, "write") == 0) {
		FILE *f = fopen(file, "w");

		fputs(text, f);
		fclose(f);
	}
	wanted = read_file(file);
	ck_assert_str_eq(text, wanted);
	free(wanted);
}

static const char *const transcripts[] = { "bench-good", "bench-bad", "bench-small" };

START_TEST(what_is_shown_is_what_the_transcript_says)
{
	for (unsigned i = 0; i < ARRAY_LEN(shows); i++) {
		const struct table_output output = { out, shows[i].color, shows[i].width };

		if (strcmp(shows[i].name, transcripts[_i]) != 0)
			continue;
		fake_bench_free(fake);
		fake = fake_bench();
		r = fake->result;
		outcome.result = r;
		shows[i].make();
		outcome_judge(&outcome);
		fprintf(out, "(%u columns%s)\n", shows[i].width, shows[i].color ? ", colour" : "");
		table_outcome(&output, &outcome);
		fputc('\n', out);
	}
	compare(transcripts[_i]);
}
END_TEST

START_TEST(rows_of_points_and_of_spreadsheets_are_what_the_transcript_says)
{
	const struct table_output output = { out, false, 0 };
	struct outcome outcomes[2];

	outcome_judge(&outcome);
	outcomes[0] = outcomes[1] = outcome;
	outcomes[1].verdict.meaningful = false;
	outcomes[1].verdict.reason_count = 2;
	outcomes[1].verdict.reasons[0].code = "cache";
	outcomes[1].verdict.reasons[1].code = "depth";
	table_points(&output, outcomes, 2);
	snprintf(fake->point.name, sizeof(fake->point.name), "a \"b\", c");
	fputc('\n', out);
	csv_summary_head(out);
	csv_summary(out, &outcomes[0]);
	csv_summary(out, &outcomes[1]);
	fputc('\n', out);
	fake_bench_shorten(r, 3);
	csv_series_head(out, r->setup);
	csv_series(out, &outcomes[0]);
	compare("bench-rows");
}
END_TEST

START_TEST(every_row_has_as_many_values_as_its_heading)
{
	unsigned want = 0;

	make_small();
	outcome_judge(&outcome);
	csv_summary_head(out);
	csv_summary(out, &outcome);
	fflush(out);
	for (char *at, *line = strtok_r(text, "\n", &at); line; line = strtok_r(NULL, "\n", &at)) {
		unsigned commas = 0;

		for (char *c = line; *c; c++)
			commas += *c == ',';
		want = want ? want : commas;
		ck_assert_uint_eq(commas, want);
	}
	ck_assert_uint_eq(want, 21);
}
END_TEST

START_TEST(a_column_is_named_by_its_portal_whatever_a_target_calls_that)
{
	snprintf(fake->plan.setup.portals[1].address, sizeof(fake->plan.setup.portals[1].address),
		 "a,\"b\"\n\x9b:1");
	csv_series_head(out, r->setup);
	fflush(out);
	ck_assert_ptr_nonnull(strstr(text, ",iops 192.0.2.1:3260,\"iops a,\"\"b\"\"??:1\"\n"));
}
END_TEST

START_TEST(on_any_width_nothing_is_cut)
{
	make_bad();
	outcome_judge(&outcome);
	for (unsigned width = 20; width <= 160; width++) {
		const struct table_output output = { out, false, width };

		rewind(out);
		table_outcome(&output, &outcome);
		fputc('\0', out);
		fflush(out);
		ck_assert_ptr_nonnull(strstr(text, "192.0.2.2:3260 49.9 % p99 "));
		ck_assert_ptr_nonnull(
			strstr(text, "NOT MEANINGFUL: errors, short, unmapped, client-bound"));
		ck_assert_ptr_nonnull(strstr(text, "137,840"));
		ck_assert_ptr_nonnull(strstr(text, "2 x WRITE(16) timed out after 30 s ?[31m"));
	}
}
END_TEST

START_TEST(a_run_is_good_if_it_is_as_expected_verified_and_counted)
{
	make_expect("iops>1");
	outcome_judge(&outcome);
	ck_assert(outcome.good);
	/* As expected but not meaningful, which without an expectation would be all right. */
	r->sessions[0].retries = 1;
	outcome_judge(&outcome);
	ck_assert(!outcome.good);
	outcome.expect = NULL;
	outcome_judge(&outcome);
	ck_assert(outcome.good && !outcome.verdict.meaningful);
	outcome.violation = "stale";
	outcome_judge(&outcome);
	ck_assert(!outcome.good);
	outcome.violation = NULL;
	r->cross_check = (struct bench_cross_check){ .done = true, .deviation = 0.02 };
	outcome_judge(&outcome);
	ck_assert(!outcome.good);
	r->cross_check.deviation = 0.01;
	make_expect("iops<1");
	r->sessions[0].retries = 0;
	outcome_judge(&outcome);
	ck_assert(!outcome.good && outcome.verdict.meaningful);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bench_table");
	TCase *tcase = tcase_create("table");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, what_is_shown_is_what_the_transcript_says, 0,
			    ARRAY_LEN(transcripts));
	tcase_add_test(tcase, rows_of_points_and_of_spreadsheets_are_what_the_transcript_says);
	tcase_add_test(tcase, a_column_is_named_by_its_portal_whatever_a_target_calls_that);
	tcase_add_test(tcase, every_row_has_as_many_values_as_its_heading);
	tcase_add_test(tcase, on_any_width_nothing_is_cut);
	tcase_add_test(tcase, a_run_is_good_if_it_is_as_expected_verified_and_counted);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
