/* SPDX-License-Identifier: MIT */
/*
 * A deterministic world behind the seam, for unit tests.
 *
 * Nothing happens by itself: fake_env_run() serves what is deferred, due or
 * submitted until nothing is left; fake_env_advance() moves the clock. Disks
 * are byte arrays with a second, durable image.
 */
#ifndef TESTS_FAKE_ENV_H
#define TESTS_FAKE_ENV_H

#include "core/env.h"

#define FAKE_RECORDS 4096
#define FAKE_KINDS (ENV_DISK_ZERO + 1)

/* An operation as it was submitted. */
struct fake_record {
	enum env_disk_kind kind;
	int fd;
	uint64_t offset;
	uint64_t length;
	bool fua;
	bool nowait_lane;
};

/* Random bytes follow from SEED. The clock starts at 1000 s. */
struct env *fake_env_new(uint64_t seed);
/* Asserts that no operation is in flight: held ones are released or cut first. */
void fake_env_free(struct env *env);

/* Until nothing is deferred, due, submitted (unless held) or to be worked on. */
void fake_env_run(struct env *env);
/* Runs, then moves the clock from timer to timer up to NS from now, running at each. */
void fake_env_advance(struct env *env, uint64_t ns);

/* A disk of zeroes, durably; returns its fd. */
int fake_env_disk(struct env *env, uint64_t size_bytes);
/* What a read sees, and what would be left after a power cut. */
uint8_t *fake_env_disk_bytes(struct env *env, int fd);
uint8_t *fake_env_disk_durable(struct env *env, int fd);

/*
 * All volatile writes are lost. Operations in flight, deferred callbacks, work and
 * timers vanish with their done() never called, as memory does: owners are freed
 * by the test without waiting for them.
 */
void fake_env_power_cut(struct env *env);

/* The next op of KIND to be served fails with ERR (negative) and has no effect. Repeated: the one after. */
void fake_env_fail_next(struct env *env, enum env_disk_kind kind, int err);
/* Every op on FD fails with ERR; 0 ends it. */
void fake_env_fail_disk(struct env *env, int fd, int err);

/* While held, submitted ops wait; in the order of submission. */
void fake_env_hold(struct env *env);
unsigned fake_env_held(struct env *env);
/* Serve the INDEX-th held op now (its done() runs in here). */
void fake_env_serve_held(struct env *env, unsigned index);
/* Stop holding; the waiting ones are served by the next fake_env_run(). */
void fake_env_release(struct env *env);

/* Ops submitted since the start or the last reset. Records beyond FAKE_RECORDS are not kept. */
unsigned fake_env_count(struct env *env, enum env_disk_kind kind);
unsigned fake_env_records(struct env *env);
const struct fake_record *fake_env_record(struct env *env, unsigned index);
void fake_env_reset_counts(struct env *env);

#endif
