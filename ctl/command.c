/* SPDX-License-Identifier: MIT */
/*
 * The table of subcommands and what happens to one of them.
 *
 * Invariants:
 * 1. A command exists by its row: parsing, help, manual and completion are held to it.
 * 2. Exit codes: 0 done, 1 refused or failed, 2 usage, 3 yoked unreachable.
 *
 * Not here: reading arguments (arguments.c), showing results (cmd_*.c, table.c).
 */
#include "ctl/command.h"

#include <errno.h>
#include <string.h>

#include "core/version.h"

#define PAGES_MAX 4096 /* of 64 rows; a list without end is none */

static const struct argument status_arguments[] = {
	{ "check", "--check", NULL, ARGUMENT_FLAG, false, NULL },
	{ 0 },
};

static const struct argument explain_arguments[] = {
	{ "code", NULL, "CODE", ARGUMENT_TEXT, false, NULL },
	{ 0 },
};

static const struct argument id_arguments[] = {
	{ "id", NULL, "ID", ARGUMENT_TEXT, true, NULL },
	{ 0 },
};

static const struct argument events_arguments[] = {
	{ "after", "--after", "NUMBER", ARGUMENT_INTEGER, false, NULL },
	{ "max", "--max", "COUNT", ARGUMENT_INTEGER, false, NULL },
	{ "follow", "--follow", NULL, ARGUMENT_FLAG, false, NULL },
	{ 0 },
};

static const struct argument fault_arguments[] = {
	{ "backing", NULL, "BACKING", ARGUMENT_TEXT, true, NULL },
	{ "kind", NULL, "KIND", ARGUMENT_TEXT, true, "error delay stuck torn" },
	{ "op", "--op", "OP", ARGUMENT_TEXT, false,
	  "any read write flush unmap write-zeroes status" },
	{ "error", "--error", "ERRNO", ARGUMENT_TEXT, false, "EIO ENOSPC EROFS ENXIO EAGAIN" },
	{ "delay_ms", "--delay", "TIME", ARGUMENT_MS, false, NULL },
	{ "offset", "--offset", "SIZE", ARGUMENT_SIZE, false, NULL },
	{ "length", "--length", "SIZE", ARGUMENT_SIZE, false, NULL },
	{ "count", "--count", "COUNT", ARGUMENT_INTEGER, false, NULL },
	{ "torn_bytes", "--torn", "SIZE", ARGUMENT_SIZE, false, NULL },
	{ "per_million", "--probability", "SHARE", ARGUMENT_PER_MILLION, false, NULL },
	{ 0 },
};

#define DESTROYS                                                                                   \
	{ "force", "--force", NULL, ARGUMENT_FLAG, false, NULL },                                  \
		{ "confirm", "--confirm", "NAME", ARGUMENT_TEXT, false, NULL },                    \
		{ "dry_run", "--dry-run", NULL, ARGUMENT_FLAG, false, NULL },                      \
	{                                                                                          \
		0                                                                                  \
	}

static const struct argument disk_arguments[] = {
	{ "disk", NULL, "DISK", ARGUMENT_DISK, true, NULL },
	{ 0 },
};

static const struct argument disk_test_arguments[] = {
	{ "disks", NULL, "DISK", ARGUMENT_DISKS, false, NULL },
	{ 0 },
};

static const struct argument array_arguments[] = {
	{ "name", NULL, "NAME", ARGUMENT_TEXT, true, NULL },
	{ 0 },
};

static const struct argument array_create_arguments[] = {
	{ "name", NULL, "NAME", ARGUMENT_TEXT, true, NULL },
	{ "disks", NULL, "DISK", ARGUMENT_DISKS, true, NULL },
	{ "level", "--level", "LEVEL", ARGUMENT_INTEGER, true, NULL },
	{ "chunk_bytes", "--chunk", "SIZE", ARGUMENT_SIZE, false, NULL },
	{ "full_stripe_log", "--full-stripe-log", "HOW", ARGUMENT_TEXT, false, "data intent" },
	DESTROYS,
};

