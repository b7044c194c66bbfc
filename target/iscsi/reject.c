/* SPDX-License-Identifier: MIT */
/*
 * Reject: the header that we did not take goes back with the reason.
 *
 * Invariants:
 * 1. A rejected request's number is not used up: the initiator fills the gap.
 * 2. Who sends rubbish faster than it reads the answers is disconnected: they take what is
 *    left of the pool of commands, never memory.
 *
 * Not here: what is rejected and why (dispatch.c, pdu.c).
 *
 * Spec: RFC 7143 section 11.17.
 */
#include "target/iscsi/iscsi_int.h"

bool iscsi_reject(struct iscsi_session *session, const struct iscsi_bhs *bhs,
		  enum iscsi_reject_reason reason)
{
	struct iscsi_server *server = session->server;
	struct iscsi_cmd *cmd;

	session->errors.rejects++;
	log_limited(&server->limit_protocol, LOG_L_WARN, ISCSI_MODULE, session->initiator, "reject",
		    "opcode=%s reason=0x%02x itt=0x%x portal=%s", iscsi_opcode_name(bhs->opcode),
		    (unsigned)reason, iscsi_itt(bhs), session->portal_name);
	cmd = iscsi_cmd_new(session, bhs, 0);
	if (!cmd) {
		/* It sends rubbish faster than it reads our opinion of it. */
		iscsi_conn_close(session->conn, "too many rejected requests");
		return false;
	}
	memcpy(cmd->small, bhs, ISCSI_BHS_BYTES);
	cmd->bhs.opcode = ISCSI_REJECT;
	cmd->response = (uint8_t)reason;
	cmd->state = ISCSI_CMD_ANSWERING;
	iscsi_cmd_answer(cmd);
	return true;
}

bool iscsi_reject_produce(struct iscsi_cmd *cmd)
{
	struct iscsi_tx_data data = { .data = cmd->small, .length = ISCSI_BHS_BYTES };
	struct iscsi_bhs bhs;

	iscsi_bhs_init(&bhs, ISCSI_REJECT, ISCSI_FINAL, ISCSI_NO_TAG);
	bhs.byte2 = cmd->response;
	iscsi_stamp(cmd->session, &bhs, true);
	cmd->in_tx++;
	iscsi_tx_add(&cmd->session->conn->tx, &bhs, &data, cmd);
	return true;
}
