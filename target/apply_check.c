/* SPDX-License-Identifier: MIT */
/*
 * What a new configuration may not change while yoked runs, each with its line.
 *
 * Invariants:
 * 1. The same name is the same disk to its hosts: what is open does not become another.
 * 2. What an array stands on is neither shown by a LUN nor closed.
 *
 * Not here: what must hold within a configuration (core/conf_check.c).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "target/daemon.h"

struct check {
	struct yoked *yoked;
	const struct conf *conf;
	int error; /* the first */
	char *text;
	size_t text_size;
};

PRINTF_LIKE(3, 4)
static void refuse(struct check *check, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(check->text, check->text_size, fmt, ap);
	va_end(ap);
	check->error = error;
}

/* What holds for the life of the process. */
static void check_node(struct check *check)
{
	const struct conf_node *new = &check->conf->node, *old = &check->yoked->conf->node;
	const struct {
		const char *key;
		bool changed;
	} fixed[] = {
		{ "name", strcmp(new->name, old->name) != 0 },
		{ "number", new->number != old->number },
		{ "state_dir", strcmp(new->state_dir, old->state_dir) != 0 },
		{ "control", strcmp(new->control, old->control) != 0 },
		{ "threads", new->threads != old->threads },
		{ "faults", new->faults != old->faults },
		{ "oui", new->oui != old->oui },
		{ "buffers", new->buffers_bytes != old->buffers_bytes },
	};

	for (unsigned i = 0; i < ARRAY_LEN(fixed) && !check->error; i++)
		if (fixed[i].changed)
			refuse(check, -EBUSY,
			       "%s:%d: node: %s cannot change while yoked runs. Restart it, "
			       "or put the old value back",
			       check->conf->file, new->line, fixed[i].key);
}

static bool backing_equal(const struct conf_backing *a, const struct conf_backing *b)
{
	return a->driver == b->driver && !strcmp(a->path, b->path) &&
	       a->size_bytes == b->size_bytes && a->block_size == b->block_size &&
	       a->physical_block == b->physical_block && a->direct == b->direct &&
	       a->write_cache == b->write_cache;
}

/* The same name is the same disk to its hosts: it does not become another under them. */
static void check_backings(struct check *check)
{
	for (unsigned i = 0; i < check->conf->backing_count && !check->error; i++) {
		const struct conf_backing *new = &check->conf->backings[i];
		const struct store *store = store_find(check->yoked, new->name);

		if (store && !backing_equal(new, store->conf))
			refuse(check, -EBUSY,
			       "%s:%d: backing \"%s\": it is open and cannot change. Give the "
			       "new one another name, or restart yoked",
			       check->conf->file, new->line, new->name);
	}
}

static bool stays_free(const struct conf *conf, const char *backing)
{
	for (unsigned t = 0; t < conf->target_count; t++)
		for (unsigned l = 0; l < conf->targets[t].lun_count; l++)
			if (!strcmp(conf->targets[t].luns[l].backing, backing))
				return false;
	return conf_backing(conf, backing);
}

/* What an array stands on, or a command makes a member, is neither a LUN nor closed. */
static void check_members(struct check *check)
{
	const struct conf *conf = check->conf;
	struct disk *disk;

	TAILQ_FOREACH(disk, disks_list(check->yoked->disks), link) {
		if (!disk->store || check->error)
			continue;
		if (!disk->array) {
			if (disk->commands && !stays_free(conf, disk->store->name))
				refuse(check, -EBUSY,
				       "%s: backing \"%s\": a command about its disk is under way. "
				       "Try again",
				       conf->file, disk->store->name);
			continue;
		}
		if (!conf_backing(conf, disk->store->name)) {
			refuse(check, -EBUSY,
			       "%s: backing \"%s\": a member of array %s. Put it back, or take "
			       "it out with yokectl array remove",
			       conf->file, disk->store->name, disk->array->name);
			return;
		}
		for (unsigned t = 0; t < conf->target_count; t++)
			for (unsigned l = 0; l < conf->targets[t].lun_count; l++)
				if (!strcmp(conf->targets[t].luns[l].backing, disk->store->name))
					refuse(check, -EBUSY,
					       "%s:%d: lun \"%u\": backing \"%s\" is a member "
					       "of array %s. Write array = \"%s\"",
					       conf->file, conf->targets[t].luns[l].line,
					       conf->targets[t].luns[l].number, disk->store->name,
					       disk->array->name, disk->array->name);
	}
}

static void check_arrays(struct check *check)
{
	for (unsigned t = 0; t < check->conf->target_count; t++) {
		const struct conf_target *target = &check->conf->targets[t];

		for (unsigned l = 0; l < target->lun_count && !check->error; l++) {
			const struct conf_lun *lun = &target->luns[l];
			const struct store *store = store_find_array(check->yoked, lun->array);

			if (store && store->write_cache != lun->write_cache)
				refuse(check, -EBUSY,
				       "%s:%d: lun \"%u\": write_cache of array \"%s\" cannot "
				       "change while a LUN shows it. Put it back, or restart "
				       "yoked",
				       check->conf->file, lun->line, lun->number, lun->array);
		}
	}
}

int apply_check(struct yoked *yoked, const struct conf *conf, char *text, size_t text_size)
{
	struct check check = { yoked, conf, 0, text, text_size };

	if (yoked->conf)
		check_node(&check);
	check_backings(&check);
	check_members(&check);
	check_arrays(&check);
	return check.error;
}
