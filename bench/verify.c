/* SPDX-License-Identifier: MIT */
/*
 * Operations of many blocks become operations of registers; blocks read become verdicts.
 *
 * Invariants:
 *  1. A version is in the history and in the journal before its write is sent.
 *  2. Only what no honest target may do is a violation: whatever is not known counts for it.
 *
 * Not here: the format of a block (stamp.c), whether a version may be read (history.c), what
 * outlives us (journal.c), the text for people (verify_text.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "bench/verify_int.h"

#define CHECK_BYTES ((uint32_t)MIB) /* of a read of verify_check() */
#define WHO_UNSENT 0

int verify_fits(const struct bench_point *point, struct bench_fault *fault)
{
	for (unsigned i = 0; i < point->stream_count; i++) {
		const struct bench_stream *stream = &point->streams[i];

		if (stream->block_bytes % VERIFY_BLOCK == 0 &&
		    stream->shift_bytes % VERIFY_BLOCK == 0)
			continue;
		snprintf(
			fault->text, sizeof(fault->text),
			"%.64s: blocks of %u bytes at offsets moved by %llu: --verify stamps whole "
			"4 KiB blocks; use a multiple of 4k",
			point->name, stream->block_bytes, (unsigned long long)stream->shift_bytes);
		return -EINVAL;
	}
	return 0;
}

/* How much memory the history may take, and whether that is enough. */
static int check_memory(const struct verify *verify, uint64_t max, struct bench_fault *fault)
{
	uint64_t needed = history_bytes(verify->blocks, verify_versions_max(verify->blocks));

	if (max == 0)
		max = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4;
	if (needed <= max && verify->blocks <= UINT32_MAX)
		return 0;
	snprintf(fault->text, sizeof(fault->text),
		 "--verify of %llu MiB takes %llu MiB of memory, and may take %llu: verify less, "
		 "with --size",
		 (unsigned long long)(verify->blocks / 256), (unsigned long long)(needed / MIB),
		 (unsigned long long)(max / MIB));
	return -ENOMEM;
}

/* What an earlier run left is what the register may hold. */
static void seed(struct verify *verify, uint64_t reg, const struct journal_entry *entries,
		 unsigned count)
{
	bool any = false;

	for (unsigned i = 0; i < count; i++)
		any |= entries[i].kind == JOURNAL_PRIOR_ANY;
	for (unsigned i = 0; i < count; i++) {
		uint64_t number = entries[i].number;

		switch (entries[i].kind) {
		case JOURNAL_KNOWN:
		case JOURNAL_UNKNOWN:
			history_seed(verify->history, reg, number, entries[i].kind == JOURNAL_KNOWN,
				     any);
			break;
		case JOURNAL_PRIOR:
			history_seed(verify->history, reg, HISTORY_PRIOR | number, true, any);
			break;
		case JOURNAL_FORGOTTEN:
			history_seed_forgotten(verify->history, reg, number);
			break;
		default:
			break;
		}
	}
}

static int open_journal(struct verify *verify, const struct verify_conf *conf,
			struct bench_fault *fault)
{
	struct journal_lun luns[BENCH_LUNS_MAX];
	struct journal_entry entries[JOURNAL_ENTRIES];
	int rc;

	for (unsigned i = 0; i < verify->lun_count; i++)
		luns[i] = (struct journal_lun){ verify->luns[i].lun, verify->luns[i].blocks };
	rc = journal_open(conf->journal, luns, verify->lun_count, conf->check_journal,
			  &verify->journal, fault);
	if (rc)
		return rc;
	verify->run = journal_id(verify->journal);
	if (!journal_existed(verify->journal))
		return 0;
	for (uint64_t reg = 0; reg < verify->blocks; reg++) {
		unsigned count = journal_get(verify->journal, reg, entries);

		if (count == 0)
			continue;
		verify->counts.promised++;
		seed(verify, reg, entries, count);
	}
	return 0;
}

