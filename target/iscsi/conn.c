/* SPDX-License-Identifier: MIT */
/*
 * A connection: its socket, what it reads and sends in a turn, and its end.
 *
 *   accept ─▶ LOGIN ─▶ LAST_RESPONSE ─▶ FULL ─▶ ENDING ─▶ LINGER ─▶ DEAD
 *               │   login_conn.c   login_finish()  conn_end()  flush   │
 *               └──────────── conn_close(), from any state ────────────┘
 *
 * Invariants:
 * 1. Before full feature phase a connection costs at most ISCSI_LOGIN_MEMORY.
 * 2. In one turn a connection takes at most ISCSI_TURN_PDUS or ISCSI_TURN_BYTES,
 *    what requests read counted in, all together at most ISCSI_TURN_PDUS_ALL or
 *    ISCSI_TURN_BYTES_ALL; the rest waits in the backlog for the next turn, who
 *    waited longest first.
 * 3. Answers of a turn go out together at its end.
 * 4. A closed connection's memory lives until the callbacks of the turn are over.
 *
 * Not here: PDUs (dispatch.c, login_conn.c), listening (portal.c).
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "target/iscsi/iscsi_int.h"

#define LINGER_NS (2 * NS_PER_S)
#define FLUSH_BYTES (512 * KIB)

static_assert(sizeof(struct iscsi_conn) + sizeof(struct iscsi_login) + ISCSI_RX_SMALL +
			      ISCSI_TX_SLOTS_LOGIN * sizeof(struct iscsi_tx_slot) <=
		      ISCSI_LOGIN_MEMORY,
	      "a connection that has not logged in is cheap");

static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
	      "both families have the port in one place");

uint16_t iscsi_address_port(const struct sockaddr_storage *addr)
{
	return get_be16((const uint8_t *)addr + offsetof(struct sockaddr_in, sin_port));
}

void iscsi_address_text(const struct sockaddr_storage *addr, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (addr->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

		if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
			inet_ntop(AF_INET, &in6->sin6_addr.s6_addr[12], host, sizeof(host));
			snprintf(text, size, "%s:%u", host, ntohs(in6->sin6_port));
			return;
		}
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(text, size, "[%s]:%u", host, ntohs(in6->sin6_port));
	} else if (addr->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(text, size, "%s:%u", host, ntohs(in->sin_port));
	} else {
		snprintf(text, size, "local");
	}
}

static void conn_free(struct env_defer *defer)
{
	struct iscsi_conn *conn = container_of(defer, struct iscsi_conn, bury);
	struct iscsi_server *server = conn->server;

	iscsi_rx_fini(&conn->rx);
	iscsi_tx_fini(&conn->tx);
	free(conn->login);
	free(conn->control);
	free(conn);
	server->conn_count--;
	iscsi_server_check_stopped(server);
}

void iscsi_conn_stats(const struct iscsi_conn *conn, struct iscsi_stats *stats)
{
	stats->pdus_in += conn->rx.pdus;
	stats->pdus_out += conn->tx.pdus;
	stats->payload_copies += conn->rx.payload_copies;
}

static void count_syscalls(struct iscsi_conn *conn)
{
	unsigned n = conn->rx.syscalls + conn->tx.syscalls;

	conn->rx.syscalls = conn->tx.syscalls = 0;
	conn->server->totals.syscalls += n;
	loop_count_syscalls(conn->server->loop, n);
}

void iscsi_conn_close(struct iscsi_conn *conn, const char *reason)
{
	struct iscsi_server *server = conn->server;
	struct iscsi_session *session = conn->session;

	if (conn->state == ISCSI_CONN_DEAD)
		return;
	if (conn->state == ISCSI_CONN_LOGIN)
		log_limited(&server->limit_closed, LOG_L_INFO, ISCSI_MODULE, conn->remote, "closed",
			    "portal=%s reason=\"%s\"", conn->portal_name, reason);
	conn->state = ISCSI_CONN_DEAD;
	ev_io_stop(loop_ev(server->loop), &conn->read_watcher);
	ev_io_stop(loop_ev(server->loop), &conn->write_watcher);
	env_timer_cancel(server->env, &conn->timer);
	if (conn->backlogged)
		TAILQ_REMOVE(&server->backlog, conn, backlog_link);
	conn->backlogged = false;
	loop_hook_cancel(server->loop, &conn->flush);
	close(conn->fd);
	conn->fd = -1;
	conn->rx.syscalls++;
	count_syscalls(conn);
	conn->current = NULL;
	conn->session = NULL;
	TAILQ_REMOVE(&server->conns, conn, link);
	iscsi_conn_stats(conn, &server->totals);
	if (session)
		iscsi_session_end(session, reason);
	iscsi_tx_drop(&conn->tx);
	env_defer(server->env, &conn->bury);
}

static void linger(struct iscsi_conn *conn)
{
	conn->state = ISCSI_CONN_LINGER;
	conn->rx.syscalls++;
	if (shutdown(conn->fd, SHUT_WR)) {
		iscsi_conn_close(conn, "closed");
		return;
	}
	ev_io_start(loop_ev(conn->server->loop), &conn->read_watcher);
	env_timer_set(conn->server->env, &conn->timer, LINGER_NS);
}

void iscsi_conn_end(struct iscsi_conn *conn, const char *reason)
{
	struct iscsi_session *session = conn->session;

	if (conn->state >= ISCSI_CONN_ENDING)
		return;
	conn->state = ISCSI_CONN_ENDING;
	conn->current = NULL;
	conn->session = NULL;
	ev_io_stop(loop_ev(conn->server->loop), &conn->read_watcher);
	env_timer_set(conn->server->env, &conn->timer, LINGER_NS);
	if (session)
		iscsi_session_end(session, reason);
	iscsi_conn_kick(conn);
}

void iscsi_conn_kick(struct iscsi_conn *conn)
{
	if (conn->state != ISCSI_CONN_DEAD && !ev_is_active(&conn->write_watcher))
		loop_at_turn_end(conn->server->loop, &conn->flush);
}

/* Everything queued is in the socket. */
static void drained(struct iscsi_conn *conn)
{
	if (conn->state == ISCSI_CONN_LAST_RESPONSE)
		iscsi_login_finish(conn);
	else if (conn->state == ISCSI_CONN_ENDING)
		linger(conn);
	else if (conn->session && conn->session->close_when_sent)
		iscsi_conn_end(conn,
			       conn->session->state == ISCSI_SESSION_LOGOUT ? "logout" : "reset");
}

