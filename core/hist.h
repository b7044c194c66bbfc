/* SPDX-License-Identifier: MIT */
/*
 * A log-linear histogram of any 64-bit values: fixed memory (30 KiB), every value known to
 * better than 1 %, below 128 exactly.
 *
 * Zeroed is empty. Embedded or allocated by its owner; single-threaded.
 */
#ifndef CORE_HIST_H
#define CORE_HIST_H

#include "core/base.h"

#define HIST_SUB_BITS 6 /* 64 buckets for each doubling */
#define HIST_SUB (1u << HIST_SUB_BITS)
#define HIST_BUCKETS ((64 - HIST_SUB_BITS + 1) * HIST_SUB)

struct hist {
	uint64_t count;
	uint64_t min; /* valid if count > 0 */
	uint64_t max;
	unsigned __int128 sum;
	uint64_t buckets[HIST_BUCKETS];
};

void hist_reset(struct hist *hist);
void hist_add(struct hist *hist, uint64_t value);
void hist_add_many(struct hist *hist, uint64_t value, uint64_t times);
void hist_merge(struct hist *into, const struct hist *from);

/* 0 if empty. */
double hist_mean(const struct hist *hist);
/* Of the buckets' middles; 0 if empty. */
double hist_stddev(const struct hist *hist);
/* The least value that PERCENT (0 to 100) of all values do not exceed; 0 if empty. */
uint64_t hist_percentile(const struct hist *hist, double percent);

/* For reports: bucket I holds values from hist_bucket_low(I) up to hist_bucket_low(I + 1) - 1. */
uint64_t hist_bucket_low(unsigned bucket);
uint64_t hist_bucket_middle(unsigned bucket); /* at most 1/128 away from any value in it */
unsigned hist_bucket(uint64_t value);

#endif
