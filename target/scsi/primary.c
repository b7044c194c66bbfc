/* SPDX-License-Identifier: MIT */
/*
 * TEST UNIT READY and REQUEST SENSE.
 *
 * Invariants:
 * 1. REQUEST SENSE never fails for what it reports: conditions are its data, with GOOD. A unit
 *    attention that it reports is gone.
 *
 * Not here: which commands report unit attentions (optable.c), sense data (sense.c).
 *
 * Spec: SPC-4 6.39, 6.47; SAM-5 5.11, 5.14.
 */
#include "target/scsi/lu_int.h"
#include "target/scsi/sanitize.h"
#include "target/scsi/sense.h"

void scsi_test_unit_ready(struct scsi_task *task)
{
	if (task->lu->blk->state == BLK_FAILED)
		scsi_fail(task, SCSI_R_NOT_READY);
	scsi_complete(task);
}

void scsi_request_sense(struct scsi_task *task)
{
	struct scsi_sense sense = { .reason = SCSI_R_NO_SENSE };
	struct ua_set *ua = device_ua(task);
	uint8_t data[SCSI_SENSE_MAX];
	unsigned length;

	if (!task->lu)
		sense.reason = SCSI_R_NO_LUN;
	else if (ua && ua_pending(ua))
		sense.reason = scsi_ua_reason(ua_take(ua));
	else
		sanitize_sense(task->lu, &sense);
	length = scsi_sense_build(data, &sense, task->cdb[1] & 0x01); /* DESC */
	scsi_reply(task, data, length);
}