static const struct argument array_add_arguments[] = {
	{ "name", NULL, "NAME", ARGUMENT_TEXT, true, NULL },
	{ "disk", NULL, "DISK", ARGUMENT_DISK, true, NULL },
	DESTROYS,
};

static const struct argument array_remove_arguments[] = {
	{ "name", NULL, "NAME", ARGUMENT_TEXT, true, NULL },
	{ "member", NULL, "MEMBER", ARGUMENT_TEXT, true, NULL },
	DESTROYS,
};

static const struct argument array_start_arguments[] = {
	{ "name", NULL, "NAME", ARGUMENT_TEXT, true, NULL },
	{ "disks", NULL, "DISK", ARGUMENT_DISKS, false, NULL },
	DESTROYS,
};

static const struct argument check_arguments[] = {
	{ "file", NULL, "FILE", ARGUMENT_TEXT, true, NULL },
	{ 0 },
};

static const struct argument help_arguments[] = {
	{ "noun", NULL, "NOUN", ARGUMENT_TEXT, false, NULL },
	{ "verb", NULL, "VERB", ARGUMENT_TEXT, false, NULL },
	{ 0 },
};

const struct command commands[] = {
	{ "status", NULL, "is all well, and if not, what to do", "status.show", status_arguments,
	  .run = status_run },
	{ "explain", NULL, "what a problem code means, or all codes", NULL, explain_arguments,
	  .run = explain_run },
	{ "target", "list", "targets, their portals and who may log in", "target.list", NULL,
	  .table = &target_table },
	{ "session", "list", "sessions of initiators, one a path", "session.list", NULL,
	  .table = &session_table },
	{ "session", "show", "one session with its negotiated keys", "session.list", id_arguments,
	  .run = session_show_run },
	{ "session", "kill", "close a session; its initiator may come back", "session.kill",
	  id_arguments, .show = session_kill_show },
	{ "lun", "list", "LUNs, their state, size and traffic", "lun.list", NULL,
	  .table = &lun_table },
	{ "backing", "list", "backings, their state and counters", "backing.list", NULL,
	  .table = &backing_table },
	{ "disk", "list", "disks that may be members of arrays, and what they carry", "disk.list",
	  NULL, .table = &disk_table },
	{ "disk", "test", "measure disks one after the other, by reading", "disk.test",
	  disk_test_arguments, .run = disk_test_run },
	{ "disk", "label", "what a disk says of its array", "disk.label", disk_arguments,
	  .show = disk_label_show },
	{ "array", "list", "arrays and how they are", "array.list", NULL, .table = &array_table },
	{ "array", "show", "one array with its members", "array.show", array_arguments,
	  .show = array_show },
	{ "array", "create", "make an array of disks, whose content is lost", "array.create",
	  array_create_arguments, .run = array_change_run },
	{ "array", "add", "give an array a new disk, or one that was out", "array.add",
	  array_add_arguments, .run = array_change_run },
	{ "array", "remove", "take a member out of an array for good", "array.remove",
	  array_remove_arguments, .run = array_change_run },
	{ "array", "start", "start an array that waits; by force without what it waits for",
	  "array.start", array_start_arguments, .run = array_change_run },
	{ "events", NULL, "what happened, oldest first", "events.list", events_arguments,
	  .run = events_run },
	{ "fault", "add", "make a backing misbehave (where faults = true)", "fault.add",
	  fault_arguments, .show = fault_add_show },
	{ "fault", "list", "faults and how often they acted", "fault.list", NULL,
	  .table = &fault_table },
	{ "fault", "remove", "end a fault; what it held goes on", "fault.remove", id_arguments,
	  .show = fault_remove_show },
	{ "reload", NULL, "apply the configuration file as it is now", "config.reload", NULL,
	  .run = reload_run },
	{ "check", NULL, "check a configuration file, without yoked", NULL, check_arguments,
	  .run = check_run },
	{ "help", NULL, "this list, or how to write one command", NULL, help_arguments,
	  .run = help_run },
	{ 0 },
};

