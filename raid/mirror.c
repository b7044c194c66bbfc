/* SPDX-License-Identifier: MIT */
/*
 * A mirror: a device over legs that hold the same.
 *
 *   write   region dirty ─▶ range held ─▶ all legs ─▶ who failed is excluded ─▶ answered
 *   read    one leg; in a doubtful region the range is made equal before
 *
 * Invariants:
 *  1. (I10) A write is sent only while its regions are durably dirty.
 *  2. (I9) A write that one leg lacks is answered only when a durable label excludes that leg; one
 *     that no in-sync leg took fails, excludes nobody and leaves its regions doubtful.
 *  3. (I11) A read of a doubtful region is answered after its range was made equal on all legs
 *     and is held there, or nobody counts who lacks it: then a durable label says so.
 *  4. Making equal excludes writes to its range, not reads: it gives all legs what one of them
 *     has, and nobody was shown what the others have.
 *
 * Not here: order of host ios (whoever submits), which regions when (resync.c), labels
 * (membership.c), making equal (equalise.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/canary.h"
#include "raid/mirror_int.h"

#define FANS 256
#define MAX_IO MIB

/* What a write or a flush needs besides its fan. */
struct mirror_op {
	struct mirror *mirror;
	struct fan *fan;
	struct region_hold region;
	struct rangelock_hold range;
	struct settle_wait settle;
	bool unequal;
	int error; /* what the host is told */
};

static struct mirror *mirror_of(struct blk *blk)
{
	return container_of(blk, struct mirror, blk);
}

static struct member *leg_member(const struct leg *leg)
{
	return leg->mirror->array->roles[leg->role];
}

struct member *mirror_leg(const struct mirror *mirror, unsigned leg)
{
	return leg_member(&mirror->legs[leg]);
}

/* --- writes and flushes --- */

static void op_end(struct mirror_op *op)
{
	struct array *array = op->mirror->array;
	struct io *io = op->fan->parent;
	int error = op->error;

	if (io->op != IO_FLUSH) {
		rangelock_release(op->mirror->lock, &op->range);
		regions_leave(array->regions, &op->region, op->unequal);
	}
	if (op->unequal)
		resync_kick(array->resync);
	fan_free(op->fan);
	io_done(io, error);
}

static void op_settled(struct settle_wait *wait, int error)
{
	struct mirror_op *op = container_of(wait, struct mirror_op, settle);

	if (error && !op->error)
		op->error = -EIO;
	/* Who did not take it counts still: what the others have is shown to nobody (I11). */
	op->unequal |= error != 0;
	op_end(op);
}

/* Whether somebody who counts took it. */
static bool op_held(const struct fan *fan)
{
	for (unsigned i = 0; i < fan->count; i++) {
		const struct member *member = fan->children[i].arg;

		if (!fan->children[i].io.error && member->state == MEMBER_IN_SYNC)
			return true;
	}
	return false;
}

static void op_failed_legs(struct mirror_op *op, const char *what)
{
	struct array *array = op->mirror->array;

	for (unsigned i = 0; i < op->fan->count; i++) {
		struct fan_child *child = &op->fan->children[i];
		struct member *member = child->arg;

		if (child->io.error)
			membership_failed(array, member, child->io.error, what);
	}
}

static void op_done(struct fan *fan)
{
	struct mirror_op *op = fan->own;

	op->error = 0;
	if (fan->error && fan->parent->op == IO_FLUSH)
		regions_doubt_unflushed(op->mirror->array->regions);
	if (op_held(fan)) {
		if (fan->error)
			op_failed_legs(op, fan->parent->op == IO_FLUSH ? "flush" : "write");
	} else {
		op->error = fan->error ? fan->error : -EIO;
		op->unequal = true;
	}
	for (unsigned i = 0; i < fan->count; i++)
		member_release(fan->children[i].arg);
	if (membership_settled(op->mirror->array) || canary(CANARY_ACK_BEFORE_LABEL))
		op_end(op);
	else
		membership_wait(op->mirror->array, &op->settle);
}

