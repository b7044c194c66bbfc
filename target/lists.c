/* SPDX-License-Identifier: MIT */
/*
 * Control methods that list what there is and act on one thing of it: targets,
 * LUNs, backings, sessions, events, and the reload.
 *
 * The shapes are man/yoke-rpc.7's. Units are in the keys, 64-bit ids strings.
 *
 * Not here: what is wrong and what to do (status.c), fault rules (faults.c).
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/event.h"
#include "target/daemon.h"

#define EVENTS_MAX 1000
#define PAGE_ROWS 64 /* of one answer: making more of them would take too long a turn */

/* Rows [skip, skip + PAGE_ROWS) of a list that is walked from its start. */
struct page {
	json_t *rows;
	uint64_t first;
	uint64_t at;
	bool more;
};

/* Where the list goes on, from the request. False: refused, request answered. */
static bool parse_after(struct ctl_request *request, uint64_t *after)
{
	const char *text = ctl_string(request, "after");
	char *end = NULL;

	*after = 0;
	if (!text)
		return true;
	errno = 0;
	*after = strtoull(text, &end, 10);
	if (!errno && end != text && !*end && *text != '-')
		return true;
	ctl_fail(request, -EINVAL, "after \"%s\": not what `next` said. Take it from there", text);
	return false;
}

static bool page_begin(struct page *page, struct ctl_request *request)
{
	*page = (struct page){ 0 };
	if (!parse_after(request, &page->first))
		return false;
	page->rows = json_array();
	return true;
}

/* Whether the row that the walk is at belongs to the page. */
static bool page_wants(struct page *page)
{
	uint64_t at = page->at++;

	page->more |= at >= page->first + PAGE_ROWS;
	return at >= page->first && at < page->first + PAGE_ROWS;
}

/* `next` tells that there is more and where; absent, it was the end. */
static void reply_rows(struct ctl_request *request, const char *name, const char *key, json_t *rows,
		       uint64_t next)
{
	json_t *result = json_pack("{s:s, s:o}", "schema", name, key, rows);
	char text[24];

	if (next) {
		snprintf(text, sizeof(text), "%" PRIu64, next);
		json_object_set_new(result, "next", json_string(text));
	}
	ctl_reply(request, result);
}

static void page_reply(struct page *page, struct ctl_request *request, const char *name,
		       const char *key)
{
	reply_rows(request, name, key, page->rows, page->more ? page->first + PAGE_ROWS : 0);
}

static json_t *strings(const struct conf_strings *list)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < list->count; i++)
		json_array_append_new(array, json_string(list->items[i]));
	return array;
}

static void target_list(void *arg, struct ctl_request *request)
{
	struct yoked *yoked = arg;
	struct export *export;
	struct page page;

	if (!page_begin(&page, request))
		return;
	TAILQ_FOREACH(export, &yoked->exports, link) {
		const struct conf_target *conf = export->conf;

		if (!page_wants(&page))
			continue;
		json_array_append_new(
			page.rows,
			json_pack("{s:s, s:o, s:o, s:I, s:I}", "name", conf->name, "portals",
				  strings(&conf->portals), "allow", strings(&conf->allow), "luns",
				  (json_int_t)conf->lun_count, "sessions",
				  (json_int_t)iscsi_target_sessions(yoked->iscsi, conf->name)));
	}
	page_reply(&page, request, "yoke.target.list/1", "targets");
}

/* online, full, read-only, waiting or offline: the words of a backing. */
const char *store_state_word(const struct store *store)
{
	switch (store->blk->state) {
	case BLK_ONLINE:
		return store_full(store) ? "full" : "online";
	case BLK_READ_ONLY_NOW:
		return "read-only";
	case BLK_WAITING:
		return "waiting";
	case BLK_FAILED:
		break;
	}
	return "offline";
}

