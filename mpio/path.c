/* SPDX-License-Identifier: MIT */
/*
 * Which path takes the next command.
 *
 * Invariants:
 *  1. A path that is down is never chosen, nor one of a worse rank while a better one is up
 *     (FAILOVER: and has been so for failback_ns, while another one still works).
 *  2. Equal paths take turns: each choice looks for the next one after the last.
 *  3. in_flight is what was chosen and is not done, also over a path's going down.
 *
 * Not here: who finds out that a path is down, and what becomes of its commands (its owner).
 */
#include "mpio/path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define NONE UINT_MAX

static const char *const policies[] = { "round-robin", "least-in-flight", "failover" };

void path_group_init(struct path_group *group, enum path_policy policy, struct path *paths,
		     unsigned count)
{
	*group = (struct path_group){
		.policy = policy, .paths = paths, .count = count, .current = NONE
	};
}

/* Of the paths that are up: the best rank; NONE without any. */
static unsigned best_rank(const struct path_group *group)
{
	unsigned best = NONE;

	for (unsigned i = 0; i < group->count; i++)
		if (group->paths[i].up && group->paths[i].rank < best)
			best = group->paths[i].rank;
	return best;
}

/* The next one after the last, of RANK and up; with FEWEST, of those with the fewest open. */
static unsigned next_in_turn(const struct path_group *group, unsigned rank, bool fewest)
{
	unsigned found = NONE;
	unsigned i = group->current;

	for (unsigned n = 0; n < group->count; n++) {
		i = i + 1 < group->count && i != NONE ? i + 1 : 0;
		if (!group->paths[i].up || group->paths[i].rank != rank)
			continue;
		if (!fewest)
			return i;
		if (found == NONE || group->paths[i].in_flight < group->paths[found].in_flight)
			found = i;
	}
	return found;
}

/* Of two paths of a FAILOVER group: the one to prefer is A. */
static bool before(const struct path_group *group, unsigned a, unsigned b)
{
	const struct path *pa = &group->paths[a], *pb = &group->paths[b];

	return pa->rank != pb->rank ? pa->rank < pb->rank : a < b;
}

/* The most preferred that is up; while the current one works, only what has proved itself. */
static unsigned failover(const struct path_group *group, uint64_t now_ns)
{
	bool works = group->current != NONE && group->paths[group->current].up;
	unsigned found = works ? group->current : NONE;

	for (unsigned i = 0; i < group->count; i++) {
		const struct path *path = &group->paths[i];

		if (!path->up || (works && now_ns - path->up_at_ns < group->failback_ns))
			continue;
		if (found == NONE || before(group, i, found))
			found = i;
	}
	return found;
}

int path_choose(struct path_group *group, uint64_t now_ns)
{
	unsigned rank = best_rank(group);
	unsigned found = NONE;

	if (rank == NONE)
		return -1;
	switch (group->policy) {
	case PATH_ROUND_ROBIN:
	case PATH_LEAST_IN_FLIGHT:
		found = next_in_turn(group, rank, group->policy == PATH_LEAST_IN_FLIGHT);
		break;
	case PATH_FAILOVER:
		found = failover(group, now_ns);
		break;
	}
	assert(found < group->count);
	group->current = found;
	group->paths[found].sent++;
	group->paths[found].in_flight++;
	return (int)found;
}

void path_done(struct path *path)
{
	assert(path->in_flight > 0);
	path->in_flight--;
}

void path_set_up(struct path *path, bool up, uint64_t now_ns)
{
	if (up && !path->up)
		path->up_at_ns = now_ns;
	path->up = up;
}

int path_policy_parse(const char *text, enum path_policy *policy)
{
	for (unsigned i = 0; i < ARRAY_LEN(policies); i++) {
		if (strcmp(text, policies[i]) == 0) {
			*policy = (enum path_policy)i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *path_policy_name(enum path_policy policy)
{
	assert((unsigned)policy < ARRAY_LEN(policies));
	return policies[policy];
}
