/* SPDX-License-Identifier: MIT */
/*
 * What a host may read: for each 512-byte sector, the values that some order of events explains.
 *
 * Every write gives each of its sectors a value of its own. A write that failed or was cut may
 * have happened to each of them or not. What was there before the first write may be anything,
 * until it was read: then it is that. Overlapping operations are never in flight together: the
 * top of every LUN sees to that, and so does the simulated host.
 */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include <stdbool.h>

#include "core/base.h"

struct oracle;

/* What lies there is not known. */
struct oracle *oracle_new(uint64_t size_bytes);
void oracle_free(struct oracle *oracle);

/* Stamp BUF for a write of LENGTH at OFFSET with fresh values. ZERO: the write is of zeroes. */
void oracle_write(struct oracle *oracle, uint64_t offset, uint64_t length, void *buf, bool zero);

enum oracle_end {
	ORACLE_DURABLE,  /* GOOD, and what was written has to outlive power cuts */
	ORACLE_VOLATILE, /* GOOD, in a write cache */
	ORACLE_FAILED,   /* the host knows: what it reads of it may yet be lost, but for a FLUSH */
	ORACLE_UNKNOWN,  /* power was cut */
};
/* The write of that range that was stamped last has ended. */
void oracle_ended(struct oracle *oracle, uint64_t offset, uint64_t length, enum oracle_end end);

/* A FLUSH begins; it has succeeded: writes that had ended before it are durable. */
uint64_t oracle_flush_begins(struct oracle *oracle);
void oracle_flushed(struct oracle *oracle, uint64_t mark);

/* Power is cut: what is in a cache may be lost. Writes in flight have been ended as UNKNOWN. */
void oracle_power_cut(struct oracle *oracle);

/*
 * A read failed. NULL: it may, since a write of it failed or was cut, and what of it is torn may
 * be lost; else a text. For arrays that say so: full_stripe_log=intent.
 */
const char *oracle_read_failed(struct oracle *oracle, uint64_t offset, uint64_t length);

/* What was read. NULL: it may be so; else a text of what is wrong, valid until the next call. */
const char *oracle_read(struct oracle *oracle, uint64_t offset, uint64_t length, const void *buf);

#endif
