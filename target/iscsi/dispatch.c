/* SPDX-License-Identifier: MIT */
/*
 * Full feature phase: PDUs in, by table and in the order of their numbers.
 *
 *   header ─▶ sizes by table ─▶ number ─▶ NEXT ─▶ whole PDU ─▶ exp+1 ─▶ run
 *                  │              ├─ HOLD ─▶ whole PDU ─▶ held until its turn
 *                  ▼              └─ DROP ─▶ skipped
 *               reject
 *
 * Invariants:
 * 1. ExpCmdSN moves when a PDU is whole and right; a damaged or rejected one
 *    leaves the gap for the initiator to fill.
 * 2. Immediate requests run at once, from the reserve of command structures.
 * 3. A request whose tag is in use never gets a second structure.
 *
 * Not here: bytes (rx.c), what requests do (command.c, nop.c, tmf.c, ...).
 *
 * Spec: RFC 7143 sections 4.2.2, 7.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "target/iscsi/iscsi_int.h"

static const struct {
	void (*run)(struct iscsi_cmd *cmd);
	uint8_t reject; /* what has no run */
} handlers[ISCSI_OPCODE_MASK + 1] = {
	[ISCSI_NOP_OUT] = { iscsi_nop_run, 0 },
	[ISCSI_SCSI_COMMAND] = { iscsi_command_run, 0 },
	[ISCSI_TMF_REQUEST] = { iscsi_tmf_run, 0 },
	[ISCSI_TEXT_REQUEST] = { iscsi_text_run, 0 },
	[ISCSI_LOGOUT_REQUEST] = { iscsi_logout_run, 0 },
	[ISCSI_LOGIN_REQUEST] = { NULL, ISCSI_REJECT_PROTOCOL },
	[ISCSI_SNACK] = { NULL, ISCSI_REJECT_SNACK },
};

void iscsi_run(struct iscsi_cmd *cmd)
{
	handlers[iscsi_opcode(&cmd->bhs)].run(cmd);
}

static void run_fenced(struct iscsi_session *session)
{
	struct iscsi_cmd *cmd, *next;

	TAILQ_FOREACH_SAFE(cmd, &session->fenced, link, next) {
		if (sna_lt(session->window.exp, iscsi_cmdsn(&cmd->bhs)))
			continue;
		TAILQ_REMOVE(&session->fenced, cmd, link);
		cmd->fenced = false;
		iscsi_run(cmd);
	}
}

void iscsi_run_held(struct iscsi_session *session)
{
	struct iscsi_cmd *cmd;

	do {
		if (!TAILQ_EMPTY(&session->fenced))
			run_fenced(session);
		if (!session->conn)
			return;
		cmd = iscsi_window_take(&session->window);
		if (cmd) {
			cmd->numbered = true;
			iscsi_run(cmd);
		}
	} while (cmd && session->conn);
}

/* Structures that must stay free for what the window allows. */
static unsigned kept_for_window(const struct iscsi_session *session)
{
	const struct iscsi_window *w = &session->window;

	return w->size - w->outstanding - w->held_count;
}

/* A command structure for a numbered request; NULL: it is dropped or rejected. */
static struct iscsi_cmd *begin(struct iscsi_conn *conn, const struct iscsi_pdu *pdu)
{
	struct iscsi_session *session = conn->session;
	uint32_t itt = iscsi_itt(&pdu->bhs);
	struct iscsi_cmd *other, *cmd;

	conn->order = ISCSI_WINDOW_NEXT;
	if (!iscsi_is_immediate(&pdu->bhs))
		conn->order = iscsi_window_check(&session->window, iscsi_cmdsn(&pdu->bhs));
	if (conn->order == ISCSI_WINDOW_DROP)
		return NULL;
	other = itt == ISCSI_NO_TAG ? NULL : iscsi_cmd_find(session, itt);
	if (other && other->state != ISCSI_CMD_OVER) {
		conn->reject = ISCSI_REJECT_IN_PROGRESS;
		return NULL;
	}
	if (iscsi_is_immediate(&pdu->bhs)) {
		cmd = iscsi_cmd_new(session, &pdu->bhs,
				    kept_for_window(session) + ISCSI_RESERVE_REJECT);
		if (!cmd)
			conn->reject = ISCSI_REJECT_IMMEDIATE;
	} else {
		/* None left: it uses numbers that it cannot know to be free yet. */
		cmd = iscsi_cmd_new(session, &pdu->bhs, 0);
	}
	if (cmd && itt != ISCSI_NO_TAG)
		iscsi_cmd_hash(cmd);
	return cmd;
}

