/* SPDX-License-Identifier: MIT */
/*
 * Vital product data: a table of pages, each with its function.
 *
 * Invariants:
 * 1. Rows are in order of the page code; page 00h lists exactly the rows.
 * 2. Every limit in page B0h is kept by the command that it limits, at its maximum and one past it.
 * 3. Identity follows from the uuid alone: equal on every path and after every restart.
 *
 * Not here: INQUIRY itself (inquiry.c).
 *
 * Spec: SPC-4 7.8, SBC-3 6.6 (B0h to B2h), RFC 7143 and SPC-4 7.6 (iSCSI names).
 */
#include <stdio.h>
#include <string.h>

#include "core/wire.h"
#include "target/scsi/lu_int.h"

#define HEADER 4
#define PROTOCOL_ISCSI 0x05

/* Association of a designator. */
#define OF_LU 0x00
#define OF_PORT 0x10
#define OF_DEVICE 0x20
/* Type. */
#define T10_VENDOR 0x01
#define NAA 0x03
#define RELATIVE_PORT 0x04
#define PORT_GROUP 0x05
#define SCSI_NAME 0x08
/* Code set. */
#define BINARY 0x01
#define ASCII 0x02
#define UTF_8 0x03

/* Until asymmetric access is told (TPGS=0) all ports are one group. */
#define ONE_PORT_GROUP 1

/* Fills the page after its header; returns the length of that. OUT is zeroed. */
typedef unsigned page_fn(const struct scsi_task *task, uint8_t *out);

static page_fn supported, serial, identification, extended, limits, characteristics, provisioning;

static const struct {
	uint8_t code;
	page_fn *build;
} pages[] = {
	{ 0x00, supported },       /* supported VPD pages */
	{ 0x80, serial },          /* unit serial number */
	{ 0x83, identification },  /* device identification */
	{ 0x86, extended },        /* extended INQUIRY data */
	{ 0xb0, limits },          /* block limits */
	{ 0xb1, characteristics }, /* block device characteristics */
	{ 0xb2, provisioning },    /* logical block provisioning */
};

unsigned vpd_build(const struct scsi_task *task, uint8_t code, uint8_t *out)
{
	unsigned i, length;

	for (i = 0; i < ARRAY_LEN(pages); i++) {
		if (pages[i].code != code)
			continue;
		memset(out, 0, SCSI_CONTROL_MAX);
		length = pages[i].build(task, out + HEADER);
		out[1] = code;
		put_be16(out + 2, (uint16_t)length);
		return HEADER + length;
	}
	return 0;
}

static unsigned supported(const struct scsi_task *task, uint8_t *out)
{
	unsigned i;

	(void)task;
	for (i = 0; i < ARRAY_LEN(pages); i++)
		out[i] = pages[i].code;
	return ARRAY_LEN(pages);
}

static unsigned serial(const struct scsi_task *task, uint8_t *out)
{
	memcpy(out, task->lu->uuid_text, UUID_STR_LEN - 1);
	return UUID_STR_LEN - 1;
}

/* A designation descriptor; returns its end. LENGTH bytes at DATA, zeroes up to PADDED. */
static uint8_t *designator(uint8_t *out, unsigned code_set, unsigned kind, const void *data,
			   unsigned length, unsigned padded)
{
	out[0] = (uint8_t)code_set;
	out[1] = (uint8_t)kind;
	if ((kind & 0x30) != OF_LU) {
		out[0] |= PROTOCOL_ISCSI << 4;
		out[1] |= 0x80; /* PIV */
	}
	out[3] = (uint8_t)padded;
	memcpy(out + 4, data, length);
	return out + 4 + padded;
}

/* NAA 3h: 60 bits of the uuid; NAA 6h: an OUI and 100 bits of it. */
static uint8_t *naa(uint8_t *out, const struct scsi_lu *lu)
{
	uint8_t id[16];

	memcpy(id, lu->uuid, sizeof(id));
	if (!lu->oui) {
		id[0] = 0x30 | (id[0] & 0x0f);
		return designator(out, BINARY, OF_LU | NAA, id, 8, 8);
	}
	/* The uuid's first 28 bits give way: its end holds as much chance as its beginning. */
	put_be32(id, 0x60000000 | (lu->oui & 0xffffff) << 4 | (id[3] & 0x0f));
	return designator(out, BINARY, OF_LU | NAA, id, 16, 16);
}

