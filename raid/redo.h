/* SPDX-License-Identifier: MIT */
/*
 * The redo log of a member: what is about to be written to stripes whose parity it has (I6, I7).
 *
 * A record holds the new parity and the new data of a range of a stripe, so that after a crash
 * the range can be written again, whole, whoever else is lost. Records are group-committed: one
 * write at a time, FUA, of all that came meanwhile. The log is a ring; the room of a record is
 * free again when what it says is durable in its place.
 *
 *   record  | head, one block | parity of the range | data, column by column |
 *
 * Single-threaded, on the env's shard. yoke-disk(5) has the format.
 */
#ifndef RAID_REDO_H
#define RAID_REDO_H

#include "backstore/blk.h"
#include "backstore/label.h"

#define REDO_SPANS_MAX (LABEL_ROLES_MAX - 1)
#define REDO_CRCS (REDO_SPANS_MAX + 1)
#define REDO_CRC_PARITY REDO_SPANS_MAX

/* ---- a record's head (redo_record.c): pure */

/* Bytes [FROM, TO) of the chunk in a data column. */
struct redo_span {
	unsigned column;
	uint32_t from, to;
};

struct redo_head {
	uint64_t tag;         /* of the array */
	uint64_t incarnation; /* of the log */
	uint64_t sequence;    /* rises by one */
	uint64_t batch;       /* sequence of the first record of the same write */
	uint64_t attempt;     /* rises when a write fails: what it left does not follow others */
	uint64_t tail;        /* no record before this one is to be replayed */
	uint64_t stripe;
	uint32_t from, to; /* of the chunk, what the parity covers; the spans lie in it */
	bool intent;       /* nothing follows: the stripe may be torn, and is whole if crcs fit */
	unsigned span_count;
	struct redo_span spans[REDO_SPANS_MAX];
	uint32_t crcs[REDO_CRCS]; /* of an intent: CRC32C of the range in each column and parity */
};

/* Bytes that follow the head. */
uint64_t redo_payload_bytes(const struct redo_head *head);
/* BLOCK of BLOCK_BYTES: the head with the CRC32C of itself and of what follows, in IOV. */
void redo_encode(const struct redo_head *head, void *block, uint32_t block_bytes,
		 const struct iovec *iov, unsigned iov_count);
/* AVAILABLE bytes are at BLOCK. False: no sound record of this log starts there. */
bool redo_decode(const void *block, uint64_t available, uint32_t block_bytes, uint64_t tag,
		 uint64_t incarnation, struct redo_head *head);
/* Its two halves: what is consistent and would fit, and whether its checksum says that it is one. */
bool redo_decode_head(const void *block, uint64_t available, uint32_t block_bytes, uint64_t tag,
		      uint64_t incarnation, struct redo_head *head);
bool redo_sound(const void *block, uint32_t block_bytes, const struct redo_head *head);

/* ---- the log of a running array (redo.c) */

struct redo;

/* What is to be logged; embedded in its owner, from redo_write() to redo_over(). */
struct redo_entry {
	STAILQ_ENTRY(redo_entry) link;
	uint64_t stripe;
	uint32_t from, to;
	bool intent;
	unsigned span_count;
	struct redo_span spans[REDO_SPANS_MAX];
	/*
	 * Bytes [FROM, TO) of the new data of COLUMN (-1: of the parity) as up to ROOM elements;
	 * how many, 0: there are more.
	 */
	unsigned (*slice)(struct redo_entry *entry, int column, uint32_t from, uint32_t to,
			  struct iovec *iov, unsigned room);
	/* It is durable, or ERROR: it is not, and is over. Deferred. */
	void (*done)(struct redo_entry *entry, int error);

	/* The log's. */
	uint32_t next; /* what is before it has been put into records */
	uint64_t first_sequence;
	unsigned records;
};

struct redo_conf {
	struct env *env;
	struct blk *blk;
	struct label_area area;
	uint32_t block_bytes;
	uint64_t tag, incarnation;
	unsigned columns;
	/* Make everything durable, then redo_flushed(). It may be asked again before that. */
	void (*flush)(void *arg);
	/* The number that the next flush will have: one that begins from now on. */
	uint64_t (*next_flush)(void *arg);
	void *arg;
};

struct redo_counts {
	uint64_t writes, records, bytes;
	uint64_t crc_bytes; /* of payload */
	uint64_t waits;     /* entries that found no room */
};

/* NULL: no memory. */
struct redo *redo_new(const struct redo_conf *conf);
/* Asserts that nothing is being written or waits. */
void redo_free(struct redo *redo);

/* What its records bear. */
uint64_t redo_incarnation(const struct redo *redo);

/* Somebody is about to have an entry: the next write waits a moment for it, if it is worth it. */
void redo_expect(struct redo *redo);
/* He has it now, or never will. */
void redo_expected(struct redo *redo);
void redo_write(struct redo *redo, struct redo_entry *entry);
/*
 * What ENTRY says has been written in its place; DURABLE: with FUA, else the next flush makes it
 * so. Not called where it never was durable.
 */
void redo_over(struct redo *redo, struct redo_entry *entry, bool durable);
/* Some record stays until the next start: who finds no room any more gets -EIO. */
void redo_stay(struct redo *redo);
/* Flush number FLUSH has succeeded: the devices hold what was over before it began. */
void redo_flushed(struct redo *redo, uint64_t flush);
/* The flush that would make room cannot be had: who waits for it gets ERROR. */
void redo_refuse(struct redo *redo, int error);
/* Whether an unflushed record of STRIPE, or only INTENTS, is left: it would be replayed (I8). */
bool redo_has(const struct redo *redo, uint64_t stripe, bool intents);
void redo_count(const struct redo *redo, struct redo_counts *counts);

#endif
