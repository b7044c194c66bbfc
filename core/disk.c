/* SPDX-License-Identifier: MIT */
/*
 * What both disk engines share: lanes, the rules for short and failed transfers; and the
 * engine that uses threads.
 *
 * Invariants:
 * 1. An operation is over with 0 only when every byte was moved.
 * 2. Every retry moves bytes or uses up a try, so none goes on for ever.
 * 3. At most `depth` operations are with the threads; an urgent one waits behind none of the rest.
 *
 * Not here: io_uring (core/ring.c), threads themselves (core/work.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/loop_int.h"

#define TRIES_MAX 1000 /* of EINTR and EAGAIN in one operation */
#define DISK_THREADS 8
#define SECTOR 512

void disk_lanes_init(struct disk_lanes *lanes)
{
	STAILQ_INIT(&lanes->urgent);
	STAILQ_INIT(&lanes->normal);
}

static struct disk_op_list *lane_of(struct disk_lanes *lanes, const struct env_disk_op *op)
{
	return op->nowait_lane ? &lanes->urgent : &lanes->normal;
}

void disk_lanes_push(struct disk_lanes *lanes, struct env_disk_op *op)
{
	op->moved = 0;
	op->tries = 0;
	op->cut = false;
	STAILQ_INSERT_TAIL(lane_of(lanes, op), op, link);
}

void disk_lanes_again(struct disk_lanes *lanes, struct env_disk_op *op)
{
	STAILQ_INSERT_HEAD(lane_of(lanes, op), op, link);
}

struct env_disk_op *disk_lanes_pop(struct disk_lanes *lanes)
{
	struct disk_op_list *lane = STAILQ_EMPTY(&lanes->urgent) ? &lanes->normal : &lanes->urgent;
	struct env_disk_op *op = STAILQ_FIRST(lane);

	if (op)
		STAILQ_REMOVE_HEAD(lane, link);
	return op;
}

bool disk_lanes_empty(const struct disk_lanes *lanes)
{
	return STAILQ_EMPTY(&lanes->urgent) && STAILQ_EMPTY(&lanes->normal);
}

static bool is_transfer(const struct env_disk_op *op)
{
	return op->kind == ENV_DISK_READ || op->kind == ENV_DISK_WRITE;
}

/* Whoever owns the elements finds them as they were. */
static void uncut(struct env_disk_op *op)
{
	if (op->cut)
		*op->iov = op->whole;
	op->cut = false;
}

static bool over(struct env_disk_op *op, int result)
{
	uncut(op);
	op->result = result;
	return true;
}

static bool step_error(struct env_disk_op *op, int err)
{
	if (err == -EINTR || err == -EAGAIN)
		return ++op->tries < TRIES_MAX ? false : over(op, -EIO);
	/*
	 * A direct read that ends at the end of a file of an odd size is short; its
	 * rest is not aligned, and the kernel says that instead of end of file.
	 */
	if (err == -EINVAL && op->kind == ENV_DISK_READ && op->moved > 0 &&
	    (op->offset + op->moved) % SECTOR != 0)
		return over(op, -ENODATA);
	/* What kind of file it is decides which of them it says. */
	if (!is_transfer(op) && op->kind != ENV_DISK_FLUSH && (err == -ENODEV || err == -ENOSYS))
		return over(op, -EOPNOTSUPP);
	return over(op, err);
}

/* Drop the first BYTES of the elements. */
static void advance(struct env_disk_op *op, uint64_t bytes)
{
	op->moved += bytes;
	while (bytes > 0) {
		uint64_t part = min_u64(bytes, op->iov->iov_len);

		bytes -= part;
		if (part == op->iov->iov_len) {
			uncut(op);
			op->iov++;
			op->iov_count--;
			continue;
		}
		if (!op->cut)
			op->whole = *op->iov;
		op->cut = true;
		op->iov->iov_base = (uint8_t *)op->iov->iov_base + part;
		op->iov->iov_len -= part;
	}
}

bool disk_op_step(struct env_disk_op *op, int64_t res)
{
	if (res < 0)
		return step_error(op, (int)res);
	if (!is_transfer(op))
		return over(op, 0);
	assert((uint64_t)res <= op->length - op->moved);
	if (op->moved + (uint64_t)res == op->length) {
		op->moved = op->length;
		return over(op, 0);
	}
	if (res == 0)
		return over(op, op->kind == ENV_DISK_READ ? -ENODATA : -EIO);
	advance(op, (uint64_t)res);
	return false;
}

