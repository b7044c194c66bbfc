/* SPDX-License-Identifier: MIT */
/*
 * The tables of things, and what is said after doing something to one of them.
 *
 * Columns: who it is, state, size, rates. Shapes of answers: yoke-rpc(7).
 */
#include <string.h>

#include "core/units.h"
#include "ctl/command.h"

#define TABLE(rows, columns)                                                                       \
	{                                                                                          \
		rows, columns, ARRAY_LEN(columns)                                                  \
	}

static const struct column target_columns[] = {
	{ "TARGET", "name", COLUMN_TEXT, 0, false },
	{ "PORTALS", "portals", COLUMN_LIST, 1, false },
	{ "LUNS", "luns", COLUMN_COUNT, 2, false },
	{ "SESSIONS", "sessions", COLUMN_COUNT, 3, false },
	{ "ALLOW", "allow", COLUMN_LIST, 4, true },
};
const struct table target_table = TABLE("targets", target_columns);

static const struct column session_columns[] = {
	{ "ID", "id", COLUMN_NUMBER, 0, false },
	{ "INITIATOR", "initiator", COLUMN_TEXT, 0, false },
	{ "TARGET", "target", COLUMN_TEXT, 7, true },
	{ "PORTAL", "portal", COLUMN_TEXT, 1, false },
	{ "ISID", "isid", COLUMN_TEXT, 6, false },
	{ "STATE", "state", COLUMN_STATE, 0, false },
	{ "IN-FLIGHT", "in_flight", COLUMN_COUNT, 3, false },
	{ "IOPS", "iops", COLUMN_COUNT, 2, false },
	{ "MiB/s", "mib_s", COLUMN_RATE, 4, false },
	{ "P99", "p99_us", COLUMN_LATENCY, 5, false },
	{ "ADDRESS", "remote_address", COLUMN_TEXT, 7, true },
	{ "TSIH", "tsih", COLUMN_NUMBER, 9, true },
	{ "WINDOW", "cmdsn_window", COLUMN_COUNT, 9, true },
	{ "READS", "read_ops", COLUMN_COUNT, 8, true },
	{ "WRITES", "write_ops", COLUMN_COUNT, 8, true },
	{ "READ", "read_bytes", COLUMN_SIZE, 8, true },
	{ "WRITTEN", "write_bytes", COLUMN_SIZE, 8, true },
	{ "SINCE", "since_utc", COLUMN_TIME, 9, true },
};
const struct table session_table = TABLE("sessions", session_columns);

static const struct column lun_columns[] = {
	{ "TARGET", "target", COLUMN_TEXT, 0, false },
	{ "LUN", "lun", COLUMN_NUMBER, 0, false },
	{ "NAME", "name", COLUMN_TEXT, 2, false },
	{ "STATE", "state", COLUMN_STATE, 0, false },
	{ "SIZE", "size_bytes", COLUMN_SIZE, 1, false },
	{ "WCE", "write_cache", COLUMN_FLAG, 6, false },
	{ "RO", "read_only", COLUMN_FLAG, 5, false },
	{ "PATHS", "sessions", COLUMN_COUNT, 3, false },
	{ "IN-FLIGHT", "in_flight", COLUMN_COUNT, 4, false },
	{ "BLOCK", "block_size_bytes", COLUMN_NUMBER, 9, true },
	{ "READS", "read_ops", COLUMN_COUNT, 8, true },
	{ "WRITES", "write_ops", COLUMN_COUNT, 8, true },
	{ "READ", "read_bytes", COLUMN_SIZE, 8, true },
	{ "WRITTEN", "write_bytes", COLUMN_SIZE, 8, true },
	{ "ERRORS", "errors", COLUMN_COUNT, 7, true },
	{ "UUID", "uuid", COLUMN_TEXT, 9, true },
};
const struct table lun_table = TABLE("luns", lun_columns);

