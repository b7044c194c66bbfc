/* SPDX-License-Identifier: MIT */
/*
 * What is around a login in tests: one initiator, one target, and a peer that sends requests.
 *
 * Invariants:
 * 1. Requests lie in memory of exactly their size, so that a sanitizer sees a read past them.
 * 2. No session is opened before someone was admitted.
 *
 * Not here: what a login should answer (test_login.c).
 */
#include "tests/fake/login_world.h"

#include <stdlib.h>
#include <string.h>

#include "core/wire.h"

struct login_world world;

static enum iscsi_login_status admit(void *arg, struct iscsi_login *l)
{
	assert(arg == &world);
	world.admitted++;
	if (world.admit != ISCSI_LOGIN_SUCCESS)
		return world.admit;
	if (l->keys.session_type == ISCSI_SESSION_NORMAL &&
	    strcmp(l->keys.target_name, "iqn.2026-11.org.x:disk") != 0)
		return ISCSI_LOGIN_NOT_FOUND;
	if (strcmp(l->keys.initiator_name, "iqn.2026-11.org.x:host") != 0)
		return ISCSI_LOGIN_NOT_ALLOWED;
	l->portal_group = 7;
	l->auth = world.auth;
	l->auth_state = &world;
	return ISCSI_LOGIN_SUCCESS;
}

static enum iscsi_login_status session_open(void *arg, struct iscsi_login *l)
{
	assert(arg == &world);
	assert(world.admitted > 0);
	world.opened++;
	if (world.open == ISCSI_LOGIN_SUCCESS || world.open == ISCSI_LOGIN_PENDING) {
		l->tsih = 0x1234;
		l->window = 32;
	}
	return world.open;
}

static const struct iscsi_login_ops ops = { .admit = admit, .session_open = session_open };

void login_world_init(void)
{
	memset(&world, 0, sizeof(world));
	memset(&world.login, 0xa5, sizeof(world.login));
	iscsi_login_init(&world.login, &ops, &world, 20);
}

void login_header(uint8_t bhs[ISCSI_BHS], uint8_t flags, uint32_t len)
{
	static const uint8_t isid[6] = { 0x40, 0, 1, 0x37, 0, 9 };

	memset(bhs, 0, ISCSI_BHS);
	bhs[0] = 0x43;
	bhs[1] = flags;
	put_be24(bhs + 5, len);
	memcpy(bhs + 8, isid, 6);
	put_be32(bhs + 16, 0x1001);
	put_be16(bhs + 20, 3);
	put_be32(bhs + 24, 77);
}

/* `|` stands for NUL. */
enum iscsi_login_action login_send_header(const uint8_t *bhs, const char *text)
{
	size_t len = strlen(text);
	char *data = malloc(len ? len : 1);
	enum iscsi_login_action action;

	for (size_t i = 0; i < len; i++)
		data[i] = text[i] == '|' ? '\0' : text[i];
	action = iscsi_login_step(&world.login, bhs, data, (uint32_t)len);
	free(data);
	return action;
}

enum iscsi_login_action login_send(uint8_t flags, const char *text)
{
	uint8_t bhs[ISCSI_BHS];

	login_header(bhs, flags, (uint32_t)strlen(text));
	return login_send_header(bhs, text);
}

unsigned login_status(void)
{
	return get_be16(world.login.response + 36);
}

const char *login_answer(void)
{
	static char text[ISCSI_TEXT_MAX + 1];

	for (uint32_t i = 0; i < world.login.response_len; i++)
		text[i] = world.login.response_data[i] ? world.login.response_data[i] : '|';
	text[world.login.response_len] = '\0';
	return text;
}
