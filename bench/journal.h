/* SPDX-License-Identifier: MIT */
/*
 * --journal: what every block may hold, in a file that outlives this process.
 *
 * A mapped file: what was stored is there after kill -9 of this process and of the target, but
 * not after a power cut of this machine. Its size is fixed: 64 bytes a block of 4 KiB (1.6 % of
 * the range), taken from the disk at the start.
 *
 *   offset  bytes
 *        0      8  "YkbJrnl1"
 *        8      4  CRC32C of the first 2048 bytes, this field being zero
 *       12      4  number of LUNs
 *       16      8  id: the `run` of all stamps of this journal's runs
 *       24      8  zero
 *       32  16*n   of each LUN: number (4), zero (4), blocks (8)
 *     2048      8  entry LIMIT: sequences of later runs begin here
 *     4096   64*m  records: of each block in turn, LUN after LUN
 *
 *   record: eight entries in any order; all zero: never written by a run of this journal
 *   entry:  0, or  63..61 kind  60..16 number  15..0 check   (all integers little-endian)
 *             KNOWN      version NUMBER may be there: its write was acknowledged
 *             UNKNOWN    version NUMBER may be there, or come to be: nobody knows
 *             PRIOR_ANY  what was there before the first run may be there
 *             PRIOR      contents of this hash, from before the first run, may be there
 *             FORGOTTEN  versions up to NUMBER are not judged: they were too many
 *   check:  of kind, number, block and id
 *
 * Invariants:
 *  1. Every entry is stored by one 64-bit store, additions before removals: whenever the process
 *     dies, the entries of a block are all it may hold, and at most a little more.
 *  2. A version is an entry before its write is sent.
 */
#ifndef BENCH_JOURNAL_H
#define BENCH_JOURNAL_H

#include <stdbool.h>

#include "bench/engine.h"

#define JOURNAL_ENTRIES 8u
#define JOURNAL_NUMBER_BITS 45
#define JOURNAL_NUMBER_MAX (((uint64_t)1 << JOURNAL_NUMBER_BITS) - 1)

enum journal_kind {
	JOURNAL_NONE,
	JOURNAL_KNOWN,
	JOURNAL_UNKNOWN,
	JOURNAL_PRIOR_ANY,
	JOURNAL_PRIOR,
	JOURNAL_FORGOTTEN,
	JOURNAL_LIMIT, /* of the header only */
};

struct journal_entry {
	enum journal_kind kind;
	uint64_t number;
};

struct journal_lun {
	uint32_t lun;
	uint64_t blocks;
};

struct journal;

/*
 * Opens FILE, or makes it if there is none (unless MUST_EXIST). Refuses, saying why and what to
 * do, what is no journal, is cut off or damaged, is for other LUNs, or is in use.
 */
int journal_open(const char *file, const struct journal_lun *luns, unsigned lun_count,
		 bool must_exist, struct journal **journal, struct bench_fault *fault);
void journal_close(struct journal *journal);

/* Whether an earlier run wrote it. */
bool journal_existed(const struct journal *journal);
uint64_t journal_id(const struct journal *journal);
/* A number that no run of this journal used; each call gives a greater one. */
uint64_t journal_sequence(struct journal *journal);

/* The entries of BLOCK (counted over all LUNs); the number there are. */
unsigned journal_get(const struct journal *journal, uint64_t block,
		     struct journal_entry entries[JOURNAL_ENTRIES]);
/* Makes the COUNT ENTRIES those of BLOCK; 0 < COUNT <= JOURNAL_ENTRIES. */
void journal_set(struct journal *journal, uint64_t block, const struct journal_entry *entries,
		 unsigned count);

#endif