static const struct column backing_columns[] = {
	{ "NAME", "name", COLUMN_TEXT, 0, false },
	{ "DRIVER", "driver", COLUMN_TEXT, 1, false },
	{ "STATE", "state", COLUMN_STATE, 0, false },
	{ "SIZE", "size_bytes", COLUMN_SIZE, 2, false },
	{ "READS", "counters.by_op.read.ops", COLUMN_COUNT, 4, false },
	{ "WRITES", "counters.by_op.write.ops", COLUMN_COUNT, 4, false },
	{ "R-ERR", "counters.by_op.read.errors", COLUMN_COUNT, 3, false },
	{ "W-ERR", "counters.by_op.write.errors", COLUMN_COUNT, 3, false },
	{ "PATH", "path", COLUMN_TEXT, 5, false },
	{ "BLOCK", "block_size_bytes", COLUMN_NUMBER, 9, true },
	{ "PHYSICAL", "physical_block_bytes", COLUMN_NUMBER, 9, true },
	{ "FLUSHES", "counters.by_op.flush.ops", COLUMN_COUNT, 8, true },
	{ "IN-FLIGHT", "in_flight", COLUMN_COUNT, 8, true },
	{ "CAUSE", "cause", COLUMN_TEXT, 7, true },
};
const struct table backing_table = TABLE("backings", backing_columns);

static const struct column fault_columns[] = {
	{ "ID", "id", COLUMN_NUMBER, 0, false },
	{ "BACKING", "backing", COLUMN_TEXT, 0, false },
	{ "KIND", "kind", COLUMN_TEXT, 0, false },
	{ "OP", "op", COLUMN_TEXT, 1, false },
	{ "HITS", "hits", COLUMN_COUNT, 2, false },
	{ "HELD", "held", COLUMN_COUNT, 3, false },
	{ "LEFT", "count_left", COLUMN_COUNT, 4, false },
	{ "DELAY-MS", "delay_ms", COLUMN_COUNT, 5, false },
	{ "OFFSET", "offset", COLUMN_SIZE, 6, false },
	{ "LENGTH", "length", COLUMN_SIZE, 6, false },
};
const struct table fault_table = TABLE("faults", fault_columns);

/* One `label value` a line. */
static void print_member(const struct output *output, const char *label, const json_t *value)
{
	fprintf(output->out, "  %-36s ", label);
	if (json_is_string(value))
		output_paint(output, PAINT_NONE, json_string_value(value));
	else if (json_is_integer(value))
		fprintf(output->out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		fprintf(output->out, "%.1f", json_real_value(value));
	else if (json_is_boolean(value))
		fputs(json_is_true(value) ? "true" : "false", output->out);
	else
		fputs("-", output->out);
	fputc('\n', output->out);
}

int session_show(const json_t *row, const struct output *output)
{
	const char *key, *inner;
	json_t *value, *member;

	output_paint(output, PAINT_NONE, output_text(row, "initiator", "?"));
	fputc('\n', output->out);
	json_object_foreach((json_t *)row, key, value) {
		if (!json_is_object(value)) {
			print_member(output, key, value);
			continue;
		}
		fprintf(output->out, "%s\n", key);
		json_object_foreach(value, inner, member)
			print_member(output, inner, member);
	}
	return EXIT_DONE;
}

/* Whether ROW's id is ID, as a string or a number. */
static bool id_is(const json_t *row, const char *id)
{
	const json_t *value = json_object_get(row, "id");
	char text[32];

	if (json_is_string(value))
		return strcmp(json_string_value(value), id) == 0;
	snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return strcmp(text, id) == 0;
}

int session_show_run(struct invocation *invocation)
{
	const char *id = json_string_value(json_object_get(invocation->params, "id"));
	struct output *output = invocation->output;
	json_t *result, *row, *found = NULL;
	size_t i;
	int code = command_call(invocation, invocation->command->method, NULL, &result);

	if (code)
		return code;
	json_array_foreach(json_object_get(result, "sessions"), i, row)
		if (id_is(row, id))
			found = row;
	if (!found) {
		code = output_error(output, EXIT_REFUSED,
				    "session %s: no such session. See yokectl session list", id);
	} else if (output->json) {
		json_object_set_new(found, "schema", json_string("yoke.session.show/1"));
		code = output_json(output, found);
	} else {
		code = session_show(found, output);
	}
	json_decref(result);
	return code;
}

int session_kill_show(const json_t *result, const struct output *output)
{
	fprintf(output->out, "session %s closed\n", output_text(result, "id", "?"));
	return EXIT_DONE;
}

int fault_add_show(const json_t *result, const struct output *output)
{
	fprintf(output->out, "fault %s added\n", output_text(result, "id", "?"));
	return EXIT_DONE;
}

int fault_remove_show(const json_t *result, const struct output *output)
{
	fprintf(output->out, "fault %s removed\n", output_text(result, "id", "?"));
	return EXIT_DONE;
}
