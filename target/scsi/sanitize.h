/* SPDX-License-Identifier: MIT */
/*
 * What the sanitize operation of a logical unit means for everything else there.
 *
 * Spec: SBC-3 4.11.
 */
#ifndef TARGET_SCSI_SANITIZE_H
#define TARGET_SCSI_SANITIZE_H

#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

/* True: TASK has failed because of a sanitize operation under way or one that failed. On the
 * shard that runs the command. */
bool sanitize_refuses(struct scsi_task *task);
/* What REQUEST SENSE reports of it; false: nothing. Any shard. */
bool sanitize_sense(const struct scsi_lu *lu, struct scsi_sense *sense);

/* ---- home */
/* When the logical unit is made: an operation that had not been through has failed. */
void sanitize_load(struct scsi_lu *lu);
/* lu->dying has been set: the operation ends now, or with its io under way and lu_settle(). */
void sanitize_stop(struct scsi_lu *lu);
/* Task management: a SANITIZE that is being aborted ends. Its operation goes on. */
void sanitize_sweep(struct scsi_lu *lu);

#endif
