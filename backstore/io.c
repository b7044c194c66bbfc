/* SPDX-License-Identifier: MIT */
/*
 * The io itself: made fresh, named, and moved to and from plain memory.
 *
 * Invariants:
 *  1. The error vocabulary is the table below; nothing else leaves a device.
 *  2. Copies move exactly io->length bytes (blk.c has checked the iov's sum).
 *
 * Not here: the way of an io through the layers (blk.c).
 */
#include <errno.h>
#include <string.h>

#include "backstore/io.h"

#ifdef __SSE2__
#include <emmintrin.h>
#define STORE_MIN (4 * KIB)
#endif

#define ANY_OP ((1u << IO_OP_COUNT) - 1)
#define MODIFYING (1u << IO_WRITE | 1u << IO_UNMAP | 1u << IO_WRITE_ZEROES)

static const struct {
	int error;
	unsigned ops;
} allowed[] = {
	{ -EIO, ANY_OP },    { -ENOSPC, MODIFYING }, { -EROFS, MODIFYING }, { -ENXIO, ANY_OP },
	{ -EAGAIN, ANY_OP }, { -ECANCELED, ANY_OP }, { -EINVAL, ANY_OP },   { -EOPNOTSUPP, ANY_OP },
};

static const char *const op_names[IO_OP_COUNT] = {
	[IO_READ] = "read",
	[IO_WRITE] = "write",
	[IO_FLUSH] = "flush",
	[IO_UNMAP] = "unmap",
	[IO_WRITE_ZEROES] = "write-zeroes",
	[IO_STATUS] = "status",
};

static const char *const purpose_names[IO_PURPOSE_COUNT] = {
	[IO_HOST] = "host", [IO_PARITY] = "parity", [IO_LOG] = "log",       [IO_LABEL] = "label",
	[IO_MAP] = "map",   [IO_RESYNC] = "resync", [IO_MIRROR] = "mirror",
};

const char *io_op_name(enum io_op op)
{
	return (unsigned)op < IO_OP_COUNT ? op_names[op] : "unknown";
}

const char *io_purpose_name(enum io_purpose purpose)
{
	return (unsigned)purpose < IO_PURPOSE_COUNT ? purpose_names[purpose] : "unknown";
}

bool io_error_allowed(enum io_op op, int error)
{
	if (error == 0)
		return true;
	for (unsigned i = 0; i < ARRAY_LEN(allowed); i++)
		if (allowed[i].error == error)
			/* An op out of range is refused as such, with any error. */
			return (unsigned)op >= IO_OP_COUNT || (allowed[i].ops & 1u << op);
	return false;
}

/* Field by field: the frames and the scratch are most of it and need no zeroes. */
void io_init(struct io *io, enum io_op op, uint64_t offset, uint64_t length, struct iovec *iov,
	     unsigned iov_count)
{
	io->op = op;
	io->flags = 0;
	io->purpose = IO_HOST;
	io->error = 0;
	io->offset = offset;
	io->length = length;
	io->iov = iov;
	io->iov_count = iov_count;
	io->depth = 0;
	io->defer.queued = false;
}

void io_copy_out(const struct io *io, const void *src)
{
	const uint8_t *from = src;

	for (unsigned i = 0; i < io->iov_count; i++) {
		memcpy(io->iov[i].iov_base, from, io->iov[i].iov_len);
		from += io->iov[i].iov_len;
	}
}

/*
 * What a device keeps is read again long after it has left the cache. Stores past that need not
 * fetch what they overwrite: half the time of a memcpy() for what is longer than a few lines.
 */
static void store(uint8_t *to, const uint8_t *from, uint64_t length)
{
#ifdef __SSE2__
	if (length >= STORE_MIN) {
		for (uint64_t at = 0; at < length; at += sizeof(__m128i))
			_mm_stream_si128((__m128i *)(to + at),
					 _mm_loadu_si128((const __m128i *)(from + at)));
		_mm_sfence();
		return;
	}
#endif
	memcpy(to, from, length);
}

void io_copy_in(const struct io *io, void *dst)
{
	uint8_t *to = dst;

	for (unsigned i = 0; i < io->iov_count; i++) {
		store(to, io->iov[i].iov_base, io->iov[i].iov_len);
		to += io->iov[i].iov_len;
	}
}

void io_zero(const struct io *io)
{
	for (unsigned i = 0; i < io->iov_count; i++)
		memset(io->iov[i].iov_base, 0, io->iov[i].iov_len);
}
