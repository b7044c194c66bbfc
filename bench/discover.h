/* SPDX-License-Identifier: MIT */
/* Where a target can be reached: from one portal to all of them. */
#ifndef BENCH_DISCOVER_H
#define BENCH_DISCOVER_H

#include "bench/engine.h"

/*
 * Asks PORTAL with SendTargets for all portals of its target; FOUND has room for
 * BENCH_PORTALS_MAX, the portal that was asked comes first. It is there even if the target does
 * not name it. A portal whose target is "" asks for the only one that it
 * shows. -errno with FAULT: not reachable, refused, no such target, several.
 */
int discover_portals(const struct bench_portal *portal, const char *initiator,
		     const struct bench_chap *chap, struct bench_portal *found, unsigned *count,
		     struct bench_fault *fault);

#endif
