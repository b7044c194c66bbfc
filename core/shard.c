/* SPDX-License-Identifier: MIT */
/*
 * Messages between shards: a lock-free stack for each receiver, turned round when it is taken.
 *
 * Invariants:
 * 1. Messages of one sender run in the order of sending: the stack is taken whole and reversed.
 * 2. Whoever has pushed a message has its effects visible to the receiver's fn (release, acquire).
 * 3. A message is pushed before the loop is woken; the loop sleeps only on an empty stack.
 *
 * Not here: what a message carries; threads (the program's main starts them).
 */
#include "core/shard.h"

#include <stdlib.h>

struct shard {
	struct loop_source source;
	struct loop *loop;
	unsigned number;
	struct shard_msg *stack; /* atomic; the newest first */
};

static _Thread_local struct shard *self;

static struct shard *shard_of(struct loop_source *source)
{
	return container_of(source, struct shard, source);
}

static bool shard_ready(struct loop_source *source)
{
	return __atomic_load_n(&shard_of(source)->stack, __ATOMIC_SEQ_CST) != NULL;
}

static void shard_poll(struct loop_source *source)
{
	struct shard_msg *msg, *next, *first = NULL;

	if (!shard_ready(source))
		return;
	msg = __atomic_exchange_n(&shard_of(source)->stack, NULL, __ATOMIC_ACQUIRE);
	for (; msg; msg = next) {
		next = msg->next;
		msg->next = first;
		first = msg;
	}
	/* fn may send the message on. */
	for (msg = first; msg; msg = next) {
		next = msg->next;
		msg->fn(msg);
	}
}

struct shard *shard_new(struct loop *loop, unsigned number)
{
	struct shard *shard = calloc(1, sizeof(*shard));

	if (!shard)
		return NULL;
	shard->loop = loop;
	shard->number = number;
	shard->source.poll = shard_poll;
	shard->source.ready = shard_ready;
	loop_source_add(loop, &shard->source);
	return shard;
}

void shard_free(struct shard *shard)
{
	if (!shard)
		return;
	assert(!shard_ready(&shard->source));
	loop_source_remove(shard->loop, &shard->source);
	if (self == shard)
		self = NULL;
	free(shard);
}

struct loop *shard_loop(struct shard *shard)
{
	return shard->loop;
}

struct env *shard_env(struct shard *shard)
{
	return loop_env(shard->loop);
}

unsigned shard_number(const struct shard *shard)
{
	return shard->number;
}

void shard_enter(struct shard *shard)
{
	self = shard;
}

struct shard *shard_self(void)
{
	return self;
}

void shard_send(struct shard *to, struct shard_msg *msg)
{
	if (to == self) {
		msg->fn(msg);
		return;
	}
	msg->next = __atomic_load_n(&to->stack, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&to->stack, &msg->next, msg, true, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
	loop_wake(to->loop);
}
