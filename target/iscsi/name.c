/* SPDX-License-Identifier: MIT */
/*
 * iSCSI names: is it one, and its one spelling.
 *
 * Invariants:
 * 1. A name that passed has no control character, space, comma or quote: it can stand in a text
 *    value, in a TransportID ("name,i,0x...") and on a terminal.
 * 2. Two spellings that differ in the case of ASCII letters have one normal form.
 *
 * Not here: which names may do what (core/conf.h).
 * Spec: RFC 7143 section 4.2.7, RFC 3722 with case folding for ASCII only, RFC 3980.
 */
#include "target/iscsi/name.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

/*
 * Code points above ASCII that are prohibited or invisible: C1 controls, spaces, format and
 * bidirectional controls, surrogates, private use, replacement characters.
 */
static const struct {
	uint32_t first, last;
} prohibited[] = {
	{ 0x80, 0xa0 },     { 0xad, 0xad },     { 0x1680, 0x1680 },      { 0x180e, 0x180e },
	{ 0x2000, 0x206f }, { 0x3000, 0x3002 }, { 0xd800, 0xf8ff },      { 0xfdd0, 0xfdef },
	{ 0xfeff, 0xfeff }, { 0xfff9, 0xffff }, { 0xe0000, UINT32_MAX },
};

static bool code_point_allowed(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_LEN(prohibited); i++) {
		if (c >= prohibited[i].first && c <= prohibited[i].last)
			return false;
	}
	return true;
}

/* Bytes of the UTF-8 sequence at TEXT (whose first byte is not ASCII), 0 if it is none. */
static size_t utf8_len(const unsigned char *text)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len;
	uint32_t c;

	if ((text[0] & 0xe0) == 0xc0) {
		len = 2;
		c = text[0] & 0x1f;
	} else if ((text[0] & 0xf0) == 0xe0) {
		len = 3;
		c = text[0] & 0x0f;
	} else if ((text[0] & 0xf8) == 0xf0) {
		len = 4;
		c = text[0] & 0x07;
	} else {
		return 0;
	}
	for (size_t i = 1; i < len; i++) {
		/* A NUL ends here too, so that nothing behind the text is read. */
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (text[i] & 0x3f);
	}
	/* An overlong form is a second spelling of another character. */
	return c >= least[len] && code_point_allowed(c) ? len : 0;
}

/* RFC 3722 leaves `-`, `.` and `:`; `_` is allowed because hosts in the field carry it. */
static bool ascii_allowed(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || strchr("-.:_", c);
}

static bool characters_allowed(const char *name)
{
	const unsigned char *p = (const unsigned char *)name;

	while (*p) {
		size_t len = *p < 0x80 ? (size_t)ascii_allowed(*p) : utf8_len(p);

		if (!len)
			return false;
		p += len;
	}
	return true;
}

/* Whether TEXT is exactly what PATTERN says: `9` a digit, everything else itself, then more. */
static bool begins_like(const char *text, const char *pattern)
{
	for (; *pattern; pattern++, text++) {
		if (*pattern == '9' ? !isdigit((unsigned char)*text) : *text != *pattern)
			return false;
	}
	return *text;
}

static bool all_hex(const char *text)
{
	return text[strspn(text, "0123456789abcdef")] == '\0';
}

static bool type_fits(const char *name)
{
	size_t digits = strlen(name) - 4;

	if (strncmp(name, "eui.", 4) == 0)
		return digits == 16 && all_hex(name + 4);
	if (strncmp(name, "naa.", 4) == 0)
		return (digits == 16 || digits == 32) && all_hex(name + 4);
	/* The naming authority is a reversed domain: it does not begin with a separator. */
	return begins_like(name, "iqn.9999-99.") && !strchr("-.:", name[12]);
}

bool iscsi_name_normalise(const char *text, char name[ISCSI_NAME_MAX + 1])
{
	size_t len = strnlen(text, ISCSI_NAME_MAX + 1);

	name[0] = '\0';
	if (len < 5 || len > ISCSI_NAME_MAX)
		return false;
	for (size_t i = 0; i <= len; i++)
		name[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i];
	if (type_fits(name) && characters_allowed(name))
		return true;
	name[0] = '\0';
	return false;
}
