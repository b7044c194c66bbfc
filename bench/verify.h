/* SPDX-License-Identifier: MIT */
/*
 * --verify: every 4 KiB block written says what it is, every block read is judged.
 *
 * A block is a register: each write gives it a value nobody else ever wrote. Reads must see a
 * value that some order of the operations explains, an order that keeps what ended before another
 * began before it (linearizability). A write that failed, timed out or lost its path may have
 * happened, at any time from its start on, or not at all, for ever. What a block held before the
 * run is whatever the first read of it finds.
 *
 * SCSI promises that much for logical blocks only: where those are smaller than 4 KiB, a block
 * may be made of pieces of versions each of which it might hold now.
 *
 * Single-threaded: a run that verifies has one thread. Memory is a bounded number of bytes a
 * block of the range, and a bounded history of each.
 */
#ifndef BENCH_VERIFY_H
#define BENCH_VERIFY_H

#include "bench/engine.h"

#define VERIFY_BLOCK 4096u

struct verify;
/* An operation under way; its owner hands it back, whatever became of it. */
struct verify_op;

struct verify_conf {
	const struct bench_setup *setup; /* names of portals; NULL: numbers will do */
	const struct bench_lun *luns;    /* [lun_count] */
	unsigned lun_count;
	uint64_t range_bytes; /* of each; 0: all of it */
	const char *journal;  /* file; NULL: none */
	bool check_journal;   /* there must be one of an earlier run */
	uint64_t memory_max;  /* bytes; 0: a quarter of this machine's */
};

/* Whether POINT can be verified: whole 4 KiB blocks only. 0 or -EINVAL. */
int verify_fits(const struct bench_point *point, struct bench_fault *fault);

int verify_new(const struct verify_conf *conf, struct verify **verify, struct bench_fault *fault);
void verify_free(struct verify *verify);

/*
 * A command begins at NOW_NS. WRITE: BUF (whole blocks) is stamped, and the journal, if
 * there is one, has it before this returns (in the page cache: it outlives this process, not
 * this machine).
 */
struct verify_op *verify_begin(struct verify *verify, unsigned lun_index, bool write,
			       uint64_t offset, void *buf, uint32_t length, uint64_t now_ns);

/*
 * It went out on session INDEX of PORTAL (indices); for people who read histories. A command
 * that was not carried out may be sent again. A write whose first fate is not known is another
 * operation when sent again: end it, begin anew.
 */
void verify_sent(struct verify_op *op, unsigned portal, unsigned index);

enum verify_outcome {
	VERIFY_GOOD,    /* answered so; a read's BUF is judged */
	VERIFY_UNKNOWN, /* failed, timed out, path lost: it may have happened */
};

/* Ends it. False: a violation was found, see verify_violation(). */
bool verify_end(struct verify *verify, struct verify_op *op, enum verify_outcome outcome,
		uint64_t now_ns);

/* What was seen otherwise (an answer to nothing): a violation as well. */
void verify_report(struct verify *verify, const char *text);

/* The first violation, with both histories, for people; NULL: none. */
const char *verify_violation(const struct verify *verify);

struct verify_counts {
	uint64_t blocks_written, blocks_read; /* judged */
	uint64_t unknown;                     /* blocks written whose fate nobody knows */
	uint64_t torn;     /* blocks read in pieces, each of which might have been there */
	uint64_t unjudged; /* blocks read that may be of a write that was forgotten */
	uint64_t promised; /* blocks the journal of earlier runs knows */
};
void verify_counts(const struct verify *verify, struct verify_counts *counts);

/* As engine_read(). */
typedef int verify_read_fn(void *arg, unsigned lun_index, uint64_t offset, void *buf, size_t length,
			   struct bench_fault *fault);

/*
 * Reads every block that the journal's earlier runs were promised. 0, also if there is no
 * journal or it is new; -EILSEQ: a violation was found; else READ's error.
 */
int verify_check(struct verify *verify, verify_read_fn *read, void *arg, struct bench_fault *fault);

#endif
