/* SPDX-License-Identifier: MIT */
/*
 * Whether what was read from registers can be explained: linearizability, as it happens.
 *
 * Every write of a register has a value of its own. The operations of one value, its write and
 * its reads, say two things: by when the value must have been there (the earliest end among
 * them) and since when it cannot have been gone (the latest begin). With unique values a history
 * is linearizable exactly if no read ended before its write began and no two values contradict
 * each other:
 *
 *	first_end(a) < last_begin(b)  and  first_end(b) < last_begin(a)
 *
 * Gibbons and Korach, "Testing shared memories", SIAM J. Comput. 26(4), 1997: these are their
 * overlapping forward zones and backward zones within a forward one. Operations that touch in
 * one instant are concurrent.
 *
 * A write whose end nobody knows ends never: it may happen at any later time. It happens at one
 * time though: once read, it is as any other and dies when it is overwritten.
 *
 * Memory: a value that no read can return any more is dropped. What stays of a register are the
 * values of the last writes that overlapped each other, and at most HISTORY_UNKNOWN_MAX writes
 * of unknown fate that nobody has read; of more than that the oldest are forgotten, and reads of
 * values that old are not judged.
 *
 * Times are any monotonic count greater than 0; calls come in the order of their times.
 */
#ifndef BENCH_HISTORY_H
#define BENCH_HISTORY_H

#include <stdbool.h>

#include "core/base.h"

#define HISTORY_UNKNOWN_MAX 16u

/* Values with this bit were not written here: what a register held before. */
#define HISTORY_PRIOR ((uint64_t)1 << 63)

#define HISTORY_NEVER UINT64_MAX /* as an end */

struct history;
/* An operation under way, or a write that has ended. */
struct history_op;

enum history_verdict {
	HISTORY_FINE,
	HISTORY_UNJUDGED, /* too old to be told from a write that was forgotten; no memory */
	HISTORY_STALE,    /* was overwritten before the read began */
	HISTORY_STRANGE,  /* no write's, and not what was there before */
};

struct history_span {
	uint64_t begin, end; /* end HISTORY_NEVER: not known, or under way */
	uint16_t who;
};

/* A value: its write, the first and the last of its reads. */
struct history_version {
	uint64_t value;
	struct history_span write; /* begin 0: it was there before */
	struct history_span first_read, last_read;
	uint32_t reads;
	bool under_way;
};

/* After STALE and STRANGE: what was read (if still remembered) and what contradicts it. */
struct history_conflict {
	bool read_known, other_known;
	struct history_version read, other;
};

/* At most VERSIONS_MAX operations are remembered at a time, of all registers. NULL: no memory. */
struct history *history_new(uint64_t registers, uint64_t versions_max);
void history_free(struct history *history);
/* The bytes history_new() would need at most. */
uint64_t history_bytes(uint64_t registers, uint64_t versions_max);

/*
 * Before any operation of REG: a value it may hold. KNOWN: its write was acknowledged; else it
 * may still happen. Other values are then HISTORY_STRANGE, unless OR_PRIOR, which says that what
 * was there before anything may be there still.
 */
void history_seed(struct history *history, uint64_t reg, uint64_t value, bool known, bool or_prior);
/* Values up to VALUE are not judged. */
void history_seed_forgotten(struct history *history, uint64_t reg, uint64_t value);

/* VALUE is greater than any before it in REG. NULL is a fine operation too: nothing is judged. */
struct history_op *history_begin_write(struct history *history, uint64_t reg, uint64_t value,
				       uint64_t now, uint16_t who);
struct history_op *history_begin_read(struct history *history, uint64_t reg, uint64_t now,
				      uint16_t who);

/* Who does it became known only now. OP may be NULL. */
void history_who(struct history_op *op, uint16_t who);

/* KNOWN: it happened. Else it may have, or will, or not. */
void history_end_write(struct history *history, struct history_op *op, bool known, uint64_t now);
enum history_verdict history_end_read(struct history *history, struct history_op *op,
				      uint64_t value, uint64_t now);
/* A read that returned nothing. */
void history_drop_read(struct history *history, struct history_op *op, uint64_t now);

/*
 * Whether it would be fine if READ, under way, returned VALUE now; HISTORY_PRIOR: whatever was
 * there before.
 */
bool history_possible(const struct history *history, const struct history_op *read, uint64_t value);

/* VALUE of REG, if there is or was not long ago such a version. */
bool history_find(const struct history *history, uint64_t reg, uint64_t value,
		  struct history_version *version);

/* Of the last verdict that was none of the first two. */
const struct history_conflict *history_conflict(const struct history *history);

struct history_value {
	uint64_t value; /* HISTORY_PRIOR alone: whatever was there before */
	bool known;
};
/* What a read of REG that begins later may return, at most MAX; the number there are. */
unsigned history_values(const struct history *history, uint64_t reg, struct history_value *values,
			unsigned max);
/* Values of REG up to this one are not judged; 0: all are. */
uint64_t history_forgotten(const struct history *history, uint64_t reg);

#endif
