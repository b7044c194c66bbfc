/* SPDX-License-Identifier: MIT */
/*
 * The iSCSI front for those who set it up: portals, targets, sessions.
 *
 * One server a process. It owns its portals, targets and sessions; names and
 * lists handed in are copied.
 *
 * Spec: RFC 7143, RFC 7144.
 */
#ifndef TARGET_ISCSI_ISCSI_H
#define TARGET_ISCSI_ISCSI_H

#include <jansson.h>
#include <netinet/in.h>

#include "core/buf.h"
#include "core/shard.h"
#include "target/scsi/scsi.h"

struct iscsi_server;
struct iscsi_portal;
struct iscsi_target;

struct iscsi_limits {
	unsigned sessions_max;
	unsigned connections_max; /* not logged in yet included */
	uint64_t login_timeout_ns;
	unsigned login_exchanges_max;
	unsigned commands_per_session; /* at most this many outstanding */
};

struct iscsi_server *iscsi_server_new(struct shard *shard, struct buf_pool *buffers,
				      const struct iscsi_limits *limits);
void iscsi_server_set_limits(struct iscsi_server *server, const struct iscsi_limits *limits);
/*
 * Stop: no new connections, sessions logged out (async message, then closed),
 * their tasks drained; DONE runs when nothing is left.
 */
void iscsi_server_stop(struct iscsi_server *server, void (*done)(void *arg), void *arg);
/* After DONE, or before anything was added. */
void iscsi_server_free(struct iscsi_server *server);

struct iscsi_address {
	const char *text; /* as shown in discovery when not a wildcard: "192.0.2.1:3260" */
	struct sockaddr_storage addr;
	socklen_t addr_len;
};

/*
 * Listen. 0, or a negative errno and TEXT ("portal "left": 127.0.0.1:3260 in
 * use by another program. Stop it or change the portal"; iscsi_port_user() knows
 * which). All addresses or none.
 * A portal on a wildcard address is shown in discovery by the address that the
 * connection came in on.
 */
int iscsi_portal_add(struct iscsi_server *server, const char *name, uint16_t group,
		     const struct iscsi_address *listen, unsigned listen_count, char *text,
		     size_t text_size);
/* Who listens on ADDR's port: "tgtd, pid 811"; false: not found out. Blocks: off the loop. */
bool iscsi_port_user(const struct sockaddr_storage *addr, char *text, size_t text_size);
/* Closes the listeners and the sessions that came through it; no target names it any more. */
void iscsi_portal_remove(struct iscsi_server *server, const char *name);

struct iscsi_target_conf {
	const char *name;
	struct scsi_device *device;
	const char *const *portals;
	unsigned portal_count;
	const char *const *allow; /* "*", names, prefixes with a trailing * */
	unsigned allow_count;
	uint64_t nop_interval_ns;
	uint64_t nop_timeout_ns;
	uint64_t data_out_timeout_ns;
};

int iscsi_target_add(struct iscsi_server *server, const struct iscsi_target_conf *conf);
/*
 * Change all but name and device. Sessions that would not get in any more are
 * closed; the others do not notice.
 */
int iscsi_target_change(struct iscsi_server *server, const struct iscsi_target_conf *conf);
/* Its sessions are closed; DONE runs once their tasks ended and the device has no nexus. */
void iscsi_target_remove(struct iscsi_server *server, const char *name, void (*done)(void *arg),
			 void *arg);

/*
 * Rows for session.list, as man/yoke-rpc.7 describes them; owned by the caller. At most MAX of
 * those with an id above *AFTER, in the order of their ids; *AFTER becomes the last one's, or 0
 * if there are no more.
 */
json_t *iscsi_session_list(struct iscsi_server *server, uint64_t *after, unsigned max);
/* Sessions of the target NAME. */
unsigned iscsi_target_sessions(const struct iscsi_server *server, const char *name);
/* What commands of sessions moved; each is counted before its answer is sent. */
struct iscsi_traffic {
	uint64_t read_ops, write_ops, other_ops;
	uint64_t read_bytes, write_bytes;
};
/* Of all sessions that the target NAME has and had. */
void iscsi_target_traffic(const struct iscsi_server *server, const char *name,
			  struct iscsi_traffic *sum);
/* Close a session by its id (the 64-bit number of its row). -ENOENT. */
int iscsi_session_kill(struct iscsi_server *server, uint64_t id, const char *reason);

struct iscsi_stats {
	unsigned connections;
	unsigned sessions;
	uint64_t logins, logins_refused;
	uint64_t pdus_in, pdus_out;
	uint64_t payload_copies; /* times payload was moved in user space */
	uint64_t syscalls;
};
void iscsi_server_stats(const struct iscsi_server *server, struct iscsi_stats *stats);

#endif
