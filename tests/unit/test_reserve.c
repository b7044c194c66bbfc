/* SPDX-License-Identifier: MIT */
/* RESERVE and RELEASE: who is kept out of what, and what ends a reservation. */
#include <check.h>
#include <errno.h>

#include "tests/fake/scsi_rig.h"

static struct scsi_nexus *holder, *other;

static void start(int remote)
{
	rig_start(remote);
	rig_map(0, rig_ram(1 * MIB, 512));
	rig_map(1, rig_ram(1 * MIB, 512));
	holder = rig_nexus(1);
	other = rig_nexus(2);
	for (uint16_t lun = 0; lun < 2; lun++) {
		rig_clear_ua(holder, lun);
		rig_clear_ua(other, lun);
	}
}

static void stop(void)
{
	if (holder)
		scsi_nexus_free(holder);
	scsi_nexus_free(other);
	rig_stop();
}

static unsigned status(struct scsi_nexus *nexus, uint16_t lun, const uint8_t *cdb)
{
	return rig_do(nexus, lun, cdb)->task.status;
}

static const uint8_t reserves[] = { 0x16, 0x56 }, releases[] = { 0x17, 0x57 };

START_TEST(only_the_holder_gets_in_until_it_releases)
{
	unsigned by, off;

	start(_i);
	for (by = 0; by < 2; by++) {
		for (off = 0; off < 2; off++) {
			ck_assert_uint_eq(status(holder, 0, CDB(reserves[by])), SCSI_GOOD);
			ck_assert_uint_eq(status(holder, 0, CDB(reserves[1 - by])), SCSI_GOOD);
			ck_assert_uint_eq(status(holder, 0, TUR), SCSI_GOOD);
			ck_assert_uint_eq(status(other, 0, TUR), SCSI_RESERVATION_CONFLICT);
			ck_assert_uint_eq(status(other, 1, TUR), SCSI_GOOD);
			ck_assert_uint_eq(status(other, 0, CDB(reserves[by])),
					  SCSI_RESERVATION_CONFLICT);
			/* A release by somebody else is no error and does nothing. */
			ck_assert_uint_eq(status(other, 0, CDB(releases[off])), SCSI_GOOD);
			ck_assert_uint_eq(status(other, 0, TUR), SCSI_RESERVATION_CONFLICT);
			ck_assert_uint_eq(status(holder, 0, CDB(releases[off])), SCSI_GOOD);
			ck_assert_uint_eq(status(other, 0, TUR), SCSI_GOOD);
		}
	}
	stop();
}
END_TEST

/* SPC-2 table 10, SBC-2 table 11, and SPC-3 for what came later. */
START_TEST(every_command_passes_or_conflicts_as_it_should)
{
	static const uint8_t pass[] = { 0x03, 0x12, 0x17, 0x1b, 0x25, 0x37,
					0x4d, 0x57, 0xa0, 0xa3, 0xb7 };
	uint8_t cdb[SCSI_CDB_MAX];
	const struct scsi_op *op;
	unsigned i, passed = 0;

	start(_i);
	ck_assert_uint_eq(status(holder, 0, CDB(0x16)), SCSI_GOOD);
	for (i = 0; (op = optable_row(i)); i++) {
		bool free = memchr(pass, op->opcode, sizeof(pass)) ||
			    (op->opcode == 0x9e && op->service_action == 0x10) ||
			    op->opcode == 0x1e; /* ALLOW, below */

		if (!lu_has(rig_device->maps[0]->lu, op))
			continue;
		memset(cdb, 0, sizeof(cdb));
		cdb[0] = op->opcode;
		cdb[1] = op->flags & OP_SA ? op->service_action : 0;
		ck_assert_uint_eq(status(other, 0, cdb) == SCSI_RESERVATION_CONFLICT, !free);
		passed += free;
	}
	ck_assert_uint_eq(passed, sizeof(pass) + 3); /* two rows of A3h */
	ck_assert_uint_eq(status(other, 0, CDB(0x1e, 0, 0, 0, 1)), SCSI_RESERVATION_CONFLICT);
	ck_assert_uint_eq(status(other, 0, CDB(0x1e, 0, 0, 0, 0)), SCSI_GOOD);
	/* What is not there is refused as such. */
	ck_assert_uint_eq(rig_sense(rig_do(other, 0, CDB(0xff))), 0x052000);
	stop();
}
END_TEST

