/* SPDX-License-Identifier: MIT */
/*
 * Measurements as JSON, held to tests/golden/bench-*.json.
 * YOKE_GOLDEN=write writes them anew; look at the difference before you commit it.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/json.h"
#include "tests/fake/fake_bench.h"

#define GOLDEN "tests/golden/"

static struct fake_bench *fake;
static struct outcome outcome;
static struct bench_fault fault;

static void setup(void)
{
	setenv("TZ", "XYZ-1", 1);
	tzset();
	fake = fake_bench();
	outcome = (struct outcome){
		.plan = &fake->plan, .result = fake->result, .point = 1, .repeat = 1, .spread = -1
	};
}

static void teardown(void)
{
	fake_bench_free(fake);
}

static void set_expect(struct expect *expect, const char *text)
{
	ck_assert_msg(expect_parse(text, expect, &fault) == 0, "%s", fault.text);
	outcome.expect = expect;
}

/* Everything but the machine that it was made on. */
static json_t *made(void)
{
	json_t *json, *host;

	outcome_judge(&outcome);
	json = json_outcome(&outcome);
	ck_assert_ptr_nonnull(json);
	host = json_object_get(json_object_get(json, "yoke"), "host");
	ck_assert_int_gt((int)json_string_length(json_object_get(host, "name")), 0);
	json_object_set_new(host, "name", json_string("client"));
	json_object_set_new(host, "kernel", json_string("6.1.0"));
	json_object_set_new(host, "machine", json_string("x86_64"));
	return json;
}

/* Streams side by side, failures, a check and a verification that found something. */
static void make_bad(struct expect *expect)
{
	struct bench_result *r = fake->result;

	fake->point.data = DATA_ZERO;
	fake->point.streams[1] = (struct bench_stream){ .pattern = PATTERN_ZIPF,
							.zipf_theta = 0.9,
							.block_bytes = 512,
							.read_percent = 100,
							.workers = 1,
							.depth = 1,
							.rate = 100 };
	fake->point.stream_count = 2;
	r->planned = 4200000;
	r->sessions[1].errors = 2;
	r->sessions[1].reconnects = 1;
	r->paths[1].errors = 2;
	r->paths[1].reconnects = 1;
	r->errors[0] = (struct bench_error){ "WRITE(16) timed out after 30 s", 2 };
	r->error_count = 1;
	r->luns[0].mapped = -1;
	r->luns[0].write_cache = true;
	r->link_bytes_s = 0;
	r->local = true;
	r->cross_check = (struct bench_cross_check){
		.done = true,
		.initiator = 4135200,
		.sessions = 4135200,
		.luns = 4135200,
		.disks = 4000000,
		.initiator_read_bytes = 11856445440,
		.disk_read_bytes = 11856445440,
		.disks_known = true,
		.deviation = 0.0327,
		.text = "initiator 4,135,200 = sessions = LUNs; disks 4,000,000"
	};
	outcome.spread = 0.04;
	outcome.verified = true;
	outcome.verify = (struct verify_counts){ .blocks_written = 1240560,
						 .blocks_read = 2894640,
						 .unknown = 2 };
	outcome.violation = "LUN 1 block 7: a lost write";
	set_expect(expect, "iops>=100k, write.p99.9<1ms, p99.9999<1s");
}

