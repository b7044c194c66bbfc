/* SPDX-License-Identifier: MIT */
/*
 * The registers' versions, and the one comparison that judges them.
 *
 * Invariants:
 *  1. A version is dropped only when every read that is under way or may still begin would
 *     contradict another version by returning it.
 *  2. Ignoring an operation makes the judgement milder, never wrong: when memory ends, or a
 *     write is forgotten, nothing is reported that did not happen.
 *
 * Why a version V may go: a read of it that begins at or after M (the oldest read under way, or
 * now) moves its last begin to M or later. So it contradicts every W with first_end(W) < M and
 * first_end(V) < last_begin(W). What V itself would contradict later goes with it, or W
 * contradicts it too, so nothing of V need be kept.
 *
 * Not here: what values mean and how they get into blocks (stamp.c, verify.c).
 * Spec: Gibbons, Korach: Testing shared memories.
 */
#include "bench/history.h"

#include <stdlib.h>
#include <string.h>

/* Dropped versions that can still be shown at most; older ones are known only to be gone. */
#define DROPPED 16384u

#define MALLOC_BYTES 16u /* that it adds to each operation */

enum state { READING, WRITING, KNOWN, UNKNOWN };

struct history_op {
	struct history_op *next; /* of its register, or of the free ones */
	uint64_t value;
	uint64_t begin, end;             /* of the write, or of the read under way */
	uint64_t first_begin, first_end; /* of the read that ended first */
	uint64_t last_begin, last_end;   /* of the read that began last */
	uint32_t reg;
	uint32_t reads;
	uint16_t who, first_who, last_who;
	uint8_t state;
	bool dead; /* read and overwritten before its write was answered */
};

enum prior {
	PRIOR_UNSEEN, /* nobody has read what was there before: any one value will do */
	PRIOR_SEEN,   /* a version as others */
	PRIOR_GONE,   /* overwritten unread */
};

struct reg {
	struct history_op *first;
	uint64_t forgotten; /* values up to this one are not judged; 0: none */
	enum prior prior;
};

struct history {
	struct reg *regs;
	uint64_t reg_count;
	struct history_op *free_ops;
	uint64_t left;              /* operations that may still be allocated */
	struct history_op *dropped; /* [drops_max], a ring */
	uint64_t drops, drops_max;
	struct history_conflict conflict;
};

static uint64_t first_end(const struct history_op *version)
{
	return min_u64(version->end, version->first_end);
}

static uint64_t last_begin(const struct history_op *version)
{
	return max_u64(version->begin, version->last_begin);
}

uint64_t history_bytes(uint64_t registers, uint64_t versions_max)
{
	return sizeof(struct history) + registers * sizeof(struct reg) +
	       versions_max * (sizeof(struct history_op) + MALLOC_BYTES) +
	       min_u64(DROPPED, versions_max) * sizeof(struct history_op);
}

struct history *history_new(uint64_t registers, uint64_t versions_max)
{
	struct history *history = calloc(1, sizeof(*history));

	if (history == NULL || registers > UINT32_MAX)
		goto fail;
	history->regs = calloc(max_u64(registers, 1), sizeof(*history->regs));
	history->drops_max = max_u64(min_u64(DROPPED, versions_max), 1);
	history->dropped = calloc(history->drops_max, sizeof(*history->dropped));
	if (history->regs == NULL || history->dropped == NULL)
		goto fail;
	history->reg_count = registers;
	history->left = versions_max;
	return history;
fail:
	history_free(history);
	return NULL;
}

void history_free(struct history *history)
{
	struct history_op *op;

	if (history == NULL)
		return;
	for (uint64_t i = 0; i < history->reg_count; i++) {
		while ((op = history->regs[i].first) != NULL) {
			history->regs[i].first = op->next;
			free(op);
		}
	}
	while ((op = history->free_ops) != NULL) {
		history->free_ops = op->next;
		free(op);
	}
	free(history->regs);
	free(history->dropped);
	free(history);
}

