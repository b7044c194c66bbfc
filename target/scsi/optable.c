/* SPDX-License-Identifier: MIT */
/*
 * The table of commands.
 *
 * Invariants:
 * 1. Rows are in order of opcode, then service action; no two are equal.
 * 2. Byte 0 of the usage map is the opcode, and for a service action the low five bits of
 *    byte 1 are its value, as SPC-4 wants them reported.
 * 3. What is not here is refused; nothing else decides which commands exist.
 *
 * Not here: what the commands do (the files named after them).
 *
 * Spec: SPC-4 6, SBC-3 5.
 */
#include "target/scsi/optable.h"

#include "core/wire.h"
#include "target/scsi/lu_int.h"

/* Lengths of parameter data: the allocation length, where the CDB has it. */

static uint64_t bounded(uint64_t allocation)
{
	return min_u64(allocation, SCSI_CONTROL_MAX);
}

static uint64_t byte_4(const struct scsi_task *task)
{
	return task->cdb[4];
}

static uint64_t bytes_3_4(const struct scsi_task *task)
{
	return bounded(get_be16(task->cdb + 3));
}

static uint64_t bytes_7_8(const struct scsi_task *task)
{
	return bounded(get_be16(task->cdb + 7));
}

static uint64_t bytes_6_9(const struct scsi_task *task)
{
	return bounded(get_be32(task->cdb + 6));
}

static uint64_t bytes_10_13(const struct scsi_task *task)
{
	return bounded(get_be32(task->cdb + 10));
}

static uint64_t list_7_8(const struct scsi_task *task)
{
	return get_be16(task->cdb + 7);
}

static uint64_t eight(const struct scsi_task *task)
{
	(void)task;
	return 8;
}

/* Usage maps that several rows share. Control byte: NACA is evaluated (and refused). */
#define CTL 0x04
#define FF4 0xff, 0xff, 0xff, 0xff
#define FF8 FF4, FF4
/* Byte 1: RDPROTECT or WRPROTECT, DPO, FUA. */
#define RW_FLAGS 0xf8
/* VRPROTECT or WRPROTECT, DPO, BYTCHK. */
#define VERIFY_FLAGS 0xf6
#define CDB_10(op, flags)                                                                          \
	{                                                                                          \
		op, flags, FF4, 0, 0xff, 0xff, CTL                                                 \
	}
#define CDB_12(op, flags)                                                                          \
	{                                                                                          \
		op, flags, FF8, 0, CTL                                                             \
	}
#define CDB_16(op, flags)                                                                          \
	{                                                                                          \
		op, flags, FF8, FF4, 0, CTL                                                        \
	}

#define CONTROL_IN(code, len, fl, len_fn, fn, ...)                                                 \
	{                                                                                          \
		.opcode = (code), .cdb_length = (len), .flags = (fl), .dir = SCSI_DATA_IN,         \
		.length = (len_fn), .run = (fn), .usage = __VA_ARGS__                              \
	}
#define NO_DATA(code, len, fl, fn, ...)                                                            \
	{                                                                                          \
		.opcode = (code), .cdb_length = (len), .flags = (fl), .dir = SCSI_NO_DATA,         \
		.run = (fn), .usage = __VA_ARGS__                                                  \
	}
#define READ(code, len, ...)                                                                       \
	{                                                                                          \
		.opcode = (code), .cdb_length = (len), .dir = SCSI_DATA_IN,                        \
		.length = scsi_rw_length, .run = scsi_read_write, .usage = __VA_ARGS__             \
	}
#define WRITE(code, len, ...)                                                                      \
	{                                                                                          \
		.opcode = (code), .cdb_length = (len), .flags = OP_WRITE, .dir = SCSI_DATA_OUT,    \
		.length = scsi_rw_length, .run = scsi_read_write, .usage = __VA_ARGS__             \
	}
/* COMMAND(opcode, length of the CDB, flags, dir, length, run, usage...): whatever has no form above */
#define COMMAND(code, len, fl, direction, len_fn, fn, ...)                                         \
	{                                                                                          \
		.opcode = (code), .cdb_length = (len), .flags = (fl), .dir = (direction),          \
		.length = (len_fn), .run = (fn), .usage = __VA_ARGS__                              \
	}
#define VERIFY(code, len, ...)                                                                     \
	COMMAND(code, len, OP_SCRATCH, SCSI_DATA_OUT, scsi_verify_length, scsi_verify, __VA_ARGS__)
#define WRITE_VERIFY(code, len, ...)                                                               \
	COMMAND(code, len, OP_WRITE | OP_SCRATCH, SCSI_DATA_OUT, scsi_rw_length,                   \
		scsi_write_verify, __VA_ARGS__)
#define CONTROL_OUT(code, len, len_fn, fn, ...)                                                    \
	{                                                                                          \
		.opcode = (code), .cdb_length = (len), .flags = OP_NO_MEDIUM,                      \
		.dir = SCSI_DATA_OUT, .length = (len_fn), .run = (fn), .usage = __VA_ARGS__        \
	}
