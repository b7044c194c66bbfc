/* SPDX-License-Identifier: MIT */
/*
 * Writing to people and to scripts.
 *
 * Invariants:
 * 1. What came from yoked (and from initiators through it) never reaches a
 *    terminal as a control character.
 * 2. Colour is never the only carrier of a meaning.
 *
 * Not here: tables (table.c).
 */
#include "ctl/output.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum paint output_paint_of(const char *word)
{
	static const struct {
		const char *word;
		enum paint paint;
	} words[] = {
		{ "WARN", PAINT_WARN },
		{ "CRIT", PAINT_CRIT },
		{ "UNKNOWN", PAINT_CRIT },
		{ "full", PAINT_WARN },
		{ "offline", PAINT_CRIT },
		{ "missing", PAINT_CRIT },
		{ "degraded", PAINT_WARN },
		{ "failed", PAINT_CRIT },
		{ "incomplete", PAINT_CRIT },
		{ "rebuilding", PAINT_WARN },
		{ "waiting", PAINT_WARN },
		{ "foreign", PAINT_WARN },
		{ "in-use", PAINT_WARN },
		{ "unusable", PAINT_CRIT },
		{ "read-only", PAINT_WARN },
		{ "sanitizing", PAINT_WARN },
		{ "sanitize-failed", PAINT_CRIT },
	};

	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i].word, word) == 0)
			return words[i].paint;
	return PAINT_NONE;
}

void output_paint(const struct output *output, enum paint paint, const char *text)
{
	bool on = output->color && paint != PAINT_NONE;

	if (on)
		fputs(paint == PAINT_CRIT ? "\033[31m" : "\033[33m", output->out);
	for (; *text; text++)
		fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, output->out);
	if (on)
		fputs("\033[0m", output->out);
}

int output_json(const struct output *output, const json_t *json)
{
	char *text = json_dumps(json, JSON_COMPACT);

	if (!text)
		return output_error(output, EXIT_REFUSED, "the answer is not JSON");
	fprintf(output->out, "%s\n", text);
	free(text);
	return EXIT_DONE;
}

int output_error(const struct output *output, int code, const char *fmt, ...)
{
	va_list ap;

	fputs("yokectl: ", output->err);
	va_start(ap, fmt);
	vfprintf(output->err, fmt, ap);
	va_end(ap);
	fputc('\n', output->err);
	return code;
}

const char *output_text(const json_t *row, const char *key, const char *fallback)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : fallback;
}
