/* SPDX-License-Identifier: MIT */
/*
 * Text requests on the connection: SendTargets with what this server has.
 *
 * Invariants:
 * 1. One answer is out at a time; its bytes lie in the session's own buffer
 *    until they are sent.
 * 2. What discovery shows depends on the initiator's name and the portal it
 *    came through, as a login would.
 *
 * Not here: the negotiation itself (text.c).
 *
 * Spec: RFC 7143 sections 11.10, 11.11, appendix C.
 */
#include <stdio.h>
#include <stdlib.h>

#include "target/iscsi/iscsi_int.h"

/*
 * A discovery session sees what its initiator may enter through any portal (with
 * the addresses of those alone), a normal one what it may enter through its own.
 */
static bool visible(const struct iscsi_session *session, const struct iscsi_target *target)
{
	const struct iscsi_portal *portal;

	if (iscsi_target_admits(target, session->portal_name, session->initiator))
		return true;
	if (!session->discovery)
		return false;
	TAILQ_FOREACH(portal, &session->server->portals, link)
		if (iscsi_target_admits(target, portal->name, session->initiator))
			return true;
	return false;
}

/* TAILQ order is name order. */
static const char *target_next(void *arg, const char *after)
{
	struct iscsi_session *session = arg;
	struct iscsi_target *target;

	TAILQ_FOREACH(target, &session->server->targets, link)
		if (!target->removed && strcmp(target->name, after) > 0 && visible(session, target))
			return target->name;
	return NULL;
}

static bool listener_text(struct iscsi_session *session, const struct iscsi_listener *listener,
			  char *text, size_t size)
{
	const char *shown = listener->text;
	const char *colon;

	if (listener->wildcard && session->conn) {
		/* The address that this connection reached; the port is the listener's own. */
		shown = session->conn->local;
		colon = strrchr(shown, ':');
		snprintf(text, size, "%.*s:%u,%u", (int)(colon ? colon - shown : 0), shown,
			 listener->port, listener->portal->group);
	} else {
		snprintf(text, size, "%s,%u", shown, listener->portal->group);
	}
	return true;
}

static bool target_address(void *arg, const char *name, unsigned index, char *text, size_t size)
{
	struct iscsi_session *session = arg;
	struct iscsi_target *target = iscsi_target_find(session->server, name);
	struct iscsi_portal *portal;
	unsigned i;

	if (!target || !visible(session, target))
		return false;
	TAILQ_FOREACH(portal, &session->server->portals, link) {
		if (!iscsi_target_on_portal(target, portal->name))
			continue;
		for (i = 0; i < portal->listener_count; i++)
			if (!index--)
				return listener_text(session, &portal->listeners[i], text, size);
	}
	return false;
}

static const struct iscsi_text_ops ops = {
	.target_next = target_next,
	.target_address = target_address,
};

static bool prepare(struct iscsi_session *session)
{
	if (session->text)
		return true;
	session->text = calloc(1, sizeof(*session->text));
	session->text_out = malloc(ISCSI_CONTROL_MAX);
	if (!session->text || !session->text_out) {
		free(session->text);
		free(session->text_out);
		session->text = NULL;
		session->text_out = NULL;
		return false;
	}
	iscsi_text_init(session->text, &ops, session, &session->params,
			session->discovery ? ISCSI_SESSION_DISCOVERY : ISCSI_SESSION_NORMAL,
			session->target ? session->target->name : "");
	return true;
}

void iscsi_text_end(struct iscsi_session *session)
{
	if (session->text)
		iscsi_text_fini(session->text);
	free(session->text);
	free(session->text_out);
	session->text = NULL;
	session->text_out = NULL;
}

void iscsi_text_run(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;
	const char *data = cmd->held_text ? cmd->held_text : (const char *)session->conn->control;
	uint32_t len = cmd->held_text ? cmd->held_text_bytes : iscsi_length(&cmd->bhs);
	struct iscsi_text_response response = { 0 };
	int reason = ISCSI_REJECT_IN_PROGRESS;

	if (!session->text_sending) {
		if (!prepare(session)) {
			reason = ISCSI_REJECT_RESOURCES;
		} else {
			response.data = session->text_out;
			response.size =
				(uint32_t)min_u64(session->params.max_send, ISCSI_CONTROL_MAX);
			reason = iscsi_text_step(session->text, (const uint8_t *)&cmd->bhs,
						 data ? data : "", len, &response);
		}
	}
	if (reason) {
		if (iscsi_reject(session, &cmd->bhs, (enum iscsi_reject_reason)reason))
			iscsi_cmd_over(cmd);
		return;
	}
	session->text_sending = true;
	cmd->echo_bytes = response.len;
	/* The request's header is not needed any more, but for opcode and tag. */
	memcpy(cmd->small, response.bhs, ISCSI_BHS_BYTES);
	cmd->state = ISCSI_CMD_ANSWERING;
	iscsi_cmd_answer(cmd);
}

bool iscsi_text_produce(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;
	struct iscsi_tx_data data = { .data = session->text_out, .length = cmd->echo_bytes };
	struct iscsi_bhs bhs;

	memcpy(&bhs, cmd->small, sizeof(bhs));
	iscsi_cmd_answered(cmd);
	iscsi_stamp(session, &bhs, true);
	cmd->in_tx++;
	iscsi_tx_add(&session->conn->tx, &bhs, &data, cmd);
	return true;
}
