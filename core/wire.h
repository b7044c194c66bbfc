/* SPDX-License-Identifier: MIT */
/* Integers in wire and disk formats; the accessor spells width and endianness. */
#ifndef CORE_WIRE_H
#define CORE_WIRE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define WIRE_ACCESSORS(bits, order)                                                                \
	static inline uint##bits##_t get_##order##bits(const void *p)                              \
	{                                                                                          \
		uint##bits##_t v;                                                                  \
		memcpy(&v, p, sizeof(v));                                                          \
		return order##bits##toh(v);                                                        \
	}                                                                                          \
	static inline void put_##order##bits(void *p, uint##bits##_t v)                            \
	{                                                                                          \
		v = hto##order##bits(v);                                                           \
		memcpy(p, &v, sizeof(v));                                                          \
	}

WIRE_ACCESSORS(16, be)
WIRE_ACCESSORS(32, be)
WIRE_ACCESSORS(64, be)
WIRE_ACCESSORS(16, le)
WIRE_ACCESSORS(32, le)
WIRE_ACCESSORS(64, le)

static inline uint32_t get_be24(const void *p)
{
	const uint8_t *b = p;

	return (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
}

static inline void put_be24(void *p, uint32_t v)
{
	uint8_t *b = p;

	b[0] = (uint8_t)(v >> 16);
	b[1] = (uint8_t)(v >> 8);
	b[2] = (uint8_t)v;
}

/* Serial number arithmetic, RFC 1982: a before b. */
static inline int sna_lt(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline int sna_lte(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) <= 0;
}

#endif
