/* SPDX-License-Identifier: MIT */
/*
 * Text Requests in full feature phase: listings of any length, continuation, renegotiation.
 *
 * Invariants: none.
 *
 * Not here: each key's rule (test_keys.c), who may see which target (the server's tests).
 */
#include "target/iscsi/text.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"

#define NONE 0xffffffff
#define F_BIT 0x80
#define C_BIT 0x40

#define BASE "iqn.2026-11.org.x:"
#define TARGETS_MAX 500

static char targets[TARGETS_MAX][64]; /* ascending */
static unsigned target_count, address_count;
static const char *hidden; /* by masking: it exists and has addresses */
static bool stuck;         /* the callback returns the same for ever */
static struct iscsi_params params;
static struct iscsi_text text;
static struct iscsi_text_response response;
static char data[ISCSI_OUR_MAX_RECV];

static const char *target_next(void *arg, const char *after)
{
	ck_assert_ptr_eq(arg, &targets);
	if (stuck)
		return targets[0];
	for (unsigned i = 0; i < target_count; i++) {
		if (strcmp(targets[i], after) > 0 && (!hidden || strcmp(targets[i], hidden) != 0))
			return targets[i];
	}
	return NULL;
}

static bool target_address(void *arg, const char *target, unsigned index, char *address,
			   size_t size)
{
	ck_assert_ptr_eq(arg, &targets);
	for (unsigned i = 0; i < target_count && index < address_count; i++) {
		if (strcmp(targets[i], target) == 0) {
			snprintf(address, size, "192.0.2.%u:3260,%u", index + 1, index + 1);
			return true;
		}
	}
	return false;
}

static const struct iscsi_text_ops ops = { target_next, target_address };

static void begin(enum iscsi_session_type type, unsigned count, unsigned addresses)
{
	hidden = NULL;
	stuck = false;
	target_count = count;
	address_count = addresses;
	for (unsigned i = 0; i < count; i++)
		snprintf(targets[i], sizeof(targets[i]), BASE "disk%03u", i);
	iscsi_params_init(&params);
	iscsi_text_fini(&text);
	iscsi_text_init(&text, &ops, &targets, &params, type,
			type == ISCSI_SESSION_NORMAL ? BASE "disk001" : "");
	response.data = data;
	response.size = sizeof(data);
}

static void setup(void)
{
	begin(ISCSI_SESSION_DISCOVERY, 3, 2);
}

static void teardown(void)
{
	iscsi_text_fini(&text);
}

/* `|` stands for NUL; the data lies in memory of exactly its size. */
static int send_itt(uint32_t itt, uint8_t flags, uint32_t ttt, const char *request)
{
	uint8_t bhs[ISCSI_BHS] = { 0x04, flags };
	size_t len = strlen(request);
	char *copy = malloc(len ? len : 1);
	int reason;

	for (size_t i = 0; i < len; i++)
		copy[i] = request[i] == '|' ? '\0' : request[i];
	put_be24(bhs + 5, (uint32_t)len);
	put_be64(bhs + 8, 0x0001000200030004);
	put_be32(bhs + 16, itt);
	put_be32(bhs + 20, ttt);
	memset(response.bhs, 0xa5, sizeof(response.bhs));
	reason = iscsi_text_step(&text, bhs, copy, (uint32_t)len, &response);
	free(copy);
	return reason;
}

static int send(uint8_t flags, uint32_t ttt, const char *request)
{
	return send_itt(0x2001, flags, ttt, request);
}

static uint32_t ttt(void)
{
	return get_be32(response.bhs + 20);
}

static const char *answer(void)
{
	static char shown[sizeof(data) + 1];

	for (uint32_t i = 0; i < response.len; i++)
		shown[i] = data[i] ? data[i] : '|';
	shown[response.len] = '\0';
	return shown;
}

