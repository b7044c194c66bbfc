/* SPDX-License-Identifier: MIT */
/*
 * The engine: from a point of the plan to a result.
 *
 *   engine_run:  connect ─▶ lanes ─▶ warm up ─▶ all idle ─▶ began() ─▶ measure ─▶ all idle ─▶ ended()
 *
 * Invariants:
 *  1. Between began() and ended() exactly the counted commands are sent: none is under way at
 *     either, so that others' counters agree to the last one.
 *  2. Sessions outlive a point; lanes do not.
 *  3. Every wait of the caller ends: by the clock, an interruption, or because commands time out.
 *
 * Not here: threads (thread.c), commands (worker.c), figures (tally.c); connections (connect.c).
 */
#include "bench/engine.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "bench/engine_int.h"
#include "bench/steady.h"

#define TICK_NS NS_PER_S
#define FILL_BLOCK (256 * KIB)
#define FILL_DEPTH 8
#define STEADY_RUNS 10
#define TIMEOUT_DEFAULT_NS (30 * NS_PER_S)

int engine_say(struct bench_fault *fault, int rc, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(fault->text, sizeof(fault->text), format, args);
	va_end(args);
	return rc;
}

int engine_new(const struct bench_setup *setup, struct engine **made, struct bench_fault *fault)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	int rc;

	if (!engine)
		return engine_say(fault, -ENOMEM, "no memory for the engine");
	signal(SIGPIPE, SIG_IGN); /* libiscsi writes without MSG_NOSIGNAL */
	engine->setup = setup;
	engine->timeout_ns = setup->command_timeout_ns ? setup->command_timeout_ns :
							 TIMEOUT_DEFAULT_NS;
	sem_init(&engine->wake, 0, 0);
	/* Another run of the same initiator is another set of ports. */
	if (getrandom(&engine->run, sizeof(engine->run), 0) < 0)
		engine->run = (uint32_t)initiator_now();
	rc = control_look(engine, fault);
	if (rc != 0) {
		engine_free(engine);
		return rc;
	}
	*made = engine;
	return 0;
}

void engine_free(struct engine *engine)
{
	if (!engine)
		return;
	engine_disconnect(engine);
	sem_destroy(&engine->wake);
	free(engine);
}

const struct bench_lun *engine_luns(const struct engine *engine)
{
	return engine->luns;
}

int engine_read(struct engine *engine, unsigned lun, uint64_t offset, void *buf, size_t length,
		struct bench_fault *fault)
{
	return control_read(engine, lun, offset, buf, length, fault);
}

void engine_interrupt(struct engine *engine)
{
	atomic_store(&engine->interrupted, true);
	sem_post(&engine->wake);
}

void engine_wait(struct engine *engine, uint64_t until_ns)
{
	struct timespec ts = { .tv_sec = (time_t)(until_ns / NS_PER_S),
			       .tv_nsec = (long)(until_ns % NS_PER_S) };

	sem_clockwait(&engine->wake, CLOCK_MONOTONIC, &ts);
}

static bool stopped(struct engine *engine)
{
	return atomic_load(&engine->interrupted) || atomic_load(&engine->violated);
}

static bool all_idle(const struct engine *engine)
{
	for (unsigned i = 0; i < engine->thread_count; i++)
		if (!atomic_load(&engine->threads[i].idle))
			return false;
	return true;
}

static void report(const struct engine_hooks *hooks, const struct engine_progress *progress)
{
	if (hooks && hooks->progress)
		hooks->progress(hooks->arg, progress);
}

/* Ticks until the clock, the user, the end of the work or of a filling in vain says so. */
static int tick_until(struct engine *engine, struct bench_result *result, uint64_t until_ns,
		      uint64_t zero_ns, const struct engine_hooks *hooks,
		      struct engine_progress *progress)
{
	uint64_t next = initiator_now() + TICK_NS, now;

	while ((now = initiator_now()) < until_ns && !stopped(engine) && !all_idle(engine) &&
	       !(engine->job.fill && progress->errors)) {
		/* No interval of a few milliseconds at the end. */
		if (now < next || until_ns - now < TICK_NS / 2) {
			engine_wait(engine, min_u64(next > now ? next : UINT64_MAX, until_ns));
			continue;
		}
		next += TICK_NS;
		progress->done_s = ((double)now - (double)zero_ns) / 1e9;
		if (tally_interval(engine, result, now, progress) != 0)
			return -ENOMEM;
		if (engine->job.fill)
			progress->share += progress->bytes_s * (double)TICK_NS / 1e9 /
					   (double)engine->job.fill_bytes;
		report(hooks, progress);
	}
	return 0;
}

