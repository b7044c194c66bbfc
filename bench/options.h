/* SPDX-License-Identifier: MIT */
/*
 * The command line of yoke-bench, as one table: parsing and help follow from it, the manual page
 * and the completion are held to it by a test.
 *
 *   options_parse() -> options_check() -> [discover] -> options_plan() -> struct bench_plan
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdio.h>

#include "bench/expect.h"
#include "bench/matrix.h"
#include "bench/url.h"
#include "core/color.h"

#define OPTIONS_INITIATOR "iqn.2026-11.org.yoke:bench"

/* Strings belong to argv. */
struct options {
	struct bench_plan plan;
	struct matrix matrix;
	struct matrix streams[BENCH_STREAMS_MAX];
	unsigned stream_count;
	struct url urls[URL_MAX];
	unsigned url_count;
	const char *profile;
	const char *chap_file;
	const char *json, *csv, *report;
	const char *journal, *cross_check, *expect_text;
	struct expect expect;
	bool discover, no_fill, verify, check_journal;
	bool list_profiles, help, version;
	enum color_option color;
};

enum option_kind {
	OPTION_MATRIX, /* `key` of the matrix, values between commas */
	OPTION_TEXT,   /* a const char * at `offset` */
	OPTION_FLAG,   /* a bool at `offset` */
	OPTION_SET,    /* by `set` */
};

struct option_row {
	const char *group; /* a heading of the help; NULL: as the one before */
	const char *name;  /* "--bs" */
	const char *alias; /* another name; NULL: none */
	const char *meta;  /* "SIZE,..."; NULL: takes no value */
	const char *help;
	enum option_kind kind;
	enum matrix_key key;
	size_t offset;
	int (*set)(struct options *options, const char *value, char *cause, size_t cause_size);
	const char *values; /* the choices, with spaces; NULL: anything */
};

/* Ends with a NULL name. */
extern const struct option_row options_table[];

/* 0, or -EINVAL and FAULT. OPTIONS is the caller's (options_free) in every case. */
int options_parse(int argc, char *const *argv, struct options *options, struct bench_fault *fault);
/* Checks that options go together, and reads secrets. 0, or -EINVAL and FAULT. */
int options_check(struct options *options, struct bench_fault *fault);

/*
 * Makes options->plan, and checks what can be known without the target. The setup's portals and LUNs
 * are known by now, whether from URLs or from discovery.
 */
int options_plan(struct options *options, struct bench_fault *fault);
void options_free(struct options *options);

void options_help(FILE *out);

/* A secret file, `user NAME`, `secret SECRET`, `mutual_user NAME`, `mutual_secret SECRET`. */
int chap_read(const char *path, struct bench_chap *chap, struct bench_fault *fault);

#endif
