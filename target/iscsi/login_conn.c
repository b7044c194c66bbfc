/* SPDX-License-Identifier: MIT */
/*
 * The login phase on a connection: PDUs to login.c, its answers to the socket.
 *
 *   LOGIN ── SEND ──▶ LOGIN
 *     ├─ DONE ─▶ LAST_RESPONSE ── sent ──▶ FULL, session up
 *     ├─ FAIL ─▶ ENDING
 *     └─ DROP, deadline ─▶ closed
 *
 * Invariants:
 * 1. Nothing but the connection exists until session_open(): a login that goes
 *    nowhere has cost its fixed memory and a deadline.
 * 2. A request that is sent before the last response was taken is no client's:
 *    the connection is closed (the response's bytes lie in the login).
 * 3. Reinstatement closes the old connection and never waits for its tasks.
 *
 * Not here: what is negotiated (login.c, keys.c).
 *
 * Spec: RFC 7143 sections 6.3, 11.12, 11.13.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/event.h"
#include "core/log.h"
#include "target/iscsi/iscsi_int.h"

#define REFUSED_EVENTS 20 /* in REFUSED_WINDOW_NS; more only go to the log, limited */
#define REFUSED_WINDOW_NS (10 * NS_PER_S)

static void tell_refused(struct iscsi_conn *conn)
{
	struct iscsi_server *server = conn->server;
	const struct iscsi_login *login = conn->login;
	const char *name = login->keys.initiator_name;
	uint64_t now = env_now_ns(server->env);
	char status[8];

	server->totals.logins_refused++;
	if (now - server->refused_window_ns >= REFUSED_WINDOW_NS) {
		server->refused_window_ns = now;
		server->refused_in_window = 0;
	}
	snprintf(status, sizeof(status), "%04x", (unsigned)login->status & 0xffff);
	if (server->refused_in_window++ < REFUSED_EVENTS)
		event_emit(EVENT_LOGIN_REFUSED, *name ? name : conn->remote, conn->portal_name,
			   status,
			   login->reason ? login->reason : iscsi_login_status_text(login->status));
	else
		log_limited(&server->limit_refused, LOG_L_WARN, ISCSI_MODULE,
			    *name ? name : conn->remote, "login-refused", "portal=%s status=%s",
			    conn->portal_name, status);
}

static enum iscsi_login_status admit(void *arg, struct iscsi_login *login)
{
	struct iscsi_conn *conn = arg;
	struct iscsi_target *target;

	if (conn->server->stopping || !conn->portal)
		return ISCSI_LOGIN_UNAVAILABLE;
	login->portal_group = conn->portal_group;
	if (login->keys.session_type == ISCSI_SESSION_DISCOVERY)
		return ISCSI_LOGIN_SUCCESS;
	target = iscsi_target_find(conn->server, login->keys.target_name);
	if (!target || !iscsi_target_on_portal(target, conn->portal_name))
		return ISCSI_LOGIN_NOT_FOUND;
	if (!iscsi_target_admits(target, conn->portal_name, login->keys.initiator_name))
		return ISCSI_LOGIN_NOT_ALLOWED;
	login->target = target;
	return ISCSI_LOGIN_SUCCESS;
}

#define SESSIONS_ENDING 16

/*
 * One that ended and waits for its tasks is in nobody's way: its host comes back at the
 * limit too. But a store that stalls for long does not fill the memory with them.
 */
static bool session_room(const struct iscsi_server *server)
{
	return server->live_count < server->limits.sessions_max &&
	       server->session_count < 2 * server->limits.sessions_max + SESSIONS_ENDING;
}

static enum iscsi_login_status session_open(void *arg, struct iscsi_login *login)
{
	struct iscsi_conn *conn = arg;
	struct iscsi_server *server = conn->server;
	struct iscsi_target *target = NULL;
	struct iscsi_session *old;

	if (login->keys.session_type == ISCSI_SESSION_NORMAL) {
		/* By name again: it may have gone or changed between two requests. */
		target = iscsi_target_find(server, login->keys.target_name);
		if (!target || !conn->portal)
			return ISCSI_LOGIN_TARGET_REMOVED;
		if (!iscsi_target_admits(target, conn->portal_name, login->keys.initiator_name))
			return ISCSI_LOGIN_NOT_ALLOWED;
		old = iscsi_session_find(server, login->keys.initiator_name, login->isid, target,
					 conn->portal_group);
		if (login->tsih)
			return old && old->tsih == login->tsih ? ISCSI_LOGIN_TOO_MANY_CONNECTIONS :
								 ISCSI_LOGIN_NO_SESSION;
		if (old && old->conn)
			iscsi_conn_close(old->conn, "reinstated by a new login");
	} else if (login->tsih) {
		return ISCSI_LOGIN_NO_SESSION;
	}
	if (!session_room(server))
		return ISCSI_LOGIN_NO_RESOURCES;
	conn->session = iscsi_session_new(conn, target, login);
	if (!conn->session)
		return ISCSI_LOGIN_NO_RESOURCES;
	login->tsih = conn->session->tsih;
	login->window = conn->session->window.size;
	return ISCSI_LOGIN_SUCCESS;
}