static void compare(const char *name, const json_t *json)
{
	const char *golden = getenv("YOKE_GOLDEN");
	char file[128];
	json_error_t error;
	json_t *wanted, *again;

	snprintf(file, sizeof(file), GOLDEN "%s", name);
	if (golden && strcmp(golden, "write") == 0)
		ck_assert_int_eq(json_write(file, json, &fault), 0);
	wanted = json_load_file(file, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(wanted != NULL, "%s:%d: %s", file, error.line, error.text);
	/* Through the file once: reals lose their last digits. */
	snprintf(file, sizeof(file), "%s/bench-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	close(mkstemp(file));
	ck_assert_int_eq(json_write(file, json, &fault), 0);
	again = json_load_file(file, JSON_REJECT_DUPLICATES, NULL);
	if (!json_equal(wanted, again))
		ck_abort_msg("%s differs: diff %s (kept)", name, file);
	unlink(file);
	json_decref(wanted);
	json_decref(again);
}

START_TEST(a_good_measurement_is_what_the_golden_file_says)
{
	json_t *json = made();

	compare("bench-good.json", json);
	json_decref(json);
}
END_TEST

START_TEST(a_bad_measurement_is_what_the_golden_file_says)
{
	struct expect expect;
	json_t *json;

	make_bad(&expect);
	json = made();
	compare("bench-bad.json", json);
	json_decref(json);
}
END_TEST

static const json_t *find(const json_t *json, const char *path)
{
	char copy[128], *at;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *word = strtok_r(copy, "/", &at); word && json; word = strtok_r(NULL, "/", &at))
		json = json_is_array(json) ? json_array_get(json, (size_t)atoi(word)) :
					     json_object_get(json, word);
	return json;
}

static double number(const json_t *json, const char *path)
{
	const json_t *value = find(json, path);

	ck_assert_msg(json_is_number(value), "%s", path);
	return json_number_value(value);
}

START_TEST(bins_hold_every_command_and_none_beyond_what_fio_knows)
{
	static const char *const sides[] = { "read", "write" };
	json_t *json;

	fake_bench_commands(fake->result, BENCH_READ, 3, 60 * NS_PER_S);
	json = made();
	for (unsigned i = 0; i < ARRAY_LEN(sides); i++) {
		char path[64];
		const char *key;
		json_t *value;
		double sum = 0;

		snprintf(path, sizeof(path), "jobs/0/%s/clat_ns/bins", sides[i]);
		json_object_foreach((json_t *)(uintptr_t)find(json, path), key, value) {
			ck_assert_uint_le(strtoull(key, NULL, 10), 17112760320u);
			sum += json_number_value(value);
		}
		snprintf(path, sizeof(path), "jobs/0/%s/total_ios", sides[i]);
		ck_assert_double_eq(sum, number(json, path));
	}
	ck_assert_double_eq(number(json, "jobs/0/read/lat_ns/bins/17112760320"), 3);
	ck_assert_double_eq(number(json, "jobs/0/read/lat_ns/max"), 60e9);
	json_decref(json);
}
END_TEST

START_TEST(a_side_without_commands_has_no_bins_and_no_latency)
{
	json_t *json;

	fake_bench_clear(fake->result);
	fake_bench_commands(fake->result, BENCH_READ, 900, 1000000);
	json = made();
	ck_assert_ptr_null(find(json, "jobs/0/write/clat_ns/bins"));
	ck_assert_ptr_null(find(json, "jobs/0/trim/lat_ns/percentile"));
	ck_assert(json_is_null(find(json, "yoke/sides/write/latency/mean_us")));
	ck_assert(json_is_null(find(json, "yoke/sides/write/latency/p99_us")));
	ck_assert_double_eq(number(json, "yoke/sides/read/latency/max_us"), 1000);
	/* 9 of 900 lie beyond p99, 90 beyond p90. */
	ck_assert(json_is_null(find(json, "yoke/sides/read/latency/p99_us")));
	ck_assert_double_eq_tol(number(json, "yoke/sides/read/latency/p90_us"), 1000, 10);
	json_decref(json);
}
END_TEST

START_TEST(clat_is_from_the_sending_and_lat_from_the_plan)
{
	json_t *json = made();
	double lat = number(json, "jobs/0/read/lat_ns/mean");
	double clat = number(json, "jobs/0/read/clat_ns/mean");

	ck_assert_double_eq_tol(lat - clat, 4000, 1);
	ck_assert_double_eq_tol(number(json, "jobs/0/read/slat_ns/mean"), 4000, 1);
	json_decref(json);
}
END_TEST

START_TEST(shares_of_latency_classes_are_a_hundred_percent)
{
	static const char *const classes[] = { "latency_ns", "latency_us", "latency_ms" };
	json_t *json = made();
	double sum = 0;

	for (unsigned i = 0; i < ARRAY_LEN(classes); i++) {
		const char *key;
		json_t *value;

		json_object_foreach(
			json_object_get(json_array_get(json_object_get(json, "jobs"), 0),
					classes[i]),
			key, value)
			sum += json_number_value(value);
	}
	ck_assert_double_eq_tol(sum, 100, 1e-6);
	ck_assert_double_eq(number(json, "jobs/0/iodepth_level/>=64"), 100);
	json_decref(json);
}
END_TEST

START_TEST(options_are_what_fio_would_have_been_told)
{
	static const struct {
		enum bench_pattern pattern;
		unsigned read_percent;
		uint32_t block;
		const char *rw, *bs;
	} cases[] = {
		{ PATTERN_RANDOM, 70, 4096, "randrw", "4k" },
		{ PATTERN_RANDOM, 100, 512, "randread", "512" },
		{ PATTERN_RANDOM, 0, 65536, "randwrite", "64k" },
		{ PATTERN_SEQUENTIAL, 100, 4096, "read", "4k" },
		{ PATTERN_SEQUENTIAL, 0, 4096, "write", "4k" },
		{ PATTERN_SEQUENTIAL, 50, 1048576, "rw", "1024k" },
		{ PATTERN_ZIPF, 100, 4096, "randread", "4k" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench_stream *s = &fake->point.streams[0];
		json_t *json;

		s->pattern = cases[i].pattern;
		s->read_percent = cases[i].read_percent;
		s->block_bytes = cases[i].block;
		json = made();
		ck_assert_str_eq(json_string_value(find(json, "jobs/0/job options/rw")),
				 cases[i].rw);
		ck_assert_str_eq(json_string_value(find(json, "jobs/0/job options/bs")),
				 cases[i].bs);
		json_decref(json);
	}
}
END_TEST

START_TEST(several_measurements_have_a_numbered_file_each)
{
	static const struct {
		const char *file;
		unsigned number, count;
		const char *name;
	} cases[] = {
		{ "run.json", 1, 1, "run.json" },
		{ "run.json", 2, 2, "run-2.json" },
		{ "run.json", 7, 12, "run-07.json" },
		{ "run.json", 112, 128, "run-112.json" },
		{ "a.b/run", 3, 4, "a.b/run-3" },
		{ "/tmp/a.b/run.x.json", 1, 10, "/tmp/a.b/run.x-01.json" },
		{ "dir/.hidden", 1, 2, "dir/.hidden-1" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		char name[64];

		json_file_name(cases[i].file, cases[i].number, cases[i].count, name, sizeof(name));
		ck_assert_str_eq(name, cases[i].name);
	}
}
END_TEST

START_TEST(texts_that_are_not_utf8_lose_those_bytes_and_nothing_else)
{
	static const struct {
		const char *path, *text;
	} cases[] = {
		{ "yoke/point/name", "4K ?" },
		{ "jobs/0/jobname", "4K ?" },
		{ "jobs/0/job options/name", "4K ?" },
		{ "yoke/target/initiator", "iqn.2026-11.org.yoke:?" },
		{ "yoke/target/portals/0/address", "192.0.2.?:3260" },
		{ "yoke/target/portals/1/target", "iqn.2026-11.org.yoke:\"??\\" },
		{ "yoke/paths/0/address", "192.0.2.?:3260" },
		{ "yoke/paths/1/target", "iqn.2026-11.org.yoke:\"??\\" },
		{ "yoke/errors/0/text", "path lost: ?" },
		{ "yoke/cross_check/text", "not compared: ?" },
		{ "yoke/verify/violation", "?" },
	};
	struct bench_setup *plan = &fake->plan.setup;
	json_t *json;

	snprintf(fake->point.name, sizeof(fake->point.name), "4K \xe9");
	snprintf(plan->initiator, sizeof(plan->initiator), "iqn.2026-11.org.yoke:\xff");
	snprintf(plan->portals[0].address, sizeof(plan->portals[0].address), "192.0.2.\xff:3260");
	snprintf(plan->portals[1].target, sizeof(plan->portals[1].target),
		 "iqn.2026-11.org.yoke:\"\xe2\x82\\");
	fake->result->errors[0] = (struct bench_error){ "path lost: \xc0", 7 };
	fake->result->error_count = 1;
	fake->result->sessions[0].errors = 7;
	snprintf(fake->result->cross_check.text, sizeof(fake->result->cross_check.text),
		 "not compared: \xff");
	outcome.verified = true;
	outcome.violation = "\xff";
	json = made();
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		const char *text = json_string_value(find(json, cases[i].path));

		ck_assert_msg(text != NULL, "%s is missing", cases[i].path);
		ck_assert_str_eq(text, cases[i].text);
	}
	ck_assert_double_eq(number(json, "yoke/errors/0/count"), 7);
	/* The first warning quotes the error. */
	ck_assert_ptr_nonnull(
		strstr(json_string_value(find(json, "yoke/warnings/0/text")), "path lost: ?"));
	json_decref(json);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_told_and_leaves_nothing)
{
	json_t *json = json_object();

	ck_assert_int_eq(json_write("/nonexistent/run.json", json, &fault), -ENOENT);
	ck_assert_str_eq(fault.text,
			 "/nonexistent/run.json: No such file or directory. Name a file "
			 "that can be written");
	ck_assert_int_eq(json_write("/dev/full/x", json, &fault), -ENOTDIR);
	json_decref(json);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bench_json");
	TCase *tcase = tcase_create("json");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_good_measurement_is_what_the_golden_file_says);
	tcase_add_test(tcase, a_bad_measurement_is_what_the_golden_file_says);
	tcase_add_test(tcase, bins_hold_every_command_and_none_beyond_what_fio_knows);
	tcase_add_test(tcase, a_side_without_commands_has_no_bins_and_no_latency);
	tcase_add_test(tcase, clat_is_from_the_sending_and_lat_from_the_plan);
	tcase_add_test(tcase, shares_of_latency_classes_are_a_hundred_percent);
	tcase_add_test(tcase, options_are_what_fio_would_have_been_told);
	tcase_add_test(tcase, several_measurements_have_a_numbered_file_each);
	tcase_add_test(tcase, texts_that_are_not_utf8_lose_those_bytes_and_nothing_else);
	tcase_add_test(tcase, a_file_that_cannot_be_written_is_told_and_leaves_nothing);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
