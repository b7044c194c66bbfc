/* SPDX-License-Identifier: MIT */
/*
 * INQUIRY: standard data, and the way to vital product data.
 *
 * Invariants:
 * 1. It answers for every LUN: one that is not there has qualifier 3, type 1Fh.
 * 2. Nothing is claimed that the opcode table or the VPD table lacks.
 *
 * Not here: the pages (vpd.c).
 *
 * Spec: SPC-4 6.6, SAM-5 5.11; version descriptors SPC-4 table 144.
 */
#include <string.h>

#include "core/version.h"
#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

#define STANDARD_LEN 96
#define NOT_THERE 0x7f

#define VERSION_SPC_4 0x06
#define FORMAT_HISUP 0x12 /* response data format 2, hierarchical LUNs */
#define MULTIP 0x10
#define CMDQUE 0x02

static const uint16_t version_descriptors[] = {
	0x00a0, /* SAM-5 */
	0x0960, /* iSCSI */
	0x0460, /* SPC-4 */
	0x04c0, /* SBC-3 */
};

/* ASCII, left-aligned, filled with spaces. */
static void put_text(uint8_t *out, const char *text, size_t len_bytes)
{
	size_t n = strnlen(text, len_bytes);

	memset(out, ' ', len_bytes);
	memcpy(out, text, n);
}

static void standard(struct scsi_task *task)
{
	uint8_t data[STANDARD_LEN] = { 0 };
	char revision[5] = { 0 };
	unsigned i;

	data[0] = task->lu ? 0x00 : NOT_THERE;
	data[2] = VERSION_SPC_4;
	data[3] = FORMAT_HISUP;
	data[4] = STANDARD_LEN - 5;
	data[6] = MULTIP;
	data[7] = CMDQUE;
	/* Four characters, a dot at the end says nothing. */
	strncpy(revision, yoke_version(), 4);
	if (revision[3] == '.')
		revision[3] = '\0';
	put_text(data + 8, "YOKE", 8);
	put_text(data + 16, task->lu ? task->lu->product : "", 16);
	put_text(data + 32, revision, 4);
	for (i = 0; i < ARRAY_LEN(version_descriptors); i++)
		put_be16(data + 58 + 2 * i, version_descriptors[i]);
	scsi_reply(task, data, sizeof(data));
}

static void vital(struct scsi_task *task)
{
	uint8_t data[SCSI_CONTROL_MAX];
	unsigned length;

	if (!task->lu) {
		scsi_fail(task, SCSI_R_NO_LUN);
		scsi_complete(task);
		return;
	}
	length = vpd_build(task, task->cdb[2], data);
	if (!length) {
		scsi_fail_field(task, 2, 7);
		scsi_complete(task);
		return;
	}
	scsi_reply(task, data, length);
}

void scsi_inquiry(struct scsi_task *task)
{
	const uint8_t *cdb = task->cdb;

	if (cdb[1] & 0x02) { /* CMDDT, obsolete */
		scsi_fail_field(task, 1, 1);
		scsi_complete(task);
	} else if (cdb[1] & 0x01) {
		vital(task);
	} else if (cdb[2]) { /* a page without EVPD */
		scsi_fail_field(task, 2, 7);
		scsi_complete(task);
	} else {
		standard(task);
	}
}
