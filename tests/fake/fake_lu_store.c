/* SPDX-License-Identifier: MIT */
/*
 * A store in memory.
 *
 * Invariants:
 * 1. A blob is what its owner has in memory when the save ends, so that touching it meanwhile shows.
 *
 * Not here: files (target/lu_files.c).
 */
#include "tests/fake/fake_lu_store.h"

#include <string.h>

static const void *fake_load(const struct lu_store *store, enum lu_blob blob, uint32_t *length)
{
	const struct fake_lu_store *fake = container_of(store, const struct fake_lu_store, store);

	*length = fake->lengths[blob];
	return fake->there[blob] ? fake->blobs[blob] : NULL;
}

static void fake_save(struct lu_store *store, struct lu_save *save)
{
	struct fake_lu_store *fake = container_of(store, struct fake_lu_store, store);

	assert(save->length <= FAKE_BLOB_MAX);
	STAILQ_INSERT_TAIL(&fake->held, save, link);
	fake->held_count++;
	fake->saves++;
}

static void fake_close(struct lu_store *store)
{
	struct fake_lu_store *fake = container_of(store, struct fake_lu_store, store);

	assert(STAILQ_EMPTY(&fake->held));
	fake->closes++;
}

void fake_lu_store_init(struct fake_lu_store *fake)
{
	memset(fake, 0, sizeof(*fake));
	fake->store =
		(struct lu_store){ .load = fake_load, .save = fake_save, .close = fake_close };
	STAILQ_INIT(&fake->held);
}

void fake_lu_store_end(struct fake_lu_store *fake, int error)
{
	struct lu_save *save = STAILQ_FIRST(&fake->held);

	STAILQ_REMOVE_HEAD(&fake->held, link);
	fake->held_count--;
	if (!error) {
		memcpy(fake->blobs[save->blob], save->data, save->length);
		fake->lengths[save->blob] = save->length;
		fake->there[save->blob] = true;
	}
	save->done(save, error);
}
