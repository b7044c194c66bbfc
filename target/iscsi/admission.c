/* SPDX-License-Identifier: MIT */
/*
 * Who gets data buffers: whole or not at all, in order, and nobody all of them.
 *
 * A command that finds the pool short waits in its session; sessions take turns.
 *
 * Invariants:
 * 1. A session holds at most a quarter of the pool, a logical unit's commands at
 *    most half; each may always have one command's worth. The last eighth is for
 *    sessions that hold nothing. So a stalled logical unit, a greedy session, or
 *    several whose initiators do not read, leave room for the others.
 * 2. What waits for its own share is passed over; what waits for the pool itself
 *    is not, so that a large command is not starved by small ones.
 * 3. Express commands ask for little. They have shares of their own, and bulk I/O leaves them
 *    some of the pool: they wait for nothing that bulk I/O holds, and cannot fill the pool
 *    before a stalled logical unit either.
 * 4. Only SCSI commands come here to wait.
 *
 * Not here: the pool (core/buf.c), MaxCmdSN (window.c).
 */
#include <stdlib.h>

#include "target/iscsi/iscsi_int.h"

/* One unit in so many is kept for express commands. */
#define EXPRESS_PART 128

static struct iscsi_lun_use *use_of(struct iscsi_server *server, const struct scsi_lu *lu)
{
	unsigned at = (unsigned)((uintptr_t)lu >> 6) % ISCSI_LUN_HASH;
	struct iscsi_lun_use *use, *idle = NULL;

	LIST_FOREACH(use, &server->lun_use[at], link) {
		if (use->lu == lu)
			return use;
		if (!use->units && !use->express_units)
			idle = use;
	}
	use = idle ? idle : calloc(1, sizeof(*use));
	if (!use)
		return NULL;
	if (!idle)
		LIST_INSERT_HEAD(&server->lun_use[at], use, link);
	use->lu = lu;
	return use;
}

/* Something changed for those who wait: there is more, or who stood before them has gone. */
static void wake(struct iscsi_server *server)
{
	if (TAILQ_EMPTY(&server->waiting) || server->admit_queued)
		return;
	server->admit_queued = true;
	env_defer(server->env, &server->admit);
}

unsigned iscsi_admit_most(const struct iscsi_cmd *cmd)
{
	unsigned pool = buf_pool_units(cmd->session->server->pool);

	return cmd->task.express ? pool : pool - pool / EXPRESS_PART;
}

/* One command's worth is always in it. */
static bool in_share(unsigned held, unsigned more, unsigned share)
{
	return !held || held + more <= share;
}

/* By the shares alone. */
static bool share_allows(const struct iscsi_cmd *cmd, const struct iscsi_lun_use *use,
			 unsigned units)
{
	const struct iscsi_session *session = cmd->session;
	unsigned pool = buf_pool_units(session->server->pool);

	if (cmd->task.express)
		return in_share(session->express_units, units, pool / 32) &&
		       (!use || in_share(use->express_units, units, pool / 16));
	if (!in_share(session->units, units, pool / 4))
		return false;
	if (session->units && buf_pool_free_units(session->server->pool) < pool / 8 + units)
		return false;
	return !use || in_share(use->units, units, pool / 2);
}

static unsigned *session_units(const struct iscsi_cmd *cmd)
{
	return cmd->express ? &cmd->session->express_units : &cmd->session->units;
}

static unsigned *lun_units(const struct iscsi_cmd *cmd)
{
	return cmd->express ? &cmd->lun_use->express_units : &cmd->lun_use->units;
}

/* What is kept back for express commands stays. */
static bool pool_allows(const struct iscsi_cmd *cmd, unsigned units)
{
	const struct buf_pool *pool = cmd->session->server->pool;
	unsigned kept = buf_pool_units(pool) - iscsi_admit_most(cmd);

	return buf_pool_free_units(pool) >= units + kept;
}

bool iscsi_admit_now(struct iscsi_cmd *cmd, uint64_t bytes)
{
	struct iscsi_server *server = cmd->session->server;
	struct iscsi_lun_use *use = use_of(server, cmd->task.lu);
	unsigned units = buf_units(bytes);

	if (!bytes)
		return true;
	assert(!cmd->units);
	if (!share_allows(cmd, use, units) || !pool_allows(cmd, units) ||
	    !buf_take(server->pool, bytes, &cmd->task.data))
		return false;
	cmd->units = units;
	cmd->express = cmd->task.express;
	cmd->lun_use = use;
	*session_units(cmd) += units;
	if (use)
		*lun_units(cmd) += units;
	return true;
}