/* What was done in this turn; a new one begins at nothing. */
static struct iscsi_server *this_turn(struct iscsi_conn *conn)
{
	struct iscsi_server *server = conn->server;
	uint64_t now = env_now_ns(server->env);

	if (server->turn_ns != now) {
		server->turn_ns = now;
		server->turn_pdus = 0;
		server->turn_bytes = 0;
		server->turn_sent = 0;
	}
	return server;
}

static bool turn_is_full(const struct iscsi_server *server)
{
	return server->turn_pdus >= ISCSI_TURN_PDUS_ALL ||
	       server->turn_bytes >= ISCSI_TURN_BYTES_ALL;
}

static bool has_more(const struct iscsi_conn *conn)
{
	return conn->state == ISCSI_CONN_FULL && iscsi_answers_left(conn->session);
}

static void send_all(struct iscsi_conn *conn)
{
	struct iscsi_server *server = this_turn(conn);
	struct ev_loop *ev = loop_ev(server->loop);
	uint64_t start = conn->tx.bytes, end = start + FLUSH_BYTES;
	enum iscsi_tx_result result;

	if (server->turn_sent >= ISCSI_TURN_BYTES_ALL) {
		ev_io_start(ev, &conn->write_watcher);
		return;
	}
	do {
		if (conn->state == ISCSI_CONN_FULL)
			iscsi_answer(conn->session);
		result = iscsi_tx_flush(&conn->tx);
	} while (result == ISCSI_TX_EMPTY && has_more(conn) && conn->tx.bytes < end);
	server->turn_sent += conn->tx.bytes - start;
	count_syscalls(conn);
	if (result == ISCSI_TX_ERROR) {
		iscsi_conn_close(conn, "connection lost");
		return;
	}
	if (result == ISCSI_TX_BLOCKED || has_more(conn)) {
		ev_io_start(ev, &conn->write_watcher);
		return;
	}
	ev_io_stop(ev, &conn->write_watcher);
	drained(conn);
}

