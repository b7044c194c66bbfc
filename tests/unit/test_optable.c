/* SPDX-License-Identifier: MIT */
/* The opcode table, what REPORT SUPPORTED ... read off it, and allocation lengths of every row. */
#include <check.h>

#include "tests/fake/scsi_rig.h"

static struct scsi_nexus *nexus;

static void setup(void)
{
	rig_start(false);
	rig_map(0, rig_ram(1 * MIB, 512));
	nexus = rig_nexus(1);
	rig_clear_ua(nexus, 0);
}

static void teardown(void)
{
	scsi_nexus_free(nexus);
	rig_stop();
}

START_TEST(rows_are_in_order_and_their_usage_maps_name_them)
{
	const struct scsi_op *op, *before = NULL;
	unsigned i, b;

	for (i = 0; (op = optable_row(i)); i++) {
		ck_assert_uint_eq(op->usage[0], op->opcode);
		if (op->flags & OP_SA)
			ck_assert_uint_eq(op->usage[1] & 0x1f, op->service_action);
		if (before)
			ck_assert_uint_lt(before->opcode << 8 | before->service_action,
					  op->opcode << 8 | op->service_action);
		for (b = op->cdb_length; b < SCSI_CDB_MAX; b++)
			ck_assert_uint_eq(op->usage[b], 0);
		ck_assert_uint_eq(op->usage[op->cdb_length - 1], 0x04);
		ck_assert_ptr_nonnull(op->run);
		before = op;
	}
	ck_assert_uint_gt(i, 15);
}
END_TEST

START_TEST(every_opcode_and_service_action_finds_its_row_or_none)
{
	uint8_t cdb[SCSI_CDB_MAX] = { 0 };
	unsigned opcode, sa, i, found = 0;
	const struct scsi_op *op;
	bool known;

	for (opcode = 0; opcode < 256; opcode++) {
		for (sa = 0; sa < 32; sa++) {
			cdb[0] = (uint8_t)opcode;
			cdb[1] = (uint8_t)sa;
			op = optable_find(cdb, &known);
			if (op) {
				ck_assert(known);
				ck_assert_uint_eq(op->opcode, opcode);
				found += op->flags & OP_SA ? 32 : 1;
			}
		}
	}
	for (i = 0; optable_row(i); i++)
		found -= 32;
	ck_assert_uint_eq(found, 0);
}
END_TEST

START_TEST(no_command_without_a_row_is_executed)
{
	uint8_t cdb[SCSI_CDB_MAX] = { (uint8_t)_i, 0x1f };
	struct rig_task *rig;
	bool known;

	if (optable_find(cdb, &known))
		return;
	rig = rig_do(nexus, 0, cdb);
	ck_assert_uint_eq(rig_sense(rig), known ? 0x052400 : 0x052000);
	if (known)
		ck_assert_int_eq(rig_field(rig), 1);
}
END_TEST

/* Where a row has its allocation length: first byte and width; 0: none. */
static void allocation(const struct scsi_op *op, unsigned *byte, unsigned *width)
{
	static const struct {
		uint8_t opcode, byte, width;
	} places[] = { { 0x03, 4, 1 }, { 0x12, 3, 2 }, { 0x1a, 4, 1 },  { 0x37, 7, 2 },
		       { 0x4d, 7, 2 }, { 0x5a, 7, 2 }, { 0x9e, 10, 4 }, { 0xa0, 6, 4 },
		       { 0xa3, 6, 4 }, { 0xb7, 6, 4 } };
	unsigned i;

	*width = 0;
	for (i = 0; i < ARRAY_LEN(places); i++) {
		if (places[i].opcode == op->opcode) {
			*byte = places[i].byte;
			*width = places[i].width;
		}
	}
}

