/* SPDX-License-Identifier: MIT */
/*
 * The first look at a configuration: blanks comments, finds sections, settings
 * and their lines, and refuses whatever libconfuse would take in its own way.
 *
 * libconfuse counts a comment as two lines, takes a file that ends inside a
 * section, expands ${HOME} even in quotes, lets a repeated setting win silently,
 * skips characters that it does not know and keeps its lexer's state over an
 * unclosed string.
 *
 * Invariants:
 * 1. Text that passes has balanced braces, closed strings, only known characters,
 *    and no setting or section twice in the same place.
 * 2. Blanking moves nothing: offsets and lines are those of the file.
 * 3. Time is n log n and memory is bounded by the limits of conf_text.h.
 *
 * Not here: which names there are (conf_schema.c) and what values mean (conf_value.c).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/conf_text.h"

enum token_kind { TOKEN_WORD, TOKEN_STRING, TOKEN_MARK, TOKEN_END };

struct token {
	enum token_kind kind;
	struct conf_span span;
	char mark; /* { } = , */
	int line;
};

enum scan_state { SCAN_ITEM, SCAN_NAME, SCAN_TITLE, SCAN_VALUE, SCAN_LIST_VALUE, SCAN_LIST_COMMA };

struct scan {
	struct conf_text *text;
	const char *file;
	struct conf_error *error;
	char *at;
	int line;
	enum scan_state state;
	struct token name; /* SCAN_NAME and on: what the item began with */
	struct token title;
	unsigned section; /* the one we are in */
	unsigned depth;
	unsigned sections_size;
	unsigned entries_size;
	unsigned values_size;
};

