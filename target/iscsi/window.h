/* SPDX-License-Identifier: MIT */
/*
 * The command window of a session: CmdSN in order, and MaxCmdSN from what is free.
 *
 *        executed            held or missing          not allowed yet
 *   ──────────────────┬───────────────────────────┬──────────────────▶ CmdSN
 *                   exp                           max
 *
 * `size` commands may be outstanding. A number is outstanding from its coming
 * in until its answer goes out; so max = exp - 1 + size - outstanding, where
 * only numbers below exp count as outstanding. It never goes back.
 *
 * Spec: RFC 7143 section 4.2.2.1.
 */
#ifndef TARGET_ISCSI_WINDOW_H
#define TARGET_ISCSI_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base.h"

struct iscsi_window {
	uint32_t exp; /* ExpCmdSN */
	unsigned size;
	unsigned outstanding;
	unsigned mask;
	void **held; /* by CmdSN & mask; ISCSI_WINDOW_VOID: passed over when its turn comes */
	unsigned held_count;
	uint32_t told_max; /* MaxCmdSN that the initiator was told last */
};

/* SIZE at least 1. False: out of memory. */
bool iscsi_window_init(struct iscsi_window *w, unsigned size, uint32_t first);
void iscsi_window_fini(struct iscsi_window *w);

static inline uint32_t iscsi_window_max(const struct iscsi_window *w)
{
	return w->exp - 1 + (w->size - w->outstanding);
}

enum iscsi_window_verdict {
	ISCSI_WINDOW_NEXT, /* its turn now */
	ISCSI_WINDOW_HOLD, /* numbers before it are missing */
	ISCSI_WINDOW_DROP, /* outside, or a duplicate: ignored without a word */
};
enum iscsi_window_verdict iscsi_window_check(const struct iscsi_window *w, uint32_t cmdsn);

/* The number whose turn it is came in: exp moves on, one more is outstanding. */
void iscsi_window_advance(struct iscsi_window *w);
/* An outstanding number was answered, or needs no answer. */
void iscsi_window_release(struct iscsi_window *w);

/* After HOLD. */
void iscsi_window_hold(struct iscsi_window *w, uint32_t cmdsn, void *command);
/* Take COMMAND out again; its number is passed over. */
void iscsi_window_void(struct iscsi_window *w, uint32_t cmdsn);
/*
 * The held command whose turn it is, already advanced over; NULL: none. Voids
 * before it are passed.
 */
void *iscsi_window_take(struct iscsi_window *w);
/* Any held command, for tearing down; NULL: none left. */
void *iscsi_window_drain(struct iscsi_window *w);
/* The first held command that MATCH accepts. */
void *iscsi_window_find(const struct iscsi_window *w, bool (*match)(void *arg, void *command),
			void *arg);

#endif