static struct history_op *op_new(struct history *history, uint64_t reg, enum state state,
				 uint64_t now, uint16_t who)
{
	struct history_op *op = history->free_ops;

	assert(reg < history->reg_count);
	if (op != NULL) {
		history->free_ops = op->next;
	} else {
		if (history->left == 0 || (op = malloc(sizeof(*op))) == NULL)
			return NULL;
		history->left--;
	}
	*op = (struct history_op){
		.next = history->regs[reg].first,
		.begin = now,
		.end = HISTORY_NEVER,
		.first_end = HISTORY_NEVER,
		.reg = (uint32_t)reg,
		.who = who,
		.state = (uint8_t)state,
	};
	history->regs[reg].first = op;
	return op;
}

/* LINK is what points to it. */
static void op_free(struct history *history, struct history_op **link)
{
	struct history_op *op = *link;

	*link = op->next;
	op->next = history->free_ops;
	history->free_ops = op;
}

static void unlink_op(struct history *history, struct history_op *op)
{
	struct history_op **link = &history->regs[op->reg].first;

	while (*link != op)
		link = &(*link)->next;
	op_free(history, link);
}

static void drop_version(struct history *history, struct history_op **link)
{
	history->dropped[history->drops++ % history->drops_max] = **link;
	op_free(history, link);
}

/* Since when reads that have not ended may have begun. */
static uint64_t oldest_read(const struct reg *reg, uint64_t now)
{
	uint64_t oldest = now;

	for (const struct history_op *op = reg->first; op != NULL; op = op->next)
		if (op->state == READING)
			oldest = min_u64(oldest, op->begin);
	return oldest;
}

/* The two latest begins among versions that were there before a time. */
struct latest {
	const struct history_op *of; /* the first */
	uint64_t first, second;
};

static struct latest latest_begins(const struct reg *reg, uint64_t before)
{
	struct latest latest = { 0 };

	for (const struct history_op *op = reg->first; op != NULL; op = op->next) {
		if (op->state == READING || first_end(op) >= before)
			continue;
		if (latest.of == NULL || last_begin(op) > latest.first) {
			latest.second = latest.first;
			latest.first = last_begin(op);
			latest.of = op;
		} else {
			latest.second = max_u64(latest.second, last_begin(op));
		}
	}
	return latest;
}

/* Whether a read that begins after the time of LATEST contradicts another by returning OP. */
static bool is_over(const struct history_op *op, const struct latest *latest)
{
	return first_end(op) < (op == latest->of ? latest->second : latest->first);
}

/* Drops what no read can return any more; see the top. */
static void prune(struct history *history, struct reg *reg, uint64_t now)
{
	struct latest latest = latest_begins(reg, oldest_read(reg, now));

	if (reg->prior == PRIOR_UNSEEN && latest.first > 0)
		reg->prior = PRIOR_GONE;
	for (struct history_op *op, **link = &reg->first; (op = *link) != NULL;) {
		if (op->state != READING && is_over(op, &latest))
			op->dead = true;
		if (op->dead && op->state != WRITING)
			drop_version(history, link);
		else
			link = &op->next;
	}
}

void history_seed(struct history *history, uint64_t reg, uint64_t value, bool known, bool or_prior)
{
	struct history_op *op = op_new(history, reg, known ? KNOWN : UNKNOWN, 0, 0);

	history->regs[reg].prior = or_prior ? PRIOR_UNSEEN : PRIOR_SEEN;
	if (op == NULL) {
		history_seed_forgotten(history, reg, value);
		return;
	}
	op->value = value;
	if (known)
		op->end = 0;
}

void history_seed_forgotten(struct history *history, uint64_t reg, uint64_t value)
{
	history->regs[reg].forgotten = max_u64(history->regs[reg].forgotten, value);
}

struct history_op *history_begin_write(struct history *history, uint64_t reg, uint64_t value,
				       uint64_t now, uint16_t who)
{
	struct history_op *op = op_new(history, reg, WRITING, now, who);

	assert(value < HISTORY_PRIOR);
	if (op != NULL)
		op->value = value;
	else
		history_seed_forgotten(history, reg, value);
	return op;
}

struct history_op *history_begin_read(struct history *history, uint64_t reg, uint64_t now,
				      uint16_t who)
{
	return op_new(history, reg, READING, now, who);
}

void history_who(struct history_op *op, uint16_t who)
{
	if (op != NULL)
		op->who = who;
}

