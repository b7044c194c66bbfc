/* SPDX-License-Identifier: MIT */
/*
 * Active stripes: what is gathered for them, and when their rounds start.
 *
 *   io ─▶ op ─▶ parts ─▶ gathering ─turn end, full, held no longer─▶ round ─▶ answered
 *          ▲ next window    ▲ the next round's parts                   │
 *          └────────────────┴──────────────────────────────────────────┘
 *
 * Invariants:
 *  1. A stripe has one round at a time; parts that cannot join it wait, and the first of them
 *     starts the next one.
 *  2. An io is admitted when everything that it needs is there, in the order of coming: stripes
 *     and parts never run out half way.
 *  3. Each column of a write round has one contiguous span of new data.
 *  4. A stripe that a sequential stream is filling is held HOLD_NS at most, and only while
 *     streams are seen to fill what is held.
 *
 * Not here: what a round does (round.c, survey.c), memory and flushes (stripe_memory.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "raid/stripe_int.h"

#define HOLD_NS (2 * NS_PER_MS)
#define CREDIT 4u

static void gather(struct stripe *stripe, struct part *part);

static void admit_later(struct stripes *stripes)
{
	if (!stripes->admit.queued)
		env_defer(stripes->array->env, &stripes->admit);
}

/* --- which are active --- */

static struct stripe *find(struct stripes *stripes, uint64_t number)
{
	struct stripe *stripe;

	LIST_FOREACH(stripe, &stripes->buckets[number % STRIPE_BUCKETS], hash)
		if (stripe->number == number)
			return stripe;
	return NULL;
}

static struct stripe *activate(struct stripes *stripes, uint64_t number)
{
	struct stripe *stripe = find(stripes, number);

	if (stripe)
		return stripe;
	stripe = pool_get(&stripes->free);
	assert(stripe);
	stripe->number = number;
	stripe->parity_role = raid5_parity_role(stripes->raid5->roles, number);
	stripe->stream = -1;
	stripe->job = NULL;
	stripe->agreement = AGREEMENT_UNKNOWN;
	TAILQ_INIT(&stripe->waiting);
	stripe->round.kind = ROUND_NONE;
	LIST_INSERT_HEAD(&stripes->buckets[number % STRIPE_BUCKETS], stripe, hash);
	return stripe;
}

static void deactivate(struct stripe *stripe)
{
	struct stripes *stripes = stripe->all;

	LIST_REMOVE(stripe, hash);
	pool_put(&stripes->free, stripe);
	admit_later(stripes);
}

/* --- streams --- */

/* The stream that goes on at OFFSET, else a new one in the place of the oldest; -1: not sure yet. */
static int stream_of(struct stripes *stripes, uint64_t offset, uint64_t length)
{
	struct stream *oldest = &stripes->streams[0], *stream = NULL;

	for (unsigned i = 0; i < STRIPE_STREAMS && !stream; i++) {
		if (stripes->streams[i].used && stripes->streams[i].next == offset)
			stream = &stripes->streams[i];
		else if (stripes->streams[i].used < oldest->used)
			oldest = &stripes->streams[i];
	}
	if (!stream) {
		stream = oldest;
		*stream = (struct stream){ .credit = CREDIT };
	}
	stream->next = offset + length;
	stream->run += length;
	stream->used = ++stripes->stream_clock;
	return stream->run > length ? (int)(stream - stripes->streams) : -1;
}

static bool full(const struct stripe *stripe)
{
	return stripe->round.kind == ROUND_WRITE &&
	       stripe->round.bytes == stripe->all->raid5->stripe_bytes;
}

static bool may_hold(struct stripe *stripe, uint64_t now_ns)
{
	uint64_t begin = stripe->number * stripe->all->raid5->stripe_bytes;
	struct stream *stream;

	if (stripe->round.kind != ROUND_WRITE || full(stripe) || stripe->stream < 0 ||
	    !TAILQ_EMPTY(&stripe->waiting) || stripe->job)
		return false;
	stream = &stripe->all->streams[stripe->stream];
	/* It is here that it goes on. */
	if (!stream->credit || stream->next <= begin ||
	    stream->next >= begin + stripe->all->raid5->stripe_bytes)
		return false;
	if (!stripe->hold_until)
		stripe->hold_until = now_ns + HOLD_NS;
	if (now_ns < stripe->hold_until)
		return true;
	stream->credit--;
	return false;
}

/* --- gathering --- */

static void start_later(struct stripes *stripes)
{
	if (!stripes->start.queued)
		env_defer(stripes->array->env, &stripes->start);
}

