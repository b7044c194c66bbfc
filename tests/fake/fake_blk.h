/* SPDX-License-Identifier: MIT */
/*
 * For tests of the block layer: a device whose ios the test ends by hand, and
 * a way to run one io to its end on any device.
 */
#ifndef TESTS_FAKE_FAKE_BLK_H
#define TESTS_FAKE_FAKE_BLK_H

#include "backstore/blk.h"

struct fake_blk {
	struct blk blk;
	struct io_list held; /* submitted, not ended; in order */
	unsigned held_count;
	unsigned submits[IO_OP_COUNT];
	unsigned last_flags; /* of the newest submit, as the device saw it */
	bool *closed;        /* set at close, may be NULL */
};

/* Online; limits may be changed before the first io. Close frees it. */
struct fake_blk *fake_blk_new(struct env *env, uint64_t size_bytes, uint32_t block_size,
			      unsigned features);
/* End the oldest held io. */
void fake_blk_end(struct fake_blk *fake, int error);

/* Counts callbacks: fn for blk_submit() with a `struct fake_wait` as its arg. */
struct fake_wait {
	unsigned calls;
	int error;
};
void fake_wait_done(struct io *io, void *arg);

/* Submit IO with FLAGS and run ENV until idle; asserts one callback, not inline. Its error. */
int fake_blk_do(struct blk *blk, struct io *io, unsigned flags);

/* The same for LENGTH bytes at BUF, cut into PIECES iov elements as equal as blocks allow. */
int fake_blk_rw(struct blk *blk, enum io_op op, uint64_t offset, void *buf, uint64_t length,
		unsigned pieces, unsigned flags);

/* Bytes that follow from SEED; no block of them is like another. */
void fake_fill(void *buf, uint64_t length, uint64_t seed);

#endif
