/* SPDX-License-Identifier: MIT */
/*
 * RAID 5: the device.
 *
 *   read    inside a chunk ─▶ its member, as it is ──▶ answered
 *                                  │ cannot be read, is missing, or doubtful
 *                                  ▼
 *   write, zeroes ──────────▶ the stripe engine
 *
 * Invariants:
 *  1. A read is passed to a member only where the member's word counts by itself: nothing is
 *     doubtful, or it is in-sync and a durable label says that not all are there to disagree.
 *  2. (I6) A FLUSH is answered when all members have flushed, or are excluded durably.
 *  3. What the label says is lost is an error to read, until it is written.
 *  4. UNMAP is not offered: parity would have to follow.
 *
 * Not here: stripes (stripe.c, round.c, survey.c), the logs at assembly (replay.c), order of
 * overlapping ios (whoever submits).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/canary.h"
#include "raid/stripe_int.h"

#define FANS 64u
#define MAX_IO MIB
#define MAX_CHUNKS 64u /* an io spans no more */

/* What a flush needs besides its fan. */
struct flush_op {
	struct raid5 *raid5;
	struct fan *fan;
	uint64_t number;
	struct settle_wait settle;
	int error;
};

static struct raid5 *raid5_of(struct blk *blk)
{
	return container_of(blk, struct raid5, blk);
}

/* --- reads --- */

/* The member that can answer for ROLE of STRIPE by itself, or NULL. */
static struct member *direct(const struct raid5 *raid5, unsigned role, uint64_t stripe)
{
	const struct array *array = raid5->array;
	struct member *member = array->roles[role];

	if (!member || !raid5_doubtful(raid5, stripe))
		return member;
	if (member->state != MEMBER_IN_SYNC || array->state == ARRAY_HEALTHY ||
	    !membership_settled(array))
		return NULL;
	return member;
}

/* Whether all of LENGTH bytes at OFFSET, in one chunk, is known. */
static bool known(const struct raid5 *raid5, uint64_t offset, uint64_t length)
{
	uint64_t chunk = offset >> raid5->chunk_shift, stripe = chunk / raid5->columns;
	unsigned role = raid5_data_role(raid5->roles, stripe, (unsigned)(chunk % raid5->columns));
	uint64_t from = offset & (raid5->chunk_bytes - 1);

	return raid5_known(raid5, role, stripe, from, from + length) &&
	       !loss_broken_stripe(raid5->stripes, stripe);
}

static void read_done(struct io *io, void *arg)
{
	struct raid5 *raid5 = arg;
	/* Where it was before it was moved to the member. */
	uint64_t offset = io->frames[io->depth - 1].offset;

	if (io->op == IO_STATUS || (!io->error && known(raid5, offset, io->length))) {
		io_done(io, io->error);
		return;
	}
	io->offset = offset;
	blk_pass(&raid5->lost, io, NULL, NULL);
}

/* IO, all in one chunk. */
static void read_chunk(struct raid5 *raid5, struct io *io)
{
	uint64_t chunk = io->offset >> raid5->chunk_shift;
	uint64_t stripe = chunk / raid5->columns;
	unsigned role = raid5_data_role(raid5->roles, stripe, (unsigned)(chunk % raid5->columns));
	struct member *member = direct(raid5, role, stripe);

	if (member) {
		io->offset = raid5->array->label.data.offset + (stripe << raid5->chunk_shift) +
			     (io->offset & (raid5->chunk_bytes - 1));
		blk_submit(member->blk, io, read_done, raid5);
	} else if (io->op == IO_STATUS) {
		io_done(io, 0);
	} else {
		blk_pass(&raid5->lost, io, NULL, NULL);
	}
}

static void chunk_submit(struct blk *blk, struct io *io)
{
	read_chunk(container_of(blk, struct raid5, chunk), io);
}

static void lost_submit(struct blk *blk, struct io *io)
{
	stripes_submit(container_of(blk, struct raid5, lost)->stripes, io);
}

static void read_fan_done(struct fan *fan)
{
	struct io *io = fan->parent;
	int error = fan->error;

	fan_free(fan);
	io_done(io, error);
}

