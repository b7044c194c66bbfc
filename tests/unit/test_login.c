/* SPDX-License-Identifier: MIT */
/*
 * The login phase: statuses by cause, stage transitions, continuation, constancy, bounds.
 *
 * Invariants: none.
 *
 * Not here: each key's rule (test_keys.c).
 */
#include "target/iscsi/login.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"
#include "tests/fake/login_world.h"

/* A method of two steps; CHAP_R=good succeeds. */
static char auth_answer[64];

static bool auth_key(void *state, const struct iscsi_pair *pair)
{
	ck_assert_ptr_eq(state, &world);
	if (pair->key == ISCSI_KEY_CHAP_A)
		return strcmp(pair->value, "5") == 0;
	snprintf(auth_answer, sizeof(auth_answer), "%s", pair->value);
	return pair->key == ISCSI_KEY_CHAP_R;
}

static enum iscsi_auth_result auth_step(void *state, struct iscsi_out *out)
{
	ck_assert_ptr_eq(state, &world);
	if (world.steps++ == 0) {
		iscsi_out_add(out, "CHAP_A", "5");
		return ISCSI_AUTH_MORE;
	}
	return strcmp(auth_answer, "good") == 0 ? ISCSI_AUTH_OK : ISCSI_AUTH_REFUSED;
}

static const struct iscsi_auth_method method = { "CHAP", auth_key, auth_step };

static void setup(void)
{
	login_world_init();
	memset(auth_answer, 0, sizeof(auth_answer));
}

START_TEST(a_whole_login_of_one_request)
{
	ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), NAMES "HeaderDigest=CRC32C|InitialR2T=No|"
								"MaxRecvDataSegmentLength=65536|"),
			 DONE);
	ck_assert_str_eq(login_answer(), "HeaderDigest=CRC32C|InitialR2T=No|" TAG RECV);
	ck_assert_uint_eq(world.login.response[0], 0x23);
	ck_assert_uint_eq(world.login.response[1], T_BIT | STAGES(1, 3));
	ck_assert_uint_eq(get_be16(world.login.response + 2), 0);
	ck_assert_uint_eq(get_be24(world.login.response + 5), world.login.response_len);
	ck_assert_mem_eq(world.login.response + 8, "\x40\0\1\x37\0\x09\x12\x34", 8);
	ck_assert_uint_eq(get_be32(world.login.response + 16), 0x1001);
	ck_assert_uint_eq(get_be32(world.login.response + 24), 1);
	ck_assert_uint_eq(get_be32(world.login.response + 28), 77);
	ck_assert_uint_eq(get_be32(world.login.response + 32), 77 + 31);
	ck_assert_uint_eq(login_status(), 0);
	ck_assert_uint_eq(world.login.stat_sn, 2);
	ck_assert(world.login.keys.params.header_digest && !world.login.keys.params.initial_r2t);
	ck_assert_uint_eq(world.login.keys.params.max_recv, ISCSI_OUR_MAX_RECV);
	ck_assert_uint_eq(world.login.keys.params.max_send, 65536);
	ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), NAMES), DROP);
}
END_TEST

START_TEST(a_login_through_both_stages_as_libiscsi_does_it)
{
	ck_assert_int_eq(login_send(T_BIT | STAGES(0, 1), NAMES "AuthMethod=None|"), SEND);
	ck_assert_str_eq(login_answer(), "AuthMethod=None|" TAG);
	ck_assert_uint_eq(world.login.response[1], T_BIT | STAGES(0, 1));
	ck_assert_uint_eq(get_be16(world.login.response + 14), 0);
	ck_assert_uint_eq(get_be32(world.login.response + 32), 77);
	ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), NAMES "ErrorRecoveryLevel=0|"), DONE);
	ck_assert_str_eq(login_answer(), "ErrorRecoveryLevel=0|" RECV);
	ck_assert_uint_eq(get_be32(world.login.response + 24), 2);
	ck_assert_uint_eq(world.admitted, 1);
	ck_assert_uint_eq(world.opened, 1);
}
END_TEST