static void start(struct stripe *stripe)
{
	TAILQ_REMOVE(&stripe->all->gathering, stripe, link);
	stripe->gathering = false;
	if (full(stripe) && stripe->stream >= 0)
		stripe->all->streams[stripe->stream].credit = CREDIT;
	if (stripe->round.kind == ROUND_WRITE)
		round_start(stripe);
	else
		survey_start(stripe);
}

static void start_run(struct env_defer *defer)
{
	struct stripes *stripes = container_of(defer, struct stripes, start);
	uint64_t now_ns = env_now_ns(stripes->array->env), first = UINT64_MAX;
	struct stripe *stripe, *next;

	TAILQ_FOREACH_SAFE(stripe, &stripes->gathering, link, next) {
		if (may_hold(stripe, now_ns))
			first = min_u64(first, stripe->hold_until);
		else
			start(stripe);
	}
	if (first != UINT64_MAX)
		env_timer_set(stripes->array->env, &stripes->held, first - now_ns);
}

static void held_run(struct env_timer *timer)
{
	start_later(container_of(timer, struct stripes, held));
}

/* What PART touches in COLUMN. */
static struct span column_span(const struct stripe *stripe, const struct part *part,
			       unsigned column)
{
	uint64_t chunk = stripe->all->raid5->chunk_bytes, begin = column * chunk;
	uint64_t from = max_u64(part->from, begin), to = min_u64(part->to, begin + chunk);

	if (from >= to)
		return (struct span){ 0, 0 };
	return (struct span){ (uint32_t)(from - begin), (uint32_t)(to - begin) };
}

static struct lane *data_lane(struct stripe *stripe, unsigned column)
{
	return &stripe->lanes[raid5_data_role(stripe->all->raid5->roles, stripe->number, column)];
}

static struct span span_join(struct span a, struct span b)
{
	if (!span_bytes(a))
		return b;
	if (!span_bytes(b))
		return a;
	return (struct span){ (uint32_t)min_u64(a.from, b.from), (uint32_t)max_u64(a.to, b.to) };
}

static struct span part_hull(const struct stripe *stripe, const struct part *part)
{
	struct span hull = { 0, 0 };

	for (unsigned i = 0; i < stripe->all->raid5->columns; i++)
		hull = span_join(hull, column_span(stripe, part, i));
	return hull;
}

static unsigned part_elements(const struct stripe *stripe, const struct part *part)
{
	return part->op->io->iov_count + stripe->all->raid5->columns;
}

static enum round_kind kind_of(const struct part *part)
{
	return part->op->io->op == IO_READ ? ROUND_READ : ROUND_WRITE;
}

static bool joins(struct stripe *stripe, const struct part *part)
{
	const struct round *round = &stripe->round;
	struct span hull = part_hull(stripe, part);

	if (kind_of(part) != round->kind || hull.from > round->hull.to ||
	    hull.to < round->hull.from ||
	    round->elements + part_elements(stripe, part) > IO_IOV_MAX)
		return false;
	for (unsigned i = 0; i < stripe->all->raid5->columns; i++) {
		struct span have = data_lane(stripe, i)->data, add = column_span(stripe, part, i);

		/* Reads: one column; reconstructing reads all others. */
		if (round->kind == ROUND_READ && !span_bytes(have) != !span_bytes(add))
			return false;
		if (span_bytes(have) && span_bytes(add) && have.to != add.from &&
		    have.from != add.to)
			return false;
	}
	return true;
}

static void join(struct stripe *stripe, struct part *part)
{
	struct round *round = &stripe->round;
	struct part *after;

	TAILQ_FOREACH(after, &round->parts, link)
		if (after->from > part->from)
			break;
	if (after)
		TAILQ_INSERT_BEFORE(after, part, link);
	else
		TAILQ_INSERT_TAIL(&round->parts, part, link);
	for (unsigned i = 0; i < stripe->all->raid5->columns; i++) {
		struct lane *lane = data_lane(stripe, i);

		lane->data = span_join(lane->data, column_span(stripe, part, i));
	}
	round->hull = span_join(round->hull, part_hull(stripe, part));
	round->bytes += part->to - part->from;
	round->elements += part_elements(stripe, part);
	round->flags |= part->op->io->flags;
	round->purpose = part->op->io->purpose;
	if (part->op->stream >= 0)
		stripe->stream = part->op->stream;
}

