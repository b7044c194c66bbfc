/* SPDX-License-Identifier: MIT */
/*
 * What the stripe engine is made of: its memory, iov tables, and the numbers of flushes.
 *
 * Invariants:
 *  1. Everything is allocated when the array comes online; who finds no memory waits, in the
 *     order of coming.
 *  2. (I10) A flush's number is given before it begins, and counts once it has succeeded and a
 *     label excludes who failed it.
 *
 * Not here: when rounds start (stripe.c) and what they do (round.c, survey.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "core/canary.h"
#include "raid/stripe_int.h"

#define OPS 256u
#define PARTS 1024u
#define STRIPE_IOV (IO_IOV_MAX + 512u)

/* --- memory --- */

uint64_t stripe_align(const struct stripe *stripe, uint64_t bytes)
{
	const struct blk *blk = &stripe->all->raid5->blk;

	return align_up(bytes, max_u64(blk->mem_align, blk->block_size));
}

bool stripe_take_memory(struct stripe *stripe, uint64_t bytes)
{
	struct stripes *stripes = stripe->all;

	assert(!stripe->round.has_memory);
	if (TAILQ_EMPTY(&stripes->memory_wait) &&
	    buf_take(stripes->buffers, bytes, &stripe->round.memory)) {
		stripe->round.has_memory = true;
		return true;
	}
	stripe->round.memory_wanted = bytes;
	TAILQ_INSERT_TAIL(&stripes->memory_wait, stripe, link);
	return false;
}

static void memory_run(struct env_defer *defer)
{
	struct stripes *stripes = container_of(defer, struct stripes, memory_free);
	struct stripe *stripe;

	while ((stripe = TAILQ_FIRST(&stripes->memory_wait)) &&
	       buf_take(stripes->buffers, stripe->round.memory_wanted, &stripe->round.memory)) {
		TAILQ_REMOVE(&stripes->memory_wait, stripe, link);
		stripe->round.has_memory = true;
		if (stripe->round.kind == ROUND_WRITE)
			round_resume(stripe);
		else
			survey_resume(stripe);
	}
}

void stripe_give_memory(struct stripe *stripe)
{
	struct stripes *stripes = stripe->all;

	if (!stripe->round.has_memory)
		return;
	stripe->round.has_memory = false;
	buf_give(stripes->buffers, &stripe->round.memory);
	if (!TAILQ_EMPTY(&stripes->memory_wait) && !stripes->memory_free.queued)
		env_defer(stripes->array->env, &stripes->memory_free);
}

/* --- elements --- */

static void add_piece(struct stripe *stripe, struct pieces *pieces, void *base, uint64_t length)
{
	assert(stripe->round.iov_used < STRIPE_IOV);
	stripe->iov[stripe->round.iov_used++] = (struct iovec){ base, length };
	pieces->count++;
}

static struct pieces begin_pieces(struct stripe *stripe)
{
	return (struct pieces){ stripe->iov + stripe->round.iov_used, 0 };
}

struct pieces stripe_memory_pieces(struct stripe *stripe, uint64_t offset, uint64_t length)
{
	struct pieces pieces = begin_pieces(stripe);
	uint64_t covered;

	pieces.count = buf_slice(&stripe->round.memory, offset, length, pieces.iov,
				 STRIPE_IOV - stripe->round.iov_used, &covered);
	assert(covered == length);
	stripe->round.iov_used += pieces.count;
	return pieces;
}

/* LENGTH bytes of IO's from byte AT on. */
static void io_pieces(struct stripe *stripe, struct pieces *pieces, const struct io *io,
		      uint64_t at, uint64_t length)
{
	static char zeroes[64 * KIB] __attribute__((aligned(4096)));
	const struct iovec *iov = io->iov;

	for (; io->op == IO_WRITE_ZEROES && length > 0; length -= min_u64(length, sizeof(zeroes)))
		add_piece(stripe, pieces, zeroes, min_u64(length, sizeof(zeroes)));
	if (!length)
		return;
	for (; at >= iov->iov_len; iov++)
		at -= iov->iov_len;
	for (; length > 0; iov++) {
		uint64_t piece = min_u64(length, iov->iov_len - at);

		add_piece(stripe, pieces, (char *)iov->iov_base + at, piece);
		length -= piece;
		at = 0;
	}
}

