/* SPDX-License-Identifier: MIT */
/*
 * MODE SENSE and MODE SELECT (6, 10): a table of pages and subpages, each with its functions.
 *
 * Invariants:
 * 1. Rows are in order of page and subpage, as they are reported.
 * 2. Changeable values are a mask of what MODE SELECT takes; a list that changes any other
 *    bit changes nothing at all.
 * 3. No page is saved: PS is 0, asking for saved values and asking to save are refused.
 * 4. WCE goes from 1 to 0 only with everything answered before durable: a list that turns the
 *    cache off takes effect after the flush, and not at all if that fails or is aborted.
 * 5. The other nexuses learn of a change before the command ends.
 *
 * Not here: what the parameters do (lu.c, task_management.c, sense.c read them off the logical unit).
 *
 * Spec: SPC-4 6.11, 6.12, 6.13, 6.14, 7.5; SBC-3 6.5.
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

/* Bits of the pages. */
#define WCE 0x04
#define GLTSD 0x02
#define D_SENSE 0x04
#define SWP 0x08
#define TAS 0x40

/* The longest parameter list that is looked at: every page several times over. */
#define LIST_MAX 1024

/* Fills in the values of the page: OUT is where its parameters begin, zeroed. */
typedef void page_fn(const struct scsi_lu *lu, unsigned control, uint8_t *out);
/* Takes over the changeable values at IN. */
typedef void apply_fn(struct scsi_lu *lu, const uint8_t *in);

static page_fn disconnect, caching, control_page, control_extension, exceptions;
static apply_fn set_caching, set_control;

static const struct mode_page {
	uint8_t page, subpage;
	uint8_t length; /* of the parameters */
	page_fn *fill;
	apply_fn *apply; /* NULL: nothing is changeable */
} pages[] = {
	{ 0x02, 0x00, 0x0e, disconnect, NULL },
	{ 0x08, 0x00, 0x12, caching, set_caching },
	{ 0x0a, 0x00, 0x0a, control_page, set_control },
	{ 0x0a, 0x01, 0x1c, control_extension, NULL },
	{ 0x1c, 0x00, 0x0a, exceptions, NULL },
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
	bool on = control == CURRENT ? lu->wce : lu->write_cache;

	/* Changeable only where the administrator allows a cache. */
	out[0] = on ? WCE : 0;
}

static void set_caching(struct scsi_lu *lu, const uint8_t *in)
{
	lu->wce = in[0] & WCE;
}

static void control_page(const struct scsi_lu *lu, unsigned control, uint8_t *out)
{
	bool current = control == CURRENT;

	if (control == CHANGEABLE) {
		out[0] = D_SENSE;
		out[2] = SWP;
		out[3] = TAS;
		return;
	}
	out[0] = GLTSD | (current && lu_d_sense(lu) ? D_SENSE : 0);
	out[1] = 0x10; /* unrestricted reordering */
	out[2] = current && atomic_load(&lu->swp) ? SWP : 0;
	out[3] = !current || atomic_load(&lu->tas) ? TAS : 0;
	put_be16(out + 6, 0xffff); /* busy time-out: no limit */
}

static void set_control(struct scsi_lu *lu, const uint8_t *in)
{
	atomic_store(&lu->d_sense, (in[0] & D_SENSE) != 0);
	atomic_store(&lu->swp, (in[2] & SWP) != 0);
	atomic_store(&lu->tas, (in[3] & TAS) != 0);
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

/* ---- MODE SELECT */

static const struct mode_page *find_page(uint8_t page, uint8_t subpage)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(pages); i++)
		if (pages[i].page == page && pages[i].subpage == subpage)
			return &pages[i];
	return NULL;
}

/* The highest bit of BYTE, which is not zero. */
static int top_bit(uint8_t byte)
{
	return 31 - __builtin_clz(byte);
}

/* The page at LIST + AT; returns its length, or 0: TASK has failed. */
static unsigned check_page(struct scsi_task *task, const uint8_t *list, unsigned at,
			   unsigned length)
{
	uint8_t current[PAGE_MAX], changeable[PAGE_MAX], differs;
	unsigned header = list[at] & 0x40 ? 4 : 2, total, i;
	const struct mode_page *page;

	if (length - at < header) {
		scsi_fail(task, SCSI_R_PARAMETER_LIST_LENGTH);
		return 0;
	}
	page = find_page(list[at] & 0x3f, header == 4 ? list[at + 1] : 0);
	if (!page || (header == 4 && !page->subpage)) {
		scsi_fail_param(task, at, 5);
		return 0;
	}
	total = put_page(task->lu, page, CURRENT, current);
	put_page(task->lu, page, CHANGEABLE, changeable);
	for (i = 1; i < total && at + i < length; i++) {
		/* The header, its length among it, is as MODE SENSE tells it. */
		differs = list[at + i] ^ current[i];
		if (i >= header)
			differs &= (uint8_t)~changeable[i];
		if (differs) {
			scsi_fail_param(task, at + i, top_bit(differs));
			return 0;
		}
	}
	if (length - at < total) {
		scsi_fail(task, SCSI_R_PARAMETER_LIST_LENGTH);
		return 0;
	}
	return total;
}