struct span {
	uint64_t from_ns, to_ns;
	bool measuring, first;
};

/* In the thread. */
static void failure_due(struct due *due, uint64_t now_ns)
{
	struct failure *failure = container_of(due, struct failure, due);
	const struct bench_failure *plan = failure->plan;

	if (failure->open) {
		sessions_hold(failure->thread, plan->portal);
		failure->open = false;
		due_set(&failure->thread->dues, due, now_ns + plan->for_ns);
	} else {
		sessions_let(failure->thread, plan->portal);
	}
}

static void end_due(struct due *due, uint64_t now_ns)
{
	(void)now_ns;
	workers_quiet(container_of(due, struct thread, end));
}

/* In the thread: from now on it counts, or only warms up. */
static void span_begin(struct thread *thread, void *arg)
{
	const struct span *span = arg;
	const struct bench_setup *setup = thread->engine->setup;

	tally_reset(thread, span->from_ns, span->to_ns);
	thread->measuring = span->measuring;
	thread->end.run = end_due;
	if (span->to_ns != UINT64_MAX)
		due_set(&thread->dues, &thread->end, span->to_ns);
	for (unsigned i = 0; span->measuring && i < setup->failure_count; i++) {
		struct failure *failure = &thread->failures[i];

		failure->thread = thread;
		failure->plan = &setup->failures[i];
		failure->open = true;
		failure->due.run = failure_due;
		due_set(&thread->dues, &failure->due, span->from_ns + setup->failures[i].at_ns);
	}
	workers_start(thread, initiator_now(), span->first);
}

/* In the thread: no new commands, and no more failures. */
static void span_end(struct thread *thread, void *arg)
{
	const uint64_t *to_ns = arg;

	tally_flight(thread, initiator_now());
	thread->to_ns = min_u64(thread->to_ns, *to_ns);
	due_clear(&thread->dues, &thread->end);
	for (unsigned i = 0; i < thread->engine->setup->failure_count; i++)
		due_clear(&thread->dues, &thread->failures[i].due);
	for (unsigned p = 0; p < thread->engine->setup->portal_count; p++)
		sessions_let(thread, p);
	workers_quiet(thread);
}

static void settle(struct engine *engine, uint64_t to_ns)
{
	threads_call(engine, span_end, &to_ns);
	while (!all_idle(engine))
		engine_wait(engine, initiator_now() + TICK_NS);
}

static void make_lanes(struct thread *thread, void *arg)
{
	atomic_int *rc = arg;

	if (lanes_new(thread) != 0)
		atomic_store(rc, -ENOMEM);
}

static void drop_lanes(struct thread *thread, void *arg)
{
	(void)arg;
	thread->measuring = false;
	lanes_free(thread);
}

static void note_fresh(struct engine *engine, struct engine_progress *progress, const char *phase,
		       double of_s)
{
	*progress = (struct engine_progress){ .phase = phase,
					      .of_s = of_s,
					      .sessions = engine->session_count };
}

static int warm_up(struct engine *engine, const struct engine_hooks *hooks)
{
	uint64_t now = initiator_now();
	uint64_t end = now + engine->job.point->warmup_ns;
	struct span span = { .from_ns = now, .to_ns = UINT64_MAX, .first = true };
	struct engine_progress progress;
	int rc;

	if (engine->job.point->warmup_ns == 0)
		return 0;
	note_fresh(engine, &progress, "warming up", (double)engine->job.point->time_ns / 1e9);
	engine->job.tick_ns = now;
	threads_call(engine, span_begin, &span);
	rc = tick_until(engine, NULL, end, end, hooks, &progress);
	settle(engine, initiator_now());
	return rc;
}

static int measure(struct engine *engine, bool first, const struct engine_hooks *hooks,
		   struct bench_result **result)
{
	const struct bench_point *point = engine->job.point;
	struct span span = { .measuring = true, .first = first };
	struct engine_progress progress;
	uint64_t end;
	int rc;

	note_fresh(engine, &progress, "measuring", (double)point->time_ns / 1e9);
	if (hooks && hooks->began)
		hooks->began(hooks->arg);
	span.from_ns = initiator_now();
	span.to_ns = point->time_ns ? span.from_ns + point->time_ns : UINT64_MAX;
	rc = tally_begin(engine, span.from_ns, result);
	if (rc != 0)
		return rc;
	threads_call(engine, span_begin, &span);
	rc = tick_until(engine, *result, span.to_ns, span.from_ns, hooks, &progress);
	end = min_u64(initiator_now(), span.to_ns);
	settle(engine, end);
	if (hooks && hooks->ended)
		hooks->ended(hooks->arg);
	if (rc == 0)
		rc = tally_interval(engine, *result, end, &progress);
	tally_end(engine, *result, end);
	return rc;
}

