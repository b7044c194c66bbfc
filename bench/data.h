/* SPDX-License-Identifier: MIT */
/*
 * What is written.
 *
 * DATA_RANDOM: pages of random bytes made once, and a stamp in each that no other write has, so
 * that nothing compresses, nothing deduplicates, and a write costs a few stores a page.
 */
#ifndef BENCH_DATA_H
#define BENCH_DATA_H

#include "bench/plan.h"

#define DATA_PAGE 4096u /* what deduplicates does so in this size or larger */
#define DATA_STAMP 16u  /* bytes at the start of each page of a buffer */

/* Fills BUF with what KIND wants to begin with. */
void data_prepare(enum bench_data kind, uint64_t seed, void *buf, size_t length);
/* Before each write of BUF: RANDOM gets stamps. WRITER and SEQUENCE: never twice. */
void data_stamp(enum bench_data kind, uint64_t writer, uint64_t sequence, void *buf, size_t length);
/* Whether all bytes are zero. */
bool data_is_zero(const void *buf, size_t length);

#endif
