/* SPDX-License-Identifier: MIT */
/*
 * From what threads count to a result.
 *
 * Invariants:
 *  1. Every counted command is in exactly one interval of the series, in one session, one path,
 *     one side and the total. What is answered after the measured time is in the last interval.
 *  2. The mean in flight is weighted by time, and ends with the measured time.
 *
 * Not here: judging (verdict.c); which commands count (worker.c).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/engine_int.h"
#include "bench/host.h"

void tally_flight(struct thread *thread, uint64_t now_ns)
{
	uint64_t end = min_u64(now_ns, thread->to_ns);

	if (end <= thread->changed_ns)
		return;
	thread->flight_ns += thread->in_flight * (end - thread->changed_ns);
	thread->changed_ns = end;
}

void tally_good(struct command *command, uint64_t now_ns)
{
	struct thread *thread = command->worker->lane->thread;
	struct session *session = command->session;
	struct interval_part *part = thread->open;
	struct bench_counts *counts = &thread->counts[command->write];
	uint64_t latency = now_ns - command->intended_ns;

	part->ops[command->write]++;
	part->bytes[command->write] += command->length;
	part->portal_ops[session->portal]++;
	hist_add(&part->latency, latency);
	if (!command->counted)
		return;
	counts->ops++;
	counts->bytes += command->length;
	hist_add(&counts->latency, latency);
	hist_add(&counts->service, now_ns - command->io.sent_ns);
	session->count.ops++;
	session->count.bytes += command->length;
	hist_add(&session->count.latency, latency);
}

static uint64_t thread_cpu_ns(const struct thread *thread)
{
	struct timespec ts = { 0 };
	clockid_t clock;

	if (pthread_getcpuclockid(thread->id, &clock) != 0 || clock_gettime(clock, &ts) != 0)
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void process_cpu(double *user, double *kernel)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	*user = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
	*kernel = (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
}

void tally_reset(struct thread *thread, uint64_t from_ns, uint64_t to_ns)
{
	memset(thread->counts, 0, sizeof(thread->counts));
	memset(thread->parts, 0, sizeof(thread->parts));
	memset(&thread->lag, 0, sizeof(thread->lag));
	memset(thread->samples, 0, sizeof(thread->samples));
	memset(thread->zero_samples, 0, sizeof(thread->zero_samples));
	thread->error_count = 0;
	thread->from_ns = thread->changed_ns = from_ns;
	thread->to_ns = to_ns;
	thread->flight_ns = thread->flight_mark = 0;
	thread->cpu_ns = thread_cpu_ns(thread);
	thread->wait_s = host_wait_s(thread->tid);
	for (unsigned i = 0; i < thread->session_count; i++) {
		struct session *session = thread->sessions[i];
		struct bench_session old = session->count;

		memset(&session->count, 0, sizeof(session->count));
		session->count.portal = old.portal;
		session->count.thread = old.thread;
		memcpy(session->count.isid, old.isid, sizeof(old.isid));
		session->stalls_before = session->in.stalls;
	}
}

int tally_begin(struct engine *engine, uint64_t from_ns, struct bench_result **result)
{
	struct bench_result *r = calloc(1, sizeof(*r));
	struct timespec wall;

	*result = r;
	if (!r)
		return -ENOMEM;
	clock_gettime(CLOCK_REALTIME, &wall);
	r->setup = engine->setup;
	r->point = engine->job.point;
	r->started_wall_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
	r->sessions = calloc(engine->session_count, sizeof(struct bench_session));
	r->session_count = engine->session_count;
	r->threads = calloc(engine->thread_count, sizeof(struct bench_thread));
	r->thread_count = engine->thread_count;
	r->depth_asked = bench_point_depth(engine->setup, engine->job.point);
	r->cpus = host_cpus();
	r->local = engine->local;
	r->link_bytes_s = engine->link_bytes_s;
	process_cpu(&r->cpu_user_s, &r->cpu_system_s);
	engine->job.from_ns = engine->job.tick_ns = from_ns;
	engine->job.tick_cpu_s = r->cpu_user_s + r->cpu_system_s;
	return r->sessions && r->threads ? 0 : -ENOMEM;
}

/* In the thread: what it counted so far is the caller's, and it goes on with the other part. */
static void swap_parts(struct thread *thread, void *arg)
{
	struct interval_part *part = thread->open;

	(void)arg;
	tally_flight(thread, initiator_now());
	part->flight_ns = thread->flight_ns - thread->flight_mark;
	thread->flight_mark = thread->flight_ns;
	thread->open = thread->closed;
	thread->closed = part;
	memset(thread->open, 0, sizeof(*thread->open));
}

