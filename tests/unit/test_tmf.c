/* SPDX-License-Identifier: MIT */
/* Task management requests: what reaches the device server, what is answered here, and when. */
#include "tests/fake/session_rig.h"

#define F ISCSI_FINAL
#define R ISCSI_CMD_READ
#define NOBODY 0x99

static struct iscsi_bhs request(uint8_t function, uint32_t itt, uint32_t cmdsn, uint32_t rtt,
				uint32_t ref)
{
	struct iscsi_bhs bhs = rig_request(ISCSI_IMMEDIATE | ISCSI_TMF_REQUEST,
					   (uint8_t)(F | function), itt, cmdsn);

	bhs.lun[1] = 3;
	put_be32(bhs.word20, rtt);
	put_be32(bhs.word32, ref);
	return bhs;
}

static void ask(uint8_t function, uint32_t itt, uint32_t cmdsn, uint32_t rtt, uint32_t ref)
{
	struct iscsi_bhs bhs = request(function, itt, cmdsn, rtt, ref);

	ck_assert(rig_send(&bhs, NULL, 0));
}

static void read_command(uint32_t itt, uint32_t cmdsn)
{
	struct iscsi_bhs bhs = rig_command(F | R, itt, cmdsn, 512);

	rig_moves(SCSI_DATA_IN, 512);
	ck_assert(rig_send(&bhs, NULL, 0));
	fake_env_run(rig.env);
}

/* The newest PDU is the response to ITT. */
static void answered(uint32_t itt, uint8_t response)
{
	const struct rig_pdu *pdu;

	rig_turn();
	ck_assert_uint_gt(rig.out_count, 0);
	pdu = rig_pdu(rig.out_count - 1, ISCSI_TMF_RESPONSE);
	ck_assert_uint_eq(iscsi_itt(&pdu->bhs), itt);
	ck_assert_uint_eq(pdu->bhs.byte2, response);
}

/* RFC 7143 11.5.1 and 11.6.1, RFC 7144 4.1. */
static const struct {
	uint8_t code;
	int function; /* -1: not asked for */
	uint8_t response;
} functions[] = {
	{ 0, -1, 5 },
	{ 1, SCSI_ABORT_TASK, 0 },
	{ 2, SCSI_ABORT_TASK_SET, 0 },
	{ 3, -1, 5 }, /* CLEAR ACA */
	{ 4, SCSI_CLEAR_TASK_SET, 0 },
	{ 5, SCSI_LUN_RESET, 0 },
	{ 6, SCSI_TARGET_RESET, 0 },
	{ 8, -1, 4 }, /* TASK REASSIGN */
	{ 9, SCSI_QUERY_TASK, 0 },
	{ 10, SCSI_QUERY_TASK_SET, 0 },
	{ 11, SCSI_NEXUS_RESET, 0 },
	{ 12, SCSI_QUERY_ASYNC_EVENT, 0 },
	{ 13, -1, 5 },
	{ 127, -1, 5 },
};

START_TEST(each_function_goes_where_it_belongs)
{
	rig_start(8);
	read_command(5, 1);
	ask(functions[_i].code, 6, 2, 5, 1);
	ck_assert_uint_eq(rig.tmf_count, functions[_i].function >= 0);
	if (rig.tmf_count) {
		ck_assert_int_eq(rig.tmf->function, functions[_i].function);
		ck_assert_uint_eq(rig.tmf->lun, (uint64_t)3 << 48);
		ck_assert_uint_eq(rig.tmf->tag, 5);
		if (functions[_i].function != SCSI_NEXUS_RESET) {
			rig_turn();
			ck_assert_uint_eq(rig.out_count, 0);
			rig_tmf_end(SCSI_TMF_COMPLETE);
		}
	}
	answered(6, functions[_i].response);
	ck_assert_ptr_null(rig.closed);
	rig_stop();
}
END_TEST

START_TEST(each_answer_of_the_device_server_has_its_code)
{
	static const uint8_t codes[] = {
		[SCSI_TMF_COMPLETE] = 0, [SCSI_TMF_SUCCEEDED] = 7,     [SCSI_TMF_NO_TASK] = 1,
		[SCSI_TMF_NO_LUN] = 2,   [SCSI_TMF_NOT_SUPPORTED] = 5, [SCSI_TMF_REJECTED] = 255,
	};

	rig_start(8);
	ask(5, 6, 1, ISCSI_NO_TAG, 0);
	rig_tmf_end((enum scsi_tmf_response)_i);
	answered(6, codes[_i]);
	rig_stop();
}
END_TEST

START_TEST(what_is_no_task_is_not_found)
{
	bool aborts = _i;
	struct iscsi_bhs nop = rig_request(ISCSI_NOP_OUT, F, 7, 1);

	rig_start(8);
	/* Its own tag, and one that nobody has, of a number that is past. */
	ask(aborts ? 1 : 9, 6, 1, 6, 1);
	answered(6, aborts ? 1 : 0);
	ck_assert(rig_send(&nop, NULL, 0));
	ask(aborts ? 1 : 9, 6, 2, NOBODY, 1);
	answered(6, aborts ? 1 : 0);
	/* A NOP-Out whose answer is not sent yet. */
	rig.socket_bytes = 0;
	nop = rig_request(ISCSI_NOP_OUT, F, 7, 2);
	ck_assert(rig_send(&nop, NULL, 0));
	ask(aborts ? 1 : 9, 6, 3, 7, 2);
	rig.socket_bytes = UINT64_MAX;
	answered(6, aborts ? 1 : 0);
	ck_assert_uint_eq(rig.tmf_count, 0);
	rig_stop();
}
END_TEST

