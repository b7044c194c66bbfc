/* SPDX-License-Identifier: MIT */
/*
 * A session in its thread: logging in, and again when it was lost.
 *
 *           session_open()            up()                  down()
 *   (down) ───────────────▶ logging in ─────▶ up ───────────────────────────┐
 *     ▲                        │ down(), login_due()                         │
 *     └── due: delay_ns, twice as long each time ◀───────────────────────────┘
 *
 * Invariants:
 *  1. A session that is held (failed on purpose) or closing has nothing due.
 *  2. Its paths are up exactly while its initiator is.
 *
 * Not here: the protocol (initiator.c), what becomes of its commands (worker.c).
 */
#include <stdio.h>
#include <string.h>

#include "bench/engine_int.h"

#define DELAY_MIN_NS (100 * NS_PER_MS)
#define DELAY_MAX_NS (3 * NS_PER_S)
#define LOGIN_NS (10 * NS_PER_S)

static void session_due(struct due *due, uint64_t now_ns)
{
	struct session *session = container_of(due, struct session, due);

	(void)now_ns;
	if (session->in.state == INITIATOR_DOWN)
		session_open(session);
	else
		initiator_close(&session->in, "no answer to the login in 10 s");
}

void session_open(struct session *session)
{
	session->closing = false;
	initiator_open(&session->in);
	due_set(&session->thread->dues, &session->due, initiator_now() + LOGIN_NS);
}

static void session_up(struct initiator *in)
{
	struct session *session = container_of(in, struct session, in);
	struct thread *thread = session->thread;
	uint64_t now = initiator_now();

	due_clear(&thread->dues, &session->due);
	session->delay_ns = DELAY_MIN_NS;
	if (session->was_up && thread->measuring)
		session->count.reconnects++;
	session->up = session->was_up = true;
	session->reason[0] = '\0';
	atomic_fetch_add(&thread->sessions_up, 1);
	sem_post(&thread->engine->wake);
	lanes_set_up(session, true, now);
	workers_resume(thread, now);
}

static void session_down(struct initiator *in, const char *reason)
{
	struct session *session = container_of(in, struct session, in);
	struct thread *thread = session->thread;
	uint64_t now = initiator_now();
	char kind[128];

	due_clear(&thread->dues, &session->due);
	lanes_set_up(session, false, now);
	if (session->up) {
		session->up = false;
		atomic_fetch_sub(&thread->sessions_up, 1);
		if (!session->held && !session->closing) {
			snprintf(kind, sizeof(kind), "path lost: %.80s", reason);
			thread_error(thread, kind, NULL);
		}
	}
	snprintf(session->reason, sizeof(session->reason), "%s", reason);
	sem_post(&thread->engine->wake);
	if (session->held || session->closing)
		return;
	/* Not all at once. */
	due_set(&thread->dues, &session->due,
		now + session->delay_ns + in->conf.qualifier % 64 * NS_PER_MS);
	session->delay_ns = min_u64(2 * session->delay_ns, DELAY_MAX_NS);
}

static void session_sent(struct initiator *in, unsigned count, uint64_t now_ns)
{
	struct thread *thread = container_of(in, struct session, in)->thread;

	tally_flight(thread, now_ns);
	thread->in_flight += count;
}

static void session_wrong(struct initiator *in, const char *text)
{
	struct session *session = container_of(in, struct session, in);
	struct engine *engine = session->thread->engine;
	char where[400];

	if (!engine->job.verify)
		return;
	snprintf(where, sizeof(where), "session %u of portal %u (%.100s): %.200s",
		 session->index + 1, session->portal + 1, in->conf.portal, text);
	verify_report(engine->job.verify, where);
	workers_violated(session->thread);
}

static const struct initiator_ops session_ops = { .up = session_up,
						  .wrong = session_wrong,
						  .down = session_down,
						  .sent = session_sent };

void session_init(struct session *session, struct thread *thread, unsigned portal, unsigned index)
{
	const struct bench_setup *setup = thread->engine->setup;
	struct initiator_conf conf = {
		.portal = setup->portals[portal].address,
		.target = setup->portals[portal].target,
		.name = setup->initiator,
		.chap = &setup->chap,
		.header_digest = setup->header_digest,
		.tapped = thread->engine->tapped,
		.luns = setup->luns,
		.lun_count = setup->lun_count,
		.run = thread->engine->run,
		.qualifier = (uint16_t)(session - thread->engine->sessions + 1),
	};

	*session = (struct session){ .thread = thread,
				     .portal = portal,
				     .index = index,
				     .delay_ns = DELAY_MIN_NS,
				     .due.run = session_due };
	initiator_init(&session->in, &thread->loop, &conf, &session_ops);
	session->count.portal = portal;
	session->count.thread = thread->index;
	initiator_isid(&session->in, session->count.isid);
}

void session_leave(struct session *session)
{
	session->closing = true;
	due_clear(&session->thread->dues, &session->due);
	initiator_leave(&session->in);
}

void sessions_hold(struct thread *thread, unsigned portal)
{
	for (unsigned i = 0; i < thread->session_count; i++) {
		struct session *session = thread->sessions[i];

		if (session->portal != portal)
			continue;
		session->held = true;
		due_clear(&thread->dues, &session->due);
		initiator_close(&session->in, "closed on purpose");
	}
}

void sessions_let(struct thread *thread, unsigned portal)
{
	for (unsigned i = 0; i < thread->session_count; i++) {
		struct session *session = thread->sessions[i];

		if (session->portal != portal || !session->held)
			continue;
		session->held = false;
		session_open(session);
	}
}

void sessions_look_for_timeouts(struct thread *thread, uint64_t now_ns)
{
	uint64_t timeout = thread->engine->timeout_ns;
	char reason[64];

	for (unsigned i = 0; i < thread->session_count; i++) {
		struct initiator *in = &thread->sessions[i]->in;
		const struct initiator_cmd *oldest = TAILQ_FIRST(&in->cmds);

		if (in->state != INITIATOR_UP || !oldest || oldest == in->unsent ||
		    now_ns - oldest->sent_ns < timeout)
			continue;
		snprintf(reason, sizeof(reason), "a command was not answered in %.3g s",
			 (double)timeout / (double)NS_PER_S);
		initiator_close(in, reason);
	}
}
