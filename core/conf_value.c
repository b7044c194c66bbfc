/* SPDX-License-Identifier: MIT */
/*
 * One value of each kind: text to number, size, duration, address, name.
 *
 * Invariants:
 * 1. A value is taken exactly or refused; nothing is rounded, clamped or guessed.
 * 2. Every refusal says what to write instead.
 *
 * Not here: which setting has which kind (conf_schema.c), relations (conf_check.c).
 * Spec: RFC 7143 4.2.7 and RFC 3721 for names, RFC 5952 in what addresses look like.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/conf_int.h"

/* The digits at *TEXT as a number; moves past them. */
static int take_digits(const char **text, uint64_t *value)
{
	const char *at = *text;

	*value = 0;
	if (!isdigit((unsigned char)*at))
		return -EINVAL;
	for (; isdigit((unsigned char)*at); at++) {
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(*at - '0'), value))
			return -EINVAL;
	}
	*text = at;
	return 0;
}

int conf_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGTP";
	const char *unit;
	uint64_t value;

	if (take_digits(&text, &value))
		return -EINVAL;
	if (*text) {
		unit = strchr(units, *text);
		if (!unit || text[1] ||
		    __builtin_mul_overflow(value, (uint64_t)1 << (10 * (unit - units + 1)), &value))
			return -EINVAL;
	}
	*bytes = value;
	return 0;
}

int conf_duration(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 },       { "us", NS_PER_US },    { "ms", NS_PER_MS },
		{ "s", NS_PER_S }, { "m", 60 * NS_PER_S }, { "h", 3600 * NS_PER_S },
	};
	uint64_t value;

	if (take_digits(&text, &value))
		return -EINVAL;
	for (unsigned i = 0; i < ARRAY_LEN(units); i++) {
		if (strcmp(text, units[i].name) != 0)
			continue;
		return __builtin_mul_overflow(value, units[i].ns, ns) ? -EINVAL : 0;
	}
	return -EINVAL;
}

static int refuse(char *cause, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int refuse(char *cause, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cause, size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static void size_text(uint64_t bytes, char *buf, size_t size)
{
	static const char units[] = "KMGTP";
	unsigned unit = 0;

	while (unit < sizeof(units) - 1 && bytes && bytes % KIB == 0) {
		bytes /= KIB;
		unit++;
	}
	if (unit)
		snprintf(buf, size, "%llu%c", (unsigned long long)bytes, units[unit - 1]);
	else
		snprintf(buf, size, "%llu", (unsigned long long)bytes);
}

static int parse_size(const struct conf_field *field, const char *text, uint64_t *value,
		      char *cause, size_t cause_size)
{
	char low[24], high[24];
	int digits = (int)strspn(text, "0123456789");
	char unit = (char)toupper((unsigned char)text[digits]);

	if (conf_size(text, value)) {
		if (digits &&
		    (!text[digits] || (strchr("KMGTP", text[digits]) && !text[digits + 1])))
			return refuse(cause, cause_size, "%.32s is too large", text);
		if (digits && digits < 20 && unit && strchr("KMGTP", unit))
			return refuse(cause, cause_size,
				      "\"%.32s\" is not a size. Write %.*s%c (K M G T P are powers "
				      "of 1024)",
				      text, digits, text, unit);
		return refuse(cause, cause_size,
			      "\"%.32s\" is not a size. Write bytes, or like 256M (K M G T P are "
			      "powers of 1024)",
			      text);
	}
	if (*value < field->min || *value > field->max) {
		size_text(field->min, low, sizeof(low));
		size_text(field->max, high, sizeof(high));
		return refuse(cause, cause_size, "%.32s is out of range. Write %s to %s", text, low,
			      high);
	}
	return 0;
}

static void duration_text(uint64_t ns, char *buf, size_t size)
{
	if (ns % (3600 * NS_PER_S) == 0)
		snprintf(buf, size, "%lluh", (unsigned long long)(ns / (3600 * NS_PER_S)));
	else if (ns % NS_PER_S == 0)
		snprintf(buf, size, "%llus", (unsigned long long)(ns / NS_PER_S));
	else
		snprintf(buf, size, "%llums", (unsigned long long)(ns / NS_PER_MS));
}

static int parse_duration(const struct conf_field *field, const char *text, uint64_t *value,
			  char *cause, size_t cause_size)
{
	char low[24], high[24];

	if (conf_duration(text, value)) {
		if (*text && strspn(text, "0123456789") == strlen(text))
			return refuse(cause, cause_size,
				      "\"%.32s\" has no unit. Write %.32ss or "
				      "%.32sms",
				      text, text, text);
		return refuse(
			cause, cause_size,
			"\"%.32s\" is not a duration. Write like 300ms or 30s (ns us ms s m h)",
			text);
	}
	if (*value < field->min || *value > field->max) {
		duration_text(field->min, low, sizeof(low));
		duration_text(field->max, high, sizeof(high));
		return refuse(cause, cause_size, "%.32s is out of range. Write %s to %s", text, low,
			      high);
	}
	return 0;
}

static int parse_unsigned(const struct conf_field *field, const char *text, uint64_t *value,
			  char *cause, size_t cause_size)
{
	const char *rest = text;

	if (take_digits(&rest, value) || *rest || *value < field->min || *value > field->max)
		return refuse(cause, cause_size, "\"%.32s\" is not a number from %llu to %llu",
			      text, (unsigned long long)field->min, (unsigned long long)field->max);
	return 0;
}

static int parse_boolean(const char *text, bool *value, char *cause, size_t cause_size)
{
	*value = strcmp(text, "true") == 0;
	if (*value || strcmp(text, "false") == 0)
		return 0;
	return refuse(cause, cause_size, "\"%.32s\" is neither true nor false", text);
}

static int parse_driver(const char *text, enum conf_driver *driver, char *cause, size_t cause_size)
{
	static const char *const names[] = {
		[CONF_DRIVER_RAM] = "ram",
		[CONF_DRIVER_NULL] = "null",
		[CONF_DRIVER_FILE] = "file",
	};

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*driver = (enum conf_driver)i;
			return 0;
		}
	}
	return refuse(cause, cause_size, "no \"%.32s\" in this version. Use ram, null or file",
		      text);
}

