/* SPDX-License-Identifier: MIT */
/*
 * What the files of the transport share: server, portal, target, connection,
 * session, command.
 *
 *   server ─┬─ portals ─── listeners
 *           ├─ targets ─┐
 *           ├─ connections: from accept() to close()
 *           └─ sessions: from login until their last task came back
 *
 * A session has its one connection, or none any more; it outlives it while a
 * stalled store holds one of its tasks (ErrorRecoveryLevel 0: it ends with its
 * connection).
 */
#ifndef TARGET_ISCSI_ISCSI_INT_H
#define TARGET_ISCSI_ISCSI_INT_H

#include "core/conf.h"
#include "core/hist.h"
#include "core/log.h"
#include "target/iscsi/data_out.h"
#include "target/iscsi/iscsi.h"
#include "target/iscsi/login.h"
#include "target/iscsi/rx.h"
#include "target/iscsi/text.h"
#include "target/iscsi/tx.h"
#include "target/iscsi/window.h"

#define ISCSI_MODULE "iscsi"

/* Command structures beyond the window, for immediate requests and rejects. */
#define ISCSI_RESERVE 16
#define ISCSI_RESERVE_REJECT 4
/* Of all sessions together; later ones get smaller windows. */
#define ISCSI_COMMANDS_MAX 65536
#define ISCSI_WINDOW_MIN 4
#define ISCSI_HASH 64
/* Work a connection may do in one turn before others have theirs. */
#define ISCSI_TURN_PDUS 64
#define ISCSI_TURN_BYTES (512 * KIB)
/* And all connections together: a turn stays below 10 ms however many are busy. */
#define ISCSI_TURN_PDUS_ALL 1024
#define ISCSI_TURN_WAKE 16   /* so many PDUs is being looked at worth: a read, or an end */
#define ISCSI_TURN_LOGIN 128 /* and a session's memory */
#define ISCSI_TURN_BYTES_ALL (2 * MIB)
/* All that a connection may cost before it logged in. */
#define ISCSI_LOGIN_MEMORY (16 * KIB)

struct iscsi_listener {
	struct ev_io watcher;
	struct iscsi_portal *portal;
	int fd;
	bool wildcard;
	char text[64]; /* "192.0.2.1:3260" */
	uint16_t port;
};

struct iscsi_portal {
	TAILQ_ENTRY(iscsi_portal) link;
	struct iscsi_server *server;
	char name[64];
	uint16_t group;
	struct iscsi_listener *listeners;
	unsigned listener_count;
	struct env_timer retry; /* out of descriptors: listens again when it fires */
};

struct iscsi_target {
	TAILQ_ENTRY(iscsi_target) link; /* by name */
	struct iscsi_server *server;
	char name[ISCSI_NAME_MAX + 1];
	struct scsi_device *device;
	struct conf_strings portals;
	struct conf_strings allow;
	uint64_t nop_interval_ns;
	uint64_t nop_timeout_ns;
	uint64_t data_out_timeout_ns;
	unsigned sessions;          /* not freed yet */
	struct iscsi_traffic ended; /* of sessions that were */
	bool removed;               /* frees itself with its last session */
	void (*removed_done)(void *arg);
	void *removed_arg;
};

enum iscsi_conn_state {
	ISCSI_CONN_LOGIN,
	ISCSI_CONN_LAST_RESPONSE, /* of the login: full feature phase once it is sent */
	ISCSI_CONN_FULL,
	ISCSI_CONN_ENDING, /* sends what is queued, then lingers */
	ISCSI_CONN_LINGER, /* sent FIN, waits for theirs, so that no RST eats our last word */
	ISCSI_CONN_DEAD,
};

