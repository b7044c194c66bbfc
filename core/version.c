/* SPDX-License-Identifier: MIT */
/*
 * The only object that knows the version, so that a new one recompiles nothing else.
 *
 * Invariants:
 * 1. YOKE_VERSION comes from the Makefile's VERSION and from nowhere else.
 *
 * Not here: protocol and on-disk format versions, which their units number themselves.
 */
#include "core/version.h"

const char *yoke_version(void)
{
	return YOKE_VERSION;
}
