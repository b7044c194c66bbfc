/* SPDX-License-Identifier: MIT */
/*
 * One write of a stripe.
 *
 *   region entered ─▶ plan ─▶ memory ─▶ old read ─▶ parity ─▶ log ─▶ data and parity ─▶ answered
 *      ▲               │ ▲                  │ a read failed     │ its member is out
 *      └── survey ◀────┘ └──────────────────┴───────────────────┘
 *
 * Invariants:
 *  1. (write hole) Data and parity are sent when the record that has them is durable on the
 *     parity's member, or when a durable label excludes that member, and regions say so.
 *  2. (I9) A round that some member missed is answered when a durable label excludes the member,
 *     and its region is durably dirty.
 *  3. (I8) A full stripe of which only an intent is logged waits until no record of the stripe
 *     would be replayed; what follows it waits until the intent would not be.
 *
 * Not here: what is gathered for a round (stripe.c), how it comes by its parity (plan.c), the ring
 * of records (redo.c).
 */
#include <errno.h>

#include "core/canary.h"
#include "raid/stripe_int.h"

static void plan(struct stripe *stripe);
static void write_out(struct stripe *stripe);

static struct lane *lane_of(struct stripe *stripe, unsigned column)
{
	return &stripe->lanes[raid5_data_role(stripe->all->raid5->roles, stripe->number, column)];
}

static unsigned columns(const struct stripe *stripe)
{
	return stripe->all->raid5->columns;
}

static bool whole_stripe(const struct stripe *stripe)
{
	return stripe->round.bytes == stripe->all->raid5->stripe_bytes;
}

/* --- the end --- */

static void finish(struct stripe *stripe, int error)
{
	struct round *round = &stripe->round;
	struct raid5_counts *counts = &stripe->all->counts;

	if (error && round->sent && round->plan != PLAN_DATA_ONLY) {
		loss_break(stripe);
		if (round->logged)
			redo_stay(round->log);
	} else if (round->logged) {
		redo_over(round->log, &round->entry, round->flags & IO_FUA);
	}
	if (round->logged)
		member_release(round->log_member);
	regions_leave(stripe->all->array->regions, &round->region, error && round->sent);
	stripe_give_memory(stripe);
	if (!error) {
		counts->rounds++;
		counts->bytes += round->bytes;
		if (whole_stripe(stripe)) {
			counts->full_rounds++;
			counts->full_bytes += round->bytes;
		}
	}
	stripe_round_end(stripe, error);
}

/* All of it is in place: what was lost may still be called so, but nothing is half done. */
static void answer(struct stripe *stripe)
{
	stripe->round.sent = false;
	finish(stripe, stripe->round.error);
}

/* NEXT once a durable label excludes who is out, and regions say what they miss. */
static void settle_then(struct stripe *stripe, void (*next)(struct stripe *stripe))
{
	struct round *round = &stripe->round;
	struct array *array = stripe->all->array;

	round->settled = next;
	if (!membership_settled(array))
		membership_wait(array, &round->settle);
	else if (regions_sync(array->regions, &round->sync))
		next(stripe);
}

static void settled(struct settle_wait *wait, int error)
{
	struct stripe *stripe = container_of(wait, struct stripe, round.settle);

	if (error)
		finish(stripe, -EIO);
	else
		settle_then(stripe, stripe->round.settled);
}

static void synced(struct region_hold *hold, int error)
{
	struct stripe *stripe = container_of(hold, struct stripe, round.sync);

	if (error)
		finish(stripe, -EIO);
	else
		settle_then(stripe, stripe->round.settled);
}

static bool is_settled(const struct stripe *stripe)
{
	const struct array *array = stripe->all->array;

	return membership_settled(array) && regions_synced(array->regions);
}

/* --- the plan --- */

static uint64_t memory_bytes(const struct stripe *stripe)
{
	uint64_t bytes = stripe_align(stripe, span_bytes(stripe->round.hull));

	for (unsigned i = 0; i < stripe->all->raid5->roles; i++)
		bytes += stripe_align(stripe, span_bytes(stripe->lanes[i].old));
	if (stripe->round.plan == PLAN_EVERYTHING)
		bytes += stripe_align(stripe, span_bytes(stripe->round.hull));
	return bytes;
}

