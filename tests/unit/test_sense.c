/* SPDX-License-Identifier: MIT */
/* Sense data: codes by reason, both formats byte for byte, block layer and transport errors. */
#include <check.h>
#include <errno.h>

#include "target/scsi/sense.h"
#include "tests/fake/scsi_rig.h"

static const struct {
	enum scsi_reason reason;
	unsigned code;
} codes[] = {
	{ SCSI_R_NO_SENSE, 0x000000 },          { SCSI_R_BECOMING_READY, 0x020401 },
	{ SCSI_R_NOT_READY, 0x020403 },         { SCSI_R_READ_ERROR, 0x031100 },
	{ SCSI_R_WRITE_ERROR, 0x030c00 },       { SCSI_R_INTERNAL, 0x044400 },
	{ SCSI_R_INVALID_OPCODE, 0x052000 },    { SCSI_R_LBA_RANGE, 0x052100 },
	{ SCSI_R_INVALID_FIELD_CDB, 0x052400 }, { SCSI_R_NO_LUN, 0x052500 },
	{ SCSI_R_POWER_ON, 0x062900 },          { SCSI_R_CLEARED_BY_OTHER, 0x062f00 },
	{ SCSI_R_LUNS_CHANGED, 0x063f0e },      { SCSI_R_CAPACITY_CHANGED, 0x062a09 },
	{ SCSI_R_MODE_CHANGED, 0x062a01 },      { SCSI_R_WRITE_PROTECTED, 0x072700 },
	{ SCSI_R_NO_SPACE, 0x072707 },          { SCSI_R_MISCOMPARE, 0x0e1d00 },
};

START_TEST(each_reason_has_its_code_in_both_formats)
{
	struct scsi_sense sense = { .reason = codes[_i].reason };
	uint8_t out[SCSI_SENSE_MAX];

	ck_assert_uint_eq(scsi_sense_build(out, &sense, false), 18);
	ck_assert_uint_eq(out[0], 0x70);
	ck_assert_uint_eq(out[7], 10);
	ck_assert_uint_eq(rig_code(out), codes[_i].code);
	ck_assert_uint_eq(scsi_sense_build(out, &sense, true), 8);
	ck_assert_uint_eq(out[0], 0x72);
	ck_assert_uint_eq(out[7], 0);
	ck_assert_uint_eq(rig_code(out), codes[_i].code);
}
END_TEST

START_TEST(fixed_information_is_valid_only_when_it_fits)
{
	struct scsi_sense sense = { .reason = SCSI_R_READ_ERROR, .has_information = true };
	uint8_t out[SCSI_SENSE_MAX];

	sense.information = UINT32_MAX;
	scsi_sense_build(out, &sense, false);
	ck_assert_uint_eq(out[0], 0xf0);
	ck_assert_uint_eq(get_be32(out + 3), UINT32_MAX);
	sense.information++;
	scsi_sense_build(out, &sense, false);
	ck_assert_uint_eq(out[0], 0x70);
	ck_assert_uint_eq(get_be32(out + 3), 0);
}
END_TEST

START_TEST(descriptors_carry_information_and_field_pointer)
{
	static const uint8_t want[28] = { 0x72, 0x05, 0x24, 0x00, 0,    0,    0,    20, 0x00, 0x0a,
					  0x80, 0,    1,    2,    3,    4,    5,    6,  7,    8,
					  0x02, 0x06, 0,    0,    0xcc, 0x00, 0x0a, 0 };
	struct scsi_sense sense = { .reason = SCSI_R_INVALID_FIELD_CDB,
				    .has_information = true,
				    .information = 0x0102030405060708,
				    .has_field = true,
				    .in_cdb = true,
				    .field_byte = 10,
				    .field_bit = 4 };
	uint8_t out[SCSI_SENSE_MAX];

	ck_assert_uint_eq(scsi_sense_build(out, &sense, true), sizeof(want));
	ck_assert_mem_eq(out, want, sizeof(want));
}
END_TEST

START_TEST(field_pointers_tell_cdb_from_parameters_and_bits_from_bytes)
{
	struct scsi_task task = { 0 };

	scsi_fail_field(&task, 258, 7);
	ck_assert_uint_eq(task.status, SCSI_CHECK_CONDITION);
	ck_assert_uint_eq(rig_code(task.sense), 0x052400);
	ck_assert_uint_eq(task.sense[15], 0xcf);
	ck_assert_uint_eq(get_be16(task.sense + 16), 258);
	scsi_fail_param(&task, 3, SCSI_NO_BIT);
	ck_assert_uint_eq(rig_code(task.sense), 0x052600);
	ck_assert_uint_eq(task.sense[15], 0x80);
	ck_assert_uint_eq(get_be16(task.sense + 16), 3);
}
END_TEST

static const struct {
	int error;
	unsigned read, write;
} errors[] = {
	{ -EIO, 0x031100, 0x030c00 },    { -ENOSPC, 0x072707, 0x072707 },
	{ -EROFS, 0x072700, 0x072700 },  { -ENXIO, 0x020403, 0x020403 },
	{ -EAGAIN, 0x020401, 0x020401 }, { -ECANCELED, 0x0b0000, 0x0b0000 },
	{ -EINVAL, 0x044400, 0x044400 }, { -EOPNOTSUPP, 0x044400, 0x044400 },
};

START_TEST(block_layer_errors_become_what_the_design_says)
{
	struct scsi_task task = { 0 };

	scsi_fail_errno(&task, errors[_i].error, false, 77);
	ck_assert_uint_eq(rig_code(task.sense), errors[_i].read);
	ck_assert_uint_eq(task.sense[0], errors[_i].error == -EIO ? 0xf0 : 0x70);
	ck_assert_uint_eq(get_be32(task.sense + 3), errors[_i].error == -EIO ? 77 : 0);
	scsi_fail_errno(&task, errors[_i].error, true, 77);
	ck_assert_uint_eq(rig_code(task.sense), errors[_i].write);
}
END_TEST

START_TEST(transport_errors_become_what_rfc_7143_says)
{
	static const unsigned want[] = { [SCSI_TRANSPORT_DIGEST] = 0x0b4705,
					 [SCSI_TRANSPORT_UNSOLICITED] = 0x0b0c0c,
					 [SCSI_TRANSPORT_TOO_MUCH_DATA] = 0x0b0c0d,
					 [SCSI_TRANSPORT_OFFSET] = 0x0b4b05,
					 [SCSI_TRANSPORT_SEQUENCE] = 0x0b4b00 };
	struct scsi_task task = { .transport_error = (enum scsi_transport_error)_i };

	scsi_fail_transport(&task);
	ck_assert_uint_eq(rig_code(task.sense), want[_i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sense");
	TCase *tc = tcase_create("sense");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, each_reason_has_its_code_in_both_formats, 0, ARRAY_LEN(codes));
	tcase_add_test(tc, fixed_information_is_valid_only_when_it_fits);
	tcase_add_test(tc, descriptors_carry_information_and_field_pointer);
	tcase_add_test(tc, field_pointers_tell_cdb_from_parameters_and_bits_from_bytes);
	tcase_add_loop_test(tc, block_layer_errors_become_what_the_design_says, 0,
			    ARRAY_LEN(errors));
	tcase_add_loop_test(tc, transport_errors_become_what_rfc_7143_says, SCSI_TRANSPORT_DIGEST,
			    SCSI_TRANSPORT_SEQUENCE + 1);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
