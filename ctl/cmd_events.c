/* SPDX-License-Identifier: MIT */
/*
 * `yokectl events`: a line each, and with --follow those to come.
 *
 * Following asks twice a second on one connection; it ends with yoked.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "core/units.h"
#include "ctl/command.h"

#define POLL_NS (500 * 1000 * 1000)

static void print_value(const char *value, const struct output *output)
{
	bool quote = !*value || strpbrk(value, " \"=") != NULL;

	if (quote)
		fputc('"', output->out);
	output_paint(output, PAINT_NONE, value);
	if (quote)
		fputc('"', output->out);
}

/* 881 2026-11-30 14:02:11+01:00 WARN member-failed   array=r5 member=d2 */
static void print_event(const json_t *event, const struct output *output)
{
	const char *severity = output_text(event, "severity", "?");
	char when[UNITS_SIZE];
	const char *name;
	json_t *value;

	fprintf(output->out, "%" JSON_INTEGER_FORMAT " %s ",
		json_integer_value(json_object_get(event, "number")),
		units_local_time(output_text(event, "time_utc", "?"), when));
	output_paint(output, output_paint_of(severity), severity);
	fprintf(output->out, " %-17s", output_text(event, "name", "?"));
	json_object_foreach(json_object_get(event, "fields"), name, value) {
		fprintf(output->out, " %s=", name);
		print_value(json_is_string(value) ? json_string_value(value) : "?", output);
	}
	fputc('\n', output->out);
}

/* Shows the events of RESULT and moves AFTER behind them. */
static int show(const json_t *result, const struct output *output, json_int_t *after)
{
	json_t *event;
	size_t i;
	int code = EXIT_DONE;

	json_array_foreach(json_object_get(result, "events"), i, event) {
		*after = json_integer_value(json_object_get(event, "number"));
		if (output->json) {
			json_object_set_new(event, "schema", json_string("yoke.event/1"));
			code = output_json(output, event);
		} else {
			print_event(event, output);
		}
	}
	fflush(output->out);
	return code;
}

static int lost(struct invocation *invocation, int err, const struct rpc_error *error)
{
	return output_error(invocation->output, err == -EREMOTEIO ? EXIT_REFUSED : EXIT_UNREACHABLE,
			    "%s", error->text);
}

int events_run(struct invocation *invocation)
{
	const struct timespec pause = { 0, POLL_NS };
	json_t *params = invocation->params, *result;
	bool follow = json_object_get(params, "follow") != NULL;
	json_int_t after = json_integer_value(json_object_get(params, "after"));
	struct rpc_error error;
	struct rpc *rpc = rpc_open(invocation->socket, &error);
	int code, err;

	if (!rpc)
		return output_error(invocation->output, EXIT_UNREACHABLE, "%s", error.text);
	json_object_del(params, "follow");
	for (;;) {
		err = rpc_call(rpc, invocation->command->method, params, invocation->timeout_ns,
			       &result, &error);
		if (err) {
			code = lost(invocation, err, &error);
			break;
		}
		code = show(result, invocation->output, &after);
		json_decref(result);
		if (!follow || code || ferror(invocation->output->out))
			break;
		json_object_set_new(params, "after", json_integer(after));
		nanosleep(&pause, NULL);
	}
	rpc_close(rpc);
	return code;
}
