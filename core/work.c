/* SPDX-License-Identifier: MIT */
/*
 * Worker threads for what blocks: started when work waits and nobody is idle.
 *
 * Invariants:
 * 1. `mutex` guards `queued`, `finished`, the counts and `ending`; run() runs without it.
 * 2. done() runs on the loop's thread only, in the order in which the work ended.
 * 3. A work is in exactly one of: queued, running, finished; outstanding counts them all.
 * 4. Workers take no signal: those are for the thread that has the ev_signal watchers.
 *
 * Not here: disk operations as such (core/disk.c).
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "core/log.h"
#include "core/loop_int.h"

STAILQ_HEAD(work_list, env_work);

struct workers {
	struct loop_source source;
	struct loop *loop;
	pthread_mutex_t mutex;
	pthread_cond_t wanted;
	struct work_list queued;
	struct work_list finished;
	bool any_finished; /* atomic: read without the mutex each turn */
	bool ending;
	unsigned idle;
	unsigned queued_count;
	unsigned count;
	unsigned max;
	unsigned outstanding; /* the loop thread's own */
	pthread_t *threads;
};

/* With the mutex held. */
static void finish(struct workers *workers, struct env_work *work)
{
	STAILQ_INSERT_TAIL(&workers->finished, work, link);
	__atomic_store_n(&workers->any_finished, true, __ATOMIC_SEQ_CST);
}

static void *worker(void *arg)
{
	struct workers *workers = arg;
	struct env_work *work;

	pthread_mutex_lock(&workers->mutex);
	for (;;) {
		while (STAILQ_EMPTY(&workers->queued) && !workers->ending) {
			workers->idle++;
			pthread_cond_wait(&workers->wanted, &workers->mutex);
			workers->idle--;
		}
		work = STAILQ_FIRST(&workers->queued);
		if (!work)
			break;
		STAILQ_REMOVE_HEAD(&workers->queued, link);
		workers->queued_count--;
		pthread_mutex_unlock(&workers->mutex);
		work->run(work);
		pthread_mutex_lock(&workers->mutex);
		finish(workers, work);
		pthread_mutex_unlock(&workers->mutex);
		loop_wake(workers->loop);
		pthread_mutex_lock(&workers->mutex);
	}
	pthread_mutex_unlock(&workers->mutex);
	return NULL;
}

static int start_thread(struct workers *workers)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&workers->threads[workers->count], NULL, worker, workers);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		workers->count++;
	return err;
}

void workers_submit(struct workers *workers, struct env_work *work)
{
	static struct log_limit limit;
	bool more;
	int err;

	workers->outstanding++;
	pthread_mutex_lock(&workers->mutex);
	STAILQ_INSERT_TAIL(&workers->queued, work, link);
	workers->queued_count++;
	more = workers->queued_count > workers->idle && workers->count < workers->max;
	pthread_cond_signal(&workers->wanted);
	pthread_mutex_unlock(&workers->mutex);
	if (!more)
		return;
	err = start_thread(workers);
	if (!err)
		return;
	log_limited(&limit, LOG_L_WARN, "loop", "", "no-thread", "err=%d have=%u", err,
		    workers->count);
	if (workers->count > 0)
		return;
	/* Better a slow turn than work that never ends; nobody else can have taken it. */
	pthread_mutex_lock(&workers->mutex);
	STAILQ_REMOVE_HEAD(&workers->queued, link);
	workers->queued_count--;
	pthread_mutex_unlock(&workers->mutex);
	work->run(work);
	pthread_mutex_lock(&workers->mutex);
	finish(workers, work);
	pthread_mutex_unlock(&workers->mutex);
}

static bool workers_ready(struct loop_source *source)
{
	struct workers *workers = container_of(source, struct workers, source);

	return __atomic_load_n(&workers->any_finished, __ATOMIC_SEQ_CST);
}

static void workers_poll(struct loop_source *source)
{
	struct workers *workers = container_of(source, struct workers, source);
	struct work_list finished = STAILQ_HEAD_INITIALIZER(finished);
	struct env_work *work;

	if (!workers_ready(source))
		return;
	pthread_mutex_lock(&workers->mutex);
	__atomic_store_n(&workers->any_finished, false, __ATOMIC_SEQ_CST);
	STAILQ_CONCAT(&finished, &workers->finished);
	pthread_mutex_unlock(&workers->mutex);
	while ((work = STAILQ_FIRST(&finished))) {
		STAILQ_REMOVE_HEAD(&finished, link);
		workers->outstanding--;
		work->done(work);
	}
}

struct workers *workers_new(struct loop *loop, unsigned max)
{
	struct workers *workers = calloc(1, sizeof(*workers));

	if (!workers)
		return NULL;
	workers->threads = calloc(max, sizeof(*workers->threads));
	if (!workers->threads) {
		free(workers);
		return NULL;
	}
	workers->loop = loop;
	workers->max = max;
	pthread_mutex_init(&workers->mutex, NULL);
	pthread_cond_init(&workers->wanted, NULL);
	STAILQ_INIT(&workers->queued);
	STAILQ_INIT(&workers->finished);
	workers->source.poll = workers_poll;
	workers->source.ready = workers_ready;
	loop_source_add(loop, &workers->source);
	return workers;
}

unsigned workers_outstanding(const struct workers *workers)
{
	return workers->outstanding;
}

void workers_free(struct workers *workers)
{
	if (!workers)
		return;
	assert(workers->outstanding == 0);
	loop_source_remove(workers->loop, &workers->source);
	pthread_mutex_lock(&workers->mutex);
	workers->ending = true;
	pthread_cond_broadcast(&workers->wanted);
	pthread_mutex_unlock(&workers->mutex);
	for (unsigned i = 0; i < workers->count; i++)
		pthread_join(workers->threads[i], NULL);
	pthread_cond_destroy(&workers->wanted);
	pthread_mutex_destroy(&workers->mutex);
	free(workers->threads);
	free(workers);
}
