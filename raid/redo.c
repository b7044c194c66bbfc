/* SPDX-License-Identifier: MIT */
/*
 * The redo log of a member of a running array.
 *
 *   redo_write ─▶ queue ─pump─▶ a batch on its way ─▶ durable: done() ─▶ redo_over() ─▶ flushed ─▶ room
 *                   ▲ no room │                    └▶ failed: done(error)
 *                   └─────────┘
 *
 * Invariants:
 *  1. One write at a time: when a record is durable, all before it are. So what was applied is
 *     a chain of sequences without a gap.
 *  2. Records are contiguous; the ring's end that is too small for one is skipped.
 *  3. The ring has room for the largest entry several times over: none waits for its own records.
 *  4. (I10) Room is given back in the order of the records, when the flush that a record needs has
 *     succeeded.
 *  5. A write that failed leaves no record: the next one has its sequences and a higher attempt.
 *
 * Not here: bytes of a head (redo_record.c), replay (replay.c), when a stripe may be written
 * (round.c).
 */
#include "raid/redo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/canary.h"
#include "core/crc32c.h"
#include "core/env.h"

#define SLOTS 4096u
#define HEADS 64u
#define BATCH_MAX MIB
#define SLICE_MAX (64 * KIB)
#define ALIGN 4096u
#define GROUP 8u
#define PATIENCE_NS (500 * NS_PER_US)

/* A record in the ring. */
struct slot {
	uint64_t stripe;
	uint64_t bytes; /* with what was skipped before it */
	uint64_t flush; /* OVER: the number of the flush that it needs; 0: none */
	bool over, intent;
};

struct redo {
	struct redo_conf conf;
	STAILQ_HEAD(, redo_entry) queue;  /* not yet, or not all of it in records */
	STAILQ_HEAD(, redo_entry) issued; /* the rest of it is on its way */
	uint64_t position, used;
	uint64_t oldest, next; /* sequences */
	uint64_t attempt;
	uint64_t flushed;
	unsigned intents; /* records that are */
	uint64_t batch_max, slice;
	struct slot slots[SLOTS];

	struct env_defer pump;
	struct env_timer patience;
	bool writing, impatient, stays;
	unsigned queued, expected;
	uint64_t batch_from, batch_first, batch_bytes, batch_skipped;
	struct io io;
	struct iovec iov[IO_IOV_MAX];
	unsigned iov_count;
	char *heads;
	struct redo_counts counts;
};

static void pump_later(struct redo *redo)
{
	if (!redo->pump.queued)
		env_defer(redo->conf.env, &redo->pump);
}

static struct slot *slot_of(struct redo *redo, uint64_t sequence)
{
	return &redo->slots[sequence % SLOTS];
}

/* --- room --- */

static void release(struct redo *redo)
{
	while (redo->oldest < redo->next) {
		const struct slot *slot = slot_of(redo, redo->oldest);

		if (!slot->over || slot->flush > redo->flushed)
			break;
		redo->used -= slot->bytes;
		redo->intents -= slot->intent;
		redo->oldest++;
	}
	if (!STAILQ_EMPTY(&redo->queue))
		pump_later(redo);
}

void redo_over(struct redo *redo, struct redo_entry *entry, bool durable)
{
	bool held = durable || canary(CANARY_LOG_REUSE);
	uint64_t flush = held ? 0 : redo->conf.next_flush(redo->conf.arg);

	for (unsigned i = 0; i < entry->records; i++) {
		struct slot *slot = slot_of(redo, entry->first_sequence + i);

		slot->over = true;
		slot->flush = flush;
	}
	entry->records = 0;
	release(redo);
	if (!durable && redo->used > redo->conf.area.length / 2)
		redo->conf.flush(redo->conf.arg);
}

void redo_stay(struct redo *redo)
{
	redo->stays = true;
	pump_later(redo);
}

void redo_flushed(struct redo *redo, uint64_t flush)
{
	redo->flushed = max_u64(redo->flushed, flush);
	release(redo);
}

