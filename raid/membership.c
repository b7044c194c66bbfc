/* SPDX-License-Identifier: MIT */
/*
 * Who is a member: the running label and its changes.
 *
 *   settled ──membership_change──▶ writing ──all written──▶ settled
 *                                   │  ▲
 *                    a write failed │  │ the next label, without who failed
 *                    or a change    ▼  │
 *                                  again (when the writes of this label have ended)
 *
 * Invariants:
 *  1. (I9) A label that excludes somebody counts, and what skipped him is acknowledged, only once
 *     it is durable on all members that remain.
 *  2. (I9) Somebody whom a label adds is IN_SYNC only once that label is durable on everyone whom
 *     it lists; if one of them fails before, the next label does not list him either.
 *  3. Nobody is excluded whom the array cannot do without: then his errors are the host's.
 *  4. One label is written at a time.
 *  5. Somebody whom no label names gets none, and none is needed to exclude him. He is listed only
 *     after a label that named him was on his disk: else that disk would say it were another.
 *
 * Not here: which label decides at start (assembly.c), bytes and slots (label.c, member.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/canary.h"
#include "core/event.h"
#include "raid/array_int.h"

struct membership {
	struct array *array;
	unsigned writing; /* members whose label is on its way */
	bool again;
	bool settled;
	uint32_t adding; /* members that this label lists and the last one did not */
	int error;       /* no label can be made durable any more */
	STAILQ_HEAD(, settle_wait) waits;
	struct env_defer defer;
};

/* --- waiting --- */

bool membership_settled(const struct array *array)
{
	return array->membership->settled && !array->membership->error;
}

static void tell_waits(struct env_defer *defer)
{
	struct membership *membership = container_of(defer, struct membership, defer);
	STAILQ_HEAD(, settle_wait) due = STAILQ_HEAD_INITIALIZER(due);
	struct settle_wait *wait;

	if (membership->writing || (!membership->settled && !membership->error))
		return;
	STAILQ_CONCAT(&due, &membership->waits);
	while ((wait = STAILQ_FIRST(&due))) {
		STAILQ_REMOVE_HEAD(&due, link);
		wait->fn(wait, membership->error);
	}
}

static void tell_later(struct membership *membership)
{
	if (!membership->defer.queued)
		env_defer(membership->array->env, &membership->defer);
}

void membership_wait(struct array *array, struct settle_wait *wait)
{
	struct membership *membership = array->membership;

	STAILQ_INSERT_TAIL(&membership->waits, wait, link);
	if (membership->settled || membership->error)
		tell_later(membership);
}

/* --- writing a label --- */

static void write_next(struct membership *membership);

/* Whether nobody whom the label lists went out while it was written: all of them have it. */
static bool listed_have_it(const struct array *array)
{
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		const struct member *member = array->members[i];

		if (array->label.members[i].state == LABEL_IN_SYNC &&
		    (!member || member->state == MEMBER_OUT))
			return false;
	}
	return true;
}

static void all_written(struct membership *membership)
{
	struct array *array = membership->array;
	char text[8];

	/* Also with a change to come: changes that never end must not fill the list of ancestors. */
	if (listed_have_it(array))
		label_settled(&array->label);
	if (membership->again) {
		write_next(membership);
		return;
	}
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		if (!(membership->adding >> i & 1))
			continue;
		array->members[i]->state = MEMBER_IN_SYNC;
		event_emit(EVENT_MEMBER_ADDED, array->label.name, array_member_text(i, text),
			   array->members[i]->name);
	}
	membership->adding = 0;
	membership->settled = true;
	array_members_changed(array);
	tell_later(membership);
}

static void member_written(struct member *member, int error)
{
	struct array *array = member->array;
	struct membership *membership = array->membership;

	membership->writing--;
	/* The last one cannot go out; without its label nothing can be said durably any more. */
	if (error && !membership_failed(array, member, error, "label"))
		membership->error = error;
	if (membership->writing)
		return;
	if (membership->error)
		tell_later(membership);
	else
		all_written(membership);
}

