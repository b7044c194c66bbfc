/* SPDX-License-Identifier: MIT */
/*
 * A member: its labels and pages of regions on disk.
 *
 *   member_new ─▶ IN_SYNC, REBUILDING ─membership_leaves─▶ OUT ─nobody holds it─▶ let go: no device,
 *                                                                │                  no log, a name
 *                                            array_bury: another │                │ array_bury
 *                                            is at its index     ▼                ▼
 *                                                              buried ──────────▶ freed
 *
 * Invariants:
 *  1. A label goes to one slot of each end, FUA; the other two keep the one before it.
 *  2. A page of regions goes to one of two places by turns, so that a torn one leaves the other.
 *  3. Array.roles and array.members lead to it without a hold: who is OUT is in no role, and who
 *     follows members[] looks whether it is OUT, or let go. Everybody else who keeps a pointer
 *     longer than a callback lasts, holds it. These are:
 *       here               each block on its way: label, page of regions, flush
 *       mirror.c, raid5.c  a fan (write, flush), until all its ios are back
 *       equalise.c         the legs of a piece, until the next one begins
 *       stripe_memory.c    a lane, while its io is on its way
 *       round.c            a round, its log: while it is expected there; from redo_write() until
 *                          that failed, or else redo_over() or redo_stay(). So a log that is let
 *                          go has no entry, and nothing on its way
 *       replay.c           an io
 *       change.c           an addition, until it is answered
 *  4. A host's read keeps no pointer and passes through: it holds the device alone, which stays open
 *     until it has ended (blk_unref_idle).
 *  5. It is let go deferred: the callback that put it OUT, or released it last, may use it to its
 *     end.
 *
 * Not here: what labels say (membership.c), host I/O (the levels).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "raid/array_int.h"
#include "raid/redo.h"

#define ALIGN 4096

/* One block to or from the disk. */
struct block_io {
	struct io io;
	struct iovec iov;
	struct member *member;
	bool busy;
	void *buf;
};

struct page_io {
	struct block_io block;
	unsigned number;
	void (*done)(struct member *member, unsigned page, int error);
};

struct member_io {
	struct block_io label[2]; /* both ends */
	int label_error;
	void (*label_done)(struct member *member, int error);

	struct page_io *pages;

	struct block_io read[2]; /* both copies of a page */
	unsigned reading;
	void (*read_done)(struct member *member, unsigned page, const void *one, const void *two);

	struct block_io flush;
	void (*flush_done)(struct member *member, int error);
	char *memory;
};

/* --- one block --- */

static void block_submit(struct block_io *block, enum io_op op, enum io_purpose purpose,
			 uint64_t offset, io_fn *done)
{
	assert(!block->busy);
	block->busy = true;
	member_hold(block->member);
	block->iov = (struct iovec){ .iov_base = block->buf, .iov_len = ALIGN };
	io_init(&block->io, op, offset, op == IO_FLUSH ? 0 : ALIGN,
		op == IO_FLUSH ? NULL : &block->iov, op != IO_FLUSH);
	block->io.flags = op == IO_WRITE ? IO_FUA : 0;
	block->io.purpose = purpose;
	blk_submit(block->member->blk, &block->io, done, block);
}

static void block_back(struct block_io *block)
{
	block->busy = false;
	member_release(block->member);
}

/* --- labels --- */

static void label_written(struct io *io, void *arg)
{
	struct block_io *block = arg;
	struct member *member = block->member;
	struct member_io *own = member->io;

	block_back(block);
	if (io->error && !own->label_error)
		own->label_error = io->error;
	if (!own->label[0].busy && !own->label[1].busy)
		own->label_done(member, own->label_error);
}

void member_write_label(struct member *member, const struct label *label,
			void (*done)(struct member *member, int error))
{
	struct member_io *own = member->io;
	struct label ours = *label;
	unsigned slot;

	ours.self = member->index;
	ours.sequence = ++member->sequence;
	ours.log_incarnation = member->log_incarnation;
	own->label_error = 0;
	own->label_done = done;
	slot = label_slot(ours.sequence);
	for (unsigned end = 0; end < 2; end++) {
		label_encode(&ours, own->label[end].buf);
		block_submit(&own->label[end], IO_WRITE, IO_LABEL,
			     label_slot_offset(member->blk->size_bytes, slot + 2 * end),
			     label_written);
	}
}

