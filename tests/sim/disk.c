/* SPDX-License-Identifier: MIT */
/*
 * A simulated disk.
 *
 * Invariants:
 *  1. Versions rise. A sector of `stable` has the bytes of its version; neither FLUSH nor FUA
 *     puts an older one in its place.
 *  2. A write that failed has reached any of its sectors, and may be lost as any other.
 *
 * Not here: when operations end (world.c).
 */
#include "tests/sim/disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void disk_init(struct disk *disk, uint64_t size_bytes)
{
	uint64_t sectors = size_bytes / SIM_SECTOR;

	assert(size_bytes % SIM_SECTOR == 0);
	memset(disk, 0, sizeof(*disk));
	disk->size_bytes = size_bytes;
	disk->seen = calloc(1, size_bytes);
	disk->stable = calloc(1, size_bytes);
	disk->versions = calloc(sectors, sizeof(*disk->versions));
	disk->bad = calloc(sectors, 1);
	disk->differs = calloc(size_bytes / DISK_BLOCK + 1, 1);
	assert(disk->differs && disk->seen && disk->stable && disk->versions && disk->bad);
	TAILQ_INIT(&disk->changes);
}

static void change_free(struct disk *disk, struct change *change)
{
	TAILQ_REMOVE(&disk->changes, change, link);
	free(change->bytes);
	free(change);
}

void disk_free(struct disk *disk)
{
	struct change *change, *next;

	TAILQ_FOREACH_SAFE(change, &disk->changes, link, next)
		change_free(disk, change);
	free(disk->seen);
	free(disk->stable);
	free(disk->versions);
	free(disk->bad);
	free(disk->memory);
	free(disk->differs);
}

struct change *disk_begin(struct disk *disk, const struct env_disk_op *op)
{
	struct change *change;
	uint8_t *at;

	if (op->kind == ENV_DISK_READ || op->kind == ENV_DISK_FLUSH)
		return NULL;
	change = calloc(1, sizeof(*change));
	assert(change);
	change->sector = op->offset / SIM_SECTOR;
	change->count = op->length / SIM_SECTOR;
	change->bytes = op->kind == ENV_DISK_WRITE ? malloc(op->length) : calloc(1, op->length);
	assert(change->bytes);
	at = change->bytes;
	if (op->kind == ENV_DISK_WRITE)
		for (unsigned i = 0; i < op->iov_count; at += op->iov[i].iov_len, i++)
			memcpy(at, op->iov[i].iov_base, op->iov[i].iov_len);
	memset(disk->differs + op->offset / DISK_BLOCK, 1,
	       (op->offset + op->length - 1) / DISK_BLOCK - op->offset / DISK_BLOCK + 1);
	TAILQ_INSERT_TAIL(&disk->changes, change, link);
	return change;
}

static uint8_t *sector_of(uint8_t *image, const struct change *change, uint64_t i)
{
	return image + (change->sector + i) * SIM_SECTOR;
}

/* COUNT sectors from the I-th of CHANGE on, but where a newer version is durable. */
static void sectors_stable(struct disk *disk, const struct change *change, uint64_t i,
			   uint64_t count)
{
	uint64_t *versions = &disk->versions[change->sector];
	uint64_t end = i + count, from;

	while (i < end) {
		for (from = i; i < end && versions[i] < change->version; i++)
			versions[i] = change->version;
		memcpy(sector_of(disk->stable, change, from), change->bytes + from * SIM_SECTOR,
		       (i - from) * SIM_SECTOR);
		while (i < end && versions[i] >= change->version)
			i++;
	}
}

static void make_stable(struct disk *disk, struct change *change)
{
	sectors_stable(disk, change, 0, change->count);
	change_free(disk, change);
}

/* It completed: behind those that did before, so that changes stay in the order of versions. */
static void completed(struct disk *disk, struct change *change, uint64_t *version)
{
	change->version = ++*version;
	TAILQ_REMOVE(&disk->changes, change, link);
	TAILQ_INSERT_TAIL(&disk->changes, change, link);
}

static int end_write(struct disk *disk, struct change *change, bool fua, uint64_t *version)
{
	completed(disk, change, version);
	memcpy(sector_of(disk->seen, change, 0), change->bytes, change->count * SIM_SECTOR);
	memset(disk->bad + change->sector, 0, change->count);
	if (fua)
		make_stable(disk, change);
	return 0;
}