struct pieces stripe_data_pieces(struct stripe *stripe, const struct lane *lane)
{
	const struct raid5 *raid5 = stripe->all->raid5;
	int column = raid5_column(raid5->roles, stripe->number, lane->role);
	uint64_t begin = (uint64_t)column * raid5->chunk_bytes;
	struct pieces pieces = begin_pieces(stripe);
	struct part *part;

	TAILQ_FOREACH(part, &stripe->round.parts, link) {
		uint64_t from = max_u64(part->from, begin);
		uint64_t to = min_u64(part->to, begin + raid5->chunk_bytes);

		if (from < to)
			io_pieces(stripe, &pieces, part->op->io, part->at + (from - part->from),
				  to - from);
	}
	return pieces;
}

unsigned pieces_slice(const struct pieces *pieces, uint64_t skip, uint64_t length,
		      struct iovec *out, unsigned room)
{
	const struct iovec *iov = pieces->iov;
	unsigned used = 0;

	for (; skip >= iov->iov_len; iov++)
		skip -= iov->iov_len;
	for (; length > 0; iov++) {
		uint64_t piece = min_u64(length, iov->iov_len - skip);

		if (used == room)
			return 0;
		out[used++] = (struct iovec){ (char *)iov->iov_base + skip, piece };
		length -= piece;
		skip = 0;
	}
	return used;
}

static void lane_back(struct io *io, void *arg)
{
	struct lane *lane = arg;

	member_release(lane->member);
	lane->done(io, lane);
}

void lane_send(struct lane *lane, enum io_op op, enum io_purpose purpose, unsigned flags,
	       struct span span, struct pieces pieces, io_fn *done)
{
	struct stripe *stripe = lane->stripe;
	const struct array *array = stripe->all->array;
	uint64_t at =
		array->label.data.offset + (stripe->number << stripe->all->raid5->chunk_shift);

	lane->member = array->roles[lane->role];
	lane->done = done;
	member_hold(lane->member);
	io_init(&lane->io, op, at + span.from, span_bytes(span), pieces.iov, pieces.count);
	lane->io.flags = canary(CANARY_LOG_DURABLE) ? flags & ~IO_FUA : flags;
	lane->io.purpose = purpose;
	stripe->round.pending++;
	blk_submit(lane->member->blk, &lane->io, lane_back, lane);
}

/* --- flushes --- */

uint64_t stripes_flush_begins(struct stripes *stripes)
{
	return ++stripes->flush_begun;
}

static void tell_log(struct stripes *stripes, struct member *member, int error)
{
	if (!member || !member->redo)
		return;
	if (error)
		redo_refuse(member->redo, error);
	else
		redo_flushed(member->redo, stripes->flush_good);
}

/* The logs of those who went, too, as long as a round waits for them. */
static void tell_logs(struct stripes *stripes, int error)
{
	struct array *array = stripes->array;
	struct member *member, *next;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		tell_log(stripes, array->members[i], error);
	TAILQ_FOREACH_SAFE(member, &array->buried, buried, next)
		tell_log(stripes, member, error);
}

void stripes_flush_ended(struct stripes *stripes, uint64_t number)
{
	stripes->flush_good = max_u64(stripes->flush_good, number);
	tell_logs(stripes, 0);
}

static void waiters_go_on(struct stripes *stripes, int error)
{
	struct stripe_list due = TAILQ_HEAD_INITIALIZER(due);
	struct stripe *stripe;

	TAILQ_CONCAT(&due, &stripes->flush_wait, link);
	while ((stripe = TAILQ_FIRST(&due))) {
		TAILQ_REMOVE(&due, stripe, link);
		if (error)
			round_fail(stripe, -EIO);
		else
			round_log(stripe);
	}
}

void stripe_wait_flush(struct stripe *stripe)
{
	TAILQ_INSERT_TAIL(&stripe->all->flush_wait, stripe, link);
	stripes_flush(stripe->all);
}

static void log_flush_settled(struct settle_wait *wait, int error)
{
	struct stripes *stripes = container_of(wait, struct stripes, flush_settle);

	stripes->flush_asked = false;
	if (error)
		tell_logs(stripes, error);
	else
		stripes_flush_ended(stripes, stripes->flush_number);
	waiters_go_on(stripes, error);
}

