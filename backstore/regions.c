/* SPDX-License-Identifier: MIT */
/*
 * Dirty regions.
 *
 *          enter                 stored
 *  clean ─────────▶ announced ──────────▶ dirty ◀──┐ enter, leave
 *    ▲              (holds wait)            │      │
 *    │   stored                    flushed  │ ─────┘
 *    └──────────── withdrawn ◀──────────────┘ idle, nobody missing, not doubtful
 *                      │ enter: announced again
 *
 * Invariants:
 *  1. (I10) A hold is granted only while the bits of all its regions are durable: stored, with no
 *     later store on its way that lacks them. Lazy and whole, bits are for later.
 *  2. (I10) A bit is withdrawn only after a flush that began when no write to the region was in
 *     flight, if none began since, nobody is missing and the region is not doubtful.
 *  3. A doubtful region stays dirty until regions_made_equal().
 *  4. At most dirty_max regions are dirty unless doubt makes them so: who would make it more
 *     waits, in the order of coming.
 *
 * Not here: bytes of a page (regions_page.c), where pages lie (raid/member.c), making copies
 * equal (raid/resync.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/regions_int.h"
#include "core/canary.h"

/* --- geometry --- */

uint64_t regions_region_bytes(uint64_t size_bytes)
{
	uint64_t bytes = MIB;

	while ((size_bytes + bytes - 1) / bytes > (uint64_t)REGIONS_PAGE_BITS * REGIONS_PAGES_MAX)
		bytes *= 2;
	return bytes;
}

static unsigned region_count(uint64_t size_bytes)
{
	uint64_t bytes = regions_region_bytes(size_bytes);

	return (unsigned)((size_bytes + bytes - 1) / bytes);
}

unsigned regions_pages(uint64_t size_bytes)
{
	return (region_count(size_bytes) + REGIONS_PAGE_BITS - 1) / REGIONS_PAGE_BITS;
}

/* --- bits --- */

static void count_uncovered(struct regions *regions, const struct region *region, int by)
{
	if (region->dirty && !region->durable)
		regions->uncovered += (unsigned)by;
}

void regions_set_durable(struct regions *regions, unsigned index, bool durable)
{
	struct region *region = &regions->all[index];

	count_uncovered(regions, region, -1);
	region->durable = durable;
	count_uncovered(regions, region, 1);
}

void regions_set_dirty(struct regions *regions, unsigned index, bool dirty)
{
	struct region *region = &regions->all[index];

	count_uncovered(regions, region, -1);
	regions->dirty += (unsigned)dirty - (unsigned)region->dirty;
	region->dirty = dirty;
	count_uncovered(regions, region, 1);
}

/* --- pages --- */

/* Bits that are wanted; from now on those that are not count as gone. */
static void page_snapshot(struct regions *regions, unsigned number)
{
	struct page *page = &regions->pages[number];
	unsigned first = number * REGIONS_PAGE_BITS;
	unsigned count = (unsigned)min_u64(regions->total - first, REGIONS_PAGE_BITS);

	memset(page->bytes, 0, sizeof(page->bytes));
	for (unsigned i = 0; i < count; i++) {
		if (regions->all[first + i].dirty)
			regions_page_set(page->bytes, i);
		else
			regions_set_durable(regions, first + i, false);
	}
	regions_page_seal(page->bytes, regions->conf.tag, number, ++page->sequence);
}

static void tell_idle(struct regions *regions)
{
	for (unsigned i = 0; i < regions->page_count; i++)
		if (regions->pages[i].storing)
			return;
	if (!regions->ending || regions->flushing || regions->clean.armed)
		return;
	regions->ending = false;
	regions->error = -ESHUTDOWN; /* nothing is stored from now on */
	regions->conf.ops->idle(regions->conf.arg);
}

static void page_store(struct regions *regions, unsigned number)
{
	struct page *page = &regions->pages[number];

	if (regions->error)
		return;
	if (page->storing) {
		page->again = true;
		return;
	}
	page->storing = true;
	page->again = false;
	page_snapshot(regions, number);
	regions->counts.stores++;
	regions->conf.ops->store(regions->conf.arg, number, page->sequence & 1, page->bytes);
}

/* --- a region changes --- */

