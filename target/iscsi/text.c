/* SPDX-License-Identifier: MIT */
/*
 * Text Requests in full feature phase: SendTargets and renegotiation.
 *
 *	idle ── request, TTT none ─▶ collecting ── text whole: take_text ─▶ answering
 *	                                │ ▲ C bit: empty answer                │
 *	                                ╰─╯                                    │ fill
 *	answering ── more than fits, C bit ─▶ fetched by an empty request ─────╯
 *	          ── all sent, F of theirs ─▶ idle        no F ─▶ collecting
 *
 * Invariants:
 * 1. A request without a TTT forgets whatever negotiation was open (RFC 7143 section 11.10.4).
 * 2. Between two pieces only a target's name and an address index are kept; each piece moves on
 *    to a greater name, so a listing ends however targets come and go.
 * 3. Nothing with a control character leaves in a listing.
 * 4. A declared MaxRecvDataSegmentLength holds from the PDU after the final answer.
 *
 * Not here: which targets they may see (ops), StatSN and the command window (tx.c).
 * Spec: RFC 7143 sections 6.4, 11.10, 11.11, appendix C.
 */
#include "target/iscsi/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"
#include "target/iscsi/name.h"

#define OP_TEXT_RESPONSE 0x24
#define FLAG_FINAL 0x80
#define FLAG_CONTINUE 0x40
#define TTT_NONE UINT32_MAX

enum { AT_FLAGS = 1, AT_AHS_LEN = 4, AT_DATA_LEN = 5, AT_LUN = 8, AT_ITT = 16, AT_TTT = 20 };

void iscsi_text_init(struct iscsi_text *text, const struct iscsi_text_ops *ops, void *arg,
		     struct iscsi_params *params, enum iscsi_session_type type,
		     const char *target_name)
{
	memset(text, 0, sizeof(*text));
	text->ops = ops;
	text->arg = arg;
	text->params = params;
	text->session_type = type;
	text->target_name = target_name;
	text->out.data = text->out_data;
	text->out.size = sizeof(text->out_data);
}

static void reset(struct iscsi_text *text)
{
	free(text->in);
	text->in = NULL;
	text->in_len = 0;
	text->open = false;
	text->answering = false;
	text->listing = false;
	text->out.len = text->out_sent = 0;
	text->out.full = false;
	text->record_len = text->record_sent = 0;
}

void iscsi_text_fini(struct iscsi_text *text)
{
	reset(text);
}

/* --- SendTargets ------------------------------------------------------- */

static bool is_clean(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	}
	return true;
}

static void record_set(struct iscsi_text *text, const char *name, const char *value)
{
	int n = snprintf(text->record, sizeof(text->record), "%s=%s", name, value);

	text->record_sent = 0;
	text->record_len = n > 0 && (size_t)n < sizeof(text->record) ? (uint32_t)n + 1 : 0;
}

/* The next target to show in full: its name goes to `target`. */
static bool target_advance(struct iscsi_text *text)
{
	const char *next = text->ops->target_next(text->arg, text->target);

	while (next && strcmp(next, text->target) > 0 && strlen(next) <= ISCSI_NAME_MAX) {
		strcpy(text->target, next);
		if (is_clean(next))
			return true;
		next = text->ops->target_next(text->arg, text->target);
	}
	return false;
}

/* Makes `record` the next pair of the listing; false and not listing at its end. */
static bool record_next(struct iscsi_text *text)
{
	char address[ISCSI_ADDRESS_MAX + 1];

	for (;;) {
		if (text->name_due) {
			text->name_due = false;
			text->address = 0;
			record_set(text, "TargetName", text->target);
			return true;
		}
		if (text->target[0] &&
		    text->ops->target_address(text->arg, text->target, text->address, address,
					      sizeof(address))) {
			text->address++;
			if (!is_clean(address))
				continue;
			record_set(text, "TargetAddress", address);
			return true;
		}
		if (!text->all || !target_advance(text))
			break;
		text->name_due = true;
	}
	text->listing = false;
	return false;
}

