/* SPDX-License-Identifier: MIT */
/*
 * Exports: a target of the configuration as a SCSI device with its LUN map and
 * an iSCSI target in front of it.
 *
 * Invariants:
 * 1. export->conf points into the configuration that runs, or is about to.
 * 2. A LUN that stays as it was is not touched by a change: its tasks, its
 *    nexuses and its attentions do not notice.
 * 3. A LUN is hidden before its logical unit lets go of the store.
 *
 * Not here: opening stores (store.c), in which order things change (apply.c).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/daemon.h"

static const struct conf_lun *conf_lun_find(const struct conf_target *conf, uint16_t number)
{
	for (unsigned i = 0; i < conf->lun_count; i++)
		if (conf->luns[i].number == number)
			return &conf->luns[i];
	return NULL;
}

/* Only LUNs of the running configuration are mapped, so each is found. */
static bool export_mask(void *arg, uint16_t number, const char *initiator)
{
	const struct export *export = arg;
	const struct conf_lun *lun = conf_lun_find(export->conf, number);

	return lun && (!lun->allow.count || conf_allows(&lun->allow, initiator));
}

static bool strings_equal(const struct conf_strings *a, const struct conf_strings *b)
{
	if (a->count != b->count)
		return false;
	for (unsigned i = 0; i < a->count; i++)
		if (strcmp(a->items[i], b->items[i]))
			return false;
	return true;
}

PRINTF_LIKE(2, 3) static void note(json_t *changes, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_append_new(changes, json_string(text));
}

static void fill_target(struct iscsi_target_conf *out, const struct conf_target *conf,
			struct scsi_device *device)
{
	*out = (struct iscsi_target_conf){
		.name = conf->name,
		.device = device,
		.portals = (const char *const *)conf->portals.items,
		.portal_count = conf->portals.count,
		.allow = (const char *const *)conf->allow.items,
		.allow_count = conf->allow.count,
		.nop_interval_ns = conf->nop_interval_ns,
		.nop_timeout_ns = conf->nop_timeout_ns,
		.data_out_timeout_ns = conf->data_out_timeout_ns,
	};
}

/* The groups of the portals that TARGET names, out of the configuration it belongs to. */
static int set_ports(struct scsi_device *device, const struct conf *conf,
		     const struct conf_target *target)
{
	uint16_t *groups = calloc(target->portals.count + 1, sizeof(*groups));
	unsigned count = 0;
	int err;

	if (!groups)
		return -ENOMEM;
	for (unsigned i = 0; i < target->portals.count; i++) {
		const struct conf_portal *portal = conf_portal(conf, target->portals.items[i]);

		if (portal)
			groups[count++] = portal->group;
	}
	err = scsi_device_set_ports(device, groups, count);
	free(groups);
	return err;
}

static int map_lun(struct yoked *yoked, struct export *export, const struct conf_lun *lun)
{
	struct store *store = store_of_lun(yoked, lun);

	if (!store)
		return *lun->array ? 0 : -ENOENT; /* when its disks tell of it */
	return scsi_device_map(export->device, lun->number, store->lu, lun->read_only);
}

/* With LU it is shown, without one it is hidden. */
static void map_array(struct yoked *yoked, const struct store *store, bool show)
{
	struct export *export;

	TAILQ_FOREACH(export, &yoked->exports, link) {
		for (unsigned i = 0; i < export->conf->lun_count; i++) {
			const struct conf_lun *lun = &export->conf->luns[i];
			int err = 0;

			if (strcmp(lun->array, store->name))
				continue;
			if (show)
				err = scsi_device_map(export->device, lun->number, store->lu,
						      lun->read_only);
			else
				scsi_device_unmap(export->device, lun->number, NULL, NULL);
			if (err)
				log_line(LOG_L_ERROR, "array", store->name, "lun-not-shown",
					 "target=%s lun=%u cause=\"%s\"", export->name, lun->number,
					 strerror(-err));
		}
	}
}

void exports_map_array(struct yoked *yoked, const struct store *store)
{
	map_array(yoked, store, true);
}

void exports_unmap_array(struct yoked *yoked, const struct store *store)
{
	map_array(yoked, store, false);
}

/* What ends an export: made with it, so that it cannot fail. */
struct removal {
	struct scsi_device *device;
	void (*done)(void *arg);
	void *arg;
};