START_TEST(without_the_operational_stage_the_standard_values_hold)
{
	ck_assert_int_eq(login_send(T_BIT | STAGES(0, 3), NAMES "AuthMethod=CHAP,None|"), DONE);
	ck_assert_str_eq(login_answer(), "AuthMethod=None|" TAG);
	ck_assert_uint_eq(world.login.keys.params.max_recv, 8192);
	ck_assert_uint_eq(world.login.keys.params.first_burst, 65536);
}
END_TEST

START_TEST(a_discovery_session_needs_no_target_and_has_no_tag)
{
	ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), DISCOVERY "MaxBurstLength=512|"), DONE);
	ck_assert_str_eq(login_answer(), "MaxBurstLength=Irrelevant|" RECV);
	ck_assert_str_eq(world.login.keys.target_name, "");
}
END_TEST

/* First requests of which each is refused for one cause. */
static const struct {
	uint8_t flags;
	const char *text;
	enum iscsi_login_status admit, open, expected;
} refusals[] = {
	{ T_BIT | STAGES(1, 3), T, 0, 0, 0x0207 },
	{ T_BIT | STAGES(1, 3), I, 0, 0, 0x0207 },
	{ T_BIT | STAGES(1, 3), I "SessionType=Normal|", 0, 0, 0x0207 },
	{ T_BIT | STAGES(1, 3), "SessionType=Discovery|", 0, 0, 0x0207 },
	{ T_BIT | STAGES(1, 3), "", 0, 0, 0x0207 },
	{ T_BIT | STAGES(1, 3), NAMES, ISCSI_LOGIN_NOT_ALLOWED, 0, 0x0202 },
	{ T_BIT | STAGES(1, 3), NAMES, ISCSI_LOGIN_NOT_FOUND, 0, 0x0203 },
	{ T_BIT | STAGES(1, 3), NAMES, ISCSI_LOGIN_TARGET_REMOVED, 0, 0x0204 },
	{ T_BIT | STAGES(1, 3), NAMES, ISCSI_LOGIN_UNAVAILABLE, 0, 0x0301 },
	{ T_BIT | STAGES(1, 3), I "TargetName=iqn.2026-11.org.x:other|", 0, 0, 0x0203 },
	{ T_BIT | STAGES(1, 3), "InitiatorName=iqn.2026-11.org.x:evil|" T, 0, 0, 0x0202 },
	{ T_BIT | STAGES(1, 3), NAMES, 0, ISCSI_LOGIN_TOO_MANY_CONNECTIONS, 0x0206 },
	{ T_BIT | STAGES(1, 3), NAMES, 0, ISCSI_LOGIN_CANNOT_INCLUDE, 0x0208 },
	{ T_BIT | STAGES(1, 3), NAMES, 0, ISCSI_LOGIN_NO_SESSION, 0x020a },
	{ T_BIT | STAGES(1, 3), NAMES, 0, ISCSI_LOGIN_NO_RESOURCES, 0x0302 },
	{ T_BIT | STAGES(1, 3), NAMES, 0, ISCSI_LOGIN_TARGET_ERROR, 0x0300 },
	{ T_BIT | STAGES(1, 3), I T "SessionType=Backup|", 0, 0, 0x0209 },
	{ T_BIT | STAGES(0, 1), NAMES "AuthMethod=CHAP|", 0, 0, 0x0201 },
	{ T_BIT | STAGES(0, 1), NAMES "AuthMethod=KRB5,none|", 0, 0, 0x0201 },
	{ T_BIT | STAGES(0, 1), NAMES "AuthMethod=|", 0, 0, 0x0201 },
	{ T_BIT | STAGES(0, 1), NAMES "CHAP_A=5|", 0, 0, 0x0200 },
	{ T_BIT | STAGES(0, 1), NAMES "HeaderDigest=None|", 0, 0, 0x0200 },
	{ T_BIT | STAGES(1, 3), NAMES "AuthMethod=None|", 0, 0, 0x0200 },
	{ T_BIT | STAGES(1, 3), NAMES "SendTargets=All|", 0, 0, 0x0200 },
	{ T_BIT | STAGES(1, 3), NAMES "InitialR2T=No|InitialR2T=No|", 0, 0, 0x0200 },
	{ T_BIT | STAGES(1, 3), NAMES "nonsense|", 0, 0, 0x0200 },
	{ T_BIT | STAGES(1, 3), NAMES "HeaderDigest=None", 0, 0, 0x0200 },
	{ T_BIT | STAGES(1, 3), "InitiatorName=host|" T, 0, 0, 0x0200 },
	{ T_BIT | STAGES(1, 3), NAMES "MaxRecvDataSegmentLength=1|", 0, 0, 0x0200 },
};