static void on_flush(struct loop_hook *hook)
{
	struct iscsi_conn *conn = container_of(hook, struct iscsi_conn, flush);

	if (conn->state != ISCSI_CONN_DEAD && !ev_is_active(&conn->write_watcher))
		send_all(conn);
}

static void on_writable(struct ev_loop *ev, struct ev_io *watcher, int events)
{
	(void)ev;
	(void)events;
	send_all(container_of(watcher, struct iscsi_conn, write_watcher));
}

static enum iscsi_rx_result receive_some(struct iscsi_conn *conn)
{
	struct iscsi_server *server = this_turn(conn);
	uint64_t pdus = conn->rx.pdus, spent = conn->rx.bytes + conn->rx.work;
	enum iscsi_rx_result result;

	if (turn_is_full(server))
		return ISCSI_RX_BUDGET;
	server->turn_pdus += ISCSI_TURN_WAKE;
	result = iscsi_rx_run(&conn->rx, ISCSI_TURN_PDUS, ISCSI_TURN_BYTES);
	server->turn_pdus += (unsigned)(conn->rx.pdus - pdus);
	server->turn_bytes += conn->rx.bytes + conn->rx.work - spent;
	count_syscalls(conn);
	return result;
}

static void conn_receive(struct iscsi_conn *conn)
{
	enum iscsi_rx_result result = receive_some(conn);

	if (conn->state != ISCSI_CONN_LOGIN && conn->state != ISCSI_CONN_FULL)
		return;
	switch (result) {
	case ISCSI_RX_BUDGET:
		iscsi_conn_later(conn);
		break;
	case ISCSI_RX_EOF:
		iscsi_conn_close(conn, "closed by the initiator");
		break;
	case ISCSI_RX_ERROR:
		iscsi_conn_close(conn, "connection lost");
		break;
	case ISCSI_RX_PROTOCOL:
		iscsi_conn_close(conn, "header digest or length wrong");
		break;
	case ISCSI_RX_IDLE:
	case ISCSI_RX_STOPPED:
		break;
	}
}

static void drop_input(struct iscsi_conn *conn)
{
	char scratch[4096];
	ssize_t n = recv(conn->fd, scratch, sizeof(scratch), MSG_DONTWAIT);

	conn->rx.syscalls++;
	count_syscalls(conn);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		iscsi_conn_close(conn, "closed");
}

static void on_readable(struct ev_loop *ev, struct ev_io *watcher, int events)
{
	struct iscsi_conn *conn = container_of(watcher, struct iscsi_conn, read_watcher);

	(void)ev;
	(void)events;
	if (conn->state == ISCSI_CONN_LINGER)
		drop_input(conn);
	else if (!conn->backlogged)
		conn_receive(conn);
}

void iscsi_conn_later(struct iscsi_conn *conn)
{
	struct iscsi_server *server = conn->server;

	if (!conn->backlogged)
		TAILQ_INSERT_TAIL(&server->backlog, conn, backlog_link);
	conn->backlogged = true;
	/* Due after this turn: its clock stands still. */
	if (!server->backlog_timer.armed)
		env_timer_set(server->env, &server->backlog_timer, 1);
}

void iscsi_conn_backlog(struct env_timer *timer)
{
	struct iscsi_server *server = container_of(timer, struct iscsi_server, backlog_timer);
	struct iscsi_conn *conn, *last = TAILQ_LAST(&server->backlog, iscsi_conn_list);

	while ((conn = TAILQ_FIRST(&server->backlog))) {
		bool end = conn == last;

		if (turn_is_full(this_turn(conn))) {
			env_timer_set(server->env, timer, 1);
			return;
		}
		TAILQ_REMOVE(&server->backlog, conn, backlog_link);
		conn->backlogged = false;
		if (conn->state == ISCSI_CONN_LOGIN || conn->state == ISCSI_CONN_FULL)
			conn_receive(conn);
		if (end)
			return;
	}
}

