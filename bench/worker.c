/* SPDX-License-Identifier: MIT */
/*
 * Workers and their commands.
 *
 *          command_begin()        command_send()             command_done()
 *   idle ─────────────────▶ made ───────────────▶ under way ───────────────▶ idle, or the next one
 *                            │ ▲ no path            │ BUSY: after a while
 *                            ▼ │ workers_resume()   │ LOST: at once, over another path
 *                          waiting ◀────────────────┘
 *
 * Invariants:
 *  1. A command is active from command_begin() to command_end(); a quiet thread is idle exactly
 *     when none is.
 *  2. The intended start of a closed loop's command is the end of its predecessor plus the time
 *     to think; of an open loop's, the plan's, however late it begins.
 *  3. While verifying, a write that failed or was lost ends as unknown and is never sent again:
 *     the target may have done it, or do it later.
 *  4. Every command ends, whatever the target does: with its paths up and down for ever, when it
 *     has been lost LOSSES_MAX times and for the time that a command may take.
 *  5. Memory is allocated by lanes_new(), none by commands.
 *
 * Not here: which offset (workload.c), which path (mpio/path.c), figures (tally.c), what is
 * allocated (lane.c).
 */
#include <stdio.h>
#include <string.h>

#include "bench/data.h"
#include "bench/engine_int.h"

#define DELAY_MIN_NS NS_PER_MS
#define DELAY_MAX_NS (64 * NS_PER_MS)
#define LOSSES_MAX 4
#define SAMPLE_EVERY 16 /* reads, one of which is looked at */

void thread_error(struct thread *thread, const char *kind, const struct command *where)
{
	const struct engine *engine = thread->engine;
	struct error_kind *error = thread->errors;
	unsigned i;

	if (!thread->measuring)
		return;
	for (i = 0; i < thread->error_count; i++, error++) {
		if (strcmp(error->kind, kind) == 0) {
			error->error.count++;
			return;
		}
	}
	if (i == BENCH_ERRORS_MAX)
		return;
	thread->error_count++;
	error->error.count = 1;
	snprintf(error->kind, sizeof(error->kind), "%s", kind);
	if (where && where->session)
		snprintf(error->error.text, sizeof(error->error.text),
			 "%.80s (LUN %u, %s at %llu, %.40s)", kind, engine->luns[where->lun].lun,
			 where->write ? "write" : "read", (unsigned long long)where->offset,
			 engine->setup->portals[where->session->portal].address);
	else
		snprintf(error->error.text, sizeof(error->error.text), "%.150s", kind);
}

static void look_whether_idle(struct thread *thread)
{
	if (thread->active > 0 || !(thread->quiet || thread->exhausted))
		return;
	atomic_store(&thread->idle, true);
	sem_post(&thread->engine->wake);
}

static void command_send(struct command *command, uint64_t now_ns);

/* Takes its share of what may still be moved. False: there is nothing left. */
static bool take_bytes(struct job *job, uint32_t length)
{
	return !job->bounded || atomic_fetch_sub(&job->budget, length) >= (int_fast64_t)length;
}

/* False: it has nothing to do, and is idle. */
static bool command_make(struct command *command)
{
	struct worker *worker = command->worker;
	struct engine *engine = worker->lane->thread->engine;
	struct job *job = &engine->job;
	struct workload_op op;

	command->length = worker->lane->stream->block_bytes;
	if (job->fill) {
		if (!workload_fill(&worker->load, job->range_bytes, &op, &command->length))
			return false;
	} else {
		if (!take_bytes(job, command->length))
			return false;
		workload_next(&worker->load, &op);
	}
	command->lun = op.lun;
	command->write = op.write;
	command->offset = op.offset;
	command->buf = op.write || job->verify ? command->own : worker->lane->scratch;
	return true;
}

/* The next one of this place. False: there is none, now or ever; it is idle. */
static bool command_begin(struct command *command, uint64_t intended_ns, uint64_t now_ns)
{
	struct worker *worker = command->worker;
	struct thread *thread = worker->lane->thread;
	struct job *job = &thread->engine->job;

	if (thread->quiet || now_ns >= thread->to_ns || !command_make(command)) {
		thread->exhausted |= !thread->quiet && now_ns < thread->to_ns;
		TAILQ_INSERT_HEAD(&worker->idle, command, link);
		return false;
	}
	thread->active++;
	command->counted = thread->measuring;
	command->intended_ns = intended_ns;
	command->first_ns = now_ns;
	command->delay_ns = 0;
	command->losses = 0;
	if (job->verify)
		command->verify = verify_begin(job->verify, command->lun, command->write,
					       command->offset, command->buf, command->length,
					       now_ns);
	else if (command->write)
		data_stamp(job->point->data, worker->number, worker->sequence++, command->buf,
			   command->length);
	command_send(command, now_ns);
	return true;
}

