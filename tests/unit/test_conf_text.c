/* SPDX-License-Identifier: MIT */
/* The edges of the text: comments, braces, strings, bytes, limits; and their lines. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/conf_int.h"

static const struct {
	const char *text;
	const char *refusal;
} bad[] = {
	{ "node \"a\" {\n", "yoke.conf:1: node: never closed. Add a }" },
	{ "node \"a\" { }\n}\n", "yoke.conf:2: } closes nothing. Remove it" },
	{ "node \"a\n\" { }\n", "yoke.conf:1: string is not closed on its line. Add a \"" },
	{ "/* one\n\nnode \"a\" { }\n", "yoke.conf:1: comment is never closed. Add */" },
	{ "node \"a\" { control = \"${HOME}/x\" }\n",
	  "yoke.conf:1: ${...} is not replaced here. Write it out" },
	{ "node \"a\" { control = ${HOME} }\n",
	  "yoke.conf:1: ${...} is not replaced here. Write it out" },
	{ "node \"a\" { disks += { \"/x\" } }\n",
	  "yoke.conf:1: += is not supported. Write one list with =" },
	{ "node \"a\" { number = 1\n number = 2 }\n",
	  "yoke.conf:2: number: set already in line 1. Remove one" },
	{ "node \"a\" { }\nportal \"p\" { listen = { \"127.0.0.1:3260\" } group = 1 }\n\nportal \"p\" { listen = { \"127.0.0.1:3260\" } group = 1 }\n",
	  "yoke.conf:4: portal \"p\": also in line 2. Remove one" },
	{ "node \"a\" { }\nnode \"a\" { }\n",
	  "yoke.conf:2: node \"a\": also in line 1. Remove one" },
	{ "node \"a\" { }\nnode \"b\" { }\n",
	  "yoke.conf:2: node \"b\": a second node, the first is in line 1. Remove one" },
	{ "", "yoke.conf: no node section. Add node \"NAME\" { }" },
	{ "# nothing\n", "yoke.conf: no node section. Add node \"NAME\" { }" },
	{ "node 'a' { }\n", "yoke.conf:1: unexpected '. Quote text like \"this\"" },
	{ "node \"a\" { control = /run/x }\n",
	  "yoke.conf:1: unexpected /. Quote text like \"this\"" },
	{ "node \"a\" { number 1 }\n",
	  "yoke.conf:1: found } after number. Settings are name = value, sections name \"title\" { }" },
	{ "node \"a\" { number = }\n", "yoke.conf:1: found } where a value should be" },
	{ "node \"a\" { number = { 1 }\n", "yoke.conf:1: node: never closed. Add a }" },
	{ "node \"a\" { disks = { \"/a\" \"/b\" } }\n",
	  "yoke.conf:1: found /b where a comma or } should be" },
	{ "node \"a\" { disks = { = } }\n", "yoke.conf:1: found = where a value should be" },
	{ "node \"a\" { disks = { \"/a\"\n", "yoke.conf:1: disks: file ends in the middle of it" },
	{ "\"node\" \"a\" { }\n",
	  "yoke.conf:1: found node where a setting or a section should be" },
	{ "= 1\n", "yoke.conf:1: found = where a setting or a section should be" },
	{ "node \"a\" \"b\" { }\n",
	  "yoke.conf:1: found b after node. Settings are name = value, sections name \"title\" { }" },
	{ "node\n", "yoke.conf:1: node: file ends in the middle of it" },
	{ "node \"a\"\n", "yoke.conf:1: node: file ends in the middle of it" },
	{ "node \"a\" { control = \"\\x41\" }\n",
	  "yoke.conf:1: \\ in a string. Write \\\\ for it, \\\" for a quote" },
	{ "node \"a\" { include(\"x\") }\n",
	  "yoke.conf:1: unexpected (. Quote text like \"this\"" },
	{ "a { a { a { a { } } } }\n", "yoke.conf:1: a: nested too deeply. Is a } missing above?" },
};

static struct conf_error error;
static struct conf *conf;

static int parse(const char *text, size_t len)
{
	conf = NULL;
	return conf_parse("yoke.conf", text, len, &conf, &error);
}

START_TEST(wrong_text_is_refused_with_its_line_cause_and_remedy)
{
	ck_assert_int_eq(parse(bad[_i].text, strlen(bad[_i].text)), -EINVAL);
	ck_assert_str_eq(error.text, bad[_i].refusal);
	ck_assert_ptr_null(conf);
}
END_TEST

