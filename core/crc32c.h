/* SPDX-License-Identifier: MIT */
/*
 * CRC32C (Castagnoli) as iSCSI digests and on-disk formats use it: seed ~0,
 * reflected, final complement. crc32c("123456789") is 0xE3069283.
 */
#ifndef CORE_CRC32C_H
#define CORE_CRC32C_H

#include <sys/uio.h>

#include "core/base.h"

uint32_t crc32c(const void *data, size_t len_bytes);
/* As if the 4 bytes at HOLE, where the checksum itself lies, were zeroes. */
uint32_t crc32c_around(const void *data, size_t len_bytes, size_t hole);

/* In pieces: state = CRC32C_START; state = crc32c_add(state, ...); crc = crc32c_end(state). */
#define CRC32C_START UINT32_MAX
uint32_t crc32c_add(uint32_t state, const void *data, size_t len_bytes);
uint32_t crc32c_add_iov(uint32_t state, const struct iovec *iov, unsigned count);
static inline uint32_t crc32c_end(uint32_t state)
{
	return ~state;
}

#endif
