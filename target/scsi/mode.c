/* SPDX-License-Identifier: MIT */
/*
 * MODE SENSE (6, 10): a table of pages and subpages, each with its function.
 *
 * Invariants:
 * 1. Rows are in order of page and subpage, as they are reported.
 * 2. Changeable values are a mask of what MODE SELECT takes: nothing, while there is none.
 * 3. No page is saved: PS is 0 and asking for saved values is refused.
 *
 * Not here: what the parameters do (lu.c, task_management.c, sense.c read them off the logical unit).
 *
 * Spec: SPC-4 6.13, 6.14, 7.5; SBC-3 6.5.
 */
#include <string.h>

#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

#define PAGE_MAX 64
#define ALL_PAGES 0x3f
#define ALL_SUBPAGES 0xff

/* PAGE CONTROL. */
enum { CURRENT, CHANGEABLE, DEFAULT, SAVED };

#define WP 0x80
#define DPOFUA 0x10
#define LONGLBA 0x01

/* Fills in the values of the page: OUT is where its parameters begin, zeroed. */
typedef void page_fn(const struct scsi_lu *lu, unsigned control, uint8_t *out);

static page_fn disconnect, caching, control_page, control_extension, exceptions;

static const struct mode_page {
	uint8_t page, subpage;
	uint8_t length; /* of the parameters */
	page_fn *fill;
} pages[] = {
	{ 0x02, 0x00, 0x0e, disconnect },   { 0x08, 0x00, 0x12, caching },
	{ 0x0a, 0x00, 0x0a, control_page }, { 0x0a, 0x01, 0x1c, control_extension },
	{ 0x1c, 0x00, 0x0a, exceptions },
};

/* Bursts are negotiated by iSCSI: nothing to limit here. */
static void disconnect(const struct scsi_lu *lu, unsigned control, uint8_t *out)
{
	(void)lu;
	(void)control;
	(void)out;
}

static void caching(const struct scsi_lu *lu, unsigned control, uint8_t *out)
{
	if (control == CHANGEABLE)
		return;
	out[0] = lu->write_cache ? 0x04 : 0; /* WCE */
}

static void control_page(const struct scsi_lu *lu, unsigned control, uint8_t *out)
{
	bool current = control == CURRENT;

	if (control == CHANGEABLE)
		return;
	out[0] = 0x02 | (current && lu_d_sense(lu) ? 0x04 : 0); /* GLTSD, D_SENSE */
	out[1] = 0x10;                                          /* unrestricted reordering */
	out[2] = current && atomic_load(&lu->swp) ? 0x08 : 0;   /* SWP */
	out[3] = !current || atomic_load(&lu->tas) ? 0x40 : 0;  /* TAS */
	put_be16(out + 6, 0xffff);                              /* busy time-out: no limit */
}

static void control_extension(const struct scsi_lu *lu, unsigned control, uint8_t *out)
{
	(void)lu;
	if (control == CHANGEABLE)
		return;
	out[2] = SCSI_SENSE_MAX;
}

static void exceptions(const struct scsi_lu *lu, unsigned control, uint8_t *out)
{
	(void)lu;
	if (control == CHANGEABLE)
		return;
	out[0] = 0x08; /* DEXCPT: none are reported this way */
}

static unsigned put_page(const struct scsi_lu *lu, const struct mode_page *page, unsigned control,
			 uint8_t *out)
{
	unsigned header = page->subpage ? 4 : 2;

	memset(out, 0, header + page->length);
	out[0] = page->page;
	if (page->subpage) {
		out[0] |= 0x40; /* SPF */
		out[1] = page->subpage;
		put_be16(out + 2, page->length);
	} else {
		out[1] = page->length;
	}
	page->fill(lu, control, out + header);
	return header + page->length;
}

/* The pages asked for; 0: there are none such. */
static unsigned put_pages(const struct scsi_task *task, uint8_t *out)
{
	unsigned page = task->cdb[2] & 0x3f, control = task->cdb[2] >> 6;
	unsigned subpage = task->cdb[3], length = 0, i;

	for (i = 0; i < ARRAY_LEN(pages); i++) {
		if (page != ALL_PAGES && page != pages[i].page)
			continue;
		if (subpage != ALL_SUBPAGES && subpage != pages[i].subpage)
			continue;
		assert(length + PAGE_MAX <= SCSI_CONTROL_MAX / 2);
		length += put_page(task->lu, &pages[i], control, out + length);
	}
	return length;
}

/* The block descriptor: short, or long with LONGLBA; 0 with DBD. */
static unsigned put_descriptor(const struct scsi_task *task, bool ten, uint8_t *out)
{
	uint64_t blocks = lu_blocks(task->lu);
	uint32_t block = task->lu->block_size;

	if (task->cdb[1] & 0x08) /* DBD */
		return 0;
	if (ten && task->cdb[1] & 0x10) { /* LLBAA */
		memset(out, 0, 16);
		put_be64(out, blocks);
		put_be32(out + 12, block);
		return 16;
	}
	put_be32(out, blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX);
	put_be32(out + 4, block); /* density code 0, then 24 bits */
	return 8;
}

static bool page_known(uint8_t code)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(pages); i++)
		if (pages[i].page == code)
			return true;
	return false;
}

static bool refused(struct scsi_task *task)
{
	uint8_t page = task->cdb[2] & 0x3f, subpage = task->cdb[3];

	if (page == ALL_PAGES ? subpage != 0 && subpage != ALL_SUBPAGES : !page_known(page))
		scsi_fail_field(task, page == ALL_PAGES ? 3 : 2, page == ALL_PAGES ? 7 : 5);
	else if (task->cdb[2] >> 6 == SAVED)
		scsi_fail(task, SCSI_R_SAVING_NOT_SUPPORTED);
	else
		return false;
	return true;
}

void scsi_mode_sense(struct scsi_task *task)
{
	bool ten = task->cdb[0] == 0x5a;
	unsigned header = ten ? 8 : 4, descriptor, length;
	uint8_t data[SCSI_CONTROL_MAX] = { 0 };
	uint8_t specific = DPOFUA | (lu_write_protected(task) ? WP : 0);

	if (refused(task)) {
		scsi_complete(task);
		return;
	}
	descriptor = put_descriptor(task, ten, data + header);
	length = put_pages(task, data + header + descriptor);
	if (!length) {
		scsi_fail_field(task, 3, 7); /* the page is there, the subpage is not */
		scsi_complete(task);
		return;
	}
	length += header + descriptor;
	if (ten) {
		put_be16(data, (uint16_t)(length - 2));
		data[3] = specific;
		data[4] = descriptor == 16 ? LONGLBA : 0;
		put_be16(data + 6, (uint16_t)descriptor);
	} else {
		data[0] = (uint8_t)(length - 1);
		data[2] = specific;
		data[3] = (uint8_t)descriptor;
	}
	scsi_reply(task, data, length);
}