/* "00:a0:98", "00-a0-98" or "00a098". */
static int parse_oui(const char *text, uint64_t *oui, char *cause, size_t cause_size)
{
	unsigned digits = 0;
	const char *at = text;

	*oui = 0;
	for (; digits < 6 && isxdigit((unsigned char)*at); at++) {
		char digit[2] = { *at, '\0' };

		*oui = *oui << 4 | strtoul(digit, NULL, 16);
		digits++;
		if (digits % 2 == 0 && digits < 6 && (at[1] == ':' || at[1] == '-'))
			at++;
	}
	if (digits != 6 || *at || *oui == 0)
		return refuse(cause, cause_size,
			      "\"%.32s\" is not an OUI. Write three bytes like 00:a0:98", text);
	return 0;
}

bool conf_value_is_name(const char *text)
{
	size_t len = strlen(text);

	if (len == 0 || len >= CONF_NAME_MAX || !isalnum((unsigned char)*text))
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr("._-", *text))
			return false;
	return true;
}

static int parse_path(const char *text, char **value, char *cause, size_t cause_size)
{
	if (*text != '/' || text[1] == '\0')
		return refuse(cause, cause_size, "\"%.128s\" is not a whole path. Begin it with /",
			      text);
	*value = strdup(text);
	return *value ? 0 : -ENOMEM;
}

static int parse_string(const struct conf_field *field, const char *text, char **value, char *cause,
			size_t cause_size)
{
	if (field->kind == CONF_PATH)
		return parse_path(text, value, cause, cause_size);
	if (field->kind == CONF_NAME && !conf_value_is_name(text))
		return refuse(cause, cause_size,
			      "\"%.64s\" is not a name. Use 1 to %d letters, digits, . _ -", text,
			      CONF_NAME_MAX - 1);
	*value = strdup(text);
	return *value ? 0 : -ENOMEM;
}

