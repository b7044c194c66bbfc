/* SPDX-License-Identifier: MIT */
/* Data-In over a matrix of segments and bursts, residuals over directions, and where the status is. */
#include "tests/fake/session_rig.h"

#define F ISCSI_FINAL
#define R ISCSI_CMD_READ
#define W ISCSI_CMD_WRITE

static uint8_t pattern[MIB];

static void setup(void)
{
	rig_start(8);
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 31 + i / 251);
}

/* A READ of LENGTH bytes, carried out; its buffers hold the pattern. */
static struct scsi_task *read_done(uint32_t length, uint32_t edtl, uint64_t yields)
{
	struct iscsi_bhs bhs = rig_command(F | R, 0x77, 1, edtl);
	struct scsi_task *task;

	rig_moves(SCSI_DATA_IN, length);
	ck_assert(rig_send(&bhs, NULL, 0));
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig.submitted_count, 1);
	task = rig.submitted[0];
	ck_assert_uint_eq(task->data.length, length);
	buf_write(&task->data, 0, pattern, length);
	rig_end(task, SCSI_GOOD, yields);
	rig_turn();
	return task;
}

static const uint32_t segments[] = { 512, 8192, 65536, 100000, 262144 };
static const uint32_t bursts[] = { 512, 8192, 65536, 262144 };
static const uint32_t lengths[] = { 1, 511, 512, 8192, 65536, 65537, 300000, MIB };

#define CASES (ARRAY_LEN(segments) * ARRAY_LEN(bursts) * ARRAY_LEN(lengths))

START_TEST(a_read_is_cut_into_segments_and_bursts)
{
	uint32_t segment = segments[(unsigned)_i % ARRAY_LEN(segments)];
	uint32_t burst = bursts[(unsigned)_i / ARRAY_LEN(segments) % ARRAY_LEN(bursts)];
	uint32_t length = lengths[(unsigned)_i / ARRAY_LEN(segments) / ARRAY_LEN(bursts)];
	uint32_t at = 0, in_burst = 0, n;

	setup();
	rig.session->params.max_send = segment;
	rig.session->params.max_burst = burst;
	read_done(length, length, length);
	for (n = 0; at < length; n++) {
		const struct rig_pdu *pdu = rig_pdu(n, ISCSI_DATA_IN);
		uint32_t want = (uint32_t)min_u64(min_u64(segment, burst - in_burst), length - at);
		bool last = at + want == length, ends = last || in_burst + want == burst;

		ck_assert_uint_eq(pdu->length, want);
		ck_assert_uint_eq(get_be32(pdu->bhs.word40), at);
		ck_assert_uint_eq(get_be32(pdu->bhs.word36), n);
		ck_assert_uint_eq(get_be32(pdu->bhs.word20), ISCSI_NO_TAG);
		ck_assert_uint_eq(pdu->bhs.flags, (ends ? F : 0) | (last ? ISCSI_DATA_STATUS : 0));
		/* StatSN and residual mean something with the status only. */
		ck_assert_uint_eq(get_be32(pdu->bhs.word24), last ? 100 : 0);
		ck_assert_uint_eq(get_be32(pdu->bhs.word44), 0);
		ck_assert_mem_eq(pdu->data, pattern + at, want);
		at += want;
		in_burst = ends ? 0 : in_burst + want;
	}
	ck_assert_uint_eq(rig.out_count, n);
	/* The number is free in the PDU that tells the status. */
	ck_assert_uint_eq(get_be32(rig.out[n - 1].bhs.word28), 2);
	ck_assert_uint_eq(get_be32(rig.out[n - 1].bhs.word32), 9);
	ck_assert_uint_eq(rig.session->cmd_used, 0);
	rig_stop();
}
END_TEST

/* REAL is what the command moves, in its own direction; MOVED what of it may move. */
static const struct {
	uint8_t flags;
	enum scsi_dir dir;
	uint32_t edtl, real, moved;
	uint8_t residual_flag;
	uint32_t residual;
} residuals[] = {
	{ R, SCSI_DATA_IN, 512, 512, 512, 0, 0 },
	{ R, SCSI_DATA_IN, 512, 4096, 512, ISCSI_OVERFLOW, 3584 },
	{ R, SCSI_DATA_IN, 4096, 512, 512, ISCSI_UNDERFLOW, 3584 },
	{ R, SCSI_DATA_IN, 4096, 0, 0, ISCSI_UNDERFLOW, 4096 },
	{ R, SCSI_DATA_IN, 0, 512, 0, ISCSI_OVERFLOW, 512 },
	{ R, SCSI_DATA_IN, 1, 8, 1, ISCSI_OVERFLOW, 7 },
	{ R, SCSI_NO_DATA, 512, 0, 0, ISCSI_UNDERFLOW, 512 },
	{ 0, SCSI_NO_DATA, 0, 0, 0, 0, 0 },
	{ 0, SCSI_DATA_IN, 0, 36, 0, ISCSI_OVERFLOW, 36 },
	{ 0, SCSI_NO_DATA, 512, 0, 0, 0, 0 }, /* neither bit: the field means nothing */
	{ W, SCSI_DATA_OUT, 512, 512, 512, 0, 0 },
	{ W, SCSI_DATA_OUT, 0, 512, 0, ISCSI_OVERFLOW, 512 },
	{ W, SCSI_DATA_OUT, 512, 4096, 512, ISCSI_OVERFLOW, 3584 },
	{ W, SCSI_DATA_OUT, 4096, 512, 512, ISCSI_UNDERFLOW, 3584 },
	{ W, SCSI_NO_DATA, 512, 0, 0, ISCSI_UNDERFLOW, 512 },
	{ W, SCSI_DATA_IN, 512, 512, 0, ISCSI_UNDERFLOW, 512 },
	{ 0, SCSI_DATA_OUT, 0, 512, 0, ISCSI_OVERFLOW, 512 },
};

