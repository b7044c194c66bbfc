/* SPDX-License-Identifier: MIT */
/*
 * Applying a configuration: from a file to what runs, at start and at reload.
 *
 *   read (worker) -> compare -> open added stores, one by one -> portals -> targets -> reopen
 *                       |                  |                       |
 *                       +------------------+-----------------------+--> undo, refuse
 *
 * Invariants:
 * 1. Everything that can fail comes before anything a host could notice, the
 *    portals aside; a portal that cannot be had puts the old ones back. So a
 *    bad file changes nothing.
 * 2. What did not change is not touched: its sessions do not notice.
 * 3. The old configuration is freed after the last pointer into it moved.
 *
 * Not here: syntax and cross checks (core/conf.h), what may not change (apply_check.c), LUN maps
 * (export.c).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/event.h"
#include "core/log.h"
#include "target/daemon.h"

#define ARRAYS_LIMIT_NS (2 * NS_PER_S) /* for arrays to be online before hosts may log in */

struct apply {
	struct env_work work;
	struct yoked *yoked;
	bool reload;       /* not the start */
	struct conf *conf; /* the new one; the running one's place once it is in */
	int error;
	char text[512];
	struct store_list opened; /* not yet in yoked->stores */
	unsigned next_backing, next_target, next_lun;
	const struct conf_portal *busy; /* whose port somebody else has */
	struct store *reopening;        /* the one that gets its second try now */
	json_t *changes;
	apply_done_fn *done;
	void *arg;
};

PRINTF_LIKE(3, 4)
static void apply_refuse(struct apply *apply, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(apply->text, sizeof(apply->text), fmt, ap);
	va_end(ap);
	apply->error = error;
}

PRINTF_LIKE(2, 3) static void apply_note(struct apply *apply, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_append_new(apply->changes, json_string(text));
}

/* ---- portals ---- */

static bool portal_equal(const struct conf_portal *a, const struct conf_portal *b)
{
	if (a->group != b->group || a->listen_count != b->listen_count)
		return false;
	for (unsigned i = 0; i < a->listen_count; i++)
		if (strcmp(a->listen[i].text, b->listen[i].text))
			return false;
	return true;
}

static bool portal_stays(const struct conf *other, const struct conf_portal *portal)
{
	const struct conf_portal *same = other ? conf_portal(other, portal->name) : NULL;

	return same && portal_equal(same, portal);
}

static int portal_open(struct yoked *yoked, const struct conf_portal *portal, char *text,
		       size_t text_size)
{
	struct iscsi_address *listen = calloc(portal->listen_count, sizeof(*listen));
	int err;

	if (!listen) {
		snprintf(text, text_size, "out of memory");
		return -ENOMEM;
	}
	for (unsigned i = 0; i < portal->listen_count; i++) {
		listen[i].text = portal->listen[i].text;
		listen[i].addr = portal->listen[i].addr;
		listen[i].addr_len = portal->listen[i].addr_len;
	}
	err = iscsi_portal_add(yoked->iscsi, portal->name, portal->group, listen,
			       portal->listen_count, text, text_size);
	free(listen);
	return err;
}

static void portal_refuse(struct apply *apply, const struct conf *conf,
			  const struct conf_portal *portal, int err, const char *text)
{
	apply_refuse(apply, err, "%s:%d: %s", conf->file, portal->line, text);
	if (err == -EADDRINUSE)
		apply->busy = portal;
}

/*
 * Close what is in FROM only, open what is in TO only. The first that cannot be had refuses
 * the file: false. On the way back, the file refused already, each that can be had is.
 */
static bool portals_move(struct apply *apply, const struct conf *from, const struct conf *to)
{
	struct yoked *yoked = apply->yoked;
	char text[sizeof(apply->text)] = "";

	for (unsigned i = 0; from && i < from->portal_count; i++)
		if (!portal_stays(to, &from->portals[i]))
			iscsi_portal_remove(yoked->iscsi, from->portals[i].name);
	for (unsigned i = 0; to && i < to->portal_count; i++) {
		const struct conf_portal *portal = &to->portals[i];
		int err;

		if (portal_stays(from, portal))
			continue;
		err = portal_open(yoked, portal, text, sizeof(text));
		if (err && !apply->error) {
			portal_refuse(apply, to, portal, err, text);
			return false;
		}
		if (err)
			log_line(LOG_L_ERROR, "apply", portal->name, "portal-not-back",
				 "cause=\"%s\"", text);
	}
	return true;
}

