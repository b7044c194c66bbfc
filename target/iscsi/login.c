/* SPDX-License-Identifier: MIT */
/*
 * The login phase of one connection: stages, statuses, and texts that need several PDUs.
 *
 *	request ───▶ check_header ─── C bit ──▶ SEND (empty)          ╮ next
 *	                 │ text whole                                 │ request
 *	                 ▼                                            │
 *	answer_text: take_text ▶ admit ▶ secure ▶ declare             │
 *	                 │                                            │
 *	                 ▼                                            │
 *	             send_piece ── more than fits ──▶ SEND (C bit)    │
 *	                 │ last piece                                 │
 *	                 ├── stage stays, or Operational next ▶ SEND  ╯
 *	                 ╰── full feature: session_open ▶ DONE or WAIT ▶ iscsi_login_resume
 *	any of them ──▶ refuse ▶ FAIL
 *
 * Invariants:
 * 1. Memory is struct iscsi_login, whatever comes.
 * 2. ITT, CID, ISID, TSIH and CmdSN of all requests are those of the first.
 * 3. Full feature phase is reached only after admit(), then authentication where it is required,
 *    then session_open(), each with success.
 * 4. Who is admitted cannot become another: names and session type do not change after admit().
 * 5. At most exchanges_max requests are answered; after FAIL and DROP none is.
 *
 * Not here: sockets and time limits (conn.c), what a key means (keys.c), who may enter (ops).
 * Spec: RFC 7143 sections 6, 11.12, 11.13.
 */
#include "target/iscsi/login.h"

#include <string.h>

#include "core/wire.h"

#define OP_MASK 0x3f
#define OP_LOGIN_REQUEST 0x03
#define OP_LOGIN_RESPONSE 0x23

#define FLAG_TRANSIT 0x80
#define FLAG_CONTINUE 0x40

enum stage { STAGE_SECURITY = 0, STAGE_OPERATIONAL = 1, STAGE_FULL = 3 };

/* Both BHS, RFC 7143 sections 11.12 and 11.13. */
enum {
	AT_FLAGS = 1,
	AT_VERSION_MAX = 2,
	AT_VERSION_MIN = 3,
	AT_AHS_LEN = 4,
	AT_DATA_LEN = 5,
	AT_ISID = 8,
	AT_TSIH = 14,
	AT_ITT = 16,
	AT_CID = 20, /* request */
	AT_CMD_SN = 24,
	AT_STAT_SN = 24, /* response */
	AT_EXP_CMD_SN = 28,
	AT_MAX_CMD_SN = 32,
	AT_STATUS = 36,
};

static_assert(sizeof(struct iscsi_login) <= 11 * KIB, "what a peer that says nothing may take");

static const struct {
	enum iscsi_login_status status;
	const char *text;
} statuses[] = {
	{ ISCSI_LOGIN_SUCCESS, "success" },
	{ ISCSI_LOGIN_INITIATOR_ERROR, "initiator error" },
	{ ISCSI_LOGIN_AUTH_FAILED, "authentication failed" },
	{ ISCSI_LOGIN_NOT_ALLOWED, "not allowed" },
	{ ISCSI_LOGIN_NOT_FOUND, "target not found" },
	{ ISCSI_LOGIN_TARGET_REMOVED, "target removed" },
	{ ISCSI_LOGIN_VERSION, "unsupported version" },
	{ ISCSI_LOGIN_TOO_MANY_CONNECTIONS, "too many connections" },
	{ ISCSI_LOGIN_MISSING_PARAMETER, "missing parameter" },
	{ ISCSI_LOGIN_CANNOT_INCLUDE, "cannot include in session" },
	{ ISCSI_LOGIN_SESSION_TYPE, "session type not supported" },
	{ ISCSI_LOGIN_NO_SESSION, "session does not exist" },
	{ ISCSI_LOGIN_INVALID_DURING_LOGIN, "invalid during login" },
	{ ISCSI_LOGIN_TARGET_ERROR, "target error" },
	{ ISCSI_LOGIN_UNAVAILABLE, "service unavailable" },
	{ ISCSI_LOGIN_NO_RESOURCES, "out of resources" },
};

