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
	EVENT_FAULT_ADDED,
	EVENT_FAULT_REMOVED,
	EVENT_COUNT
};

/* Values, in the order of the catalogue's field names; all of them. */
void event_emit(enum event_id id, ...); /* const char * each, count from the catalogue */

/* Watchers (yokectl events --follow): FN runs for each new event until removed. */
struct event_watch {
	void (*fn)(struct event_watch *watch, uint64_t number);
	struct event_watch *next;
};
void event_watch_add(struct event_watch *watch);
void event_watch_remove(struct event_watch *watch);

/* Events with a number above AFTER, oldest first, at most MAX, as JSON rows; owned by the caller. */
json_t *event_list(uint64_t after, unsigned max);

const char *event_name(enum event_id id);

#endif
