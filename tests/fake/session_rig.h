/* SPDX-License-Identifier: MIT */
/*
 * One iSCSI session in full feature phase, without sockets, in front of a device server
 * that does what the test says.
 *
 * Defines conn.c's and the device server's functions itself. PDUs go in with rig_send();
 * rig_turn() sends what there is to send, and it lies in rig.out. Include it in one file of
 * a program.
 */
#ifndef TESTS_FAKE_SESSION_RIG_H
#define TESTS_FAKE_SESSION_RIG_H

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "target/iscsi/iscsi_int.h"
#include "tests/fake/fake_env.h"

#define RIG_UNITS 128u
#define RIG_OUT 4096
#define RIG_TASKS 256

struct rig_pdu {
	struct iscsi_bhs bhs;
	uint32_t length;
	const uint8_t *data; /* in rig.wire */
};

static struct rig {
	struct env *env;
	struct iscsi_server server;
	struct iscsi_target target;
	struct iscsi_conn conn;
	struct iscsi_session *session;
	const char *closed;    /* the reason, once the connection was closed */
	uint64_t socket_bytes; /* that the socket takes until it is full */

	uint8_t wire[4 * MIB];
	size_t wire_bytes, parsed;
	struct rig_pdu out[RIG_OUT];
	unsigned out_count;

	/* The device server: what the next task moves, and what it was given. */
	enum scsi_dir dir;
	uint64_t length;
	struct scsi_task *submitted[RIG_TASKS];
	unsigned submitted_count;
	struct scsi_task *entered[RIG_TASKS]; /* not ended */
	unsigned entered_count;
	struct scsi_tmf *tmf; /* the newest */
	unsigned tmf_count;
} rig;

/* ---- the device server */

void scsi_task_enter(struct scsi_task *task)
{
	task->state = SCSI_TASK_ENTERED;
	task->dir = rig.dir;
	task->transfer_length = rig.length;
	task->data_out_length = rig.dir == SCSI_DATA_OUT ? min_u64(rig.length, task->expected_out) :
							   0;
	task->buffer_length = rig.dir == SCSI_DATA_IN ? rig.length : task->data_out_length;
	rig.entered[rig.entered_count++] = task;
}

void scsi_task_submit(struct scsi_task *task)
{
	ck_assert_int_eq(task->state, SCSI_TASK_ENTERED);
	task->state = SCSI_TASK_SUBMITTED;
	rig.submitted[rig.submitted_count++] = task;
}

static inline void rig_leave(struct scsi_task *task, enum scsi_outcome outcome)
{
	unsigned i = 0;

	while (rig.entered[i] != task)
		i++;
	rig.entered[i] = rig.entered[--rig.entered_count];
	task->state = SCSI_TASK_IDLE;
	task->outcome = outcome;
	task->done(task);
}

/* TASK ends with STATUS, having yielded LENGTH bytes. */
static inline void rig_end(struct scsi_task *task, uint8_t status, uint64_t length)
{
	task->status = status;
	task->data_in_length = length;
	rig_leave(task, SCSI_COMPLETED);
}

void scsi_tmf_submit(struct scsi_tmf *tmf)
{
	rig.tmf = tmf;
	rig.tmf_count++;
	if (tmf->function != SCSI_NEXUS_RESET)
		return;
	while (rig.entered_count)
		rig_leave(rig.entered[0], SCSI_ABORTED);
	tmf->response = SCSI_TMF_COMPLETE;
	tmf->done(tmf);
}

static inline void rig_tmf_end(enum scsi_tmf_response response)
{
	rig.tmf->response = response;
	rig.tmf->done(rig.tmf);
}

struct scsi_nexus *scsi_nexus_new(struct scsi_device *device, const struct scsi_nexus_id *id)
{
	static char nexus;

	(void)device;
	(void)id;
	return (struct scsi_nexus *)(void *)&nexus;
}

void scsi_nexus_retire(struct scsi_nexus *nexus)
{
	(void)nexus;
}

void scsi_nexus_free(struct scsi_nexus *nexus)
{
	(void)nexus;
	ck_assert_uint_eq(rig.entered_count, 0);
}

unsigned scsi_nexus_tasks(const struct scsi_nexus *nexus)
{
	(void)nexus;
	return rig.entered_count;
}

/* ---- the connection */

