/* SPDX-License-Identifier: MIT */
/*
 * Stores: backings opened, each with its identity and its logical unit.
 *
 * Opening: identity on a worker thread -> what it has saved -> backing_open() -> logical unit.
 * What was opened halfway is closed again when a later step fails.
 *
 * Not here: which LUN shows it to whom (export.c); the device itself
 * (backstore/backing.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backstore/backing.h"
#include "target/daemon.h"

#define FULL_SHOWN_NS (600 * NS_PER_S)

struct opening {
	struct env_work work;
	struct yoked *yoked;
	const struct conf_backing *conf;
	uuid_t uuid;
	struct lu_store *saved; /* until a logical unit has it */
	int error;
	char text[512];
	store_open_fn *done;
	void *arg;
};

/* For `status`; whoever found the cause has told the log, and SCSI reads the state itself. */
static void store_changed(struct blk_watch *watch)
{
	struct store *store = container_of(watch, struct store, watch);

	store->state_since_s = time(NULL);
}

static void opening_end(struct opening *opening, struct store *store, int error, const char *text)
{
	if (opening->saved)
		opening->saved->close(opening->saved);
	opening->done(opening->arg, store, error, text);
	free(opening);
}

static void opening_blk_done(void *arg, struct blk *blk, int error, const char *text)
{
	struct opening *opening = arg;
	const struct conf_backing *conf = opening->conf;
	struct store *store;

	if (!blk) {
		opening_end(opening, NULL, error, text);
		return;
	}
	store = calloc(1, sizeof(*store));
	if (store) {
		struct scsi_lu_config lu = {
			.home = opening->yoked->shard,
			.blk = blk,
			.oui = (uint32_t)opening->yoked->oui,
			.write_cache = conf->write_cache,
			.store = opening->saved,
		};

		snprintf(store->name, sizeof(store->name), "%s", conf->name);
		store->conf = conf;
		store->write_cache = conf->write_cache;
		store->blk = blk;
		uuid_copy(store->uuid, opening->uuid);
		uuid_copy(lu.uuid, opening->uuid);
		store->lu = scsi_lu_new(&lu);
	}
	if (!store || !store->lu) {
		free(store);
		blk_unref(blk);
		opening_end(opening, NULL, -ENOMEM, "out of memory");
		return;
	}
	opening->saved = NULL;
	store->watch.changed = store_changed;
	blk_watch(blk, &store->watch);
	opening_end(opening, store, 0, "");
}

static void opening_saved(void *arg, struct lu_store *saved)
{
	static const enum backing_driver drivers[] = {
		[CONF_DRIVER_RAM] = BACKING_RAM,
		[CONF_DRIVER_NULL] = BACKING_NULL,
		[CONF_DRIVER_FILE] = BACKING_FILE,
	};
	struct opening *opening = arg;
	const struct conf_backing *conf = opening->conf;
	struct backing_spec spec = {
		.name = conf->name,
		.driver = drivers[conf->driver],
		.path = conf->path,
		.size_bytes = conf->size_bytes,
		.block_size = conf->block_size,
		.physical_block = conf->physical_block,
		.direct = conf->direct,
		.faults = opening->yoked->faults,
	};

	opening->saved = saved;
	if (saved)
		backing_open(opening->yoked->env, &spec, opening_blk_done, opening);
	else
		opening_end(opening, NULL, -ENOMEM, "out of memory");
}

static void opening_identity(struct env_work *work)
{
	struct opening *opening = container_of(work, struct opening, work);

	opening->error = identity_get(opening->yoked->state_dir_fd, opening->conf->name,
				      opening->uuid, opening->text, sizeof(opening->text));
}

static void opening_identity_done(struct env_work *work)
{
	struct opening *opening = container_of(work, struct opening, work);

	if (opening->error)
		opening_end(opening, NULL, opening->error, opening->text);
	else
		lu_files_open(opening->yoked->lu_files, "backing", opening->conf->name,
			      opening->uuid, opening_saved, opening);
}

void store_open(struct yoked *yoked, const struct conf_backing *conf, store_open_fn *done,
		void *arg)
{
	struct opening *opening = calloc(1, sizeof(*opening));

	if (!opening) {
		done(arg, NULL, -ENOMEM, "out of memory");
		return;
	}
	opening->yoked = yoked;
	opening->conf = conf;
	opening->done = done;
	opening->arg = arg;
	opening->work.run = opening_identity;
	opening->work.done = opening_identity_done;
	env_work_submit(yoked->env, &opening->work);
}

void store_close(struct store *store)
{
	env_defer_cancel(store->blk->env, &store->swap);
	blk_unwatch(&store->watch);
	scsi_lu_unref(store->lu);
	blk_unref(store->blk);
	free(store);
}

bool device_full(const struct blk *blk)
{
	return blk->full_ns && env_now_ns(blk->env) - blk->full_ns < FULL_SHOWN_NS;
}

bool store_full(const struct store *store)
{
	return device_full(store->blk);
}

struct store *store_find(const struct yoked *yoked, const char *name)
{
	struct store *store;

	TAILQ_FOREACH(store, &yoked->stores, link)
		if (!store->array && !strcmp(store->name, name))
			return store;
	return NULL;
}

struct store *store_find_array(const struct yoked *yoked, const char *name)
{
	struct store *store;

	TAILQ_FOREACH(store, &yoked->stores, link)
		if (store->array && !strcmp(store->name, name))
			return store;
	return NULL;
}

struct store *store_of_lun(const struct yoked *yoked, const struct conf_lun *lun)
{
	return *lun->array ? store_find_array(yoked, lun->array) : store_find(yoked, lun->backing);
}

bool store_in_conf(const struct conf *conf, const struct store *store)
{
	for (unsigned t = 0; t < conf->target_count; t++) {
		for (unsigned l = 0; l < conf->targets[t].lun_count; l++) {
			const struct conf_lun *lun = &conf->targets[t].luns[l];

			if (!strcmp(store->array ? lun->array : lun->backing, store->name))
				return true;
		}
	}
	return false;
}

bool store_has_lun(const struct yoked *yoked, const struct store *store)
{
	const struct conf *next = apply_conf(yoked);

	return (yoked->conf && store_in_conf(yoked->conf, store)) ||
	       (next && store_in_conf(next, store));
}
