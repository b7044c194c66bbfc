/* SPDX-License-Identifier: MIT */
/*
 * The registry of I_T nexuses and their unit attentions by logical unit.
 *
 * Invariants:
 * 1. No two registered nexuses have equal ids.
 * 2. Every registered nexus has a set for each slot below registry->slots, whenever it came.
 * 3. A retired nexus is in no list and has no sets.
 *
 * Not here: sessions and tasks (target/), what a condition means (mpio/ua.h).
 */
#include "mpio/nexus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base.h"

void nexus_registry_init(struct nexus_registry *registry)
{
	LIST_INIT(&registry->nexuses);
	registry->slots = 0;
	registry->count = 0;
}

struct nexus *nexus_find(const struct nexus_registry *registry, const struct nexus_id *id)
{
	struct nexus *n;

	LIST_FOREACH(n, &registry->nexuses, link)
		if (n->id.portal_group == id->portal_group &&
		    !memcmp(n->id.isid, id->isid, sizeof(id->isid)) &&
		    !strcasecmp(n->id.initiator, id->initiator))
			return n;
	return NULL;
}

int nexus_register(struct nexus_registry *registry, struct nexus *nexus)
{
	unsigned i;

	if (nexus_find(registry, &nexus->id))
		return -EEXIST;
	nexus->ua = calloc(registry->slots ? registry->slots : 1, sizeof(*nexus->ua));
	if (!nexus->ua)
		return -ENOMEM;
	for (i = 0; i < registry->slots; i++)
		ua_raise(&nexus->ua[i], UA_POWER_ON);
	LIST_INSERT_HEAD(&registry->nexuses, nexus, link);
	nexus->registered = true;
	registry->count++;
	return 0;
}

void nexus_retire(struct nexus_registry *registry, struct nexus *nexus)
{
	if (!nexus->registered)
		return;
	LIST_REMOVE(nexus, link);
	nexus->registered = false;
	registry->count--;
	free(nexus->ua);
	nexus->ua = NULL;
}

int nexus_reserve_slots(struct nexus_registry *registry, unsigned slots)
{
	struct ua_set *ua;
	struct nexus *n;

	if (slots <= registry->slots)
		return 0;
	/* One that fails leaves the others with room to spare, which nobody sees. */
	LIST_FOREACH(n, &registry->nexuses, link) {
		ua = reallocarray(n->ua, slots, sizeof(*ua));
		if (!ua)
			return -ENOMEM;
		memset(ua + registry->slots, 0, (slots - registry->slots) * sizeof(*ua));
		n->ua = ua;
	}
	registry->slots = slots;
	return 0;
}

void nexus_slot_fresh(struct nexus_registry *registry, unsigned slot)
{
	struct nexus *n;

	assert(slot < registry->slots);
	LIST_FOREACH(n, &registry->nexuses, link) {
		n->ua[slot].pending = 0;
		ua_raise(&n->ua[slot], UA_POWER_ON);
	}
}

void nexus_raise(struct nexus_registry *registry, unsigned slot, enum ua_condition condition,
		 const struct nexus *except)
{
	struct nexus *n;

	assert(slot < registry->slots);
	LIST_FOREACH(n, &registry->nexuses, link)
		if (n != except)
			ua_raise(&n->ua[slot], condition);
}

struct ua_set *nexus_ua(const struct nexus_registry *registry, const struct nexus *nexus,
			unsigned slot)
{
	assert(slot < registry->slots);
	return nexus->registered ? &nexus->ua[slot] : NULL;
}
