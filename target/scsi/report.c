/* SPDX-License-Identifier: MIT */
/*
 * REPORT SUPPORTED OPERATION CODES and REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS.
 *
 * Invariants:
 * 1. Every answer is read off the tables that dispatch: what is reported works.
 *
 * Not here: the tables (optable.c, task_management.c).
 *
 * Spec: SPC-4 6.35, 6.36.
 */
#include <string.h>

#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

#define RCTD 0x80
#define SERVACTV 0x01
#define CTDP_ALL 0x02
#define CTDP_ONE 0x80
#define SUPPORTED 0x03
#define NOT_SUPPORTED 0x01
#define TIMEOUTS_LEN 12

/* REPORTING OPTIONS. */
enum { ALL_COMMANDS, BY_OPCODE, BY_SERVICE_ACTION, BY_EITHER };

/* Command timeouts: no promise of a nominal time, the default is recommended. */
static unsigned put_timeouts(uint8_t *out)
{
	memset(out, 0, TIMEOUTS_LEN);
	put_be16(out, TIMEOUTS_LEN - 2);
	return TIMEOUTS_LEN;
}

static void all_commands(struct scsi_task *task)
{
	bool timeouts = task->cdb[2] & RCTD;
	const struct scsi_op *op;
	uint8_t data[SCSI_CONTROL_MAX];
	unsigned i, length = 4;

	for (i = 0; (op = optable_row(i)); i++) {
		uint8_t *p = data + length;

		if (!lu_has(task->lu, op))
			continue;
		assert(length + 8 + TIMEOUTS_LEN <= sizeof(data));
		memset(p, 0, 8);
		p[0] = op->opcode;
		put_be16(p + 2, op->service_action);
		p[5] = (op->flags & OP_SA ? SERVACTV : 0) | (timeouts ? CTDP_ALL : 0);
		put_be16(p + 6, op->cdb_length);
		length += 8;
		if (timeouts)
			length += put_timeouts(data + length);
	}
	put_be32(data, length - 4);
	scsi_reply(task, data, length);
}

/* OP NULL: there is none. */
static void one_command(struct scsi_task *task, const struct scsi_op *op)
{
	bool timeouts = task->cdb[2] & RCTD;
	uint8_t data[4 + SCSI_CDB_MAX + TIMEOUTS_LEN] = { 0 };
	unsigned length = 4;

	if (!op) {
		data[1] = NOT_SUPPORTED;
		scsi_reply(task, data, length);
		return;
	}
	data[1] = SUPPORTED | (timeouts ? CTDP_ONE : 0);
	put_be16(data + 2, op->cdb_length);
	memcpy(data + 4, op->usage, op->cdb_length);
	length += op->cdb_length;
	if (timeouts)
		length += put_timeouts(data + length);
	scsi_reply(task, data, length);
}

static bool has_service_actions(uint8_t opcode)
{
	const struct scsi_op *op;
	unsigned i;

	for (i = 0; (op = optable_row(i)); i++)
		if (op->opcode == opcode)
			return op->flags & OP_SA;
	return false;
}

void scsi_report_opcodes(struct scsi_task *task)
{
	unsigned options = task->cdb[2] & 0x07, sa = get_be16(task->cdb + 4);
	uint8_t wanted[2] = { task->cdb[3], (uint8_t)(sa & 0x1f) };
	const struct scsi_op *op;
	bool known, actions;

	if (options == ALL_COMMANDS) {
		all_commands(task);
		return;
	}
	if (options > BY_EITHER) {
		scsi_fail_field(task, 2, 2);
		scsi_complete(task);
		return;
	}
	op = optable_find(wanted, &known);
	if (op && !lu_has(task->lu, op))
		op = NULL;
	actions = has_service_actions(wanted[0]);
	if (known &&
	    ((options == BY_OPCODE && actions) || (options == BY_SERVICE_ACTION && !actions))) {
		scsi_fail_field(task, 2, 2);
		scsi_complete(task);
		return;
	}
	/* A service action wider than the field, or one where the command has none, is nobody's. */
	if ((actions && sa > 0x1f) || (options == BY_EITHER && !actions && sa))
		op = NULL;
	one_command(task, op);
}

void scsi_report_tmfs(struct scsi_task *task)
{
	uint8_t data[16] = { 0 };
	bool extended = task->cdb[2] & 0x80; /* REPD */

	tmf_supported(data);
	if (extended)
		data[3] = sizeof(data) - 4;
	scsi_reply(task, data, extended ? sizeof(data) : 4);
}
