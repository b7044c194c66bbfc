/* SPDX-License-Identifier: MIT */
/* What run.c and run_files.c share: one run of a plan. */
#ifndef BENCH_RUN_INT_H
#define BENCH_RUN_INT_H

#include "bench/cross_check.h"
#include "bench/live.h"
#include "bench/outcome.h"
#include "bench/run.h"
#include "bench/table.h"

struct run {
	const struct options *options;
	const struct bench_plan *plan;
	const struct run_streams *streams;
	struct live live;
	struct table_output table;
	struct engine *engine;
	struct verify *verify;     /* NULL: none */
	struct cross_check *check; /* NULL: none */
	bool check_failed;         /* the last reading of it; check_fault says why */
	struct bench_fault check_fault;
	struct outcome *outcomes;      /* [total], count of them measured */
	struct bench_result **results; /* theirs */
	unsigned count, total;
};

/* Writes what the options name. 0, or -errno after telling why; the other files are written. */
int run_files(const struct run *run);

#endif
