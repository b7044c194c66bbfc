/* SPDX-License-Identifier: MIT */
/*
 * `yokectl array ...` and `yokectl disk ...`.
 *
 * What would lose something is asked for first (dry_run), listed, and done only if the array's
 * name was typed at a terminal or given with --confirm.
 *
 * Not here: what is a loss (target/array_ctl.c).
 */
#include <string.h>
#include <unistd.h>

#include "core/units.h"
#include "ctl/command.h"

#define TABLE(rows, columns)                                                                       \
	{                                                                                          \
		rows, columns, ARRAY_LEN(columns)                                                  \
	}

static const struct column array_columns[] = {
	{ "ARRAY", "name", COLUMN_TEXT, 0, false },
	{ "LEVEL", "level", COLUMN_NUMBER, 1, false },
	{ "STATE", "state", COLUMN_STATE, 0, false },
	{ "MEMBERS", "roles", COLUMN_TEXT, 2, false },
	{ "SIZE", "size_bytes", COLUMN_SIZE, 3, false },
	{ "CHUNK", "chunk_bytes", COLUMN_SIZE, 4, false },
	{ "CAUSE", "cause", COLUMN_TEXT, 5, false },
	{ "BLOCK", "block_size_bytes", COLUMN_NUMBER, 9, true },
	{ "DIRTY", "regions.dirty", COLUMN_COUNT, 8, true },
	{ "SINCE", "since_utc", COLUMN_TIME, 8, true },
	{ "UUID", "uuid", COLUMN_TEXT, 9, true },
};
const struct table array_table = TABLE("arrays", array_columns);

static const struct column member_columns[] = {
	{ "ROLE", "role", COLUMN_NUMBER, 0, false },
	{ "MEMBER", "member", COLUMN_TEXT, 0, false },
	{ "DISK", "disk", COLUMN_TEXT, 0, false },
	{ "STATE", "state", COLUMN_STATE, 0, false },
	{ "R-ERR", "read_errors", COLUMN_COUNT, 2, false },
	{ "W-ERR", "write_errors", COLUMN_COUNT, 2, false },
	{ "P99", "p99_us", COLUMN_LATENCY, 1, false },
	{ "NOTE", "note", COLUMN_TEXT, 3, false },
};
static const struct table member_table = TABLE("members", member_columns);

static const struct column disk_columns[] = {
	{ "DISK", "disk", COLUMN_TEXT, 0, false },
	{ "STATE", "state", COLUMN_STATE, 0, false },
	{ "SIZE", "size_bytes", COLUMN_SIZE, 1, false },
	{ "BLOCK", "block_size_bytes", COLUMN_NUMBER, 3, false },
	{ "CARRIES", "carries", COLUMN_TEXT, 0, false },
	{ "CAUSE", "cause", COLUMN_TEXT, 2, false },
};
const struct table disk_table = TABLE("disks", disk_columns);

static const struct column test_columns[] = {
	{ "DISK", "disk", COLUMN_TEXT, 0, false },
	{ "SIZE", "size_bytes", COLUMN_SIZE, 3, false },
	{ "P50", "read_p50_us", COLUMN_LATENCY, 1, false },
	{ "P99", "read_p99_us", COLUMN_LATENCY, 0, false },
	{ "MiB/s", "read_mib_s", COLUMN_RATE, 0, false },
	{ "NOTE", "note", COLUMN_TEXT, 2, false },
};
static const struct table test_table = TABLE("disks", test_columns);

/* ---- show ---- */

