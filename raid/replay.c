/* SPDX-License-Identifier: MIT */
/*
 * The redo logs at assembly.
 *
 *   member by member: read the log ─▶ which records count ─▶ write them again, in order ─▶ next
 *
 * Invariants:
 *  1. (I7) Only logs of members that the deciding label lists in-sync are replayed, and only
 *     records of the incarnation that their labels name, and of a log all that count, in order;
 *     whoever calls voids the logs after it.
 *  2. A record that does not fit the array is not replayed, whatever its checksum says.
 *  3. (I10) Who is missing lacks what is replayed: regions are told of it.
 *  4. (I8) A stripe of which only an intent was logged gets parity from all its data. If some of
 *     them are missing and the rest is torn, these are lost, and nothing else is.
 *  5. Nothing is served before all of it is flushed (start_load.c).
 *
 * Not here: which records count (redo_chain.c), writing logs (redo.c).
 * Spec: yoke-disk(5).
 */
#include <errno.h>
#include <stdlib.h>

#include "core/canary.h"
#include "core/crc32c.h"
#include "raid/parity.h"
#include "raid/raid5_int.h"
#include "raid/redo_chain.h"
#include "raid/redo_scan.h"

#define PIECE MIB
#define ALIGN 4096u

struct replay_io {
	struct io io;
	struct iovec iov;
	struct member *member;
	struct replay *replay;
	io_fn *done;
};

struct replay {
	struct array *array;
	void (*done)(struct array *array, int error);
	struct env_defer step;
	void (*next)(struct replay *replay);
	unsigned role;
	uint64_t at; /* of the log, what has been read */
	char *memory;
	uint64_t incarnation;
	char *stripe; /* a chunk of each role, for intents */
	struct redo_scan scan;
	struct redo_found *found;
	unsigned found_room, count, index;
	struct redo_head head;
	unsigned pending;
	uint32_t unread; /* of an intent's stripe: roles */
	int error;
	struct replay_io ios[LABEL_ROLES_MAX];
};

static void next_member(struct replay *replay);
static void next_record(struct replay *replay);

/* Not from inside what came back, so that a long log is no deep stack. */
static void later(struct replay *replay, void (*next)(struct replay *replay))
{
	replay->next = next;
	env_defer(replay->array->env, &replay->step);
}

static void step_run(struct env_defer *defer)
{
	struct replay *replay = container_of(defer, struct replay, step);

	replay->next(replay);
}

static void end(struct replay *replay, int error)
{
	struct array *array = replay->array;
	void (*done)(struct array * array, int error) = replay->done;

	free(replay->memory);
	free(replay->stripe);
	free(replay->found);
	free(replay);
	done(array, error);
}

static void back(struct io *io, void *arg)
{
	struct replay_io *own = arg;

	member_release(own->member);
	own->done(io, own);
}

static void send(struct replay *replay, unsigned role, enum io_op op, uint64_t offset, void *buf,
		 uint64_t length, io_fn *done)
{
	struct replay_io *own = &replay->ios[role];

	own->replay = replay;
	own->member = replay->array->roles[role];
	own->done = done;
	member_hold(own->member);
	own->iov = (struct iovec){ buf, length };
	io_init(&own->io, op, offset, length, &own->iov, 1);
	own->io.purpose = IO_LOG;
	replay->pending++;
	blk_submit(own->member->blk, &own->io, back, own);
}

/* --- a record --- */

static void record_done(struct replay *replay)
{
	replay->index++;
	later(replay, next_record);
}

static void written(struct io *io, void *arg)
{
	struct replay_io *own = arg;
	struct replay *replay = own->replay;

	if (io->error && !membership_failed(replay->array, own->member, io->error, "replay") &&
	    !replay->error)
		replay->error = io->error;
	if (--replay->pending == 0)
		record_done(replay);
}

static uint64_t place(const struct replay *replay, uint32_t in_chunk)
{
	const struct label *label = &replay->array->label;

	return label->data.offset + replay->head.stripe * label->chunk_bytes + in_chunk;
}

static void send_write(struct replay *replay, unsigned role, uint32_t from, uint32_t to, char *buf)
{
	if (replay->array->roles[role])
		send(replay, role, IO_WRITE, place(replay, from), buf, to - from, written);
}

