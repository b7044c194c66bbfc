/* SPDX-License-Identifier: MIT */
/*
 * Measurements as one page with charts, which needs nothing but a browser: no network, no file
 * beside it.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <jansson.h>

#include "bench/engine.h"

/* A measurement as json_outcome() made it, or as it was read from a file. */
struct report_run {
	json_t *json;
	const char *name; /* of its file; NULL: none */
};

struct report {
	const struct report_run *runs; /* one at least */
	unsigned count;
	const struct report_run *against; /* what they are compared with */
	unsigned against_count;
};

/* Writes the page to FILE, whole or not at all: 0, or -errno and FAULT. */
int report_write(const char *file, const struct report *report, struct bench_fault *fault);

/*
 * Whether JSON is a measurement of ours: 0, or -EINVAL and FAULT, which begins with NAME. Only what
 * a page cannot do without has to be there.
 */
int report_check(json_t *json, const char *name, struct bench_fault *fault);

/* `yoke-bench report A.json... [--against B.json...] --out FILE.html`; an enum bench_exit. */
int report_main(int argc, char *const *argv);

#endif
