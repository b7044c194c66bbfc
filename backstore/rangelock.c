/* SPDX-License-Identifier: MIT */
/*
 * The range lock: an interval tree of everyone who holds or waits.
 *
 * Invariants:
 *  1. A hold is granted exactly when its `blockers` is 0: it counts the holds
 *     in the tree that asked earlier, overlap it and conflict with it (two
 *     overlapping holds conflict unless both are shared), granted or not.
 *  2. Hence granted holds never conflict, and who waits waits only for those
 *     that asked before it: no deadlock, nobody is overtaken, nobody starves.
 *  3. `max_end` of a node is the greatest end in its subtree, so a search costs
 *     O(log n + overlaps).
 *  4. A hold is in `ready` exactly between its grant and the call of its fn.
 *
 * Not here: who must take it, and in which order several ranges are taken.
 */
#include <stdlib.h>

#include "backstore/rangelock.h"

RB_HEAD(hold_tree, rangelock_hold);

struct rangelock {
	struct env *env;
	struct hold_tree holds;
	TAILQ_HEAD(, rangelock_hold) ready;
	struct env_defer defer; /* calls the ready ones */
	bool deferred;
	bool dying; /* freed as soon as the deferred call has come back */
	uint64_t seq;
	unsigned count;
};

static uint64_t hold_end(const struct rangelock_hold *hold)
{
	return hold->offset + hold->length;
}

static void hold_augment(struct rangelock_hold *hold)
{
	const struct rangelock_hold *left = RB_LEFT(hold, node);
	const struct rangelock_hold *right = RB_RIGHT(hold, node);
	uint64_t end = hold_end(hold);

	if (left && left->max_end > end)
		end = left->max_end;
	if (right && right->max_end > end)
		end = right->max_end;
	hold->max_end = end;
}

/* tree.h augments where it rotates and relinks, but not all the way up. */
static void hold_augment_up(struct rangelock_hold *hold)
{
	for (; hold; hold = RB_PARENT(hold, node))
		hold_augment(hold);
}

static int hold_cmp(const struct rangelock_hold *a, const struct rangelock_hold *b)
{
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

#undef RB_AUGMENT
#define RB_AUGMENT(x) hold_augment(x)
/* RB_GENERATE_STATIC wants an __unused that libbsd does not define. */
RB_GENERATE_INTERNAL(hold_tree, rangelock_hold, node, hold_cmp, static __attribute__((unused)))

typedef void visit_fn(struct rangelock *lock, struct rangelock_hold *by,
		      struct rangelock_hold *other);

/* FN for each hold that overlaps BY, below NODE, by ascending offset. */
static void visit_overlaps(struct rangelock *lock, struct rangelock_hold *node,
			   struct rangelock_hold *by, visit_fn *fn)
{
	while (node && node->max_end > by->offset) {
		visit_overlaps(lock, RB_LEFT(node, node), by, fn);
		if (node->offset >= hold_end(by))
			return;
		if (hold_end(node) > by->offset)
			fn(lock, by, node);
		node = RB_RIGHT(node, node);
	}
}

static bool conflict(const struct rangelock_hold *a, const struct rangelock_hold *b)
{
	return a->exclusive || b->exclusive;
}

static void count_blocker(struct rangelock *lock, struct rangelock_hold *by,
			  struct rangelock_hold *other)
{
	(void)lock;
	if (conflict(by, other))
		by->blockers++;
}

static void call_ready(struct env_defer *defer)
{
	struct rangelock *lock = container_of(defer, struct rangelock, defer);
	struct rangelock_hold *hold;

	while ((hold = TAILQ_FIRST(&lock->ready)) != NULL) {
		TAILQ_REMOVE(&lock->ready, hold, link);
		hold->ready = false;
		hold->fn(hold);
	}
	lock->deferred = false;
	if (lock->dying)
		free(lock);
}

static void unblock(struct rangelock *lock, struct rangelock_hold *gone,
		    struct rangelock_hold *other)
{
	if (other->seq < gone->seq || !conflict(gone, other))
		return;
	assert(other->blockers > 0 && !other->granted);
	if (--other->blockers > 0)
		return;
	other->granted = true;
	other->ready = true;
	TAILQ_INSERT_TAIL(&lock->ready, other, link);
	if (!lock->deferred) {
		lock->deferred = true;
		env_defer(lock->env, &lock->defer);
	}
}

static void hold_remove(struct rangelock *lock, struct rangelock_hold *hold)
{
	struct rangelock_hold *parent = RB_PARENT(hold, node);

	RB_REMOVE(hold_tree, &lock->holds, hold);
	hold_augment_up(parent);
	lock->count--;
	hold->granted = false;
	visit_overlaps(lock, RB_ROOT(&lock->holds), hold, unblock);
}

struct rangelock *rangelock_new(struct env *env)
{
	struct rangelock *lock = calloc(1, sizeof(*lock));

	if (!lock)
		return NULL;
	lock->env = env;
	RB_INIT(&lock->holds);
	TAILQ_INIT(&lock->ready);
	lock->defer.fn = call_ready;
	return lock;
}

void rangelock_free(struct rangelock *lock)
{
	if (!lock)
		return;
	assert(RB_EMPTY(&lock->holds) && !lock->dying);
	if (lock->deferred)
		lock->dying = true;
	else
		free(lock);
}

bool rangelock_take(struct rangelock *lock, struct rangelock_hold *hold)
{
	assert(hold->length > 0 && hold->length <= UINT64_MAX - hold->offset);
	hold->seq = ++lock->seq;
	hold->blockers = 0;
	hold->ready = false;
	visit_overlaps(lock, RB_ROOT(&lock->holds), hold, count_blocker);
	RB_INSERT(hold_tree, &lock->holds, hold);
	hold_augment_up(hold);
	lock->count++;
	hold->granted = hold->blockers == 0;
	assert(hold->granted || hold->fn);
	return hold->granted;
}

void rangelock_release(struct rangelock *lock, struct rangelock_hold *hold)
{
	assert(hold->granted && !hold->ready);
	hold_remove(lock, hold);
}

void rangelock_withdraw(struct rangelock *lock, struct rangelock_hold *hold)
{
	assert(!hold->granted || hold->ready);
	if (hold->ready) {
		TAILQ_REMOVE(&lock->ready, hold, link);
		hold->ready = false;
	}
	hold_remove(lock, hold);
}

unsigned rangelock_count(const struct rangelock *lock)
{
	return lock->count;
}