static void apply_data(struct replay *replay, char *payload)
{
	const struct redo_head *head = &replay->head;
	unsigned roles = replay->array->label.roles;

	replay->pending = 1;
	send_write(replay, raid5_parity_role(roles, head->stripe), head->from, head->to, payload);
	payload += head->to - head->from;
	for (unsigned i = 0; i < head->span_count; i++) {
		const struct redo_span *span = &head->spans[i];

		send_write(replay, raid5_data_role(roles, head->stripe, span->column), span->from,
			   span->to, payload);
		payload += span->to - span->from;
	}
	if (--replay->pending == 0)
		record_done(replay);
}

/* --- an intent: parity follows from data --- */

static char *stripe_part(const struct replay *replay, unsigned role)
{
	return replay->stripe + (size_t)role * replay->array->label.chunk_bytes;
}

/* Parity of the range is the XOR of all data, which is there. */
static void make_parity(struct replay *replay, unsigned parity)
{
	const struct redo_head *head = &replay->head;
	unsigned roles = replay->array->label.roles, count = 0;
	struct iovec iov[LABEL_ROLES_MAX];
	struct parity_at sources[LABEL_ROLES_MAX], to = { &iov[parity], 0 };
	uint64_t xored = 0;

	for (unsigned i = 0; i < roles; i++) {
		iov[i] = (struct iovec){ stripe_part(replay, i), head->to - head->from };
		if (i != parity)
			sources[count++] = (struct parity_at){ &iov[i], 0 };
	}
	parity_xor(&to, sources, count, head->to - head->from, &xored);
	replay->pending = 1;
	send_write(replay, parity, head->from, head->to, stripe_part(replay, parity));
	if (--replay->pending == 0)
		record_done(replay);
}

/* Whether everything that could be read is what the intent was about: nothing is torn. */
static bool as_intended(const struct replay *replay, unsigned parity)
{
	const struct redo_head *head = &replay->head;
	unsigned roles = replay->array->label.roles;

	for (unsigned i = 0; i < roles; i++) {
		uint32_t crc = head->crcs[i == parity ? (int)REDO_CRC_PARITY :
							raid5_column(roles, head->stripe, i)];

		if (!(replay->unread >> i & 1) &&
		    crc32c(stripe_part(replay, i), head->to - head->from) != crc)
			return false;
	}
	return true;
}

static void lose(struct replay *replay, unsigned role)
{
	const struct redo_head *head = &replay->head;
	uint64_t begin = head->stripe * replay->array->label.chunk_bytes;
	struct bad_range range = { role, begin + head->from, begin + head->to };

	array_lose(replay->array, &range);
}

/* (I8) What is missing of a whole stripe follows from the rest; of a torn one nothing does. */
static void intent_known(struct replay *replay)
{
	unsigned roles = replay->array->label.roles;
	unsigned parity = raid5_parity_role(roles, replay->head.stripe);
	uint32_t lost = replay->unread & ~(1u << parity);

	if (!lost) {
		make_parity(replay, parity);
		return;
	}
	if (canary(CANARY_TORN))
		lost = 0;
	for (unsigned i = 0; i < roles; i++)
		if (lost >> i & 1 &&
		    (lost != replay->unread || lost & (lost - 1) || !as_intended(replay, parity)))
			lose(replay, i);
	record_done(replay);
}

static void intent_read(struct io *io, void *arg)
{
	struct replay_io *own = arg;
	struct replay *replay = own->replay;

	if (io->error)
		replay->unread |= 1u << (own - replay->ios);
	if (--replay->pending == 0)
		intent_known(replay);
}

static void apply_intent(struct replay *replay)
{
	const struct redo_head *head = &replay->head;

	replay->unread = 0;
	replay->pending = 1;
	for (unsigned i = 0; i < replay->array->label.roles; i++) {
		const struct member *member = replay->array->roles[i];

		if (member && member->state == MEMBER_IN_SYNC)
			send(replay, i, IO_READ, place(replay, head->from), stripe_part(replay, i),
			     head->to - head->from, intent_read);
		else
			replay->unread |= 1u << i;
	}
	if (--replay->pending == 0)
		intent_known(replay);
}

/* --- a log --- */

static bool fits(const struct replay *replay)
{
	const struct label *label = &replay->array->label;
	const struct redo_head *head = &replay->head;

	if (head->stripe >= label->data.length / label->chunk_bytes ||
	    head->to > label->chunk_bytes ||
	    raid5_parity_role(label->roles, head->stripe) != replay->role)
		return false;
	for (unsigned i = 0; i < head->span_count; i++)
		if (head->spans[i].column >= label->roles - 1)
			return false;
	return true;
}

