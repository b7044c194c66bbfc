/* SPDX-License-Identifier: MIT */
/*
 * Payloads.
 *
 * Invariants:
 *  1. RANDOM: two buffers stamped with different (writer, sequence) differ in every DATA_PAGE
 *     of theirs, also from each other within one buffer.
 *  2. REPEAT: all DATA_PAGEs are the same, whatever the seed: all sessions write the same.
 *
 * Not here: blocks that say what they are (verify.c).
 */
#include "bench/data.h"

#include <string.h>

#include "bench/workload.h"

static void fill_random(uint64_t seed, uint8_t *buf, size_t length)
{
	struct chance chance;

	chance_seed(&chance, seed);
	for (size_t i = 0; i < length; i += sizeof(uint64_t)) {
		uint64_t value = chance_next(&chance);

		memcpy(buf + i, &value, min_u64(sizeof(value), length - i));
	}
}

void data_prepare(enum bench_data kind, uint64_t seed, void *buf, size_t length)
{
	uint8_t *bytes = buf;

	switch (kind) {
	case DATA_RANDOM:
		fill_random(seed, bytes, length);
		break;
	case DATA_REPEAT:
		for (size_t i = 0; i < length; i += DATA_PAGE)
			fill_random(1, bytes + i, min_u64(DATA_PAGE, length - i));
		break;
	case DATA_ZERO:
		memset(bytes, 0, length);
		break;
	}
}

/* A bijection: what differs stays different, and looks random. */
static uint64_t scrambled(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

void data_stamp(enum bench_data kind, uint64_t writer, uint64_t sequence, void *buf, size_t length)
{
	uint64_t stamp[2];
	uint8_t *bytes = buf;

	static_assert(sizeof(stamp) == DATA_STAMP, "the stamp");
	if (kind != DATA_RANDOM)
		return;
	for (size_t i = 0; i < length; i += DATA_PAGE) {
		stamp[1] = scrambled(writer << 32 | i / DATA_PAGE);
		stamp[0] = scrambled(sequence) ^ stamp[1];
		memcpy(bytes + i, stamp, min_u64(sizeof(stamp), length - i));
	}
}

bool data_is_zero(const void *buf, size_t length)
{
	const uint8_t *bytes = buf;

	return length == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}
