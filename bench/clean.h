/* SPDX-License-Identifier: MIT */
/* Texts that others wrote: names and addresses from a target, what libiscsi makes of its answers. */
#ifndef BENCH_CLEAN_H
#define BENCH_CLEAN_H

#include <stdio.h>

/* What is no printable UTF-8 becomes a `?`, byte by byte: a terminal obeys none of it. */
void clean_text(char *text);
/* The same, printed. */
void clean_put(FILE *out, const char *text);

#endif