START_TEST(each_cause_has_its_status_and_ends_the_login)
{
	world.admit = refusals[_i].admit;
	world.open = refusals[_i].open;
	ck_assert_int_eq(login_send(refusals[_i].flags, refusals[_i].text), FAIL);
	ck_assert_uint_eq(login_status(), refusals[_i].expected);
	ck_assert_uint_eq(world.login.status, refusals[_i].expected);
	ck_assert_uint_eq(world.login.response_len, 0);
	ck_assert_uint_eq(get_be24(world.login.response + 5), 0);
	ck_assert_uint_eq(world.login.response[1] & T_BIT, 0);
	ck_assert_ptr_nonnull(world.login.reason);
	ck_assert_str_ne(iscsi_login_status_text(world.login.status), "unknown");
	ck_assert_str_ne(iscsi_login_status_text(world.login.status), "success");
	ck_assert_uint_eq(world.opened, refusals[_i].open != 0);
	ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), NAMES), DROP);
}
END_TEST

START_TEST(a_version_that_is_not_ours)
{
	for (unsigned least = 0; least < 3; least++) {
		for (unsigned most = least; most < 3; most++) {
			uint8_t bhs[ISCSI_BHS];

			setup();
			login_header(bhs, T_BIT | STAGES(1, 3), sizeof(NAMES) - 1);
			bhs[2] = (uint8_t)most;
			bhs[3] = (uint8_t)least;
			ck_assert_int_eq(login_send_header(bhs, NAMES), least ? FAIL : DONE);
			ck_assert_uint_eq(login_status(), least ? 0x0205 : 0);
			ck_assert_uint_eq(get_be16(world.login.response + 2), 0);
		}
	}
}
END_TEST

START_TEST(another_pdu_drops_before_login_and_is_refused_within_it)
{
	static const uint8_t opcodes[] = { 0x00, 0x40, 0x01, 0x02, 0x04,
					   0x05, 0x06, 0x10, 0x23, 0x3f };

	for (size_t i = 0; i < sizeof(opcodes); i++) {
		uint8_t bhs[ISCSI_BHS];

		setup();
		login_header(bhs, 0x80, 0);
		bhs[0] = opcodes[i];
		ck_assert_int_eq(login_send_header(bhs, ""), DROP);
		ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), NAMES), DROP);
		setup();
		ck_assert_int_eq(login_send(STAGES(0, 0), NAMES), SEND);
		ck_assert_int_eq(login_send_header(bhs, ""), FAIL);
		ck_assert_uint_eq(login_status(), 0x020b);
	}
}
END_TEST

