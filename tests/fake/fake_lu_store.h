/* SPDX-License-Identifier: MIT */
/* A store in memory whose saves the test ends by hand. It outlives its logical units: a restart. */
#ifndef TESTS_FAKE_FAKE_LU_STORE_H
#define TESTS_FAKE_FAKE_LU_STORE_H

#include "target/scsi/lu_store.h"

#define FAKE_BLOB_MAX 512

struct fake_lu_store {
	struct lu_store store;
	bool there[LU_BLOBS];
	uint8_t blobs[LU_BLOBS][FAKE_BLOB_MAX]; /* what is durable */
	uint32_t lengths[LU_BLOBS];
	STAILQ_HEAD(, lu_save) held;
	unsigned held_count;
	unsigned saves, closes;
};

void fake_lu_store_init(struct fake_lu_store *fake);
/* End the oldest save. */
void fake_lu_store_end(struct fake_lu_store *fake, int error);

#endif