/* Lazy: while nobody is missing and nothing is doubtful they are for later. */
static bool bits_matter(const struct regions *regions)
{
	return !regions->conf.lazy || !regions->whole || regions->doubtful;
}

/* From now on bits matter: those that are not durable must become so. */
void regions_store_uncovered(struct regions *regions)
{
	unsigned i = 0;

	while (bits_matter(regions) && i < regions->total) {
		if (regions->all[i].dirty && !regions->all[i].durable) {
			page_store(regions, i / REGIONS_PAGE_BITS);
			i = (i / REGIONS_PAGE_BITS + 1) * REGIONS_PAGE_BITS;
		} else {
			i++;
		}
	}
}

void regions_store_rest(struct regions *regions)
{
	for (unsigned i = 0; i < regions->page_count; i++)
		if (!regions->pages[i].storing || regions->pages[i].joined)
			page_store(regions, i);
}

/* Its bit is wanted; durable or on its way if bits matter. */
static void region_dirty(struct regions *regions, unsigned index)
{
	regions_set_dirty(regions, index, true);
	if (!regions->all[index].durable && bits_matter(regions))
		page_store(regions, index / REGIONS_PAGE_BITS);
}

void regions_mark_doubtful(struct regions *regions, unsigned index)
{
	struct region *region = &regions->all[index];

	region->doubts++;
	if (!region->doubtful) {
		region->doubtful = true;
		if (!regions->doubtful++ && regions->conf.lazy && regions->whole)
			regions_store_uncovered(regions);
	}
	region_dirty(regions, index);
}

static void region_clean(struct regions *regions, unsigned index)
{
	unsigned number = index / REGIONS_PAGE_BITS;

	regions_set_dirty(regions, index, false);
	if (regions->all[index].durable || regions->pages[number].storing ||
	    regions->pages[number].stale)
		page_store(regions, number);
}

/* --- holds --- */

static bool hold_covered(const struct regions *regions, const struct region_hold *hold)
{
	if (!bits_matter(regions) || canary(CANARY_DOUBT))
		return true;
	for (unsigned i = regions_first(regions, hold); i <= regions_last(regions, hold); i++)
		if (!regions->all[i].durable)
			return false;
	return true;
}

/* How many regions would become dirty. */
static unsigned hold_fresh(const struct regions *regions, const struct region_hold *hold)
{
	unsigned fresh = 0;

	for (unsigned i = regions_first(regions, hold); i <= regions_last(regions, hold); i++)
		fresh += !regions->all[i].dirty;
	return fresh;
}

/* The cap is for what can be cleaned: not for doubt, not while somebody is missing. */
static bool hold_fits(const struct regions *regions, const struct region_hold *hold)
{
	unsigned fresh = hold_fresh(regions, hold);

	return !fresh || regions->dirty + fresh <= regions->conf.dirty_max || !regions->whole ||
	       regions->dirty == regions->doubtful;
}

static void hold_reserve(struct regions *regions, struct region_hold *hold)
{
	for (unsigned i = regions_first(regions, hold); i <= regions_last(regions, hold); i++) {
		regions->all[i].holds++;
		regions->all[i].writes++;
		region_dirty(regions, i);
	}
}

static void grant_later(struct regions *regions, struct region_hold *hold)
{
	STAILQ_INSERT_TAIL(&regions->granted, hold, link);
	if (!regions->grant.queued)
		env_defer(regions->conf.env, &regions->grant);
}

static void grant_run(struct env_defer *defer)
{
	struct regions *regions = container_of(defer, struct regions, grant);
	STAILQ_HEAD(, region_hold) due = STAILQ_HEAD_INITIALIZER(due);
	struct region_hold *hold;

	STAILQ_CONCAT(&due, &regions->granted);
	while ((hold = STAILQ_FIRST(&due))) {
		STAILQ_REMOVE_HEAD(&due, link);
		hold->fn(hold, regions->error);
	}
}

void regions_clean_soon(struct regions *regions, uint64_t in_ns)
{
	uint64_t now_ns = env_now_ns(regions->conf.env);

	if (regions->clean.armed && regions->clean.due_ns <= now_ns + in_ns)
		return;
	env_timer_set(regions->conf.env, &regions->clean, in_ns);
}

