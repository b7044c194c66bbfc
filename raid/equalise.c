/* SPDX-License-Identifier: MIT */
/*
 * Making legs equal: for the resync, for reads of doubtful regions, after read errors.
 *
 *   asked ─▶ range held alone ─▶ read all legs ─▶ write who differs ─▶ next piece … ─▶ who failed
 *   is excluded ─▶ given back
 *
 * Invariants:
 *  1. (I11) All legs get what the first in-sync leg that can read it has; durably, where written.
 *  2. One request at a time; the resync and hosts take turns.
 *  3. A read that failed is healed block by block, and only where a leg cannot be read.
 *  4. What no in-sync leg can read stays as it is, block by block, and is an error of the request.
 *  5. (I11) A request ends only when a durable label excludes the legs that did not take part:
 *     after a crash they might be listed, and the first to be read.
 *
 * Not here: when it is needed (mirror.c, resync.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/canary.h"
#include "raid/mirror_int.h"

#define PIECE (128 * KIB)
#define SMALLEST (4 * KIB)

/* What is to be made equal. */
struct want {
	uint64_t offset, length;
	void (*done)(void *arg, int error);
	void *arg;
};

struct copy {
	struct equaliser *equaliser;
	struct member *member; /* held; NULL: not in this piece */
	bool was_read;         /* in-sync when the piece began */
	struct io io;
	struct iovec iov;
	char *buf;
};

struct equaliser {
	struct mirror *mirror;
	struct io_list doubtful, failed; /* reads that wait */
	struct want resync;              /* done NULL: none */
	bool resync_last;                /* it had the last turn */

	bool busy;
	struct io *io; /* under way for this read; NULL: for the resync */
	bool heal;
	uint64_t at, end;
	uint64_t step;
	int error;
	struct rangelock_hold range;
	struct settle_wait settle;
	unsigned sources; /* legs that the piece is read from */
	unsigned pending;
	struct copy copies[MIRROR_LEGS_MAX];
};

static void next_request(struct equaliser *eq);
static void next_piece(struct equaliser *eq);

static uint64_t piece_length(const struct equaliser *eq)
{
	return min_u64(eq->step, eq->end - eq->at);
}

static void request_settled(struct settle_wait *wait, int error)
{
	struct equaliser *eq = container_of(wait, struct equaliser, settle);
	struct want resync = eq->resync;

	rangelock_release(eq->mirror->lock, &eq->range);
	eq->busy = false;
	if (eq->io && error) {
		io_done(eq->io, -EIO);
	} else if (eq->io) {
		mirror_read(eq->mirror, eq->io, eq->heal);
	} else {
		eq->resync.done = NULL;
		resync.done(resync.arg, error ? error : eq->error);
	}
	next_request(eq);
}

/* Who did not take it is out, but counts until a durable label says so. */
static void request_end(struct equaliser *eq)
{
	struct array *array = eq->mirror->array;

	if (membership_settled(array))
		request_settled(&eq->settle, 0);
	else
		membership_wait(array, &eq->settle);
}

/* --- a piece: write who differs --- */

static void piece_end(struct equaliser *eq)
{
	eq->at += piece_length(eq);
	if (eq->at % PIECE == 0 && !eq->heal)
		eq->step = PIECE;
	next_piece(eq);
}

static void written(struct io *io, void *arg)
{
	struct copy *copy = arg;
	struct equaliser *eq = copy->equaliser;

	if (io->error)
		membership_failed(eq->mirror->array, copy->member, io->error, "resync write");
	if (--eq->pending == 0)
		piece_end(eq);
}

static void copy_submit(struct copy *copy, enum io_op op, void *buf, io_fn *done)
{
	struct equaliser *eq = copy->equaliser;
	uint64_t base = eq->mirror->array->label.data.offset;

	copy->iov = (struct iovec){ .iov_base = buf, .iov_len = piece_length(eq) };
	io_init(&copy->io, op, base + eq->at, piece_length(eq), &copy->iov, 1);
	copy->io.flags = op == IO_WRITE && !canary(CANARY_IN_SYNC) ? IO_FUA : 0;
	copy->io.purpose = IO_RESYNC;
	eq->pending++;
	blk_submit(copy->member->blk, &copy->io, done, copy);
}

/* Legs that differ where nothing explains it are scrub's to tell, not ours to choose from. */
static bool differs(const struct copy *copy, const struct copy *source)
{
	if (!copy->was_read || copy->io.error)
		return true;
	return !copy->equaliser->heal && memcmp(copy->buf, source->buf, copy->iov.iov_len) != 0;
}

static void write_others(struct equaliser *eq, const struct copy *source)
{
	for (unsigned i = 0; i < eq->mirror->count; i++) {
		struct copy *copy = &eq->copies[i];

		if (copy != source && copy->member && copy->member->state != MEMBER_OUT &&
		    differs(copy, source))
			copy_submit(copy, IO_WRITE, source->buf, written);
	}
	if (!eq->pending)
		piece_end(eq);
}

/* --- a piece: read all --- */

