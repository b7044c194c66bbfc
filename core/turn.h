/* SPDX-License-Identifier: MIT */
/*
 * How long a loop's turns take, less what the kernel made them wait for a processor.
 *
 * Times are CLOCK_MONOTONIC nanoseconds; both calls return the system calls they made.
 */
#ifndef CORE_TURN_H
#define CORE_TURN_H

#include "core/base.h"

#define TURN_WARN_NS (10 * NS_PER_MS)

struct turn_clock {
	int fd; /* the thread's schedstat, or -1 */
	uint64_t start_ns;
	uint64_t baseline_ns; /* when wait_ns was read */
	uint64_t wait_ns;     /* run-queue wait of the thread since it began */
	uint64_t max_ns;
	uint64_t slow_ns;    /* length of the newest turn above TURN_WARN_NS; 0: none */
	uint64_t slow_at_ns; /* its end */
	uint64_t slow_turns; /* how many there were */
};

void turn_clock_init(struct turn_clock *turn);
/* On the loop's thread. */
void turn_clock_open(struct turn_clock *turn);
void turn_clock_close(struct turn_clock *turn);

unsigned turn_begins(struct turn_clock *turn, uint64_t now_ns);
unsigned turn_ends(struct turn_clock *turn, uint64_t now_ns);

#endif