/*
 * Whether a listing would show NAME: asked of target_next(), so that there is one rule of who
 * sees what. No name lies between AFTER and NAME, since 0xff is in no UTF-8 text.
 */
static bool is_visible(struct iscsi_text *text, const char *name)
{
	char after[ISCSI_NAME_MAX + 2];
	size_t len = strlen(name);
	const char *next;

	if (!len || !is_clean(name))
		return false;
	memcpy(after, name, len);
	after[len - 1]--;
	after[len] = '\xff';
	after[len + 1] = '\0';
	next = text->ops->target_next(text->arg, after);
	return next && strcmp(next, name) == 0;
}

static void list_one(struct iscsi_text *text, const char *name)
{
	if (!is_visible(text, name))
		return;
	snprintf(text->target, sizeof(text->target), "%s", name);
	text->all = false;
	text->listing = text->name_due = true;
}

static enum iscsi_key_verdict send_targets(void *arg, const struct iscsi_pair *pair)
{
	bool discovery;
	struct iscsi_text *text = arg;
	char name[ISCSI_NAME_MAX + 1];

	if (pair->key != ISCSI_KEY_SEND_TARGETS)
		return ISCSI_KEY_PROTOCOL;
	discovery = text->session_type == ISCSI_SESSION_DISCOVERY;
	if (strcmp(pair->value, "All") == 0 && discovery) {
		text->target[0] = '\0';
		text->name_due = false;
		text->all = text->listing = true;
	} else if (pair->value_len == 0 && !discovery) {
		list_one(text, text->target_name);
	} else if (iscsi_name_normalise(pair->value, name)) {
		/* In a normal session only its own target may be asked for. */
		if (discovery || strcmp(name, text->target_name) == 0)
			list_one(text, name);
	} else {
		iscsi_out_add(&text->out, "SendTargets", "Reject");
	}
	return ISCSI_KEY_OK;
}

/* --- responses --------------------------------------------------------- */

/* Moves what fits of SRC[*SENT..LEN) to the response; true once all of it is there. */
static bool put(struct iscsi_text_response *response, uint32_t room, const char *src, uint32_t len,
		uint32_t *sent)
{
	uint32_t n = (uint32_t)min_u64(len - *sent, room - response->len);

	memcpy(response->data + response->len, src + *sent, n);
	response->len += n;
	*sent += n;
	return *sent == len;
}

/* True once the whole answer has left. */
static bool fill(struct iscsi_text *text, struct iscsi_text_response *response)
{
	uint32_t room = (uint32_t)min_u64(response->size, text->params->max_send);

	if (!put(response, room, text->out.data, (uint32_t)text->out.len, &text->out_sent))
		return false;
	for (;;) {
		if (!put(response, room, text->record, text->record_len, &text->record_sent))
			return false;
		if (!text->listing || !record_next(text))
			return true;
	}
}

static void respond(struct iscsi_text *text, const uint8_t *request, uint8_t flags,
		    struct iscsi_text_response *response)
{
	uint8_t *bhs = response->bhs;

	memset(bhs, 0, ISCSI_BHS);
	if (flags & FLAG_FINAL) {
		text->ttt = TTT_NONE;
	} else {
		text->ttt = text->ttt_next;
		text->ttt_next = text->ttt_next + 1 == TTT_NONE ? 0 : text->ttt_next + 1;
	}
	bhs[0] = OP_TEXT_RESPONSE;
	bhs[AT_FLAGS] = flags;
	put_be24(bhs + AT_DATA_LEN, response->len);
	memcpy(bhs + AT_LUN, request + AT_LUN, 8);
	memcpy(bhs + AT_ITT, request + AT_ITT, 4);
	put_be32(bhs + AT_TTT, text->ttt);
}

