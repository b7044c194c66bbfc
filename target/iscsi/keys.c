/* SPDX-License-Identifier: MIT */
/*
 * Text keys: a row for each, splitting texts into pairs, and negotiating each by its rule.
 *
 * Invariants:
 * 1. Every key that the RFC lists is a row of `rules`; what happens to one follows from its row.
 * 2. A parameter changes only together with the answer that says so; Reject, Irrelevant and
 *    NotUnderstood leave it as it was.
 * 3. Nothing of a text is kept but names, alias and numbers within their bounds.
 * 4. No key is answered twice in one negotiation.
 *
 * Not here: how numbers and lists are written (value.c), stages and statuses (login.c),
 * SendTargets (text.c).
 * Spec: RFC 7143 sections 6 and 13, RFC 7144 section 7.1.
 */
#include "target/iscsi/keys.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "target/iscsi/name.h"

enum kind {
	KIND_AUTH,     /* the authentication method's */
	KIND_DISCOVER, /* SendTargets */
	KIND_NAME,     /* identity: declared, may be said again */
	KIND_TYPE,
	KIND_ALIAS,
	KIND_DIGEST, /* list of values, the first that we have */
	KIND_REPORTING,
	KIND_OR,
	KIND_AND,
	KIND_MIN,
	KIND_MAX,
	KIND_DECLARE, /* a number, not answered */
	KIND_IGNORE,  /* declared, of no use to us */
	KIND_TARGETS, /* only the target sends it */
	KIND_NO,      /* obsolete boolean */
	KIND_REJECT,  /* obsolete */
};

#define LOGIN (ISCSI_PHASE_SECURITY | ISCSI_PHASE_OPERATIONAL)
#define SECURITY ISCSI_PHASE_SECURITY
#define OPERATIONAL ISCSI_PHASE_OPERATIONAL
#define FULL ISCSI_PHASE_FULL_FEATURE
#define P(member) offsetof(struct iscsi_params, member)
#define K(member) offsetof(struct iscsi_keys, member)
#define SEGMENT_MAX 0xffffff

struct rule {
	const char *name;
	enum kind kind;
	unsigned phases;
	bool normal_only; /* Irrelevant in a discovery session */
	size_t at;        /* of the value in iscsi_params; for names in iscsi_keys */
	uint32_t low, high;
	uint32_t standard; /* before negotiation */
	uint32_t wish;
	unsigned value_max; /* 0: ISCSI_VALUE_MAX */
};

