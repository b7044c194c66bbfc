/* SPDX-License-Identifier: MIT */
/*
 * What is due when: a heap of times, embedded in what waits for them.
 *
 * Pure; fixed memory. Times are nanoseconds.
 */
#ifndef BENCH_DUE_H
#define BENCH_DUE_H

#include "core/base.h"

struct due {
	uint64_t at_ns;
	unsigned place; /* in the heap, from 1; 0: waits for nothing */
	void (*run)(struct due *due, uint64_t now_ns);
};

struct due_heap {
	struct due **slots; /* [room + 1], from 1 */
	unsigned count, room;
};

/* A heap of zeroes is empty and without room. Room for ROOM in all: 0 or -ENOMEM. */
int due_heap_grow(struct due_heap *heap, unsigned room);
void due_heap_fini(struct due_heap *heap);

/* DUE runs once at AT_NS; again before that: only the new time counts. */
void due_set(struct due_heap *heap, struct due *due, uint64_t at_ns);
void due_clear(struct due_heap *heap, struct due *due);
/*
 * Runs what is due at NOW_NS, earliest first, no more than there was when it began. All get this
 * NOW_NS: what one of them did may bear a later time when the next looks at it.
 */
void due_run(struct due_heap *heap, uint64_t now_ns);
/* UINT64_MAX: nothing. */
uint64_t due_next(const struct due_heap *heap);
/*
 * How late DUE runs at NOW_NS because its loop was at work, the last time until BUSY_UNTIL_NS. A
 * loop that slept is late as well, by what a timer takes to wake it: no answer waits for that.
 */
uint64_t due_lag(const struct due *due, uint64_t busy_until_ns, uint64_t now_ns);

#endif
