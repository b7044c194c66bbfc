/* SPDX-License-Identifier: MIT */
/*
 * The steady-state test, after the one of SNIA's performance test specification with rounds of
 * seconds instead of minutes.
 *
 * Invariants:
 *  1. The rounds end where the series ends and are equally long; an interval that lies on a
 *     border belongs to both by its share.
 *  2. A mean latency is that of the round's commands, not of its intervals.
 *
 * Not here: going on until steady (engine.c), what unsteady means for the result (verdict.c).
 */
#include "bench/steady.h"

#include <math.h>

struct round {
	double ops;
	double latency_ns; /* sum */
};

double steady_round_s(const struct bench_point *point)
{
	double round_s = (double)point->time_ns / (double)NS_PER_S / STEADY_ROUNDS;

	return round_s > STEADY_ROUND_MIN_S ? round_s : STEADY_ROUND_MIN_S;
}

/* What of INTERVAL lies in [from, to). */
static void add_share(struct round *round, const struct bench_interval *interval, double from,
		      double to)
{
	double length = interval->to_s - interval->from_s;
	double begin = fmax(interval->from_s, from), end = fmin(interval->to_s, to);
	double ops = (double)interval->ops[BENCH_TOTAL];

	if (length <= 0 || end <= begin)
		return;
	ops *= (end - begin) / length;
	round->ops += ops;
	round->latency_ns += ops * interval->mean_ns;
}

static struct steady_figure compare(const double *values)
{
	double sum = 0, low = values[0], high = values[0], slope = 0, mean;

	for (unsigned i = 0; i < STEADY_ROUNDS; i++) {
		sum += values[i];
		low = fmin(low, values[i]);
		high = fmax(high, values[i]);
		/* Least squares over x = -2..2, whose squares add up to 10. */
		slope += ((double)i - 2) * values[i] / 10;
	}
	mean = sum / STEADY_ROUNDS;
	if (mean <= 0)
		return (struct steady_figure){ 0, 0 };
	return (struct steady_figure){ (high - low) / mean, slope * (STEADY_ROUNDS - 1) / mean };
}

struct steady steady_judge(const struct bench_interval *series, unsigned count, double round_s)
{
	struct steady steady = { .round_s = round_s };
	double iops[STEADY_ROUNDS], latency[STEADY_ROUNDS], end, begin;
	bool empty = false; /* a round without an answer is not steady, whatever the rest */

	if (!count)
		return steady;
	end = series[count - 1].to_s;
	begin = end - STEADY_ROUNDS * round_s;
	if (begin < series[0].from_s - round_s / 100)
		return steady;
	steady.known = true;
	for (unsigned i = 0; i < STEADY_ROUNDS; i++) {
		struct round round = { 0 };

		for (unsigned j = 0; j < count; j++)
			add_share(&round, &series[j], begin + i * round_s,
				  begin + (i + 1) * round_s);
		iops[i] = round.ops / round_s;
		latency[i] = round.ops > 0 ? round.latency_ns / round.ops : 0;
		empty |= round.ops <= 0;
	}
	steady.iops = compare(iops);
	steady.latency = compare(latency);
	steady.range = fmax(steady.iops.range, steady.latency.range);
	steady.drift = fmax(fabs(steady.iops.drift), fabs(steady.latency.drift));
	/* Sums of doubles: what is at the limit is within it. */
	steady.met = !empty && steady.range <= STEADY_RANGE_MAX + 1e-9 &&
		     steady.drift <= STEADY_DRIFT_MAX + 1e-9;
	return steady;
}

struct steady steady_of(const struct bench_result *result)
{
	double round_s = steady_round_s(result->point);

	if (result->measured_s < round_s * STEADY_ROUNDS)
		round_s = fmax(result->measured_s / STEADY_ROUNDS, STEADY_ROUND_MIN_S);
	return steady_judge(result->series, result->series_count, round_s);
}