static void op_send(struct mirror_op *op)
{
	struct mirror *mirror = op->mirror;
	struct fan *fan = op->fan;
	const struct io *io = fan->parent;
	uint64_t base = mirror->array->label.data.offset;

	fan->done = op_done;
	for (unsigned i = 0; i < mirror->count; i++) {
		struct member *member = mirror_leg(mirror, i);
		struct fan_child *child;

		if (!member)
			continue;
		child = fan_child(fan, io->op, io->op == IO_FLUSH ? 0 : base + io->offset,
				  io->length);
		child->arg = member;
		member_hold(member);
		if (io->iov_count)
			fan_slice(fan, child, 0, io->length);
	}
	for (unsigned i = 0; i < fan->count; i++)
		fan_send(&fan->children[i], ((struct member *)fan->children[i].arg)->blk);
}

static void op_range_granted(struct rangelock_hold *range)
{
	op_send(container_of(range, struct mirror_op, range));
}

static void op_covered(struct mirror_op *op)
{
	if (rangelock_take(op->mirror->lock, &op->range))
		op_send(op);
}

static void op_region_granted(struct region_hold *hold, int error)
{
	struct mirror_op *op = container_of(hold, struct mirror_op, region);
	struct io *io = op->fan->parent;

	if (!error) {
		op_covered(op);
		return;
	}
	regions_leave(op->mirror->array->regions, hold, false);
	fan_free(op->fan);
	io_done(io, -EIO);
}

static void op_begin(void *arg, struct fan *fan)
{
	struct mirror_op *op = fan->own;
	const struct io *io = fan->parent;

	*op = (struct mirror_op){
		.mirror = arg,
		.fan = fan,
		.region = { .offset = io->offset, .length = io->length, .fn = op_region_granted },
		.range = { .offset = io->offset, .length = io->length, .fn = op_range_granted },
		.settle = { .fn = op_settled },
	};
	if (io->op == IO_FLUSH && canary(CANARY_FLUSH_LIES))
		op_end(op);
	else if (io->op == IO_FLUSH)
		op_send(op);
	else if (regions_enter(op->mirror->array->regions, &op->region))
		op_covered(op);
}

/* --- reads --- */

static bool readable(const struct leg *leg)
{
	const struct member *member = leg_member(leg);

	return member && member->state == MEMBER_IN_SYNC;
}

/* The leg that read last where IO goes on, else the one with the least to do; NULL: none. */
static struct leg *best_leg(struct mirror *mirror, const struct io *io)
{
	struct leg *best = NULL;

	for (unsigned n = 0; n < mirror->count; n++) {
		struct leg *leg = &mirror->legs[(mirror->turn + n) % mirror->count];

		if (!readable(leg))
			continue;
		if (leg->next_offset == io->offset)
			return leg;
		if (!best || leg_member(leg)->blk->in_flight < leg_member(best)->blk->in_flight)
			best = leg;
	}
	mirror->turn++;
	return best;
}

/* The first that can be read, from LEG on; NULL: none. */
static struct leg *leg_from(struct mirror *mirror, struct leg *leg)
{
	for (; leg < &mirror->legs[mirror->count]; leg++)
		if (readable(leg))
			return leg;
	return NULL;
}

/* FAILED has IO if LEG cannot read it; LEG NULL: nobody can. */
static void read_leg(struct leg *leg, struct io *io, io_fn *failed)
{
	if (!leg) {
		io_done(io, -EIO);
		return;
	}
	leg->next_offset = io->offset + io->length;
	io->offset += leg->mirror->array->label.data.offset;
	blk_pass(leg_member(leg)->blk, io, failed, leg);
}

static void read_failed(struct io *io, void *arg)
{
	struct leg *leg = arg;

	io->offset -= leg->mirror->array->label.data.offset;
	if (io->op == IO_STATUS)
		io_done(io, io->error);
	else
		equaliser_read(leg->mirror->equaliser, io, true);
}

