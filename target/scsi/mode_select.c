/* SPDX-License-Identifier: MIT */
/*
 * MODE SELECT (6, 10): a parameter list, checked as a whole and then taken.
 *
 * Invariants:
 * 1. A list that changes any bit that is not changeable changes nothing at all.
 * 2. WCE goes from 1 to 0 only with everything answered before durable: a list that turns the
 *    cache off takes effect after the flush, and not at all if that fails or is aborted.
 * 3. With SP nothing changes before all of it is saved.
 * 4. The other nexuses learn of a change before the command ends.
 *
 * Not here: the pages (mode.c), saving (mode_save.c).
 *
 * Spec: SPC-4 6.9, 6.10, 7.5.
 */
#include "core/wire.h"
#include "target/scsi/lu_int.h"
#include "target/scsi/mode_int.h"
#include "target/scsi/sense.h"

#define SP 0x01
#define PF 0x10

/* The highest bit of BYTE, which is not zero. */
static int top_bit(uint8_t byte)
{
	return 31 - __builtin_clz(byte);
}

/* The page at LIST + AT; returns its length, or 0: TASK has failed. */
static unsigned check_page(struct scsi_task *task, const uint8_t *list, unsigned at,
			   unsigned length)
{
	uint8_t current[MODE_PAGE_MAX], changeable[MODE_PAGE_MAX], differs;
	unsigned header = list[at] & MODE_SPF ? 4 : 2, total, i;
	struct lu_mode now = lu_mode_now(task->lu);
	const struct mode_page *page;

	if (length - at < header) {
		scsi_fail(task, SCSI_R_PARAMETER_LIST_LENGTH);
		return 0;
	}
	page = mode_page_find(list[at] & 0x3f, header == 4 ? list[at + 1] : 0);
	if (!page || (header == 4 && !page->subpage)) {
		scsi_fail_param(task, at, 5);
		return 0;
	}
	total = mode_page_put(task->lu, page, &now, current);
	mode_page_put(task->lu, page, NULL, changeable);
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
	if (size != 0 && size != (ten && list[4] & MODE_LONGLBA ? 16u : 8u)) {
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
	*header = entry[0] & MODE_SPF ? 4 : 2;
	return mode_page_find(entry[0] & 0x3f, *header == 4 ? entry[1] : 0);
}

/* The list was checked: take its pages over, in their order. */
void mode_list_take(struct lu_mode *mode, const struct mode_list *list)
{
	const struct mode_page *page;
	unsigned at, header;

	for (at = list->first; at < list->length; at += header + page->length) {
		page = page_at(list->bytes + at, &header);
		if (page->take)
			page->take(mode, list->bytes + at + header);
	}
}

void mode_list_read(const struct scsi_task *task, struct mode_list *list)
{
	list->length = (unsigned)task->transfer_length;
	list->first = 0;
	if (!list->length)
		return;
	buf_read(&task->data, 0, list->bytes, list->length);
	list->first = task->cdb[0] == 0x55 ? 8u + get_be16(list->bytes + 6) : 4u + list->bytes[3];
}

static bool has_caching(const struct mode_list *list)
{
	const struct mode_page *page;
	unsigned at, header;

	for (at = list->first; at < list->length; at += header + page->length) {
		page = page_at(list->bytes + at, &header);
		if (mode_page_caches(page))
			return true;
	}
	return false;
}

/*
 * True: what was answered before has to be durable first. While a list is being saved the cache
 * may be turned on by another; none is answered out of it then, for the range stays held.
 */
static bool turns_cache_off(const struct scsi_lu *lu, const struct mode_list *list, bool saves)
{
	struct lu_mode mode = lu_mode_now(lu);
	bool was = mode.wce || (saves && lu->write_cache);

	mode_list_take(&mode, list);
	return was && !mode.wce && has_caching(list);
}

void mode_list_apply(struct scsi_task *task, const struct mode_list *list)
{
	struct lu_mode before = lu_mode_now(task->lu), mode = before;

	mode_list_take(&mode, list);
	if (has_caching(list))
		task->lu->cache_goes_off = false; /* this is newer than the reset that wanted it */
	if (mode.wce == before.wce && mode.d_sense == before.d_sense && mode.swp == before.swp &&
	    mode.tas == before.tas)
		return;
	lu_mode_set(task->lu, &mode);
	task->raise_others |= (uint32_t)1 << UA_MODE_CHANGED;
}

static bool saves(const struct scsi_task *task)
{
	return task->cdb[1] & SP;
}

/* The whole list was checked, and the cache may go off. */
static void take_list(struct lu_task *lt)
{
	struct mode_list list;

	if (saves(lt->task)) {
		mode_save(lt);
		return;
	}
	mode_list_read(lt->task, &list);
	mode_list_apply(lt->task, &list);
	scsi_complete(lt->task);
}

static void check_list(struct scsi_task *task, struct mode_list *list)
{
	unsigned first = check_header(task, list->bytes, list->length), at, size;

	for (at = first, size = first; size && at < list->length; at += size)
		size = check_page(task, list->bytes, at, list->length);
	list->first = first;
}

void scsi_mode_select(struct scsi_task *task)
{
	const uint8_t *cdb = task->cdb;
	uint64_t length = task->transfer_length;
	struct mode_list list = { .length = 0 };

	if (saves(task) && !task->lu->store)
		scsi_fail_field(task, 1, 0);
	else if (!(cdb[1] & PF) && length) /* without it the format is nobody's */
		scsi_fail_field(task, 1, 4);
	else if (length > MODE_LIST_MAX || task->data_out_length < length)
		scsi_fail(task, SCSI_R_PARAMETER_LIST_LENGTH);
	if (task->status == SCSI_GOOD && length) {
		list.length = (unsigned)length;
		buf_read(&task->data, 0, list.bytes, length);
		check_list(task, &list);
	}
	if (task->status != SCSI_GOOD)
		scsi_complete(task);
	else if (turns_cache_off(task->lu, &list, saves(task)))
		lu_drain_and_flush(task, take_list);
	else
		take_list(task->lu_private);
}