static void round_open(struct stripe *stripe, enum round_kind kind)
{
	struct round *round = &stripe->round;

	round->kind = kind;
	round->aside = false;
	TAILQ_INIT(&round->parts);
	round->hull = (struct span){ 0, 0 };
	round->bytes = 0;
	round->elements = 0;
	round->flags = 0;
	round->purpose = IO_RESYNC;
	for (unsigned i = 0; i < stripe->all->raid5->roles; i++)
		stripe->lanes[i].data = (struct span){ 0, 0 };
	stripe->hold_until = 0;
	stripe->gathering = true;
	TAILQ_INSERT_TAIL(&stripe->all->gathering, stripe, link);
	start_later(stripe->all);
}

static void gather(struct stripe *stripe, struct part *part)
{
	if (stripe->round.kind == ROUND_NONE) {
		round_open(stripe, kind_of(part));
	} else if (!stripe->gathering || !joins(stripe, part)) {
		TAILQ_INSERT_TAIL(&stripe->waiting, part, link);
		return;
	}
	join(stripe, part);
	if (full(stripe))
		start_later(stripe->all);
}

/* --- after a round --- */

static void equalise_open(struct stripe *stripe)
{
	round_open(stripe, ROUND_EQUALISE);
	stripe->round.hull = (struct span){ 0, stripe->all->raid5->chunk_bytes };
}

void stripe_agree_first(struct stripe *stripe)
{
	struct part *part;

	while ((part = TAILQ_LAST(&stripe->round.parts, part_list))) {
		TAILQ_REMOVE(&stripe->round.parts, part, link);
		TAILQ_INSERT_HEAD(&stripe->waiting, part, link);
	}
	equalise_open(stripe);
	stripe->round.aside = true;
}

static void next_round(struct stripe *stripe)
{
	struct part *part = TAILQ_FIRST(&stripe->waiting), *next;

	stripe->round.kind = ROUND_NONE;
	if (stripe->job) {
		equalise_open(stripe);
		return;
	}
	if (!part) {
		deactivate(stripe);
		return;
	}
	round_open(stripe, kind_of(part));
	TAILQ_REMOVE(&stripe->waiting, part, link);
	join(stripe, part);
	TAILQ_FOREACH_SAFE(part, &stripe->waiting, link, next) {
		if (!joins(stripe, part))
			continue;
		TAILQ_REMOVE(&stripe->waiting, part, link);
		join(stripe, part);
	}
}

static void part_end(struct stripes *stripes, struct part *part)
{
	struct op *op = part->op;

	pool_put(&stripes->parts, part);
	if (--op->pending > 0)
		return;
	admit_later(stripes);
	if (op->at < op->end && !op->error) {
		STAILQ_INSERT_TAIL(&stripes->more, op, link);
		return;
	}
	io_done(op->io, op->error);
	pool_put(&stripes->ops, op);
}

void stripe_part_failed(struct part *part, int error)
{
	if (!part->op->error)
		part->op->error = error;
}

static void job_end(struct stripes *stripes, struct job *job, int error);

void stripe_round_end(struct stripe *stripe, int error)
{
	struct round *round = &stripe->round;
	struct stripes *stripes = stripe->all;
	struct job *job = NULL;
	struct part *part;

	while ((part = TAILQ_FIRST(&round->parts))) {
		TAILQ_REMOVE(&round->parts, part, link);
		if (error)
			stripe_part_failed(part, error);
		part_end(stripes, part);
	}
	if (round->aside) {
		stripe->agreement = error ? AGREEMENT_FAILED : AGREEMENT_REACHED;
	} else if (stripe->agreement == AGREEMENT_FAILED) {
		stripe->agreement = AGREEMENT_UNKNOWN; /* who comes next tries again */
	}
	if (round->kind == ROUND_EQUALISE && !round->aside) {
		job = stripe->job;
		stripe->job = NULL;
	}
	next_round(stripe);
	if (job)
		job_end(stripes, job, error);
}

/* --- admission --- */

static uint64_t window_end(const struct stripes *stripes, uint64_t at, uint64_t end)
{
	return min_u64(end, at + stripes->raid5->blk.max_io);
}

static bool room_for(const struct stripes *stripes, uint64_t at, uint64_t end)
{
	uint64_t bytes = stripes->raid5->stripe_bytes;
	uint64_t count = (window_end(stripes, at, end) - 1) / bytes - at / bytes + 1;

	return stripes->free.available >= count + STRIPE_JOBS && stripes->parts.available >= count;
}

