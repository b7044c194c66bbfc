/* SPDX-License-Identifier: MIT */
/*
 * Paths: which initiator reached which target through which portal, and which
 * of these ways is missing now.
 *
 * A path is missing when it has been down for PATHS_GRACE while the same
 * initiator still has another one to the same target: a host that is off misses
 * nothing. What nobody used for PATHS_MEMORY is forgotten. Times are
 * env_now_ns(); the table is bounded, the longest missing goes first.
 */
#ifndef TARGET_PATHS_H
#define TARGET_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base.h"

#define PATHS_GRACE_NS (60 * NS_PER_S)
#define PATHS_MEMORY_NS (7 * 24 * 3600 * NS_PER_S)
#define PATHS_MAX 8192

struct paths;

/* NULL: out of memory. */
struct paths *paths_new(void);
void paths_free(struct paths *paths);

/* A session began or ended; each up has its down. */
void paths_up(struct paths *paths, const char *initiator, const char *target, const char *portal,
	      uint64_t now_ns);
void paths_down(struct paths *paths, const char *initiator, const char *target, const char *portal,
		uint64_t now_ns);

/* Forget what is down and not OFFERED any more (the configuration changed). */
void paths_prune(struct paths *paths,
		 bool (*offered)(void *arg, const char *target, const char *portal), void *arg);

/* Calls FN for each missing path. DOWN_NS: for how long it has been down. Returns how many. */
unsigned paths_missing(struct paths *paths, uint64_t now_ns,
		       void (*fn)(void *arg, const char *initiator, const char *target,
				  const char *portal, uint64_t down_ns),
		       void *arg);

#endif