START_TEST(residuals_are_expected_against_real)
{
	struct iscsi_bhs bhs;
	const struct rig_pdu *pdu;
	uint32_t at = 0;

	setup();
	bhs = rig_command(F | residuals[_i].flags, 5, 1, residuals[_i].edtl);
	rig_moves(residuals[_i].dir, residuals[_i].real);
	/* What a command takes comes with it; what it has no use for comes along. */
	if (residuals[_i].flags & W)
		ck_assert(rig_send(&bhs, pattern, residuals[_i].edtl));
	else
		ck_assert(rig_send(&bhs, NULL, 0));
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig.submitted_count, 1);
	ck_assert_int_eq(rig.submitted[0]->transport_error, SCSI_TRANSPORT_OK);
	if (residuals[_i].dir == SCSI_DATA_OUT)
		ck_assert_uint_eq(rig.submitted[0]->data_out_length, residuals[_i].moved);
	rig_end(rig.submitted[0], SCSI_GOOD,
		residuals[_i].dir == SCSI_DATA_IN ? residuals[_i].real : 0);
	rig_turn();
	ck_assert_uint_eq(rig.out_count, 1);
	pdu = &rig.out[0];
	if (residuals[_i].dir == SCSI_DATA_IN)
		at = residuals[_i].moved;
	ck_assert_uint_eq(pdu->length, at);
	ck_assert_uint_eq(iscsi_opcode(&pdu->bhs), at ? ISCSI_DATA_IN : ISCSI_SCSI_RESPONSE);
	ck_assert_uint_eq(pdu->bhs.flags & (ISCSI_OVERFLOW | ISCSI_UNDERFLOW),
			  residuals[_i].residual_flag);
	ck_assert_uint_eq(get_be32(pdu->bhs.word44), residuals[_i].residual);
	rig_stop();
}
END_TEST

START_TEST(sense_comes_in_a_response_with_its_length)
{
	struct iscsi_bhs bhs = rig_command(F | R, 5, 1, 512);
	const struct rig_pdu *pdu;
	struct scsi_task *task;

	setup();
	rig_moves(SCSI_DATA_IN, 512);
	rig_send(&bhs, NULL, 0);
	fake_env_run(rig.env);
	task = rig.submitted[0];
	memcpy(task->sense, pattern, 18);
	task->sense_length = 18;
	rig_end(task, SCSI_CHECK_CONDITION, 0);
	rig_turn();
	pdu = rig_pdu(0, ISCSI_SCSI_RESPONSE);
	ck_assert_uint_eq(pdu->bhs.byte3, SCSI_CHECK_CONDITION);
	ck_assert_uint_eq(pdu->bhs.flags, F | ISCSI_UNDERFLOW);
	ck_assert_uint_eq(get_be32(pdu->bhs.word44), 512);
	ck_assert_uint_eq(pdu->length, 20);
	ck_assert_uint_eq(get_be16(pdu->data), 18);
	ck_assert_mem_eq(pdu->data + 2, pattern, 18);
	ck_assert_uint_eq(rig.session->errors.check_conditions, 1);
	rig_stop();
}
END_TEST

START_TEST(data_that_the_socket_does_not_take_keeps_its_buffers)
{
	struct scsi_task *task;

	setup();
	rig.session->params.max_send = 8192;
	rig.socket_bytes = 20000;
	task = read_done(300000, 300000, 300000);
	ck_assert_uint_eq(rig.out_count, 2);
	ck_assert_uint_eq(task->data.length, 300000);
	ck_assert_uint_eq(buf_pool_free_units(rig.server.pool), RIG_UNITS - 5);
	rig.socket_bytes = UINT64_MAX;
	rig_turn();
	ck_assert_uint_eq(rig.out_count, 37);
	ck_assert_mem_eq(rig.out[36].data, pattern + 36 * 8192, 300000 - 36 * 8192);
	ck_assert_uint_eq(buf_pool_free_units(rig.server.pool), RIG_UNITS);
	rig_stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("data_in");
	TCase *tc = tcase_create("data_in");

	tcase_add_loop_test(tc, a_read_is_cut_into_segments_and_bursts, 0, CASES);
	tcase_add_loop_test(tc, residuals_are_expected_against_real, 0, ARRAY_LEN(residuals));
	tcase_add_test(tc, sense_comes_in_a_response_with_its_length);
	tcase_add_test(tc, data_that_the_socket_does_not_take_keeps_its_buffers);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