/* --- regions --- */

static uint64_t page_offset(const struct member *member, unsigned page, unsigned copy)
{
	return member->array->label.maps[copy].offset + (uint64_t)page * REGIONS_PAGE;
}

static void page_written(struct io *io, void *arg)
{
	struct page_io *page = container_of((struct block_io *)arg, struct page_io, block);

	block_back(&page->block);
	page->done(page->block.member, page->number, io->error);
}

void member_write_page(struct member *member, unsigned page, unsigned copy, const void *bytes,
		       void (*done)(struct member *member, unsigned page, int error))
{
	struct page_io *own = &member->io->pages[page];

	memcpy(own->block.buf, bytes, REGIONS_PAGE);
	own->done = done;
	block_submit(&own->block, IO_WRITE, IO_MAP, page_offset(member, page, copy), page_written);
}

static void page_read(struct io *io, void *arg)
{
	struct block_io *block = arg;
	struct member *member = block->member;
	struct member_io *own = member->io;

	(void)io;
	block_back(block);
	if (own->read[0].busy || own->read[1].busy)
		return;
	own->read_done(member, own->reading, own->read[0].io.error ? NULL : own->read[0].buf,
		       own->read[1].io.error ? NULL : own->read[1].buf);
}

void member_read_page(struct member *member, unsigned page,
		      void (*done)(struct member *member, unsigned page, const void *one,
				   const void *two))
{
	struct member_io *own = member->io;

	own->reading = page;
	own->read_done = done;
	for (unsigned copy = 0; copy < 2; copy++)
		block_submit(&own->read[copy], IO_READ, IO_MAP, page_offset(member, page, copy),
			     page_read);
}

/* --- flush --- */

static void flushed(struct io *io, void *arg)
{
	struct block_io *block = arg;

	block_back(block);
	block->member->io->flush_done(block->member, io->error);
}

void member_flush(struct member *member, void (*done)(struct member *member, int error))
{
	member->io->flush_done = done;
	block_submit(&member->io->flush, IO_FLUSH, IO_MAP, 0, flushed);
}

/* --- life --- */

static void block_own(struct member *member, struct block_io *block, unsigned number)
{
	block->member = member;
	block->buf = member->io->memory + (size_t)number * ALIGN;
}

static int blocks_new(struct member *member, unsigned pages)
{
	struct member_io *own = calloc(1, sizeof(*own));

	member->io = own;
	if (!own)
		return -ENOMEM;
	own->pages = calloc(max_u64(pages, 1), sizeof(*own->pages));
	own->memory = aligned_alloc(ALIGN, (size_t)(pages + 5) * ALIGN);
	if (!own->pages || !own->memory)
		return -ENOMEM;
	block_own(member, &own->label[0], 0);
	block_own(member, &own->label[1], 1);
	block_own(member, &own->read[0], 2);
	block_own(member, &own->read[1], 3);
	block_own(member, &own->flush, 4);
	for (unsigned i = 0; i < pages; i++) {
		own->pages[i].number = i;
		block_own(member, &own->pages[i].block, 5 + i);
	}
	return 0;
}

void member_errors(const struct member *member, uint64_t *reads, uint64_t *writes)
{
	const uint64_t *errors = member->blk ? member->blk->counts.errors : NULL;

	*reads = errors ? errors[IO_READ] : member->read_errors;
	*writes = errors ? errors[IO_WRITE] + errors[IO_FLUSH] : member->write_errors;
}

/* All but what tells of it. */
static void let_go(struct member *member)
{
	assert(!member->holds);
	if (member->io) {
		free(member->io->pages);
		free(member->io->memory);
		free(member->io);
		member->io = NULL;
	}
	if (member->redo)
		redo_free(member->redo);
	member->redo = NULL;
	if (!member->blk)
		return;
	member_errors(member, &member->read_errors, &member->write_errors);
	blk_unref_idle(member->blk);
	member->blk = NULL;
}

void member_free(struct member *member)
{
	env_defer_cancel(member->array->env, &member->leave);
	let_go(member);
	free(member);
}

static void leave_run(struct env_defer *defer)
{
	struct member *member = container_of(defer, struct member, leave);
	struct array *array = member->array;

	if (member->holds)
		return;
	if (array->members[member->index] == member) {
		let_go(member);
	} else {
		TAILQ_REMOVE(&array->buried, member, buried);
		member_free(member);
	}
}

