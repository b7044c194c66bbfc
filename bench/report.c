/* SPDX-License-Identifier: MIT */
/*
 * The page of a report: a template with its style, scripts and data put in.
 *
 * Invariants:
 *  1. The data are embedded as they are; every figure on the page is made of them by its scripts.
 *  2. No `<` of the data reaches the page: nothing that a target calls itself ends their element.
 *  3. A line of the template that begins with @NAME@ is a mark, and all marks are known.
 *
 * Not here: charts (report_chart.js and its neighbours), reading files (report_command.c).
 */
#include "bench/report.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "bench/report_int.h"
#include "bench/whole.h"

#define SCHEMA "yoke.bench/1"

int report_check(json_t *json, const char *name, struct bench_fault *fault)
{
	const char *schema;
	json_error_t error;

	if (json_unpack_ex(json, &error, JSON_VALIDATE_ONLY,
			   "{s:{s:s, s:b, s:{s:s, s:[]}, s:{s:{s:F}}}}", "yoke", "schema",
			   "meaningful", "point", "name", "streams", "sides", "total", "iops")) {
		snprintf(fault->text, sizeof(fault->text),
			 "%.120s: %.80s. Name a file that yoke-bench --json wrote", name,
			 error.text);
		return -EINVAL;
	}
	schema = json_string_value(json_object_get(json_object_get(json, "yoke"), "schema"));
	if (strcmp(schema, SCHEMA) != 0) {
		snprintf(fault->text, sizeof(fault->text),
			 "%.120s: its schema is \"%.40s\", not \"%s\". Use the yoke-bench that "
			 "wrote it",
			 name, schema, SCHEMA);
		return -EINVAL;
	}
	return 0;
}

/* In JSON a `<` is always in a string, where it may be written otherwise. */
static int put_escaped(const char *text, size_t size, void *f)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] == '<')
			fputs("\\u003c", f);
		else
			fputc(text[i], f);
	return ferror((FILE *)f) ? -1 : 0;
}

static int put_json(FILE *f, const json_t *json)
{
	return json_dump_callback(json, put_escaped, f,
				  JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY |
					  JSON_REAL_PRECISION(10)) ?
		       -EIO :
		       0;
}

static int put_runs(FILE *f, const struct report_run *runs, unsigned count)
{
	int err = 0;

	for (unsigned i = 0; i < count && !err; i++) {
		/* No name: there is none, or it is not UTF-8. */
		json_t *name = runs[i].name ? json_string(runs[i].name) : NULL;

		fputs(i ? ",\n{\"name\":" : "{\"name\":", f);
		if (name)
			err = put_json(f, name);
		else
			fputs("null", f);
		json_decref(name);
		fputs(",\"json\":", f);
		if (!err)
			err = put_json(f, runs[i].json);
		fputc('}', f);
	}
	return err;
}

static int put_data(FILE *f, const struct report *report)
{
	int err;

	fputs("{\"runs\":[", f);
	err = put_runs(f, report->runs, report->count);
	fputs("],\n\"against\":[", f);
	if (!err)
		err = put_runs(f, report->against, report->against_count);
	fputs("]}", f);
	return err;
}

/* Puts what the mark at AT stands for; returns the mark's length. */
static size_t put_marked(FILE *f, const char *at, const struct report *report, int *err)
{
	static const struct {
		const char *mark, *text;
	} pieces[] = {
		{ "@report.css@", report_css },
		{ "@report.js@", report_js },
		{ "@report_chart.js@", report_chart_js },
		{ "@report_charts.js@", report_charts_js },
		{ "@data@", NULL },
	};

	for (unsigned i = 0; i < ARRAY_LEN(pieces); i++) {
		if (strncmp(at, pieces[i].mark, strlen(pieces[i].mark)) != 0)
			continue;
		if (pieces[i].text)
			fputs(pieces[i].text, f);
		else
			*err = put_data(f, report);
		return strlen(pieces[i].mark);
	}
	assert(!"a mark of the template that nobody knows");
	return 0;
}

static int put_page(FILE *f, const void *arg)
{
	const char *at = report_html;
	int err = 0;

	while (*at && !err) {
		if (*at == '@')
			at += put_marked(f, at, arg, &err);
		while (*at && *at++ != '\n')
			fputc(at[-1], f);
		if (at[-1] == '\n')
			fputc('\n', f);
	}
	return err;
}

int report_write(const char *file, const struct report *report, struct bench_fault *fault)
{
	return whole_write(file, put_page, report, fault);
}