/* HOLD has room: true if it may write now, else it is granted later. */
static bool hold_begin(struct regions *regions, struct region_hold *hold)
{
	hold_reserve(regions, hold);
	if (regions->error)
		grant_later(regions, hold);
	else if (hold_covered(regions, hold))
		return true;
	else
		STAILQ_INSERT_TAIL(&regions->waiting, hold, link);
	return false;
}

bool regions_enter(struct regions *regions, struct region_hold *hold)
{
	bool room = hold_fits(regions, hold) &&
		    (STAILQ_EMPTY(&regions->capped) || !hold_fresh(regions, hold));

	assert(hold->length && regions_last(regions, hold) < regions->total &&
	       regions_last(regions, hold) - regions_first(regions, hold) <
		       regions->conf.dirty_max);
	regions->held++;
	if (room && hold_begin(regions, hold))
		return true;
	regions->counts.waits++;
	if (!room) {
		STAILQ_INSERT_TAIL(&regions->capped, hold, link);
		regions_clean_soon(regions, 0);
	}
	return false;
}

void regions_leave(struct regions *regions, struct region_hold *hold, bool unequal)
{
	assert(regions->held);
	regions->held--;
	for (unsigned i = regions_first(regions, hold); i <= regions_last(regions, hold); i++) {
		struct region *region = &regions->all[i];

		assert(region->holds);
		region->holds--;
		region->unflushed = true;
		region->last_ns = env_now_ns(regions->conf.env);
		if (unequal)
			regions_mark_doubtful(regions, i);
	}
	regions_clean_soon(regions,
			   STAILQ_EMPTY(&regions->capped) ? regions->conf.clean_after_ns : 0);
}

static void admit_capped(struct regions *regions)
{
	struct region_hold *hold;

	while ((hold = STAILQ_FIRST(&regions->capped)) &&
	       (regions->error || hold_fits(regions, hold))) {
		STAILQ_REMOVE_HEAD(&regions->capped, link);
		if (hold_begin(regions, hold))
			grant_later(regions, hold);
	}
}

static bool synced(const struct regions *regions)
{
	return !bits_matter(regions) || !regions->uncovered;
}

bool regions_synced(const struct regions *regions)
{
	return !regions->error && synced(regions);
}

bool regions_sync(struct regions *regions, struct region_hold *hold)
{
	if (regions_synced(regions))
		return true;
	if (regions->error)
		grant_later(regions, hold);
	else
		STAILQ_INSERT_TAIL(&regions->syncing, hold, link);
	return false;
}

void regions_grant_covered(struct regions *regions)
{
	STAILQ_HEAD(, region_hold) before = STAILQ_HEAD_INITIALIZER(before);
	struct region_hold *hold;

	STAILQ_CONCAT(&before, &regions->waiting);
	while ((hold = STAILQ_FIRST(&before))) {
		STAILQ_REMOVE_HEAD(&before, link);
		if (regions->error || hold_covered(regions, hold))
			grant_later(regions, hold);
		else
			STAILQ_INSERT_TAIL(&regions->waiting, hold, link);
	}
	if (STAILQ_EMPTY(&regions->syncing) || !(regions->error || synced(regions)))
		return;
	while ((hold = STAILQ_FIRST(&regions->syncing))) {
		STAILQ_REMOVE_HEAD(&regions->syncing, link);
		grant_later(regions, hold);
	}
}

void regions_stored(struct regions *regions, unsigned number, int error)
{
	struct page *page = &regions->pages[number];
	unsigned first = number * REGIONS_PAGE_BITS;

	assert(page->storing);
	page->storing = false;
	if (error && !regions->error)
		regions->error = error;
	if (!error)
		page->stale = false;
	for (unsigned i = 0;
	     !error && !page->joined && i < REGIONS_PAGE_BITS && first + i < regions->total; i++)
		if (regions_page_has(page->bytes, i) && regions->all[first + i].dirty)
			regions_set_durable(regions, first + i, true);
	page->joined = false;
	if (page->again)
		page_store(regions, number);
	regions_grant_covered(regions);
	admit_capped(regions);
	tell_idle(regions);
}

/* --- cleaning --- */

static bool may_clean(const struct regions *regions, const struct region *region)
{
	return region->dirty && !region->holds && !region->doubtful && regions->whole;
}

