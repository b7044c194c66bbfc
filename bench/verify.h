/* SPDX-License-Identifier: MIT */
/*
 * --verify: every 4 KiB block written says what it is, every block read is judged.
 *
 * A block is a register: each write gives it a value nobody else ever wrote (writer, sequence).
 * Reads must see a value that some order of the operations explains, an order that keeps what
 * ended before another began before it (linearizability). A write that failed, timed out or
 * lost its path may have happened, at any time from its start on, or not at all, for ever.
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
	const struct bench_lun *luns; /* [lun_count] */
	unsigned lun_count;
	uint64_t range_bytes; /* of each */
	const char *journal;  /* file; NULL: none */
	bool check_journal;   /* verify what an earlier run left before anything is written */
	uint64_t seed;
};

int verify_new(const struct verify_conf *conf, struct verify **verify, struct bench_fault *fault);
void verify_free(struct verify *verify);

/*
 * A command begins at NOW_NS. WRITE: BUF (whole blocks) is stamped, and the journal, if
 * there is one, has it before this returns (in the page cache: it outlives this process, not
 * this machine).
 */
struct verify_op *verify_begin(struct verify *verify, unsigned lun_index, bool write,
			       uint64_t offset, void *buf, uint32_t length, uint64_t now_ns);

enum verify_outcome {
	VERIFY_GOOD,    /* answered so; a read's BUF is judged */
	VERIFY_UNKNOWN, /* failed, timed out, path lost: it may have happened */
};

/* Ends it. False: a violation was found, see verify_violation(). */
bool verify_end(struct verify *verify, struct verify_op *op, enum verify_outcome outcome,
		uint64_t now_ns);

/* The first violation, with both histories, for people; NULL: none. */
const char *verify_violation(const struct verify *verify);

struct verify_counts {
	uint64_t blocks_written, blocks_read; /* judged */
	uint64_t unknown;                     /* writes whose fate nobody knows */
};
void verify_counts(const struct verify *verify, struct verify_counts *counts);

#endif
