/* SPDX-License-Identifier: MIT */
/*
 * The fault filter: rules, and what each kind does to an io.
 *
 * Invariants:
 *  1. An io that no rule acts on goes down unchanged in the same call.
 *  2. A rule's `held` are in the order of their coming; since each waits the same
 *     time, its timers fire in that order too.
 *  3. A used-up rule acts no more and is freed with the last io that it holds.
 *  4. State and size of the filter are those of the device below.
 *
 * Not here: who may set rules (the control command, where faults are enabled).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/fault.h"

struct rule {
	TAILQ_ENTRY(rule) link;
	struct fault *fault;
	struct fault_rule what;
	uint64_t id;
	uint64_t hits;
	struct io_list held;
	unsigned held_count;
};

struct fault {
	struct blk blk;
	struct blk *lower;
	struct blk_watch watch;
	TAILQ_HEAD(, rule) rules;
};

static void fault_submit(struct blk *blk, struct io *io);
static void fault_close(struct blk *blk);
static void fault_reopen(struct blk *blk, blk_reopen_fn *done, void *arg);

static const struct blk_ops fault_ops = {
	.driver = "fault",
	.submit = fault_submit,
	.close = fault_close,
	.reopen = fault_reopen,
};

struct fault *fault_of(struct blk *blk)
{
	return blk->ops == &fault_ops ? container_of(blk, struct fault, blk) : NULL;
}

/* --- going on --- */

static bool used_up(const struct rule *rule)
{
	return rule->what.count && rule->hits >= rule->what.count;
}

static void rule_free(struct rule *rule)
{
	TAILQ_REMOVE(&rule->fault->rules, rule, link);
	free(rule);
}

static void hold(struct rule *rule, struct io *io)
{
	STAILQ_INSERT_TAIL(&rule->held, io, link);
	rule->held_count++;
}

static struct io *unhold(struct rule *rule)
{
	struct io *io = STAILQ_FIRST(&rule->held);

	STAILQ_REMOVE_HEAD(&rule->held, link);
	rule->held_count--;
	return io;
}

static void delay_over(struct env_timer *timer)
{
	struct io *io = container_of(timer, struct io, leaf.timer);
	struct rule *rule = io->leaf.arg;
	struct fault *fault = rule->fault;

	assert(STAILQ_FIRST(&rule->held) == io);
	unhold(rule);
	if (used_up(rule) && rule->held_count == 0)
		rule_free(rule);
	blk_pass(fault->lower, io, NULL, NULL);
}

static void delay(struct rule *rule, struct io *io)
{
	hold(rule, io);
	io->leaf.arg = rule;
	io->leaf.timer.armed = false;
	io->leaf.timer.fn = delay_over;
	env_timer_set(rule->fault->blk.env, &io->leaf.timer, rule->what.delay_ns);
}

/* --- torn writes --- */

/* The part that reaches the device. Taken from the heap: a fault is no data path. */
struct torn {
	struct io part;
	struct io *whole;
	struct iovec iov[];
};

static void torn_done(struct io *part, void *arg)
{
	struct torn *torn = arg;
	struct io *whole = torn->whole;

	(void)part;
	free(torn);
	io_done(whole, -EIO);
}

static void tear(struct rule *rule, struct io *io)
{
	struct fault *fault = rule->fault;
	uint64_t length =
		align_down(min_u64(rule->what.torn_bytes, io->length), fault->blk.block_size);
	uint64_t left = length;
	unsigned count = 0;
	struct torn *torn = NULL;

	if (length > 0)
		torn = malloc(sizeof(*torn) + io->iov_count * sizeof(torn->iov[0]));
	if (!torn) {
		io_done(io, -EIO);
		return;
	}
	for (; left > 0; count++) {
		torn->iov[count] = io->iov[count];
		torn->iov[count].iov_len = min_u64(left, io->iov[count].iov_len);
		left -= torn->iov[count].iov_len;
	}
	torn->whole = io;
	io_init(&torn->part, IO_WRITE, io->offset, length, torn->iov, count);
	torn->part.flags = io->flags;
	torn->part.purpose = io->purpose;
	blk_submit(fault->lower, &torn->part, torn_done, torn);
}

/* --- which rule --- */

static bool overlaps(const struct fault_rule *what, const struct io *io)
{
	if (what->length == 0 || io->op == IO_FLUSH)
		return true;
	return io->offset < what->offset + what->length && what->offset < io->offset + io->length;
}

static bool chance(struct fault *fault, uint32_t per_million)
{
	uint32_t value;

	if (per_million == 0 || per_million >= 1000000)
		return true;
	env_random(fault->blk.env, &value, sizeof(value));
	return value % 1000000 < per_million;
}

static struct rule *find(struct fault *fault, const struct io *io)
{
	struct rule *rule;

	TAILQ_FOREACH(rule, &fault->rules, link) {
		const struct fault_rule *what = &rule->what;

		if (!used_up(rule) && what->ops & 1u << io->op &&
		    (what->purposes == 0 || what->purposes & 1u << io->purpose) &&
		    overlaps(what, io) && chance(fault, what->probability))
			return rule;
	}
	return NULL;
}

