/* SPDX-License-Identifier: MIT */
/*
 * Events: what happened, by a name and fields from one catalogue (event.c).
 *
 * Each goes to the log once and into a ring of the newest EVENT_RING for
 * `yokectl events`. Numbers rise by one and start anew with the process.
 */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include <jansson.h>
#include <stdint.h>

#include "core/base.h"

#define EVENT_RING 1024
#define EVENT_FIELDS 6
#define EVENT_TEXT 1024

enum event_severity { EVENT_INFO, EVENT_WARN, EVENT_CRIT };

enum event_id {
	EVENT_STARTED,
	EVENT_STOPPING,
	EVENT_CONFIG_RELOADED,
	EVENT_CONFIG_REFUSED,
	EVENT_LOGIN_REFUSED,
	EVENT_SESSION_UP,
	EVENT_SESSION_DOWN,
	EVENT_BACKING_FAILED,
	EVENT_BACKING_RECOVERED,
	EVENT_BACKING_FULL,
	EVENT_ARRAY_STARTED,
	EVENT_ARRAY_WAITING,
	EVENT_ARRAY_STOPPED,
	EVENT_ARRAY_HALTED,
	EVENT_MEMBER_FAILED,
	EVENT_MEMBER_ADDED,
	EVENT_MEMBER_REMOVED,
	EVENT_RESYNC_STARTED,
	EVENT_RESYNC_DONE,
	EVENT_BLOCKS_LOST,
	EVENT_FAULT_ADDED,
	EVENT_FAULT_REMOVED,
	EVENT_STATE_IGNORED,
	EVENT_STATE_NOT_SAVED,
	EVENT_COUNT
};

/*
 * Values, in the order of the catalogue's field names; all of them, each a const char *.
 * Each is kept up to its share of EVENT_TEXT bytes, escaped as in the log. From any thread.
 */
void event_emit(enum event_id id, ...);

/*
 * Watchers (yokectl events --follow): FN runs for each new event until removed, on the
 * thread that emitted it, and may list events and remove itself.
 */
struct event_watch {
	void (*fn)(struct event_watch *watch, uint64_t number);
	struct event_watch *next;
};
void event_watch_add(struct event_watch *watch);
void event_watch_remove(struct event_watch *watch);

/*
 * Events with a number above AFTER, oldest first, at most MAX, as JSON rows
 * {number, time_utc, severity, name, fields}; owned by the caller.
 */
json_t *event_list(uint64_t after, unsigned max);

/* The number of the newest event, 0 before the first: where to start following. */
uint64_t event_newest(void);

const char *event_name(enum event_id id);
enum event_severity event_severity(enum event_id id);
/* NULL-terminated. */
const char *const *event_fields(enum event_id id);

/* "2026-01-31T12:00:00.123Z" of CLOCK_REALTIME; for whoever shows a time. */
#define EVENT_TIME_MAX 32
void event_time_text(char out[EVENT_TIME_MAX], uint64_t realtime_ns);

#endif