/* Of full stripes only an intent is logged, where the array says so and all data would be there. */
static bool intent_only(const struct stripe *stripe)
{
	const struct array *array = stripe->all->array;

	return whole_stripe(stripe) && !(array->label.flags & LABEL_LOG_STRIPES) &&
	       array->state == ARRAY_HEALTHY;
}

static void plan(struct stripe *stripe)
{
	struct round *round = &stripe->round;

	stripe_give_memory(stripe);
	if (plan_needs_agreement(stripe) && !loss_broken(stripe->all)) {
		regions_leave(stripe->all->array->regions, &round->region, false);
		stripe_agree_first(stripe);
		return;
	}
	if (loss_broken(stripe->all) || !plan_choose(stripe)) {
		finish(stripe, -EIO);
		return;
	}
	if ((round->plan == PLAN_DATA_ONLY || intent_only(stripe)) && !is_settled(stripe))
		settle_then(stripe, plan);
	else if (round->plan == PLAN_DATA_ONLY)
		write_out(stripe);
	else if (stripe_take_memory(stripe, memory_bytes(stripe)))
		round_resume(stripe);
}

/* --- parity --- */

static struct parity_at at_of(const struct pieces *pieces, struct span span, uint32_t x)
{
	struct parity_at at = { pieces->iov, 0 };

	parity_move(&at, x - span.from);
	return at;
}

static bool covers(struct span span, uint32_t x)
{
	return x >= span.from && x < span.to;
}

/* Where the next interval after X ends, in which the same columns are written. */
static uint32_t interval_end(struct stripe *stripe, uint32_t x)
{
	uint32_t end = stripe->round.hull.to;

	for (unsigned i = 0; i < columns(stripe); i++) {
		struct span data = lane_of(stripe, i)->data;

		if (data.from > x && data.from < end)
			end = data.from;
		if (data.to > x && data.to < end)
			end = data.to;
	}
	return end;
}

/* What parity at X is the XOR of. */
static unsigned sources_at(struct stripe *stripe, uint32_t x, struct parity_at *sources)
{
	struct round *round = &stripe->round;
	bool modify = round->plan == PLAN_MODIFY;
	unsigned count = 0;

	if (modify)
		sources[count++] = at_of(&round->parity, round->hull, x);
	for (unsigned i = 0; i < columns(stripe); i++) {
		struct lane *lane = lane_of(stripe, i);
		bool written = covers(lane->data, x);

		if (written)
			sources[count++] = at_of(&lane->data_in, lane->data, x);
		if (written == modify)
			sources[count++] = at_of(&lane->old_in, lane->old, x);
	}
	return count;
}

/* EVERYTHING: what the lost column held. */
static void find_lost(struct stripe *stripe)
{
	struct round *round = &stripe->round;
	struct lane *lost = &stripe->lanes[round->lost];
	struct parity_at sources[PARITY_SOURCES_MAX], to;
	unsigned count = 0;

	sources[count++] = at_of(&round->parity, round->hull, round->hull.from);
	for (unsigned i = 0; i < columns(stripe); i++)
		if (lane_of(stripe, i) != lost)
			sources[count++] =
				at_of(&lane_of(stripe, i)->old_in, round->hull, round->hull.from);
	to = at_of(&lost->old_in, round->hull, round->hull.from);
	parity_xor(&to, sources, count, span_bytes(round->hull), &stripe->all->counts.xored);
}

static void make_parity(struct stripe *stripe)
{
	struct round *round = &stripe->round;
	struct parity_at sources[PARITY_SOURCES_MAX], to;
	uint32_t end;

	if (round->plan == PLAN_EVERYTHING) {
		find_lost(stripe);
		stripe->lanes[round->lost].old = round->hull;
	}
	for (uint32_t x = round->hull.from; x < round->hull.to; x = end) {
		unsigned count = sources_at(stripe, x, sources);

		end = interval_end(stripe, x);
		/* Modified nowhere here: it stays. */
		if (count < 2)
			continue;
		to = at_of(&round->parity, round->hull, x);
		parity_xor(&to, sources, count, end - x, &stripe->all->counts.xored);
	}
}

