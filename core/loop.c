/* SPDX-License-Identifier: MIT */
/*
 * The production binding of the seam: one libev loop, its disk engine and its workers.
 *
 *   on_check ──▶ watchers ──▶ on_prepare: timers, then { settle, submit } ──▶ sleep in epoll
 *      ▲                                                                        │
 *      └────────────────────────────────────────────────────────────────────────┘
 *
 * Invariants:
 * 1. The loop goes to sleep only after it has announced that (asleep, ring_notify) and then
 *    found every source empty: nothing handed over by another thread waits for a time-out.
 * 2. Time is read once a turn, after epoll; it is the same for all callbacks of the turn.
 * 3. A busy turn costs epoll_wait, one submit if there is something to submit, and what its
 *    watchers do; the eventfd is read only when it was written.
 * 4. Rounds in a turn are bounded: sockets are looked at even if the disks never pause.
 *
 * Not here: the engines (core/ring.c, core/disk.c), worker threads (core/work.c), run-queue
 * accounting (core/turn.c), signals (the program's main).
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"
#include "core/loop_int.h"
#include "core/ring.h"
#include "core/turn.h"

#define ROUNDS_MAX 8
#define WORK_THREADS 4

struct loop {
	struct env env;
	struct ev_loop *ev;
	ev_prepare prepare;
	ev_check check;
	ev_idle idle; /* active: do not sleep */
	ev_timer timer;
	ev_io wake;
	int wake_fd;
	bool asleep; /* atomic */
	bool running;
	bool stopping;
	bool drained; /* the eventfd was read in this turn */
	uint64_t now_ns;
	uint64_t armed_ns; /* what the ev_timer is set to; UINT64_MAX: not armed */
	struct ring *ring; /* or */
	struct disk_threads *disk_threads;
	struct workers *workers;
	STAILQ_HEAD(, loop_source) sources;
	STAILQ_HEAD(, loop_hook) hooks;
	struct turn_clock turn;
	struct loop_stats stats;
};

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static struct loop *loop_of(struct env *env)
{
	return container_of(env, struct loop, env);
}

/* Before and after loop_run() there are no turns, so nothing holds the time still. */
static uint64_t loop_now(struct env *env)
{
	struct loop *loop = loop_of(env);

	return loop->running ? loop->now_ns : read_clock(CLOCK_MONOTONIC);
}

static uint64_t loop_boottime(struct env *env)
{
	(void)env;
	return read_clock(CLOCK_BOOTTIME);
}

static void loop_random(struct env *env, void *buf, size_t len_bytes)
{
	uint8_t *out = buf;
	ssize_t n;

	(void)env;
	while (len_bytes > 0) {
		n = getrandom(out, len_bytes, 0);
		assert(n > 0 || errno == EINTR);
		if (n > 0) {
			out += n;
			len_bytes -= (size_t)n;
		}
	}
}

static void loop_disk_submit(struct env *env, struct env_disk_op *op)
{
	struct loop *loop = loop_of(env);

	loop->stats.disk_ops++;
	if (loop->ring)
		ring_submit(loop->ring, op);
	else
		disk_threads_submit(loop->disk_threads, op);
}

static void loop_work_submit(struct env *env, struct env_work *work)
{
	workers_submit(loop_of(env)->workers, work);
}

static const struct env_ops loop_ops = {
	.now_ns = loop_now,
	.boottime_ns = loop_boottime,
	.random = loop_random,
	.disk_submit = loop_disk_submit,
	.work_submit = loop_work_submit,
};

static void drain_wake(struct loop *loop)
{
	uint64_t count;

	if (loop->drained)
		return;
	loop->drained = true;
	loop->stats.syscalls++;
	/* Not blocking; nothing to read is as good. */
	if (read(loop->wake_fd, &count, sizeof(count)) < 0)
		return;
}

static void on_wake(struct ev_loop *ev, ev_io *w, int revents)
{
	(void)ev;
	(void)revents;
	drain_wake(w->data);
}

static void on_timer(struct ev_loop *ev, ev_timer *w, int revents)
{
	struct loop *loop = w->data;

	(void)ev;
	(void)revents;
	loop->armed_ns = UINT64_MAX;
}

static void on_idle(struct ev_loop *ev, ev_idle *w, int revents)
{
	(void)ev;
	(void)w;
	(void)revents;
}

