/* SPDX-License-Identifier: MIT */
/*
 * Dirty regions: where copies may differ, durably known before they do (I10).
 *
 * A region is dirty from before the first write to it until all copies hold the same: nothing
 * in flight, a FLUSH of every device that began after the writes completed has succeeded, and
 * nobody is missing. A region is *doubtful* if copies that count may differ already: it was dirty
 * at the start, or when somebody came back. It is so until it was made equal (I11). Dirty regions
 * are capped, and so is what a crash costs.
 *
 * Pure bookkeeping: the owner stores pages where it wants them and flushes devices; it is told
 * what to store and says when that is durable. Shared by arrays (offsets in a member's data
 * area) and by the pair (offsets in a volume). Single-threaded.
 */
#ifndef BACKSTORE_REGIONS_H
#define BACKSTORE_REGIONS_H

#include "core/env.h"

#define REGIONS_PAGE 4096u       /* bytes on disk; yoke-disk(5) */
#define REGIONS_PAGE_BITS 32512u /* regions a page */
#define REGIONS_PAGES_MAX 8u

struct regions;

/* A write, embedded in its owner; held from regions_enter() to regions_leave(). */
struct region_hold {
	uint64_t offset, length; /* bytes, length > 0 */
	/*
	 * It may go on, deferred. ERROR: the bits cannot be made durable, nothing may be written;
	 * regions_leave() all the same. NULL in regions that are lazy and whole for ever.
	 */
	void (*fn)(struct region_hold *hold, int error);
	STAILQ_ENTRY(region_hold) link; /* the regions' */
};

struct regions_ops {
	/*
	 * Make PAGE durable on every device, in its copy COPY (0 or 1, by turns), then
	 * regions_stored(), not inline. One at a time a page; BYTES stay until then.
	 */
	void (*store)(void *arg, unsigned page, unsigned copy, const void *bytes);
	/* FLUSH every device, then regions_flushed(), not inline. One at a time. */
	void (*flush)(void *arg);
	/* After regions_quiesce(): nothing is being stored or flushed, nor will be. */
	void (*idle)(void *arg);
};

struct regions_conf {
	struct env *env;
	uint64_t size_bytes;
	uint64_t tag;            /* of whoever owns the pages: others' count as unreadable */
	uint64_t sequence_floor; /* above all sequences of lives before, where those are not known */
	unsigned dirty_max;      /* cap on dirty regions, at least 16 */
	uint64_t clean_after_ns; /* a region without writes for so long is cleaned */
	/*
	 * While nobody is missing and nothing is doubtful, bits need not be durable: something
	 * else (a log) makes copies equal after a crash. They become so when somebody is.
	 */
	bool lazy;
	const struct regions_ops *ops;
	void *arg;
};

/* NULL: no memory. Nothing is dirty, everybody is there. */
struct regions *regions_new(const struct regions_conf *conf);
/* Asserts that nobody holds or waits, nothing is being stored or flushed. */
void regions_free(struct regions *regions);

/* Geometry, which follows from the size alone: bytes a region, a power of two of at least 1 MiB. */
uint64_t regions_region_bytes(uint64_t size_bytes);
unsigned regions_pages(uint64_t size_bytes);

/* A page with nothing dirty, for a new device. */
void regions_page_empty(uint64_t tag, unsigned page, void *bytes);

/*
 * At start: the two copies of PAGE on one device; NULL: not readable. The union over devices
 * counts. regions_loaded() after the last: a page that no device had for certain is all ones, and
 * everything set is doubtful.
 */
void regions_load(struct regions *regions, unsigned page, const void *one, const void *two);
/*
 * Before that: a log was replayed there. If somebody is missing, he lacks it: it is dirty, and
 * regions_sync() says when it is durably so.
 */
void regions_replayed(struct regions *regions, uint64_t offset, uint64_t length);
void regions_loaded(struct regions *regions);

/* True: may write now, fn is not called. The hold may span up to dirty_max regions. */
bool regions_enter(struct regions *regions, struct region_hold *hold);
/* The write is over; UNEQUAL: copies that count may differ after it. */
void regions_leave(struct regions *regions, struct region_hold *hold, bool unequal);
/*
 * True: every bit that must be durable is. Else fn is called once those are that must be now;
 * offset and length do not matter, and it is not left. For an acknowledgement of what missed
 * somebody.
 */
bool regions_sync(struct regions *regions, struct region_hold *hold);

/* Whether regions_sync() would say true; nobody is made to wait. */
bool regions_synced(const struct regions *regions);

void regions_stored(struct regions *regions, unsigned page, int error);
void regions_flushed(struct regions *regions, int error);

/* Nobody writes any more: clean what can be, then ops->idle, not inline. */
void regions_quiesce(struct regions *regions);

/* Whether nobody is missing. While somebody is, nothing is cleaned, and nothing lazy. */
void regions_set_whole(struct regions *regions, bool whole);
/* A device's FLUSH failed: what was written since the last good one may differ on it. */
void regions_doubt_unflushed(struct regions *regions);
/* A device that missed what was written since it left joins: that is, all that is dirty. */
void regions_doubt_dirty(struct regions *regions);
/* A device that will join may lack what is there, or be ahead. */
void regions_doubt(struct regions *regions, uint64_t offset, uint64_t length);
/* A device of unknown content joins. */
void regions_doubt_all(struct regions *regions);

bool regions_doubtful(const struct regions *regions, uint64_t offset, uint64_t length);
/* The first doubtful region that ends after OFFSET; false: none. */
bool regions_next_doubtful(const struct regions *regions, uint64_t offset, uint64_t *region_offset,
			   uint64_t *region_length);
/* How often the region at OFFSET was doubted: read before it is made equal. */
uint64_t regions_doubts(const struct regions *regions, uint64_t offset);
/* It was made equal on all copies, held there; unless it was doubted again since, it is so. */
void regions_made_equal(struct regions *regions, uint64_t offset, uint64_t doubts);

struct regions_counts {
	unsigned total, dirty, doubtful;
	uint64_t stores, flushes, waits;
};
void regions_counts(const struct regions *regions, struct regions_counts *counts);

#endif
