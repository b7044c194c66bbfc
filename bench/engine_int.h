/* SPDX-License-Identifier: MIT */
/*
 * What the files of the engine share.
 *
 *   engine.c ─▶ thread.c ─▶ session.c ─▶ initiator.c     a session, and logging in again
 *      │            └─────▶ worker.c ──▶ workload.c      commands
 *      ├─▶ tally.c                                       figures of the threads become a result
 *      └─▶ control.c                                     what the LUNs are
 *
 * Everything of a thread is touched by that thread alone, or by the caller's while the thread is
 * in threads_call(). Exceptions are atomic, and say so.
 */
#ifndef BENCH_ENGINE_INT_H
#define BENCH_ENGINE_INT_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "bench/due.h"
#include "bench/initiator.h"
#include "bench/verify.h"
#include "bench/workload.h"

#define FAILURES_MAX ARRAY_LEN(((struct bench_setup *)0)->failures)

struct command {
	struct initiator_cmd io;
	struct worker *worker;
	struct due due;            /* a pause for thought, or before it is sent again */
	TAILQ_ENTRY(command) link; /* of the worker's free ones, or of those without a path */
	struct session *session;
	unsigned path;
	bool counted;  /* its intended start is in the measured time */
	bool thinking; /* due for its next beginning */
	bool write;
	unsigned lun; /* index */
	uint32_t length;
	uint64_t offset;
	uint64_t intended_ns, first_ns; /* first_ns: when it really began */
	uint64_t delay_ns;              /* before it is sent again */
	unsigned losses;                /* how often its path went down under it */
	uint64_t waiting_ns;            /* since when it has no path */
	uint8_t *own;                   /* what it writes, and reads if that is judged */
	uint8_t *buf;
	struct verify_op *verify;
};
TAILQ_HEAD(commands, command);

struct worker {
	struct lane *lane;
	struct workload load;
	struct due due;          /* its beginning, or an open loop's next command */
	uint64_t ramp_ns;        /* after the first start */
	uint64_t begin_ns;       /* not before */
	double next_ns, step_ns; /* open loop */
	uint64_t base_ns;        /* the first next_ns since workers_start() */
	struct commands idle;
	struct command *commands; /* [depth] */
	uint64_t sequence;        /* of what it wrote */
	uint32_t number;          /* among all of the run */
};

/* A stream on one thread: its workers and its paths. */
struct lane {
	struct thread *thread;
	const struct bench_stream *stream;
	const struct workload_range *range;
	struct path_group group;
	struct path *paths;
	struct session **sessions; /* by path */
	struct worker *workers;
	struct command *commands; /* of all workers */
	uint8_t *buffers;         /* of its commands, and one that all reads share */
	size_t buffers_size;
	uint8_t *scratch; /* that one */
	unsigned worker_count;
};

struct session {
	struct initiator in;
	struct thread *thread;
	unsigned portal, index; /* index: among those of the portal */
	struct due due;         /* logging in again, or giving up waiting for it */
	uint64_t delay_ns;
	bool up, was_up, held, closing;
	uint64_t stalls_before;
	struct bench_session count;
	char reason[160]; /* why it is not up */
};

/* What happened since the last tick. */
struct interval_part {
	uint64_t ops[2], bytes[2];
	uint64_t portal_ops[BENCH_PORTALS_MAX];
	uint64_t errors;
	uint64_t flight_ns; /* integral of what was in flight */
	struct hist latency;
};

/* A path that fails on purpose: it is held, then let. */
struct failure {
	struct due due;
	struct thread *thread;
	const struct bench_failure *plan;
	bool open;
};

struct error_kind {
	char kind[96];
	struct bench_error error;
};

struct thread {
	struct engine *engine;
	unsigned index;
	pthread_t id;
	pid_t tid;
	bool running;
	struct ev_loop *ev;
	struct initiator_loop loop;
	struct ev_prepare prepare;
	struct ev_check check;
	struct ev_async async;
	struct ev_io timer;
	int timer_fd;
	uint64_t armed_ns;
	uint64_t busy_until_ns; /* end of its last turn */
	struct due_heap dues;
	struct due probe, housekeeping, end;
	struct failure failures[FAILURES_MAX];
	sem_t done; /* a call is */
	_Atomic(void (*)(struct thread *, void *)) call;
	void *call_arg;

	struct session **sessions;
	unsigned session_count;
	atomic_uint sessions_up;
	char trouble[300]; /* find_trouble() */

	struct lane lanes[BENCH_STREAMS_MAX];
	unsigned lane_count;
	struct commands waiting; /* for a path */
	unsigned active;         /* commands that are not idle */
	bool quiet;              /* no command begins */
	bool exhausted;          /* some had nothing left to do */
	bool measuring;
	atomic_bool idle; /* quiet, and every command is answered */
	uint64_t from_ns, to_ns;
	unsigned in_flight;
	uint64_t flight_ns, changed_ns; /* integral of in_flight from from_ns to to_ns */
	uint64_t flight_mark;           /* it, at the last tick */
	uint64_t cpu_ns;                /* used until from_ns */
	double wait_s;                  /* for a processor, until from_ns; -1: not known */

	struct bench_counts counts[2];
	struct interval_part parts[2], *open, *closed;
	struct hist lag;
	struct error_kind errors[BENCH_ERRORS_MAX];
	unsigned error_count;
	uint64_t sampled; /* reads, to count which to look at */
	uint64_t samples[BENCH_LUNS_MAX], zero_samples[BENCH_LUNS_MAX];
};

