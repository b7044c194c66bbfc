/* SPDX-License-Identifier: MIT */
/*
 * One look at a stripe on all members: for reads of what is lost, and to make members agree.
 *
 *   piece: all that can be read are ─▶ one is missing: the XOR of the others ─▶ written, if it can be
 *            ▲                    └▶ nobody is: parity compared ─▶ written, if it differs
 *            └────────── the next piece, or this one in smaller ones ──────────┘
 *
 * Invariants:
 *  1. (I11) What a read shows of a doubtful region of a whole array is covered by parity that is
 *     right, and held, before it is answered.
 *  2. A block that cannot be read is written anew where the others have it, and nothing but it.
 *  3. What two members lack is an error of exactly those blocks; nobody guesses.
 *  4. A read is answered, and members are said to agree, when a durable label excludes whoever is
 *     out: he would count in the next life, and what he has is not what the others say of him.
 *
 * Not here: when it is needed (raid5.c, resync.c).
 */
#include <errno.h>

#include "raid/stripe_int.h"

#define PIECE (128 * KIB)
#define SMALLEST (4 * KIB)

static void next_piece(struct stripe *stripe);

static void piece_done(struct stripe *stripe)
{
	stripe->round.piece.from = stripe->round.piece.to;
	next_piece(stripe);
}

/* --- what it says --- */

/* Where PART's chunk begins, in the stripe's data. */
static uint64_t chunk_begin(const struct stripe *stripe, const struct part *part)
{
	return align_down(part->from, stripe->all->raid5->chunk_bytes);
}

/* The piece of each read that it touches: its bytes, or ERROR. */
static void serve_reads(struct stripe *stripe, const struct lane *lane, int error)
{
	struct span piece = stripe->round.piece;
	struct part *part;

	TAILQ_FOREACH(part, &stripe->round.parts, link) {
		uint64_t begin = chunk_begin(stripe, part);
		uint64_t from = max_u64(part->from - begin, piece.from);
		uint64_t to = min_u64(part->to - begin, piece.to);
		struct parity_at out = { part->op->io->iov, 0 }, in = { NULL, 0 };

		if (from >= to)
			continue;
		if (error ||
		    !raid5_known(stripe->all->raid5, lane->role, stripe->number, from, to)) {
			stripe_part_failed(part, -EIO);
			continue;
		}
		in.iov = lane->old_in.iov;
		parity_move(&in, from - piece.from);
		parity_move(&out, part->at + (begin + from - part->from));
		parity_copy(&out, &in, to - from);
	}
}

static struct lane *wanted_lane(struct stripe *stripe)
{
	for (unsigned i = 0; i < stripe->all->raid5->roles; i++)
		if (span_bytes(stripe->lanes[i].data))
			return &stripe->lanes[i];
	return NULL;
}

static void piece_known(struct stripe *stripe)
{
	if (stripe->round.kind == ROUND_READ)
		serve_reads(stripe, wanted_lane(stripe), 0);
	piece_done(stripe);
}

static void cured(struct io *io, void *arg)
{
	struct lane *lane = arg;
	struct stripe *stripe = lane->stripe;

	stripe->round.pending--;
	if (io->error &&
	    !membership_failed(stripe->all->array, lane->member, io->error, "resync write"))
		stripe->round.error = io->error;
	piece_known(stripe);
}

/* LANE's piece is known: write it, if its member is there. */
static void cure(struct stripe *stripe, struct lane *lane)
{
	if (stripe->all->array->roles[lane->role])
		lane_send(lane, IO_WRITE, IO_RESYNC, IO_FUA, stripe->round.piece, lane->old_in,
			  cured);
	else
		piece_known(stripe);
}

static void xor_others(struct stripe *stripe, struct lane *into, const struct lane *except)
{
	struct parity_at sources[PARITY_SOURCES_MAX], to = { into->old_in.iov, 0 };
	unsigned count = 0;

	for (unsigned i = 0; i < stripe->all->raid5->roles; i++)
		if (&stripe->lanes[i] != except)
			sources[count++] = (struct parity_at){ stripe->lanes[i].old_in.iov, 0 };
	parity_xor(&to, sources, count, span_bytes(stripe->round.piece),
		   &stripe->all->counts.xored);
}

static bool parity_right(struct stripe *stripe, const struct lane *computed,
			 const struct lane *parity)
{
	struct parity_at a = { computed->old_in.iov, 0 }, b = { parity->old_in.iov, 0 };

	return parity_equal(&a, &b, span_bytes(stripe->round.piece));
}

/* --- a piece --- */

