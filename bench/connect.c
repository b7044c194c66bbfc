/* SPDX-License-Identifier: MIT */
/*
 * As many sessions as a point wants, dealt over threads.
 *
 * Invariants:
 *  1. Session I of every portal is on thread I modulo all: each thread has every portal, so that
 *     a lost path's commands find another one. More threads than sessions of a portal would
 *     break that, and are not started.
 *  2. Sessions stay as they are while neither their number nor that of threads changes.
 *
 * Not here: logging in again (session.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/engine_int.h"

#define CONNECT_NS (15 * NS_PER_S)
#define LEAVE_NS (2 * NS_PER_S)
#define SLICE_NS (100 * NS_PER_MS)
#define RETURN_NS (5 * NS_PER_S) /* longer than a session waits before it logs in again */

static unsigned sessions_up(const struct engine *engine)
{
	unsigned up = 0;

	for (unsigned i = 0; i < engine->thread_count; i++)
		up += atomic_load(&engine->threads[i].sessions_up);
	return up;
}

static void leave_all(struct thread *thread, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < thread->session_count; i++)
		session_leave(thread->sessions[i]);
}

static void forget_all(struct thread *thread, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < thread->session_count; i++) {
		due_clear(&thread->dues, &thread->sessions[i]->due);
		initiator_fini(&thread->sessions[i]->in);
	}
}

void engine_disconnect(struct engine *engine)
{
	uint64_t end = initiator_now() + LEAVE_NS;

	threads_call(engine, leave_all, NULL);
	while (sessions_up(engine) > 0 && initiator_now() < end)
		engine_wait(engine, initiator_now() + SLICE_NS);
	threads_call(engine, forget_all, NULL);
	threads_stop(engine);
	free(engine->sessions);
	engine->sessions = NULL;
	engine->session_count = engine->sessions_each = 0;
}

static void open_all(struct thread *thread, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < thread->session_count; i++)
		session_open(thread->sessions[i]);
}

static int deal_sessions(struct engine *engine, unsigned each)
{
	unsigned portals = engine->setup->portal_count;

	assert(each > 0 && engine->thread_count > 0);
	engine->sessions = calloc((size_t)portals * each, sizeof(struct session));
	if (!engine->sessions)
		return -ENOMEM;
	engine->session_count = portals * each;
	engine->sessions_each = each;
	for (unsigned i = 0; i < engine->thread_count; i++) {
		struct thread *thread = &engine->threads[i];

		thread->sessions = calloc(engine->session_count, sizeof(struct session *));
		if (!thread->sessions)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < engine->session_count; i++) {
		struct thread *thread = &engine->threads[i % each % engine->thread_count];

		session_init(&engine->sessions[i], thread, i / each, i % each);
		thread->sessions[thread->session_count++] = &engine->sessions[i];
	}
	return 0;
}

/* In the thread: one of its sessions that is not up, and why. */
static void find_trouble(struct thread *thread, void *arg)
{
	(void)arg;
	thread->trouble[0] = '\0';
	for (unsigned i = 0; i < thread->session_count; i++) {
		const struct session *session = thread->sessions[i];

		if (session->up)
			continue;
		snprintf(thread->trouble, sizeof(thread->trouble), "%.100s: %s",
			 thread->engine->setup->portals[session->portal].address,
			 *session->reason ? session->reason : "no answer to the login");
	}
}

/* One of the sessions that are not up, and why. */
static const char *trouble_of(struct engine *engine)
{
	threads_call(engine, find_trouble, NULL);
	for (unsigned i = 0; i < engine->thread_count; i++)
		if (*engine->threads[i].trouble)
			return engine->threads[i].trouble;
	return "";
}

int engine_lost(struct engine *engine, struct bench_fault *fault)
{
	uint64_t now = initiator_now(), end = now + RETURN_NS;

	for (; sessions_up(engine) == 0; now = initiator_now()) {
		if (now >= end || atomic_load(&engine->interrupted))
			return engine_say(fault, -ENOTCONN, "the target was lost: %s",
					  trouble_of(engine));
		engine_wait(engine, now + SLICE_NS);
	}
	return 0;
}

static int wait_for_sessions(struct engine *engine, const struct engine_hooks *hooks,
			     struct bench_fault *fault)
{
	struct engine_progress progress = { .phase = "connecting",
					    .sessions = engine->session_count };
	uint64_t now = initiator_now(), end = now + CONNECT_NS, tick = now + NS_PER_S;

	while ((progress.sessions_up = sessions_up(engine)) < engine->session_count) {
		now = initiator_now();
		if (atomic_load(&engine->interrupted))
			return engine_say(fault, -EINTR, "interrupted while connecting");
		if (now >= end)
			break;
		if (now >= tick && hooks && hooks->progress)
			hooks->progress(hooks->arg, &progress);
		tick += now >= tick ? NS_PER_S : 0;
		engine_wait(engine, now + SLICE_NS);
	}
	if (progress.sessions_up == engine->session_count)
		return 0;
	return engine_say(fault, -ECONNREFUSED, "only %u of %u sessions came up: %s",
			  progress.sessions_up, engine->session_count, trouble_of(engine));
}

int engine_connect(struct engine *engine, unsigned each, unsigned threads,
		   const struct engine_hooks *hooks, struct bench_fault *fault)
{
	int rc;

	each = each ? each : 1;
	threads = threads ? threads : 1;
	if (threads > each)
		threads = each;
	if (each * engine->setup->portal_count > BENCH_SESSIONS_MAX)
		return engine_say(fault, -EINVAL, "%u sessions on each of %u portals: more than %u",
				  each, engine->setup->portal_count, BENCH_SESSIONS_MAX);
	if (engine->sessions_each != each || engine->thread_count != threads ||
	    engine->tapped != (engine->job.verify != NULL)) {
		engine_disconnect(engine);
		engine->tapped = engine->job.verify != NULL;
		rc = threads_make(engine, threads, fault);
		if (rc == 0 && deal_sessions(engine, each) != 0)
			rc = engine_say(fault, -ENOMEM, "no memory for %u sessions", each);
		if (rc == 0)
			rc = threads_start(engine, fault);
		if (rc != 0) {
			engine_disconnect(engine);
			return rc;
		}
		threads_call(engine, open_all, NULL);
	}
	return wait_for_sessions(engine, hooks, fault);
}
