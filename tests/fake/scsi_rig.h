/* SPDX-License-Identifier: MIT */
/*
 * A target device with logical units, for tests of target/scsi, without a transport.
 *
 * Defines the shards (core/shard.h) itself: two of them, in one thread, whose messages
 * rig_run() delivers. Include it in one file of a program.
 */
#ifndef TESTS_FAKE_SCSI_RIG_H
#define TESTS_FAKE_SCSI_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backing_int.h"
#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_env.h"

/* ---- shards */

struct shard {
	struct env *env;
	struct shard_msg *first, **end;
};

static struct shard rig_front, rig_home;
static struct shard *rig_current;

struct env *shard_env(struct shard *shard)
{
	return shard->env;
}

struct shard *shard_self(void)
{
	return rig_current;
}

void shard_send(struct shard *to, struct shard_msg *msg)
{
	if (to == rig_current) {
		msg->fn(msg);
		return;
	}
	msg->next = NULL;
	*to->end = msg;
	to->end = &msg->next;
}

static inline bool rig_deliver(struct shard *shard)
{
	struct shard_msg *msg = shard->first;

	if (!msg)
		return false;
	shard->first = msg->next;
	if (!shard->first)
		shard->end = &shard->first;
	rig_current = shard;
	msg->fn(msg);
	return true;
}

/* ---- the device */

#define RIG_NAME "iqn.2026-11.org.yoke:rig"

static struct env *rig_env;
static struct shard *rig_lu_home;
static struct scsi_device *rig_device;
static struct buf_pool *rig_pool;

/* Until no message is on its way and nothing is deferred. */
static inline void rig_run(void)
{
	do {
		rig_current = rig_lu_home;
		fake_env_run(rig_env);
	} while (rig_deliver(&rig_home) || rig_deliver(&rig_front));
	rig_current = &rig_front;
}

/* REMOTE: logical units live on the other shard. */
static inline void rig_start(bool remote)
{
	rig_env = fake_env_new(1);
	rig_front = (struct shard){ .env = rig_env, .end = &rig_front.first };
	rig_home = (struct shard){ .env = rig_env, .end = &rig_home.first };
	rig_current = &rig_front;
	rig_lu_home = remote ? &rig_home : &rig_front;
	rig_device = scsi_device_new(RIG_NAME, &rig_front);
	/* Kept from one start to the next: fuzzing starts thousands of times. */
	if (!rig_pool)
		rig_pool = buf_pool_new(40 * MIB);
	assert(rig_device && rig_pool);
}

static inline void rig_stop(void)
{
	rig_run();
	scsi_device_free(rig_device);
	rig_run();
	assert(buf_pool_free_units(rig_pool) == buf_pool_units(rig_pool));
	fake_env_free(rig_env);
}

static inline struct scsi_lu_config rig_config(struct blk *blk)
{
	struct scsi_lu_config config = { .home = rig_lu_home, .blk = blk };

	for (unsigned i = 0; i < sizeof(config.uuid); i++)
		config.uuid[i] = (uint8_t)(0x11 * i);
	return config;
}

/* A logical unit; the rig's device holds the only references after rig_map(). */
static inline struct scsi_lu *rig_map_config(uint16_t lun, const struct scsi_lu_config *config)
{
	struct scsi_lu *lu = scsi_lu_new(config);
	int err;

	assert(lu);
	err = scsi_device_map(rig_device, lun, lu, false);
	assert(err == 0);
	scsi_lu_unref(lu);
	blk_unref(config->blk);
	return lu;
}

static inline struct scsi_lu *rig_map(uint16_t lun, struct blk *blk)
{
	struct scsi_lu_config config = rig_config(blk);

	return rig_map_config(lun, &config);
}

static inline struct blk *rig_ram(uint64_t size_bytes, uint32_t block_size)
{
	struct backing_spec spec = {
		.name = "scratch",
		.driver = BACKING_RAM,
		.size_bytes = size_bytes,
		.block_size = block_size,
	};
	struct blk *blk = ram_new(rig_env, &spec);

	assert(blk);
	return blk;
}

static inline struct scsi_nexus *rig_nexus(unsigned number)
{
	struct scsi_nexus_id id = { .portal_group = 1 };
	struct scsi_nexus *nexus;

	snprintf(id.initiator, sizeof(id.initiator), "iqn.1994-05.com.host:%u", number);
	id.isid[5] = (uint8_t)number;
	nexus = scsi_nexus_new(rig_device, &id);
	assert(nexus);
	return nexus;
}

/* ---- tasks */

static unsigned rig_order; /* tasks and functions done so far */

struct rig_task {
	struct scsi_task task;
	unsigned done; /* times */
	unsigned order;
	uint8_t data[4096]; /* the first bytes of Data-In, guarded by 0xee */
};

static inline void rig_task_done(struct scsi_task *task)
{
	struct rig_task *rig = container_of(task, struct rig_task, task);

	rig->done++;
	rig->order = ++rig_order;
	if (task->dir == SCSI_DATA_IN)
		buf_read(&task->data, 0, rig->data, min_u64(task->data.length, sizeof(rig->data)));
	buf_give(rig_pool, &task->data);
}

