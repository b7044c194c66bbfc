/* SPDX-License-Identifier: MIT */
/*
 * Shards: one loop, one thread, and what lives there.
 *
 * A message is embedded in what it carries and is handed over with it: the
 * sender touches neither until it comes back. To the own shard it is a direct
 * call; between shards it is a queue and a wake-up. Order between two shards is
 * kept.
 */
#ifndef CORE_SHARD_H
#define CORE_SHARD_H

#include "core/loop.h"

struct shard;

struct shard_msg {
	struct shard_msg *next;            /* the shard's */
	void (*fn)(struct shard_msg *msg); /* runs on the receiving shard */
};

/* NULL with errno set. LOOP is the shard's own and outlives it. */
struct shard *shard_new(struct loop *loop, unsigned number);
/* Asserts that no message waits. Nobody sends to it any more. */
void shard_free(struct shard *shard);

struct loop *shard_loop(struct shard *shard);
struct env *shard_env(struct shard *shard);
unsigned shard_number(const struct shard *shard);

/* The shard of the calling thread; set by shard_enter() at its start. */
void shard_enter(struct shard *shard);
struct shard *shard_self(void);

/* From any thread. To the own shard: fn has returned when this does. */
void shard_send(struct shard *to, struct shard_msg *msg);

#endif
