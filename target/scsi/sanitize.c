/* SPDX-License-Identifier: MIT */
/*
 * SANITIZE: OVERWRITE, BLOCK ERASE, EXIT FAILURE MODE; an operation of the logical unit, not of
 * the task that asked for it.
 *
 *              scsi_sanitize()             finish(0)
 *   NONE ─────────────────────▶ RUNNING ─────────────▶ NONE
 *    ▲                           │    ▲
 *    │ EXIT FAILURE MODE         │    │ scsi_sanitize()
 *    │ (after AUSE=1)            ▼    │
 *    └────────────────────────  FAILED       finish(error)
 *
 * Invariants:
 * 1. From RUNNING on no command gets at the medium that had no range then; those that had one
 *    end first (the hold over everything). FAILED lets none either: what is left of the data
 *    is nobody's to read.
 * 2. Aborts, resets and lost nexuses end the task alone. The operation ends when it is through,
 *    at the first error of the device, or with the logical unit.
 * 3. One io at a time, UNIT long at most where it writes, and one step a turn: it passes
 *    through the device's queues as any host's does and holds up nobody's turn.
 * 4. BLOCK ERASE is there where blocks can be unmapped and read as zeroes then: what is
 *    allocated is overwritten with zeroes, that goes to the medium, and only then is
 *    everything unmapped. OVERWRITE is there where they cannot: writing to a thin logical unit
 *    allocates, and reaches nothing of what it has given back.
 * 5. "Not through" is durable before the first io, and stays so until the operation has ended
 *    well or EXIT FAILURE MODE was allowed: after a restart in between it has failed. One whose
 *    good end cannot be noted has failed at once: what hosts would write after it a restart
 *    would close again.
 * 6. With INVERT every other pass is inverted, so that the last one leaves the pattern.
 *
 * Not here: CRYPTOGRAPHIC ERASE: there is no key of ours to change. Which commands go on
 * working (OP_SANITIZING in the table).
 *
 * Spec: SBC-3 4.11, 5.24.
 */
#include "target/scsi/sanitize.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"
#include "target/scsi/sense.h"

#define IMMED 0x80
#define AUSE 0x20
#define ACTION 0x1f
#define OVERWRITE 0x01
#define BLOCK_ERASE 0x02
#define EXIT_FAILURE_MODE 0x1f

/* Of the parameter list. */
#define LIST_HEADER 4
#define INVERT 0x80
#define TEST 0x60
#define COUNT 0x1f

#define PIECE (16 * KIB) /* of memory: the pattern, over and over; whole blocks */
#define PIECES 16
#define UNIT (PIECE * PIECES) /* written at once */
#define UNMAP_UNIT (16 * MIB) /* unmapped at once */
#define LOOK_UNIT (256 * MIB) /* asked for at once */

struct sanitize {
	struct scsi_lu *lu;
	struct lu_task *waiter; /* IMMED=0; NULL: has its status, or was aborted */
	struct rangelock_hold hold;
	struct env_timer step;
	struct io io;
	struct iovec iov[PIECES];
	uint8_t *memory; /* PIECE */
	bool erase, invert, ause;
	bool inverted; /* memory */
	bool again;    /* it is a way out of a failure */
	unsigned pass, passes;
	uint64_t offset;
	uint64_t data_end; /* erase: up to here it is known to be allocated */
};

static enum lu_sanitize state_of(const struct scsi_lu *lu)
{
	return (enum lu_sanitize)atomic_load(&lu->sanitize_state);
}

enum lu_sanitize scsi_lu_sanitize(const struct scsi_lu *lu, uint64_t *failed_ns)
{
	enum lu_sanitize state = state_of(lu);

	*failed_ns = atomic_load(&lu->sanitize_failed_ns);
	return state;
}

/* The time first: who reads the state finds it. */
static void set_failed(struct scsi_lu *lu)
{
	atomic_store(&lu->sanitize_failed_ns, env_now_ns(shard_env(lu->home)));
	atomic_store(&lu->sanitize_state, LU_SANITIZE_FAILED);
}

/* ---- the others */

bool sanitize_sense(const struct scsi_lu *lu, struct scsi_sense *sense)
{
	switch (state_of(lu)) {
	case LU_SANITIZE_NONE:
		break;
	case LU_SANITIZE_RUNNING:
		sense->reason = SCSI_R_SANITIZING;
		sense->has_progress = true;
		sense->progress = (uint16_t)atomic_load(&lu->sanitize_progress);
		return true;
	case LU_SANITIZE_FAILED:
		sense->reason = SCSI_R_SANITIZE_FAILED;
		return true;
	}
	return false;
}

