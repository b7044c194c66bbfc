/* SPDX-License-Identifier: MIT */
/* A connection to yoked's control socket: one call at a time. */
#ifndef CORE_RPC_H
#define CORE_RPC_H

#include <jansson.h>
#include <stdint.h>

#include "core/base.h"

struct rpc;

/* What went wrong, for people: object, cause and remedy. */
struct rpc_error {
	char text[1200];
};

/* NULL and ERROR if nobody answers on PATH. */
struct rpc *rpc_open(const char *path, struct rpc_error *error);
void rpc_close(struct rpc *rpc);

/*
 * Calls METHOD; PARAMS (an object, or NULL) stays the caller's. 0 and *RESULT
 * (the caller's); -EREMOTEIO: yoked refused or failed; -ETIMEDOUT, -EPIPE,
 * -EPROTO: it cannot be reached (any more).
 */
int rpc_call(struct rpc *rpc, const char *method, json_t *params, uint64_t timeout_ns,
	     json_t **result, struct rpc_error *error);

#endif
