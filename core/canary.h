/* SPDX-License-Identifier: MIT */
/*
 * Canaries: rules that the simulator's builds can switch off at run time, one at a time, to show
 * that the simulator would find the code that lacks them.
 *
 * canary(CANARY_X) is constant false outside builds with YOKE_CANARIES (MODE=sim), so the code
 * behind it is gone there. Numbers in brackets are those of the invariants.
 */
#ifndef CORE_CANARY_H
#define CORE_CANARY_H

#include <stdbool.h>

/* X(what, the command line's name, what is broken) */
#define CANARIES(X)                                                                                \
	X(FUA, "fua", "[I1] children of a fan-out lose FUA")                                       \
	X(FLUSH_LIES, "flush-lies", "[I1] a FLUSH of a mirror reaches nobody")                     \
	X(FLUSH_IGNORED, "flush-ignored", "a failed FLUSH counts as done")                         \
	X(FIRST_ERROR, "first-error", "a child's error is overwritten by the next one's end")      \
	X(GENERATION, "generation", "[I9] the highest generation decides, whoever has it")         \
	X(ACK_BEFORE_LABEL, "ack-before-label",                                                    \
	  "[I9] a write that skipped a member is answered before the label says so")               \
	X(ADD_BEFORE_LABEL, "add-before-label",                                                    \
	  "[I9] a member that a label adds counts before it is durable everywhere")                \
	X(DOUBT, "doubt", "[I10] a write does not wait for its dirty bit")                         \
	X(CLEAN, "clean", "[I10] a dirty bit is withdrawn without a FLUSH")                        \
	X(IN_SYNC, "in-sync", "[I10] a member is in-sync before its copy is durable")              \
	X(DOUBTFUL_READ, "doubtful-read", "[I11] a doubtful region is read from any leg")          \
	X(MISSED, "missed", "a member that returns does not get what it missed")                   \
	X(WRITE_HOLE, "write-hole", "a stripe is written before its record is in the log")         \
	X(LOG_DURABLE, "log-durable",                                                              \
	  "[I6] what is in the log counts as durable: FUA and FLUSH go no further")                \
	X(INCARNATION, "incarnation", "[I7] records of a log that was voided are replayed")        \
	X(INTENT_ORDER, "intent-order",                                                            \
	  "[I8] a stripe that is not logged whole does not wait for records of it")                \
	X(TORN, "torn", "[I8] a torn stripe with a member missing counts as whole")                \
	X(LOG_REUSE, "log-reuse", "[I10] room in the log is given back without a FLUSH")

enum canary {
	CANARY_NONE,
#define X(what, name, text) CANARY_##what,
	CANARIES(X)
#undef X
		CANARY_COUNT
};

#ifdef YOKE_CANARIES
extern enum canary canary_now; /* the one that is switched off */

static inline bool canary(enum canary what)
{
	return __builtin_expect(canary_now == what, 0);
}
#else
static inline bool canary(enum canary what)
{
	(void)what;
	return false;
}
#endif

#endif