static const char *expected_listing(void)
{
	static char all[TARGETS_MAX * 256];
	size_t at = 0;

	all[0] = '\0';
	for (unsigned i = 0; i < target_count; i++) {
		at += (size_t)sprintf(all + at, "TargetName=%s|", targets[i]);
		for (unsigned a = 1; a <= address_count; a++)
			at += (size_t)sprintf(all + at, "TargetAddress=192.0.2.%u:3260,%u|", a, a);
	}
	return all;
}

START_TEST(a_listing_that_fits_is_one_final_answer)
{
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=All|"), 0);
	ck_assert_str_eq(answer(), expected_listing());
	ck_assert_uint_eq(response.bhs[0], 0x24);
	ck_assert_uint_eq(response.bhs[1], F_BIT);
	ck_assert_uint_eq(get_be24(response.bhs + 5), response.len);
	ck_assert_uint_eq(get_be64(response.bhs + 8), 0x0001000200030004);
	ck_assert_uint_eq(get_be32(response.bhs + 16), 0x2001);
	ck_assert_uint_eq(ttt(), NONE);
}
END_TEST

static const struct {
	unsigned targets, addresses;
	uint32_t max_send, size;
} listings[] = {
	{ 0, 4, 512, 512 },     { 1, 4, 512, 512 },         { 7, 1, 512, 8192 },
	{ 500, 4, 512, 8192 },  { 500, 4, 8192, 512 },      { 500, 4, 513, 8192 },
	{ 500, 4, 8192, 8192 }, { 500, 1, 262144, 262144 }, { 500, 0, 512, 512 },
	{ 40, 4, 8192, 1 },     { 40, 4, 8192, 7 },
};

START_TEST(a_listing_of_any_length_is_complete)
{
	static char whole[TARGETS_MAX * 256];
	uint32_t room = listings[_i].max_send, last = NONE;
	size_t at = 0;

	begin(ISCSI_SESSION_DISCOVERY, listings[_i].targets, listings[_i].addresses);
	params.max_send = listings[_i].max_send;
	response.size = listings[_i].size;
	if (response.size < room)
		room = response.size;
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=All|"), 0);
	for (;;) {
		ck_assert_uint_le(response.len, room);
		ck_assert_uint_lt(at + response.len, sizeof(whole));
		strcpy(whole + at, answer());
		at += response.len;
		if (response.bhs[1] & F_BIT)
			break;
		ck_assert_uint_eq(response.bhs[1], C_BIT);
		ck_assert_uint_eq(response.len, room);
		ck_assert_uint_ne(ttt(), NONE);
		ck_assert_uint_ne(ttt(), last);
		last = ttt();
		ck_assert_int_eq(send(F_BIT, last, ""), 0);
	}
	ck_assert_uint_eq(ttt(), NONE);
	ck_assert_str_eq(at ? whole : "", expected_listing());
	/* The tag is of no use any more. */
	ck_assert_int_eq(send(F_BIT, last == NONE ? 0 : last, ""), ISCSI_REJECT_FIELD);
}
END_TEST

/* Who asks for what, and which targets are shown. */
static const struct {
	enum iscsi_session_type type;
	const char *request, *shown;
} asked[] = {
	{ ISCSI_SESSION_DISCOVERY, "SendTargets=" BASE "disk002|",
	  "TargetName=" BASE "disk002|TargetAddress=192.0.2.1:3260,1|" },
	{ ISCSI_SESSION_DISCOVERY, "SendTargets=IQN.2026-11.ORG.x:DISK002|",
	  "TargetName=" BASE "disk002|TargetAddress=192.0.2.1:3260,1|" },
	{ ISCSI_SESSION_DISCOVERY, "SendTargets=" BASE "nodisk|", "" },
	{ ISCSI_SESSION_DISCOVERY, "SendTargets=|", "SendTargets=Reject|" },
	{ ISCSI_SESSION_DISCOVERY, "SendTargets=all|", "SendTargets=Reject|" },
	{ ISCSI_SESSION_DISCOVERY, "SendTargets=x|", "SendTargets=Reject|" },
	{ ISCSI_SESSION_NORMAL, "SendTargets=|",
	  "TargetName=" BASE "disk001|TargetAddress=192.0.2.1:3260,1|" },
	{ ISCSI_SESSION_NORMAL, "SendTargets=" BASE "disk001|",
	  "TargetName=" BASE "disk001|TargetAddress=192.0.2.1:3260,1|" },
	{ ISCSI_SESSION_NORMAL, "SendTargets=" BASE "disk002|", "" },
	{ ISCSI_SESSION_NORMAL, "SendTargets=All|", "SendTargets=Reject|" },
	{ ISCSI_SESSION_NORMAL, "X-a=1|", "X-a=NotUnderstood|" },
	{ ISCSI_SESSION_NORMAL, "", "" },
	{ ISCSI_SESSION_NORMAL, "X-a=1|SendTargets=|",
	  "X-a=NotUnderstood|TargetName=" BASE "disk001|TargetAddress=192.0.2.1:3260,1|" },
};