int verify_new(const struct verify_conf *conf, struct verify **verify, struct bench_fault *fault)
{
	struct verify *v = calloc(1, sizeof(*v));
	int rc = -ENOMEM;

	*verify = NULL;
	snprintf(fault->text, sizeof(fault->text), "--verify: no memory: end other programs");
	if (v == NULL)
		return rc;
	v->setup = conf->setup;
	v->writer = (uint32_t)getpid();
	v->lun_count = conf->lun_count;
	for (unsigned i = 0; i < conf->lun_count; i++) {
		uint64_t bytes = conf->luns[i].size_bytes;

		if (conf->range_bytes)
			bytes = min_u64(bytes, conf->range_bytes);
		v->luns[i] = (struct verify_lun){
			.lun = conf->luns[i].lun,
			.first = v->blocks,
			.blocks = bytes / VERIFY_BLOCK,
			.tears = conf->luns[i].block_bytes < VERIFY_BLOCK,
		};
		v->blocks += v->luns[i].blocks;
	}
	rc = check_memory(v, conf->memory_max, fault);
	if (rc)
		goto fail;
	rc = -ENOMEM;
	v->history = history_new(v->blocks, verify_versions_max(v->blocks));
	if (v->history == NULL)
		goto fail;
	if (conf->journal)
		rc = open_journal(v, conf, fault);
	else
		rc = getrandom(&v->run, sizeof(v->run), 0) == sizeof(v->run) ? 0 : -EIO;
	if (rc)
		goto fail;
	*verify = v;
	return 0;
fail:
	verify_free(v);
	return rc;
}

void verify_free(struct verify *verify)
{
	if (verify == NULL)
		return;
	assert(verify->in_flight == 0);
	history_free(verify->history);
	journal_close(verify->journal);
	free(verify);
}

static struct journal_entry entry_of(const struct history_value *value)
{
	struct journal_entry entry = { value->known ? JOURNAL_KNOWN : JOURNAL_UNKNOWN,
				       value->value & ~HISTORY_PRIOR };

	if (value->value == HISTORY_PRIOR)
		entry.kind = JOURNAL_PRIOR_ANY;
	else if (value->value > HISTORY_PRIOR)
		entry.kind = JOURNAL_PRIOR;
	return entry;
}

/* What REG may hold becomes what the journal says. */
static void note(struct verify *verify, uint64_t reg)
{
	struct history_value values[JOURNAL_ENTRIES];
	struct journal_entry entries[JOURNAL_ENTRIES];
	uint64_t forgotten = 0;
	unsigned all, count = 0;

	if (verify->journal == NULL)
		return;
	forgotten = history_forgotten(verify->history, reg);
	all = history_values(verify->history, reg, values, JOURNAL_ENTRIES);
	if (all > JOURNAL_ENTRIES || (forgotten && all == JOURNAL_ENTRIES)) {
		/* Too many at once for the record: until they are less, it knows nothing. */
		forgotten = JOURNAL_NUMBER_MAX;
		values[0].value = HISTORY_PRIOR;
		all = 1;
	}
	for (unsigned i = 0; i < all; i++)
		entries[count++] = entry_of(&values[i]);
	if (forgotten)
		entries[count++] = (struct journal_entry){ JOURNAL_FORGOTTEN,
							   min_u64(forgotten, JOURNAL_NUMBER_MAX) };
	if (count > 0)
		journal_set(verify->journal, reg, entries, count);
}

/* Times of the caller's may be those of its loop's turn: a little old. */
static uint64_t advance(struct verify *verify, uint64_t now_ns)
{
	verify->now = max_u64(max_u64(now_ns, verify->now), 1);
	if (verify->started == 0)
		verify->started = verify->now;
	return verify->now;
}

static uint64_t next_sequence(struct verify *verify)
{
	return verify->journal ? journal_sequence(verify->journal) : ++verify->sequence;
}