static struct bench_interval *add_interval(struct bench_result *result)
{
	struct bench_interval *series = result->series, *interval;
	unsigned count = result->series_count;

	/* Doubles: 1, 2, 4, 8, ... */
	if ((count & (count - 1)) == 0) {
		series = reallocarray(series, count ? 2 * (size_t)count : 1, sizeof(*series));
		if (!series)
			return NULL;
		result->series = series;
	}
	interval = &series[count];
	memset(interval, 0, sizeof(*interval));
	interval->portal_ops = calloc(result->setup->portal_count, sizeof(uint64_t));
	if (!interval->portal_ops)
		return NULL;
	result->series_count++;
	return interval;
}

/* Two parts become one. */
static void add_part(struct interval_part *sum, const struct interval_part *part)
{
	for (unsigned s = 0; s < 2; s++) {
		sum->ops[s] += part->ops[s];
		sum->bytes[s] += part->bytes[s];
	}
	for (unsigned p = 0; p < BENCH_PORTALS_MAX; p++)
		sum->portal_ops[p] += part->portal_ops[p];
	sum->flight_ns += part->flight_ns;
	sum->errors += part->errors;
	hist_merge(&sum->latency, &part->latency);
}

static void fill_interval(struct bench_interval *interval, const struct interval_part *sum,
			  const struct engine *engine)
{
	const struct hist *latency = &sum->latency;

	for (unsigned s = 0; s < 2; s++) {
		interval->ops[s] = sum->ops[s];
		interval->bytes[s] = sum->bytes[s];
		interval->ops[BENCH_TOTAL] += sum->ops[s];
		interval->bytes[BENCH_TOTAL] += sum->bytes[s];
	}
	memcpy(interval->portal_ops, sum->portal_ops,
	       engine->setup->portal_count * sizeof(uint64_t));
	interval->mean_ns = hist_mean(latency);
	interval->p50_ns = hist_percentile(latency, 50);
	interval->p99_ns = hist_percentile(latency, 99);
	interval->p999_ns = hist_percentile(latency, 99.9);
	interval->p9999_ns = hist_percentile(latency, 99.99);
	interval->max_ns = latency->max;
}

static void fill_progress(struct engine_progress *progress, const struct engine *engine,
			  const struct interval_part *sum, double seconds)
{
	for (unsigned s = 0; s < 2; s++)
		progress->iops[s] = (double)sum->ops[s] / seconds;
	progress->iops[BENCH_TOTAL] = progress->iops[0] + progress->iops[1];
	progress->bytes_s = (double)(sum->bytes[0] + sum->bytes[1]) / seconds;
	progress->p99_ns = hist_percentile(&sum->latency, 99);
	progress->in_flight = (unsigned)lround((double)sum->flight_ns / 1e9 / seconds);
	progress->errors += sum->errors;
	progress->sessions = engine->session_count;
	progress->sessions_up = 0;
	for (unsigned i = 0; i < engine->thread_count; i++)
		progress->sessions_up += atomic_load(&engine->threads[i].sessions_up);
}

int tally_interval(struct engine *engine, struct bench_result *result, uint64_t now_ns,
		   struct engine_progress *progress)
{
	struct job *job = &engine->job;
	double seconds = (double)(now_ns - job->tick_ns) / 1e9;
	double user, kernel;
	struct bench_interval *interval;
	struct interval_part *sum = calloc(1, sizeof(*sum));

	if (!sum)
		return -ENOMEM;
	threads_call(engine, swap_parts, NULL);
	for (unsigned i = 0; i < engine->thread_count; i++)
		add_part(sum, engine->threads[i].closed);
	process_cpu(&user, &kernel);
	progress->cpu = (user + kernel - job->tick_cpu_s) / seconds;
	fill_progress(progress, engine, sum, seconds);
	if (result) {
		interval = add_interval(result);
		if (!interval) {
			free(sum);
			return -ENOMEM;
		}
		fill_interval(interval, sum, engine);
		interval->from_s = (double)(job->tick_ns - job->from_ns) / 1e9;
		interval->to_s = (double)(now_ns - job->from_ns) / 1e9;
		interval->in_flight = (double)sum->flight_ns / 1e9 / seconds;
		interval->cpu = progress->cpu;
	}
	job->tick_ns = now_ns;
	job->tick_cpu_s = user + kernel;
	free(sum);
	return 0;
}