static void read_fan(struct raid5 *raid5, struct fan *fan)
{
	const struct io *io = fan->parent;
	uint64_t end = io->offset + io->length, next;

	fan->done = read_fan_done;
	for (uint64_t at = io->offset; at < end; at = next) {
		struct fan_child *child;

		next = min_u64(end, align_down(at, raid5->chunk_bytes) + raid5->chunk_bytes);
		child = fan_child(fan, IO_READ, at, next - at);
		fan_slice(fan, child, at - io->offset, next - at);
	}
	for (unsigned i = 0; i < fan->count; i++)
		fan_send(&fan->children[i], &raid5->chunk);
}

/* --- flush --- */

static void flush_end(struct flush_op *op)
{
	struct io *io = op->fan->parent;
	int error = op->error;

	if (!error)
		stripes_flush_ended(op->raid5->stripes, op->number);
	fan_free(op->fan);
	io_done(io, error);
}

static void flush_settled(struct settle_wait *wait, int error)
{
	struct flush_op *op = container_of(wait, struct flush_op, settle);

	if (error && !op->error)
		op->error = -EIO;
	flush_end(op);
}

static void flush_done(struct fan *fan)
{
	struct flush_op *op = fan->own;
	struct array *array = op->raid5->array;

	for (unsigned i = 0; i < fan->count; i++) {
		struct fan_child *child = &fan->children[i];

		member_release(child->arg);
		if (!child->io.error)
			continue;
		regions_doubt_unflushed(array->regions);
		if (!membership_failed(array, child->arg, child->io.error, "flush") && !op->error)
			op->error = child->io.error;
	}
	if (membership_settled(array))
		flush_end(op);
	else
		membership_wait(array, &op->settle);
}

static void flush_fan(struct raid5 *raid5, struct fan *fan)
{
	struct flush_op *op = fan->own;

	*op = (struct flush_op){
		.raid5 = raid5,
		.fan = fan,
		.number = stripes_flush_begins(raid5->stripes),
		.settle = { .fn = flush_settled },
	};
	fan->done = flush_done;
	for (unsigned i = 0; i < raid5->roles; i++) {
		struct member *member = raid5->array->roles[i];

		if (!member)
			continue;
		fan_child(fan, IO_FLUSH, 0, 0)->arg = member;
		member_hold(member);
	}
	for (unsigned i = 0; i < fan->count; i++)
		fan_send(&fan->children[i], ((struct member *)fan->children[i].arg)->blk);
}

/* --- the device --- */

static void fan_begun(void *arg, struct fan *fan)
{
	if (fan->parent->op == IO_FLUSH)
		flush_fan(arg, fan);
	else
		read_fan(arg, fan);
}

static void raid5_submit(struct blk *blk, struct io *io)
{
	struct raid5 *raid5 = raid5_of(blk);
	uint64_t room;

	if (io_op_modifies(io->op)) {
		stripes_submit(raid5->stripes, io);
		return;
	}
	room = raid5->chunk_bytes - (io->offset & (raid5->chunk_bytes - 1));
	if (io->op == IO_STATUS && io->length > room)
		io->length = room; /* it tells of the first run, which may be shorter */
	if (io->op == IO_FLUSH && canary(CANARY_LOG_DURABLE))
		io_done(io, 0);
	else if (io->op == IO_FLUSH || io->length > room)
		fan_begin(raid5->fans, io);
	else
		read_chunk(raid5, io);
}

static void raid5_free(struct raid5 *raid5)
{
	if (raid5->fans)
		fan_pool_free(raid5->fans);
	if (raid5->stripes)
		stripes_free(raid5->stripes);
	free(raid5);
}

static void raid5_close(struct blk *blk)
{
	raid5_free(raid5_of(blk));
}

static void inner_close(struct blk *blk)
{
	(void)blk;
}

static const struct blk_ops raid5_ops = {
	.driver = "raid5",
	.submit = raid5_submit,
	.close = raid5_close,
};
static const struct blk_ops chunk_ops = {
	.driver = "raid5-chunk",
	.submit = chunk_submit,
	.close = inner_close,
};
static const struct blk_ops lost_ops = {
	.driver = "raid5-lost",
	.submit = lost_submit,
	.close = inner_close,
};

