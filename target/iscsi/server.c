/* SPDX-License-Identifier: MIT */
/*
 * The server: what belongs to the process as a whole, and its orderly end.
 *
 *   stop(): listeners closed ─▶ logout asked of every session ─▶ STOP_GRACE_NS ─▶
 *           connections closed ─▶ sessions drain ─▶ stop_done
 *
 * Invariants:
 * 1. stop_done runs once, when no connection and no session is left.
 * 2. Nothing is freed while it has a connection or a session.
 *
 * Not here: portals (portal.c), targets (target.c), sessions (session.c).
 */
#include <stdlib.h>

#include "target/iscsi/iscsi_int.h"

#define STOP_GRACE_NS (500 * NS_PER_MS)
#define SESSIONS_LIMIT 32700u /* twice as many, with those that end, have TSIHs */

static void stop_told(struct env_defer *defer)
{
	struct iscsi_server *server = container_of(defer, struct iscsi_server, stop_defer);

	server->stop_done(server->stop_arg);
}

void iscsi_server_check_stopped(struct iscsi_server *server)
{
	if (!server->stopping || server->conn_count || server->session_count || server->stop_told)
		return;
	server->stop_told = true;
	env_timer_cancel(server->env, &server->stop_timer);
	server->stop_defer.fn = stop_told;
	env_defer(server->env, &server->stop_defer);
}

static void on_grace_over(struct env_timer *timer)
{
	struct iscsi_server *server = container_of(timer, struct iscsi_server, stop_timer);
	struct iscsi_conn *conn, *next;

	TAILQ_FOREACH_SAFE(conn, &server->conns, link, next)
		iscsi_conn_close(conn, "yoked stops");
	iscsi_server_check_stopped(server);
}

struct iscsi_server *iscsi_server_new(struct shard *shard, struct buf_pool *buffers,
				      const struct iscsi_limits *limits)
{
	struct iscsi_server *server = calloc(1, sizeof(*server));

	if (!server)
		return NULL;
	server->shard = shard;
	server->loop = shard_loop(shard);
	server->env = shard_env(shard);
	server->pool = buffers;
	TAILQ_INIT(&server->portals);
	TAILQ_INIT(&server->targets);
	TAILQ_INIT(&server->conns);
	TAILQ_INIT(&server->backlog);
	server->backlog_timer.fn = iscsi_conn_backlog;
	TAILQ_INIT(&server->sessions);
	server->stop_timer.fn = on_grace_over;
	iscsi_admit_init(server);
	iscsi_server_set_limits(server, limits);
	return server;
}

void iscsi_server_set_limits(struct iscsi_server *server, const struct iscsi_limits *limits)
{
	server->limits = *limits;
	if (server->limits.sessions_max > SESSIONS_LIMIT)
		server->limits.sessions_max = SESSIONS_LIMIT;
	if (!server->limits.commands_per_session)
		server->limits.commands_per_session = 1;
}

void iscsi_server_stop(struct iscsi_server *server, void (*done)(void *arg), void *arg)
{
	struct iscsi_portal *portal;
	struct iscsi_conn *conn, *next;
	unsigned asked = 0;

	assert(!server->stopping);
	server->stopping = true;
	server->stop_done = done;
	server->stop_arg = arg;
	while ((portal = TAILQ_FIRST(&server->portals)))
		iscsi_portal_free(portal);
	TAILQ_FOREACH_SAFE(conn, &server->conns, link, next) {
		if (conn->state == ISCSI_CONN_FULL && !conn->session->discovery) {
			iscsi_async(conn->session, 1, 1);
			asked++;
		} else {
			iscsi_conn_close(conn, "yoked stops");
		}
	}
	if (asked)
		env_timer_set(server->env, &server->stop_timer, STOP_GRACE_NS);
	iscsi_server_check_stopped(server);
}

void iscsi_server_free(struct iscsi_server *server)
{
	struct iscsi_portal *portal;
	struct iscsi_target *target;

	assert(!server->conn_count && !server->session_count);
	assert(TAILQ_EMPTY(&server->waiting) && TAILQ_EMPTY(&server->backlog));
	while ((portal = TAILQ_FIRST(&server->portals)))
		iscsi_portal_free(portal);
	while ((target = TAILQ_FIRST(&server->targets)))
		iscsi_target_free(target);
	env_timer_cancel(server->env, &server->stop_timer);
	env_timer_cancel(server->env, &server->backlog_timer);
	assert(!server->admit_queued);
	iscsi_admit_fini(server);
	free(server);
}

void iscsi_server_stats(const struct iscsi_server *server, struct iscsi_stats *stats)
{
	const struct iscsi_conn *conn;

	*stats = server->totals;
	stats->connections = server->conn_count;
	stats->sessions = server->session_count;
	TAILQ_FOREACH(conn, &server->conns, link)
		iscsi_conn_stats(conn, stats);
}