int export_add(struct yoked *yoked, const struct conf *conf, const struct conf_target *target,
	       json_t *changes)
{
	struct export *export = calloc(1, sizeof(*export));
	struct iscsi_target_conf front;
	int err = -ENOMEM;

	if (!export)
		return err;
	export->name = strdup(target->name);
	export->conf = target;
	export->device = scsi_device_new(target->name, yoked->shard);
	export->removal = calloc(1, sizeof(*export->removal));
	if (!export->name || !export->device || !export->removal)
		goto out;
	scsi_device_mask(export->device, export_mask, export);
	err = set_ports(export->device, conf, target);
	for (unsigned i = 0; !err && i < target->lun_count; i++)
		err = map_lun(yoked, export, &target->luns[i]);
	if (err)
		goto out;
	fill_target(&front, target, export->device);
	err = iscsi_target_add(yoked->iscsi, &front);
	if (err)
		goto out;
	TAILQ_INSERT_TAIL(&yoked->exports, export, link);
	note(changes, "target %s added", target->name);
	return 0;
out:
	if (export->device)
		scsi_device_free(export->device);
	free(export->removal);
	free(export->name);
	free(export);
	return err;
}

static bool same_lun(const struct conf_lun *a, const struct conf_lun *b)
{
	return !strcmp(a->backing, b->backing) && !strcmp(a->array, b->array) &&
	       a->read_only == b->read_only;
}

/* Unmap what goes or becomes another; map what is new. */
static int change_luns(struct yoked *yoked, struct export *export, const struct conf_target *old,
		       const struct conf_target *target, json_t *changes)
{
	bool view_changed = false;
	int err = 0;

	for (unsigned i = 0; i < old->lun_count; i++) {
		const struct conf_lun *was = &old->luns[i];
		const struct conf_lun *is = conf_lun_find(target, was->number);

		if (is && same_lun(is, was)) {
			view_changed |= !strings_equal(&is->allow, &was->allow);
			continue;
		}
		scsi_device_unmap(export->device, was->number, NULL, NULL);
		if (!is)
			note(changes, "target %s: lun %u removed", target->name, was->number);
	}
	for (unsigned i = 0; !err && i < target->lun_count; i++) {
		const struct conf_lun *is = &target->luns[i];
		const struct conf_lun *was = conf_lun_find(old, is->number);

		if (was && same_lun(is, was))
			continue;
		err = map_lun(yoked, export, is);
		note(changes, "target %s: lun %u %s", target->name, is->number,
		     was ? "changed" : "added");
	}
	if (view_changed) {
		scsi_device_view_changed(export->device);
		note(changes, "target %s: lun masks changed", target->name);
	}
	return err;
}

int export_change(struct yoked *yoked, struct export *export, const struct conf *conf,
		  const struct conf_target *target, json_t *changes)
{
	const struct conf_target *old = export->conf;
	struct iscsi_target_conf front;
	int err;

	export->conf = target; /* masks are asked with the new lists from here on */
	err = change_luns(yoked, export, old, target, changes);
	if (!err)
		err = set_ports(export->device, conf, target);
	if (err)
		return err;
	if (!strings_equal(&old->allow, &target->allow))
		note(changes, "target %s: allow changed", target->name);
	if (!strings_equal(&old->portals, &target->portals))
		note(changes, "target %s: portals changed", target->name);
	if (old->nop_interval_ns != target->nop_interval_ns ||
	    old->nop_timeout_ns != target->nop_timeout_ns ||
	    old->data_out_timeout_ns != target->data_out_timeout_ns)
		note(changes, "target %s: time-outs changed", target->name);
	fill_target(&front, target, export->device);
	return iscsi_target_change(yoked->iscsi, &front);
}

static void removal_done(void *arg)
{
	struct removal *removal = arg;

	scsi_device_free(removal->device);
	if (removal->done)
		removal->done(removal->arg);
	free(removal);
}

void export_remove(struct yoked *yoked, struct export *export, void (*done)(void *arg), void *arg)
{
	struct removal *removal = export->removal;

	removal->device = export->device;
	removal->done = done;
	removal->arg = arg;
	TAILQ_REMOVE(&yoked->exports, export, link);
	/* No host sees a LUN from here on, whatever its tasks still wait for. */
	for (unsigned i = 0; i < export->conf->lun_count; i++)
		scsi_device_unmap(export->device, export->conf->luns[i].number, NULL, NULL);
	scsi_device_mask(export->device, NULL, NULL);
	iscsi_target_remove(yoked->iscsi, export->name, removal_done, removal);
	free(export->name);
	free(export);
}

struct export *export_find(const struct yoked *yoked, const char *name)
{
	struct export *export;

	TAILQ_FOREACH(export, &yoked->exports, link)
		if (!strcmp(export->name, name))
			return export;
	return NULL;
}
