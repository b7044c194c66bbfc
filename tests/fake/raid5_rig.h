/* SPDX-License-Identifier: MIT */
/* A RAID 5 over disks in memory, for the tests of its files. */
#ifndef TESTS_FAKE_RAID5_RIG_H
#define TESTS_FAKE_RAID5_RIG_H

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "raid/raid5_int.h"
#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_disk.h"
#include "tests/fake/fake_env.h"

#define RIG_DISKS 16u

struct rig {
	struct env *env;
	unsigned count;
	struct fake_disk *disks[RIG_DISKS];
	struct array *array;
	struct blk *blk;
	int error; /* of the newest callback */
	unsigned calls;
	uint8_t *image; /* what the array should hold */
};

struct rig_shape {
	unsigned disks;
	uint32_t chunk, block;
	uint64_t disk_bytes;
	bool intent;
};

static inline void rig_quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static inline void rig_told(void *arg, struct array *array, int error, const char *text)
{
	struct rig *rig = arg;

	(void)text;
	rig->array = array;
	rig->error = error;
	rig->calls++;
}

/* Until nothing happens any more but what timers of seconds do. */
static inline void rig_run(struct rig *rig)
{
	fake_env_advance(rig->env, 20 * NS_PER_MS);
}

static inline unsigned rig_doubtful(struct rig *rig)
{
	struct array_info info;

	array_info(rig->array, &info);
	return info.regions_doubtful;
}

static inline enum array_state rig_state(struct rig *rig)
{
	struct array_info info;

	array_info(rig->array, &info);
	return info.state;
}

static inline void rig_create(struct rig *rig, const struct rig_shape *shape)
{
	struct array_spec spec = {
		.name = "r5", .level = 5, .chunk_bytes = shape->chunk, .log_stripes = !shape->intent
	};
	struct array_disk disks[RIG_DISKS];

	log_redirect(rig_quiet);
	memset(rig, 0, sizeof(*rig));
	rig->env = fake_env_new(1);
	rig->count = shape->disks;
	for (unsigned i = 0; i < rig->count; i++) {
		rig->disks[i] = fake_disk_new(rig->env, shape->disk_bytes, shape->block);
		disks[i] = (struct array_disk){ "disk", &rig->disks[i]->blk };
	}
	ck_assert_ptr_nonnull(array_create(rig->env, &spec, disks, rig->count, rig_told, rig));
	rig_run(rig);
	ck_assert_uint_eq(rig->calls, 1);
	ck_assert_int_eq(rig->error, 0);
	rig->blk = array_blk(rig->array);
	ck_assert_ptr_nonnull(rig->blk);
	ck_assert_uint_eq(rig_doubtful(rig), 0);
	rig->image = calloc(1, rig->blk->size_bytes);
	ck_assert_ptr_nonnull(rig->image);
}

/* Find the array on the disks of PRESENT again; false: it is not online. */
static inline bool rig_start(struct rig *rig, uint32_t present)
{
	struct array_start how = { .wait_ns = 0 };
	struct array_disk disks[RIG_DISKS];
	const struct label *label = NULL;
	uint8_t block[LABEL_SIZE];
	struct array *array;
	struct label found;
	unsigned count = 0;

	for (unsigned i = 0; i < rig->count; i++) {
		if (!(present >> i & 1))
			continue;
		disks[count++] = (struct array_disk){ "disk", &rig->disks[i]->blk };
		for (unsigned slot = 0; slot < 2 && !label; slot++) {
			fake_disk_read(rig->disks[i], slot * LABEL_SIZE, block, LABEL_SIZE);
			if (label_decode(block, &found) == 0)
				label = &found;
		}
	}
	ck_assert_ptr_nonnull(label);
	rig->calls = 0;
	array = array_start(rig->env, label->array, disks, count, &how, rig_told, rig);
	ck_assert_ptr_nonnull(array);
	array->buffers_bytes = MIB; /* that thousands of starts are quick */
	rig_run(rig);
	ck_assert_uint_eq(rig->calls, 1);
	rig->blk = array_blk(rig->array);
	return rig->error == 0;
}

static inline void rig_stop_array(struct rig *rig)
{
	rig->calls = 0;
	array_stop(rig->array, rig_told, rig);
	rig_run(rig);
	ck_assert_uint_eq(rig->calls, 1);
	rig->array = NULL;
}

static inline void rig_free(struct rig *rig)
{
	if (rig->array)
		rig_stop_array(rig);
	for (unsigned i = 0; i < rig->count; i++)
		blk_unref(&rig->disks[i]->blk);
	rig_run(rig);
	fake_env_free(rig->env);
	free(rig->image);
}

