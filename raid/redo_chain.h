/* SPDX-License-Identifier: MIT */
/*
 * Which of the records found in a log are to be replayed. Pure.
 */
#ifndef RAID_REDO_CHAIN_H
#define RAID_REDO_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

/* A sound record of the log's incarnation. */
struct redo_found {
	uint64_t sequence, batch, attempt, tail;
	uint64_t at; /* bytes from the start of the log */
	bool valid;
};

/*
 * COUNT records in any order: those to be replayed come to the front, in their order. Returns how
 * many.
 */
unsigned redo_chain(struct redo_found *found, unsigned count);

#endif
