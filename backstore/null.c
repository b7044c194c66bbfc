/* SPDX-License-Identifier: MIT */
/*
 * The null leaf: reads zeroes, swallows writes; for measuring everything else.
 *
 * Invariants:
 *  1. It keeps nothing: whatever was written, it reads as zeroes.
 *
 * Not here: a device that keeps what it is given (ram.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backing_int.h"

static void null_submit(struct blk *blk, struct io *io)
{
	(void)blk;
	if (io->op == IO_READ)
		io_zero(io);
	io->run = IO_RUN_ZEROES;
	io_done(io, 0);
}

static void null_close(struct blk *blk)
{
	free(blk);
}

static const struct blk_ops null_ops = {
	.driver = "null",
	.submit = null_submit,
	.close = null_close,
};

struct blk *null_new(struct env *env, const struct backing_spec *spec)
{
	struct blk *blk = calloc(1, sizeof(*blk));

	if (!blk)
		return NULL;
	blk->ops = &null_ops;
	blk->env = env;
	snprintf(blk->name, sizeof(blk->name), "%s", spec->name);
	blk->size_bytes = spec->size_bytes;
	blk->block_size = spec->block_size;
	blk->physical_block = spec->physical_block ? spec->physical_block : spec->block_size;
	blk->features = BLK_FUA | BLK_UNMAP | BLK_UNMAP_ZEROES | BLK_WRITE_ZEROES;
	if (spec->read_only)
		blk->features |= BLK_READ_ONLY;
	blk_init(blk);
	return blk;
}
