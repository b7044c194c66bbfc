/* SPDX-License-Identifier: MIT */
/*
 * The commands: one row each, from which everything else follows: dispatch, what
 * a command moves, which unit attentions wait, REPORT SUPPORTED OPERATION CODES.
 *
 * Spec: SPC-4 6.35 (usage map), SBC-3.
 */
#ifndef TARGET_SCSI_OPTABLE_H
#define TARGET_SCSI_OPTABLE_H

#include "target/scsi/scsi.h"

/* Flags of a row. */
#define OP_SA 1u            /* byte 1, bits 4:0, is a service action */
#define OP_UA_OK 2u         /* works while a unit attention is pending, and leaves it */
#define OP_FRONT 4u         /* about the device, not the medium: answered on the front's shard */
#define OP_NO_LUN 8u        /* its function also answers for a LUN that is not there */
#define OP_WRITE 16u        /* changes the medium: refused where it is write protected */
#define OP_EXPRESS 32u      /* goes past bulk I/O */
#define OP_SCRATCH 64u      /* needs a unit of memory besides its data */
#define OP_THIN 128u        /* only where blocks can be unmapped */
#define OP_ATOMIC 256u      /* only where the device writes atomically */
#define OP_SHARED 512u      /* works while another nexus has reserved the logical unit */
#define OP_THICK 1024u      /* only where blocks cannot be unmapped */
#define OP_AHEAD 2048u      /* runs at once and holds up nobody, whatever its attribute */
#define OP_SANITIZING 4096u /* works while a sanitize operation runs or has failed */
#define OP_NO_MEDIUM 8192u  /* at the home, but works while the device is not there yet */

struct scsi_op {
	uint8_t opcode;
	uint8_t service_action; /* OP_SA */
	uint8_t cdb_length;
	uint16_t flags;
	enum scsi_dir dir;
	uint8_t usage[SCSI_CDB_MAX]; /* bits of the CDB that are evaluated; byte 0 is the opcode */
	/* Bytes that the CDB asks to move, by task->cdb and the block size of task->lu
	 * (may be absent with OP_NO_LUN); UINT64_MAX: more than any command may. NULL: none. */
	uint64_t (*length)(const struct scsi_task *task);
	/* Executes; ends in scsi_complete() now or later. */
	void (*run)(struct scsi_task *task);
};

/* NULL: no such row. *OPCODE_KNOWN tells an unknown service action from an unknown opcode. */
const struct scsi_op *optable_find(const uint8_t *cdb, bool *opcode_known);
/* The rows in order of opcode and service action; NULL past the last. */
const struct scsi_op *optable_row(unsigned index);

#endif
