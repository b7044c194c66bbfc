/* SPDX-License-Identifier: MIT */
/*
 * Range lock: who may be in flight over which bytes.
 *
 * Shared holders overlap each other, exclusive ones overlap nobody. Grants are
 * in the order of the asking wherever ranges overlap: nobody starves. The
 * callback runs deferred, never from inside the call. Keeps I11 at the top of
 * every LUN.
 */
#ifndef BACKSTORE_RANGELOCK_H
#define BACKSTORE_RANGELOCK_H

#include "core/env.h"

struct rangelock;

/*
 * Embedded in its owner, untouched by it from take to release or withdraw. The
 * owner sets offset, length, exclusive and fn; the rest is the lock's.
 */
struct rangelock_hold {
	uint64_t offset;
	uint64_t length; /* bytes, > 0 */
	bool exclusive;
	void (*fn)(struct rangelock_hold *hold); /* NULL if the owner never waits */

	bool granted;
	bool ready;        /* granted, its fn not yet called */
	unsigned blockers; /* earlier overlapping holds that must go first */
	uint64_t seq;      /* order of the asking */
	uint64_t max_end;  /* greatest end in the subtree */
	RB_ENTRY(rangelock_hold) node;
	TAILQ_ENTRY(rangelock_hold) link;
};

struct rangelock *rangelock_new(struct env *env);
/* Asserts that nobody holds or waits. */
void rangelock_free(struct rangelock *lock);

/*
 * True: granted at once, fn will not be called. False: fn is called, later in a
 * turn, when every earlier hold in its way has gone.
 */
bool rangelock_take(struct rangelock *lock, struct rangelock_hold *hold);
/* Give back what was granted: rangelock_take() said true, or fn was called. */
void rangelock_release(struct rangelock *lock, struct rangelock_hold *hold);
/* Withdraw a hold whose fn was not called yet; it never will be. */
void rangelock_withdraw(struct rangelock *lock, struct rangelock_hold *hold);

/* Holds granted and waiting together. */
unsigned rangelock_count(const struct rangelock *lock);

#endif