/* Every first request's flags: 16 of stages, with T and C. */
START_TEST(stages_change_only_forward)
{
	uint8_t flags = (uint8_t)((_i & 0x0f) | (_i & 0x30) << 2);
	unsigned csg = flags >> 2 & 3, nsg = flags & 3;
	bool t = flags & T_BIT, c = flags & C_BIT, legal;
	enum iscsi_login_action action;

	legal = csg < 2 && !(t && c) && (!t || nsg == 3 || (csg == 0 && nsg == 1));
	action = login_send(flags, NAMES);
	if (!legal) {
		ck_assert_int_eq(action, FAIL);
		ck_assert_uint_eq(login_status(), 0x0200);
		return;
	}
	ck_assert_int_eq(action, t && nsg == 3 ? DONE : SEND);
	ck_assert_uint_eq(world.login.response[1], t ? (T_BIT | STAGES(csg, nsg)) : STAGES(csg, 0));
	ck_assert_uint_eq(login_status(), 0);
}
END_TEST

START_TEST(the_next_request_is_of_the_stage_that_was_agreed)
{
	for (unsigned csg = 0; csg < 4; csg++) {
		setup();
		ck_assert_int_eq(login_send(T_BIT | STAGES(0, 1), NAMES), SEND);
		ck_assert_int_eq(login_send(STAGES(csg, 0), ""), csg == 1 ? SEND : FAIL);
		setup();
		ck_assert_int_eq(login_send(STAGES(0, 0), NAMES), SEND);
		ck_assert_int_eq(login_send(STAGES(csg, 0), ""), csg == 0 ? SEND : FAIL);
	}
}
END_TEST

START_TEST(tags_and_numbers_stay_as_they_were)
{
	/* ISID, TSIH, ITT, CID, CmdSN: any byte of them. */
	static const uint8_t fields[] = { 8,  9,  10, 11, 12, 13, 14, 15, 16,
					  17, 18, 19, 20, 21, 24, 25, 26, 27 };
	uint8_t bhs[ISCSI_BHS];

	for (size_t i = 0; i < sizeof(fields); i++) {
		setup();
		ck_assert_int_eq(login_send(STAGES(0, 0), NAMES), SEND);
		login_header(bhs, T_BIT | STAGES(0, 3), 0);
		bhs[fields[i]] ^= 1;
		ck_assert_int_eq(login_send_header(bhs, ""), FAIL);
		ck_assert_uint_eq(login_status(), 0x0200);
		ck_assert_uint_eq(get_be32(world.login.response + 16), 0x1001);
		ck_assert_uint_eq(world.opened, 0);
	}
	setup();
	ck_assert_int_eq(login_send(STAGES(0, 0), NAMES), SEND);
	login_header(bhs, T_BIT | STAGES(0, 3), 0);
	put_be32(bhs + 28, 12345); /* ExpStatSN is tolerated */
	ck_assert_int_eq(login_send_header(bhs, ""), DONE);
}
END_TEST

START_TEST(a_session_does_not_become_another)
{
	static const char *const later[] = { "SessionType=Discovery|",
					     "TargetName=iqn.2026-11.org.x:other|",
					     "InitiatorName=iqn.2026-11.org.x:other|" };

	for (size_t i = 0; i < ARRAY_LEN(later); i++) {
		setup();
		ck_assert_int_eq(login_send(T_BIT | STAGES(0, 1), I T), SEND);
		ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), later[i]), FAIL);
		ck_assert_uint_eq(login_status(), 0x0200);
	}
	setup();
	ck_assert_int_eq(login_send(T_BIT | STAGES(0, 1), DISCOVERY), SEND);
	ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), T), FAIL);
}
END_TEST

START_TEST(a_text_may_be_cut_anywhere)
{
	static const char text[] = NAMES "HeaderDigest=CRC32C|MaxBurstLength=4096|";
	char first[sizeof(text)];

	for (size_t cut = 0; cut < sizeof(text); cut++) {
		setup();
		snprintf(first, cut + 1, "%s", text);
		ck_assert_int_eq(login_send(C_BIT | STAGES(1, 0), first), SEND);
		ck_assert_uint_eq(world.login.response_len, 0);
		ck_assert_uint_eq(world.login.response[1], STAGES(1, 0));
		ck_assert_uint_eq(world.admitted, 0);
		ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), text + cut), DONE);
		ck_assert_str_eq(login_answer(),
				 "HeaderDigest=CRC32C|MaxBurstLength=4096|" TAG RECV);
	}
}
END_TEST