void iscsi_conn_close(struct iscsi_conn *conn, const char *reason)
{
	struct iscsi_session *session = conn->session;

	if (conn->state == ISCSI_CONN_DEAD)
		return;
	conn->state = ISCSI_CONN_DEAD;
	conn->session = NULL;
	rig.closed = reason;
	iscsi_session_end(session, reason);
	iscsi_tx_drop(&conn->tx);
}

void iscsi_conn_end(struct iscsi_conn *conn, const char *reason)
{
	iscsi_conn_close(conn, reason);
}

void iscsi_conn_kick(struct iscsi_conn *conn)
{
	(void)conn;
}

void iscsi_conn_later(struct iscsi_conn *conn)
{
	(void)conn;
}

void iscsi_conn_backlog(struct env_timer *timer)
{
	(void)timer;
}

void iscsi_conn_accept(struct iscsi_portal *portal, int fd, const struct sockaddr_storage *peer)
{
	(void)portal;
	(void)fd;
	(void)peer;
	ck_abort_msg("no listener here");
}

void iscsi_conn_stats(const struct iscsi_conn *conn, struct iscsi_stats *stats)
{
	(void)conn;
	(void)stats;
}

uint16_t iscsi_address_port(const struct sockaddr_storage *addr)
{
	(void)addr;
	return 0;
}

void iscsi_address_text(const struct sockaddr_storage *addr, char *text, size_t size)
{
	(void)addr;
	(void)size;
	text[0] = '\0';
}

static void rig_sent(void *arg, void *owner)
{
	struct iscsi_cmd *cmd = owner;

	(void)arg;
	cmd->in_tx--;
	iscsi_cmd_release(cmd);
}

static ssize_t rig_writev(void *arg, struct iovec *iov, unsigned count)
{
	size_t sent = 0;

	(void)arg;
	for (unsigned i = 0; i < count && rig.socket_bytes; i++) {
		size_t n = min_u64(iov[i].iov_len, rig.socket_bytes);

		ck_assert_uint_le(rig.wire_bytes + n, sizeof(rig.wire));
		memcpy(rig.wire + rig.wire_bytes, iov[i].iov_base, n);
		rig.wire_bytes += n;
		rig.socket_bytes -= n;
		sent += n;
	}
	if (sent)
		return (ssize_t)sent;
	errno = EAGAIN;
	return -1;
}

static inline void rig_quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* ---- its life */

static inline void rig_start(unsigned window)
{
	static const struct iscsi_tx_ops tx_ops = { .sent = rig_sent, .writev = rig_writev };
	static struct iscsi_login login;

	log_redirect(rig_quiet);
	memset(&rig, 0, sizeof(rig));
	rig.env = fake_env_new(1);
	rig.socket_bytes = UINT64_MAX;
	rig.server.env = rig.env;
	rig.server.pool = buf_pool_new(RIG_UNITS * BUF_UNIT);
	rig.server.limits.commands_per_session = window;
	TAILQ_INIT(&rig.server.targets);
	TAILQ_INIT(&rig.server.conns);
	TAILQ_INIT(&rig.server.sessions);
	iscsi_admit_init(&rig.server);
	rig.target = (struct iscsi_target){ .server = &rig.server,
					    .name = "iqn.2026-11.org.yoke:rig",
					    .data_out_timeout_ns = 60 * NS_PER_S };
	rig.conn = (struct iscsi_conn){ .server = &rig.server, .state = ISCSI_CONN_FULL };
	ck_assert(iscsi_tx_init(&rig.conn.tx, &tx_ops, &rig.conn));
	ck_assert(iscsi_tx_full_feature(&rig.conn.tx));
	login.cmd_sn = 1;
	login.cid = 7;
	strcpy(login.keys.initiator_name, "iqn.1994-05.com.host:1");
	rig.session = rig.conn.session = iscsi_session_new(&rig.conn, &rig.target, &login);
	ck_assert_ptr_nonnull(rig.session);
	iscsi_params_init(&rig.session->params);
	rig.session->params.max_recv = ISCSI_OUR_MAX_RECV;
	rig.session->statsn = 100;
	iscsi_session_up(rig.session);
}

