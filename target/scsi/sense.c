/* SPDX-License-Identifier: MIT */
/*
 * Sense data: the table of reasons, and both formats.
 *
 * Invariants:
 * 1. Key, ASC and ASCQ appear in this file only.
 * 2. INFORMATION too large for the fixed format's 32 bits is left out with VALID=0, never cut.
 *
 * Not here: who fails when (the command files).
 *
 * Spec: SPC-4 4.5.2 (descriptor), 4.5.3 (fixed), 4.5.2.4 (field pointer, progress indication), RFC 7143 11.4.7.2.
 */
#include "target/scsi/sense.h"

#include <errno.h>
#include <string.h>

#include "core/wire.h"
#include "target/scsi/lu_int.h"

#define FIXED_LEN 18

static const struct code {
	uint8_t key, asc, ascq;
} codes[SCSI_REASONS] = {
	[SCSI_R_NO_SENSE] = { 0x00, 0x00, 0x00 },
	[SCSI_R_BECOMING_READY] = { 0x02, 0x04, 0x01 },
	[SCSI_R_NOT_READY] = { 0x02, 0x04, 0x03 },
	[SCSI_R_SANITIZING] = { 0x02, 0x04, 0x1b },
	[SCSI_R_READ_ERROR] = { 0x03, 0x11, 0x00 },
	[SCSI_R_WRITE_ERROR] = { 0x03, 0x0c, 0x00 },
	[SCSI_R_SANITIZE_FAILED] = { 0x03, 0x31, 0x03 },
	[SCSI_R_INTERNAL] = { 0x04, 0x44, 0x00 },
	[SCSI_R_PARAMETER_LIST_LENGTH] = { 0x05, 0x1a, 0x00 },
	[SCSI_R_INVALID_OPCODE] = { 0x05, 0x20, 0x00 },
	[SCSI_R_LBA_RANGE] = { 0x05, 0x21, 0x00 },
	[SCSI_R_INVALID_FIELD_CDB] = { 0x05, 0x24, 0x00 },
	[SCSI_R_NO_LUN] = { 0x05, 0x25, 0x00 },
	[SCSI_R_INVALID_FIELD_PARAM] = { 0x05, 0x26, 0x00 },
	[SCSI_R_SAVING_NOT_SUPPORTED] = { 0x05, 0x39, 0x00 },
	[SCSI_R_POWER_ON] = { 0x06, 0x29, 0x00 },
	[SCSI_R_POWER_CYCLED] = { 0x06, 0x29, 0x01 },
	[SCSI_R_TARGET_RESET] = { 0x06, 0x29, 0x02 },
	[SCSI_R_LUN_RESET] = { 0x06, 0x29, 0x03 },
	[SCSI_R_NEXUS_LOSS] = { 0x06, 0x29, 0x07 },
	[SCSI_R_CLEARED_BY_OTHER] = { 0x06, 0x2f, 0x00 },
	[SCSI_R_REGISTRATIONS_PREEMPTED] = { 0x06, 0x2a, 0x05 },
	[SCSI_R_RESERVATIONS_PREEMPTED] = { 0x06, 0x2a, 0x03 },
	[SCSI_R_RESERVATIONS_RELEASED] = { 0x06, 0x2a, 0x04 },
	[SCSI_R_MODE_CHANGED] = { 0x06, 0x2a, 0x01 },
	[SCSI_R_ALUA_CHANGED] = { 0x06, 0x2a, 0x06 },
	[SCSI_R_LUNS_CHANGED] = { 0x06, 0x3f, 0x0e },
	[SCSI_R_CAPACITY_CHANGED] = { 0x06, 0x2a, 0x09 },
	[SCSI_R_THIN_SOFT_LIMIT] = { 0x06, 0x38, 0x07 },
	[SCSI_R_WRITE_PROTECTED] = { 0x07, 0x27, 0x00 },
	[SCSI_R_NO_SPACE] = { 0x07, 0x27, 0x07 },
	[SCSI_R_ABORTED] = { 0x0b, 0x00, 0x00 },
	[SCSI_R_UNEXPECTED_DATA] = { 0x0b, 0x0c, 0x0c },
	[SCSI_R_WRONG_AMOUNT] = { 0x0b, 0x0c, 0x0d },
	[SCSI_R_CRC] = { 0x0b, 0x47, 0x05 },
	[SCSI_R_DATA_OFFSET] = { 0x0b, 0x4b, 0x05 },
	[SCSI_R_DATA_PHASE] = { 0x0b, 0x4b, 0x00 },
	[SCSI_R_MISCOMPARE] = { 0x0e, 0x1d, 0x00 },
};

