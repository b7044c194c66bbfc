/* SPDX-License-Identifier: MIT */
/*
 * RAID 0.
 *
 *   array   | c0 | c1 | c2 | c3 | c4 | ...
 *   part 0  | c0 | c3 | ...              chunk c lies on part c % n, in row c / n: what a range
 *   part 1  | c1 | c4 | ...              takes of a part is one piece there, whatever its length
 *   part 2  | c2 | c5 | ...
 *
 * Invariants:
 *  1. An io inside one chunk is passed on as it is; others have one child a part.
 *  2. A part that fails, fails the whole io, and nothing but the ios that touch it.
 *
 * Not here: redundancy (mirror.c, raid5.c); order of overlapping ios (whoever submits).
 */
#include "raid/raid0.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "raid/fan.h"

#define FANS 256
#define MAX_IO MIB

struct raid0 {
	struct blk blk;
	struct fan_pool *fans;
	uint64_t chunk;
	unsigned count;
	struct raid0_part parts[RAID0_PARTS_MAX];
};

/* What a range takes of one part. */
struct extent {
	uint64_t offset; /* on the part */
	uint64_t length;
};

static struct raid0 *raid0_of(struct blk *blk)
{
	return container_of(blk, struct raid0, blk);
}

uint64_t raid0_size(uint64_t length, uint32_t chunk_bytes, unsigned count)
{
	return align_down(length, chunk_bytes) * count;
}

/* Where byte AT of CHUNK lies on its part. */
static uint64_t on_part(const struct raid0 *raid0, uint64_t chunk, uint64_t at)
{
	return chunk / raid0->count * raid0->chunk + (at - chunk * raid0->chunk);
}

/* IO, all in one chunk, as it is. */
static void pass(struct raid0 *raid0, struct io *io)
{
	uint64_t chunk = io->offset / raid0->chunk;
	struct raid0_part *part = &raid0->parts[chunk % raid0->count];

	io->offset = part->offset + on_part(raid0, chunk, io->offset);
	blk_pass(part->blk, io, NULL, NULL);
}

/* Chunks of IO on part P, first and last: false: there is none. */
static bool chunks_of(const struct raid0 *raid0, const struct io *io, unsigned p, uint64_t *first,
		      uint64_t *last)
{
	uint64_t from = io->offset / raid0->chunk;
	uint64_t to = (io->offset + io->length - 1) / raid0->chunk;
	uint64_t n = raid0->count;

	*first = from + (p + n - from % n) % n;
	*last = to - (to % n + n - p) % n;
	return *first <= to;
}

/* Bytes [*START, *END) of the array that IO takes of CHUNK. */
static void cut(const struct raid0 *raid0, const struct io *io, uint64_t chunk, uint64_t *start,
		uint64_t *end)
{
	*start = max_u64(io->offset, chunk * raid0->chunk);
	*end = min_u64(io->offset + io->length, (chunk + 1) * raid0->chunk);
}

static void add_child(struct raid0 *raid0, struct fan *fan, unsigned p, uint64_t first,
		      uint64_t last)
{
	const struct io *io = fan->parent;
	struct fan_child *child;
	uint64_t start, end, from, to;

	cut(raid0, io, first, &start, &end);
	from = on_part(raid0, first, start);
	cut(raid0, io, last, &start, &end);
	to = on_part(raid0, last, end);
	child = fan_child(fan, io->op, raid0->parts[p].offset + from, to - from);
	child->arg = &raid0->parts[p];
	if (!io->iov_count)
		return;
	for (uint64_t chunk = first; chunk <= last; chunk += raid0->count) {
		cut(raid0, io, chunk, &start, &end);
		fan_slice(fan, child, start - io->offset, end - start);
	}
}

static void fan_done(struct fan *fan)
{
	struct io *parent = fan->parent;
	int error = fan->error;

	fan_free(fan);
	io_done(parent, error);
}