static void apply_portals(struct apply *apply)
{
	struct conf *old = apply->yoked->conf, *new = apply->conf;

	if (!portals_move(apply, old, new)) {
		portals_move(apply, new, old);
		return;
	}
	for (unsigned i = 0; old && i < old->portal_count; i++)
		if (!conf_portal(new, old->portals[i].name))
			apply_note(apply, "portal %s removed", old->portals[i].name);
	for (unsigned i = 0; i < new->portal_count; i++)
		if (!portal_stays(old, &new->portals[i]))
			apply_note(apply, "portal %s %s", new->portals[i].name,
				   old && conf_portal(old, new->portals[i].name) ? "changed" :
										   "added");
}

/* ---- targets ---- */

static void apply_targets(struct apply *apply)
{
	struct yoked *yoked = apply->yoked;
	struct export *export, *next;
	int err, first = 0;

	TAILQ_FOREACH_SAFE(export, &yoked->exports, link, next) {
		if (conf_target(apply->conf, export->name))
			continue;
		apply_note(apply, "target %s removed", export->name);
		export_remove(yoked, export, NULL, NULL);
	}
	/* All of them, whatever fails: none may keep a pointer into the old configuration. */
	for (unsigned i = 0; i < apply->conf->target_count; i++) {
		const struct conf_target *target = &apply->conf->targets[i];

		export = export_find(yoked, target->name);
		err = export ? export_change(yoked, export, apply->conf, target, apply->changes) :
			       export_add(yoked, apply->conf, target, apply->changes);
		if (!first)
			first = err;
	}
	/* Only memory can be short here, and then nothing better can be done than to say so. */
	if (first)
		apply_refuse(apply, first, "%s: half applied: %s. Restart yoked", apply->conf->file,
			     strerror(-first));
}

/* ---- the sequence ---- */

static void apply_set_limits(struct yoked *yoked, const struct conf_node *node)
{
	struct iscsi_limits limits;

	yoked_limits(node, &limits);
	iscsi_server_set_limits(yoked->iscsi, &limits);
}

static void apply_stores_closed(struct apply *apply)
{
	struct store *store, *next;

	TAILQ_FOREACH_SAFE(store, &apply->yoked->stores, link, next) {
		const struct conf_backing *conf =
			store->array ? NULL : conf_backing(apply->conf, store->name);

		if (store->array && store_in_conf(apply->conf, store))
			continue;
		if (conf) {
			store->conf = conf;
			continue;
		}
		if (!store->array) {
			apply_note(apply, "backing %s removed", store->name);
			disks_forget(apply->yoked->disks, store);
		}
		TAILQ_REMOVE(&apply->yoked->stores, store, link);
		store_close(store);
	}
}

static void apply_commit(struct apply *apply)
{
	struct yoked *yoked = apply->yoked;
	struct store *store;

	apply_portals(apply);
	if (apply->error)
		return;
	apply_set_limits(yoked, &apply->conf->node);
	TAILQ_FOREACH(store, &apply->opened, link)
		if (!store->array)
			apply_note(apply, "backing %s added", store->name);
	TAILQ_CONCAT(&yoked->stores, &apply->opened, link);
	apply_targets(apply);
	apply_stores_closed(apply);
	conf_free(yoked->conf);
	yoked->conf = apply->conf;
	apply->conf = NULL;
	yoked->array_wait_ns = yoked->conf->node.array_wait_ns;
	arrays_show(yoked->arrays);
}