bool sanitize_refuses(struct scsi_task *task)
{
	struct scsi_sense sense = { 0 };
	const struct scsi_op *op = task->op;

	if (!task->lu || op->flags & OP_SANITIZING || !sanitize_sense(task->lu, &sense))
		return false;
	/* Out of the failure leads another SANITIZE alone. */
	if (op->flags & OP_AHEAD && sense.reason == SCSI_R_SANITIZE_FAILED)
		return false;
	scsi_fail_sense(task, &sense);
	return true;
}

/* ---- what outlives a restart: state and AUSE */

static void save(struct scsi_lu *lu, bool open, bool ause,
		 void (*done)(struct lu_save *save, int error))
{
	lu->sanitize_blob[0] = open;
	lu->sanitize_blob[1] = ause;
	lu->sanitize_save = (struct lu_save){
		.blob = LU_BLOB_SANITIZE,
		.data = lu->sanitize_blob,
		.length = sizeof(lu->sanitize_blob),
		.done = done,
	};
	if (lu->store)
		lu->store->save(lu->store, &lu->sanitize_save);
	else
		done(&lu->sanitize_save, 0);
}

void sanitize_load(struct scsi_lu *lu)
{
	uint32_t length = 0;
	const uint8_t *blob = lu->store ? lu->store->load(lu->store, LU_BLOB_SANITIZE, &length) :
					  NULL;

	if (!blob || (length > 0 && !blob[0]))
		return;
	lu->sanitize_restricted = length != sizeof(lu->sanitize_blob) || !blob[1];
	set_failed(lu);
}

/* ---- the operation */

/* As ERROR says, and already noted. */
static void conclude(struct sanitize *san, int error)
{
	struct scsi_lu *lu = san->lu;
	struct lu_task *waiter = san->waiter;

	if (error) {
		log_limited(&lu->sanitize_limit, LOG_L_ERROR, "scsi", lu->blk->name,
			    "sanitize-failed", "pass=%u offset=%" PRIu64 " error=\"%s\"", san->pass,
			    san->offset, strerror(-error));
		lu->sanitize_restricted = !san->ause;
	} else {
		log_limited(&lu->sanitize_limit, LOG_L_INFO, "scsi", lu->blk->name, "sanitize-done",
			    "method=%s", san->erase ? "block-erase" : "overwrite");
	}
	if (error)
		set_failed(lu);
	else
		atomic_store(&lu->sanitize_state, LU_SANITIZE_NONE);
	rangelock_release(lu->lock, &san->hold);
	lu->sanitize = NULL;
	free(san->memory);
	free(san);
	if (lu->dying) { /* no task is left that could wait */
		lu_settle(lu);
	} else if (waiter) {
		if (error)
			scsi_fail(waiter->task, SCSI_R_SANITIZE_FAILED);
		scsi_complete(waiter->task);
	}
}

static void end_saved(struct lu_save *save, int error)
{
	struct scsi_lu *lu = container_of(save, struct scsi_lu, sanitize_save);

	conclude(lu->sanitize, error); /* invariant 5 */
}

static void finish(struct sanitize *san, int error)
{
	if (error)
		conclude(san, error);
	else
		save(san->lu, false, false, end_saved);
}

/* The next step in another turn. */
static void go_on(struct sanitize *san)
{
	uint64_t size = san->lu->blk->size_bytes;
	uint64_t share = min_u64(san->offset / max_u64(size >> 16, 1), UINT16_MAX);

	atomic_store(&san->lu->sanitize_progress,
		     (unsigned)((san->pass * (UINT16_MAX + 1ull) + share) / san->passes));
	env_timer_set(shard_env(san->lu->home), &san->step, 0);
}

static void ended(struct io *io, void *arg)
{
	struct sanitize *san = arg;

	if (io->error) {
		finish(san, io->error);
		return;
	}
	if (io->op == IO_FLUSH) { /* the pass is on the medium */
		san->pass++;
		san->offset = san->data_end = 0;
		if (san->pass == san->passes) {
			finish(san, 0);
			return;
		}
	} else if (io->op != IO_STATUS) {
		san->offset += io->length;
	} else if (io->run == IO_RUN_ZEROES) {
		san->offset += io->run_bytes;
	} else {
		san->data_end = san->offset + io->run_bytes;
	}
	go_on(san);
}

static void submit(struct sanitize *san, enum io_op op, uint64_t length, unsigned iov_count)
{
	io_init(&san->io, op, san->offset, length, iov_count ? san->iov : NULL, iov_count);
	blk_submit(san->lu->blk, &san->io, ended, san);
}

