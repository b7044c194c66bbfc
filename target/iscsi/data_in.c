/* SPDX-License-Identifier: MIT */
/*
 * The answer to a SCSI command: Data-In sequences, status, residuals.
 *
 * Invariants:
 * 1. No Data-In PDU is longer than the initiator's MaxRecvDataSegmentLength, no
 *    sequence longer than MaxBurstLength; F ends each sequence.
 * 2. GOOD status without sense travels in the last Data-In PDU, everything else
 *    in a SCSI Response of its own.
 * 3. The number goes back to the window in the PDU that carries the status.
 *
 * Not here: StatSN and the window (answer.c), bytes and digests (tx.c).
 *
 * Spec: RFC 7143 sections 11.4, 11.7.
 */
#include "target/iscsi/iscsi_int.h"

/* Expected against real transfer, RFC 7143 11.4.5. */
static uint8_t residual(const struct iscsi_cmd *cmd, uint32_t *count)
{
	const struct scsi_task *task = &cmd->task;
	uint8_t bits = cmd->bhs.flags & (ISCSI_CMD_READ | ISCSI_CMD_WRITE);
	uint64_t expected = bits ? get_be32(cmd->bhs.word20) : 0, real;

	/* Without either bit nothing is expected, and the command's own direction counts. */
	if (bits == ISCSI_CMD_WRITE || (!bits && task->dir == SCSI_DATA_OUT))
		real = task->dir == SCSI_DATA_OUT ? task->transfer_length : 0;
	else
		real = task->data_in_length;
	*count = (uint32_t)min_u64(real > expected ? real - expected : expected - real, UINT32_MAX);
	if (!*count)
		return 0;
	return real > expected ? ISCSI_OVERFLOW : ISCSI_UNDERFLOW;
}

static void produce_response(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;
	const struct scsi_task *task = &cmd->task;
	struct iscsi_tx_data data = { 0 };
	struct iscsi_bhs bhs;
	uint32_t count;

	iscsi_bhs_init(&bhs, ISCSI_SCSI_RESPONSE, ISCSI_FINAL | residual(cmd, &count),
		       iscsi_itt(&cmd->bhs));
	bhs.byte3 = task->status;
	put_be32(bhs.word36, cmd->datasn + cmd->out.r2tsn);
	put_be32(bhs.word44, count);
	if (task->sense_length) {
		put_be16(cmd->small, task->sense_length);
		memcpy(cmd->small + 2, task->sense, task->sense_length);
		data.data = cmd->small;
		data.length = 2u + task->sense_length;
	}
	iscsi_cmd_answered(cmd);
	iscsi_stamp(session, &bhs, true);
	cmd->in_tx++;
	iscsi_tx_add(&session->conn->tx, &bhs, &data, cmd);
}

/* One Data-In PDU; true: it carried the status. */
static bool produce_data(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;
	const struct iscsi_params *params = &session->params;
	uint64_t burst_left = params->max_burst - cmd->in_sent % params->max_burst;
	uint64_t left = cmd->in_total - cmd->in_sent;
	struct iscsi_tx_data data = { .list = &cmd->task.data, .offset = cmd->in_sent };
	bool last, status;
	struct iscsi_bhs bhs;
	uint32_t count = 0;

	data.length = (uint32_t)min_u64(min_u64(left, burst_left), params->max_send);
	last = data.length == left;
	status = last && cmd->task.status == SCSI_GOOD && !cmd->task.sense_length;
	iscsi_bhs_init(&bhs, ISCSI_DATA_IN, last || data.length == burst_left ? ISCSI_FINAL : 0,
		       iscsi_itt(&cmd->bhs));
	if (status) {
		bhs.flags |= ISCSI_DATA_STATUS | residual(cmd, &count);
		bhs.byte3 = cmd->task.status;
		iscsi_cmd_answered(cmd);
	}
	iscsi_stamp(session, &bhs, status);
	if (!status)
		put_be32(bhs.word24, 0);
	put_be32(bhs.word20, ISCSI_NO_TAG);
	put_be32(bhs.word36, cmd->datasn++);
	put_be32(bhs.word40, (uint32_t)cmd->in_sent);
	put_be32(bhs.word44, count);
	cmd->in_sent += data.length;
	cmd->in_tx++;
	iscsi_tx_add(&session->conn->tx, &bhs, &data, cmd);
	return status;
}

bool iscsi_scsi_produce(struct iscsi_cmd *cmd)
{
	struct iscsi_tx *tx = &cmd->session->conn->tx;

	if (cmd->task.dir == SCSI_DATA_IN && !cmd->in_total)
		cmd->in_total = min_u64(cmd->task.data_in_length, cmd->task.expected_in);
	assert(cmd->in_total <= cmd->task.data.length);
	while (iscsi_tx_room(tx)) {
		if (cmd->in_sent == cmd->in_total) {
			produce_response(cmd);
			return true;
		}
		if (produce_data(cmd))
			return true;
	}
	return false;
}
