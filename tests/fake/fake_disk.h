/* SPDX-License-Identifier: MIT */
/*
 * A disk in memory that can be cloned, held and torn: what completed is durable.
 */
#ifndef TESTS_FAKE_FAKE_DISK_H
#define TESTS_FAKE_FAKE_DISK_H

#include "backstore/blk.h"

#define FAKE_SECTOR 512u

struct fake_disk {
	struct blk blk;
	uint8_t **pages;        /* of 4 KiB; NULL: zeroes */
	unsigned hold_purposes; /* bit mask of 1 << IO_HOST...: writes of these wait in `held` */
	struct io_list held;
	int fail;                  /* every io fails with this */
	int fail_writes;           /* every write does */
	unsigned fail_purposes;    /* writes of these fail with -EIO */
	uint64_t bad_from, bad_to; /* reads that touch it fail, until it is written */
	uint64_t last_write_offset, last_write_length; /* of the newest write */
	uint64_t fua_writes;
	uint64_t latency_ns; /* an io takes so long, half of it or twice */
	uint64_t chance;
};

struct fake_disk *fake_disk_new(struct env *env, uint64_t size_bytes, uint32_t block_size);
/* Another disk with the same content, of ENV. */
struct fake_disk *fake_disk_clone(struct env *env, const struct fake_disk *disk);

void fake_disk_read(const struct fake_disk *disk, uint64_t offset, void *buf, uint64_t length);
void fake_disk_write(struct fake_disk *disk, uint64_t offset, const void *buf, uint64_t length);

/* Sectors that wait in `held`; the content of the INDEX-th of them goes to TO. */
unsigned fake_disk_held_sectors(const struct fake_disk *disk);
void fake_disk_land(const struct fake_disk *disk, unsigned index, struct fake_disk *to);
/* What waits is done, or ends with ERROR; nothing waits from now on. */
void fake_disk_release(struct fake_disk *disk, int error);

#endif
