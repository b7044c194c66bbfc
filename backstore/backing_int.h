/* SPDX-License-Identifier: MIT */
/*
 * The leaves as backing.c opens them, and what their tests need.
 *
 * SPEC has passed backing.c's checks; each copies what it keeps.
 */
#ifndef BACKSTORE_BACKING_INT_H
#define BACKSTORE_BACKING_INT_H

#include "backstore/backing.h"

/* NULL with errno set. One reference is the caller's. */
struct blk *ram_new(struct env *env, const struct backing_spec *spec);
struct blk *null_new(struct env *env, const struct backing_spec *spec);

/* Above this a copy or a clearing would hold up the loop: env_work does it. */
#define RAM_INLINE_MAX (4 * MIB)

#endif
