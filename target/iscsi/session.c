/* SPDX-License-Identifier: MIT */
/*
 * Sessions: from the last request of a login to the last task that came back.
 *
 *   LOGIN ─▶ UP ─▶ LOGOUT ─▶ ENDING ─▶ freed
 *     │      └────────────────▲  session_end(): no connection any more
 *     └───────────────────────┘
 *
 * Invariants:
 * 1. At most one registered session has a given {initiator, ISID, target,
 *    portal group}: the old one is ended, its nexus retired, before the new one
 *    is made. Retired, it waits for its tasks alone.
 * 2. A session is freed when no command structure is in use and its I_T NEXUS
 *    RESET is done; then no task of its nexus is in a task set.
 * 3. Everything a session needs for its commands is allocated when it is made.
 *
 * Not here: numbers (window.c), command structures (cmd.c).
 *
 * Spec: RFC 7143 sections 4.4.3.1, 6.3.5, 7.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/event.h"
#include "target/iscsi/iscsi_int.h"

struct iscsi_session *iscsi_session_find(struct iscsi_server *server, const char *initiator,
					 const uint8_t isid[6], const struct iscsi_target *target,
					 uint16_t portal_group)
{
	struct iscsi_session *session;

	TAILQ_FOREACH(session, &server->sessions, link)
		if (session->registered && session->target == target &&
		    session->portal_group == portal_group && !memcmp(session->isid, isid, 6) &&
		    !strcmp(session->initiator, initiator))
			return session;
	return NULL;
}

static bool tsih_used(const struct iscsi_server *server, uint16_t tsih)
{
	const struct iscsi_session *session;

	TAILQ_FOREACH(session, &server->sessions, link)
		if (session->tsih == tsih)
			return true;
	return false;
}

/* Not 0, not in use. Fewer sessions than numbers: sessions_max is bounded by the server. */
static uint16_t new_tsih(struct iscsi_server *server)
{
	do {
		server->next_tsih++;
	} while (!server->next_tsih || tsih_used(server, server->next_tsih));
	return server->next_tsih;
}

static unsigned window_size(const struct iscsi_server *server, bool discovery)
{
	unsigned left =
		ISCSI_COMMANDS_MAX - (unsigned)min_u64(server->command_count, ISCSI_COMMANDS_MAX);
	uint64_t size = min_u64(server->limits.commands_per_session, left / 8);

	if (discovery)
		size = ISCSI_WINDOW_MIN;
	return (unsigned)max_u64(size, ISCSI_WINDOW_MIN);
}

void iscsi_isid_text(const uint8_t isid[6], char out[13])
{
	unsigned i;

	for (i = 0; i < 6; i++)
		snprintf(out + 2 * i, 3, "%02x", isid[i]);
}

static void reset_done(struct scsi_tmf *tmf)
{
	struct iscsi_session *session = container_of(tmf, struct iscsi_session, reset);

	session->reset_running = false;
	session->reset_done = true;
	iscsi_session_check_end(session);
}

static void session_free(struct env_defer *defer)
{
	struct iscsi_session *session = container_of(defer, struct iscsi_session, bury);
	struct iscsi_server *server = session->server;
	struct iscsi_target *target = session->target;

	assert(!session->cmd_used && !session->units && !session->express_units && !session->conn);
	if (session->nexus)
		scsi_nexus_free(session->nexus);
	TAILQ_REMOVE(&server->sessions, session, link);
	server->session_count--;
	server->command_count -= session->cmd_count;
	iscsi_window_fini(&session->window);
	if (target)
		iscsi_traffic_add(&target->ended, &session->traffic);
	free(session->latency);
	free(session->cmds);
	free(session);
	if (target)
		iscsi_target_put(target);
	iscsi_server_check_stopped(server);
}

static void init_lists(struct iscsi_session *session)
{
	unsigned i;

	TAILQ_INIT(&session->free);
	TAILQ_INIT(&session->answers);
	TAILQ_INIT(&session->waiting);
	TAILQ_INIT(&session->owing);
	TAILQ_INIT(&session->fenced);
	for (i = 0; i < ISCSI_HASH; i++)
		LIST_INIT(&session->hash[i]);
	session->nop_timer.fn = iscsi_nop_timer;
	session->data_timer.fn = iscsi_data_out_timer;
	session->bury.fn = session_free;
}

static bool make_nexus(struct iscsi_session *session)
{
	struct scsi_nexus_id id = { .portal_group = session->portal_group };

	if (!session->target)
		return true;
	snprintf(id.initiator, sizeof(id.initiator), "%s", session->initiator);
	memcpy(id.isid, session->isid, sizeof(id.isid));
	session->nexus = scsi_nexus_new(session->target->device, &id);
	return session->nexus != NULL;
}