static json_int_t number(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

static void print_resync(const json_t *resync, const struct output *output)
{
	json_int_t left = number(resync, "left_bytes"), done = number(resync, "done_bytes");
	json_int_t rate = number(resync, "bytes_per_s");
	double share = 100.0 * (double)done / (double)(left + done);
	char size[UNITS_SIZE], speed[UNITS_SIZE], eta[UNITS_SIZE] = "-";

	if (rate > 0)
		units_duration((uint64_t)(left / rate), eta);
	fprintf(output->out, "resync %.1f %% of %s, %s/s, %s\n", share > 99.9 ? 99.9 : share,
		units_size((uint64_t)(left + done), size), units_size((uint64_t)rate, speed), eta);
}

int array_show(const json_t *row, const struct output *output)
{
	const char *state = output_text(row, "state", "?"), *cause = output_text(row, "cause", "");
	json_int_t chunk = number(row, "chunk_bytes");
	const json_t *resync = json_object_get(row, "resync"), *lost = json_object_get(row, "lost");
	char size[UNITS_SIZE];

	output_paint(output, PAINT_NONE, output_text(row, "name", "?"));
	fprintf(output->out, " raid%lld ", (long long)number(row, "level"));
	output_paint(output, output_paint_of(state), state);
	fprintf(output->out, " %s  %s", output_text(row, "roles", ""),
		units_size((uint64_t)number(row, "size_bytes"), size));
	if (chunk)
		fprintf(output->out, "  chunk %s", units_size((uint64_t)chunk, size));
	fputc('\n', output->out);
	if (number(lost, "bytes"))
		fprintf(output->out, "lost %lld bytes in %lld places: reads of them fail\n",
			(long long)number(lost, "bytes"), (long long)number(lost, "ranges"));
	if (*cause) {
		output_paint(output, PAINT_NONE, cause);
		fputc('\n', output->out);
	}
	if (json_is_object(resync))
		print_resync(resync, output);
	return json_array_size(json_object_get(row, "members")) ?
		       table_print(&member_table, row, output) :
		       EXIT_DONE;
}

/* ---- changes ---- */

static void print_losses(const json_t *plan, FILE *out)
{
	const json_t *losses = json_object_get(plan, "losses"), *loss;
	size_t i;

	fputs(json_array_size(losses) ? "this would be lost:\n" : "nothing would be lost\n", out);
	json_array_foreach(losses, i, loss)
		fprintf(out, "  %s\n", json_string_value(loss));
}

/* Whether somebody at the terminal types NAME. */
static bool typed(const char *name, const struct output *output)
{
	char line[128];

	fprintf(output->err, "type %s to go on: ", name);
	fflush(output->err);
	if (!fgets(line, sizeof(line), stdin))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return strcmp(line, name) == 0;
}

/* EXIT_DONE: go on. */
static int confirm(struct invocation *invocation)
{
	struct output *output = invocation->output;
	const char *name = json_string_value(json_object_get(invocation->params, "name"));
	json_t *ask = json_copy(invocation->params), *plan = NULL;
	int code;

	json_object_set_new(ask, "dry_run", json_true());
	code = command_call(invocation, invocation->command->method, ask, &plan);
	json_decref(ask);
	if (code)
		return code;
	if (json_array_size(json_object_get(plan, "losses"))) {
		print_losses(plan, output->err);
		if (!output->tty || !isatty(STDIN_FILENO))
			code = output_error(output, EXIT_REFUSED,
					    "nothing was touched. Confirm with --confirm %s", name);
		else if (!typed(name, output))
			code = output_error(output, EXIT_REFUSED, "nothing was touched");
		else
			json_object_set_new(invocation->params, "confirm", json_string(name));
	}
	json_decref(plan);
	return code;
}

int array_change_run(struct invocation *invocation)
{
	struct output *output = invocation->output;
	bool dry = json_object_get(invocation->params, "dry_run");
	json_t *result = NULL;
	int code = EXIT_DONE;

	if (!dry && json_object_get(invocation->params, "force") &&
	    !json_object_get(invocation->params, "confirm"))
		code = confirm(invocation);
	if (!code)
		code = command_call(invocation, invocation->command->method, invocation->params,
				    &result);
	if (code)
		return code;
	if (output->json)
		code = output_json(output, result);
	else if (dry)
		print_losses(result, output->out);
	else
		code = array_show(result, output);
	json_decref(result);
	return code;
}

/* ---- disks ---- */

static void print_value(const struct output *output, const char *label, const json_t *value)
{
	fprintf(output->out, "%-18s ", label);
	if (json_is_string(value))
		output_paint(output, PAINT_NONE, json_string_value(value));
	else if (json_is_integer(value))
		fprintf(output->out, "%lld", (long long)json_integer_value(value));
	else if (json_is_boolean(value))
		fputs(json_is_true(value) ? "true" : "false", output->out);
	else if (json_is_object(value))
		fprintf(output->out, "%lld + %lld", (long long)number(value, "offset_bytes"),
			(long long)number(value, "length_bytes"));
	else
		fprintf(output->out, "%zu", json_array_size(value));
	fputc('\n', output->out);
}

int disk_label_show(const json_t *result, const struct output *output)
{
	static const struct column columns[] = {
		{ "ROLE", "role", COLUMN_NUMBER, 0, false },
		{ "MEMBER", "member", COLUMN_TEXT, 0, false },
		{ "STATE", "state", COLUMN_STATE, 0, false },
		{ "UUID", "uuid", COLUMN_TEXT, 1, false },
	};
	static const struct table table = TABLE("members", columns);
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)result, key, value) {
		if (strcmp(key, "maps") == 0)
			for (size_t i = 0; i < json_array_size(value); i++)
				print_value(output, i ? "" : "maps", json_array_get(value, i));
		else if (strcmp(key, "schema") != 0 && strcmp(key, "members") != 0)
			print_value(output, key, value);
	}
	return table_print(&table, result, output);
}