/* Measures, and again until it was steady if that is asked for. */
static int measure_all(struct engine *engine, const struct engine_hooks *hooks,
		       struct bench_result **result)
{
	const struct bench_point *point = engine->job.point;
	bool first = point->warmup_ns == 0;

	for (unsigned run = 1;; run++, first = false) {
		int rc = measure(engine, first, hooks, result);

		if (rc != 0 || !point->steady || run == STEADY_RUNS || stopped(engine) ||
		    steady_of(*result).met)
			return rc;
		bench_result_free(*result);
		*result = NULL;
	}
}

static int check_stream(const struct engine *engine, const struct bench_stream *stream, bool verify,
			struct bench_fault *fault)
{
	if (stream->block_bytes == 0 || stream->depth == 0)
		return engine_say(fault, -EINVAL, "a block size or depth of 0");
	if (stream->block_bytes > engine->transfer_max)
		return engine_say(fault, -EINVAL,
				  "blocks of %u bytes: the target takes at most %u in a command",
				  stream->block_bytes, engine->transfer_max);
	if (verify && (stream->block_bytes % VERIFY_BLOCK || stream->shift_bytes % VERIFY_BLOCK))
		return engine_say(fault, -EINVAL,
				  "verifying needs block sizes and shifts of whole %u bytes",
				  VERIFY_BLOCK);
	for (unsigned i = 0; i < engine->setup->lun_count; i++) {
		const struct bench_lun *lun = &engine->luns[i];

		if (stream->block_bytes % lun->block_bytes ||
		    stream->shift_bytes % lun->block_bytes)
			return engine_say(
				fault, -EINVAL,
				"LUN %u has blocks of %u bytes: block size %u, shift %llu "
				"do not fit",
				lun->lun, lun->block_bytes, stream->block_bytes,
				(unsigned long long)stream->shift_bytes);
	}
	return 0;
}

/* Whether POINT fits the LUNs; the job's ranges follow. */
static int prepare(struct engine *engine, const struct bench_point *point, struct verify *verify,
		   struct bench_fault *fault)
{
	struct job *job = &engine->job;
	const struct bench_setup *setup = engine->setup;

	*job = (struct job){ .point = point, .verify = verify, .bounded = point->max_bytes > 0 };
	engine->jobs++;
	atomic_init(&job->budget, (int_fast64_t)min_u64(point->max_bytes, INT64_MAX));
	if (point->time_ns == 0 && !job->bounded)
		return engine_say(fault, -EINVAL, "neither a time nor a number of bytes");
	job->ranges = calloc(point->stream_count, sizeof(*job->ranges));
	if (!job->ranges)
		return engine_say(fault, -ENOMEM, "no memory for %u streams", point->stream_count);
	for (unsigned i = 0; i < setup->lun_count; i++) {
		const struct bench_lun *lun = &engine->luns[i];

		if (point->range_bytes > lun->size_bytes)
			return engine_say(fault, -EINVAL,
					  "LUN %u has %llu bytes, the range is larger: %llu",
					  lun->lun, (unsigned long long)lun->size_bytes,
					  (unsigned long long)point->range_bytes);
		job->range_bytes[i] =
			align_down(point->range_bytes ? point->range_bytes : lun->size_bytes,
				   lun->block_bytes);
	}
	for (unsigned i = 0; i < point->stream_count; i++) {
		int rc = check_stream(engine, &point->streams[i], verify != NULL, fault);

		if (rc != 0)
			return rc;
		if (!workload_range_init(&job->ranges[i], &point->streams[i], job->range_bytes,
					 setup->lun_count))
			return engine_say(fault, -EINVAL,
					  "the range is smaller than one block of %u bytes",
					  point->streams[i].block_bytes);
	}
	return 0;
}

/* Lanes for the job. They are dropped by finish(). */
static int assemble(struct engine *engine, struct bench_fault *fault)
{
	atomic_int rc = 0;

	engine->job.workers = lanes_workers(engine);
	if (lanes_buffers(engine) > LANES_BUFFERS_MAX)
		return engine_say(
			fault, -ENOMEM,
			"%llu MiB of buffers for what is written at once, more than %llu: "
			"fewer workers, less depth or smaller blocks",
			(unsigned long long)(lanes_buffers(engine) / MIB),
			(unsigned long long)(LANES_BUFFERS_MAX / MIB));
	atomic_store(&engine->violated, false);
	threads_call(engine, make_lanes, &rc);
	return rc ? engine_say(fault, -ENOMEM, "no memory for %u workers", engine->job.workers) : 0;
}