const char *iscsi_login_status_text(enum iscsi_login_status status)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		if (statuses[i].status == status)
			return statuses[i].text;
	}
	return "unknown";
}

void iscsi_login_init(struct iscsi_login *login, const struct iscsi_login_ops *ops, void *arg,
		      unsigned exchanges_max)
{
	/* The text areas are written before they are read: a connection need not pay for zeroes. */
	memset(login, 0, offsetof(struct iscsi_login, out_data));
	login->ops = ops;
	login->arg = arg;
	login->exchanges_max = exchanges_max;
	login->stat_sn = 1;
	login->window = 1;
	login->out.data = login->out_data;
	login->out.size = sizeof(login->out_data);
	iscsi_keys_init(&login->keys);
}

/* --- responses --------------------------------------------------------- */

static void respond(struct iscsi_login *login, uint8_t flags, const char *data, uint32_t len)
{
	uint8_t *bhs = login->response;

	memset(bhs, 0, ISCSI_BHS);
	bhs[0] = OP_LOGIN_RESPONSE;
	bhs[AT_FLAGS] = flags;
	/* Version-max and Version-active are 0, the only version there is. */
	put_be24(bhs + AT_DATA_LEN, len);
	memcpy(bhs + AT_ISID, login->isid, sizeof(login->isid));
	put_be16(bhs + AT_TSIH, login->tsih);
	put_be32(bhs + AT_ITT, login->itt);
	put_be32(bhs + AT_STAT_SN, login->stat_sn++);
	put_be32(bhs + AT_EXP_CMD_SN, login->cmd_sn);
	put_be32(bhs + AT_MAX_CMD_SN, login->cmd_sn + login->window - 1);
	put_be16(bhs + AT_STATUS, (uint16_t)login->status);
	login->response_data = data;
	login->response_len = len;
}

static enum iscsi_login_action refuse(struct iscsi_login *login, enum iscsi_login_status status,
				      const char *reason)
{
	login->status = status;
	login->reason = reason;
	login->failed = true;
	respond(login, (uint8_t)(login->phase << 2), login->out_data, 0);
	return ISCSI_LOGIN_FAIL;
}

enum iscsi_login_action iscsi_login_refuse(struct iscsi_login *login,
					   enum iscsi_login_status status, const char *reason)
{
	if (!login->started || login->failed) {
		login->failed = true;
		return ISCSI_LOGIN_DROP;
	}
	return refuse(login, status, reason);
}

/* The last piece: the stage changes with it. */
static enum iscsi_login_action send_last(struct iscsi_login *login)
{
	const char *data = login->out_data + login->out_sent;
	uint32_t len = (uint32_t)login->out.len - login->out_sent;
	uint8_t flags = login->pending_flags;

	login->sending = false;
	respond(login, flags, data, len);
	if (!(flags & FLAG_TRANSIT))
		return ISCSI_LOGIN_SEND;
	login->phase = flags & 3;
	return login->phase == STAGE_FULL ? ISCSI_LOGIN_DONE : ISCSI_LOGIN_SEND;
}

static bool enters_full_feature(uint8_t flags)
{
	return (flags & FLAG_TRANSIT) && (flags & 3) == STAGE_FULL;
}

static enum iscsi_login_action opened(struct iscsi_login *login, enum iscsi_login_status status)
{
	if (status == ISCSI_LOGIN_PENDING) {
		login->waiting = true;
		return ISCSI_LOGIN_WAIT;
	}
	login->waiting = false;
	if (status != ISCSI_LOGIN_SUCCESS)
		return refuse(login, status, "no session for it");
	assert(login->tsih != 0 && login->window > 0);
	return send_last(login);
}

enum iscsi_login_action iscsi_login_resume(struct iscsi_login *login,
					   enum iscsi_login_status status)
{
	assert(login->waiting && status != ISCSI_LOGIN_PENDING);
	return opened(login, status);
}

