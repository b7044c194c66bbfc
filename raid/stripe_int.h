/* SPDX-License-Identifier: MIT */
/*
 * The stripe engine: what stripe.c, round.c, plan.c and survey.c share.
 *
 * An io becomes parts, one a stripe. A stripe has one round at a time: a write round takes what
 * has been gathered, a read round reconstructs, an equalise round makes members agree. What
 * comes meanwhile waits for the next round.
 */
#ifndef RAID_STRIPE_INT_H
#define RAID_STRIPE_INT_H

#include "core/buf.h"
#include "core/pool.h"
#include "raid/parity.h"
#include "raid/raid5_int.h"

struct stripe;

/* A host io in the engine. */
struct op {
	STAILQ_ENTRY(op) link;
	struct io *io;
	uint64_t at, end; /* of the array: what has not been made parts of */
	unsigned pending; /* parts */
	int error;
	int stream; /* of the stream that it goes on; -1: none */
};

/* What an op is to one stripe: bytes [FROM, TO) of the stripe's data. */
struct part {
	TAILQ_ENTRY(part) link;
	struct op *op;
	uint64_t from, to;
	uint64_t at; /* where its data begins, in those of the io */
};
TAILQ_HEAD(part_list, part);

/* Bytes [FROM, TO) of a chunk; empty when they are equal. */
struct span {
	uint32_t from, to;
};

static inline uint32_t span_bytes(struct span span)
{
	return span.to - span.from;
}

/* Elements of the stripe's iov table. */
struct pieces {
	struct iovec *iov;
	unsigned count;
};

/* What a round has to do with one role. */
struct lane {
	struct stripe *stripe;
	struct member *member; /* whom the io was sent to; held until it is back */
	io_fn *done;
	unsigned role;
	struct span data;      /* the new data */
	struct span old;       /* what is read */
	struct pieces data_in; /* where they are */
	struct pieces old_in;
	struct io io;
};

enum round_kind { ROUND_NONE, ROUND_WRITE, ROUND_READ, ROUND_EQUALISE };

/* How a write round comes by its parity. */
enum round_plan {
	PLAN_DATA_ONLY,   /* the parity's member is missing */
	PLAN_RECONSTRUCT, /* from all data: reads what is not written; a full stripe: nothing */
	PLAN_MODIFY,      /* from old parity and old data of what is written */
	PLAN_EVERYTHING,  /* reads all, as a lost column is written in part */
};

struct round {
	enum round_kind kind;
	enum round_plan plan;
	struct part_list parts; /* by `from` */
	struct span hull;       /* all that is touched in any column */
	uint64_t bytes;
	unsigned elements; /* of the parts' iovs, at most */
	unsigned flags;
	enum io_purpose purpose;
	uint32_t unreadable; /* bit I: a read from role I failed */
	unsigned lost;       /* EVERYTHING: the role that is computed */
	bool again;          /* a read failed */
	bool sent;           /* data is in its place, perhaps in part */
	int error;
	unsigned pending;
	bool has_memory, logged;
	struct buf_list memory; /* parity, then what is read */
	uint64_t memory_wanted;
	struct pieces parity;
	unsigned iov_used;
	struct region_hold region, sync;
	struct settle_wait settle;
	void (*settled)(struct stripe *stripe);
	struct redo *log;
	struct member *log_member; /* whose log that is; held while it has something of the round */
	struct redo_entry entry;

	bool aside; /* a survey that the stripe's parts wait for */

	/* Of a survey: the piece under way. */
	struct span piece;
	uint32_t step;
};

struct job; /* of equalise */

/* Whether the stripe's members were made to agree since it is active: then parity is believed. */
enum agreement { AGREEMENT_UNKNOWN, AGREEMENT_REACHED, AGREEMENT_FAILED };

struct stripe {
	LIST_ENTRY(stripe) hash;
	TAILQ_ENTRY(stripe) link; /* gathering, or waiting for memory */
	struct stripes *all;
	uint64_t number;
	unsigned parity_role;
	bool gathering, waits_memory;
	int stream;
	uint64_t hold_until;
	struct part_list waiting;
	struct job *job; /* to be equalised */
	enum agreement agreement;
	struct round round;
	struct lane *lanes; /* by role, and one for what is computed */
	struct iovec *iov;  /* STRIPE_IOV */
};
TAILQ_HEAD(stripe_list, stripe);

struct job {
	struct stripes *all;
	bool busy;
	int error;
};

#define STRIPES 256u
#define STRIPE_JOBS 4u
#define STRIPE_STREAMS 8u
#define STRIPE_BUCKETS 512u

struct stream {
	uint64_t next; /* of the array: where it goes on */
	uint64_t run;  /* bytes so far */
	unsigned credit;
	uint64_t used; /* order of use */
};

