/* SPDX-License-Identifier: MIT */
/*
 * The resumable receive machine: bytes in any pieces become PDUs.
 *
 *             header()                 all payload
 *   HEADER ────────────▶ PAYLOAD ───────────────────▶ TRAILER
 *     ▲    rx_header()            rx_payload()           │
 *     └──────────────────────────────────────────────────┘ pdu(), rx_trailer()
 *
 * Invariants:
 * 1. Where it stopped is all in struct iscsi_rx: a call with one byte and a
 *    call with ten PDUs go the same way.
 * 2. A header is looked at once it is complete with its AHS and digest; only
 *    TotalAHSLength is used before, and bounded.
 * 3. In exact mode no byte of a payload ever lies in the buffer.
 *
 * Not here: what a PDU means (dispatch.c), sizes by opcode (pdu.c).
 *
 * Spec: RFC 7143 sections 11.2, 11.7.
 */
#include "target/iscsi/rx.h"

#include <errno.h>
#include <stdlib.h>

#include "core/crc32c.h"

#define BATCH_AFTER 4 /* PDUs without payload make a run */
#define IOV_MAX_READ 24

bool iscsi_rx_init(struct iscsi_rx *rx, const struct iscsi_rx_ops *ops, void *arg)
{
	*rx = (struct iscsi_rx){ .ops = ops, .arg = arg };
	rx->size = ISCSI_RX_SMALL;
	rx->buf = malloc(rx->size);
	return rx->buf != NULL;
}

bool iscsi_rx_full_feature(struct iscsi_rx *rx, bool header_digest, bool data_digest)
{
	uint8_t *buf = malloc(ISCSI_RX_BATCH);

	if (!buf)
		return false;
	memcpy(buf, rx->buf + rx->head, rx->tail - rx->head);
	free(rx->buf);
	rx->buf = buf;
	rx->size = ISCSI_RX_BATCH;
	rx->tail -= rx->head;
	rx->head = 0;
	rx->header_digest = header_digest;
	rx->data_digest = data_digest;
	rx->plain_run = 0;
	return true;
}

void iscsi_rx_fini(struct iscsi_rx *rx)
{
	free(rx->buf);
	rx->buf = NULL;
}

static unsigned have(const struct iscsi_rx *rx)
{
	return rx->tail - rx->head;
}

/* Bytes from HEAD on that the next step needs in the buffer. */
static unsigned need(const struct iscsi_rx *rx)
{
	unsigned digest = rx->header_digest ? ISCSI_DIGEST_BYTES : 0;

	if (rx->phase == ISCSI_RX_TRAILER)
		return rx->trailer;
	if (have(rx) < ISCSI_BHS_BYTES)
		return ISCSI_BHS_BYTES + digest;
	return ISCSI_BHS_BYTES + rx->buf[rx->head + 4] * 4u + digest;
}

/* Bytes of the payload that have a place; those after them are dropped. */
static uint64_t placed_bytes(const struct iscsi_rx *rx)
{
	const struct iscsi_dest *dest = &rx->dest;

	if (dest->sink == ISCSI_SINK_CONTROL)
		return rx->pdu.length;
	if (dest->sink == ISCSI_SINK_DROP || dest->offset >= dest->list->length)
		return 0;
	return min_u64(rx->pdu.length, dest->list->length - dest->offset);
}

static bool digest_is(uint32_t crc, const uint8_t *wire)
{
	return get_le32(wire) == crc;
}

/* Bring the running CRC up to what has a place, all of which is there. */
static void crc_placed(struct iscsi_rx *rx, uint64_t end)
{
	struct iovec iov[IOV_MAX_READ];
	uint64_t covered;

	if (rx->dest.sink == ISCSI_SINK_CONTROL && rx->crc_done < end) {
		rx->crc = crc32c_add(rx->crc, rx->dest.control, end);
		rx->crc_done = (uint32_t)end;
	}
	while (rx->crc_done < end) {
		unsigned n = buf_slice(rx->dest.list, rx->dest.offset + rx->crc_done,
				       end - rx->crc_done, iov, IOV_MAX_READ, &covered);

		rx->crc = crc32c_add_iov(rx->crc, iov, n);
		rx->crc_done += (uint32_t)covered;
	}
}

static uint32_t payload_crc(struct iscsi_rx *rx)
{
	crc_placed(rx, placed_bytes(rx));
	assert(rx->crc_done == rx->pdu.length);
	return crc32c_end(crc32c_add(rx->crc, rx->buf + rx->head, iscsi_pad(rx->pdu.length)));
}

