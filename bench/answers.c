/* SPDX-License-Identifier: MIT */
/*
 * Cuts two streams of bytes into PDUs and remembers which commands are unanswered.
 *
 * Invariants:
 *  1. A command counts as asked before its answer can come: answers_out() sees the bytes before
 *     the target does.
 *
 * Not here: where the bytes come from (tap.c).
 * Spec: RFC 7143 sections 11.1 to 11.4, 4.2.2.2 (StatSN).
 */
#include "bench/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/crc32c.h"
#include "core/wire.h"

#define OPCODE(bhs) ((bhs)[0] & 0x3f)
#define NO_TAG 0xffffffffu
#define FLAG_STATUS 0x01 /* of Data-In: it carries the status */

enum {
	OP_SCSI_COMMAND = 0x01,
	OP_NOP_IN = 0x20,
	OP_SCSI_RESPONSE = 0x21,
	OP_DATA_IN = 0x25,
	OP_R2T = 0x31,
};

void answers_init(struct answers *answers, bool header_digest)
{
	memset(answers, 0, sizeof(*answers));
	answers->in.digest = answers->out.digest = header_digest ? DIGEST_MAYBE : DIGEST_NO;
}

static void asked(struct answers *answers, const uint8_t *bhs)
{
	uint32_t itt = get_be32(bhs + 16);

	if (OPCODE(bhs) != OP_SCSI_COMMAND)
		return;
	if (answers->slots[itt % ANSWERS_SLOTS].state == SLOT_ASKED)
		answers->crowded = true;
	answers->slots[itt % ANSWERS_SLOTS].itt = itt;
	answers->slots[itt % ANSWERS_SLOTS].state = SLOT_ASKED;
}

/* Whether it counts in StatSN. */
static bool has_status(const uint8_t *bhs)
{
	switch (OPCODE(bhs)) {
	case OP_DATA_IN:
		return bhs[1] & FLAG_STATUS;
	case OP_NOP_IN:
		return get_be32(bhs + 16) != NO_TAG;
	case OP_R2T:
		return false;
	default:
		return true;
	}
}

static void check_tag(struct answers *answers, const uint8_t *bhs)
{
	const char *what = OPCODE(bhs) == OP_DATA_IN ? "Data-In" : "SCSI Response";
	uint32_t itt = get_be32(bhs + 16);
	bool known = answers->slots[itt % ANSWERS_SLOTS].itt == itt;

	if (answers->crowded)
		return;
	if (known && answers->slots[itt % ANSWERS_SLOTS].state == SLOT_ASKED) {
		if (has_status(bhs))
			answers->slots[itt % ANSWERS_SLOTS].state = SLOT_ANSWERED;
		return;
	}
	known &= answers->slots[itt % ANSWERS_SLOTS].state == SLOT_ANSWERED;
	snprintf(answers->wrong, sizeof(answers->wrong),
		 "%s: %s with status %02x for tag %08" PRIx32 " (StatSN %08" PRIx32 ")%s",
		 known ? "answered twice" : "an answer to nothing", what, bhs[3], itt,
		 get_be32(bhs + 24), known ? ", which had its status" : ", which nobody sent");
}

static void check_statsn(struct answers *answers, const uint8_t *bhs)
{
	uint32_t statsn = get_be32(bhs + 24);

	if (!has_status(bhs))
		return;
	if (answers->statsn_known && statsn != answers->statsn && answers->wrong[0] == '\0')
		snprintf(answers->wrong, sizeof(answers->wrong),
			 "StatSN %08" PRIx32 " where %08" PRIx32
			 " comes next: an answer is missing "
			 "or doubled",
			 statsn, answers->statsn);
	answers->statsn = statsn + 1;
	answers->statsn_known = true;
}

static void answered(struct answers *answers, const uint8_t *bhs)
{
	if (answers->wrong[0])
		return;
	if (OPCODE(bhs) == OP_SCSI_RESPONSE || OPCODE(bhs) == OP_DATA_IN)
		check_tag(answers, bhs);
	check_statsn(answers, bhs);
}

/* What follows the header: additional headers and data, which end at a multiple of 4 bytes. */
static uint64_t rest_of(const uint8_t *bhs)
{
	return bhs[4] * 4u + align_up(get_be32(bhs + 4) & 0xffffff, 4);
}

/* Takes bytes for the head of a PDU; the number taken. */
static size_t take_head(struct answers_stream *stream, const uint8_t *bytes, size_t length,
			bool *whole)
{
	unsigned wanted = stream->got < ANSWERS_BHS || stream->digest == DIGEST_NO ?
				  ANSWERS_BHS :
				  ANSWERS_BHS + 4;
	size_t n = min_u64(length, wanted - stream->got);

	memcpy(stream->head + stream->got, bytes, n);
	stream->got += (unsigned)n;
	*whole = n > 0 && stream->got == ANSWERS_BHS;
	return n;
}

/* After the header, and the digest if there is one. */
static void end_head(struct answers_stream *stream)
{
	stream->skip = rest_of(stream->head);
	stream->got = 0;
}

static void feed(struct answers *answers, struct answers_stream *stream, const uint8_t *bytes,
		 size_t length, void (*pdu)(struct answers *, const uint8_t *))
{
	while (length > 0) {
		size_t n = min_u64(length, stream->skip);
		bool whole = false;

		stream->skip -= n;
		if (n == 0)
			n = take_head(stream, bytes, length, &whole);
		bytes += n;
		length -= n;
		/* Before the digest comes: it may be long in coming if there is none. */
		if (whole)
			pdu(answers, stream->head);
		if (whole && stream->digest == DIGEST_NO) {
			end_head(stream);
		} else if (stream->got == ANSWERS_BHS + 4) {
			uint8_t next[4];

			memcpy(next, stream->head + ANSWERS_BHS, sizeof(next));
			end_head(stream);
			if (stream->digest == DIGEST_MAYBE &&
			    get_le32(next) == crc32c(stream->head, ANSWERS_BHS))
				stream->digest = DIGEST_YES;
			if (stream->digest == DIGEST_MAYBE) {
				stream->digest = DIGEST_NO;
				feed(answers, stream, next, sizeof(next), pdu);
			}
		}
	}
}

void answers_out(struct answers *answers, const void *bytes, size_t length)
{
	feed(answers, &answers->out, bytes, length, asked);
}

bool answers_in(struct answers *answers, const void *bytes, size_t length)
{
	feed(answers, &answers->in, bytes, length, answered);
	return answers->wrong[0] == '\0';
}
