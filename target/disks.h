/* SPDX-License-Identifier: MIT */
/*
 * The disks that may be members of arrays: what `disks` of the configuration matches, and backings
 * that no LUN shows. Nothing else is ever opened.
 *
 * A scan looks at all of them anew. Those that carry a label of an array stay open, and so do
 * those that an array has; the others are closed again.
 */
#ifndef TARGET_DISKS_H
#define TARGET_DISKS_H

#include <bsd/sys/queue.h>
#include <sys/types.h>

#include "backstore/blk.h"
#include "backstore/label.h"
#include "core/conf.h"

struct yoked;
struct store;
struct array_entry;
struct disks;

enum disk_content {
	DISK_CLOSED,  /* cannot be looked at: CAUSE */
	DISK_BLANK,   /* nothing that anybody knows */
	DISK_LABEL,   /* of an array: LABEL */
	DISK_FOREIGN, /* somebody else's, or a label that cannot be read: CARRIES */
};

struct disk {
	TAILQ_ENTRY(disk) link;
	char *name;                    /* "/dev/disk/by-id/ata-X1", "backing:m0" */
	char short_name[BLK_NAME_MAX]; /* as much of it as a device's name takes */
	struct store *store;           /* a backing's, else NULL */
	bool device; /* a block device: DEV is its number; else INO of DEV is the file's */
	dev_t dev;
	ino_t ino;
	struct blk *blk;      /* open; NULL: it is not */
	struct hist *latency; /* the blk's */
	uint64_t size_bytes;
	uint32_t block_size;
	enum disk_content content;
	char carries[160]; /* LABEL, FOREIGN: for people */
	char cause[256];   /* CLOSED */
	bool busy;         /* CLOSED: somebody else has it, which may pass */
	struct label label;
	struct array_entry *array; /* who has it */
	unsigned users;            /* measurements, changes that are under way */
	unsigned commands;         /* a person's, that have it under way: no other may change it */
	STAILQ_HEAD(opening_list, opening) openings; /* the first one opens it, for all */
	bool keep;    /* stays open: an array that it was taken out of still has the device */
	bool closing; /* it was open: our own end of it, off the loop, may not be over */
	bool known;   /* a scan has looked at it */
	bool seen;
};
TAILQ_HEAD(disk_list, disk);

/* NULL: no memory. */
struct disks *disks_new(struct yoked *yoked);
/* No array and no user has any of them, no scan is under way. */
void disks_free(struct disks *disks);
struct disk_list *disks_list(struct disks *disks);
/* STORE closes: no array has it. */
void disks_forget(struct disks *disks, const struct store *store);
/* By NAME, or by a path that leads to the same device. Blocks no longer than a stat. NULL: none. */
struct disk *disks_find(struct disks *disks, const char *name);

/*
 * Look at what CONF allows, or ONLY_BUSY: at what is new or was in use by others. DONE runs once,
 * later, or at once without memory; a scan that is asked for meanwhile comes after.
 */
typedef void disks_scan_fn(void *arg);
void disks_scan(struct disks *disks, const struct conf *conf, bool only_busy, disks_scan_fn *done,
		void *arg);
bool disks_scanning(const struct disks *disks);

/* Nobody needs it open any more: it is closed if that is so. */
void disk_release(struct disk *disk);
/* Open it, unless it is: for whoever adds it to an array. DONE runs once, at once or later. */
typedef void disk_open_fn(void *arg, struct disk *disk, int error, const char *text);
void disk_open(struct disks *disks, struct disk *disk, disk_open_fn *done, void *arg);

/*
 * ---- disk_test.c: how fast a disk reads. DONE runs once, about a second later; with an error
 * perhaps at once.
 */
struct disk_result {
	uint64_t p50_ns, p99_ns; /* of small reads at random places */
	uint64_t reads;
	uint64_t bytes_per_s; /* of large ones in sequence */
};
typedef void disk_test_fn(void *arg, int error, const struct disk_result *result);
void disk_test(struct env *env, struct blk *blk, disk_test_fn *done, void *arg);

/* What is on PATH other than a label of ours, for people; false: nothing known. Blocks. */
bool signature_of(const char *path, char *text, size_t size);

#endif
