/* SPDX-License-Identifier: MIT */
/*
 * Follows the sessions' events and tells which paths are missing.
 *
 * Not here: what missing means (paths.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/problem.h"
#include "target/daemon.h"

static void watch_event(struct event_watch *watch, uint64_t number)
{
	struct yoked *yoked = container_of(watch, struct yoked, path_watch);
	json_t *events = event_list(number - 1, 1);
	const char *name, *initiator, *target, *portal;

	if (!json_unpack(events, "[{s:s, s:{s:s, s:s, s:s}}]", "name", &name, "fields", "initiator",
			 &initiator, "target", &target, "portal", &portal)) {
		if (!strcmp(name, event_name(EVENT_SESSION_UP)))
			paths_up(yoked->paths, initiator, target, portal, env_now_ns(yoked->env));
		else if (!strcmp(name, event_name(EVENT_SESSION_DOWN)))
			paths_down(yoked->paths, initiator, target, portal, env_now_ns(yoked->env));
	}
	json_decref(events);
}

int path_watch_start(struct yoked *yoked)
{
	yoked->paths = paths_new();
	if (!yoked->paths)
		return -ENOMEM;
	yoked->path_watch.fn = watch_event;
	event_watch_add(&yoked->path_watch);
	return 0;
}

void path_watch_stop(struct yoked *yoked)
{
	event_watch_remove(&yoked->path_watch);
	paths_free(yoked->paths);
}

static bool path_offered(void *arg, const char *target, const char *portal)
{
	const struct export *export = export_find(arg, target);

	for (unsigned i = 0; export && i < export->conf->portals.count; i++)
		if (!strcmp(export->conf->portals.items[i], portal))
			return true;
	return false;
}

static void path_problem(void *arg, const char *initiator, const char *target, const char *portal,
			 uint64_t down_ns)
{
	char detail[512];
	const struct problem problem = {
		.code = PROBLEM_PATH_MISSING,
		.object = initiator,
		.detail = detail,
		.risk = "if its other path goes too, it has none",
		.doing = "",
		.what_to_do = "",
		.since_s = time(NULL) - (int64_t)(down_ns / NS_PER_S),
	};

	snprintf(detail, sizeof(detail), "none to %s of %s", portal, target);
	json_array_append_new(arg, problem_json(&problem));
}

unsigned path_problems(struct yoked *yoked, json_t *problems)
{
	paths_prune(yoked->paths, path_offered, yoked);
	return paths_missing(yoked->paths, env_now_ns(yoked->env), path_problem, problems);
}