START_TEST(each_kind_of_session_is_shown_what_is_its_own)
{
	begin(asked[_i].type, 3, 1);
	ck_assert_int_eq(send(F_BIT, NONE, asked[_i].request), 0);
	ck_assert_str_eq(answer(), asked[_i].shown);
	ck_assert_uint_eq(response.bhs[1], F_BIT);
}
END_TEST

static const char *const refused[] = {
	"InitiatorName=iqn.2026-11.org.x:a|",
	"TargetName=iqn.2026-11.org.x:disk001|",
	"SessionType=Normal|",
	"AuthMethod=None|",
	"CHAP_A=5|",
	"HeaderDigest=None|",
	"MaxBurstLength=512|",
	"InitialR2T=No|",
	"ErrorRecoveryLevel=0|",
	"TargetAddress=192.0.2.1:3260,1|",
	"MaxRecvDataSegmentLength=511|",
	"SendTargets=All|SendTargets=All|",
	"SendTargets|",
	"SendTargets=All",
	"=|",
};

START_TEST(what_may_not_be_said_now_is_rejected_and_forgotten)
{
	ck_assert_int_eq(send(F_BIT, NONE, refused[_i]), ISCSI_REJECT_PROTOCOL);
	ck_assert_uint_eq(params.max_send, 8192);
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=All|"), 0);
	ck_assert_str_eq(answer(), expected_listing());
}
END_TEST

START_TEST(a_request_may_be_cut_anywhere)
{
	static const char request[] = "X-a=1|SendTargets=" BASE "disk002|";
	char first[sizeof(request)];

	for (size_t cut = 0; cut < sizeof(request); cut++) {
		setup();
		snprintf(first, cut + 1, "%s", request);
		ck_assert_int_eq(send(C_BIT, NONE, first), 0);
		ck_assert_uint_eq(response.len, 0);
		ck_assert_uint_eq(response.bhs[1], 0);
		ck_assert_uint_ne(ttt(), NONE);
		ck_assert_int_eq(send(F_BIT, ttt(), request + cut), 0);
		ck_assert_uint_eq(response.bhs[1], F_BIT);
		ck_assert_str_eq(answer(), "X-a=NotUnderstood|TargetName=" BASE "disk002|"
					   "TargetAddress=192.0.2.1:3260,1|"
					   "TargetAddress=192.0.2.2:3260,2|");
	}
}
END_TEST

START_TEST(a_continued_request_is_bounded)
{
	static char part[4097], whole[ISCSI_TEXT_MAX + 2];

	memset(part, 'x', 4096);
	ck_assert_int_eq(send(C_BIT, NONE, part), 0);
	ck_assert_int_eq(send(C_BIT, ttt(), part), 0);
	ck_assert_int_eq(send(C_BIT, ttt(), "x"), ISCSI_REJECT_PROTOCOL);
	ck_assert_ptr_null(text.in);
	memset(whole, 'x', ISCSI_TEXT_MAX + 1);
	ck_assert_int_eq(send(F_BIT, NONE, whole), ISCSI_REJECT_PROTOCOL);
	ck_assert_int_eq(send(F_BIT | C_BIT, NONE, "SendTargets=All|"), ISCSI_REJECT_PROTOCOL);
}
END_TEST

