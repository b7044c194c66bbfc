/* SPDX-License-Identifier: MIT */
/* The loop's parts, for its own files and their tests. */
#ifndef CORE_LOOP_INT_H
#define CORE_LOOP_INT_H

#include "core/loop.h"

#define LOOP_DISK_DEPTH 256 /* operations that the kernel or the threads hold at once */

enum loop_engine { LOOP_ENGINE_AUTO, LOOP_ENGINE_RING, LOOP_ENGINE_THREADS };

/* As loop_new(), with the disk engine and its depth (a power of two) chosen. */
struct loop *loop_new_with(enum loop_engine engine, unsigned depth);

/*
 * Operations that wait for room: two queues, the one that must not wait first.
 * disk.c; both engines.
 */
STAILQ_HEAD(disk_op_list, env_disk_op);
struct disk_lanes {
	struct disk_op_list urgent;
	struct disk_op_list normal;
};
void disk_lanes_init(struct disk_lanes *lanes);
void disk_lanes_push(struct disk_lanes *lanes, struct env_disk_op *op);
/* To the front: it had its turn already. */
void disk_lanes_again(struct disk_lanes *lanes, struct env_disk_op *op);
struct env_disk_op *disk_lanes_pop(struct disk_lanes *lanes);
bool disk_lanes_empty(const struct disk_lanes *lanes);

/*
 * OP's last system call gave RES (bytes or a negative errno). True: op->result is set,
 * it is over. False: the rest, from offset + moved on, is to be done.
 */
bool disk_op_step(struct env_disk_op *op, int64_t res);

/* How many elements and bytes of OP one system call may take. */
unsigned disk_op_iovs(const struct env_disk_op *op);
/* fallocate(2)'s mode for PUNCH and ZERO. */
int disk_op_fallocate_mode(const struct env_disk_op *op);
/* All of OP on this thread, which may block; sets op->result. */
void disk_op_run(struct env_disk_op *op);

/* The threads that disk_op_run() runs on where there is no io_uring. */
struct disk_threads;
struct disk_threads *disk_threads_new(struct loop *loop, unsigned depth);
void disk_threads_free(struct disk_threads *threads);
bool disk_threads_busy(const struct disk_threads *threads);
void disk_threads_submit(struct disk_threads *threads, struct env_disk_op *op);

/* work.c: threads started as needed, up to MAX; done() on the loop. */
struct workers;
struct workers *workers_new(struct loop *loop, unsigned max);
/* Asserts that nothing is queued or running; ends the threads. */
void workers_free(struct workers *workers);
unsigned workers_outstanding(const struct workers *workers);
void workers_submit(struct workers *workers, struct env_work *work);

/* The eventfd behind loop_wake(). */
int loop_wake_fd(const struct loop *loop);

#endif
