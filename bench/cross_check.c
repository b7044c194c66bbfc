/* SPDX-License-Identifier: MIT */
/*
 * yoked's counters beside ours.
 *
 * Invariants:
 *  1. What was not checked is no disagreement.
 */
#include "bench/cross_check.h"

bool cross_check_agrees(const struct bench_cross_check *check)
{
	return !check->done || check->deviation <= CROSS_CHECK_DEVIATION_MAX + 1e-9;
}
