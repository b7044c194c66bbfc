/* SPDX-License-Identifier: MIT */
/*
 * JSON files: one a measurement, because fio-plot adds up the jobs of one file.
 *
 * Invariants:
 *  1. Members are only added within a version of the schema.
 *  2. No text makes a member go missing, whatever a target put into it.
 *
 * Not here: fio's members (json_fio.c), ours (json_yoke.c).
 * Spec: man/yoke-bench-json.5; the json+ output of fio(1).
 */
#include "bench/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/json_int.h"
#include "bench/whole.h"
#include "core/clean.h"

json_t *json_text(const char *text)
{
	json_t *json = json_string(text);
	char *copy;

	if (json)
		return json;
	copy = strdup(text);
	if (!copy)
		return json_null();
	clean_text(copy);
	json = json_string(copy);
	free(copy);
	return json;
}

json_t *json_outcome(const struct outcome *outcome)
{
	json_t *root = json_object();

	json_fio(outcome, root);
	json_put(root, "yoke", json_yoke(outcome));
	return root;
}

void json_file_name(const char *file, unsigned number, unsigned count, char *name, size_t size)
{
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
	const char *dot = strrchr(base, '.');
	int digits = snprintf(NULL, 0, "%u", count);
	int stem = dot && dot != base ? (int)(dot - file) : (int)strlen(file);

	if (count == 1)
		snprintf(name, size, "%s", file);
	else
		snprintf(name, size, "%.*s-%0*u%s", stem, file, digits, number, file + stem);
}

static int dump(FILE *f, const void *json)
{
	errno = 0;
	if (!json_dumpf(json, f, JSON_INDENT(1) | JSON_REAL_PRECISION(10)) && fputc('\n', f) != EOF)
		return 0;
	return errno ? -errno : -EIO;
}

int json_write(const char *file, const json_t *json, struct bench_fault *fault)
{
	return whole_write(file, dump, json, fault);
}
