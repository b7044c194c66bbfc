/* SPDX-License-Identifier: MIT */
/* Commands that need no yoked: explain, check, help. */
#include <string.h>

#include "core/conf.h"
#include "core/problem.h"
#include "ctl/command.h"

static json_t *entry_json(const struct problem_entry *e)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "code", e->name, "severity",
			 problem_severity_name(e->severity), "means", e->means, "hosts_see",
			 e->hosts, "do", e->what_to_do);
}

static void print_entry(const struct problem_entry *e, const struct output *output)
{
	output_paint(output, PAINT_NONE, e->name);
	fputs("  ", output->out);
	output_paint(output, output_paint_of(problem_severity_name(e->severity)),
		     problem_severity_name(e->severity));
	fprintf(output->out, "\n  means      %s\n  hosts see  %s\n  do         %s\n", e->means,
		e->hosts, e->what_to_do);
}

static int explain_all(const struct output *output)
{
	json_t *codes = json_array(), *result;
	int code;

	for (unsigned i = 0; i < PROBLEM_COUNT; i++) {
		const struct problem_entry *e = problem_entry((enum problem_code)i);

		json_array_append_new(codes, entry_json(e));
		if (!output->json)
			fprintf(output->out, "%-18s %s  %s\n", e->name,
				problem_severity_name(e->severity), e->means);
	}
	result = json_pack("{s:s, s:o}", "schema", "yoke.explain/1", "codes", codes);
	code = output->json ? output_json(output, result) : EXIT_DONE;
	json_decref(result);
	return code;
}

int explain_run(struct invocation *invocation)
{
	const char *name = json_string_value(json_object_get(invocation->params, "code"));
	const struct problem_entry *e = name ? problem_find(name) : NULL;
	json_t *result;
	int code;

	if (!name)
		return explain_all(invocation->output);
	if (!e)
		return output_error(invocation->output, EXIT_REFUSED,
				    "no code \"%s\". yokectl explain lists them", name);
	if (!invocation->output->json) {
		print_entry(e, invocation->output);
		return EXIT_DONE;
	}
	result = entry_json(e);
	json_object_set_new(result, "schema", json_string("yoke.explain.code/1"));
	code = output_json(invocation->output, result);
	json_decref(result);
	return code;
}

int check_run(struct invocation *invocation)
{
	const char *file = json_string_value(json_object_get(invocation->params, "file"));
	struct output *output = invocation->output;
	struct conf_error error;
	char summary[256];
	struct conf *conf;
	json_t *result;

	if (conf_load(file, &conf, &error)) {
		/* As it is: editors and people jump to file:line. */
		fprintf(output->err, "%s\n", error.text);
		return EXIT_REFUSED;
	}
	result = json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i}", "schema", "yoke.check/1", "file",
			   file, "node", conf->node.name, "portals", (int)conf->portal_count,
			   "backings", (int)conf->backing_count, "targets", (int)conf->target_count,
			   "luns", (int)conf_lun_count(conf));
	conf_summary(conf, summary, sizeof(summary));
	if (output->json)
		output_json(output, result);
	else
		fprintf(output->out, "%s: good: %s\n", file, summary);
	json_decref(result);
	conf_free(conf);
	return EXIT_DONE;
}

static void print_usage(const struct command *c, FILE *out)
{
	fprintf(out, "yokectl %s%s%s", c->noun, c->verb ? " " : "", c->verb ? c->verb : "");
	for (const struct argument *a = c->arguments; a && a->name; a++) {
		if (!a->option)
			fprintf(out, a->required ? " %s%s" : " [%s%s]", a->meta,
				a->kind == ARGUMENT_DISKS ? "..." : "");
		else
			fprintf(out, a->required ? " %s%s%s" : " [%s%s%s]", a->option,
				a->meta ? " " : "", a->meta ? a->meta : "");
	}
	fputc('\n', out);
}

void help_print(const struct command *command, FILE *out)
{
	if (command) {
		print_usage(command, out);
		fprintf(out, "  %s\n", command->summary);
		for (const struct argument *a = command->arguments; a && a->name; a++)
			if (a->values)
				fprintf(out, "  %s: %s\n", a->meta, a->values);
		return;
	}
	fputs("usage: yokectl [-s SOCKET] [--timeout TIME] [--json[=1]] [-o COLUMNS] [--no-header]\n"
	      "               [--bytes] [--wide] [--color[=WHEN]] NOUN [VERB] ...\n\n",
	      out);
	for (const struct command *c = commands; c->noun; c++) {
		char name[32];

		snprintf(name, sizeof(name), "%s%s%s", c->noun, c->verb ? " " : "",
			 c->verb ? c->verb : "");
		fprintf(out, "  %-14s %s\n", name, c->summary);
	}
	fputs("\nExit: 0 done, 1 refused or failed, 2 usage, 3 yoked unreachable.\n", out);
}

bool help_print_noun(const char *noun, const char *verb, FILE *out)
{
	bool found = false;

	for (const struct command *c = commands; c->noun; c++) {
		if (strcmp(c->noun, noun) != 0 ||
		    (verb && (!c->verb || strcmp(c->verb, verb) != 0)))
			continue;
		help_print(c, out);
		found = true;
	}
	return found;
}

int help_run(struct invocation *invocation)
{
	const char *noun = json_string_value(json_object_get(invocation->params, "noun"));
	const char *verb = json_string_value(json_object_get(invocation->params, "verb"));

	if (!noun) {
		help_print(NULL, invocation->output->out);
		return EXIT_DONE;
	}
	if (help_print_noun(noun, verb, invocation->output->out))
		return EXIT_DONE;
	return output_error(invocation->output, EXIT_USAGE, "no command \"%s%s%s\"", noun,
			    verb ? " " : "", verb ? verb : "");
}