/* A disk much slower than the one in the middle is named: it makes its array as slow. */
static void compare(json_t *rows)
{
	json_t *row, *other;
	size_t i, k;

	json_array_foreach(rows, i, row) {
		json_int_t own = number(row, "read_p99_us");
		size_t faster = 0, count = json_array_size(rows);
		char note[64] = "";

		json_array_foreach(rows, k, other)
			faster += number(other, "read_p99_us") * 3 <= own;
		if (own >= 1000 && faster * 2 >= count && count > 1)
			snprintf(note, sizeof(note), "slow: its peers take a third or less");
		json_object_set_new(row, "note", json_string(note));
		json_object_set_new(row, "read_mib_s",
				    json_real((double)number(row, "read_bytes_per_s") / MIB));
	}
}

/* Those that can be read, when no disk is named. */
static int usable_disks(struct invocation *invocation, json_t *names)
{
	json_t *list = NULL, *row;
	size_t i;
	int code = command_call(invocation, "disk.list", NULL, &list);

	json_array_foreach(json_object_get(list, "disks"), i, row)
		if (!*output_text(row, "cause", ""))
			json_array_append(names, json_object_get(row, "disk"));
	json_decref(list);
	return code;
}

int disk_test_run(struct invocation *invocation)
{
	json_t *asked = json_object_get(invocation->params, "disks"), *name;
	json_t *names = asked ? json_incref(asked) : json_array();
	json_t *rows = json_array(), *result = NULL;
	int code = asked ? EXIT_DONE : usable_disks(invocation, names);
	size_t i;

	for (i = 0; !code && (name = json_array_get(names, i)); i++) {
		json_t *params = json_pack("{s:O}", "disk", name), *row = NULL;

		code = command_call(invocation, invocation->command->method, params, &row);
		json_decref(params);
		if (row)
			json_object_del(row, "schema");
		if (row)
			json_array_append_new(rows, row);
	}
	compare(rows);
	result = json_pack("{s:s, s:o}", "schema", "yoke.disk.tests/1", "disks", rows);
	if (!code)
		code = invocation->output->json ?
			       output_json(invocation->output, result) :
			       table_print(&test_table, result, invocation->output);
	json_decref(result);
	json_decref(names);
	return code;
}
