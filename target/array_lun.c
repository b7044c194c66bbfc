/* SPDX-License-Identifier: MIT */
/*
 * Arrays as LUNs: a logical unit that is there before its array is.
 *
 *   uuid (of the array, or as last seen) ─▶ logical unit on a device that is not there
 *        ─▶ online: it stands on the array ─▶ hosts hear of the size
 *
 * Invariants:
 *  1. Identity is the array's uuid. One that was recreated under its name is another disk to
 *     hosts: the LUN goes and comes again.
 *  2. While the array may come by itself or by a disk, hosts hear 02/04/01; where it cannot, or
 *     only by somebody's decision, 02/04/03.
 *
 * Not here: when an array comes (arrays.c), LUN maps (export.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/log.h"
#include "target/daemon.h"

/* ---- the device of an array that is not online ---- */

static void absent_submit(struct blk *blk, struct io *io)
{
	(void)blk;
	io_done(io, -ENXIO);
}

static void absent_close(struct blk *blk)
{
	free(blk);
}

static struct blk *absent_new(struct env *env, const char *name)
{
	static const struct blk_ops ops = {
		.driver = "absent",
		.submit = absent_submit,
		.close = absent_close,
	};
	struct blk *blk = calloc(1, sizeof(*blk));

	if (!blk)
		return NULL;
	blk->ops = &ops;
	blk->env = env;
	snprintf(blk->name, sizeof(blk->name), "%s", name);
	blk->block_size = blk->physical_block = 512;
	blk->size_bytes = 512;
	blk_init(blk);
	blk_set_state(blk, BLK_WAITING, "no disk of it is here");
	return blk;
}

/* ---- it comes ---- */

static void follow(struct store *store, struct array_entry *entry)
{
	struct array_info info;

	if (!entry->array)
		return;
	array_info(entry->array, &info);
	if (!array_blk(entry->array))
		blk_set_state(store->blk,
			      info.waits >= ARRAY_WAITS_DISKS ? BLK_FAILED : BLK_WAITING, "%s",
			      info.why);
	else if (store->blk != array_blk(entry->array) && !store->swap.queued)
		env_defer(store->yoked->env, &store->swap);
}

/* What hosts asked of the absent one ends first: in this turn. */
static void swap_run(struct env_defer *defer)
{
	struct store *store = container_of(defer, struct store, swap);
	struct array_entry *entry = arrays_find(store->yoked->arrays, store->name);
	struct blk *blk = entry && entry->array ? array_blk(entry->array) : NULL;

	if (!blk || store->blk == blk || uuid_compare(store->uuid, entry->uuid))
		return;
	if (store->blk->in_flight) {
		env_defer(store->yoked->env, &store->swap);
		return;
	}
	scsi_lu_set_blk(store->lu, blk);
	blk_unwatch(&store->watch);
	blk_unref(store->blk);
	store->blk = blk_ref(blk);
	blk_watch(blk, &store->watch);
	store->state_since_s = time(NULL);
}

static void store_changed(struct blk_watch *watch)
{
	container_of(watch, struct store, watch)->state_since_s = time(NULL);
}

/* ---- opening ---- */

struct opening {
	struct env_work work;
	struct yoked *yoked;
	char name[CONF_NAME_MAX];
	bool write_cache;
	uuid_t uuid;
	int error;
	char text[256];
	store_open_fn *done;
	void *arg;
};

static void opening_end(struct opening *opening, struct store *store, int error, const char *text)
{
	opening->done(opening->arg, store, error, text);
	free(opening);
}

static struct store *store_new(struct opening *opening, struct lu_store *saved)
{
	struct yoked *yoked = opening->yoked;
	struct store *store = calloc(1, sizeof(*store));
	struct scsi_lu_config lu = {
		.home = yoked->shard,
		.oui = yoked->oui,
		.write_cache = opening->write_cache,
		.store = saved,
	};

	if (!store)
		return NULL;
	store->array = true;
	store->yoked = yoked;
	store->write_cache = opening->write_cache;
	snprintf(store->name, sizeof(store->name), "%s", opening->name);
	uuid_copy(store->uuid, opening->uuid);
	uuid_copy(lu.uuid, opening->uuid);
	store->swap.fn = swap_run;
	store->watch.changed = store_changed;
	store->blk = lu.blk = absent_new(yoked->env, opening->name);
	store->lu = store->blk ? scsi_lu_new(&lu) : NULL;
	if (store->lu) {
		blk_watch(store->blk, &store->watch);
		return store;
	}
	if (store->blk)
		blk_unref(store->blk);
	free(store);
	return NULL;
}

