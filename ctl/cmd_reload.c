/* SPDX-License-Identifier: MIT */
/*
 * `yokectl reload`: what has changed, or the line that is wrong and that nothing has.
 *
 * Not here: what a reload does (target/apply.c).
 */
#include <errno.h>

#include "core/units.h"
#include "ctl/command.h"

static int show(const json_t *result, const struct output *output)
{
	const json_t *changes = json_object_get(result, "changes"), *change;
	size_t i;

	if (output->json)
		return output_json(output, result);
	json_array_foreach(changes, i, change) {
		const char *text = json_string_value(change);

		output_paint(output, PAINT_NONE, text ? text : "?");
		fputc('\n', output->out);
	}
	if (json_array_size(changes) == 0)
		fputs("nothing has changed\n", output->out);
	return EXIT_DONE;
}

/* The refusal as it is: editors and people jump to file:line. */
static void say_refused(struct rpc *rpc, const struct invocation *invocation, const char *why)
{
	FILE *err = invocation->output->err;
	json_t *status = NULL;
	struct rpc_error error;
	const char *loaded = "";
	char when[UNITS_SIZE];

	if (rpc_call(rpc, "status.show", NULL, invocation->timeout_ns, &status, &error) == 0)
		loaded = output_text(json_object_get(status, "config"), "loaded_utc", "");
	fprintf(err, "%s\n  nothing changed", why);
	if (*loaded)
		fprintf(err, "; running with the file of %s", units_local_time(loaded, when));
	fputc('\n', err);
	json_decref(status);
}

int reload_run(struct invocation *invocation)
{
	json_t *result = NULL;
	struct rpc_error error;
	struct rpc *rpc = rpc_open(invocation->socket, &error);
	int code = EXIT_REFUSED, err;

	if (!rpc)
		return output_error(invocation->output, EXIT_UNREACHABLE, "%s", error.text);
	err = rpc_call(rpc, invocation->command->method, NULL, invocation->timeout_ns, &result,
		       &error);
	if (err == 0)
		code = show(result, invocation->output);
	else if (err == -EREMOTEIO)
		say_refused(rpc, invocation, error.text);
	else
		code = output_error(invocation->output, EXIT_UNREACHABLE, "%s", error.text);
	json_decref(result);
	rpc_close(rpc);
	return code;
}