/* Those of its backing, and two while the medium is closed although the backing is well. */
static const char *lun_state_word(const struct store *store)
{
	uint64_t failed_ns;

	if (store->blk->state == BLK_FAILED)
		return store_state_word(store);
	switch (scsi_lu_sanitize(store->lu, &failed_ns)) {
	case LU_SANITIZE_RUNNING:
		return "sanitizing";
	case LU_SANITIZE_FAILED:
		return "sanitize-failed";
	case LU_SANITIZE_NONE:
		break;
	}
	return store_state_word(store);
}

/* One that stands on an array of which nothing is known yet has no size and no identity. */
static json_t *lun_row(struct yoked *yoked, const struct export *export, const struct conf_lun *lun,
		       unsigned sessions)
{
	struct store *store = store_of_lun(yoked, lun);
	bool there = store && store->blk->state != BLK_WAITING;
	struct scsi_lu_stats stats = { 0 };
	char uuid[37] = "";
	json_t *row;

	if (store) {
		scsi_lu_stats(store->lu, &stats);
		uuid_unparse_lower(store->uuid, uuid);
	}
	row = json_pack("{s:s, s:i, s:s, s:s, s:s, s:I, s:i, s:b, s:b, s:I, s:I, s:I, s:I, s:I, "
			"s:I, s:I}",
			"target", export->conf->name, "lun", (int)lun->number, "name",
			*lun->array ? lun->array : lun->backing, "uuid", uuid, "state",
			store ? lun_state_word(store) : "waiting", "size_bytes",
			there ? (json_int_t)store->blk->size_bytes : (json_int_t)0,
			"block_size_bytes", there ? (int)store->blk->block_size : 0, "write_cache",
			store ? (int)store->write_cache : 0, "read_only", (int)lun->read_only,
			"sessions", (json_int_t)sessions, "in_flight", (json_int_t)stats.in_flight,
			"read_ops", (json_int_t)stats.reads, "write_ops", (json_int_t)stats.writes,
			"read_bytes", (json_int_t)stats.read_bytes, "write_bytes",
			(json_int_t)stats.write_bytes, "errors", (json_int_t)stats.errors);
	json_object_set_new(row, *lun->array ? "array" : "backing",
			    json_string(*lun->array ? lun->array : lun->backing));
	return row;
}

static void lun_list(void *arg, struct ctl_request *request)
{
	struct yoked *yoked = arg;
	struct export *export;
	struct page page;

	if (!page_begin(&page, request))
		return;
	TAILQ_FOREACH(export, &yoked->exports, link) {
		const struct conf_target *conf = export->conf;
		unsigned sessions = iscsi_target_sessions(yoked->iscsi, conf->name);

		for (unsigned i = 0; i < conf->lun_count; i++)
			if (page_wants(&page))
				json_array_append_new(page.rows, lun_row(yoked, export,
									 &conf->luns[i], sessions));
	}
	page_reply(&page, request, "yoke.lun.list/1", "luns");
}

static json_t *counters(const struct blk *blk)
{
	json_t *by_op = json_object(), *by_purpose = json_object();

	for (unsigned op = 0; op < IO_OP_COUNT; op++)
		json_object_set_new(by_op, io_op_name(op),
				    json_pack("{s:I, s:I, s:I}", "ops",
					      (json_int_t)blk->counts.ops[op], "bytes",
					      (json_int_t)blk->counts.bytes[op], "errors",
					      (json_int_t)blk->counts.errors[op]));
	for (unsigned purpose = 0; purpose < IO_PURPOSE_COUNT; purpose++)
		json_object_set_new(by_purpose, io_purpose_name(purpose),
				    json_integer((json_int_t)blk->counts.by_purpose[purpose]));
	return json_pack("{s:o, s:o}", "by_op", by_op, "ops_by_purpose", by_purpose);
}

