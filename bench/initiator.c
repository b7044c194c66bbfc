/* SPDX-License-Identifier: MIT */
/*
 * A session of libiscsi on a libev loop.
 *
 * Invariants:
 *  1. A command is on `cmds` from initiator_rw() to done(), and done() is called exactly once.
 *     What libiscsi says of it while a session goes down is ignored: it forgets some, so the
 *     list alone decides.
 *  2. A context is destroyed only while libiscsi is not on the stack; what a callback finds out
 *     is kept in `broken` until then.
 *  3. The socket is written once a turn of the loop (flush), and what epoll waits for changes
 *     only when it must.
 *  4. libiscsi never reconnects by itself. It would keep commands, and their time, to itself.
 *
 * Not here: which session takes a command, when to log in again (session.c); discovery
 * (discover.c).
 *
 * Spec: RFC 7143; SPC-4, SBC-3 for the CDBs.
 */
#include "bench/initiator.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "core/wire.h"

#define REDIRECTS_MAX 4
#define READY_TRIES 16 /* unit attentions of a LUN that are used up before it counts as broken */

uint64_t initiator_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void note(struct initiator *in, const char *format, ...) PRINTF_LIKE(2, 3);
static void note(struct initiator *in, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(in->error, sizeof(in->error), format, args);
	va_end(args);
}

static void mark_dirty(struct initiator *in)
{
	if (in->dirty)
		return;
	in->dirty = true;
	SLIST_INSERT_HEAD(&in->loop->dirty, in, dirty_link);
}

/* Gives every command back; their owners may send them elsewhere at once. */
static void lose_commands(struct initiator *in)
{
	struct initiator_cmd *cmd;

	in->unsent = NULL;
	while ((cmd = TAILQ_FIRST(&in->cmds))) {
		TAILQ_REMOVE(&in->cmds, cmd, link);
		free(cmd->task.datain.data);
		cmd->task.datain.data = NULL;
		cmd->initiator = NULL;
		cmd->done(cmd, INITIATOR_LOST);
	}
}

static void drop(struct initiator *in)
{
	assert(!in->in_service);
	ev_io_stop(in->loop->ev, &in->io);
	if (in->dirty)
		SLIST_REMOVE(&in->loop->dirty, in, initiator, dirty_link);
	in->dirty = in->broken = false;
	in->fresh = 0;
	in->state = INITIATOR_DOWN;
	tap_close(in->tap);
	in->tap = NULL;
	if (in->iscsi) {
		in->in_service = true; /* its callbacks are to do nothing */
		iscsi_destroy_context(in->iscsi);
		in->in_service = false;
	}
	in->iscsi = NULL;
}

void initiator_close(struct initiator *in, const char *reason)
{
	char text[sizeof(in->error)];

	if (in->state == INITIATOR_DOWN)
		return;
	snprintf(text, sizeof(text), "%s", reason);
	drop(in);
	in->ops->down(in, text);
	lose_commands(in);
}

void initiator_break(struct initiator *in, const char *reason)
{
	if (in->state == INITIATOR_DOWN || in->broken)
		return;
	if (reason != in->error)
		note(in, "%s", reason);
	in->broken = true;
	mark_dirty(in);
}

/* Waits for what libiscsi wants now. */
static void watch(struct initiator *in)
{
	int events = iscsi_which_events(in->iscsi);
	int wanted = (events & POLLIN ? EV_READ : 0) | (events & POLLOUT ? EV_WRITE : 0);

	if (wanted == in->events && ev_is_active(&in->io))
		return;
	ev_io_stop(in->loop->ev, &in->io);
	ev_io_set(&in->io, iscsi_get_fd(in->iscsi), wanted);
	ev_io_start(in->loop->ev, &in->io);
	in->events = wanted;
}

static void connect_portal(struct initiator *in);

/* What libiscsi says, without where in it. */
static const char *plain(const char *text)
{
	static const char *const prefixes[] = { "iscsi_service: socket error ",
						"Failed to log in to target. Status: " };

	for (unsigned i = 0; i < ARRAY_LEN(prefixes); i++)
		if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
			return text + strlen(prefixes[i]);
	return text;
}

