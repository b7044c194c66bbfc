/* SPDX-License-Identifier: MIT */
/* Measurements as comma-separated values (RFC 4180): a row a measurement, or an interval. */
#ifndef BENCH_CSV_H
#define BENCH_CSV_H

#include <stdio.h>

#include "bench/outcome.h"

void csv_summary_head(FILE *out);
/* A row a side with commands. */
void csv_summary(FILE *out, const struct outcome *outcome);

/* A column a portal is among them: one file holds measurements of one setup. */
void csv_series_head(FILE *out, const struct bench_setup *setup);
void csv_series(FILE *out, const struct outcome *outcome);

#endif
