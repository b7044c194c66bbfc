/* SPDX-License-Identifier: MIT */
/*
 * XOR over scattered memory.
 *
 * Invariants:
 *  1. A piece is what is contiguous in everything that takes part, so each byte is read once.
 *
 * Not here: which bytes (round.c, survey.c).
 * Spec: ISA-L raid.h: xor_gen() wants 32-byte aligned bases, sources first, the result last.
 */
#include "raid/parity.h"

#include <isa-l/raid.h>
#include <string.h>

static uint64_t contiguous(struct parity_at *at)
{
	while (at->skip == at->iov->iov_len) {
		at->iov++;
		at->skip = 0;
	}
	return at->iov->iov_len - at->skip;
}

static char *base(const struct parity_at *at)
{
	return (char *)at->iov->iov_base + at->skip;
}

void parity_move(struct parity_at *at, uint64_t length)
{
	while (length > 0) {
		uint64_t piece = min_u64(length, contiguous(at));

		at->skip += piece;
		length -= piece;
	}
}

void parity_xor(struct parity_at *dst, struct parity_at *sources, unsigned count, uint64_t length,
		uint64_t *xored)
{
	void *vectors[PARITY_SOURCES_MAX + 1];

	assert(count >= 2 && count <= PARITY_SOURCES_MAX);
	*xored += length * count;
	while (length > 0) {
		uint64_t piece = min_u64(length, contiguous(dst));

		for (unsigned i = 0; i < count; i++)
			piece = min_u64(piece, contiguous(&sources[i]));
		for (unsigned i = 0; i < count; i++) {
			vectors[i] = base(&sources[i]);
			sources[i].skip += piece;
		}
		vectors[count] = base(dst);
		dst->skip += piece;
		if (xor_gen((int)count + 1, (int)piece, vectors) != 0)
			assert(false);
		length -= piece;
	}
}

bool parity_equal(struct parity_at *a, struct parity_at *b, uint64_t length)
{
	while (length > 0) {
		uint64_t piece = min_u64(length, min_u64(contiguous(a), contiguous(b)));

		if (memcmp(base(a), base(b), piece) != 0)
			return false;
		a->skip += piece;
		b->skip += piece;
		length -= piece;
	}
	return true;
}

void parity_copy(struct parity_at *dst, struct parity_at *src, uint64_t length)
{
	while (length > 0) {
		uint64_t piece = min_u64(length, min_u64(contiguous(dst), contiguous(src)));

		memcpy(base(dst), base(src), piece);
		dst->skip += piece;
		src->skip += piece;
		length -= piece;
	}
}
