/* SPDX-License-Identifier: MIT */
/* What a target says, before a terminal sees it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/base.h"
#include "core/clean.h"

START_TEST(only_printable_utf8_comes_out_at_the_same_length)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "", "" },
		{ "C:\\a \"b\"", "C:\\a \"b\"" },
		{ "Gr\xc3\xbc\xc3\x9f \xe2\x82\xac", "Gr\xc3\xbc\xc3\x9f \xe2\x82\xac" },
		{ "\033[31m\a\r\n\t\x7f", "?[31m?????" },
		{ "\xc2\x9b"
		  "1m",
		  "??1m" }, /* CSI of C1 */
		{ "a\xff\xc0\xaf", "a???" },
		{ "cut \xe2\x82", "cut ??" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		char text[32], *printed;
		size_t size;
		FILE *out = open_memstream(&printed, &size);

		strcpy(text, cases[i].in);
		clean_text(text);
		ck_assert_str_eq(text, cases[i].out);
		clean_put(out, cases[i].in);
		fclose(out);
		ck_assert_str_eq(printed, cases[i].out);
		free(printed);
	}
}
END_TEST

START_TEST(json_gets_every_text_and_loses_only_what_it_cannot_have)
{
	static const char *const cases[][2] = {
		{ "two\nlines \xc3\xbc", "two\nlines \xc3\xbc" },
		{ "two\nlines, caf\xe9", "two\nlines, caf?" },
		{ "cut \xe2\x82", "cut ??" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		json_t *string = clean_json(cases[i][0]);

		ck_assert_ptr_nonnull(string);
		ck_assert_str_eq(json_string_value(string), cases[i][1]);
		json_decref(string);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("clean");
	TCase *tcase = tcase_create("clean");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, only_printable_utf8_comes_out_at_the_same_length);
	tcase_add_test(tcase, json_gets_every_text_and_loses_only_what_it_cannot_have);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
