/* SPDX-License-Identifier: MIT */
/*
 * The initiator's side of multipathing: which of several paths to a LUN takes the next command.
 *
 * Pure: it knows neither sockets nor SCSI. Its owner says when a path goes up or down and when
 * a command is sent and answered; path_choose() answers from that alone. Paths of the best rank
 * (0 is best) that are up share the load, the others wait, as priority groups do in multipath
 * tools.
 */
#ifndef MPIO_PATH_H
#define MPIO_PATH_H

#include <stdbool.h>

#include "core/base.h"

enum path_policy {
	PATH_ROUND_ROBIN,     /* one after the other */
	PATH_LEAST_IN_FLIGHT, /* the one with the fewest commands open; equal ones in turn */
	PATH_FAILOVER,        /* the first; another only while that one is down */
};

struct path {
	unsigned rank; /* 0: active/optimized, 1: active/non-optimized */
	unsigned in_flight;
	uint64_t sent;     /* commands, ever */
	uint64_t up_at_ns; /* when it came up, valid while up */
	bool up;
};

/* The paths to one LUN; the array is its owner's and stays where it is. */
struct path_group {
	enum path_policy policy;
	uint64_t failback_ns; /* FAILOVER: a path must have been up so long to be gone back to */
	struct path *paths;
	unsigned count;
	unsigned current; /* the last one chosen */
};

void path_group_init(struct path_group *group, enum path_policy policy, struct path *paths,
		     unsigned count);

/* Index of the path to send on, counted there as sent and in flight; -1: none is up. */
int path_choose(struct path_group *group, uint64_t now_ns);
/* A command sent on PATH is over, however it ended. */
void path_done(struct path *path);
void path_set_up(struct path *path, bool up, uint64_t now_ns);

/* "round-robin", "least-in-flight", "failover"; -EINVAL. */
int path_policy_parse(const char *text, enum path_policy *policy);
const char *path_policy_name(enum path_policy policy);

#endif
