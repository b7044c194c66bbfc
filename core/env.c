/* SPDX-License-Identifier: MIT */
/*
 * What every binding of the seam shares: the deferred queue and the timers.
 *
 * Invariants:
 * 1. Timers fire by (due time, order of arming): the same calls give the same order anywhere.
 * 2. A callback finds its timer disarmed and its defer idle, and may free or queue either.
 * 3. env_run_timers() ends: what its callbacks arm has a later number and waits.
 *
 * Not here: clocks, disks and sleeping (core/loop.c, tests/fake/fake_env.c).
 */
#include "core/env.h"

static int timer_cmp(const struct env_timer *a, const struct env_timer *b)
{
	if (a->due_ns != b->due_ns)
		return a->due_ns < b->due_ns ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* RB_GENERATE_STATIC wants an __unused that libbsd does not define. */
RB_GENERATE_INTERNAL(env_timer_tree, env_timer, node, timer_cmp, static __attribute__((unused)))

void env_init(struct env *env, const struct env_ops *ops)
{
	env->ops = ops;
	STAILQ_INIT(&env->deferred);
	RB_INIT(&env->timers);
	env->timer_seq = 0;
}

void env_defer_cancel(struct env *env, struct env_defer *defer)
{
	if (!defer->queued)
		return;
	STAILQ_REMOVE(&env->deferred, defer, env_defer, link);
	defer->queued = false;
}

void env_run_deferred(struct env *env)
{
	struct env_defer *defer;

	while ((defer = STAILQ_FIRST(&env->deferred))) {
		STAILQ_REMOVE_HEAD(&env->deferred, link);
		defer->queued = false;
		defer->fn(defer);
	}
}

void env_timer_set(struct env *env, struct env_timer *timer, uint64_t delay_ns)
{
	uint64_t now_ns = env_now_ns(env);

	env_timer_cancel(env, timer);
	/* One short of UINT64_MAX, which says that no timer is armed. */
	timer->due_ns = now_ns + min_u64(delay_ns, UINT64_MAX - 1 - now_ns);
	timer->seq = env->timer_seq++;
	timer->armed = true;
	RB_INSERT(env_timer_tree, &env->timers, timer);
}

void env_timer_cancel(struct env *env, struct env_timer *timer)
{
	if (!timer->armed)
		return;
	RB_REMOVE(env_timer_tree, &env->timers, timer);
	timer->armed = false;
}

void env_run_timers(struct env *env)
{
	uint64_t limit = env->timer_seq;
	uint64_t now_ns = env_now_ns(env);
	struct env_timer *timer;

	while ((timer = RB_MIN(env_timer_tree, &env->timers))) {
		if (timer->due_ns > now_ns || timer->seq >= limit)
			break;
		env_timer_cancel(env, timer);
		timer->fn(timer);
	}
}

uint64_t env_next_timer_ns(struct env *env)
{
	struct env_timer *timer = RB_MIN(env_timer_tree, &env->timers);

	return timer ? timer->due_ns : UINT64_MAX;
}
