/* SPDX-License-Identifier: MIT */
/*
 * What yoked is made of. Only the files of target/ (ctl.c aside) see this: they are the
 * ones that know every layer and join them.
 */
#ifndef TARGET_DAEMON_H
#define TARGET_DAEMON_H

#include <bsd/sys/queue.h>
#include <jansson.h>
#include <uuid/uuid.h>

#include "backstore/blk.h"
#include "core/buf.h"
#include "core/conf.h"
#include "core/ctl.h"
#include "core/event.h"
#include "core/shard.h"
#include "target/arrays.h"
#include "target/disks.h"
#include "target/iscsi/iscsi.h"
#include "target/lu_files.h"
#include "target/paths.h"
#include "target/scsi/device.h"

/*
 * A backing of the configuration, open, or an array that a LUN shows, and the logical unit that
 * stands on it. Their names do not meet.
 */
struct store {
	TAILQ_ENTRY(store) link;
	char name[CONF_NAME_MAX];
	bool array;
	bool write_cache;
	const struct conf_backing *conf; /* in the running configuration; NULL: an array */
	uuid_t uuid;
	struct blk *blk; /* an array's, while it is not online: one that is not there */
	struct env_defer swap;
	struct yoked *yoked; /* an array's */
	struct blk_watch watch;
	struct scsi_lu *lu;
	int64_t state_since_s; /* wall clock of the last change of state */
};
TAILQ_HEAD(store_list, store);

/* A target of the configuration, exported. */
struct export
{
	TAILQ_ENTRY(export) link;
	char *name;
	const struct conf_target *conf; /* in the running configuration */
	struct scsi_device *device;
	struct removal *removal;
};
TAILQ_HEAD(export_list, export);

struct apply;

struct yoked {
	const char *conf_path;
	struct loop *loop;
	struct env *env;
	struct shard *shard;
	struct buf_pool *buffers;
	struct ctl *ctl;
	struct iscsi_server *iscsi;
	struct conf *conf; /* the running one; NULL until the first was applied */
	int state_dir_fd;
	struct lu_files *lu_files;
	uint32_t oui; /* node settings that hold for the life of the process */
	bool faults;
	struct store_list stores;
	struct export_list exports;
	struct disks *disks;
	struct arrays *arrays;
	uint64_t array_wait_ns;
	struct paths *paths;
	struct event_watch path_watch;
	struct apply *applying;               /* at most one at a time */
	void (*applied)(struct yoked *yoked); /* after each one */
	uint64_t started_ns;                  /* env_now_ns() */
	int64_t conf_loaded_s;                /* wall clock */
	char conf_refused[512];               /* why the newest file was not taken; "" if it was */
	int64_t conf_refused_s;
};

/* ---- apply.c: from a configuration file to what runs ---- */

/*
 * Make what runs equal to CONF (taken over), or with NULL to what is in
 * yoked->conf_path now. DONE runs once: 0 and CHANGES, an array of lines that
 * is borrowed, or a negative errno and TEXT; then nothing was changed. -EBUSY:
 * one is under way.
 */
typedef void apply_done_fn(void *arg, int error, const char *text, json_t *changes);
void apply_start(struct yoked *yoked, struct conf *conf, apply_done_fn *done, void *arg);
/* apply_check.c: 0, or -EBUSY and TEXT: it would change what cannot change while yoked runs. */
int apply_check(struct yoked *yoked, const struct conf *conf, char *text, size_t text_size);
/* The configuration that is being applied; NULL: none, or none yet. */
const struct conf *apply_conf(const struct yoked *yoked);

/* What NODE allows the iSCSI server. */
void yoked_limits(const struct conf_node *node, struct iscsi_limits *limits);

/* ---- store.c: backings ---- */

/*
 * Open the backing CONF says, with its identity out of the state directory, or
 * a new one put there. DONE runs once with the store (not yet in a list), or
 * NULL and one line of object, cause and remedy.
 */