static void write_unit(struct sanitize *san, uint64_t most)
{
	uint64_t left = min_u64(lu_most(san->lu, most), UNIT), length = left;
	unsigned n;

	for (n = 0; left > 0; n++) {
		san->iov[n].iov_base = san->memory;
		san->iov[n].iov_len = min_u64(left, PIECE);
		left -= san->iov[n].iov_len;
	}
	submit(san, IO_WRITE, length, n);
}

static void turn_pattern(struct sanitize *san)
{
	bool want = san->invert && (san->passes - san->pass) % 2 == 0;

	if (want == san->inverted)
		return;
	for (unsigned i = 0; i < PIECE; i++)
		san->memory[i] = (uint8_t)~san->memory[i];
	san->inverted = want;
}

/* The size is looked at anew each time: it may change under us. */
static void step(struct env_timer *timer)
{
	struct sanitize *san = container_of(timer, struct sanitize, step);
	uint64_t size = san->lu->blk->size_bytes;
	uint64_t left = san->offset < size ? size - san->offset : 0;

	if (san->lu->dying)
		finish(san, -ECANCELED);
	else if (left == 0)
		submit(san, IO_FLUSH, 0, 0);
	else if (san->erase && san->pass > 0)
		submit(san, IO_UNMAP, min_u64(left, UNMAP_UNIT), 0);
	else if (san->erase && san->offset >= san->data_end)
		submit(san, IO_STATUS, min_u64(left, LOOK_UNIT), 0);
	else if (san->erase)
		write_unit(san, min_u64(left, san->data_end - san->offset));
	else {
		turn_pattern(san);
		write_unit(san, left);
	}
}

static void held(struct rangelock_hold *hold)
{
	go_on(container_of(hold, struct sanitize, hold));
}

static struct sanitize *sanitize_new(struct scsi_lu *lu)
{
	struct sanitize *san = calloc(1, sizeof(*san));

	if (!san)
		return NULL;
	san->memory = aligned_alloc(max_u64(4096, lu->blk->mem_align),
				    max_u64(PIECE, lu->blk->mem_align));
	if (!san->memory) {
		free(san);
		return NULL;
	}
	memset(san->memory, 0, PIECE);
	san->lu = lu;
	san->step.fn = step;
	san->hold.offset = 0;
	san->hold.length = lu->blk->size_bytes;
	san->hold.exclusive = true;
	san->hold.fn = held;
	return san;
}

void sanitize_stop(struct scsi_lu *lu)
{
	struct sanitize *san = lu->sanitize;

	if (!san || !san->step.armed)
		return;
	env_timer_cancel(shard_env(lu->home), &san->step);
	san->step.fn(&san->step);
}

void sanitize_sweep(struct scsi_lu *lu)
{
	struct lu_task *waiter = lu->sanitize ? lu->sanitize->waiter : NULL;

	if (!waiter || !atomic_load(&waiter->task->aborting))
		return;
	lu->sanitize->waiter = NULL;
	scsi_complete(waiter->task);
}

/* ---- the command */

/* 0 for those that bring none; UINT64_MAX: not a length that OVERWRITE takes. */
uint64_t scsi_sanitize_length(const struct scsi_task *task)
{
	uint64_t length = get_be16(task->cdb + 7);

	if ((task->cdb[1] & ACTION) != OVERWRITE)
		return 0;
	if (length <= LIST_HEADER || length > task->lu->block_size + LIST_HEADER)
		return UINT64_MAX;
	return length;
}

/* True: nothing is set that must not be. */
static bool check_cdb(struct scsi_task *task)
{
	bool overwrite = (task->cdb[1] & ACTION) == OVERWRITE;
	unsigned i;

	if (task->cdb[1] & (uint8_t) ~(IMMED | AUSE | ACTION)) {
		scsi_fail_field(task, 1, 6);
		return false;
	}
	for (i = 2; i < 7; i++) {
		if (task->cdb[i]) {
			scsi_fail_field(task, i, 7);
			return false;
		}
	}
	if (overwrite ? scsi_sanitize_length(task) != UINT64_MAX : !get_be16(task->cdb + 7))
		return true;
	scsi_fail_field(task, 7, 7);
	return false;
}

/* The parameter list of OVERWRITE. False: TASK has failed. */
static bool take_pattern(struct scsi_task *task, struct sanitize *san)
{
	uint32_t block = task->lu->block_size, length;
	uint8_t header[LIST_HEADER];
	uint64_t i;

	if (task->data_out_length < task->transfer_length) {
		scsi_fail(task, SCSI_R_PARAMETER_LIST_LENGTH);
		return false;
	}
	buf_read(&task->data, 0, header, sizeof(header));
	length = get_be16(header + 2);
	if (header[0] & TEST)
		scsi_fail_param(task, 0, 6);
	else if (!(header[0] & COUNT))
		scsi_fail_param(task, 0, 4);
	else if (!length || length > block)
		scsi_fail_param(task, 2, 7);
	else if (LIST_HEADER + length > task->transfer_length)
		scsi_fail(task, SCSI_R_PARAMETER_LIST_LENGTH);
	else {
		san->invert = header[0] & INVERT;
		san->passes = header[0] & COUNT;
		buf_read(&task->data, LIST_HEADER, san->memory, length);
		/* Each block begins with the pattern; its last repetition may be cut off. */
		for (i = length; i < PIECE; i++)
			san->memory[i] = san->memory[i < block ? i - length : i - block];
		return true;
	}
	return false;
}

