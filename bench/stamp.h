/* SPDX-License-Identifier: MIT */
/*
 * What a verified block of 4 KiB looks like: every 512-byte sector says what it is.
 *
 *   sector (512 bytes, integers little-endian)
 *   ┌────┬──────┬─────────┬────────┬─────┬─────┬────────┬──────────┬─────┬──────────────────┐
 *   │  0 │    4 │       5 │      6 │   8 │  16 │     24 │       32 │  36 │          40..511 │
 *   │magic│version│ sector │  lun  │ run │block│sequence│  writer  │ crc │     contents     │
 *   └────┴──────┴─────────┴────────┴─────┴─────┴────────┴──────────┴─────┴──────────────────┘
 *
 *   magic     "YkbS"
 *   version   STAMP_VERSION
 *   sector    0 to 7, its place in the block
 *   run       the run that wrote it, or the journal that several runs share
 *   block     offset on the LUN / 4096
 *   sequence  of the command; no two of a run are alike, so (run, sequence) names the version
 *   writer    session
 *   crc       CRC32C of the other 508 bytes, in two pieces
 *   contents  random bytes that differ from sector to sector and from version to version:
 *             they neither compress nor deduplicate
 *
 * A sector by itself proves where it belongs, when it was written and that it is whole; so a
 * block made of two versions shows both, and the border between them.
 */
#ifndef BENCH_STAMP_H
#define BENCH_STAMP_H

#include <stdbool.h>

#include "core/base.h"

#define STAMP_BLOCK 4096u
#define STAMP_SECTOR 512u
#define STAMP_SECTORS (STAMP_BLOCK / STAMP_SECTOR)
#define STAMP_VERSION 1

struct stamp {
	uint64_t run;
	uint64_t block;
	uint64_t sequence;
	uint32_t writer;
	uint16_t lun;
};

enum stamp_kind {
	STAMP_GOOD,
	STAMP_ZERO,      /* all zeroes: never written, unmapped, or gone */
	STAMP_MISSING,   /* answered GOOD, but nothing arrived (stamp_poison) */
	STAMP_FOREIGN,   /* no stamp: not written by this program */
	STAMP_CORRUPT,   /* a stamp, but the checksum says that bytes have changed */
	STAMP_MISPLACED, /* whole, but of another block, sector or LUN */
	STAMP_TORN,      /* a block only: its sectors are not of one version and kind */
};

struct stamp_sector {
	enum stamp_kind kind;
	struct stamp stamp; /* GOOD, MISPLACED and, as far as it can be believed, CORRUPT */
	uint8_t place;      /* the sector it says it is */
};

/* A block: the kind all its sectors have; CORRUPT if that is GOOD but for some; else TORN. */
struct stamp_found {
	enum stamp_kind kind;
	bool damaged;       /* a sector is CORRUPT */
	struct stamp stamp; /* GOOD: of all; else of the first sector that is whole */
	struct stamp_sector sectors[STAMP_SECTORS];
};

/* Makes BLOCK (STAMP_BLOCK bytes) the one that STAMP names. */
void stamp_write(void *block, const struct stamp *stamp);

/* Marks a buffer that is about to be read into, so that bytes that never came are noticed. */
void stamp_poison(void *block);

/* What BLOCK is, read from BLOCK number BLOCK_AT of LUN. */
void stamp_read(const void *block, uint16_t lun, uint64_t block_at, struct stamp_found *found);

/* The same 63 bits for the same contents: tells two versions nobody stamped apart. */
uint64_t stamp_hash(const void *block);

/* "all zeroes", "foreign"...; for people. */
const char *stamp_kind_name(enum stamp_kind kind);

#endif