bool iscsi_admit(struct iscsi_cmd *cmd, uint64_t bytes)
{
	struct iscsi_session *session = cmd->session;

	/* Express commands and the first in line; the others would jump the queue. */
	if ((cmd->task.express || TAILQ_EMPTY(&session->server->waiting)) &&
	    iscsi_admit_now(cmd, bytes))
		return true;
	if (!bytes)
		return true;
	cmd->wait_bytes = bytes;
	cmd->state = ISCSI_CMD_WAITING;
	TAILQ_INSERT_TAIL(&session->waiting, cmd, link);
	if (!session->in_wait_list) {
		TAILQ_INSERT_TAIL(&session->server->waiting, session, wait_link);
		session->in_wait_list = true;
	}
	wake(session->server);
	return false;
}

static void leave(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;

	TAILQ_REMOVE(&session->waiting, cmd, link);
	if (TAILQ_EMPTY(&session->waiting)) {
		TAILQ_REMOVE(&session->server->waiting, session, wait_link);
		session->in_wait_list = false;
	}
}

void iscsi_admit_cancel(struct iscsi_cmd *cmd)
{
	if (cmd->state != ISCSI_CMD_WAITING)
		return;
	leave(cmd);
	wake(cmd->session->server);
}

static void forget(struct iscsi_cmd *cmd)
{
	*session_units(cmd) -= cmd->units;
	if (cmd->lun_use)
		*lun_units(cmd) -= cmd->units;
	cmd->units = 0;
	cmd->lun_use = NULL;
}

void iscsi_admit_give(struct iscsi_cmd *cmd)
{
	struct iscsi_server *server = cmd->session->server;

	if (!cmd->units)
		return;
	buf_give(server->pool, &cmd->task.data);
	forget(cmd);
	wake(server);
}

void iscsi_admit_detach(struct iscsi_cmd *cmd, struct buf_list *list)
{
	struct buf_list *data = &cmd->task.data;

	*list = *data;
	/* The table moves with the list that holds it. */
	if (data->iov == data->inline_iov)
		list->iov = list->inline_iov;
	*data = (struct buf_list){ 0 };
	forget(cmd);
}

void iscsi_admit_return(struct iscsi_server *server, struct buf_list *list)
{
	buf_give(server->pool, list);
	wake(server);
}

enum turn { GRANTED, ALL_BLOCKED, POOL_SHORT };

/* The first command of SESSION that its shares allow. */
static enum turn one_of(struct iscsi_session *session)
{
	struct iscsi_cmd *cmd;

	TAILQ_FOREACH(cmd, &session->waiting, link) {
		unsigned units = buf_units(cmd->wait_bytes);
		struct iscsi_lun_use *use = use_of(session->server, cmd->task.lu);

		if (!share_allows(cmd, use, units))
			continue;
		if (!iscsi_admit_now(cmd, cmd->wait_bytes))
			return POOL_SHORT;
		leave(cmd);
		cmd->state = ISCSI_CMD_RECEIVED;
		iscsi_command_granted(cmd);
		return GRANTED;
	}
	return ALL_BLOCKED;
}

static void admit_run(struct env_defer *defer)
{
	struct iscsi_server *server = container_of(defer, struct iscsi_server, admit);
	unsigned blocked = 0, sessions = 0;
	struct iscsi_session *session;

	server->admit_queued = false;
	TAILQ_FOREACH(session, &server->waiting, wait_link)
		sessions++;
	while (blocked < sessions && (session = TAILQ_FIRST(&server->waiting))) {
		enum turn turn;

		/* Its turn is over, whatever comes of it. */
		TAILQ_REMOVE(&server->waiting, session, wait_link);
		TAILQ_INSERT_TAIL(&server->waiting, session, wait_link);
		turn = one_of(session);
		if (turn == POOL_SHORT) {
			TAILQ_REMOVE(&server->waiting, session, wait_link);
			TAILQ_INSERT_HEAD(&server->waiting, session, wait_link);
			return;
		}
		blocked = turn == GRANTED ? 0 : blocked + 1;
	}
}

void iscsi_admit_init(struct iscsi_server *server)
{
	unsigned i;

	TAILQ_INIT(&server->waiting);
	for (i = 0; i < ISCSI_LUN_HASH; i++)
		LIST_INIT(&server->lun_use[i]);
	server->admit.fn = admit_run;
}

void iscsi_admit_fini(struct iscsi_server *server)
{
	struct iscsi_lun_use *use, *next;
	unsigned i;

	for (i = 0; i < ISCSI_LUN_HASH; i++) {
		LIST_FOREACH_SAFE(use, &server->lun_use[i], link, next) {
			assert(!use->units && !use->express_units);
			free(use);
		}
	}
}
