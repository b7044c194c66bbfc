/* SPDX-License-Identifier: MIT */
/* Whether a stream gets colours. */
#ifndef CORE_COLOR_H
#define CORE_COLOR_H

#include <stdbool.h>

enum color_option { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* The option beats NO_COLOR, that CLICOLOR_FORCE, that what the stream is (TTY) and TERM. */
bool color_wanted(enum color_option option, bool tty);

#endif