static void fill_cdb(uint8_t *cdb, const struct scsi_op *op, uint32_t length)
{
	unsigned byte, width, i;

	memset(cdb, 0, SCSI_CDB_MAX);
	cdb[0] = op->opcode;
	cdb[1] = op->flags & OP_SA ? op->service_action : 0;
	if (op->opcode == 0x1a || op->opcode == 0x5a)
		cdb[2] = 0x3f;
	allocation(op, &byte, &width);
	for (i = 0; i < width; i++)
		cdb[byte + i] = (uint8_t)(length >> 8 * (width - 1 - i));
}

START_TEST(allocation_lengths_cut_and_never_fail_or_overrun)
{
	static const uint32_t lengths[] = { 0,  1,  2,   3,   4,   5,    6,     7,         8,
					    16, 96, 254, 255, 256, 4096, 65535, UINT32_MAX };
	uint8_t cdb[SCSI_CDB_MAX], whole[4096];
	const struct scsi_op *op;
	unsigned i, l, byte, width;

	for (i = 0; (op = optable_row(i)); i++) {
		uint64_t full;
		struct rig_task *rig;

		allocation(op, &byte, &width);
		if (!width)
			continue;
		fill_cdb(cdb, op, 255);
		rig = rig_do(nexus, 0, cdb);
		full = rig->task.data_in_length;
		memcpy(whole, rig->data, sizeof(whole));
		for (l = 0; l < ARRAY_LEN(lengths); l++) {
			uint64_t want, asked = lengths[l];

			if (width < 4 && asked >> 8 * width)
				continue;
			fill_cdb(cdb, op, lengths[l]);
			rig = rig_do(nexus, 0, cdb);
			want = asked <= 255 ? min_u64(asked, full) : rig->task.data_in_length;
			ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
			ck_assert_uint_eq(rig->task.data_in_length, want);
			ck_assert_uint_le(rig->task.data_in_length, asked);
			ck_assert_uint_ge(rig->task.data_in_length, min_u64(asked, full));
			ck_assert_mem_eq(rig->data, whole, min_u64(want, full));
			ck_assert_uint_eq(rig->data[rig->task.data_in_length], 0xee);
		}
	}
}
END_TEST

/* The rig's logical unit is thin: one row is for those that are not. */
static bool there(const struct scsi_op *op)
{
	return lu_has(rig_device->maps[0]->lu, op);
}

START_TEST(the_list_of_commands_is_the_table)
{
	bool timeouts = _i;
	struct rig_task *rig =
		rig_do(nexus, 0, CDB(0xa3, 0x0c, timeouts ? 0x80 : 0, 0, 0, 0, 0, 0, 0x10, 0));
	unsigned i, each = timeouts ? 20 : 8;
	const uint8_t *p = rig->data + 4;
	const struct scsi_op *op;

	for (i = 0; (op = optable_row(i)); i++) {
		if (!there(op))
			continue;
		ck_assert_uint_eq(p[0], op->opcode);
		ck_assert_uint_eq(get_be16(p + 2), op->service_action);
		ck_assert_uint_eq(p[5], (op->flags & OP_SA ? 1u : 0) | (timeouts ? 2u : 0));
		ck_assert_uint_eq(get_be16(p + 6), op->cdb_length);
		if (timeouts)
			ck_assert_uint_eq(get_be16(p + 8), 10);
		p += each;
	}
	ck_assert_uint_eq(get_be32(rig->data), (unsigned)(p - rig->data) - 4);
	ck_assert_uint_eq(rig->task.data_in_length, (unsigned)(p - rig->data));
}
END_TEST

START_TEST(one_command_is_reported_by_the_option_that_fits_it)
{
	const struct scsi_op *op;
	unsigned i, option;

	for (i = 0; (op = optable_row(i)); i++) {
		for (option = 1; option <= 3; option++) {
			bool fits = option == 3 || (option == 2) == ((op->flags & OP_SA) != 0);
			struct rig_task *rig = rig_do(nexus, 0,
						      CDB(0xa3, 0x0c, (uint8_t)option, op->opcode,
							  0, op->service_action, 0, 0, 0, 255));

			ck_assert_uint_eq(rig_sense(rig), fits ? 0 : 0x052400);
			if (!fits)
				continue;
			ck_assert_uint_eq(rig->data[1], there(op) ? 3 : 1);
			if (!there(op))
				continue;
			ck_assert_uint_eq(get_be16(rig->data + 2), op->cdb_length);
			ck_assert_mem_eq(rig->data + 4, op->usage, op->cdb_length);
			ck_assert_uint_eq(rig->task.data_in_length, 4u + op->cdb_length);
		}
	}
}
END_TEST