static void all_read(struct equaliser *eq)
{
	for (unsigned i = 0; i < eq->mirror->count; i++) {
		struct copy *copy = &eq->copies[i];

		if (copy->was_read && !copy->io.error) {
			write_others(eq, copy);
			return;
		}
	}
	if (eq->step > SMALLEST) {
		eq->step = SMALLEST;
		next_piece(eq);
		return;
	}
	eq->error = -EIO;
	piece_end(eq);
}

static void read_one(struct io *io, void *arg)
{
	struct equaliser *eq = ((struct copy *)arg)->equaliser;

	(void)io;
	if (--eq->pending == 0)
		all_read(eq);
}

static void take_leg(struct copy *copy, struct member *member)
{
	if (copy->member)
		member_release(copy->member);
	copy->member = member;
	if (member)
		member_hold(member);
}

static void last_piece_over(struct equaliser *eq)
{
	for (unsigned i = 0; i < eq->mirror->count; i++)
		take_leg(&eq->copies[i], NULL);
	request_end(eq);
}

static void next_piece(struct equaliser *eq)
{
	unsigned legs = 0;

	eq->sources = 0;
	if (eq->at == eq->end) {
		last_piece_over(eq);
		return;
	}
	for (unsigned i = 0; i < eq->mirror->count; i++) {
		struct copy *copy = &eq->copies[i];

		take_leg(copy, mirror_leg(eq->mirror, i));
		copy->was_read = copy->member && copy->member->state == MEMBER_IN_SYNC;
		eq->sources += copy->was_read;
		legs += copy->member != NULL;
	}
	if (legs < 2) {
		eq->at = eq->end;
		last_piece_over(eq);
		return;
	}
	for (unsigned i = 0; i < eq->mirror->count; i++)
		if (eq->copies[i].was_read)
			copy_submit(&eq->copies[i], IO_READ, eq->copies[i].buf, read_one);
	if (!eq->pending) {
		eq->error = -EIO;
		piece_end(eq);
	}
}

/* --- requests --- */

static void granted(struct rangelock_hold *range)
{
	next_piece(container_of(range, struct equaliser, range));
}

static void request_begin(struct equaliser *eq, uint64_t offset, uint64_t length)
{
	eq->busy = true;
	eq->at = offset;
	eq->end = offset + length;
	eq->step = eq->heal ? SMALLEST : PIECE;
	eq->error = 0;
	eq->range = (struct rangelock_hold){
		.offset = offset,
		.length = length,
		.exclusive = true,
		.fn = granted,
	};
	if (rangelock_take(eq->mirror->lock, &eq->range))
		next_piece(eq);
}

static struct io *next_read(struct equaliser *eq)
{
	struct io_list *list = STAILQ_EMPTY(&eq->failed) ? &eq->doubtful : &eq->failed;
	struct io *io = STAILQ_FIRST(list);

	if (io)
		STAILQ_REMOVE_HEAD(list, link);
	eq->heal = list == &eq->failed;
	return io;
}

static void next_request(struct equaliser *eq)
{
	if (eq->busy)
		return;
	eq->io = NULL;
	eq->heal = false;
	if (!eq->resync.done || eq->resync_last)
		eq->io = next_read(eq);
	eq->resync_last = !eq->io;
	if (eq->io)
		request_begin(eq, eq->io->offset, eq->io->length);
	else if (eq->resync.done)
		request_begin(eq, eq->resync.offset, eq->resync.length);
}

bool equaliser_changes_sources(const struct equaliser *eq)
{
	return eq->sources > 1;
}

void equaliser_read(struct equaliser *eq, struct io *io, bool heal)
{
	if (heal)
		STAILQ_INSERT_TAIL(&eq->failed, io, link);
	else
		STAILQ_INSERT_TAIL(&eq->doubtful, io, link);
	next_request(eq);
}

void mirror_equalise(struct blk *blk, uint64_t offset, uint64_t length,
		     void (*done)(void *arg, int error), void *arg)
{
	struct equaliser *eq = container_of(blk, struct mirror, blk)->equaliser;

	assert(!eq->resync.done);
	eq->resync = (struct want){ offset, length, done, arg };
	next_request(eq);
}

/* --- life --- */

struct equaliser *equaliser_new(struct mirror *mirror)
{
	struct equaliser *eq = calloc(1, sizeof(*eq));
	char *memory = aligned_alloc(SMALLEST, MIRROR_LEGS_MAX * PIECE);

	if (!eq || !memory) {
		free(eq);
		free(memory);
		return NULL;
	}
	eq->mirror = mirror;
	eq->settle.fn = request_settled;
	STAILQ_INIT(&eq->doubtful);
	STAILQ_INIT(&eq->failed);
	for (unsigned i = 0; i < MIRROR_LEGS_MAX; i++) {
		eq->copies[i].equaliser = eq;
		eq->copies[i].buf = memory + i * PIECE;
	}
	return eq;
}

void equaliser_free(struct equaliser *eq)
{
	assert(!eq->busy && !eq->resync.done && STAILQ_EMPTY(&eq->doubtful) &&
	       STAILQ_EMPTY(&eq->failed));
	free(eq->copies[0].buf);
	free(eq);
}
