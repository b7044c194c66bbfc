/* SPDX-License-Identifier: MIT */
/*
 * The transmit queue of one connection: PDUs in order, sent many at a time.
 *
 * A slot holds header, padding and digests; the payload stays where it is and
 * must not change until `sent` tells that its bytes are in the socket.
 */
#ifndef TARGET_ISCSI_TX_H
#define TARGET_ISCSI_TX_H

#include <sys/types.h>

#include "core/buf.h"
#include "target/iscsi/pdu.h"

#define ISCSI_TX_SLOTS_LOGIN 2
#define ISCSI_TX_SLOTS 128

/* The payload of a PDU: LIST from OFFSET on, or DATA; NULL both: none. */
struct iscsi_tx_data {
	const struct buf_list *list;
	uint64_t offset;
	const void *data;
	uint32_t length;
};

struct iscsi_tx_slot {
	uint8_t head[ISCSI_BHS_BYTES + ISCSI_DIGEST_BYTES];
	uint8_t tail[8]; /* padding and data digest */
	uint8_t head_bytes;
	uint8_t tail_bytes;
	struct iscsi_tx_data data;
	void *owner;
};

struct iscsi_tx_ops {
	/* The last byte of a PDU of OWNER is in the socket, or never will be (dropped). */
	void (*sent)(void *arg, void *owner);
	/* As writev(2). */
	ssize_t (*writev)(void *arg, struct iovec *iov, unsigned count);
};

struct iscsi_tx {
	const struct iscsi_tx_ops *ops;
	void *arg;
	struct iscsi_tx_slot *slots;
	unsigned size, first, count;
	uint64_t first_sent; /* bytes of the first slot that are in the socket */
	bool header_digest;
	bool data_digest;
	uint64_t pdus;
	uint64_t bytes;
	unsigned syscalls; /* since whoever counts them last took them */
};

/* False: out of memory. */
bool iscsi_tx_init(struct iscsi_tx *tx, const struct iscsi_tx_ops *ops, void *arg);
/* After login, the queue empty. False: out of memory. */
bool iscsi_tx_full_feature(struct iscsi_tx *tx);
/* Gives every slot's owner back. */
void iscsi_tx_drop(struct iscsi_tx *tx);
void iscsi_tx_fini(struct iscsi_tx *tx);

static inline unsigned iscsi_tx_room(const struct iscsi_tx *tx)
{
	return tx->size - tx->count;
}

/* There must be room. The length field of BHS is filled in here. OWNER may be NULL. */
void iscsi_tx_add(struct iscsi_tx *tx, struct iscsi_bhs *bhs, const struct iscsi_tx_data *data,
		  void *owner);

enum iscsi_tx_result { ISCSI_TX_EMPTY, ISCSI_TX_BLOCKED, ISCSI_TX_ERROR };
/* One attempt to send all; ISCSI_TX_BLOCKED: the socket is full. */
enum iscsi_tx_result iscsi_tx_flush(struct iscsi_tx *tx);

#endif