static int end_flush(struct disk *disk, uint64_t flush_version)
{
	struct change *change, *next;

	for (change = TAILQ_FIRST(&disk->changes); change; change = next) {
		next = TAILQ_NEXT(change, link);
		if (change->version && change->version <= flush_version)
			make_stable(disk, change);
	}
	return 0;
}

static int end_read(struct disk *disk, const struct env_disk_op *op)
{
	const uint8_t *at = disk->seen + op->offset;

	if (memchr(disk->bad + op->offset / SIM_SECTOR, 1, op->length / SIM_SECTOR))
		return -EIO;
	for (unsigned i = 0; i < op->iov_count; at += op->iov[i].iov_len, i++)
		memcpy(op->iov[i].iov_base, at, op->iov[i].iov_len);
	return 0;
}

/* The kernel has told of the failure once and forgets: any of it may never reach the disk. */
static void fail_flush(struct disk *disk, struct world *world)
{
	struct change *change, *next;

	for (change = TAILQ_FIRST(&disk->changes); change; change = next) {
		next = TAILQ_NEXT(change, link);
		if (change->version && world_below(world, 2))
			change_free(disk, change);
	}
}

/* What the disk's fault makes of OP: 0 or -EIO. */
static int misfortune(struct disk *disk, const struct env_disk_op *op, struct world *world)
{
	switch (disk->fault) {
	case WORLD_FAULT_GONE:
		return -EIO;
	case WORLD_FAULT_ERRORS:
		return world_below(world, 3) == 0 ? -EIO : 0;
	case WORLD_FAULT_WRITES:
		return op->kind != ENV_DISK_READ ? -EIO : 0;
	case WORLD_FAULT_FLUSH:
		if (op->kind != ENV_DISK_FLUSH)
			return 0;
		disk->fault = WORLD_FAULT_NONE;
		fail_flush(disk, world);
		return -EIO;
	default:
		return 0;
	}
}

static void fail_write(struct disk *disk, struct change *change, struct world *world,
		       uint64_t *version)
{
	completed(disk, change, version);
	for (uint64_t i = 0; i < change->count; i++) {
		uint8_t *seen = sector_of(disk->seen, change, i);
		uint8_t *written = change->bytes + i * SIM_SECTOR;

		if (world_below(world, 2))
			memcpy(seen, written, SIM_SECTOR);
		else
			memcpy(written, seen, SIM_SECTOR);
	}
}

int disk_end(struct disk *disk, const struct env_disk_op *op, struct change *change,
	     uint64_t flush_version, struct world *world, uint64_t *version)
{
	int error = misfortune(disk, op, world);

	if (error) {
		if (change)
			fail_write(disk, change, world, version);
		return error;
	}
	switch (op->kind) {
	case ENV_DISK_READ:
		return end_read(disk, op);
	case ENV_DISK_FLUSH:
		return end_flush(disk, flush_version);
	default:
		return end_write(disk, change, op->fua, version);
	}
}

bool disk_forget(struct disk *disk)
{
	struct change *change, *next;

	TAILQ_FOREACH(change, &disk->changes, link)
		if (!change->version)
			return false;
	TAILQ_FOREACH_SAFE(change, &disk->changes, link, next)
		change_free(disk, change);
	return true;
}

/* One in flight has no version yet: what of it is kept, landed last. */
static void cut_change(struct disk *disk, struct change *change, enum world_cut cut,
		       struct world *world, uint64_t *version, struct world_counts *counts)
{
	if (!change->version) {
		counts->cut_in_flight++;
		change->version = ++*version;
	}
	for (uint64_t i = 0; i < change->count; i++) {
		if (cut == WORLD_CUT_KEEP || (cut == WORLD_CUT_ANY && world_below(world, 2)))
			sectors_stable(disk, change, i, 1);
		else
			counts->cut_sectors++;
	}
	change_free(disk, change);
}

void disk_cut(struct disk *disk, enum world_cut cut, struct world *world, uint64_t *version,
	      struct world_counts *counts)
{
	struct change *change, *next;

	TAILQ_FOREACH_SAFE(change, &disk->changes, link, next)
		cut_change(disk, change, cut, world, version, counts);
	for (uint64_t at = 0; at < disk->size_bytes; at += DISK_BLOCK) {
		uint8_t *differs = &disk->differs[at / DISK_BLOCK];

		if (!*differs)
			continue;
		memcpy(disk->seen + at, disk->stable + at,
		       min_u64(DISK_BLOCK, disk->size_bytes - at));
		*differs = 0;
	}
}
