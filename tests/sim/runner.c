/* SPDX-License-Identifier: MIT */
/*
 * Stories in processes of their own.
 *
 * Invariants:
 *  1. A story's process shares nothing with others but the slot of its result.
 *
 * Not here: which stories (sim.c, shrink.c).
 */
#include "tests/sim/runner.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MMAP_BYTES (1024 * 1024) /* more is fresh zeroes: what nobody touches is not cleared */
#define CPU_SECONDS 60u          /* of one story, which takes less than one */

struct slot {
	pid_t pid; /* 0: free */
	struct scenario_how how;
};

struct runner {
	unsigned jobs;
	bool quiet;
	struct slot slots[RUNNER_JOBS_MAX];
	struct scenario_result *results; /* shared, one a slot */
};

struct runner *runner_new(unsigned jobs, bool quiet)
{
	struct runner *runner = calloc(1, sizeof(*runner));

	assert(runner && jobs && jobs <= RUNNER_JOBS_MAX);
	runner->jobs = jobs;
	runner->quiet = quiet;
	runner->results = mmap(NULL, jobs * sizeof(*runner->results), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert(runner->results != MAP_FAILED);
	return runner;
}

void runner_free(struct runner *runner)
{
	for (unsigned i = 0; i < runner->jobs; i++) {
		if (!runner->slots[i].pid)
			continue;
		kill(runner->slots[i].pid, SIGKILL);
		waitpid(runner->slots[i].pid, NULL, 0);
	}
	munmap(runner->results, runner->jobs * sizeof(*runner->results));
	free(runner);
}

static void be_told(const struct runner *runner, unsigned index)
{
	const struct rlimit limit = { CPU_SECONDS, CPU_SECONDS + 1 };
	const struct rlimit no_core = { 0, 0 };

	if (runner->quiet && !freopen("/dev/null", "w", stderr))
		_exit(2);
	setrlimit(RLIMIT_CPU, &limit);
	setrlimit(RLIMIT_CORE, &no_core);
	mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
	mallopt(M_TRIM_THRESHOLD, 64 * MMAP_BYTES);
	scenario_run(&runner->slots[index].how, &runner->results[index]);
	fflush(stdout);
	_exit(0);
}

bool runner_start(struct runner *runner, const struct scenario_how *how)
{
	for (unsigned i = 0; i < runner->jobs; i++) {
		struct slot *slot = &runner->slots[i];

		if (slot->pid)
			continue;
		slot->how = *how;
		fflush(stdout);
		slot->pid = fork();
		assert(slot->pid >= 0);
		if (!slot->pid)
			be_told(runner, i);
		return true;
	}
	return false;
}

static void judge_status(struct scenario_result *result, int status)
{
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		snprintf(result->violation, sizeof(result->violation),
			 "it does not come to an end");
	else
		snprintf(result->violation, sizeof(result->violation), "it died: %s",
			 WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "its own error");
}

bool runner_wait(struct runner *runner, struct scenario_how *how, struct scenario_result **result)
{
	int status;
	pid_t pid = wait(&status);

	for (unsigned i = 0; pid > 0 && i < runner->jobs; i++) {
		if (runner->slots[i].pid != pid)
			continue;
		runner->slots[i].pid = 0;
		*how = runner->slots[i].how;
		*result = &runner->results[i];
		judge_status(*result, status);
		return true;
	}
	return false;
}

struct scenario_result *runner_run(struct runner *runner, const struct scenario_how *how)
{
	struct scenario_result *result = NULL;
	struct scenario_how told;
	bool ended;

	ended = runner_start(runner, how) && runner_wait(runner, &told, &result);
	assert(ended);
	return result;
}