static enum iscsi_login_action send_piece(struct iscsi_login *login)
{
	/* What they declared is heeded at once, although it is due in full feature phase only. */
	uint64_t room = min_u64(ISCSI_LOGIN_SEGMENT, login->keys.params.max_send);
	uint64_t left = login->out.len - login->out_sent;

	if (left > room) {
		login->sending = true;
		respond(login, (uint8_t)(FLAG_CONTINUE | login->phase << 2),
			login->out_data + login->out_sent, (uint32_t)room);
		login->out_sent += (uint32_t)room;
		return ISCSI_LOGIN_SEND;
	}
	if (!enters_full_feature(login->pending_flags))
		return send_last(login);
	iscsi_keys_settle(&login->keys, login->max_recv_told);
	return opened(login, login->ops->session_open(login->arg, login));
}

/* --- a text ------------------------------------------------------------ */

static enum iscsi_key_verdict take_auth(void *arg, const struct iscsi_pair *pair)
{
	struct iscsi_login *login = arg;

	if (pair->key == ISCSI_KEY_AUTH_METHOD) {
		login->auth_offer = pair->value;
		return ISCSI_KEY_OK;
	}
	/* Keys of a method before one was chosen, or of one that was not. */
	if (!login->method_chosen || !login->auth || login->authenticated)
		return ISCSI_KEY_PROTOCOL;
	return login->auth->key(login->auth_state, pair) ? ISCSI_KEY_OK : ISCSI_KEY_AUTH;
}

static const struct {
	enum iscsi_login_status status;
	const char *reason;
} verdicts[] = {
	[ISCSI_KEY_OK] = { ISCSI_LOGIN_SUCCESS, NULL },
	[ISCSI_KEY_AUTH] = { ISCSI_LOGIN_AUTH_FAILED, "the method refused a key" },
	[ISCSI_KEY_DISCOVER] = { ISCSI_LOGIN_INITIATOR_ERROR, "SendTargets" },
	[ISCSI_KEY_PROTOCOL] = { ISCSI_LOGIN_INITIATOR_ERROR,
				 "a key malformed, repeated or out of place" },
	[ISCSI_KEY_BAD_NAME] = { ISCSI_LOGIN_INITIATOR_ERROR, "not an iSCSI name" },
	[ISCSI_KEY_BAD_TYPE] = { ISCSI_LOGIN_SESSION_TYPE, "unknown SessionType" },
};

/* A status that is not SUCCESS, with its reason for the log. */
static enum iscsi_login_status because(struct iscsi_login *login, enum iscsi_login_status status,
				       const char *reason)
{
	login->reason = reason;
	return status;
}

static enum iscsi_login_status take_text(struct iscsi_login *login)
{
	enum iscsi_phase phase = login->phase == STAGE_SECURITY ? ISCSI_PHASE_SECURITY :
								  ISCSI_PHASE_OPERATIONAL;
	enum iscsi_session_type type = login->keys.session_type;
	bool named = login->keys.target_name[0];
	enum iscsi_key_verdict verdict;

	login->auth_offer = NULL;
	login->out.len = 0;
	login->out_sent = 0;
	verdict = iscsi_keys_take_text(&login->keys, phase, login->in, login->in_len, &login->out,
				       take_auth, login);
	if (verdict != ISCSI_KEY_OK)
		return because(login, verdicts[verdict].status, verdicts[verdict].reason);
	if (login->admitted &&
	    (type != login->keys.session_type || named != !!login->keys.target_name[0]))
		return because(login, ISCSI_LOGIN_INITIATOR_ERROR, "another session than before");
	return ISCSI_LOGIN_SUCCESS;
}

/* Names come with the first text. */
static enum iscsi_login_status admit(struct iscsi_login *login)
{
	enum iscsi_login_status status;