static int add_address(const char *text, void *object, const struct conf_field *field, char *cause,
		       size_t cause_size)
{
	struct conf_portal *portal =
		container_of((char *)object + field->offset, struct conf_portal, listen);
	struct conf_address *bigger;

	if (portal->listen_count == field->max)
		return refuse(cause, cause_size, "more than %llu addresses. Make another portal",
			      (unsigned long long)field->max);
	bigger = reallocarray(portal->listen, portal->listen_count + 1, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	portal->listen = bigger;
	if (conf_value_address(text, &bigger[portal->listen_count], cause, cause_size))
		return -EINVAL;
	portal->listen_count++;
	return 0;
}

static int add_string(const char *text, struct conf_strings *list, const struct conf_field *field,
		      char *cause, size_t cause_size)
{
	char **bigger;

	if (list->count == field->max)
		return refuse(cause, cause_size, "more than %llu entries",
			      (unsigned long long)field->max);
	bigger = reallocarray(list->items, list->count + 1, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	list->items = bigger;
	bigger[list->count] = strdup(text);
	return bigger[list->count++] ? 0 : -ENOMEM;
}

int conf_value_parse(const struct conf_field *field, const char *text, void *object, char *cause,
		     size_t cause_size)
{
	void *at = (char *)object + field->offset;
	uint64_t value;
	int err;

	switch (field->kind) {
	case CONF_STRING:
	case CONF_NAME:
	case CONF_PATH:
		return parse_string(field, text, at, cause, cause_size);
	case CONF_BOOLEAN:
		return parse_boolean(text, at, cause, cause_size);
	case CONF_SIZE:
		return parse_size(field, text, at, cause, cause_size);
	case CONF_DURATION:
		return parse_duration(field, text, at, cause, cause_size);
	case CONF_OUI:
		return parse_oui(text, at, cause, cause_size);
	case CONF_DRIVER:
		return parse_driver(text, at, cause, cause_size);
	case CONF_STRING_LIST:
		return add_string(text, at, field, cause, cause_size);
	case CONF_ADDRESSES:
		return add_address(text, object, field, cause, cause_size);
	case CONF_UNSIGNED:
	case CONF_UNSIGNED16:
	case CONF_UNSIGNED32:
		err = parse_unsigned(field, text, &value, cause, cause_size);
		if (err)
			return err;
		if (field->kind == CONF_UNSIGNED16)
			*(uint16_t *)at = (uint16_t)value;
		else if (field->kind == CONF_UNSIGNED32)
			*(uint32_t *)at = (uint32_t)value;
		else
			*(unsigned *)at = (unsigned)value;
		return 0;
	case CONF_LATER:
	case CONF_LATER_SET:
		break;
	}
	return 0;
}

/* Splits "host:port" or "[host]:port" into HOST and the port: 0 or -EINVAL. */
static int split_address(const char *text, char *host, size_t host_size, uint16_t *port)
{
	const char *end, *rest;
	uint64_t number;

	if (*text == '[') {
		end = strchr(++text, ']');
		if (!end || end[1] != ':')
			return -EINVAL;
		rest = end + 2;
	} else {
		end = strchr(text, ':');
		if (!end)
			return -EINVAL;
		rest = end + 1;
	}
	if ((size_t)(end - text) >= host_size || strlen(rest) > 5 || take_digits(&rest, &number) ||
	    *rest || number > 65535)
		return -EINVAL;
	memcpy(host, text, (size_t)(end - text));
	host[end - text] = '\0';
	*port = (uint16_t)number;
	return 0;
}

int conf_value_address(const char *text, struct conf_address *address, char *cause,
		       size_t cause_size)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address->addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address->addr;
	char host[INET6_ADDRSTRLEN];
	uint16_t port;

	memset(address, 0, sizeof(*address));
	if (split_address(text, host, sizeof(host), &port))
		goto bad;
	if (*text == '[') {
		if (inet_pton(AF_INET6, host, &v6->sin6_addr) != 1)
			goto bad;
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		address->addr_len = sizeof(*v6);
	} else {
		if (inet_pton(AF_INET, host, &v4->sin_addr) != 1)
			goto bad;
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		address->addr_len = sizeof(*v4);
	}
	address->text = strdup(text);
	return address->text ? 0 : -ENOMEM;
bad:
	return refuse(cause, cause_size,
		      "\"%.64s\" is not an address and port. Write like 192.0.2.1:3260 or "
		      "[2001:db8::1]:3260",
		      text);
}

/* "yyyy-mm." and a domain that does not begin or end in a dot, before an optional colon. */
static bool is_iqn_rest(const char *s)
{
	size_t domain;

	for (unsigned i = 0; i < 8; i++) {
		if (i == 4 ? s[i] != '-' : i == 7 ? s[i] != '.' : !isdigit((unsigned char)s[i]))
			return false;
	}
	if (strncmp(s + 5, "01", 2) < 0 || strncmp(s + 5, "12", 2) > 0)
		return false;
	domain = strcspn(s + 8, ":");
	return domain && s[8] != '.' && s[8 + domain - 1] != '.';
}

int conf_value_iscsi_name(const char *text, char *cause, size_t cause_size)
{
	size_t len = strlen(text);

	if (len > 223)
		return refuse(cause, cause_size, "longer than the 223 bytes that iSCSI allows");
	if (strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:") !=
	    len)
		return refuse(cause, cause_size,
			      "has a character that iSCSI names do not. Use a-z 0-9 - . :");
	if (strncasecmp(text, "iqn.", 4) == 0) {
		if (is_iqn_rest(text + 4))
			return 0;
		return refuse(cause, cause_size,
			      "not a whole iqn. Write like iqn.2026-11.org.example:name");
	}
	if (strncasecmp(text, "eui.", 4) == 0) {
		if (len == 20 && strspn(text + 4, "0123456789abcdefABCDEF") == 16)
			return 0;
		return refuse(cause, cause_size, "eui. needs 16 hexadecimal digits");
	}
	if (strncasecmp(text, "naa.", 4) == 0) {
		if ((len == 20 || len == 36) &&
		    strspn(text + 4, "0123456789abcdefABCDEF") == len - 4)
			return 0;
		return refuse(cause, cause_size, "naa. needs 16 or 32 hexadecimal digits");
	}
	return refuse(cause, cause_size,
		      "not an iSCSI name. Write like iqn.2026-11.org.example:name");
}
