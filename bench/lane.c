/* SPDX-License-Identifier: MIT */
/*
 * Lanes: what a stream is on one thread, and its memory.
 *
 * Worker W of a stream is on thread W modulo the threads that have a session of the stream;
 * session I of a portal is on thread I modulo all. So every lane has every portal.
 *
 * Invariants:
 *  1. Paths of a lane are in the order of portals, then of sessions: failover prefers the first.
 *  2. What is written comes from memory that no read ever fills.
 *
 * Not here: what workers do (worker.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "bench/data.h"
#include "bench/engine_int.h"

#define FAILBACK_NS (2 * NS_PER_S)
#define PAGE 4096u

static unsigned stream_sessions(const struct engine *engine, const struct bench_stream *stream)
{
	unsigned each = engine->sessions_each;

	return stream->sessions && stream->sessions < each ? stream->sessions : each;
}

static unsigned stream_workers(const struct engine *engine, const struct bench_stream *stream)
{
	return stream->workers ? stream->workers :
				 stream_sessions(engine, stream) * engine->setup->portal_count;
}

/* Whether each command has a buffer of its own. */
static bool own_buffers(const struct engine *engine, const struct bench_stream *stream)
{
	return engine->job.verify ||
	       (stream->read_percent < 100 && engine->job.point->data == DATA_RANDOM);
}

uint64_t lanes_buffers(const struct engine *engine)
{
	const struct bench_point *point = engine->job.point;
	uint64_t sum = 0;

	for (unsigned i = 0; i < point->stream_count; i++) {
		const struct bench_stream *stream = &point->streams[i];

		if (own_buffers(engine, stream))
			sum += (uint64_t)stream_workers(engine, stream) * stream->depth *
			       align_up(stream->block_bytes, PAGE);
	}
	return sum;
}

static int lane_paths(struct lane *lane)
{
	struct thread *thread = lane->thread;
	unsigned each = stream_sessions(thread->engine, lane->stream);
	unsigned count = 0;

	lane->paths = calloc(thread->session_count, sizeof(*lane->paths));
	lane->sessions = calloc(thread->session_count, sizeof(struct session *));
	if (!lane->paths || !lane->sessions)
		return -ENOMEM;
	for (unsigned i = 0; i < thread->session_count; i++) {
		struct session *session = thread->sessions[i];

		if (session->index >= each)
			continue;
		lane->sessions[count] = session;
		path_set_up(&lane->paths[count], session->up, 0);
		count++;
	}
	path_group_init(&lane->group, thread->engine->setup->policy, lane->paths, count);
	lane->group.failback_ns = FAILBACK_NS;
	return 0;
}

/*
 * Jobs of a run have other data each, or a repeat would write what the target has seen; another
 * run with the same seed has the same. The lowest 28 bits are for the commands of all lanes.
 */
static uint64_t data_seed(const struct lane *lane)
{
	const struct engine *engine = lane->thread->engine;

	return engine->job.point->seed + ((uint64_t)engine->jobs << 28) +
	       ((uint64_t)(lane - lane->thread->lanes) << 24) + lane->thread->index;
}

/* The shared buffer for reads, one to write from, or one for each command. */
static int lane_buffers(struct lane *lane)
{
	const struct engine *engine = lane->thread->engine;
	size_t block = align_up(lane->stream->block_bytes, PAGE);
	bool own = own_buffers(engine, lane->stream);
	unsigned commands = lane->worker_count * lane->stream->depth;
	enum bench_data data = engine->job.point->data;
	uint64_t seed = data_seed(lane);

	lane->buffers_size = block * (1 + (own ? commands : 1));
	lane->buffers = mmap(NULL, lane->buffers_size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (lane->buffers == MAP_FAILED) {
		lane->buffers = NULL;
		return -ENOMEM;
	}
	lane->scratch = lane->buffers;
	for (unsigned i = 0; i < commands; i++) {
		lane->commands[i].own = lane->buffers + block * (1 + (own ? i : 0));
		if (own || i == 0)
			data_prepare(data, seed + i * 64, lane->commands[i].own, block);
	}
	return 0;
}

/* LANE's share of all workers: FIRST is the number of the stream's first one in the run. */
static int lane_workers(struct lane *lane, unsigned first, unsigned of_threads)
{
	struct thread *thread = lane->thread;
	const struct engine *engine = thread->engine;
	const struct bench_stream *stream = lane->stream;
	const struct bench_point *point = engine->job.point;
	unsigned workers = stream_workers(engine, stream);

	lane->worker_count = (workers + of_threads - 1 - thread->index) / of_threads;
	lane->workers = calloc(lane->worker_count, sizeof(struct worker));
	lane->commands = calloc((size_t)lane->worker_count * stream->depth, sizeof(struct command));
	if (lane->worker_count && (!lane->workers || !lane->commands || lane_buffers(lane) != 0))
		return -ENOMEM;
	for (unsigned i = 0; i < lane->worker_count; i++) {
		struct worker *worker = &lane->workers[i];
		unsigned number = thread->index + i * of_threads;

		worker->lane = lane;
		worker->number = first + number;
		worker->commands = &lane->commands[(size_t)i * stream->depth];
		worker->ramp_ns = point->ramp_ns * worker->number / engine->job.workers;
		if (stream->rate > 0)
			worker->step_ns = (double)NS_PER_S * workers / stream->rate;
		workload_init(&worker->load, stream, lane->range, number, workers,
			      point->seed + first);
		worker_init(worker);
	}
	return 0;
}

int lanes_new(struct thread *thread)
{
	struct engine *engine = thread->engine;
	const struct bench_point *point = engine->job.point;
	unsigned first = 0, dues = THREAD_DUES;

	for (unsigned i = 0; i < point->stream_count; i++) {
		const struct bench_stream *stream = &point->streams[i];
		unsigned sessions = stream_sessions(engine, stream);
		unsigned of_threads = sessions < engine->thread_count ? sessions :
									engine->thread_count;
		struct lane *lane = &thread->lanes[thread->lane_count];

		if (thread->index < of_threads) {
			thread->lane_count++;
			*lane = (struct lane){ .thread = thread,
					       .stream = stream,
					       .range = &engine->job.ranges[i] };
			if (lane_paths(lane) != 0 || lane_workers(lane, first, of_threads) != 0)
				return -ENOMEM;
			dues += lane->worker_count * (1 + stream->depth);
		}
		first += stream_workers(engine, stream);
	}
	return due_heap_grow(&thread->dues, dues);
}

void lanes_free(struct thread *thread)
{
	for (unsigned i = 0; i < thread->lane_count; i++) {
		struct lane *lane = &thread->lanes[i];

		if (lane->buffers)
			munmap(lane->buffers, lane->buffers_size);
		free(lane->commands);
		free(lane->workers);
		free(lane->paths);
		free(lane->sessions);
	}
	thread->lane_count = 0;
}

void lanes_set_up(struct session *session, bool up, uint64_t now_ns)
{
	struct thread *thread = session->thread;

	for (unsigned i = 0; i < thread->lane_count; i++) {
		struct lane *lane = &thread->lanes[i];

		for (unsigned k = 0; k < lane->group.count; k++)
			if (lane->sessions[k] == session)
				path_set_up(&lane->paths[k], up, now_ns);
	}
}

unsigned lanes_workers(const struct engine *engine)
{
	const struct bench_point *point = engine->job.point;
	unsigned sum = 0;

	for (unsigned i = 0; i < point->stream_count; i++)
		sum += stream_workers(engine, &point->streams[i]);
	return sum;
}
