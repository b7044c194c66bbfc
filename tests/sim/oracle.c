/* SPDX-License-Identifier: MIT */
/*
 * What a host may read.
 *
 * Invariants:
 *  1. `now` has every value that a read may show; a read that shows one of them leaves that.
 *  2. `kept` has every value that a power cut may leave; it is `now` but for sectors that a
 *     cache holds newer values of. A value that was read of another sector cannot be taken back
 *     (I11), so it is all that may be kept.
 *
 * Not here: I/O (host.c).
 */
#include "tests/sim/oracle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"

#define SECTOR 512u
#define VALUES_MAX 64
#define MIX 0x9e3779b97f4a7c15u
#define FOREIGN (1ull << 63) /* bytes that no write stamped, by their hash */

struct values {
	unsigned count; /* 0: anything, nobody knows */
	uint64_t all[VALUES_MAX];
};

struct sector {
	struct values now, kept;
	uint64_t writing;  /* value of the write under way; 0: none, or of zeroes */
	uint64_t ended_at; /* mark of the last one that ended GOOD */
	bool torn; /* a write that was not held ended badly; it was not read or written since */
};

struct oracle {
	uint64_t count;
	uint64_t next; /* value */
	uint64_t mark;
	struct sector *sectors; /* zeroes where nothing happened */
	uint8_t *cached;        /* a sector each: `kept` differs */
	char text[200];
};

static void copy(struct values *to, const struct values *from)
{
	to->count = from->count;
	memcpy(to->all, from->all, from->count * sizeof(*from->all));
}

static void set_to(struct values *values, uint64_t value)
{
	values->all[0] = value;
	values->count = 1;
}

static bool has(const struct values *values, uint64_t value)
{
	for (unsigned i = 0; i < values->count; i++)
		if (values->all[i] == value)
			return true;
	return !values->count;
}

/* Hosts read now and then, so few values gather. */
static void add(struct values *values, uint64_t value)
{
	if (!values->count)
		return;
	for (unsigned i = 0; i < values->count; i++)
		if (values->all[i] == value)
			return;
	assert(values->count < VALUES_MAX);
	values->all[values->count++] = value;
}

/*
 * --- sectors as bytes: zero is zeroes, any other value fills it with itself and its place ---
 *
 * The product keeps the XOR of some sectors from being what another one held: values of writes
 * side by side differ in one bit only.
 */

static void stamp(uint8_t *at, uint64_t sector, uint64_t value)
{
	for (unsigned i = 0; i < SECTOR; i += 16) {
		put_le64(at + i, value);
		put_le64(at + i + 8, value ? value * MIX + sector + i : 0);
	}
}

/* Torn, misplaced or foreign: a value that only what was never written can have. */
static uint64_t unstamp(const uint8_t *at, uint64_t sector)
{
	uint64_t value = get_le64(at), hash = 0;
	uint8_t whole[SECTOR];

	stamp(whole, sector, value);
	if (!(value & FOREIGN) && memcmp(at, whole, SECTOR) == 0)
		return value;
	for (unsigned i = 0; i < SECTOR; i += 8)
		hash = (hash ^ get_le64(at + i)) * MIX;
	return (hash >> 2) | FOREIGN;
}

void oracle_write(struct oracle *oracle, uint64_t offset, uint64_t length, void *buf, bool zero)
{
	for (uint64_t i = 0; i < length / SECTOR; i++) {
		struct sector *sector = &oracle->sectors[offset / SECTOR + i];

		sector->writing = zero ? 0 : ++oracle->next;
		if (buf)
			stamp((uint8_t *)buf + i * SECTOR, offset / SECTOR + i, sector->writing);
	}
}

static void sector_ended(struct oracle *oracle, uint64_t index, enum oracle_end end)
{
	struct sector *sector = &oracle->sectors[index];

	switch (end) {
	case ORACLE_DURABLE:
		set_to(&sector->now, sector->writing);
		set_to(&sector->kept, sector->writing);
		oracle->cached[index] = false;
		sector->ended_at = oracle->mark;
		break;
	case ORACLE_VOLATILE:
		set_to(&sector->now, sector->writing);
		add(&sector->kept, sector->writing);
		oracle->cached[index] = true;
		sector->ended_at = oracle->mark;
		break;
	case ORACLE_FAILED:
		add(&sector->now, sector->writing);
		add(&sector->kept, sector->writing);
		oracle->cached[index] = true;
		sector->ended_at = oracle->mark;
		break;
	case ORACLE_UNKNOWN:
		add(&sector->now, sector->writing);
		add(&sector->kept, sector->writing);
		break;
	}
	sector->torn = end == ORACLE_FAILED || end == ORACLE_UNKNOWN;
}

