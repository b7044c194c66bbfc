/* SPDX-License-Identifier: MIT */
/*
 * An array on the simulated machine whose story a test tells step by step.
 *
 * A story begins with begin() and ends with end() or ends_well().
 */
#ifndef TESTS_FAKE_STORY_RIG_H
#define TESTS_FAKE_STORY_RIG_H

#include <check.h>
#include <errno.h>

#include "core/log.h"
#include "raid/array_int.h"
#include "tests/sim/machine.h"

#define HOUR_NS (3600 * NS_PER_S)
#define ALL 0xffu

static struct world *world;
static struct machine *machine;
static struct machine_shape shape;

static inline void quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static inline void holds(void)
{
	const char *violation = machine_violation(machine);

	ck_assert_msg(!violation, "%s", violation);
}

static inline void begin_shape(uint64_t seed)
{
	log_redirect(quiet);
	world = world_new(seed);
	machine = machine_new(world, &shape);
	holds();
}

static inline void begin_on(unsigned level, unsigned disks, bool write_cache, bool garbage,
			    uint64_t seed)
{
	shape = (struct machine_shape){
		.level = level,
		.disks = disks,
		.chunk_bytes = level == 1 ? 0 : 64 * KIB,
		.block_bytes = 512,
		.disk_bytes = 5 * MIB,
		.garbage = garbage,
		.write_cache = write_cache,
	};
	begin_shape(seed);
}

static inline void begin(unsigned level, unsigned disks, bool write_cache, uint64_t seed)
{
	begin_on(level, disks, write_cache, true, seed);
}

/* Arrays with copies, on fresh disks: of the kind I % STORY_KINDS; disk 1 may be lost in all of them. */
static const struct {
	unsigned level, disks;
} story_kinds[] = { { 1, 2 }, { 10, 4 }, { 5, 4 } };
#define STORY_KINDS ARRAY_LEN(story_kinds)

static inline void begin_kind(unsigned i, bool write_cache, uint64_t seed)
{
	begin_on(story_kinds[i % STORY_KINDS].level, story_kinds[i % STORY_KINDS].disks,
		 write_cache, false, seed);
}

static inline void end(void)
{
	holds();
	machine_free(machine);
	world_free(world);
}

static inline struct array_info info(void)
{
	struct array_info now;

	array_info(machine_array(machine), &now);
	return now;
}

/* Whatever has to be copied is. */
static inline void heals(void)
{
	uint64_t end_ns = env_now_ns(world_env(world)) + HOUR_NS;

	while ((info().state != ARRAY_HEALTHY || info().regions_doubtful) &&
	       env_now_ns(world_env(world)) < end_ns)
		if (!world_step(world))
			break;
	ck_assert_int_eq(info().state, ARRAY_HEALTHY);
	ck_assert_uint_eq(info().regions_doubtful, 0);
}

/* Healthy, everything readable and right, all copies equal. */
static inline void ends_well(void)
{
	heals();
	machine_read_all(machine, true);
	machine_stop(machine);
	machine_check_copies(machine);
	end();
}

static inline void writes(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(machine_do(machine, IO_WRITE, world_below(world, 2000) * 1024ull,
					    8 * KIB),
				 0);
}

static inline void gone(unsigned disk)
{
	world_disk_fault(world, disk, WORLD_FAULT_GONE);
}

static inline void back(unsigned disk)
{
	world_disk_fault(world, disk, WORLD_FAULT_NONE);
}

static inline void comes_back(unsigned disk)
{
	back(disk);
	ck_assert_int_eq(machine_add(machine, disk), 0);
}

/* In-sync, and a durable label says so. */
static inline void is_taken_in(unsigned disk)
{
	while (machine_member(machine, disk) != LABEL_IN_SYNC || !machine_settled(machine))
		ck_assert(world_step(world));
}

static inline void submits(unsigned count)
{
	while (count-- > 0)
		machine_submit(machine);
}

static inline void steps(unsigned count)
{
	while (count-- > 0 && world_step(world))
		;
}

#endif