START_TEST(every_byte_that_is_not_text_is_refused_at_its_line)
{
	for (int c = 0; c < 256; c++) {
		char text[] = "# one\n# two ? three\nnode \"a\" { }\n";
		bool good = (c >= 0x20 && c < 0x7f) || c == '\t' || c == '\n';
		char wanted[80];

		*strchr(text, '?') = (char)c;
		snprintf(wanted, sizeof(wanted),
			 "yoke.conf:2: byte 0x%02x is not text. Write plain UTF-8", c);
		if (c == '\n') /* the rest of the comment is no longer one */
			snprintf(wanted, sizeof(wanted), "yoke.conf:4: found node where ");
		ck_assert_int_eq(parse(text, sizeof(text) - 1), good && c != '\n' ? 0 : -EINVAL);
		if (!good)
			ck_assert_str_eq(error.text, wanted);
		conf_free(conf);
	}
}
END_TEST

START_TEST(utf8_is_taken_and_its_forgeries_are_not)
{
	static const struct {
		const char *bytes;
		bool good;
	} cases[] = {
		{ "\xc3\xa4", true },          { "\xe2\x82\xac", true },
		{ "\xf0\x9f\x90\x82", true },  { "\xf4\x8f\xbf\xbf", true },
		{ "\xc0\x80", false },         { "\xc3", false },
		{ "\xe0\x80\x80", false },     { "\xed\xa0\x80", false },
		{ "\xf0\x80\x80\x80", false }, { "\xf4\x90\x80\x80", false },
		{ "\xf8\x88\x80\x80", false }, { "\x80", false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		char text[64];

		snprintf(text, sizeof(text), "node \"a\" { } # %s", cases[i].bytes);
		ck_assert_int_eq(parse(text, strlen(text)), cases[i].good ? 0 : -EINVAL);
		conf_free(conf);
	}
}
END_TEST

START_TEST(comments_of_all_kinds_go_and_leave_lines_and_strings_alone)
{
	static const char text[] = "/* one\n { two */ node // \"three\n"
				   "# four {\r\n"
				   "\"a\" { disks = { \"/srv/#x//y/*z\", /* } */ \"/b\" }\n"
				   "\tnumber = 2# end\n"
				   "\n"
				   "} /**/ portal \"p\" { group = 0 }\n";

	ck_assert_int_eq(parse(text, sizeof(text) - 1), -EINVAL);
	ck_assert_str_eq(error.text, "yoke.conf:7: portal \"p\": no listen, nobody could reach it. "
				     "Add listen = { \"ADDRESS:3260\" }");
	ck_assert_int_eq(parse(text, (size_t)(strstr(text, "portal") - text)), 0);
	ck_assert_uint_eq(conf->node.number, 2);
	ck_assert_uint_eq(conf->node.disks.count, 2);
	ck_assert_str_eq(conf->node.disks.items[0], "/srv/#x//y/*z");
	ck_assert_int_eq(conf->node.line, 2);
	conf_free(conf);
}
END_TEST

START_TEST(quotes_and_backslashes_can_be_written)
{
	static const char text[] = "node \"a\" { state_dir = \"/a \\\"b\\\" \\\\c\" }";

	ck_assert_int_eq(parse(text, sizeof(text) - 1), 0);
	ck_assert_str_eq(conf->node.state_dir, "/a \"b\" \\c");
	conf_free(conf);
}
END_TEST

static char *repeat(const char *head, const char *piece, unsigned n, const char *tail)
{
	size_t len = strlen(piece);
	char *text = malloc(strlen(head) + n * len + strlen(tail) + 1);
	char *at = stpcpy(text, head);

	for (unsigned i = 0; i < n; i++)
		at = stpcpy(at, piece);
	strcpy(at, tail);
	return text;
}

START_TEST(limits_are_refused_by_name)
{
	static const struct {
		const char *head, *piece;
		unsigned n;
		const char *tail, *refusal;
		int err;
	} cases[] = {
		{ "node \"", "x", 1024, "\" { }", "yoke.conf:1: string is longer than 1023 bytes",
		  -EINVAL },
		{ "", "x", 1024, " { }", "yoke.conf:1: word is longer than 1023 bytes", -EINVAL },
		{ "\n", " ", 65537, "", "yoke.conf:2: line is longer than 65536 bytes. Break it",
		  -EINVAL },
		{ "", "a {\n", 100000, "",
		  "yoke.conf:4: a: nested too deeply. Is a } missing above?", -EINVAL },
		{ "", "a{}\n", 20000, "", "yoke.conf:16384: more than 16383 sections", -EINVAL },
		{ "node \"a\" {\n", "a = 1\n", 262145, "}",
		  "yoke.conf:262146: more than 262144 settings", -EINVAL },
		{ "a = {\n", "1,\n", 262145, "}", "yoke.conf:262146: more than 262144 values",
		  -EINVAL },
		{ "", "#\n", 2097153, "", "yoke.conf: larger than 4 MiB. Is this a configuration?",
		  -EFBIG },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		char *text = repeat(cases[i].head, cases[i].piece, cases[i].n, cases[i].tail);

		ck_assert_int_eq(parse(text, strlen(text)), cases[i].err);
		ck_assert_str_eq(error.text, cases[i].refusal);
		free(text);
	}
}
END_TEST

START_TEST(lines_are_found_for_sections_settings_and_values)
{
	static const char source[] = "node \"a\" {\n"
				     "  disks = {\n"
				     "    \"/one\",\n"
				     "    \"/two\" }\n"
				     "}\n"
				     "target \"t\" {\n"
				     "  lun \"0\"\n"
				     "  {\n"
				     "    backing =\n"
				     "      \"b\"\n"
				     "  }\n"
				     "}\n";
	struct conf_text text;

	ck_assert_int_eq(conf_text_scan(&text, "f", source, sizeof(source) - 1, &error), 0);
	ck_assert_uint_eq(text.section_count, 4);
	ck_assert_int_eq(text.sections[1].line, 1);
	ck_assert_int_eq(text.sections[2].line, 6);
	ck_assert_int_eq(text.sections[3].line, 7);
	ck_assert_uint_eq(text.sections[3].parent, 2);
	ck_assert_int_eq(conf_text_line(&text, 1, "disks", 0), 3);
	ck_assert_int_eq(conf_text_line(&text, 1, "disks", 1), 4);
	ck_assert_int_eq(conf_text_line(&text, 1, "disks", 2), 2);
	ck_assert_int_eq(conf_text_line(&text, 3, "backing", 0), 10);
	ck_assert_int_eq(conf_text_line(&text, 3, "allow", 0), 7);
	conf_text_free(&text);
}
END_TEST

START_TEST(every_cut_of_a_good_file_is_taken_or_refused_cleanly)
{
	static const char text[] =
		"node \"a\" { number = 1 }\n"
		"portal \"p\" { listen = { \"[::1]:3260\" } group = 1 } /* x */\n"
		"backing \"b\" { driver = \"ram\" size = \"1M\" }\n"
		"target \"iqn.2026-11.org.yoke:t\" { portals = { \"p\" }\n"
		" allow = { \"*\" } lun \"0\" { backing = \"b\" } }\n";
	unsigned taken = 0;

	for (size_t len = 0; len < sizeof(text); len++) {
		int err = parse(text, len);

		ck_assert(err == 0 || err == -EINVAL);
		ck_assert(err == 0 || error.text[0]);
		taken += err == 0;
		conf_free(conf);
	}
	/* After each closed section and its white space, and within what follows a closed comment. */
	ck_assert_uint_ge(taken, 5);
	ck_assert_uint_le(taken, 12);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conf_text");
	TCase *tcase = tcase_create("text");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, wrong_text_is_refused_with_its_line_cause_and_remedy, 0,
			    ARRAY_LEN(bad));
	tcase_add_test(tcase, every_byte_that_is_not_text_is_refused_at_its_line);
	tcase_add_test(tcase, utf8_is_taken_and_its_forgeries_are_not);
	tcase_add_test(tcase, comments_of_all_kinds_go_and_leave_lines_and_strings_alone);
	tcase_add_test(tcase, quotes_and_backslashes_can_be_written);
	tcase_add_test(tcase, limits_are_refused_by_name);
	tcase_add_test(tcase, lines_are_found_for_sections_settings_and_values);
	tcase_add_test(tcase, every_cut_of_a_good_file_is_taken_or_refused_cleanly);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