/* Whatever was under way: nothing is left of it. */
static inline void rig_stop(void)
{
	iscsi_conn_close(&rig.conn, "test over");
	fake_env_run(rig.env);
	ck_assert(TAILQ_EMPTY(&rig.server.sessions));
	ck_assert_uint_eq(rig.target.sessions, 0);
	ck_assert_uint_eq(buf_pool_free_units(rig.server.pool), RIG_UNITS);
	iscsi_tx_fini(&rig.conn.tx);
	iscsi_admit_fini(&rig.server);
	buf_pool_free(rig.server.pool);
	fake_env_free(rig.env);
}

/* ---- PDUs */

/* False: the connection ended. */
static inline bool rig_send_digest(const struct iscsi_bhs *bhs, const void *data, uint32_t length,
				   bool digest_ok)
{
	static uint8_t control[ISCSI_CONTROL_MAX];
	struct iscsi_pdu *pdu = &rig.conn.rx.pdu;
	struct iscsi_dest dest = { .sink = ISCSI_SINK_DROP };

	*pdu = (struct iscsi_pdu){ .bhs = *bhs, .length = length };
	put_be24(pdu->bhs.length, length);
	if (!iscsi_conn_rx_ops.header(&rig.conn, pdu, &dest))
		return false;
	if (dest.sink == ISCSI_SINK_CONTROL) {
		memcpy(control, data, length);
		pdu->control = control;
	} else if (dest.sink == ISCSI_SINK_LIST && dest.offset < dest.list->length) {
		buf_write(dest.list, dest.offset, data,
			  min_u64(length, dest.list->length - dest.offset));
	}
	return iscsi_conn_rx_ops.pdu(&rig.conn, pdu, digest_ok);
}

static inline bool rig_send(const struct iscsi_bhs *bhs, const void *data, uint32_t length)
{
	return rig_send_digest(bhs, data, length, true);
}

/* A request; OPCODE with ISCSI_IMMEDIATE or not. */
static inline struct iscsi_bhs rig_request(uint8_t opcode, uint8_t flags, uint32_t itt,
					   uint32_t cmdsn)
{
	struct iscsi_bhs bhs;

	iscsi_bhs_init(&bhs, (enum iscsi_opcode)opcode, flags, itt);
	put_be32(bhs.word24, cmdsn);
	return bhs;
}

/* A SCSI command with FLAGS (R, W, F) that expects to move EDTL bytes. */
static inline struct iscsi_bhs rig_command(uint8_t flags, uint32_t itt, uint32_t cmdsn,
					   uint32_t edtl)
{
	struct iscsi_bhs bhs = rig_request(ISCSI_SCSI_COMMAND, flags, itt, cmdsn);

	put_be32(bhs.word20, edtl);
	return bhs;
}

/* The next task moves LENGTH bytes in direction DIR. */
static inline void rig_moves(enum scsi_dir dir, uint64_t length)
{
	rig.dir = dir;
	rig.length = length;
}

static inline void rig_parse(void)
{
	while (rig.wire_bytes - rig.parsed >= ISCSI_BHS_BYTES) {
		struct rig_pdu *pdu = &rig.out[rig.out_count];
		size_t whole;

		memcpy(&pdu->bhs, rig.wire + rig.parsed, ISCSI_BHS_BYTES);
		pdu->length = iscsi_length(&pdu->bhs);
		whole = ISCSI_BHS_BYTES + align_up(pdu->length, 4);
		if (rig.wire_bytes - rig.parsed < whole)
			return;
		pdu->data = rig.wire + rig.parsed + ISCSI_BHS_BYTES;
		rig.parsed += whole;
		ck_assert_uint_lt(++rig.out_count, RIG_OUT);
	}
}

/* The end of a turn: all that may be sent is in rig.out. */
static inline void rig_turn(void)
{
	fake_env_run(rig.env);
	do {
		if (rig.conn.state != ISCSI_CONN_FULL)
			return;
		iscsi_answer(rig.session);
	} while (iscsi_tx_flush(&rig.conn.tx) == ISCSI_TX_EMPTY && iscsi_answers_left(rig.session));
	rig_parse();
}

/* The Nth PDU sent, of this opcode. */
static inline const struct rig_pdu *rig_pdu(unsigned n, enum iscsi_opcode opcode)
{
	ck_assert_uint_lt(n, rig.out_count);
	ck_assert_uint_eq(iscsi_opcode(&rig.out[n].bhs), opcode);
	return &rig.out[n];
}

/* Run TEST functions of one file. */
static inline int rig_main(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

#endif
