/* SPDX-License-Identifier: MIT */
/* Texts that others wrote: names from a target, labels of file systems, names of processes. */
#ifndef CORE_CLEAN_H
#define CORE_CLEAN_H

#include <jansson.h>
#include <stdio.h>

/* What is no printable UTF-8 becomes a `?`, byte by byte: a terminal obeys none of it. */
void clean_text(char *text);
/* The same, printed. */
void clean_put(FILE *out, const char *text);
/* TEXT as a JSON string; only what is no UTF-8 becomes a `?`. NULL: no memory. */
json_t *clean_json(const char *text);

#endif
