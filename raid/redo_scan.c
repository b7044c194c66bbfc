/* SPDX-License-Identifier: MIT */
/*
 * Looking for records in a log that is in memory.
 *
 * Invariants:
 *  1. What a sound record covers holds no other: its payload is passed over.
 *  2. A turn ends with the record that makes it a MiB of bytes looked at, also of those that proved
 *     to be no record. The next one waits for a timer, so that others have theirs: what is deferred
 *     runs in the same turn.
 *
 * Not here: which records count (redo_chain.c), a head's bytes (redo_record.c).
 */
#include "raid/redo_scan.h"

#define TURN_BYTES MIB

/* Bytes that looking at what begins here took; HEAD: of the record, if FOUND. */
static uint64_t look(const struct redo_scan *scan, struct redo_head *head, bool *found)
{
	const char *block = scan->log + scan->at;
	uint64_t available = scan->length - scan->at;

	*found = false;
	if (!redo_decode_head(block, available, scan->block_bytes, scan->tag, scan->incarnation,
			      head))
		return scan->block_bytes;
	*found = redo_sound(block, scan->block_bytes, head);
	return scan->block_bytes + redo_payload_bytes(head);
}

static void take_turn(struct redo_scan *scan)
{
	struct redo_head head;
	bool found;
	int error;

	for (uint64_t looked = 0; scan->at + scan->block_bytes <= scan->length;) {
		uint64_t bytes;

		if (looked >= TURN_BYTES) {
			env_timer_set(scan->env, &scan->turn, 0);
			return;
		}
		bytes = look(scan, &head, &found);
		looked += bytes;
		error = found ? scan->found(scan, &head, scan->at) : 0;
		if (error) {
			scan->done(scan, error);
			return;
		}
		scan->at += found ? bytes : scan->block_bytes;
	}
	scan->done(scan, 0);
}

static void turn_run(struct env_timer *timer)
{
	take_turn(container_of(timer, struct redo_scan, turn));
}

void redo_scan_start(struct redo_scan *scan)
{
	scan->at = 0;
	scan->turn.fn = turn_run;
	take_turn(scan);
}