/* Of the writes that may happen at any time, only so many are waited for. */
static void forget_unknown(struct history *history, struct reg *reg)
{
	struct history_op **oldest = NULL;
	unsigned count = 0;

	for (struct history_op **link = &reg->first; *link != NULL; link = &(*link)->next) {
		if ((*link)->state != UNKNOWN || (*link)->reads > 0)
			continue;
		if (oldest == NULL || (*link)->value < (*oldest)->value)
			oldest = link;
		count++;
	}
	if (count <= HISTORY_UNKNOWN_MAX)
		return;
	reg->forgotten = max_u64(reg->forgotten, (*oldest)->value);
	drop_version(history, oldest);
}

void history_end_write(struct history *history, struct history_op *op, bool known, uint64_t now)
{
	struct reg *reg;

	if (op == NULL)
		return;
	assert(op->state == WRITING);
	reg = &history->regs[op->reg];
	op->state = known ? KNOWN : UNKNOWN;
	if (known)
		op->end = now;
	prune(history, reg, now);
	if (!known)
		forget_unknown(history, reg);
}

static struct history_op *find(const struct reg *reg, uint64_t value)
{
	struct history_op *op = reg->first;

	while (op != NULL && (op->state == READING || op->dead || op->value != value))
		op = op->next;
	return op;
}

static struct history_version show(const struct history_op *op)
{
	return (struct history_version){
		.value = op->value,
		.write = { op->begin, op->end, op->who },
		.first_read = { op->first_begin, op->first_end, op->first_who },
		.last_read = { op->last_begin, op->last_end, op->last_who },
		.reads = op->reads,
		.under_way = op->state == WRITING,
	};
}

/* The version VALUE of REG, if it was dropped not long ago. */
static const struct history_op *find_dropped(const struct history *history, uint32_t reg,
					     uint64_t value)
{
	for (uint64_t i = 0; i < min_u64(history->drops, history->drops_max); i++)
		if (history->dropped[i].reg == reg && history->dropped[i].value == value)
			return &history->dropped[i];
	return NULL;
}

/* What says that VERSION cannot be there: another, SELF aside, that must be, or was, after it. */
static const struct history_op *contradicting(const struct history_op *version,
					      const struct history_op *self, const struct reg *reg)
{
	for (const struct history_op *op = reg->first; op != NULL; op = op->next)
		if (op != self && op->state != READING && first_end(version) < last_begin(op) &&
		    first_end(op) < last_begin(version))
			return op;
	return NULL;
}

/* The version that a read of something else should have found: the last that must be there. */
static const struct history_op *expected(const struct reg *reg)
{
	const struct history_op *best = NULL;

	for (const struct history_op *op = reg->first; op != NULL; op = op->next)
		if (op->state != READING && first_end(op) != HISTORY_NEVER &&
		    (best == NULL || last_begin(op) > last_begin(best)))
			best = op;
	return best;
}

static void remember_conflict(struct history *history, const struct history_op *read,
			      const struct history_op *other)
{
	struct history_conflict *conflict = &history->conflict;

	*conflict = (struct history_conflict){ .read_known = read != NULL,
					       .other_known = other != NULL };
	if (read != NULL)
		conflict->read = show(read);
	if (other != NULL)
		conflict->other = show(other);
}

/* A value that is no version of REG now. */
static enum history_verdict judge_missing(struct history *history, uint32_t reg_number,
					  uint64_t value)
{
	const struct reg *reg = &history->regs[reg_number];
	const struct history_op *dropped;

	if (reg->forgotten != 0 && value <= reg->forgotten)
		return HISTORY_UNJUDGED;
	dropped = find_dropped(history, reg_number, value);
	remember_conflict(history, dropped, expected(reg));
	if (dropped == NULL && value >= HISTORY_PRIOR && reg->prior == PRIOR_SEEN)
		return HISTORY_STRANGE;
	return HISTORY_STALE;
}

static void add_read(struct history_op *version, const struct history_op *read, uint64_t now)
{
	version->reads++;
	if (version->reads == 1) {
		version->first_begin = read->begin;
		version->first_end = now;
		version->first_who = read->who;
	}
	if (version->reads == 1 || read->begin > version->last_begin) {
		version->last_begin = read->begin;
		version->last_end = now;
		version->last_who = read->who;
	}
}