void scsi_sense_code(enum scsi_reason reason, uint8_t out[3])
{
	assert((unsigned)reason < SCSI_REASONS);
	out[0] = codes[reason].key;
	out[1] = codes[reason].asc;
	out[2] = codes[reason].ascq;
}

static bool has_specific(const struct scsi_sense *sense)
{
	return sense->has_field || sense->has_progress;
}

/* The three bytes of the sense-key specific field: field pointer or progress indication. */
static void put_specific(uint8_t *out, const struct scsi_sense *sense)
{
	out[0] = 0x80; /* SKSV */
	if (sense->has_progress) {
		put_be16(out + 1, sense->progress);
		return;
	}
	if (sense->in_cdb)
		out[0] |= 0x40;
	if (sense->field_bit != SCSI_NO_BIT)
		out[0] |= 0x08 | (uint8_t)sense->field_bit;
	put_be16(out + 1, sense->field_byte);
}

static unsigned build_fixed(uint8_t *out, const struct scsi_sense *sense, const struct code *code)
{
	memset(out, 0, FIXED_LEN);
	out[0] = 0x70;
	out[2] = code->key;
	if (sense->has_information && sense->information <= UINT32_MAX) {
		out[0] |= 0x80; /* VALID */
		put_be32(out + 3, (uint32_t)sense->information);
	}
	out[7] = FIXED_LEN - 8;
	out[12] = code->asc;
	out[13] = code->ascq;
	if (has_specific(sense))
		put_specific(out + 15, sense);
	return FIXED_LEN;
}

static unsigned build_descriptors(uint8_t *out, const struct scsi_sense *sense,
				  const struct code *code)
{
	unsigned len = 8;

	memset(out, 0, SCSI_SENSE_MAX);
	out[0] = 0x72;
	out[1] = code->key;
	out[2] = code->asc;
	out[3] = code->ascq;
	if (sense->has_information) {
		out[len + 1] = 0x0a; /* type 00h: information */
		out[len + 2] = 0x80;
		put_be64(out + len + 4, sense->information);
		len += 12;
	}
	if (has_specific(sense)) {
		out[len] = 0x02; /* sense key specific */
		out[len + 1] = 0x06;
		put_specific(out + len + 4, sense);
		len += 8;
	}
	out[7] = (uint8_t)(len - 8);
	return len;
}

unsigned scsi_sense_build(uint8_t *out, const struct scsi_sense *sense, bool descriptor)
{
	const struct code *code = &codes[sense->reason];

	return descriptor ? build_descriptors(out, sense, code) : build_fixed(out, sense, code);
}

void scsi_fail_sense(struct scsi_task *task, const struct scsi_sense *sense)
{
	task->outcome = SCSI_COMPLETED;
	task->status = SCSI_CHECK_CONDITION;
	task->data_in_length = 0;
	task->sense_length =
		(uint8_t)scsi_sense_build(task->sense, sense, task->lu && lu_d_sense(task->lu));
}

void scsi_fail(struct scsi_task *task, enum scsi_reason reason)
{
	scsi_fail_sense(task, &(struct scsi_sense){ .reason = reason });
}

void scsi_fail_info(struct scsi_task *task, enum scsi_reason reason, uint64_t information)
{
	scsi_fail_sense(task, &(struct scsi_sense){ .reason = reason,
						    .has_information = true,
						    .information = information });
}

void scsi_fail_field(struct scsi_task *task, unsigned byte, int bit)
{
	scsi_fail_sense(task, &(struct scsi_sense){ .reason = SCSI_R_INVALID_FIELD_CDB,
						    .has_field = true,
						    .in_cdb = true,
						    .field_byte = (uint16_t)byte,
						    .field_bit = bit });
}