static void opening_saved(void *arg, struct lu_store *saved)
{
	struct opening *opening = arg;
	struct store *store = saved ? store_new(opening, saved) : NULL;
	struct array_entry *entry;

	if (!store) {
		if (saved)
			saved->close(saved);
		opening_end(opening, NULL, -ENOMEM, "out of memory");
		return;
	}
	entry = arrays_find(opening->yoked->arrays, store->name);
	if (entry && !uuid_compare(entry->uuid, store->uuid))
		follow(store, entry);
	opening_end(opening, store, 0, "");
}

static void identity_run(struct env_work *work)
{
	struct opening *opening = container_of(work, struct opening, work);

	opening->error = identity_array(opening->yoked->state_dir_fd, opening->name, opening->uuid,
					opening->text, sizeof(opening->text));
}

static void identity_done(struct env_work *work)
{
	struct opening *opening = container_of(work, struct opening, work);
	char uuid[UUID_STR_LEN];

	if (opening->error == -ENOENT) {
		opening_end(opening, NULL, 0, "");
	} else if (opening->error) {
		opening_end(opening, NULL, opening->error, opening->text);
	} else {
		uuid_unparse_lower(opening->uuid, uuid);
		lu_files_open(opening->yoked->lu_files, "array", uuid, opening->uuid, opening_saved,
			      opening);
	}
}

void array_lun_open(struct yoked *yoked, const char *name, bool write_cache, store_open_fn *done,
		    void *arg)
{
	const struct array_entry *entry = arrays_find(yoked->arrays, name);
	struct opening *opening = calloc(1, sizeof(*opening));

	if (!opening) {
		done(arg, NULL, -ENOMEM, "out of memory");
		return;
	}
	opening->yoked = yoked;
	opening->write_cache = write_cache;
	snprintf(opening->name, sizeof(opening->name), "%s", name);
	if (entry)
		uuid_copy(opening->uuid, entry->uuid);
	opening->done = done;
	opening->arg = arg;
	opening->work.run = identity_run;
	opening->work.done = identity_done;
	env_work_submit(yoked->env, &opening->work);
}

/* ---- while yoked runs ---- */

/* Whether a LUN of the running configuration shows NAME, and how. */
static const struct conf_lun *shown_as(const struct yoked *yoked, const char *name)
{
	const struct export *export;

	TAILQ_FOREACH(export, &yoked->exports, link)
		for (unsigned i = 0; i < export->conf->lun_count; i++)
			if (!strcmp(export->conf->luns[i].array, name))
				return &export->conf->luns[i];
	return NULL;
}

/* It has come while others were at it: whoever was first has shown it. */
static void come_opened(void *arg, struct store *store, int error, const char *text)
{
	struct array_entry *entry = arg;
	struct yoked *yoked = entry->yoked;

	entry->showing = false;
	arrays_change(entry->arrays, -1);
	if (error)
		log_line(LOG_L_ERROR, "array", entry->name, "lun-not-shown", "cause=\"%s\"", text);
	if (!store)
		return;
	if (store_find_array(yoked, store->name) || !shown_as(yoked, store->name)) {
		store_close(store);
		return;
	}
	TAILQ_INSERT_TAIL(&yoked->stores, store, link);
	exports_map_array(yoked, store);
	follow(store, entry);
}

void array_lun_update(struct yoked *yoked, struct array_entry *entry)
{
	struct store *store = store_find_array(yoked, entry->name);
	const struct conf_lun *lun;

	if (!array_entry_named(entry) || uuid_is_null(entry->uuid))
		return;
	if (store && !uuid_compare(store->uuid, entry->uuid)) {
		follow(store, entry);
		return;
	}
	lun = shown_as(yoked, entry->name);
	if (!lun || !entry->array || !array_blk(entry->array) || entry->showing)
		return;
	if (store) {
		exports_unmap_array(yoked, store);
		TAILQ_REMOVE(&yoked->stores, store, link);
		store_close(store);
	}
	entry->showing = true;
	arrays_change(entry->arrays, 1);
	array_lun_open(yoked, entry->name, lun->write_cache, come_opened, entry);
}
