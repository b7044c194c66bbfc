/* SPDX-License-Identifier: MIT */
/*
 * A SCSI command from its PDU to the device server and back.
 *
 *   RECEIVED ─▶ (WAITING for buffers) ─▶ (GATHERING Data-Out) ─▶ SUBMITTED ─▶ ANSWERING
 *       │  command_run()     granted()      command_submit()        │ command_done()
 *       └───────────── aborted at any point: command_done() ────────┴─▶ OVER
 *
 * Invariants:
 * 1. Tasks enter the task set in CmdSN order. A command whose number's turn it
 *    is enters when its header is in, so that its immediate data lands in its
 *    own buffers; if the PDU turns out damaged it is withdrawn unexecuted.
 * 2. A command with unsolicited data has its buffers at once or gets TASK SET
 *    FULL: receiving never waits for buffers. All others wait in admission.c.
 * 3. From the task's done on, nothing is gathered for it; buffers that a PDU is
 *    just coming into are kept until that PDU has ended.
 *
 * Not here: Data-Out (data_out_conn.c), the answer (data_in.c), numbers (dispatch.c).
 *
 * Spec: RFC 7143 section 11.3.
 */
#include "target/iscsi/iscsi_int.h"

static bool is_write(const struct iscsi_cmd *cmd)
{
	return cmd->task.dir == SCSI_DATA_OUT && cmd->task.data_out_length;
}

static void count(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;
	const struct scsi_task *task = &cmd->task;
	struct iscsi_rate *rate = &session->rate;
	uint64_t now = env_now_ns(session->server->env), bytes = 0, span = now - rate->start_ns;

	if (task->status == SCSI_CHECK_CONDITION)
		session->errors.check_conditions++;
	if (scsi_turned_away(task->status)) {
		session->traffic.other_ops++;
	} else if (task->dir == SCSI_DATA_IN && task->data_in_length) {
		bytes = min_u64(task->data_in_length, task->expected_in);
		session->traffic.read_ops++;
		session->traffic.read_bytes += bytes;
	} else if (is_write(cmd)) {
		bytes = task->data_out_length;
		session->traffic.write_ops++;
		session->traffic.write_bytes += bytes;
	} else {
		session->traffic.other_ops++;
	}
	if (session->latency)
		hist_add(session->latency, now - cmd->start_ns);
	if (span >= NS_PER_S) {
		rate->iops = (double)rate->ops * 1e9 / (double)span;
		rate->mib_s = (double)rate->bytes / (double)MIB * 1e9 / (double)span;
		rate->interval_end_ns = now;
		rate->start_ns = now;
		rate->ops = rate->bytes = 0;
	}
	rate->ops++;
	rate->bytes += bytes;
}

void iscsi_command_abandon(struct iscsi_cmd *cmd)
{
	if (cmd->state == ISCSI_CMD_WAITING)
		iscsi_admit_cancel(cmd);
	else if (cmd->state == ISCSI_CMD_GATHERING)
		iscsi_data_out_stop(cmd);
	cmd->state = ISCSI_CMD_SUBMITTED;
}

static void command_done(struct scsi_task *task)
{
	struct iscsi_cmd *cmd = container_of(task, struct iscsi_cmd, task);
	struct iscsi_session *session = cmd->session;

	iscsi_command_abandon(cmd);
	cmd->entered = false;
	if (task->outcome == SCSI_ABORTED) {
		session->errors.aborted++;
		cmd->silent = true;
	}
	if (cmd->silent || !session->conn) {
		iscsi_cmd_over(cmd);
		return;
	}
	if (cmd->no_room) {
		session->errors.no_room++;
		task->status = SCSI_TASK_SET_FULL;
		task->sense_length = 0;
		task->data_in_length = 0;
	}
	count(cmd);
	if (task->dir != SCSI_DATA_IN && !cmd->receiving)
		iscsi_admit_give(cmd);
	cmd->state = ISCSI_CMD_ANSWERING;
	iscsi_cmd_answer(cmd);
}