/* A start has its own words for how it went. */
static void apply_tell(const struct apply *apply)
{
	char count[16];

	if (!apply->reload)
		return;
	snprintf(count, sizeof(count), "%zu", json_array_size(apply->changes));
	if (apply->error)
		event_emit(EVENT_CONFIG_REFUSED, apply->yoked->conf_path, apply->text);
	else
		event_emit(EVENT_CONFIG_RELOADED, apply->yoked->conf_path, count);
}

static void apply_finish(struct apply *apply)
{
	struct yoked *yoked = apply->yoked;
	struct store *store, *next;

	TAILQ_FOREACH_SAFE(store, &apply->opened, link, next)
		store_close(store);
	conf_free(apply->conf);
	yoked->applying = NULL;
	if (apply->error) {
		snprintf(yoked->conf_refused, sizeof(yoked->conf_refused), "%s", apply->text);
		yoked->conf_refused_s = time(NULL);
	} else {
		yoked->conf_refused[0] = '\0';
		yoked->conf_loaded_s = time(NULL);
	}
	apply_tell(apply);
	apply->done(apply->arg, apply->error, apply->text, apply->changes);
	json_decref(apply->changes);
	free(apply);
	yoked->applied(yoked);
}

/* ---- who has our port: /proc is searched, which blocks ---- */

static void apply_find_user(struct env_work *work)
{
	struct apply *apply = container_of(work, struct apply, work);
	const struct conf_portal *portal = apply->busy;
	char user[128];

	for (unsigned i = 0; i < portal->listen_count; i++) {
		if (!iscsi_port_user(&portal->listen[i].addr, user, sizeof(user)))
			continue;
		apply_refuse(apply, -EADDRINUSE,
			     "%s:%d: portal \"%s\": %s in use by %s. Stop it or change the portal",
			     apply->conf->file, portal->line, portal->name, portal->listen[i].text,
			     user);
		return;
	}
}

static void apply_found_user(struct env_work *work)
{
	apply_finish(container_of(work, struct apply, work));
}

static void apply_refused(struct apply *apply)
{
	if (!apply->busy) {
		apply_finish(apply);
		return;
	}
	apply->work.run = apply_find_user;
	apply->work.done = apply_found_user;
	env_work_submit(apply->yoked->env, &apply->work);
}

/* ---- what had failed gets a second try ---- */

static void apply_reopen_next(struct apply *apply);

static void apply_reopened(void *arg, int error, const char *text)
{
	struct apply *apply = arg;

	if (error)
		apply_note(apply, "backing %s still not usable: %s", apply->reopening->name, text);
	else
		apply_note(apply, "backing %s usable again", apply->reopening->name);
	apply_reopen_next(apply);
}

static void apply_reopen_next(struct apply *apply)
{
	struct store *store = apply->reopening;

	store = store ? TAILQ_NEXT(store, link) : TAILQ_FIRST(&apply->yoked->stores);
	while (store && (store->array || store->blk->state == BLK_ONLINE))
		store = TAILQ_NEXT(store, link);
	apply->reopening = store;
	if (store)
		blk_reopen(store->blk, apply_reopened, apply);
	else
		apply_finish(apply);
}

static void apply_next_store(struct apply *apply);
static void apply_scanned(void *arg);

static void apply_commit_now(struct apply *apply)
{
	apply_commit(apply);
	if (apply->error)
		apply_refused(apply);
	else if (apply->reload)
		arrays_scan(apply->yoked->arrays, apply->yoked->conf, apply_scanned, apply);
	else
		apply_reopen_next(apply);
}

static void apply_settled(void *arg)
{
	struct apply *apply = arg;

	if (apply->reload)
		apply_reopen_next(apply);
	else
		apply_commit_now(apply);
}

static void apply_scanned(void *arg)
{
	struct apply *apply = arg;

	arrays_settle(apply->yoked->arrays, ARRAYS_LIMIT_NS, apply_settled, apply);
}

/* At the start arrays come before hosts do: what they find is there, or said to be coming. */
static void apply_stores_ready(struct apply *apply)
{
	if (apply->error) {
		apply_refused(apply);
	} else if (apply->reload) {
		apply_commit_now(apply);
	} else {
		TAILQ_CONCAT(&apply->yoked->stores, &apply->opened, link);
		apply->yoked->array_wait_ns = apply->conf->node.array_wait_ns;
		arrays_scan(apply->yoked->arrays, apply->conf, apply_scanned, apply);
	}
}

