/* SPDX-License-Identifier: MIT */
/*
 * Where and how yokectl writes: streams, width, colour, what the user asked for.
 */
#ifndef CTL_OUTPUT_H
#define CTL_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/base.h"
#include "core/color.h"

enum exit_code { EXIT_DONE = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2, EXIT_UNREACHABLE = 3 };

struct output {
	FILE *out;
	FILE *err;
	bool tty;       /* out is a terminal */
	unsigned width; /* its columns; 0: write all */
	bool color;     /* for out */
	bool json;      /* the answer as it is */
	bool wide;      /* every column */
	bool bytes;     /* sizes as plain bytes */
	bool no_header;
	const char *columns; /* -o: names with commas; NULL: the usual ones */
};

enum paint { PAINT_NONE, PAINT_WARN, PAINT_CRIT };

/* TEXT, control characters replaced, in the colour of PAINT if there are colours. */
void output_paint(const struct output *output, enum paint paint, const char *text);
/* The colour of a word: CRIT, offline, missing... */
enum paint output_paint_of(const char *word);

/* JSON as one line, whole or not at all. An exit code. */
int output_json(const struct output *output, const json_t *json);

/* A line to err, `yokectl: text`. Returns CODE. */
int output_error(const struct output *output, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* A string of ROW, FALLBACK if it is not there. */
const char *output_text(const json_t *row, const char *key, const char *fallback);

#endif
