/* SPDX-License-Identifier: MIT */
/*
 * MODE SENSE (6, 10): a table of pages and subpages, each with its functions.
 *
 * Invariants:
 * 1. Rows are in order of page and subpage, as they are reported.
 * 2. Changeable values are a mask of what MODE SELECT takes.
 * 3. PS is 1 where MODE SELECT could save something. Saved values are what a reset and a restart
 *    bring back, so that pages without anything to save show their defaults there. Without a
 *    store nothing is saved, and asking for saved values is refused.
 *
 * Not here: MODE SELECT (mode_select.c), where saved values are (mode_save.c), what the
 * parameters do (lu.c, task_management.c, sense.c read them off the logical unit).
 *
 * Spec: SPC-4 6.11, 6.12, 7.5; SBC-3 6.5.
 */
#include <string.h>

#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/mode_int.h"
#include "target/scsi/sense.h"

#define ALL_PAGES 0x3f
#define ALL_SUBPAGES 0xff

/* PAGE CONTROL; the others are current, changeable and default values. */
#define SAVED 3

#define PS 0x80
#define WP 0x80
#define DPOFUA 0x10
/* Bits of the pages. */
#define WCE 0x04
#define GLTSD 0x02
#define D_SENSE 0x04
#define SWP 0x08
#define TAS 0x40

static mode_fill_fn disconnect, caching, control_page, control_extension, exceptions;
static mode_take_fn set_caching, set_control;

static const struct mode_page pages[] = {
	{ 0x02, 0x00, 0x0e, disconnect, NULL },
	{ 0x08, 0x00, 0x12, caching, set_caching },
	{ 0x0a, 0x00, 0x0a, control_page, set_control },
	{ 0x0a, 0x01, 0x1c, control_extension, NULL },
	{ 0x1c, 0x00, 0x0a, exceptions, NULL },
};

/* Bursts are negotiated by iSCSI: nothing to limit here. */
static void disconnect(const struct scsi_lu *lu, const struct lu_mode *mode, uint8_t *out)
{
	(void)lu;
	(void)mode;
	(void)out;
}

/* Changeable only where the administrator allows a cache. */
static void caching(const struct scsi_lu *lu, const struct lu_mode *mode, uint8_t *out)
{
	out[0] = (mode ? mode->wce : lu->write_cache) ? WCE : 0;
}

static void set_caching(struct lu_mode *mode, const uint8_t *in)
{
	mode->wce = in[0] & WCE;
}

static void control_page(const struct scsi_lu *lu, const struct lu_mode *mode, uint8_t *out)
{
	(void)lu;
	if (!mode) {
		out[0] = D_SENSE;
		out[2] = SWP;
		out[3] = TAS;
		return;
	}
	out[0] = GLTSD | (mode->d_sense ? D_SENSE : 0);
	out[1] = 0x10; /* unrestricted reordering */
	out[2] = mode->swp ? SWP : 0;
	out[3] = mode->tas ? TAS : 0;
	put_be16(out + 6, 0xffff); /* busy time-out: no limit */
}

static void set_control(struct lu_mode *mode, const uint8_t *in)
{
	mode->d_sense = in[0] & D_SENSE;
	mode->swp = in[2] & SWP;
	mode->tas = in[3] & TAS;
}

static void control_extension(const struct scsi_lu *lu, const struct lu_mode *mode, uint8_t *out)
{
	(void)lu;
	if (mode)
		out[2] = SCSI_SENSE_MAX;
}

static void exceptions(const struct scsi_lu *lu, const struct lu_mode *mode, uint8_t *out)
{
	(void)lu;
	if (mode)
		out[0] = 0x08; /* DEXCPT: none are reported this way */
}

/* ---- pages, for MODE SELECT too */

const struct mode_page *mode_page(unsigned index)
{
	return index < ARRAY_LEN(pages) ? &pages[index] : NULL;
}

const struct mode_page *mode_page_find(uint8_t page, uint8_t subpage)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(pages); i++)
		if (pages[i].page == page && pages[i].subpage == subpage)
			return &pages[i];
	return NULL;
}

bool mode_page_caches(const struct mode_page *page)
{
	return page->take == set_caching;
}

unsigned mode_page_put(const struct scsi_lu *lu, const struct mode_page *page,
		       const struct lu_mode *mode, uint8_t *out)
{
	unsigned header = page->subpage ? 4 : 2;

	memset(out, 0, header + page->length);
	out[0] = page->page;
	if (page->subpage) {
		out[0] |= MODE_SPF;
		out[1] = page->subpage;
		put_be16(out + 2, page->length);
	} else {
		out[1] = page->length;
	}
	page->fill(lu, mode, out + header);
	return header + page->length;
}

bool mode_page_savable(const struct scsi_lu *lu, const struct mode_page *page)
{
	uint8_t changeable[MODE_PAGE_MAX];
	unsigned i, total;

	if (!lu->store || !page->take)
		return false;
	total = mode_page_put(lu, page, NULL, changeable);
	for (i = total - page->length; i < total; i++)
		if (changeable[i])
			return true;
	return false;
}

/* ---- MODE SENSE */

/* The pages asked for; 0: there are none such. */
static unsigned put_pages(const struct scsi_task *task, uint8_t *out)
{
	unsigned page = task->cdb[2] & 0x3f, control = task->cdb[2] >> 6;
	unsigned subpage = task->cdb[3], length = 0, at, i;
	const struct scsi_lu *lu = task->lu;
	struct lu_mode now = lu_mode_now(lu), initial = lu_mode_default(lu);
	const struct lu_mode *modes[] = { &now, NULL, &initial, &lu->saved };

	for (i = 0; i < ARRAY_LEN(pages); i++) {
		if (page != ALL_PAGES && page != pages[i].page)
			continue;
		if (subpage != ALL_SUBPAGES && subpage != pages[i].subpage)
			continue;
		assert(length + MODE_PAGE_MAX <= SCSI_CONTROL_MAX / 2);
		at = length;
		length += mode_page_put(lu, &pages[i], modes[control], out + at);
		out[at] |= mode_page_savable(lu, &pages[i]) ? PS : 0;
	}
	return length;
}

/* The block descriptor: short, or long with MODE_LONGLBA; 0 with DBD. */
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
	else if (task->cdb[2] >> 6 == SAVED && !task->lu->store)
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
		data[4] = descriptor == 16 ? MODE_LONGLBA : 0;
		put_be16(data + 6, (uint16_t)descriptor);
	} else {
		data[0] = (uint8_t)(length - 1);
		data[2] = specific;
		data[3] = (uint8_t)descriptor;
	}
	scsi_reply(task, data, length);
}