static const struct iscsi_login_ops ops = { .admit = admit, .session_open = session_open };

bool iscsi_login_begin(struct iscsi_conn *conn)
{
	conn->login = malloc(sizeof(*conn->login));
	if (!conn->login)
		return false;
	iscsi_login_init(conn->login, &ops, conn, conn->server->limits.login_exchanges_max);
	return true;
}

/* What was said, for `yoked -d iscsi`: every key, but of CHAP's no value. */
static void tell_exchange(const struct iscsi_conn *conn, const char *event, const uint8_t *bhs,
			  const char *data, uint32_t length)
{
	bool transit = bhs[1] & 0x80;
	char keys[1024] = "";
	size_t used = 0;

	if (!log_debug_on(ISCSI_MODULE))
		return;
	for (uint32_t at = 0; at < length && used < sizeof(keys);) {
		size_t len = strnlen(data + at, length - at);
		size_t shown = len > 6 && strncmp(data + at, "CHAP_", 5) == 0 ? 6 : len;

		used += (size_t)snprintf(keys + used, sizeof(keys) - used, "%s%.*s",
					 used && len ? " " : "", (int)shown, data + at);
		at += (uint32_t)len + 1;
	}
	log_line(LOG_L_DEBUG, ISCSI_MODULE, conn->remote, event,
		 "portal=%s stage=%u next=%d more=%u keys=\"%s\"", conn->portal_name,
		 (unsigned)bhs[1] >> 2 & 3, transit ? bhs[1] & 3 : -1, (unsigned)bhs[1] >> 6 & 1,
		 keys);
}

static void respond(struct iscsi_conn *conn)
{
	const struct iscsi_login *login = conn->login;
	struct iscsi_tx_data data = { .data = login->response_data, .length = login->response_len };
	struct iscsi_bhs bhs;

	tell_exchange(conn, "login-response", login->response, login->response_data,
		      login->response_len);
	memcpy(&bhs, login->response, sizeof(bhs));
	iscsi_tx_add(&conn->tx, &bhs, &data, NULL);
	iscsi_conn_kick(conn);
}

static bool act(struct iscsi_conn *conn, enum iscsi_login_action action)
{
	switch (action) {
	case ISCSI_LOGIN_SEND:
		respond(conn);
		return true;
	case ISCSI_LOGIN_DONE:
		conn->state = ISCSI_CONN_LAST_RESPONSE;
		ev_io_stop(loop_ev(conn->server->loop), &conn->read_watcher);
		respond(conn);
		return false;
	case ISCSI_LOGIN_FAIL:
		tell_refused(conn);
		respond(conn);
		iscsi_conn_end(conn, "login refused");
		return false;
	case ISCSI_LOGIN_WAIT:
	case ISCSI_LOGIN_DROP:
		break;
	}
	iscsi_conn_close(conn, "not a login");
	return false;
}

bool iscsi_login_header(struct iscsi_conn *conn, struct iscsi_pdu *pdu, struct iscsi_dest *dest)
{
	char *data;

	if (conn->tx.count || pdu->ahs_bytes) {
		iscsi_conn_close(conn, "not a login");
		return false;
	}
	data = iscsi_login_data(conn->login, pdu->length);
	if (!data)
		return act(conn, iscsi_login_step(conn->login, (const uint8_t *)&pdu->bhs, NULL,
						  pdu->length));
	*dest = (struct iscsi_dest){ .sink = ISCSI_SINK_CONTROL, .control = (uint8_t *)data };
	return true;
}

bool iscsi_login_pdu(struct iscsi_conn *conn, struct iscsi_pdu *pdu)
{
	tell_exchange(conn, "login-request", (const uint8_t *)&pdu->bhs, (const char *)pdu->control,
		      pdu->length);
	return act(conn, iscsi_login_step(conn->login, (const uint8_t *)&pdu->bhs,
					  (const char *)pdu->control, pdu->length));
}

void iscsi_login_finish(struct iscsi_conn *conn)
{
	struct iscsi_session *session = conn->session;
	const struct iscsi_params *params = &conn->login->keys.params;

	session->params = *params;
	session->statsn = conn->login->stat_sn;
	conn->control = malloc(ISCSI_CONTROL_MAX);
	if (!conn->control || !iscsi_tx_full_feature(&conn->tx) ||
	    !iscsi_rx_full_feature(&conn->rx, params->header_digest, params->data_digest)) {
		iscsi_conn_close(conn, "out of memory");
		return;
	}
	conn->tx.header_digest = params->header_digest;
	conn->tx.data_digest = params->data_digest;
	free(conn->login);
	conn->login = NULL;
	env_timer_cancel(conn->server->env, &conn->timer);
	conn->state = ISCSI_CONN_FULL;
	conn->server->totals.logins++;
	iscsi_session_up(session);
	ev_io_start(loop_ev(conn->server->loop), &conn->read_watcher);
	/* What came behind the last request is in the buffer already. */
	iscsi_conn_later(conn);
}
