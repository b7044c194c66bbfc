/* SPDX-License-Identifier: MIT */
/*
 * SendTargets through a discovery session of libiscsi.
 *
 * Invariants:
 *  1. It ends: each step has a deadline.
 *  2. What the target says is bounded by BENCH_PORTALS_MAX, and an address that is too long or
 *     unspecified (0.0.0.0, [::]) is left out.
 *  3. So are names and addresses with anything but printable ASCII in them: they go to terminals
 *     and files, and no URL can name them.
 *
 * Not here: sessions that carry commands (initiator.c), URLs (url.c).
 *
 * Spec: RFC 7143 appendix C.
 */
#include "bench/discover.h"

#include <ctype.h>
#include <errno.h>
#include <iscsi/iscsi.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEP_MS 5000
#define SLICE_MS 100

static int say(struct bench_fault *fault, int rc, const char *format, ...) PRINTF_LIKE(3, 4);
static int say(struct bench_fault *fault, int rc, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(fault->text, sizeof(fault->text), format, args);
	va_end(args);
	return rc;
}

/* A question to a portal, and what came back. */
struct ask {
	struct iscsi_context *iscsi;
	const struct bench_portal *portal;
	bool over;
	int status;
	unsigned targets;
	bool named; /* the target is among them */
	char target[sizeof(
		((struct bench_portal *)0)->target)]; /* the first, if none was asked for */
	struct bench_portal *found;
	unsigned count;
	char error[200];
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* libiscsi's last words, of which the first line. */
static void take_error(struct ask *ask)
{
	const char *error = iscsi_get_error(ask->iscsi);

	snprintf(ask->error, sizeof(ask->error), "%.*s", (int)strcspn(error, "\n"), error);
}

static void step_done(struct iscsi_context *iscsi, int status, void *data, void *arg)
{
	struct ask *ask = arg;

	(void)iscsi, (void)data;
	ask->over = true;
	ask->status = status;
	/* What is said later is about the consequences. */
	if (status != SCSI_STATUS_GOOD)
		take_error(ask);
}

static bool is_plain(const char *text)
{
	while (isgraph((unsigned char)*text))
		text++;
	return !*text;
}

/* ADDRESS is HOST:PORT[,GROUP], or HOST alone for the usual port. */
static void add_portal(struct ask *ask, const char *address)
{
	const char *last = strrchr(address, ':');
	bool port = last && !strchr(last, ']');
	char clean[sizeof(ask->found->address)];
	int length = (int)strcspn(address, ",");

	length = snprintf(clean, sizeof(clean), "%.*s%s", length, address, port ? "" : ":3260");
	if (length >= (int)sizeof(clean) || !is_plain(clean) ||
	    strncmp(clean, "0.0.0.0:", 8) == 0 || strncmp(clean, "[::]:", 5) == 0)
		return;
	for (unsigned i = 0; i < ask->count; i++)
		if (strcmp(ask->found[i].address, clean) == 0)
			return;
	if (ask->count == BENCH_PORTALS_MAX)
		return;
	ask->found[ask->count] = *ask->portal;
	memcpy(ask->found[ask->count].address, clean, sizeof(clean));
	ask->count++;
}

static void discovery_done(struct iscsi_context *iscsi, int status, void *data, void *arg)
{
	const struct iscsi_discovery_address *address = status == SCSI_STATUS_GOOD ? data : NULL;
	struct ask *ask = arg;
	const char *wanted = ask->portal->target;

	for (; address; address = address->next) {
		if (!is_plain(address->target_name))
			continue;
		ask->targets++;
		if (!*wanted && ask->targets == 1)
			snprintf(ask->target, sizeof(ask->target), "%s", address->target_name);
		if (strcasecmp(address->target_name, *wanted ? wanted : ask->target) != 0)
			continue;
		ask->named = true;
		for (const struct iscsi_target_portal *p = address->portals; p; p = p->next)
			add_portal(ask, p->portal);
	}
	step_done(iscsi, status, data, arg);
}

/* Until the step's callback, which does not come if the connection is lost meanwhile. */
static bool wait_step(struct ask *ask)
{
	uint64_t end = now_ms() + STEP_MS;

	while (!ask->over) {
		struct pollfd pfd = { .fd = iscsi_get_fd(ask->iscsi),
				      .events = (short)iscsi_which_events(ask->iscsi) };

		if (now_ms() >= end) {
			errno = ETIMEDOUT;
			return false;
		}
		if (poll(&pfd, 1, SLICE_MS) > 0 && iscsi_service(ask->iscsi, pfd.revents) < 0)
			break;
	}
	errno = ECONNREFUSED;
	return ask->over && ask->status == SCSI_STATUS_GOOD;
}

static bool begin(struct ask *ask)
{
	ask->over = false;
	ask->status = SCSI_STATUS_ERROR;
	return true;
}

static bool converse(struct ask *ask)
{
	struct iscsi_context *iscsi = ask->iscsi;

	return begin(ask) &&
	       iscsi_connect_async(iscsi, ask->portal->address, step_done, ask) == 0 &&
	       wait_step(ask) && begin(ask) && iscsi_login_async(iscsi, step_done, ask) == 0 &&
	       wait_step(ask) && begin(ask) &&
	       iscsi_discovery_async(iscsi, discovery_done, ask) == 0 && wait_step(ask);
}

int discover_portals(const struct bench_portal *portal, const char *initiator,
		     const struct bench_chap *chap, struct bench_portal *found, unsigned *count,
		     struct bench_fault *fault)
{
	struct ask ask = { .portal = portal, .found = found };
	int rc = 0;

	signal(SIGPIPE, SIG_IGN); /* libiscsi writes without MSG_NOSIGNAL */
	add_portal(&ask, portal->address);
	ask.iscsi = iscsi_create_context(initiator);
	if (!ask.iscsi)
		return say(fault, -ENOMEM, "no memory for a discovery session");
	iscsi_set_noautoreconnect(ask.iscsi, 1);
	iscsi_set_session_type(ask.iscsi, ISCSI_SESSION_DISCOVERY);
	iscsi_set_header_digest(ask.iscsi, ISCSI_HEADER_DIGEST_NONE_CRC32C);
	if (*chap->user)
		iscsi_set_initiator_username_pwd(ask.iscsi, chap->user, chap->secret);
	if (*chap->mutual_user)
		iscsi_set_target_username_pwd(ask.iscsi, chap->mutual_user, chap->mutual_secret);
	if (!converse(&ask)) {
		rc = -errno;
		if (!*ask.error)
			take_error(&ask);
		say(fault, rc, "%s: discovery %s: %s", portal->address,
		    rc == -ETIMEDOUT ? "got no answer" : "failed", ask.error);
	} else if (!ask.named) {
		rc = say(fault, -ENOENT, "%s: shows no target %s to %s", portal->address,
			 portal->target, initiator);
	} else if (!*portal->target && ask.targets > 1) {
		rc = say(fault, -EINVAL, "%s: has %u targets, say which: %s, ...", portal->address,
			 ask.targets, ask.target);
	} else if (begin(&ask) && iscsi_logout_async(ask.iscsi, step_done, &ask) == 0) {
		wait_step(&ask);
	}
	for (unsigned i = 0; i < ask.count && *ask.target; i++)
		memcpy(found[i].target, ask.target, sizeof(ask.target));
	iscsi_destroy_context(ask.iscsi);
	*count = ask.count;
	return rc;
}