static void judge(struct stripe *stripe)
{
	struct round *round = &stripe->round;
	struct lane *parity = &stripe->lanes[stripe->parity_role];
	struct lane *spare = &stripe->lanes[stripe->all->raid5->roles];
	unsigned lost = (unsigned)__builtin_popcount(round->unreadable);

	if (round->again && round->step > SMALLEST) {
		round->step = SMALLEST;
		round->piece.to = round->piece.from;
		next_piece(stripe);
	} else if (lost > 1) {
		struct lane *wanted = wanted_lane(stripe);

		/* Its own may be among those that could be read. */
		round->error = -EIO;
		if (wanted)
			serve_reads(stripe, wanted,
				    round->unreadable >> wanted->role & 1 ? -EIO : 0);
		piece_done(stripe);
	} else if (lost == 1) {
		struct lane *lane = &stripe->lanes[__builtin_ctz(round->unreadable)];

		xor_others(stripe, lane, lane);
		cure(stripe, lane);
	} else {
		xor_others(stripe, spare, parity);
		/* What differs where nothing explains it is scrub's to tell. */
		if (parity_right(stripe, spare, parity) ||
		    !raid5_doubtful(stripe->all->raid5, stripe->number)) {
			piece_known(stripe);
			return;
		}
		parity->old_in = spare->old_in;
		cure(stripe, parity);
	}
}

static void read_done(struct io *io, void *arg)
{
	struct lane *lane = arg;
	struct stripe *stripe = lane->stripe;

	if (io->error) {
		stripe->round.unreadable |= 1u << lane->role;
		stripe->round.again = true;
	}
	if (--stripe->round.pending == 0)
		judge(stripe);
}

/* Memory for a piece of every member, and one more. */
static uint64_t piece_memory(const struct stripe *stripe)
{
	return stripe_align(stripe, min_u64(stripe->round.step, span_bytes(stripe->round.hull)));
}

static void settled(struct settle_wait *wait, int error)
{
	struct stripe *stripe = container_of(wait, struct stripe, round.settle);
	int own = stripe->round.kind == ROUND_EQUALISE ? stripe->round.error : 0;

	stripe_round_end(stripe, error ? -EIO : own);
}

static void survey_end(struct stripe *stripe)
{
	struct round *round = &stripe->round;
	struct array *array = stripe->all->array;

	stripe_give_memory(stripe);
	round->settle.fn = settled;
	if (membership_settled(array))
		settled(&round->settle, 0);
	else
		membership_wait(array, &round->settle);
}

/* Nobody to agree with: a member is missing. */
static bool nothing_to_do(const struct stripe *stripe)
{
	const struct raid5 *raid5 = stripe->all->raid5;

	for (unsigned i = 0; i < raid5->roles; i++)
		if (!raid5->array->roles[i])
			return stripe->round.kind == ROUND_EQUALISE;
	return false;
}

static void next_piece(struct stripe *stripe)
{
	struct round *round = &stripe->round;
	const struct raid5 *raid5 = stripe->all->raid5;
	bool doubtful = raid5_doubtful(raid5, stripe->number);
	uint64_t apart = piece_memory(stripe);

	if (round->piece.from == round->hull.to || nothing_to_do(stripe)) {
		survey_end(stripe);
		return;
	}
	round->piece.to = (uint32_t)min_u64(round->piece.from + round->step, round->hull.to);
	round->unreadable = 0;
	round->again = false;
	round->iov_used = 0;
	round->pending = 1;
	for (unsigned i = 0; i <= raid5->roles; i++)
		stripe->lanes[i].old_in =
			stripe_memory_pieces(stripe, i * apart, span_bytes(round->piece));
	for (unsigned i = 0; i < raid5->roles; i++) {
		if (raid5_usable(raid5, i, doubtful))
			lane_send(&stripe->lanes[i], IO_READ, IO_RESYNC, 0, round->piece,
				  stripe->lanes[i].old_in, read_done);
		else
			round->unreadable |= 1u << i;
	}
	/* Reads come back later: nobody is judged in here, unless there are none. */
	if (--round->pending == 0)
		judge(stripe);
}

void survey_resume(struct stripe *stripe)
{
	next_piece(stripe);
}

void survey_start(struct stripe *stripe)
{
	struct round *round = &stripe->round;

	if (loss_broken_stripe(stripe->all, stripe->number) ||
	    (round->kind == ROUND_EQUALISE && loss_broken(stripe->all))) {
		stripe_round_end(stripe, -EIO);
		return;
	}
	round->error = 0;
	round->has_memory = false;
	round->pending = 0;
	round->step = PIECE;
	round->piece = (struct span){ round->hull.from, round->hull.from };
	if (stripe_take_memory(stripe, piece_memory(stripe) * (stripe->all->raid5->roles + 1)))
		next_piece(stripe);
}