START_TEST(an_answer_longer_than_they_receive_comes_in_pieces)
{
	static char offer[2048], whole[4096];
	unsigned pieces = 0;
	enum iscsi_login_action action;

	strcpy(offer, NAMES "MaxRecvDataSegmentLength=512|");
	for (unsigned i = 0; i < 50; i++)
		snprintf(offer + strlen(offer), 32, "X-%02u=1|", i);
	action = login_send(T_BIT | STAGES(1, 3), offer);
	while (action == SEND) {
		ck_assert_uint_eq(world.login.response[1], C_BIT | STAGES(1, 0));
		ck_assert_uint_eq(world.login.response_len, 512);
		ck_assert_uint_eq(world.opened, 0);
		strcat(whole, login_answer());
		ck_assert_uint_lt(++pieces, 10);
		action = login_send(T_BIT | STAGES(1, 3), "");
	}
	ck_assert_int_eq(action, DONE);
	ck_assert_uint_eq(world.login.response[1], T_BIT | STAGES(1, 3));
	strcat(whole, login_answer());
	ck_assert_uint_eq(pieces, 1);
	ck_assert_uint_eq(strlen(whole), 50 * strlen("X-00=NotUnderstood|") + strlen(TAG RECV));
	ck_assert_ptr_nonnull(strstr(whole, "X-49=NotUnderstood|" TAG RECV));
}
END_TEST

START_TEST(text_before_ours_is_complete_is_refused)
{
	static char offer[2048];

	strcpy(offer, NAMES "MaxRecvDataSegmentLength=512|");
	for (unsigned i = 0; i < 50; i++)
		snprintf(offer + strlen(offer), 32, "X-%02u=1|", i);
	ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), offer), SEND);
	ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), "HeaderDigest=None|"), FAIL);
	ck_assert_uint_eq(login_status(), 0x0200);
}
END_TEST

START_TEST(more_keys_than_can_be_answered_end_the_login)
{
	static char offer[ISCSI_TEXT_MAX];

	strcpy(offer, NAMES);
	while (strlen(offer) < 8000)
		strcat(offer, "X-=1|");
	ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), offer), FAIL);
	ck_assert_uint_eq(login_status(), 0x0302);
}
END_TEST

START_TEST(text_is_bounded_in_one_pdu_and_over_many)
{
	static const uint32_t lengths[] = { 8193, 65536, 0xffffff };
	static char text[4097];
	uint8_t bhs[ISCSI_BHS];

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		setup();
		ck_assert_ptr_null(iscsi_login_data(&world.login, lengths[i]));
		login_header(bhs, T_BIT | STAGES(1, 3), lengths[i]);
		ck_assert_int_eq(iscsi_login_step(&world.login, bhs, NULL, lengths[i]), FAIL);
		ck_assert_uint_eq(login_status(), 0x0200);
	}
	setup();
	ck_assert_ptr_nonnull(iscsi_login_data(&world.login, 8192));
	memset(text, 'x', 4096);
	ck_assert_int_eq(login_send(C_BIT | STAGES(0, 0), text), SEND);
	ck_assert_ptr_nonnull(iscsi_login_data(&world.login, 4096));
	ck_assert_ptr_null(iscsi_login_data(&world.login, 4097));
	ck_assert_int_eq(login_send(C_BIT | STAGES(0, 0), text), SEND);
	ck_assert_int_eq(login_send(C_BIT | STAGES(0, 0), "x"), FAIL);
	ck_assert_uint_eq(login_status(), 0x0200);
}
END_TEST

