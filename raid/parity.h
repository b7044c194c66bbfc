/* SPDX-License-Identifier: MIT */
/*
 * XOR over scattered memory, by ISA-L. Bases are aligned to PARITY_ALIGN, lengths multiples of it.
 */
#ifndef RAID_PARITY_H
#define RAID_PARITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/base.h"

#define PARITY_ALIGN 64u
#define PARITY_SOURCES_MAX 33u /* old and new of every data column, and parity */

/* A place in scattered memory; the calls below move it on by the length they took. */
struct parity_at {
	const struct iovec *iov;
	size_t skip; /* within *iov */
};

void parity_move(struct parity_at *at, uint64_t length);

/*
 * DST becomes the XOR of COUNT sources, 2 to PARITY_SOURCES_MAX; DST may be one of them. *XORED
 * grows by COUNT * LENGTH.
 */
void parity_xor(struct parity_at *dst, struct parity_at *sources, unsigned count, uint64_t length,
		uint64_t *xored);

bool parity_equal(struct parity_at *a, struct parity_at *b, uint64_t length);
void parity_copy(struct parity_at *dst, struct parity_at *src, uint64_t length);

#endif
