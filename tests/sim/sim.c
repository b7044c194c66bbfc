/* SPDX-License-Identifier: MIT */
/*
 * Life stories of arrays from seeds: sim [-l LEVEL] [-c COMMANDS] [-v] FIRST-SEED [COUNT]
 *
 * Says the seed of the first story that breaks a promise, and which; else what was covered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/log.h"
#include "tests/sim/scenario.h"

static void quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void add(struct scenario_result *sum, const struct scenario_result *one)
{
	sum->counts.reads += one->counts.reads;
	sum->counts.writes += one->counts.writes;
	sum->counts.flushes += one->counts.flushes;
	sum->counts.errors += one->counts.errors;
	sum->counts.starts += one->counts.starts;
	sum->counts.degraded_starts += one->counts.degraded_starts;
	sum->counts.waits += one->counts.waits;
	sum->counts.adds += one->counts.adds;
	sum->cuts += one->cuts;
	sum->faults += one->faults;
	for (unsigned s = 0; s < SCENARIO_STATES; s++)
		for (unsigned f = 0; f <= WORLD_FAULTS; f++)
			sum->covered[s][f] += one->covered[s][f];
}

static void show(const struct scenario_result *sum)
{
	const struct machine_counts *counts = &sum->counts;

	printf("%lu reads, %lu writes, %lu flushes, %lu errors; %u faults, %u power cuts, "
	       "%lu starts (%lu degraded, %lu had to wait), %lu disks given back\n%-10s",
	       counts->reads, counts->writes, counts->flushes, counts->errors, sum->faults,
	       sum->cuts, counts->starts, counts->degraded_starts, counts->waits, counts->adds, "");
	for (unsigned f = 1; f <= WORLD_FAULTS; f++)
		printf(" %9s", scenario_fault_name(f));
	for (unsigned s = 0; s < SCENARIO_STATES; s++) {
		printf("\n%-10s", scenario_state_name(s));
		for (unsigned f = 1; f <= WORLD_FAULTS; f++)
			printf(" %9u", sum->covered[s][f]);
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct scenario_result sum = { .violation = "" }, one;
	unsigned commands = 2000;
	bool verbose = false;
	int level = -1, opt;
	uint64_t seed, count;

	while ((opt = getopt(argc, argv, "l:c:v")) != -1) {
		if (opt == 'l')
			level = atoi(optarg);
		else if (opt == 'c')
			commands = (unsigned)atoi(optarg);
		else if (opt == 'v')
			verbose = true;
		else
			return 2;
	}
	seed = optind < argc ? strtoull(argv[optind], NULL, 0) : 1;
	count = optind + 1 < argc ? strtoull(argv[optind + 1], NULL, 0) : 1;
	if (!verbose)
		log_redirect(quiet);
	for (uint64_t i = 0; i < count; i++) {
		scenario_run(seed + i, commands, level, verbose, &one);
		if (one.violation[0]) {
			printf("seed %lu, level %u, %u disks, chunk %u, block %u: %s\n", seed + i,
			       one.shape.level, one.shape.disks, one.shape.chunk_bytes,
			       one.shape.block_bytes, one.violation);
			return 1;
		}
		add(&sum, &one);
	}
	show(&sum);
	return 0;
}
