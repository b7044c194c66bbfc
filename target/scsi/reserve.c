/* SPDX-License-Identifier: MIT */
/*
 * RESERVE and RELEASE (6, 10) of SPC-2: a logical unit for one I_T nexus alone.
 *
 * Invariants:
 * 1. The front's shard has them: all nexuses of a logical unit come by there, before anything
 *    of a command is executed.
 * 2. A reservation ends with RELEASE by its nexus, with that nexus, and with every reset of the
 *    logical unit; never otherwise.
 * 3. What goes past it says so in the opcode table (OP_SHARED).
 *
 * Not here: extents and third parties, which SPC-2 leaves to choice and nobody asks for.
 *
 * Spec: SPC-2 5.5.1 and table 10, 7.16, 7.17, 7.21, 7.22.
 */
#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

#define EXTENT 0x01
#define LONG_ID 0x02
#define THIRD_PARTY 0x10
#define PREVENT_ALLOW 0x1e

bool reserve_conflicts(const struct scsi_task *task)
{
	const struct scsi_lu *lu = task->lu;

	if (!lu || !lu->reserved_by || lu->reserved_by == task->nexus)
		return false;
	if (task->op->opcode == PREVENT_ALLOW) /* allowing goes past */
		return task->cdb[4] & 0x03;
	return !(task->op->flags & OP_SHARED);
}

void reserve_release(struct scsi_lu *lu)
{
	lu->reserved_by = NULL;
}

void reserve_nexus_lost(const struct scsi_nexus *nexus)
{
	struct scsi_device *device = nexus->device;
	unsigned i;

	for (i = 0; i < device->map_count; i++)
		if (device->maps[i]->lu->reserved_by == nexus)
			reserve_release(device->maps[i]->lu);
}

/* True: TASK asks for something that is not there. */
static bool refused(struct scsi_task *task)
{
	uint8_t what = task->cdb[1] & (EXTENT | THIRD_PARTY | (task->cdb[0] & 0x40 ? LONG_ID : 0));

	if (what)
		scsi_fail_field(task, 1, 31 - __builtin_clz(what));
	return what;
}

void scsi_reserve(struct scsi_task *task)
{
	if (!refused(task))
		task->lu->reserved_by = task->nexus;
	scsi_complete(task);
}

/* One that is not ours is left alone, and that is no error. */
void scsi_release(struct scsi_task *task)
{
	if (!refused(task) && task->lu->reserved_by == task->nexus)
		reserve_release(task->lu);
	scsi_complete(task);
}