static void begin(void *arg, struct fan *fan)
{
	struct raid0 *raid0 = arg;
	uint64_t first, last;

	fan->done = fan_done;
	for (unsigned p = 0; p < raid0->count; p++) {
		if (fan->parent->op == IO_FLUSH)
			fan_child(fan, IO_FLUSH, 0, 0)->arg = &raid0->parts[p];
		else if (chunks_of(raid0, fan->parent, p, &first, &last))
			add_child(raid0, fan, p, first, last);
	}
	for (unsigned i = 0; i < fan->count; i++)
		fan_send(&fan->children[i], ((struct raid0_part *)fan->children[i].arg)->blk);
}

static void raid0_submit(struct blk *blk, struct io *io)
{
	struct raid0 *raid0 = raid0_of(blk);
	uint64_t room = raid0->chunk - io->offset % raid0->chunk;

	if (io->op == IO_STATUS && io->length > room)
		io->length = room; /* it tells of the first run, which may be shorter */
	if (io->op != IO_FLUSH && io->length <= room)
		pass(raid0, io);
	else
		fan_begin(raid0->fans, io);
}

static void raid0_close(struct blk *blk)
{
	struct raid0 *raid0 = raid0_of(blk);

	for (unsigned i = 0; i < raid0->count; i++)
		blk_unref(raid0->parts[i].blk);
	fan_pool_free(raid0->fans);
	free(raid0);
}

static const struct blk_ops raid0_ops = {
	.driver = "raid0",
	.submit = raid0_submit,
	.close = raid0_close,
};

/* What all parts can; volatile or read-only as soon as one is. A range over parts is not atomic. */
static unsigned features_of(const struct raid0_part *parts, unsigned count)
{
	unsigned all = BLK_FUA | BLK_UNMAP | BLK_UNMAP_ZEROES | BLK_WRITE_ZEROES;
	unsigned any = 0;

	for (unsigned i = 0; i < count; i++) {
		all &= parts[i].blk->features;
		any |= parts[i].blk->features & (BLK_READ_ONLY | BLK_VOLATILE);
	}
	return all | any;
}

static void limits_from(struct blk *blk, const struct raid0_part *parts, unsigned count)
{
	blk->block_size = parts[0].blk->block_size;
	blk->max_io = MAX_IO;
	for (unsigned i = 0; i < count; i++) {
		assert(parts[i].blk->block_size == blk->block_size);
		blk_keep_to(blk, parts[i].blk);
	}
}

struct blk *raid0_new(struct env *env, const char *name, uint32_t chunk_bytes,
		      const struct raid0_part *parts, unsigned count)
{
	struct raid0 *raid0 = calloc(1, sizeof(*raid0));
	uint64_t length = UINT64_MAX;

	assert(count >= 1 && count <= RAID0_PARTS_MAX && chunk_bytes);
	if (!raid0)
		return NULL;
	limits_from(&raid0->blk, parts, count);
	raid0->fans = fan_pool_new(FANS, count, IO_IOV_MAX + (unsigned)(MAX_IO / chunk_bytes) + 1,
				   0, begin, raid0);
	if (!raid0->fans) {
		free(raid0);
		return NULL;
	}
	for (unsigned i = 0; i < count; i++) {
		raid0->parts[i] = parts[i];
		blk_ref(parts[i].blk);
		length = min_u64(length, parts[i].length);
	}
	raid0->chunk = chunk_bytes;
	raid0->count = count;
	raid0->blk.ops = &raid0_ops;
	raid0->blk.env = env;
	snprintf(raid0->blk.name, sizeof(raid0->blk.name), "%s", name);
	raid0->blk.size_bytes = raid0_size(length, chunk_bytes, count);
	raid0->blk.optimal_io = chunk_bytes * count;
	raid0->blk.features = features_of(parts, count);
	blk_init(&raid0->blk);
	return &raid0->blk;
}
