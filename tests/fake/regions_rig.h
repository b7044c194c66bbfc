/* SPDX-License-Identifier: MIT */
/* For tests of dirty regions: a device with the two copies of one page, stored and flushed by hand. */
#ifndef TESTS_FAKE_REGIONS_RIG_H
#define TESTS_FAKE_REGIONS_RIG_H

#include <check.h>
#include <string.h>

#include "backstore/regions_int.h"
#include "tests/fake/fake_env.h"

#define TAG 77
#define CAP 16
#define AGE (5 * NS_PER_S)

static struct env *env;
static struct regions *regions;

/* The device: what it holds, what is on its way. */
static uint8_t stable[2][REGIONS_PAGE];
static const uint8_t *storing; /* NULL: nothing */
static unsigned copy;
static bool flushing;
static unsigned stores, flushes;
static uint64_t floor_sequence;

struct write {
	struct region_hold hold;
	bool granted;
	int error;
};

static inline void granted(struct region_hold *hold, int error)
{
	struct write *write = container_of(hold, struct write, hold);

	ck_assert(!write->granted);
	write->granted = true;
	write->error = error;
}

static inline void store(void *arg, unsigned page, unsigned which, const void *bytes)
{
	(void)arg;
	ck_assert_uint_eq(page, 0);
	ck_assert(!storing);
	storing = bytes;
	copy = which;
	stores++;
}

static inline void flush(void *arg)
{
	(void)arg;
	ck_assert(!flushing);
	flushing = true;
	flushes++;
}

static bool quiet;

static inline void idle(void *arg)
{
	(void)arg;
	ck_assert(!quiet);
	quiet = true;
}

static const struct regions_ops ops = { .store = store, .flush = flush, .idle = idle };

static inline void stored(int error)
{
	ck_assert_ptr_nonnull(storing);
	if (!error)
		memcpy(stable[copy], storing, REGIONS_PAGE);
	storing = NULL;
	regions_stored(regions, 0, error);
	fake_env_run(env);
}

static inline void flushed(int error)
{
	ck_assert(flushing);
	flushing = false;
	regions_flushed(regions, error);
	fake_env_run(env);
}

static inline void start(uint64_t size_bytes, bool lazy)
{
	const struct regions_conf conf = {
		.env = env,
		.size_bytes = size_bytes,
		.tag = TAG,
		.sequence_floor = floor_sequence,
		.dirty_max = CAP,
		.clean_after_ns = AGE,
		.lazy = lazy,
		.ops = &ops,
	};

	regions = regions_new(&conf);
	ck_assert_ptr_nonnull(regions);
}

static inline void rig_setup(void)
{
	env = fake_env_new(1);
	floor_sequence = 0;
	regions_page_empty(TAG, 0, stable[0]);
	memset(stable[1], 0xff, REGIONS_PAGE);
	start(40 * MIB, false);
}

static inline void rig_teardown(void)
{
	regions_free(regions);
	fake_env_free(env);
}

static inline bool enter(struct write *write, unsigned region, unsigned count)
{
	*write = (struct write){ .hold = { .offset = region * MIB + 512,
					   .length = (count - 1) * MIB + 512,
					   .fn = granted } };
	write->granted = regions_enter(regions, &write->hold);
	return write->granted;
}

static inline void leave(struct write *write)
{
	regions_leave(regions, &write->hold, false);
}

/* What a start would find. */
static inline bool on_disk(unsigned region)
{
	uint64_t sequence;
	const void *page = regions_page_newest(TAG, 0, stable[0], stable[1], &sequence);

	return !page || regions_page_has(page, region);
}

static inline struct regions_counts counts(void)
{
	struct regions_counts now;

	regions_counts(regions, &now);
	return now;
}

#endif