/* One engine_run() or engine_fill(). */
struct job {
	const struct bench_point *point;
	struct verify *verify;
	struct workload_range *ranges; /* by stream */
	uint64_t range_bytes[BENCH_LUNS_MAX];
	bool fill;
	uint64_t fill_bytes;
	uint64_t from_ns, tick_ns; /* of the measured time; of the last interval's end */
	double tick_cpu_s;
	unsigned workers;
	bool bounded;
	atomic_int_fast64_t budget; /* bytes; bounded only */
};

struct engine {
	const struct bench_setup *setup;
	struct bench_lun luns[BENCH_LUNS_MAX];
	uint64_t timeout_ns;
	uint32_t run; /* of the ISIDs */
	struct thread *threads;
	unsigned thread_count;
	struct session *sessions; /* portal by portal */
	unsigned session_count, sessions_each;
	bool tapped; /* the sessions are: their job is verified */
	struct job job;
	unsigned jobs;           /* until now, this one included */
	sem_t wake;              /* something happened that the caller waits for */
	atomic_bool interrupted; /* by the user */
	atomic_bool violated;    /* verify found something */
	bool local, link_known;
	uint64_t link_bytes_s;
	uint32_t transfer_max; /* bytes of a command */
	uint64_t filled[BENCH_LUNS_MAX];
	enum bench_data filled_with;
};

/* FAULT gets the text; gives RC. */
int engine_say(struct bench_fault *fault, int rc, const char *format, ...) PRINTF_LIKE(3, 4);

/* engine.c: until something happens, or UNTIL_NS. */
void engine_wait(struct engine *engine, uint64_t until_ns);

/* connect.c: EACH sessions on each portal, on THREADS threads or fewer. */
int engine_connect(struct engine *engine, unsigned each, unsigned threads,
		   const struct engine_hooks *hooks, struct bench_fault *fault);
void engine_disconnect(struct engine *engine);

/* Room in a thread's heap for its own, failures and sessions; lanes come on top. */
#define THREAD_DUES (16u + BENCH_SESSIONS_MAX)

/* thread.c: made first, so that they have sessions before they run. */
int threads_make(struct engine *engine, unsigned count, struct bench_fault *fault);
int threads_start(struct engine *engine, struct bench_fault *fault);
void threads_stop(struct engine *engine);
/* FN runs in every thread that runs, at once; all are done when this returns. */
void threads_call(struct engine *engine, void (*fn)(struct thread *, void *), void *arg);

/* session.c: in the session's thread. */
void session_init(struct session *session, struct thread *thread, unsigned portal, unsigned index);
void session_open(struct session *session);
void session_leave(struct session *session);
void sessions_look_for_timeouts(struct thread *thread, uint64_t now_ns);
/* All sessions of PORTAL go down, and do not come back until they are let. */
void sessions_hold(struct thread *thread, unsigned portal);
void sessions_let(struct thread *thread, unsigned portal);

/* lane.c: in the thread. */
#define LANES_BUFFERS_MAX GIB
/* Of all threads: workers; bytes that their buffers need. */
unsigned lanes_workers(const struct engine *engine);
uint64_t lanes_buffers(const struct engine *engine);
/* Of the engine's job. 0 or -ENOMEM, which lanes_free() tidies up. */
int lanes_new(struct thread *thread);
void lanes_free(struct thread *thread);
/* Paths of SESSION are up or down. */
void lanes_set_up(struct session *session, bool up, uint64_t now_ns);

/* worker.c: in the thread. */
void worker_init(struct worker *worker);
/* FIRST: workers begin one after the other, as the point's ramp says. */
void workers_start(struct thread *thread, uint64_t now_ns, bool first);
/* No command begins; `idle` as soon as all are answered. */
void workers_quiet(struct thread *thread);
/* Verify found something: the run ends. */
void workers_violated(struct thread *thread);
void workers_look_for_timeouts(struct thread *thread, uint64_t now_ns);
/* Commands without a path try again. */
void workers_resume(struct thread *thread, uint64_t now_ns);
/* WHERE may be NULL. */
void thread_error(struct thread *thread, const char *kind, const struct command *where);

/* tally.c */
void tally_reset(struct thread *thread, uint64_t from_ns, uint64_t to_ns);
void tally_flight(struct thread *thread, uint64_t now_ns);
void tally_good(struct command *command, uint64_t now_ns);
/* Commands of an open loop that are due from its start to TO_NS. */
uint64_t tally_planned(const struct worker *worker, uint64_t to_ns);
/* -ENOMEM leaves what there is in RESULT, to be freed. */
int tally_begin(struct engine *engine, uint64_t from_ns, struct bench_result **result);
/* An interval ends: all threads' parts become one of the series, if there is a RESULT. */
int tally_interval(struct engine *engine, struct bench_result *result, uint64_t now_ns,
		   struct engine_progress *progress);
/* All threads are idle. */
void tally_end(struct engine *engine, struct bench_result *result, uint64_t to_ns);

/* control.c: a session of the caller's own, for questions. */
int control_look(struct engine *engine, struct bench_fault *fault);
int control_mapped(struct engine *engine, const uint64_t *range_bytes, struct bench_fault *fault);
int control_read(struct engine *engine, unsigned lun, uint64_t offset, void *buf, size_t length,
		 struct bench_fault *fault);

#endif
