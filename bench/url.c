/* SPDX-License-Identifier: MIT */
/*
 * URLs of portals and LUNs.
 *
 * Invariants:
 * 1. A secret in a URL is refused, and not repeated in the refusal.
 * 2. A LUN that no URL of a target names is not touched there.
 *
 * Not here: asking a portal for others (discover.c).
 */
#include "bench/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LUN_MAX 16383
#define LIKE "Write it like iscsi://192.0.2.1:3260/iqn.2026-11.org.example:name/0"

static int refuse(struct bench_fault *fault, const char *fmt, ...) PRINTF_LIKE(2, 3);
static int refuse(struct bench_fault *fault, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fault->text, sizeof(fault->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Copies LEN bytes of what may stand in a name; false if they do not fit or are no name. */
static bool take(char *to, size_t size, const char *from, size_t len)
{
	if (len >= size)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isgraph((unsigned char)from[i]))
			return false;
	memcpy(to, from, len);
	to[len] = '\0';
	return true;
}

/* "HOST", "HOST:PORT", "[V6]", "[V6]:PORT" to an address with its port. */
static bool take_address(struct bench_portal *portal, const char *text, size_t len)
{
	size_t host = *text == '[' ? strcspn(text, "]") + 1 : strcspn(text, ":/");
	const char *port = text + host + 1;
	size_t digits;
	long number;

	if (host > len || host == 0 || (*text == '[' && host <= 2))
		return false;
	if (host == len)
		return len + sizeof(":3260") <= sizeof(portal->address) &&
		       take(portal->address, sizeof(portal->address), text, len) &&
		       strcat(portal->address, ":3260");
	digits = strspn(port, "0123456789");
	number = strtol(port, NULL, 10);
	return text[host] == ':' && digits && digits < 6 && host + 1 + digits == len &&
	       number > 0 && number < 65536 &&
	       take(portal->address, sizeof(portal->address), text, len);
}

static int take_user(struct url *url, const char **at, const char *end, struct bench_fault *fault)
{
	const char *sign = memchr(*at, '@', (size_t)(end - *at));
	const char *secret = sign ? memchr(*at, '%', (size_t)(sign - *at)) : NULL;

	if (secret)
		return refuse(
			fault,
			"URL of user %.*s: a secret there is seen by everyone on this machine. "
			"Put it in a file, --chap-file FILE",
			(int)min_u64((uint64_t)(secret - *at), 64), *at);
	if (sign && (sign == *at || !take(url->user, sizeof(url->user), *at, (size_t)(sign - *at))))
		return refuse(fault, "URL: no user before the @. " LIKE);
	*at = sign ? sign + 1 : *at;
	return 0;
}

int url_parse(const char *text, struct url *url, struct bench_fault *fault)
{
	const char *at = text + strlen("iscsi://"), *end, *target;
	size_t len;
	char *rest;

	memset(url, 0, sizeof(*url));
	url->lun = -1;
	if (strncmp(text, "iscsi://", strlen("iscsi://")) != 0)
		return refuse(fault, "\"%.100s\" is no URL of a LUN. " LIKE, text);
	/* What libiscsi's own tools take there has secrets among it. */
	if (strchr(at, '?'))
		return refuse(fault, "URL: nothing may follow a ? here. Leave it out; user and "
				     "secret go into a file, --chap-file FILE");
	end = at + strcspn(at, "/");
	if (take_user(url, &at, end, fault))
		return -EINVAL;
	if (!take_address(&url->portal, at, (size_t)(end - at)))
		return refuse(fault, "%.100s: no host and port. " LIKE, text);
	if (!*end || !end[1])
		return 0;
	target = end + 1;
	len = strcspn(target, "/");
	if (!len || !take(url->portal.target, sizeof(url->portal.target), target, len))
		return refuse(fault, "%.100s: no target name. " LIKE, text);
	if (!target[len] || !target[len + 1])
		return 0;
	url->lun = (int)strtol(target + len + 1, &rest, 10);
	if (!isdigit((unsigned char)target[len + 1]) || *rest || strlen(target + len + 1) > 5 ||
	    url->lun > LUN_MAX)
		return refuse(fault, "%.200s: no LUN at its end. Write a number from 0 to %d", text,
			      LUN_MAX);
	return 0;
}

int url_add_lun(struct bench_setup *setup, unsigned lun)
{
	unsigned at = 0;

	while (at < setup->lun_count && setup->luns[at] < lun)
		at++;
	if (at < setup->lun_count && setup->luns[at] == lun)
		return 0;
	if (setup->lun_count == BENCH_LUNS_MAX)
		return -ENOSPC;
	memmove(&setup->luns[at + 1], &setup->luns[at],
		(setup->lun_count - at) * sizeof(setup->luns[0]));
	setup->luns[at] = lun;
	setup->lun_count++;
	return 0;
}

static int add_portal(struct bench_setup *setup, const struct bench_portal *portal,
		      struct bench_fault *fault)
{
	for (unsigned i = 0; i < setup->portal_count; i++)
		if (strcmp(setup->portals[i].address, portal->address) == 0 &&
		    strcmp(setup->portals[i].target, portal->target) == 0)
			return 0;
	if (setup->portal_count == BENCH_PORTALS_MAX)
		return refuse(fault, "more than %d portals. Name fewer", BENCH_PORTALS_MAX);
	setup->portals[setup->portal_count++] = *portal;
	return 0;
}

static bool named(const struct url *urls, unsigned count, const char *target, int lun)
{
	for (unsigned i = 0; i < count; i++)
		if (urls[i].lun == lun && strcmp(urls[i].portal.target, target) == 0)
			return true;
	return false;
}

int url_gather(const struct url *urls, unsigned count, struct bench_setup *setup,
	       struct bench_fault *fault)
{
	for (unsigned i = 0; i < count; i++) {
		if (add_portal(setup, &urls[i].portal, fault))
			return -EINVAL;
		if (urls[i].lun >= 0 && url_add_lun(setup, (unsigned)urls[i].lun))
			return refuse(fault, "more than %d LUNs. Name fewer", BENCH_LUNS_MAX);
	}
	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; j < count; j++)
			if (urls[j].lun >= 0 &&
			    !named(urls, count, urls[i].portal.target, urls[j].lun))
				return refuse(fault,
					      "LUN %d is named at %.100s, not at %.100s. Every LUN "
					      "is reached over every portal: name it there too, or "
					      "measure one target at a time",
					      urls[j].lun, urls[j].portal.target,
					      urls[i].portal.target);
	return 0;
}
