/* SPDX-License-Identifier: MIT */
/*
 * A violation as text: its name, the read, the versions that contradict each other.
 *
 *   LUN 0, block 17 (bytes 69632 to 73727): stale data: what had been read there before was newer
 *     read 1.203411 to 1.203502 s by session 2 of portal 1 (127.0.0.1:3260): version 15
 *     version 15: written 0.100012 to 0.101300 s by session 1 of portal 1 (...), GOOD; read 3 times, ...
 *     version 20: written ...
 *
 * Invariants:
 *  1. The first violation stays: what follows may be its consequence.
 *
 * Not here: what is a violation (verify.c).
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench/verify_int.h"

struct text {
	char *at;
	size_t left;
};

static PRINTF_LIKE(2, 3) void say(struct text *text, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->at, text->left, format, args);
	va_end(args);
	if (n > 0) {
		size_t used = min_u64((uint64_t)n, text->left - 1);

		text->at += used;
		text->left -= used;
	}
}

static void say_time(struct text *text, const struct verify *verify, uint64_t ns)
{
	say(text, "%.6f",
	    ns > verify->started ? (double)(ns - verify->started) / (double)NS_PER_S : 0.0);
}

static void say_span(struct text *text, const struct verify *verify,
		     const struct history_span *span)
{
	say_time(text, verify, span->begin);
	if (span->end != HISTORY_NEVER) {
		say(text, " to ");
		say_time(text, verify, span->end);
	}
	say(text, " s by ");
	if (span->who == 0) {
		say(text, "no session");
		return;
	}
	say(text, "session %u of portal %u", (span->who - 1) % 1024 + 1,
	    (span->who - 1) / 1024 + 1);
	if (verify->setup)
		say(text, " (%s)", verify->setup->portals[(span->who - 1) / 1024].address);
}

static void say_value(struct text *text, uint64_t value)
{
	if (value == VERIFY_ZERO)
		say(text, "zeroes from before this run");
	else if (value >= HISTORY_PRIOR)
		say(text, "contents %" PRIx64 " from before this run",
		    value & (uint64_t)JOURNAL_NUMBER_MAX);
	else
		say(text, "version %" PRIu64, value);
}

/* A line: the history of a version. */
static void say_version(struct text *text, const struct verify *verify,
			const struct history_version *version)
{
	say(text, "\n  ");
	say_value(text, version->value);
	say(text, ": ");
	if (version->write.begin == 0) {
		say(text, "there before this run");
	} else {
		say(text, "written ");
		say_span(text, verify, &version->write);
		say(text, ", %s",
		    version->under_way                  ? "not answered yet" :
		    version->write.end == HISTORY_NEVER ? "fate unknown" :
							  "GOOD");
	}
	if (version->reads == 0) {
		say(text, "; never read");
		return;
	}
	say(text, "; read %u time%s, first ", version->reads, version->reads > 1 ? "s" : "");
	say_span(text, verify, &version->first_read);
	if (version->reads > 1) {
		say(text, ", last ");
		say_span(text, verify, &version->last_read);
	}
}

static void say_sector(struct text *text, const struct verify *verify,
		       const struct stamp_sector *sector, uint64_t block)
{
	const struct stamp *stamp = &sector->stamp;

	if (sector->kind == STAMP_GOOD || sector->kind == STAMP_MISPLACED) {
		if (stamp->run == verify->run)
			say(text, "version %" PRIu64, stamp->sequence);
		else
			say(text, "version %" PRIu64 " of another run", stamp->sequence);
	}
	if (sector->kind == STAMP_MISPLACED && stamp->block == block)
		say(text, " of sector %u", sector->place);
	else if (sector->kind == STAMP_MISPLACED)
		say(text, " of block %" PRIu64 " of LUN %u", stamp->block, stamp->lun);
	else if (sector->kind != STAMP_GOOD)
		say(text, "%s", stamp_kind_name(sector->kind));
}

static bool sectors_alike(const struct stamp_sector *a, const struct stamp_sector *b)
{
	return a->kind == b->kind && a->stamp.sequence == b->stamp.sequence &&
	       a->stamp.run == b->stamp.run && a->stamp.block == b->stamp.block &&
	       a->stamp.lun == b->stamp.lun;
}

