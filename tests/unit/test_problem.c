/* SPDX-License-Identifier: MIT */
/* The catalogue is whole, and yoke-codes(7) tells the same. */
#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/problem.h"

START_TEST(every_code_says_what_it_means_what_hosts_see_and_what_to_do)
{
	for (unsigned i = 0; i < PROBLEM_COUNT; i++) {
		const struct problem_entry *e = problem_entry((enum problem_code)i);
		const char *texts[] = { e->means, e->hosts, e->what_to_do };

		ck_assert_ptr_nonnull(e->name);
		for (const char *c = e->name; *c; c++)
			ck_assert_msg(islower((unsigned char)*c) || *c == '-', "%s", e->name);
		for (unsigned j = 0; j < ARRAY_LEN(texts); j++) {
			ck_assert_ptr_nonnull(texts[j]);
			ck_assert_msg(texts[j][strlen(texts[j]) - 1] == '.', "%s", texts[j]);
			ck_assert_ptr_null(strstr(texts[j], "  "));
		}
		ck_assert_ptr_eq(problem_find(e->name), e);
		if (i)
			ck_assert_str_gt(e->name, problem_entry((enum problem_code)(i - 1))->name);
	}
	ck_assert_ptr_null(problem_find("backing"));
	ck_assert_ptr_null(problem_find(""));
}
END_TEST

START_TEST(a_problem_becomes_a_row)
{
	struct problem problem = {
		.code = PROBLEM_BACKING_FULL,
		.object = "image",
		.detail = "no room on /srv",
		.risk = "new blocks fail",
		.doing = "",
		.what_to_do = "rm /srv/junk",
		.since_s = 1796043731,
	};
	json_t *row = problem_json(&problem);
	char *text = json_dumps(row, JSON_COMPACT);

	ck_assert_str_eq(text,
			 "{\"code\":\"backing-full\",\"severity\":\"CRIT\",\"object\":\"image\","
			 "\"detail\":\"no room on /srv\",\"risk\":\"new blocks fail\","
			 "\"doing\":\"\",\"do\":\"rm /srv/junk\","
			 "\"since_utc\":\"2026-11-30T13:02:11Z\"}");
	free(text);
	json_decref(row);

	problem.what_to_do = "";
	row = problem_json(&problem);
	ck_assert_str_eq(json_string_value(json_object_get(row, "do")),
			 problem_entry(PROBLEM_BACKING_FULL)->what_to_do);
	json_decref(row);

	/* Cut inside of a character it is told all the same. */
	problem.object = "im\xe2";
	problem.detail = "no room on /srv/\xe2\x82";
	problem.what_to_do = "rm /srv/\xe2";
	row = problem_json(&problem);
	ck_assert_str_eq(json_string_value(json_object_get(row, "object")), "im?");
	ck_assert_str_eq(json_string_value(json_object_get(row, "detail")), "no room on /srv/??");
	ck_assert_str_eq(json_string_value(json_object_get(row, "do")), "rm /srv/?");
	json_decref(row);
}
END_TEST

START_TEST(health_is_that_of_the_worst)
{
	static const struct {
		const char *rows, *health;
	} cases[] = {
		{ "[]", "OK" },
		{ "[{\"severity\":\"WARN\"}]", "WARN" },
		{ "[{\"severity\":\"WARN\"},{\"severity\":\"CRIT\"},{\"severity\":\"WARN\"}]",
		  "CRIT" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		json_t *rows = json_loads(cases[i].rows, 0, NULL);

		ck_assert_str_eq(problem_health(rows), cases[i].health);
		json_decref(rows);
	}
}
END_TEST

/* The page with line ends as spaces and scdoc's backslashes and underlines gone. */
static char *read_page(const char *path)
{
	static char page[65536];
	FILE *f = fopen(path, "r");
	size_t len = 0;
	int c;

	ck_assert_ptr_nonnull(f);
	while ((c = getc(f)) != EOF && len < sizeof(page) - 1) {
		if (c == '\\' || c == '*')
			continue;
		if (c == '\t' || c == '\n')
			c = ' ';
		if (c != ' ' || len == 0 || page[len - 1] != ' ')
			page[len++] = (char)c;
	}
	page[len] = '\0';
	fclose(f);
	return page;
}

START_TEST(the_manual_has_every_code_word_for_word)
{
	const char *page = read_page("man/yoke-codes.7.scd");
	const char *at;

	for (unsigned i = 0; i < PROBLEM_COUNT; i++) {
		const struct problem_entry *e = problem_entry((enum problem_code)i);
		char wanted[2048];

		snprintf(wanted, sizeof(wanted), "## %s (%s) %s Hosts see: %s Do: %s", e->name,
			 problem_severity_name(e->severity), e->means, e->hosts, e->what_to_do);
		at = strstr(page, wanted);
		ck_assert_msg(at != NULL, "yoke-codes(7) lacks: %s", wanted);
	}
	at = page;
	for (unsigned i = 0; i < PROBLEM_COUNT; i++)
		at = strstr(at, "## ") + 3;
	ck_assert_msg(strstr(at, "## ") == NULL,
		      "yoke-codes(7) has a code that is not in the catalogue");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("problem");
	TCase *tcase = tcase_create("problem");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, every_code_says_what_it_means_what_hosts_see_and_what_to_do);
	tcase_add_test(tcase, a_problem_becomes_a_row);
	tcase_add_test(tcase, health_is_that_of_the_worst);
	tcase_add_test(tcase, the_manual_has_every_code_word_for_word);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
