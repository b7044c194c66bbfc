/* SPDX-License-Identifier: MIT */
/*
 * Task management requests: numbers and tags here, tasks at the device server.
 *
 * Invariants:
 * 1. A response goes out when the fate of every task concerned is final.
 * 2. A function on a task set waits until the commands numbered before it have
 *    come in; ABORT TASK and QUERY TASK act at once.
 * 3. ABORT TASK of a command that has not come in yet takes its number: it will
 *    never be executed.
 *
 * Not here: which tasks a function reaches (target/scsi).
 *
 * Spec: RFC 7143 sections 4.2.3, 11.5, 11.6; RFC 7144 section 4.
 */
#include "target/iscsi/iscsi_int.h"

enum response {
	RESPONSE_COMPLETE = 0,
	RESPONSE_NO_TASK = 1,
	RESPONSE_NO_LUN = 2,
	RESPONSE_NO_REASSIGN = 4,
	RESPONSE_NOT_SUPPORTED = 5,
	RESPONSE_SUCCEEDED = 7,
	RESPONSE_REJECTED = 255,
};

enum { TARGET_COLD_RESET = 7, TASK_REASSIGN = 8, QUERY_ASYNC_EVENT = 12 };

struct function {
	bool known;
	enum scsi_tmf_function function;
	bool one_task;
};

static const struct function functions[] = {
	[1] = { true, SCSI_ABORT_TASK, true },
	[2] = { true, SCSI_ABORT_TASK_SET, false },
	[4] = { true, SCSI_CLEAR_TASK_SET, false },
	[5] = { true, SCSI_LUN_RESET, false },
	[6] = { true, SCSI_TARGET_RESET, false },
	[TARGET_COLD_RESET] = { true, SCSI_TARGET_RESET, false },
	[9] = { true, SCSI_QUERY_TASK, true },
	[10] = { true, SCSI_QUERY_TASK_SET, false },
	[11] = { true, SCSI_NEXUS_RESET, false },
	[QUERY_ASYNC_EVENT] = { true, SCSI_QUERY_ASYNC_EVENT, false },
};

static uint8_t code(const struct iscsi_cmd *cmd)
{
	return cmd->bhs.flags & 0x7f;
}

static void respond(struct iscsi_cmd *cmd, enum response response)
{
	cmd->response = (uint8_t)response;
	cmd->state = ISCSI_CMD_ANSWERING;
	iscsi_cmd_answer(cmd);
}

static void tmf_done(struct scsi_tmf *tmf)
{
	static const enum response responses[] = {
		[SCSI_TMF_COMPLETE] = RESPONSE_COMPLETE,
		[SCSI_TMF_SUCCEEDED] = RESPONSE_SUCCEEDED,
		[SCSI_TMF_NO_TASK] = RESPONSE_NO_TASK,
		[SCSI_TMF_NO_LUN] = RESPONSE_NO_LUN,
		[SCSI_TMF_NOT_SUPPORTED] = RESPONSE_NOT_SUPPORTED,
		[SCSI_TMF_REJECTED] = RESPONSE_REJECTED,
	};
	struct iscsi_cmd *cmd = container_of(tmf, struct iscsi_cmd, tmf);

	cmd->entered = false;
	respond(cmd, responses[tmf->response]);
}

/* The task's number is not in the task set: what its tag or number says. True: answered. */
static bool abort_here(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;
	struct iscsi_cmd *other = iscsi_cmd_find(session, get_be32(cmd->bhs.word20));
	uint32_t ref = get_be32(cmd->bhs.word32), number = iscsi_cmdsn(&cmd->bhs);
	bool aborts = code(cmd) == 1;

	/* Only commands are tasks; the tag may even be this request's own. */
	if (other && iscsi_opcode(&other->bhs) != ISCSI_SCSI_COMMAND) {
		respond(cmd, aborts ? RESPONSE_NO_TASK : RESPONSE_COMPLETE);
		return true;
	}
	if (other && other->entered)
		return false;
	if (other && other->state == ISCSI_CMD_RECEIVED && !other->receiving) {
		/* Held for its turn. */
		if (aborts) {
			iscsi_window_void(&session->window, iscsi_cmdsn(&other->bhs));
			iscsi_cmd_over(other);
		}
		respond(cmd, aborts ? RESPONSE_COMPLETE : RESPONSE_SUCCEEDED);
		return true;
	}
	if (aborts && !other && sna_lt(ref, number) &&
	    iscsi_window_check(&session->window, ref) != ISCSI_WINDOW_DROP) {
		iscsi_window_void(&session->window, ref);
		respond(cmd, RESPONSE_COMPLETE);
		iscsi_run_held(session);
		return true;
	}
	/* RFC 7144 4.1: what a query does not find is no failure. */
	respond(cmd, aborts ? RESPONSE_NO_TASK : RESPONSE_COMPLETE);
	return true;
}

void iscsi_tmf_run(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;
	const struct function *f = &functions[0];

	if (code(cmd) == TASK_REASSIGN) {
		respond(cmd, RESPONSE_NO_REASSIGN);
		return;
	}
	if (code(cmd) < ARRAY_LEN(functions))
		f = &functions[code(cmd)];
	if (!f->known) {
		respond(cmd, RESPONSE_NOT_SUPPORTED);
		return;
	}
	if (f->one_task && abort_here(cmd))
		return;
	if (!f->one_task && iscsi_is_immediate(&cmd->bhs) &&
	    sna_lt(session->window.exp, iscsi_cmdsn(&cmd->bhs)) &&
	    sna_lte(iscsi_cmdsn(&cmd->bhs), iscsi_window_max(&session->window) + 1)) {
		cmd->fenced = true;
		TAILQ_INSERT_TAIL(&session->fenced, cmd, link);
		return;
	}
	cmd->entered = true;
	cmd->state = ISCSI_CMD_SUBMITTED;
	cmd->tmf = (struct scsi_tmf){
		.nexus = session->nexus,
		.function = f->function,
		.lun = iscsi_lun(&cmd->bhs),
		.tag = get_be32(cmd->bhs.word20),
		.done = tmf_done,
	};
	scsi_tmf_submit(&cmd->tmf);
}

/* Every session of the target ends, ours after its response. */
static void cold_reset(struct iscsi_session *session)
{
	struct iscsi_session *other, *next;

	session->close_when_sent = true;
	TAILQ_FOREACH_SAFE(other, &session->server->sessions, link, next)
		if (other != session && other->target == session->target && other->conn)
			iscsi_conn_close(other->conn, "target cold reset");
}

bool iscsi_tmf_produce(struct iscsi_cmd *cmd)
{
	struct iscsi_session *session = cmd->session;
	struct iscsi_bhs bhs;

	iscsi_bhs_init(&bhs, ISCSI_TMF_RESPONSE, ISCSI_FINAL, iscsi_itt(&cmd->bhs));
	bhs.byte2 = cmd->response;
	/* RFC 7144 6.2: Additional Response Information. */
	if (cmd->response == RESPONSE_SUCCEEDED && code(cmd) == QUERY_ASYNC_EVENT)
		memcpy(bhs.lun, cmd->tmf.event, sizeof(cmd->tmf.event));
	iscsi_cmd_answered(cmd);
	iscsi_stamp(session, &bhs, true);
	cmd->in_tx++;
	iscsi_tx_add(&session->conn->tx, &bhs, NULL, cmd);
	if (code(cmd) == TARGET_COLD_RESET && cmd->response == RESPONSE_COMPLETE)
		cold_reset(session);
	return true;
}
