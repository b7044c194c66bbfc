/* SPDX-License-Identifier: MIT */
/*
 * The table of what an initiator may send, and the checks made from it.
 *
 * Invariants:
 * 1. A PDU whose sizes its row does not allow never reaches a handler.
 * 2. The header is trusted for nothing but its own length until it was checked
 *    here: nothing is allocated from a length on the wire.
 *
 * Not here: bytes and sockets (rx.c), what a PDU means (dispatch.c).
 *
 * Spec: RFC 7143 sections 11.1 to 11.2.
 */
#include "target/iscsi/pdu.h"

static const struct iscsi_request requests[ISCSI_OPCODE_MASK + 1] = {
	[ISCSI_NOP_OUT] = { "NOP-Out", ISCSI_PAYLOAD_SEGMENT, 0, true, true },
	[ISCSI_SCSI_COMMAND] = { "SCSI Command", ISCSI_PAYLOAD_SEGMENT, ISCSI_AHS_MAX, false,
				 true },
	[ISCSI_TMF_REQUEST] = { "Task Management", ISCSI_PAYLOAD_NONE, 0, false, true },
	[ISCSI_LOGIN_REQUEST] = { "Login", ISCSI_PAYLOAD_CONTROL, 0, true, false },
	[ISCSI_TEXT_REQUEST] = { "Text", ISCSI_PAYLOAD_CONTROL, 0, true, true },
	[ISCSI_DATA_OUT] = { "Data-Out", ISCSI_PAYLOAD_SEGMENT, 0, false, false },
	[ISCSI_LOGOUT_REQUEST] = { "Logout", ISCSI_PAYLOAD_NONE, 0, true, true },
	[ISCSI_SNACK] = { "SNACK", ISCSI_PAYLOAD_NONE, 0, false, false },
};

const struct iscsi_request *iscsi_request(uint8_t opcode)
{
	return &requests[opcode & ISCSI_OPCODE_MASK];
}

const char *iscsi_opcode_name(uint8_t opcode)
{
	const char *name = iscsi_request(opcode)->name;

	return name ? name : "unknown";
}

enum iscsi_verdict iscsi_pdu_check(const struct iscsi_bhs *bhs, uint32_t segment_max,
				   bool discovery)
{
	const struct iscsi_request *row = iscsi_request(bhs->opcode);
	uint32_t length = iscsi_length(bhs);

	if (length > segment_max)
		return ISCSI_PDU_FATAL;
	if (!row->name)
		return ISCSI_PDU_UNKNOWN;
	if (discovery && !row->in_discovery)
		return ISCSI_PDU_PROTOCOL;
	if (bhs->ahs_words * 4u > row->ahs_max)
		return ISCSI_PDU_PROTOCOL;
	if (row->payload == ISCSI_PAYLOAD_NONE && length)
		return ISCSI_PDU_PROTOCOL;
	if (row->payload == ISCSI_PAYLOAD_CONTROL && length > ISCSI_CONTROL_MAX)
		return ISCSI_PDU_PROTOCOL;
	return ISCSI_PDU_OK;
}

#define AHS_EXTENDED_CDB 1
#define AHS_BIDIRECTIONAL 2

/*
 *  0 | AHSLength (bytes after byte 2, padding not counted) | AHSType | specific ...
 */
bool iscsi_ahs_parse(const uint8_t *ahs, unsigned len_bytes, struct iscsi_ahs *out)
{
	*out = (struct iscsi_ahs){ .cdb_bytes = 16 };
	while (len_bytes) {
		unsigned length, whole;

		if (len_bytes < 4)
			return false;
		length = get_be16(ahs);
		whole = (unsigned)align_up(3 + length, 4);
		if (!length || whole > len_bytes)
			return false;
		if (ahs[2] == AHS_EXTENDED_CDB && !out->extended_cdb) {
			out->extended_cdb = true;
			out->cdb_bytes += length - 1;
		} else if (ahs[2] == AHS_BIDIRECTIONAL && !out->bidirectional && length == 5) {
			out->bidirectional = true;
		} else {
			return false;
		}
		ahs += whole;
		len_bytes -= whole;
	}
	return true;
}
