/* SPDX-License-Identifier: MIT */
/*
 * Targets: names, who may enter through which portal, timers.
 *
 * Invariants:
 * 1. The list is in name order: discovery goes through it by name.
 * 2. A removed target is found by nobody; it lives until its last session does.
 *
 * Not here: the device behind it (target/scsi), what a list allows (core/conf.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "target/iscsi/iscsi_int.h"
#include "target/iscsi/name.h"

static void strings_free(struct conf_strings *strings)
{
	unsigned i;

	for (i = 0; i < strings->count; i++)
		free(strings->items[i]);
	free(strings->items);
	*strings = (struct conf_strings){ 0 };
}

static int strings_copy(struct conf_strings *to, const char *const *from, unsigned count)
{
	*to = (struct conf_strings){ 0 };
	to->items = calloc(count ? count : 1, sizeof(*to->items));
	if (!to->items)
		return -ENOMEM;
	for (; to->count < count; to->count++) {
		to->items[to->count] = strdup(from[to->count]);
		if (!to->items[to->count]) {
			strings_free(to);
			return -ENOMEM;
		}
	}
	return 0;
}

struct iscsi_target *iscsi_target_find(const struct iscsi_server *server, const char *name)
{
	struct iscsi_target *target;

	TAILQ_FOREACH(target, &server->targets, link)
		if (!target->removed && !strcmp(target->name, name))
			return target;
	return NULL;
}

bool iscsi_target_on_portal(const struct iscsi_target *target, const char *portal)
{
	unsigned i;

	for (i = 0; i < target->portals.count; i++)
		if (!strcmp(target->portals.items[i], portal))
			return true;
	return false;
}

bool iscsi_target_admits(const struct iscsi_target *target, const char *portal,
			 const char *initiator)
{
	return iscsi_target_on_portal(target, portal) && conf_allows(&target->allow, initiator);
}

/* All or nothing. */
static int configure(struct iscsi_target *target, const struct iscsi_target_conf *conf)
{
	struct conf_strings portals, allow;
	int err = strings_copy(&portals, conf->portals, conf->portal_count);

	if (err)
		return err;
	err = strings_copy(&allow, conf->allow, conf->allow_count);
	if (err) {
		strings_free(&portals);
		return err;
	}
	strings_free(&target->portals);
	strings_free(&target->allow);
	target->portals = portals;
	target->allow = allow;
	target->nop_interval_ns = conf->nop_interval_ns;
	target->nop_timeout_ns = conf->nop_timeout_ns;
	target->data_out_timeout_ns = conf->data_out_timeout_ns;
	return 0;
}

int iscsi_target_add(struct iscsi_server *server, const struct iscsi_target_conf *conf)
{
	struct iscsi_target *target, *after = NULL, *other;
	int err;

	target = calloc(1, sizeof(*target));
	if (!target)
		return -ENOMEM;
	target->server = server;
	target->device = conf->device;
	if (!iscsi_name_normalise(conf->name, target->name)) {
		free(target);
		return -EINVAL;
	}
	if (iscsi_target_find(server, target->name)) {
		free(target);
		return -EEXIST;
	}
	err = configure(target, conf);
	if (err) {
		free(target);
		return err;
	}
	TAILQ_FOREACH(other, &server->targets, link)
		if (strcmp(other->name, target->name) < 0)
			after = other;
	if (after)
		TAILQ_INSERT_AFTER(&server->targets, after, target, link);
	else
		TAILQ_INSERT_HEAD(&server->targets, target, link);
	return 0;
}

int iscsi_target_change(struct iscsi_server *server, const struct iscsi_target_conf *conf)
{
	char name[ISCSI_NAME_MAX + 1];
	struct iscsi_session *session, *next;
	struct iscsi_target *target;
	int err;

	if (!iscsi_name_normalise(conf->name, name))
		return -EINVAL;
	target = iscsi_target_find(server, name);
	if (!target)
		return -ENOENT;
	err = configure(target, conf);
	if (err)
		return err;
	TAILQ_FOREACH_SAFE(session, &server->sessions, link, next) {
		if (session->target != target || !session->conn)
			continue;
		if (!iscsi_target_admits(target, session->portal_name, session->initiator))
			iscsi_conn_close(session->conn, "not allowed any more");
		else if (session->state == ISCSI_SESSION_UP && !session->nop_out)
			iscsi_nop_start(session);
	}
	return 0;
}

void iscsi_target_free(struct iscsi_target *target)
{
	assert(!target->sessions);
	TAILQ_REMOVE(&target->server->targets, target, link);
	strings_free(&target->portals);
	strings_free(&target->allow);
	free(target);
}

static void removed_if_idle(struct iscsi_target *target)
{
	void (*done)(void *arg) = target->removed_done;
	void *arg = target->removed_arg;

	if (!target->removed || target->sessions)
		return;
	iscsi_target_free(target);
	if (done)
		done(arg);
}

void iscsi_target_put(struct iscsi_target *target)
{
	assert(target->sessions);
	target->sessions--;
	removed_if_idle(target);
}

void iscsi_target_remove(struct iscsi_server *server, const char *name, void (*done)(void *arg),
			 void *arg)
{
	struct iscsi_session *session, *next;
	char normal[ISCSI_NAME_MAX + 1];
	struct iscsi_target *target = NULL;

	if (iscsi_name_normalise(name, normal))
		target = iscsi_target_find(server, normal);
	if (!target) {
		if (done)
			done(arg);
		return;
	}
	target->removed = true;
	target->removed_done = done;
	target->removed_arg = arg;
	TAILQ_FOREACH_SAFE(session, &server->sessions, link, next)
		if (session->target == target && session->conn)
			iscsi_conn_close(session->conn, "target removed");
	removed_if_idle(target);
}

unsigned iscsi_target_sessions(const struct iscsi_server *server, const char *name)
{
	const struct iscsi_target *target = iscsi_target_find(server, name);

	return target ? target->sessions : 0;
}

void iscsi_traffic_add(struct iscsi_traffic *into, const struct iscsi_traffic *from)
{
	into->read_ops += from->read_ops;
	into->write_ops += from->write_ops;
	into->other_ops += from->other_ops;
	into->read_bytes += from->read_bytes;
	into->write_bytes += from->write_bytes;
}

void iscsi_target_traffic(const struct iscsi_server *server, const char *name,
			  struct iscsi_traffic *sum)
{
	const struct iscsi_target *target = iscsi_target_find(server, name);
	const struct iscsi_session *session;

	*sum = (struct iscsi_traffic){ 0 };
	if (!target)
		return;
	*sum = target->ended;
	TAILQ_FOREACH(session, &server->sessions, link)
		if (session->target == target)
			iscsi_traffic_add(sum, &session->traffic);
}
