/* SPDX-License-Identifier: MIT */
/*
 * The table of control commands and the JSON-RPC 2.0 around each call.
 *
 * Invariants:
 * 1. Each dispatched line gets exactly one answer; a request lives until then.
 * 2. A command runs only with parameters that its table has, of their types.
 * 3. An answer is one line of whole JSON, or an error that is.
 *
 * Not here: sockets and clients (target/ctl.c), what commands do (their layers).
 * Spec: jsonrpc.org 2.0, without batches (one request a line does that),
 * notifications (a command without an answer cannot say that it failed) and
 * parameters by position.
 */
#include "core/ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clean.h"

enum rpc_error {
	RPC_PARSE = -32700,
	RPC_REQUEST = -32600,
	RPC_METHOD = -32601,
	RPC_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_COMMAND = -32000, /* the command refused or failed; data has its errno */
};

struct entry {
	const struct ctl_command *command;
	void *arg;
};

struct ctl {
	struct entry *entries;
	unsigned count;
	unsigned in_flight;
};

struct ctl_request {
	struct ctl *ctl;
	json_t *id;     /* string, integer or null */
	json_t *params; /* object */
	ctl_answer_fn *answer;
	void *arg;
};

struct ctl *ctl_new(void)
{
	return calloc(1, sizeof(struct ctl));
}

void ctl_free(struct ctl *ctl)
{
	if (!ctl)
		return;
	assert(ctl->in_flight == 0);
	free(ctl->entries);
	free(ctl);
}

static const struct entry *find(const struct ctl *ctl, const char *method)
{
	for (unsigned i = 0; i < ctl->count; i++)
		if (strcmp(ctl->entries[i].command->method, method) == 0)
			return &ctl->entries[i];
	return NULL;
}

void ctl_register(struct ctl *ctl, const struct ctl_command *commands, void *arg)
{
	for (; commands->method; commands++) {
		struct entry *bigger;

		assert(!find(ctl, commands->method));
		bigger = reallocarray(ctl->entries, ctl->count + 1, sizeof(*bigger));
		assert(bigger); /* at start */
		ctl->entries = bigger;
		bigger[ctl->count++] = (struct entry){ commands, arg };
	}
}

json_t *ctl_param(const struct ctl_request *request, const char *name)
{
	return json_object_get(request->params, name);
}

const char *ctl_string(const struct ctl_request *request, const char *name)
{
	return json_string_value(ctl_param(request, name));
}

int64_t ctl_integer(const struct ctl_request *request, const char *name, int64_t fallback)
{
	const json_t *value = ctl_param(request, name);

	return value ? json_integer_value(value) : fallback;
}

bool ctl_bool(const struct ctl_request *request, const char *name)
{
	return json_is_true(ctl_param(request, name));
}

/* The answer, MEMBER being "result" or "error"; takes VALUE over and ends REQUEST. */
static void answer(struct ctl_request *request, const char *member, json_t *value)
{
	json_t *response =
		json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", request->id, member, value);
	char *text = response ? json_dumps(response, JSON_COMPACT) : NULL;
	static const char none[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,"
				   "\"message\":\"the answer could not be written\"}}";

	assert(request->ctl->in_flight > 0);
	request->ctl->in_flight--;
	request->answer(request->arg, text ? text : none, text ? strlen(text) : sizeof(none) - 1);
	free(text);
	json_decref(response);
	json_decref(request->id);
	json_decref(request->params);
	free(request);
}

static void fail(struct ctl_request *request, enum rpc_error code, int err, const char *fmt,
		 va_list ap)
{
	const char *name = strerrorname_np(-err);
	char text[1024];
	json_t *error;

	vsnprintf(text, sizeof(text), fmt, ap);
	error = json_pack("{s:i, s:o}", "code", code, "message", clean_json(text));
	if (code == RPC_COMMAND)
		json_object_set_new(error, "data",
				    json_pack("{s:s}", "errno", name ? name : "EIO"));
	answer(request, "error", error);
}

static void refuse(struct ctl_request *request, enum rpc_error code, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
static void refuse(struct ctl_request *request, enum rpc_error code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail(request, code, 0, fmt, ap);
	va_end(ap);
}

void ctl_reply(struct ctl_request *request, json_t *result)
{
	if (!result) {
		refuse(request, RPC_INTERNAL, "the answer could not be made");
		return;
	}
	answer(request, "result", result);
}

void ctl_fail(struct ctl_request *request, int err, const char *fmt, ...)
{
	va_list ap;

	assert(err < 0);
	va_start(ap, fmt);
	fail(request, RPC_COMMAND, err, fmt, ap);
	va_end(ap);
}

static bool is_strings(const json_t *value)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(value))
		return false;
	json_array_foreach(value, i, item)
		if (!json_is_string(item))
			return false;
	return true;
}