/* The version of VALUE in the register of READ; what was there before becomes one when read. */
static struct history_op *version_of(struct history *history, const struct history_op *read,
				     uint64_t value)
{
	struct reg *reg = &history->regs[read->reg];
	struct history_op *version = find(reg, value);

	if (version != NULL || value < HISTORY_PRIOR || reg->prior != PRIOR_UNSEEN)
		return version;
	version = op_new(history, read->reg, KNOWN, 0, 0);
	if (version == NULL) {
		history_seed_forgotten(history, read->reg, UINT64_MAX);
		return NULL;
	}
	version->value = value;
	version->end = 0;
	reg->prior = PRIOR_SEEN;
	return version;
}

enum history_verdict history_end_read(struct history *history, struct history_op *read,
				      uint64_t value, uint64_t now)
{
	enum history_verdict verdict = HISTORY_FINE;
	struct history_op *version, before;
	const struct history_op *other;
	struct reg *reg;
	uint32_t reg_number;

	if (read == NULL)
		return HISTORY_UNJUDGED;
	assert(read->state == READING);
	reg_number = read->reg;
	reg = &history->regs[reg_number];
	version = version_of(history, read, value);
	if (version == NULL) {
		verdict = judge_missing(history, reg_number, value);
	} else {
		before = *version;
		add_read(version, read, now);
		other = contradicting(version, version, reg);
		if (other != NULL) {
			remember_conflict(history, &before, other);
			verdict = HISTORY_STALE;
		}
	}
	unlink_op(history, read);
	prune(history, reg, now);
	return verdict;
}

void history_drop_read(struct history *history, struct history_op *read, uint64_t now)
{
	struct reg *reg;

	if (read == NULL)
		return;
	assert(read->state == READING);
	reg = &history->regs[read->reg];
	unlink_op(history, read);
	prune(history, reg, now);
}

bool history_possible(const struct history *history, const struct history_op *read, uint64_t value)
{
	static const struct history_op before = { .first_end = HISTORY_NEVER, .state = KNOWN };
	const struct history_op *version;
	const struct reg *reg;
	struct history_op trial;

	if (read == NULL)
		return true;
	reg = &history->regs[read->reg];
	if (reg->forgotten != 0 && value <= reg->forgotten)
		return true;
	version = find(reg, value);
	if (value == HISTORY_PRIOR) {
		version = reg->prior == PRIOR_UNSEEN ? &before : reg->first;
		while (version != NULL && version != &before &&
		       (version->state == READING || version->value < HISTORY_PRIOR))
			version = version->next;
	}
	if (version == NULL)
		return false;
	trial = *version;
	add_read(&trial, read, HISTORY_NEVER);
	return contradicting(&trial, version, reg) == NULL;
}

bool history_find(const struct history *history, uint64_t reg, uint64_t value,
		  struct history_version *version)
{
	const struct history_op *op = find(&history->regs[reg], value);

	if (op == NULL)
		op = find_dropped(history, (uint32_t)reg, value);
	if (op != NULL)
		*version = show(op);
	return op != NULL;
}

const struct history_conflict *history_conflict(const struct history *history)
{
	return &history->conflict;
}

unsigned history_values(const struct history *history, uint64_t reg_number,
			struct history_value *values, unsigned max)
{
	const struct reg *reg = &history->regs[reg_number];
	struct latest latest = latest_begins(reg, HISTORY_NEVER);
	unsigned count = 0;

	if (reg->prior == PRIOR_UNSEEN && latest.first == 0 && count++ < max)
		values[0] = (struct history_value){ HISTORY_PRIOR, true };
	for (const struct history_op *op = reg->first; op != NULL; op = op->next) {
		if (op->state == READING || op->dead || is_over(op, &latest))
			continue;
		if (count++ < max)
			values[count - 1] =
				(struct history_value){ op->value, first_end(op) != HISTORY_NEVER };
	}
	return count;
}

uint64_t history_forgotten(const struct history *history, uint64_t reg)
{
	return history->regs[reg].forgotten;
}