bool redo_has(const struct redo *redo, uint64_t stripe, bool intents)
{
	if (intents && !redo->intents)
		return false;
	for (uint64_t i = redo->oldest; i < redo->next; i++) {
		const struct slot *slot = &redo->slots[i % SLOTS];

		if (slot->stripe == stripe && (slot->intent || !intents))
			return true;
	}
	return false;
}

/* --- a batch --- */

static void batch_begin(struct redo *redo)
{
	redo->batch_from = redo->position;
	redo->batch_first = redo->next;
	redo->batch_bytes = redo->batch_skipped = 0;
	redo->iov_count = 0;
}

static unsigned batch_records(const struct redo *redo)
{
	return (unsigned)(redo->next - redo->batch_first);
}

/* The record of ENTRY's next LENGTH bytes. */
static void shape(struct redo *redo, const struct redo_entry *entry, uint32_t length,
		  struct redo_head *head)
{
	*head = (struct redo_head){
		.tag = redo->conf.tag,
		.incarnation = redo->conf.incarnation,
		.sequence = redo->next,
		.batch = redo->batch_first,
		.attempt = redo->attempt,
		.tail = redo->oldest,
		.stripe = entry->stripe,
		.from = entry->next,
		.to = entry->next + length,
		.intent = entry->intent,
	};
	for (unsigned i = 0; i < entry->span_count; i++) {
		const struct redo_span *span = &entry->spans[i];
		uint32_t from = (uint32_t)max_u64(span->from, head->from);
		uint32_t to = (uint32_t)min_u64(span->to, head->to);

		if (from < to)
			head->spans[head->span_count++] =
				(struct redo_span){ span->column, from, to };
	}
}

/* Where BYTES more go; false: not now, or not in this batch. */
static bool place(struct redo *redo, uint64_t bytes)
{
	uint64_t length = redo->conf.area.length, skip = 0;
	uint64_t at = redo->position + redo->batch_bytes;
	bool wraps = at + bytes > length;

	if (batch_records(redo) == HEADS || redo->next - redo->oldest == SLOTS ||
	    (batch_records(redo) && (wraps || redo->batch_bytes + bytes > redo->batch_max)))
		return false;
	if (wraps)
		skip = length - at;
	if (redo->used + skip + bytes > length)
		return false;
	if (wraps) {
		redo->batch_skipped = skip;
		redo->position = 0;
	}
	return true;
}

/* The checksums of an intent; false: no room here to look at what it is of. */
static bool sum_up(struct redo *redo, struct redo_entry *entry, struct redo_head *head)
{
	struct iovec *iov = redo->iov + redo->iov_count;
	unsigned room = IO_IOV_MAX - redo->iov_count;

	for (int column = -1; column < (int)redo->conf.columns; column++) {
		unsigned count = entry->slice(entry, column, entry->from, entry->to, iov, room);

		if (!count)
			return false;
		head->crcs[column < 0 ? (int)REDO_CRC_PARITY : column] =
			crc32c_end(crc32c_add_iov(CRC32C_START, iov, count));
		redo->counts.crc_bytes += entry->to - entry->from;
	}
	return true;
}

/* Payload elements of HEAD behind its own; 0: they do not fit. */
static unsigned gather(struct redo_entry *entry, const struct redo_head *head, struct iovec *iov,
		       unsigned room)
{
	unsigned used = 0, got;

	if (head->intent)
		return 0;
	for (int i = -1; i < (int)head->span_count; i++) {
		int column = i < 0 ? -1 : (int)head->spans[i].column;
		uint32_t from = i < 0 ? head->from : head->spans[i].from;
		uint32_t to = i < 0 ? head->to : head->spans[i].to;

		got = entry->slice(entry, column, from, to, iov + used, room - used);
		if (!got)
			return 0;
		used += got;
	}
	return used;
}

