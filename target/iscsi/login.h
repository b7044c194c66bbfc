/* SPDX-License-Identifier: MIT */
/*
 * The login phase of one connection: Login Request in, Login Response out.
 *
 * No socket, no timer, no allocation: a caller hands in one whole PDU at a time
 * and sends what stands in the struct afterwards. Everything in a request is
 * hostile; the struct's size is all the memory that a login can take.
 *
 *	init ─▶ [ data area ─▶ step ─▶ send response ]* ─▶ DONE: full feature phase
 *	                          │  ╰─ WAIT: resume later, then send
 *	                          ╰─ FAIL: send, close    DROP: close
 *
 * Spec: RFC 7143 sections 6, 11.12, 11.13.
 */
#ifndef TARGET_ISCSI_LOGIN_H
#define TARGET_ISCSI_LOGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "target/iscsi/keys.h"

#define ISCSI_BHS 48
#define ISCSI_LOGIN_OUT 1536 /* our part of a login is far below this */

/* Status class and detail, as sent. */
enum iscsi_login_status {
	ISCSI_LOGIN_SUCCESS = 0x0000,
	ISCSI_LOGIN_INITIATOR_ERROR = 0x0200,
	ISCSI_LOGIN_AUTH_FAILED = 0x0201,
	ISCSI_LOGIN_NOT_ALLOWED = 0x0202,
	ISCSI_LOGIN_NOT_FOUND = 0x0203,
	ISCSI_LOGIN_TARGET_REMOVED = 0x0204,
	ISCSI_LOGIN_VERSION = 0x0205,
	ISCSI_LOGIN_TOO_MANY_CONNECTIONS = 0x0206,
	ISCSI_LOGIN_MISSING_PARAMETER = 0x0207,
	ISCSI_LOGIN_CANNOT_INCLUDE = 0x0208,
	ISCSI_LOGIN_SESSION_TYPE = 0x0209,
	ISCSI_LOGIN_NO_SESSION = 0x020a,
	ISCSI_LOGIN_INVALID_DURING_LOGIN = 0x020b,
	ISCSI_LOGIN_TARGET_ERROR = 0x0300,
	ISCSI_LOGIN_UNAVAILABLE = 0x0301,
	ISCSI_LOGIN_NO_RESOURCES = 0x0302,
	/* Not sent: session_open() will be answered with iscsi_login_resume(). */
	ISCSI_LOGIN_PENDING = 0x10000,
};

/* "authentication failed": for the log and the event. */
const char *iscsi_login_status_text(enum iscsi_login_status status);

enum iscsi_login_action {
	ISCSI_LOGIN_SEND, /* send the response, more requests follow */
	ISCSI_LOGIN_DONE, /* send the response, then full feature phase */
	ISCSI_LOGIN_FAIL, /* send the response, then close */
	ISCSI_LOGIN_DROP, /* close without a word */
	ISCSI_LOGIN_WAIT, /* nothing to send until iscsi_login_resume() */
};

/*
 * An authentication method (CHAP). One exchange of it is: begin() or keys of
 * theirs through key(), then step() once the text is whole.
 */
enum iscsi_auth_result { ISCSI_AUTH_MORE, ISCSI_AUTH_OK, ISCSI_AUTH_REFUSED };
struct iscsi_auth_method {
	const char *name; /* in AuthMethod */
	/* False refuses. Values are the caller's for the call and may be secrets. */
	bool (*key)(void *state, const struct iscsi_pair *pair);
	enum iscsi_auth_result (*step)(void *state, struct iscsi_out *out);
};

struct iscsi_login;

