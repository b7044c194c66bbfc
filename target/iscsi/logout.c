/* SPDX-License-Identifier: MIT */
/*
 * Logout: the response, then FIN; what still runs is aborted with the session.
 *
 * Invariants:
 * 1. From the request on nothing else is taken; after the response nothing else is sent.
 * 2. What is refused (another connection, recovery) leaves the session as it was.
 *
 * Not here: the end of the session (session.c), FIN and linger (conn.c).
 *
 * Spec: RFC 7143 sections 11.14, 11.15.
 */
#include "target/iscsi/iscsi_int.h"

enum { CLOSE_SESSION, CLOSE_CONNECTION, REMOVE_FOR_RECOVERY };
enum { CLOSED, CID_NOT_FOUND, RECOVERY_NOT_SUPPORTED, CLEANUP_FAILED };

void iscsi_logout_run(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;

	switch (cmd->bhs.flags & 0x7f) {
	case CLOSE_SESSION:
		cmd->response = CLOSED;
		break;
	case CLOSE_CONNECTION:
		cmd->response = get_be16(cmd->bhs.word20) == session->cid ? CLOSED : CID_NOT_FOUND;
		break;
	case REMOVE_FOR_RECOVERY:
		cmd->response = RECOVERY_NOT_SUPPORTED;
		break;
	default:
		if (iscsi_reject(session, &cmd->bhs, ISCSI_REJECT_FIELD))
			iscsi_cmd_over(cmd);
		return;
	}
	if (cmd->response == CLOSED)
		session->state = ISCSI_SESSION_LOGOUT;
	cmd->state = ISCSI_CMD_ANSWERING;
	iscsi_cmd_answer(cmd);
}

bool iscsi_logout_produce(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;
	struct iscsi_bhs bhs;

	iscsi_bhs_init(&bhs, ISCSI_LOGOUT_RESPONSE, ISCSI_FINAL, iscsi_itt(&cmd->bhs));
	bhs.byte2 = cmd->response;
	put_be16(bhs.word40, (uint16_t)session->params.time2wait_s);
	put_be16(bhs.word40 + 2, (uint16_t)session->params.time2retain_s);
	iscsi_cmd_answered(cmd);
	iscsi_stamp(session, &bhs, true);
	cmd->in_tx++;
	iscsi_tx_add(&session->conn->tx, &bhs, NULL, cmd);
	if (cmd->response == CLOSED)
		session->close_when_sent = true;
	return true;
}
