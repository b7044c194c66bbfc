/* SPDX-License-Identifier: MIT */
/*
 * The resumable receive machine: bytes in any pieces become PDUs.
 *
 * Two ways to read. Exact: one system call takes the rest of a payload straight
 * into where it belongs, and the next header behind it; nothing is moved.
 * Batch: one system call fetches as many headers as the buffer holds; payload
 * among them is moved, and counted. The machine changes over by what it sees:
 * payload makes it exact, a run of PDUs without any makes it batch.
 */
#ifndef TARGET_ISCSI_RX_H
#define TARGET_ISCSI_RX_H

#include <sys/types.h>

#include "core/buf.h"
#include "target/iscsi/pdu.h"

#define ISCSI_RX_SMALL 512 /* a header with everything that belongs to it */
#define ISCSI_RX_BATCH (16 * KIB)

enum iscsi_sink {
	ISCSI_SINK_CONTROL, /* as a whole into `control`, which has room for it */
	ISCSI_SINK_LIST,    /* into `list` from `offset` on; beyond its end it is dropped */
	ISCSI_SINK_DROP,
};

struct iscsi_dest {
	enum iscsi_sink sink;
	uint8_t *control;
	const struct buf_list *list;
	uint64_t offset;
};

/*
 * Both return false to stop: the connection ends. The machine is not touched
 * again after that.
 */
struct iscsi_rx_ops {
	/* A header, its digest right. Sets where the payload goes; preset to DROP. */
	bool (*header)(void *arg, struct iscsi_pdu *pdu, struct iscsi_dest *dest);
	/* All of it is there. DIGEST_OK is true where there is no data digest. */
	bool (*pdu)(void *arg, struct iscsi_pdu *pdu, bool digest_ok);
	/* As readv(2): -1 with errno, 0 at the end. */
	ssize_t (*readv)(void *arg, struct iovec *iov, unsigned count);
};

enum iscsi_rx_phase { ISCSI_RX_HEADER, ISCSI_RX_PAYLOAD, ISCSI_RX_TRAILER };

struct iscsi_rx {
	const struct iscsi_rx_ops *ops;
	void *arg;
	enum iscsi_rx_phase phase;
	bool header_digest;
	bool data_digest;
	bool batch;
	unsigned plain_run; /* PDUs without payload since the last with one */

	uint8_t *buf; /* [head, tail) came in and was not looked at yet */
	unsigned size, head, tail;

	struct iscsi_pdu pdu;
	struct iscsi_dest dest;
	uint32_t payload_done;
	uint32_t crc; /* state over the first crc_done bytes of the payload */
	uint32_t crc_done;
	unsigned trailer; /* padding and digest */

	uint64_t pdus;
	uint64_t work; /* bytes that requests move besides; their handlers add them */
	uint64_t bytes;
	uint64_t payload_copies;
	unsigned syscalls; /* since whoever counts them last took them */
	uint8_t ahs[ISCSI_AHS_MAX];
};

/* False: out of memory. */
bool iscsi_rx_init(struct iscsi_rx *rx, const struct iscsi_rx_ops *ops, void *arg);
/* After login: the larger buffer, batches allowed. Called between two PDUs. False: no memory. */
bool iscsi_rx_full_feature(struct iscsi_rx *rx, bool header_digest, bool data_digest);
void iscsi_rx_fini(struct iscsi_rx *rx);

enum iscsi_rx_result {
	ISCSI_RX_IDLE,   /* nothing more to read now */
	ISCSI_RX_BUDGET, /* there may be more; others first */
	ISCSI_RX_EOF,
	ISCSI_RX_ERROR,    /* errno */
	ISCSI_RX_PROTOCOL, /* header digest or header length: the stream is lost */
	ISCSI_RX_STOPPED,  /* a callback said so; RX may be gone */
};
/* PDUS_MAX and BYTES_MAX bound what is taken on: bytes that came in and `work` together. */
enum iscsi_rx_result iscsi_rx_run(struct iscsi_rx *rx, unsigned pdus_max, uint64_t bytes_max);

#endif
