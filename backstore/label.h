/* SPDX-License-Identifier: MIT */
/*
 * The label: what a disk says of the array that it is a member of.
 *
 * A label has a random id and names its ancestors, back to the last label known to be durable
 * on all members that it listed; who may run without whom follows from that (I9,
 * raid/assembly.h). Its generation orders labels that share no ancestor any more, as long as no
 * start by force lies between them: only force makes two histories of one.
 *
 * A disk has four slots of LABEL_SIZE bytes, two at each end; a label goes to one slot of each end,
 * the slot of its sequence number's parity, so that a torn one leaves the label before it.
 * yoke-disk(5) has the format.
 *
 * Pure: bytes in, bytes out. What is decoded has passed every check that needs no other disk.
 */
#ifndef BACKSTORE_LABEL_H
#define BACKSTORE_LABEL_H

#include <stdbool.h>
#include <uuid/uuid.h>

#include "backstore/bad_ranges.h"

#define LABEL_SIZE 4096u
#define LABEL_SLOTS 4
#define LABEL_NAME_MAX 64
#define LABEL_MEMBERS_MAX 32 /* disks that the array has or had */
#define LABEL_ROLES_MAX 16
#define LABEL_ANCESTORS_MAX 64
#define LABEL_NO_ROLE 0xff

/* Of a member, as the array sees it. */
enum label_state {
	LABEL_NONE,       /* the entry is free */
	LABEL_IN_SYNC,    /* holds everything: it is listed */
	LABEL_REBUILDING, /* holds what its dirty regions do not name */
	LABEL_FAILED,     /* missed something, or may have */
	LABEL_SPARE,
	LABEL_REMOVED, /* taken out for good */
	LABEL_STATES
};

struct label_member {
	uuid_t uuid;
	enum label_state state;
	uint8_t role; /* fixed once given; LABEL_NO_ROLE: none yet */
	/* FAILED: the generation that it had reached for certain; a disk before it is an old copy. */
	uint64_t reached;
};

struct label_ancestor {
	uint64_t id;
	uint64_t forced_id; /* its own, see there */
	uint32_t listed;    /* bit I: members[I] was in-sync */
};

#define LABEL_CLEAN 1u       /* stopped in order: nothing was in flight */
#define LABEL_LOG_STRIPES 2u /* full_stripe_log=data */
#define LABEL_FLAGS (LABEL_CLEAN | LABEL_LOG_STRIPES)

/* Areas of a member, bytes from its start; the same on all. Length 0: it has none. */
struct label_area {
	uint64_t offset;
	uint64_t length;
};

struct label {
	uuid_t array;
	char name[LABEL_NAME_MAX]; /* printable, NUL-terminated */
	unsigned self;             /* which of the members this disk is */
	uint64_t sequence;         /* of labels on this disk, rises by one */
	uint64_t id;               /* random, never 0 */
	uint64_t generation;       /* labels of the array before it; rises by one */
	uint64_t forced_id;   /* the newest label in its history that began by force; 0: none */
	unsigned level;       /* 0, 1, 5, 10 */
	unsigned roles;       /* 1 to LABEL_ROLES_MAX */
	uint32_t chunk_bytes; /* 0 for level 1 */
	uint32_t block_bytes; /* 512 or 4096 */
	unsigned flags;
	uint64_t log_incarnation;  /* of this disk's log (I7) */
	int64_t created_s;         /* CLOCK_REALTIME */
	struct label_area maps[2]; /* dirty regions, kept twice */
	struct label_area log;
	struct label_area data;
	struct label_member members[LABEL_MEMBERS_MAX];
	struct label_ancestor ancestors[LABEL_ANCESTORS_MAX]; /* oldest first, without itself */
	unsigned ancestor_count;
	struct bad_ranges bad; /* of level 5: what nobody knows any more */
};

/* Whether an array can have this NAME: printable, without blanks, with room for its NUL. */
bool label_name_sound(const char *name);

void label_encode(const struct label *label, void *buf);

/* 0; -ENOENT: no label at all; -EILSEQ: a damaged one; -ENOTSUP: of a newer version. */
int label_decode(const void *buf, struct label *label);

/*
 * Its counts are so high that nobody got there by counting: labels after it would soon be none, and
 * it would decide for ever.
 */
bool label_worn(const struct label *label);

/* Byte offset of SLOT on a disk of SIZE bytes. A label is written to slots that are 2 apart. */
uint64_t label_slot_offset(uint64_t size_bytes, unsigned slot);
static inline unsigned label_slot(uint64_t sequence)
{
	return sequence & 1;
}

/* Bit I: members[I] is in-sync. */
uint32_t label_listed(const struct label *label);
/* Index in members, or -1. */
int label_find(const struct label *label, const uuid_t member);

/* Generation of the ancestor at DEPTH; of the label itself at ancestor_count. */
static inline uint64_t label_generation(const struct label *label, unsigned depth)
{
	return label->generation - (label->ancestor_count - depth);
}

/*
 * Turn LABEL into its successor with ID: it becomes its own newest ancestor. The caller then
 * changes members. -ENOSPC: too many ancestors, wait until a label is settled.
 */
int label_succeed(struct label *label, uint64_t id);
/* LABEL is durable on all members that it lists: what came before it does not matter any more. */
void label_settled(struct label *label);

const char *label_state_name(enum label_state state); /* "in-sync" "rebuilding" "failed" ... */

#endif
