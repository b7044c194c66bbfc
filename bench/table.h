/* SPDX-License-Identifier: MIT */
/* What a measurement gave, for people: a headline with its verdict, figures, reasons. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdio.h>

#include "bench/outcome.h"

struct table_output {
	FILE *out;
	bool color;     /* color_wanted() */
	unsigned width; /* of the terminal; 0: none, lines break at 100 */
};

/* One measurement, whole. */
void table_outcome(const struct table_output *output, const struct outcome *outcome);
/* Several, a row each. */
void table_points(const struct table_output *output, const struct outcome *outcomes,
		  unsigned count);

#endif