void oracle_ended(struct oracle *oracle, uint64_t offset, uint64_t length, enum oracle_end end)
{
	for (uint64_t i = 0; i < length / SECTOR; i++)
		sector_ended(oracle, offset / SECTOR + i, end);
}

uint64_t oracle_flush_begins(struct oracle *oracle)
{
	return ++oracle->mark;
}

/* The first cached sector from FROM on, or the count of all. */
static uint64_t next_cached(const struct oracle *oracle, uint64_t from)
{
	const uint8_t *at = memchr(oracle->cached + from, 1, oracle->count - from);

	return at ? (uint64_t)(at - oracle->cached) : oracle->count;
}

void oracle_flushed(struct oracle *oracle, uint64_t mark)
{
	for (uint64_t i = 0; (i = next_cached(oracle, i)) < oracle->count; i++) {
		struct sector *sector = &oracle->sectors[i];

		if (sector->ended_at >= mark)
			continue;
		copy(&sector->kept, &sector->now);
		oracle->cached[i] = false;
	}
}

void oracle_power_cut(struct oracle *oracle)
{
	for (uint64_t i = 0; (i = next_cached(oracle, i)) < oracle->count; i++) {
		copy(&oracle->sectors[i].now, &oracle->sectors[i].kept);
		oracle->cached[i] = false;
		oracle->sectors[i].torn = true;
	}
}

/* Values as people know them: zeroes are 0, foreign bytes are -1. */
static int64_t shown(uint64_t value)
{
	return value & FOREIGN ? -1 : (int64_t)value;
}

static const char *wrong(struct oracle *oracle, uint64_t sector, uint64_t value)
{
	const struct values *now = &oracle->sectors[sector].now;
	int used = snprintf(oracle->text, sizeof(oracle->text),
			    "sector %" PRIu64 ": read %" PRId64 ", may be", sector, shown(value));

	for (unsigned i = 0; i < now->count && used < (int)sizeof(oracle->text); i++)
		used += snprintf(oracle->text + used, sizeof(oracle->text) - (size_t)used,
				 " %" PRId64, shown(now->all[i]));
	return oracle->text;
}

const char *oracle_read(struct oracle *oracle, uint64_t offset, uint64_t length, const void *buf)
{
	for (uint64_t i = 0; i < length / SECTOR; i++) {
		uint64_t index = offset / SECTOR + i;
		uint64_t value = unstamp((const uint8_t *)buf + i * SECTOR, index);
		struct sector *sector = &oracle->sectors[index];

		if (!has(&sector->now, value))
			return wrong(oracle, index, value);
		set_to(&sector->now, value);
		sector->torn = false;
		if (!oracle->cached[index])
			set_to(&sector->kept, value);
	}
	return NULL;
}

const char *oracle_read_failed(struct oracle *oracle, uint64_t offset, uint64_t length)
{
	for (uint64_t i = 0; i < length / SECTOR; i++)
		if (oracle->sectors[offset / SECTOR + i].torn)
			return NULL;
	snprintf(oracle->text, sizeof(oracle->text),
		 "sectors %" PRIu64 "+%" PRIu64 ": a read failed, and nothing tore them",
		 offset / SECTOR, length / SECTOR);
	return oracle->text;
}

struct oracle *oracle_new(uint64_t size_bytes)
{
	struct oracle *oracle = calloc(1, sizeof(*oracle));

	assert(oracle && size_bytes % SECTOR == 0);
	oracle->count = size_bytes / SECTOR;
	oracle->sectors = calloc(oracle->count, sizeof(*oracle->sectors));
	oracle->cached = calloc(oracle->count, 1);
	assert(oracle->sectors && oracle->cached);
	return oracle;
}

void oracle_free(struct oracle *oracle)
{
	free(oracle->sectors);
	free(oracle->cached);
	free(oracle);
}
