/* SPDX-License-Identifier: MIT */
/* What a LUN carries, looked at before anything is written to it. */
#ifndef BENCH_GUARD_H
#define BENCH_GUARD_H

#include "bench/engine.h"

/* Reads blocks of a LUN, as engine_read() does. */
typedef int guard_read_fn(void *arg, unsigned lun, uint64_t offset, void *buf, size_t length,
			  struct bench_fault *fault);

struct guard {
	const struct bench_lun *luns; /* [lun_count] */
	unsigned lun_count;
	guard_read_fn *read;
	void *arg;
};

/*
 * Names what the LUN of this index carries ("ext4 filesystem, gpt partition table"), "" if
 * nothing that anyone would know again. 0, or -errno and FAULT.
 */
int guard_look(const struct guard *guard, unsigned lun, char *carries, size_t size,
	       struct bench_fault *fault);

/* -EEXIST and FAULT if a LUN of TARGET carries something. */
int guard_check(const struct guard *guard, const char *target, struct bench_fault *fault);

#endif
