/* SPDX-License-Identifier: MIT */
/*
 * Stories in processes of their own: an assertion or an endless loop ends one story, what a
 * violation leaves behind goes with it, and several run at once.
 */
#ifndef TESTS_SIM_RUNNER_H
#define TESTS_SIM_RUNNER_H

#include "tests/sim/scenario.h"

#define RUNNER_JOBS_MAX 64u

struct runner;

/* QUIET: what a dying story says is not shown. */
struct runner *runner_new(unsigned jobs, bool quiet);
/* Ends what still runs. */
void runner_free(struct runner *runner);

/* Tell a story; false: as many run as may. */
bool runner_start(struct runner *runner, const struct scenario_how *how);
/* Waits for one to end; false: none runs. The result is valid until the next call. */
bool runner_wait(struct runner *runner, struct scenario_how *how, struct scenario_result **result);

/* One, waited for. */
struct scenario_result *runner_run(struct runner *runner, const struct scenario_how *how);

#endif
