/* SPDX-License-Identifier: MIT */
/* Data-Out on a session: R2Ts, where data lands, damage, deadlines. */
#include "tests/fake/session_rig.h"

#define F ISCSI_FINAL
#define W ISCSI_CMD_WRITE
#define KEEPS_SENDING (45 * NS_PER_S)

static uint8_t pattern[65536];

static void setup(void)
{
	rig_start(8);
	rig.session->params.initial_r2t = true;
	rig.session->params.immediate_data = true;
	rig.session->params.max_burst = 8192;
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 13 + i / 256);
}

static bool write_command(uint8_t flags, uint32_t itt, uint32_t cmdsn, uint32_t bytes,
			  uint32_t immediate)
{
	struct iscsi_bhs bhs = rig_command((uint8_t)(flags | W), itt, cmdsn, bytes);

	bhs.lun[1] = 3;
	rig_moves(SCSI_DATA_OUT, bytes);
	return rig_send(&bhs, pattern, immediate);
}

static struct iscsi_bhs data_out(uint32_t itt, uint32_t ttt, uint32_t sn, uint32_t offset,
				 bool final)
{
	struct iscsi_bhs bhs = rig_request(ISCSI_DATA_OUT, final ? F : 0, itt, 0);

	put_be32(bhs.word20, ttt);
	put_be32(bhs.word36, sn);
	put_be32(bhs.word40, offset);
	return bhs;
}

static void send_data(uint32_t itt, uint32_t ttt, uint32_t offset, uint32_t bytes)
{
	struct iscsi_bhs bhs = data_out(itt, ttt, 0, offset, true);

	ck_assert(rig_send(&bhs, pattern + offset, bytes));
	rig_turn();
}

static void holds_the_pattern(const struct scsi_task *task, uint32_t bytes)
{
	static uint8_t got[sizeof(pattern)];

	ck_assert_int_eq(task->transport_error, SCSI_TRANSPORT_OK);
	ck_assert_uint_eq(task->data_out_length, bytes);
	buf_read(&task->data, 0, got, bytes);
	ck_assert_mem_eq(got, pattern, bytes);
}

/* 512 bytes with the command, then as many R2Ts at a time as agreed. */
START_TEST(r2ts_ask_for_all_the_rest_in_order)
{
	uint32_t at = 512, asked = 512, sn = 0, most = (uint32_t)_i;

	setup();
	rig.session->params.max_outstanding_r2t = most;
	ck_assert(write_command(F, 5, 1, 50000, 512));
	rig_turn();
	while (at < 50000) {
		uint32_t want, n;

		for (; sn < rig.out_count; sn++) {
			const struct rig_pdu *r2t = rig_pdu(sn, ISCSI_R2T);

			want = (uint32_t)min_u64(8192, 50000 - asked);
			ck_assert_uint_eq(iscsi_itt(&r2t->bhs), 5);
			ck_assert_uint_eq(r2t->bhs.lun[1], 3);
			ck_assert_uint_ne(iscsi_ttt(&r2t->bhs), ISCSI_NO_TAG);
			ck_assert_uint_eq(get_be32(r2t->bhs.word36), sn);
			ck_assert_uint_eq(get_be32(r2t->bhs.word40), asked);
			ck_assert_uint_eq(get_be32(r2t->bhs.word44), want);
			asked += want;
		}
		ck_assert_uint_eq(asked, min_u64(50000, at + 8192 * most));
		n = (at - 512) / 8192;
		want = (uint32_t)min_u64(8192, 50000 - at);
		send_data(5, iscsi_ttt(&rig.out[n].bhs), at, want);
		at += want;
	}
	ck_assert_uint_eq(rig.submitted_count, 1);
	holds_the_pattern(rig.submitted[0], 50000);
	rig_end(rig.submitted[0], SCSI_GOOD, 0);
	rig_turn();
	ck_assert_uint_eq(get_be32(rig_pdu(sn, ISCSI_SCSI_RESPONSE)->bhs.word36), sn);
	rig_stop();
}
END_TEST

