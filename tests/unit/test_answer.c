/* SPDX-License-Identifier: MIT */
/* Numbers of what goes out, and that nothing stays behind. */
#include "tests/fake/session_rig.h"

#define F ISCSI_FINAL
#define R ISCSI_CMD_READ
#define W ISCSI_CMD_WRITE

static void command(uint8_t flags, uint32_t itt, uint32_t cmdsn, enum scsi_dir dir, uint32_t bytes)
{
	struct iscsi_bhs bhs = rig_command(F | flags, itt, cmdsn, bytes);

	rig_moves(dir, bytes);
	ck_assert(rig_send(&bhs, NULL, 0));
	fake_env_run(rig.env);
}

START_TEST(statsn_follows_the_order_of_sending)
{
	static const uint32_t tags[] = { 13, 11, 12 };

	rig_start(8);
	for (uint32_t i = 0; i < 3; i++)
		command(0, 11 + i, 1 + i, SCSI_NO_DATA, 0);
	rig_end(rig.submitted[2], SCSI_GOOD, 0);
	rig_end(rig.submitted[0], SCSI_GOOD, 0);
	rig_turn();
	rig_end(rig.submitted[1], SCSI_BUSY, 0);
	rig_turn();
	for (uint32_t i = 0; i < 3; i++) {
		const struct rig_pdu *pdu = rig_pdu(i, ISCSI_SCSI_RESPONSE);

		ck_assert_uint_eq(iscsi_itt(&pdu->bhs), tags[i]);
		ck_assert_uint_eq(get_be32(pdu->bhs.word24), 100 + i);
		ck_assert_uint_eq(get_be32(pdu->bhs.word28), 4);
		ck_assert_uint_eq(get_be32(pdu->bhs.word32), 3 + 8 - (2 - i));
	}
	rig_stop();
}
END_TEST

START_TEST(what_needs_no_acknowledgement_takes_no_number)
{
	rig_start(8);
	command(W, 11, 1, SCSI_DATA_OUT, 8192);
	rig.session->want_ping = true;
	rig_turn();
	ck_assert_uint_eq(get_be32(rig_pdu(0, ISCSI_R2T)->bhs.word24), 100);
	ck_assert_uint_eq(get_be32(rig_pdu(1, ISCSI_NOP_IN)->bhs.word24), 100);
	command(0, 12, 2, SCSI_NO_DATA, 0);
	rig_end(rig.submitted[0], SCSI_GOOD, 0);
	iscsi_async(rig.session, 1, 1);
	rig_turn();
	ck_assert_uint_eq(get_be32(rig_pdu(2, ISCSI_SCSI_RESPONSE)->bhs.word24), 100);
	ck_assert_uint_eq(get_be32(rig_pdu(3, ISCSI_ASYNC)->bhs.word24), 101);
	ck_assert_uint_eq(rig.session->statsn, 102);
	rig_stop();
}
END_TEST

/* Data-In that fills the queue to its last slot, one less, one more. */
START_TEST(what_finds_the_queue_full_goes_with_the_room)
{
	uint32_t bytes = (ISCSI_TX_SLOTS - 1 + (uint32_t)_i) * 512;

	rig_start(8);
	rig.session->params.max_send = 512;
	command(R, 11, 1, SCSI_DATA_IN, bytes);
	rig_end(rig.submitted[0], SCSI_GOOD, bytes);
	rig.session->want_ping = true;
	iscsi_async(rig.session, 1, 1);
	rig_turn();
	ck_assert_uint_eq(rig.out_count, bytes / 512 + 2);
	rig_pdu(rig.out_count - 2, ISCSI_ASYNC);
	rig_pdu(rig.out_count - 1, ISCSI_NOP_IN);
	ck_assert(rig.session->nop_out);
	rig_stop();
}
END_TEST

START_TEST(a_window_that_opens_without_an_answer_is_told)
{
	rig_start(4);
	for (uint32_t i = 0; i < 4; i++)
		command(0, 11 + i, 1 + i, SCSI_NO_DATA, 0);
	/* An answer to something else tells that there is no room. */
	rig.session->want_ping = true;
	rig_turn();
	ck_assert_uint_eq(get_be32(rig.out[0].bhs.word28), 5);
	ck_assert_uint_eq(get_be32(rig.out[0].bhs.word32), 4);
	rig_leave(rig.entered[0], SCSI_ABORTED);
	rig_turn();
	ck_assert_uint_eq(rig.out_count, 2);
	ck_assert_uint_eq(get_be32(rig_pdu(1, ISCSI_NOP_IN)->bhs.word32), 5);
	ck_assert_uint_eq(get_be32(rig.out[1].bhs.word20), ISCSI_NO_TAG);
	/* Open again, nothing has to be said. */
	rig_leave(rig.entered[0], SCSI_ABORTED);
	rig_turn();
	ck_assert_uint_eq(rig.out_count, 2);
	rig_stop();
}
END_TEST

START_TEST(nothing_follows_the_last_word)
{
	struct iscsi_bhs bhs = rig_request(ISCSI_IMMEDIATE | ISCSI_LOGOUT_REQUEST, F, 20, 2);

	rig_start(8);
	command(0, 11, 1, SCSI_NO_DATA, 0);
	ck_assert(rig_send(&bhs, NULL, 0));
	rig_end(rig.submitted[0], SCSI_GOOD, 0);
	rig.session->want_ping = true;
	rig_turn();
	ck_assert_uint_eq(rig.out_count, 1);
	ck_assert_uint_eq(rig_pdu(0, ISCSI_LOGOUT_RESPONSE)->bhs.byte2, 0);
	ck_assert(!iscsi_answers_left(rig.session));
	rig_stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("answer");
	TCase *tc = tcase_create("answer");

	tcase_add_test(tc, statsn_follows_the_order_of_sending);
	tcase_add_test(tc, what_needs_no_acknowledgement_takes_no_number);
	tcase_add_loop_test(tc, what_finds_the_queue_full_goes_with_the_room, 0, 3);
	tcase_add_test(tc, a_window_that_opens_without_an_answer_is_told);
	tcase_add_test(tc, nothing_follows_the_last_word);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
