/* SPDX-License-Identifier: MIT */
/*
 * Turn lengths, cleared of the time in which the thread was runnable but not running.
 *
 * Invariants:
 * 1. The baseline is at most BASELINE_NS older than the turn that it is used for, and never younger.
 * 2. Reading costs a system call at most each BASELINE_NS, and one for each turn above LONG_NS.
 * 3. The wait between baseline and turn is taken for the turn's: the length reported can be too
 *    short by that much, and is never too long.
 *
 * Not here: what to do in a turn (core/loop.c).
 * Spec: Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat: the second number.
 */
#include "core/turn.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "core/log.h"

#define BASELINE_NS (20 * NS_PER_MS)
#define LONG_NS (2 * NS_PER_MS)

void turn_clock_init(struct turn_clock *turn)
{
	*turn = (struct turn_clock){ .fd = -1 };
}

void turn_clock_open(struct turn_clock *turn)
{
	/* Not there (no CONFIG_SCHED_INFO, no /proc): turns are reported with their waits. */
	turn->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	turn->baseline_ns = 0;
}

void turn_clock_close(struct turn_clock *turn)
{
	if (turn->fd >= 0)
		close(turn->fd);
	turn->fd = -1;
}

/* The thread's wait so far; the last known one if it cannot be read. */
static uint64_t read_wait(const struct turn_clock *turn)
{
	unsigned long long ran, waited;
	char text[96];
	ssize_t n = pread(turn->fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return turn->wait_ns;
	text[n] = '\0';
	if (sscanf(text, "%llu %llu", &ran, &waited) != 2)
		return turn->wait_ns;
	return waited;
}

unsigned turn_begins(struct turn_clock *turn, uint64_t now_ns)
{
	turn->start_ns = now_ns;
	if (turn->fd < 0 || (turn->baseline_ns != 0 && now_ns - turn->baseline_ns < BASELINE_NS))
		return 0;
	turn->wait_ns = read_wait(turn);
	turn->baseline_ns = now_ns;
	return 1;
}

unsigned turn_ends(struct turn_clock *turn, uint64_t now_ns)
{
	static struct log_limit limit;
	uint64_t took_ns = now_ns - turn->start_ns;
	unsigned calls = 0;

	if (took_ns > LONG_NS && turn->fd >= 0) {
		took_ns -= min_u64(took_ns, read_wait(turn) - turn->wait_ns);
		calls = 1;
	}
	if (took_ns > TURN_WARN_NS) {
		turn->slow_ns = took_ns;
		turn->slow_at_ns = now_ns;
		turn->slow_turns++;
		log_limited(&limit, LOG_L_WARN, "loop", "", "slow-turn", "ms=%.1f",
			    (double)took_ns / (double)NS_PER_MS);
	}
	turn->max_ns = max_u64(turn->max_ns, took_ns);
	return calls;
}