static void seal(struct redo *redo, struct redo_entry *entry, const struct redo_head *head,
		 unsigned elements, uint64_t bytes)
{
	void *block = redo->heads + (size_t)batch_records(redo) * ALIGN;
	struct slot *slot = slot_of(redo, redo->next);
	uint64_t skipped = batch_records(redo) ? 0 : redo->batch_skipped;

	redo->iov[redo->iov_count] = (struct iovec){ block, redo->conf.block_bytes };
	redo_encode(head, block, redo->conf.block_bytes, redo->iov + redo->iov_count + 1, elements);
	redo->counts.crc_bytes += bytes - redo->conf.block_bytes;
	redo->iov_count += 1 + elements;
	*slot = (struct slot){ .stripe = entry->stripe,
			       .bytes = bytes + skipped,
			       .intent = entry->intent };
	redo->intents += slot->intent;
	redo->used += slot->bytes;
	redo->batch_bytes += bytes;
	assert(redo->position + redo->batch_bytes <= redo->conf.area.length);
	if (!entry->records++)
		entry->first_sequence = redo->next;
	redo->next++;
	entry->next = head->intent ? entry->to : head->to;
}

static bool add_record(struct redo *redo, struct redo_entry *entry)
{
	uint32_t length = (uint32_t)min_u64(redo->slice, entry->to - entry->next);
	struct redo_head head;
	unsigned elements = 0;
	uint64_t bytes;

	if (entry->intent)
		length = entry->to - entry->next;
	for (;;) {
		shape(redo, entry, length, &head);
		if (head.intent && !sum_up(redo, entry, &head))
			return false;
		bytes = redo->conf.block_bytes + redo_payload_bytes(&head);
		if (redo->iov_count + 1 < IO_IOV_MAX)
			elements = gather(entry, &head, redo->iov + redo->iov_count + 1,
					  IO_IOV_MAX - redo->iov_count - 1);
		if (elements || head.intent)
			break;
		/* Data in many pieces: not in this batch, or less of it. */
		if (batch_records(redo) || length <= redo->conf.block_bytes)
			return false;
		length = (uint32_t)align_down(length / 2, redo->conf.block_bytes);
	}
	if (!place(redo, bytes))
		return false;
	seal(redo, entry, &head, elements, bytes);
	return true;
}

/* --- its end --- */

static void batch_undo(struct redo *redo)
{
	while (redo->next > redo->batch_first) {
		const struct slot *slot = slot_of(redo, --redo->next);

		redo->used -= slot->bytes;
		redo->intents -= slot->intent;
	}
	redo->position = redo->batch_from;
	redo->attempt++;
}

/* Records of it that were durable before are not needed: nothing of it was written. */
static void entry_failed(struct redo *redo, struct redo_entry *entry, int error)
{
	entry->records =
		entry->first_sequence < redo->next ?
			(unsigned)min_u64(entry->records, redo->next - entry->first_sequence) :
			0;
	if (entry->records)
		redo_over(redo, entry, true);
	entry->done(entry, error);
}

static void written(struct io *io, void *arg)
{
	struct redo *redo = arg;
	STAILQ_HEAD(, redo_entry) due = STAILQ_HEAD_INITIALIZER(due);
	struct redo_entry *entry;
	int error = io->error;

	redo->writing = false;
	STAILQ_CONCAT(&due, &redo->issued);
	if (error) {
		batch_undo(redo);
		STAILQ_CONCAT(&due, &redo->queue);
		redo->queued = 0;
	} else {
		redo->position += redo->batch_bytes;
		redo->counts.writes++;
		redo->counts.bytes += redo->batch_bytes;
		redo->counts.records += batch_records(redo);
	}
	if (!STAILQ_EMPTY(&redo->queue))
		pump_later(redo);
	while ((entry = STAILQ_FIRST(&due))) {
		STAILQ_REMOVE_HEAD(&due, link);
		if (error)
			entry_failed(redo, entry, error);
		else
			entry->done(entry, 0);
	}
}

/* Group commit: those who are still reading come into the same write, if they are many. */
static bool waits_for_more(struct redo *redo)
{
	if (redo->queued >= GROUP || redo->queued >= 2 * redo->expected || redo->impatient)
		return false;
	if (!redo->patience.armed)
		env_timer_set(redo->conf.env, &redo->patience, PATIENCE_NS);
	return true;
}

