/* SPDX-License-Identifier: MIT */
/*
 * The generator of commands.
 *
 * Invariants:
 *  1. Of any 100 commands in a row of a worker exactly read_percent are reads.
 *  2. An offset is a multiple of the block size plus the shift, and its block lies in the range.
 *  3. SEQUENTIAL: the slices of the workers of a stream meet without gap or overlap, so that
 *     together they visit every block once a round. With fewer blocks than workers some share.
 *
 * Not here: when a command is due (worker.c), what is written (data.c).
 *
 * Spec: zipf as in J. Gray et al., "Quickly Generating Billion-Record Synthetic Databases",
 * SIGMOD 1994, section 6.
 */
#include "bench/workload.h"

#include <math.h>

#define ZETA_EXACT 100000 /* terms that are summed; the rest is an integral */

/* splitmix64: neighbouring seeds give unlike states. */
static uint64_t mixed(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

void chance_seed(struct chance *chance, uint64_t seed)
{
	chance->state = mixed(seed);
	if (chance->state == 0)
		chance->state = 1;
}

/* The sum of i^-theta for i from 1 to N. */
static double zeta(uint64_t n, double theta)
{
	uint64_t exact = min_u64(n, ZETA_EXACT);
	double sum = 0;

	for (uint64_t i = 1; i <= exact; i++)
		sum += pow((double)i, -theta);
	if (n > exact)
		sum += (pow((double)n + 0.5, 1 - theta) - pow((double)exact + 0.5, 1 - theta)) /
		       (1 - theta);
	return sum;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

void zipf_init(struct zipf *zipf, uint64_t count, double theta)
{
	*zipf = (struct zipf){ .count = count, .theta = theta };
	zipf->alpha = 1 / (1 - theta);
	zipf->zeta = zeta(count, theta);
	zipf->half = 1 + pow(0.5, theta);
	zipf->eta = (1 - pow(2.0 / (double)count, 1 - theta)) /
		    (1 - (count > 1 ? zipf->half : 1) / zipf->zeta);
	/* The golden section of the range scatters best. */
	zipf->stride = (uint64_t)((double)count * 0.6180339887);
	while (zipf->stride < 1 || common_divisor(count, zipf->stride) != 1)
		zipf->stride++;
}

uint64_t zipf_block(const struct zipf *zipf, struct chance *chance)
{
	double u = (double)(chance_next(chance) >> 11) * 0x1p-53;
	double uz = u * zipf->zeta;
	uint64_t rank;

	if (uz < 1)
		rank = 0;
	else if (uz < zipf->half)
		rank = 1;
	else
		rank = (uint64_t)((double)zipf->count *
				  pow(zipf->eta * u - zipf->eta + 1, zipf->alpha));
	rank = min_u64(rank, zipf->count - 1);
	return (uint64_t)((unsigned __int128)rank * zipf->stride % zipf->count);
}

bool workload_range_init(struct workload_range *range, const struct bench_stream *stream,
			 const uint64_t *range_bytes, unsigned lun_count)
{
	range->lun_count = lun_count;
	for (unsigned i = 0; i < lun_count; i++) {
		if (range_bytes[i] < stream->shift_bytes + stream->block_bytes)
			return false;
		range->blocks[i] = (range_bytes[i] - stream->shift_bytes) / stream->block_bytes;
		if (stream->pattern == PATTERN_ZIPF)
			zipf_init(&range->zipf[i], range->blocks[i], stream->zipf_theta);
	}
	return true;
}

void workload_init(struct workload *workload, const struct bench_stream *stream,
		   const struct workload_range *range, unsigned worker, unsigned workers,
		   uint64_t seed)
{
	*workload = (struct workload){
		.stream = stream, .range = range, .worker = worker, .workers = workers
	};
	chance_seed(&workload->chance, seed * 1000003 + worker);
	/* Workers are at different places of the mix, and of the LUNs. */
	workload->mix = (unsigned)chance_below(&workload->chance, 100);
	workload->lun = worker % range->lun_count;
}

static bool next_is_write(struct workload *workload)
{
	workload->mix += workload->stream->read_percent;
	if (workload->mix < 100)
		return true;
	workload->mix -= 100;
	return false;
}

/* The worker's slice of BLOCKS, round after round. */
static uint64_t sequential(const struct workload *workload, uint64_t blocks)
{
	unsigned __int128 all = blocks;
	uint64_t from = (uint64_t)(all * workload->worker / workload->workers);
	uint64_t to = (uint64_t)(all * (workload->worker + 1) / workload->workers);

	if (from == to)
		return from % blocks;
	return from + workload->turn % (to - from);
}

void workload_next(struct workload *workload, struct workload_op *op)
{
	const struct bench_stream *stream = workload->stream;
	uint64_t blocks = workload->range->blocks[workload->lun];
	uint64_t block = 0;

	op->lun = workload->lun;
	op->write = next_is_write(workload);
	switch (stream->pattern) {
	case PATTERN_RANDOM:
		block = chance_below(&workload->chance, blocks);
		break;
	case PATTERN_SEQUENTIAL:
		block = sequential(workload, blocks);
		break;
	case PATTERN_ZIPF:
		block = zipf_block(&workload->range->zipf[workload->lun], &workload->chance);
		break;
	}
	op->offset = block * stream->block_bytes + stream->shift_bytes;
	if (++workload->lun == workload->range->lun_count)
		workload->lun = 0;
	if (++workload->step % workload->range->lun_count == 0)
		workload->turn++;
}

uint32_t workload_piece(uint32_t most, uint32_t limit, uint32_t block_bytes)
{
	uint32_t length = limit < most ? limit : most;

	return length < block_bytes ? block_bytes : length - length % block_bytes;
}

bool workload_fill(struct workload *workload, const uint64_t *range_bytes, struct workload_op *op,
		   uint32_t *length)
{
	uint32_t block = workload->stream->block_bytes;

	/* `step` is the LUN, `turn` the place in the slice. */
	for (; workload->step < workload->range->lun_count; workload->step++, workload->turn = 0) {
		uint64_t bytes = range_bytes[workload->step];
		unsigned __int128 all = (bytes + block - 1) / block;
		uint64_t from = (uint64_t)(all * workload->worker / workload->workers);
		uint64_t to = (uint64_t)(all * (workload->worker + 1) / workload->workers);

		if (workload->turn >= to - from)
			continue;
		op->lun = (unsigned)workload->step;
		op->write = true;
		op->offset = (from + workload->turn++) * block;
		*length = (uint32_t)min_u64(block, bytes - op->offset);
		return true;
	}
	return false;
}