static enum iscsi_rx_result rx_trailer(struct iscsi_rx *rx)
{
	bool ok = true;

	if (rx->data_digest && rx->pdu.length)
		ok = digest_is(payload_crc(rx), rx->buf + rx->head + iscsi_pad(rx->pdu.length));
	rx->head += rx->trailer;
	rx->phase = ISCSI_RX_HEADER;
	rx->pdus++;
	rx->pdu.control = rx->dest.sink == ISCSI_SINK_CONTROL ? rx->dest.control : NULL;
	if (rx->pdu.length) {
		rx->plain_run = 0;
		rx->batch = false;
	} else if (++rx->plain_run >= BATCH_AFTER) {
		rx->batch = rx->size >= ISCSI_RX_BATCH;
	}
	return rx->ops->pdu(rx->arg, &rx->pdu, ok) ? ISCSI_RX_IDLE : ISCSI_RX_STOPPED;
}

static enum iscsi_rx_result rx_header(struct iscsi_rx *rx)
{
	const uint8_t *at = rx->buf + rx->head;
	unsigned ahs = at[4] * 4u, bytes = ISCSI_BHS_BYTES + ahs;

	if (rx->header_digest && !digest_is(crc32c(at, bytes), at + bytes))
		return ISCSI_RX_PROTOCOL;
	memcpy(&rx->pdu.bhs, at, sizeof(rx->pdu.bhs));
	memcpy(rx->ahs, at + ISCSI_BHS_BYTES, ahs);
	rx->pdu.ahs = rx->ahs;
	rx->pdu.ahs_bytes = ahs;
	rx->pdu.control = NULL;
	rx->pdu.length = iscsi_length(&rx->pdu.bhs);
	rx->head += bytes + (rx->header_digest ? ISCSI_DIGEST_BYTES : 0);
	rx->payload_done = 0;
	rx->crc = CRC32C_START;
	rx->crc_done = 0;
	rx->trailer = iscsi_pad(rx->pdu.length);
	if (rx->data_digest && rx->pdu.length)
		rx->trailer += ISCSI_DIGEST_BYTES;
	rx->dest = (struct iscsi_dest){ .sink = ISCSI_SINK_DROP };
	if (!rx->ops->header(rx->arg, &rx->pdu, &rx->dest))
		return ISCSI_RX_STOPPED;
	rx->phase = ISCSI_RX_PAYLOAD;
	return ISCSI_RX_IDLE;
}

/* Payload that came with something else: move it to where it belongs. */
static void rx_payload(struct iscsi_rx *rx)
{
	uint32_t bytes = (uint32_t)min_u64(have(rx), rx->pdu.length - rx->payload_done);
	uint64_t end = placed_bytes(rx), placed = 0;
	const uint8_t *at = rx->buf + rx->head;

	if (rx->payload_done < end)
		placed = min_u64(bytes, end - rx->payload_done);
	if (placed && rx->dest.sink == ISCSI_SINK_CONTROL) {
		memcpy(rx->dest.control + rx->payload_done, at, placed);
	} else if (placed) {
		buf_write(rx->dest.list, rx->dest.offset + rx->payload_done, at, placed);
		rx->payload_copies++;
	}
	if (rx->data_digest && bytes > placed) {
		crc_placed(rx, end);
		rx->crc = crc32c_add(rx->crc, at + placed, bytes - placed);
		rx->crc_done += (uint32_t)(bytes - placed);
	}
	rx->head += bytes;
	rx->payload_done += bytes;
	if (rx->payload_done == rx->pdu.length)
		rx->phase = ISCSI_RX_TRAILER;
}

static bool is_enough(const struct iscsi_rx *rx, uint64_t pdus_end, uint64_t spent_end)
{
	return rx->pdus >= pdus_end || rx->bytes + rx->work >= spent_end;
}

/* Work off the buffer; IDLE: it holds too little for the next step. */
static enum iscsi_rx_result rx_consume(struct iscsi_rx *rx, uint64_t pdus_end, uint64_t spent_end)
{
	enum iscsi_rx_result result = ISCSI_RX_IDLE;

	while (result == ISCSI_RX_IDLE) {
		switch (rx->phase) {
		case ISCSI_RX_HEADER:
			if (have(rx) < ISCSI_BHS_BYTES)
				return ISCSI_RX_IDLE;
			if (is_enough(rx, pdus_end, spent_end))
				return ISCSI_RX_BUDGET;
			if (rx->buf[rx->head + 4] * 4u > ISCSI_AHS_MAX)
				return ISCSI_RX_PROTOCOL;
			if (have(rx) < need(rx))
				return ISCSI_RX_IDLE;
			result = rx_header(rx);
			break;
		case ISCSI_RX_PAYLOAD:
			rx_payload(rx);
			if (rx->phase == ISCSI_RX_PAYLOAD)
				return ISCSI_RX_IDLE;
			break;
		case ISCSI_RX_TRAILER:
			if (have(rx) < rx->trailer)
				return ISCSI_RX_IDLE;
			result = rx_trailer(rx);
			break;
		}
	}
	return result;
}