struct iscsi_conn {
	TAILQ_ENTRY(iscsi_conn) link;
	struct iscsi_server *server;
	struct iscsi_portal *portal; /* NULL: removed */
	uint16_t portal_group;
	char portal_name[64];
	enum iscsi_conn_state state;
	int fd;
	struct ev_io read_watcher;
	struct ev_io write_watcher;
	struct iscsi_rx rx;
	struct iscsi_tx tx;
	struct loop_hook flush;
	struct env_timer timer; /* login, linger */
	TAILQ_ENTRY(iscsi_conn) backlog_link;
	bool backlogged; /* there is work left over from its last turn */
	struct env_defer bury;
	struct iscsi_login *login; /* until full feature phase */
	struct iscsi_session *session;
	char local[64]; /* "192.0.2.1:3260" */
	char remote[64];
	uint64_t since_ns;

	/* The PDU that is coming in. */
	struct iscsi_cmd *current;
	enum iscsi_window_verdict order;
	uint8_t reject; /* reason, 0: none */
	uint8_t *control;
};

enum iscsi_session_state {
	ISCSI_SESSION_LOGIN, /* made by a login whose last response is not sent */
	ISCSI_SESSION_UP,
	ISCSI_SESSION_LOGOUT, /* answers a logout, or was told to go */
	ISCSI_SESSION_ENDING, /* no connection; waits for its tasks */
};

TAILQ_HEAD(iscsi_cmd_list, iscsi_cmd);
LIST_HEAD(iscsi_cmd_bucket, iscsi_cmd);

/* Reads and writes of the last whole second or so. */
struct iscsi_rate {
	uint64_t start_ns;
	uint64_t ops, bytes; /* since start */
	double iops, mib_s;  /* of the interval before */
	uint64_t interval_end_ns;
};

struct iscsi_session_errors {
	uint64_t data_digest, protocol, rejects, check_conditions, aborted, no_room;
};

struct iscsi_session {
	TAILQ_ENTRY(iscsi_session) link;
	struct iscsi_server *server;
	struct iscsi_target *target; /* NULL in discovery */
	struct iscsi_conn *conn;
	struct scsi_nexus *nexus;
	enum iscsi_session_state state;
	bool registered; /* can be found by its identity */
	bool discovery;
	bool counted_up; /* session-up was told */
	uint64_t id;
	uint8_t isid[6];
	uint16_t tsih;
	uint16_t cid;
	uint16_t portal_group;
	char portal_name[64];
	char initiator[ISCSI_NAME_MAX + 1];
	struct iscsi_params params;
	uint64_t since_s; /* UTC */

	struct iscsi_window window;
	uint32_t statsn; /* of the next numbered response */
	struct iscsi_cmd *cmds;
	unsigned cmd_count, cmd_touched, cmd_used;
	struct iscsi_cmd_list free;
	struct iscsi_cmd_bucket hash[ISCSI_HASH];
	struct iscsi_cmd_list answers; /* have something to send */
	struct iscsi_cmd_list waiting; /* for buffers, in order */
	struct iscsi_cmd_list owing;   /* for Data-Out; longest without progress first */
	struct iscsi_cmd_list fenced;  /* TMFs that wait for missing command numbers */
	TAILQ_ENTRY(iscsi_session) wait_link;
	bool in_wait_list;
	unsigned units; /* of the buffer pool */
	unsigned express_units;

	struct env_timer nop_timer;
	struct env_timer data_timer;
	struct env_timer end_timer;
	uint32_t nop_tag; /* of the ping that is out */
	bool nop_out;
	bool want_ping, want_window, want_async;
	uint8_t async_event;
	uint16_t async_seconds;

	struct iscsi_text *text;
	char *text_out;
	bool text_sending;

	struct scsi_tmf reset; /* at its end */
	bool reset_running, reset_done;
	bool close_when_sent; /* after a logout response, or a cold reset */
	struct env_defer bury;
	bool burying;

	struct iscsi_traffic traffic;
	struct iscsi_rate rate;
	struct iscsi_session_errors errors;
	struct hist *latency;
};

enum iscsi_cmd_state {
	ISCSI_CMD_FREE,
	ISCSI_CMD_RECEIVED, /* coming in, or held until its number's turn */
	ISCSI_CMD_WAITING,  /* for buffers */
	ISCSI_CMD_GATHERING,
	ISCSI_CMD_SUBMITTED, /* at the device server, or a TMF there */
	ISCSI_CMD_ANSWERING,
	ISCSI_CMD_OVER, /* nothing to say; frees itself once nobody holds it */
};