/* A SCSI name string: NUL-terminated, padded to a multiple of four. */
static uint8_t *name_string(uint8_t *out, unsigned association, const char *name)
{
	unsigned length = (unsigned)strlen(name) + 1;

	return designator(out, UTF_8, association | SCSI_NAME, name, length,
			  (unsigned)align_up(length, 4));
}

static unsigned identification(const struct scsi_task *task, uint8_t *out)
{
	const struct scsi_device *device = task->nexus->device;
	uint16_t port = task->nexus->id.portal_group;
	char vendor[8 + UUID_STR_LEN], port_name[NEXUS_NAME_MAX + 16];
	uint8_t number[4] = { 0 }, *p = out;

	p = naa(p, task->lu);
	snprintf(vendor, sizeof(vendor), "YOKE    %s", task->lu->uuid_text);
	p = designator(p, ASCII, OF_LU | T10_VENDOR, vendor, (unsigned)strlen(vendor),
		       (unsigned)strlen(vendor));
	put_be16(number + 2, port);
	p = designator(p, BINARY, OF_PORT | RELATIVE_PORT, number, 4, 4);
	put_be16(number + 2, ONE_PORT_GROUP);
	p = designator(p, BINARY, OF_PORT | PORT_GROUP, number, 4, 4);
	snprintf(port_name, sizeof(port_name), "%s,t,0x%04x", device->name, port);
	p = name_string(p, OF_PORT, port_name);
	p = name_string(p, OF_DEVICE, device->name);
	return (unsigned)(p - out);
}

static unsigned extended(const struct scsi_task *task, uint8_t *out)
{
	out[1] = 0x07;                             /* HEADSUP, ORDSUP, SIMPSUP */
	out[2] = task->lu->write_cache ? 0x01 : 0; /* V_SUP */
	out[9] = SCSI_SENSE_MAX;
	return 0x3c;
}

static unsigned limits(const struct scsi_task *task, uint8_t *out)
{
	const struct scsi_lu *lu = task->lu;
	uint32_t block = lu->block_size;
	uint32_t optimal = lu->blk->optimal_io;

	/* An optimum beyond the maximum would be no help to anybody. */
	if (optimal > SCSI_TRANSFER_MAX)
		optimal = 0;
	/* Optimal granularity: whole physical blocks, so that nothing has to be read to write. */
	put_be16(out + 2, (uint16_t)(lu->blk->physical_block / block));
	put_be32(out + 4, SCSI_TRANSFER_MAX / block);
	put_be32(out + 8, optimal / block);
	out[1] = (uint8_t)(SCSI_CAW_MAX / block);
	if (lu_thin(lu)) {
		put_be32(out + 16, (uint32_t)(SCSI_UNMAP_MAX / block));
		put_be32(out + 20, SCSI_UNMAP_RANGES);
		/*
		 * That one block is the optimum says nothing, and QEMU 7.2 reads a granularity
		 * of 4096-byte blocks as one to ask GET LBA STATUS by, with lengths that are no
		 * multiple of them: its assertion fails.
		 */
		if (lu->blk->physical_block > block) {
			put_be32(out + 24, lu->blk->physical_block / block);
			put_be32(out + 28, 0x80000000); /* UGAVALID: from LBA 0 on */
		}
	}
	put_be64(out + 32, SCSI_WRITE_SAME_MAX / block);
	if (lu->blk->features & BLK_ATOMIC)
		put_be32(out + 40, (uint32_t)(SCSI_ATOMIC_MAX / block));
	return 0x3c;
}

static unsigned characteristics(const struct scsi_task *task, uint8_t *out)
{
	put_be16(out, 1); /* does not rotate: hosts are not to sort for it */
	if (lu_thin(task->lu))
		out[3] = 0x40; /* WABEREQ 01b: what BLOCK ERASE erased reads without error */
	return 0x3c;
}

static unsigned provisioning(const struct scsi_task *task, uint8_t *out)
{
	const struct scsi_lu *lu = task->lu;

	if (lu_thin(lu)) {
		out[1] = 0xe4; /* LBPU, LBPWS, LBPWS10, LBPRZ */
		out[2] = 0x02; /* thin */
	}
	return 4;
}