static void turn_begin(struct loop *loop)
{
	__atomic_store_n(&loop->asleep, false, __ATOMIC_RELAXED);
	loop->drained = false;
	loop->now_ns = read_clock(CLOCK_MONOTONIC);
	loop->stats.turns++;
	loop->stats.syscalls += turn_begins(&loop->turn, loop->now_ns);
	if (!loop->ring)
		return;
	/*
	 * Completions that came during the sleep wrote to the eventfd, often only after
	 * epoll had returned: reading it now saves an empty turn.
	 */
	if (ring_completions(loop->ring))
		drain_wake(loop);
	ring_notify(loop->ring, false);
}

/* The highest priority: before any other watcher of the turn. */
static void on_check(struct ev_loop *ev, ev_check *w, int revents)
{
	struct loop *loop = w->data;

	(void)revents;
	if (ev_is_active(&loop->idle))
		ev_idle_stop(ev, &loop->idle);
	turn_begin(loop);
}

static void settle(struct loop *loop)
{
	struct loop_source *source, *next;
	struct loop_hook *hook;

	if (loop->ring)
		ring_reap(loop->ring);
	STAILQ_FOREACH_SAFE(source, &loop->sources, link, next)
		source->poll(source);
	for (;;) {
		env_run_deferred(&loop->env);
		hook = STAILQ_FIRST(&loop->hooks);
		if (!hook)
			return;
		STAILQ_REMOVE_HEAD(&loop->hooks, link);
		hook->queued = false;
		hook->fn(hook);
	}
}

static bool anything_ready(struct loop *loop)
{
	struct loop_source *source;

	if (loop->ring && ring_ready(loop->ring))
		return true;
	STAILQ_FOREACH(source, &loop->sources, link)
		if (source->ready(source))
			return true;
	return false;
}

/* Announce sleep; take it back and return false if there is something to do after all. */
static bool lie_down(struct loop *loop)
{
	if (loop->ring)
		ring_notify(loop->ring, true);
	__atomic_store_n(&loop->asleep, true, __ATOMIC_SEQ_CST);
	if (!anything_ready(loop))
		return true;
	__atomic_store_n(&loop->asleep, false, __ATOMIC_RELAXED);
	if (loop->ring)
		ring_notify(loop->ring, false);
	return false;
}

/*
 * Timers mostly move to later: one that is set too early is left alone, fires once
 * for nothing, and is set anew then.
 */
static void arm_timer(struct loop *loop)
{
	uint64_t next_ns = env_next_timer_ns(&loop->env);
	uint64_t delay_ns = next_ns > loop->now_ns ? next_ns - loop->now_ns : 0;

	if (next_ns >= loop->armed_ns)
		return;
	ev_timer_stop(loop->ev, &loop->timer);
	/* libev counts from the time of its last look, which was just before now_ns. */
	ev_timer_set(&loop->timer, (double)delay_ns / (double)NS_PER_S, 0.);
	ev_timer_start(loop->ev, &loop->timer);
	loop->armed_ns = next_ns;
}

/* Whether a disk operation or work has yet to be done. */
static bool busy(const struct loop *loop)
{
	return workers_outstanding(loop->workers) > 0 ||
	       (loop->ring ? ring_busy(loop->ring) : disk_threads_busy(loop->disk_threads));
}

static void on_prepare(struct ev_loop *ev, ev_prepare *w, int revents)
{
	struct loop *loop = w->data;
	bool down = false;

	(void)revents;
	env_run_timers(&loop->env);
	for (unsigned i = 0; i < ROUNDS_MAX && !down; i++) {
		settle(loop);
		if (loop->ring)
			loop->stats.syscalls += ring_flush(loop->ring);
		down = lie_down(loop);
	}
	if (!down)
		ev_idle_start(ev, &loop->idle);
	if (loop->stopping && !busy(loop))
		ev_break(ev, EVBREAK_ALL);
	arm_timer(loop);
	loop->stats.syscalls += 1 + turn_ends(&loop->turn, read_clock(CLOCK_MONOTONIC));
}

struct env *loop_env(struct loop *loop)
{
	return &loop->env;
}

struct ev_loop *loop_ev(struct loop *loop)
{
	return loop->ev;
}

void loop_run(struct loop *loop)
{
	turn_clock_open(&loop->turn);
	ev_now_update(loop->ev);
	loop->running = true;
	turn_begin(loop);
	ev_run(loop->ev, 0);
	/* What was announced for a sleep that did not come. */
	__atomic_store_n(&loop->asleep, false, __ATOMIC_RELAXED);
	loop->running = false;
	loop->stopping = false;
	turn_clock_close(&loop->turn);
}

