/* SPDX-License-Identifier: MIT */
/*
 * Where a file has its holes.
 *
 * Invariants:
 *  1. Only whole blocks in a hole are said to be zeroes; a block that data touch is data.
 *
 * Not here: block devices, which tell of none (file.c).
 *
 * Spec: lseek(2), SEEK_DATA and SEEK_HOLE.
 */
#include <errno.h>
#include <unistd.h>

#include "backstore/backing_int.h"

static void data_until(struct io *io, uint64_t end, uint64_t block)
{
	io->run = IO_RUN_DATA;
	io->run_bytes = min_u64(align_up(end, block) - io->offset, io->length);
}

/* The position that lseek() moves means nothing: every transfer names its own. */
int file_run(const struct file_medium *medium, struct io *io)
{
	uint64_t block = medium->block_size;
	off_t data = lseek(medium->fd, (off_t)io->offset, SEEK_DATA), hole;
	uint64_t zeroes;

	if (data < 0 && errno != ENXIO)
		/* This file system does not tell: unknown, as io is before anybody answers. */
		return errno == EINVAL || errno == EOPNOTSUPP ? 0 : -errno;
	zeroes = data < 0 ? io->length : align_down((uint64_t)data - io->offset, block);
	if (zeroes > 0) {
		io->run = IO_RUN_ZEROES;
		io->run_bytes = min_u64(zeroes, io->length);
		return 0;
	}
	hole = lseek(medium->fd, data, SEEK_HOLE);
	/* Somebody cut the file short meanwhile: nothing is known of the rest. */
	data_until(io, hole > data ? (uint64_t)hole : (uint64_t)data + 1, block);
	return 0;
}