	if (login->admitted)
		return ISCSI_LOGIN_SUCCESS;
	if (!login->keys.initiator_name[0])
		return because(login, ISCSI_LOGIN_MISSING_PARAMETER, "no InitiatorName");
	if (login->keys.session_type == ISCSI_SESSION_NORMAL && !login->keys.target_name[0])
		return because(login, ISCSI_LOGIN_MISSING_PARAMETER, "no TargetName");
	status = login->ops->admit(login->arg, login);
	if (status != ISCSI_LOGIN_SUCCESS)
		return because(login, status, "not admitted");
	login->admitted = true;
	return ISCSI_LOGIN_SUCCESS;
}

static enum iscsi_login_status choose_method(struct iscsi_login *login)
{
	const char *method = login->auth ? login->auth->name : "None";

	if (!iscsi_list_has(login->auth_offer, method))
		return because(login, ISCSI_LOGIN_AUTH_FAILED,
			       login->auth ? "authentication is required and not offered" :
					     "AuthMethod without None");
	login->method_chosen = true;
	iscsi_out_add(&login->out, "AuthMethod", "%s", method);
	return ISCSI_LOGIN_SUCCESS;
}

/* Security: choose a method, or let it take its step. *GRANT: whether the stage may end. */
static enum iscsi_login_status secure(struct iscsi_login *login, bool transit, bool *grant)
{
	*grant = true;
	if (login->phase == STAGE_OPERATIONAL) {
		if (login->auth && !login->authenticated)
			return because(login, ISCSI_LOGIN_AUTH_FAILED, "authentication skipped");
		return ISCSI_LOGIN_SUCCESS;
	}
	if (login->auth_offer) {
		*grant = !login->auth;
		return choose_method(login);
	}
	if (!login->auth || login->authenticated)
		return ISCSI_LOGIN_SUCCESS;
	*grant = false;
	if (!login->method_chosen)
		return transit ? because(login, ISCSI_LOGIN_AUTH_FAILED,
					 "authentication is required and not offered") :
				 ISCSI_LOGIN_SUCCESS;
	switch (login->auth->step(login->auth_state, &login->out)) {
	case ISCSI_AUTH_OK:
		login->authenticated = true;
		*grant = true;
		return ISCSI_LOGIN_SUCCESS;
	case ISCSI_AUTH_MORE:
		return ISCSI_LOGIN_SUCCESS;
	case ISCSI_AUTH_REFUSED:
		break;
	}
	return because(login, ISCSI_LOGIN_AUTH_FAILED, "the method refused");
}

/* What a target says unasked: its portal group in its first response, its limit once. */
static void declare(struct iscsi_login *login)
{
	if (!login->tag_told && login->keys.session_type == ISCSI_SESSION_NORMAL)
		iscsi_out_add(&login->out, "TargetPortalGroupTag", "%u", login->portal_group);
	login->tag_told = true;
	if (!login->max_recv_told && login->phase == STAGE_OPERATIONAL) {
		iscsi_out_add(&login->out, "MaxRecvDataSegmentLength", "%u", ISCSI_OUR_MAX_RECV);
		login->max_recv_told = true;
	}
}

static enum iscsi_login_action answer_text(struct iscsi_login *login, uint8_t flags)
{
	bool transit = flags & FLAG_TRANSIT, grant;
	enum iscsi_login_status status = take_text(login);

	login->in_len = 0;
	if (status == ISCSI_LOGIN_SUCCESS)
		status = admit(login);
	if (status == ISCSI_LOGIN_SUCCESS)
		status = secure(login, transit, &grant);
	if (status != ISCSI_LOGIN_SUCCESS)
		return refuse(login, status, login->reason);
	declare(login);
	if (login->out.full)
		return refuse(login, ISCSI_LOGIN_NO_RESOURCES, "more keys than can be answered");
	login->pending_flags = (uint8_t)(login->phase << 2);
	if (transit && grant)
		login->pending_flags |= FLAG_TRANSIT | (flags & 3);
	return send_piece(login);
}

/* --- a request --------------------------------------------------------- */

