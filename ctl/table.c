/* SPDX-License-Identifier: MIT */
/*
 * Tables: columns as wide as what is in them, fewer columns on narrow terminals.
 *
 * Invariants:
 * 1. A value is never cut: a cut one reads as another one.
 * 2. Dropping columns is said; without a terminal none is dropped.
 * 3. What is not known is `-`.
 *
 * Not here: which columns there are (cmd_lists.c).
 */
#include "ctl/table.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"

#define COLUMNS_MAX 32

struct grid {
	const struct table *table;
	const struct output *output;
	unsigned chosen[COLUMNS_MAX]; /* indices of columns, in the order to show */
	unsigned count;
	size_t row_count;
	char **cells;                 /* row by row, of the chosen columns */
	unsigned widths[COLUMNS_MAX]; /* by place */
};

/* Code points: close enough for names, which are ASCII nearly always. */
static unsigned text_width(const char *text)
{
	unsigned width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static const json_t *find(const json_t *row, const char *key)
{
	const char *dot = strchr(key, '.');
	char head[64];

	if (!dot)
		return json_object_get(row, key);
	snprintf(head, sizeof(head), "%.*s", (int)(dot - key), key);
	return find(json_object_get(row, head), dot + 1);
}

static char *joined(const json_t *list)
{
	char *text = strdup("");
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) {
		const char *name = json_string_value(item);
		char *longer = NULL;

		if (text && asprintf(&longer, "%s%s%s", text, i ? "," : "", name ? name : "") < 0)
			longer = NULL;
		free(text);
		text = longer;
	}
	return text;
}

/* A number as the column shows it. */
static const char *number_text(const struct column *column, double value, bool bytes, char *buf)
{
	uint64_t whole = value > 0 ? (uint64_t)value : 0;

	switch (column->kind) {
	case COLUMN_SIZE:
		if (!bytes)
			return units_size(whole, buf);
		break;
	case COLUMN_COUNT:
		return units_count((uint64_t)(value + 0.5), buf);
	case COLUMN_RATE:
		return units_rate(value, buf);
	case COLUMN_LATENCY:
		return units_latency_us(value, buf);
	default:
		break;
	}
	snprintf(buf, UNITS_SIZE, "%" PRIu64, whole);
	return buf;
}

