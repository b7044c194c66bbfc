/* SPDX-License-Identifier: MIT */
/* NOP-Out echoed, NOP-In asked and missed. */
#include "tests/fake/session_rig.h"

#define F ISCSI_FINAL
#define INTERVAL (300 * NS_PER_MS)
#define TIMEOUT (200 * NS_PER_MS)

static uint8_t pattern[300000];

static void start(uint64_t interval_ns)
{
	rig_start(4);
	rig.target.nop_interval_ns = interval_ns;
	rig.target.nop_timeout_ns = TIMEOUT;
	iscsi_nop_start(rig.session);
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + 1);
}

static void pass(uint64_t ns)
{
	fake_env_advance(rig.env, ns);
	rig_turn();
}

static void answer_ping(uint32_t tag)
{
	struct iscsi_bhs bhs = rig_request(ISCSI_IMMEDIATE | ISCSI_NOP_OUT, F, ISCSI_NO_TAG, 1);

	put_be32(bhs.word20, tag);
	ck_assert(rig_send(&bhs, NULL, 0));
}

/* Immediate or numbered, up to what they take. */
START_TEST(data_is_echoed_as_far_as_they_take_it)
{
	static const uint32_t lengths[] = { 0, 1, 3, 512, 8192, 8193, 200000 };
	uint32_t length = lengths[_i / 2], want = (uint32_t)min_u64(length, 8192);
	struct iscsi_bhs bhs =
		rig_request((uint8_t)(ISCSI_NOP_OUT | (_i % 2 ? ISCSI_IMMEDIATE : 0)), F, 0x55, 1);
	const struct rig_pdu *pdu;

	start(0);
	bhs.lun[1] = 9;
	put_be32(bhs.word20, ISCSI_NO_TAG);
	ck_assert(rig_send(&bhs, pattern, length));
	rig_turn();
	pdu = rig_pdu(0, ISCSI_NOP_IN);
	ck_assert_uint_eq(iscsi_itt(&pdu->bhs), 0x55);
	ck_assert_uint_eq(iscsi_ttt(&pdu->bhs), ISCSI_NO_TAG);
	ck_assert_uint_eq(pdu->bhs.lun[1], 9);
	ck_assert_uint_eq(get_be32(pdu->bhs.word28), _i % 2 ? 1 : 2);
	ck_assert_uint_eq(pdu->length, want);
	ck_assert_mem_eq(pdu->data, pattern, want);
	ck_assert_uint_eq(rig.session->statsn, 101);
	ck_assert_uint_eq(rig.session->cmd_used, 0);
	rig_stop();
}
END_TEST

START_TEST(a_ping_that_is_answered_comes_again_after_the_interval)
{
	start(INTERVAL);
	for (unsigned i = 0; i < 5; i++) {
		pass(INTERVAL - 1);
		ck_assert_uint_eq(rig.out_count, i);
		pass(1);
		ck_assert_uint_eq(rig.out_count, i + 1);
		ck_assert_uint_eq(iscsi_itt(&rig_pdu(i, ISCSI_NOP_IN)->bhs), ISCSI_NO_TAG);
		pass(TIMEOUT - 1);
		answer_ping(iscsi_ttt(&rig.out[i].bhs));
	}
	ck_assert_ptr_null(rig.closed);
	rig_stop();
}
END_TEST

/* Not at all; with another tag; with that of the ping before. */
START_TEST(a_ping_that_is_not_answered_ends_the_connection)
{
	start(INTERVAL);
	pass(INTERVAL);
	answer_ping(iscsi_ttt(&rig.out[0].bhs));
	pass(INTERVAL);
	ck_assert_uint_eq(rig.out_count, 2);
	if (_i == 1)
		answer_ping(0x1234567);
	if (_i == 2)
		answer_ping(iscsi_ttt(&rig.out[0].bhs));
	pass(TIMEOUT - 1);
	ck_assert_ptr_null(rig.closed);
	pass(1);
	ck_assert_str_eq(rig.closed, "NOP-In not answered");
	rig_stop();
}
END_TEST

START_TEST(a_socket_that_takes_nothing_ends_the_connection)
{
	start(INTERVAL);
	rig.socket_bytes = 0;
	pass(INTERVAL);
	pass(TIMEOUT);
	ck_assert_str_eq(rig.closed, "NOP-In not answered");
	rig_stop();
}
END_TEST

START_TEST(without_an_interval_nobody_is_asked)
{
	start(0);
	pass(3600 * NS_PER_S);
	ck_assert_uint_eq(rig.out_count, 0);
	ck_assert_ptr_null(rig.closed);
	rig_stop();
}
END_TEST

/* It must not wait: whether we live is what they ask. */
START_TEST(an_echo_for_which_there_is_no_buffer_is_empty)
{
	struct iscsi_bhs bhs = rig_request(ISCSI_IMMEDIATE | ISCSI_NOP_OUT, F, 0x55, 1);
	struct buf_list taken[RIG_UNITS];

	start(0);
	for (unsigned i = 0; i < RIG_UNITS; i++)
		ck_assert(buf_take(rig.server.pool, BUF_UNIT, &taken[i]));
	ck_assert(rig_send(&bhs, pattern, 512));
	rig_turn();
	ck_assert_uint_eq(rig_pdu(0, ISCSI_NOP_IN)->length, 0);
	ck_assert_uint_eq(iscsi_itt(&rig.out[0].bhs), 0x55);
	for (unsigned i = 0; i < RIG_UNITS; i++)
		buf_give(rig.server.pool, &taken[i]);
	rig_stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nop");
	TCase *tc = tcase_create("nop");

	tcase_add_loop_test(tc, data_is_echoed_as_far_as_they_take_it, 0, 14);
	tcase_add_test(tc, a_ping_that_is_answered_comes_again_after_the_interval);
	tcase_add_loop_test(tc, a_ping_that_is_not_answered_ends_the_connection, 0, 3);
	tcase_add_test(tc, a_socket_that_takes_nothing_ends_the_connection);
	tcase_add_test(tc, without_an_interval_nobody_is_asked);
	tcase_add_test(tc, an_echo_for_which_there_is_no_buffer_is_empty);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