/* Fill the task in from the header and put it into its task set. */
static void enter(struct iscsi_cmd *cmd)
{
	static const enum scsi_attr attrs[8] = { SCSI_SIMPLE, SCSI_SIMPLE, SCSI_ORDERED,
						 SCSI_HEAD_OF_QUEUE, SCSI_ACA };
	struct iscsi_session *session = cmd->session;
	struct scsi_task *task = &cmd->task;
	uint32_t edtl = get_be32(cmd->bhs.word20);

	task->nexus = session->nexus;
	task->lun = iscsi_lun(&cmd->bhs);
	memcpy(task->cdb, iscsi_cdb(&cmd->bhs), SCSI_CDB_MAX);
	task->cdb_length = SCSI_CDB_MAX;
	task->attr = attrs[cmd->bhs.flags & ISCSI_CMD_ATTR];
	task->tag = iscsi_itt(&cmd->bhs);
	if (cmd->bhs.flags & ISCSI_CMD_READ)
		task->expected_in = edtl;
	else if (cmd->bhs.flags & ISCSI_CMD_WRITE)
		task->expected_out = edtl;
	task->done = command_done;
	scsi_task_enter(task);
	cmd->entered = true;
	/* What is beyond the limit is refused at submit and moves nothing. */
	if (task->transfer_length > SCSI_TRANSFER_MAX)
		task->data_out_length = 0;
}

/*
 * Immediate data before its command's turn: it is kept in buffers of its own
 * until the command can enter.
 */
static void hold_header(struct iscsi_cmd *cmd, const struct iscsi_pdu *pdu, struct iscsi_dest *dest)
{
	if (!iscsi_admit_now(cmd, pdu->length)) {
		cmd->no_room = true;
		return;
	}
	*dest = (struct iscsi_dest){ .sink = ISCSI_SINK_LIST, .list = &cmd->task.data };
}

void iscsi_command_header(struct iscsi_cmd *cmd, struct iscsi_conn *conn,
			  const struct iscsi_pdu *pdu, struct iscsi_dest *dest)
{
	struct iscsi_ahs ahs;

	cmd->final = cmd->bhs.flags & ISCSI_FINAL;
	cmd->immediate_bytes = pdu->length;
	if (!iscsi_ahs_parse(pdu->ahs, pdu->ahs_bytes, &ahs)) {
		conn->reject = ISCSI_REJECT_FIELD;
		return;
	}
	/* Data-Out announced by what writes nothing: 11.3.1 calls both bits 0 an error. */
	if (!cmd->final && !(cmd->bhs.flags & ISCSI_CMD_WRITE)) {
		conn->reject = ISCSI_REJECT_PROTOCOL;
		return;
	}
	/* Both directions at once: as any other command that we do not have. */
	cmd->task.cdb_too_long =
		ahs.extended_cdb || ahs.bidirectional ||
		(cmd->bhs.flags & ISCSI_CMD_READ && cmd->bhs.flags & ISCSI_CMD_WRITE);
	if (!pdu->length)
		return;
	if (!(cmd->bhs.flags & ISCSI_CMD_WRITE) && !cmd->task.cdb_too_long) {
		conn->reject = ISCSI_REJECT_PROTOCOL;
		return;
	}
	if (conn->order == ISCSI_WINDOW_HOLD) {
		hold_header(cmd, pdu, dest);
		return;
	}
	enter(cmd);
	if (!is_write(cmd))
		return;
	if (!iscsi_admit_now(cmd, cmd->task.buffer_length)) {
		cmd->no_room = true;
		return;
	}
	*dest = (struct iscsi_dest){ .sink = ISCSI_SINK_LIST, .list = &cmd->task.data };
}

void iscsi_command_withdraw(struct iscsi_cmd *cmd)
{
	if (!cmd->entered) {
		iscsi_cmd_over(cmd);
		return;
	}
	cmd->silent = true;
	cmd->task.transport_error = SCSI_TRANSPORT_DIGEST;
	cmd->state = ISCSI_CMD_SUBMITTED;
	scsi_task_submit(&cmd->task);
}

void iscsi_command_received(struct iscsi_cmd *cmd)
{
	cmd->receiving = false;
	if (cmd->state == ISCSI_CMD_ANSWERING && cmd->task.dir != SCSI_DATA_IN)
		iscsi_admit_give(cmd);
	iscsi_cmd_release(cmd);
}

