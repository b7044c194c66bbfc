/* SPDX-License-Identifier: MIT */
/* What an initiator may send: opcodes, sizes, additional header segments. */
#include <check.h>
#include <stdlib.h>

#include "target/iscsi/pdu.h"

static struct iscsi_bhs header(uint8_t opcode, uint32_t length, uint8_t ahs_words)
{
	struct iscsi_bhs bhs = { .opcode = opcode, .ahs_words = ahs_words };

	put_be24(bhs.length, length);
	return bhs;
}

static const struct {
	uint8_t opcode;
	uint32_t length;
	uint8_t ahs_words;
	bool discovery;
	enum iscsi_verdict verdict;
} sizes[] = {
	{ ISCSI_NOP_OUT, 0, 0, false, ISCSI_PDU_OK },
	{ ISCSI_NOP_OUT, 65536, 0, true, ISCSI_PDU_OK },
	{ ISCSI_NOP_OUT, 65537, 0, false, ISCSI_PDU_FATAL },
	{ ISCSI_NOP_OUT, 0, 1, false, ISCSI_PDU_PROTOCOL },
	{ ISCSI_SCSI_COMMAND, 65536, 0, false, ISCSI_PDU_OK },
	{ ISCSI_SCSI_COMMAND, 0, 0, true, ISCSI_PDU_PROTOCOL },
	{ ISCSI_SCSI_COMMAND, 0, ISCSI_AHS_MAX / 4, false, ISCSI_PDU_OK },
	{ ISCSI_SCSI_COMMAND, 0, ISCSI_AHS_MAX / 4 + 1, false, ISCSI_PDU_PROTOCOL },
	{ ISCSI_TMF_REQUEST, 0, 0, false, ISCSI_PDU_OK },
	{ ISCSI_TMF_REQUEST, 1, 0, false, ISCSI_PDU_PROTOCOL },
	{ ISCSI_TEXT_REQUEST, ISCSI_CONTROL_MAX, 0, true, ISCSI_PDU_OK },
	{ ISCSI_TEXT_REQUEST, ISCSI_CONTROL_MAX + 1, 0, true, ISCSI_PDU_PROTOCOL },
	{ ISCSI_LOGOUT_REQUEST, 0, 0, true, ISCSI_PDU_OK },
	{ ISCSI_LOGOUT_REQUEST, 4, 0, true, ISCSI_PDU_PROTOCOL },
	{ ISCSI_DATA_OUT, 65536, 0, false, ISCSI_PDU_OK },
	{ ISCSI_DATA_OUT, 16777215, 0, false, ISCSI_PDU_FATAL },
	{ ISCSI_SNACK, 0, 0, false, ISCSI_PDU_OK },
	{ 0x07, 0, 0, false, ISCSI_PDU_UNKNOWN },
	{ 0x1c, 12, 0, false, ISCSI_PDU_UNKNOWN },
	{ ISCSI_NOP_IN, 0, 0, false, ISCSI_PDU_UNKNOWN },
	{ ISCSI_REJECT, 0, 0, false, ISCSI_PDU_UNKNOWN },
};

START_TEST(the_table_decides_before_a_handler_does)
{
	struct iscsi_bhs bhs = header(sizes[_i].opcode, sizes[_i].length, sizes[_i].ahs_words);

	ck_assert_int_eq(iscsi_pdu_check(&bhs, 65536, sizes[_i].discovery), sizes[_i].verdict);
	bhs.opcode |= ISCSI_IMMEDIATE;
	ck_assert_int_eq(iscsi_pdu_check(&bhs, 65536, sizes[_i].discovery), sizes[_i].verdict);
}
END_TEST

START_TEST(every_opcode_has_a_row_and_a_name)
{
	unsigned known = 0;

	for (unsigned opcode = 0; opcode < 256; opcode++) {
		ck_assert_ptr_nonnull(iscsi_request((uint8_t)opcode));
		ck_assert_ptr_nonnull(iscsi_opcode_name((uint8_t)opcode));
		known += opcode <= ISCSI_OPCODE_MASK && iscsi_request((uint8_t)opcode)->name;
	}
	ck_assert_uint_eq(known, 8);
	ck_assert_str_eq(iscsi_opcode_name(ISCSI_DATA_OUT), "Data-Out");
	ck_assert_str_eq(iscsi_opcode_name(0x3e), "unknown");
}
END_TEST

