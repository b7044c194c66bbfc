/* SPDX-License-Identifier: MIT */
/*
 * Backings: the leaves of the block layer, opened by what the configuration
 * says of them. Each comes under a fault filter if faults are enabled.
 */
#ifndef BACKSTORE_BACKING_H
#define BACKSTORE_BACKING_H

#include "backstore/blk.h"

enum backing_driver { BACKING_RAM, BACKING_NULL, BACKING_FILE };

struct backing_spec {
	const char *name;
	enum backing_driver driver;
	const char *path; /* file */
	/* ram, null; file: an existing one must have it, a missing one is created; 0: as it is */
	uint64_t size_bytes;
	uint32_t block_size;     /* 512 or 4096; file: 0: the smaller that its device takes */
	uint32_t physical_block; /* 0: as the device says, else >= block_size */
	bool direct;             /* file: O_DIRECT */
	bool read_only;
	bool faults;      /* put a fault filter on top */
	uint64_t wait_ns; /* file: for somebody who still has it; 0: BACKING_WAIT_NS */
};

#define BACKING_WAIT_NS (10 * NS_PER_S)

/*
 * Open off the loop (open, flock, stat and truncate may block). DONE runs once:
 * BLK with one reference for the taker, or NULL, ERROR and a text of object,
 * cause and remedy ("backing "image": /srv/image.raw: no such file. Create it or
 * give a size"). SPEC is copied.
 */
typedef void backing_open_fn(void *arg, struct blk *blk, int error, const char *text);
void backing_open(struct env *env, const struct backing_spec *spec, backing_open_fn *done,
		  void *arg);

#endif
