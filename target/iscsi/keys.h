/* SPDX-License-Identifier: MIT */
/*
 * Text keys: splitting key=value pairs, and negotiating each by its rule.
 *
 * Works on memory of the caller's, allocates nothing. Texts come from the wire
 * and may hold anything.
 *
 * Spec: RFC 7143 sections 6 and 13, RFC 7144 section 7.1.
 */
#ifndef TARGET_ISCSI_KEYS_H
#define TARGET_ISCSI_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base.h"
#include "target/iscsi/value.h"

#define ISCSI_KEY_MAX 63         /* bytes of a key's name */
#define ISCSI_VALUE_MAX 255      /* bytes of a value, unless its key says otherwise */
#define ISCSI_VALUE_LONG 8191    /* of CHAP_C and of keys that are not understood */
#define ISCSI_TEXT_MAX 8192      /* one text, all its continuations together */
#define ISCSI_NAME_MAX 223       /* bytes of an iSCSI name */
#define ISCSI_LOGIN_SEGMENT 8192 /* MaxRecvDataSegmentLength before it is declared, both ways */

/* What we declare and wish; the other side's offer is combined with it. */
#define ISCSI_OUR_MAX_RECV (256 * 1024)
#define ISCSI_OUR_MAX_BURST (1024 * 1024)
#define ISCSI_OUR_FIRST_BURST (256 * 1024)
#define ISCSI_OUR_OUTSTANDING_R2T 16
#define ISCSI_OUR_PROTOCOL_LEVEL 2

enum iscsi_session_type { ISCSI_SESSION_NORMAL, ISCSI_SESSION_DISCOVERY };

/* TaskReporting: how responses of tasks that a TMF affects are ordered. */
enum iscsi_task_reporting {
	ISCSI_REPORT_RFC3720,
	ISCSI_REPORT_RESPONSE_FENCE,
	ISCSI_REPORT_FAST_ABORT,
};

/* What holds on a connection; the RFC's defaults until something else is agreed. */
struct iscsi_params {
	bool header_digest; /* CRC32C; false: None */
	bool data_digest;
	bool initial_r2t;
	bool immediate_data;
	bool data_pdu_in_order;
	bool data_sequence_in_order;
	uint32_t max_recv; /* data segment that we receive, bytes; 8192 until login ends */
	uint32_t max_send; /* data segment that they receive, bytes */
	uint32_t max_burst;
	uint32_t first_burst; /* never above max_burst once iscsi_keys_settle() ran */
	uint32_t max_outstanding_r2t;
	uint32_t time2wait_s;
	uint32_t time2retain_s;
	uint32_t error_recovery_level; /* 0 */
	uint32_t max_connections;      /* 1 */
	uint32_t protocol_level;       /* 2: QUERY TASK and its kin, RFC 7144 */
	enum iscsi_task_reporting task_reporting;
};

void iscsi_params_init(struct iscsi_params *params);

enum iscsi_key {
	ISCSI_KEY_AUTH_METHOD,
	ISCSI_KEY_CHAP_A,
	ISCSI_KEY_CHAP_I,
	ISCSI_KEY_CHAP_C,
	ISCSI_KEY_CHAP_N,
	ISCSI_KEY_CHAP_R,
	ISCSI_KEY_HEADER_DIGEST,
	ISCSI_KEY_DATA_DIGEST,
	ISCSI_KEY_MAX_CONNECTIONS,
	ISCSI_KEY_SEND_TARGETS,
	ISCSI_KEY_TARGET_NAME,
	ISCSI_KEY_INITIATOR_NAME,
	ISCSI_KEY_TARGET_ALIAS,
	ISCSI_KEY_INITIATOR_ALIAS,
	ISCSI_KEY_TARGET_ADDRESS,
	ISCSI_KEY_TARGET_PORTAL_GROUP_TAG,
	ISCSI_KEY_INITIAL_R2T,
	ISCSI_KEY_IMMEDIATE_DATA,
	ISCSI_KEY_MAX_RECV_DATA_SEGMENT_LENGTH,
	ISCSI_KEY_MAX_BURST_LENGTH,
	ISCSI_KEY_FIRST_BURST_LENGTH,
	ISCSI_KEY_DEFAULT_TIME2WAIT,
	ISCSI_KEY_DEFAULT_TIME2RETAIN,
	ISCSI_KEY_MAX_OUTSTANDING_R2T,
	ISCSI_KEY_DATA_PDU_IN_ORDER,
	ISCSI_KEY_DATA_SEQUENCE_IN_ORDER,
	ISCSI_KEY_ERROR_RECOVERY_LEVEL,
	ISCSI_KEY_SESSION_TYPE,
	ISCSI_KEY_TASK_REPORTING,
	ISCSI_KEY_PROTOCOL_LEVEL,
	ISCSI_KEY_NODE_ARCHITECTURE,
	ISCSI_KEY_IF_MARKER,
	ISCSI_KEY_OF_MARKER,
	ISCSI_KEY_IF_MARK_INT,
	ISCSI_KEY_OF_MARK_INT,
	ISCSI_KEY_COUNT,
	ISCSI_KEY_UNKNOWN = ISCSI_KEY_COUNT,
};

