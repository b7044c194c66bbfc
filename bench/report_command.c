/* SPDX-License-Identifier: MIT */
/*
 * `yoke-bench report`: a page of JSON files that were written before.
 *
 * Invariants:
 *  1. Files are looked at before the page is begun: one that is none of ours refuses all.
 *
 * Not here: the page (report.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report.h"
#include "bench/run.h"

static const char usage[] =
	"usage: yoke-bench report A.json... [--against B.json...] --out FILE.html\n\n"
	"Makes one page with charts of what yoke-bench --json wrote, or compares A with B: point by\n"
	"point, each repeat of a point in its file. It needs no network. See yoke-bench(1).\n";

struct arguments {
	struct report_run *runs; /* A's from the start, B's behind them */
	unsigned count, first_against;
	const char *out;
	bool against, help;
};

static int say(struct bench_fault *fault, const char *text)
{
	snprintf(fault->text, sizeof(fault->text), "report: %s", text);
	return -1;
}

static int parse(int argc, char *const *argv, struct arguments *a, struct bench_fault *fault)
{
	bool no_more = false;

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (no_more || word[0] != '-') {
			a->runs[a->count++].name = word;
		} else if (strcmp(word, "--") == 0) {
			no_more = true;
		} else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
			a->help = true;
			return 0;
		} else if (strcmp(word, "--against") == 0 && !a->against) {
			a->against = true;
			a->first_against = a->count;
		} else if (strncmp(word, "--out=", 6) == 0 && !a->out) {
			a->out = word + 6;
		} else if (strcmp(word, "--out") == 0 && !a->out && i + 1 < argc) {
			a->out = argv[++i];
		} else {
			snprintf(fault->text, sizeof(fault->text),
				 "report: %.60s is unknown, given twice or without a value. Write "
				 "A.json... [--against B.json...] --out FILE.html",
				 word);
			return -1;
		}
	}
	if (!a->against)
		a->first_against = a->count;
	if (!a->first_against)
		return say(fault, "no file to show. Name what yoke-bench --json wrote");
	if (a->against && a->first_against == a->count)
		return say(fault, "--against: no file. Name what to compare with");
	if (!a->out || !*a->out)
		return say(fault, "no --out. Add --out FILE.html");
	return 0;
}

static int read_all(struct arguments *a, struct bench_fault *fault)
{
	for (unsigned i = 0; i < a->count; i++) {
		struct report_run *run = &a->runs[i];
		json_error_t error;

		run->json = json_load_file(run->name, JSON_REJECT_DUPLICATES, &error);
		if (!run->json && error.line < 1) {
			snprintf(fault->text, sizeof(fault->text),
				 "%.200s. Name a file that yoke-bench --json wrote", error.text);
			return -1;
		}
		if (!run->json) {
			snprintf(fault->text, sizeof(fault->text),
				 "%.120s:%d: %.80s. Name a file that yoke-bench --json wrote",
				 run->name, error.line, error.text);
			return -1;
		}
		if (report_check(run->json, run->name, fault))
			return -1;
	}
	return 0;
}

int report_main(int argc, char *const *argv)
{
	struct arguments a = { .runs = calloc((size_t)argc + 1, sizeof(*a.runs)) };
	struct bench_fault fault = { "out of memory" };
	int code = BENCH_REFUSED;
	bool good = a.runs && !parse(argc, argv, &a, &fault);

	if (good && a.help) {
		fputs(usage, stdout);
		code = BENCH_DONE;
	} else if (good && !read_all(&a, &fault)) {
		struct report report = { .runs = a.runs,
					 .count = a.first_against,
					 .against = a.runs + a.first_against,
					 .against_count = a.count - a.first_against };

		code = report_write(a.out, &report, &fault) ? BENCH_LOST : BENCH_DONE;
	}
	if (code != BENCH_DONE)
		run_say(stderr, "%s", fault.text);
	for (unsigned i = 0; a.runs && i < a.count; i++)
		json_decref(a.runs[i].json);
	free(a.runs);
	return code;
}
