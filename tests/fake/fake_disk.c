/* SPDX-License-Identifier: MIT */
/*
 * A disk in memory.
 *
 * Invariants:
 *  1. A write that waits in `held` has changed nothing yet.
 *
 * Not here: caches that lose things (tests/sim).
 */
#include "tests/fake/fake_disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

static struct fake_disk *disk_of(struct blk *blk)
{
	return container_of(blk, struct fake_disk, blk);
}

void fake_disk_read(const struct fake_disk *disk, uint64_t offset, void *buf, uint64_t length)
{
	uint8_t *to = buf;

	for (uint64_t part; length > 0; length -= part, offset += part, to += part) {
		const uint8_t *page = disk->pages[offset / PAGE];

		part = min_u64(length, PAGE - offset % PAGE);
		if (page)
			memcpy(to, page + offset % PAGE, part);
		else
			memset(to, 0, part);
	}
}

void fake_disk_write(struct fake_disk *disk, uint64_t offset, const void *buf, uint64_t length)
{
	const uint8_t *from = buf;

	for (uint64_t part; length > 0; length -= part, offset += part, from += part) {
		uint8_t **page = &disk->pages[offset / PAGE];

		part = min_u64(length, PAGE - offset % PAGE);
		if (!*page)
			*page = calloc(1, PAGE);
		assert(*page);
		memcpy(*page + offset % PAGE, from, part);
	}
}

static void write_now(struct fake_disk *disk, const struct io *io)
{
	uint64_t at = io->offset;

	for (unsigned i = 0; i < io->iov_count; at += io->iov[i].iov_len, i++)
		fake_disk_write(disk, at, io->iov[i].iov_base, io->iov[i].iov_len);
	disk->last_write_offset = io->offset;
	disk->last_write_length = io->length;
	disk->fua_writes += (io->flags & IO_FUA) != 0;
	if (io->offset < disk->bad_to && io->offset + io->length > disk->bad_from)
		disk->bad_from = disk->bad_to = 0;
}

static int do_io(struct fake_disk *disk, struct io *io)
{
	uint64_t at = io->offset;

	if (disk->fail)
		return disk->fail;
	if (io->op == IO_WRITE && disk->fail_writes)
		return disk->fail_writes;
	if (io->op == IO_WRITE && disk->fail_purposes >> io->purpose & 1)
		return -EIO;
	if (io->op == IO_READ && io->offset < disk->bad_to &&
	    io->offset + io->length > disk->bad_from)
		return -EIO;
	for (unsigned i = 0; io->op == IO_READ && i < io->iov_count; at += io->iov[i].iov_len, i++)
		fake_disk_read(disk, at, io->iov[i].iov_base, io->iov[i].iov_len);
	if (io->op == IO_WRITE)
		write_now(disk, io);
	return 0;
}

static void time_over(struct env_timer *timer)
{
	struct io *io = container_of(timer, struct io, leaf.timer);

	io_done(io, do_io(disk_of(io_blk(io)), io));
}

static void take_time(struct fake_disk *disk, struct io *io)
{
	disk->chance = disk->chance * 6364136223846793005u + 1442695040888963407u;
	io->leaf.timer = (struct env_timer){ .fn = time_over };
	env_timer_set(disk->blk.env, &io->leaf.timer,
		      disk->latency_ns / 2 + disk->chance % (3 * disk->latency_ns / 2));
}

static void fake_submit(struct blk *blk, struct io *io)
{
	struct fake_disk *disk = disk_of(blk);

	if (io->op == IO_WRITE && disk->hold_purposes >> io->purpose & 1)
		STAILQ_INSERT_TAIL(&disk->held, io, link);
	else if (disk->latency_ns)
		take_time(disk, io);
	else
		io_done(io, do_io(disk, io));
}

static void fake_close(struct blk *blk)
{
	struct fake_disk *disk = disk_of(blk);

	for (uint64_t i = 0; i < disk->blk.size_bytes / PAGE; i++)
		free(disk->pages[i]);
	free(disk->pages);
	free(disk);
}

static const struct blk_ops fake_ops = {
	.driver = "fake-disk",
	.submit = fake_submit,
	.close = fake_close,
};

struct fake_disk *fake_disk_new(struct env *env, uint64_t size_bytes, uint32_t block_size)
{
	struct fake_disk *disk = calloc(1, sizeof(*disk));

	assert(disk && size_bytes % PAGE == 0);
	STAILQ_INIT(&disk->held);
	disk->pages = calloc(size_bytes / PAGE, sizeof(*disk->pages));
	assert(disk->pages);
	disk->blk.ops = &fake_ops;
	disk->blk.env = env;
	strcpy(disk->blk.name, "disk");
	disk->blk.size_bytes = size_bytes;
	disk->blk.block_size = block_size;
	disk->blk.physical_block = block_size;
	disk->blk.features = BLK_FUA | BLK_VOLATILE;
	blk_init(&disk->blk);
	return disk;
}

struct fake_disk *fake_disk_clone(struct env *env, const struct fake_disk *from)
{
	struct fake_disk *disk = fake_disk_new(env, from->blk.size_bytes, from->blk.block_size);

	for (uint64_t i = 0; i < from->blk.size_bytes / PAGE; i++)
		if (from->pages[i])
			fake_disk_write(disk, i * PAGE, from->pages[i], PAGE);
	return disk;
}

unsigned fake_disk_held_sectors(const struct fake_disk *disk)
{
	const struct io *io;
	uint64_t bytes = 0;

	STAILQ_FOREACH(io, &disk->held, link)
		bytes += io->length;
	return (unsigned)(bytes / FAKE_SECTOR);
}

void fake_disk_land(const struct fake_disk *disk, unsigned index, struct fake_disk *to)
{
	uint64_t skip = (uint64_t)index * FAKE_SECTOR;
	const struct io *io;

	STAILQ_FOREACH(io, &disk->held, link) {
		uint64_t at = io->offset;

		for (unsigned i = 0; i < io->iov_count; at += io->iov[i].iov_len, i++) {
			if (skip < io->iov[i].iov_len) {
				fake_disk_write(to, at + skip,
						(const char *)io->iov[i].iov_base + skip,
						FAKE_SECTOR);
				return;
			}
			skip -= io->iov[i].iov_len;
		}
	}
	assert(false);
}

void fake_disk_release(struct fake_disk *disk, int error)
{
	struct io *io;

	disk->hold_purposes = 0;
	while ((io = STAILQ_FIRST(&disk->held))) {
		STAILQ_REMOVE_HEAD(&disk->held, link);
		io_done(io, error ? error : do_io(disk, io));
	}
}
