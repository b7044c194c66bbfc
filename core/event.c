/* SPDX-License-Identifier: MIT */
/*
 * The catalogue of events and the ring of the newest ones.
 *
 * Invariants:
 * 1. Names, fields and severities are in `catalogue` and nowhere else.
 * 2. Numbers rise by one; the ring holds the newest EVENT_RING without a gap.
 * 3. `mutex` guards the ring and the watchers; it is recursive, because watchers list events.
 * 4. What another side can cause at will is rate-limited in the log, never in the ring.
 *
 * Not here: serving them (target/ctl.c).
 */
#include "core/event.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clean.h"
#include "core/log.h"

struct event_kind {
	const char *name;
	enum event_severity severity;
	bool limited;
	const char *fields[EVENT_FIELDS + 1];
};

static const struct event_kind catalogue[EVENT_COUNT] = {
	[EVENT_STARTED] = { "started", EVENT_INFO, false, { "version", "node" } },
	[EVENT_STOPPING] = { "stopping", EVENT_INFO, false, { "reason" } },
	[EVENT_CONFIG_RELOADED] = { "config-reloaded", EVENT_INFO, false, { "file", "changes" } },
	[EVENT_CONFIG_REFUSED] = { "config-refused", EVENT_WARN, false, { "file", "cause" } },
	[EVENT_LOGIN_REFUSED] = { "login-refused",
				  EVENT_WARN,
				  true,
				  { "initiator", "portal", "status", "cause" } },
	[EVENT_SESSION_UP] = { "session-up",
			       EVENT_INFO,
			       true,
			       { "target", "initiator", "isid", "portal" } },
	[EVENT_SESSION_DOWN] = { "session-down",
				 EVENT_INFO,
				 true,
				 { "target", "initiator", "isid", "portal", "reason" } },
	[EVENT_BACKING_FAILED] = { "backing-failed", EVENT_CRIT, false, { "backing", "cause" } },
	[EVENT_BACKING_RECOVERED] = { "backing-recovered", EVENT_INFO, false, { "backing" } },
	[EVENT_BACKING_FULL] = { "backing-full", EVENT_CRIT, false, { "backing" } },
	[EVENT_ARRAY_STARTED] = { "array-started", EVENT_INFO, false, { "array", "members" } },
	[EVENT_ARRAY_WAITING] = { "array-waiting", EVENT_WARN, false, { "array", "cause" } },
	[EVENT_ARRAY_STOPPED] = { "array-stopped", EVENT_INFO, false, { "array" } },
	[EVENT_ARRAY_HALTED] = { "array-halted", EVENT_CRIT, false, { "array" } },
	[EVENT_MEMBER_FAILED] = { "member-failed",
				  EVENT_WARN,
				  false,
				  { "array", "member", "disk", "cause" } },
	[EVENT_MEMBER_ADDED] = { "member-added", EVENT_INFO, false, { "array", "member", "disk" } },
	[EVENT_MEMBER_REMOVED] = { "member-removed",
				   EVENT_INFO,
				   false,
				   { "array", "member", "disk" } },
	[EVENT_RESYNC_STARTED] = { "resync-started", EVENT_INFO, false, { "array", "bytes" } },
	[EVENT_RESYNC_DONE] = { "resync-done", EVENT_INFO, false, { "array" } },
	[EVENT_BLOCKS_LOST] = { "blocks-lost", EVENT_CRIT, false, { "array", "bytes" } },
	[EVENT_FAULT_ADDED] = { "fault-added", EVENT_WARN, false, { "id", "rule" } },
	[EVENT_FAULT_REMOVED] = { "fault-removed", EVENT_INFO, false, { "id" } },
	[EVENT_STATE_IGNORED] = { "state-ignored",
				  EVENT_WARN,
				  false,
				  { "backing", "file", "cause" } },
	[EVENT_STATE_NOT_SAVED] = { "state-not-saved",
				    EVENT_WARN,
				    true,
				    { "backing", "file", "cause" } },
};

static const char *const severity_names[] = { "INFO", "WARN", "CRIT" };
static const enum log_level severity_levels[] = { LOG_L_INFO, LOG_L_WARN, LOG_L_ERROR };

struct event {
	uint64_t realtime_ns;
	enum event_id id;
	char text[EVENT_TEXT]; /* the values, each with its NUL */
};

static struct event ring[EVENT_RING];
static uint64_t newest; /* number of the last event; it lies at newest % EVENT_RING */
static struct event_watch *watches;
static struct log_limit limits[EVENT_COUNT];
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static unsigned field_count(enum event_id id)
{
	unsigned n = 0;

	while (catalogue[id].fields[n])
		n++;
	return n;
}