void member_left(struct member *member)
{
	assert(member->state == MEMBER_OUT);
	if (!member->holds && !member->leave.queued)
		env_defer(member->array->env, &member->leave);
}

void member_release(struct member *member)
{
	assert(member->holds);
	if (--member->holds == 0 && member->state == MEMBER_OUT)
		member_left(member);
}

struct member *member_new(struct array *array, const struct array_disk *disk, unsigned index,
			  unsigned role, unsigned pages)
{
	struct member *member = calloc(1, sizeof(*member));

	if (!member)
		return NULL;
	member->array = array;
	member->blk = blk_ref(disk->blk);
	snprintf(member->name, sizeof(member->name), "%s", disk->name);
	member->index = index;
	member->role = role;
	member->leave.fn = leave_run;
	if (blocks_new(member, pages) < 0) {
		member_free(member);
		return NULL;
	}
	return member;
}

/* --- the newest label of any disk --- */

struct probe {
	struct env *env;
	struct blk *blk;
	array_probe_fn *done;
	void *arg;
	struct io ios[LABEL_SLOTS];
	struct iovec iov[LABEL_SLOTS];
	char *memory;
	unsigned pending;
	struct env_defer defer;
	int error; /* before anything was read */
};

/* How much an answer says: a label, then damage, then none, then nothing read. */
static int better(int a, int b)
{
	static const int order[] = { 0, -ENOTSUP, -EILSEQ, -ENOENT, -EIO };

	for (unsigned i = 0; i < ARRAY_LEN(order); i++)
		if (a == order[i] || b == order[i])
			return order[i];
	return a;
}

/* Neither place of a label can be read: it may be newer than any that can. */
static bool hidden(const struct probe *probe)
{
	for (unsigned slot = 0; slot < LABEL_SLOTS / 2; slot++)
		if (probe->ios[slot].error && probe->ios[slot + LABEL_SLOTS / 2].error)
			return true;
	return false;
}

static void probe_end(struct env_defer *defer)
{
	struct probe *probe = container_of(defer, struct probe, defer);
	struct label newest = { .sequence = 0 }, label;
	int result = probe->error ? probe->error : -EIO;

	for (unsigned slot = 0; !probe->error && slot < LABEL_SLOTS; slot++) {
		int error = probe->ios[slot].error ?
				    -EIO :
				    label_decode(probe->memory + slot * LABEL_SIZE, &label);

		if (!error && (result || label.sequence > newest.sequence))
			newest = label;
		result = better(result, error);
	}
	if (!result && label_worn(&newest))
		result = -EILSEQ;
	if (!probe->error && hidden(probe))
		result = -EIO;
	probe->done(probe->arg, result, result ? NULL : &newest);
	blk_unref(probe->blk);
	free(probe->memory);
	free(probe);
}

static void slot_read(struct io *io, void *arg)
{
	struct probe *probe = arg;

	(void)io;
	if (--probe->pending == 0)
		env_defer(probe->env, &probe->defer);
}

int array_probe(struct env *env, struct blk *disk, array_probe_fn *done, void *arg)
{
	struct probe *probe = calloc(1, sizeof(*probe));
	char *memory = aligned_alloc(ALIGN, (size_t)LABEL_SLOTS * LABEL_SIZE);

	if (!probe || !memory) {
		free(probe);
		free(memory);
		return -ENOMEM;
	}
	*probe = (struct probe){
		.env = env,
		.blk = blk_ref(disk),
		.done = done,
		.arg = arg,
		.memory = memory,
		.defer.fn = probe_end,
	};
	if (disk->size_bytes < LABEL_SLOTS * LABEL_SIZE) {
		probe->error = -ENOENT;
		env_defer(env, &probe->defer);
		return 0;
	}
	probe->pending = LABEL_SLOTS;
	for (unsigned slot = 0; slot < LABEL_SLOTS; slot++) {
		probe->iov[slot] = (struct iovec){ probe->memory + slot * LABEL_SIZE, LABEL_SIZE };
		io_init(&probe->ios[slot], IO_READ, label_slot_offset(disk->size_bytes, slot),
			LABEL_SIZE, &probe->iov[slot], 1);
		probe->ios[slot].purpose = IO_LABEL;
		blk_submit(disk, &probe->ios[slot], slot_read, probe);
	}
	return 0;
}