/* ---- I/O */

static inline int rig_do(struct rig *rig, struct io *io, unsigned flags)
{
	struct fake_wait wait = { 0 };

	io->flags = flags;
	blk_submit(rig->blk, io, fake_wait_done, &wait);
	ck_assert_uint_eq(wait.calls, 0);
	rig_run(rig);
	ck_assert_uint_eq(wait.calls, 1);
	return wait.error;
}

static inline int rig_rw(struct rig *rig, enum io_op op, uint64_t at, void *buf, uint64_t length)
{
	struct iovec iov = { buf, length };
	struct io io;

	io_init(&io, op, at, length, op == IO_WRITE_ZEROES ? NULL : &iov,
		op == IO_WRITE_ZEROES ? 0 : 1);
	return rig_do(rig, &io, 0);
}

/* New bytes, that follow from SEED, on the array and in its image. */
static inline int rig_write(struct rig *rig, uint64_t at, uint64_t length, uint64_t seed)
{
	static uint8_t buf[MIB] __attribute__((aligned(4096)));
	int error;

	fake_fill(buf, length, seed);
	error = rig_rw(rig, IO_WRITE, at, buf, length);
	if (!error)
		memcpy(rig->image + at, buf, length);
	return error;
}

static inline void rig_check(struct rig *rig, uint64_t at, uint64_t length)
{
	static uint8_t buf[MIB] __attribute__((aligned(4096)));

	for (uint64_t end = at + length; at < end; at += length) {
		length = min_u64(end - at, min_u64(sizeof(buf), rig->blk->max_io));
		ck_assert_int_eq(rig_rw(rig, IO_READ, at, buf, length), 0);
		ck_assert_mem_eq(buf, rig->image + at, length);
	}
}

/* Several writes at once. */
struct rig_burst {
	struct io ios[256];
	struct iovec iov[256];
	struct fake_wait waits[256];
	unsigned count;
	uint8_t *memory;
	uint64_t room, used;
};

static inline void rig_burst_begin(struct rig_burst *burst, uint64_t room)
{
	burst->count = 0;
	burst->used = 0;
	burst->room = room;
	burst->memory = aligned_alloc(4096, room);
	ck_assert_ptr_nonnull(burst->memory);
}

static inline void rig_burst_write(struct rig *rig, struct rig_burst *burst, uint64_t at,
				   uint64_t length, unsigned flags)
{
	unsigned i = burst->count++;

	ck_assert_uint_le(burst->used + length, burst->room);
	burst->iov[i] = (struct iovec){ burst->memory + burst->used, length };
	burst->used += length;
	fake_fill(burst->iov[i].iov_base, length, at + burst->used);
	memcpy(rig->image + at, burst->iov[i].iov_base, length);
	burst->waits[i] = (struct fake_wait){ 0 };
	io_init(&burst->ios[i], IO_WRITE, at, length, &burst->iov[i], 1);
	burst->ios[i].flags = flags;
	blk_submit(rig->blk, &burst->ios[i], fake_wait_done, &burst->waits[i]);
}

static inline void rig_burst_end(struct rig *rig, struct rig_burst *burst)
{
	rig_run(rig);
	for (unsigned i = 0; i < burst->count; i++) {
		ck_assert_uint_eq(burst->waits[i].calls, 1);
		ck_assert_int_eq(burst->waits[i].error, 0);
	}
	free(burst->memory);
}

/* ---- what lies on the members */

static inline uint64_t rig_data_at(struct rig *rig)
{
	return rig->array->label.data.offset;
}

/* Whether every stripe's chunks XOR to zero. */
static inline bool rig_parity_right(struct rig *rig)
{
	const struct label_area *data = &rig->array->label.data;
	uint8_t sum[4096], buf[4096];

	for (uint64_t at = 0; at < data->length; at += sizeof(sum)) {
		memset(sum, 0, sizeof(sum));
		for (unsigned i = 0; i < rig->count; i++) {
			fake_disk_read(rig->disks[i], data->offset + at, buf, sizeof(buf));
			for (unsigned k = 0; k < sizeof(sum); k++)
				sum[k] ^= buf[k];
		}
		for (unsigned k = 0; k < sizeof(sum); k++)
			if (sum[k])
				return false;
	}
	return true;
}

static inline uint64_t rig_ops(struct rig *rig, enum io_op op)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < rig->count; i++)
		sum += rig->disks[i]->blk.counts.ops[op];
	return sum;
}

#endif