/* States of the label follow what is wanted, as far as members are there. */
static void fill_in(struct membership *membership)
{
	struct array *array = membership->array;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		enum label_state *state = &array->label.members[i].state;
		enum label_state wanted = array->wanted[i];

		if (wanted == LABEL_IN_SYNC && *state != LABEL_IN_SYNC)
			membership->adding |= 1u << i;
		/* The oldest ancestor was settled: it is on all who were there. */
		if (wanted == LABEL_FAILED &&
		    (*state == LABEL_IN_SYNC || *state == LABEL_REBUILDING))
			array->label.members[i].reached = label_generation(&array->label, 0);
		*state = wanted;
		if (canary(CANARY_ADD_BEFORE_LABEL) && membership->adding >> i & 1)
			array->members[i]->state = MEMBER_IN_SYNC;
	}
	array->label.bad = array->bad;
}

/* Invariant 2: what was being added and has not settled is added anew, by a later label. */
static void give_up_adding(struct membership *membership)
{
	struct array *array = membership->array;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		if (membership->adding >> i & 1 && array->wanted[i] == LABEL_IN_SYNC)
			array->wanted[i] = LABEL_REBUILDING;
	membership->adding = 0;
}

static bool names(enum label_state state)
{
	return state == LABEL_IN_SYNC || state == LABEL_REBUILDING;
}

static bool gets_label(const struct array *array, unsigned index)
{
	const struct member *member = array->members[index];

	return member && member->state != MEMBER_OUT && names(array->label.members[index].state);
}

static void write_next(struct membership *membership)
{
	struct array *array = membership->array;
	uint64_t id = 0;

	membership->again = false;
	membership->settled = false;
	give_up_adding(membership);
	while (!id)
		env_random(array->env, &id, sizeof(id));
	if (label_succeed(&array->label, id) < 0) {
		membership->error = -ENOSPC;
		tell_later(membership);
		return;
	}
	if (array->forced)
		array->label.forced_id = id;
	if (array->clean)
		array->label.flags |= LABEL_CLEAN;
	array->forced = false;
	fill_in(membership);
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		membership->writing += gets_label(array, i);
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		if (gets_label(array, i))
			member_write_label(array->members[i], &array->label, member_written);
}

void membership_change(struct array *array)
{
	struct membership *membership = array->membership;

	if (membership->error)
		return;
	membership->settled = false;
	if (membership->writing)
		membership->again = true;
	else
		write_next(membership);
}

/* --- failing --- */

static bool can_do_without(const struct array *array, const struct member *member)
{
	uint32_t held = array_held_roles(array);

	if (member->state == MEMBER_REBUILDING)
		return true;
	return assembly_can_run(array->label.level, array->label.roles,
				held & ~(1u << member->role));
}

bool membership_failed(struct array *array, struct member *member, int error, const char *what)
{
	char text[8];

	if (member->state != MEMBER_OUT && can_do_without(array, member)) {
		snprintf(member->cause, sizeof(member->cause), "%s: %s", what, strerror(-error));
		event_emit(EVENT_MEMBER_FAILED, array->label.name,
			   array_member_text(member->index, text), member->name, member->cause);
	}
	return membership_leaves(array, member);
}

bool membership_leaves(struct array *array, struct member *member)
{
	bool named;

	if (member->state == MEMBER_OUT)
		return true;
	if (!can_do_without(array, member))
		return false;
	member->state = MEMBER_OUT;
	member_left(member);
	named = names(array->wanted[member->index]);
	if (named)
		array->wanted[member->index] = LABEL_FAILED;
	array_members_changed(array);
	if (named)
		membership_change(array);
	return true;
}

/* --- life --- */

struct membership *membership_new(struct array *array)
{
	struct membership *membership = calloc(1, sizeof(*membership));

	if (!membership)
		return NULL;
	membership->array = array;
	membership->settled = true;
	membership->defer.fn = tell_waits;
	STAILQ_INIT(&membership->waits);
	return membership;
}

void membership_free(struct membership *membership)
{
	assert(STAILQ_EMPTY(&membership->waits) && !membership->writing);
	env_defer_cancel(membership->array->env, &membership->defer);
	free(membership);
}