const struct command *command_find(const char *noun, const char *verb)
{
	for (const struct command *c = commands; c->noun; c++) {
		if (strcmp(c->noun, noun) != 0)
			continue;
		if (!c->verb || (verb && strcmp(c->verb, verb) == 0))
			return c;
	}
	return NULL;
}

/* The rows of MORE behind those of RESULT: in each the one array among the members. */
static void join(json_t *result, json_t *more)
{
	const char *key;
	json_t *rows;

	json_object_foreach(result, key, rows)
		if (json_is_array(rows))
			json_array_extend(rows, json_object_get(more, key));
}

/* A long list comes in pages, each saying in `next` where the next one begins. */
static int call_whole(struct rpc *rpc, const struct invocation *invocation, const char *method,
		      json_t *params, json_t **result, struct rpc_error *error)
{
	int err = rpc_call(rpc, method, params, invocation->timeout_ns, result, error);
	unsigned pages = 1;
	json_t *next;

	while (!err && (next = json_object_get(*result, "next"))) {
		json_t *where = json_pack("{s:O}", "after", next), *more = NULL;

		json_object_del(*result, "next");
		err = rpc_call(rpc, method, where, invocation->timeout_ns, &more, error);
		json_decref(where);
		if (err) {
			json_decref(*result);
			break;
		}
		join(*result, more);
		if (++pages < PAGES_MAX && json_object_get(more, "next"))
			json_object_set(*result, "next", json_object_get(more, "next"));
		json_decref(more);
	}
	return err;
}

int command_call(struct invocation *invocation, const char *method, json_t *params, json_t **result)
{
	struct rpc_error error;
	struct rpc *rpc = rpc_open(invocation->socket, &error);
	int err;

	if (!rpc)
		return output_error(invocation->output, EXIT_UNREACHABLE, "%s", error.text);
	err = call_whole(rpc, invocation, method, params, result, &error);
	rpc_close(rpc);
	if (err == 0)
		return EXIT_DONE;
	return output_error(invocation->output, err == -EREMOTEIO ? EXIT_REFUSED : EXIT_UNREACHABLE,
			    "%s", error.text);
}

static int run(struct invocation *invocation)
{
	const struct command *command = invocation->command;
	json_t *result = NULL;
	int code;

	if (command->run)
		return command->run(invocation);
	code = command_call(invocation, command->method, invocation->params, &result);
	if (code)
		return code;
	if (invocation->output->json)
		code = output_json(invocation->output, result);
	else if (command->table)
		code = table_print(command->table, result, invocation->output);
	else
		code = command->show(result, invocation->output);
	json_decref(result);
	return code;
}

int yokectl(int argc, char *const *argv, struct output *output)
{
	struct invocation invocation = { .params = json_object(),
					 .socket = COMMAND_SOCKET,
					 .timeout_ns = 30 * NS_PER_S,
					 .output = output };
	bool help = false, version = false;
	int code = arguments_parse(argc, argv, &invocation, &help, &version);

	if (code == EXIT_DONE) {
		if (version)
			fprintf(output->out, "yokectl %s\n", yoke_version());
		else if (help && (invocation.command || !invocation.noun))
			help_print(invocation.command, output->out);
		else if (help)
			help_print_noun(invocation.noun, NULL, output->out);
		else
			code = run(&invocation);
	}
	json_decref(invocation.params);
	/* A full disk or a closed pipe: what was asked for was not told. */
	if ((fflush(output->out) || ferror(output->out)) && code == EXIT_DONE)
		code = output_error(output, EXIT_REFUSED, "cannot write: %s", strerror(errno));
	return code;
}
