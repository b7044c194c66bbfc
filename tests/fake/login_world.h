/* SPDX-License-Identifier: MIT */
/*
 * What is around a login in tests: one initiator, one target, and a peer that
 * sends requests.
 *
 * In texts `|` stands for NUL.
 */
#ifndef TESTS_FAKE_LOGIN_WORLD_H
#define TESTS_FAKE_LOGIN_WORLD_H

#include "target/iscsi/login.h"

#define I "InitiatorName=iqn.2026-11.org.x:host|"
#define T "TargetName=iqn.2026-11.org.x:disk|"
#define NAMES I T "SessionType=Normal|"
#define DISCOVERY I "SessionType=Discovery|"
#define TAG "TargetPortalGroupTag=7|"
#define RECV "MaxRecvDataSegmentLength=262144|"

#define T_BIT 0x80
#define C_BIT 0x40
#define STAGES(csg, nsg) ((uint8_t)((csg) << 2 | (nsg)))

#define SEND ISCSI_LOGIN_SEND
#define DONE ISCSI_LOGIN_DONE
#define FAIL ISCSI_LOGIN_FAIL
#define DROP ISCSI_LOGIN_DROP

struct login_world {
	struct iscsi_login login;
	enum iscsi_login_status admit;        /* if not SUCCESS, admit()'s answer */
	enum iscsi_login_status open;         /* session_open()'s answer */
	const struct iscsi_auth_method *auth; /* required; its state is the world */
	unsigned admitted, opened, steps;
};

extern struct login_world world;

/* No authentication, everything allowed, 20 exchanges, portal group 7. */
void login_world_init(void);
/* A Login Request of the peer, always with the same ISID, ITT 0x1001, CID 3, CmdSN 77. */
void login_header(uint8_t bhs[ISCSI_BHS], uint8_t flags, uint32_t len);
/* The data lies in memory of exactly its size. */
enum iscsi_login_action login_send_header(const uint8_t *bhs, const char *text);
enum iscsi_login_action login_send(uint8_t flags, const char *text);
unsigned login_status(void);
/* The data of the response, until the next call. */
const char *login_answer(void);

#endif