START_TEST(a_held_command_is_aborted_without_the_device_server)
{
	struct iscsi_bhs nop = rig_request(ISCSI_NOP_OUT, F, 7, 1);

	rig_start(8);
	read_command(5, 2);
	ck_assert_uint_eq(rig.submitted_count, 0);
	ask(9, 8, 1, 5, 2);
	answered(8, 7);
	ask(1, 6, 1, 5, 2);
	answered(6, 0);
	ck_assert_uint_eq(rig.tmf_count, 0);
	/* Its number is passed over once the gap before it is filled. */
	ck_assert(rig_send(&nop, NULL, 0));
	rig_turn();
	ck_assert_uint_eq(rig.submitted_count, 0);
	ck_assert_uint_eq(rig.session->window.exp, 3);
	rig_stop();
}
END_TEST

START_TEST(a_command_that_has_not_come_yet_never_runs)
{
	rig_start(8);
	/* Number 1 is under way somewhere, the abort overtakes it. */
	ask(1, 6, 2, 5, 1);
	answered(6, 0);
	read_command(5, 1);
	ck_assert_uint_eq(rig.entered_count, 0);
	ck_assert_uint_eq(rig.session->window.exp, 2);
	/* The next one is not affected. */
	read_command(8, 2);
	ck_assert_uint_eq(rig.submitted_count, 1);
	rig_stop();
}
END_TEST

/* RefCmdSN outside of the window, or not before the request's own. */
START_TEST(a_number_that_cannot_be_meant_is_left_alone)
{
	static const uint32_t refs[] = { 0, 3, 9, 10, 0x80000000, UINT32_MAX };

	rig_start(8);
	ask(1, 6, 2, NOBODY, refs[_i]);
	answered(6, 1);
	read_command(5, 1);
	ck_assert_uint_eq(rig.submitted_count, 1);
	rig_stop();
}
END_TEST

START_TEST(a_number_that_another_command_has_is_not_taken_from_it)
{
	struct iscsi_bhs nop = rig_request(ISCSI_NOP_OUT, F, 7, 1);

	rig_start(8);
	read_command(5, 2);
	ask(1, 6, 3, NOBODY, 2);
	answered(6, 1);
	ck_assert(rig_send(&nop, NULL, 0));
	ck_assert_uint_eq(rig.submitted_count, 1);
	rig_stop();
}
END_TEST

START_TEST(a_task_set_function_waits_for_the_commands_before_it)
{
	static const uint8_t codes[] = { 2, 4, 5, 6, 10, 11 };

	rig_start(8);
	read_command(5, 2);
	ask(codes[_i], 6, 3, ISCSI_NO_TAG, 0);
	ck_assert_uint_eq(rig.tmf_count, 0);
	read_command(4, 1);
	/* Both commands had entered when the function came. */
	ck_assert_uint_eq(rig.tmf_count, 1);
	ck_assert_uint_eq(rig.submitted_count, 2);
	if (codes[_i] != 11)
		rig_tmf_end(SCSI_TMF_COMPLETE);
	answered(6, 0);
	rig_stop();
}
END_TEST

START_TEST(a_cold_reset_ends_the_session_after_its_answer)
{
	rig_start(8);
	ask(7, 6, 1, ISCSI_NO_TAG, 0);
	ck_assert_int_eq(rig.tmf->function, SCSI_TARGET_RESET);
	rig_tmf_end(SCSI_TMF_COMPLETE);
	answered(6, 0);
	ck_assert(rig.session->close_when_sent);
	rig_stop();
}
END_TEST

START_TEST(an_event_is_told_where_rfc_7144_has_it)
{
	rig_start(8);
	ask(12, 6, 1, ISCSI_NO_TAG, 0);
	memcpy(rig.tmf->event, "\x16\x29\x03", 3);
	rig_tmf_end(SCSI_TMF_SUCCEEDED);
	answered(6, 7);
	ck_assert_mem_eq(rig.out[0].bhs.lun, "\x16\x29\x03", 3);
	rig_stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tmf");
	TCase *tc = tcase_create("tmf");

	tcase_add_loop_test(tc, each_function_goes_where_it_belongs, 0, ARRAY_LEN(functions));
	tcase_add_loop_test(tc, each_answer_of_the_device_server_has_its_code, 0, 6);
	tcase_add_loop_test(tc, what_is_no_task_is_not_found, 0, 2);
	tcase_add_test(tc, a_held_command_is_aborted_without_the_device_server);
	tcase_add_test(tc, a_command_that_has_not_come_yet_never_runs);
	tcase_add_loop_test(tc, a_number_that_cannot_be_meant_is_left_alone, 0, 6);
	tcase_add_test(tc, a_number_that_another_command_has_is_not_taken_from_it);
	tcase_add_loop_test(tc, a_task_set_function_waits_for_the_commands_before_it, 0, 6);
	tcase_add_test(tc, a_cold_reset_ends_the_session_after_its_answer);
	tcase_add_test(tc, an_event_is_told_where_rfc_7144_has_it);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