struct iscsi_login_ops {
	/*
	 * Who they are and what they want is known: keys.initiator_name,
	 * keys.session_type and, in a normal session, keys.target_name. Sets
	 * login->target and login->portal_group (normal sessions), and login->auth
	 * with login->auth_state where authentication is required.
	 * SUCCESS, NOT_FOUND, NOT_ALLOWED, TARGET_REMOVED, UNAVAILABLE, ...
	 * NOT_ALLOWED and NOT_FOUND are sent only after this; nothing is opened.
	 */
	enum iscsi_login_status (*admit)(void *arg, struct iscsi_login *login);
	/*
	 * Authenticated and agreed. Looks for the session {initiator_name, isid,
	 * portal_group}: TSIH 0 reinstates (the old one is closed, the caller does
	 * not wait for it); TSIH not 0 must name one (else NO_SESSION), and as
	 * MaxConnections is 1 is TOO_MANY_CONNECTIONS or CANNOT_INCLUDE.
	 * SUCCESS: sets login->tsih (not 0) and login->window (commands that may
	 * be sent, at least 1). PENDING: iscsi_login_resume() follows.
	 */
	enum iscsi_login_status (*session_open)(void *arg, struct iscsi_login *login);
};

struct iscsi_login {
	const struct iscsi_login_ops *ops;
	void *arg;
	unsigned exchanges_max;

	/* For the caller and the callbacks. */
	struct iscsi_keys keys; /* names, session type; after DONE params are what was agreed */
	uint8_t isid[6];
	uint16_t tsih; /* theirs; after session_open() ours */
	uint16_t cid;
	uint32_t cmd_sn;  /* of every login request: the session's first ExpCmdSN */
	uint32_t stat_sn; /* of the next response */
	uint32_t window;  /* MaxCmdSN of the last response is cmd_sn + window - 1 */
	uint16_t portal_group;
	void *target; /* admit()'s, opaque here */
	const struct iscsi_auth_method *auth;
	void *auth_state;
	enum iscsi_login_status status;
	const char *reason; /* static text behind a status that is not SUCCESS, for the log */

	/* The response: BHS as it is sent (lengths, StatSN, ... included), and its data. */
	uint8_t response[ISCSI_BHS];
	const char *response_data; /* padding is the sender's */
	uint32_t response_len;

	/* Private. */
	bool started;
	bool admitted;
	bool authenticated;
	bool method_chosen;
	bool waiting; /* for iscsi_login_resume() */
	bool failed;
	bool tag_told;
	bool sending;           /* pieces of `out` are left, which they fetch with empty requests */
	const char *auth_offer; /* AuthMethod of the text being taken */
	bool max_recv_told;
	uint8_t phase;         /* CSG: 0 or 1 */
	uint8_t pending_flags; /* T, CSG and NSG to answer once all of `out` was sent */
	unsigned exchanges;
	uint32_t itt;
	uint32_t out_sent;
	uint32_t in_len;
	struct iscsi_out out;
	char out_data[ISCSI_LOGIN_OUT];
	char in[ISCSI_TEXT_MAX + 4]; /* padding of the last PDU included */
};

/* EXCHANGES_MAX: requests after which a login is refused. */
void iscsi_login_init(struct iscsi_login *login, const struct iscsi_login_ops *ops, void *arg,
		      unsigned exchanges_max);

/*
 * Where to receive the LEN bytes of data of the next request and their padding,
 * or NULL: too much; step() with that header and data NULL then refuses it.
 */
char *iscsi_login_data(struct iscsi_login *login, uint32_t len);

/*
 * One PDU, of any opcode, without AHS: DATA is what iscsi_login_data() gave
 * (or other memory, which is copied), LEN the bytes of it as BHS says.
 */
enum iscsi_login_action iscsi_login_step(struct iscsi_login *login, const uint8_t bhs[ISCSI_BHS],
					 const char *data, uint32_t len);
/* After WAIT: session_open()'s answer. */
enum iscsi_login_action iscsi_login_resume(struct iscsi_login *login,
					   enum iscsi_login_status status);
/* From outside (a limit, shutting down): prepares a refusal, FAIL; DROP before any request. */
enum iscsi_login_action iscsi_login_refuse(struct iscsi_login *login,
					   enum iscsi_login_status status, const char *reason);

#endif
