/* SPDX-License-Identifier: MIT */
/*
 * Life stories of arrays from seeds.
 *
 * Says the seed of a story that breaks a promise and which, shows that it repeats exactly, makes
 * it short and tells it; else what was covered. With --canary it is the other way round: a rule
 * is switched off, and a story that breaks has to be found.
 *
 * Status: 0; 1: a promise was broken, the canary was not found, something was not covered.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/canary.h"
#include "core/log.h"
#include "tests/sim/coverage.h"
#include "tests/sim/shrink.h"

struct options {
	uint64_t seed, count;
	int level;
	unsigned commands, jobs, seconds, shrink_seconds;
	bool verbose, coverage, trace;
	const char *canary;
};

static const struct {
	const char *name, *text;
} canaries[] = {
#define X(what, name, text) [CANARY_##what] = { name, text },
	CANARIES(X)
#undef X
};

static void usage(void)
{
	fputs("Usage: simulate [OPTION...] [SEED [COUNT]]\n"
	      "  -l, --level=LEVEL     0, 1, 5, 10 or any (any)\n"
	      "  -c, --commands=N      at least so many host commands a story (2000)\n"
	      "  -j, --jobs=N          stories at once (one a processor)\n"
	      "  -t, --seconds=N       begin no more after so many\n"
	      "  -v, --verbose         tell the stories\n"
	      "      --trace           print a hash of all that happened, story by story\n"
	      "      --coverage        every fault has to meet every state often enough\n"
	      "      --canary=NAME     switch a rule off: a story has to break\n"
	      "      --canaries        list their names\n"
	      "      --shrink=SECONDS  at most so long to make a story short (30)\n",
	      stderr);
}

/* Log lines as part of the story: without their own time and date. */
static void log_told(enum log_level level, const char *line)
{
	const char *text = strchr(line, ' ');

	(void)level;
	printf("%12s   %s\n", "", text ? text + 1 : line);
}

