/* SPDX-License-Identifier: MIT */
/*
 * A story is made short.
 *
 * Invariants:
 *  1. The story kept breaks the promise that the long one broke, if elsewhere.
 *
 * Not here: telling it (sim.c).
 */
#include "tests/sim/shrink.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct shrinking {
	struct runner *runner;
	struct scenario_how how;
	uint8_t *without, *tried;
	unsigned *kept; /* numbers of the steps that are told */
	unsigned count;
	time_t end;
	const char *violation;
};

bool shrink_alike(const char *a, const char *b)
{
	static const char digits[] = "-0123456789 ";

	do {
		a += strspn(a, digits);
		b += strspn(b, digits);
	} while (*a && *a++ == *b++);
	return !*a && !*b;
}

static bool in_time(const struct shrinking *shrinking)
{
	return time(NULL) < shrinking->end;
}

static void count_kept(struct shrinking *shrinking)
{
	shrinking->count = 0;
	for (unsigned i = 0; i < shrinking->how.steps; i++)
		if (!shrinking->without[i])
			shrinking->kept[shrinking->count++] = i;
}

/* Without COUNT of the kept steps from FIRST on: true if it still breaks; then it stays so. */
static bool leave_out(struct shrinking *shrinking, unsigned first, unsigned count)
{
	struct scenario_how how = shrinking->how;
	const struct scenario_result *result;

	memcpy(shrinking->tried, shrinking->without, how.steps);
	for (unsigned i = first; i < first + count; i++)
		shrinking->tried[shrinking->kept[i]] = 1;
	how.without = shrinking->tried;
	result = runner_run(shrinking->runner, &how);
	if (!shrink_alike(result->violation, shrinking->violation))
		return false;
	memcpy(shrinking->without, shrinking->tried, how.steps);
	/* What comes after the end does not matter; 0 would mean something else. */
	if (result->steps)
		shrinking->how.steps = result->steps;
	count_kept(shrinking);
	return true;
}

static void go(struct shrinking *shrinking)
{
	unsigned part = (shrinking->count + 1) / 2;

	while (part && in_time(shrinking)) {
		bool any = false;

		for (unsigned first = 0; first < shrinking->count && in_time(shrinking);) {
			unsigned count = (unsigned)min_u64(part, shrinking->count - first);

			if (leave_out(shrinking, first, count))
				any = true;
			else
				first += count;
		}
		if (part > 1)
			part = (part + 1) / 2;
		else if (!any)
			part = 0;
	}
}

struct shrunk shrink(struct runner *runner, const struct scenario_how *how,
		     const struct scenario_result *result, unsigned seconds)
{
	struct shrinking shrinking = {
		.runner = runner,
		.how = *how,
		.without = calloc(result->steps, 1),
		.tried = calloc(result->steps, 1),
		.kept = calloc(result->steps, sizeof(*shrinking.kept)),
		.end = time(NULL) + seconds,
		.violation = result->violation,
	};
	struct shrunk shrunk = { .steps = result->steps };

	assert(shrinking.without && shrinking.tried && shrinking.kept);
	shrinking.how.steps = result->steps;
	count_kept(&shrinking);
	go(&shrinking);
	shrunk.how = shrinking.how;
	shrunk.how.without = shrinking.without;
	shrunk.left = shrinking.count;
	free(shrinking.tried);
	free(shrinking.kept);
	return shrunk;
}
