/* SPDX-License-Identifier: MIT */
/*
 * I_T nexuses of one SCSI target device, and the unit attentions that each still
 * has to see, by slot.
 *
 * A slot is what the device gives to a mapped logical unit; every nexus has a set
 * of unit attentions for each. Room for slots is made when a nexus comes and
 * when a slot is first used, so that raising cannot fail.
 *
 * Spec: SAM-5 4.7 (nexus), 5.14 (unit attentions).
 */
#ifndef MPIO_NEXUS_H
#define MPIO_NEXUS_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpio/ua.h"

#define NEXUS_NAME_MAX 224

/* Initiator port (name and ISID) and target port (portal group). */
struct nexus_id {
	char initiator[NEXUS_NAME_MAX];
	uint8_t isid[6];
	uint16_t portal_group;
};

/* Embedded in its owner. */
struct nexus {
	LIST_ENTRY(nexus) link;
	struct nexus_id id;
	struct ua_set *ua; /* by slot, registry->slots of them */
	bool registered;
};
LIST_HEAD(nexus_list, nexus);

struct nexus_registry {
	struct nexus_list nexuses;
	unsigned slots;
	unsigned count;
};

void nexus_registry_init(struct nexus_registry *registry);

/*
 * NEXUS->id is set. -EEXIST: one with an equal id is there (names compare
 * without case, as RFC 3722 folds them); -ENOMEM. Every slot has UA_POWER_ON.
 */
int nexus_register(struct nexus_registry *registry, struct nexus *nexus);
/* Out of the registry at once; its unit attentions are gone. Twice is once. */
void nexus_retire(struct nexus_registry *registry, struct nexus *nexus);
struct nexus *nexus_find(const struct nexus_registry *registry, const struct nexus_id *id);

/* Room for SLOTS slots in every nexus, now and to come; never shrinks. -ENOMEM: nothing changed. */
int nexus_reserve_slots(struct nexus_registry *registry, unsigned slots);
/* A slot is used anew: every nexus meets the logical unit for the first time. */
void nexus_slot_fresh(struct nexus_registry *registry, unsigned slot);
/* Raise CONDITION at SLOT for every nexus but EXCEPT (may be NULL). */
void nexus_raise(struct nexus_registry *registry, unsigned slot, enum ua_condition condition,
		 const struct nexus *except);
/* The set of a registered nexus; NULL once it is retired. */
struct ua_set *nexus_ua(const struct nexus_registry *registry, const struct nexus *nexus,
			unsigned slot);

#endif