static bool has_type(const json_t *value, enum ctl_type type)
{
	switch (type) {
	case CTL_STRING:
		return json_is_string(value);
	case CTL_INTEGER:
		return json_is_integer(value);
	case CTL_BOOL:
		return json_is_boolean(value);
	case CTL_STRINGS:
		return is_strings(value);
	}
	return false;
}

static const char *const type_names[] = {
	[CTL_STRING] = "a string",
	[CTL_INTEGER] = "an integer",
	[CTL_BOOL] = "true or false",
	[CTL_STRINGS] = "a list of strings",
};

static const struct ctl_param *find_param(const struct ctl_command *command, const char *name)
{
	for (const struct ctl_param *p = command->params; p && p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

/* Whether the parameters fit; if not, REQUEST is answered. */
static bool check_params(struct ctl_request *request, const struct ctl_command *command)
{
	const char *name;
	json_t *value;

	json_object_foreach(request->params, name, value) {
		const struct ctl_param *param = find_param(command, name);

		if (!param) {
			refuse(request, RPC_PARAMS, "%s: no parameter \"%.64s\"", command->method,
			       name);
			return false;
		}
		if (!has_type(value, param->type)) {
			refuse(request, RPC_PARAMS, "%s: \"%s\" has to be %s", command->method,
			       name, type_names[param->type]);
			return false;
		}
	}
	for (const struct ctl_param *p = command->params; p && p->name; p++) {
		if (p->required && !ctl_param(request, p->name)) {
			refuse(request, RPC_PARAMS, "%s: \"%s\" is missing", command->method,
			       p->name);
			return false;
		}
	}
	return true;
}

static void run(struct ctl_request *request, const json_t *call)
{
	const char *version = json_string_value(json_object_get(call, "jsonrpc"));
	const char *method = json_string_value(json_object_get(call, "method"));
	const struct entry *entry;

	if (!version || strcmp(version, "2.0") != 0) {
		refuse(request, RPC_REQUEST, "\"jsonrpc\" has to be \"2.0\"");
		return;
	}
	if (!method) {
		refuse(request, RPC_REQUEST, "\"method\" has to be a string");
		return;
	}
	entry = find(request->ctl, method);
	if (!entry) {
		refuse(request, RPC_METHOD, "no method \"%.64s\" in this version of yoked", method);
		return;
	}
	if (check_params(request, entry->command))
		entry->command->run(entry->arg, request);
}

/* The members that REQUEST keeps; if they are no good it is answered and false comes back. */
static bool take_members(struct ctl_request *request, const json_t *call)
{
	json_t *id = json_object_get(call, "id");
	json_t *params = json_object_get(call, "params");

	if (!json_is_string(id) && !json_is_integer(id)) {
		refuse(request, RPC_REQUEST, "\"id\" has to be a string or an integer");
		return false;
	}
	json_decref(request->id);
	request->id = json_incref(id);
	if (params && !json_is_object(params)) {
		refuse(request, RPC_PARAMS, "\"params\" has to be an object");
		return false;
	}
	if (params) {
		json_decref(request->params);
		request->params = json_incref(params);
	}
	return true;
}

void ctl_dispatch(struct ctl *ctl, const char *line, size_t len_bytes, ctl_answer_fn *answer_fn,
		  void *arg)
{
	struct ctl_request *request = calloc(1, sizeof(*request));
	json_error_t why;
	json_t *call;

	assert(request);
	*request = (struct ctl_request){ .ctl = ctl,
					 .id = json_null(),
					 .params = json_object(),
					 .answer = answer_fn,
					 .arg = arg };
	assert(request->params);
	ctl->in_flight++;
	call = json_loadb(line, len_bytes, JSON_REJECT_DUPLICATES, &why);
	if (!call)
		refuse(request, RPC_PARSE, "not JSON: %s", why.text);
	else if (json_is_array(call))
		refuse(request, RPC_REQUEST, "batches are not taken. Send one request a line");
	else if (!json_is_object(call))
		refuse(request, RPC_REQUEST, "a request has to be an object");
	else if (take_members(request, call))
		run(request, call);
	json_decref(call);
}
