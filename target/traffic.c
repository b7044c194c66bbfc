/* SPDX-License-Identifier: MIT */
/*
 * traffic.show: what sessions, LUNs and backings of a target have counted, at one moment.
 *
 * The lists come in pages, and a session that ended is on none of them; whoever compares counts
 * needs all of them at once and nothing missing.
 *
 * Invariants:
 * 1. Sums only rise while the target exists: what a session counted stays when it has gone.
 *
 * Not here: counting (iscsi/command.c, scsi/lu.c, backstore/blk.c).
 * Spec: man/yoke-rpc.7, traffic.show.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/daemon.h"

#define LUNS_MAX 64

static json_t *counts(uint64_t read_ops, uint64_t write_ops, uint64_t read_bytes,
		      uint64_t write_bytes)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "read_ops", (json_int_t)read_ops, "write_ops",
			 (json_int_t)write_ops, "read_bytes", (json_int_t)read_bytes, "write_bytes",
			 (json_int_t)write_bytes);
}

static json_t *lun_row(const struct yoked *yoked, const struct conf_lun *lun)
{
	const struct store *store = store_of_lun(yoked, lun);
	bool disk = store && !store->array && store->conf->driver == CONF_DRIVER_FILE &&
		    store->conf->direct;
	struct scsi_lu_stats stats = { 0 };
	struct blk_counts c = { 0 };

	if (store) {
		scsi_lu_stats(store->lu, &stats);
		c = store->blk->counts;
	}
	return json_pack(
		"{s:i, s:s, s:b, s:o, s:o}", "lun", (int)lun->number, "backing",
		*lun->array ? lun->array : lun->backing, "disk", disk, "unit",
		counts(stats.reads, stats.writes, stats.read_bytes, stats.write_bytes), "device",
		counts(c.ops[IO_READ], c.ops[IO_WRITE], c.bytes[IO_READ], c.bytes[IO_WRITE]));
}

static const struct conf_lun *find_lun(const struct conf_target *target, const char *text)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end)
		return NULL;
	for (unsigned i = 0; i < target->lun_count; i++)
		if (target->luns[i].number == number)
			return &target->luns[i];
	return NULL;
}

/* Initiators may write a name in any case. */
static const struct export *find_export(const struct yoked *yoked, const char *name)
{
	const struct export *export;

	TAILQ_FOREACH(export, &yoked->exports, link)
		if (strcasecmp(export->name, name) == 0)
			return export;
	return NULL;
}

static void traffic_show(void *arg, struct ctl_request *request)
{
	struct yoked *yoked = arg;
	const char *name = ctl_string(request, "target");
	const struct export *export = find_export(yoked, name);
	const json_t *asked = ctl_param(request, "luns"), *item;
	json_t *rows, *sessions;
	struct iscsi_traffic sum;
	size_t i;

	if (!export) {
		ctl_fail(request, -ENOENT,
			 "target \"%s\": not served. Take a name from yokectl target list", name);
		return;
	}
	if (json_array_size(asked) > LUNS_MAX) {
		ctl_fail(request, -EINVAL, "luns: at most %d at a time. Ask more than once",
			 LUNS_MAX);
		return;
	}
	rows = json_array();
	json_array_foreach(asked, i, item) {
		const char *text = json_string_value(item);
		const struct conf_lun *lun = find_lun(export->conf, text);

		if (!lun) {
			json_decref(rows);
			ctl_fail(
				request, -ENOENT,
				"target \"%s\": no LUN \"%s\". Take a number from yokectl lun list",
				name, text);
			return;
		}
		json_array_append_new(rows, lun_row(yoked, lun));
	}
	iscsi_target_traffic(yoked->iscsi, export->conf->name, &sum);
	sessions = counts(sum.read_ops, sum.write_ops, sum.read_bytes, sum.write_bytes);
	json_object_set_new(sessions, "other_ops", json_integer((json_int_t)sum.other_ops));
	ctl_reply(request, json_pack("{s:s, s:s, s:o, s:o}", "schema", "yoke.traffic/1", "target",
				     export->conf->name, "sessions", sessions, "luns", rows));
}

void traffic_register(struct yoked *yoked)
{
	static const struct ctl_param params[] = {
		{ "target", CTL_STRING, true },
		{ "luns", CTL_STRINGS, true },
		{ 0 },
	};
	static const struct ctl_command commands[] = {
		{ "traffic.show", "what sessions, LUNs and backings counted", params,
		  traffic_show },
		{ 0 },
	};

	ctl_register(yoked->ctl, commands, yoked);
}
