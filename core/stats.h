/* SPDX-License-Identifier: MIT */
/*
 * Counters as plain uint64_t fields with names beside them, and rates over the last seconds.
 *
 * A layer counts with `stats->reads++`; who shows or sums them goes through the table.
 */
#ifndef CORE_STATS_H
#define CORE_STATS_H

#include <jansson.h>

#include "core/base.h"

struct stats_field {
	const char *name; /* as shown; NULL ends the table */
	size_t offset;
};

#define STATS_FIELD(type, member)                                                                  \
	{                                                                                          \
		.name = #member, .offset = offsetof(type, member)                                  \
	}
#define STATS_END                                                                                  \
	{                                                                                          \
		.name = NULL                                                                       \
	}

uint64_t stats_get(const struct stats_field *fields, const void *stats, const char *name);
/* INTO += FROM, field by field: shards, sessions that ended. */
void stats_add(const struct stats_field *fields, void *into, const void *from);
/* {name: value, ...} into OBJECT. */
void stats_json(const struct stats_field *fields, const void *stats, json_t *object);

#define RATE_BUCKETS 11
#define RATE_BUCKET_NS (500 * NS_PER_MS)
#define RATE_WINDOW_NS ((RATE_BUCKETS - 1) * RATE_BUCKET_NS)

/*
 * How much a second, over the last RATE_WINDOW_NS to one bucket more; younger ones over
 * their age. Zeroed, it begins with its first use. Times rise.
 */
struct rate {
	uint64_t first_ns; /* when it began */
	uint64_t end_ns;   /* of the current bucket; 0: not begun */
	unsigned current;
	uint64_t buckets[RATE_BUCKETS];
};

void rate_add(struct rate *rate, uint64_t now_ns, uint64_t amount);
double rate_per_second(struct rate *rate, uint64_t now_ns);

#endif