START_TEST(fields_lie_where_the_rfc_puts_them)
{
	uint8_t wire[ISCSI_BHS_BYTES];
	struct iscsi_bhs bhs;

	for (unsigned i = 0; i < sizeof(wire); i++)
		wire[i] = (uint8_t)i;
	wire[0] = 0x41;
	memcpy(&bhs, wire, sizeof(bhs));
	ck_assert_uint_eq(iscsi_opcode(&bhs), ISCSI_SCSI_COMMAND);
	ck_assert(iscsi_is_immediate(&bhs));
	ck_assert_uint_eq(iscsi_length(&bhs), 0x050607);
	ck_assert_uint_eq(iscsi_lun(&bhs), 0x08090a0b0c0d0e0f);
	ck_assert_uint_eq(iscsi_itt(&bhs), 0x10111213);
	ck_assert_uint_eq(iscsi_ttt(&bhs), 0x14151617);
	ck_assert_uint_eq(iscsi_cmdsn(&bhs), 0x18191a1b);
	iscsi_bhs_init(&bhs, ISCSI_R2T, ISCSI_FINAL, 0x01020304);
	ck_assert_uint_eq(bhs.opcode, 0x31);
	ck_assert_uint_eq(bhs.flags, 0x80);
	ck_assert_uint_eq(get_be32(bhs.itt), 0x01020304);
	ck_assert_uint_eq(get_be32(bhs.word44), 0);
}
END_TEST

START_TEST(padding_fills_up_to_four)
{
	static const unsigned pads[] = { 0, 3, 2, 1, 0, 3 };

	for (uint32_t i = 0; i < ARRAY_LEN(pads); i++)
		ck_assert_uint_eq(iscsi_pad(i), pads[i]);
	ck_assert_uint_eq(iscsi_pad(0xffffff), 1);
}
END_TEST

static const struct {
	uint8_t bytes[32];
	unsigned length;
	bool good, extended, bidirectional;
	unsigned cdb_bytes;
} segments[] = {
	{ { 0 }, 0, true, false, false, 16 },
	{ { 0, 17, 1, 0 }, 20, true, true, false, 32 },
	{ { 0, 5, 2, 0 }, 8, true, false, true, 16 },
	{ { 0, 17, 1, 0, [20] = 0, [21] = 5, [22] = 2 }, 28, true, true, true, 32 },
	{ { 0, 17, 1, 0 }, 16, false, false, false, 0 }, /* longer than it is */
	{ { 0, 0, 1, 0 }, 4, false, false, false, 0 },   /* empty */
	{ { 0, 1, 3, 0 }, 4, false, false, false, 0 },   /* unknown type */
	{ { 0, 4, 2, 0 }, 8, false, false, false, 0 },   /* length of another type */
	{ { 0xff, 0xff, 1, 0 }, 8, false, false, false, 0 },
	{ { 0, 1, 1, 0, 0, 1, 1, 0 }, 8, false, false, false, 0 }, /* twice */
};

START_TEST(additional_headers_are_taken_apart)
{
	/* Exactly as long as it says, so that a read past it is seen. */
	uint8_t *ahs = malloc(segments[_i].length ? segments[_i].length : 1);
	struct iscsi_ahs out;

	memcpy(ahs, segments[_i].bytes, segments[_i].length);
	ck_assert_int_eq(iscsi_ahs_parse(ahs, segments[_i].length, &out), segments[_i].good);
	if (segments[_i].good) {
		ck_assert_int_eq(out.extended_cdb, segments[_i].extended);
		ck_assert_int_eq(out.bidirectional, segments[_i].bidirectional);
		ck_assert_uint_eq(out.cdb_bytes, segments[_i].cdb_bytes);
	}
	free(ahs);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pdu");
	TCase *tcase = tcase_create("pdu");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tcase, the_table_decides_before_a_handler_does, 0,
			    (int)ARRAY_LEN(sizes));
	tcase_add_test(tcase, every_opcode_has_a_row_and_a_name);
	tcase_add_test(tcase, fields_lie_where_the_rfc_puts_them);
	tcase_add_test(tcase, padding_fills_up_to_four);
	tcase_add_loop_test(tcase, additional_headers_are_taken_apart, 0, (int)ARRAY_LEN(segments));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
