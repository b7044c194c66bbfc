/* SPDX-License-Identifier: MIT */
/*
 * Disk operations through io_uring, one submit a turn.
 *
 * Submitting and reaping are for one thread: the first to flush.
 */
#ifndef CORE_RING_H
#define CORE_RING_H

#include "core/env.h"

struct ring;

/*
 * At most DEPTH operations in the kernel, the rest waits here. Completions that come
 * while notifications are on write to WAKE_FD. NULL with errno set where io_uring is
 * not to be had.
 */
struct ring *ring_new(unsigned depth, int wake_fd);
/* Asserts that nothing is in flight. */
void ring_free(struct ring *ring);

void ring_submit(struct ring *ring, struct env_disk_op *op);
/* Hand what waits to the kernel; the number of system calls made. */
unsigned ring_flush(struct ring *ring);
/* Run done() of what is complete. */
void ring_reap(struct ring *ring);
/* Completions to reap, or operations that could be handed over now. */
bool ring_ready(const struct ring *ring);
bool ring_completions(const struct ring *ring);
/* Operations that are not done, with the kernel or waiting for room. */
bool ring_busy(const struct ring *ring);
void ring_notify(struct ring *ring, bool on);

#endif