static char *cell(const struct column *column, const json_t *row, bool bytes)
{
	const json_t *value = find(row, column->key);
	char buf[UNITS_SIZE];

	if (json_is_string(value)) {
		const char *text = json_string_value(value);

		if (column->kind == COLUMN_TIME)
			return strdup(units_local_time(text, buf));
		return strdup(*text ? text : "-");
	}
	if (json_is_boolean(value))
		return strdup(json_is_true(value) ? "1" : "0");
	if (json_is_array(value))
		return joined(value);
	/* Integers beyond 2^53 would lose digits as a double. */
	if (json_is_integer(value) &&
	    (column->kind == COLUMN_NUMBER || column->kind == COLUMN_TEXT ||
	     (column->kind == COLUMN_SIZE && bytes))) {
		snprintf(buf, sizeof(buf), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return strdup(buf);
	}
	if (json_is_number(value))
		return strdup(number_text(column, json_number_value(value), bytes, buf));
	return strdup("-");
}

static bool name_is(const struct column *column, const char *name, size_t len)
{
	return strlen(column->name) == len && strncasecmp(column->name, name, len) == 0;
}

/* The columns of -o; an exit code. */
static int choose_named(struct grid *g)
{
	const struct table *t = g->table;
	const char *at = g->output->columns;

	for (;;) {
		size_t len = strcspn(at, ",");
		unsigned i = 0;

		while (i < t->column_count && !name_is(&t->columns[i], at, len))
			i++;
		if (i == t->column_count || g->count == COLUMNS_MAX) {
			output_error(g->output, EXIT_USAGE,
				     "no column \"%.*s\". There are:", (int)len, at);
			for (i = 0; i < t->column_count; i++) {
				fputc(i ? ',' : ' ', g->output->err);
				for (const char *c = t->columns[i].name; *c; c++)
					fputc(tolower((unsigned char)*c), g->output->err);
			}
			fputc('\n', g->output->err);
			return EXIT_USAGE;
		}
		g->chosen[g->count++] = i;
		if (!at[len])
			return EXIT_DONE;
		at += len + 1;
	}
}

static int choose(struct grid *g)
{
	assert(g->table->column_count <= COLUMNS_MAX);
	if (g->output->columns)
		return choose_named(g);
	for (unsigned i = 0; i < g->table->column_count; i++)
		if (!g->table->columns[i].wide || g->output->wide)
			g->chosen[g->count++] = i;
	return EXIT_DONE;
}

static const struct column *column_at(const struct grid *g, unsigned place)
{
	return &g->table->columns[g->chosen[place]];
}

static bool fill(struct grid *g, const json_t *rows)
{
	const json_t *row;
	size_t i;

	g->row_count = json_array_size(rows);
	g->cells = calloc(g->row_count * g->count + 1, sizeof(*g->cells));
	if (!g->cells)
		return false;
	json_array_foreach(rows, i, row) {
		for (unsigned j = 0; j < g->count; j++) {
			char *text = cell(column_at(g, j), row, g->output->bytes);

			if (!text)
				return false;
			g->cells[i * g->count + j] = text;
		}
	}
	for (unsigned j = 0; j < g->count; j++) {
		g->widths[j] = g->output->no_header ? 0 : text_width(column_at(g, j)->name);
		for (i = 0; i < g->row_count; i++) {
			const char *text = g->cells[i * g->count + j];
			unsigned width = text ? text_width(text) : 0;

			if (width > g->widths[j])
				g->widths[j] = width;
		}
	}
	return true;
}

static unsigned total_width(const struct grid *g, const bool *dropped)
{
	unsigned width = 0;

	for (unsigned j = 0; j < g->count; j++)
		if (!dropped[j])
			width += g->widths[j] + (width ? 1 : 0);
	return width;
}

/* Marks columns until the rest fits; how many. */
static unsigned drop_columns(const struct grid *g, bool *dropped)
{
	unsigned n = 0;

	if (!g->output->width || g->output->wide || g->output->columns)
		return 0;
	while (total_width(g, dropped) > g->output->width) {
		unsigned worst = g->count;

		for (unsigned j = 0; j < g->count; j++)
			if (!dropped[j] && column_at(g, j)->drop &&
			    (worst == g->count ||
			     column_at(g, j)->drop >= column_at(g, worst)->drop))
				worst = j;
		if (worst == g->count)
			break;
		dropped[worst] = true;
		n++;
	}
	return n;
}

static bool to_the_left(const struct column *column)
{
	return column->kind == COLUMN_TEXT || column->kind == COLUMN_STATE ||
	       column->kind == COLUMN_TIME || column->kind == COLUMN_LIST;
}

static void print_line(const struct grid *g, const bool *dropped, char *const *cells)
{
	unsigned last = 0;
	bool first = true;

	for (unsigned j = 0; j < g->count; j++)
		if (!dropped[j])
			last = j;
	for (unsigned j = 0; j < g->count; j++) {
		const struct column *column = column_at(g, j);
		const char *text = cells ? cells[j] : column->name;
		int pad = (int)(g->widths[j] - text_width(text));
		enum paint paint = PAINT_NONE;

		if (dropped[j])
			continue;
		if (!first)
			fputc(' ', g->output->out);
		first = false;
		if (cells && column->kind == COLUMN_STATE)
			paint = output_paint_of(text);
		if (!to_the_left(column))
			fprintf(g->output->out, "%*s", pad, "");
		output_paint(g->output, paint, text);
		if (to_the_left(column) && j != last)
			fprintf(g->output->out, "%*s", pad, "");
	}
	fputc('\n', g->output->out);
}

int table_print(const struct table *table, const json_t *result, const struct output *output)
{
	struct grid g = { .table = table, .output = output };
	bool dropped[COLUMNS_MAX] = { false };
	int code = choose(&g);
	unsigned n;

	if (code)
		return code;
	if (fill(&g, json_object_get(result, table->rows))) {
		n = drop_columns(&g, dropped);
		if (!output->no_header)
			print_line(&g, dropped, NULL);
		for (size_t i = 0; i < g.row_count; i++)
			print_line(&g, dropped, g.cells + i * g.count);
		if (n)
			fprintf(output->out, "+%u: --wide\n", n);
	} else {
		code = output_error(output, EXIT_REFUSED, "out of memory");
	}
	for (size_t i = 0; g.cells && i < g.row_count * g.count; i++)
		free(g.cells[i]);
	free(g.cells);
	return code;
}