START_TEST(a_new_request_forgets_the_one_before)
{
	uint32_t old;

	begin(ISCSI_SESSION_DISCOVERY, 100, 4);
	ck_assert_int_eq(send(C_BIT, NONE, "X-half"), 0);
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=All|"), 0);
	ck_assert_uint_eq(response.bhs[1], C_BIT);
	old = ttt();
	ck_assert_int_eq(send_itt(0x2002, F_BIT, NONE, "X-a=1|"), 0);
	ck_assert_str_eq(answer(), "X-a=NotUnderstood|");
	ck_assert_int_eq(send(F_BIT, old, ""), ISCSI_REJECT_FIELD);
}
END_TEST

START_TEST(a_tag_belongs_to_its_task)
{
	begin(ISCSI_SESSION_DISCOVERY, 100, 4);
	ck_assert_int_eq(send(F_BIT, 5, ""), ISCSI_REJECT_FIELD);
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=All|"), 0);
	ck_assert_int_eq(send(F_BIT, ttt() + 1, ""), ISCSI_REJECT_FIELD);
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=All|"), 0);
	ck_assert_int_eq(send_itt(0x2002, F_BIT, ttt(), ""), ISCSI_REJECT_FIELD);
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=All|"), 0);
	ck_assert_int_eq(send(F_BIT, ttt(), "X-a=1|"), ISCSI_REJECT_PROTOCOL);
}
END_TEST

START_TEST(tags_never_are_the_reserved_one)
{
	begin(ISCSI_SESSION_DISCOVERY, 1, 1);
	text.ttt_next = NONE - 1;
	ck_assert_int_eq(send(0, NONE, ""), 0);
	ck_assert_uint_eq(ttt(), NONE - 1);
	ck_assert_int_eq(send(0, ttt(), ""), 0);
	ck_assert_uint_eq(ttt(), 0);
}
END_TEST

START_TEST(a_negotiation_lasts_until_they_say_final)
{
	ck_assert_int_eq(send(0, NONE, "X-a=1|"), 0);
	ck_assert_str_eq(answer(), "X-a=NotUnderstood|");
	ck_assert_uint_eq(response.bhs[1], 0);
	ck_assert_int_eq(send(0, ttt(), "MaxRecvDataSegmentLength=4096|"), 0);
	ck_assert_uint_eq(params.max_send, 8192);
	ck_assert_int_eq(send(F_BIT, ttt(), ""), 0);
	ck_assert_uint_eq(response.bhs[1], F_BIT);
	ck_assert_uint_eq(params.max_send, 4096);
	/* Within one negotiation a key comes once. */
	ck_assert_int_eq(send(0, NONE, "MaxRecvDataSegmentLength=512|"), 0);
	ck_assert_int_eq(send(F_BIT, ttt(), "MaxRecvDataSegmentLength=1024|"),
			 ISCSI_REJECT_PROTOCOL);
	ck_assert_uint_eq(params.max_send, 4096);
}
END_TEST

START_TEST(a_new_limit_holds_after_the_answer_that_accepts_it)
{
	begin(ISCSI_SESSION_DISCOVERY, 20, 1);
	ck_assert_int_eq(send(F_BIT, NONE, "MaxRecvDataSegmentLength=512|SendTargets=All|"), 0);
	ck_assert_str_eq(answer(), expected_listing());
	ck_assert_uint_eq(params.max_send, 512);
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=All|"), 0);
	ck_assert_uint_eq(response.len, 512);
}
END_TEST