static void command_send(struct command *command, uint64_t now_ns)
{
	struct lane *lane = command->worker->lane;
	struct thread *thread = lane->thread;
	const struct bench_lun *lun = &thread->engine->luns[command->lun];
	int path;

	while ((path = path_choose(&lane->group, now_ns)) >= 0) {
		command->path = (unsigned)path;
		command->session = lane->sessions[path];
		if (initiator_rw(&command->session->in, &command->io, lun->lun, command->write,
				 command->offset / lun->block_bytes, lun->block_bytes, command->buf,
				 command->length)) {
			if (command->verify)
				verify_sent(command->verify, command->session->portal,
					    command->session->index);
			return;
		}
		/* It is going down, and will say so at the end of the turn. */
		path_done(&lane->paths[path]);
		path_set_up(&lane->paths[path], false, now_ns);
	}
	command->waiting_ns = now_ns;
	TAILQ_INSERT_TAIL(&thread->waiting, command, link);
}

/* It has thought enough, or waited enough after BUSY. */
static void command_due(struct due *due, uint64_t now_ns)
{
	struct command *command = container_of(due, struct command, due);

	if (!command->thinking) {
		command_send(command, now_ns);
		return;
	}
	command->thinking = false;
	command_begin(command, due->at_ns, now_ns);
}

static void pump(struct worker *worker, uint64_t now_ns);

/* What follows the command that ended here. */
static void command_next(struct command *command, uint64_t now_ns)
{
	struct worker *worker = command->worker;
	struct lane *lane = worker->lane;

	if (worker->step_ns > 0) {
		TAILQ_INSERT_HEAD(&worker->idle, command, link);
		if (!lane->thread->quiet)
			pump(worker, now_ns);
	} else if (lane->stream->think_ns && !lane->thread->quiet) {
		command->thinking = true;
		due_set(&lane->thread->dues, &command->due, now_ns + lane->stream->think_ns);
	} else {
		command_begin(command, now_ns, now_ns);
	}
}

void workers_violated(struct thread *thread)
{
	atomic_store(&thread->engine->violated, true);
	sem_post(&thread->engine->wake);
	workers_quiet(thread);
}

static void command_end(struct command *command, enum verify_outcome outcome, uint64_t now_ns)
{
	struct thread *thread = command->worker->lane->thread;
	struct engine *engine = thread->engine;

	if (command->verify) {
		if (!verify_end(engine->job.verify, command->verify, outcome, now_ns))
			workers_violated(thread);
		command->verify = NULL;
	}
	assert(thread->active > 0);
	thread->active--;
	command_next(command, now_ns);
	look_whether_idle(thread);
}

static void command_fail(struct command *command, const char *kind, uint64_t now_ns)
{
	struct thread *thread = command->worker->lane->thread;

	if (command->counted)
		command->session->count.errors++;
	thread->open->errors++;
	thread_error(thread, kind, command);
	command_end(command, VERIFY_UNKNOWN, now_ns);
}

static void sample(struct command *command)
{
	struct thread *thread = command->worker->lane->thread;

	if (command->write || !command->counted || ++thread->sampled % SAMPLE_EVERY)
		return;
	thread->samples[command->lun]++;
	if (data_is_zero(command->buf, command->length))
		thread->zero_samples[command->lun]++;
}

static void retry(struct command *command, uint64_t now_ns)
{
	if (command->counted)
		command->session->count.retries++;
	command_send(command, now_ns);
}

static void back_off(struct command *command, uint64_t now_ns)
{
	struct thread *thread = command->worker->lane->thread;

	if (command->counted) {
		command->session->count.retries++;
		command->session->count.backoffs++;
	}
	command->delay_ns = command->delay_ns ? min_u64(2 * command->delay_ns, DELAY_MAX_NS) :
						DELAY_MIN_NS;
	due_set(&thread->dues, &command->due, now_ns + command->delay_ns);
}

static void command_done(struct initiator_cmd *io, enum initiator_outcome outcome)
{
	struct command *command = container_of(io, struct command, io);
	struct lane *lane = command->worker->lane;
	struct thread *thread = lane->thread;
	uint64_t now = initiator_now();
	bool late = now - command->first_ns > thread->engine->timeout_ns;

	path_done(&lane->paths[command->path]);
	if (io->sent_ns) {
		tally_flight(thread, now);
		thread->in_flight--;
	}
	switch (outcome) {
	case INITIATOR_GOOD:
		sample(command);
		tally_good(command, now);
		command_end(command, VERIFY_GOOD, now);
		break;
	case INITIATOR_TRANSIT:
	case INITIATOR_BUSY:
	case INITIATOR_ATTENTION:
		/*
		 * BUSY and an attention come before anything is carried out, so that a write may
		 * be sent again. A sense that it is not ready may come after a part of it.
		 */
		if (late || (outcome == INITIATOR_TRANSIT && command->verify && command->write))
			command_fail(command, initiator_error(&command->session->in), now);
		else if (outcome == INITIATOR_ATTENTION)
			retry(command, now);
		else
			back_off(command, now);
		break;
	case INITIATOR_FAILED:
		command_fail(command, initiator_error(&command->session->in), now);
		break;
	case INITIATOR_LOST:
		command->losses++;
		if (command->verify && command->write)
			command_fail(command, "write lost with its path", now);
		else if (late && (thread->quiet || command->losses >= LOSSES_MAX))
			command_fail(command, "lost with its path again and again", now);
		else
			retry(command, now);
		break;
	}
}

