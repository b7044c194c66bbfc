/* SPDX-License-Identifier: MIT */
/* Tables for people out of the rows of an answer; the JSON shows the same rows. */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include "ctl/output.h"

enum column_kind {
	COLUMN_TEXT,    /* to the left; all others to the right */
	COLUMN_STATE,   /* text, in the colour of its word */
	COLUMN_NUMBER,  /* as it is: LUN, group */
	COLUMN_COUNT,   /* with separators */
	COLUMN_SIZE,    /* bytes */
	COLUMN_RATE,    /* one decimal */
	COLUMN_LATENCY, /* microseconds */
	COLUMN_FLAG,    /* 1 or 0 */
	COLUMN_TIME,    /* UTC, shown local */
	COLUMN_LIST,    /* strings, shown with commas */
};

struct column {
	const char *name; /* "IN-FLIGHT"; for -o in lower case */
	const char *key;  /* in a row; a dot leads into an object: "counters.by_op" */
	enum column_kind kind;
	/* 0: always there. On a narrow terminal the highest goes first. */
	unsigned drop;
	bool wide; /* only with --wide or -o */
};

struct table {
	const char *rows; /* the member of the answer that is the array */
	const struct column *columns;
	unsigned column_count;
};

/* An exit code: EXIT_USAGE if -o names a column that is not there. */
int table_print(const struct table *table, const json_t *result, const struct output *output);

#endif