struct stripes {
	struct raid5 *raid5;
	struct array *array;
	struct pool ops, parts, free;
	struct lane *lane_memory;
	struct iovec *iov_memory;
	LIST_HEAD(, stripe) buckets[STRIPE_BUCKETS];
	struct io_list waiting;       /* for room, in the order of coming */
	STAILQ_HEAD(, op) more;       /* ops whose next window waits for room */
	struct stripe_list gathering; /* stripes that have not started */
	struct stripe_list memory_wait, flush_wait;
	struct env_defer start, admit, memory_free;
	struct env_timer held;
	struct buf_pool *buffers;
	struct env_timer touch; /* memory for them, turn by turn */
	struct stream streams[STRIPE_STREAMS];
	uint64_t stream_clock;

	struct {
		uint64_t offset, end; /* members' data area */
		unsigned busy;
		int error;
		bool active;
		void (*done)(struct array *array, int error);
		struct env_defer tell;
	} equalise;
	struct job jobs[STRIPE_JOBS];

	/* Stripes that only the log can make whole, at the next start (loss.c). */
	uint64_t broken[STRIPES];
	unsigned broken_count;

	/* Flushes have numbers, so that the logs know which covers what. */
	uint64_t flush_begun, flush_good;
	bool flush_asked;
	uint64_t flush_number;
	struct flush_wait flush;
	struct settle_wait flush_settle;
	struct raid5_counts counts;
};

/* ---- stripe.c */

/* Callbacks and lists of a fresh engine. */
void stripes_hook(struct stripes *stripes);

/* WRITE, WRITE_ZEROES; READ inside one chunk, by reconstruction or healing. */
void stripes_submit(struct stripes *stripes, struct io *io);
void stripes_equalise(struct stripes *stripes, uint64_t offset, uint64_t length,
		      void (*done)(struct array *array, int error));

/* The round is over: answer its parts, which may have an error of their own. */
void stripe_round_end(struct stripe *stripe, int error);
/* PART failed, whatever becomes of the others. */
void stripe_part_failed(struct part *part, int error);
/* The round has begun nothing: its parts wait for a survey of the stripe, then for another round. */
void stripe_agree_first(struct stripe *stripe);

/* ---- stripe_memory.c */

/* NULL: no memory. */
struct stripes *stripes_new(struct raid5 *raid5);
void stripes_free(struct stripes *stripes);

/* For flushes of all members that others make: number it, and say that it succeeded. */
uint64_t stripes_flush_begins(struct stripes *stripes);
void stripes_flush_ended(struct stripes *stripes, uint64_t number);
/* STRIPE's round goes on by round_log() after the next good flush. */
void stripe_wait_flush(struct stripe *stripe);
/* For the logs, as redo_conf says. */
void stripes_flush(struct stripes *stripes);

/* Memory for the round; false: round_resume() or survey_resume() will have it. */
bool stripe_take_memory(struct stripe *stripe, uint64_t bytes);
void stripe_give_memory(struct stripe *stripe);

/* Elements for LENGTH bytes at OFFSET of the round's memory. */
struct pieces stripe_memory_pieces(struct stripe *stripe, uint64_t offset, uint64_t length);
/* For LANE's new data, of all parts that have some. */
struct pieces stripe_data_pieces(struct stripe *stripe, const struct lane *lane);
/* How far things in the round's memory must lie apart. */
uint64_t stripe_align(const struct stripe *stripe, uint64_t bytes);
/* Bytes [SKIP, SKIP + LENGTH) of PIECES into OUT: how many elements, 0: more than ROOM. */
unsigned pieces_slice(const struct pieces *pieces, uint64_t skip, uint64_t length,
		      struct iovec *out, unsigned room);
void lane_send(struct lane *lane, enum io_op op, enum io_purpose purpose, unsigned flags,
	       struct span span, struct pieces pieces, io_fn *done);

/* ---- round.c */
void round_start(struct stripe *stripe);
/* Memory has been had. */
void round_resume(struct stripe *stripe);
/* What it waited for in stripe_wait_flush() may be; or it fails. */
void round_log(struct stripe *stripe);
void round_fail(struct stripe *stripe, int error);

/* ---- plan.c */

/*
 * Whether only parity could tell what the round needs to read, and may be wrong: data cannot be
 * read in a doubtful region of a whole array. Members have to agree on the stripe first.
 */
bool plan_needs_agreement(const struct stripe *stripe);
/* The round's plan, its `lost`, and each lane's `old`. False: it cannot be done. */
bool plan_choose(struct stripe *stripe);
/* Whether somebody who is to be read, or parity's member, has gone while the round waited. */
bool plan_outdated(const struct stripe *stripe);

/* ---- loss.c */

/*
 * What STRIPE's round logged may not be in its place, and the array cannot do without who failed:
 * from now on nothing of the stripe is read, and nothing is written, until the log is replayed.
 */
void loss_break(struct stripe *stripe);
static inline bool loss_broken(const struct stripes *stripes)
{
	return stripes->broken_count > 0;
}
/* Whether stripe NUMBER is one of those. */
bool loss_broken_stripe(const struct stripes *stripes, uint64_t number);

/* Whether the round writes what was lost: it is held then before it is answered. */
bool loss_touched(const struct stripe *stripe);
/* It is held: the next label says that it is known. -EIO: no label can, all of it stays lost. */
int loss_regain(struct stripe *stripe);

/* ---- survey.c */
void survey_start(struct stripe *stripe);
void survey_resume(struct stripe *stripe);

#endif