static void merge_counts(struct bench_counts *into, const struct bench_counts *from)
{
	into->ops += from->ops;
	into->bytes += from->bytes;
	hist_merge(&into->latency, &from->latency);
	hist_merge(&into->service, &from->service);
}

static void merge_error(struct bench_result *result, struct error_kind *kinds,
			const struct error_kind *error)
{
	unsigned i;

	for (i = 0; i < result->error_count; i++)
		if (strcmp(kinds[i].kind, error->kind) == 0)
			break;
	if (i == BENCH_ERRORS_MAX)
		return;
	if (i == result->error_count) {
		kinds[i] = *error;
		result->errors[i] = error->error;
		result->error_count++;
		return;
	}
	result->errors[i].count += error->error.count;
}

uint64_t tally_planned(const struct worker *worker, uint64_t to_ns)
{
	if (worker->step_ns <= 0 || worker->base_ns == 0 || worker->base_ns >= to_ns)
		return 0;
	return (uint64_t)ceil((double)(to_ns - worker->base_ns) / worker->step_ns);
}

static void merge_thread(struct bench_result *result, struct thread *thread,
			 struct error_kind *kinds, uint64_t to_ns)
{
	struct bench_thread *out = &result->threads[thread->index];
	double wait_s = host_wait_s(thread->tid);

	for (unsigned s = 0; s < 2; s++)
		merge_counts(&result->sides[s], &thread->counts[s]);
	for (unsigned i = 0; i < thread->error_count; i++)
		merge_error(result, kinds, &thread->errors[i]);
	for (unsigned i = 0; i < result->setup->lun_count; i++) {
		result->luns[i].samples += thread->samples[i];
		result->luns[i].zero_samples += thread->zero_samples[i];
	}
	for (unsigned l = 0; l < thread->lane_count; l++)
		for (unsigned w = 0; w < thread->lanes[l].worker_count; w++)
			result->planned += tally_planned(&thread->lanes[l].workers[w], to_ns);
	result->in_flight += (double)thread->flight_ns / 1e9 / result->measured_s;
	out->cpu = (double)(thread_cpu_ns(thread) - thread->cpu_ns) / 1e9 / result->measured_s;
	out->wait = wait_s < 0 || thread->wait_s < 0 ?
			    -1 :
			    (wait_s - thread->wait_s) / result->measured_s;
	out->lag = thread->lag;
}

static void merge_session(struct bench_result *result, const struct session *session, unsigned i)
{
	struct bench_session *out = &result->sessions[i];
	struct bench_path *path = &result->paths[session->portal];

	*out = session->count;
	out->stalls = session->in.stalls - session->stalls_before;
	path->ops += out->ops;
	path->bytes += out->bytes;
	path->errors += out->errors;
	path->retries += out->retries;
	path->reconnects += out->reconnects;
	hist_merge(&path->latency, &out->latency);
}

/* In the thread: paths may still come and go, but what they do is nobody's figure any more. */
static void stop_counting(struct thread *thread, void *arg)
{
	(void)arg;
	thread->measuring = false;
}

void tally_end(struct engine *engine, struct bench_result *result, uint64_t to_ns)
{
	struct error_kind kinds[BENCH_ERRORS_MAX];
	double user, kernel;

	threads_call(engine, stop_counting, NULL);
	result->measured_s = (double)(to_ns - engine->job.from_ns) / 1e9;
	process_cpu(&user, &kernel);
	result->cpu_user_s = user - result->cpu_user_s;
	result->cpu_system_s = kernel - result->cpu_system_s;
	memcpy(result->luns, engine->luns, sizeof(result->luns));
	for (unsigned i = 0; i < engine->thread_count; i++)
		merge_thread(result, &engine->threads[i], kinds, to_ns);
	for (unsigned s = 0; s < 2; s++)
		merge_counts(&result->sides[BENCH_TOTAL], &result->sides[s]);
	for (unsigned i = 0; i < engine->session_count; i++)
		merge_session(result, &engine->sessions[i], i);
	result->interrupted = atomic_load(&engine->interrupted);
}