void loop_stop(struct loop *loop)
{
	loop->stopping = true;
}

int loop_wake_fd(const struct loop *loop)
{
	return loop->wake_fd;
}

void loop_wake(struct loop *loop)
{
	uint64_t one = 1;
	ssize_t n;

	if (!__atomic_exchange_n(&loop->asleep, false, __ATOMIC_SEQ_CST))
		return;
	do
		n = write(loop->wake_fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
}

void loop_source_add(struct loop *loop, struct loop_source *source)
{
	STAILQ_INSERT_TAIL(&loop->sources, source, link);
}

void loop_source_remove(struct loop *loop, struct loop_source *source)
{
	STAILQ_REMOVE(&loop->sources, source, loop_source, link);
}

void loop_at_turn_end(struct loop *loop, struct loop_hook *hook)
{
	if (hook->queued)
		return;
	hook->queued = true;
	STAILQ_INSERT_TAIL(&loop->hooks, hook, link);
}

void loop_hook_cancel(struct loop *loop, struct loop_hook *hook)
{
	if (!hook->queued)
		return;
	hook->queued = false;
	STAILQ_REMOVE(&loop->hooks, hook, loop_hook, link);
}

const char *loop_disk_engine(const struct loop *loop)
{
	return loop->ring ? "io_uring" : "threads";
}

void loop_stats(const struct loop *loop, struct loop_stats *stats)
{
	*stats = loop->stats;
	stats->turn_max_ns = loop->turn.max_ns;
	stats->slow_turn_ns = loop->turn.slow_ns;
	stats->slow_turn_at_ns = loop->turn.slow_at_ns;
	stats->slow_turns = loop->turn.slow_turns;
}

void loop_count_syscalls(struct loop *loop, unsigned n)
{
	loop->stats.syscalls += n;
}

static int open_engine(struct loop *loop, enum loop_engine engine, unsigned depth)
{
	if (engine != LOOP_ENGINE_THREADS)
		loop->ring = ring_new(depth, loop->wake_fd);
	if (loop->ring)
		return 0;
	if (engine == LOOP_ENGINE_RING)
		return -1;
	if (engine == LOOP_ENGINE_AUTO)
		log_line(LOG_L_INFO, "loop", "", "no-io_uring", "err=%d instead=threads", errno);
	loop->disk_threads = disk_threads_new(loop, depth);
	return loop->disk_threads ? 0 : -1;
}

static void start_watchers(struct loop *loop)
{
	ev_prepare_init(&loop->prepare, on_prepare);
	ev_check_init(&loop->check, on_check);
	ev_idle_init(&loop->idle, on_idle);
	ev_timer_init(&loop->timer, on_timer, 0., 0.);
	ev_io_init(&loop->wake, on_wake, loop->wake_fd, EV_READ);
	loop->prepare.data = loop->check.data = loop->timer.data = loop->wake.data = loop;
	/* After all others, so that what they start in their own prepare watchers counts. */
	ev_set_priority(&loop->prepare, EV_MINPRI);
	ev_set_priority(&loop->check, EV_MAXPRI);
	ev_prepare_start(loop->ev, &loop->prepare);
	ev_check_start(loop->ev, &loop->check);
	ev_io_start(loop->ev, &loop->wake);
}

struct loop *loop_new_with(enum loop_engine engine, unsigned depth)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int err;

	if (!loop)
		return NULL;
	env_init(&loop->env, &loop_ops);
	STAILQ_INIT(&loop->sources);
	STAILQ_INIT(&loop->hooks);
	loop->armed_ns = UINT64_MAX;
	turn_clock_init(&loop->turn);
	loop->ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
	loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!loop->ev || loop->wake_fd < 0)
		goto out;
	start_watchers(loop);
	loop->workers = workers_new(loop, WORK_THREADS);
	if (loop->workers && !open_engine(loop, engine, depth))
		return loop;
out:
	err = errno ? errno : ENOMEM;
	loop_free(loop);
	errno = err;
	return NULL;
}

struct loop *loop_new(void)
{
	return loop_new_with(LOOP_ENGINE_AUTO, LOOP_DISK_DEPTH);
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	assert(STAILQ_EMPTY(&loop->env.deferred) && STAILQ_EMPTY(&loop->hooks));
	ring_free(loop->ring);
	disk_threads_free(loop->disk_threads);
	workers_free(loop->workers);
	assert(STAILQ_EMPTY(&loop->sources));
	if (loop->ev)
		ev_loop_destroy(loop->ev);
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
	free(loop);
}