static void log_flushed(struct flush_wait *wait, int error)
{
	struct stripes *stripes = container_of(wait, struct stripes, flush);

	if (error)
		log_flush_settled(&stripes->flush_settle, error);
	else
		membership_wait(stripes->array, &stripes->flush_settle);
}

void stripes_flush(struct stripes *stripes)
{
	if (stripes->flush_asked)
		return;
	stripes->flush_asked = true;
	stripes->flush_number = stripes_flush_begins(stripes);
	array_flush(stripes->array, &stripes->flush);
}

/* --- life --- */

static void stripe_init(struct stripes *stripes, struct stripe *stripe, unsigned index)
{
	unsigned roles = stripes->raid5->roles + 1;

	stripe->all = stripes;
	stripe->lanes = stripes->lane_memory + (size_t)index * roles;
	stripe->iov = stripes->iov_memory + (size_t)index * STRIPE_IOV;
	for (unsigned i = 0; i < roles; i++) {
		stripe->lanes[i].stripe = stripe;
		stripe->lanes[i].role = i;
	}
}

static int stripe_pool(struct stripes *stripes)
{
	struct stripe *taken[STRIPES];

	stripes->lane_memory = calloc((size_t)STRIPES * (stripes->raid5->roles + 1),
				      sizeof(*stripes->lane_memory));
	stripes->iov_memory = calloc((size_t)STRIPES * STRIPE_IOV, sizeof(*stripes->iov_memory));
	if (!stripes->lane_memory || !stripes->iov_memory ||
	    pool_init(&stripes->free, sizeof(struct stripe), STRIPES) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < STRIPES; i++) {
		taken[i] = pool_get(&stripes->free);
		stripe_init(stripes, taken[i], i);
	}
	for (unsigned i = 0; i < STRIPES; i++)
		pool_put(&stripes->free, taken[i]);
	return 0;
}

static uint64_t buffer_bytes(const struct raid5 *raid5)
{
	/* A round takes a chunk of each member at most. */
	return max_u64(raid5->array->buffers_bytes,
		       2 * (uint64_t)raid5->chunk_bytes * (raid5->roles + 1));
}

/* Clearing all of it at once would hold up every LUN. */
static void touch_more(struct env_timer *timer)
{
	struct stripes *stripes = container_of(timer, struct stripes, touch);

	if (buf_pool_touch(stripes->buffers))
		env_timer_set(stripes->array->env, timer, NS_PER_MS);
}

struct stripes *stripes_new(struct raid5 *raid5)
{
	struct stripes *stripes = calloc(1, sizeof(*stripes));

	if (!stripes)
		return NULL;
	stripes->raid5 = raid5;
	stripes->array = raid5->array;
	stripes_hook(stripes);
	stripes->memory_free.fn = memory_run;
	stripes->flush.fn = log_flushed;
	stripes->flush_settle.fn = log_flush_settled;
	stripes->touch.fn = touch_more;
	stripes->buffers = buf_pool_new_untouched(buffer_bytes(raid5));
	if (!stripes->buffers || pool_init(&stripes->ops, sizeof(struct op), OPS) < 0 ||
	    pool_init(&stripes->parts, sizeof(struct part), PARTS) < 0 ||
	    stripe_pool(stripes) < 0) {
		stripes_free(stripes);
		return NULL;
	}
	for (unsigned i = 0; i < STRIPE_JOBS; i++)
		stripes->jobs[i].all = stripes;
	touch_more(&stripes->touch);
	return stripes;
}

void stripes_free(struct stripes *stripes)
{
	assert(!stripes->equalise.active && !stripes->flush_asked &&
	       STAILQ_EMPTY(&stripes->waiting));
	env_timer_cancel(stripes->array->env, &stripes->held);
	env_timer_cancel(stripes->array->env, &stripes->touch);
	env_defer_cancel(stripes->array->env, &stripes->start);
	env_defer_cancel(stripes->array->env, &stripes->admit);
	env_defer_cancel(stripes->array->env, &stripes->memory_free);
	if (stripes->buffers)
		buf_pool_free(stripes->buffers);
	pool_destroy(&stripes->ops);
	pool_destroy(&stripes->parts);
	pool_destroy(&stripes->free);
	free(stripes->lane_memory);
	free(stripes->iov_memory);
	free(stripes);
}