static void remember_first(struct iscsi_login *login, const uint8_t *bhs)
{
	login->started = true;
	memcpy(login->isid, bhs + AT_ISID, sizeof(login->isid));
	login->tsih = get_be16(bhs + AT_TSIH);
	login->itt = get_be32(bhs + AT_ITT);
	login->cid = get_be16(bhs + AT_CID);
	login->cmd_sn = get_be32(bhs + AT_CMD_SN);
	login->phase = bhs[AT_FLAGS] >> 2 & 3;
}

static bool is_as_before(const struct iscsi_login *login, const uint8_t *bhs)
{
	return memcmp(login->isid, bhs + AT_ISID, sizeof(login->isid)) == 0 &&
	       login->tsih == get_be16(bhs + AT_TSIH) && login->itt == get_be32(bhs + AT_ITT) &&
	       login->cid == get_be16(bhs + AT_CID) && login->cmd_sn == get_be32(bhs + AT_CMD_SN);
}

/* What is wrong with the flags, or NULL. */
static const char *judge_flags(const struct iscsi_login *login, uint8_t flags)
{
	uint8_t csg = flags >> 2 & 3, nsg = flags & 3;

	if (csg > STAGE_OPERATIONAL)
		return "a current stage that is none";
	if (csg != login->phase)
		return "not the stage that was agreed";
	if (!(flags & FLAG_TRANSIT))
		return NULL;
	if (flags & FLAG_CONTINUE)
		return "T and C at once";
	if (nsg == 2 || nsg <= csg)
		return "a next stage that does not follow";
	return NULL;
}

static enum iscsi_login_action check_header(struct iscsi_login *login, const uint8_t *bhs,
					    const char *data, uint32_t len)
{
	const char *wrong = NULL;

	if (bhs[AT_VERSION_MIN] > 0)
		return refuse(login, ISCSI_LOGIN_VERSION, "version 0 is below their least");
	if (!is_as_before(login, bhs))
		wrong = "ITT, CID, ISID, TSIH or CmdSN changed";
	else if (login->itt == UINT32_MAX)
		wrong = "the reserved ITT";
	else if (bhs[AT_AHS_LEN])
		wrong = "an additional header";
	else if (len > ISCSI_TEXT_MAX - login->in_len || (len && !data))
		wrong = "more text than a login may have";
	else if (++login->exchanges > login->exchanges_max)
		wrong = "too many exchanges";
	else
		wrong = judge_flags(login, bhs[AT_FLAGS]);
	return wrong ? refuse(login, ISCSI_LOGIN_INITIATOR_ERROR, wrong) : ISCSI_LOGIN_SEND;
}

char *iscsi_login_data(struct iscsi_login *login, uint32_t len)
{
	return len <= ISCSI_TEXT_MAX - login->in_len ? login->in + login->in_len : NULL;
}

enum iscsi_login_action iscsi_login_step(struct iscsi_login *login, const uint8_t bhs[ISCSI_BHS],
					 const char *data, uint32_t len)
{
	enum iscsi_login_action action;
	uint8_t flags = bhs[AT_FLAGS];

	if (login->failed || login->waiting || login->phase == STAGE_FULL)
		return ISCSI_LOGIN_DROP;
	if ((bhs[0] & OP_MASK) != OP_LOGIN_REQUEST) {
		if (!login->started) {
			login->failed = true;
			return ISCSI_LOGIN_DROP;
		}
		return refuse(login, ISCSI_LOGIN_INVALID_DURING_LOGIN, "not a login request");
	}
	if (!login->started)
		remember_first(login, bhs);
	action = check_header(login, bhs, data, len);
	if (action != ISCSI_LOGIN_SEND)
		return action;
	if (login->sending) {
		if (len || (flags & FLAG_CONTINUE))
			return refuse(login, ISCSI_LOGIN_INITIATOR_ERROR,
				      "text before ours was complete");
		return send_piece(login);
	}
	if (len && data != login->in + login->in_len)
		memcpy(login->in + login->in_len, data, len);
	login->in_len += len;
	if (flags & FLAG_CONTINUE) {
		respond(login, (uint8_t)(login->phase << 2), login->out_data, 0);
		return ISCSI_LOGIN_SEND;
	}
	return answer_text(login, flags);
}