/* The block descriptor may only say what is so already. */
static bool check_descriptor(struct scsi_task *task, const uint8_t *list, unsigned at,
			     unsigned size)
{
	uint64_t blocks = size == 16 ? get_be64(list + at) : get_be32(list + at);
	uint64_t all = size == 16 ? UINT64_MAX : UINT32_MAX;
	uint32_t block = size == 16 ? get_be32(list + at + 12) : get_be24(list + at + 5);

	if (blocks != 0 && blocks != all && blocks != lu_blocks(task->lu))
		scsi_fail_param(task, at, 7);
	else if (block != task->lu->block_size)
		scsi_fail_param(task, at + (size == 16 ? 12 : 5), 7);
	else
		return true;
	return false;
}

/* Where the pages begin, or 0: TASK has failed. */
static unsigned check_header(struct scsi_task *task, const uint8_t *list, unsigned length)
{
	bool ten = task->cdb[0] == 0x55;
	unsigned header = ten ? 8 : 4, size;

	if (length < header) {
		scsi_fail(task, SCSI_R_PARAMETER_LIST_LENGTH);
		return 0;
	}
	size = ten ? get_be16(list + 6) : list[3];
	if (size != 0 && size != (ten && list[4] & LONGLBA ? 16u : 8u)) {
		scsi_fail_param(task, ten ? 6 : 3, 7);
		return 0;
	}
	if (length < header + size) {
		scsi_fail(task, SCSI_R_PARAMETER_LIST_LENGTH);
		return 0;
	}
	if (size && !check_descriptor(task, list, header, size))
		return 0;
	return header + size;
}

/* The page at ENTRY of a list that was checked; *HEADER is where its parameters begin. */
static const struct mode_page *page_at(const uint8_t *entry, unsigned *header)
{
	*header = entry[0] & 0x40 ? 4 : 2;
	return find_page(entry[0] & 0x3f, *header == 4 ? entry[1] : 0);
}

static bool turns_cache_off(const struct scsi_lu *lu, const uint8_t *list, unsigned at,
			    unsigned length)
{
	const struct mode_page *page;
	bool wce = lu->wce;
	unsigned header;

	for (; at < length; at += header + page->length) {
		page = page_at(list + at, &header);
		if (page->apply == set_caching)
			wce = list[at + header] & WCE;
	}
	return lu->wce && !wce;
}

/* True: some value is another than before. */
static bool apply_pages(struct scsi_lu *lu, const uint8_t *list, unsigned at, unsigned length)
{
	uint8_t before[PAGE_MAX];
	const struct mode_page *page;
	unsigned header, total;
	bool changed = false;

	for (; at < length; at += total) {
		page = page_at(list + at, &header);
		total = put_page(lu, page, CURRENT, before);
		if (!page->apply || !memcmp(list + at + 1, before + 1, total - 1))
			continue;
		page->apply(lu, list + at + header);
		changed = true;
	}
	return changed;
}

/* The whole list was checked. */
static void take_list(struct lu_task *lt)
{
	struct scsi_task *task = lt->task;
	unsigned length = (unsigned)task->transfer_length, first;
	uint8_t list[LIST_MAX];

	buf_read(&task->data, 0, list, length);
	first = task->cdb[0] == 0x55 ? 8u + get_be16(list + 6) : 4u + list[3];
	if (apply_pages(task->lu, list, first, length))
		task->raise_others |= (uint32_t)1 << UA_MODE_CHANGED;
	scsi_complete(task);
}

static void check_list(struct scsi_task *task, const uint8_t *list, unsigned length)
{
	unsigned first = check_header(task, list, length), at, size;

	for (at = first, size = first; size && at < length; at += size)
		size = check_page(task, list, at, length);
	if (!size)
		scsi_complete(task);
	else if (turns_cache_off(task->lu, list, first, length))
		lu_drain_and_flush(task, take_list);
	else
		take_list(task->lu_private);
}

void scsi_mode_select(struct scsi_task *task)
{
	const uint8_t *cdb = task->cdb;
	uint64_t length = task->transfer_length;
	uint8_t list[LIST_MAX];

	if (cdb[1] & 0x01) { /* SP */
		scsi_fail_field(task, 1, 0);
	} else if (!(cdb[1] & 0x10) && length) { /* without PF the format is nobody's */
		scsi_fail_field(task, 1, 4);
	} else if (length > LIST_MAX || task->data_out_length < length) {
		scsi_fail(task, SCSI_R_PARAMETER_LIST_LENGTH);
	} else if (length) {
		buf_read(&task->data, 0, list, length);
		check_list(task, list, (unsigned)length);
		return;
	}
	scsi_complete(task);
}