static bool decode(struct replay *replay, uint64_t at)
{
	const struct label *label = &replay->array->label;

	return redo_decode(replay->memory + at, label->log.length - at, label->block_bytes,
			   array_tag(label), replay->incarnation, &replay->head);
}

static void next_record(struct replay *replay)
{
	uint64_t chunk_bytes = replay->array->label.chunk_bytes, at;

	if (replay->error) {
		end(replay, replay->error);
		return;
	}
	/* Also if its member fails meanwhile: half of a log would leave what newer records replaced. */
	if (replay->index == replay->count) {
		replay->role++;
		next_member(replay);
		return;
	}
	at = replay->found[replay->index].at;
	if (!decode(replay, at) || !fits(replay)) {
		record_done(replay);
		return;
	}
	/* Of an intent nothing may have to be written, and he who is missing lacks all of it. */
	regions_replayed(replay->array->regions, replay->head.stripe * chunk_bytes, chunk_bytes);
	if (replay->head.intent)
		apply_intent(replay);
	else
		apply_data(replay, replay->memory + at + replay->array->label.block_bytes);
}

static int remember(struct redo_scan *scan, const struct redo_head *head, uint64_t at)
{
	struct replay *replay = container_of(scan, struct replay, scan);

	if (replay->count == replay->found_room) {
		unsigned room = replay->found_room ? 2 * replay->found_room : 1024;
		struct redo_found *found = realloc(replay->found, (size_t)room * sizeof(*found));

		if (!found)
			return -ENOMEM;
		replay->found = found;
		replay->found_room = room;
	}
	replay->found[replay->count++] = (struct redo_found){
		.sequence = head->sequence,
		.batch = head->batch,
		.attempt = head->attempt,
		.tail = head->tail,
		.at = at,
	};
	return 0;
}

static void records_found(struct redo_scan *scan, int error)
{
	struct replay *replay = container_of(scan, struct replay, scan);

	if (error) {
		end(replay, error);
		return;
	}
	replay->count = redo_chain(replay->found, replay->count);
	next_record(replay);
}

static void find_records(struct replay *replay)
{
	const struct label *label = &replay->array->label;

	replay->count = replay->index = 0;
	replay->scan = (struct redo_scan){
		.env = replay->array->env,
		.log = replay->memory,
		.length = label->log.length,
		.block_bytes = label->block_bytes,
		.tag = array_tag(label),
		.incarnation = replay->incarnation,
		.found = remember,
		.done = records_found,
	};
	redo_scan_start(&replay->scan);
}

/* --- reading it --- */

static void read_piece(struct replay *replay);

static void piece_read(struct io *io, void *arg)
{
	struct replay_io *own = arg;
	struct replay *replay = own->replay;

	replay->pending--;
	/* Without its log its stripes' parity cannot be believed. */
	if (io->error) {
		if (membership_failed(replay->array, own->member, io->error, "log"))
			replay->role++;
		else
			replay->error = io->error;
		later(replay, next_member);
		return;
	}
	replay->at += io->length;
	later(replay, replay->at == replay->array->label.log.length ? find_records : read_piece);
}

static void read_piece(struct replay *replay)
{
	const struct label_area *log = &replay->array->label.log;

	send(replay, replay->role, IO_READ, log->offset + replay->at, replay->memory + replay->at,
	     min_u64(PIECE, log->length - replay->at), piece_read);
}

static void next_member(struct replay *replay)
{
	const struct array *array = replay->array;

	while (replay->role < array->label.roles &&
	       (!array->roles[replay->role] || array->roles[replay->role]->state != MEMBER_IN_SYNC))
		replay->role++;
	if (replay->error || replay->role == array->label.roles) {
		end(replay, replay->error);
		return;
	}
	replay->at = 0;
	replay->incarnation = array->roles[replay->role]->log_incarnation;
	read_piece(replay);
}

void raid5_replay(struct array *array, void (*done)(struct array *array, int error))
{
	struct replay *replay = calloc(1, sizeof(*replay));
	const struct label *label = &array->label;

	if (replay) {
		replay->memory = aligned_alloc(ALIGN, label->log.length);
		replay->stripe = aligned_alloc(ALIGN, (size_t)label->roles * label->chunk_bytes);
	}
	if (!replay || !replay->memory || !replay->stripe) {
		if (replay) {
			free(replay->memory);
			free(replay->stripe);
		}
		free(replay);
		done(array, -ENOMEM);
		return;
	}
	replay->array = array;
	replay->done = done;
	replay->step.fn = step_run;
	later(replay, next_member);
}