/* The held immediate data moves into buffers of the length that the task wants. */
static void move_held(struct iscsi_cmd *cmd)
{
	struct iscsi_server *server = cmd->session->server;
	uint64_t done = 0, end, covered;
	struct buf_list held;
	struct iovec iov[4];
	unsigned i, n;

	iscsi_admit_detach(cmd, &held);
	enter(cmd);
	if (is_write(cmd) && !iscsi_admit_now(cmd, cmd->task.buffer_length))
		cmd->no_room = true;
	end = cmd->units ? min_u64(cmd->immediate_bytes, cmd->task.data.length) : 0;
	while (done < end) {
		n = buf_slice(&held, done, end - done, iov, 4, &covered);
		for (i = 0; i < n; i++) {
			buf_write(&cmd->task.data, done, iov[i].iov_base, iov[i].iov_len);
			done += iov[i].iov_len;
		}
		cmd->session->conn->rx.payload_copies++;
	}
	iscsi_admit_return(server, &held);
}

static void start_data_out(struct iscsi_cmd *cmd)
{
	const struct iscsi_params *params = &cmd->session->params;
	struct iscsi_data_rules rules = {
		.initial_r2t = params->initial_r2t,
		.immediate_data = params->immediate_data,
		.first_burst = params->first_burst,
		.max_burst = params->max_burst,
		.max_r2t = params->max_outstanding_r2t,
	};
	uint64_t edtl = get_be32(cmd->bhs.word20), wanted = 0;
	enum iscsi_data_error missed = cmd->out.error; /* dropped while it was held */

	if (!cmd->no_room && is_write(cmd))
		wanted = min_u64(cmd->task.data_out_length, edtl);
	iscsi_data_out_start(&cmd->out, &rules, wanted, edtl, cmd->immediate_bytes, cmd->final);
	if (missed != ISCSI_DATA_OK)
		iscsi_data_out_fail(&cmd->out, missed);
}

void iscsi_command_run(struct iscsi_cmd *cmd)
{
	struct scsi_task *task = &cmd->task;
	uint64_t bytes = 0;

	if (cmd->state == ISCSI_CMD_OVER || cmd->silent)
		return; /* aborted while its immediate data came in */
	if (cmd->state == ISCSI_CMD_ANSWERING)
		return; /* ended with TASK ABORTED meanwhile */
	if (!cmd->entered) {
		if (cmd->units)
			move_held(cmd);
		else
			enter(cmd);
	}
	if (is_write(cmd) || !cmd->final || cmd->immediate_bytes) {
		bool wants = task->dir != SCSI_DATA_IN && task->buffer_length;

		/* Unsolicited data cannot wait for room. */
		if (!cmd->final && wants && !cmd->units && !cmd->no_room)
			cmd->no_room = !iscsi_admit_now(cmd, task->buffer_length);
		start_data_out(cmd);
		if (wants && !cmd->units && !cmd->no_room)
			bytes = task->buffer_length;
	} else {
		bytes = task->buffer_length;
		/* A store in memory moves them in this turn. */
		if (cmd->session->conn && task->dir == SCSI_DATA_IN)
			cmd->session->conn->rx.work += bytes;
	}
	/* More than there is in all: it can never be granted. */
	if (buf_units(bytes) > iscsi_admit_most(cmd)) {
		cmd->no_room = true;
		bytes = 0;
	}
	if (iscsi_admit(cmd, bytes))
		iscsi_command_granted(cmd);
}

void iscsi_command_granted(struct iscsi_cmd *cmd)
{
	if (is_write(cmd) || !cmd->final || cmd->immediate_bytes)
		iscsi_data_out_go(cmd);
	else
		iscsi_command_submit(cmd);
}

void iscsi_command_submit(struct iscsi_cmd *cmd)
{
	static const enum scsi_transport_error errors[] = {
		[ISCSI_DATA_OK] = SCSI_TRANSPORT_OK,
		[ISCSI_DATA_DIGEST] = SCSI_TRANSPORT_DIGEST,
		[ISCSI_DATA_UNSOLICITED] = SCSI_TRANSPORT_UNSOLICITED,
		[ISCSI_DATA_AMOUNT] = SCSI_TRANSPORT_TOO_MUCH_DATA,
		[ISCSI_DATA_OFFSET] = SCSI_TRANSPORT_OFFSET,
		[ISCSI_DATA_SEQUENCE] = SCSI_TRANSPORT_SEQUENCE,
	};

	cmd->task.transport_error = errors[cmd->out.error];
	/* Not executed either; command_done() puts the status right. */
	if (cmd->no_room)
		cmd->task.transport_error = SCSI_TRANSPORT_TOO_MUCH_DATA;
	cmd->state = ISCSI_CMD_SUBMITTED;
	scsi_task_submit(&cmd->task);
}
