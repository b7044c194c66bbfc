/* SPDX-License-Identifier: MIT */
/*
 * Sessions for people: the rows of session.list, and ending one by its number.
 *
 * Invariants:
 * 1. Reading changes nothing: a rate that is shown is not begun anew.
 * 2. An id is a string, never used twice while the process lives.
 *
 * Not here: counting (command.c), the method and its columns (target/lists.c, ctl).
 *
 * Spec: man/yoke-rpc.7, session.list.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "target/iscsi/iscsi_int.h"

static const char *const state_names[] = {
	[ISCSI_SESSION_LOGIN] = "login",
	[ISCSI_SESSION_UP] = "up",
	[ISCSI_SESSION_LOGOUT] = "logout",
	[ISCSI_SESSION_ENDING] = "ending",
};

static const char *yes_no(bool value)
{
	return value ? "Yes" : "No";
}

static const char *digest(bool value)
{
	return value ? "CRC32C" : "None";
}

static json_t *keys_row(const struct iscsi_params *p)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "HeaderDigest",
			 digest(p->header_digest), "DataDigest", digest(p->data_digest),
			 "InitialR2T", yes_no(p->initial_r2t), "ImmediateData",
			 yes_no(p->immediate_data), "MaxRecvDataSegmentLength_target",
			 (json_int_t)p->max_recv, "MaxRecvDataSegmentLength_initiator",
			 (json_int_t)p->max_send, "MaxBurstLength", (json_int_t)p->max_burst,
			 "FirstBurstLength", (json_int_t)p->first_burst, "MaxOutstandingR2T",
			 (json_int_t)p->max_outstanding_r2t, "iSCSIProtocolLevel",
			 (json_int_t)p->protocol_level);
}

static json_t *errors_row(const struct iscsi_session_errors *e)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "data_digest",
			 (json_int_t)e->data_digest, "protocol", (json_int_t)e->protocol, "rejects",
			 (json_int_t)e->rejects, "check_conditions",
			 (json_int_t)e->check_conditions, "aborted", (json_int_t)e->aborted,
			 "task_set_full", (json_int_t)e->no_room);
}

/* The rate of the last whole interval, or of the running one once it is long enough. */
static void rates(const struct iscsi_session *session, double *iops, double *mib_s)
{
	const struct iscsi_rate *rate = &session->rate;
	uint64_t now = env_now_ns(session->server->env), span = now - rate->start_ns;

	*iops = rate->iops;
	*mib_s = rate->mib_s;
	if (span >= NS_PER_S || !rate->interval_end_ns) {
		if (!span)
			span = 1;
		*iops = (double)rate->ops * 1e9 / (double)span;
		*mib_s = (double)rate->bytes / (double)MIB * 1e9 / (double)span;
	}
}

static unsigned in_flight(const struct iscsi_session *session)
{
	return session->nexus ? scsi_nexus_tasks(session->nexus) : 0;
}

static json_t *row(const struct iscsi_session *session)
{
	const struct iscsi_traffic *t = &session->traffic;
	const struct iscsi_conn *conn = session->conn;
	time_t since = (time_t)session->since_s;
	char id[24], isid[13], when[32];
	double iops, mib_s;
	json_t *object;
	struct tm tm;

	snprintf(id, sizeof(id), "%" PRIu64, session->id);
	iscsi_isid_text(session->isid, isid);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&since, &tm));
	rates(session, &iops, &mib_s);
	object = json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:s, s:s, s:I, s:s, s:s, s:I}", "id", id,
			   "initiator", session->initiator, "target",
			   session->target ? session->target->name : "", "portal",
			   session->portal_name, "portal_group", (json_int_t)session->portal_group,
			   "local_address", conn ? conn->local : "", "remote_address",
			   conn ? conn->remote : "", "isid", isid, "tsih",
			   (json_int_t)session->tsih, "state", state_names[session->state],
			   "since_utc", when, "in_flight", (json_int_t)in_flight(session));
	if (!object)
		return NULL;
	json_object_set_new(object, "type",
			    json_string(session->discovery ? "discovery" : "normal"));
	json_object_set_new(object, "exp_cmdsn", json_integer(session->window.exp));
	json_object_set_new(object, "max_cmdsn", json_integer(iscsi_window_max(&session->window)));
	json_object_set_new(object, "cmdsn_window", json_integer(session->window.size));
	json_object_set_new(object, "read_ops", json_integer((json_int_t)t->read_ops));
	json_object_set_new(object, "write_ops", json_integer((json_int_t)t->write_ops));
	json_object_set_new(object, "other_ops", json_integer((json_int_t)t->other_ops));
	json_object_set_new(object, "read_bytes", json_integer((json_int_t)t->read_bytes));
	json_object_set_new(object, "write_bytes", json_integer((json_int_t)t->write_bytes));
	json_object_set_new(object, "iops", json_real(iops));
	json_object_set_new(object, "mib_s", json_real(mib_s));
	json_object_set_new(
		object, "p99_us",
		session->latency ?
			json_real((double)hist_percentile(session->latency, 99) / 1000.0) :
			json_null());
	json_object_set_new(object, "keys", keys_row(&session->params));
	json_object_set_new(object, "errors", errors_row(&session->errors));
	return object;
}

json_t *iscsi_session_list(struct iscsi_server *server, uint64_t *after, unsigned max)
{
	const struct iscsi_session *session;
	json_t *rows = json_array();
	uint64_t last = *after;

	TAILQ_FOREACH(session, &server->sessions, link) {
		if (session->id <= last)
			continue;
		if (json_array_size(rows) == max) {
			*after = last;
			return rows;
		}
		json_array_append_new(rows, row(session));
		last = session->id;
	}
	*after = 0;
	return rows;
}

int iscsi_session_kill(struct iscsi_server *server, uint64_t id, const char *reason)
{
	struct iscsi_session *session;

	TAILQ_FOREACH(session, &server->sessions, link) {
		if (session->id != id || !session->conn)
			continue;
		iscsi_conn_close(session->conn, reason);
		return 0;
	}
	return -ENOENT;
}
