/* SPDX-License-Identifier: MIT */
/*
 * A page of dirty regions as bytes.
 *
 * Invariants:
 *  1. A page that was torn, is another owner's or lies at another page's place, is none. If the
 *     newest one has a sequence that nobody got to by counting, both are none: the next one would
 *     seem older.
 *
 * Spec: yoke-disk(5).
 *
 *   0 magic "YOKEMAP1"   8 crc32c (of the page with this as 0)   12 page number
 *  16 sequence          24 tag                                   32 bits, lowest first
 */
#include <string.h>

#include "backstore/regions_int.h"
#include "core/crc32c.h"
#include "core/wire.h"

#define SEQUENCE_MAX (UINT64_MAX / 2)

enum { OFF_CRC = 8, OFF_NUMBER = 12, OFF_SEQUENCE = 16, OFF_TAG = 24 };
static_assert(REGIONS_PAGE_HEAD + REGIONS_PAGE_BITS / 8 == REGIONS_PAGE, "yoke-disk(5)");

static const char magic[8] = "YOKEMAP1";

void regions_page_seal(void *bytes, uint64_t tag, unsigned number, uint64_t sequence)
{
	uint8_t *out = bytes;

	memcpy(out, magic, sizeof(magic));
	put_le32(out + OFF_NUMBER, number);
	put_le64(out + OFF_SEQUENCE, sequence);
	put_le64(out + OFF_TAG, tag);
	put_le32(out + OFF_CRC, crc32c_around(out, REGIONS_PAGE, OFF_CRC));
}

void regions_page_empty(uint64_t tag, unsigned page, void *bytes)
{
	memset(bytes, 0, REGIONS_PAGE);
	regions_page_seal(bytes, tag, page, 0);
}

static bool page_sound(uint64_t tag, unsigned number, const uint8_t *bytes)
{
	return bytes && memcmp(bytes, magic, sizeof(magic)) == 0 &&
	       get_le32(bytes + OFF_CRC) == crc32c_around(bytes, REGIONS_PAGE, OFF_CRC) &&
	       get_le32(bytes + OFF_NUMBER) == number && get_le64(bytes + OFF_TAG) == tag;
}

const void *regions_page_newest(uint64_t tag, unsigned number, const void *one, const void *two,
				uint64_t *sequence)
{
	const uint8_t *newest = page_sound(tag, number, one) ? one : NULL;
	const uint8_t *other = page_sound(tag, number, two) ? two : NULL;

	if (!newest || (other && get_le64(other + OFF_SEQUENCE) > get_le64(newest + OFF_SEQUENCE)))
		newest = other;
	if (!newest || get_le64(newest + OFF_SEQUENCE) > SEQUENCE_MAX)
		return NULL;
	*sequence = get_le64(newest + OFF_SEQUENCE);
	return newest;
}
