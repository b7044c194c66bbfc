/* SPDX-License-Identifier: MIT */
/* The live line: on terminals of any width, and in files. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "bench/live.h"

static const struct engine_progress measuring = {
	.done_s = 12,
	.of_s = 30,
	.iops = { 96100, 41200, 137300 },
	.bytes_s = 537.0 * 1048576,
	.p99_ns = 3900000,
	.in_flight = 200,
	.cpu = 0.71,
	.sessions_up = 4,
	.sessions = 4,
	.phase = "measuring",
};

static char *text;
static size_t size;
static struct live live;

static void setup(void)
{
	live = (struct live){ .out = open_memstream(&text, &size) };
}

static void teardown(void)
{
	fclose(live.out);
	free(text);
}

#define WHOLE                                                                                      \
	"12/30 s r 96.1k w 41.2k IOPS 537.0 MiB/s p99 3.9 ms in-flight 200 cpu 71 % paths 4/4 "    \
	"err 0"

START_TEST(a_terminal_s_line_is_rewritten_in_place)
{
	live.tty = true;
	live_progress(&live, &measuring);
	ck_assert_str_eq(text, "\r" WHOLE "\033[K");
	live_end(&live);
	ck_assert_str_eq(text, "\r" WHOLE "\033[K\r\033[K");
	live_end(&live);
	ck_assert_str_eq(text, "\r" WHOLE "\033[K\r\033[K");
}
END_TEST

START_TEST(no_line_is_as_wide_as_the_terminal_and_no_field_is_cut)
{
	live.tty = true;
	for (unsigned width = 20; width < 120; width++) {
		char copy[256], *end;

		live.width = width;
		fseek(live.out, 0, SEEK_SET);
		live_progress(&live, &measuring);
		snprintf(copy, sizeof(copy), "%s", text);
		end = strstr(copy, "\033[K");
		ck_assert_ptr_nonnull(end);
		*end = '\0';
		ck_assert_uint_lt(strlen(copy + 1), width);
		ck_assert_int_eq(strncmp(copy, "\r12/30 s ", 9), 0);
		ck_assert_str_eq(end - 6, " err 0");
		for (char *at, *word = strtok_r(copy + 1, " ", &at); word;
		     word = strtok_r(NULL, " ", &at))
			ck_assert_ptr_nonnull(strstr(WHOLE, word));
	}
}
END_TEST

START_TEST(a_file_gets_a_line_each_ten_ticks_of_a_phase)
{
	struct engine_progress p = measuring;

	p.phase = "warming up";
	p.done_s = -5;
	for (unsigned i = 0; i < 9; i++)
		live_progress(&live, &p);
	for (unsigned i = 1; i <= 25; i++) {
		p = measuring;
		p.done_s = i;
		live_progress(&live, &p);
	}
	live_end(&live);
	ck_assert_str_eq(text, "10/30 s r 96.1k w 41.2k IOPS 537.0 MiB/s p99 3.9 ms in-flight 200 "
			       "cpu 71 % paths 4/4 err 0\n"
			       "20/30 s r 96.1k w 41.2k IOPS 537.0 MiB/s p99 3.9 ms in-flight 200 "
			       "cpu 71 % paths 4/4 err 0\n");
}
END_TEST

static const struct {
	const char *phase;
	double done_s, share, read, write;
	const char *begins;
} cases[] = {
	{ "connecting", 0, 0, 0, 0, "\rconnecting\033[K" },
	{ "filling", 0, 0.372, 0, 0, "\rfilling 37.2 %\033[K" },
	{ "filling", 0, 0.9999, 0, 0, "\rfilling 99.9 %\033[K" },
	{ "filling", 0, 1, 0, 0, "\rfilling 100.0 %\033[K" },
	{ "warming up", -3, 0, 850, 0, "\rwarming up, 3 s left r 850 IOPS " },
	{ "measuring", 1, 0, 0, 1250000, "\r1/30 s w 1.25M IOPS " },
	{ "measuring", 1, 0, 0, 0, "\r1/30 s r 0 IOPS " },
	{ "measuring", 1, 0, 999.6, 999951, "\r1/30 s r 1.0k w 1.00M IOPS " },
};

START_TEST(each_phase_says_how_far_it_is)
{
	struct engine_progress p = measuring;

	live.tty = true;
	p.phase = cases[_i].phase;
	p.done_s = cases[_i].done_s;
	p.share = cases[_i].share;
	p.iops[BENCH_READ] = cases[_i].read;
	p.iops[BENCH_WRITE] = cases[_i].write;
	live_progress(&live, &p);
	ck_assert_msg(strncmp(text, cases[_i].begins, strlen(cases[_i].begins)) == 0, "%s", text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("live");
	TCase *tcase = tcase_create("live");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_terminal_s_line_is_rewritten_in_place);
	tcase_add_test(tcase, no_line_is_as_wide_as_the_terminal_and_no_field_is_cut);
	tcase_add_test(tcase, a_file_gets_a_line_each_ten_ticks_of_a_phase);
	tcase_add_loop_test(tcase, each_phase_says_how_far_it_is, 0, ARRAY_LEN(cases));
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
