/* SPDX-License-Identifier: MIT */
/* Dirty regions: what regions.c, regions_doubt.c and regions_page.c share. */
#ifndef BACKSTORE_REGIONS_INT_H
#define BACKSTORE_REGIONS_INT_H

#include "backstore/regions.h"

#define REGIONS_PAGE_HEAD 32u

/* BYTES hold bits and zeroes: make a page of them. */
void regions_page_seal(void *bytes, uint64_t tag, unsigned number, uint64_t sequence);
/* The sound one of two copies with the higher sequence, or NULL; either may be NULL. */
const void *regions_page_newest(uint64_t tag, unsigned number, const void *one, const void *two,
				uint64_t *sequence);

static inline bool regions_page_has(const void *bytes, unsigned bit)
{
	return ((const uint8_t *)bytes)[REGIONS_PAGE_HEAD + bit / 8] >> bit % 8 & 1;
}

static inline void regions_page_set(void *bytes, unsigned bit)
{
	((uint8_t *)bytes)[REGIONS_PAGE_HEAD + bit / 8] |= (uint8_t)(1u << bit % 8);
}

struct region {
	uint64_t writes;  /* that ever began */
	uint64_t last_ns; /* when the last one ended */
	uint64_t doubts;
	uint64_t at_flush; /* `writes` when the flush in flight began, if it was idle then */
	unsigned holds;
	bool dirty;   /* its bit is wanted */
	bool durable; /* its bit is on the devices, and no store on its way lacks it */
	bool doubtful;
	bool unflushed; /* written since the last good flush */
	bool candidate; /* to be withdrawn by the flush in flight */
	bool replayed;  /* by a log, at the start */
};

struct page {
	uint64_t sequence;
	bool storing, again;         /* AGAIN: what is on its way is out of date */
	bool joined;                 /* a device joined that does not get what is on its way */
	bool loaded;                 /* by a device that knows its newest copy */
	bool hidden;                 /* a copy could not be read: its sequence is not known */
	bool stale;                  /* a device may have bits that were not stored in this life */
	uint8_t bytes[REGIONS_PAGE]; /* on its way */
};

struct regions {
	struct regions_conf conf;
	unsigned region_shift;
	unsigned total, page_count;
	unsigned dirty, doubtful;
	unsigned uncovered; /* dirty, and not durably so */
	bool whole;
	bool flushing;
	bool ending;  /* regions_quiesce() */
	bool reflush; /* the flush in flight began before that */
	int error;    /* pages cannot be stored any more */
	struct region *all;
	struct page *pages;
	STAILQ_HEAD(, region_hold) waiting; /* reserved, their bits on the way */
	STAILQ_HEAD(, region_hold) capped;  /* for room below the cap */
	STAILQ_HEAD(, region_hold) granted; /* their fn is due */
	STAILQ_HEAD(, region_hold) syncing; /* regions_sync() */
	struct env_defer grant;
	struct env_timer clean;
	unsigned held; /* holds entered and not left */
	struct regions_counts counts;
};

/* regions.c */
void regions_set_durable(struct regions *regions, unsigned index, bool durable);
void regions_set_dirty(struct regions *regions, unsigned index, bool dirty);
void regions_mark_doubtful(struct regions *regions, unsigned index);
void regions_grant_covered(struct regions *regions);
/* Those that matter and are not durable must become so. */
void regions_store_uncovered(struct regions *regions);
/* Pages that are not on their way to all devices. */
void regions_store_rest(struct regions *regions);
void regions_clean_soon(struct regions *regions, uint64_t in_ns);

/* Of the regions of a range, the first and the last. */
static inline unsigned regions_first(const struct regions *regions, const struct region_hold *hold)
{
	return (unsigned)(hold->offset >> regions->region_shift);
}

static inline unsigned regions_last(const struct regions *regions, const struct region_hold *hold)
{
	return (unsigned)((hold->offset + hold->length - 1) >> regions->region_shift);
}

#endif