struct verify_op *verify_begin(struct verify *verify, unsigned lun_index, bool write,
			       uint64_t offset, void *buf, uint32_t length, uint64_t now_ns)
{
	const struct verify_lun *lun = &verify->luns[lun_index];
	unsigned count = length / VERIFY_BLOCK;
	struct verify_op *op = malloc(sizeof(*op) + count * sizeof(op->blocks[0]));
	uint64_t now = advance(verify, now_ns);
	struct stamp stamp;

	assert(lun_index < verify->lun_count && offset % VERIFY_BLOCK == 0 &&
	       length % VERIFY_BLOCK == 0 && offset / VERIFY_BLOCK + count <= lun->blocks);
	if (op == NULL)
		abort(); /* a hundred bytes: nothing else would work either */
	*op = (struct verify_op){ .lun = lun,
				  .write = write,
				  .first = offset / VERIFY_BLOCK,
				  .count = count,
				  .buf = buf,
				  .begin = now };
	stamp = (struct stamp){ .run = verify->run, .writer = verify->writer, .lun = lun->lun };
	if (write)
		stamp.sequence = op->sequence = next_sequence(verify);
	for (unsigned i = 0; i < count; i++) {
		uint64_t reg = lun->first + op->first + i;
		uint8_t *block = op->buf + (size_t)i * VERIFY_BLOCK;

		if (!write) {
			stamp_poison(block);
			op->blocks[i] = history_begin_read(verify->history, reg, now, WHO_UNSENT);
			continue;
		}
		stamp.block = op->first + i;
		stamp_write(block, &stamp);
		op->blocks[i] =
			history_begin_write(verify->history, reg, op->sequence, now, WHO_UNSENT);
		note(verify, reg);
	}
	verify->in_flight++;
	return op;
}

void verify_sent(struct verify_op *op, unsigned portal, unsigned index)
{
	op->who = verify_who(portal, index);
	for (unsigned i = 0; i < op->count; i++)
		history_who(op->blocks[i], op->who);
}

/* The value a whole block stands for. */
static uint64_t value_of(const struct verify *verify, const struct stamp_found *found,
			 const void *block)
{
	if (found->kind == STAMP_GOOD && found->stamp.run == verify->run)
		return found->stamp.sequence;
	if (found->kind == STAMP_ZERO)
		return VERIFY_ZERO;
	return HISTORY_PRIOR | (stamp_hash(block) & JOURNAL_NUMBER_MAX) | 2;
}

/* Whether a sector was written by this run, wherever it belongs. */
static bool is_ours(const struct verify *verify, const struct stamp_sector *sector)
{
	return (sector->kind == STAMP_GOOD || sector->kind == STAMP_MISPLACED) &&
	       sector->stamp.run == verify->run;
}

/* Whether READ may return a block of such sectors; see verify.h about pieces. */
static bool pieces_possible(const struct verify *verify, const struct history_op *read,
			    const struct stamp_found *found)
{
	for (unsigned i = 0; i < STAMP_SECTORS; i++) {
		const struct stamp_sector *sector = &found->sectors[i];
		bool ours = is_ours(verify, sector);

		if (sector->kind == STAMP_MISSING || (ours && sector->kind == STAMP_MISPLACED))
			return false;
		if (!history_possible(verify->history, read,
				      ours ? sector->stamp.sequence : HISTORY_PRIOR))
			return false;
	}
	return true;
}

/* Damage is a violation only where this run wrote: before, a block may hold anything. */
static bool damage(const struct verify *verify, const struct stamp_found *found)
{
	bool ours = false;

	if (found->kind == STAMP_MISSING)
		return true;
	if (found->kind != STAMP_CORRUPT && found->kind != STAMP_MISPLACED &&
	    found->kind != STAMP_TORN)
		return false;
	for (unsigned i = 0; i < STAMP_SECTORS; i++)
		ours |= is_ours(verify, &found->sectors[i]) ||
			found->sectors[i].kind == STAMP_MISSING;
	return ours;
}

