/* SPDX-License-Identifier: MIT */
/*
 * Paths: a table of who came which way, sorted by initiator, target and portal.
 *
 * Invariants:
 * 1. A path with sessions is never forgotten; one without is, after PATHS_MEMORY
 *    or when the table is full.
 * 2. Paths of one initiator to one target are neighbours in the tree, so whether
 *    one is missing is seen by looking at its run alone.
 *
 * Not here: sessions (target/iscsi), what is said of a missing path (status.c).
 */
#include <bsd/sys/tree.h>
#include <stdlib.h>
#include <string.h>

#include "target/paths.h"

struct path {
	RB_ENTRY(path) node;
	char *initiator, *target, *portal; /* of one allocation with it */
	unsigned sessions;
	uint64_t down_since_ns;
};

RB_HEAD(path_tree, path);

struct paths {
	struct path_tree tree;
	unsigned count;
};

static int path_order(const struct path *a, const struct path *b)
{
	int order = strcmp(a->initiator, b->initiator);

	if (!order)
		order = strcmp(a->target, b->target);
	return order ? order : strcmp(a->portal, b->portal);
}

static bool same_run(const struct path *a, const struct path *b)
{
	return !strcmp(a->initiator, b->initiator) && !strcmp(a->target, b->target);
}

RB_GENERATE_INTERNAL(path_tree, path, node, path_order, static __attribute__((unused)))

struct paths *paths_new(void)
{
	struct paths *paths = calloc(1, sizeof(*paths));

	if (paths)
		RB_INIT(&paths->tree);
	return paths;
}

static void forget(struct paths *paths, struct path *path)
{
	RB_REMOVE(path_tree, &paths->tree, path);
	paths->count--;
	free(path);
}

void paths_free(struct paths *paths)
{
	struct path *path;

	if (!paths)
		return;
	while ((path = RB_MIN(path_tree, &paths->tree)))
		forget(paths, path);
	free(paths);
}

static struct path *find(struct paths *paths, const char *initiator, const char *target,
			 const char *portal)
{
	const struct path key = { .initiator = (char *)initiator,
				  .target = (char *)target,
				  .portal = (char *)portal };

	return RB_FIND(path_tree, &paths->tree, (struct path *)&key);
}

static struct path *path_new(const char *initiator, const char *target, const char *portal)
{
	size_t i = strlen(initiator) + 1, t = strlen(target) + 1, p = strlen(portal) + 1;
	struct path *path = calloc(1, sizeof(*path) + i + t + p);

	if (!path)
		return NULL;
	path->initiator = memcpy(path + 1, initiator, i);
	path->target = memcpy(path->initiator + i, target, t);
	path->portal = memcpy(path->target + t, portal, p);
	return path;
}

/* False: every path is in use. */
static bool make_room(struct paths *paths)
{
	struct path *path, *oldest = NULL;

	if (paths->count < PATHS_MAX)
		return true;
	RB_FOREACH(path, path_tree, &paths->tree)
		if (!path->sessions && (!oldest || path->down_since_ns < oldest->down_since_ns))
			oldest = path;
	if (oldest)
		forget(paths, oldest);
	return oldest != NULL;
}

void paths_up(struct paths *paths, const char *initiator, const char *target, const char *portal,
	      uint64_t now_ns)
{
	struct path *path = find(paths, initiator, target, portal);

	if (!path) {
		/* Without memory for it, it is a path that nobody will miss. */
		if (!make_room(paths) || !(path = path_new(initiator, target, portal)))
			return;
		RB_INSERT(path_tree, &paths->tree, path);
		paths->count++;
	}
	path->sessions++;
	path->down_since_ns = now_ns;
}

void paths_down(struct paths *paths, const char *initiator, const char *target, const char *portal,
		uint64_t now_ns)
{
	struct path *path = find(paths, initiator, target, portal);

	if (!path || !path->sessions)
		return;
	path->sessions--;
	path->down_since_ns = now_ns;
}

void paths_prune(struct paths *paths,
		 bool (*offered)(void *arg, const char *target, const char *portal), void *arg)
{
	struct path *path, *next;

	RB_FOREACH_SAFE(path, path_tree, &paths->tree, next)
		if (!path->sessions && !offered(arg, path->target, path->portal))
			forget(paths, path);
}

/* Whether any path of the run that FIRST begins is up; *END: the first behind it. */
static bool run_is_up(const struct path *first, struct path **end)
{
	struct path *path = (struct path *)first;
	bool up = false;

	for (; path && same_run(first, path); path = RB_NEXT(path_tree, NULL, path))
		up |= path->sessions > 0;
	*end = path;
	return up;
}

unsigned paths_missing(struct paths *paths, uint64_t now_ns,
		       void (*fn)(void *arg, const char *initiator, const char *target,
				  const char *portal, uint64_t down_ns),
		       void *arg)
{
	struct path *path = RB_MIN(path_tree, &paths->tree), *end, *next;
	unsigned missing = 0;

	while (path) {
		bool up = run_is_up(path, &end);

		for (; path != end; path = next) {
			uint64_t down_ns = now_ns - path->down_since_ns;

			next = RB_NEXT(path_tree, NULL, path);
			if (path->sessions)
				continue;
			if (down_ns > PATHS_MEMORY_NS) {
				forget(paths, path);
			} else if (up && down_ns >= PATHS_GRACE_NS) {
				fn(arg, path->initiator, path->target, path->portal, down_ns);
				missing++;
			}
		}
	}
	return missing;
}
