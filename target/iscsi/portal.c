/* SPDX-License-Identifier: MIT */
/*
 * Portals: listening sockets, and how many connections they take at a time.
 *
 * Invariants:
 * 1. A portal listens on all its addresses or does not exist.
 * 2. At most ACCEPT_TURN connections are taken in one turn.
 * 3. Out of descriptors, it stops listening for RETRY_NS instead of spinning.
 *
 * Not here: connections (conn.c), who may enter (target.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "target/iscsi/iscsi_int.h"

#define ACCEPT_TURN 16
#define RETRY_NS (200 * NS_PER_MS)
#define BACKLOG 1024

struct iscsi_portal *iscsi_portal_find(struct iscsi_server *server, const char *name)
{
	struct iscsi_portal *portal;

	TAILQ_FOREACH(portal, &server->portals, link)
		if (!strcmp(portal->name, name))
			return portal;
	return NULL;
}

static void pause_listening(struct iscsi_portal *portal)
{
	unsigned i;

	for (i = 0; i < portal->listener_count; i++)
		ev_io_stop(loop_ev(portal->server->loop), &portal->listeners[i].watcher);
	env_timer_set(portal->server->env, &portal->retry, RETRY_NS);
}

static void on_retry(struct env_timer *timer)
{
	struct iscsi_portal *portal = container_of(timer, struct iscsi_portal, retry);
	unsigned i;

	for (i = 0; i < portal->listener_count; i++)
		ev_io_start(loop_ev(portal->server->loop), &portal->listeners[i].watcher);
}

static void on_connection(struct ev_loop *ev, struct ev_io *watcher, int events)
{
	struct iscsi_listener *listener = container_of(watcher, struct iscsi_listener, watcher);
	struct iscsi_portal *portal = listener->portal;
	struct iscsi_server *server = portal->server;
	unsigned n;

	(void)ev;
	(void)events;
	for (n = 0; n < ACCEPT_TURN; n++) {
		struct sockaddr_storage peer = { 0 };
		socklen_t len = sizeof(peer);
		int fd = accept4(listener->fd, (struct sockaddr *)&peer, &len,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		loop_count_syscalls(server->loop, 1);
		if (fd >= 0) {
			iscsi_conn_accept(portal, fd, &peer);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			log_limited(&server->limit_accept, LOG_L_WARN, ISCSI_MODULE, portal->name,
				    "accept-failed", "error=\"%s\" retry_ms=%llu", strerror(errno),
				    (unsigned long long)(RETRY_NS / NS_PER_MS));
			pause_listening(portal);
		}
		if (errno != ECONNABORTED && errno != EINTR)
			break;
	}
}

static bool is_wildcard(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)addr)->sin6_addr);
	return ((const struct sockaddr_in *)addr)->sin_addr.s_addr == htonl(INADDR_ANY);
}

static void explain(const char *name, const struct iscsi_address *address, int err, char *text,
		    size_t size)
{
	if (err == EADDRINUSE) {
		snprintf(
			text, size,
			"portal \"%s\": %s in use by another program. Stop it or change the portal",
			name, address->text);
	} else if (err == EADDRNOTAVAIL) {
		snprintf(text, size,
			 "portal \"%s\": %s is no address of this machine. Add it to an interface "
			 "or change the portal",
			 name, address->text);
	} else {
		snprintf(text, size, "portal \"%s\": cannot listen on %s: %s", name, address->text,
			 strerror(err));
	}
}

static int listen_on(struct iscsi_listener *listener, const struct iscsi_address *address)
{
	struct sockaddr_storage bound = { 0 };
	socklen_t len = sizeof(bound);
	int on = 1, err;

	listener->fd =
		socket(address->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener->fd < 0)
		return errno;
	setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* [::] beside 0.0.0.0 must work: each listens for its own family. */
	if (address->addr.ss_family == AF_INET6)
		setsockopt(listener->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(listener->fd, (const struct sockaddr *)&address->addr, address->addr_len) ||
	    listen(listener->fd, BACKLOG) ||
	    getsockname(listener->fd, (struct sockaddr *)&bound, &len)) {
		err = errno;
		close(listener->fd);
		return err;
	}
	listener->wildcard = is_wildcard(&address->addr);
	listener->port = iscsi_address_port(&bound);
	iscsi_address_text(&bound, listener->text, sizeof(listener->text));
	return 0;
}

int iscsi_portal_add(struct iscsi_server *server, const char *name, uint16_t group,
		     const struct iscsi_address *listen_at, unsigned listen_count, char *text,
		     size_t text_size)
{
	struct iscsi_portal *portal;
	unsigned i;
	int err;

	if (iscsi_portal_find(server, name)) {
		snprintf(text, text_size, "portal \"%s\" exists already", name);
		return -EEXIST;
	}
	portal = calloc(1, sizeof(*portal));
	if (portal)
		portal->listeners =
			calloc(listen_count ? listen_count : 1, sizeof(*portal->listeners));
	if (!portal || !portal->listeners) {
		free(portal);
		snprintf(text, text_size, "portal \"%s\": out of memory", name);
		return -ENOMEM;
	}
	portal->server = server;
	portal->group = group;
	portal->retry.fn = on_retry;
	snprintf(portal->name, sizeof(portal->name), "%s", name);
	for (i = 0; i < listen_count; i++) {
		err = listen_on(&portal->listeners[i], &listen_at[i]);
		if (err) {
			explain(name, &listen_at[i], err, text, text_size);
			while (i--)
				close(portal->listeners[i].fd);
			free(portal->listeners);
			free(portal);
			return -err;
		}
	}
	portal->listener_count = listen_count;
	for (i = 0; i < listen_count; i++) {
		struct iscsi_listener *listener = &portal->listeners[i];

		listener->portal = portal;
		ev_io_init(&listener->watcher, on_connection, listener->fd, EV_READ);
		ev_io_start(loop_ev(server->loop), &listener->watcher);
		log_line(LOG_L_INFO, ISCSI_MODULE, name, "listening", "address=%s group=%u",
			 listener->text, group);
	}
	TAILQ_INSERT_TAIL(&server->portals, portal, link);
	return 0;
}

void iscsi_portal_free(struct iscsi_portal *portal)
{
	struct iscsi_server *server = portal->server;
	struct iscsi_conn *conn;
	unsigned i;

	for (i = 0; i < portal->listener_count; i++) {
		ev_io_stop(loop_ev(server->loop), &portal->listeners[i].watcher);
		close(portal->listeners[i].fd);
	}
	env_timer_cancel(server->env, &portal->retry);
	TAILQ_FOREACH(conn, &server->conns, link)
		if (conn->portal == portal)
			conn->portal = NULL;
	TAILQ_REMOVE(&server->portals, portal, link);
	free(portal->listeners);
	free(portal);
}

void iscsi_portal_remove(struct iscsi_server *server, const char *name)
{
	struct iscsi_portal *portal = iscsi_portal_find(server, name);
	struct iscsi_conn *conn, *next;

	if (!portal)
		return;
	TAILQ_FOREACH_SAFE(conn, &server->conns, link, next)
		if (conn->portal == portal)
			iscsi_conn_close(conn, "portal removed");
	iscsi_portal_free(portal);
}
