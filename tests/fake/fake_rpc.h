/* SPDX-License-Identifier: MIT */
/*
 * A yoked for yokectl's tests: a thread on a unix socket that says what it was told to say.
 */
#ifndef TESTS_FAKE_RPC_H
#define TESTS_FAKE_RPC_H

enum fake_rpc_mood {
	FAKE_RPC_RESULTS, /* answers[0], answers[1], ...; the last one again and again */
	FAKE_RPC_ERROR,   /* answers[0] is the message */
	FAKE_RPC_RAW,     /* answers[0] as it is, then the end */
	FAKE_RPC_CLOSE,   /* closes after the request */
	FAKE_RPC_SILENT,  /* reads and says nothing */
	FAKE_RPC_DRIBBLE, /* a stray answer first, then answers[0] byte by byte */
};

struct fake_rpc;

/* ANSWERS end in NULL and outlive it. Asserts that PATH can be bound. */
struct fake_rpc *fake_rpc_start(const char *path, enum fake_rpc_mood mood,
				const char *const *answers);
/* The requests it got, one a line; the caller's. Removes the socket. */
char *fake_rpc_stop(struct fake_rpc *fake);

#endif
