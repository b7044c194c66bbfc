/* SPDX-License-Identifier: MIT */
/* A logical unit to sanitize, and the commands for it. Include it in one file of a program. */
#ifndef TESTS_FAKE_SANITIZE_RIG_H
#define TESTS_FAKE_SANITIZE_RIG_H

#include <check.h>

#include "tests/fake/scsi_rig.h"

#define SIZE (2 * MIB)
#define BLOCK(i) ((i)&1 ? 4096u : 512u)
#define ALL 4 /* the rig's combinations: block size, home */
#define THIN (BLK_FUA | BLK_UNMAP | BLK_UNMAP_ZEROES | BLK_VOLATILE)
#define IMMED 0x80
#define AUSE 0x20
#define OVERWRITE 1
#define BLOCK_ERASE 2
#define EXIT_FAILURE_MODE 0x1f
#define IN_PROGRESS 0x02041b
#define FAILED 0x033103

static struct scsi_nexus *nexus, *other;
static struct fake_blk *fake;
static uint8_t list[4 + 4096];

static inline void quiet(enum log_level level, const char *line)
{
	(void)level, (void)line;
}

static inline void start(int i)
{
	log_redirect(quiet);
	rig_start(i >> 1 & 1);
	nexus = rig_nexus(1);
	other = rig_nexus(2);
}

static inline void clear_ua(void)
{
	/* The unit may have failed: whatever is no unit attention ends it. */
	while (rig_sense(rig_do(nexus, 0, TUR)) >> 16 == 0x06)
		;
	while (rig_sense(rig_do(other, 0, TUR)) >> 16 == 0x06)
		;
}

static inline void start_ram(int i, bool thin)
{
	struct blk *blk;

	start(i);
	blk = rig_ram(SIZE, BLOCK(i));
	if (!thin)
		blk->features &= ~(BLK_UNMAP | BLK_UNMAP_ZEROES);
	rig_map(0, blk);
	clear_ua();
}

static inline void start_fake(int i, unsigned features)
{
	start(i);
	fake = fake_blk_new(rig_env, SIZE, BLOCK(i), features);
	rig_map(0, &fake->blk);
	clear_ua();
}

static inline void stop(void)
{
	scsi_nexus_free(nexus);
	scsi_nexus_free(other);
	rig_stop();
}

/* Ends every io that comes with success, COUNT of them at most; how many there were. */
static inline unsigned serve(unsigned count)
{
	unsigned n;

	for (n = 0; n < count && fake->held_count; n++) {
		fake_blk_end(fake, 0);
		rig_run();
	}
	return n;
}

static inline void send(struct rig_task *rig, unsigned byte1, uint16_t length)
{
	uint8_t cdb[SCSI_CDB_MAX] = { 0x48, (uint8_t)byte1 };

	put_be16(cdb + 7, length);
	rig_init(rig, nexus, 0, cdb);
	rig_enter(rig, 0);
	if (rig->task.data.length)
		buf_write(&rig->task.data, 0, list, rig->task.data.length);
	scsi_task_submit(&rig->task);
	rig_run();
}

static inline struct rig_task *sanitize(unsigned byte1, uint16_t length)
{
	static struct rig_task rig;

	send(&rig, byte1, length);
	ck_assert_uint_eq(rig.done, 1);
	return &rig;
}

/* The list of an OVERWRITE; returns its length. */
static inline uint16_t pattern(uint8_t flags, uint16_t length, uint64_t seed)
{
	list[0] = flags;
	list[1] = 0;
	put_be16(list + 2, length);
	fake_fill(list + 4, length, seed);
	return (uint16_t)(4 + length);
}

static inline void write_at(uint64_t lba)
{
	uint8_t cdb[SCSI_CDB_MAX];

	ck_assert_uint_eq(rig_do(nexus, 0, rig_rw(cdb, 0x8a, lba, 1))->task.status, SCSI_GOOD);
}

static inline const uint8_t *read_at(uint64_t lba)
{
	uint8_t cdb[SCSI_CDB_MAX];
	struct rig_task *rig = rig_do(nexus, 0, rig_rw(cdb, 0x88, lba, 1));

	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	return rig->data;
}

static inline unsigned tur(struct scsi_nexus *of)
{
	return rig_sense(rig_do(of, 0, TUR));
}

#endif
