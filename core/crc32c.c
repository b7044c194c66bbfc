/* SPDX-License-Identifier: MIT */
/*
 * CRC32C over ISA-L, which picks the fastest code for this processor.
 *
 * Invariants:
 * 1. Pieces give what the whole gives, however it is cut.
 *
 * Not here: where digests lie in a PDU or a label; their units know.
 * Spec: RFC 7143 section 13.1, RFC 3720 appendix B.4 for test vectors.
 */
#include "core/crc32c.h"

#include <isa-l/crc.h>

/* crc32_iscsi() takes an int for the length and a pointer that is not const. */
#define PIECE_MAX ((size_t)1 << 30)

uint32_t crc32c_add(uint32_t state, const void *data, size_t len_bytes)
{
	uint8_t *p = (uint8_t *)data;

	while (len_bytes > 0) {
		size_t n = min_u64(len_bytes, PIECE_MAX);

		state = crc32_iscsi(p, (int)n, state);
		p += n;
		len_bytes -= n;
	}
	return state;
}

uint32_t crc32c_add_iov(uint32_t state, const struct iovec *iov, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		state = crc32c_add(state, iov[i].iov_base, iov[i].iov_len);
	return state;
}

uint32_t crc32c(const void *data, size_t len_bytes)
{
	return crc32c_end(crc32c_add(CRC32C_START, data, len_bytes));
}

uint32_t crc32c_around(const void *data, size_t len_bytes, size_t hole)
{
	static const uint8_t none[4];
	const uint8_t *bytes = data;
	uint32_t state;

	assert(hole + sizeof(none) <= len_bytes);
	state = crc32c_add(CRC32C_START, bytes, hole);
	state = crc32c_add(state, none, sizeof(none));
	hole += sizeof(none);
	return crc32c_end(crc32c_add(state, bytes + hole, len_bytes - hole));
}