/* Each rule broken once: the reason, after the F bit. */
START_TEST(what_breaks_a_rule_ends_the_command_with_its_reason)
{
	static const struct {
		uint32_t ttt_by, sn, offset, bytes;
		enum scsi_transport_error error;
	} cases[] = {
		{ 0, 0, 0, 8192, SCSI_TRANSPORT_OK },
		{ 1, 0, 0, 8192, SCSI_TRANSPORT_SEQUENCE },
		{ 0, 1, 0, 8192, SCSI_TRANSPORT_SEQUENCE },
		{ 0, 0, 512, 8192, SCSI_TRANSPORT_OFFSET },
		{ 0, 0, 0, 8191, SCSI_TRANSPORT_TOO_MUCH_DATA },
		{ 0, 0, 0, 8193, SCSI_TRANSPORT_TOO_MUCH_DATA },
		{ 0, 0, 0, 0, SCSI_TRANSPORT_TOO_MUCH_DATA },
	};
	struct iscsi_bhs bhs;

	setup();
	ck_assert(write_command(F, 5, 1, 8192, 0));
	rig_turn();
	bhs = data_out(5, iscsi_ttt(&rig_pdu(0, ISCSI_R2T)->bhs) + cases[_i].ttt_by, cases[_i].sn,
		       cases[_i].offset, true);
	ck_assert(rig_send(&bhs, pattern, cases[_i].bytes));
	ck_assert_uint_eq(rig.submitted_count, 1);
	ck_assert_int_eq(rig.submitted[0]->transport_error, cases[_i].error);
	rig_stop();
}
END_TEST

START_TEST(damaged_data_is_rejected_and_ends_the_command_after_f)
{
	struct iscsi_bhs bhs;
	const struct rig_pdu *pdu;
	uint32_t ttt;

	setup();
	ck_assert(write_command(F, 5, 1, 8192, 0));
	rig_turn();
	ttt = iscsi_ttt(&rig_pdu(0, ISCSI_R2T)->bhs);
	bhs = data_out(5, ttt, 0, 0, false);
	ck_assert(rig_send_digest(&bhs, pattern, 4096, false));
	rig_turn();
	pdu = rig_pdu(1, ISCSI_REJECT);
	ck_assert_uint_eq(pdu->bhs.byte2, ISCSI_REJECT_DATA_DIGEST);
	ck_assert_uint_eq(iscsi_opcode((const struct iscsi_bhs *)pdu->data), ISCSI_DATA_OUT);
	ck_assert_uint_eq(rig.submitted_count, 0);
	bhs = data_out(5, ttt, 1, 4096, true);
	ck_assert(rig_send(&bhs, pattern, 4096));
	ck_assert_uint_eq(rig.submitted_count, 1);
	ck_assert_int_eq(rig.submitted[0]->transport_error, SCSI_TRANSPORT_DIGEST);
	rig_stop();
}
END_TEST

START_TEST(data_for_nobody_is_dropped)
{
	struct iscsi_bhs bhs = data_out(0x77, ISCSI_NO_TAG, 0, 0, true);

	setup();
	ck_assert(rig_send(&bhs, pattern, 4096));
	ck_assert(write_command(F, 5, 1, 4096, 4096));
	ck_assert_uint_eq(rig.submitted_count, 1);
	/* Its command has all that it wants. */
	bhs = data_out(5, ISCSI_NO_TAG, 0, 0, true);
	ck_assert(rig_send(&bhs, pattern + 1, 4096));
	holds_the_pattern(rig.submitted[0], 4096);
	rig_turn();
	ck_assert_uint_eq(rig.out_count, 0);
	rig_stop();
}
END_TEST

START_TEST(an_abort_amid_a_data_pdu_keeps_its_buffers_until_that_has_come)
{
	struct iscsi_pdu *pdu = &rig.conn.rx.pdu;
	struct iscsi_dest dest = { .sink = ISCSI_SINK_DROP };
	unsigned units;

	setup();
	ck_assert(write_command(F, 5, 1, 8192, 0));
	rig_turn();
	*pdu = (struct iscsi_pdu){
		.bhs = data_out(5, iscsi_ttt(&rig_pdu(0, ISCSI_R2T)->bhs), 0, 0, true),
		.length = 8192,
	};
	put_be24(pdu->bhs.length, 8192);
	units = buf_pool_free_units(rig.server.pool);
	ck_assert_uint_eq(units, RIG_UNITS - 1);
	ck_assert(iscsi_conn_rx_ops.header(&rig.conn, pdu, &dest));
	ck_assert_int_eq(dest.sink, ISCSI_SINK_LIST);
	rig_leave(rig.entered[0], _i ? SCSI_COMPLETED : SCSI_ABORTED);
	rig_turn();
	ck_assert_uint_eq(buf_pool_free_units(rig.server.pool), units);
	ck_assert(iscsi_conn_rx_ops.pdu(&rig.conn, pdu, true));
	rig_turn();
	ck_assert_uint_eq(buf_pool_free_units(rig.server.pool), RIG_UNITS);
	ck_assert_uint_eq(rig.session->cmd_used, 0);
	rig_stop();
}
END_TEST