static void apply_next_array(struct apply *apply);

static void apply_array_opened(void *arg, struct store *store, int error, const char *text)
{
	struct apply *apply = arg;

	if (store)
		TAILQ_INSERT_TAIL(&apply->opened, store, link);
	else if (error)
		apply_refuse(apply, error, "%s: %s", apply->conf->file, text);
	apply_next_array(apply);
}

static bool apply_has_array(const struct apply *apply, const char *name)
{
	const struct store *store;

	TAILQ_FOREACH(store, &apply->opened, link)
		if (store->array && !strcmp(store->name, name))
			return true;
	return store_find_array(apply->yoked, name) != NULL;
}

/* One that nobody has ever known gets its LUN when its disks tell of it. */
static void apply_next_array(struct apply *apply)
{
	while (!apply->error && apply->next_target < apply->conf->target_count) {
		const struct conf_target *target = &apply->conf->targets[apply->next_target];
		const struct conf_lun *lun = &target->luns[apply->next_lun];

		if (apply->next_lun++ == target->lun_count) {
			apply->next_target++;
			apply->next_lun = 0;
			continue;
		}
		if (!*lun->array || apply_has_array(apply, lun->array))
			continue;
		array_lun_open(apply->yoked, lun->array, lun->write_cache, apply_array_opened,
			       apply);
		return;
	}
	apply_stores_ready(apply);
}

static void apply_store_opened(void *arg, struct store *store, int error, const char *text)
{
	struct apply *apply = arg;
	const struct conf_backing *backing = &apply->conf->backings[apply->next_backing - 1];

	if (store)
		TAILQ_INSERT_TAIL(&apply->opened, store, link);
	else
		apply_refuse(apply, error, "%s:%d: %s", apply->conf->file, backing->line, text);
	apply_next_store(apply);
}

static void apply_next_store(struct apply *apply)
{
	while (!apply->error && apply->next_backing < apply->conf->backing_count) {
		const struct conf_backing *backing = &apply->conf->backings[apply->next_backing++];

		if (store_find(apply->yoked, backing->name))
			continue;
		store_open(apply->yoked, backing, apply_store_opened, apply);
		return;
	}
	apply_next_array(apply);
}

static void apply_read(struct env_work *work)
{
	struct apply *apply = container_of(work, struct apply, work);
	struct conf_error error;

	if (apply->conf)
		return;
	apply->error = conf_load(apply->yoked->conf_path, &apply->conf, &error);
	if (apply->error)
		snprintf(apply->text, sizeof(apply->text), "%s", error.text);
}

static void apply_read_done(struct env_work *work)
{
	struct apply *apply = container_of(work, struct apply, work);

	if (!apply->error)
		apply->error =
			apply_check(apply->yoked, apply->conf, apply->text, sizeof(apply->text));
	if (apply->error)
		apply_finish(apply);
	else
		apply_next_store(apply);
}

const struct conf *apply_conf(const struct yoked *yoked)
{
	return yoked->applying ? yoked->applying->conf : NULL;
}

void apply_start(struct yoked *yoked, struct conf *conf, apply_done_fn *done, void *arg)
{
	struct apply *apply;

	if (yoked->applying) {
		conf_free(conf);
		done(arg, -EBUSY, "a reload is under way. Wait for it to end", NULL);
		return;
	}
	apply = calloc(1, sizeof(*apply));
	if (!apply || !(apply->changes = json_array())) {
		free(apply);
		conf_free(conf);
		done(arg, -ENOMEM, "out of memory", NULL);
		return;
	}
	apply->yoked = yoked;
	apply->conf = conf;
	apply->reload = yoked->conf != NULL;
	apply->done = done;
	apply->arg = arg;
	apply->work.run = apply_read;
	apply->work.done = apply_read_done;
	TAILQ_INIT(&apply->opened);
	yoked->applying = apply;
	env_work_submit(yoked->env, &apply->work);
}
