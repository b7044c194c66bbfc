/* SPDX-License-Identifier: MIT */
/*
 * Problems: what is wrong now, each under a code with a fixed meaning.
 *
 * A problem is a state (it goes away when its cause does), an event is a moment
 * (core/event.h). The catalogue is what `yokectl explain CODE` and yoke-codes(7) tell.
 */
#ifndef CORE_PROBLEM_H
#define CORE_PROBLEM_H

#include <jansson.h>
#include <stdint.h>

#include "core/base.h"

enum problem_severity { PROBLEM_WARN, PROBLEM_CRIT };

enum problem_code {
	PROBLEM_ARRAY_DEGRADED,
	PROBLEM_ARRAY_FAILED,
	PROBLEM_ARRAY_INCOMPLETE,
	PROBLEM_ARRAY_LOSS,
	PROBLEM_BACKING_FAILED,
	PROBLEM_BACKING_FULL,
	PROBLEM_BACKING_READ_ONLY,
	PROBLEM_CONFIG_REFUSED,
	PROBLEM_FAULTS_ACTIVE,
	PROBLEM_LOOP_SLOW,
	PROBLEM_PATH_MISSING,
	PROBLEM_SANITIZE_FAILED,
	PROBLEM_COUNT
};

/* What holds for every problem of a code. Sentences end in a full stop. */
struct problem_entry {
	const char *name; /* "backing-failed" */
	enum problem_severity severity;
	const char *means;
	const char *hosts; /* what initiators see of it */
	const char *what_to_do;
};

/* In alphabetical order. Never NULL for a code. */
const struct problem_entry *problem_entry(enum problem_code code);
/* NULL if there is no such code. */
const struct problem_entry *problem_find(const char *name);
/* "WARN", "CRIT". */
const char *problem_severity_name(enum problem_severity severity);

/*
 * One problem now. Texts are single lines without a full stop, for people;
 * doing "" if nothing is being done. The strings are the caller's.
 */
struct problem {
	enum problem_code code;
	const char *object; /* "scratch", "iqn...:demo/0" */
	const char *detail; /* "write error at 12 MiB: Input/output error" */
	const char *risk;   /* "a second failure loses data" */
	const char *doing;
	const char *what_to_do; /* more exact than the catalogue's; "" to use that */
	int64_t since_s;        /* seconds since 1970, UTC */
};

/* As a row of status.show's `problems`; NULL if there is no memory or a text is not UTF-8. */
json_t *problem_json(const struct problem *problem);

/* The worst of an array of such rows: "OK", "WARN" or "CRIT". */
const char *problem_health(const json_t *problems);

/* "2026-11-30T13:02:11Z"; BUF holds 21 bytes. */
#define PROBLEM_UTC_SIZE 32
const char *problem_utc(int64_t time_s, char *buf);

#endif