/* The first one gets its data bit by bit, the second nothing. */
START_TEST(the_one_longest_without_progress_runs_out_of_time)
{
	uint32_t ttt;

	setup();
	rig.session->params.max_burst = 512;
	ck_assert(write_command(F, 5, 1, 4096, 0));
	rig_turn();
	ck_assert(write_command(F, 6, 2, 4096, 0));
	rig_turn();
	ttt = iscsi_ttt(&rig.out[0].bhs);
	fake_env_advance(rig.env, KEEPS_SENDING);
	send_data(5, ttt, 0, 512);
	ck_assert_ptr_null(rig.closed);
	fake_env_advance(rig.env, 60 * NS_PER_S - KEEPS_SENDING - 1);
	ck_assert_ptr_null(rig.closed);
	fake_env_advance(rig.env, 1);
	ck_assert_str_eq(rig.closed, "data that was asked for did not come");
	rig_stop();
}
END_TEST

/* Not from the command: our own queue is nothing that the initiator can hurry. */
START_TEST(time_runs_from_the_r2t)
{
	setup();
	rig.socket_bytes = 48;
	ck_assert(write_command(F, 5, 1, 4096, 0));
	ck_assert(write_command(F, 6, 2, 4096, 0));
	fake_env_advance(rig.env, KEEPS_SENDING);
	/* Only now they are made. */
	rig.socket_bytes = UINT64_MAX;
	rig_turn();
	ck_assert_uint_eq(rig.out_count, 2);
	fake_env_advance(rig.env, 60 * NS_PER_S - 1);
	ck_assert_ptr_null(rig.closed);
	fake_env_advance(rig.env, 1);
	ck_assert_ptr_nonnull(rig.closed);
	rig_stop();
}
END_TEST

START_TEST(a_store_that_stalls_costs_nobody_the_connection)
{
	setup();
	ck_assert(write_command(F, 5, 1, 4096, 4096));
	ck_assert_uint_eq(rig.submitted_count, 1);
	fake_env_advance(rig.env, 3600 * NS_PER_S);
	ck_assert_ptr_null(rig.closed);
	rig_end(rig.submitted[0], SCSI_GOOD, 0);
	rig_turn();
	rig_pdu(0, ISCSI_SCSI_RESPONSE);
	rig_stop();
}
END_TEST

/* Immediate data of a command that waits for its number is there when its turn comes. */
START_TEST(immediate_data_waits_with_its_command)
{
	static const uint32_t immediate[] = { 512, 8192, 65536 };
	struct iscsi_bhs nop = rig_request(ISCSI_NOP_OUT, F, 7, 1);

	setup();
	ck_assert(write_command(F, 5, 2, 65536, immediate[_i]));
	rig_turn();
	ck_assert_uint_eq(rig.entered_count, 0);
	ck_assert(rig_send(&nop, NULL, 0));
	rig_turn();
	for (uint32_t at = immediate[_i], n = 1; at < 65536; at += 8192, n++)
		send_data(5, iscsi_ttt(&rig_pdu(n, ISCSI_R2T)->bhs), at,
			  (uint32_t)min_u64(8192, 65536 - at));
	ck_assert_uint_eq(rig.submitted_count, 1);
	holds_the_pattern(rig.submitted[0], 65536);
	rig_stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("data_out_conn");
	TCase *tc = tcase_create("data_out_conn");

	tcase_add_loop_test(tc, r2ts_ask_for_all_the_rest_in_order, 1, 5);
	tcase_add_loop_test(tc, what_breaks_a_rule_ends_the_command_with_its_reason, 0, 7);
	tcase_add_test(tc, damaged_data_is_rejected_and_ends_the_command_after_f);
	tcase_add_test(tc, data_for_nobody_is_dropped);
	tcase_add_loop_test(tc, an_abort_amid_a_data_pdu_keeps_its_buffers_until_that_has_come, 0,
			    2);
	tcase_add_test(tc, the_one_longest_without_progress_runs_out_of_time);
	tcase_add_test(tc, time_runs_from_the_r2t);
	tcase_add_test(tc, a_store_that_stalls_costs_nobody_the_connection);
	tcase_add_loop_test(tc, immediate_data_waits_with_its_command, 0, 3);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
