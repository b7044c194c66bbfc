/* SPDX-License-Identifier: MIT */
/*
 * What is to be measured: where (setup), and a list of points, each one measurement.
 *
 * Made by options.c and profile.c, read by everyone, changed by nobody once made.
 * Offsets and lengths are bytes, times nanoseconds.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <stdbool.h>

#include "core/base.h"
#include "mpio/path.h"

#define BENCH_PORTALS_MAX 32
#define BENCH_LUNS_MAX 64
#define BENCH_SESSIONS_MAX 256
#define BENCH_THREADS_MAX 64
#define BENCH_STREAMS_MAX 8
#define BENCH_NAME_MAX 64

enum bench_pattern { PATTERN_RANDOM, PATTERN_SEQUENTIAL, PATTERN_ZIPF };

enum bench_data {
	DATA_RANDOM, /* incompressible, no two blocks alike */
	DATA_REPEAT, /* one random block over and over: compresses, deduplicates */
	DATA_ZERO,
};

/* A kind of load; those of one point run side by side. */
struct bench_stream {
	enum bench_pattern pattern;
	double zipf_theta; /* ZIPF: skew, 0 < theta < 1 */
	uint32_t block_bytes;
	uint64_t shift_bytes;  /* every offset is moved by so much (alignment) */
	unsigned read_percent; /* 100: reads only */
	unsigned workers;      /* 0: one for each of its sessions */
	unsigned depth;        /* outstanding commands of a worker */
	unsigned sessions;     /* of each portal that it uses, from the first; 0: all */
	uint64_t think_ns;     /* a worker's pause between an answer and the next command */
	double rate;           /* open loop: commands a second of all its workers; 0: closed loop */
};

/* One measurement. */
struct bench_point {
	char name[BENCH_NAME_MAX]; /* "4K random 70/30" */
	struct bench_stream streams[BENCH_STREAMS_MAX];
	unsigned stream_count;
	unsigned sessions; /* of each portal */
	enum bench_data data;
	uint64_t range_bytes; /* of each LUN, from its start; 0: all of it */
	uint64_t time_ns;
	uint64_t warmup_ns; /* before it, not counted */
	uint64_t ramp_ns;   /* at its start: workers begin one after the other over so long */
	uint64_t max_bytes; /* ends it too; 0: time alone */
	bool steady;        /* goes on until steady or ten times its time */
	uint64_t seed;
};

struct bench_chap {
	char user[256];
	char secret[256]; /* read from a file; never shown */
	char mutual_user[256];
	char mutual_secret[256];
};

struct bench_portal {
	char address[256]; /* "127.0.0.1:3260", "[::1]:3260" */
	char target[224];
};

/* A path that is closed and opened again on purpose. */
struct bench_failure {
	unsigned portal; /* index */
	uint64_t at_ns;  /* after the start of the measurement */
	uint64_t for_ns;
};

/* Where. The same for all points of a run. */
struct bench_setup {
	struct bench_portal portals[BENCH_PORTALS_MAX];
	unsigned portal_count;
	unsigned luns[BENCH_LUNS_MAX];
	unsigned lun_count;
	char initiator[224];
	struct bench_chap chap; /* user "": none */
	bool header_digest;
	enum path_policy policy;
	unsigned threads; /* at most: no more than there are sessions of a portal */
	uint64_t command_timeout_ns;
	struct bench_failure failures[8];
	unsigned failure_count;
	uint64_t cache_bytes; /* what the target may hold in memory; for the verdict */
	bool fill;            /* write the range before it is measured */
	bool destroy;         /* a LUN that carries something may be written */
};

struct bench_plan {
	char profile[BENCH_NAME_MAX]; /* "" without one */
	char tells[128];              /* what the profile tells, for the report */
	struct bench_setup setup;
	struct bench_point *points;
	unsigned point_count;
	unsigned repeat; /* of every point; results side by side show the noise */
};

/* The most commands that POINT can have outstanding over SETUP's portals. */
unsigned bench_point_depth(const struct bench_setup *setup, const struct bench_point *point);
/* Whether any stream writes. */
bool bench_point_writes(const struct bench_point *point);

const char *bench_pattern_name(enum bench_pattern pattern); /* "random" "sequential" "zipf" */
const char *bench_data_name(enum bench_data data);          /* "random" "repeat" "zero" */

#endif