unsigned disk_op_iovs(const struct env_disk_op *op)
{
	return op->iov_count < IOV_MAX ? op->iov_count : IOV_MAX;
}

int disk_op_fallocate_mode(const struct env_disk_op *op)
{
	int how = op->kind == ENV_DISK_PUNCH ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE;

	return how | FALLOC_FL_KEEP_SIZE;
}

static int64_t call(const struct env_disk_op *op)
{
	off_t offset = (off_t)(op->offset + op->moved);
	int iovs = (int)disk_op_iovs(op);

	switch (op->kind) {
	case ENV_DISK_READ:
		return preadv2(op->fd, op->iov, iovs, offset, 0);
	case ENV_DISK_WRITE:
		return pwritev2(op->fd, op->iov, iovs, offset, op->fua ? RWF_DSYNC : 0);
	case ENV_DISK_FLUSH:
		return fdatasync(op->fd);
	case ENV_DISK_PUNCH:
	case ENV_DISK_ZERO:
		return fallocate(op->fd, disk_op_fallocate_mode(op), offset, (off_t)op->length);
	}
	assert(!"unknown kind");
	return -1;
}

void disk_op_run(struct env_disk_op *op)
{
	int64_t res;

	do {
		res = call(op);
		if (res < 0)
			res = -errno;
	} while (!disk_op_step(op, res));
}

struct disk_job {
	struct env_work work;
	SLIST_ENTRY(disk_job) link;
	struct disk_threads *threads;
	struct env_disk_op *op;
};

struct disk_threads {
	struct workers *workers;
	struct disk_lanes lanes;
	SLIST_HEAD(, disk_job) idle;
	unsigned depth;
	struct disk_job *jobs;
};

static void start_jobs(struct disk_threads *threads)
{
	struct disk_job *job;

	while (!disk_lanes_empty(&threads->lanes) && (job = SLIST_FIRST(&threads->idle))) {
		SLIST_REMOVE_HEAD(&threads->idle, link);
		job->op = disk_lanes_pop(&threads->lanes);
		workers_submit(threads->workers, &job->work);
	}
}

static void job_run(struct env_work *work)
{
	disk_op_run(container_of(work, struct disk_job, work)->op);
}

static void job_done(struct env_work *work)
{
	struct disk_job *job = container_of(work, struct disk_job, work);
	struct disk_threads *threads = job->threads;
	struct env_disk_op *op = job->op;

	job->op = NULL;
	SLIST_INSERT_HEAD(&threads->idle, job, link);
	start_jobs(threads);
	op->done(op);
}

struct disk_threads *disk_threads_new(struct loop *loop, unsigned depth)
{
	struct disk_threads *threads = calloc(1, sizeof(*threads));

	if (!threads)
		return NULL;
	threads->depth = depth;
	threads->jobs = calloc(depth, sizeof(*threads->jobs));
	threads->workers = workers_new(loop, DISK_THREADS);
	if (!threads->jobs || !threads->workers) {
		workers_free(threads->workers);
		free(threads->jobs);
		free(threads);
		return NULL;
	}
	disk_lanes_init(&threads->lanes);
	SLIST_INIT(&threads->idle);
	for (unsigned i = 0; i < depth; i++) {
		struct disk_job *job = &threads->jobs[i];

		job->work.run = job_run;
		job->work.done = job_done;
		job->threads = threads;
		SLIST_INSERT_HEAD(&threads->idle, job, link);
	}
	return threads;
}

void disk_threads_free(struct disk_threads *threads)
{
	if (!threads)
		return;
	assert(disk_lanes_empty(&threads->lanes));
	workers_free(threads->workers);
	free(threads->jobs);
	free(threads);
}

void disk_threads_submit(struct disk_threads *threads, struct env_disk_op *op)
{
	disk_lanes_push(&threads->lanes, op);
	start_jobs(threads);
}

bool disk_threads_busy(const struct disk_threads *threads)
{
	return workers_outstanding(threads->workers) > 0 || !disk_lanes_empty(&threads->lanes);
}