START_TEST(exchanges_are_bounded)
{
	static const uint8_t flags[] = { STAGES(0, 0), C_BIT | STAGES(0, 0) };

	for (size_t i = 0; i < sizeof(flags); i++) {
		setup();
		ck_assert_int_eq(login_send(flags[i], i ? "" : NAMES), SEND);
		for (unsigned n = 1; n < 20; n++)
			ck_assert_int_eq(login_send(flags[i], ""), SEND);
		ck_assert_int_eq(login_send(flags[i], ""), FAIL);
		ck_assert_uint_eq(login_status(), 0x0200);
	}
}
END_TEST

START_TEST(a_header_that_cannot_be_is_refused)
{
	uint8_t bhs[ISCSI_BHS];

	login_header(bhs, T_BIT | STAGES(1, 3), sizeof(NAMES) - 1);
	bhs[4] = 1;
	ck_assert_int_eq(login_send_header(bhs, NAMES), FAIL);
	ck_assert_uint_eq(login_status(), 0x0200);
	setup();
	login_header(bhs, T_BIT | STAGES(1, 3), sizeof(NAMES) - 1);
	put_be32(bhs + 16, 0xffffffff);
	ck_assert_int_eq(login_send_header(bhs, NAMES), FAIL);
	ck_assert_uint_eq(login_status(), 0x0200);
}
END_TEST

START_TEST(a_session_that_opens_later_is_answered_later)
{
	world.open = ISCSI_LOGIN_PENDING;
	ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), NAMES), ISCSI_LOGIN_WAIT);
	ck_assert_int_eq(iscsi_login_resume(&world.login, ISCSI_LOGIN_SUCCESS), DONE);
	ck_assert_uint_eq(get_be16(world.login.response + 14), 0x1234);
	setup();
	world.open = ISCSI_LOGIN_PENDING;
	ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), NAMES), ISCSI_LOGIN_WAIT);
	ck_assert_int_eq(login_send(T_BIT | STAGES(1, 3), NAMES), DROP);
	ck_assert_int_eq(iscsi_login_resume(&world.login, ISCSI_LOGIN_NO_RESOURCES), FAIL);
	ck_assert_uint_eq(login_status(), 0x0302);
}
END_TEST

START_TEST(a_refusal_from_outside)
{
	ck_assert_int_eq(iscsi_login_refuse(&world.login, ISCSI_LOGIN_UNAVAILABLE, "stopping"),
			 DROP);
	setup();
	ck_assert_int_eq(login_send(STAGES(0, 0), NAMES), SEND);
	ck_assert_int_eq(iscsi_login_refuse(&world.login, ISCSI_LOGIN_UNAVAILABLE, "stopping"),
			 FAIL);
	ck_assert_uint_eq(login_status(), 0x0301);
	ck_assert_uint_eq(get_be32(world.login.response + 16), 0x1001);
}
END_TEST

