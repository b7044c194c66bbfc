/* SPDX-License-Identifier: MIT */
/*
 * The contract between layers, checked at every hop on the way down and back.
 *
 * Invariants:
 *  1. What reaches ops->submit is in range, in whole blocks, with an iov that
 *     adds up, with flags and an op that the device advertises, on a device that
 *     is online.
 *  2. Each blk_submit() ends in exactly one call of its fn, from a deferred
 *     callback, with op, flags and range as the caller left them; of blk_pass(),
 *     in that, or in the end of the io above from the same callback.
 *  3. An io with IO_FUA that succeeds is durable: the device has BLK_FUA, or
 *     keeps nothing volatile, or a FLUSH submitted after it succeeded.
 *  4. A STATUS that succeeds says something of the first block at least; a device that says
 *     nothing has said UNKNOWN.
 *  5. in_flight counts the ios between 2's two ends; close sees 0.
 *
 * Not here: order between overlapping ios (rangelock.c), what devices do.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backstore/blk.h"

static const char *const state_names[] = {
	[BLK_ONLINE] = "online",
	[BLK_READ_ONLY_NOW] = "read-only",
	[BLK_FAILED] = "failed",
	[BLK_WAITING] = "waiting",
};

const char *blk_state_name(enum blk_state state)
{
	return state_names[state];
}

void blk_init(struct blk *blk)
{
	assert(blk->ops && blk->ops->submit && blk->ops->close && blk->env);
	assert(blk->block_size == 512 || blk->block_size == 4096);
	assert(blk->physical_block >= blk->block_size &&
	       blk->physical_block % blk->block_size == 0);
	assert(blk->size_bytes > 0 && blk->size_bytes % blk->block_size == 0);
	assert((blk->mem_align & (blk->mem_align - 1)) == 0);
	blk->state = BLK_ONLINE;
	blk->state_cause[0] = '\0';
	blk->in_flight = 0;
	blk->refs = 1;
	blk->parting = 0;
}

void blk_keep_to(struct blk *blk, const struct blk *part)
{
	blk->physical_block = (uint32_t)max_u64(blk->physical_block, part->physical_block);
	blk->mem_align = (uint32_t)max_u64(blk->mem_align, part->mem_align);
	if (part->max_io)
		blk->max_io = blk->max_io ? min_u64(blk->max_io, part->max_io) : part->max_io;
}

struct blk *blk_ref(struct blk *blk)
{
	assert(blk->refs > 0);
	blk->refs++;
	return blk;
}

void blk_unref(struct blk *blk)
{
	assert(blk->refs > 0);
	if (--blk->refs > 0)
		return;
	assert(blk->in_flight == 0);
	blk->ops->close(blk);
}

/* Nothing is in flight. */
static void part(struct blk *blk)
{
	while (blk->parting > 1) {
		blk->parting--;
		blk_unref(blk);
	}
	blk->parting = 0;
	blk_unref(blk);
}

void blk_unref_idle(struct blk *blk)
{
	assert(blk->refs > blk->parting);
	blk->parting++;
	if (!blk->in_flight)
		part(blk);
}

void blk_watch(struct blk *blk, struct blk_watch *watch)
{
	LIST_INSERT_HEAD(&blk->watches, watch, link);
}

void blk_unwatch(struct blk_watch *watch)
{
	LIST_REMOVE(watch, link);
}

static void tell(struct blk *blk)
{
	struct blk_watch *watch, *next;

	LIST_FOREACH_SAFE(watch, &blk->watches, link, next)
		watch->changed(watch);
}

