/* SPDX-License-Identifier: MIT */
/*
 * Puts the judges' answers together.
 *
 * Invariants:
 *  1. What is not meaningful meets no expectation. Without --expect it is told, and no failure.
 *  2. A violation of --verify and counts that disagree are failures, expected or not.
 *
 * Not here: the rules (verdict.c, steady.c, expect.c).
 */
#include "bench/outcome.h"

#include "bench/cross_check.h"

void outcome_judge(struct outcome *outcome)
{
	const struct bench_result *result = outcome->result;
	const struct verdict_facts facts = {
		.result = result,
		.steady = &outcome->steady,
		.expect = outcome->expect,
		.spread = outcome->spread,
	};

	outcome->steady = steady_of(result);
	verdict_judge(&facts, &outcome->verdict);
	outcome->good = !outcome->violation && cross_check_agrees(&result->cross_check);
	if (outcome->expect)
		outcome->good &= outcome->verdict.meaningful && expect_met(outcome->expect, result);
}
