/* SPDX-License-Identifier: MIT */
/*
 * Data-Out on the connection: R2Ts out, data into the task's buffers, deadlines.
 *
 * Invariants:
 * 1. Data for a task that is no more (aborted, answered, never there) is
 *    dropped without a word.
 * 2. `owing` holds exactly the commands whose initiator owes data, the one
 *    longest without progress first; only they make the connection's Data-Out
 *    time run. A stalled store does not.
 *
 * Not here: the plan of sequences (data_out.c).
 *
 * Spec: RFC 7143 sections 11.7, 11.8.
 */
#include "target/iscsi/iscsi_int.h"

static void watch_time(struct iscsi_session *session)
{
	struct iscsi_cmd *first = TAILQ_FIRST(&session->owing);
	struct env *env = session->server->env;
	uint64_t due, now = env_now_ns(env);

	if (!first || !session->target) {
		env_timer_cancel(env, &session->data_timer);
		return;
	}
	due = first->progress_ns + session->target->data_out_timeout_ns;
	env_timer_set(env, &session->data_timer, due > now ? due - now : 0);
}

void iscsi_data_out_timer(struct env_timer *timer)
{
	struct iscsi_session *session = container_of(timer, struct iscsi_session, data_timer);
	struct iscsi_cmd *first = TAILQ_FIRST(&session->owing);
	uint64_t now = env_now_ns(session->server->env);

	if (!first || !session->conn || !session->target)
		return;
	if (now - first->progress_ns < session->target->data_out_timeout_ns)
		watch_time(session);
	else
		iscsi_conn_close(session->conn, "data that was asked for did not come");
}

static void owing_add(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;
	bool first = TAILQ_EMPTY(&session->owing);

	cmd->progress_ns = env_now_ns(session->server->env);
	TAILQ_INSERT_TAIL(&session->owing, cmd, link);
	/* The timer finds by itself that others were served meanwhile. */
	if (first && !session->data_timer.armed)
		watch_time(session);
}

void iscsi_data_out_stop(struct iscsi_cmd *cmd)
{
	TAILQ_REMOVE(&cmd->session->owing, cmd, link);
	if (cmd->queued) {
		TAILQ_REMOVE(&cmd->session->answers, cmd, answer_link);
		cmd->queued = false;
	}
}

void iscsi_data_out_go(struct iscsi_cmd *cmd)
{
	if (iscsi_data_out_complete(&cmd->out)) {
		if (cmd->state == ISCSI_CMD_GATHERING)
			iscsi_data_out_stop(cmd);
		iscsi_command_submit(cmd);
		return;
	}
	if (cmd->state == ISCSI_CMD_GATHERING)
		TAILQ_REMOVE(&cmd->session->owing, cmd, link);
	cmd->state = ISCSI_CMD_GATHERING;
	owing_add(cmd);
	if (iscsi_data_out_may_ask(&cmd->out))
		iscsi_cmd_answer(cmd);
}

/* A Target Transfer Tag is the R2TSN, and a bit that keeps it off the reserved value. */
#define TTT_BASE 0x10000000u

bool iscsi_data_out_produce(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;
	struct iscsi_tx *tx = &session->conn->tx;
	struct iscsi_r2t r2t;
	struct iscsi_bhs bhs;

	while (iscsi_tx_room(tx)) {
		if (!iscsi_data_out_ask(&cmd->out, &r2t))
			return true;
		iscsi_bhs_init(&bhs, ISCSI_R2T, ISCSI_FINAL, iscsi_itt(&cmd->bhs));
		memcpy(bhs.lun, cmd->bhs.lun, sizeof(bhs.lun));
		put_be32(bhs.word20, TTT_BASE | r2t.sn);
		put_be32(bhs.word36, r2t.sn);
		put_be32(bhs.word40, (uint32_t)r2t.offset);
		put_be32(bhs.word44, r2t.length);
		iscsi_stamp(session, &bhs, false);
		iscsi_tx_add(tx, &bhs, NULL, NULL);
		/* Its time begins anew: it goes behind those that wait longer. */
		TAILQ_REMOVE(&session->owing, cmd, link);
		owing_add(cmd);
	}
	return !iscsi_data_out_may_ask(&cmd->out);
}

bool iscsi_data_out_header(struct iscsi_conn *conn, const struct iscsi_pdu *pdu,
			   struct iscsi_dest *dest)
{
	struct iscsi_cmd *cmd = iscsi_cmd_find(conn->session, iscsi_itt(&pdu->bhs));
	struct iscsi_data_pdu data = {
		.solicited = iscsi_ttt(&pdu->bhs) != ISCSI_NO_TAG,
		.r2t_sn = iscsi_ttt(&pdu->bhs) ^ TTT_BASE,
		.datasn = get_be32(pdu->bhs.word36),
		.offset = get_be32(pdu->bhs.word40),
		.length = pdu->length,
		.final = pdu->bhs.flags & ISCSI_FINAL,
	};

	conn->current = NULL;
	if (!cmd || iscsi_opcode(&cmd->bhs) != ISCSI_SCSI_COMMAND)
		return true;
	if (cmd->state == ISCSI_CMD_WAITING || (cmd->state == ISCSI_CMD_RECEIVED)) {
		/* Nothing was asked for yet, or its turn has not come: noted, told at its end. */
		iscsi_data_out_fail(&cmd->out, ISCSI_DATA_UNSOLICITED);
		cmd->final |= data.final;
		return true;
	}
	if (cmd->state != ISCSI_CMD_GATHERING)
		return true;
	conn->current = cmd;
	cmd->receiving = true;
	if (iscsi_data_out_pdu(&cmd->out, &data) && cmd->units)
		*dest = (struct iscsi_dest){ .sink = ISCSI_SINK_LIST,
					     .list = &cmd->task.data,
					     .offset = data.offset };
	return true;
}

void iscsi_data_out_arrived(struct iscsi_conn *conn, bool digest_ok)
{
	struct iscsi_cmd *cmd = conn->current;

	conn->current = NULL;
	if (!digest_ok) {
		conn->session->errors.data_digest++;
		if (!iscsi_reject(conn->session, &conn->rx.pdu.bhs, ISCSI_REJECT_DATA_DIGEST))
			return;
	}
	if (!cmd)
		return;
	if (!digest_ok)
		iscsi_data_out_fail(&cmd->out, ISCSI_DATA_DIGEST);
	if (cmd->state == ISCSI_CMD_GATHERING) {
		cmd->receiving = false;
		/* A PDU without data is no progress. */
		if (conn->rx.pdu.length || iscsi_data_out_complete(&cmd->out) ||
		    iscsi_data_out_may_ask(&cmd->out))
			iscsi_data_out_go(cmd);
	} else {
		iscsi_command_received(cmd);
	}
}