static bool full_header(struct iscsi_conn *conn, struct iscsi_pdu *pdu, struct iscsi_dest *dest)
{
	struct iscsi_session *session = conn->session;
	uint8_t opcode = iscsi_opcode(&pdu->bhs);

	conn->current = NULL;
	conn->reject = 0;
	conn->order = ISCSI_WINDOW_DROP;
	switch (iscsi_pdu_check(&pdu->bhs, session->params.max_recv, session->discovery)) {
	case ISCSI_PDU_FATAL:
		session->errors.protocol++;
		iscsi_conn_close(conn, "PDU longer than MaxRecvDataSegmentLength");
		return false;
	case ISCSI_PDU_UNKNOWN:
		conn->reject = ISCSI_REJECT_UNSUPPORTED;
		return true;
	case ISCSI_PDU_PROTOCOL:
		conn->reject = ISCSI_REJECT_PROTOCOL;
		return true;
	case ISCSI_PDU_OK:
		break;
	}
	if (session->state == ISCSI_SESSION_LOGOUT)
		return true;
	if (opcode == ISCSI_DATA_OUT)
		return iscsi_data_out_header(conn, pdu, dest);
	if (!handlers[opcode].run) {
		conn->reject = handlers[opcode].reject;
		return true;
	}
	conn->current = begin(conn, pdu);
	if (!conn->current)
		return true;
	conn->current->receiving = true;
	if (opcode == ISCSI_SCSI_COMMAND)
		iscsi_command_header(conn->current, conn, pdu, dest);
	else if (opcode == ISCSI_NOP_OUT)
		iscsi_nop_header(conn->current, pdu, dest);
	else if (opcode == ISCSI_TEXT_REQUEST)
		*dest = (struct iscsi_dest){ .sink = ISCSI_SINK_CONTROL, .control = conn->control };
	return true;
}

/* A request that does not count: as if it had not come. */
static bool refuse(struct iscsi_conn *conn, const struct iscsi_pdu *pdu, uint8_t reason)
{
	struct iscsi_session *session = conn->session;
	struct iscsi_cmd *cmd = conn->current;

	conn->current = NULL;
	if (reason == ISCSI_REJECT_DATA_DIGEST)
		session->errors.data_digest++;
	else
		session->errors.protocol++;
	if (cmd) {
		cmd->receiving = false;
		if (cmd->state == ISCSI_CMD_RECEIVED)
			iscsi_command_withdraw(cmd);
		else
			iscsi_cmd_release(cmd);
	}
	return iscsi_reject(session, &pdu->bhs, (enum iscsi_reject_reason)reason);
}

static bool hold(struct iscsi_conn *conn, const struct iscsi_pdu *pdu, struct iscsi_cmd *cmd)
{
	cmd->receiving = false;
	if (pdu->control && pdu->length) {
		cmd->held_text = malloc(pdu->length);
		if (!cmd->held_text) {
			conn->current = cmd;
			return refuse(conn, pdu, ISCSI_REJECT_RESOURCES);
		}
		memcpy(cmd->held_text, pdu->control, pdu->length);
		cmd->held_text_bytes = pdu->length;
	}
	iscsi_window_hold(&conn->session->window, iscsi_cmdsn(&pdu->bhs), cmd);
	return true;
}

static bool full_pdu(struct iscsi_conn *conn, const struct iscsi_pdu *pdu, bool digest_ok)
{
	struct iscsi_session *session = conn->session;
	struct iscsi_cmd *cmd = conn->current;

	if (conn->reject)
		return refuse(conn, pdu, conn->reject);
	if (iscsi_opcode(&pdu->bhs) == ISCSI_DATA_OUT) {
		iscsi_data_out_arrived(conn, digest_ok);
		return conn->state == ISCSI_CONN_FULL;
	}
	if (!digest_ok)
		return refuse(conn, pdu, ISCSI_REJECT_DATA_DIGEST);
	conn->current = NULL;
	if (!cmd)
		return true;
	if (conn->order == ISCSI_WINDOW_HOLD)
		return hold(conn, pdu, cmd);
	if (!iscsi_is_immediate(&pdu->bhs)) {
		iscsi_window_advance(&session->window);
		cmd->numbered = true;
	}
	if (cmd->state == ISCSI_CMD_RECEIVED) {
		cmd->receiving = false;
		iscsi_run(cmd);
	} else {
		/* Its task was aborted while its data came in. */
		iscsi_command_received(cmd);
	}
	if (conn->state == ISCSI_CONN_FULL &&
	    (session->window.held_count || !TAILQ_EMPTY(&session->fenced)))
		iscsi_run_held(session);
	return conn->state == ISCSI_CONN_FULL;
}

static bool on_header(void *arg, struct iscsi_pdu *pdu, struct iscsi_dest *dest)
{
	struct iscsi_conn *conn = arg;

	if (conn->state == ISCSI_CONN_LOGIN)
		return iscsi_login_header(conn, pdu, dest);
	if (conn->state != ISCSI_CONN_FULL)
		return false;
	return full_header(conn, pdu, dest);
}

static bool on_pdu(void *arg, struct iscsi_pdu *pdu, bool digest_ok)
{
	struct iscsi_conn *conn = arg;

	if (conn->state == ISCSI_CONN_LOGIN)
		return iscsi_login_pdu(conn, pdu);
	if (conn->state != ISCSI_CONN_FULL)
		return false;
	return full_pdu(conn, pdu, digest_ok);
}

static ssize_t on_readv(void *arg, struct iovec *iov, unsigned count)
{
	struct iscsi_conn *conn = arg;
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = count };

	return recvmsg(conn->fd, &msg, MSG_DONTWAIT);
}

const struct iscsi_rx_ops iscsi_conn_rx_ops = {
	.header = on_header,
	.pdu = on_pdu,
	.readv = on_readv,
};
