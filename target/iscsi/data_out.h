/* SPDX-License-Identifier: MIT */
/*
 * The Data-Out side of one WRITE: what was promised, what is asked for, what came.
 *
 * Data comes strictly in order (DataPDUInOrder and DataSequenceInOrder are
 * Yes): immediate, unsolicited up to FirstBurstLength, then what R2Ts ask for.
 * Offsets and lengths are bytes.
 *
 * Spec: RFC 7143 sections 4.2.5, 11.7, 11.8.
 */
#ifndef TARGET_ISCSI_DATA_OUT_H
#define TARGET_ISCSI_DATA_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base.h"

#define ISCSI_R2T_MAX 16 /* outstanding at a time */

struct iscsi_data_rules {
	bool initial_r2t;
	bool immediate_data;
	uint32_t first_burst;
	uint32_t max_burst;
	uint32_t max_r2t;
};

/* What is wrong with the data; the command ends with it after the sequence's F bit. */
enum iscsi_data_error {
	ISCSI_DATA_OK,
	ISCSI_DATA_DIGEST,
	ISCSI_DATA_UNSOLICITED,
	ISCSI_DATA_AMOUNT,
	ISCSI_DATA_OFFSET,
	ISCSI_DATA_SEQUENCE,
};

struct iscsi_r2t {
	uint32_t sn;
	uint64_t offset;
	uint32_t length;
};

struct iscsi_data_out {
	uint64_t wanted;      /* bytes that the command takes: R2Ts end here */
	uint64_t edtl;        /* bytes that the initiator has */
	uint64_t received;    /* next offset */
	uint64_t asked;       /* end of what was promised unsolicited or asked for */
	uint32_t next_datasn; /* within the sequence that is coming in */
	uint32_t r2tsn;       /* of the next R2T */
	unsigned r2t_first, r2t_count;
	struct iscsi_r2t r2ts[ISCSI_R2T_MAX]; /* ring: sequences asked for and not complete */
	bool unsolicited;                     /* an unsolicited sequence is coming in */
	enum iscsi_data_error error;
	struct iscsi_data_rules rules;
};

/*
 * A command with IMMEDIATE bytes of data in its PDU; FINAL is its F bit: no
 * unsolicited Data-Out follows. WANTED <= EDTL.
 */
void iscsi_data_out_start(struct iscsi_data_out *out, const struct iscsi_data_rules *rules,
			  uint64_t wanted, uint64_t edtl, uint32_t immediate, bool final);

/* Whether an R2T may be sent now, and data is still to be asked for. */
bool iscsi_data_out_may_ask(const struct iscsi_data_out *out);
/* The next R2T to send, now outstanding; false: none may or need be sent. */
bool iscsi_data_out_ask(struct iscsi_data_out *out, struct iscsi_r2t *r2t);

/* One Data-Out PDU's header. */
struct iscsi_data_pdu {
	bool solicited; /* its TTT is not the reserved one; R2T_SN is what the TTT stands for */
	uint32_t r2t_sn;
	uint32_t datasn;
	uint32_t offset;
	uint32_t length;
	bool final;
};
/*
 * Check a header and account for it. True: its payload belongs at its offset.
 * False: drop the payload (an error is noted, or it was noted before).
 */
bool iscsi_data_out_pdu(struct iscsi_data_out *out, const struct iscsi_data_pdu *pdu);

/* Note ERROR unless there is one already. */
void iscsi_data_out_fail(struct iscsi_data_out *out, enum iscsi_data_error error);

/* Whether the initiator owes data: an open sequence. */
bool iscsi_data_out_owed(const struct iscsi_data_out *out);
/* All data that will come is there, well or not: the command goes on. */
bool iscsi_data_out_complete(const struct iscsi_data_out *out);

#endif
