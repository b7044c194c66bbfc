/* SPDX-License-Identifier: MIT */
/*
 * A measurement as JSON: the subset of fio's json+ that fio's own scripts and fio-plot read, and
 * everything there is in the member `yoke`. man/yoke-bench-json.5 describes it.
 */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include <jansson.h>

#include "bench/outcome.h"

/* The caller's; NULL: out of memory. */
json_t *json_outcome(const struct outcome *outcome);

/*
 * Where measurement NUMBER of COUNT goes when the user said FILE: FILE itself if it is the only
 * one, else FILE with the number before its extension, "run.json" as "run-07.json" of 12.
 */
void json_file_name(const char *file, unsigned number, unsigned count, char *name, size_t size);

/* Writes it, whole or not at all: 0, or -errno and FAULT. */
int json_write(const char *file, const json_t *json, struct bench_fault *fault);

#endif