struct iscsi_cmd {
	struct scsi_task task;
	struct iscsi_session *session;
	TAILQ_ENTRY(iscsi_cmd) link; /* free, waiting, owing or fenced */
	TAILQ_ENTRY(iscsi_cmd) answer_link;
	LIST_ENTRY(iscsi_cmd) hash_link;
	struct iscsi_bhs bhs;
	enum iscsi_cmd_state state;
	bool numbered; /* holds a number of the window */
	bool hashed;
	bool entered;   /* the task is in a task set */
	bool receiving; /* a PDU is coming into its buffers */
	bool queued;    /* on answers */
	bool silent;    /* send nothing */
	bool no_room;   /* its data came and there was no buffer: TASK SET FULL */
	bool fenced;
	bool final;     /* of the command PDU */
	unsigned in_tx; /* PDUs not sent yet */
	unsigned units;
	bool express; /* its units are of that share */
	uint64_t wait_bytes;
	struct iscsi_lun_use *lun_use;
	uint64_t start_ns;
	uint64_t progress_ns; /* of its Data-Out */
	uint32_t immediate_bytes;
	struct iscsi_data_out out;
	uint64_t in_sent;
	uint64_t in_total;
	uint32_t datasn;
	uint32_t echo_bytes;
	char *held_text; /* of a text request that waits for its number */
	uint32_t held_text_bytes;
	struct scsi_tmf tmf;
	uint8_t response; /* TMF, logout; a reject's reason */
	uint8_t small[2 + SCSI_SENSE_MAX];
};

/* What a logical unit's commands hold of the pool. */
struct iscsi_lun_use {
	LIST_ENTRY(iscsi_lun_use) link;
	const struct scsi_lu *lu;
	unsigned units;
	unsigned express_units;
};

#define ISCSI_LUN_HASH 64

TAILQ_HEAD(iscsi_portal_list, iscsi_portal);
TAILQ_HEAD(iscsi_target_list, iscsi_target);
TAILQ_HEAD(iscsi_conn_list, iscsi_conn);
TAILQ_HEAD(iscsi_session_list, iscsi_session);
LIST_HEAD(iscsi_lun_use_list, iscsi_lun_use);

struct iscsi_server {
	struct shard *shard;
	struct loop *loop;
	struct env *env;
	struct buf_pool *pool;
	struct iscsi_limits limits;
	struct iscsi_portal_list portals;
	struct iscsi_target_list targets;
	struct iscsi_conn_list conns;
	struct iscsi_conn_list backlog; /* who waits for the next turn */
	struct env_timer backlog_timer;
	struct iscsi_session_list sessions;
	struct iscsi_session_list waiting; /* sessions with commands waiting for buffers */
	struct iscsi_lun_use_list lun_use[ISCSI_LUN_HASH];
	struct env_defer admit;
	bool admit_queued;
	uint64_t turn_ns; /* the turn that these were counted in */
	unsigned turn_pdus;
	uint64_t turn_bytes;
	uint64_t turn_sent;
	unsigned conn_count, session_count, command_count;
	unsigned live_count; /* sessions that have their connection */
	uint64_t next_id;
	uint16_t next_tsih;
	bool stopping;
	struct env_timer stop_timer;
	void (*stop_done)(void *arg);
	void *stop_arg;
	struct env_defer stop_defer;
	bool stop_told;
	struct iscsi_stats totals; /* of connections that are gone */
	uint64_t refused_window_ns;
	unsigned refused_in_window;
	struct log_limit limit_accept, limit_refused, limit_protocol, limit_closed;
};

