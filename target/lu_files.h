/* SPDX-License-Identifier: MIT */
/*
 * The lu_store of plain backings and of arrays: a file of the state directory for each blob.
 *
 * File `backing-NAME.BLOB` or `array-UUID.BLOB`, integers little-endian:
 *
 *       0        8        12       16                32                48         60    64
 *       +--------+--------+--------+-----------------+-----------------+----------+-----+------
 *       | magic  | version| length | uuid            | blob, NUL-padded| 0        | CRC | data
 *       +--------+--------+--------+-----------------+-----------------+----------+-----+------
 *
 * CRC is CRC32C of everything before it and of the data. The blob's own layout belongs to whoever saves it.
 */
#ifndef TARGET_LU_FILES_H
#define TARGET_LU_FILES_H

#include <uuid/uuid.h>

#include "core/env.h"
#include "target/scsi/lu_store.h"

#define LU_FILE_MAGIC "YokeBlob"
#define LU_FILE_VERSION 1
#define LU_FILE_HEADER 64

struct lu_files;

/* Blobs in the folder DIR_FD, which stays the caller's. NULL: out of memory. */
struct lu_files *lu_files_new(struct env *env, int dir_fd);
/* DONE runs once no store is left, perhaps at once. */
void lu_files_drain(struct lu_files *files, void (*done)(void *arg), void *arg);
/* Asserts that no store is left. */
void lu_files_free(struct lu_files *files);

/*
 * The store of NAME, a KIND ("backing", "array"; kept), whose identity is UUID; blobs of another identity are none. DONE
 * runs once; NULL, perhaps at once, is out of memory. A store of the same name that is still open, of a
 * logical unit on its way out, saves nothing any more: -ESTALE.
 */
typedef void lu_files_open_fn(void *arg, struct lu_store *store);
void lu_files_open(struct lu_files *files, const char *kind, const char *name, const uuid_t uuid,
		   lu_files_open_fn *done, void *arg);

#endif
