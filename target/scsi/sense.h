/* SPDX-License-Identifier: MIT */
/*
 * Why a command fails: reasons, and the only place where they become sense data.
 *
 * Each scsi_fail…() ends nothing: it sets status and sense of the task, whose
 * handler then completes it.
 *
 * Spec: SPC-4 4.5 (formats, codes), SAM-5 5.3.1 (status).
 */
#ifndef TARGET_SCSI_SENSE_H
#define TARGET_SCSI_SENSE_H

#include "mpio/ua.h"
#include "target/scsi/scsi.h"

enum scsi_reason {
	SCSI_R_NO_SENSE,
	SCSI_R_BECOMING_READY, /* 02/04/01 */
	SCSI_R_NOT_READY,      /* 02/04/03: manual intervention required */
	SCSI_R_SANITIZING,     /* 02/04/1B, with progress */
	SCSI_R_READ_ERROR,
	SCSI_R_WRITE_ERROR,
	SCSI_R_SANITIZE_FAILED, /* 03/31/03 */
	SCSI_R_INTERNAL,        /* 04/44/00 */
	SCSI_R_PARAMETER_LIST_LENGTH,
	SCSI_R_INVALID_OPCODE,
	SCSI_R_LBA_RANGE,
	SCSI_R_INVALID_FIELD_CDB,
	SCSI_R_NO_LUN,
	SCSI_R_INVALID_FIELD_PARAM,
	SCSI_R_SAVING_NOT_SUPPORTED,
	SCSI_R_POWER_ON,
	SCSI_R_POWER_CYCLED,
	SCSI_R_TARGET_RESET,
	SCSI_R_LUN_RESET,
	SCSI_R_NEXUS_LOSS,
	SCSI_R_CLEARED_BY_OTHER,
	SCSI_R_REGISTRATIONS_PREEMPTED,
	SCSI_R_RESERVATIONS_PREEMPTED,
	SCSI_R_RESERVATIONS_RELEASED,
	SCSI_R_MODE_CHANGED,
	SCSI_R_ALUA_CHANGED,
	SCSI_R_LUNS_CHANGED,
	SCSI_R_CAPACITY_CHANGED,
	SCSI_R_THIN_SOFT_LIMIT,
	SCSI_R_WRITE_PROTECTED,
	SCSI_R_NO_SPACE,
	SCSI_R_ABORTED,
	SCSI_R_UNEXPECTED_DATA,
	SCSI_R_WRONG_AMOUNT,
	SCSI_R_CRC,
	SCSI_R_DATA_OFFSET,
	SCSI_R_DATA_PHASE,
	SCSI_R_MISCOMPARE,
	SCSI_REASONS
};

#define SCSI_NO_BIT (-1)

/* What sense data says besides the reason. */
struct scsi_sense {
	enum scsi_reason reason;
	bool has_information;
	uint64_t information;
	bool has_field;
	bool in_cdb; /* else in the parameter data */
	uint16_t field_byte;
	int field_bit; /* SCSI_NO_BIT: the whole byte */
	bool has_progress;
	uint16_t progress; /* of 65536 */
};

/* Sense key, ASC and ASCQ of REASON into OUT. */
void scsi_sense_code(enum scsi_reason reason, uint8_t out[3]);

/* Into OUT, room for SCSI_SENSE_MAX; returns the length. */
unsigned scsi_sense_build(uint8_t *out, const struct scsi_sense *sense, bool descriptor);

void scsi_fail(struct scsi_task *task, enum scsi_reason reason);
void scsi_fail_sense(struct scsi_task *task, const struct scsi_sense *sense);
/* With INFORMATION: the first LBA in error, or the offset of a difference. */
void scsi_fail_info(struct scsi_task *task, enum scsi_reason reason, uint64_t information);
/* 05/24/00 pointing at the field of the CDB whose most significant bit is BIT of BYTE. */
void scsi_fail_field(struct scsi_task *task, unsigned byte, int bit);
/* 05/26/00 likewise in the parameter data. */
void scsi_fail_param(struct scsi_task *task, unsigned byte, int bit);
/* A block layer error, negative; LBA: the first block concerned. */
void scsi_fail_errno(struct scsi_task *task, int error, bool write, uint64_t lba);
void scsi_fail_transport(struct scsi_task *task);

enum scsi_reason scsi_ua_reason(enum ua_condition condition);

#endif