void blk_set_state(struct blk *blk, enum blk_state state, const char *fmt, ...)
{
	char cause[sizeof(blk->state_cause)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(cause, sizeof(cause), fmt, args);
	va_end(args);
	if (blk->state == state && strcmp(blk->state_cause, cause) == 0)
		return;
	blk->state = state;
	memcpy(blk->state_cause, cause, sizeof(cause));
	tell(blk);
}

void blk_resize(struct blk *blk, uint64_t size_bytes)
{
	assert(size_bytes > 0 && size_bytes % blk->block_size == 0);
	if (blk->size_bytes == size_bytes)
		return;
	blk->size_bytes = size_bytes;
	tell(blk);
}

static bool has_data(enum io_op op)
{
	return op == IO_READ || op == IO_WRITE;
}

static const char *broken_iov(const struct blk *blk, const struct io *io)
{
	uint64_t left = io->length;
	uintptr_t bases = 0;

	if (io->iov_count == 0 || io->iov_count > IO_IOV_MAX)
		return "iov count";
	for (unsigned i = 0; i < io->iov_count; i++) {
		uint64_t len = io->iov[i].iov_len;

		if (len == 0 || len > left || len & (blk->block_size - 1))
			return "iov element";
		left -= len;
		bases |= (uintptr_t)io->iov[i].iov_base;
	}
	if (left > 0)
		return "iov sum";
	if (blk->mem_align && bases & (blk->mem_align - 1))
		return "iov alignment";
	if (blk->max_io && io->length > blk->max_io)
		return "too long";
	return NULL;
}

void blk_reopen(struct blk *blk, blk_reopen_fn *done, void *arg)
{
	if (blk->state == BLK_ONLINE)
		done(arg, 0, "");
	else if (!blk->ops->reopen)
		done(arg, -EOPNOTSUPP, "nothing to open again");
	else
		blk->ops->reopen(blk, done, arg);
}

/* What the layer above did wrong, or NULL. */
static const char *broken_contract(const struct blk *blk, const struct io *io)
{
	if ((unsigned)io->op >= IO_OP_COUNT || (unsigned)io->purpose >= IO_PURPOSE_COUNT)
		return "op or purpose";
	if (io->flags & ~IO_FLAGS || (io->flags & IO_FUA && !io_op_modifies(io->op)))
		return "flags";
	if (io->op == IO_FLUSH)
		return NULL;
	if (io->length == 0 || (io->offset | io->length) & (blk->block_size - 1))
		return "alignment";
	if (io->offset > blk->size_bytes || io->length > blk->size_bytes - io->offset)
		return "range";
	return has_data(io->op) ? broken_iov(blk, io) : NULL;
}

/* The feature that OP needs; 0: none. */
static const unsigned needs[IO_OP_COUNT] = {
	[IO_UNMAP] = BLK_UNMAP,
	[IO_WRITE_ZEROES] = BLK_WRITE_ZEROES,
};

static int check_down(struct blk *blk, const struct io *io)
{
	const char *broken = broken_contract(blk, io);

	if (broken) {
		log_limited(&blk->broken_limit, LOG_L_ERROR, "blk", blk->name, "contract-broken",
			    "what=\"%s\" op=%s flags=%#x offset=%" PRIu64 " length=%" PRIu64
			    " iov=%u purpose=%s size=%" PRIu64,
			    broken, io_op_name(io->op), io->flags, io->offset, io->length,
			    io->iov_count, io_purpose_name(io->purpose), blk->size_bytes);
		return -EINVAL;
	}
	if (blk->state == BLK_FAILED)
		return -ENXIO;
	if (blk->state == BLK_WAITING)
		return -EAGAIN;
	if ((blk->features & BLK_READ_ONLY || blk->state == BLK_READ_ONLY_NOW) &&
	    io_op_modifies(io->op))
		return -EROFS;
	if (needs[io->op] & ~blk->features)
		return -EOPNOTSUPP;
	return 0;
}

void blk_send(struct blk *blk, struct io *io, io_fn *fn, void *arg, bool pass)
{
	struct io_frame *frame;
	int error;

	assert(io->depth < IO_DEPTH && !io->defer.queued && (pass ? io->depth > 0 : fn != NULL));
	frame = &io->frames[io->depth++];
	frame->fn = fn;
	frame->pass = pass;
	frame->arg = arg;
	frame->blk = blk;
	frame->offset = io->offset;
	frame->length = io->length;
	frame->op = io->op;
	frame->flags = io->flags;
	if (blk->latency)
		frame->start_ns = env_now_ns(blk->env);
	io->error = 0;
	blk->in_flight++;
	error = check_down(blk, io);
	if (error) {
		io_done(io, error);
		return;
	}
	if (!(blk->features & BLK_FUA))
		io->flags &= ~IO_FUA;
	io->run = IO_RUN_UNKNOWN;
	io->run_bytes = io->length;
	blk->ops->submit(blk, io);
}

static void count(struct blk *blk, const struct io *io, uint64_t length)
{
	if ((unsigned)io->op >= IO_OP_COUNT || (unsigned)io->purpose >= IO_PURPOSE_COUNT)
		return;
	blk->counts.ops[io->op]++;
	blk->counts.by_purpose[io->purpose]++;
	if (io->error)
		blk->counts.errors[io->op]++;
	else if (io->op != IO_FLUSH && io->op != IO_STATUS)
		blk->counts.bytes[io->op] += length;
	if (io->error == -ENOSPC)
		blk->full_ns = env_now_ns(blk->env);
}

/* What the device said of a range is about that range. */
static bool run_fits(const struct io_frame *frame, const struct io *io)
{
	return io->run_bytes > 0 && io->run_bytes <= frame->length &&
	       (io->run_bytes & (frame->blk->block_size - 1)) == 0;
}

/* FUA was asked for, the device does not know it, and its write has just succeeded. */
static bool wants_flush(const struct blk *blk, const struct io_frame *frame, const struct io *io)
{
	return frame->flags & IO_FUA && !(blk->features & BLK_FUA) &&
	       blk->features & BLK_VOLATILE && io->op != IO_FLUSH && io->error == 0;
}

/* IO's way out of the device that had it; false: it has not ended there yet. */
static bool leave(struct io *io, struct io_frame *frame)
{
	struct blk *blk = frame->blk;

	assert(io->op != IO_STATUS || io->error || run_fits(frame, io));
	count(blk, io, frame->length);
	if (wants_flush(blk, frame, io)) {
		io->op = IO_FLUSH;
		if (blk->state == BLK_FAILED)
			io_done(io, -ENXIO);
		else
			blk->ops->submit(blk, io);
		return false;
	}
	if (blk->latency)
		hist_add(blk->latency, env_now_ns(blk->env) - frame->start_ns);
	io->op = frame->op;
	io->flags = frame->flags;
	io->offset = frame->offset;
	io->length = frame->length;
	io->depth--;
	if (--blk->in_flight == 0 && blk->parting)
		part(blk);
	return true;
}

static void io_return(struct env_defer *defer)
{
	struct io *io = container_of(defer, struct io, defer);
	struct io_frame *frame;

	do {
		frame = &io->frames[io->depth - 1];
		if (!leave(io, frame))
			return;
	} while (frame->pass && !(io->error && frame->fn));
	frame->fn(io, frame->arg);
}

void io_done(struct io *io, int error)
{
	assert(io->depth > 0 && !io->defer.queued);
	assert(io_error_allowed(io->op, error));
	io->error = error;
	io->defer.fn = io_return;
	env_defer(io_blk(io)->env, &io->defer);
}
