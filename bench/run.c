/* SPDX-License-Identifier: MIT */
/*
 * Runs a plan: connect, look before writing, fill, measure point by point, judge, show.
 *
 * Invariants:
 *  1. Nothing is written to a LUN before the guard has looked at all of them.
 *  2. Whatever ends the run early (a signal, a violation, a lost target), what was measured
 *     until then is judged, shown and written to its files.
 *  3. Repeats are in turns over all points: what drifts hits all points alike.
 *
 * Not here: a measurement (engine.c), the files (run_files.c).
 */
#include "bench/run.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/cross_check.h"
#include "bench/guard.h"
#include "bench/live.h"
#include "bench/run_int.h"
#include "bench/table.h"
#include "core/clean.h"
#include "core/units.h"

#define TABLES_MAX 4 /* of so many measurements each has a table; of more, a line */

/* Of the signal handler. */
static struct engine *_Atomic signalled;
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	struct engine *engine = signalled;

	if (signals++ || !engine)
		_exit(128 + number);
	engine_interrupt(engine);
}

static void catch_signals(struct engine *engine)
{
	struct sigaction action = { .sa_handler = engine ? on_signal : SIG_DFL };

	signalled = engine;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

void run_say(FILE *err, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fputs("yoke-bench: ", err);
	clean_put(err, text);
	fputc('\n', err);
}

static void on_progress(void *arg, const struct engine_progress *progress)
{
	struct run *run = arg;

	live_progress(&run->live, progress);
}

static void on_began(void *arg)
{
	struct run *run = arg;

	run->check_failed = run->check && cross_check_before(run->check, &run->check_fault);
}

static void on_ended(void *arg)
{
	struct run *run = arg;

	if (run->check && !run->check_failed)
		run->check_failed = cross_check_after(run->check, &run->check_fault) != 0;
}

static bool plan_writes(const struct bench_plan *plan)
{
	for (unsigned i = 0; i < plan->point_count; i++)
		if (bench_point_writes(&plan->points[i]))
			return true;
	return false;
}

static int read_engine(void *arg, unsigned lun, uint64_t offset, void *buf, size_t length,
		       struct bench_fault *fault)
{
	return engine_read(arg, lun, offset, buf, length, fault);
}

static int guard(struct run *run, struct bench_fault *fault)
{
	const struct bench_setup *setup = &run->plan->setup;
	const struct guard guard = { .luns = engine_luns(run->engine),
				     .lun_count = setup->lun_count,
				     .read = read_engine,
				     .arg = run->engine };

	if (setup->destroy || !(setup->fill || plan_writes(run->plan)))
		return 0;
	return guard_check(&guard, setup->portals[0].target, fault);
}

static int refuse(struct bench_fault *fault, const char *fmt, ...) PRINTF_LIKE(2, 3);
static int refuse(struct bench_fault *fault, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fault->text, sizeof(fault->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Of all points before the first, not after an hour. */
static int check_fits(const struct bench_lun *lun, const struct bench_point *point,
		      struct bench_fault *fault)
{
	char size[UNITS_SIZE];

	if (point->range_bytes > lun->size_bytes)
		return refuse(fault, "--size: LUN %u has %s only. Lower it", lun->lun,
			      units_size(lun->size_bytes, size));
	for (unsigned i = 0; i < point->stream_count; i++) {
		const struct bench_stream *s = &point->streams[i];

		if (s->block_bytes % lun->block_bytes || s->shift_bytes % lun->block_bytes)
			return refuse(
				fault,
				"LUN %u: has blocks of %u bytes, %s is not made of them. Make "
				"--bs and --shift multiples",
				lun->lun, lun->block_bytes, point->name);
		if (s->block_bytes + s->shift_bytes > lun->size_bytes)
			return refuse(fault,
				      "LUN %u: has %s, less than one command of %s. Lower --bs",
				      lun->lun, units_size(lun->size_bytes, size), point->name);
	}
	return 0;
}

static int check_all_fit(const struct run *run, struct bench_fault *fault)
{
	const struct bench_lun *luns = engine_luns(run->engine);

	for (unsigned i = 0; i < run->plan->point_count; i++)
		for (unsigned j = 0; j < run->plan->setup.lun_count; j++)
			if (check_fits(&luns[j], &run->plan->points[i], fault))
				return -EINVAL;
	return 0;
}

/* With --check-journal also what earlier runs left, before this one writes. */
static int prepare_verify(struct run *run, struct bench_fault *fault)
{
	const struct bench_plan *plan = run->plan;
	struct verify_conf conf = {
		.setup = &plan->setup,
		.luns = engine_luns(run->engine),
		.lun_count = plan->setup.lun_count,
		.range_bytes = plan->points[0].range_bytes,
		.journal = run->options->journal,
		.check_journal = run->options->check_journal,
	};
	int err = 0;

	if (!run->options->verify)
		return 0;
	for (unsigned i = 0; i < plan->point_count && !err; i++)
		err = verify_fits(&plan->points[i], fault);
	err = err ? err : verify_new(&conf, &run->verify, fault);
	if (!err && conf.check_journal)
		err = verify_check(run->verify, read_engine, run->engine, fault);
	return err == -EILSEQ ? 0 : err;
}

/* All that may refuse; nothing has been measured yet. */
static int prepare(struct run *run, struct bench_fault *fault)
{
	const struct options *o = run->options;
	int err = 0;

	run->total = run->plan->point_count * run->plan->repeat;
	run->outcomes = calloc(run->total, sizeof(*run->outcomes));
	run->results = calloc(run->total, sizeof(struct bench_result *));
	if (!run->outcomes || !run->results) {
		snprintf(fault->text, sizeof(fault->text), "out of memory");
		return -ENOMEM;
	}
	if (o->cross_check)
		err = cross_check_new(o->cross_check, &run->plan->setup, &run->check, fault);
	err = err ? err : engine_new(&run->plan->setup, &run->engine, fault);
	if (err)
		return err;
	err = check_all_fit(run, fault);
	err = err ? err : guard(run, fault);
	return err ? err : prepare_verify(run, fault);
}

static void announce(const struct run *run)
{
	const struct bench_plan *plan = run->plan;
	char about[UNITS_SIZE];
	uint64_t ns = 0;

	for (unsigned i = 0; i < plan->point_count; i++)
		ns += (plan->points[i].time_ns + plan->points[i].warmup_ns) * plan->repeat;
	if (run->total > 1)
		run_say(run->streams->err, "%s%s%s%s%u measurements, about %s%s", plan->profile,
			*plan->profile ? ": " : "", plan->tells, *plan->profile ? ". " : "",
			run->total, units_duration(ns / NS_PER_S, about),
			plan->setup.fill ? " and the filling" : "");
}

static void judge(struct run *run, struct outcome *outcome)
{
	if (run->verify) {
		outcome->verified = true;
		verify_counts(run->verify, &outcome->verify);
		outcome->violation = verify_violation(run->verify);
	}
	outcome_judge(outcome);
}

static void show(struct run *run, const struct outcome *outcome)
{
	char iops[UNITS_SIZE], p99[UNITS_SIZE];
	const struct hist *latency = &outcome->result->sides[BENCH_TOTAL].latency;

	if (run->total <= TABLES_MAX || outcome->violation) {
		table_outcome(&run->table, outcome);
		if (outcome->violation)
			fprintf(run->streams->out, "%s\n", outcome->violation);
	} else {
		run_say(run->streams->err, "%u/%u %s, depth %u: %s IOPS, p99 %s", run->count,
			run->total, outcome->result->point->name, outcome->result->depth_asked,
			units_rate(bench_iops(outcome->result, BENCH_TOTAL), iops),
			units_latency_us((double)hist_percentile(latency, 99) / 1e3, p99));
	}
	fflush(run->streams->out);
}

/* 0, or what ends the run. */
static int measure(struct run *run, unsigned repeat, unsigned point, struct bench_fault *fault)
{
	const struct engine_hooks hooks = { run, on_progress, on_began, on_ended };
	const struct bench_point *p = &run->plan->points[point];
	struct outcome *outcome = &run->outcomes[run->count];
	struct bench_result *result = NULL;
	int err = 0;

	if (run->plan->setup.fill)
		err = engine_fill(run->engine, p, &hooks, fault);
	if (!err && !signals)
		err = engine_run(run->engine, p, run->verify, &hooks, &result, fault);
	live_end(&run->live);
	if (!result && !err) {
		refuse(fault, "interrupted");
		err = -EINTR;
	}
	if (!result)
		return err;
	if (run->check) {
		cross_check_fill(run->check, result);
		if (run->check_failed)
			run_say(run->streams->err, "--cross-check: %s", run->check_fault.text);
	}
	*outcome = (struct outcome){ .plan = run->plan,
				     .result = result,
				     .point = point + 1,
				     .repeat = repeat + 1,
				     .spread = -1,
				     .expect = run->options->expect_text ? &run->options->expect :
									   NULL };
	run->results[run->count++] = result;
	judge(run, outcome);
	show(run, outcome);
	if (err)
		return err;
	if (signals || outcome->violation)
		return -EINTR;
	return engine_lost(run->engine, fault);
}

/* What the repeats of each point differ by is known only at the end. */
static void judge_spreads(struct run *run)
{
	double *iops = calloc(run->count ? run->count : 1, sizeof(*iops));

	for (unsigned i = 0; iops && i < run->count; i++) {
		unsigned n = 0;

		for (unsigned j = 0; j < run->count; j++)
			if (run->outcomes[j].point == run->outcomes[i].point)
				iops[n++] = bench_iops(run->outcomes[j].result, BENCH_TOTAL);
		run->outcomes[i].spread = verdict_spread(iops, n);
		outcome_judge(&run->outcomes[i]);
	}
	free(iops);
}

static enum bench_exit finish(struct run *run, int err)
{
	enum bench_exit code = BENCH_DONE;

	if (run->plan->repeat > 1)
		judge_spreads(run);
	if (run->count > 1)
		table_points(&run->table, run->outcomes, run->count);
	for (unsigned i = 0; i < run->count; i++)
		if (!run->outcomes[i].good)
			code = BENCH_FAILED;
	if (run->check_failed)
		code = BENCH_FAILED;
	/* What was not measured met nothing. */
	if (run->options->expect_text && run->count < run->total)
		code = BENCH_FAILED;
	if (run_files(run))
		code = BENCH_LOST;
	if (!run->count)
		return BENCH_REFUSED;
	return !err || err == -EINTR ? code : BENCH_LOST;
}

static void tear_down(struct run *run)
{
	catch_signals(NULL);
	engine_free(run->engine);
	verify_free(run->verify);
	cross_check_free(run->check);
	for (unsigned i = 0; i < run->count; i++)
		bench_result_free(run->results[i]);
	free(run->results);
	free(run->outcomes);
}

enum bench_exit run_plan(const struct options *options, const struct run_streams *streams)
{
	struct run run = {
		.options = options,
		.plan = &options->plan,
		.streams = streams,
		.live = { .out = streams->err,
			  .tty = streams->err_tty,
			  .width = streams->err_width },
		.table = { .out = streams->out,
			   .color = color_wanted(options->color, streams->out_tty),
			   .width = streams->out_width },
	};
	struct bench_fault fault = { "" };
	enum bench_exit code = BENCH_REFUSED;
	int err = prepare(&run, &fault);

	if (err) {
		run_say(streams->err, "%s", fault.text);
		tear_down(&run);
		return code;
	}
	catch_signals(run.engine);
	if (run.verify && verify_violation(run.verify)) {
		fprintf(streams->out, "%s\n", verify_violation(run.verify));
		tear_down(&run);
		return BENCH_FAILED;
	}
	announce(&run);
	for (unsigned r = 0; r < run.plan->repeat && !err; r++)
		for (unsigned p = 0; p < run.plan->point_count && !err; p++)
			err = measure(&run, r, p, &fault);
	if (err && (err != -EINTR || !run.count))
		run_say(streams->err, "%s", fault.text);
	code = finish(&run, err);
	tear_down(&run);
	return code;
}