/* Mark what a flush that begins now may clean; whether there is any. LATER: what is too young. */
static bool mark_candidates(struct regions *regions, bool *later)
{
	uint64_t now_ns = env_now_ns(regions->conf.env);
	bool pressed = !STAILQ_EMPTY(&regions->capped) || regions->ending;
	bool any = false;

	for (unsigned i = 0; regions->dirty && i < regions->total; i++) {
		struct region *region = &regions->all[i];
		bool idle = pressed || now_ns - region->last_ns >= regions->conf.clean_after_ns;

		region->candidate = may_clean(regions, region) && idle;
		region->at_flush = region->writes;
		any |= region->candidate;
		*later |= may_clean(regions, region) && !idle;
	}
	return any;
}

static void clean_begin(struct env_timer *timer)
{
	struct regions *regions = container_of(timer, struct regions, clean);
	bool later = false;

	if (!regions->flushing && !regions->error && mark_candidates(regions, &later)) {
		regions->flushing = true;
		regions->counts.flushes++;
		regions->conf.ops->flush(regions->conf.arg);
	} else if (later) {
		regions_clean_soon(regions, regions->conf.clean_after_ns);
	}
	tell_idle(regions);
}

void regions_flushed(struct regions *regions, int error)
{
	assert(regions->flushing);
	regions->flushing = false;
	for (unsigned i = 0; i < regions->total; i++) {
		struct region *region = &regions->all[i];

		if (!region->candidate)
			continue;
		region->candidate = false;
		if (error || !may_clean(regions, region) || region->writes != region->at_flush)
			continue;
		region->unflushed = false;
		region_clean(regions, i);
	}
	admit_capped(regions);
	if (regions->reflush)
		env_timer_set(regions->conf.env, &regions->clean, 0);
	regions->reflush = false;
	if (regions->dirty > regions->doubtful && regions->whole && !regions->ending)
		regions_clean_soon(regions, regions->conf.clean_after_ns);
	tell_idle(regions);
}

void regions_quiesce(struct regions *regions)
{
	assert(!regions->held);
	regions->ending = true;
	regions->reflush = regions->flushing;
	env_timer_set(regions->conf.env, &regions->clean, 0);
}

/* --- doubt --- */

void regions_set_whole(struct regions *regions, bool whole)
{
	if (regions->whole == whole)
		return;
	regions->whole = whole;
	regions_store_uncovered(regions);
	if (whole)
		regions_clean_soon(regions, regions->conf.clean_after_ns);
	regions_grant_covered(regions);
	admit_capped(regions);
}

void regions_counts(const struct regions *regions, struct regions_counts *counts)
{
	*counts = regions->counts;
	counts->total = regions->total;
	counts->dirty = regions->dirty;
	counts->doubtful = regions->doubtful;
}

/* --- life --- */

struct regions *regions_new(const struct regions_conf *conf)
{
	struct regions *regions = calloc(1, sizeof(*regions));

	assert(conf->dirty_max >= 16 && conf->size_bytes);
	if (!regions)
		return NULL;
	regions->conf = *conf;
	regions->region_shift = (unsigned)__builtin_ctzll(regions_region_bytes(conf->size_bytes));
	regions->total = region_count(conf->size_bytes);
	regions->page_count = regions_pages(conf->size_bytes);
	regions->whole = true;
	regions->all = calloc(regions->total, sizeof(*regions->all));
	regions->pages = calloc(regions->page_count, sizeof(*regions->pages));
	if (!regions->all || !regions->pages) {
		free(regions->all);
		free(regions->pages);
		free(regions);
		return NULL;
	}
	STAILQ_INIT(&regions->waiting);
	STAILQ_INIT(&regions->capped);
	STAILQ_INIT(&regions->granted);
	STAILQ_INIT(&regions->syncing);
	regions->grant.fn = grant_run;
	regions->clean.fn = clean_begin;
	return regions;
}

void regions_free(struct regions *regions)
{
	assert(!regions->held && !regions->flushing && STAILQ_EMPTY(&regions->syncing) &&
	       STAILQ_EMPTY(&regions->granted));
	for (unsigned i = 0; i < regions->page_count; i++)
		assert(!regions->pages[i].storing);
	env_timer_cancel(regions->conf.env, &regions->clean);
	env_defer_cancel(regions->conf.env, &regions->grant);
	free(regions->all);
	free(regions->pages);
	free(regions);
}
