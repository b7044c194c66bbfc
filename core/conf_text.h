/* SPDX-License-Identifier: MIT */
/*
 * Text in libconfuse's syntax, made safe for it: scanned, and only then parsed.
 *
 * The scanner refuses what libconfuse would take in its own way and knows where everything
 * stands, so that every later refusal finds its line. What the names and values mean is the
 * caller's: yoke.conf, a profile of yoke-bench.
 */
#ifndef CORE_CONF_TEXT_H
#define CORE_CONF_TEXT_H

#include <confuse.h>

#include "core/conf.h"

#define CONF_FILE_MAX (4 * MIB)
#define CONF_LINE_MAX (64 * KIB)
#define CONF_TOKEN_MAX 1023
#define CONF_SECTIONS_MAX 16384
#define CONF_VALUES_MAX 262144
#define CONF_DEPTH_MAX 3

/* A piece of the scanned text; strings are without their quotes, escapes not undone. */
struct conf_span {
	const char *at;
	unsigned len;
};

struct conf_section {
	unsigned parent; /* index; the root is 0 and its own parent */
	struct conf_span name;
	struct conf_span title; /* .at NULL: none */
	int line;
	unsigned nth;    /* among the sections of this name in its parent, from 0 */
	unsigned object; /* conf_parse.c: index into the array of its kind, luns as written */
	cfg_t *cfg;      /* libconfuse's view of it, once parsed */
};

struct conf_entry {
	unsigned section;
	struct conf_span name;
	int line;
	unsigned first_value; /* index into value_lines */
	unsigned value_count;
	bool list; /* in braces */
};

struct conf_text {
	char *text; /* comments blanked, NUL-terminated */
	size_t len_bytes;
	struct conf_section *sections; /* in the order of the file */
	unsigned section_count;
	struct conf_entry *entries;
	unsigned entry_count;
	int *value_lines;
	unsigned value_count;
};

/*
 * The whole of a regular file: 0 and *TEXT (the caller's), or -errno and ERROR, which says
 * MISSING if there is none. One byte more than CONF_FILE_MAX is read at most.
 */
int conf_read(const char *path, const char *missing, char **text, size_t *len_bytes,
	      struct conf_error *error);
/* 0, or -EINVAL, -ENOMEM, -EFBIG and ERROR. Free in every case. */
int conf_text_scan(struct conf_text *text, const char *file, const char *bytes, size_t len_bytes,
		   struct conf_error *error);
void conf_text_free(struct conf_text *text);
/* The line of setting KEY in SECTION, of its VALUEth value; the section's if it is not there. */
int conf_text_line(const struct conf_text *text, unsigned section, const char *key, unsigned value);
bool conf_span_is(struct conf_span span, const char *name);

/*
 * Parses the scanned text with libconfuse by OPTIONS, which must have its every name. *ROOT is
 * the caller's (cfg_free), also after -EINVAL and ERROR. libconfuse has globals: one caller at
 * a time, until its tree is freed.
 */
int conf_text_parse(const struct conf_text *text, cfg_opt_t *options, const char *file,
		    cfg_t **root, struct conf_error *error);

/* Writes `file:line: text` and returns -EINVAL. LINE 0: `file: text`. */
int conf_refuse(const char *file, struct conf_error *error, int line, const char *fmt, ...)
	PRINTF_LIKE(4, 5);

#endif
