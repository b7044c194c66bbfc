/* SPDX-License-Identifier: MIT */
/*
 * Texts that others wrote, before people or their programs see them.
 *
 * Invariants:
 *  1. What comes out is printable UTF-8 (in JSON: UTF-8) and has as many bytes as what went in.
 *
 * Not here: log lines, which keep every byte (log_escape() in core/log.c).
 */
#include "core/clean.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"

void clean_text(char *text)
{
	while (*text) {
		size_t n = log_printable(text);

		if (n)
			text += n;
		else
			*text++ = '?';
	}
}

void clean_put(FILE *out, const char *text)
{
	while (*text) {
		size_t n = log_printable(text);

		if (n)
			fwrite(text, 1, n, out);
		else
			fputc('?', out);
		text += n ? n : 1;
	}
}

json_t *clean_json(const char *text)
{
	json_t *string = json_string(text);
	char *copy;

	if (string)
		return string;
	copy = strdup(text);
	if (!copy)
		return NULL;
	for (char *at = copy; *at;) {
		size_t n = log_printable(at);

		if (!n && (unsigned char)*at >= 0x80)
			*at = '?';
		at += n ? n : 1;
	}
	string = json_string(copy);
	free(copy);
	return string;
}
