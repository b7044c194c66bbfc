/* SPDX-License-Identifier: MIT */
/*
 * The io_uring engine.
 *
 * Invariants:
 * 1. in_flight <= depth <= the completion queue's size: it cannot overflow.
 * 2. The eventfd is written only between ring_notify(true) and ring_notify(false), so that a
 *    turn in progress is never followed by an empty one.
 * 3. done() runs after its completion left the queue, and never from ring_submit().
 *
 * Not here: when to flush and sleep (core/loop.c); the rules for results (core/disk.c).
 * Spec: io_uring(7), io_uring_enter(2).
 */
#include "core/ring.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>

#include "core/log.h"
#include "core/loop_int.h"

#define TRANSFER_MAX ((uint64_t)1 << 30) /* of one SQE: its length has 32 bits */

struct ring {
	struct io_uring uring;
	struct disk_lanes lanes;
	unsigned depth;
	unsigned in_flight;
	unsigned barrier;
	bool disabled; /* not yet enabled by the thread that submits */
};

/*
 * From the best to what every kernel with io_uring takes. Disabled at first: with
 * SINGLE_ISSUER the thread that enables the ring is the one that may submit.
 */
static const unsigned setups[] = {
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL |
		IORING_SETUP_R_DISABLED,
	IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL,
	0,
};

static int setup(struct ring *ring)
{
	int err = -EINVAL;

	for (unsigned i = 0; err == -EINVAL && i < ARRAY_LEN(setups); i++) {
		ring->disabled = setups[i] & IORING_SETUP_R_DISABLED;
		err = io_uring_queue_init(ring->depth, &ring->uring, setups[i]);
	}
	return err;
}

struct ring *ring_new(unsigned depth, int wake_fd)
{
	struct ring *ring = calloc(1, sizeof(*ring));
	int err;

	if (!ring)
		return NULL;
	ring->depth = depth;
	disk_lanes_init(&ring->lanes);
	err = setup(ring);
	if (err < 0) {
		free(ring);
		errno = -err;
		return NULL;
	}
	err = io_uring_register_eventfd(&ring->uring, wake_fd);
	if (err < 0) {
		io_uring_queue_exit(&ring->uring);
		free(ring);
		errno = -err;
		return NULL;
	}
	ring_notify(ring, false);
	return ring;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	assert(ring->in_flight == 0 && disk_lanes_empty(&ring->lanes));
	io_uring_queue_exit(&ring->uring);
	free(ring);
}

void ring_submit(struct ring *ring, struct env_disk_op *op)
{
	disk_lanes_push(&ring->lanes, op);
}

static void prep_transfer(struct io_uring_sqe *sqe, const struct env_disk_op *op)
{
	uint64_t offset = op->offset + op->moved;
	unsigned len = op->iov_count ? (unsigned)min_u64(op->iov->iov_len, TRANSFER_MAX) : 0;
	const void *base = op->iov_count ? op->iov->iov_base : NULL;
	bool one = op->iov_count <= 1;

	if (op->kind == ENV_DISK_READ && one)
		io_uring_prep_read(sqe, op->fd, (void *)base, len, offset);
	else if (op->kind == ENV_DISK_READ)
		io_uring_prep_readv(sqe, op->fd, op->iov, disk_op_iovs(op), offset);
	else if (one)
		io_uring_prep_write(sqe, op->fd, base, len, offset);
	else
		io_uring_prep_writev(sqe, op->fd, op->iov, disk_op_iovs(op), offset);
	if (op->fua)
		sqe->rw_flags = RWF_DSYNC;
}

static void prep(struct io_uring_sqe *sqe, struct env_disk_op *op)
{
	switch (op->kind) {
	case ENV_DISK_READ:
	case ENV_DISK_WRITE:
		prep_transfer(sqe, op);
		break;
	case ENV_DISK_FLUSH:
		io_uring_prep_fsync(sqe, op->fd, IORING_FSYNC_DATASYNC);
		break;
	case ENV_DISK_PUNCH:
	case ENV_DISK_ZERO:
		io_uring_prep_fallocate(sqe, op->fd, disk_op_fallocate_mode(op), (off_t)op->offset,
					(off_t)op->length);
		break;
	}
	io_uring_sqe_set_data(sqe, op);
}

static void fill(struct ring *ring)
{
	struct io_uring_sqe *sqe;

	while (!disk_lanes_empty(&ring->lanes) && ring->in_flight < ring->depth) {
		sqe = io_uring_get_sqe(&ring->uring);
		if (!sqe)
			return;
		prep(sqe, disk_lanes_pop(&ring->lanes));
		ring->in_flight++;
	}
}

unsigned ring_flush(struct ring *ring)
{
	static struct log_limit limit;
	unsigned calls = 1;
	int err;

	fill(ring);
	if (io_uring_sq_ready(&ring->uring) == 0)
		return 0;
	if (ring->disabled) {
		/* liburing 2.3 declares io_uring_enable_rings() and does not export it. */
		err = io_uring_register((unsigned)ring->uring.ring_fd, IORING_REGISTER_ENABLE_RINGS,
					NULL, 0);
		assert(err == 0);
		ring->disabled = false;
		calls++;
	}
	err = io_uring_submit(&ring->uring);
	/* What the kernel did not take stays in the queue, and ring_ready() says so. */
	if (err < 0 && err != -EAGAIN && err != -EBUSY && err != -EINTR)
		log_limited(&limit, LOG_L_ERROR, "ring", "", "submit-failed", "err=%d", -err);
	return calls;
}

void ring_reap(struct ring *ring)
{
	struct disk_op_list done = STAILQ_HEAD_INITIALIZER(done);
	struct io_uring_cqe *cqe;
	struct env_disk_op *op;
	unsigned head, n = 0;

	io_uring_for_each_cqe(&ring->uring, head, cqe)
	{
		op = io_uring_cqe_get_data(cqe);
		if (disk_op_step(op, cqe->res))
			STAILQ_INSERT_TAIL(&done, op, link);
		else
			disk_lanes_again(&ring->lanes, op);
		n++;
	}
	if (n == 0)
		return;
	io_uring_cq_advance(&ring->uring, n);
	ring->in_flight -= n;
	while ((op = STAILQ_FIRST(&done))) {
		STAILQ_REMOVE_HEAD(&done, link);
		op->done(op);
	}
}

bool ring_completions(const struct ring *ring)
{
	return io_uring_cq_ready(&ring->uring) > 0;
}

bool ring_ready(const struct ring *ring)
{
	bool room = ring->in_flight < ring->depth;

	return ring_completions(ring) || io_uring_sq_ready(&ring->uring) > 0 ||
	       (room && !disk_lanes_empty(&ring->lanes));
}

void ring_notify(struct ring *ring, bool on)
{
	/* Fails only where the kernel has no such flag; then it always notifies. */
	io_uring_cq_eventfd_toggle(&ring->uring, on);
	/*
	 * The flag is seen before the completion queue is looked at for the last time. An
	 * exchange is a full barrier that the thread sanitizer knows, too.
	 */
	if (on)
		__atomic_exchange_n(&ring->barrier, 1, __ATOMIC_SEQ_CST);
}

bool ring_busy(const struct ring *ring)
{
	return ring->in_flight > 0 || !disk_lanes_empty(&ring->lanes);
}