/* The rest of the payload as elements, where it has a place of its own. */
static unsigned payload_iov(struct iscsi_rx *rx, struct iovec *iov, uint64_t *bytes)
{
	uint64_t end, left = rx->pdu.length - rx->payload_done;

	*bytes = 0;
	if (rx->phase != ISCSI_RX_PAYLOAD || !left)
		return 0;
	if (rx->dest.sink == ISCSI_SINK_CONTROL) {
		iov[0] = (struct iovec){ rx->dest.control + rx->payload_done, left };
		*bytes = left;
		return 1;
	}
	end = placed_bytes(rx);
	if (rx->payload_done >= end)
		return 0;
	return buf_slice(rx->dest.list, rx->dest.offset + rx->payload_done, end - rx->payload_done,
			 iov, IOV_MAX_READ - 1, bytes);
}

/* How much to ask for into the buffer, behind PAYLOAD bytes of the payload's own. */
static unsigned buffer_wish(const struct iscsi_rx *rx, uint64_t payload)
{
	unsigned room = rx->size - rx->tail, want;
	uint64_t left = rx->pdu.length - rx->payload_done;

	if (rx->phase == ISCSI_RX_PAYLOAD) {
		if (payload && payload < left)
			return 0; /* more of it follows first */
		want = rx->trailer + ISCSI_BHS_BYTES + (rx->header_digest ? ISCSI_DIGEST_BYTES : 0);
		if (!payload) /* dropped on the way through */
			want = (unsigned)min_u64(left + want, rx->size);
	} else if (rx->phase == ISCSI_RX_TRAILER) {
		want = rx->trailer - have(rx) + ISCSI_BHS_BYTES +
		       (rx->header_digest ? ISCSI_DIGEST_BYTES : 0);
	} else {
		want = need(rx) - have(rx);
	}
	if (rx->batch && rx->phase == ISCSI_RX_HEADER)
		want = room;
	return (unsigned)min_u64(want, room);
}

/* One read. *SHORT_READ: less came than asked for, so the socket is empty. */
static enum iscsi_rx_result rx_fill(struct iscsi_rx *rx, bool *short_read)
{
	struct iovec iov[IOV_MAX_READ];
	uint64_t payload, got, wish;
	unsigned count;
	ssize_t n;

	if (rx->head) {
		memmove(rx->buf, rx->buf + rx->head, have(rx));
		rx->tail -= rx->head;
		rx->head = 0;
	}
	count = payload_iov(rx, iov, &payload);
	wish = buffer_wish(rx, payload);
	if (wish)
		iov[count++] = (struct iovec){ rx->buf + rx->tail, wish };
	assert(count);
	do {
		rx->syscalls++;
		n = rx->ops->readv(rx->arg, iov, count);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		*short_read = true;
		return ISCSI_RX_IDLE;
	}
	if (n <= 0)
		return n ? ISCSI_RX_ERROR : ISCSI_RX_EOF;
	got = min_u64((uint64_t)n, payload);
	rx->payload_done += (uint32_t)got;
	rx->tail += (unsigned)((uint64_t)n - got);
	rx->bytes += (uint64_t)n;
	*short_read = (uint64_t)n < payload + wish;
	return ISCSI_RX_IDLE;
}

enum iscsi_rx_result iscsi_rx_run(struct iscsi_rx *rx, unsigned pdus_max, uint64_t bytes_max)
{
	uint64_t pdus_end = rx->pdus + pdus_max;
	uint64_t spent = rx->bytes + rx->work;
	uint64_t spent_end =
		spent + min_u64(bytes_max, UINT64_MAX - spent); /* it may be "no bound" */
	enum iscsi_rx_result result;
	bool short_read = false;

	for (;;) {
		result = rx_consume(rx, pdus_end, spent_end);
		if (result != ISCSI_RX_IDLE)
			return result;
		if (short_read)
			return ISCSI_RX_IDLE;
		if (is_enough(rx, pdus_end, spent_end))
			return ISCSI_RX_BUDGET;
		result = rx_fill(rx, &short_read);
		if (result != ISCSI_RX_IDLE)
			return result;
	}
}
