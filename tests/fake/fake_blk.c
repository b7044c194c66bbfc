/* SPDX-License-Identifier: MIT */
/*
 * A block device driven by hand.
 *
 * Invariants:
 * 1. An io submitted stays in `held` until fake_blk_end().
 *
 * Not here: a device with contents (backstore/ram.c on the fake env is one).
 */
#include "tests/fake/fake_blk.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fake/fake_env.h"

static void fake_submit(struct blk *blk, struct io *io)
{
	struct fake_blk *fake = container_of(blk, struct fake_blk, blk);

	fake->submits[io->op]++;
	fake->last_flags = io->flags;
	fake->held_count++;
	STAILQ_INSERT_TAIL(&fake->held, io, link);
}

static void fake_close(struct blk *blk)
{
	struct fake_blk *fake = container_of(blk, struct fake_blk, blk);

	if (fake->closed)
		*fake->closed = true;
	free(fake);
}

static const struct blk_ops fake_ops = {
	.driver = "fake",
	.submit = fake_submit,
	.close = fake_close,
};

struct fake_blk *fake_blk_new(struct env *env, uint64_t size_bytes, uint32_t block_size,
			      unsigned features)
{
	struct fake_blk *fake = calloc(1, sizeof(*fake));

	assert(fake);
	STAILQ_INIT(&fake->held);
	fake->blk.ops = &fake_ops;
	fake->blk.env = env;
	strcpy(fake->blk.name, "fake");
	fake->blk.size_bytes = size_bytes;
	fake->blk.block_size = block_size;
	fake->blk.physical_block = block_size;
	fake->blk.features = features;
	blk_init(&fake->blk);
	return fake;
}

void fake_blk_end(struct fake_blk *fake, int error)
{
	struct io *io = STAILQ_FIRST(&fake->held);

	assert(io);
	STAILQ_REMOVE_HEAD(&fake->held, link);
	fake->held_count--;
	io_done(io, error);
}

void fake_wait_done(struct io *io, void *arg)
{
	struct fake_wait *wait = arg;

	wait->calls++;
	wait->error = io->error;
}

int fake_blk_do(struct blk *blk, struct io *io, unsigned flags)
{
	struct fake_wait wait = { 0 };

	io->flags = flags;
	blk_submit(blk, io, fake_wait_done, &wait);
	assert(wait.calls == 0);
	fake_env_run(blk->env);
	assert(wait.calls == 1);
	return wait.error;
}

int fake_blk_rw(struct blk *blk, enum io_op op, uint64_t offset, void *buf, uint64_t length,
		unsigned pieces, unsigned flags)
{
	struct iovec iov[64];
	uint64_t each = align_down(length / pieces, blk->block_size);
	uint64_t at = 0;
	struct io io;

	assert(pieces > 0 && pieces <= ARRAY_LEN(iov) && each > 0);
	for (unsigned i = 0; i < pieces; i++, at += each) {
		iov[i].iov_base = (uint8_t *)buf + at;
		iov[i].iov_len = i + 1 < pieces ? each : length - at;
	}
	io_init(&io, op, offset, length, iov, pieces);
	return fake_blk_do(blk, &io, flags);
}

void fake_fill(void *buf, uint64_t length, uint64_t seed)
{
	uint8_t *out = buf;
	uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;

	for (uint64_t i = 0; i < length; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		out[i] = (uint8_t)(state >> 56);
	}
}