void scsi_fail_param(struct scsi_task *task, unsigned byte, int bit)
{
	scsi_fail_sense(task, &(struct scsi_sense){ .reason = SCSI_R_INVALID_FIELD_PARAM,
						    .has_field = true,
						    .field_byte = (uint16_t)byte,
						    .field_bit = bit });
}

void scsi_fail_errno(struct scsi_task *task, int error, bool write, uint64_t lba)
{
	static const struct {
		int error;
		enum scsi_reason read, write;
		bool information;
	} map[] = {
		{ -EIO, SCSI_R_READ_ERROR, SCSI_R_WRITE_ERROR, true },
		{ -ENOSPC, SCSI_R_NO_SPACE, SCSI_R_NO_SPACE, false },
		{ -EROFS, SCSI_R_WRITE_PROTECTED, SCSI_R_WRITE_PROTECTED, false },
		{ -ENXIO, SCSI_R_NOT_READY, SCSI_R_NOT_READY, false },
		{ -EAGAIN, SCSI_R_BECOMING_READY, SCSI_R_BECOMING_READY, false },
		{ -ECANCELED, SCSI_R_ABORTED, SCSI_R_ABORTED, false },
	};
	unsigned i;

	for (i = 0; i < ARRAY_LEN(map); i++) {
		if (map[i].error != error)
			continue;
		if (map[i].information)
			scsi_fail_info(task, write ? map[i].write : map[i].read, lba);
		else
			scsi_fail(task, write ? map[i].write : map[i].read);
		return;
	}
	scsi_fail(task, SCSI_R_INTERNAL);
}

void scsi_fail_transport(struct scsi_task *task)
{
	static const enum scsi_reason map[] = {
		[SCSI_TRANSPORT_OK] = SCSI_R_INTERNAL,
		[SCSI_TRANSPORT_DIGEST] = SCSI_R_CRC,
		[SCSI_TRANSPORT_UNSOLICITED] = SCSI_R_UNEXPECTED_DATA,
		[SCSI_TRANSPORT_TOO_MUCH_DATA] = SCSI_R_WRONG_AMOUNT,
		[SCSI_TRANSPORT_OFFSET] = SCSI_R_DATA_OFFSET,
		[SCSI_TRANSPORT_SEQUENCE] = SCSI_R_DATA_PHASE,
	};

	assert((unsigned)task->transport_error < ARRAY_LEN(map));
	scsi_fail(task, map[task->transport_error]);
}

enum scsi_reason scsi_ua_reason(enum ua_condition condition)
{
	static const enum scsi_reason map[UA_COUNT] = {
		[UA_POWER_ON] = SCSI_R_POWER_ON,
		[UA_POWER_CYCLED] = SCSI_R_POWER_CYCLED,
		[UA_TARGET_RESET] = SCSI_R_TARGET_RESET,
		[UA_LUN_RESET] = SCSI_R_LUN_RESET,
		[UA_NEXUS_LOSS] = SCSI_R_NEXUS_LOSS,
		[UA_CLEARED_BY_OTHER] = SCSI_R_CLEARED_BY_OTHER,
		[UA_REGISTRATIONS_PREEMPTED] = SCSI_R_REGISTRATIONS_PREEMPTED,
		[UA_RESERVATIONS_PREEMPTED] = SCSI_R_RESERVATIONS_PREEMPTED,
		[UA_RESERVATIONS_RELEASED] = SCSI_R_RESERVATIONS_RELEASED,
		[UA_MODE_CHANGED] = SCSI_R_MODE_CHANGED,
		[UA_ALUA_CHANGED] = SCSI_R_ALUA_CHANGED,
		[UA_LUNS_CHANGED] = SCSI_R_LUNS_CHANGED,
		[UA_CAPACITY_CHANGED] = SCSI_R_CAPACITY_CHANGED,
		[UA_THIN_SOFT_LIMIT] = SCSI_R_THIN_SOFT_LIMIT,
	};

	assert(condition < UA_COUNT);
	return map[condition];
}