static void backing_list(void *arg, struct ctl_request *request)
{
	static const char *const drivers[] = {
		[CONF_DRIVER_RAM] = "ram",
		[CONF_DRIVER_NULL] = "null",
		[CONF_DRIVER_FILE] = "file",
	};
	struct yoked *yoked = arg;
	struct store *store;
	struct page page;

	if (!page_begin(&page, request))
		return;
	TAILQ_FOREACH(store, &yoked->stores, link) {
		if (store->array || !page_wants(&page))
			continue;
		json_array_append_new(
			page.rows,
			json_pack("{s:s, s:s, s:s, s:I, s:i, s:i, s:s, s:s, s:i, s:o}", "name",
				  store->name, "driver", drivers[store->conf->driver], "path",
				  store->conf->path, "size_bytes",
				  (json_int_t)store->blk->size_bytes, "block_size_bytes",
				  (int)store->blk->block_size, "physical_block_bytes",
				  (int)store->blk->physical_block, "state", store_state_word(store),
				  "cause", store->blk->state_cause, "in_flight",
				  (int)store->blk->in_flight, "counters", counters(store->blk)));
	}
	page_reply(&page, request, "yoke.backing.list/1", "backings");
}

static void session_list(void *arg, struct ctl_request *request)
{
	struct yoked *yoked = arg;
	uint64_t after;
	json_t *rows;

	if (!parse_after(request, &after))
		return;
	rows = iscsi_session_list(yoked->iscsi, &after, PAGE_ROWS);
	reply_rows(request, "yoke.session.list/1", "sessions", rows, after);
}

static void session_kill(void *arg, struct ctl_request *request)
{
	struct yoked *yoked = arg;
	const char *text = ctl_string(request, "id");
	char *end;
	uint64_t id;

	errno = 0;
	id = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || errno || *end)
		ctl_fail(request, -EINVAL,
			 "session \"%s\": not an id. Take one from yokectl session list", text);
	else if (iscsi_session_kill(yoked->iscsi, id, "killed by the administrator"))
		ctl_fail(request, -ENOENT,
			 "session %" PRIu64 ": no such session. See yokectl session list", id);
	else
		ctl_reply(request,
			  json_pack("{s:s, s:s}", "schema", "yoke.session.kill/1", "id", text));
}

static void events_list(void *arg, struct ctl_request *request)
{
	json_int_t after = ctl_integer(request, "after", 0);
	json_int_t max = ctl_integer(request, "max", EVENTS_MAX);
	(void)arg;
	if (after < 0 || max < 1 || max > EVENTS_MAX) {
		ctl_fail(request, -EINVAL, "events: after is at least 0, max is 1 to %d",
			 EVENTS_MAX);
		return;
	}
	reply_rows(request, "yoke.events.list/1", "events",
		   event_list((uint64_t)after, (unsigned)max), 0);
}

static void reload_done(void *arg, int error, const char *text, json_t *changes)
{
	struct ctl_request *request = arg;

	if (error)
		ctl_fail(request, error, "%s", text);
	else
		ctl_reply(request, json_pack("{s:s, s:O}", "schema", "yoke.config.reload/1",
					     "changes", changes));
}

static void config_reload(void *arg, struct ctl_request *request)
{
	apply_start(arg, NULL, reload_done, request);
}

void lists_register(struct yoked *yoked)
{
	static const struct ctl_param list_params[] = { { "after", CTL_STRING, false }, { 0 } };
	static const struct ctl_param kill_params[] = { { "id", CTL_STRING, true }, { 0 } };
	static const struct ctl_param event_params[] = {
		{ "after", CTL_INTEGER, false },
		{ "max", CTL_INTEGER, false },
		{ 0 },
	};
	static const struct ctl_command commands[] = {
		{ "target.list", "targets, their portals and who may log in", list_params,
		  target_list },
		{ "lun.list", "LUNs, their state, size and traffic", list_params, lun_list },
		{ "backing.list", "backings, their state and counters", list_params, backing_list },
		{ "session.list", "sessions of initiators", list_params, session_list },
		{ "session.kill", "close a session", kill_params, session_kill },
		{ "events.list", "what happened", event_params, events_list },
		{ "config.reload", "apply the configuration file anew", NULL, config_reload },
		{ 0 },
	};

	ctl_register(yoked->ctl, commands, yoked);
}