static void fault_submit(struct blk *blk, struct io *io)
{
	struct fault *fault = container_of(blk, struct fault, blk);
	struct rule *rule = find(fault, io);

	if (!rule) {
		blk_pass(fault->lower, io, NULL, NULL);
		return;
	}
	rule->hits++;
	switch (rule->what.kind) {
	case FAULT_ERROR:
		io_done(io, rule->what.error);
		break;
	case FAULT_DELAY:
		delay(rule, io);
		break;
	case FAULT_STUCK:
		hold(rule, io);
		break;
	case FAULT_TORN:
		tear(rule, io);
		break;
	}
	if (used_up(rule) && rule->held_count == 0)
		rule_free(rule);
}

/* --- rules --- */

static bool makes_sense(const struct fault_rule *what)
{
	if (what->ops == 0 || what->ops >= 1u << IO_OP_COUNT ||
	    what->purposes >= 1u << IO_PURPOSE_COUNT)
		return false;
	if (what->length > UINT64_MAX - what->offset || what->probability > 1000000)
		return false;
	switch (what->kind) {
	case FAULT_ERROR:
		for (unsigned op = 0; op < IO_OP_COUNT; op++)
			if (what->ops & 1u << op && !io_error_allowed(op, what->error))
				return false;
		return what->error < 0;
	case FAULT_TORN:
		return what->ops == 1u << IO_WRITE;
	case FAULT_DELAY:
	case FAULT_STUCK:
		return true;
	}
	return false;
}

uint64_t fault_add(struct fault *fault, const struct fault_rule *rule)
{
	static _Atomic uint64_t last_id;
	struct rule *own;

	if (!makes_sense(rule))
		return 0;
	own = calloc(1, sizeof(*own));
	if (!own)
		return 0;
	own->fault = fault;
	own->what = *rule;
	own->id = atomic_fetch_add(&last_id, 1) + 1;
	STAILQ_INIT(&own->held);
	TAILQ_INSERT_TAIL(&fault->rules, own, link);
	return own->id;
}

bool fault_remove(struct fault *fault, uint64_t id)
{
	struct io_list held = STAILQ_HEAD_INITIALIZER(held);
	struct rule *rule;
	struct io *io;

	TAILQ_FOREACH(rule, &fault->rules, link)
		if (rule->id == id)
			break;
	if (!rule)
		return false;
	STAILQ_FOREACH(io, &rule->held, link)
		if (rule->what.kind == FAULT_DELAY)
			env_timer_cancel(fault->blk.env, &io->leaf.timer);
	STAILQ_CONCAT(&held, &rule->held);
	rule_free(rule);
	while ((io = STAILQ_FIRST(&held))) {
		STAILQ_REMOVE_HEAD(&held, link);
		blk_pass(fault->lower, io, NULL, NULL);
	}
	return true;
}

void fault_each(struct fault *fault,
		void (*fn)(void *arg, uint64_t id, const struct fault_rule *rule, uint64_t hits,
			   unsigned held),
		void *arg)
{
	struct rule *rule, *next;

	TAILQ_FOREACH_SAFE(rule, &fault->rules, link, next)
		fn(arg, rule->id, &rule->what, rule->hits, rule->held_count);
}

/* --- begin and end --- */

static void lower_changed(struct blk_watch *watch)
{
	struct fault *fault = container_of(watch, struct fault, watch);
	const struct blk *lower = fault->lower;

	blk_set_state(&fault->blk, lower->state, "%s", lower->state_cause);
	blk_resize(&fault->blk, lower->size_bytes);
}

static void fault_close(struct blk *blk)
{
	struct fault *fault = container_of(blk, struct fault, blk);
	struct rule *rule, *next;

	TAILQ_FOREACH_SAFE(rule, &fault->rules, link, next)
		free(rule);
	blk_unwatch(&fault->watch);
	blk_unref(fault->lower);
	free(fault);
}

static void fault_reopen(struct blk *blk, blk_reopen_fn *done, void *arg)
{
	blk_reopen(container_of(blk, struct fault, blk)->lower, done, arg);
}

struct blk *fault_new(struct blk *lower)
{
	struct fault *fault = calloc(1, sizeof(*fault));
	struct blk *blk;

	if (!fault)
		return NULL;
	fault->lower = lower;
	TAILQ_INIT(&fault->rules);
	blk = &fault->blk;
	blk->ops = &fault_ops;
	blk->env = lower->env;
	memcpy(blk->name, lower->name, sizeof(blk->name));
	blk->size_bytes = lower->size_bytes;
	blk->block_size = lower->block_size;
	blk->physical_block = lower->physical_block;
	blk->optimal_io = lower->optimal_io;
	blk->mem_align = lower->mem_align;
	blk->max_io = lower->max_io;
	blk->features = lower->features;
	blk_init(blk);
	blk_set_state(blk, lower->state, "%s", lower->state_cause);
	fault->watch.changed = lower_changed;
	blk_watch(lower, &fault->watch);
	return blk;
}