/* --- data and parity --- */

static void all_written(struct stripe *stripe)
{
	struct round *round = &stripe->round;

	if (round->error) {
		finish(stripe, round->error);
		return;
	}
	if (loss_touched(stripe))
		round->error = loss_regain(stripe);
	if (is_settled(stripe) || canary(CANARY_ACK_BEFORE_LABEL))
		answer(stripe);
	else
		settle_then(stripe, answer);
}

static void written(struct io *io, void *arg)
{
	struct lane *lane = arg;
	struct stripe *stripe = lane->stripe;
	struct round *round = &stripe->round;

	if (io->error && !membership_failed(stripe->all->array, lane->member, io->error, "write") &&
	    !round->error)
		round->error = io->error;
	if (--round->pending == 0)
		all_written(stripe);
}

static bool takes_write(struct stripe *stripe, const struct lane *lane)
{
	bool parity = lane->role == stripe->parity_role;

	if (!stripe->all->array->roles[lane->role])
		return false;
	return parity ? stripe->round.plan != PLAN_DATA_ONLY : span_bytes(lane->data) > 0;
}

static void write_out(struct stripe *stripe)
{
	struct round *round = &stripe->round;

	if (round->plan == PLAN_DATA_ONLY) {
		round->iov_used = 0;
		for (unsigned i = 0; i < columns(stripe); i++)
			lane_of(stripe, i)->data_in =
				stripe_data_pieces(stripe, lane_of(stripe, i));
	}
	if (loss_touched(stripe))
		round->flags |= IO_FUA;
	round->sent = true;
	/* No io comes back before this turn goes on: the first cannot be the last. */
	for (unsigned i = 0; i < stripe->all->raid5->roles; i++) {
		struct lane *lane = &stripe->lanes[i];

		if (!takes_write(stripe, lane))
			continue;
		if (lane->role == stripe->parity_role)
			lane_send(lane, IO_WRITE, IO_PARITY, round->flags, round->hull,
				  round->parity, written);
		else
			lane_send(lane, IO_WRITE, round->purpose, round->flags, lane->data,
				  lane->data_in, written);
	}
	if (!round->pending)
		finish(stripe, -EIO);
}

/* --- the log --- */

static unsigned entry_slice(struct redo_entry *entry, int column, uint32_t from, uint32_t to,
			    struct iovec *iov, unsigned room)
{
	struct stripe *stripe = container_of(entry, struct stripe, round.entry);
	const struct lane *lane;

	if (column < 0)
		return pieces_slice(&stripe->round.parity, from - stripe->round.hull.from,
				    to - from, iov, room);
	lane = lane_of(stripe, (unsigned)column);
	return pieces_slice(&lane->data_in, from - lane->data.from, to - from, iov, room);
}

static void entry_done(struct redo_entry *entry, int error)
{
	struct stripe *stripe = container_of(entry, struct stripe, round.entry);
	struct round *round = &stripe->round;

	round->logged = !error;
	if (error)
		member_release(round->log_member);
	if (!error)
		write_out(stripe);
	else if (membership_failed(stripe->all->array, round->log_member, error, "log"))
		plan(stripe);
	else {
		loss_break(stripe); /* who knows what the log has of it */
		finish(stripe, error);
	}
}

static void use_log(struct round *round, struct member *member)
{
	round->log_member = member;
	round->log = member->redo;
	member_hold(member);
}

