/* SPDX-License-Identifier: MIT */
/*
 * Who decides about colours: the user, in every way that users know.
 *
 * Invariants:
 * 1. A variable that is set but empty says nothing.
 *
 * Not here: which words have a colour (ctl/output.c, bench/table.c).
 * Spec: no-color.org, bixense.com/clicolors.
 */
#include "core/color.h"

#include <stdlib.h>
#include <string.h>

bool color_wanted(enum color_option option, bool tty)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
	const char *force = getenv("CLICOLOR_FORCE");

	if (option != COLOR_AUTO)
		return option == COLOR_ALWAYS;
	if (no_color && *no_color)
		return false;
	if (force && *force && strcmp(force, "0") != 0)
		return true;
	return tty && term && *term && strcmp(term, "dumb") != 0;
}
