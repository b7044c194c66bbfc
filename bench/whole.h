/* SPDX-License-Identifier: MIT */
/* Files that are there are whole: they are written beside their place and moved there. What is no
 * file (a device, a pipe, a link) is written through. */
#ifndef BENCH_WHOLE_H
#define BENCH_WHOLE_H

#include <stdio.h>

#include "bench/engine.h"

/* Makes FILE of what FILL writes; it returns 0 or -errno. 0, or -errno and FAULT. */
int whole_write(const char *file, int (*fill)(FILE *f, const void *arg), const void *arg,
		struct bench_fault *fault);

#endif
