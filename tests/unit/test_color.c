/* SPDX-License-Identifier: MIT */
/* When there is colour. */
#include <check.h>
#include <stdlib.h>

#include "core/base.h"
#include "core/color.h"

START_TEST(colour_follows_the_option_then_no_color_then_force_then_the_terminal)
{
	static const struct {
		enum color_option option;
		const char *no_color, *force, *term;
		bool tty, color;
	} cases[] = {
		{ COLOR_AUTO, NULL, NULL, "xterm", true, true },
		{ COLOR_AUTO, NULL, NULL, "xterm", false, false },
		{ COLOR_AUTO, NULL, NULL, "dumb", true, false },
		{ COLOR_AUTO, NULL, NULL, NULL, true, false },
		{ COLOR_AUTO, "1", NULL, "xterm", true, false },
		{ COLOR_AUTO, "", NULL, "xterm", true, true },
		{ COLOR_AUTO, NULL, "1", "dumb", false, true },
		{ COLOR_AUTO, NULL, "0", "xterm", false, false },
		{ COLOR_AUTO, "1", "1", "xterm", true, false },
		{ COLOR_ALWAYS, "1", NULL, "dumb", false, true },
		{ COLOR_NEVER, NULL, "1", "xterm", true, false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		const char *names[] = { "NO_COLOR", "CLICOLOR_FORCE", "TERM" };
		const char *values[] = { cases[i].no_color, cases[i].force, cases[i].term };

		for (unsigned j = 0; j < ARRAY_LEN(names); j++)
			if (values[j])
				setenv(names[j], values[j], 1);
			else
				unsetenv(names[j]);
		ck_assert_msg(color_wanted(cases[i].option, cases[i].tty) == cases[i].color, "%u",
			      i);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("color");
	TCase *tcase = tcase_create("color");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, colour_follows_the_option_then_no_color_then_force_then_the_terminal);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