static int answer(struct iscsi_text *text, const uint8_t *bhs, struct iscsi_text_response *response)
{
	uint8_t flags = 0;

	text->answering = !fill(text, response);
	if (text->answering)
		flags = FLAG_CONTINUE;
	else if (text->final_asked)
		flags = FLAG_FINAL;
	respond(text, bhs, flags, response);
	if (flags & FLAG_FINAL) {
		text->params->max_send = text->keys.params.max_send;
		reset(text);
	}
	return 0;
}

/* --- requests ---------------------------------------------------------- */

static int reject(struct iscsi_text *text, int reason)
{
	reset(text);
	return reason;
}

static void begin(struct iscsi_text *text, const uint8_t *bhs)
{
	reset(text);
	iscsi_keys_init(&text->keys);
	text->keys.params = *text->params;
	text->keys.session_type = text->session_type;
	text->open = true;
	text->itt = get_be32(bhs + AT_ITT);
}

/* Keeps a part of a text that is continued. The area's size does not depend on theirs. */
static int collect(struct iscsi_text *text, const char *data, uint32_t len)
{
	if (!text->in)
		text->in = malloc(ISCSI_TEXT_MAX);
	if (!text->in)
		return ISCSI_REJECT_RESOURCES;
	if (len > ISCSI_TEXT_MAX - text->in_len)
		return ISCSI_REJECT_PROTOCOL;
	if (len)
		memcpy(text->in + text->in_len, data, len);
	text->in_len += len;
	return 0;
}

static int take_text(struct iscsi_text *text, const char *data, uint32_t len)
{
	enum iscsi_key_verdict verdict;

	text->out.len = text->out_sent = 0;
	text->record_len = text->record_sent = 0;
	verdict = iscsi_keys_take_text(&text->keys, ISCSI_PHASE_FULL_FEATURE, data, len, &text->out,
				       send_targets, text);
	free(text->in);
	text->in = NULL;
	text->in_len = 0;
	if (verdict != ISCSI_KEY_OK)
		return ISCSI_REJECT_PROTOCOL;
	return text->out.full ? ISCSI_REJECT_RESOURCES : 0;
}

/* A request's text, whole or a part of it; 0 or the reason of a Reject. */
static int take_request(struct iscsi_text *text, uint8_t flags, const char *data, uint32_t len)
{
	int reason;

	if (len > ISCSI_TEXT_MAX)
		return ISCSI_REJECT_PROTOCOL;
	if ((flags & FLAG_CONTINUE) || text->in) {
		reason = collect(text, data, len);
		if (reason || (flags & FLAG_CONTINUE))
			return reason;
		data = text->in;
		len = text->in_len;
	}
	return take_text(text, data, len);
}

int iscsi_text_step(struct iscsi_text *text, const uint8_t bhs[ISCSI_BHS], const char *data,
		    uint32_t len, struct iscsi_text_response *response)
{
	uint32_t ttt = get_be32(bhs + AT_TTT);
	uint8_t flags = bhs[AT_FLAGS];
	int reason;

	response->len = 0;
	if ((flags & FLAG_FINAL) && (flags & FLAG_CONTINUE))
		return reject(text, ISCSI_REJECT_PROTOCOL);
	if (ttt == TTT_NONE)
		begin(text, bhs);
	else if (!text->open || ttt != text->ttt || text->itt != get_be32(bhs + AT_ITT))
		return reject(text, ISCSI_REJECT_FIELD);
	if (text->answering) {
		if (len || (flags & FLAG_CONTINUE))
			return reject(text, ISCSI_REJECT_PROTOCOL);
		text->final_asked = text->final_asked || (flags & FLAG_FINAL);
		return answer(text, bhs, response);
	}
	reason = take_request(text, flags, data, len);
	if (reason)
		return reject(text, reason);
	if (flags & FLAG_CONTINUE) {
		respond(text, bhs, 0, response);
		return 0;
	}
	text->final_asked = flags & FLAG_FINAL;
	return answer(text, bhs, response);
}
