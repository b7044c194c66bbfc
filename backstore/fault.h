/* SPDX-License-Identifier: MIT */
/*
 * The fault filter: a 1:1 layer that does nothing until a rule matches.
 *
 * For tests and for people who want to see what their hosts do. Rules are tried
 * in the order of their making; the first that matches acts. A rule that has acted
 * as often as it should stays listed while it holds ios.
 */
#ifndef BACKSTORE_FAULT_H
#define BACKSTORE_FAULT_H

#include "backstore/blk.h"

enum fault_kind {
	FAULT_ERROR, /* fails with `error`; never reaches the device */
	FAULT_DELAY, /* goes on after delay_ns */
	FAULT_STUCK, /* waits until the rule is removed, then goes on */
	FAULT_TORN,  /* WRITE: the first torn_bytes reach the device, then -EIO */
};

struct fault_rule {
	enum fault_kind kind;
	unsigned ops;      /* bit mask of 1 << IO_*; TORN: only 1 << IO_WRITE */
	unsigned purposes; /* bit mask of 1 << IO_HOST...; 0: all */
	uint64_t offset;   /* [offset, offset + length): what overlaps it; length 0: everything */
	uint64_t length;   /* a FLUSH has no range and always overlaps */
	int error;         /* ERROR: one that io.h has for each of the ops */
	uint64_t delay_ns;
	uint64_t torn_bytes;  /* rounded down to whole blocks */
	uint64_t count;       /* acts that often, then goes; 0: until removed */
	uint32_t probability; /* per million; 0: always */
};

/* Takes over the caller's reference on LOWER. One reference is the caller's. NULL: no memory. */
struct blk *fault_new(struct blk *lower);

/* NULL if BLK is no fault filter. */
struct fault *fault_of(struct blk *blk);

/* Returns the rule's number (> 0, unique in the process); 0: the rule makes no sense, or no memory. */
uint64_t fault_add(struct fault *fault, const struct fault_rule *rule);
/* False: no such rule here. What it held goes on, in the order in which it came. */
bool fault_remove(struct fault *fault, uint64_t id);

/* Calls FN for each rule in order. HITS: how often it acted; HELD: ios waiting in it now. */
void fault_each(struct fault *fault,
		void (*fn)(void *arg, uint64_t id, const struct fault_rule *rule, uint64_t hits,
			   unsigned held),
		void *arg);

#endif
