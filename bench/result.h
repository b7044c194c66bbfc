/* SPDX-License-Identifier: MIT */
/*
 * What a measurement gave. Filled by engine.c, judged by verdict.c, shown by table.c, json.c,
 * csv.c; nobody else computes a figure of it.
 *
 * Invariants:
 *  1. Histograms are merged, percentiles never averaged.
 *  2. `latency` counts from the intended start: a closed loop's is the moment its predecessor
 *     was answered (plus think time), an open loop's the plan's. `service` from the sending.
 *  3. Only commands whose intended start lies in the measured time count, and all of those.
 *
 * Times are nanoseconds, `*_s` seconds from the start of the measured time.
 */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include "bench/plan.h"
#include "core/hist.h"

enum bench_side { BENCH_READ, BENCH_WRITE, BENCH_TOTAL, BENCH_SIDES };

struct bench_counts {
	uint64_t ops;   /* answered GOOD */
	uint64_t bytes; /* of those */
	struct hist latency;
	struct hist service;
};

/* An interval of the series, about a second. */
struct bench_interval {
	double from_s, to_s;
	uint64_t ops[BENCH_SIDES];
	uint64_t bytes[BENCH_SIDES];
	double mean_ns;                                     /* latency, both sides */
	uint64_t p50_ns, p99_ns, p999_ns, p9999_ns, max_ns; /* latency, both sides */
	double in_flight;                                   /* mean */
	double cpu;                                         /* this process, 1.0 = one processor */
	uint64_t *portal_ops;                               /* [portal_count] */
};

struct bench_session {
	unsigned portal;
	unsigned thread;
	char isid[16]; /* "00023d000001" */
	uint64_t ops, bytes;
	uint64_t errors;   /* answers other than GOOD that were not tried again */
	uint64_t retries;  /* commands sent again after BUSY, TASK SET FULL, a lost path */
	uint64_t backoffs; /* BUSY and TASK SET FULL */
	uint64_t stalls;   /* commands that waited for room in the command window */
	uint64_t reconnects;
	struct hist latency;
};

/* A portal's share; sums of its sessions. */
struct bench_path {
	uint64_t ops, bytes, errors, retries, reconnects;
	struct hist latency;
};

struct bench_thread {
	double cpu;      /* 1.0 = all of a processor */
	double wait;     /* share of the time that it waited for one; -1: not known */
	struct hist lag; /* how late its loop ran what was due while it was at work */
};

struct bench_lun {
	unsigned lun;
	uint64_t size_bytes;
	uint32_t block_bytes;
	bool write_cache;
	double mapped;         /* share of the range allocated at the start; -1: not known */
	uint64_t samples;      /* reads looked at */
	uint64_t zero_samples; /* of those, all zeroes */
};

/* First error of each kind, for people. */
struct bench_error {
	char text[160];
	uint64_t count;
};
#define BENCH_ERRORS_MAX 8

/* Who counted how much in the measured time (plus its edges): --cross-check. */
struct bench_cross_check {
	bool done;
	uint64_t initiator, sessions, luns, disks; /* operations */
	uint64_t initiator_read_bytes, disk_read_bytes;
	bool disks_known; /* a ram or null backing has none */
	double deviation; /* largest, relative to the initiator's */
	char text[160];   /* why not, or who disagrees */
};

struct bench_result {
	const struct bench_setup *setup;
	const struct bench_point *point;
	int64_t started_wall_ms; /* CLOCK_REALTIME */
	double measured_s;
	struct bench_counts sides[BENCH_SIDES]; /* TOTAL: the others merged */
	struct bench_interval *series;
	unsigned series_count;
	struct bench_session *sessions;
	unsigned session_count;
	struct bench_path paths[BENCH_PORTALS_MAX]; /* [setup->portal_count] */
	struct bench_thread *threads;
	unsigned thread_count;
	struct bench_lun luns[BENCH_LUNS_MAX]; /* [setup->lun_count] */
	struct bench_error errors[BENCH_ERRORS_MAX];
	unsigned error_count;
	unsigned depth_asked;
	double in_flight; /* mean */
	double cpu_user_s, cpu_system_s;
	double cpus;           /* this process may use */
	uint64_t planned;      /* open loop: commands that were due */
	uint64_t link_bytes_s; /* fastest the links allow; 0: not known (loopback) */
	bool local;            /* the target is on this machine */
	bool interrupted;      /* by the user: what was measured until then */
	struct bench_cross_check cross_check;
};

/* Frees what it holds; NULL-safe. */
void bench_result_free(struct bench_result *result);

/* Commands a second, bytes a second. */
double bench_iops(const struct bench_result *result, enum bench_side side);
double bench_bytes_s(const struct bench_result *result, enum bench_side side);

#endif
