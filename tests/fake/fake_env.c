/* SPDX-License-Identifier: MIT */
/*
 * The deterministic env: virtual clock, seeded random, disks in memory.
 *
 * Invariants:
 * 1. Operations are served in the order of submission unless a test picks another.
 * 2. A completed write is volatile until a FLUSH or FUA copies it to the durable image.
 * 3. No callback runs from inside the call that asked for it.
 *
 * Not here: torn, lost and misdirected writes (the simulator), short transfers (below the seam).
 */
#include "tests/fake/fake_env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_FD_BASE 1000
#define FAKE_DISKS 64
#define FAKE_FAILURES 16

struct fake_disk {
	uint8_t *bytes;
	uint8_t *durable;
	uint64_t size;
	uint64_t dirty_from, dirty_to; /* where the images may differ; empty if from >= to */
	int error;
};

struct fake_env {
	struct env env;
	uint64_t now_ns;
	uint64_t random;
	struct fake_disk disks[FAKE_DISKS];
	unsigned disk_count;
	STAILQ_HEAD(, env_disk_op) ops;
	STAILQ_HEAD(, env_work) work;
	bool held;
	int failures[FAKE_KINDS][FAKE_FAILURES];
	unsigned failure_count[FAKE_KINDS];
	struct fake_record records[FAKE_RECORDS];
	unsigned record_count;
	unsigned counts[FAKE_KINDS];
};

static struct fake_env *fake_of(struct env *env)
{
	return container_of(env, struct fake_env, env);
}

static struct fake_disk *disk_of(struct fake_env *fake, int fd)
{
	assert(fd >= FAKE_FD_BASE && (unsigned)(fd - FAKE_FD_BASE) < fake->disk_count);
	return &fake->disks[fd - FAKE_FD_BASE];
}

static uint64_t fake_now(struct env *env)
{
	return fake_of(env)->now_ns;
}

/* splitmix64: any seed gives a good sequence, zero included. */
static void fake_random(struct env *env, void *buf, size_t len_bytes)
{
	struct fake_env *fake = fake_of(env);
	uint8_t *out = buf;

	for (size_t i = 0; i < len_bytes; i++) {
		uint64_t z = fake->random += 0x9e3779b97f4a7c15;

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
		z = (z ^ z >> 27) * 0x94d049bb133111eb;
		out[i] = (uint8_t)(z ^ z >> 31);
	}
}

static void fake_disk_submit(struct env *env, struct env_disk_op *op)
{
	struct fake_env *fake = fake_of(env);
	uint64_t sum = 0;

	for (unsigned i = 0; i < op->iov_count; i++)
		sum += op->iov[i].iov_len;
	if (op->kind == ENV_DISK_READ || op->kind == ENV_DISK_WRITE)
		assert(sum == op->length);
	assert(!op->fua || op->kind == ENV_DISK_WRITE);
	if (fake->record_count < FAKE_RECORDS)
		fake->records[fake->record_count++] = (struct fake_record){
			.kind = op->kind,
			.fd = op->fd,
			.offset = op->offset,
			.length = op->length,
			.fua = op->fua,
			.nowait_lane = op->nowait_lane,
		};
	fake->counts[op->kind]++;
	STAILQ_INSERT_TAIL(&fake->ops, op, link);
}

static void fake_work_submit(struct env *env, struct env_work *work)
{
	STAILQ_INSERT_TAIL(&fake_of(env)->work, work, link);
}

static const struct env_ops fake_ops = {
	.now_ns = fake_now,
	.boottime_ns = fake_now,
	.random = fake_random,
	.disk_submit = fake_disk_submit,
	.work_submit = fake_work_submit,
};

struct env *fake_env_new(uint64_t seed)
{
	struct fake_env *fake = calloc(1, sizeof(*fake));

	assert(fake);
	env_init(&fake->env, &fake_ops);
	fake->now_ns = 1000 * NS_PER_S;
	fake->random = seed;
	STAILQ_INIT(&fake->ops);
	STAILQ_INIT(&fake->work);
	return &fake->env;
}

void fake_env_free(struct env *env)
{
	struct fake_env *fake = fake_of(env);

	assert(STAILQ_EMPTY(&fake->ops) && STAILQ_EMPTY(&fake->work));
	for (unsigned i = 0; i < fake->disk_count; i++) {
		free(fake->disks[i].bytes);
		free(fake->disks[i].durable);
	}
	free(fake);
}

int fake_env_disk(struct env *env, uint64_t size_bytes)
{
	struct fake_env *fake = fake_of(env);
	struct fake_disk *disk = &fake->disks[fake->disk_count];

	assert(fake->disk_count < FAKE_DISKS);
	disk->size = size_bytes;
	disk->bytes = calloc(1, size_bytes);
	disk->durable = calloc(1, size_bytes);
	assert(disk->bytes && disk->durable);
	return FAKE_FD_BASE + (int)fake->disk_count++;
}

uint8_t *fake_env_disk_bytes(struct env *env, int fd)
{
	return disk_of(fake_of(env), fd)->bytes;
}

uint8_t *fake_env_disk_durable(struct env *env, int fd)
{
	return disk_of(fake_of(env), fd)->durable;
}

static void dirty(struct fake_disk *disk, uint64_t from, uint64_t to)
{
	if (disk->dirty_from >= disk->dirty_to) {
		disk->dirty_from = from;
		disk->dirty_to = to;
	}
	disk->dirty_from = min_u64(disk->dirty_from, from);
	disk->dirty_to = max_u64(disk->dirty_to, to);
}

