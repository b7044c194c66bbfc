/* SPDX-License-Identifier: MIT */
/*
 * A thread of the engine: a libev loop, a clock that is precise to the microsecond, and calls
 * from the caller's thread.
 *
 *   turn:  epoll ─▶ check: what is due ─▶ sockets ─▶ prepare: sockets are written, timer is set
 *
 * Invariants:
 *  1. What is due runs in every turn, however busy the sockets are.
 *  2. A call runs in the loop, between events; threads_call() returns after the last of them, so
 *     caller and thread never look at a thread's memory together.
 *  3. libev's own timers are not used: they are precise to a millisecond, our latencies are not.
 *
 * Not here: what sessions and workers do (session.c, worker.c).
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench/engine_int.h"

#define PROBE_NS (5 * NS_PER_MS) /* a p99 in 10 s takes 1000 of them */

/* Is this loop late? Once in a while something is due for no other purpose. */
static void probe(struct due *due, uint64_t now_ns)
{
	struct thread *thread = container_of(due, struct thread, probe);

	if (thread->measuring && now_ns < thread->to_ns)
		hist_add(&thread->lag, due_lag(due, thread->busy_until_ns, now_ns));
	due_set(&thread->dues, due, now_ns + PROBE_NS);
}

static void housekeeping(struct due *due, uint64_t now_ns)
{
	struct thread *thread = container_of(due, struct thread, housekeeping);
	uint64_t timeout = thread->engine->timeout_ns;
	uint64_t period = min_u64(max_u64(timeout / 8, 5 * NS_PER_MS), 100 * NS_PER_MS);

	sessions_look_for_timeouts(thread, now_ns);
	workers_look_for_timeouts(thread, now_ns);
	due_set(&thread->dues, due, now_ns + period);
}

static void on_check(struct ev_loop *ev, struct ev_check *check, int revents)
{
	struct thread *thread = container_of(check, struct thread, check);
	uint64_t now = initiator_now();

	(void)ev, (void)revents;
	if (due_next(&thread->dues) <= now)
		due_run(&thread->dues, now);
}

static void on_prepare(struct ev_loop *ev, struct ev_prepare *prepare, int revents)
{
	struct thread *thread = container_of(prepare, struct thread, prepare);
	uint64_t next = due_next(&thread->dues);
	struct itimerspec when = { 0 };

	(void)ev, (void)revents;
	thread->busy_until_ns = initiator_now();
	if (next == thread->armed_ns)
		return;
	thread->armed_ns = next;
	if (next != UINT64_MAX) {
		when.it_value.tv_sec = (time_t)(next / NS_PER_S);
		when.it_value.tv_nsec = (long)(next % NS_PER_S);
	}
	timerfd_settime(thread->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Setting it anew in on_prepare() makes it unreadable: no read is needed. */
static void on_timer(struct ev_loop *ev, struct ev_io *io, int revents)
{
	struct thread *thread = container_of(io, struct thread, timer);

	(void)ev, (void)revents;
	thread->armed_ns = 0;
}

static void on_async(struct ev_loop *ev, struct ev_async *async, int revents)
{
	struct thread *thread = container_of(async, struct thread, async);
	void (*call)(struct thread *, void *) = atomic_exchange(&thread->call, NULL);

	(void)ev, (void)revents;
	if (!call)
		return;
	call(thread, thread->call_arg);
	sem_post(&thread->done);
}

void threads_call(struct engine *engine, void (*fn)(struct thread *, void *), void *arg)
{
	for (unsigned i = 0; i < engine->thread_count; i++) {
		struct thread *thread = &engine->threads[i];

		if (!thread->running)
			continue;
		thread->call_arg = arg;
		atomic_store(&thread->call, fn);
		ev_async_send(thread->ev, &thread->async);
	}
	for (unsigned i = 0; i < engine->thread_count; i++)
		while (engine->threads[i].running && sem_wait(&engine->threads[i].done) != 0 &&
		       errno == EINTR)
			;
}

static void *thread_main(void *arg)
{
	struct thread *thread = arg;

	thread->tid = gettid();
	ev_run(thread->ev, 0);
	return NULL;
}

static void leave_loop(struct thread *thread, void *arg)
{
	(void)arg;
	ev_break(thread->ev, EVBREAK_ALL);
}

static int thread_init(struct thread *thread, struct engine *engine, unsigned index)
{
	uint64_t now = initiator_now();

	thread->engine = engine;
	thread->index = index;
	thread->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (thread->timer_fd < 0)
		return -errno;
	thread->ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
	if (!thread->ev || due_heap_grow(&thread->dues, THREAD_DUES) != 0)
		return -ENOMEM;
	sem_init(&thread->done, 0, 0);
	TAILQ_INIT(&thread->waiting);
	thread->open = &thread->parts[0];
	thread->closed = &thread->parts[1];
	thread->quiet = true;
	atomic_store(&thread->idle, true);
	initiator_loop_init(&thread->loop, thread->ev);
	ev_prepare_init(&thread->prepare, on_prepare);
	ev_set_priority(&thread->prepare, EV_MINPRI); /* after sockets are written */
	ev_prepare_start(thread->ev, &thread->prepare);
	ev_check_init(&thread->check, on_check);
	ev_set_priority(&thread->check, EV_MAXPRI);
	ev_check_start(thread->ev, &thread->check);
	ev_io_init(&thread->timer, on_timer, thread->timer_fd, EV_READ);
	ev_io_start(thread->ev, &thread->timer);
	ev_async_init(&thread->async, on_async);
	ev_async_start(thread->ev, &thread->async);
	thread->probe.run = probe;
	thread->housekeeping.run = housekeeping;
	due_set(&thread->dues, &thread->probe, now + PROBE_NS);
	due_set(&thread->dues, &thread->housekeeping, now + PROBE_NS);
	return 0;
}

static void thread_fini(struct thread *thread)
{
	if (thread->ev)
		ev_loop_destroy(thread->ev);
	if (thread->timer_fd >= 0)
		close(thread->timer_fd);
	due_heap_fini(&thread->dues);
	free(thread->sessions);
}

/* Signals are for the caller's thread; SIGPIPE would come from libiscsi's writev. */
static int spawn(struct thread *thread)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread->id, NULL, thread_main, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int threads_make(struct engine *engine, unsigned count, struct bench_fault *fault)
{
	int rc = 0;

	engine->threads = calloc(count, sizeof(struct thread));
	if (!engine->threads)
		return engine_say(fault, -ENOMEM, "no memory for %u threads", count);
	engine->thread_count = count;
	for (unsigned i = 0; i < count; i++)
		engine->threads[i].timer_fd = -1;
	for (unsigned i = 0; i < count && rc == 0; i++)
		rc = thread_init(&engine->threads[i], engine, i);
	return rc ? engine_say(fault, rc, "no room for %u threads: %s", count, strerror(-rc)) : 0;
}

int threads_start(struct engine *engine, struct bench_fault *fault)
{
	for (unsigned i = 0; i < engine->thread_count; i++) {
		int rc = spawn(&engine->threads[i]);

		if (rc != 0)
			return engine_say(fault, rc, "cannot start %u threads: %s",
					  engine->thread_count, strerror(-rc));
		engine->threads[i].running = true;
	}
	return 0;
}

void threads_stop(struct engine *engine)
{
	threads_call(engine, leave_loop, NULL);
	for (unsigned i = 0; i < engine->thread_count; i++) {
		if (engine->threads[i].running)
			pthread_join(engine->threads[i].id, NULL);
		thread_fini(&engine->threads[i]);
	}
	free(engine->threads);
	engine->threads = NULL;
	engine->thread_count = 0;
}