static void on_timer(struct env_timer *timer)
{
	struct iscsi_conn *conn = container_of(timer, struct iscsi_conn, timer);

	iscsi_conn_close(conn, conn->state < ISCSI_CONN_FULL ? "login took too long" : "closed");
}

static void on_sent(void *arg, void *owner)
{
	struct iscsi_cmd *cmd = owner;

	(void)arg;
	cmd->in_tx--;
	if (iscsi_opcode(&cmd->bhs) == ISCSI_TEXT_REQUEST)
		cmd->session->text_sending = false;
	iscsi_cmd_release(cmd);
}

static ssize_t on_writev(void *arg, struct iovec *iov, unsigned count)
{
	struct iscsi_conn *conn = arg;
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = count };

	return sendmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static const struct iscsi_tx_ops tx_ops = { .sent = on_sent, .writev = on_writev };

/* At the limit the oldest goes that has not logged in, or was told no and has not left. */
static bool make_room(struct iscsi_server *server)
{
	struct iscsi_conn *conn;

	if (server->conn_count < server->limits.connections_max)
		return true;
	TAILQ_FOREACH(conn, &server->conns, link) {
		if (conn->state == ISCSI_CONN_LOGIN || conn->state == ISCSI_CONN_LINGER) {
			iscsi_conn_close(conn, "too many connections");
			return true;
		}
	}
	return false;
}

static void set_options(int fd)
{
	int on = 1, idle_s = 60, interval_s = 15, probes = 4;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

static void conn_start(struct iscsi_conn *conn, const struct sockaddr_storage *peer)
{
	struct sockaddr_storage local = { 0 };
	socklen_t len = sizeof(local);

	if (getsockname(conn->fd, (struct sockaddr *)&local, &len))
		local.ss_family = AF_UNSPEC;
	iscsi_address_text(&local, conn->local, sizeof(conn->local));
	iscsi_address_text(peer, conn->remote, sizeof(conn->remote));
	set_options(conn->fd);
	ev_io_init(&conn->read_watcher, on_readable, conn->fd, EV_READ);
	ev_io_init(&conn->write_watcher, on_writable, conn->fd, EV_WRITE);
	ev_io_start(loop_ev(conn->server->loop), &conn->read_watcher);
	env_timer_set(conn->server->env, &conn->timer, conn->server->limits.login_timeout_ns);
}

void iscsi_conn_accept(struct iscsi_portal *portal, int fd, const struct sockaddr_storage *peer)
{
	struct iscsi_server *server = portal->server;
	struct iscsi_conn *conn;

	if (server->stopping || !make_room(server)) {
		log_limited(&server->limit_accept, LOG_L_WARN, ISCSI_MODULE, portal->name,
			    "connection-refused", "connections=%u", server->conn_count);
		close(fd);
		return;
	}
	conn = calloc(1, sizeof(*conn));
	if (!conn || !iscsi_rx_init(&conn->rx, &iscsi_conn_rx_ops, conn) ||
	    !iscsi_tx_init(&conn->tx, &tx_ops, conn))
		goto fail;
	conn->server = server;
	conn->portal = portal;
	conn->portal_group = portal->group;
	snprintf(conn->portal_name, sizeof(conn->portal_name), "%s", portal->name);
	conn->fd = fd;
	conn->since_ns = env_now_ns(server->env);
	conn->flush.fn = on_flush;
	conn->timer.fn = on_timer;
	conn->bury.fn = conn_free;
	if (!iscsi_login_begin(conn))
		goto fail;
	TAILQ_INSERT_TAIL(&server->conns, conn, link);
	server->conn_count++;
	conn_start(conn, peer);
	return;
fail:
	if (conn) {
		iscsi_rx_fini(&conn->rx);
		free(conn->tx.slots);
	}
	free(conn);
	close(fd);
}
