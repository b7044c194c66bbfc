/* SPDX-License-Identifier: MIT */
/*
 * Labels of one array as its life makes them, without an array: disks fail, come back, and get the
 * running label one by one. Tests add starts.
 */
#ifndef TESTS_FAKE_LABEL_WORLD_H
#define TESTS_FAKE_LABEL_WORLD_H

#include <string.h>

#include "raid/assembly.h"

#define DISKS_MAX 6

struct disk {
	struct label label;
	unsigned version; /* of the one value that is written over and over */
};

struct world {
	unsigned level, roles;
	struct disk disks[DISKS_MAX];
	bool running;
	struct label label;  /* of the running array */
	uint32_t unlabelled; /* listed and rebuilding disks that do not have it yet */
	uint32_t added;      /* the disks that this label adds */
	uint32_t unwritten;  /* listed disks that do not have `written` yet */
	unsigned written, acknowledged;
	uint64_t next_id;
	uint64_t seed;
	unsigned starts, degraded, waits;
	bool lost;
};

static const struct {
	unsigned level, roles;
} geometries[] = {
	{ 1, 2 }, { 1, 3 }, { 1, 4 }, { 5, 3 }, { 5, 4 }, { 5, 6 }, { 10, 4 }, { 10, 6 }
};

static inline struct label first_label(unsigned level, unsigned roles)
{
	struct label label = { .name = "a",
			       .id = 1,
			       .level = level,
			       .roles = roles,
			       .chunk_bytes = level == 1 ? 0 : 65536,
			       .block_bytes = 512,
			       .data = { MIB, MIB } };

	memset(label.array, 1, sizeof(label.array));
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		label.members[i].role = LABEL_NO_ROLE;
	for (unsigned i = 0; i < roles; i++) {
		memset(label.members[i].uuid, (int)i + 1, sizeof(uuid_t));
		label.members[i].state = LABEL_IN_SYNC;
		label.members[i].role = (uint8_t)i;
	}
	return label;
}

static inline void world_init(struct world *world, unsigned level, unsigned roles, uint64_t seed)
{
	memset(world, 0, sizeof(*world));
	world->level = level;
	world->roles = roles;
	world->seed = seed;
	world->label = first_label(level, roles);
	world->next_id = 2;
	world->running = true;
	for (unsigned i = 0; i < roles; i++) {
		world->disks[i].label = world->label;
		world->disks[i].label.self = i;
	}
}

/* Who gets the label. */
static inline uint32_t members_of(const struct label *label)
{
	uint32_t members = 0;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		members |= (uint32_t)(label->members[i].state == LABEL_IN_SYNC ||
				      label->members[i].state == LABEL_REBUILDING)
			   << i;
	return members;
}

/* The running array's label changes; its members get it one by one. */
static inline bool new_label(struct world *world)
{
	if (label_succeed(&world->label, world->next_id) < 0)
		return false;
	world->next_id++;
	return true;
}

static inline void drop(struct world *world, unsigned disk)
{
	struct label next = world->label;
	uint32_t held;

	next.members[disk].state = LABEL_FAILED;
	held = label_listed(&next) & ~world->added;
	if (!assembly_can_run(world->level, world->roles, held) || !new_label(world))
		return;
	for (unsigned i = 0; i < world->roles; i++)
		if (world->added >> i & 1)
			world->label.members[i].state = LABEL_REBUILDING;
	world->label.members[disk].state = LABEL_FAILED;
	world->added = 0;
	world->unlabelled = members_of(&world->label);
	world->unwritten &= held;
}

static inline void label_lands(struct world *world, unsigned disk)
{
	world->disks[disk].label = world->label;
	world->disks[disk].label.self = disk;
	world->unlabelled &= ~(1u << disk);
	if (!(world->unlabelled & label_listed(&world->label)))
		label_settled(&world->label);
	if (!world->unlabelled)
		world->added = 0;
}

#endif