#define SERVICE_IN(code, sa, len, fl, len_fn, fn, ...)                                             \
	{                                                                                          \
		.opcode = (code), .service_action = (sa), .cdb_length = (len),                     \
		.flags = OP_SA | (fl), .dir = SCSI_DATA_IN, .length = (len_fn), .run = (fn),       \
		.usage = __VA_ARGS__                                                               \
	}
#define SANITIZE(sa, fl, ...)                                                                      \
	{                                                                                          \
		.opcode = 0x48, .service_action = (sa), .cdb_length = 10,                          \
		.flags = OP_SA | OP_AHEAD | (fl), .dir = SCSI_DATA_OUT,                            \
		.length = scsi_sanitize_length, .run = scsi_sanitize, .usage = __VA_ARGS__         \
	}

static const struct scsi_op table[] = {
	NO_DATA(0x00, 6, OP_EXPRESS, scsi_test_unit_ready, { 0x00, 0, 0, 0, 0, CTL }),
	CONTROL_IN(0x03, 6,
		   OP_UA_OK | OP_FRONT | OP_NO_LUN | OP_EXPRESS | OP_SHARED | OP_SANITIZING, byte_4,
		   scsi_request_sense, { 0x03, 0x01, 0, 0, 0xff, CTL }),
	READ(0x08, 6, { 0x08, 0x1f, 0xff, 0xff, 0xff, CTL }),
	WRITE(0x0a, 6, { 0x0a, 0x1f, 0xff, 0xff, 0xff, CTL }),
	CONTROL_IN(0x12, 6,
		   OP_UA_OK | OP_FRONT | OP_NO_LUN | OP_EXPRESS | OP_SHARED | OP_SANITIZING,
		   bytes_3_4, scsi_inquiry, { 0x12, 0x01, 0xff, 0xff, 0xff, CTL }),
	CONTROL_OUT(0x15, 6, byte_4, scsi_mode_select, { 0x15, 0x11, 0, 0, 0xff, CTL }),
	NO_DATA(0x16, 6, OP_FRONT | OP_EXPRESS, scsi_reserve, { 0x16, 0x11, 0, 0, 0, CTL }),
	NO_DATA(0x17, 6, OP_FRONT | OP_EXPRESS | OP_SHARED, scsi_release,
		{ 0x17, 0x11, 0, 0, 0, CTL }),
	CONTROL_IN(0x1a, 6, OP_EXPRESS | OP_NO_MEDIUM, byte_4, scsi_mode_sense,
		   { 0x1a, 0x08, 0xff, 0xff, 0xff, CTL }),
	NO_DATA(0x1b, 6, OP_EXPRESS | OP_SHARED | OP_NO_MEDIUM, scsi_start_stop,
		{ 0x1b, 0, 0, 0, 0xf3, CTL }),
	NO_DATA(0x1e, 6, OP_EXPRESS | OP_NO_MEDIUM, scsi_prevent_allow,
		{ 0x1e, 0, 0, 0, 0x03, CTL }),
	CONTROL_IN(0x25, 10, OP_EXPRESS | OP_SHARED, eight, scsi_read_capacity_10,
		   { 0x25, 0, 0, 0, 0, 0, 0, 0, 0, CTL }),
	READ(0x28, 10, CDB_10(0x28, RW_FLAGS)),
	WRITE(0x2a, 10, CDB_10(0x2a, RW_FLAGS)),
	WRITE_VERIFY(0x2e, 10, CDB_10(0x2e, VERIFY_FLAGS)),
	VERIFY(0x2f, 10, CDB_10(0x2f, VERIFY_FLAGS)),
	NO_DATA(0x34, 10, 0, scsi_prefetch, CDB_10(0x34, 0)),
	NO_DATA(0x35, 10, 0, scsi_synchronize_cache, CDB_10(0x35, 0x02)),
	CONTROL_IN(0x37, 10, OP_EXPRESS | OP_SHARED, bytes_7_8, scsi_read_defects,
		   { 0x37, 0, 0x1f, 0, 0, 0, 0, 0xff, 0xff, CTL }),
	COMMAND(0x41, 10, OP_WRITE | OP_SCRATCH, SCSI_DATA_OUT, scsi_write_same_length,
		scsi_write_same, CDB_10(0x41, 0xff)),
	COMMAND(0x42, 10, OP_WRITE | OP_THIN, SCSI_DATA_OUT, list_7_8, scsi_unmap,
		{ 0x42, 0x01, 0, 0, 0, 0, 0, 0xff, 0xff, CTL }),
	SANITIZE(0x01, OP_THICK, { 0x48, 0xa1, 0, 0, 0, 0, 0, 0xff, 0xff, CTL }),
	SANITIZE(0x02, OP_THIN, { 0x48, 0xa2, 0, 0, 0, 0, 0, 0xff, 0xff, CTL }),
	SANITIZE(0x1f, 0, { 0x48, 0xbf, 0, 0, 0, 0, 0, 0xff, 0xff, CTL }),
	CONTROL_IN(0x4d, 10, OP_EXPRESS | OP_SHARED | OP_NO_MEDIUM, bytes_7_8, scsi_log_sense,
		   { 0x4d, 0x03, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0xff, CTL }),
	CONTROL_OUT(0x55, 10, list_7_8, scsi_mode_select,
		    { 0x55, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff, CTL }),
	NO_DATA(0x56, 10, OP_FRONT | OP_EXPRESS, scsi_reserve,
		{ 0x56, 0x13, 0, 0, 0, 0, 0, 0, 0, CTL }),
	NO_DATA(0x57, 10, OP_FRONT | OP_EXPRESS | OP_SHARED, scsi_release,
		{ 0x57, 0x13, 0, 0, 0, 0, 0, 0, 0, CTL }),
	CONTROL_IN(0x5a, 10, OP_EXPRESS | OP_NO_MEDIUM, bytes_7_8, scsi_mode_sense,
		   { 0x5a, 0x18, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, CTL }),
	READ(0x88, 16, CDB_16(0x88, RW_FLAGS)),
	COMMAND(0x89, 16, OP_WRITE | OP_SCRATCH | OP_EXPRESS, SCSI_DATA_OUT,
		scsi_compare_write_length, scsi_compare_write,
		{ 0x89, RW_FLAGS, FF8, 0, 0, 0, 0xff, 0, CTL }),
	WRITE(0x8a, 16, CDB_16(0x8a, RW_FLAGS)),
	COMMAND(0x8b, 16, OP_WRITE | OP_SCRATCH, SCSI_DATA_OUT, scsi_rw_length, scsi_orwrite,
		CDB_16(0x8b, RW_FLAGS)),
	WRITE_VERIFY(0x8e, 16, CDB_16(0x8e, VERIFY_FLAGS)),
	VERIFY(0x8f, 16, CDB_16(0x8f, VERIFY_FLAGS)),
	NO_DATA(0x90, 16, 0, scsi_prefetch, CDB_16(0x90, 0)),
	NO_DATA(0x91, 16, 0, scsi_synchronize_cache, CDB_16(0x91, 0x02)),
	COMMAND(0x93, 16, OP_WRITE | OP_SCRATCH, SCSI_DATA_OUT, scsi_write_same_length,
		scsi_write_same, CDB_16(0x93, 0xff)),
	COMMAND(0x9c, 16, OP_WRITE | OP_ATOMIC, SCSI_DATA_OUT, scsi_write_atomic_length,
		scsi_write_atomic, CDB_16(0x9c, RW_FLAGS)),
	SERVICE_IN(0x9e, 0x10, 16, OP_EXPRESS | OP_SHARED, bytes_10_13, scsi_read_capacity_16,
		   { 0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, FF4, 0, CTL }),
	SERVICE_IN(0x9e, 0x12, 16, OP_EXPRESS, bytes_10_13, scsi_get_lba_status,
		   { 0x9e, 0x12, FF8, FF4, 0, CTL }),
	CONTROL_IN(
		0xa0, 12, OP_UA_OK | OP_FRONT | OP_NO_LUN | OP_EXPRESS | OP_SHARED | OP_SANITIZING,
		scsi_report_luns_length, scsi_report_luns, { 0xa0, 0, 0xff, 0, 0, 0, FF4, 0, CTL }),
	SERVICE_IN(0xa3, 0x0c, 12, OP_EXPRESS | OP_SHARED | OP_SANITIZING | OP_NO_MEDIUM, bytes_6_9,
		   scsi_report_opcodes, { 0xa3, 0x0c, 0x87, 0xff, 0xff, 0xff, FF4, 0, CTL }),
	SERVICE_IN(0xa3, 0x0d, 12, OP_EXPRESS | OP_SHARED | OP_SANITIZING | OP_NO_MEDIUM, bytes_6_9,
		   scsi_report_tmfs, { 0xa3, 0x0d, 0x80, 0, 0, 0, FF4, 0, CTL }),
	READ(0xa8, 12, CDB_12(0xa8, RW_FLAGS)),
	WRITE(0xaa, 12, CDB_12(0xaa, RW_FLAGS)),
	WRITE_VERIFY(0xae, 12, CDB_12(0xae, VERIFY_FLAGS)),
	VERIFY(0xaf, 12, CDB_12(0xaf, VERIFY_FLAGS)),
	CONTROL_IN(0xb7, 12, OP_EXPRESS | OP_SHARED, bytes_6_9, scsi_read_defects,
		   { 0xb7, 0x1f, 0, 0, 0, 0, FF4, 0, CTL }),
};

/* The first row whose opcode is not below. */
static unsigned first_row(uint8_t opcode)
{
	unsigned low = 0, high = ARRAY_LEN(table);

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (table[middle].opcode < opcode)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct scsi_op *optable_find(const uint8_t *cdb, bool *opcode_known)
{
	const struct scsi_op *op = table + first_row(cdb[0]);

	*opcode_known = op < table + ARRAY_LEN(table) && op->opcode == cdb[0];
	for (; op < table + ARRAY_LEN(table) && op->opcode == cdb[0]; op++)
		if (!(op->flags & OP_SA) || op->service_action == (cdb[1] & 0x1f))
			return op;
	return NULL;
}

const struct scsi_op *optable_row(unsigned index)
{
	return index < ARRAY_LEN(table) ? &table[index] : NULL;
}