/* Requests one after the other where authentication is required; the last one's outcome. */
static const struct {
	struct {
		uint8_t flags;
		const char *text;
	} requests[4];
	enum iscsi_login_action action;
	unsigned status;
	const char *answer;
} auths[] = {
	{ { { STAGES(0, 1), NAMES "AuthMethod=CHAP,None|" } }, SEND, 0, "AuthMethod=CHAP|" TAG },
	{ { { T_BIT | STAGES(0, 1), NAMES "AuthMethod=None,CHAP|" } },
	  SEND,
	  0,
	  "AuthMethod=CHAP|" TAG },
	{ { { STAGES(0, 1), NAMES "AuthMethod=CHAP|" }, { STAGES(0, 1), "CHAP_A=5|" } },
	  SEND,
	  0,
	  "CHAP_A=5|" },
	{ { { STAGES(0, 1), NAMES "AuthMethod=CHAP|" },
	    { T_BIT | STAGES(0, 1), "CHAP_A=5|" },
	    { T_BIT | STAGES(0, 1), "CHAP_R=good|" },
	    { T_BIT | STAGES(1, 3), "" } },
	  DONE,
	  0,
	  RECV },
	{ { { STAGES(0, 1), NAMES "AuthMethod=CHAP|" },
	    { STAGES(0, 1), "CHAP_A=5|" },
	    { T_BIT | STAGES(0, 3), "CHAP_R=bad|" } },
	  FAIL,
	  0x0201,
	  "" },
	{ { { STAGES(0, 1), NAMES "AuthMethod=CHAP|" }, { STAGES(0, 1), "CHAP_A=55|" } },
	  FAIL,
	  0x0201,
	  "" },
	{ { { STAGES(0, 1), NAMES "AuthMethod=CHAP|" },
	    { T_BIT | STAGES(0, 3), "" },
	    { T_BIT | STAGES(0, 3), "" } },
	  FAIL,
	  0x0201,
	  "" },
	{ { { STAGES(0, 1), NAMES "AuthMethod=CHAP|" }, { STAGES(1, 3), "" } }, FAIL, 0x0200, "" },
	{ { { T_BIT | STAGES(0, 1), NAMES "AuthMethod=None|" } }, FAIL, 0x0201, "" },
	{ { { T_BIT | STAGES(0, 3), NAMES } }, FAIL, 0x0201, "" },
	{ { { T_BIT | STAGES(1, 3), NAMES } }, FAIL, 0x0201, "" },
	{ { { T_BIT | STAGES(1, 3), DISCOVERY } }, FAIL, 0x0201, "" },
	{ { { STAGES(0, 1), NAMES "AuthMethod=CHAP|CHAP_A=5|" } }, FAIL, 0x0200, "" },
};

START_TEST(required_authentication_cannot_be_passed_by)
{
	enum iscsi_login_action action = SEND;

	world.auth = &method;
	for (unsigned n = 0; n < 4 && auths[_i].requests[n].text; n++) {
		ck_assert_int_eq(action, SEND);
		action = login_send(auths[_i].requests[n].flags, auths[_i].requests[n].text);
	}
	ck_assert_int_eq(action, auths[_i].action);
	ck_assert_uint_eq(login_status(), auths[_i].status);
	ck_assert_str_eq(login_answer(), auths[_i].answer);
	if (action == SEND)
		ck_assert_uint_eq(world.login.response[1] & T_BIT, 0);
	ck_assert_uint_eq(world.opened, action == DONE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("login");
	TCase *tc = tcase_create("login");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, a_whole_login_of_one_request);
	tcase_add_test(tc, a_login_through_both_stages_as_libiscsi_does_it);
	tcase_add_test(tc, without_the_operational_stage_the_standard_values_hold);
	tcase_add_test(tc, a_discovery_session_needs_no_target_and_has_no_tag);
	tcase_add_loop_test(tc, each_cause_has_its_status_and_ends_the_login, 0,
			    ARRAY_LEN(refusals));
	tcase_add_test(tc, a_version_that_is_not_ours);
	tcase_add_test(tc, another_pdu_drops_before_login_and_is_refused_within_it);
	tcase_add_loop_test(tc, stages_change_only_forward, 0, 64);
	tcase_add_test(tc, the_next_request_is_of_the_stage_that_was_agreed);
	tcase_add_test(tc, tags_and_numbers_stay_as_they_were);
	tcase_add_test(tc, a_session_does_not_become_another);
	tcase_add_test(tc, a_text_may_be_cut_anywhere);
	tcase_add_test(tc, an_answer_longer_than_they_receive_comes_in_pieces);
	tcase_add_test(tc, text_before_ours_is_complete_is_refused);
	tcase_add_test(tc, more_keys_than_can_be_answered_end_the_login);
	tcase_add_test(tc, text_is_bounded_in_one_pdu_and_over_many);
	tcase_add_test(tc, exchanges_are_bounded);
	tcase_add_test(tc, a_header_that_cannot_be_is_refused);
	tcase_add_test(tc, a_session_that_opens_later_is_answered_later);
	tcase_add_test(tc, a_refusal_from_outside);
	tcase_add_loop_test(tc, required_authentication_cannot_be_passed_by, 0, ARRAY_LEN(auths));
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