static bool allocate(struct iscsi_session *session, const struct iscsi_login *login)
{
	unsigned window = window_size(session->server, session->discovery);

	session->cmd_count = window + ISCSI_RESERVE;
	session->cmds = calloc(session->cmd_count, sizeof(*session->cmds));
	if (!session->cmds || !iscsi_window_init(&session->window, window, login->cmd_sn))
		return false;
	if (!session->discovery) {
		session->latency = calloc(1, sizeof(*session->latency));
		if (!session->latency)
			return false;
	}
	return make_nexus(session);
}

struct iscsi_session *iscsi_session_new(struct iscsi_conn *conn, struct iscsi_target *target,
					const struct iscsi_login *login)
{
	struct iscsi_server *server = conn->server;
	struct iscsi_session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	session->server = server;
	session->target = target;
	session->discovery = !target;
	session->portal_group = conn->portal_group;
	session->cid = login->cid;
	memcpy(session->isid, login->isid, sizeof(session->isid));
	snprintf(session->initiator, sizeof(session->initiator), "%s", login->keys.initiator_name);
	snprintf(session->portal_name, sizeof(session->portal_name), "%s", conn->portal_name);
	init_lists(session);
	if (!allocate(session, login)) {
		iscsi_window_fini(&session->window);
		free(session->latency);
		free(session->cmds);
		free(session);
		return NULL;
	}
	session->conn = conn;
	session->id = ++server->next_id;
	session->tsih = new_tsih(server);
	session->registered = target != NULL;
	session->since_s = (uint64_t)time(NULL);
	session->rate.start_ns = env_now_ns(server->env);
	if (target)
		target->sessions++;
	server->session_count++;
	server->live_count++;
	server->command_count += session->cmd_count;
	server->turn_pdus += ISCSI_TURN_LOGIN;
	TAILQ_INSERT_TAIL(&server->sessions, session, link);
	return session;
}

void iscsi_session_up(struct iscsi_session *session)
{
	char isid[13];

	session->state = ISCSI_SESSION_UP;
	if (session->discovery)
		return;
	iscsi_isid_text(session->isid, isid);
	session->counted_up = true;
	event_emit(EVENT_SESSION_UP, session->target->name, session->initiator, isid,
		   session->portal_name);
	iscsi_nop_start(session);
}

/* What is neither with the device server nor in a socket's queue is over at once. */
static void sweep(struct iscsi_session *session)
{
	struct iscsi_cmd *cmd;
	unsigned i;

	while ((cmd = TAILQ_FIRST(&session->fenced))) {
		TAILQ_REMOVE(&session->fenced, cmd, link);
		cmd->fenced = false;
	}
	while (iscsi_window_drain(&session->window))
		;
	for (i = 0; i < session->cmd_touched; i++) {
		cmd = &session->cmds[i];
		if (cmd->state == ISCSI_CMD_FREE)
			continue;
		cmd->receiving = false;
		if (cmd->entered)
			iscsi_command_abandon(cmd);
		else
			iscsi_cmd_over(cmd);
	}
}

void iscsi_session_end(struct iscsi_session *session, const char *reason)
{
	struct iscsi_server *server = session->server;
	char isid[13];

	if (session->state == ISCSI_SESSION_ENDING)
		return;
	session->state = ISCSI_SESSION_ENDING;
	session->registered = false;
	session->conn = NULL;
	server->live_count--;
	env_timer_cancel(server->env, &session->nop_timer);
	env_timer_cancel(server->env, &session->data_timer);
	if (session->counted_up) {
		iscsi_isid_text(session->isid, isid);
		event_emit(EVENT_SESSION_DOWN, session->target->name, session->initiator, isid,
			   session->portal_name, reason);
	}
	if (session->nexus) {
		scsi_nexus_retire(session->nexus);
		session->reset_running = true;
	}
	sweep(session);
	if (session->nexus) {
		session->reset = (struct scsi_tmf){
			.nexus = session->nexus,
			.function = SCSI_NEXUS_RESET,
			.done = reset_done,
		};
		scsi_tmf_submit(&session->reset);
	}
	iscsi_session_check_end(session);
}

void iscsi_session_check_end(struct iscsi_session *session)
{
	if (session->state != ISCSI_SESSION_ENDING || session->burying || session->cmd_used ||
	    session->reset_running)
		return;
	session->burying = true;
	iscsi_text_end(session);
	env_defer(session->server->env, &session->bury);
}