typedef void store_open_fn(void *arg, struct store *store, int error, const char *text);
void store_open(struct yoked *yoked, const struct conf_backing *conf, store_open_fn *done,
		void *arg);
/* No LUN maps to it any more. */
void store_close(struct store *store);
/* A backing. */
struct store *store_find(const struct yoked *yoked, const char *name);
struct store *store_find_array(const struct yoked *yoked, const char *name);
/* What LUN shows; NULL: an array that nobody knows yet. */
struct store *store_of_lun(const struct yoked *yoked, const struct conf_lun *lun);
/* Whether a LUN of CONF shows it; of the running one, or of one that is about to. */
bool store_in_conf(const struct conf *conf, const struct store *store);
bool store_has_lun(const struct yoked *yoked, const struct store *store);
/* Nobody tells when room was made: full is who refused a new block in the last ten minutes. */
bool store_full(const struct store *store);
bool device_full(const struct blk *blk);
/* The word that lists and status use: "online", "full", "read-only", "offline". */
const char *store_state_word(const struct store *store);

/* ---- array_lun.c: arrays as LUNs ---- */

/*
 * The store of array NAME. DONE runs once with the store (not yet in a list), or NULL: error 0,
 * nobody has ever known its uuid, or an ERROR and TEXT.
 */
void array_lun_open(struct yoked *yoked, const char *name, bool write_cache, store_open_fn *done,
		    void *arg);
/* ENTRY has changed: its LUNs follow; those that could not be shown before are. */
void array_lun_update(struct yoked *yoked, struct array_entry *entry);

/* ---- identity.c: the state directory ---- */

/* Open and lock DIR, making it if need be. An fd, or a negative errno and TEXT. */
int identity_open(const char *dir, char *text, size_t text_size);
/* The uuid of NAME, kept for ever from the first call on. Blocks. */
int identity_get(int dir_fd, const char *name, uuid_t uuid, char *text, size_t text_size);
/*
 * The uuid that array NAME had when it was last seen; with UUID set it is remembered instead.
 * -ENOENT: never seen. Blocks.
 */
int identity_array(int dir_fd, const char *name, uuid_t uuid, char *text, size_t text_size);

/* ---- export.c: targets and their LUNs ---- */

/* TARGET belongs to CONF. Each thing done is a line in CHANGES. 0 or -ENOMEM. */
int export_add(struct yoked *yoked, const struct conf *conf, const struct conf_target *target,
	       json_t *changes);
/* Make EXPORT what TARGET says: LUN map, masks, portals, allow list, time-outs. */
int export_change(struct yoked *yoked, struct export *export, const struct conf *conf,
		  const struct conf_target *target, json_t *changes);
/* EXPORT is freed at once; DONE (may be NULL) runs when its last session and task have gone. */
void export_remove(struct yoked *yoked, struct export *export, void (*done)(void *arg), void *arg);
struct export *export_find(const struct yoked *yoked, const char *name);
/* STORE has come, or goes: LUNs of its array appear, or are hidden. */
void exports_map_array(struct yoked *yoked, const struct store *store);
void exports_unmap_array(struct yoked *yoked, const struct store *store);

/* ---- path_watch.c: sessions' events become paths ---- */

/* 0 or -ENOMEM. */
int path_watch_start(struct yoked *yoked);
void path_watch_stop(struct yoked *yoked);
/* Append a problem for each missing path to PROBLEMS; how many there are. */
unsigned path_problems(struct yoked *yoked, json_t *problems);

/* ---- status.c, lists.c, traffic.c, faults.c: control methods ---- */
void status_register(struct yoked *yoked);
void lists_register(struct yoked *yoked);
void traffic_register(struct yoked *yoked);
void faults_register(struct yoked *yoked);
void disk_ctl_register(struct yoked *yoked);
void array_ctl_register(struct yoked *yoked);

#endif
