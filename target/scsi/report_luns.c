/* SPDX-License-Identifier: MIT */
/*
 * REPORT LUNS.
 *
 * Invariants:
 * 1. It works at LUN 0 whether or not anything is mapped there; elsewhere only at a LUN that
 *    is there.
 * 2. It lists exactly what this initiator may see, in order, and clears the news of a changed list.
 *
 * Not here: who may see what (device.c), raising the news (device.c).
 *
 * Spec: SPC-4 6.33, SAM-5 4.7.7.
 */
#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

#define HEADER 8
#define ENTRY 8

/* SELECT REPORT. */
#define ADDRESSABLE 0x00
#define WELL_KNOWN 0x01
#define ALL 0x02

uint64_t scsi_report_luns_length(const struct scsi_task *task)
{
	return min_u64(get_be32(task->cdb + 6),
		       HEADER + ENTRY * (uint64_t)task->nexus->device->map_count);
}

/* As much of the LEN bytes at DATA as the initiator has room for at OFFSET. */
static void put(struct scsi_task *task, uint64_t offset, const uint8_t *data, unsigned len)
{
	uint64_t room = min_u64(task->transfer_length, task->data.length);

	if (offset < room)
		buf_write(&task->data, offset, data, min_u64(len, room - offset));
}

static uint64_t list(struct scsi_task *task)
{
	struct scsi_device *device = task->nexus->device;
	uint64_t offset = HEADER;
	uint8_t entry[ENTRY];
	unsigned i;

	for (i = 0; i < device->map_count; i++) {
		const struct scsi_mapping *mapping = device->maps[i];

		if (!device_visible(mapping, task->nexus->id.initiator))
			continue;
		/* Flat addressing only where the peripheral method has no room. */
		put_be64(entry, (uint64_t)(mapping->lun | (mapping->lun > 0xff ? 0x4000 : 0))
					<< 48);
		put(task, offset, entry, ENTRY);
		offset += ENTRY;
	}
	return offset;
}

static void learnt(struct scsi_task *task)
{
	struct scsi_device *device = task->nexus->device;
	struct ua_set *ua;
	unsigned i;

	for (i = 0; i < device->map_count; i++) {
		ua = nexus_ua(&device->registry, &task->nexus->mpio, device->maps[i]->slot);
		if (ua)
			ua_clear(ua, UA_LUNS_CHANGED);
	}
}

void scsi_report_luns(struct scsi_task *task)
{
	uint8_t select = task->cdb[2], header[HEADER] = { 0 };
	uint64_t length = HEADER;

	if (!task->lu && device_lun_number(task->lun) != 0) {
		scsi_fail(task, SCSI_R_NO_LUN);
		scsi_complete(task);
		return;
	}
	if (select > ALL) {
		scsi_fail_field(task, 2, 7);
		scsi_complete(task);
		return;
	}
	if (select != WELL_KNOWN) /* there are none of these */
		length = list(task);
	put_be32(header, (uint32_t)(length - HEADER));
	put(task, 0, header, HEADER);
	learnt(task);
	task->data_in_length = min_u64(length, task->transfer_length);
	scsi_complete(task);
}
