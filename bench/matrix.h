/* SPDX-License-Identifier: MIT */
/*
 * What to measure as people write it: for each setting a list of values. Lists multiply into
 * the points of a plan. The command line and profiles fill the same matrix, so that a setting
 * has one name, one way of writing, one refusal.
 */
#ifndef BENCH_MATRIX_H
#define BENCH_MATRIX_H

#include "bench/engine.h"

#define MATRIX_VALUES_MAX 64
#define MATRIX_POINTS_MAX 512 /* each result is about half a megabyte until the end */

enum matrix_key {
	MATRIX_RW,      /* matrix_rw() of pattern and read percent */
	MATRIX_PATTERN, /* profiles: these two multiply to RW */
	MATRIX_READ,
	MATRIX_BS,
	MATRIX_DEPTH,
	MATRIX_SESSIONS,
	MATRIX_WORKERS, /* of a VM */
	MATRIX_VMS,
	MATRIX_SHIFT,
	MATRIX_RATE,
	MATRIX_THINK,
	MATRIX_ZIPF, /* millionths */
	MATRIX_TIME,
	MATRIX_WARMUP,
	MATRIX_RAMP,
	MATRIX_SIZE,
	MATRIX_IO_SIZE,
	MATRIX_DATA,
	MATRIX_SEED,
	MATRIX_REPEAT,
	MATRIX_STEADY,
	MATRIX_KEYS
};

struct matrix {
	struct {
		uint64_t values[MATRIX_VALUES_MAX];
		unsigned count; /* 0: not said */
	} of[MATRIX_KEYS];
};

/* Where a setting may be written; a bit mask. */
enum matrix_place { MATRIX_IN_OPTION = 1, MATRIX_IN_PROFILE = 2, MATRIX_IN_STREAM = 4 };

struct matrix_field {
	const char *name;
	unsigned places;
	bool list;
	int (*parse)(const char *text, uint64_t *value); /* 0, -EINVAL, -ERANGE */
	const char *like;            /* "is not a size. Write it like 4K or 64K ..." */
	uint64_t min, max, multiple; /* of the value; MULTIPLE 0: any */
	const char *range;           /* the same for people */
};

/* By key: every key has a field. */
extern const struct matrix_field matrix_fields[MATRIX_KEYS];
/* The key of NAME where it may stand in PLACE; -1. */
int matrix_key(const char *name, enum matrix_place place);

/* Adds a value. 0, or -EINVAL and in CAUSE what is wrong and what to write instead. */
int matrix_add(struct matrix *matrix, enum matrix_key key, const char *text, char *cause,
	       size_t cause_size);
/* Adds the values between the commas of TEXT. */
int matrix_add_list(struct matrix *matrix, enum matrix_key key, const char *text, char *cause,
		    size_t cause_size);
/* What OVER says replaces what INTO says of the same. */
void matrix_overlay(struct matrix *into, const struct matrix *over);

/* The points of MATRIX, or, if there are STREAMS, the one in which they run side by side. */
int matrix_points(const struct matrix *matrix, const struct matrix *streams, unsigned stream_count,
		  struct bench_plan *plan, struct bench_fault *fault);

/* "4K", "300ms", "10k": units in either case. 0, -EINVAL, -ERANGE (no 64-bit number). */
int matrix_parse_size(const char *text, uint64_t *bytes);
int matrix_parse_time(const char *text, uint64_t *ns); /* a number alone: seconds */

#endif