static bool judge(struct verify *verify, struct verify_op *op, unsigned i)
{
	const uint8_t *block = op->buf + (size_t)i * VERIFY_BLOCK;
	struct history_op *read = op->blocks[i];
	struct stamp_found found;
	enum history_verdict verdict;

	stamp_read(block, op->lun->lun, op->first + i, &found);
	if (damage(verify, &found)) {
		bool fine = found.kind == STAMP_TORN && op->lun->tears &&
			    pieces_possible(verify, read, &found);

		history_drop_read(verify->history, read, verify->now);
		if (fine)
			verify->counts.torn++;
		else
			verify_say_damage(verify, op, op->first + i, &found);
		return fine;
	}
	verdict = history_end_read(verify->history, read, value_of(verify, &found, block),
				   verify->now);
	verify->counts.blocks_read++;
	if (verdict == HISTORY_UNJUDGED)
		verify->counts.unjudged++;
	if (verdict == HISTORY_FINE || verdict == HISTORY_UNJUDGED)
		return true;
	verify_say_order(verify, op, op->first + i, &found, verdict);
	return false;
}

bool verify_end(struct verify *verify, struct verify_op *op, enum verify_outcome outcome,
		uint64_t now_ns)
{
	uint64_t now = advance(verify, now_ns);
	bool good = outcome == VERIFY_GOOD, fine = true;

	for (unsigned i = 0; i < op->count; i++) {
		if (op->write)
			history_end_write(verify->history, op->blocks[i], good, now);
		else if (good)
			fine &= judge(verify, op, i);
		else
			history_drop_read(verify->history, op->blocks[i], now);
		if (op->write || good)
			note(verify, op->lun->first + op->first + i);
	}
	if (op->write && good)
		verify->counts.blocks_written += op->count;
	else if (op->write)
		verify->counts.unknown += op->count;
	assert(verify->in_flight > 0);
	verify->in_flight--;
	free(op);
	return fine;
}

const char *verify_violation(const struct verify *verify)
{
	return verify->violation[0] ? verify->violation : NULL;
}

void verify_counts(const struct verify *verify, struct verify_counts *counts)
{
	*counts = verify->counts;
}

static uint64_t clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* The next blocks of LUN from *BLOCK on that were promised, at most CHECK_BYTES; 0: no more. */
static uint32_t next_promised(const struct verify *verify, const struct verify_lun *lun,
			      uint64_t *block)
{
	struct journal_entry entries[JOURNAL_ENTRIES];
	uint32_t length = 0;

	while (*block < lun->blocks &&
	       journal_get(verify->journal, lun->first + *block, entries) == 0)
		++*block;
	for (uint64_t at = *block; at < lun->blocks && length < CHECK_BYTES; at++) {
		if (journal_get(verify->journal, lun->first + at, entries) == 0)
			break;
		length += VERIFY_BLOCK;
	}
	return length;
}

int verify_check(struct verify *verify, verify_read_fn *read, void *arg, struct bench_fault *fault)
{
	uint8_t *buf;
	int rc = 0;

	if (verify->journal == NULL || !journal_existed(verify->journal))
		return 0;
	buf = malloc(CHECK_BYTES);
	if (buf == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < verify->lun_count && rc == 0; i++) {
		uint64_t block = 0;
		uint32_t length;

		while (rc == 0 && (length = next_promised(verify, &verify->luns[i], &block)) > 0) {
			struct verify_op *op = verify_begin(verify, i, false, block * VERIFY_BLOCK,
							    buf, length, clock_now());

			rc = read(arg, i, block * VERIFY_BLOCK, buf, length, fault);
			if (!verify_end(verify, op, rc ? VERIFY_UNKNOWN : VERIFY_GOOD, clock_now()))
				rc = -EILSEQ;
			block += length / VERIFY_BLOCK;
		}
	}
	free(buf);
	return rc;
}
