/* SPDX-License-Identifier: MIT */
/*
 * The head of a record of the redo log.
 *
 * Invariants:
 *  1. What redo_decode() accepts is whole (CRC32C over head and payload) and consistent in itself:
 *     whole blocks, spans in rising columns within the range.
 *
 * Not here: the ring (redo.c), what is replayed (replay.c).
 * Spec: yoke-disk(5).
 *
 *   0  magic "YOKEREDO"     8  crc32c (with this as 0)     12  version
 *  16  tag                 24  incarnation                 32  sequence
 *  40  batch               48  attempt                     56  tail
 *  64  stripe              72  from     76  to             80  flags     84  span count
 *  88  spans: 15 x { column 4, from 4, to 4 }
 * 268  of an intent: 15 x CRC32C of a column's range, then of the parity's
 */
#include <string.h>

#include "core/canary.h"
#include "core/crc32c.h"
#include "core/wire.h"
#include "raid/redo.h"

#define VERSION 1
#define FLAG_INTENT 1u

enum {
	OFF_MAGIC = 0,
	OFF_CRC = 8,
	OFF_VERSION = 12,
	OFF_TAG = 16,
	OFF_INCARNATION = 24,
	OFF_SEQUENCE = 32,
	OFF_BATCH = 40,
	OFF_ATTEMPT = 48,
	OFF_TAIL = 56,
	OFF_STRIPE = 64,
	OFF_FROM = 72,
	OFF_TO = 76,
	OFF_FLAGS = 80,
	OFF_SPAN_COUNT = 84,
	OFF_SPANS = 88,
	SPAN_SIZE = 12,
	OFF_CRCS = OFF_SPANS + REDO_SPANS_MAX * SPAN_SIZE,
	OFF_END = OFF_CRCS + REDO_CRCS * 4,
};

static_assert(OFF_END <= 512, "a head is one block");

static const char magic[8] = "YOKEREDO";

uint64_t redo_payload_bytes(const struct redo_head *head)
{
	uint64_t bytes = head->to - head->from;

	if (head->intent)
		return 0;
	for (unsigned i = 0; i < head->span_count; i++)
		bytes += head->spans[i].to - head->spans[i].from;
	return bytes;
}

void redo_encode(const struct redo_head *head, void *block, uint32_t block_bytes,
		 const struct iovec *iov, unsigned iov_count)
{
	uint8_t *out = block;
	uint32_t state;

	memset(out, 0, block_bytes);
	memcpy(out + OFF_MAGIC, magic, sizeof(magic));
	put_le32(out + OFF_VERSION, VERSION);
	put_le64(out + OFF_TAG, head->tag);
	put_le64(out + OFF_INCARNATION, head->incarnation);
	put_le64(out + OFF_SEQUENCE, head->sequence);
	put_le64(out + OFF_BATCH, head->batch);
	put_le64(out + OFF_ATTEMPT, head->attempt);
	put_le64(out + OFF_TAIL, head->tail);
	put_le64(out + OFF_STRIPE, head->stripe);
	put_le32(out + OFF_FROM, head->from);
	put_le32(out + OFF_TO, head->to);
	put_le32(out + OFF_FLAGS, head->intent ? FLAG_INTENT : 0);
	put_le32(out + OFF_SPAN_COUNT, head->span_count);
	for (unsigned i = 0; i < head->span_count; i++) {
		uint8_t *at = out + OFF_SPANS + i * SPAN_SIZE;

		put_le32(at, head->spans[i].column);
		put_le32(at + 4, head->spans[i].from);
		put_le32(at + 8, head->spans[i].to);
	}
	for (unsigned i = 0; head->intent && i < REDO_CRCS; i++)
		put_le32(out + OFF_CRCS + 4 * i, head->crcs[i]);
	state = crc32c_add(CRC32C_START, out, block_bytes);
	put_le32(out + OFF_CRC, crc32c_end(crc32c_add_iov(state, iov, iov_count)));
}

static bool range_sound(uint32_t from, uint32_t to, uint32_t block_bytes)
{
	return from < to && to <= MIB && (from | to) % block_bytes == 0;
}

static bool spans_decode(const uint8_t *in, uint32_t block_bytes, struct redo_head *head)
{
	for (unsigned i = 0; i < head->span_count; i++) {
		const uint8_t *at = in + OFF_SPANS + i * SPAN_SIZE;
		struct redo_span *span = &head->spans[i];

		*span = (struct redo_span){ get_le32(at), get_le32(at + 4), get_le32(at + 8) };
		if (span->column >= REDO_SPANS_MAX ||
		    (i && span->column <= head->spans[i - 1].column) ||
		    !range_sound(span->from, span->to, block_bytes) || span->from < head->from ||
		    span->to > head->to)
			return false;
	}
	return true;
}

bool redo_decode_head(const void *block, uint64_t available, uint32_t block_bytes, uint64_t tag,
		      uint64_t incarnation, struct redo_head *head)
{
	const uint8_t *in = block;

	if (available < block_bytes || memcmp(in, magic, sizeof(magic)) != 0 ||
	    get_le32(in + OFF_VERSION) != VERSION || get_le64(in + OFF_TAG) != tag ||
	    (get_le64(in + OFF_INCARNATION) != incarnation && !canary(CANARY_INCARNATION)))
		return false;
	memset(head, 0, sizeof(*head));
	head->tag = tag;
	head->incarnation = incarnation;
	head->sequence = get_le64(in + OFF_SEQUENCE);
	head->batch = get_le64(in + OFF_BATCH);
	head->attempt = get_le64(in + OFF_ATTEMPT);
	head->tail = get_le64(in + OFF_TAIL);
	head->stripe = get_le64(in + OFF_STRIPE);
	head->from = get_le32(in + OFF_FROM);
	head->to = get_le32(in + OFF_TO);
	head->intent = get_le32(in + OFF_FLAGS) & FLAG_INTENT;
	head->span_count = get_le32(in + OFF_SPAN_COUNT);
	for (unsigned i = 0; head->intent && i < REDO_CRCS; i++)
		head->crcs[i] = get_le32(in + OFF_CRCS + 4 * i);
	if (head->span_count > REDO_SPANS_MAX || !range_sound(head->from, head->to, block_bytes) ||
	    !spans_decode(in, block_bytes, head) || head->batch > head->sequence)
		return false;
	return redo_payload_bytes(head) <= available - block_bytes;
}

bool redo_sound(const void *block, uint32_t block_bytes, const struct redo_head *head)
{
	const uint8_t *in = block;

	return get_le32(in + OFF_CRC) ==
	       crc32c_around(in, block_bytes + redo_payload_bytes(head), OFF_CRC);
}

bool redo_decode(const void *block, uint64_t available, uint32_t block_bytes, uint64_t tag,
		 uint64_t incarnation, struct redo_head *head)
{
	return redo_decode_head(block, available, block_bytes, tag, incarnation, head) &&
	       redo_sound(block, block_bytes, head);
}