START_TEST(targets_that_come_and_go_meanwhile_do_not_disturb)
{
	char all[8192] = "";

	begin(ISCSI_SESSION_DISCOVERY, 40, 1);
	params.max_send = 512;
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=All|"), 0);
	while (response.bhs[1] == C_BIT) {
		strcat(all, answer());
		/* The one being shown goes too. */
		if (target_count > 20)
			target_count--;
		memmove(targets[0], targets[1], (TARGETS_MAX - 1) * sizeof(targets[0]));
		target_count--;
		ck_assert_int_eq(send(F_BIT, ttt(), ""), 0);
	}
	strcat(all, answer());
	ck_assert_uint_eq(response.bhs[1], F_BIT);
	ck_assert_ptr_nonnull(strstr(all, "TargetName=" BASE "disk000|"));
	ck_assert_ptr_nonnull(strstr(all, "TargetName=" BASE "disk010|"));
	ck_assert_ptr_null(strstr(all, "disk039"));
}
END_TEST

START_TEST(names_with_control_characters_are_not_shown)
{
	begin(ISCSI_SESSION_DISCOVERY, 3, 1);
	strcpy(targets[1], BASE "disk001\x1b[2J");
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=All|"), 0);
	ck_assert_str_eq(answer(), "TargetName=" BASE "disk000|TargetAddress=192.0.2.1:3260,1|"
				   "TargetName=" BASE "disk002|TargetAddress=192.0.2.1:3260,1|");
}
END_TEST

START_TEST(a_masked_target_is_not_shown_by_its_name_either)
{
	begin(ISCSI_SESSION_DISCOVERY, 3, 1);
	hidden = BASE "disk001";
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=" BASE "disk001|"), 0);
	ck_assert_str_eq(answer(), "");
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=" BASE "disk002|"), 0);
	ck_assert_str_eq(answer(), "TargetName=" BASE "disk002|TargetAddress=192.0.2.1:3260,1|");
	/* Neighbours of a name are not it. */
	strcpy(targets[0], BASE "disk");
	strcpy(targets[1], BASE "disk0");
	strcpy(targets[2], BASE "disk00");
	hidden = BASE "disk0";
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=" BASE "disk0|"), 0);
	ck_assert_str_eq(answer(), "");
	hidden = NULL;
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=" BASE "disk0|"), 0);
	ck_assert_str_eq(answer(), "TargetName=" BASE "disk0|TargetAddress=192.0.2.1:3260,1|");
}
END_TEST

START_TEST(a_listing_ends_even_if_names_do_not_advance)
{
	begin(ISCSI_SESSION_DISCOVERY, 3, 1);
	stuck = true;
	ck_assert_int_eq(send(F_BIT, NONE, "SendTargets=All|"), 0);
	ck_assert_str_eq(answer(), "TargetName=" BASE "disk000|TargetAddress=192.0.2.1:3260,1|");
	ck_assert_uint_eq(response.bhs[1], F_BIT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("text");
	TCase *tc = tcase_create("text");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_listing_that_fits_is_one_final_answer);
	tcase_add_loop_test(tc, a_listing_of_any_length_is_complete, 0, ARRAY_LEN(listings));
	tcase_add_loop_test(tc, each_kind_of_session_is_shown_what_is_its_own, 0, ARRAY_LEN(asked));
	tcase_add_loop_test(tc, what_may_not_be_said_now_is_rejected_and_forgotten, 0,
			    ARRAY_LEN(refused));
	tcase_add_test(tc, a_request_may_be_cut_anywhere);
	tcase_add_test(tc, a_continued_request_is_bounded);
	tcase_add_test(tc, a_new_request_forgets_the_one_before);
	tcase_add_test(tc, a_tag_belongs_to_its_task);
	tcase_add_test(tc, tags_never_are_the_reserved_one);
	tcase_add_test(tc, a_negotiation_lasts_until_they_say_final);
	tcase_add_test(tc, a_new_limit_holds_after_the_answer_that_accepts_it);
	tcase_add_test(tc, targets_that_come_and_go_meanwhile_do_not_disturb);
	tcase_add_test(tc, names_with_control_characters_are_not_shown);
	tcase_add_test(tc, a_masked_target_is_not_shown_by_its_name_either);
	tcase_add_test(tc, a_listing_ends_even_if_names_do_not_advance);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
