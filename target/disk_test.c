/* SPDX-License-Identifier: MIT */
/*
 * How fast a disk reads: alone, one small read after the other at random places, then large ones
 * in sequence. One slow disk makes its whole array slow; here it shows.
 *
 * Invariants:
 *  1. Nothing is written.
 *  2. One read at a time, for two times PART_NS.
 *
 * Not here: comparing disks (ctl/).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "target/daemon.h"

#define SMALL (4 * KIB)
#define LARGE (256 * KIB)
#define PART_NS (500 * NS_PER_MS) /* of each of the two */
#define READS_MAX 20000

struct test {
	struct env *env;
	struct blk *blk;
	struct io io;
	struct iovec iov;
	void *memory;
	struct hist latency;
	uint64_t begun_ns, read_ns, at, bytes;
	unsigned reads;
	uint64_t turn_ns; /* the turn it is in, and the reads of it */
	unsigned turn_reads;
	struct env_timer pause;
	bool large;
	disk_test_fn *done;
	void *arg;
};

#define TURN_READS 16 /* memory answers within the turn, which would not end */

static void next(struct test *test);

static void end(struct test *test, int error)
{
	uint64_t ns = env_now_ns(test->env) - test->begun_ns;
	const struct disk_result result = {
		.p50_ns = hist_percentile(&test->latency, 50),
		.p99_ns = hist_percentile(&test->latency, 99),
		.reads = test->latency.count,
		.bytes_per_s = ns ? (uint64_t)((double)test->bytes * NS_PER_S / (double)ns) : 0,
	};

	test->done(test->arg, error, &result);
	blk_unref(test->blk);
	free(test->memory);
	free(test);
}

/* Many reads would be served in one turn, of which the clock does not tell. */
static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void pause_over(struct env_timer *timer)
{
	next(container_of(timer, struct test, pause));
}

static void go_on(struct test *test)
{
	if (test->turn_ns != env_now_ns(test->env))
		test->turn_reads = 0;
	test->turn_ns = env_now_ns(test->env);
	if (++test->turn_reads < TURN_READS)
		next(test);
	else
		env_timer_set(test->env, &test->pause, 0);
}

static void done(struct io *io, void *arg)
{
	struct test *test = arg;

	if (io->error) {
		end(test, io->error);
		return;
	}
	test->reads++;
	if (test->large)
		test->bytes += io->length;
	else
		hist_add(&test->latency, clock_ns() - test->read_ns);
	if (env_now_ns(test->env) - test->begun_ns < PART_NS && test->reads < READS_MAX) {
		go_on(test);
	} else if (!test->large) {
		test->large = true;
		test->begun_ns = env_now_ns(test->env);
		test->reads = 0;
		go_on(test);
	} else {
		end(test, 0);
	}
}

static void next(struct test *test)
{
	uint64_t length =
		min_u64(test->large ? LARGE : SMALL, align_down(test->blk->size_bytes, SMALL));
	uint64_t places = test->blk->size_bytes / length, place;

	if (test->large) {
		place = test->at++ % places;
	} else {
		env_random(test->env, &place, sizeof(place));
		place %= places;
	}
	test->iov = (struct iovec){ test->memory, length };
	io_init(&test->io, IO_READ, place * length, length, &test->iov, 1);
	test->read_ns = clock_ns();
	blk_submit(test->blk, &test->io, done, test);
}

void disk_test(struct env *env, struct blk *blk, disk_test_fn *done_fn, void *arg)
{
	struct test *test = calloc(1, sizeof(*test));
	const struct disk_result none = { 0 };

	if (test)
		test->memory = aligned_alloc(4096, LARGE);
	if (!test || !test->memory || blk->size_bytes < SMALL) {
		if (test)
			free(test->memory);
		free(test);
		done_fn(arg, blk->size_bytes < SMALL ? -EINVAL : -ENOMEM, &none);
		return;
	}
	test->pause.fn = pause_over;
	test->env = env;
	test->blk = blk_ref(blk);
	hist_reset(&test->latency);
	test->begun_ns = env_now_ns(env);
	test->done = done_fn;
	test->arg = arg;
	next(test);
}