static void part_window(struct stripes *stripes, struct op *op)
{
	uint64_t bytes = stripes->raid5->stripe_bytes;
	uint64_t end = window_end(stripes, op->at, op->end);

	/* Not zero before the last part is there. */
	op->pending = (unsigned)((end - 1) / bytes - op->at / bytes + 1);
	while (op->at < end) {
		struct part *part = pool_get(&stripes->parts);
		uint64_t number = op->at / bytes, begin = number * bytes;

		part->op = op;
		part->from = op->at - begin;
		part->to = min_u64(end - begin, bytes);
		part->at = op->at - op->io->offset;
		op->at = begin + part->to;
		gather(activate(stripes, number), part);
	}
}

static void op_begin(struct stripes *stripes, struct io *io)
{
	struct op *op = pool_get(&stripes->ops);

	op->io = io;
	op->at = io->offset;
	op->end = io->offset + io->length;
	op->error = 0;
	op->stream = io->op == IO_WRITE ? stream_of(stripes, io->offset, io->length) : -1;
	part_window(stripes, op);
}

static void admit_run(struct env_defer *defer)
{
	struct stripes *stripes = container_of(defer, struct stripes, admit);
	struct op *op;
	struct io *io;

	while ((op = STAILQ_FIRST(&stripes->more)) && room_for(stripes, op->at, op->end)) {
		STAILQ_REMOVE_HEAD(&stripes->more, link);
		part_window(stripes, op);
	}
	while (STAILQ_EMPTY(&stripes->more) && (io = STAILQ_FIRST(&stripes->waiting)) &&
	       stripes->ops.available && room_for(stripes, io->offset, io->offset + io->length)) {
		STAILQ_REMOVE_HEAD(&stripes->waiting, link);
		op_begin(stripes, io);
	}
}

void stripes_submit(struct stripes *stripes, struct io *io)
{
	if (STAILQ_EMPTY(&stripes->waiting) && STAILQ_EMPTY(&stripes->more) &&
	    stripes->ops.available && room_for(stripes, io->offset, io->offset + io->length))
		op_begin(stripes, io);
	else
		STAILQ_INSERT_TAIL(&stripes->waiting, io, link);
}

/* --- equalising --- */

static void equalise_next(struct stripes *stripes)
{
	unsigned shift = stripes->raid5->chunk_shift;

	for (unsigned i = 0; i < STRIPE_JOBS && stripes->equalise.offset < stripes->equalise.end;
	     i++) {
		struct job *job = &stripes->jobs[i];
		struct stripe *stripe;

		if (job->busy)
			continue;
		stripe = activate(stripes, stripes->equalise.offset >> shift);
		stripes->equalise.offset += stripes->raid5->chunk_bytes;
		stripes->equalise.busy++;
		job->busy = true;
		stripe->job = job;
		if (stripe->round.kind == ROUND_NONE)
			next_round(stripe);
	}
	if (!stripes->equalise.busy && !stripes->equalise.tell.queued)
		env_defer(stripes->array->env, &stripes->equalise.tell);
}

static void equalise_tell(struct env_defer *defer)
{
	struct stripes *stripes = container_of(defer, struct stripes, equalise.tell);

	stripes->equalise.active = false;
	stripes->equalise.done(stripes->array, stripes->equalise.error);
}

static void job_end(struct stripes *stripes, struct job *job, int error)
{
	job->busy = false;
	stripes->equalise.busy--;
	if (error && !stripes->equalise.error)
		stripes->equalise.error = error;
	equalise_next(stripes);
}

void stripes_equalise(struct stripes *stripes, uint64_t offset, uint64_t length,
		      void (*done)(struct array *array, int error))
{
	uint64_t chunk = stripes->raid5->chunk_bytes;

	assert(!stripes->equalise.active);
	stripes->equalise.active = true;
	stripes->equalise.offset = align_down(offset, chunk);
	stripes->equalise.end = align_up(offset + length, chunk);
	stripes->equalise.error = 0;
	stripes->equalise.done = done;
	equalise_next(stripes);
}

/* --- life --- */

void stripes_hook(struct stripes *stripes)
{
	stripes->start.fn = start_run;
	stripes->admit.fn = admit_run;
	stripes->held.fn = held_run;
	stripes->equalise.tell.fn = equalise_tell;
	STAILQ_INIT(&stripes->waiting);
	STAILQ_INIT(&stripes->more);
	TAILQ_INIT(&stripes->gathering);
	TAILQ_INIT(&stripes->memory_wait);
	TAILQ_INIT(&stripes->flush_wait);
}