/* A line: which sectors hold what, neighbours that are alike together. */
static void say_sectors(struct text *text, const struct verify *verify,
			const struct stamp_found *found, uint64_t block)
{
	say(text, "\n  sectors of 512 bytes:");
	for (unsigned i = 0, last; i < STAMP_SECTORS; i = last + 1) {
		last = i;
		while (last + 1 < STAMP_SECTORS &&
		       sectors_alike(&found->sectors[i], &found->sectors[last + 1]))
			last++;
		say(text, "%s %u", i ? "," : "", i);
		if (last > i)
			say(text, " to %u", last);
		say(text, " ");
		say_sector(text, verify, &found->sectors[i], block);
	}
}

/* The histories of the versions that FOUND is made of. */
static void say_parts(struct text *text, const struct verify *verify, uint64_t reg,
		      const struct stamp_found *found)
{
	struct history_version version;
	uint64_t last = 0;

	for (unsigned i = 0; i < STAMP_SECTORS; i++) {
		const struct stamp_sector *sector = &found->sectors[i];
		uint64_t sequence = sector->stamp.sequence;

		if (sector->kind != STAMP_GOOD || sector->stamp.run != verify->run ||
		    sequence == last)
			continue;
		last = sequence;
		if (history_find(verify->history, reg, sequence, &version))
			say_version(text, verify, &version);
	}
}

/* False: there is a violation already. */
static bool begin_text(struct verify *verify, const struct verify_op *op, uint64_t block,
		       const char *name, struct text *text)
{
	struct history_span span = { op->begin, verify->now, op->who };

	if (verify->violation[0])
		return false;
	*text = (struct text){ verify->violation, sizeof(verify->violation) };
	say(text, "LUN %u, block %" PRIu64 " (bytes %" PRIu64 " to %" PRIu64 "): %s", op->lun->lun,
	    block, block * VERIFY_BLOCK, (block + 1) * VERIFY_BLOCK - 1, name);
	say(text, "\n  read ");
	say_span(text, verify, &span);
	return true;
}

void verify_say_damage(struct verify *verify, const struct verify_op *op, uint64_t block,
		       const struct stamp_found *found)
{
	static const char *const names[] = {
		[STAMP_MISSING] = "nothing arrived, though the read was answered GOOD",
		[STAMP_CORRUPT] = "corrupt block: bytes differ from what was written",
		[STAMP_MISPLACED] = "misplaced block: it holds what was written elsewhere",
		[STAMP_TORN] = "torn block: its sectors are not of one version",
	};
	struct text text;

	if (!begin_text(verify, op, block, names[found->kind], &text))
		return;
	say_sectors(&text, verify, found, block);
	say_parts(&text, verify, op->lun->first + block, found);
}

/* Why a whole version is not the one that must be there. */
static const char *order_name(const struct stamp_found *found, enum history_verdict verdict,
			      const struct history_conflict *conflict)
{
	if (verdict == HISTORY_STRANGE && conflict->other_known &&
	    conflict->other.value < HISTORY_PRIOR)
		return "lost write: what an earlier run was promised is gone";
	if (verdict == HISTORY_STRANGE)
		return "strange contents: neither written by this run nor what was there before";
	if (found->kind != STAMP_GOOD && found->kind != STAMP_ZERO)
		return "destroyed block: what was written is gone";
	if (conflict->other_known && conflict->other.reads > 0)
		return "stale data: a newer version had been read before";
	return "lost write: a newer version was acknowledged before the read began";
}

void verify_say_order(struct verify *verify, const struct verify_op *op, uint64_t block,
		      const struct stamp_found *found, enum history_verdict verdict)
{
	const struct history_conflict *conflict = history_conflict(verify->history);
	struct text text;

	if (!begin_text(verify, op, block, order_name(found, verdict, conflict), &text))
		return;
	say(&text, ": ");
	say_sector(&text, verify, &found->sectors[0], block);
	if (found->kind == STAMP_TORN)
		say_sectors(&text, verify, found, block);
	if (conflict->read_known)
		say_version(&text, verify, &conflict->read);
	else if (found->kind == STAMP_GOOD && found->stamp.run == verify->run)
		say(&text, "\n  (overwritten too long ago for its history to be remembered)");
	if (conflict->other_known)
		say_version(&text, verify, &conflict->other);
}

void verify_report(struct verify *verify, const char *text)
{
	if (verify->violation[0] == '\0')
		snprintf(verify->violation, sizeof(verify->violation), "%s", text);
}