/* Nothing has been touched yet. */
static void call_off(struct sanitize *san)
{
	struct scsi_lu *lu = san->lu;
	struct lu_task *waiter = san->waiter;

	atomic_store(&lu->sanitize_state, san->again ? LU_SANITIZE_FAILED : LU_SANITIZE_NONE);
	lu->sanitize = NULL;
	free(san->memory);
	free(san);
	if (waiter) {
		scsi_fail(waiter->task, SCSI_R_INTERNAL);
		scsi_complete(waiter->task);
	} else {
		lu_settle(lu);
	}
}

static void begin_saved(struct lu_save *save, int error)
{
	struct scsi_lu *lu = container_of(save, struct scsi_lu, sanitize_save);
	struct sanitize *san = lu->sanitize;
	struct lu_task *waiter = san->waiter;

	if (error) {
		call_off(san);
		return;
	}
	log_limited(&lu->sanitize_limit, LOG_L_INFO, "scsi", lu->blk->name, "sanitize-begun",
		    "method=%s", san->erase ? "block-erase" : "overwrite");
	if (rangelock_take(lu->lock, &san->hold))
		held(&san->hold);
	if (waiter && waiter->task->cdb[1] & IMMED) {
		san->waiter = NULL;
		scsi_complete(waiter->task);
	}
}

static void begin(struct scsi_task *task, struct sanitize *san)
{
	struct scsi_lu *lu = task->lu;

	san->again = state_of(lu) == LU_SANITIZE_FAILED;
	lu->sanitize = san;
	atomic_store(&lu->sanitize_progress, 0);
	atomic_store(&lu->sanitize_state, LU_SANITIZE_RUNNING);
	san->waiter = task->lu_private;
	save(lu, true, san->ause, begin_saved);
}

static void start(struct scsi_task *task)
{
	struct sanitize *san = sanitize_new(task->lu);

	if (!san) {
		task->status = SCSI_BUSY;
		scsi_complete(task);
		return;
	}
	san->ause = task->cdb[1] & AUSE;
	san->erase = (task->cdb[1] & ACTION) == BLOCK_ERASE;
	san->passes = 2; /* of an erase: over what is there, then unmapping it */
	if (san->erase || take_pattern(task, san)) {
		begin(task, san);
		return;
	}
	free(san->memory);
	free(san);
	scsi_complete(task);
}

static void exit_saved(struct lu_save *save, int error)
{
	struct scsi_lu *lu = container_of(save, struct scsi_lu, sanitize_save);
	struct scsi_task *task = lu->sanitize_exit->task;

	lu->sanitize_exit = NULL;
	if (error)
		scsi_fail(task, SCSI_R_INTERNAL);
	else
		atomic_store(&lu->sanitize_state, LU_SANITIZE_NONE);
	scsi_complete(task);
}

static void exit_failure(struct scsi_task *task)
{
	struct scsi_lu *lu = task->lu;

	if (state_of(lu) != LU_SANITIZE_FAILED) {
		scsi_complete(task);
		return;
	}
	lu->sanitize_exit = task->lu_private;
	save(lu, false, false, exit_saved);
}

void scsi_sanitize(struct scsi_task *task)
{
	struct scsi_lu *lu = task->lu;
	bool exits = (task->cdb[1] & ACTION) == EXIT_FAILURE_MODE;
	bool restricted = state_of(lu) == LU_SANITIZE_FAILED && lu->sanitize_restricted;

	if (!check_cdb(task)) {
		/* has failed */
	} else if (restricted && exits) {
		scsi_fail_field(task, 1, 4);
	} else if (restricted && task->cdb[1] & AUSE) {
		scsi_fail_field(task, 1, 5);
	} else if (lu->sanitize_exit) {
		task->status = SCSI_BUSY;
	} else if (exits) {
		exit_failure(task);
		return;
	} else if (lu_write_protected(task)) {
		scsi_fail(task, SCSI_R_WRITE_PROTECTED);
	} else if (lu->blk->state == BLK_FAILED) {
		scsi_fail(task, SCSI_R_NOT_READY);
	} else {
		start(task);
		return;
	}
	scsi_complete(task);
}