/* Where a key arrives. */
enum iscsi_phase {
	ISCSI_PHASE_SECURITY = 1 << 0,
	ISCSI_PHASE_OPERATIONAL = 1 << 1,
	ISCSI_PHASE_FULL_FEATURE = 1 << 2,
};

/* --- text -------------------------------------------------------------- */

struct iscsi_pair {
	enum iscsi_key key; /* ISCSI_KEY_UNKNOWN: only the name tells */
	char name[ISCSI_KEY_MAX + 1];
	const char *value; /* within the text, NUL-terminated */
	size_t value_len;
};

/* Walks a text, which it does not change. */
struct iscsi_pairs {
	const char *data;
	size_t len;
	size_t at;
};

/* 1 and PAIR, 0 at the end, -EPROTO: no `=`, no NUL, an illegal name, a value too long. */
int iscsi_pairs_next(struct iscsi_pairs *pairs, struct iscsi_pair *pair);

/* --- negotiation ------------------------------------------------------- */

/* One connection's negotiation: a login, or one text negotiation in full feature phase. */
struct iscsi_keys {
	struct iscsi_params params;
	uint64_t seen;     /* bit a key: they sent it in this negotiation */
	uint64_t seen_now; /* the same within the text being taken */
	enum iscsi_session_type session_type;
	char initiator_name[ISCSI_NAME_MAX + 1]; /* normalised; "" until given */
	char target_name[ISCSI_NAME_MAX + 1];
	char initiator_alias[ISCSI_VALUE_MAX + 1]; /* as sent: escape when shown */
};

enum iscsi_key_verdict {
	ISCSI_KEY_OK,       /* taken, answered (Reject, Irrelevant, NotUnderstood included) */
	ISCSI_KEY_AUTH,     /* belongs to the authentication method: not answered here */
	ISCSI_KEY_DISCOVER, /* SendTargets: the caller answers */
	ISCSI_KEY_PROTOCOL, /* ends it: malformed, twice, not theirs, not in this phase */
	ISCSI_KEY_BAD_NAME, /* InitiatorName or TargetName that is no iSCSI name */
	ISCSI_KEY_BAD_TYPE, /* SessionType that does not exist */
};

void iscsi_keys_init(struct iscsi_keys *keys);
/* Takes one pair of theirs and appends what it is owed to OUT. */
enum iscsi_key_verdict iscsi_keys_take(struct iscsi_keys *keys, enum iscsi_phase phase,
				       const struct iscsi_pair *pair, struct iscsi_out *out);
/*
 * A whole text. SessionType is taken first and FirstBurstLength last, whose
 * answers depend on the others. A key twice in one text is an error; a name,
 * SessionType or alias said again in a later text with the same value is not
 * (libiscsi says them in each stage). OTHER sees each pair whose verdict is AUTH or DISCOVER and returns
 * the verdict that counts. The first verdict that is not OK ends it.
 */
enum iscsi_key_verdict
iscsi_keys_take_text(struct iscsi_keys *keys, enum iscsi_phase phase, const char *data, size_t len,
		     struct iscsi_out *out,
		     enum iscsi_key_verdict (*other)(void *arg, const struct iscsi_pair *pair),
		     void *arg);
bool iscsi_keys_seen(const struct iscsi_keys *keys, enum iscsi_key key);
/*
 * At the end of login: FirstBurstLength is cut to MaxBurstLength, and what we
 * receive grows from 8192 to ISCSI_OUR_MAX_RECV if that was DECLARED.
 */
void iscsi_keys_settle(struct iscsi_keys *keys, bool declared);

#endif