/* Each value gets an equal share of the room, so that a long one never costs another. */
static void pack(struct event *event, va_list ap)
{
	unsigned count = field_count(event->id);
	size_t at = 0;

	for (unsigned i = 0; i < count; i++)
		at += log_escape(event->text + at, EVENT_TEXT / count, va_arg(ap, const char *)) +
		      1;
}

/* "key=value key=value" as it came: the log escapes it, and once is enough. */
static void log_text(enum event_id id, char *out, size_t size, va_list ap)
{
	size_t at = 0;

	out[0] = '\0';
	for (const char *const *field = catalogue[id].fields; *field && at < size; field++)
		at += (size_t)snprintf(out + at, size - at, "%s%s=%s", at ? " " : "", *field,
				       va_arg(ap, const char *));
}

static void log_event(enum event_id id, const char *text)
{
	const struct event_kind *kind = &catalogue[id];
	enum log_level level = severity_levels[kind->severity];

	if (kind->limited)
		log_limited(&limits[id], level, "event", "", kind->name, "%s", text);
	else
		log_line(level, "event", "", kind->name, "%s", text);
}

void event_emit(enum event_id id, ...)
{
	struct event_watch *watch, *next;
	char text[LOG_LINE_MAX];
	struct event *event;
	struct timespec ts;
	uint64_t number;
	va_list ap;

	assert((unsigned)id < EVENT_COUNT);
	clock_gettime(CLOCK_REALTIME, &ts);
	pthread_mutex_lock(&mutex);
	number = ++newest;
	event = &ring[number % EVENT_RING];
	event->id = id;
	event->realtime_ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	va_start(ap, id);
	pack(event, ap);
	va_end(ap);
	for (watch = watches; watch; watch = next) {
		next = watch->next;
		watch->fn(watch, number);
	}
	pthread_mutex_unlock(&mutex);
	va_start(ap, id);
	log_text(id, text, sizeof(text), ap);
	va_end(ap);
	log_event(id, text);
}

void event_watch_add(struct event_watch *watch)
{
	pthread_mutex_lock(&mutex);
	watch->next = watches;
	watches = watch;
	pthread_mutex_unlock(&mutex);
}

void event_watch_remove(struct event_watch *watch)
{
	struct event_watch **at;

	pthread_mutex_lock(&mutex);
	for (at = &watches; *at && *at != watch; at = &(*at)->next)
		;
	if (*at)
		*at = watch->next;
	pthread_mutex_unlock(&mutex);
}

void event_time_text(char out[EVENT_TIME_MAX], uint64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / NS_PER_S);
	unsigned ms = (unsigned)(realtime_ns % NS_PER_S / NS_PER_MS);
	struct tm tm;
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(out, EVENT_TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, EVENT_TIME_MAX - n, ".%03uZ", ms);
}

static json_t *event_row(uint64_t number)
{
	const struct event *event = &ring[number % EVENT_RING];
	const struct event_kind *kind = &catalogue[event->id];
	const char *value = event->text;
	json_t *fields = json_object();
	char time_text[EVENT_TIME_MAX];

	for (const char *const *name = kind->fields; *name; name++) {
		json_object_set_new(fields, *name, clean_json(value));
		value += strlen(value) + 1;
	}
	event_time_text(time_text, event->realtime_ns);
	return json_pack("{s:I, s:s, s:s, s:s, s:o}", "number", (json_int_t)number, "time_utc",
			 time_text, "severity", severity_names[kind->severity], "name", kind->name,
			 "fields", fields);
}

json_t *event_list(uint64_t after, unsigned max)
{
	json_t *rows = json_array();
	uint64_t number;

	pthread_mutex_lock(&mutex);
	number = newest > EVENT_RING ? max_u64(after, newest - EVENT_RING) : after;
	for (; number < newest && max > 0; max--)
		json_array_append_new(rows, event_row(++number));
	pthread_mutex_unlock(&mutex);
	return rows;
}

uint64_t event_newest(void)
{
	uint64_t number;

	pthread_mutex_lock(&mutex);
	number = newest;
	pthread_mutex_unlock(&mutex);
	return number;
}

const char *event_name(enum event_id id)
{
	return catalogue[id].name;
}

enum event_severity event_severity(enum event_id id)
{
	return catalogue[id].severity;
}

const char *const *event_fields(enum event_id id)
{
	return catalogue[id].fields;
}