int conf_refuse(const char *file, struct conf_error *error, int line, const char *fmt, ...)
{
	size_t used;
	va_list ap;

	if (line > 0)
		snprintf(error->text, sizeof(error->text), "%s:%d: ", file, line);
	else
		snprintf(error->text, sizeof(error->text), "%s: ", file);
	used = strlen(error->text);
	va_start(ap, fmt);
	vsnprintf(error->text + used, sizeof(error->text) - used, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

bool conf_span_is(struct conf_span span, const char *name)
{
	return span.len == strlen(name) && memcmp(span.at, name, span.len) == 0;
}

#define REFUSE(scan, line, ...) conf_refuse((scan)->file, (scan)->error, (line), __VA_ARGS__)

/* Room for one more element in an array that doubles. */
static int grow(void *array, unsigned count, unsigned *size, size_t element)
{
	void *bigger;

	if (count < *size)
		return 0;
	bigger = reallocarray(*(void **)array, *size ? *size * 2 : 32, element);
	if (!bigger)
		return -ENOMEM;
	*(void **)array = bigger;
	*size = *size ? *size * 2 : 32;
	return 0;
}

/* The length of the UTF-8 character at S, 0 if there is none. S is NUL-terminated. */
static unsigned utf8_len(const unsigned char *s)
{
	unsigned n = s[0] < 0x80 ? 1 :
		     s[0] < 0xc2 ? 0 :
		     s[0] < 0xe0 ? 2 :
		     s[0] < 0xf0 ? 3 :
		     s[0] < 0xf5 ? 4 :
				   0;

	for (unsigned i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* Text at all: UTF-8, no control characters, lines of a sane length. */
static int check_bytes(struct scan *s)
{
	const unsigned char *at = (const unsigned char *)s->text->text;
	const unsigned char *end = at + s->text->len_bytes;
	const unsigned char *line_start = at;
	int line = 1;

	while (at < end) {
		unsigned n = utf8_len(at);

		if (*at == '\n') {
			line++;
			line_start = at + 1;
		} else if (*at == '\r' && at[1] == '\n') {
			s->text->text[at - (unsigned char *)s->text->text] = ' ';
		} else if (n == 0 || (*at < 0x20 && *at != '\t') || *at == 0x7f) {
			return REFUSE(s, line, "byte 0x%02x is not text. Write plain UTF-8", *at);
		}
		if (at - line_start >= (ptrdiff_t)CONF_LINE_MAX)
			return REFUSE(s, line, "line is longer than %llu bytes. Break it",
				      (unsigned long long)CONF_LINE_MAX);
		at += n;
	}
	return 0;
}

static void blank_line_comment(struct scan *s)
{
	while (*s->at && *s->at != '\n')
		*s->at++ = ' ';
}

static int blank_block_comment(struct scan *s)
{
	int start = s->line;

	while (*s->at && !(s->at[0] == '*' && s->at[1] == '/')) {
		if (*s->at == '\n')
			s->line++;
		else
			*s->at = ' ';
		s->at++;
	}
	if (!*s->at)
		return REFUSE(s, start, "comment is never closed. Add */");
	memset(s->at, ' ', 2);
	s->at += 2;
	return 0;
}

/* Past white space and comments, which it blanks. */
static int skip_blank(struct scan *s)
{
	for (;;) {
		if (*s->at == '\n') {
			s->line++;
			s->at++;
		} else if (*s->at == ' ' || *s->at == '\t') {
			s->at++;
		} else if (*s->at == '#' || (s->at[0] == '/' && s->at[1] == '/')) {
			blank_line_comment(s);
		} else if (s->at[0] == '/' && s->at[1] == '*') {
			memset(s->at, ' ', 2);
			s->at += 2;
			if (blank_block_comment(s))
				return -EINVAL;
		} else {
			return 0;
		}
	}
}

static int next_string(struct scan *s, struct token *token)
{
	const char *start = ++s->at;

	for (; *s->at != '"'; s->at++) {
		if (*s->at == '\n' || !*s->at)
			return REFUSE(s, s->line, "string is not closed on its line. Add a \"");
		if (s->at[0] == '$' && s->at[1] == '{')
			return REFUSE(s, s->line, "${...} is not replaced here. Write it out");
		if (*s->at == '\\') {
			s->at++;
			if (*s->at != '"' && *s->at != '\\')
				return REFUSE(
					s, s->line,
					"\\ in a string. Write \\\\ for it, \\\" for a quote");
		}
	}
	if (s->at - start > CONF_TOKEN_MAX)
		return REFUSE(s, s->line, "string is longer than %d bytes", CONF_TOKEN_MAX);
	token->kind = TOKEN_STRING;
	token->span = (struct conf_span){ start, (unsigned)(s->at - start) };
	s->at++;
	return 0;
}

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.' || c == ':';
}

static int next_word(struct scan *s, struct token *token)
{
	const char *start = s->at;

	while (is_word_char(*s->at))
		s->at++;
	if (s->at - start > CONF_TOKEN_MAX)
		return REFUSE(s, s->line, "word is longer than %d bytes", CONF_TOKEN_MAX);
	token->kind = TOKEN_WORD;
	token->span = (struct conf_span){ start, (unsigned)(s->at - start) };
	return 0;
}

static int next_token(struct scan *s, struct token *token)
{
	unsigned n;

	if (skip_blank(s))
		return -EINVAL;
	memset(token, 0, sizeof(*token));
	token->line = s->line;
	if (!*s->at) {
		token->kind = TOKEN_END;
		token->span = (struct conf_span){ "end of file", 11 };
		return 0;
	}
	if (*s->at == '"')
		return next_string(s, token);
	if (is_word_char(*s->at))
		return next_word(s, token);
	if (strchr("{}=,", *s->at)) {
		token->kind = TOKEN_MARK;
		token->mark = *s->at;
		token->span = (struct conf_span){ s->at++, 1 };
		return 0;
	}
	if (s->at[0] == '+' && s->at[1] == '=')
		return REFUSE(s, s->line, "+= is not supported. Write one list with =");
	if (s->at[0] == '$' && s->at[1] == '{')
		return REFUSE(s, s->line, "${...} is not replaced here. Write it out");
	n = utf8_len((const unsigned char *)s->at);
	return REFUSE(s, s->line, "unexpected %.*s. Quote text like \"this\"", (int)n, s->at);
}

/* For messages: long ones are cut. */
static int shown(struct conf_span span)
{
	return span.len > 64 ? 64 : (int)span.len;
}

static int open_section(struct scan *s)
{
	struct conf_section *section;

	if (s->depth == CONF_DEPTH_MAX)
		return REFUSE(s, s->name.line, "%.*s: nested too deeply. Is a } missing above?",
			      shown(s->name.span), s->name.span.at);
	if (s->text->section_count == CONF_SECTIONS_MAX)
		return REFUSE(s, s->name.line, "more than %d sections", CONF_SECTIONS_MAX - 1);
	if (grow(&s->text->sections, s->text->section_count, &s->sections_size, sizeof(*section)))
		return -ENOMEM;
	section = &s->text->sections[s->text->section_count];
	*section = (struct conf_section){ .parent = s->section,
					  .name = s->name.span,
					  .title = s->title.span,
					  .line = s->name.line };
	s->section = s->text->section_count++;
	s->depth++;
	s->state = SCAN_ITEM;
	return 0;
}

static int open_entry(struct scan *s)
{
	struct conf_entry *entry;

	if (s->text->entry_count == CONF_VALUES_MAX)
		return REFUSE(s, s->name.line, "more than %d settings", CONF_VALUES_MAX);
	if (grow(&s->text->entries, s->text->entry_count, &s->entries_size, sizeof(*entry)))
		return -ENOMEM;
	entry = &s->text->entries[s->text->entry_count++];
	*entry = (struct conf_entry){ .section = s->section,
				      .name = s->name.span,
				      .line = s->name.line,
				      .first_value = s->text->value_count };
	s->state = SCAN_VALUE;
	return 0;
}

static int add_value(struct scan *s, const struct token *token)
{
	if (s->text->value_count == CONF_VALUES_MAX)
		return REFUSE(s, token->line, "more than %d values", CONF_VALUES_MAX);
	if (grow(&s->text->value_lines, s->text->value_count, &s->values_size, sizeof(int)))
		return -ENOMEM;
	s->text->value_lines[s->text->value_count++] = token->line;
	s->text->entries[s->text->entry_count - 1].value_count++;
	return 0;
}

static int unexpected(struct scan *s, const struct token *token, const char *wanted)
{
	return REFUSE(s, token->line, "found %.*s where %s should be", shown(token->span),
		      token->span.at, wanted);
}

static bool is_text(const struct token *token)
{
	return token->kind == TOKEN_WORD || token->kind == TOKEN_STRING;
}

/* A token where a setting, a section or the end of one may stand. */
static int step_item(struct scan *s, const struct token *token)
{
	if (token->mark == '}') {
		if (s->depth == 0)
			return REFUSE(s, token->line, "} closes nothing. Remove it");
		s->section = s->text->sections[s->section].parent;
		s->depth--;
		return 0;
	}
	if (token->kind != TOKEN_WORD)
		return unexpected(s, token, "a setting or a section");
	s->name = *token;
	memset(&s->title, 0, sizeof(s->title));
	s->state = SCAN_NAME;
	return 0;
}

/* A token after the name of a setting or section. */
static int step_name(struct scan *s, const struct token *token)
{
	if (s->state == SCAN_NAME && token->mark == '=')
		return open_entry(s);
	if (s->state == SCAN_NAME && is_text(token)) {
		s->title = *token;
		s->state = SCAN_TITLE;
		return 0;
	}
	if (token->mark == '{')
		return open_section(s);
	return REFUSE(s, token->line,
		      "found %.*s after %.*s. Settings are name = value, sections "
		      "name \"title\" { }",
		      shown(token->span), token->span.at, shown(s->name.span), s->name.span.at);
}

/* A token in or after a value. */
static int step_value(struct scan *s, const struct token *token)
{
	switch (s->state) {
	case SCAN_VALUE:
		if (token->mark == '{') {
			s->text->entries[s->text->entry_count - 1].list = true;
			s->state = SCAN_LIST_VALUE;
			return 0;
		}
		if (!is_text(token))
			return unexpected(s, token, "a value");
		s->state = SCAN_ITEM;
		return add_value(s, token);
	case SCAN_LIST_VALUE:
		if (token->mark == '}') {
			s->state = SCAN_ITEM;
			return 0;
		}
		if (!is_text(token))
			return unexpected(s, token, "a value");
		s->state = SCAN_LIST_COMMA;
		return add_value(s, token);
	default:
		if (token->mark != ',' && token->mark != '}')
			return unexpected(s, token, "a comma or }");
		s->state = token->mark == ',' ? SCAN_LIST_VALUE : SCAN_ITEM;
		return 0;
	}
}

static int at_end(struct scan *s)
{
	const struct conf_section *section = &s->text->sections[s->section];

	if (s->state != SCAN_ITEM)
		return REFUSE(s, s->name.line, "%.*s: file ends in the middle of it",
			      shown(s->name.span), s->name.span.at);
	if (s->depth)
		return REFUSE(s, section->line, "%.*s: never closed. Add a }", shown(section->name),
			      section->name.at);
	return 0;
}

static int scan_all(struct scan *s)
{
	struct token token;
	int err;

	for (;;) {
		if (next_token(s, &token))
			return -EINVAL;
		if (token.kind == TOKEN_END)
			return at_end(s);
		if (s->state == SCAN_ITEM)
			err = step_item(s, &token);
		else if (s->state == SCAN_NAME || s->state == SCAN_TITLE)
			err = step_name(s, &token);
		else
			err = step_value(s, &token);
		if (err)
			return err;
	}
}

static int span_compare(struct conf_span a, struct conf_span b)
{
	int order = memcmp(a.at ? a.at : "", b.at ? b.at : "", a.len < b.len ? a.len : b.len);

	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int section_compare(const void *a, const void *b)
{
	const struct conf_section *x = *(struct conf_section *const *)a;
	const struct conf_section *y = *(struct conf_section *const *)b;
	int order = (x->parent > y->parent) - (x->parent < y->parent);

	order = order ? order : span_compare(x->name, y->name);
	order = order ? order : span_compare(x->title, y->title);
	return order ? order : (x > y) - (x < y);
}

static int entry_compare(const void *a, const void *b)
{
	const struct conf_entry *x = *(struct conf_entry *const *)a;
	const struct conf_entry *y = *(struct conf_entry *const *)b;
	int order = (x->section > y->section) - (x->section < y->section);

	order = order ? order : span_compare(x->name, y->name);
	return order ? order : (x > y) - (x < y);
}

/* The first section, in the order of the file, that repeats another; the root counts as none. */
static int refuse_same_sections(struct scan *s)
{
	const struct conf_section **sorted, *first = NULL, *second = NULL;
	unsigned count = s->text->section_count;

	sorted = calloc(count, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++)
		sorted[i] = &s->text->sections[i];
	qsort(sorted, count, sizeof(*sorted), section_compare);
	for (unsigned i = 1; i < count; i++) {
		const struct conf_section *a = sorted[i - 1], *b = sorted[i];

		if (a->parent == b->parent && a != s->text->sections &&
		    !span_compare(a->name, b->name) && !span_compare(a->title, b->title) &&
		    (!second || b < second)) {
			first = a;
			second = b;
		}
	}
	free(sorted);
	if (!second)
		return 0;
	return REFUSE(s, second->line, "%.*s%s%.*s%s: also in line %d. Remove one",
		      shown(second->name), second->name.at, second->title.at ? " \"" : "",
		      shown(second->title), second->title.at ? second->title.at : "",
		      second->title.at ? "\"" : "", first->line);
}

static int refuse_same_entries(struct scan *s)
{
	const struct conf_entry **sorted, *first = NULL, *second = NULL;
	unsigned count = s->text->entry_count;

	sorted = calloc(count ? count : 1, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++)
		sorted[i] = &s->text->entries[i];
	qsort(sorted, count, sizeof(*sorted), entry_compare);
	for (unsigned i = 1; i < count; i++) {
		const struct conf_entry *a = sorted[i - 1], *b = sorted[i];

		if (a->section == b->section && !span_compare(a->name, b->name) &&
		    (!second || b < second)) {
			first = a;
			second = b;
		}
	}
	free(sorted);
	if (!second)
		return 0;
	return REFUSE(s, second->line, "%.*s: set already in line %d. Remove one",
		      shown(second->name), second->name.at, first->line);
}

int conf_text_scan(struct conf_text *text, const char *file, const char *bytes, size_t len_bytes,
		   struct conf_error *error)
{
	struct scan s = { .text = text, .file = file, .error = error, .line = 1 };
	int err;

	memset(text, 0, sizeof(*text));
	if (len_bytes > CONF_FILE_MAX) {
		conf_refuse(file, error, 0, "larger than %llu MiB. Is this a configuration?",
			    (unsigned long long)(CONF_FILE_MAX / MIB));
		return -EFBIG;
	}
	text->text = malloc(len_bytes + 1);
	text->sections = calloc(32, sizeof(*text->sections));
	if (!text->text || !text->sections)
		return -ENOMEM;
	if (len_bytes)
		memcpy(text->text, bytes, len_bytes);
	text->text[len_bytes] = '\0';
	text->len_bytes = len_bytes;
	s.sections_size = 32;
	text->sections[text->section_count++].name = (struct conf_span){ "root", 4 };
	s.at = text->text;
	err = check_bytes(&s);
	err = err ? err : scan_all(&s);
	err = err ? err : refuse_same_sections(&s);
	return err ? err : refuse_same_entries(&s);
}

void conf_text_free(struct conf_text *text)
{
	free(text->text);
	free(text->sections);
	free(text->entries);
	free(text->value_lines);
	memset(text, 0, sizeof(*text));
}

int conf_text_line(const struct conf_text *text, unsigned section, const char *key, unsigned value)
{
	for (unsigned i = 0; i < text->entry_count; i++) {
		const struct conf_entry *entry = &text->entries[i];

		if (entry->section != section || !conf_span_is(entry->name, key))
			continue;
		return value < entry->value_count ? text->value_lines[entry->first_value + value] :
						    entry->line;
	}
	return text->sections[section].line;
}