/* conn.c */
void iscsi_conn_accept(struct iscsi_portal *portal, int fd, const struct sockaddr_storage *peer);
/* At once; its session ends too. CONN lives until the end of the turn. */
void iscsi_conn_close(struct iscsi_conn *conn, const char *reason);
/* Send what is queued, FIN, then close. */
void iscsi_conn_end(struct iscsi_conn *conn, const char *reason);
/* Something is to be sent: at the end of this turn. */
void iscsi_conn_kick(struct iscsi_conn *conn);
/* There is more to do for it: in the next turn. */
void iscsi_conn_later(struct iscsi_conn *conn);
void iscsi_conn_backlog(struct env_timer *timer);
void iscsi_conn_stats(const struct iscsi_conn *conn, struct iscsi_stats *stats);
uint16_t iscsi_address_port(const struct sockaddr_storage *addr);
void iscsi_address_text(const struct sockaddr_storage *addr, char *text, size_t size);

/* login_conn.c */
bool iscsi_login_begin(struct iscsi_conn *conn);
bool iscsi_login_header(struct iscsi_conn *conn, struct iscsi_pdu *pdu, struct iscsi_dest *dest);
bool iscsi_login_pdu(struct iscsi_conn *conn, struct iscsi_pdu *pdu);
/* The last response is sent: full feature phase. */
void iscsi_login_finish(struct iscsi_conn *conn);

/* dispatch.c: full feature phase */
extern const struct iscsi_rx_ops iscsi_conn_rx_ops;
/* Run COMMAND, whose turn it is. */
void iscsi_run(struct iscsi_cmd *cmd);
/* Held commands whose turn has come, fenced TMFs too. */
void iscsi_run_held(struct iscsi_session *session);

/* session.c */
/* Twelve digits. */
void iscsi_isid_text(const uint8_t isid[6], char out[13]);
struct iscsi_session *iscsi_session_new(struct iscsi_conn *conn, struct iscsi_target *target,
					const struct iscsi_login *login);
void iscsi_session_up(struct iscsi_session *session);
/* The connection is gone or going: abort what runs, free it when all came back. */
void iscsi_session_end(struct iscsi_session *session, const char *reason);
struct iscsi_session *iscsi_session_find(struct iscsi_server *server, const char *initiator,
					 const uint8_t isid[6], const struct iscsi_target *target,
					 uint16_t portal_group);
/* Frees the session once nothing of it is left. */
void iscsi_session_check_end(struct iscsi_session *session);

/* cmd.c: the pool of command structures */
struct iscsi_cmd *iscsi_cmd_new(struct iscsi_session *session, const struct iscsi_bhs *bhs,
				unsigned keep);
/* Free it once nobody holds it: not in a task set, not in the queue, not coming in. */
void iscsi_cmd_over(struct iscsi_cmd *cmd);
void iscsi_cmd_release(struct iscsi_cmd *cmd);
/* Its final PDU is being made: its number is free for the MaxCmdSN in it. */
void iscsi_cmd_answered(struct iscsi_cmd *cmd);
struct iscsi_cmd *iscsi_cmd_find(struct iscsi_session *session, uint32_t itt);
void iscsi_cmd_hash(struct iscsi_cmd *cmd);
/* Put it in line for sending. */
void iscsi_cmd_answer(struct iscsi_cmd *cmd);

/* admission.c */
/* Bytes for cmd->task.data: now, or false. */
bool iscsi_admit_now(struct iscsi_cmd *cmd, uint64_t bytes);
/* Now, or later through iscsi_command_granted(). */
bool iscsi_admit(struct iscsi_cmd *cmd, uint64_t bytes);
/* Units that CMD could ever be granted. */
unsigned iscsi_admit_most(const struct iscsi_cmd *cmd);
void iscsi_admit_cancel(struct iscsi_cmd *cmd);
void iscsi_admit_give(struct iscsi_cmd *cmd);
/* CMD's buffers are LIST now and no longer count as its; to be returned. */
void iscsi_admit_detach(struct iscsi_cmd *cmd, struct buf_list *list);
void iscsi_admit_return(struct iscsi_server *server, struct buf_list *list);
void iscsi_admit_init(struct iscsi_server *server);
void iscsi_admit_fini(struct iscsi_server *server);

/* command.c */
void iscsi_command_header(struct iscsi_cmd *cmd, struct iscsi_conn *conn,
			  const struct iscsi_pdu *pdu, struct iscsi_dest *dest);
