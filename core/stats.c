/* SPDX-License-Identifier: MIT */
/*
 * Counter tables and sliding rates.
 *
 * Invariants:
 * 1. rate_add() in the current bucket is one comparison and one addition.
 * 2. Buckets skipped by time are zero before they count.
 *
 * Not here: distributions (core/hist.c).
 */
#include "core/stats.h"

#include <string.h>

static uint64_t field_get(const struct stats_field *field, const void *stats)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)stats + field->offset, sizeof(value));
	return value;
}

uint64_t stats_get(const struct stats_field *fields, const void *stats, const char *name)
{
	for (; fields->name; fields++)
		if (!strcmp(fields->name, name))
			return field_get(fields, stats);
	assert(!"no such counter");
	return 0;
}

void stats_add(const struct stats_field *fields, void *into, const void *from)
{
	for (; fields->name; fields++) {
		uint64_t sum = field_get(fields, into) + field_get(fields, from);

		memcpy((uint8_t *)into + fields->offset, &sum, sizeof(sum));
	}
}

void stats_json(const struct stats_field *fields, const void *stats, json_t *object)
{
	for (; fields->name; fields++)
		json_object_set_new(object, fields->name,
				    json_integer((json_int_t)field_get(fields, stats)));
}

static void rate_move(struct rate *rate, uint64_t now_ns)
{
	uint64_t steps;

	if (rate->end_ns == 0) {
		rate->first_ns = now_ns;
		rate->end_ns = now_ns + RATE_BUCKET_NS;
	}
	if (now_ns < rate->end_ns)
		return;
	steps = (now_ns - rate->end_ns) / RATE_BUCKET_NS + 1;
	rate->end_ns += steps * RATE_BUCKET_NS;
	for (steps = min_u64(steps, RATE_BUCKETS); steps > 0; steps--) {
		rate->current = (rate->current + 1) % RATE_BUCKETS;
		rate->buckets[rate->current] = 0;
	}
}

void rate_add(struct rate *rate, uint64_t now_ns, uint64_t amount)
{
	if (now_ns >= rate->end_ns)
		rate_move(rate, now_ns);
	rate->buckets[rate->current] += amount;
}

double rate_per_second(struct rate *rate, uint64_t now_ns)
{
	uint64_t sum = 0, age_ns;

	rate_move(rate, now_ns);
	for (unsigned i = 0; i < RATE_BUCKETS; i++)
		sum += rate->buckets[i];
	age_ns = now_ns - (rate->end_ns - RATE_BUCKET_NS) + RATE_WINDOW_NS;
	age_ns = min_u64(age_ns, now_ns - rate->first_ns);
	/* The first moments would say anything. */
	age_ns = max_u64(age_ns, RATE_BUCKET_NS);
	return (double)sum * (double)NS_PER_S / (double)age_ns;
}
