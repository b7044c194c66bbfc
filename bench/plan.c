/* SPDX-License-Identifier: MIT */
/* What follows from a plan alone. Not here: making one (options.c, profile.c, matrix.c). */
#include "bench/plan.h"

unsigned bench_point_depth(const struct bench_setup *setup, const struct bench_point *point)
{
	unsigned depth = 0;

	for (unsigned i = 0; i < point->stream_count; i++) {
		const struct bench_stream *s = &point->streams[i];
		unsigned sessions = s->sessions ? s->sessions : point->sessions;
		unsigned workers = s->workers ? s->workers : sessions * setup->portal_count;

		depth += workers * s->depth;
	}
	return depth;
}

bool bench_point_writes(const struct bench_point *point)
{
	for (unsigned i = 0; i < point->stream_count; i++)
		if (point->streams[i].read_percent < 100)
			return true;
	return false;
}

const char *bench_pattern_name(enum bench_pattern pattern)
{
	static const char *const names[] = { "random", "sequential", "zipf" };

	assert((unsigned)pattern < ARRAY_LEN(names));
	return names[pattern];
}

const char *bench_data_name(enum bench_data data)
{
	static const char *const names[] = { "random", "repeat", "zero" };

	assert((unsigned)data < ARRAY_LEN(names));
	return names[data];
}