void iscsi_command_run(struct iscsi_cmd *cmd);
void iscsi_command_granted(struct iscsi_cmd *cmd);
/* It waits for nothing any more but its task's done. */
void iscsi_command_abandon(struct iscsi_cmd *cmd);
/* Data is complete, well or not. */
void iscsi_command_submit(struct iscsi_cmd *cmd);
/* The PDU in it was damaged: as if it had never come. */
void iscsi_command_withdraw(struct iscsi_cmd *cmd);
/* No PDU comes into its buffers any more. */
void iscsi_command_received(struct iscsi_cmd *cmd);

/* data_out_conn.c */
bool iscsi_data_out_header(struct iscsi_conn *conn, const struct iscsi_pdu *pdu,
			   struct iscsi_dest *dest);
void iscsi_data_out_arrived(struct iscsi_conn *conn, bool digest_ok);
/* Data that is still missing: ask, watch the time, or go on. */
void iscsi_data_out_go(struct iscsi_cmd *cmd);
void iscsi_data_out_stop(struct iscsi_cmd *cmd);
bool iscsi_data_out_produce(struct iscsi_cmd *cmd);
void iscsi_data_out_timer(struct env_timer *timer);

/* answer.c: StatSN, and whatever is next to send */
void iscsi_answer(struct iscsi_session *session);
/* Something waits for room in the transmit queue. */
bool iscsi_answers_left(const struct iscsi_session *session);
/* Sequence numbers of a response; NUMBERED: it takes a StatSN. */
void iscsi_stamp(struct iscsi_session *session, struct iscsi_bhs *bhs, bool numbered);

/* data_in.c: true when nothing is left to make */
bool iscsi_scsi_produce(struct iscsi_cmd *cmd);

/* nop.c */
void iscsi_nop_header(struct iscsi_cmd *cmd, const struct iscsi_pdu *pdu, struct iscsi_dest *dest);
void iscsi_nop_run(struct iscsi_cmd *cmd);
bool iscsi_nop_produce(struct iscsi_cmd *cmd);
void iscsi_nop_in(struct iscsi_session *session, bool ping);
void iscsi_nop_timer(struct env_timer *timer);
void iscsi_nop_start(struct iscsi_session *session);

/* tmf.c */
void iscsi_tmf_run(struct iscsi_cmd *cmd);
bool iscsi_tmf_produce(struct iscsi_cmd *cmd);

/* text_conn.c */
void iscsi_text_run(struct iscsi_cmd *cmd);
bool iscsi_text_produce(struct iscsi_cmd *cmd);
void iscsi_text_end(struct iscsi_session *session);

/* logout.c */
void iscsi_logout_run(struct iscsi_cmd *cmd);
bool iscsi_logout_produce(struct iscsi_cmd *cmd);

/* reject.c */
/* False: no room even for that; the connection is closed. */
bool iscsi_reject(struct iscsi_session *session, const struct iscsi_bhs *bhs,
		  enum iscsi_reject_reason reason);
bool iscsi_reject_produce(struct iscsi_cmd *cmd);

/* async.c */
void iscsi_async(struct iscsi_session *session, uint8_t event, uint16_t seconds);
void iscsi_async_produce(struct iscsi_session *session);

/* portal.c */
struct iscsi_portal *iscsi_portal_find(struct iscsi_server *server, const char *name);
void iscsi_portal_free(struct iscsi_portal *portal);

/* target.c */
struct iscsi_target *iscsi_target_find(const struct iscsi_server *server, const char *name);
bool iscsi_target_admits(const struct iscsi_target *target, const char *portal,
			 const char *initiator);
bool iscsi_target_on_portal(const struct iscsi_target *target, const char *portal);
/* A session of it was freed. */
void iscsi_target_put(struct iscsi_target *target);
void iscsi_traffic_add(struct iscsi_traffic *into, const struct iscsi_traffic *from);
void iscsi_target_free(struct iscsi_target *target);

/* server.c */
void iscsi_server_check_stopped(struct iscsi_server *server);

#endif
