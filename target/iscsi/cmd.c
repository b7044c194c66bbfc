/* SPDX-License-Identifier: MIT */
/*
 * The command structures of a session: a fixed pool, allocated with it.
 *
 * Who may hold a structure: the task set (entered), the answer queue (queued),
 * the transmit queue (in_tx), a PDU that is coming in (receiving). Each lets go
 * by itself; the last one frees it.
 *
 * Invariants:
 * 1. A request inside the window finds a structure: the pool has the window's
 *    size, and ISCSI_RESERVE more for what is not numbered.
 * 2. A number goes back to the window exactly once: when the answer is made
 *    that tells so, or when the structure is freed without one.
 * 3. Buffers are given back before the structure is free.
 *
 * Not here: what commands do (command.c, tmf.c, ...), buffers (admission.c).
 */
#include <stdlib.h>

#include "target/iscsi/iscsi_int.h"

static struct iscsi_cmd_bucket *bucket(struct iscsi_session *session, uint32_t itt)
{
	return &session->hash[(itt ^ itt >> 16) % ISCSI_HASH];
}

struct iscsi_cmd *iscsi_cmd_new(struct iscsi_session *session, const struct iscsi_bhs *bhs,
				unsigned keep)
{
	struct iscsi_cmd *cmd = TAILQ_FIRST(&session->free);

	if (session->cmd_count - session->cmd_used <= keep)
		return NULL;
	if (cmd)
		TAILQ_REMOVE(&session->free, cmd, link);
	else
		cmd = &session->cmds[session->cmd_touched++];
	session->cmd_used++;
	memset(cmd, 0, sizeof(*cmd));
	cmd->session = session;
	cmd->bhs = *bhs;
	cmd->state = ISCSI_CMD_RECEIVED;
	cmd->start_ns = env_now_ns(session->server->env);
	return cmd;
}

void iscsi_cmd_hash(struct iscsi_cmd *cmd)
{
	LIST_INSERT_HEAD(bucket(cmd->session, iscsi_itt(&cmd->bhs)), cmd, hash_link);
	cmd->hashed = true;
}

struct iscsi_cmd *iscsi_cmd_find(struct iscsi_session *session, uint32_t itt)
{
	struct iscsi_cmd *cmd;

	LIST_FOREACH(cmd, bucket(session, itt), hash_link)
		if (iscsi_itt(&cmd->bhs) == itt)
			return cmd;
	return NULL;
}

void iscsi_cmd_answered(struct iscsi_cmd *cmd)
{
	if (!cmd->numbered)
		return;
	cmd->numbered = false;
	iscsi_window_release(&cmd->session->window);
}

/* A number goes back without an answer: the initiator may wait for just that. */
static void number_without_answer(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;
	bool closed = session->window.told_max == session->window.exp - 1;

	if (!cmd->numbered)
		return;
	iscsi_cmd_answered(cmd);
	if (closed && session->conn) {
		session->want_window = true;
		iscsi_conn_kick(session->conn);
	}
}

static void cmd_free(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;

	number_without_answer(cmd);
	if (cmd->hashed)
		LIST_REMOVE(cmd, hash_link);
	iscsi_admit_give(cmd);
	free(cmd->held_text);
	cmd->held_text = NULL;
	cmd->state = ISCSI_CMD_FREE;
	TAILQ_INSERT_HEAD(&session->free, cmd, link);
	assert(session->cmd_used);
	session->cmd_used--;
	iscsi_session_check_end(session);
}

void iscsi_cmd_release(struct iscsi_cmd *cmd)
{
	if (cmd->state != ISCSI_CMD_OVER || cmd->entered || cmd->queued || cmd->in_tx ||
	    cmd->receiving)
		return;
	cmd_free(cmd);
}

void iscsi_cmd_over(struct iscsi_cmd *cmd)
{
	assert(cmd->state != ISCSI_CMD_FREE);
	if (cmd->queued) {
		TAILQ_REMOVE(&cmd->session->answers, cmd, answer_link);
		cmd->queued = false;
	}
	cmd->state = ISCSI_CMD_OVER;
	iscsi_cmd_release(cmd);
}

void iscsi_cmd_answer(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;

	if (!session->conn) {
		iscsi_cmd_over(cmd);
		return;
	}
	if (!cmd->queued) {
		TAILQ_INSERT_TAIL(&session->answers, cmd, answer_link);
		cmd->queued = true;
	}
	iscsi_conn_kick(session->conn);
}
