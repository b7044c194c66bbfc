/* SPDX-License-Identifier: MIT */
/*
 * Which pages of a device in memory were written and not unmapped since: a bit each.
 *
 * Ranges are bytes. On the loop; what is set or cleared costs a word of 64 pages each.
 */
#ifndef BACKSTORE_PAGEMAP_H
#define BACKSTORE_PAGEMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base.h"

#define PAGEMAP_PAGE (4 * KIB)
#define PAGEMAP_LOOK (256 * MIB) /* the longest run that one look tells of */

struct pagemap {
	uint64_t *words;
	uint64_t size_bytes;
};

/* All clear; takes no memory before bits are set. False: there is none. */
bool pagemap_init(struct pagemap *map, uint64_t size_bytes);
void pagemap_free(struct pagemap *map);

/* Every page that the range touches. */
void pagemap_set(struct pagemap *map, uint64_t offset, uint64_t length);
/* Every page that lies in the range whole; the device's last one may be a part of a page. */
void pagemap_clear(struct pagemap *map, uint64_t offset, uint64_t length);
/* Bytes of the range, > 0, that are as the first one is; *SET tells how that is. */
uint64_t pagemap_run(const struct pagemap *map, uint64_t offset, uint64_t length, bool *set);

#endif