void round_log(struct stripe *stripe)
{
	struct round *round = &stripe->round;
	struct member *member = stripe->all->array->roles[stripe->parity_role];
	struct redo_entry *entry = &round->entry;

	if (!member || loss_broken(stripe->all)) {
		plan(stripe);
		return;
	}
	*entry = (struct redo_entry){
		.stripe = stripe->number,
		.from = round->hull.from,
		.to = round->hull.to,
		.intent = intent_only(stripe),
		.slice = entry_slice,
		.done = entry_done,
	};
	if (canary(CANARY_WRITE_HOLE)) {
		write_out(stripe);
		return;
	}
	if (redo_has(member->redo, stripe->number, !entry->intent) &&
	    !canary(CANARY_INTENT_ORDER)) {
		stripe_wait_flush(stripe);
		return;
	}
	for (unsigned i = 0; i < columns(stripe); i++) {
		struct span data = lane_of(stripe, i)->data;

		if (span_bytes(data))
			entry->spans[entry->span_count++] =
				(struct redo_span){ i, data.from, data.to };
	}
	use_log(round, member);
	redo_write(round->log, entry);
}

void round_fail(struct stripe *stripe, int error)
{
	finish(stripe, error);
}

/* --- reads --- */

static void all_read(struct stripe *stripe)
{
	make_parity(stripe);
	round_log(stripe);
}

static void read_done(struct io *io, void *arg)
{
	struct lane *lane = arg;
	struct stripe *stripe = lane->stripe;
	struct round *round = &stripe->round;

	if (io->error) {
		round->unreadable |= 1u << lane->role;
		round->again = true;
	}
	if (--round->pending > 0)
		return;
	redo_expected(round->log);
	member_release(round->log_member);
	if (round->again)
		plan(stripe);
	else
		all_read(stripe);
}

static void lay_out_memory(struct stripe *stripe)
{
	struct round *round = &stripe->round;
	uint64_t used = stripe_align(stripe, span_bytes(round->hull));

	round->iov_used = 0;
	round->parity = stripe_memory_pieces(stripe, 0, span_bytes(round->hull));
	for (unsigned i = 0; i < stripe->all->raid5->roles; i++) {
		struct lane *lane = &stripe->lanes[i];
		struct span old = lane->old;

		if (span_bytes(lane->data))
			lane->data_in = stripe_data_pieces(stripe, lane);
		if (round->plan == PLAN_EVERYTHING && i == round->lost)
			old = round->hull;
		lane->old_in = round->parity;
		if (i == stripe->parity_role || !span_bytes(old))
			continue;
		lane->old_in = stripe_memory_pieces(stripe, used, span_bytes(old));
		used += stripe_align(stripe, span_bytes(old));
	}
}

void round_resume(struct stripe *stripe)
{
	struct round *round = &stripe->round;

	if (plan_outdated(stripe)) {
		plan(stripe);
		return;
	}
	lay_out_memory(stripe);
	round->again = false;
	for (unsigned i = 0; i < stripe->all->raid5->roles; i++) {
		struct lane *lane = &stripe->lanes[i];

		if (span_bytes(lane->old))
			lane_send(lane, IO_READ, IO_PARITY, round->flags & IO_LANE, lane->old,
				  lane->old_in, read_done);
	}
	if (!round->pending) {
		all_read(stripe);
		return;
	}
	use_log(round, stripe->all->array->roles[stripe->parity_role]);
	redo_expect(round->log);
}

/* --- the start --- */

static void region_granted(struct region_hold *hold, int error)
{
	struct stripe *stripe = container_of(hold, struct stripe, round.region);

	if (error)
		finish(stripe, -EIO);
	else
		plan(stripe);
}

void round_start(struct stripe *stripe)
{
	struct round *round = &stripe->round;
	const struct raid5 *raid5 = stripe->all->raid5;

	round->error = 0;
	round->unreadable = 0;
	round->pending = 0;
	round->logged = round->sent = round->has_memory = false;
	round->settle.fn = settled;
	round->sync.fn = synced;
	round->region = (struct region_hold){
		.offset = stripe->number << raid5->chunk_shift,
		.length = raid5->chunk_bytes,
		.fn = region_granted,
	};
	if (regions_enter(raid5->array->regions, &round->region))
		plan(stripe);
}