#define KEY(key, string, what, when)                                                               \
	[ISCSI_KEY_##key] = { .name = string, .kind = what, .phases = when }
#define LONG_KEY(key, string, what, when)                                                          \
	[ISCSI_KEY_##key] = {                                                                      \
		.name = string, .kind = what, .phases = when, .value_max = ISCSI_VALUE_LONG        \
	}
#define FIELD(key, string, what, when, where)                                                      \
	[ISCSI_KEY_##key] = { .name = string, .kind = what, .phases = when, .at = where }
#define BOOL(key, string, what, member, first, our)                                                \
	[ISCSI_KEY_##key] = { .name = string,                                                      \
			      .kind = what,                                                        \
			      .phases = OPERATIONAL,                                               \
			      .normal_only = true,                                                 \
			      .at = P(member),                                                     \
			      .standard = first,                                                   \
			      .wish = our }
#define NUMBER(key, string, what, normal, member, least, most, first, our)                         \
	[ISCSI_KEY_##key] = { .name = string,                                                      \
			      .kind = what,                                                        \
			      .phases = OPERATIONAL,                                               \
			      .normal_only = normal,                                               \
			      .at = P(member),                                                     \
			      .low = least,                                                        \
			      .high = most,                                                        \
			      .standard = first,                                                   \
			      .wish = our }

/* clang-format off */
static const struct rule rules[ISCSI_KEY_COUNT] = {
	KEY(AUTH_METHOD, "AuthMethod", KIND_AUTH, SECURITY),
	KEY(CHAP_A, "CHAP_A", KIND_AUTH, SECURITY),
	KEY(CHAP_I, "CHAP_I", KIND_AUTH, SECURITY),
	LONG_KEY(CHAP_C, "CHAP_C", KIND_AUTH, SECURITY),
	KEY(CHAP_N, "CHAP_N", KIND_AUTH, SECURITY),
	LONG_KEY(CHAP_R, "CHAP_R", KIND_AUTH, SECURITY),
	KEY(SEND_TARGETS, "SendTargets", KIND_DISCOVER, FULL),
	FIELD(INITIATOR_NAME, "InitiatorName", KIND_NAME, LOGIN, K(initiator_name)),
	FIELD(TARGET_NAME, "TargetName", KIND_NAME, LOGIN, K(target_name)),
	KEY(SESSION_TYPE, "SessionType", KIND_TYPE, LOGIN),
	KEY(INITIATOR_ALIAS, "InitiatorAlias", KIND_ALIAS, LOGIN | FULL),
	KEY(TARGET_ALIAS, "TargetAlias", KIND_TARGETS, LOGIN | FULL),
	KEY(TARGET_ADDRESS, "TargetAddress", KIND_TARGETS, LOGIN | FULL),
	KEY(TARGET_PORTAL_GROUP_TAG, "TargetPortalGroupTag", KIND_TARGETS, LOGIN),
	FIELD(HEADER_DIGEST, "HeaderDigest", KIND_DIGEST, OPERATIONAL, P(header_digest)),
	FIELD(DATA_DIGEST, "DataDigest", KIND_DIGEST, OPERATIONAL, P(data_digest)),
	[ISCSI_KEY_TASK_REPORTING] = {
		.name = "TaskReporting", .kind = KIND_REPORTING, .phases = OPERATIONAL,
		.normal_only = true,
	},
	BOOL(INITIAL_R2T, "InitialR2T", KIND_OR, initial_r2t, 1, 0),
	BOOL(IMMEDIATE_DATA, "ImmediateData", KIND_AND, immediate_data, 1, 1),
	BOOL(DATA_PDU_IN_ORDER, "DataPDUInOrder", KIND_OR, data_pdu_in_order, 1, 1),
	BOOL(DATA_SEQUENCE_IN_ORDER, "DataSequenceInOrder", KIND_OR, data_sequence_in_order, 1, 1),
	[ISCSI_KEY_MAX_RECV_DATA_SEGMENT_LENGTH] = {
		.name = "MaxRecvDataSegmentLength", .kind = KIND_DECLARE,
		.phases = OPERATIONAL | FULL, .at = P(max_send),
		.low = 512, .high = SEGMENT_MAX, .standard = ISCSI_LOGIN_SEGMENT,
	},
	NUMBER(MAX_CONNECTIONS, "MaxConnections", KIND_MIN, true, max_connections,
	       1, 65535, 1, 1),
	NUMBER(MAX_BURST_LENGTH, "MaxBurstLength", KIND_MIN, true, max_burst,
	       512, SEGMENT_MAX, 262144, ISCSI_OUR_MAX_BURST),
	NUMBER(FIRST_BURST_LENGTH, "FirstBurstLength", KIND_MIN, true, first_burst,
	       512, SEGMENT_MAX, 65536, ISCSI_OUR_FIRST_BURST),
	NUMBER(MAX_OUTSTANDING_R2T, "MaxOutstandingR2T", KIND_MIN, true, max_outstanding_r2t,
	       1, 65535, 1, ISCSI_OUR_OUTSTANDING_R2T),
	NUMBER(DEFAULT_TIME2WAIT, "DefaultTime2Wait", KIND_MAX, false, time2wait_s,
	       0, 3600, 2, 0),
	/* At ErrorRecoveryLevel 0 nothing of a session is kept once its connection is gone. */
	NUMBER(DEFAULT_TIME2RETAIN, "DefaultTime2Retain", KIND_MIN, false, time2retain_s,
	       0, 3600, 20, 0),
	NUMBER(ERROR_RECOVERY_LEVEL, "ErrorRecoveryLevel", KIND_MIN, false, error_recovery_level,
	       0, 2, 0, 0),
	NUMBER(PROTOCOL_LEVEL, "iSCSIProtocolLevel", KIND_MIN, true, protocol_level,
	       0, 31, 1, ISCSI_OUR_PROTOCOL_LEVEL),
	KEY(NODE_ARCHITECTURE, "X#NodeArchitecture", KIND_IGNORE, LOGIN),
	/* Obsolete: never NotUnderstood, and markers may be declined with No. */
	KEY(IF_MARKER, "IFMarker", KIND_NO, OPERATIONAL),
	KEY(OF_MARKER, "OFMarker", KIND_NO, OPERATIONAL),
	KEY(IF_MARK_INT, "IFMarkInt", KIND_REJECT, OPERATIONAL),
	KEY(OF_MARK_INT, "OFMarkInt", KIND_REJECT, OPERATIONAL),
};
/* clang-format on */

static_assert(ISCSI_KEY_COUNT <= 64, "`seen` has a bit a key");

/* --- text -------------------------------------------------------------- */

static enum iscsi_key key_find(const char *name)
{
	for (unsigned k = 0; k < ISCSI_KEY_COUNT; k++) {
		if (strcmp(rules[k].name, name) == 0)
			return (enum iscsi_key)k;
	}
	return ISCSI_KEY_UNKNOWN;
}

static bool key_char(char c)
{
	return isalnum((unsigned char)c) || (c && strchr(".-+@_#", c));
}

int iscsi_pairs_next(struct iscsi_pairs *pairs, struct iscsi_pair *pair)
{
	const char *text, *end;
	size_t n = 0, value_max = ISCSI_VALUE_LONG;

	/* Each pair ends with at least one NUL. */
	while (pairs->at < pairs->len && !pairs->data[pairs->at])
		pairs->at++;
	if (pairs->at == pairs->len)
		return 0;
	text = pairs->data + pairs->at;
	end = memchr(text, '\0', pairs->len - pairs->at);
	if (!end)
		return -EPROTO;
	while (n < ISCSI_KEY_MAX && key_char(text[n])) {
		pair->name[n] = text[n];
		n++;
	}
	pair->name[n] = '\0';
	if (n == 0 || text[n] != '=')
		return -EPROTO;
	pair->key = key_find(pair->name);
	pair->value = text + n + 1;
	pair->value_len = (size_t)(end - pair->value);
	if (pair->key != ISCSI_KEY_UNKNOWN)
		value_max = rules[pair->key].value_max ? rules[pair->key].value_max :
							 ISCSI_VALUE_MAX;
	if (pair->value_len > value_max)
		return -EPROTO;
	pairs->at = (size_t)(end + 1 - pairs->data);
	return 1;
}

/* --- negotiation ------------------------------------------------------- */

static bool is_boolean(enum kind kind)
{
	return kind == KIND_OR || kind == KIND_AND;
}

static void param_set(struct iscsi_params *params, const struct rule *rule, uint32_t value)
{
	void *at = (char *)params + rule->at;

	if (is_boolean(rule->kind) || rule->kind == KIND_DIGEST)
		*(bool *)at = value;
	else
		*(uint32_t *)at = value;
}

void iscsi_params_init(struct iscsi_params *params)
{
	memset(params, 0, sizeof(*params));
	for (unsigned k = 0; k < ISCSI_KEY_COUNT; k++) {
		enum kind kind = rules[k].kind;

		if (is_boolean(kind) || kind == KIND_DIGEST || kind == KIND_MIN ||
		    kind == KIND_MAX || kind == KIND_DECLARE)
			param_set(params, &rules[k], rules[k].standard);
	}
	params->max_recv = ISCSI_LOGIN_SEGMENT;
	params->task_reporting = ISCSI_REPORT_RFC3720;
}

void iscsi_keys_init(struct iscsi_keys *keys)
{
	memset(keys, 0, sizeof(*keys));
	iscsi_params_init(&keys->params);
	keys->session_type = ISCSI_SESSION_NORMAL;
}

bool iscsi_keys_seen(const struct iscsi_keys *keys, enum iscsi_key key)
{
	return keys->seen >> key & 1;
}

static enum iscsi_key_verdict take_name(struct iscsi_keys *keys, const struct rule *rule,
					const struct iscsi_pair *pair, bool again)
{
	char name[ISCSI_NAME_MAX + 1], *known = (char *)keys + rule->at;

	if (!iscsi_name_normalise(pair->value, name))
		return ISCSI_KEY_BAD_NAME;
	if (again)
		return strcmp(name, known) == 0 ? ISCSI_KEY_OK : ISCSI_KEY_PROTOCOL;
	memcpy(known, name, sizeof(name));
	return ISCSI_KEY_OK;
}

static enum iscsi_key_verdict take_type(struct iscsi_keys *keys, const struct iscsi_pair *pair,
					bool again)
{
	enum iscsi_session_type type = ISCSI_SESSION_NORMAL;

	if (strcmp(pair->value, "Discovery") == 0)
		type = ISCSI_SESSION_DISCOVERY;
	else if (strcmp(pair->value, "Normal") != 0)
		return ISCSI_KEY_BAD_TYPE;
	if (again && type != keys->session_type)
		return ISCSI_KEY_PROTOCOL;
	keys->session_type = type;
	return ISCSI_KEY_OK;
}

/* Their order is their preference. */
static void take_digest(struct iscsi_keys *keys, const struct rule *rule,
			const struct iscsi_pair *pair, struct iscsi_out *out)
{
	const char *list = pair->value, *item;
	size_t len;

	while (iscsi_list_next(&list, &item, &len)) {
		bool crc = iscsi_item_is(item, len, "CRC32C");

		if (crc || iscsi_item_is(item, len, "None")) {
			param_set(&keys->params, rule, crc);
			iscsi_out_add(out, rule->name, crc ? "CRC32C" : "None");
			return;
		}
	}
	iscsi_out_add(out, rule->name, "Reject");
}

/* FastAbort is not among ours: its responses do not wait for the affected initiators' sign. */
static void take_reporting(struct iscsi_keys *keys, const struct rule *rule,
			   const struct iscsi_pair *pair, struct iscsi_out *out)
{
	const char *list = pair->value, *item;
	size_t len;

	while (iscsi_list_next(&list, &item, &len)) {
		bool fence = iscsi_item_is(item, len, "ResponseFence");

		if (fence || iscsi_item_is(item, len, "RFC3720")) {
			keys->params.task_reporting = fence ? ISCSI_REPORT_RESPONSE_FENCE :
							      ISCSI_REPORT_RFC3720;
			iscsi_out_add(out, rule->name, fence ? "ResponseFence" : "RFC3720");
			return;
		}
	}
	iscsi_out_add(out, rule->name, "Reject");
}

static void take_boolean(struct iscsi_keys *keys, const struct rule *rule,
			 const struct iscsi_pair *pair, struct iscsi_out *out)
{
	bool yes = strcmp(pair->value, "Yes") == 0;

	if (!yes && strcmp(pair->value, "No") != 0) {
		iscsi_out_add(out, rule->name, "Reject");
		return;
	}
	yes = rule->kind == KIND_OR ? yes || rule->wish : yes && rule->wish;
	param_set(&keys->params, rule, yes);
	iscsi_out_add(out, rule->name, yes ? "Yes" : "No");
}

static void take_number(struct iscsi_keys *keys, const struct rule *rule,
			const struct iscsi_pair *pair, struct iscsi_out *out)
{
	uint64_t n;

	if (!iscsi_number(pair->value, &n) || n < rule->low || n > rule->high) {
		iscsi_out_add(out, rule->name, "Reject");
		return;
	}
	n = rule->kind == KIND_MIN ? min_u64(n, rule->wish) : max_u64(n, rule->wish);
	if (pair->key == ISCSI_KEY_FIRST_BURST_LENGTH)
		n = min_u64(n, keys->params.max_burst);
	param_set(&keys->params, rule, (uint32_t)n);
	iscsi_out_add(out, rule->name, "%u", (unsigned)n);
}

/*
 * A declaration out of range cannot be answered (ours of the same name would be taken for the
 * answer), and what they can receive is then unknown.
 */
static enum iscsi_key_verdict take_declared(struct iscsi_keys *keys, const struct rule *rule,
					    const struct iscsi_pair *pair)
{
	uint64_t n;

	if (!iscsi_number(pair->value, &n) || n < rule->low || n > rule->high)
		return ISCSI_KEY_PROTOCOL;
	param_set(&keys->params, rule, (uint32_t)n);
	return ISCSI_KEY_OK;
}

/* What they think of a declaration of ours. */
static bool is_comment(const char *value)
{
	return strcmp(value, "NotUnderstood") == 0 || strcmp(value, "Irrelevant") == 0 ||
	       strcmp(value, "Reject") == 0;
}

static enum iscsi_key_verdict take_known(struct iscsi_keys *keys, const struct rule *rule,
					 const struct iscsi_pair *pair, bool again,
					 struct iscsi_out *out)
{
	if (rule->normal_only && keys->session_type == ISCSI_SESSION_DISCOVERY) {
		iscsi_out_add(out, rule->name, "Irrelevant");
		return ISCSI_KEY_OK;
	}
	switch (rule->kind) {
	case KIND_AUTH:
		return ISCSI_KEY_AUTH;
	case KIND_DISCOVER:
		return ISCSI_KEY_DISCOVER;
	case KIND_NAME:
		return take_name(keys, rule, pair, again);
	case KIND_TYPE:
		return take_type(keys, pair, again);
	case KIND_ALIAS:
		memcpy(keys->initiator_alias, pair->value, pair->value_len + 1);
		break;
	case KIND_DIGEST:
		take_digest(keys, rule, pair, out);
		break;
	case KIND_REPORTING:
		take_reporting(keys, rule, pair, out);
		break;
	case KIND_OR:
	case KIND_AND:
		take_boolean(keys, rule, pair, out);
		break;
	case KIND_MIN:
	case KIND_MAX:
		take_number(keys, rule, pair, out);
		break;
	case KIND_DECLARE:
		return take_declared(keys, rule, pair);
	case KIND_TARGETS:
		return is_comment(pair->value) ? ISCSI_KEY_OK : ISCSI_KEY_PROTOCOL;
	case KIND_NO:
		iscsi_out_add(out, rule->name, "No");
		break;
	case KIND_REJECT:
		iscsi_out_add(out, rule->name, "Reject");
		break;
	case KIND_IGNORE:
		break;
	}
	return ISCSI_KEY_OK;
}

static bool may_repeat(enum kind kind)
{
	return kind == KIND_NAME || kind == KIND_TYPE || kind == KIND_ALIAS || kind == KIND_IGNORE;
}

enum iscsi_key_verdict iscsi_keys_take(struct iscsi_keys *keys, enum iscsi_phase phase,
				       const struct iscsi_pair *pair, struct iscsi_out *out)
{
	const struct rule *rule;
	uint64_t bit;
	bool again;

	if (pair->key == ISCSI_KEY_UNKNOWN) {
		/* The answer to an answer would never end. */
		if (!is_comment(pair->value))
			iscsi_out_add(out, pair->name, "NotUnderstood");
		return ISCSI_KEY_OK;
	}
	rule = &rules[pair->key];
	bit = (uint64_t)1 << pair->key;
	again = keys->seen & bit;
	if (!(rule->phases & phase) || (keys->seen_now & bit) || (again && !may_repeat(rule->kind)))
		return ISCSI_KEY_PROTOCOL;
	keys->seen |= bit;
	keys->seen_now |= bit;
	return take_known(keys, rule, pair, again, out);
}

/* In which pass a key is taken: what others depend on comes first. */
static int pass_of(enum iscsi_key key)
{
	if (key == ISCSI_KEY_SESSION_TYPE)
		return 0;
	return key == ISCSI_KEY_FIRST_BURST_LENGTH ? 2 : 1;
}

enum iscsi_key_verdict
iscsi_keys_take_text(struct iscsi_keys *keys, enum iscsi_phase phase, const char *data, size_t len,
		     struct iscsi_out *out,
		     enum iscsi_key_verdict (*other)(void *arg, const struct iscsi_pair *pair),
		     void *arg)
{
	enum iscsi_key_verdict verdict;
	struct iscsi_pair pair;
	int more;

	keys->seen_now = 0;
	for (int pass = 0; pass < 3; pass++) {
		struct iscsi_pairs pairs = { .data = data, .len = len };

		while ((more = iscsi_pairs_next(&pairs, &pair)) > 0) {
			if (pass_of(pair.key) != pass)
				continue;
			verdict = iscsi_keys_take(keys, phase, &pair, out);
			if (verdict == ISCSI_KEY_AUTH || verdict == ISCSI_KEY_DISCOVER)
				verdict = other(arg, &pair);
			if (verdict != ISCSI_KEY_OK)
				return verdict;
		}
		if (more < 0)
			return ISCSI_KEY_PROTOCOL;
	}
	return ISCSI_KEY_OK;
}

void iscsi_keys_settle(struct iscsi_keys *keys, bool declared)
{
	struct iscsi_params *params = &keys->params;

	/* The standard FirstBurstLength may be above a MaxBurstLength that was agreed. */
	if (params->first_burst > params->max_burst)
		params->first_burst = params->max_burst;
	if (declared)
		params->max_recv = ISCSI_OUR_MAX_RECV;
}
