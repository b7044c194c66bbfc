/* SPDX-License-Identifier: MIT */
/*
 * The simulated machine: one event heap, a virtual clock and disks that fail, all from a seed.
 *
 * It lives through several lives of the software under test: world_power_cut() ends one. What
 * that life still asks of its disks fails and changes nothing, so its objects are taken down as
 * at any other stop; files opened before are stale.
 *
 * Disks: a write is seen by reads when it completes and is durable when it was FUA or a FLUSH
 * that began after it completed has succeeded. At a power cut every 512-byte sector of what is
 * not durable, in flight included, keeps any of its values since the durable one.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "core/env.h"

#define SIM_DISKS_MAX 32
#define SIM_SECTOR 512u

struct world;

struct world *world_new(uint64_t seed);
/* Asserts that the life has ended: no operation, work, timer or deferred callback. */
void world_free(struct world *world);

struct env *world_env(struct world *world);

/* Chance for the scenario; what the software draws (env_random) comes from another stream. */
uint64_t world_random(struct world *world);
unsigned world_below(struct world *world, unsigned bound); /* 0 .. bound - 1 */
bool world_chance(struct world *world, unsigned percent);
/* From here on chance follows from SEED: what came before can be left out and changes nothing. */
void world_chance_from(struct world *world, uint64_t seed);
/* Of everything that disks were asked and answered until now: equal for equal lives. */
uint64_t world_trace(const struct world *world);

/* Serve the next event; false: there is none. */
bool world_step(struct world *world);
/* Until *DONE or nothing is left; false: the latter, or UNTIL_NS has come. */
bool world_run_until(struct world *world, const bool *done, uint64_t until_ns);
/* Everything that happens within NS from now. */
void world_run_for(struct world *world, uint64_t ns);

/* A disk of zeroes, all durable. */
unsigned world_disk_add(struct world *world, uint64_t size_bytes);
uint64_t world_disk_size(const struct world *world, unsigned disk);
/* A file descriptor for this life. */
int world_disk_open(struct world *world, unsigned disk);
/*
 * Random bytes from end to end, durable: a disk that had another life, or another disk in its
 * place. False: something is under way.
 */
bool world_disk_fill(struct world *world, unsigned disk);
/* Writes under way that begin in [FROM, TO) of their disk. */
unsigned world_writes_in(const struct world *world, uint64_t from, uint64_t to);

/* Faults. They last until taken back, power cuts included, unless said otherwise. */
enum world_fault {
	WORLD_FAULT_NONE,
	WORLD_FAULT_GONE,   /* pulled out: every operation fails with -EIO, it cannot be opened */
	WORLD_FAULT_ERRORS, /* each operation fails with -EIO, one in three */
	WORLD_FAULT_WRITES, /* each write, flush and punch fails with -EIO */
	WORLD_FAULT_FLUSH,  /* the next FLUSH fails once; what it covered may be lost at the cut */
	WORLD_FAULT_STUCK,  /* nothing completes until it is taken back, or the power is cut */
	WORLD_FAULT_SLOW,   /* everything takes 20 times as long */
	WORLD_FAULTS
};
void world_disk_fault(struct world *world, unsigned disk, enum world_fault fault);
enum world_fault world_disk_fault_now(const struct world *world, unsigned disk);
/* Reads of RANGE fail with -EIO until it is written. */
void world_disk_bad(struct world *world, unsigned disk, uint64_t offset, uint64_t length);
/* Bad ranges are none any more; whether there are any. */
void world_disk_mend(struct world *world, unsigned disk);
bool world_disk_has_bad(const struct world *world, unsigned disk);
/* What a careful reader would find: the bytes that reads see; for oracles and silent faults. */
uint8_t *world_disk_bytes(struct world *world, unsigned disk);
/* Remember its content, and have it back later: a disk that was taken out and returns. */
void world_disk_remember(struct world *world, unsigned disk);
void world_disk_recall(struct world *world, unsigned disk);

/* How a power cut treats what is not durable. */
enum world_cut { WORLD_CUT_ANY, WORLD_CUT_DROP, WORLD_CUT_KEEP };
void world_power_cut(struct world *world, enum world_cut cut);
/* The life after it: the software may be started again. Asserts that the old one is gone. */
void world_power_on(struct world *world);

struct world_counts {
	uint64_t events;
	uint64_t ops[ENV_DISK_ZERO + 1];
	uint64_t failed;
	uint64_t cut_sectors;   /* that lost a value at a power cut */
	uint64_t cut_in_flight; /* operations */
};
const struct world_counts *world_counts(const struct world *world);

#endif
