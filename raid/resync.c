/* SPDX-License-Identifier: MIT */
/*
 * The resync: makes doubtful regions equal, and brings members in that rebuild.
 *
 *   idle ─kick─▶ region by region, piece by piece ─▶ nothing doubtful ─▶ flush ─▶ label ─▶ idle
 *                         ▲ │ doubted again                 │ nobody rebuilds
 *                         └─┘                               ▼
 *                                                          idle
 *
 * Invariants:
 *  1. (I10) A member that rebuilds is listed only when nothing was doubtful, and after a FLUSH of
 *     every member that began after that.
 *  2. (I9) Nobody is listed whom the label does not name as rebuilding: the next one is written
 *     after it, so his disk says by then who he is.
 *  3. A region whose data nobody can read stays doubtful, and nobody is brought in while there is
 *     one: the member would answer with bytes that never were there.
 *
 * Not here: making a range equal (equalise.c), which regions (backstore/regions.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/canary.h"
#include "core/event.h"
#include "raid/array_int.h"

#define PIECE MIB

struct resync {
	struct array *array;
	struct env_defer kick;
	struct env_timer step; /* pieces are turns of their own: there may be many of nothing */
	bool busy;
	bool told;            /* that it started */
	bool unread;          /* some region could not be read since the last kick */
	uint64_t offset, end; /* the region under way, what is left of it */
	uint64_t start, doubts;
	bool error;
	struct flush_wait flush;
	struct settle_wait settle;
	void (*stopped)(struct array *array);
};

static void go_on(struct resync *resync);

static bool stop_if_asked(struct resync *resync)
{
	struct array *array = resync->array;
	void (*stopped)(struct array * array) = resync->stopped;

	if (!stopped)
		return false;
	env_defer_cancel(array->env, &resync->kick);
	free(resync);
	array->resync = NULL;
	stopped(array);
	return true;
}

static void go_idle(struct resync *resync)
{
	resync->busy = false;
	if (resync->told && !resync->unread)
		event_emit(EVENT_RESYNC_DONE, resync->array->label.name);
	resync->told = false;
	array_changed(resync->array);
}

/* --- members come in --- */

/* Invariant 2; who is not named yet makes the resync run once he is. */
static bool rebuilds(const struct array *array, const struct member *member)
{
	return member && member->state == MEMBER_REBUILDING &&
	       array->label.members[member->index].state == LABEL_REBUILDING;
}

static bool anybody_rebuilds(const struct array *array)
{
	for (unsigned i = 0; i < array->label.roles; i++)
		if (rebuilds(array, array->roles[i]))
			return true;
	return false;
}

static void settled(struct settle_wait *wait, int error)
{
	struct resync *resync = container_of(wait, struct resync, settle);

	if (stop_if_asked(resync))
		return;
	if (error)
		go_idle(resync);
	else
		go_on(resync);
}

static void flushed(struct flush_wait *wait, int error)
{
	struct resync *resync = container_of(wait, struct resync, flush);
	struct array *array = resync->array;
	uint64_t offset, length;

	if (stop_if_asked(resync))
		return;
	if (error) {
		go_idle(resync);
		return;
	}
	/* Something became doubtful meanwhile: not yet. */
	if (regions_next_doubtful(array->regions, 0, &offset, &length)) {
		go_on(resync);
		return;
	}
	for (unsigned i = 0; i < array->label.roles; i++) {
		const struct member *member = array->roles[i];

		if (rebuilds(array, member))
			array->wanted[member->index] = LABEL_IN_SYNC;
	}
	membership_change(array);
	membership_wait(array, &resync->settle);
}

/* --- regions --- */

static void next_piece(struct resync *resync);

static void step(struct env_timer *timer)
{
	struct resync *resync = container_of(timer, struct resync, step);

	if (!stop_if_asked(resync))
		next_piece(resync);
}

static void piece_done(struct array *array, int error)
{
	struct resync *resync = array->resync;

	resync->error |= error != 0;
	env_timer_set(array->env, &resync->step, 0);
}

static void next_piece(struct resync *resync)
{
	struct array *array = resync->array;
	uint64_t offset = resync->offset;
	uint64_t length = min_u64(PIECE, resync->end - offset);

	if (length) {
		resync->offset += length;
		array->level->equalise(array, offset, length, piece_done);
		return;
	}
	if (!resync->error)
		regions_made_equal(array->regions, resync->start, resync->doubts);
	resync->unread |= resync->error;
	go_on(resync);
}

static void tell_start(struct resync *resync)
{
	struct regions_counts counts;
	char bytes[24];

	if (resync->told)
		return;
	resync->told = true;
	regions_counts(resync->array->regions, &counts);
	snprintf(bytes, sizeof(bytes), "%" PRIu64,
		 counts.doubtful * regions_region_bytes(resync->array->label.data.length));
	event_emit(EVENT_RESYNC_STARTED, resync->array->label.name, bytes);
}

/* The next doubtful region after the last one, else from the start, else the end of it. */
static void go_on(struct resync *resync)
{
	struct regions *regions = resync->array->regions;
	uint64_t offset, length;

	if (regions_next_doubtful(regions, resync->end, &offset, &length)) {
		tell_start(resync);
		resync->start = resync->offset = offset;
		resync->end = offset + length;
		resync->doubts = regions_doubts(regions, offset);
		resync->error = false;
		next_piece(resync);
		return;
	}
	resync->end = 0;
	if (!resync->unread && regions_next_doubtful(regions, 0, &offset, &length))
		go_on(resync);
	else if (canary(CANARY_IN_SYNC) && !resync->unread && anybody_rebuilds(resync->array))
		flushed(&resync->flush, 0);
	else if (!resync->unread && anybody_rebuilds(resync->array))
		array_flush(resync->array, &resync->flush);
	else
		go_idle(resync);
}

/* --- life --- */

static void kick_run(struct env_defer *defer)
{
	struct resync *resync = container_of(defer, struct resync, kick);
	struct array *array = resync->array;
	uint64_t offset, length;

	if (resync->busy || resync->stopped ||
	    (!regions_next_doubtful(array->regions, 0, &offset, &length) &&
	     !anybody_rebuilds(array)))
		return;
	resync->busy = true;
	resync->unread = false;
	resync->end = 0;
	go_on(resync);
}

void resync_kick(struct resync *resync)
{
	if (!resync->kick.queued)
		env_defer(resync->array->env, &resync->kick);
}

void resync_stop(struct resync *resync, void (*done)(struct array *array))
{
	resync->stopped = done;
	if (!resync->busy)
		stop_if_asked(resync);
}

struct resync *resync_new(struct array *array)
{
	struct resync *resync = calloc(1, sizeof(*resync));

	if (!resync)
		return NULL;
	resync->array = array;
	resync->kick.fn = kick_run;
	resync->step.fn = step;
	resync->flush.fn = flushed;
	resync->settle.fn = settled;
	return resync;
}
