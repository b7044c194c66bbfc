/* SPDX-License-Identifier: MIT */
/*
 * The histogram: linear below HIST_SUB, then HIST_SUB buckets for each power of two.
 *
 *   value   0 .. 63 | 64 .. 127 | 128 .. 255 | 256 .. 511 | ...
 *   width      1    |     1     |      2     |      4     | ...
 *
 * Invariants:
 * 1. A bucket's width is at most 1/HIST_SUB of its lowest value, so its middle is at most
 *    1/128 away from any value in it.
 * 2. count is the sum of all buckets; merging loses nothing.
 *
 * Not here: what is measured, and when it began (bench, backstore).
 */
#include "core/hist.h"

#include <math.h>
#include <string.h>

void hist_reset(struct hist *hist)
{
	memset(hist, 0, sizeof(*hist));
}

unsigned hist_bucket(uint64_t value)
{
	unsigned top, shift;

	if (value < HIST_SUB)
		return (unsigned)value;
	top = 63 - (unsigned)__builtin_clzll(value);
	shift = top - HIST_SUB_BITS;
	return shift * HIST_SUB + (unsigned)(value >> shift);
}

uint64_t hist_bucket_low(unsigned bucket)
{
	unsigned shift;

	if (bucket < 2 * HIST_SUB)
		return bucket;
	if (bucket >= HIST_BUCKETS)
		return UINT64_MAX;
	shift = bucket / HIST_SUB - 1;
	return (uint64_t)(bucket % HIST_SUB + HIST_SUB) << shift;
}

uint64_t hist_bucket_middle(unsigned bucket)
{
	uint64_t low = hist_bucket_low(bucket);

	return low + (hist_bucket_low(bucket + 1) - low - 1) / 2;
}

void hist_add_many(struct hist *hist, uint64_t value, uint64_t times)
{
	if (times == 0)
		return;
	hist->min = hist->count ? min_u64(hist->min, value) : value;
	hist->max = max_u64(hist->max, value);
	hist->count += times;
	hist->sum += (unsigned __int128)value * times;
	hist->buckets[hist_bucket(value)] += times;
}

void hist_add(struct hist *hist, uint64_t value)
{
	hist_add_many(hist, value, 1);
}

void hist_merge(struct hist *into, const struct hist *from)
{
	if (from->count == 0)
		return;
	into->min = into->count ? min_u64(into->min, from->min) : from->min;
	into->max = max_u64(into->max, from->max);
	into->count += from->count;
	into->sum += from->sum;
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

double hist_mean(const struct hist *hist)
{
	return hist->count ? (double)hist->sum / (double)hist->count : 0;
}

double hist_stddev(const struct hist *hist)
{
	double mean = hist_mean(hist), sum = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		double off = hist->buckets[i] ? (double)hist_bucket_middle(i) - mean : 0;

		sum += off * off * (double)hist->buckets[i];
	}
	return hist->count ? sqrt(sum / (double)hist->count) : 0;
}

uint64_t hist_percentile(const struct hist *hist, double percent)
{
	/* 99.9 has no exact double: what is a hair above a whole number is that number. */
	double wanted = ceil(percent * (double)hist->count / 100 - 1e-6);
	uint64_t rank = wanted < 1 ? 1 : (uint64_t)wanted;
	uint64_t seen = 0;
	unsigned i;

	if (hist->count == 0)
		return 0;
	if (rank >= hist->count)
		return hist->max;
	for (i = 0; i < HIST_BUCKETS - 1; i++) {
		seen += hist->buckets[i];
		if (seen >= rank)
			break;
	}
	/* The middle, but nothing that was not there. */
	return max_u64(hist->min, min_u64(hist->max, hist_bucket_middle(i)));
}
