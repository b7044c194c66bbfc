/* SPDX-License-Identifier: MIT */
/*
 * Which records count.
 *
 * Invariants:
 *  1. Of a write to the log all records count or only the first of them: a later one counts if
 *     those before it in the same write do. (What is torn was never applied.)
 *  2. A record does not follow one of a later attempt: a write that failed left it.
 *  3. What is replayed is the newest run without a gap, from its newest record's tail on. What is
 *     older was overwritten, and was not needed any more (I10).
 *
 * Not here: bytes (redo_record.c), applying (replay.c).
 */
#include "raid/redo_chain.h"

#include <stdlib.h>
#include <string.h>

static int by_sequence(const void *a, const void *b)
{
	const struct redo_found *one = a, *two = b;

	if (one->sequence != two->sequence)
		return one->sequence < two->sequence ? -1 : 1;
	if (one->attempt != two->attempt)
		return one->attempt < two->attempt ? -1 : 1;
	return 0;
}

/* Of several with one sequence the last attempt. */
static unsigned drop_repeated(struct redo_found *found, unsigned count)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < count; i++)
		if (i + 1 == count || found[i + 1].sequence != found[i].sequence)
			found[kept++] = found[i];
	return kept;
}

static bool follows(const struct redo_found *before, const struct redo_found *record)
{
	bool adjacent = before && before->valid && before->sequence + 1 == record->sequence;

	if (record->sequence == record->batch)
		return !adjacent || before->attempt <= record->attempt;
	return adjacent && before->batch == record->batch && before->attempt == record->attempt;
}

unsigned redo_chain(struct redo_found *found, unsigned count)
{
	unsigned first, end;

	if (!count)
		return 0;
	qsort(found, count, sizeof(*found), by_sequence);
	count = drop_repeated(found, count);
	for (unsigned i = 0; i < count; i++)
		found[i].valid = follows(i ? &found[i - 1] : NULL, &found[i]);
	end = count;
	while (end > 0 && !found[end - 1].valid)
		end--;
	if (!end)
		return 0;
	first = end - 1;
	while (first > 0 && found[first - 1].valid &&
	       found[first - 1].sequence + 1 == found[first].sequence &&
	       found[first - 1].sequence >= found[end - 1].tail)
		first--;
	memmove(found, found + first, (end - first) * sizeof(*found));
	return end - first;
}
