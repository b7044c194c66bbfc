/* SPDX-License-Identifier: MIT */
/*
 * The transmit queue of one connection: PDUs in order, sent many at a time.
 *
 * Invariants:
 * 1. The ring never grows: who adds asked for room before.
 * 2. A slot's owner is told exactly once, when its last byte was taken by the
 *    socket or the queue was dropped.
 * 3. Digests are computed when a PDU is added: what it points to is final then.
 *
 * Not here: which PDU goes next (answer.c), StatSN (session.c).
 *
 * Spec: RFC 7143 section 11.2.
 */
#include "target/iscsi/tx.h"

#include <errno.h>
#include <stdlib.h>

#include "core/crc32c.h"

#define IOV_FLUSH 512
#define IOV_CRC 32

bool iscsi_tx_init(struct iscsi_tx *tx, const struct iscsi_tx_ops *ops, void *arg)
{
	*tx = (struct iscsi_tx){ .ops = ops, .arg = arg, .size = ISCSI_TX_SLOTS_LOGIN };
	tx->slots = calloc(tx->size, sizeof(*tx->slots));
	return tx->slots != NULL;
}

bool iscsi_tx_full_feature(struct iscsi_tx *tx)
{
	struct iscsi_tx_slot *slots = calloc(ISCSI_TX_SLOTS, sizeof(*slots));

	if (!slots)
		return false;
	assert(!tx->count);
	free(tx->slots);
	tx->slots = slots;
	tx->size = ISCSI_TX_SLOTS;
	tx->first = 0;
	return true;
}

static struct iscsi_tx_slot *slot_at(const struct iscsi_tx *tx, unsigned n)
{
	unsigned at = tx->first + n;

	return &tx->slots[at < tx->size ? at : at - tx->size];
}

static void slot_done(struct iscsi_tx *tx)
{
	void *owner = slot_at(tx, 0)->owner;

	tx->first = tx->first + 1 < tx->size ? tx->first + 1 : 0;
	tx->count--;
	tx->first_sent = 0;
	if (owner)
		tx->ops->sent(tx->arg, owner);
}

void iscsi_tx_drop(struct iscsi_tx *tx)
{
	while (tx->count)
		slot_done(tx);
}

void iscsi_tx_fini(struct iscsi_tx *tx)
{
	assert(!tx->count);
	free(tx->slots);
	tx->slots = NULL;
}

static uint32_t data_crc(const struct iscsi_tx_data *data, const uint8_t *pad, unsigned pad_bytes)
{
	uint32_t state = CRC32C_START;
	struct iovec iov[IOV_CRC];
	uint64_t done = 0, covered;

	if (data->list) {
		while (done < data->length) {
			unsigned n = buf_slice(data->list, data->offset + done, data->length - done,
					       iov, IOV_CRC, &covered);

			state = crc32c_add_iov(state, iov, n);
			done += covered;
		}
	} else {
		state = crc32c_add(state, data->data, data->length);
	}
	return crc32c_end(crc32c_add(state, pad, pad_bytes));
}

void iscsi_tx_add(struct iscsi_tx *tx, struct iscsi_bhs *bhs, const struct iscsi_tx_data *data,
		  void *owner)
{
	struct iscsi_tx_slot *slot;
	unsigned pad;

	assert(iscsi_tx_room(tx));
	slot = slot_at(tx, tx->count);
	slot->owner = owner;
	slot->data = data ? *data : (struct iscsi_tx_data){ 0 };
	put_be24(bhs->length, slot->data.length);
	memcpy(slot->head, bhs, ISCSI_BHS_BYTES);
	slot->head_bytes = ISCSI_BHS_BYTES;
	if (tx->header_digest) {
		put_le32(slot->head + ISCSI_BHS_BYTES, crc32c(slot->head, ISCSI_BHS_BYTES));
		slot->head_bytes += ISCSI_DIGEST_BYTES;
	}
	pad = iscsi_pad(slot->data.length);
	memset(slot->tail, 0, sizeof(slot->tail));
	slot->tail_bytes = (uint8_t)pad;
	if (tx->data_digest && slot->data.length) {
		put_le32(slot->tail + pad, data_crc(&slot->data, slot->tail, pad));
		slot->tail_bytes += ISCSI_DIGEST_BYTES;
	}
	tx->count++;
	tx->pdus++;
}

static uint64_t slot_bytes(const struct iscsi_tx_slot *slot)
{
	return (uint64_t)slot->head_bytes + slot->data.length + slot->tail_bytes;
}

/* Adds [SKIP, LENGTH) of BASE. */
static unsigned add_flat(struct iovec *iov, const void *base, uint64_t length, uint64_t *skip)
{
	uint64_t from = min_u64(*skip, length);

	*skip -= from;
	if (from == length)
		return 0;
	*iov = (struct iovec){ (char *)base + from, length - from };
	return 1;
}

/* The unsent bytes of SLOT; *BYTES grows by what the elements hold. False: no more room. */
static bool slot_iov(const struct iscsi_tx_slot *slot, uint64_t skip, struct iovec *iov,
		     unsigned *count, uint64_t *bytes)
{
	const struct iscsi_tx_data *data = &slot->data;
	uint64_t from, covered = 0;
	unsigned first = *count;

	if (IOV_FLUSH - *count < 4)
		return false;
	*count += add_flat(&iov[*count], slot->head, slot->head_bytes, &skip);
	if (data->list && data->length) {
		from = min_u64(skip, data->length);
		skip -= from;
		if (from < data->length)
			*count += buf_slice(data->list, data->offset + from, data->length - from,
					    &iov[*count], IOV_FLUSH - 1 - *count, &covered);
		if (from + covered < data->length) {
			for (; first < *count; first++)
				*bytes += iov[first].iov_len;
			return false;
		}
	} else if (data->length) {
		*count += add_flat(&iov[*count], data->data, data->length, &skip);
	}
	*count += add_flat(&iov[*count], slot->tail, slot->tail_bytes, &skip);
	for (; first < *count; first++)
		*bytes += iov[first].iov_len;
	return true;
}

static void take_sent(struct iscsi_tx *tx, uint64_t n)
{
	tx->bytes += n;
	while (tx->count) {
		uint64_t left = slot_bytes(slot_at(tx, 0)) - tx->first_sent;

		if (n < left) {
			tx->first_sent += n;
			return;
		}
		n -= left;
		slot_done(tx);
	}
}

enum iscsi_tx_result iscsi_tx_flush(struct iscsi_tx *tx)
{
	struct iovec iov[IOV_FLUSH];

	while (tx->count) {
		uint64_t bytes = 0;
		unsigned count = 0, n;
		ssize_t sent;

		for (n = 0; n < tx->count; n++)
			if (!slot_iov(slot_at(tx, n), n ? 0 : tx->first_sent, iov, &count, &bytes))
				break;
		do {
			tx->syscalls++;
			sent = tx->ops->writev(tx->arg, iov, count);
		} while (sent < 0 && errno == EINTR);
		if (sent < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? ISCSI_TX_BLOCKED :
									 ISCSI_TX_ERROR;
		take_sent(tx, (uint64_t)sent);
		if ((uint64_t)sent < bytes)
			return ISCSI_TX_BLOCKED;
	}
	return ISCSI_TX_EMPTY;
}
