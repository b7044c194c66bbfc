/* SPDX-License-Identifier: MIT */
/*
 * Control commands: layers register methods here, target/ctl.c serves them as
 * JSON-RPC 2.0 over the control socket.
 *
 * Methods are `noun.verb`. A command answers exactly once, at once or later
 * (ctl_reply, ctl_fail); until then the request stays alive even if the client
 * has gone.
 */
#ifndef CORE_CTL_H
#define CORE_CTL_H

#include <jansson.h>
#include <stdbool.h>

#include "core/base.h"

struct ctl;
struct ctl_request;

enum ctl_type { CTL_STRING, CTL_INTEGER, CTL_BOOL, CTL_STRINGS };

/* A parameter; the table ends with a NULL name. Unknown ones are refused. */
struct ctl_param {
	const char *name;
	enum ctl_type type;
	bool required;
};

struct ctl_command {
	const char *method;
	const char *summary; /* one line, for `yokectl help` and the man page */
	const struct ctl_param *params;
	void (*run)(void *arg, struct ctl_request *request);
};

struct ctl *ctl_new(void);
/* Asserts that every request was answered: layers answer what they hold before they stop. */
void ctl_free(struct ctl *ctl);

/* COMMANDS end with a NULL method and outlive CTL. Asserts that no name is taken twice. */
void ctl_register(struct ctl *ctl, const struct ctl_command *commands, void *arg);

/* Parameters, already checked against the table; absent: NULL, FALLBACK, false. */
const char *ctl_string(const struct ctl_request *request, const char *name);
int64_t ctl_integer(const struct ctl_request *request, const char *name, int64_t fallback);
bool ctl_bool(const struct ctl_request *request, const char *name);
json_t *ctl_param(const struct ctl_request *request, const char *name);

/* RESULT is taken over; NULL (it could not be made) is answered as an internal error. */
void ctl_reply(struct ctl_request *request, json_t *result);
/* ERR is a negative errno; the text says object, cause and remedy. */
void ctl_fail(struct ctl_request *request, int err, const char *fmt, ...) PRINTF_LIKE(3, 4);

/*
 * For the server: run the request LINE (one JSON text). ANSWER gets the whole
 * response text without a newline, exactly once, perhaps before this returns.
 * Anything may be in LINE.
 */
typedef void ctl_answer_fn(void *arg, const char *text, size_t len_bytes);
void ctl_dispatch(struct ctl *ctl, const char *line, size_t len_bytes, ctl_answer_fn *answer,
		  void *arg);

#endif
