/* SPDX-License-Identifier: MIT */
/*
 * What a worker does next: read or write, which LUN, which offset.
 *
 * Pure: the same seed gives the same sequence. A worker's commands go to the LUNs in turn.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "bench/plan.h"

/* A source of numbers; xorshift64*. Never 0. */
struct chance {
	uint64_t state;
};

void chance_seed(struct chance *chance, uint64_t seed);

static inline uint64_t chance_next(struct chance *chance)
{
	uint64_t x = chance->state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	chance->state = x;
	return x * UINT64_C(2685821657736338717);
}

/* 0 to N - 1. */
static inline uint64_t chance_below(struct chance *chance, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)chance_next(chance) * n) >> 64);
}

/* How often the blocks of a LUN are used: the first most. Shared by the workers of a stream. */
struct zipf {
	uint64_t count;
	double theta, alpha, eta, zeta, half;
	uint64_t stride; /* coprime to count: ranks lie scattered */
};

void zipf_init(struct zipf *zipf, uint64_t count, double theta);
/* A block, 0 to count - 1. */
uint64_t zipf_block(const struct zipf *zipf, struct chance *chance);

/* A stream's view of the LUNs: how many of its blocks fit into each. */
struct workload_range {
	unsigned lun_count;
	uint64_t blocks[BENCH_LUNS_MAX];
	struct zipf zipf[BENCH_LUNS_MAX]; /* ZIPF only */
};

/*
 * RANGE_BYTES[lun] of each LUN are used, moved by the stream's shift. False: a LUN has no room
 * for one block.
 */
bool workload_range_init(struct workload_range *range, const struct bench_stream *stream,
			 const uint64_t *range_bytes, unsigned lun_count);

struct workload {
	const struct bench_stream *stream;
	const struct workload_range *range;
	struct chance chance;
	unsigned worker, workers;
	unsigned mix;  /* accumulated read_percent */
	uint64_t step; /* commands so far */
	uint64_t turn; /* of the LUNs */
	unsigned lun;  /* the next one */
};

struct workload_op {
	unsigned lun; /* index */
	bool write;
	uint64_t offset;
};

/* WORKER of WORKERS of the stream. */
void workload_init(struct workload *workload, const struct bench_stream *stream,
		   const struct workload_range *range, unsigned worker, unsigned workers,
		   uint64_t seed);
void workload_next(struct workload *workload, struct workload_op *op);
/* As many whole blocks, at least one, as MOST and the target's LIMIT of a command take; bytes. */
uint32_t workload_piece(uint32_t most, uint32_t limit, uint32_t block_bytes);
/*
 * Filling: the workers write every byte of RANGE_BYTES[lun] of each LUN once, LENGTH at a time.
 * False: this worker has done its part.
 */
bool workload_fill(struct workload *workload, const uint64_t *range_bytes, struct workload_op *op,
		   uint32_t *length);

#endif
