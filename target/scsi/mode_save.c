/* SPDX-License-Identifier: MIT */
/*
 * Saved mode parameters: from the store when a logical unit is made, to it by MODE SELECT.
 *
 * The blob: the savable pages one after the other, each as MODE SENSE tells its saved values,
 * with PS 0.
 *
 * Invariants:
 * 1. lu->saved is what the store has durably, or the defaults: it follows a save that has ended
 *    well, also if the task was aborted meanwhile.
 * 2. One save at a time: what the next one saves includes what this one did.
 * 3. A save that fails changes nothing, and its command ends with 04/44/00: the medium is well,
 *    something in the device that is not the medium has failed (SPC-4 4.5.6, HARDWARE ERROR).
 * 4. A blob is taken as a whole or not at all; of its pages only bits that are changeable now.
 *
 * Not here: checksums, files and who they belong to (who makes the store).
 *
 * Spec: SPC-4 6.9 (SP saves all the savable pages), 6.11.5.
 */
#include <string.h>

#include "core/event.h"
#include "target/scsi/mode_int.h"
#include "target/scsi/sense.h"

struct lu_mode lu_mode_default(const struct scsi_lu *lu)
{
	return (struct lu_mode){ .tas = true, .wce = lu->write_cache };
}

struct lu_mode lu_mode_now(const struct scsi_lu *lu)
{
	return (struct lu_mode){
		.d_sense = lu_d_sense(lu),
		.swp = atomic_load(&lu->swp),
		.tas = atomic_load(&lu->tas),
		.wce = lu->wce,
	};
}

void lu_mode_set(struct scsi_lu *lu, const struct lu_mode *mode)
{
	atomic_store(&lu->d_sense, mode->d_sense);
	atomic_store(&lu->swp, mode->swp);
	atomic_store(&lu->tas, mode->tas);
	lu->wce = mode->wce;
}

/* ---- loading */

/* The page at AT of the blob, or NULL. */
static const struct mode_page *blob_page(const struct scsi_lu *lu, const uint8_t *blob,
					 uint32_t length, uint32_t at, unsigned *header)
{
	const struct mode_page *page;
	uint8_t as_told[MODE_PAGE_MAX];

	*header = blob[at] & MODE_SPF ? 4 : 2;
	if (length - at < *header)
		return NULL;
	page = mode_page_find(blob[at] & (uint8_t)~MODE_SPF, *header == 4 ? blob[at + 1] : 0);
	if (!page || !page->take || length - at - *header < page->length)
		return NULL;
	mode_page_put(lu, page, &lu->saved, as_told);
	return memcmp(blob + at, as_told, *header) == 0 ? page : NULL;
}

void lu_mode_load(struct scsi_lu *lu)
{
	struct lu_mode mode = lu_mode_default(lu);
	const struct mode_page *page;
	const uint8_t *blob;
	uint32_t length = 0, at;
	unsigned header;

	lu->saved = mode;
	blob = lu->store ? lu->store->load(lu->store, LU_BLOB_MODE, &length) : NULL;
	for (at = 0; blob && at < length; at += header + page->length) {
		page = blob_page(lu, blob, length, at, &header);
		if (!page) {
			event_emit(EVENT_STATE_IGNORED, lu->blk->name, "mode",
				   "its pages are not those of this version");
			return;
		}
		page->take(&mode, blob + at + header);
	}
	mode.wce = mode.wce && lu->write_cache; /* the administrator may have taken it away */
	lu->saved = mode;
}

/* ---- saving */

static uint32_t put_blob(struct scsi_lu *lu)
{
	const struct mode_page *page;
	uint32_t length = 0;
	unsigned i;

	for (i = 0; (page = mode_page(i)); i++) {
		if (!mode_page_savable(lu, page))
			continue;
		assert(length + MODE_PAGE_MAX <= sizeof(lu->mode_blob));
		length += mode_page_put(lu, page, &lu->saving, lu->mode_blob + length);
	}
	return length;
}

static void save_first(struct scsi_lu *lu);

static struct lu_task *take_first(struct scsi_lu *lu)
{
	struct lu_task *lt = STAILQ_FIRST(&lu->savers);

	STAILQ_REMOVE_HEAD(&lu->savers, save_link);
	return lt;
}

static void mode_saved(struct lu_save *save, int error)
{
	struct scsi_lu *lu = container_of(save, struct scsi_lu, mode_save);
	struct lu_task *lt = take_first(lu);
	struct mode_list list;

	if (error) {
		scsi_fail(lt->task, SCSI_R_INTERNAL);
	} else {
		lu->saved = lu->saving;
		mode_list_read(lt->task, &list);
		mode_list_apply(lt->task, &list);
	}
	/* Before the task ends: with the last one the logical unit may go. */
	save_first(lu);
	scsi_complete(lt->task);
}

static void save_first(struct scsi_lu *lu)
{
	struct mode_list list;
	struct lu_task *lt;

	while ((lt = STAILQ_FIRST(&lu->savers)) && atomic_load(&lt->task->aborting)) {
		take_first(lu);
		scsi_complete(lt->task);
	}
	if (!lt)
		return;
	lu->saving = lu_mode_now(lu);
	mode_list_read(lt->task, &list);
	mode_list_take(&lu->saving, &list);
	lu->mode_save = (struct lu_save){
		.blob = LU_BLOB_MODE,
		.data = lu->mode_blob,
		.length = put_blob(lu),
		.done = mode_saved,
	};
	lu->store->save(lu->store, &lu->mode_save);
}

void mode_save(struct lu_task *lt)
{
	bool alone = STAILQ_EMPTY(&lt->lu->savers);

	STAILQ_INSERT_TAIL(&lt->lu->savers, lt, save_link);
	if (alone)
		save_first(lt->lu);
}
