/* SPDX-License-Identifier: MIT */
/*
 * JSON files: one a measurement, because fio-plot adds up the jobs of one file.
 *
 * Invariants:
 *  1. A file that is there is whole: it is written beside its place and moved there.
 *  2. Members are only added within a version of the schema.
 *
 * Not here: fio's members (json_fio.c), ours (json_yoke.c).
 * Spec: man/yoke-bench-json.5; the json+ output of fio(1).
 */
#include "bench/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/json_int.h"

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

static int refuse(struct bench_fault *fault, const char *file, int err)
{
	snprintf(fault->text, sizeof(fault->text), "%.200s: %s. Name a file that can be written",
		 file, strerror(err));
	return -err;
}

int json_write(const char *file, const json_t *json, struct bench_fault *fault)
{
	char *beside;
	FILE *f;
	int err = 0;

	if (asprintf(&beside, "%s.part", file) < 0)
		return refuse(fault, file, ENOMEM);
	f = fopen(beside, "w");
	if (!f) {
		err = errno;
		free(beside);
		return refuse(fault, file, err);
	}
	if (json_dumpf(json, f, JSON_INDENT(1) | JSON_REAL_PRECISION(10)) || fputc('\n', f) == EOF)
		err = errno ? errno : EIO;
	if (fclose(f) && !err)
		err = errno;
	if (!err && rename(beside, file))
		err = errno;
	if (err)
		unlink(beside);
	free(beside);
	return err ? refuse(fault, file, err) : 0;
}