static void transfer(struct fake_disk *disk, const struct env_disk_op *op)
{
	uint8_t *at = disk->bytes + op->offset;

	for (unsigned i = 0; i < op->iov_count; at += op->iov[i].iov_len, i++) {
		if (op->kind == ENV_DISK_READ)
			memcpy(op->iov[i].iov_base, at, op->iov[i].iov_len);
		else
			memcpy(at, op->iov[i].iov_base, op->iov[i].iov_len);
	}
}

static int serve_data(struct fake_disk *disk, const struct env_disk_op *op)
{
	bool fits = op->offset <= disk->size && op->length <= disk->size - op->offset;

	if (!fits)
		return op->kind == ENV_DISK_READ ? -ENODATA : -ENOSPC;
	if (op->kind == ENV_DISK_PUNCH || op->kind == ENV_DISK_ZERO)
		memset(disk->bytes + op->offset, 0, op->length);
	else
		transfer(disk, op);
	if (op->fua)
		memcpy(disk->durable + op->offset, disk->bytes + op->offset, op->length);
	else if (op->kind != ENV_DISK_READ)
		dirty(disk, op->offset, op->offset + op->length);
	return 0;
}

static int serve_flush(struct fake_disk *disk)
{
	if (disk->dirty_from < disk->dirty_to)
		memcpy(disk->durable + disk->dirty_from, disk->bytes + disk->dirty_from,
		       disk->dirty_to - disk->dirty_from);
	disk->dirty_from = disk->dirty_to = 0;
	return 0;
}

static int take_failure(struct fake_env *fake, enum env_disk_kind kind)
{
	int err = fake->failures[kind][0];

	if (fake->failure_count[kind] == 0)
		return 0;
	fake->failure_count[kind]--;
	memmove(fake->failures[kind], fake->failures[kind] + 1,
		fake->failure_count[kind] * sizeof(err));
	return err;
}

/* OP is out of the queue. */
static void serve(struct fake_env *fake, struct env_disk_op *op)
{
	struct fake_disk *disk = disk_of(fake, op->fd);

	op->result = disk->error ? disk->error : take_failure(fake, op->kind);
	if (op->result == 0)
		op->result = op->kind == ENV_DISK_FLUSH ? serve_flush(disk) : serve_data(disk, op);
	op->done(op);
}

static bool timer_due(struct fake_env *fake)
{
	return env_next_timer_ns(&fake->env) <= fake->now_ns;
}

void fake_env_run(struct env *env)
{
	struct fake_env *fake = fake_of(env);
	struct env_disk_op *op;
	struct env_work *work;

	for (;;) {
		if (timer_due(fake)) {
			env_run_timers(env);
		} else if (!STAILQ_EMPTY(&env->deferred)) {
			env_run_deferred(env);
		} else if (!fake->held && (op = STAILQ_FIRST(&fake->ops))) {
			STAILQ_REMOVE_HEAD(&fake->ops, link);
			serve(fake, op);
		} else if ((work = STAILQ_FIRST(&fake->work))) {
			STAILQ_REMOVE_HEAD(&fake->work, link);
			work->run(work);
			work->done(work);
		} else {
			return;
		}
	}
}

void fake_env_advance(struct env *env, uint64_t ns)
{
	struct fake_env *fake = fake_of(env);
	uint64_t end_ns = fake->now_ns + ns;
	uint64_t next_ns;

	fake_env_run(env);
	while ((next_ns = env_next_timer_ns(env)) <= end_ns) {
		fake->now_ns = next_ns;
		fake_env_run(env);
	}
	fake->now_ns = end_ns;
}

void fake_env_power_cut(struct env *env)
{
	struct fake_env *fake = fake_of(env);

	for (unsigned i = 0; i < fake->disk_count; i++) {
		struct fake_disk *disk = &fake->disks[i];

		memcpy(disk->bytes, disk->durable, disk->size);
		disk->dirty_from = disk->dirty_to = 0;
	}
	STAILQ_INIT(&fake->ops);
	STAILQ_INIT(&fake->work);
	STAILQ_INIT(&env->deferred);
	RB_INIT(&env->timers);
	fake->held = false;
}

void fake_env_fail_next(struct env *env, enum env_disk_kind kind, int err)
{
	struct fake_env *fake = fake_of(env);

	assert(err < 0 && fake->failure_count[kind] < FAKE_FAILURES);
	fake->failures[kind][fake->failure_count[kind]++] = err;
}

void fake_env_fail_disk(struct env *env, int fd, int err)
{
	assert(err <= 0);
	disk_of(fake_of(env), fd)->error = err;
}

void fake_env_hold(struct env *env)
{
	fake_of(env)->held = true;
}

unsigned fake_env_held(struct env *env)
{
	struct env_disk_op *op;
	unsigned n = 0;

	STAILQ_FOREACH(op, &fake_of(env)->ops, link)
		n++;
	return n;
}

void fake_env_serve_held(struct env *env, unsigned index)
{
	struct fake_env *fake = fake_of(env);
	struct env_disk_op *op = STAILQ_FIRST(&fake->ops);

	while (op && index-- > 0)
		op = STAILQ_NEXT(op, link);
	assert(op);
	STAILQ_REMOVE(&fake->ops, op, env_disk_op, link);
	serve(fake, op);
}

void fake_env_release(struct env *env)
{
	fake_of(env)->held = false;
}

unsigned fake_env_count(struct env *env, enum env_disk_kind kind)
{
	return fake_of(env)->counts[kind];
}

unsigned fake_env_records(struct env *env)
{
	return fake_of(env)->record_count;
}

const struct fake_record *fake_env_record(struct env *env, unsigned index)
{
	struct fake_env *fake = fake_of(env);

	assert(index < fake->record_count);
	return &fake->records[index];
}

void fake_env_reset_counts(struct env *env)
{
	struct fake_env *fake = fake_of(env);

	fake->record_count = 0;
	memset(fake->counts, 0, sizeof(fake->counts));
}
