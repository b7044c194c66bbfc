/* SPDX-License-Identifier: MIT */
/* The page of a report as text; tests/e2e/test_bench_report*.sh look at it as a page. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/json.h"
#include "bench/report.h"
#include "tests/fake/fake_bench.h"

static struct bench_fault fault;

/* The page of REPORT; the caller frees it. */
static char *page_of(const struct report *report)
{
	char file[256], *text;
	size_t size;
	FILE *f;
	int fd;

	snprintf(file, sizeof(file), "%s/report-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	fd = mkstemp(file);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_msg(report_write(file, report, &fault) == 0, "%s", fault.text);
	f = fopen(file, "r");
	ck_assert_ptr_nonnull(f);
	text = calloc(1, 1 << 20);
	ck_assert_ptr_nonnull(text);
	size = fread(text, 1, (1 << 20) - 1, f);
	ck_assert_uint_gt(size, 0);
	ck_assert_uint_lt(size, (1 << 20) - 1);
	fclose(f);
	unlink(file);
	return text;
}

static json_t *measured(void)
{
	struct fake_bench *fake = fake_bench();
	struct outcome outcome = {
		.plan = &fake->plan, .result = fake->result, .point = 1, .repeat = 1, .spread = -1
	};
	json_t *json;

	outcome_judge(&outcome);
	json = json_outcome(&outcome);
	ck_assert_ptr_nonnull(json);
	fake_bench_free(fake);
	return json;
}

static unsigned count_of(const char *text, const char *what)
{
	unsigned count = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		count++;
	return count;
}

START_TEST(what_is_measured_is_accepted)
{
	json_t *json = measured();

	ck_assert_msg(report_check(json, "x", &fault) == 0, "%s", fault.text);
	json_decref(json);
}
END_TEST

START_TEST(all_marks_are_replaced_and_the_page_ends)
{
	struct report_run run = { .json = measured() };
	char *page = page_of(&(struct report){ .runs = &run, .count = 1 });

	ck_assert_ptr_null(strstr(page, "@data@"));
	ck_assert_ptr_null(strstr(page, ".css@"));
	ck_assert_ptr_null(strstr(page, ".js@"));
	ck_assert_ptr_nonnull(strstr(page, "prefers-color-scheme: dark"));
	ck_assert_ptr_nonnull(strstr(page, "\npage();\n</script>\n"));
	ck_assert_str_eq(page + strlen(page) - strlen("</body>\n</html>\n"), "</body>\n</html>\n");
	ck_assert_ptr_nonnull(strstr(page, "{\"runs\":[{\"name\":null,\"json\":{"));
	ck_assert_ptr_nonnull(strstr(page, "}],\n\"against\":[]}\n</script>"));
	free(page);
	json_decref(run.json);
}
END_TEST

START_TEST(both_sides_are_in_the_page_in_their_order)
{
	json_t *json = measured();
	struct report_run a[] = { { json, "a1" }, { json, "a2" } }, b[] = { { json, "b1" } };
	char *page = page_of(
		&(struct report){ .runs = a, .count = 2, .against = b, .against_count = 1 });
	const char *first = strstr(page, "{\"runs\":[{\"name\":\"a1\""), *second, *third;

	ck_assert_ptr_nonnull(first);
	second = strstr(first, "},\n{\"name\":\"a2\"");
	ck_assert_ptr_nonnull(second);
	third = strstr(second, "\"against\":[{\"name\":\"b1\"");
	ck_assert_ptr_nonnull(third);
	free(page);
	json_decref(json);
}
END_TEST

START_TEST(a_name_cannot_end_the_data)
{
	json_t *json = measured();
	struct report_run run = { .json = json, .name = "</script><script>1" };
	json_t *point = json_object_get(json_object_get(json, "yoke"), "point");
	struct report report = { .runs = &run, .count = 1 };
	unsigned ends;
	char *page;

	page = page_of(&report);
	ends = count_of(page, "</script");
	free(page);
	json_object_set_new(point, "name", json_string("</script><!-- \xe2\x80\xa8 \xc3\xa9 \"'"));
	page = page_of(&report);
	ck_assert_uint_eq(ends, 2);
	ck_assert_uint_eq(count_of(page, "</script"), ends);
	ck_assert_ptr_nonnull(strstr(page, "\"name\":\"\\u003c/script>\\u003c!-- \\u2028 \\u00E9 "
					   "\\\"'\""));
	ck_assert_ptr_nonnull(strstr(page, "\"name\":\"\\u003c/script>\\u003cscript>1\""));
	free(page);
	json_decref(json);
}
END_TEST

START_TEST(a_file_name_that_is_not_utf8_is_left_out)
{
	struct report_run run = { .json = measured(), .name = "\xff.json" };
	char *page = page_of(&(struct report){ .runs = &run, .count = 1 });

	ck_assert_ptr_nonnull(strstr(page, "{\"runs\":[{\"name\":null,"));
	free(page);
	json_decref(run.json);
}
END_TEST

/* Each member that a page cannot do without, missing and of another type. */
START_TEST(what_is_no_measurement_is_refused)
{
	static const char *const needed[][4] = {
		{ "yoke" },
		{ "yoke", "schema" },
		{ "yoke", "meaningful" },
		{ "yoke", "point" },
		{ "yoke", "point", "name" },
		{ "yoke", "point", "streams" },
		{ "yoke", "sides", "total" },
		{ "yoke", "sides", "total", "iops" },
	};
	json_t *json = measured();

	for (unsigned i = 0; i < ARRAY_LEN(needed) * 2; i++) {
		json_t *copy = json_deep_copy(json), *at = copy;
		const char *const *key = needed[i / 2];

		while (key + 1 < needed[i / 2] + 4 && key[1])
			at = json_object_get(at, *key++);
		if (i % 2)
			json_object_set_new(at, *key, json_null());
		else
			json_object_del(at, *key);
		ck_assert_msg(report_check(copy, "x.json", &fault) == -EINVAL, "%s", *key);
		ck_assert_msg(strncmp(fault.text, "x.json: ", 8) == 0, "%s", fault.text);
		json_decref(copy);
	}
	json_decref(json);
	json = json_array();
	ck_assert_int_eq(report_check(json, "x.json", &fault), -EINVAL);
	json_decref(json);
}
END_TEST

START_TEST(another_schema_is_refused_by_name)
{
	json_t *json = measured();

	json_object_set_new(json_object_get(json, "yoke"), "schema", json_string("yoke.bench/10"));
	ck_assert_int_eq(report_check(json, "x.json", &fault), -EINVAL);
	ck_assert_str_eq(fault.text, "x.json: its schema is \"yoke.bench/10\", not "
				     "\"yoke.bench/1\". Use the yoke-bench that wrote it");
	json_decref(json);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("report");
	TCase *tc = tcase_create("report");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tc, what_is_measured_is_accepted);
	tcase_add_test(tc, all_marks_are_replaced_and_the_page_ends);
	tcase_add_test(tc, both_sides_are_in_the_page_in_their_order);
	tcase_add_test(tc, a_name_cannot_end_the_data);
	tcase_add_test(tc, a_file_name_that_is_not_utf8_is_left_out);
	tcase_add_test(tc, what_is_no_measurement_is_refused);
	tcase_add_test(tc, another_schema_is_refused_by_name);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