START_TEST(odd_service_actions_are_not_supported_and_read_nothing_past_the_table)
{
	static const uint8_t asks[][5] = {
		{ 2, 0x9e, 0x00, 0x1f, 1 }, { 2, 0x9e, 0x01, 0x10, 1 }, { 2, 0xa3, 0xff, 0xff, 1 },
		{ 1, 0xff, 0x00, 0x00, 1 }, { 3, 0x00, 0x00, 0x01, 1 }, { 3, 0xa3, 0x00, 0x0d, 3 },
		{ 3, 0x12, 0x00, 0x00, 3 }, { 2, 0x7f, 0xff, 0xff, 1 },
	};
	const uint8_t *a = asks[_i];
	struct rig_task *rig =
		rig_do(nexus, 0, CDB(0xa3, 0x0c, a[0], a[1], a[2], a[3], 0, 0, 0, 255));

	ck_assert_uint_eq(rig_sense(rig), 0);
	ck_assert_uint_eq(rig->data[1], a[4]);
	if (a[4] == 1)
		ck_assert_uint_eq(rig->task.data_in_length, 4);
}
END_TEST

START_TEST(task_management_functions_are_reported)
{
	struct rig_task *rig = rig_do(nexus, 0, CDB(0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 255));

	ck_assert_uint_eq(rig->task.data_in_length, 4);
	/* ABORT TASK (SET), CLEAR TASK SET, LUN RESET, QUERY TASK, TARGET RESET. */
	ck_assert_uint_eq(rig->data[0], 0xde);
	ck_assert_uint_eq(rig->data[1], 0x07); /* QUERY TASK SET, I_T NEXUS RESET */
	rig = rig_do(nexus, 0, CDB(0xa3, 0x0d, 0x80, 0, 0, 0, 0, 0, 0, 255));
	ck_assert_uint_eq(rig->task.data_in_length, 16);
	ck_assert_uint_eq(rig->data[3], 12);
}
END_TEST

START_TEST(naca_is_refused_at_the_control_byte_of_every_command)
{
	uint8_t cdb[SCSI_CDB_MAX];
	const struct scsi_op *op;
	struct rig_task *rig;
	unsigned i;

	for (i = 0; (op = optable_row(i)); i++) {
		if (!there(op))
			continue;
		fill_cdb(cdb, op, 255);
		cdb[op->cdb_length - 1] |= 0x04;
		rig = rig_do(nexus, 0, cdb);
		ck_assert_uint_eq(rig_sense(rig), 0x052400);
		ck_assert_int_eq(rig_field(rig), op->cdb_length - 1);
	}
}
END_TEST
int main(void)
{
	Suite *suite = suite_create("optable");
	TCase *tc = tcase_create("optable");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, rows_are_in_order_and_their_usage_maps_name_them);
	tcase_add_test(tc, every_opcode_and_service_action_finds_its_row_or_none);
	tcase_add_loop_test(tc, no_command_without_a_row_is_executed, 0, 256);
	tcase_add_test(tc, allocation_lengths_cut_and_never_fail_or_overrun);
	tcase_add_loop_test(tc, the_list_of_commands_is_the_table, 0, 2);
	tcase_add_test(tc, one_command_is_reported_by_the_option_that_fits_it);
	tcase_add_loop_test(
		tc, odd_service_actions_are_not_supported_and_read_nothing_past_the_table, 0, 8);
	tcase_add_test(tc, task_management_functions_are_reported);
	tcase_add_test(tc, naca_is_refused_at_the_control_byte_of_every_command);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
