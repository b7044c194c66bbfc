/* SPDX-License-Identifier: MIT */
/*
 * LOG SENSE: a table of log pages, each with its function.
 *
 * Invariants:
 * 1. Rows are in order of page and subpage; the pages of supported pages list exactly the rows
 *    that are there.
 * 2. Only what is known is told. So there is no logical block provisioning page (0Ch): one without
 *    a parameter is not allowed, and its counts are in threshold sets, which VPD B2h says that
 *    there are none of.
 * 3. Nothing is saved and nothing can be cleared: cumulative values only.
 *
 * Not here: thresholds and their unit attentions.
 *
 * Spec: SPC-4 6.8, 7.3; SBC-3 6.4 (provisioning: the parameters' note, RESOURCE COUNT).
 */
#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/sense.h"

#define HEADER 4
#define SPF 0x40
#define CUMULATIVE 1
#define ALL_SUBPAGES 0xff
/* Parameter control: binary, no threshold comparison; in lists. */
#define BINARY_LIST 0x03

/* Appends the parameters from code FIRST on at OUT, zeroed; returns their length. */
typedef unsigned page_fn(unsigned first, uint8_t *out);

static page_fn pages_there, subpages_there, exceptions;

static const struct log_page {
	uint8_t page, subpage;
	page_fn *build;
	unsigned last; /* parameter code */
} pages[] = {
	{ 0x00, 0x00, pages_there, 0 },
	{ 0x00, ALL_SUBPAGES, subpages_there, 0 },
	{ 0x2f, 0x00, exceptions, 0x0000 },
};

static unsigned pages_there(unsigned first, uint8_t *out)
{
	unsigned i, n = 0;

	(void)first;
	for (i = 0; i < ARRAY_LEN(pages); i++)
		if (!pages[i].subpage)
			out[n++] = pages[i].page;
	return n;
}

static unsigned subpages_there(unsigned first, uint8_t *out)
{
	unsigned i, n = 0;

	(void)first;
	for (i = 0; i < ARRAY_LEN(pages); i++) {
		out[n++] = pages[i].page;
		out[n++] = pages[i].subpage;
	}
	return n;
}

/* Informational exceptions, general: none; no temperature. */
static unsigned exceptions(unsigned first, uint8_t *out)
{
	(void)first;
	put_be16(out, 0x0000);
	out[2] = BINARY_LIST;
	out[3] = 4;
	out[6] = 0xff;
	return 8;
}

static const struct log_page *find(const struct scsi_task *task)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(pages); i++)
		if (pages[i].page == (task->cdb[2] & 0x3f) && pages[i].subpage == task->cdb[3])
			return &pages[i];
	return NULL;
}

void scsi_log_sense(struct scsi_task *task)
{
	const struct log_page *page = find(task);
	unsigned first = get_be16(task->cdb + 5), length;
	uint8_t data[64] = { 0 };

	if (task->cdb[1] & 0x03) { /* PPC, SP */
		scsi_fail_field(task, 1, task->cdb[1] & 0x02 ? 1 : 0);
	} else if (!page) {
		scsi_fail_field(task, 2, 5);
	} else if (page->page && task->cdb[2] >> 6 != CUMULATIVE) {
		scsi_fail_field(task, 2, 7);
	} else if (first > page->last) {
		scsi_fail_field(task, 5, 7);
	} else {
		length = page->build(first, data + HEADER);
		data[0] = page->page | (page->subpage ? SPF : 0);
		data[1] = page->subpage;
		put_be16(data + 2, (uint16_t)length);
		scsi_reply(task, data, HEADER + length);
		return;
	}
	scsi_complete(task);
}
