/* SPDX-License-Identifier: MIT */
/*
 * The software under test on the simulated machine: an array of file leaves over simulated
 * disks, and a host that reads and writes it through the range lock of a LUN.
 */
#ifndef TESTS_SIM_MACHINE_H
#define TESTS_SIM_MACHINE_H

#include "backstore/rangelock.h"
#include "raid/array.h"
#include "tests/sim/oracle.h"
#include "tests/sim/world.h"

#define MACHINE_IOS 16
#define MACHINE_IO_MAX (256 * KIB)

struct machine;

struct machine_shape {
	unsigned level, disks;
	uint32_t chunk_bytes, block_bytes;
	uint64_t disk_bytes; /* of the smallest */
	bool uneven;         /* disks of different sizes */
	bool garbage;        /* they held something else before */
	bool fua_disks;      /* FUA writes are cheap: they are used */
	bool intent;         /* level 5: of full stripes only an intent is logged */
	bool write_cache;    /* the host sees WCE=1: flushes make durable */
};

/* One of all there are; LEVEL: or -1 for any. */
void machine_shape_any(struct world *world, int level, struct machine_shape *shape);

struct machine_counts {
	uint64_t reads, writes, flushes, errors, starts, degraded_starts, waits, adds;
};

/* Makes the disks and the array; the oracle knows nothing of what is on it yet. */
struct machine *machine_new(struct world *world, const struct machine_shape *shape);
void machine_free(struct machine *machine);

/*
 * Find the array on the disks in PRESENT (bit I) and start it. 0, -EAGAIN: it waits, ...; then
 * the machine has no array.
 */
int machine_start(struct machine *machine, uint32_t present);
/* Stops it in order. */
void machine_stop(struct machine *machine);
/* Power is cut; the software is taken down; power is on again. */
void machine_cut(struct machine *machine, enum world_cut cut);
/* As machine_start(), but power is cut after so many HAPPENINGS; false: it had started before. */
bool machine_cut_in_start(struct machine *machine, uint32_t present, unsigned happenings,
			  enum world_cut cut);

/* Disk DISK is given to the running array again; the answer. */
int machine_add(struct machine *machine, unsigned disk);
/* The array, as one that runs, is to do without DISK for good; the answer. */
int machine_remove(struct machine *machine, unsigned disk);
/* The same, but nobody waits for the answer. False: there is no such disk, or member. */
bool machine_begin_add(struct machine *machine, unsigned disk);
bool machine_begin_remove(struct machine *machine, unsigned disk);
/* What the running array thinks of DISK: LABEL_NONE if it is no member. */
enum label_state machine_member(struct machine *machine, unsigned disk);
/* No label is being written. */
bool machine_settled(struct machine *machine);
/* Where the members' data begin. */
uint64_t machine_data_offset(const struct machine *machine);

/* One more host command of a random kind; false: as many are under way as may be. */
bool machine_submit(struct machine *machine);
/* This one command, and its error. */
int machine_do(struct machine *machine, enum io_op op, uint64_t offset, uint64_t length);
/* The same, but nobody waits for it. False: as many are under way as may be. */
bool machine_begin(struct machine *machine, enum io_op op, uint64_t offset, uint64_t length);
/* Read all that hosts mostly write. */
void machine_look(struct machine *machine);
/* From now on an error that a host sees is a violation, or it is not. */
void machine_must_work(struct machine *machine, bool must);
/* Say every host command and its answer on stdout. */
void machine_say(struct machine *machine, bool yes);
/* All of them are answered. False: one is not, after an hour. */
bool machine_drain(struct machine *machine);
/* Read everything; what cannot be read is an error only if STRICT. */
void machine_read_all(struct machine *machine, bool strict);

struct array *machine_array(struct machine *machine); /* NULL: not running */
/* What went wrong first, or NULL. */
const char *machine_violation(const struct machine *machine);
const struct machine_counts *machine_counts(const struct machine *machine);
/* Members' data areas that should be equal are; after machine_stop(). */
void machine_check_copies(struct machine *machine);

#endif