static void limits_from_members(struct raid5 *raid5)
{
	struct blk *blk = &raid5->blk;

	blk->block_size = raid5->array->label.block_bytes;
	blk->mem_align = PARITY_ALIGN;
	blk->max_io = min_u64(MAX_IO, (uint64_t)MAX_CHUNKS * raid5->chunk_bytes);
	for (unsigned i = 0; i < raid5->roles; i++) {
		const struct member *member = raid5->array->roles[i];

		if (!member)
			continue;
		blk->features |= member->blk->features & BLK_VOLATILE;
		blk_keep_to(blk, member->blk);
	}
	blk->features |= BLK_FUA | BLK_WRITE_ZEROES;
	blk->optimal_io = (uint32_t)raid5->stripe_bytes;
}

static void blk_named(struct blk *blk, const struct array *array, const struct blk_ops *ops)
{
	blk->ops = ops;
	blk->env = array->env;
	snprintf(blk->name, sizeof(blk->name), "%s", array->label.name);
	blk_init(blk);
}

struct blk *raid5_new(struct array *array)
{
	struct raid5 *raid5 = calloc(1, sizeof(*raid5));
	const struct label *label = &array->label;

	if (!raid5)
		return NULL;
	raid5->array = array;
	raid5->chunk_bytes = label->chunk_bytes;
	raid5->chunk_shift = (unsigned)__builtin_ctz(label->chunk_bytes);
	raid5->roles = label->roles;
	raid5->columns = label->roles - 1;
	raid5->stripe_bytes = (uint64_t)label->chunk_bytes * raid5->columns;
	raid5->blk.size_bytes = array->level->size(label);
	limits_from_members(raid5);
	raid5->chunk = raid5->lost = raid5->blk;
	blk_named(&raid5->blk, array, &raid5_ops);
	blk_named(&raid5->chunk, array, &chunk_ops);
	blk_named(&raid5->lost, array, &lost_ops);
	raid5->stripes = stripes_new(raid5);
	raid5->fans = fan_pool_new(FANS, MAX_CHUNKS + 1, IO_IOV_MAX + MAX_CHUNKS + 1,
				   sizeof(struct flush_op), fan_begun, raid5);
	if (!raid5->stripes || !raid5->fans) {
		raid5_free(raid5);
		return NULL;
	}
	return &raid5->blk;
}

void raid5_equalise(struct array *array, uint64_t offset, uint64_t length,
		    void (*done)(struct array *array, int error))
{
	stripes_equalise(raid5_of(array->blk)->stripes, offset, length, done);
}

static void log_flush(void *arg)
{
	stripes_flush(raid5_of(((struct array *)arg)->blk)->stripes);
}

static uint64_t log_next_flush(void *arg)
{
	return raid5_of(((struct array *)arg)->blk)->stripes->flush_begun + 1;
}

int raid5_take(struct member *member)
{
	struct array *array = member->array;
	struct redo_conf conf = {
		.env = array->env,
		.blk = member->blk,
		.area = array->label.log,
		.block_bytes = array->label.block_bytes,
		.tag = array_tag(&array->label),
		.columns = array->label.roles - 1,
		.flush = log_flush,
		.next_flush = log_next_flush,
		.arg = array,
	};

	env_random(array->env, &conf.incarnation, sizeof(conf.incarnation));
	member->redo = redo_new(&conf);
	member->log_incarnation = conf.incarnation;
	return member->redo ? 0 : -ENOMEM;
}

void raid5_count(struct blk *blk, struct raid5_counts *counts)
{
	struct raid5 *raid5 = raid5_of(blk);
	struct redo_counts log;

	*counts = raid5->stripes->counts;
	for (unsigned i = 0; i < raid5->roles; i++) {
		if (!raid5->array->roles[i])
			continue;
		redo_count(raid5->array->roles[i]->redo, &log);
		counts->log.writes += log.writes;
		counts->log.records += log.records;
		counts->log.bytes += log.bytes;
		counts->log.crc_bytes += log.crc_bytes;
		counts->log.waits += log.waits;
	}
}