/* Open loop: begins what is due, as long as there are idle places. */
static void pump(struct worker *worker, uint64_t now_ns)
{
	struct command *command;

	while ((uint64_t)worker->next_ns <= now_ns && (command = TAILQ_FIRST(&worker->idle))) {
		uint64_t intended = (uint64_t)worker->next_ns;

		TAILQ_REMOVE(&worker->idle, command, link);
		if (!command_begin(command, intended, now_ns))
			return;
		worker->next_ns += worker->step_ns;
	}
	if (!TAILQ_EMPTY(&worker->idle))
		due_set(&worker->lane->thread->dues, &worker->due, (uint64_t)worker->next_ns);
}

static void worker_begin(struct worker *worker, uint64_t now_ns)
{
	struct commands begin = TAILQ_HEAD_INITIALIZER(begin);
	struct command *command;

	if (worker->step_ns > 0) {
		/* By the plan, however late this thread is; the workers' lie evenly in time. */
		worker->next_ns = (double)max_u64(worker->lane->thread->from_ns, worker->begin_ns) +
				  worker->step_ns * worker->load.worker / worker->load.workers;
		worker->base_ns = (uint64_t)worker->next_ns;
		pump(worker, now_ns);
		return;
	}
	TAILQ_CONCAT(&begin, &worker->idle, link);
	while ((command = TAILQ_FIRST(&begin))) {
		TAILQ_REMOVE(&begin, command, link);
		command_begin(command, now_ns, now_ns);
	}
}

static void worker_due(struct due *due, uint64_t now_ns)
{
	struct worker *worker = container_of(due, struct worker, due);
	struct thread *thread = worker->lane->thread;

	if (due->at_ns == worker->begin_ns) {
		worker_begin(worker, now_ns);
		return;
	}
	if (thread->measuring)
		hist_add(&thread->lag, due_lag(due, thread->busy_until_ns, now_ns));
	pump(worker, now_ns);
}

void worker_init(struct worker *worker)
{
	worker->due.run = worker_due;
	TAILQ_INIT(&worker->idle);
	for (unsigned i = 0; i < worker->lane->stream->depth; i++) {
		struct command *command = &worker->commands[i];

		command->worker = worker;
		command->session = worker->lane->sessions[0];
		command->io.done = command_done;
		command->due.run = command_due;
		TAILQ_INSERT_TAIL(&worker->idle, command, link);
	}
}

void workers_start(struct thread *thread, uint64_t now_ns, bool first)
{
	thread->quiet = thread->exhausted = false;
	atomic_store(&thread->idle, false);
	for (unsigned l = 0; l < thread->lane_count; l++) {
		struct lane *lane = &thread->lanes[l];

		for (unsigned w = 0; w < lane->worker_count; w++) {
			struct worker *worker = &lane->workers[w];

			if (first)
				worker->begin_ns = now_ns + worker->ramp_ns;
			if (worker->begin_ns > now_ns)
				due_set(&thread->dues, &worker->due, worker->begin_ns);
			else
				worker_begin(worker, now_ns);
		}
	}
	thread->exhausted |= thread->lane_count == 0;
	look_whether_idle(thread);
}

void workers_resume(struct thread *thread, uint64_t now_ns)
{
	struct commands resume = TAILQ_HEAD_INITIALIZER(resume);
	struct command *command;

	TAILQ_CONCAT(&resume, &thread->waiting, link);
	while ((command = TAILQ_FIRST(&resume))) {
		TAILQ_REMOVE(&resume, command, link);
		command_send(command, now_ns);
	}
}

void workers_look_for_timeouts(struct thread *thread, uint64_t now_ns)
{
	struct command *command;

	/* One whose path this turn closed, after NOW_NS was read, waits since later than that. */
	while ((command = TAILQ_FIRST(&thread->waiting)) &&
	       now_ns > command->waiting_ns + thread->engine->timeout_ns) {
		TAILQ_REMOVE(&thread->waiting, command, link);
		command_fail(command, "no path", now_ns);
	}
}

void workers_quiet(struct thread *thread)
{
	thread->quiet = true;
	for (unsigned l = 0; l < thread->lane_count; l++) {
		struct lane *lane = &thread->lanes[l];

		for (unsigned w = 0; w < lane->worker_count; w++) {
			struct worker *worker = &lane->workers[w];

			due_clear(&thread->dues, &worker->due);
			for (unsigned i = 0; i < lane->stream->depth; i++) {
				struct command *command = &worker->commands[i];

				if (!command->thinking)
					continue;
				command->thinking = false;
				due_clear(&thread->dues, &command->due);
				TAILQ_INSERT_HEAD(&worker->idle, command, link);
			}
		}
	}
	look_whether_idle(thread);
}