/* What the equaliser could do is done: who can read it now? */
static void last_read_failed(struct io *io, void *arg)
{
	struct leg *leg = arg;

	io->offset -= leg->mirror->array->label.data.offset;
	leg = leg_from(leg->mirror, leg + 1);
	if (leg)
		read_leg(leg, io, last_read_failed);
	else
		io_done(io, io->error);
}

void mirror_read(struct mirror *mirror, struct io *io, bool final)
{
	if (final)
		read_leg(leg_from(mirror, mirror->legs), io, last_read_failed);
	else
		read_leg(best_leg(mirror, io), io, read_failed);
}

/*
 * Several legs count, or would after a crash; or did when a copy began that still may change what
 * the last one has. Else the others are being rebuilt from the one that is read.
 */
static bool must_be_equal(const struct mirror *mirror)
{
	unsigned in_sync = 0;

	for (unsigned i = 0; i < mirror->count; i++)
		in_sync += readable(&mirror->legs[i]);
	return in_sync > 1 || !membership_settled(mirror->array) ||
	       equaliser_changes_sources(mirror->equaliser);
}

static void mirror_submit(struct blk *blk, struct io *io)
{
	struct mirror *mirror = mirror_of(blk);

	if (io->op == IO_FLUSH || io_op_modifies(io->op))
		fan_begin(mirror->fans, io);
	else if (io->op == IO_READ && !canary(CANARY_DOUBTFUL_READ) &&
		 regions_doubtful(mirror->array->regions, io->offset, io->length) &&
		 must_be_equal(mirror))
		equaliser_read(mirror->equaliser, io, false);
	else
		mirror_read(mirror, io, false);
}

/* --- life --- */

static void mirror_free(struct mirror *mirror)
{
	if (mirror->equaliser)
		equaliser_free(mirror->equaliser);
	if (mirror->fans)
		fan_pool_free(mirror->fans);
	if (mirror->lock)
		rangelock_free(mirror->lock);
	free(mirror);
}

static void mirror_close(struct blk *blk)
{
	mirror_free(mirror_of(blk));
}

static const struct blk_ops mirror_ops = {
	.driver = "mirror",
	.submit = mirror_submit,
	.close = mirror_close,
};

/* UNMAP only where legs are equal afterwards. */
static void limits_from_legs(struct mirror *mirror)
{
	struct blk *blk = &mirror->blk;
	unsigned all = BLK_UNMAP | BLK_UNMAP_ZEROES | BLK_WRITE_ZEROES;

	blk->block_size = mirror->array->label.block_bytes;
	blk->max_io = MAX_IO;
	for (unsigned i = 0; i < mirror->count; i++) {
		const struct member *member = mirror_leg(mirror, i);

		if (!member)
			continue;
		all &= member->blk->features;
		blk->features |= member->blk->features & BLK_VOLATILE;
		blk_keep_to(blk, member->blk);
	}
	if (!(all & BLK_UNMAP_ZEROES))
		all &= ~BLK_UNMAP;
	blk->features |= all | BLK_FUA;
}

struct blk *mirror_new(struct array *array, unsigned first, unsigned count)
{
	struct mirror *mirror = calloc(1, sizeof(*mirror));

	if (!mirror)
		return NULL;
	mirror->array = array;
	mirror->count = count;
	for (unsigned i = 0; i < count; i++)
		mirror->legs[i] = (struct leg){ .mirror = mirror, .role = first + i };
	mirror->fans = fan_pool_new(FANS, count, count * IO_IOV_MAX, sizeof(struct mirror_op),
				    op_begin, mirror);
	mirror->lock = rangelock_new(array->env);
	mirror->equaliser = equaliser_new(mirror);
	if (!mirror->fans || !mirror->lock || !mirror->equaliser) {
		mirror_free(mirror);
		return NULL;
	}
	mirror->blk.ops = &mirror_ops;
	mirror->blk.env = array->env;
	snprintf(mirror->blk.name, sizeof(mirror->blk.name), "%s", array->label.name);
	mirror->blk.size_bytes = array->label.data.length;
	limits_from_legs(mirror);
	blk_init(&mirror->blk);
	return &mirror->blk;
}