START_TEST(extents_and_third_parties_are_refused)
{
	static const struct {
		uint8_t opcode, byte1, sense15;
	} cases[] = { { 0x16, 0x01, 0xc8 }, { 0x16, 0x10, 0xcc }, { 0x17, 0x11, 0xcc },
		      { 0x56, 0x02, 0xc9 }, { 0x56, 0x10, 0xcc }, { 0x57, 0x01, 0xc8 } };
	struct rig_task *rig;
	unsigned i;

	start(_i);
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		rig = rig_do(holder, 0, CDB(cases[i].opcode, cases[i].byte1));
		ck_assert_uint_eq(rig_sense(rig), 0x052400);
		ck_assert_uint_eq(rig->task.sense[15], cases[i].sense15);
		ck_assert_uint_eq(status(other, 0, TUR), SCSI_GOOD);
	}
	stop();
}
END_TEST

START_TEST(the_end_of_its_nexus_ends_a_reservation)
{
	start(_i);
	ck_assert_uint_eq(status(holder, 0, CDB(0x16)), SCSI_GOOD);
	ck_assert_uint_eq(status(holder, 1, CDB(0x56)), SCSI_GOOD);
	scsi_nexus_retire(holder);
	ck_assert_uint_eq(status(other, 0, TUR), SCSI_GOOD);
	ck_assert_uint_eq(status(other, 1, TUR), SCSI_GOOD);
	scsi_nexus_free(holder);
	holder = NULL;
	stop();
}
END_TEST

START_TEST(resets_end_a_reservation_and_aborts_do_not)
{
	static const struct {
		enum scsi_tmf_function function;
		bool ends, both;
	} cases[] = {
		{ SCSI_ABORT_TASK_SET, false, false },
		{ SCSI_CLEAR_TASK_SET, false, false },
		{ SCSI_LUN_RESET, true, false },
		{ SCSI_TARGET_RESET, true, true },
	};
	struct rig_tmf tmf;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		start(_i);
		status(holder, 0, CDB(0x16));
		status(holder, 1, CDB(0x16));
		rig_tmf(&tmf, other, cases[i].function, 0, 0);
		ck_assert_uint_eq(tmf.done, 1);
		rig_clear_ua(other, 0);
		rig_clear_ua(other, 1);
		ck_assert_uint_eq(status(other, 0, TUR),
				  cases[i].ends ? SCSI_GOOD : SCSI_RESERVATION_CONFLICT);
		ck_assert_uint_eq(status(other, 1, TUR),
				  cases[i].both ? SCSI_GOOD : SCSI_RESERVATION_CONFLICT);
		stop();
	}
	/* A nexus reset is that of its own nexus. */
	start(_i);
	status(holder, 0, CDB(0x16));
	rig_tmf(&tmf, other, SCSI_NEXUS_RESET, 0, 0);
	ck_assert_uint_eq(status(other, 0, TUR), SCSI_RESERVATION_CONFLICT);
	rig_tmf(&tmf, holder, SCSI_NEXUS_RESET, 0, 0);
	ck_assert_uint_eq(status(other, 0, TUR), SCSI_GOOD);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reserve");
	TCase *tc = tcase_create("reserve");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, only_the_holder_gets_in_until_it_releases, 0, 2);
	tcase_add_loop_test(tc, every_command_passes_or_conflicts_as_it_should, 0, 2);
	tcase_add_loop_test(tc, extents_and_third_parties_are_refused, 0, 2);
	tcase_add_loop_test(tc, the_end_of_its_nexus_ends_a_reservation, 0, 2);
	tcase_add_loop_test(tc, resets_end_a_reservation_and_aborts_do_not, 0, 2);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
