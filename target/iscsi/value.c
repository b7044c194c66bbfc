/* SPDX-License-Identifier: MIT */
/*
 * Values of text keys: numbers, binary values and lists as they are read, pairs as they are
 * written.
 *
 * Invariants:
 * 1. Nothing is written past the size given; a pair that does not fit is not there at all.
 * 2. A value has one meaning or none: leading zeroes, stray characters, wrong padding and
 *    numbers above 64 bits are refused.
 *
 * Not here: which key takes which value (keys.c).
 * Spec: RFC 7143 section 6.1.
 */
#include "target/iscsi/value.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void iscsi_out_add(struct iscsi_out *out, const char *name, const char *fmt, ...)
{
	size_t room = out->size - out->len, used;
	va_list ap;
	int n;

	n = snprintf(out->data + out->len, room, "%s=", name);
	used = (size_t)n;
	if (n >= 0 && used < room) {
		va_start(ap, fmt);
		n = vsnprintf(out->data + out->len + used, room - used, fmt, ap);
		va_end(ap);
		used += n < 0 ? 0 : (size_t)n;
	}
	if (n < 0 || used >= room)
		out->full = true;
	else
		out->len += used + 1;
}

static int digit(char c, unsigned base)
{
	int v = -1;

	if (c >= '0' && c <= '9')
		v = c - '0';
	else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		v = (c | 0x20) - 'a' + 10;
	return v < (int)base ? v : -1;
}

bool iscsi_number(const char *value, uint64_t *number)
{
	unsigned base = 10;
	uint64_t n = 0;

	if (value[0] == '0' && (value[1] | 0x20) == 'x') {
		base = 16;
		value += 2;
	} else if (value[0] == '0' && value[1]) {
		return false; /* a decimal constant begins with a nonzero digit */
	}
	if (!*value)
		return false;
	for (; *value; value++) {
		int d = digit(*value, base);

		if (d < 0 || n > (UINT64_MAX - (unsigned)d) / base)
			return false;
		n = n * base + (unsigned)d;
	}
	*number = n;
	return true;
}

static int binary_hex(const char *hex, uint8_t *bytes, size_t size)
{
	size_t digits = strlen(hex), len = (digits + 1) / 2, at = digits & 1;

	if (!digits || hex[strspn(hex, "0123456789abcdefABCDEF")])
		return -EINVAL;
	if (len > size)
		return -E2BIG;
	memset(bytes, 0, len);
	/* An odd count stands for a leading zero. */
	for (; *hex; hex++, at++)
		bytes[at / 2] = (uint8_t)(bytes[at / 2] << 4 | digit(*hex, 16));
	return (int)len;
}

static int base64_value(char c)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *p = c ? strchr(alphabet, c) : NULL;

	return p ? (int)(p - alphabet) : -1;
}

static int binary_base64(const char *text, uint8_t *bytes, size_t size)
{
	size_t chars = strlen(text), pad = 0, len, at = 0;
	uint32_t bits = 0;

	while (pad < 2 && pad < chars && text[chars - 1 - pad] == '=')
		pad++;
	if (!chars || chars % 4)
		return -EINVAL;
	len = chars / 4 * 3 - pad;
	if (len > size)
		return -E2BIG;
	for (size_t i = 0; i < chars; i++) {
		int v = i < chars - pad ? base64_value(text[i]) : 0;

		if (v < 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)v;
		for (unsigned shift = 24; i % 4 == 3 && shift; at++) {
			shift -= 8;
			if (at < len)
				bytes[at] = (uint8_t)(bits >> shift);
			else if ((uint8_t)(bits >> shift))
				return -EINVAL; /* bits that the padding says are not there */
		}
	}
	return (int)len;
}

int iscsi_binary(const char *value, uint8_t *bytes, size_t size)
{
	uint64_t number;
	int len = 1;

	if (value[0] == '0' && (value[1] | 0x20) == 'x')
		return binary_hex(value + 2, bytes, size);
	if (value[0] == '0' && (value[1] | 0x20) == 'b')
		return binary_base64(value + 2, bytes, size);
	if (!iscsi_number(value, &number))
		return -EINVAL;
	while (len < 8 && number >> (8 * len))
		len++;
	if ((size_t)len > size)
		return -E2BIG;
	for (int i = len; i-- > 0; number >>= 8)
		bytes[i] = (uint8_t)number;
	return len;
}

bool iscsi_list_next(const char **list, const char **item, size_t *len)
{
	if (!*list)
		return false;
	*item = *list;
	*len = strcspn(*item, ",");
	*list = (*item)[*len] ? *item + *len + 1 : NULL;
	return true;
}

bool iscsi_item_is(const char *item, size_t len, const char *what)
{
	return strlen(what) == len && memcmp(item, what, len) == 0;
}

bool iscsi_list_has(const char *list, const char *what)
{
	const char *item;
	size_t len;

	while (iscsi_list_next(&list, &item, &len)) {
		if (iscsi_item_is(item, len, what))
			return true;
	}
	return false;
}