static void log_nothing(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static bool choose_canary(const char *name)
{
#ifdef YOKE_CANARIES
	for (unsigned i = 1; i < CANARY_COUNT; i++) {
		if (strcmp(canaries[i].name, name) != 0)
			continue;
		canary_now = (enum canary)i;
		return true;
	}
	fprintf(stderr, "simulate: there is no canary %s\n", name);
#else
	fprintf(stderr, "simulate: %s: this build has no canaries. Use make sim\n", name);
#endif
	return false;
}

/* --- a story that breaks --- */

static void show_seed(const struct scenario_how *how, const struct scenario_result *result)
{
	const struct machine_shape *shape = &result->shape;

	printf("seed %" PRIu64 ", level %u, %u disks of %" PRIu64
	       "K%s%s, chunk %uK, blocks of %u%s%s%s:"
	       " %s\n",
	       how->seed, shape->level, shape->disks, shape->disk_bytes / KIB,
	       shape->uneven ? " and more" : "", shape->garbage ? " with something on them" : "",
	       shape->chunk_bytes / (unsigned)KIB, shape->block_bytes,
	       shape->intent ? ", intents" : "", shape->fua_disks ? ", FUA" : "",
	       shape->write_cache ? ", a write cache" : "", result->violation);
}

static void show_broken(const struct options *options, const struct scenario_how *how,
			const struct scenario_result *first)
{
	struct runner *runner = runner_new(1, true);
	struct scenario_result once = *first, *again;
	struct shrunk shrunk;

	show_seed(how, &once);
	again = runner_run(runner, how);
	printf("told again: %s, trace %016" PRIx64 "\n",
	       again->trace == once.trace && strcmp(again->violation, once.violation) == 0 ?
		       "the same" :
		       "NOT the same",
	       again->trace);
	if (options->shrink_seconds && once.steps) {
		shrunk = shrink(runner, how, &once, options->shrink_seconds);
		printf("%u of its %u steps are enough:\n", shrunk.left, shrunk.steps);
		shrunk.how.verbose = true;
		log_redirect(log_told);
		again = runner_run(runner, &shrunk.how);
		printf("%s\n", again->violation);
		free((uint8_t *)shrunk.how.without);
	}
	runner_free(runner);
}

/* --- many --- */

struct many {
	struct runner *runner;
	struct coverage coverage;
	uint64_t next, end; /* seeds */
	time_t until;
	bool broken;
	struct scenario_how how; /* of the broken one of the lowest seed */
	struct scenario_result result;
};

static void begin_more(struct many *many, const struct options *options)
{
	while (!many->broken && many->next < many->end && time(NULL) < many->until) {
		const struct scenario_how how = {
			.seed = many->next,
			.level = options->level,
			.commands = options->commands,
			.verbose = options->verbose,
		};

		if (!runner_start(many->runner, &how))
			return;
		many->next++;
	}
}

static void tell_all(struct many *many, const struct options *options)
{
	struct scenario_result *result;
	struct scenario_how how;

	begin_more(many, options);
	while (runner_wait(many->runner, &how, &result)) {
		if (options->trace)
			printf("%" PRIu64 " %016" PRIx64 "\n", how.seed, result->trace);
		coverage_add(&many->coverage, result);
		if (result->violation[0] && (!many->broken || how.seed < many->how.seed)) {
			many->broken = true;
			many->how = how;
			many->result = *result;
		}
		begin_more(many, options);
	}
}

static int conclude(const struct many *many, const struct options *options, time_t began)
{
	if (options->canary) {
		printf("%s: %s", options->canary, many->broken ? "found, " : "NOT found, ");
		printf("%u stories, %ld s\n", many->coverage.stories, (long)(time(NULL) - began));
		if (many->broken && options->shrink_seconds)
			show_broken(options, &many->how, &many->result);
		else if (many->broken)
			show_seed(&many->how, &many->result);
		return !many->broken;
	}
	if (many->broken) {
		show_broken(options, &many->how, &many->result);
		return 1;
	}
	if (!options->trace)
		coverage_show(&many->coverage);
	return options->coverage && !coverage_enough(&many->coverage, options->level);
}

enum { OPT_COVERAGE = 256, OPT_CANARY, OPT_CANARIES, OPT_SHRINK, OPT_TRACE };

static bool take_option(struct options *options, int opt)
{
	switch (opt) {
	case 'l':
		options->level = strcmp(optarg, "any") == 0 ? -1 : atoi(optarg);
		return options->level == -1 || options->level == 0 || options->level == 1 ||
		       options->level == 5 || options->level == 10;
	case 'c':
		options->commands = (unsigned)atoi(optarg);
		return true;
	case 'j':
		options->jobs = (unsigned)atoi(optarg);
		return options->jobs >= 1 && options->jobs <= RUNNER_JOBS_MAX;
	case 't':
		options->seconds = (unsigned)atoi(optarg);
		return true;
	case 'v':
		options->verbose = true;
		return true;
	case OPT_COVERAGE:
		options->coverage = true;
		return true;
	case OPT_TRACE:
		options->trace = true;
		return true;
	case OPT_CANARY:
		options->canary = optarg;
		return choose_canary(optarg);
	case OPT_SHRINK:
		options->shrink_seconds = (unsigned)atoi(optarg);
		return true;
	case OPT_CANARIES:
		for (unsigned i = 1; i < CANARY_COUNT; i++)
			printf("%-18s %s\n", canaries[i].name, canaries[i].text);
		exit(0);
	default:
		return false;
	}
}

static bool parse(struct options *options, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "level", required_argument, NULL, 'l' },
		{ "commands", required_argument, NULL, 'c' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "seconds", required_argument, NULL, 't' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "coverage", no_argument, NULL, OPT_COVERAGE },
		{ "trace", no_argument, NULL, OPT_TRACE },
		{ "canary", required_argument, NULL, OPT_CANARY },
		{ "canaries", no_argument, NULL, OPT_CANARIES },
		{ "shrink", required_argument, NULL, OPT_SHRINK },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "l:c:j:t:v", longs, NULL)) != -1)
		if (!take_option(options, opt))
			return false;
	options->seed = optind < argc ? strtoull(argv[optind], NULL, 0) : 1;
	options->count = optind + 1 < argc ? strtoull(argv[optind + 1], NULL, 0) : 1;
	return true;
}

int main(int argc, char **argv)
{
	struct options options = {
		.level = -1,
		.commands = 2000,
		.seconds = 1000000,
		.shrink_seconds = 30,
		.jobs = (unsigned)min_u64((uint64_t)sysconf(_SC_NPROCESSORS_ONLN), RUNNER_JOBS_MAX),
	};
	struct many many = { .broken = false };
	time_t began = time(NULL);
	int status;

	if (!parse(&options, argc, argv)) {
		usage();
		return 2;
	}
	log_redirect(options.verbose ? log_told : log_nothing);
	many.runner = runner_new(options.jobs, options.canary != NULL);
	many.next = options.seed;
	many.end = options.seed + options.count;
	many.until = began + options.seconds;
	tell_all(&many, &options);
	runner_free(many.runner);
	status = conclude(&many, &options, began);
	return status;
}
