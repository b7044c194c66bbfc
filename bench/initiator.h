/* SPDX-License-Identifier: MIT */
/*
 * One iSCSI session to one portal, on a libev loop: it logs in, uses up unit attentions, carries
 * commands, and says when it is up or lost. It does not log in again by itself.
 *
 *   DOWN ──initiator_open()──▶ CONNECTING ──▶ LOGIN ──▶ READYING ──up()──▶ UP
 *     ▲                            │            │           │              │
 *     └───────────── down() ◀──────┴────────────┴───────────┴──────────────┘
 *
 * Times are nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef BENCH_INITIATOR_H
#define BENCH_INITIATOR_H

#include <bsd/sys/queue.h>
#include <ev.h>
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <stdbool.h>

#include "bench/engine.h"
#include "bench/tap.h"

enum initiator_outcome {
	INITIATOR_GOOD,
	INITIATOR_BUSY,      /* BUSY, TASK SET FULL: to be sent again later */
	INITIATOR_TRANSIT,   /* not ready yet, in transition: the same, if it may happen twice */
	INITIATOR_ATTENTION, /* a unit attention took its place: to be sent again */
	INITIATOR_FAILED,    /* any other answer; initiator_error() says which */
	INITIATOR_LOST,      /* no answer, and there will be none */
};

/* Whether what does not write is to be sent again. */
static inline bool initiator_again(enum initiator_outcome outcome)
{
	return outcome == INITIATOR_BUSY || outcome == INITIATOR_TRANSIT ||
	       outcome == INITIATOR_ATTENTION;
}

struct initiator;

/*
 * A command: memory of its owner's, reused at will, untouched between initiator_submit() and
 * done(). Data goes straight from and to `iov`.
 */
struct initiator_cmd {
	/* Set by the owner before initiator_submit(). */
	void (*done)(struct initiator_cmd *cmd, enum initiator_outcome outcome);
	/* Set here. */
	struct initiator *initiator; /* that has it; NULL: none */
	uint64_t sent_ns;            /* when it was handed to the socket; 0: not yet */
	bool exact;                  /* fewer data than asked for are a failure */
	TAILQ_ENTRY(initiator_cmd) link;
	struct scsi_task task;
	struct scsi_iovec iov;
};
TAILQ_HEAD(initiator_cmds, initiator_cmd);

struct initiator_conf {
	const char *portal; /* "127.0.0.1:3260", "[::1]:3260" */
	const char *target;
	const char *name;
	const struct bench_chap *chap; /* user "": none */
	bool header_digest;
	bool tapped;          /* look at what libiscsi does not tell: tap.h */
	const unsigned *luns; /* [lun_count], made ready before it is up */
	unsigned lun_count;
	uint32_t run;       /* of the ISID: the same for all sessions of a process */
	uint16_t qualifier; /* of the ISID: another one for each session */
};

struct initiator_ops {
	void (*up)(struct initiator *initiator);
	/* REASON is for people. Its commands are given back, LOST, right after. */
	void (*down)(struct initiator *initiator, const char *reason);
	/* What the target sent answers nothing, or again; only if conf.tapped. */
	void (*wrong)(struct initiator *initiator, const char *text);
	/* COUNT commands were handed to the socket. May be NULL. */
	void (*sent)(struct initiator *initiator, unsigned count, uint64_t now_ns);
};

/* What initiators of one loop share: who has something to send when the turn ends. */
struct initiator_loop {
	struct ev_loop *ev;
	struct ev_prepare prepare;
	SLIST_HEAD(, initiator) dirty;
};

enum initiator_state {
	INITIATOR_DOWN,
	INITIATOR_CONNECTING,
	INITIATOR_LOGIN,
	INITIATOR_READYING,
	INITIATOR_UP,
	INITIATOR_LEAVING
};

struct initiator {
	struct initiator_loop *loop;
	struct initiator_conf conf;
	const struct initiator_ops *ops;
	enum initiator_state state;
	uint64_t stalls; /* commands that had to wait for room in the command window */

	struct iscsi_context *iscsi;
	struct tap *tap;
	struct ev_io io;
	int events;                 /* that io waits for */
	bool broken;                /* seen in a callback of libiscsi, acted on after it */
	bool dirty;                 /* on loop->dirty */
	bool in_service;            /* libiscsi is on the stack */
	unsigned fresh;             /* commands queued since the last flush */
	bool redirected;            /* the login said where to go instead */
	unsigned redirects;         /* in this attempt */
	char portal[256];           /* where it really is, after a redirection */
	struct initiator_cmds cmds; /* under way, oldest first; those after `unsent` not sent yet */
	struct initiator_cmd *unsent;
	struct initiator_cmd ready; /* TEST UNIT READY while READYING */
	unsigned ready_lun, ready_tries;
	char error[160];
	SLIST_ENTRY(initiator) dirty_link;
};

void initiator_loop_init(struct initiator_loop *loop, struct ev_loop *ev);
void initiator_loop_fini(struct initiator_loop *loop);

/* What CONF points to stays. */
void initiator_init(struct initiator *initiator, struct initiator_loop *loop,
		    const struct initiator_conf *conf, const struct initiator_ops *ops);
void initiator_open(struct initiator *initiator);
/* At once, with no word to the target; down() says so. Not from done(): see initiator_break(). */
void initiator_close(struct initiator *initiator, const char *reason);
/* As soon as no command is being answered. */
void initiator_break(struct initiator *initiator, const char *reason);
/* Logs out; down() follows. No command is under way. */
void initiator_leave(struct initiator *initiator);
/* Nothing is called any more. */
void initiator_fini(struct initiator *initiator);

/* Reads or writes LENGTH bytes of BUF. False: it is not up. */
bool initiator_rw(struct initiator *initiator, struct initiator_cmd *cmd, unsigned lun, bool write,
		  uint64_t lba, uint32_t block_bytes, void *buf, uint32_t length);
/* Any command; LENGTH bytes come into BUF (0: none). */
bool initiator_cdb(struct initiator *initiator, struct initiator_cmd *cmd, unsigned lun,
		   const uint8_t *cdb, unsigned cdb_bytes, void *buf, uint32_t length);

/* Of the last answer that was not GOOD. */
const char *initiator_error(const struct initiator *initiator);
/* "800012340001". */
void initiator_isid(const struct initiator *initiator, char text[16]);

uint64_t initiator_now(void);

#endif
