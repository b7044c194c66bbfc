/* SPDX-License-Identifier: MIT */
/*
 * The files of a run: --json, --csv, --report.
 *
 * Invariants:
 *  1. A file that cannot be written does not keep the others from being written.
 *
 * Not here: what stands in them (json.c, csv.c, report.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/csv.h"
#include "bench/json.h"
#include "bench/report.h"
#include "bench/run_int.h"

static int tell(const struct run *run, const char *file, int err)
{
	run_say(run->streams->err, "%s: %s. Name a file that can be written", file, strerror(-err));
	return err;
}

static int write_json(const struct run *run)
{
	int rc = 0;

	for (unsigned i = 0; i < run->count && !rc; i++) {
		json_t *json = json_outcome(&run->outcomes[i]);
		struct bench_fault fault;
		char *name = malloc(strlen(run->options->json) + 32);

		if (!json || !name) {
			rc = tell(run, run->options->json, -ENOMEM);
		} else {
			json_file_name(run->options->json, i + 1, run->total, name,
				       strlen(run->options->json) + 32);
			rc = json_write(name, json, &fault);
			if (rc)
				run_say(run->streams->err, "%s", fault.text);
		}
		json_decref(json);
		free(name);
	}
	return rc;
}

/* FILE, or FILE with SUFFIX before its extension. */
static FILE *open_csv(const char *file, const char *suffix)
{
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
	const char *dot = strrchr(base, '.');
	int stem = dot && dot != base ? (int)(dot - file) : (int)strlen(file);
	FILE *f = NULL;
	char *name;

	if (asprintf(&name, "%.*s%s%s", stem, file, suffix, file + stem) >= 0) {
		f = fopen(name, "we");
		free(name);
	}
	return f;
}

/* ERR, or the first one of F, which may be NULL: a disk may have been full for a while only. */
static int close_csv(FILE *f, int err)
{
	if (f && ferror(f) && !err)
		err = -EIO;
	if (f && fclose(f) && !err)
		err = -errno;
	return err;
}

static int write_csv(const struct run *run)
{
	const char *file = run->options->csv;
	FILE *summary = open_csv(file, ""), *series = open_csv(file, "-series");
	int err = summary && series ? 0 : -errno;

	if (!err) {
		csv_summary_head(summary);
		csv_series_head(series, &run->plan->setup);
		for (unsigned i = 0; i < run->count; i++) {
			csv_summary(summary, &run->outcomes[i]);
			csv_series(series, &run->outcomes[i]);
		}
	}
	err = close_csv(summary, err);
	err = close_csv(series, err);
	return err ? tell(run, file, err) : 0;
}

static int write_report(const struct run *run)
{
	struct report_run *runs = calloc(run->count, sizeof(*runs));
	struct report report = { .runs = runs, .count = run->count };
	struct bench_fault fault = { "--report: out of memory" };
	int err = runs ? 0 : -ENOMEM;

	for (unsigned i = 0; i < run->count && !err; i++) {
		runs[i].json = json_outcome(&run->outcomes[i]);
		err = runs[i].json ? 0 : -ENOMEM;
	}
	err = err ? err : report_write(run->options->report, &report, &fault);
	if (err)
		run_say(run->streams->err, "%s", fault.text);
	for (unsigned i = 0; runs && i < run->count; i++)
		json_decref(runs[i].json);
	free(runs);
	return err;
}

int run_files(const struct run *run)
{
	int err = 0;

	if (!run->count)
		return 0;
	if (run->options->json)
		err = write_json(run);
	if (run->options->csv && write_csv(run))
		err = -EIO;
	if (run->options->report && write_report(run))
		err = -EIO;
	return err;
}