/* Libiscsi's text is of the last error, which may be long ago: a closed socket has none. */
static const char *why_lost(const struct initiator *in)
{
	char byte;

	if (recv(iscsi_get_fd(in->iscsi), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		return "closed by the target";
	return plain(iscsi_get_error(in->iscsi));
}

/* Hands EVENTS to libiscsi, then does what its callbacks asked for. False: it is not up. */
static bool serve(struct initiator *in, int events)
{
	int rc;

	in->in_service = true;
	rc = iscsi_service(in->iscsi, events);
	in->in_service = false;
	if (rc == 0 && !in->broken)
		return true;
	if (!in->broken)
		note(in, "%s", why_lost(in));
	if (in->redirected) {
		drop(in);
		connect_portal(in);
		return false;
	}
	initiator_close(in, in->error);
	return false;
}

static void stamp_unsent(struct initiator *in)
{
	struct initiator_cmd *cmd = in->unsent;
	unsigned count = 0;
	uint64_t now;

	if (!cmd)
		return;
	now = initiator_now();
	for (; cmd; cmd = TAILQ_NEXT(cmd, link), count++)
		cmd->sent_ns = now;
	in->unsent = NULL;
	if (in->ops->sent && in->state == INITIATOR_UP)
		in->ops->sent(in, count, now);
}

/* Sends what was queued in this turn; what is left over waits for the window or the socket. */
static void flush(struct initiator *in)
{
	unsigned fresh = in->fresh;
	int left;

	in->fresh = 0;
	stamp_unsent(in);
	if (!serve(in, POLLOUT))
		return;
	watch(in);
	left = iscsi_out_queue_length(in->iscsi);
	if (left > 0 && !(in->events & EV_WRITE))
		in->stalls += min_u64((uint64_t)left, fresh);
}

static void turn_ends(struct ev_loop *ev, struct ev_prepare *prepare, int revents)
{
	struct initiator_loop *loop = container_of(prepare, struct initiator_loop, prepare);
	struct initiator *in;

	(void)ev, (void)revents;
	while ((in = SLIST_FIRST(&loop->dirty))) {
		SLIST_REMOVE_HEAD(&loop->dirty, dirty_link);
		in->dirty = false;
		if (in->broken)
			initiator_close(in, in->error);
		else
			flush(in);
	}
}

static void socket_ready(struct ev_loop *ev, struct ev_io *io, int revents)
{
	struct initiator *in = container_of(io, struct initiator, io);

	(void)ev;
	if (in->state == INITIATOR_CONNECTING)
		revents &= EV_WRITE;
	if ((revents & EV_READ) && !serve(in, POLLIN))
		return;
	if (in->state == INITIATOR_CONNECTING) {
		if (revents && !serve(in, POLLOUT))
			return;
		watch(in);
	} else {
		mark_dirty(in);
	}
}

static void send_ready(struct initiator *in);

static void ready_done(struct initiator_cmd *cmd, enum initiator_outcome outcome)
{
	struct initiator *in = container_of(cmd, struct initiator, ready);

	if (outcome == INITIATOR_LOST)
		return;
	if (initiator_again(outcome)) {
		if (++in->ready_tries > READY_TRIES) {
			initiator_break(in, in->error);
			return;
		}
	} else {
		/* Not ready, reserved: the commands will say so better. */
		in->ready_lun++;
		in->ready_tries = 0;
	}
	send_ready(in);
}

/* TEST UNIT READY of one LUN after the other, until each has told what it had to tell. */
static void send_ready(struct initiator *in)
{
	static const uint8_t test_unit_ready[6];

	if (in->ready_lun == in->conf.lun_count) {
		in->state = INITIATOR_UP;
		in->ops->up(in);
		return;
	}
	initiator_cdb(in, &in->ready, in->conf.luns[in->ready_lun], test_unit_ready,
		      sizeof(test_unit_ready), NULL, 0);
}

static void tap_wrong(void *arg, const char *text)
{
	struct initiator *in = arg;

	in->ops->wrong(in, text);
}

static void tap(struct initiator *in)
{
	ev_io_stop(in->loop->ev, &in->io);
	in->tap = tap_open(in->loop->ev, iscsi_get_fd(in->iscsi), in->conf.header_digest, tap_wrong,
			   in);
	if (in->tap == NULL)
		initiator_break(in, "no memory or descriptors to look at what the target sends");
}

static void login_done(struct iscsi_context *iscsi, int status, void *data, void *arg)
{
	struct initiator *in = arg;
	const char *elsewhere = iscsi_get_target_address(iscsi);

	(void)data;
	if (in->state != INITIATOR_LOGIN)
		return;
	if (status == SCSI_STATUS_REDIRECT && *elsewhere && in->redirects < REDIRECTS_MAX) {
		snprintf(in->portal, sizeof(in->portal), "%s", elsewhere);
		in->redirects++;
		in->redirected = in->broken = true;
		return;
	}
	if (status != SCSI_STATUS_GOOD) {
		note(in, "login refused: %s", plain(iscsi_get_error(iscsi)));
		initiator_break(in, in->error);
		return;
	}
	if (in->conf.tapped)
		tap(in);
	in->state = INITIATOR_READYING;
	in->ready_lun = in->ready_tries = 0;
	send_ready(in);
}

static void connect_done(struct iscsi_context *iscsi, int status, void *data, void *arg)
{
	struct initiator *in = arg;

	(void)data;
	if (in->state != INITIATOR_CONNECTING)
		return;
	in->state = INITIATOR_LOGIN;
	if (status != SCSI_STATUS_GOOD || iscsi_login_async(iscsi, login_done, in) != 0)
		initiator_break(in, plain(iscsi_get_error(iscsi)));
}

static void connect_portal(struct initiator *in)
{
	const struct initiator_conf *conf = &in->conf;

	in->state = INITIATOR_CONNECTING;
	in->redirected = false;
	in->iscsi = iscsi_create_context(conf->name);
	if (!in->iscsi) {
		initiator_break(in, "no memory for a session");
		return;
	}
	iscsi_set_noautoreconnect(in->iscsi, 1);
	iscsi_set_session_type(in->iscsi, ISCSI_SESSION_NORMAL);
	iscsi_set_targetname(in->iscsi, conf->target);
	iscsi_set_isid_random(in->iscsi, conf->run, conf->qualifier);
	iscsi_set_header_digest(in->iscsi, conf->header_digest ? ISCSI_HEADER_DIGEST_CRC32C :
								 ISCSI_HEADER_DIGEST_NONE);
	if (*conf->chap->user)
		iscsi_set_initiator_username_pwd(in->iscsi, conf->chap->user, conf->chap->secret);
	if (*conf->chap->mutual_user)
		iscsi_set_target_username_pwd(in->iscsi, conf->chap->mutual_user,
					      conf->chap->mutual_secret);
	if (iscsi_connect_async(in->iscsi, in->portal, connect_done, in) != 0) {
		initiator_break(in, iscsi_get_error(in->iscsi));
		return;
	}
	watch(in);
}

void initiator_open(struct initiator *in)
{
	assert(in->state == INITIATOR_DOWN);
	snprintf(in->portal, sizeof(in->portal), "%s", in->conf.portal);
	in->redirects = 0;
	connect_portal(in);
}

static void logout_done(struct iscsi_context *iscsi, int status, void *data, void *arg)
{
	(void)iscsi, (void)status, (void)data;
	initiator_break(arg, "logged out");
}

void initiator_leave(struct initiator *in)
{
	if (in->state != INITIATOR_UP) {
		initiator_break(in, "logged out");
		return;
	}
	in->state = INITIATOR_LEAVING;
	if (iscsi_logout_async(in->iscsi, logout_done, in) != 0)
		initiator_break(in, iscsi_get_error(in->iscsi));
	mark_dirty(in);
}

/* What a logical unit says while it, or this path to it, is in transition. */
static bool comes_later(const struct scsi_sense *sense)
{
	return sense->key == SCSI_SENSE_NOT_READY &&
	       (sense->ascq == 0x0401 || (sense->ascq >= 0x040a && sense->ascq <= 0x040c));
}

static enum initiator_outcome judge(struct initiator *in, const struct initiator_cmd *cmd,
				    int status)
{
	const struct scsi_task *task = &cmd->task;
	static const char *const keys[16] = {
		"no sense",       "recovered error", "not ready",      "medium error",
		"hardware error", "illegal request", "unit attention", "data protect",
		"blank check",    "vendor specific", "copy aborted",   "aborted command",
		"reserved",       "volume overflow", "miscompare",     "completed",
	};

	switch (status) {
	case SCSI_STATUS_GOOD:
		if (!cmd->exact || task->residual_status == SCSI_RESIDUAL_NO_RESIDUAL)
			return INITIATOR_GOOD;
		note(in, "GOOD, but %zu bytes of data too %s", task->residual,
		     task->residual_status == SCSI_RESIDUAL_UNDERFLOW ? "few" : "many");
		return INITIATOR_FAILED;
	case SCSI_STATUS_BUSY:
	case SCSI_STATUS_TASK_SET_FULL:
		note(in, "%s", status == SCSI_STATUS_BUSY ? "BUSY" : "TASK SET FULL");
		return INITIATOR_BUSY;
	case SCSI_STATUS_CHECK_CONDITION:
		note(in, "%s %02x/%02x", keys[task->sense.key & 15],
		     (unsigned)task->sense.ascq >> 8, (unsigned)task->sense.ascq & 0xff);
		if (task->sense.key == SCSI_SENSE_UNIT_ATTENTION)
			return INITIATOR_ATTENTION;
		return comes_later(&task->sense) ? INITIATOR_TRANSIT : INITIATOR_FAILED;
	case SCSI_STATUS_RESERVATION_CONFLICT:
		note(in, "RESERVATION CONFLICT");
		return INITIATOR_FAILED;
	default:
		note(in, "%s", iscsi_get_error(in->iscsi));
		return INITIATOR_FAILED;
	}
}

/* Libiscsi's answer to a command. */
static void command_done(struct iscsi_context *iscsi, int status, void *data, void *arg)
{
	struct initiator_cmd *cmd = arg;
	struct initiator *in = cmd->initiator;
	enum initiator_outcome outcome;

	(void)iscsi, (void)data;
	if (!in || in->state == INITIATOR_DOWN || in->broken)
		return;
	if (status == SCSI_STATUS_CANCELLED) {
		initiator_break(in, why_lost(in));
		return;
	}
	outcome = judge(in, cmd, status);
	if (cmd == in->unsent)
		in->unsent = TAILQ_NEXT(cmd, link);
	TAILQ_REMOVE(&in->cmds, cmd, link);
	free(cmd->task.datain.data); /* sense data */
	cmd->task.datain.data = NULL;
	cmd->initiator = NULL;
	cmd->done(cmd, outcome);
}

/* cmd->task is set. */
static bool queue(struct initiator *in, struct initiator_cmd *cmd, unsigned lun)
{
	/* Flat space addressing where one byte is not enough, which libiscsi leaves to us. */
	int number = (int)(lun < 256 ? lun : lun | 0x4000);

	if (in->broken || (in->state != INITIATOR_UP && in->state != INITIATOR_READYING))
		return false;
	if (iscsi_scsi_command_async(in->iscsi, number, &cmd->task, command_done, NULL, cmd) != 0) {
		initiator_break(in, iscsi_get_error(in->iscsi));
		return false;
	}
	cmd->initiator = in;
	cmd->sent_ns = 0;
	TAILQ_INSERT_TAIL(&in->cmds, cmd, link);
	if (!in->unsent)
		in->unsent = cmd;
	in->fresh++;
	mark_dirty(in);
	return true;
}

/* Our own task in place of one of libiscsi's, which would be allocated and freed each time. */
static void set_task(struct initiator_cmd *cmd, const uint8_t *cdb, unsigned cdb_bytes,
		     enum scsi_xfer_dir dir, void *buf, uint32_t length)
{
	memset(&cmd->task, 0, sizeof(cmd->task));
	cmd->exact = false;
	memcpy(cmd->task.cdb, cdb, cdb_bytes);
	cmd->task.cdb_size = (int)cdb_bytes;
	cmd->task.xfer_dir = length ? (int)dir : SCSI_XFER_NONE;
	cmd->task.expxferlen = (int)length;
	cmd->iov = (struct scsi_iovec){ .iov_base = buf, .iov_len = length };
	if (length && dir == SCSI_XFER_READ)
		scsi_task_set_iov_in(&cmd->task, &cmd->iov, 1);
	else if (length)
		scsi_task_set_iov_out(&cmd->task, &cmd->iov, 1);
}

bool initiator_rw(struct initiator *in, struct initiator_cmd *cmd, unsigned lun, bool write,
		  uint64_t lba, uint32_t block_bytes, void *buf, uint32_t length)
{
	uint32_t blocks = length / block_bytes;
	uint8_t cdb[16] = { 0 };

	if (lba + blocks <= UINT32_MAX && blocks <= UINT16_MAX) {
		cdb[0] = write ? SCSI_OPCODE_WRITE10 : SCSI_OPCODE_READ10;
		put_be32(cdb + 2, (uint32_t)lba);
		put_be16(cdb + 7, (uint16_t)blocks);
		set_task(cmd, cdb, 10, write ? SCSI_XFER_WRITE : SCSI_XFER_READ, buf, length);
	} else {
		cdb[0] = write ? SCSI_OPCODE_WRITE16 : SCSI_OPCODE_READ16;
		put_be64(cdb + 2, lba);
		put_be32(cdb + 10, blocks);
		set_task(cmd, cdb, 16, write ? SCSI_XFER_WRITE : SCSI_XFER_READ, buf, length);
	}
	cmd->exact = true;
	return queue(in, cmd, lun);
}

bool initiator_cdb(struct initiator *in, struct initiator_cmd *cmd, unsigned lun,
		   const uint8_t *cdb, unsigned cdb_bytes, void *buf, uint32_t length)
{
	set_task(cmd, cdb, cdb_bytes, SCSI_XFER_READ, buf, length);
	return queue(in, cmd, lun);
}

const char *initiator_error(const struct initiator *in)
{
	return in->error;
}

void initiator_isid(const struct initiator *in, char text[16])
{
	snprintf(text, 16, "80%06x%04x", (unsigned)in->conf.run & 0xffffff,
		 (unsigned)in->conf.qualifier);
}

void initiator_init(struct initiator *in, struct initiator_loop *loop,
		    const struct initiator_conf *conf, const struct initiator_ops *ops)
{
	*in = (struct initiator){ .loop = loop, .conf = *conf, .ops = ops };
	in->ready.done = ready_done;
	TAILQ_INIT(&in->cmds);
	ev_init(&in->io, socket_ready);
}

void initiator_fini(struct initiator *in)
{
	assert(TAILQ_EMPTY(&in->cmds) || in->state == INITIATOR_READYING);
	if (in->state != INITIATOR_DOWN)
		drop(in);
}

void initiator_loop_init(struct initiator_loop *loop, struct ev_loop *ev)
{
	loop->ev = ev;
	SLIST_INIT(&loop->dirty);
	ev_prepare_init(&loop->prepare, turn_ends);
	ev_prepare_start(ev, &loop->prepare);
}

void initiator_loop_fini(struct initiator_loop *loop)
{
	assert(SLIST_EMPTY(&loop->dirty));
	ev_prepare_stop(loop->ev, &loop->prepare);
}
