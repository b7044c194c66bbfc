/* SPDX-License-Identifier: MIT */
/*
 * What must outlive a restart: blobs by name, each replaced as a whole.
 *
 * A store belongs to one owner, a logical unit or a volume group, and to its shard: calls come
 * from there and `done` runs there. Who has made it keeps the blobs somewhere (the state
 * directory, metadata of a group) and has read them by then, so that the owner is whole before
 * it serves. Blobs are little; they come back exactly as they were saved, or not at all.
 */
#ifndef TARGET_SCSI_LU_STORE_H
#define TARGET_SCSI_LU_STORE_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base.h"

enum lu_blob {
	LU_BLOB_MODE,     /* saved mode pages */
	LU_BLOB_SANITIZE, /* whether a sanitize operation has not been through */
	LU_BLOBS
};

#define LU_BLOB_MAX ((uint32_t)(1 * MIB)) /* bytes of one */

/* One save, embedded in its owner. From save() to done() only the store touches it and its data. */
struct lu_save {
	enum lu_blob blob;
	const void *data;
	uint32_t length; /* at most LU_BLOB_MAX (asserted) */
	void (*done)(struct lu_save *save, int error);

	/* The store's. */
	STAILQ_ENTRY(lu_save) link;
	void *owner;
	int error;
};

struct lu_store {
	/*
	 * The blob as it was when the store was made; NULL: there is none to be trusted, and
	 * whoever found that has said so. Valid until close().
	 */
	const void *(*load)(const struct lu_store *store, enum lu_blob blob, uint32_t *length);
	/*
	 * Replace the blob. Exactly one done(), never from inside this call. 0: it is durable.
	 * A negative errno: a restart finds the old one, or, if the device failed at the very
	 * end, perhaps the new one; never a mixture. Several may be on their way: they are
	 * done in the order of the calls.
	 */
	void (*save)(struct lu_store *store, struct lu_save *save);
	/* No save is on its way (asserted). */
	void (*close)(struct lu_store *store);
};

#endif