static void patience_over(struct env_timer *timer)
{
	struct redo *redo = container_of(timer, struct redo, patience);

	redo->impatient = true;
	pump_later(redo);
}

void redo_expect(struct redo *redo)
{
	redo->expected++;
}

void redo_expected(struct redo *redo)
{
	redo->expected--;
	pump_later(redo);
}

static void pump(struct env_defer *defer)
{
	struct redo *redo = container_of(defer, struct redo, pump);
	struct redo_entry *entry;

	if (redo->writing || STAILQ_EMPTY(&redo->queue) || waits_for_more(redo))
		return;
	redo->impatient = false;
	env_timer_cancel(redo->conf.env, &redo->patience);
	batch_begin(redo);
	while ((entry = STAILQ_FIRST(&redo->queue)) && add_record(redo, entry)) {
		if (entry->next < entry->to)
			continue;
		STAILQ_REMOVE_HEAD(&redo->queue, link);
		redo->queued--;
		STAILQ_INSERT_TAIL(&redo->issued, entry, link);
	}
	if (!batch_records(redo)) {
		redo->counts.waits++;
		if (redo->stays)
			redo_refuse(redo, -EIO);
		else if (slot_of(redo, redo->oldest)->over)
			redo->conf.flush(redo->conf.arg);
		return;
	}
	redo->writing = true;
	io_init(&redo->io, IO_WRITE, redo->conf.area.offset + redo->position, redo->batch_bytes,
		redo->iov, redo->iov_count);
	redo->io.flags = IO_FUA;
	redo->io.purpose = IO_LOG;
	blk_submit(redo->conf.blk, &redo->io, written, redo);
}

void redo_write(struct redo *redo, struct redo_entry *entry)
{
	assert(entry->from < entry->to);
	entry->next = entry->from;
	entry->records = 0;
	STAILQ_INSERT_TAIL(&redo->queue, entry, link);
	redo->queued++;
	pump_later(redo);
}

void redo_refuse(struct redo *redo, int error)
{
	STAILQ_HEAD(, redo_entry) due = STAILQ_HEAD_INITIALIZER(due);
	struct redo_entry *entry;

	if (redo->writing)
		return;
	STAILQ_CONCAT(&due, &redo->queue);
	redo->queued = 0;
	while ((entry = STAILQ_FIRST(&due))) {
		STAILQ_REMOVE_HEAD(&due, link);
		entry_failed(redo, entry, error);
	}
}

uint64_t redo_incarnation(const struct redo *redo)
{
	return redo->conf.incarnation;
}

void redo_count(const struct redo *redo, struct redo_counts *counts)
{
	*counts = redo->counts;
}

/* --- life --- */

struct redo *redo_new(const struct redo_conf *conf)
{
	struct redo *redo = calloc(1, sizeof(*redo));
	uint64_t most;

	if (!redo)
		return NULL;
	redo->conf = *conf;
	redo->heads = aligned_alloc(ALIGN, (size_t)HEADS * ALIGN);
	if (!redo->heads) {
		free(redo);
		return NULL;
	}
	redo->batch_max = min_u64(BATCH_MAX, conf->area.length / 4);
	if (conf->blk->max_io)
		redo->batch_max = min_u64(redo->batch_max, conf->blk->max_io);
	most = (redo->batch_max - conf->block_bytes) / (conf->columns + 1);
	redo->slice = min_u64(SLICE_MAX, align_down(most, conf->block_bytes));
	assert(redo->slice >= conf->block_bytes);
	redo->oldest = redo->next = 1;
	STAILQ_INIT(&redo->queue);
	STAILQ_INIT(&redo->issued);
	redo->pump.fn = pump;
	redo->patience.fn = patience_over;
	return redo;
}

void redo_free(struct redo *redo)
{
	assert(!redo->expected && !redo->writing && STAILQ_EMPTY(&redo->queue) &&
	       STAILQ_EMPTY(&redo->issued));
	env_defer_cancel(redo->conf.env, &redo->pump);
	env_timer_cancel(redo->conf.env, &redo->patience);
	free(redo->heads);
	free(redo);
}