static inline uint64_t rig_lun(uint16_t lun)
{
	return (uint64_t)(lun | (lun > 255 ? 0x4000 : 0)) << 48;
}

static inline void rig_init(struct rig_task *rig, struct scsi_nexus *nexus, uint16_t lun,
			    const uint8_t *cdb)
{
	static uint64_t tag;

	memset(rig, 0, sizeof(*rig));
	memset(rig->data, 0xee, sizeof(rig->data));
	rig->task.nexus = nexus;
	rig->task.lun = rig_lun(lun);
	memcpy(rig->task.cdb, cdb, SCSI_CDB_MAX);
	rig->task.cdb_length = SCSI_CDB_MAX;
	rig->task.tag = ++tag;
	rig->task.expected_in = rig->task.expected_out = SCSI_TRANSFER_MAX;
	rig->task.done = rig_task_done;
}

/* Enter, with room for what it moves; Data-Out is filled from SEED. */
static inline void rig_enter(struct rig_task *rig, uint64_t seed)
{
	struct scsi_task *task = &rig->task;
	bool taken;
	unsigned i;

	scsi_task_enter(task);
	taken = buf_take(rig_pool, task->buffer_length, &task->data);
	assert(taken);
	for (i = 0; i < task->data.count; i++) {
		if (task->dir == SCSI_DATA_OUT)
			fake_fill(task->data.iov[i].iov_base, task->data.iov[i].iov_len, seed + i);
		else
			memset(task->data.iov[i].iov_base, 0xee, task->data.iov[i].iov_len);
	}
}

static inline void rig_submit(struct rig_task *rig)
{
	rig_enter(rig, rig->task.tag);
	scsi_task_submit(&rig->task);
	rig_run();
}

/* A whole command; its answer is in the returned task until the next call. */
static inline struct rig_task *rig_do(struct scsi_nexus *nexus, uint16_t lun, const uint8_t *cdb)
{
	static struct rig_task rig;

	rig_init(&rig, nexus, lun, cdb);
	rig_submit(&rig);
	assert(rig.done == 1);
	return &rig;
}

#define CDB(...) ((const uint8_t[SCSI_CDB_MAX]){ __VA_ARGS__ })
#define TUR CDB(0)

/* Report every unit attention of NEXUS at LUN. */
static inline void rig_clear_ua(struct scsi_nexus *nexus, uint16_t lun)
{
	while (rig_do(nexus, lun, TUR)->task.status == SCSI_CHECK_CONDITION)
		;
}

/* Key, ASC and ASCQ of the sense as one number: 0x062900. */
static inline unsigned rig_code(const uint8_t *sense)
{
	if ((sense[0] & 0x7f) >= 0x72)
		return (sense[1] & 0xfu) << 16 | (unsigned)sense[2] << 8 | sense[3];
	return (sense[2] & 0xfu) << 16 | (unsigned)sense[12] << 8 | sense[13];
}

static inline unsigned rig_sense(const struct rig_task *rig)
{
	return rig->task.status == SCSI_CHECK_CONDITION ? rig_code(rig->task.sense) : 0;
}

/* The byte that the field pointer names, of fixed format sense; -1: none. */
static inline int rig_field(const struct rig_task *rig)
{
	const uint8_t *sense = rig->task.sense;

	return sense[15] & 0x80 ? get_be16(sense + 16) : -1;
}

static inline uint8_t *rig_rw(uint8_t *cdb, uint8_t opcode, uint64_t lba, uint32_t blocks)
{
	memset(cdb, 0, SCSI_CDB_MAX);
	cdb[0] = opcode;
	switch (opcode & 0xe0) {
	case 0x00:
		put_be24(cdb + 1, (uint32_t)lba & 0x1fffff);
		cdb[4] = (uint8_t)blocks;
		break;
	case 0x20:
		put_be32(cdb + 2, (uint32_t)lba);
		put_be16(cdb + 7, (uint16_t)blocks);
		break;
	case 0xa0:
		put_be32(cdb + 2, (uint32_t)lba);
		put_be32(cdb + 6, blocks);
		break;
	default:
		put_be64(cdb + 2, lba);
		put_be32(cdb + 10, blocks);
	}
	return cdb;
}

/* ---- task management */

struct rig_tmf {
	struct scsi_tmf tmf;
	unsigned done;
	unsigned order;
};

static inline void rig_tmf_done(struct scsi_tmf *tmf)
{
	struct rig_tmf *rig = container_of(tmf, struct rig_tmf, tmf);

	rig->done++;
	rig->order = ++rig_order;
}

static inline void rig_tmf(struct rig_tmf *rig, struct scsi_nexus *nexus,
			   enum scsi_tmf_function function, uint16_t lun, uint64_t tag)
{
	memset(rig, 0, sizeof(*rig));
	rig->tmf.nexus = nexus;
	rig->tmf.function = function;
	rig->tmf.lun = rig_lun(lun);
	rig->tmf.tag = tag;
	rig->tmf.done = rig_tmf_done;
	scsi_tmf_submit(&rig->tmf);
	rig_run();
}

#endif
