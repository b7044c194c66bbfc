/* SPDX-License-Identifier: MIT */
/*
 * Commands about a medium that stays where it is: PRE-FETCH (10, 16), START STOP UNIT, PREVENT
 * ALLOW MEDIUM REMOVAL, READ DEFECT DATA (10, 12).
 *
 * Invariants:
 * 1. A host cannot stop the logical unit for the others: STOP, LOAD, EJECT and power conditions
 *    are refused, START finds it started.
 * 2. The medium cannot be removed, so that preventing it has come true already.
 * 3. There is no cache of ours to fetch into: PRE-FETCH ends with GOOD (not all fits), never
 *    with CONDITION MET.
 *
 * Spec: SBC-3 5.9, 5.10, 5.17, 5.18, 5.20.
 */
#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

void scsi_prefetch(struct scsi_task *task)
{
	const uint8_t *cdb = task->cdb;
	bool ten = cdb[0] == 0x34;

	/* Zero blocks: to the end. */
	lu_check_range(task, ten ? get_be32(cdb + 2) : get_be64(cdb + 2),
		       ten ? get_be16(cdb + 7) : get_be32(cdb + 10));
	scsi_complete(task);
}

void scsi_start_stop(struct scsi_task *task)
{
	uint8_t what = task->cdb[4];

	if (what & 0xf0) /* POWER CONDITION */
		scsi_fail_field(task, 4, 7);
	else if (what & 0x02) /* LOEJ */
		scsi_fail_field(task, 4, 1);
	else if (!(what & 0x01)) /* START */
		scsi_fail_field(task, 4, 0);
	scsi_complete(task);
}

void scsi_prevent_allow(struct scsi_task *task)
{
	if (task->cdb[4] & 0x02) /* of a medium changer */
		scsi_fail_field(task, 4, 1);
	scsi_complete(task);
}

/* The format and the lists asked for come back, and they are empty. */
void scsi_read_defects(struct scsi_task *task)
{
	bool ten = task->cdb[0] == 0x37;
	uint8_t data[8] = { 0, task->cdb[ten ? 2 : 1] & 0x1f };

	scsi_reply(task, data, ten ? 4 : 8);
}