static int finish(struct engine *engine, int rc, struct bench_fault *fault)
{
	threads_call(engine, drop_lanes, NULL);
	free(engine->job.ranges);
	engine->job = (struct job){ 0 };
	if (rc == -ENOMEM && !*fault->text)
		engine_say(fault, rc, "no memory for the figures");
	return rc;
}

int engine_run(struct engine *engine, const struct bench_point *point, struct verify *verify,
	       const struct engine_hooks *hooks, struct bench_result **result,
	       struct bench_fault *fault)
{
	int rc;

	*result = NULL;
	*fault->text = '\0';
	rc = prepare(engine, point, verify, fault);
	if (rc == 0)
		rc = control_mapped(engine, engine->job.range_bytes, fault);
	if (rc == 0)
		rc = engine_connect(engine, point->sessions, verify ? 1 : engine->setup->threads,
				    hooks, fault);
	if (rc == 0)
		rc = assemble(engine, fault);
	if (rc == 0)
		rc = warm_up(engine, hooks);
	if (rc == 0)
		rc = measure_all(engine, hooks, result);
	rc = finish(engine, rc, fault);
	if (rc != 0) {
		bench_result_free(*result);
		*result = NULL;
	}
	return rc;
}

/* Whether what POINT reads was written before, with the same kind of data. */
static bool filled(const struct engine *engine)
{
	bool all = engine->filled_with == engine->job.point->data;

	for (unsigned i = 0; i < engine->setup->lun_count; i++)
		all &= engine->filled[i] >= engine->job.range_bytes[i];
	return all;
}

static uint64_t errors(const struct engine *engine, struct bench_fault *fault)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < engine->thread_count; i++)
		if (engine->threads[i].error_count)
			engine_say(fault, -EIO, "filling: %s",
				   engine->threads[i].errors[0].error.text);
	for (unsigned i = 0; i < engine->session_count; i++)
		count += engine->sessions[i].count.errors;
	return count;
}

static int fill(struct engine *engine, const struct engine_hooks *hooks, struct bench_fault *fault)
{
	struct span span = { .measuring = true, .to_ns = UINT64_MAX, .first = true };
	struct engine_progress progress;
	int rc;

	note_fresh(engine, &progress, "filling", 0);
	span.from_ns = engine->job.tick_ns = initiator_now();
	threads_call(engine, span_begin, &span);
	rc = tick_until(engine, NULL, UINT64_MAX, span.from_ns, hooks, &progress);
	settle(engine, initiator_now());
	if (rc == 0 && stopped(engine))
		rc = engine_say(fault, -EINTR, "interrupted while filling");
	if (rc == 0 && errors(engine, fault) > 0)
		rc = -EIO;
	return rc;
}

/* Blocks are powers of two: whole ones of the largest are whole ones of all. */
static uint32_t fill_bytes(const struct engine *engine)
{
	uint32_t block = 0;

	for (unsigned i = 0; i < engine->setup->lun_count; i++)
		if (engine->luns[i].block_bytes > block)
			block = engine->luns[i].block_bytes;
	return workload_piece(FILL_BLOCK, engine->transfer_max, block);
}

int engine_fill(struct engine *engine, const struct bench_point *point,
		const struct engine_hooks *hooks, struct bench_fault *fault)
{
	struct bench_point all = { .name = "fill",
				   .stream_count = 1,
				   .sessions = point->sessions,
				   .data = point->data,
				   .range_bytes = point->range_bytes,
				   .max_bytes = 1,
				   .seed = point->seed };
	int rc;

	*fault->text = '\0';
	all.streams[0] = (struct bench_stream){
		.pattern = PATTERN_SEQUENTIAL,
		.block_bytes = fill_bytes(engine),
		.depth = FILL_DEPTH,
	};
	rc = prepare(engine, &all, NULL, fault);
	if (rc == 0 && filled(engine))
		return finish(engine, 0, fault);
	engine->job.fill = true;
	engine->job.bounded = false;
	for (unsigned i = 0; rc == 0 && i < engine->setup->lun_count; i++)
		engine->job.fill_bytes += engine->job.range_bytes[i];
	if (rc == 0)
		rc = engine_connect(engine, all.sessions, engine->setup->threads, hooks, fault);
	if (rc == 0)
		rc = assemble(engine, fault);
	if (rc == 0)
		rc = fill(engine, hooks, fault);
	for (unsigned i = 0; rc == 0 && i < engine->setup->lun_count; i++)
		engine->filled[i] = engine->job.range_bytes[i];
	if (rc == 0)
		engine->filled_with = point->data;
	return finish(engine, rc, fault);
}
