/* SPDX-License-Identifier: MIT */
/*
 * `yokectl status`: one line if all is well, else what is wrong, what it risks,
 * what is being done, what to do.
 *
 * Not here: what is a problem (core/problem.h).
 */
#include <string.h>

#include "core/units.h"
#include "ctl/command.h"

static json_int_t number(const json_t *object, const char *group, const char *key)
{
	return json_integer_value(json_object_get(json_object_get(object, group), key));
}

/* "7 LUNs  8 of 8 paths" */
static void print_counts(const json_t *s, const char *gap, FILE *out)
{
	json_int_t total = number(s, "luns", "total"), online = number(s, "luns", "online");
	json_int_t up = number(s, "paths", "up"), missing = number(s, "paths", "missing");

	if (online == total)
		fprintf(out, "%lld LUN%s", (long long)total, total == 1 ? "" : "s");
	else
		fprintf(out, "%lld of %lld LUNs online", (long long)online, (long long)total);
	fprintf(out, "%s%lld of %lld path%s", gap, (long long)up, (long long)(up + missing),
		up + missing == 1 ? "" : "s");
}

static void print_line(const json_t *problem, const char *label, const char *key,
		       const struct output *output)
{
	const char *text = output_text(problem, key, "");

	if (!*text)
		return;
	fprintf(output->out, "  %-6s ", label);
	output_paint(output, PAINT_NONE, text);
	fputc('\n', output->out);
}

static void print_problem(const json_t *problem, const struct output *output)
{
	const char *since = output_text(problem, "since_utc", "");
	const char *severity = output_text(problem, "severity", "WARN");
	const char *object = output_text(problem, "object", "?");
	const char *detail = output_text(problem, "detail", "?");
	char when[UNITS_SIZE];

	output_paint(output, output_paint_of(severity), output_text(problem, "code", "?"));
	fputs("  ", output->out);
	/* A line of a file begins with the file already. */
	if (strncmp(detail, object, strlen(object)) != 0) {
		output_paint(output, PAINT_NONE, object);
		fputs(": ", output->out);
	}
	output_paint(output, PAINT_NONE, detail);
	fputc('\n', output->out);
	if (*since)
		fprintf(output->out, "  since  %s\n", units_local_time(since, when));
	print_line(problem, "risk", "risk", output);
	print_line(problem, "doing", "doing", output);
	print_line(problem, "do", "do", output);
}

static int show(const json_t *s, const struct output *output)
{
	const json_t *problems = json_object_get(s, "problems"), *problem;
	size_t count = json_array_size(problems), i;
	const char *health = output_text(s, "health", "UNKNOWN");
	char up[UNITS_SIZE];

	output_paint(output, PAINT_NONE, output_text(s, "node", "?"));
	fputc(' ', output->out);
	output_paint(output, output_paint_of(health), health);
	if (count == 0) {
		json_int_t uptime = json_integer_value(json_object_get(s, "uptime_s"));

		fprintf(output->out, "  %s up %s  ", output_text(s, "version", "?"),
			units_duration((uint64_t)(uptime > 0 ? uptime : 0), up));
		print_counts(s, "  ", output->out);
		fputc('\n', output->out);
		return EXIT_DONE;
	}
	fprintf(output->out, "  %zu problem%s\n", count, count == 1 ? "" : "s");
	json_array_foreach(problems, i, problem)
		print_problem(problem, output);
	return EXIT_DONE;
}

/* One line for monitoring; its exit code is the health. */
static int show_check(const json_t *s, const struct output *output)
{
	static const char *const words[] = { "OK", "WARN", "CRIT" };
	const json_t *problems = json_object_get(s, "problems"), *problem;
	const char *health = output_text(s, "health", "UNKNOWN");
	size_t i;

	fprintf(output->out, "%s ", health);
	output_paint(output, PAINT_NONE, output_text(s, "node", "?"));
	fputc(' ', output->out);
	json_array_foreach(problems, i, problem) {
		fprintf(output->out, "%s%s ", i ? ", " : "", output_text(problem, "code", "?"));
		output_paint(output, PAINT_NONE, output_text(problem, "object", "?"));
	}
	if (json_array_size(problems) == 0)
		print_counts(s, ", ", output->out);
	fputc('\n', output->out);
	for (unsigned code = 0; code < ARRAY_LEN(words); code++)
		if (strcmp(health, words[code]) == 0)
			return (int)code;
	return EXIT_UNREACHABLE;
}

static int run_check(struct invocation *invocation)
{
	struct rpc_error error;
	struct rpc *rpc = rpc_open(invocation->socket, &error);
	json_t *result = NULL;
	int code;

	/* To standard output: monitoring shows that. */
	if (!rpc || rpc_call(rpc, invocation->command->method, NULL, invocation->timeout_ns,
			     &result, &error)) {
		fprintf(invocation->output->out, "UNKNOWN %s\n", error.text);
		rpc_close(rpc);
		return EXIT_UNREACHABLE;
	}
	code = show_check(result, invocation->output);
	rpc_close(rpc);
	json_decref(result);
	return code;
}

int status_run(struct invocation *invocation)
{
	json_t *result;
	int code;

	if (json_object_get(invocation->params, "check"))
		return run_check(invocation);
	code = command_call(invocation, invocation->command->method, NULL, &result);
	if (code)
		return code;
	code = invocation->output->json ? output_json(invocation->output, result) :
					  show(result, invocation->output);
	json_decref(result);
	return code;
}
