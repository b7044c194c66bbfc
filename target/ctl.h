/* SPDX-License-Identifier: MIT */
/*
 * The control socket: newline-delimited JSON-RPC 2.0 for whoever may open it.
 *
 * One request a line, at most CTL_LINE_MAX bytes; answers in the order in which
 * they are ready, each with its request's id.
 */
#ifndef TARGET_CTL_H
#define TARGET_CTL_H

#include <stddef.h>

#include "core/ctl.h"
#include "core/loop.h"

#define CTL_LINE_MAX (1024 * 1024)
#define CTL_CLIENTS_MAX 64
#define CTL_IN_FLIGHT_MAX 64 /* requests of one client; more are not read until one is answered */
#define CTL_UNSENT_MAX                                                                             \
	(1024 * 1024)    /* bytes unsent from which on no more of its requests are read */
#define CTL_STALL_S 30.0 /* a client that takes nothing for so long is dropped */

struct ctl_server;

/*
 * Listens on PATH (mode 0600; its directory is made with mode 0700 if it is not
 * there). A socket that nobody answers on is replaced; one that somebody does
 * answer on is left alone. NULL, and in CAUSE object, cause and remedy.
 */
struct ctl_server *ctl_server_new(struct loop *loop, struct ctl *ctl, const char *path, char *cause,
				  size_t cause_size);
/*
 * Stops listening, drops the clients and removes the socket. Requests under way
 * are still to be answered by whoever holds them; their answers go nowhere.
 */
void ctl_server_free(struct ctl_server *server);

/* Clients connected now. */
unsigned ctl_server_clients(const struct ctl_server *server);

#endif
