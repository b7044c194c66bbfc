/* SPDX-License-Identifier: MIT */
/*
 * NOP-Out answered, NOP-In asked: is the other side still there?
 *
 *   idle ──nop_interval──▶ ping out ──answer──▶ idle
 *                             └──nop_timeout──▶ connection closed
 *
 * Invariants:
 * 1. At most one ping is out; what nobody answers costs no memory.
 * 2. Echoed data never waits: where the pool has none left it is not echoed.
 *
 * Not here: the NOP-In that only tells the window (answer.c decides it).
 *
 * Spec: RFC 7143 sections 11.18, 11.19.
 */
#include "target/iscsi/iscsi_int.h"

void iscsi_nop_header(struct iscsi_cmd *cmd, const struct iscsi_pdu *pdu, struct iscsi_dest *dest)
{
	uint64_t bytes = min_u64(pdu->length, cmd->session->params.max_send);

	if (!bytes || iscsi_itt(&pdu->bhs) == ISCSI_NO_TAG || !iscsi_admit_now(cmd, bytes))
		return;
	cmd->echo_bytes = (uint32_t)bytes;
	*dest = (struct iscsi_dest){ .sink = ISCSI_SINK_LIST, .list = &cmd->task.data };
}

static void set_timer(struct iscsi_session *session, uint64_t delay_ns)
{
	if (session->target && session->target->nop_interval_ns)
		env_timer_set(session->server->env, &session->nop_timer, delay_ns);
}

void iscsi_nop_start(struct iscsi_session *session)
{
	if (session->target && session->target->nop_interval_ns)
		set_timer(session, session->target->nop_interval_ns);
	else
		env_timer_cancel(session->server->env, &session->nop_timer);
}

void iscsi_nop_run(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;

	if (iscsi_itt(&cmd->bhs) != ISCSI_NO_TAG) {
		cmd->state = ISCSI_CMD_ANSWERING;
		iscsi_cmd_answer(cmd);
		return;
	}
	if (session->nop_out && iscsi_ttt(&cmd->bhs) == session->nop_tag) {
		session->nop_out = false;
		iscsi_nop_start(session);
	}
	iscsi_cmd_over(cmd);
}

bool iscsi_nop_produce(struct iscsi_cmd *cmd)
{
	struct iscsi_tx_data data = { .list = &cmd->task.data, .length = cmd->echo_bytes };
	struct iscsi_bhs bhs;

	iscsi_bhs_init(&bhs, ISCSI_NOP_IN, ISCSI_FINAL, iscsi_itt(&cmd->bhs));
	memcpy(bhs.lun, cmd->bhs.lun, sizeof(bhs.lun));
	put_be32(bhs.word20, ISCSI_NO_TAG);
	iscsi_cmd_answered(cmd);
	iscsi_stamp(cmd->session, &bhs, true);
	cmd->in_tx++;
	iscsi_tx_add(&cmd->session->conn->tx, &bhs, &data, cmd);
	return true;
}

void iscsi_nop_in(struct iscsi_session *session, bool ping)
{
	struct iscsi_bhs bhs;

	iscsi_bhs_init(&bhs, ISCSI_NOP_IN, ISCSI_FINAL, ISCSI_NO_TAG);
	if (ping) {
		session->want_ping = false;
		session->nop_out = true;
		session->nop_tag = (session->nop_tag + 1) & 0x7fffffff;
	}
	put_be32(bhs.word20, ping ? session->nop_tag : ISCSI_NO_TAG);
	iscsi_stamp(session, &bhs, false);
	iscsi_tx_add(&session->conn->tx, &bhs, NULL, NULL);
}

void iscsi_nop_timer(struct env_timer *timer)
{
	struct iscsi_session *session = container_of(timer, struct iscsi_session, nop_timer);

	if (!session->conn || session->state != ISCSI_SESSION_UP)
		return;
	/* Asked and not answered; or not even that got out of our socket. */
	if (session->nop_out || session->want_ping) {
		iscsi_conn_close(session->conn, "NOP-In not answered");
		return;
	}
	session->want_ping = true;
	set_timer(session, session->target->nop_timeout_ns);
	iscsi_conn_kick(session->conn);
}
