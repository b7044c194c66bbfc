/* SPDX-License-Identifier: MIT */
/* What verify.c and verify_text.c share. */
#ifndef BENCH_VERIFY_INT_H
#define BENCH_VERIFY_INT_H

#include "bench/history.h"
#include "bench/journal.h"
#include "bench/stamp.h"
#include "bench/verify.h"

#define VERIFY_ZERO (HISTORY_PRIOR | 1) /* value of a block of zeroes */

struct verify_lun {
	uint16_t lun;
	bool tears;     /* a block is several of the LUN's: see verify.h about pieces */
	uint64_t first; /* register of its block 0 */
	uint64_t blocks;
};

struct verify {
	const struct bench_setup *setup;
	struct verify_lun luns[BENCH_LUNS_MAX];
	unsigned lun_count;
	uint64_t blocks; /* of all LUNs: registers */
	struct history *history;
	struct journal *journal;
	uint64_t run, sequence;
	uint32_t writer;
	uint64_t now, started;
	uint64_t in_flight;
	struct verify_counts counts;
	char violation[4096];
};

struct verify_op {
	const struct verify_lun *lun;
	bool write;
	uint16_t who;
	unsigned count;
	uint64_t first, begin, sequence;
	uint8_t *buf;
	struct history_op *blocks[]; /* [count] */
};

/* A live version and one that is being replaced, of every block; what else is under way. */
static inline uint64_t verify_versions_max(uint64_t blocks)
{
	return 2 * blocks + 256 * KIB;
}

/* Sessions as the history knows them; 0: never sent. */
static inline uint16_t verify_who(unsigned portal, unsigned index)
{
	return (uint16_t)(1 + portal * 1024 + index % 1023);
}

/* The first violation becomes text; later ones are ignored. */
void verify_say_damage(struct verify *verify, const struct verify_op *op, uint64_t block,
		       const struct stamp_found *found);
void verify_say_order(struct verify *verify, const struct verify_op *op, uint64_t block,
		      const struct stamp_found *found, enum history_verdict verdict);

#endif
