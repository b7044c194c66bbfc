/* SPDX-License-Identifier: MIT */
/*
 * Unit attention conditions of one I_T_L nexus.
 *
 * A set of bits: bounded by the number of conditions, so that raising one can
 * never fail and never loses another; equal ones coalesce. What SAM-5 says in
 * which order they are reported is the order of the enum.
 *
 * Spec: SAM-5 5.14 and 6.2, SPC-4 4.5.
 */
#ifndef MPIO_UA_H
#define MPIO_UA_H

#include <stdbool.h>
#include <stdint.h>

/* Highest priority first. */
enum ua_condition {
	UA_POWER_ON,                /* 29/00: at first contact */
	UA_POWER_CYCLED,            /* 29/01 */
	UA_TARGET_RESET,            /* 29/02: hard reset, of the whole target */
	UA_LUN_RESET,               /* 29/03 */
	UA_NEXUS_LOSS,              /* 29/07 */
	UA_CLEARED_BY_OTHER,        /* 2F/00: commands cleared by another initiator */
	UA_REGISTRATIONS_PREEMPTED, /* 2A/05 */
	UA_RESERVATIONS_PREEMPTED,  /* 2A/03 */
	UA_RESERVATIONS_RELEASED,   /* 2A/04 */
	UA_MODE_CHANGED,            /* 2A/01 */
	UA_ALUA_CHANGED,            /* 2A/06 */
	UA_LUNS_CHANGED,            /* 3F/0E: REPORTED LUNS DATA HAS CHANGED */
	UA_CAPACITY_CHANGED,        /* 2A/09 */
	UA_THIN_SOFT_LIMIT,         /* 38/07 */
	UA_COUNT,
	UA_NONE = UA_COUNT
};

struct ua_set {
	uint32_t pending; /* bit n: condition n */
};

/*
 * A reset makes every condition that it implies superfluous: the host starts
 * anew. Later news are kept beside a reset that was not reported yet.
 */
void ua_raise(struct ua_set *set, enum ua_condition condition);
/* The one to report next, left in place. */
enum ua_condition ua_peek(const struct ua_set *set);
/* The one to report now; it is gone. UA_NONE: nothing pending. */
enum ua_condition ua_take(struct ua_set *set);
/* The host has learnt of it in another way (REPORT LUNS: 3F/0E). */
void ua_clear(struct ua_set *set, enum ua_condition condition);

static inline bool ua_pending(const struct ua_set *set)
{
	return set->pending != 0;
}

static inline bool ua_several(const struct ua_set *set)
{
	return (set->pending & (set->pending - 1)) != 0;
}

#endif
