/* SPDX-License-Identifier: MIT */
/*
 * Looks at the bytes between libiscsi and its target.
 *
 *   libiscsi ── fd ═══ socket pair ═══ near ── tap ── real ── target
 *
 * The descriptor that libiscsi has becomes one end of a socket pair; everything is passed on,
 * and shown to answers.c on its way. It costs a copy each way: only for --verify.
 */
#ifndef BENCH_TAP_H
#define BENCH_TAP_H

#include <ev.h>
#include <stdbool.h>

#include "core/base.h"

struct tap;

/* Once; TEXT is for people. */
typedef void tap_wrong_fn(void *arg, const char *text);

/*
 * Between two PDUs, with no watcher active on FD. NULL: no memory or no descriptors, and FD is
 * what it was.
 */
struct tap *tap_open(struct ev_loop *ev, int fd, bool header_digest, tap_wrong_fn *wrong,
		     void *arg);
/* Closes the connection to the target; FD is its owner's to close. NULL-safe. */
void tap_close(struct tap *tap);

#endif
