/* SPDX-License-Identifier: MIT */
/*
 * Commands, Data-Out and task management against three logical units, one of them not thin, as
 * any initiator may send them.
 *
 * Input: records {kind, options, LUN, seed, CDB of 16 bytes}. Kind selects what is done with
 * the record; options are expected lengths, task attribute, which nexus and which format.
 *
 * Invariants (asserted):
 * 1. Every task entered is done exactly once; every function too.
 * 2. Data-In never passes the allocation and the room that enter asked for.
 * 3. A CHECK CONDITION has sense, everything else has none.
 */
#include "tests/fake/scsi_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORD 20
#define TASKS 16

static struct scsi_nexus *nexuses[2];
static struct rig_task tasks[TASKS];
static struct rig_tmf tmfs[TASKS];

static void check(const struct rig_task *rig)
{
	const struct scsi_task *task = &rig->task;

	if (task->state != SCSI_TASK_IDLE) {
		assert(rig->done == 0);
		return;
	}
	assert(rig->done == 1);
	if (task->outcome == SCSI_ABORTED)
		return;
	assert(task->data_in_length <= task->transfer_length);
	assert((task->status == SCSI_CHECK_CONDITION) == (task->sense_length > 0));
	assert(task->sense_length <= SCSI_SENSE_MAX);
}

static void one_task(struct rig_task *rig, const uint8_t *r, bool submit)
{
	rig_init(rig, nexuses[r[1] & 1], r[2] & 3, r + 4);
	rig->task.attr = (enum scsi_attr)(r[1] >> 1 & 3);
	rig->task.cdb_too_long = (r[1] & 0xf8) == 0x08;
	rig->task.expected_out = r[1] & 0x40 ? (uint64_t)r[3] * 100 : 1 * MIB;
	if (r[1] & 0x80)
		rig->task.transport_error = (enum scsi_transport_error)(r[3] % 6);
	rig_enter(rig, r[3]);
	if (submit)
		scsi_task_submit(&rig->task);
}

static void step(unsigned n, const uint8_t *r)
{
	struct rig_task *rig = &tasks[n % TASKS];

	switch (r[0] % 8) {
	case 0:
		if (rig->task.state == SCSI_TASK_ENTERED)
			scsi_task_submit(&rig->task);
		break;
	case 1:
		rig_tmf(&tmfs[n % TASKS], nexuses[r[1] & 1], (enum scsi_tmf_function)(r[3] % 10),
			r[2] & 3, rig->task.tag);
		assert(tmfs[n % TASKS].done == 1);
		break;
	case 2:
		rig_run();
		break;
	default:
		if (rig->task.state == SCSI_TASK_IDLE)
			one_task(rig, r, r[0] % 8 > 3);
		break;
	}
}

static void quiet(enum log_level level, const char *line)
{
	(void)level, (void)line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned n, i;
	struct scsi_lu *lu;
	struct blk *thick;

	log_redirect(quiet);
	rig_start(size & 1);
	lu = rig_map(0, rig_ram(1 * MIB, 512));
	rig_map(1, rig_ram(4 * MIB, 4096));
	thick = rig_ram(64 * KIB, 512); /* small: OVERWRITE goes over it up to 31 times */
	thick->features &= ~(BLK_UNMAP | BLK_UNMAP_ZEROES);
	rig_map(2, thick);
	atomic_store(&lu->d_sense, size & 2);
	nexuses[0] = rig_nexus(1);
	nexuses[1] = rig_nexus(2);
	memset(tasks, 0, sizeof(tasks));
	for (n = 0; n < size / RECORD; n++) {
		step(n, data + (size_t)n * RECORD);
		for (i = 0; i < TASKS; i++)
			if (tasks[i].task.nexus)
				check(&tasks[i]);
	}
	for (n = 0; n < 2; n++) {
		rig_tmf(&tmfs[n], nexuses[n], SCSI_NEXUS_RESET, 0, 0);
		assert(tmfs[n].done == 1);
		assert(scsi_nexus_tasks(nexuses[n]) == 0);
		scsi_nexus_free(nexuses[n]);
	}
	rig_stop();
	return 0;
}
