/* SPDX-License-Identifier: MIT */
/*
 * What goes out next: sequence numbers, and the line of commands with an answer.
 *
 * Invariants:
 * 1. StatSN is given when a PDU enters the transmit queue, so it rises in the
 *    order of sending, whatever finished first.
 * 2. Every PDU tells the newest ExpCmdSN and MaxCmdSN; where the window opens
 *    after it was told closed and nothing else goes out, a NOP-In tells it.
 *
 * Not here: bytes (tx.c), what each answer looks like (data_in.c, nop.c, ...).
 *
 * Spec: RFC 7143 section 4.2.2.
 */
#include "target/iscsi/iscsi_int.h"

void iscsi_stamp(struct iscsi_session *session, struct iscsi_bhs *bhs, bool numbered)
{
	struct iscsi_window *window = &session->window;

	put_be32(bhs->word24, session->statsn);
	if (numbered)
		session->statsn++;
	window->told_max = iscsi_window_max(window);
	put_be32(bhs->word28, window->exp);
	put_be32(bhs->word32, window->told_max);
	if (window->told_max != window->exp - 1)
		session->want_window = false;
}

static bool produce(struct iscsi_cmd *cmd)
{
	switch (iscsi_opcode(&cmd->bhs)) {
	case ISCSI_SCSI_COMMAND:
		if (cmd->state == ISCSI_CMD_GATHERING)
			return iscsi_data_out_produce(cmd);
		return iscsi_scsi_produce(cmd);
	case ISCSI_NOP_OUT:
		return iscsi_nop_produce(cmd);
	case ISCSI_TMF_REQUEST:
		return iscsi_tmf_produce(cmd);
	case ISCSI_TEXT_REQUEST:
		return iscsi_text_produce(cmd);
	case ISCSI_LOGOUT_REQUEST:
		return iscsi_logout_produce(cmd);
	default:
		return iscsi_reject_produce(cmd);
	}
}

void iscsi_answer(struct iscsi_session *session)
{
	struct iscsi_tx *tx = &session->conn->tx;
	struct iscsi_cmd *cmd;

	while (!session->close_when_sent && iscsi_tx_room(tx) &&
	       (cmd = TAILQ_FIRST(&session->answers))) {
		bool gathering = cmd->state == ISCSI_CMD_GATHERING;

		if (!produce(cmd))
			break;
		TAILQ_REMOVE(&session->answers, cmd, answer_link);
		cmd->queued = false;
		if (!gathering)
			iscsi_cmd_over(cmd);
	}
	if (session->close_when_sent)
		return;
	if (session->want_async && iscsi_tx_room(tx))
		iscsi_async_produce(session);
	if (session->want_ping && iscsi_tx_room(tx))
		iscsi_nop_in(session, true);
	if (session->want_window && iscsi_tx_room(tx)) {
		session->want_window = false;
		iscsi_nop_in(session, false);
	}
}

bool iscsi_answers_left(const struct iscsi_session *session)
{
	if (session->close_when_sent)
		return false;
	return !TAILQ_EMPTY(&session->answers) || session->want_async || session->want_ping ||
	       session->want_window;
}
