/* SPDX-License-Identifier: MIT */
/* Log lines: escaping, cutting, debug switches, the rate limit. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

static char last[LOG_LINE_MAX + 16];
static unsigned lines;
static enum log_level last_level;

static void keep(enum log_level level, const char *line)
{
	ck_assert_uint_lt(strlen(line), LOG_LINE_MAX);
	strcpy(last, line);
	last_level = level;
	lines++;
}

START_TEST(a_line_is_module_object_event_and_pairs)
{
	log_redirect(keep);
	log_line(LOG_L_WARN, "scsi", "lun3", "reset", "by=%s n=%d", "iqn.x", 7);
	ck_assert_str_eq(last, "scsi lun3 reset by=iqn.x n=7");
	ck_assert_int_eq(last_level, LOG_L_WARN);
	log_line(LOG_L_INFO, "loop", "", "start", "%s", "");
	ck_assert_str_eq(last, "loop start");
}
END_TEST

START_TEST(nothing_can_start_a_second_line_or_reach_the_terminal)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "a\nb\r\tc", "a\\x0ab\\x0d\\x09c" },
		{ "\x1b[31m\x7f", "\\x1b[31m\\x7f" },
		{ "a\\x0a", "a\\x5cx0a" },
		{ "Gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82",
		  "Gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82" },
		{ "\xc2\x9b", "\\xc2\\x9b" },          /* C1: CSI */
		{ "\xc0\xaf", "\\xc0\\xaf" },          /* overlong */
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" }, /* surrogate */
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
		{ "\xe2\x82", "\\xe2\\x82" }, /* cut off */
		{ "\xff", "\\xff" },
	};
	char out[64];

	log_redirect(keep);
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		ck_assert_uint_eq(log_escape(out, sizeof(out), cases[i].in), strlen(out));
		ck_assert_str_eq(out, cases[i].out);
	}
	log_line(LOG_L_INFO, "login", "iqn\nevil", "refused", "name=%s", "x\ny");
	ck_assert_str_eq(last, "login iqn\\x0aevil refused name=x\\x0ay");
}
END_TEST

START_TEST(escaping_cuts_between_characters_at_every_size)
{
	char out[16];

	for (size_t size = 1; size <= sizeof(out); size++) {
		size_t n = log_escape(out, size, "\xe2\x82\xac\n\xe2\x82\xac");

		ck_assert_uint_lt(n, size);
		ck_assert_uint_eq(strlen(out), n);
		ck_assert(n == 0 || n == 3 || n == 7 || n == 10);
	}
	ck_assert_uint_eq(log_escape(out, 11, "\xe2\x82\xac\n\xe2\x82\xac"), 10);
}
END_TEST

START_TEST(a_line_that_is_too_long_ends_in_dots)
{
	char *text = malloc(5000);

	log_redirect(keep);
	for (unsigned len = LOG_LINE_MAX - 40; len < LOG_LINE_MAX + 40; len++) {
		size_t whole = strlen("m e ") + len;

		memset(text, 'x', len);
		text[len] = '\0';
		log_line(LOG_L_INFO, "m", "", "e", "%s", text);
		if (whole <= LOG_LINE_MAX - 4) {
			ck_assert_uint_eq(strlen(last), whole);
			ck_assert_ptr_null(strstr(last, "..."));
		} else {
			ck_assert_uint_eq(strlen(last), LOG_LINE_MAX - 1);
			ck_assert_str_eq(last + strlen(last) - 4, "x...");
		}
	}
	memset(text, '\n', 4999);
	text[4999] = '\0';
	log_line(LOG_L_INFO, "m", text, "e", "a=%d", 1);
	ck_assert_str_eq(last + strlen(last) - 3, "...");
	free(text);
}
END_TEST

START_TEST(debug_is_off_until_its_module_or_all_is_on)
{
	log_redirect(keep);
	log_line(LOG_L_DEBUG, "raid", "", "e", "%s", "");
	ck_assert_uint_eq(lines, 0);
	log_debug_enable("raid");
	ck_assert(log_debug_on("raid") && !log_debug_on("rai") && !log_debug_on("vg"));
	log_line(LOG_L_DEBUG, "raid", "", "e", "%s", "");
	log_line(LOG_L_DEBUG, "vg", "", "e", "%s", "");
	ck_assert_uint_eq(lines, 1);
	log_debug_enable("all");
	ck_assert(log_debug_on("vg"));
}
END_TEST

START_TEST(a_flood_is_cut_and_the_next_window_says_by_how_much)
{
	struct log_limit limit = { 0 };

	log_redirect(keep);
	for (unsigned i = 0; i < 100; i++)
		log_limited(&limit, LOG_L_WARN, "login", "", "refused", "n=%u", i);
	ck_assert_uint_eq(lines, LOG_BURST);
	ck_assert_str_eq(last, "login refused n=4");
	/* As if the window had begun long ago. */
	limit.window_start_ns = 1;
	log_limited(&limit, LOG_L_WARN, "login", "", "refused", "n=%u", 100);
	ck_assert_uint_eq(lines, LOG_BURST + 1);
	ck_assert_str_eq(last, "login refused n=100 swallowed=95");
	log_limited(&limit, LOG_L_WARN, "login", "", "refused", "n=%u", 101);
	ck_assert_str_eq(last, "login refused n=101");
}
END_TEST

START_TEST(two_places_do_not_share_a_limit_and_errno_is_left_alone)
{
	struct log_limit a = { 0 }, b = { 0 };

	log_redirect(keep);
	errno = ENOSPC;
	for (unsigned i = 0; i < 100; i++)
		log_limited(&a, LOG_L_WARN, "m", "", "a", "%s", "");
	log_limited(&b, LOG_L_WARN, "m", "", "b", "%s", "");
	ck_assert_str_eq(last, "m b");
	ck_assert_int_eq(errno, ENOSPC);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("log");
	TCase *tc = tcase_create("log");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, a_line_is_module_object_event_and_pairs);
	tcase_add_test(tc, nothing_can_start_a_second_line_or_reach_the_terminal);
	tcase_add_test(tc, escaping_cuts_between_characters_at_every_size);
	tcase_add_test(tc, a_line_that_is_too_long_ends_in_dots);
	tcase_add_test(tc, debug_is_off_until_its_module_or_all_is_on);
	tcase_add_test(tc, a_flood_is_cut_and_the_next_window_says_by_how_much);
	tcase_add_test(tc, two_places_do_not_share_a_limit_and_errno_is_left_alone);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
