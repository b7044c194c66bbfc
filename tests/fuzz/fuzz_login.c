/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes negotiation: a byte of switches, then what an initiator sends on the wire, PDU by PDU:
 * Login Requests until full feature phase, Text Requests from then on.
 *
 * Invariants:
 * 1. Each PDU's data lies in memory of exactly its size.
 * 2. What is asserted holds for any input: lengths within bounds, no full feature phase without
 *    admission, authentication and a session, no answer after the end.
 *
 * Not here: what is answered (tests/unit/test_login.c).
 */
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"
#include "target/iscsi/login.h"
#include "target/iscsi/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WITH_AUTH = 1, LATER = 2, REFUSING = 4, TINY = 8 };

struct world {
	uint8_t switches;
	bool admitted, proven, opened;
	struct iscsi_login login;
	struct iscsi_text text;
};

static bool auth_key(void *state, const struct iscsi_pair *pair)
{
	uint8_t bytes[64];
	struct world *world = state;
	int len = iscsi_binary(pair->value, bytes, sizeof(bytes));

	assert(len <= (int)sizeof(bytes));
	world->proven = pair->key == ISCSI_KEY_CHAP_R && len > 0;
	return true;
}

static enum iscsi_auth_result auth_step(void *state, struct iscsi_out *out)
{
	struct world *world = state;

	iscsi_out_add(out, "CHAP_A", "5");
	return world->proven ? ISCSI_AUTH_OK : ISCSI_AUTH_MORE;
}

static const struct iscsi_auth_method method = { "CHAP", auth_key, auth_step };

static enum iscsi_login_status admit(void *arg, struct iscsi_login *login)
{
	struct world *world = arg;

	assert(!world->admitted && login->keys.initiator_name[0]);
	if (world->switches & REFUSING)
		return ISCSI_LOGIN_NOT_FOUND;
	world->admitted = true;
	if (world->switches & WITH_AUTH) {
		login->auth = &method;
		login->auth_state = world;
	}
	return ISCSI_LOGIN_SUCCESS;
}

static enum iscsi_login_status session_open(void *arg, struct iscsi_login *login)
{
	struct world *world = arg;

	assert(world->admitted && !world->opened);
	assert(world->proven || !(world->switches & WITH_AUTH));
	assert(login->keys.params.first_burst <= login->keys.params.max_burst);
	world->opened = true;
	login->tsih = 1;
	login->window = 16;
	return world->switches & LATER ? ISCSI_LOGIN_PENDING : ISCSI_LOGIN_SUCCESS;
}

static const struct iscsi_login_ops login_ops = { .admit = admit, .session_open = session_open };

static const char *const targets[] = { "iqn.2026-11.org.x:a", "iqn.2026-11.org.x:b\x1b[2J",
				       "iqn.2026-11.org.x:disk" };

static const char *target_next(void *arg, const char *after)
{
	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		if (strcmp(targets[i], after) > 0)
			return targets[i];
	}
	return NULL;
}

static bool target_address(void *arg, const char *target, unsigned index, char *text, size_t size)
{
	(void)arg;
	(void)target;
	if (index > 2 || size < 20)
		return false;
	strcpy(text, "[2001:db8::1]:3260,1");
	return true;
}

static const struct iscsi_text_ops text_ops = { target_next, target_address };

/* Whether the connection is still there afterwards. */
static bool login_pdu(struct world *world, const uint8_t *bhs, const char *data, uint32_t len)
{
	struct iscsi_login *login = &world->login;
	enum iscsi_login_action action;

	if (!iscsi_login_data(login, len))
		data = NULL;
	action = iscsi_login_step(login, bhs, data, len);
	if (action == ISCSI_LOGIN_WAIT)
		action = iscsi_login_resume(login, ISCSI_LOGIN_SUCCESS);
	if (action == ISCSI_LOGIN_DROP)
		return false;
	assert(login->response_len <= ISCSI_LOGIN_OUT);
	assert(login->response_len == get_be24(login->response + 5));
	assert(login->exchanges <= login->exchanges_max + 1);
	assert((action == ISCSI_LOGIN_FAIL) == (login->status != ISCSI_LOGIN_SUCCESS));
	for (uint32_t i = 0; i < login->response_len; i++)
		assert((unsigned char)login->response_data[i] != 0x1b);
	if (action == ISCSI_LOGIN_DONE) {
		assert(world->opened);
		iscsi_text_init(&world->text, &text_ops, NULL, &login->keys.params,
				login->keys.session_type, login->keys.target_name);
	}
	return action == ISCSI_LOGIN_SEND || action == ISCSI_LOGIN_DONE;
}

static void text_pdu(struct world *world, const uint8_t *bhs, const char *data, uint32_t len)
{
	static char out[ISCSI_LOGIN_SEGMENT];
	struct iscsi_text_response response = { .data = out };
	int reason;

	response.size = world->switches & TINY ? 5 : sizeof(out);
	reason = iscsi_text_step(&world->text, bhs, data, len, &response);
	if (reason)
		return;
	assert(response.len <= response.size && response.len == get_be24(response.bhs + 5));
	assert(!(response.bhs[1] & 0x80) == (get_be32(response.bhs + 20) != UINT32_MAX));
	assert(!memchr(out, 0x1b, response.len));
	assert(world->login.keys.params.max_send >= 512);
}

static void conversation(struct world *world, const uint8_t *data, size_t size)
{
	bool alive = true;

	while (alive && size >= ISCSI_BHS) {
		const uint8_t *bhs = data;
		uint32_t len = get_be24(bhs + 5), have;
		char *copy;

		data += ISCSI_BHS;
		size -= ISCSI_BHS;
		/* A length that the input does not hold is a length all the same. */
		have = (uint32_t)min_u64(len, size);
		copy = calloc(1, len ? len : 1);
		memcpy(copy, data, have);
		if (world->opened)
			text_pdu(world, bhs, copy, len);
		else
			alive = login_pdu(world, bhs, copy, len);
		free(copy);
		data += min_u64(align_up(len, 4), size);
		size -= min_u64(align_up(len, 4), size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world world;

	if (size == 0)
		return 0;
	memset(&world, 0, sizeof(world));
	world.switches = data[0];
	iscsi_login_init(&world.login, &login_ops, &world, 16);
	conversation(&world, data + 1, size - 1);
	if (world.opened)
		iscsi_text_fini(&world.text);
	return 0;
}
