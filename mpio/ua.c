/* SPDX-License-Identifier: MIT */
/*
 * Unit attention conditions of one I_T_L nexus: raise, report in order, clear.
 *
 * Invariants:
 * 1. A condition raised stays until it is reported, cleared by name, or implied by a reset
 *    that is itself still to be reported.
 * 2. The set is one word: raising cannot fail.
 *
 * Not here: sense codes (target/scsi/sense.c), which commands report (its opcode table).
 *
 * Spec: SAM-5 5.14, 6.2.
 */
#include "mpio/ua.h"

#include "core/base.h"

#define BIT(condition) ((uint32_t)1 << (condition))

static_assert(UA_COUNT <= 32, "one bit each");

/*
 * What a condition makes superfluous. Power on implies the lesser resets; a reset
 * implies neither a change of the map nor of the capacity, which a host that only
 * resends its commands would miss.
 */
static const uint32_t implied[UA_COUNT] = {
	[UA_POWER_ON] = BIT(UA_POWER_CYCLED) | BIT(UA_TARGET_RESET) | BIT(UA_LUN_RESET) |
			BIT(UA_NEXUS_LOSS) | BIT(UA_CLEARED_BY_OTHER),
	[UA_POWER_CYCLED] = BIT(UA_TARGET_RESET) | BIT(UA_LUN_RESET) | BIT(UA_NEXUS_LOSS) |
			    BIT(UA_CLEARED_BY_OTHER),
	[UA_TARGET_RESET] = BIT(UA_LUN_RESET) | BIT(UA_NEXUS_LOSS) | BIT(UA_CLEARED_BY_OTHER),
	[UA_LUN_RESET] = BIT(UA_NEXUS_LOSS) | BIT(UA_CLEARED_BY_OTHER),
};

void ua_raise(struct ua_set *set, enum ua_condition condition)
{
	unsigned c;

	assert(condition < UA_COUNT);
	/* A higher reset still to be reported covers this one. */
	for (c = 0; c < UA_COUNT; c++)
		if ((set->pending & BIT(c)) && (implied[c] & BIT(condition)))
			return;
	set->pending &= ~implied[condition];
	set->pending |= BIT(condition);
}

enum ua_condition ua_peek(const struct ua_set *set)
{
	return set->pending ? (enum ua_condition)__builtin_ctz(set->pending) : UA_NONE;
}

enum ua_condition ua_take(struct ua_set *set)
{
	enum ua_condition condition = ua_peek(set);

	if (condition != UA_NONE)
		set->pending &= ~BIT(condition);
	return condition;
}

void ua_clear(struct ua_set *set, enum ua_condition condition)
{
	assert(condition < UA_COUNT);
	set->pending &= ~BIT(condition);
}
