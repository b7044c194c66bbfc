/* SPDX-License-Identifier: MIT */
/*
 * All sound records of a log that is in memory, a MiB a turn of the loop.
 */
#ifndef RAID_REDO_SCAN_H
#define RAID_REDO_SCAN_H

#include "core/env.h"
#include "raid/redo.h"

/* Embedded in its owner. Until DONE the log stays as it is. */
struct redo_scan {
	struct env *env;
	const char *log;
	uint64_t length;
	uint32_t block_bytes;
	uint64_t tag, incarnation;
	/* HEAD is AT bytes from the start of the log. An error ends the scan. */
	int (*found)(struct redo_scan *scan, const struct redo_head *head, uint64_t at);
	/* Once; inside redo_scan_start() where one turn is enough. */
	void (*done)(struct redo_scan *scan, int error);

	/* The scan's. */
	uint64_t at;
	struct env_timer turn;
};

void redo_scan_start(struct redo_scan *scan);

#endif
