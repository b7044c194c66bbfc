/* SPDX-License-Identifier: MIT */
/*
 * Whether a target answers what it was asked, and once: follows the PDUs of a session.
 *
 * libiscsi throws away what answers nothing, a second GOOD for instance; whoever wants to know
 * must look at the bytes. Login is over when following begins, and both directions are at the
 * border of a PDU.
 */
#ifndef BENCH_ANSWERS_H
#define BENCH_ANSWERS_H

#include <stdbool.h>

#include "core/base.h"

#define ANSWERS_SLOTS 16384u /* commands of a session that may be under way */
#define ANSWERS_BHS 48u

enum answers_digest { DIGEST_NO, DIGEST_MAYBE, DIGEST_YES };

/* One direction. */
struct answers_stream {
	uint8_t head[ANSWERS_BHS + 4];
	unsigned got;  /* of the head */
	uint64_t skip; /* bytes of the PDU after it that are still to come */
	enum answers_digest digest;
};

struct answers {
	struct answers_stream in, out;
	struct {
		uint32_t itt;
		enum { SLOT_FREE, SLOT_ASKED, SLOT_ANSWERED } state;
	} slots[ANSWERS_SLOTS]; /* by the low bits of the tag */
	uint32_t statsn;        /* that comes next */
	bool statsn_known;
	bool crowded;    /* more commands than slots: their answers are no longer judged */
	char wrong[160]; /* the first thing that is */
};

/* HEADER_DIGEST: it was offered; whether it was agreed on shows in the first PDU. */
void answers_init(struct answers *answers, bool header_digest);

/* Bytes to the target, and from it. */
void answers_out(struct answers *answers, const void *bytes, size_t length);
/* False: something is wrong, see `wrong`. */
bool answers_in(struct answers *answers, const void *bytes, size_t length);

#endif
