/* SPDX-License-Identifier: MIT */
/*
 * Profiles: what people run, as a file each, `profile "NAME" { from = "..." tells = "..." ... }`.
 */
#ifndef BENCH_PROFILE_H
#define BENCH_PROFILE_H

#include <stdio.h>

#include "bench/matrix.h"
#include "core/conf.h"

struct profile {
	char name[BENCH_NAME_MAX];
	char from[128];
	char tells[128];
	struct matrix matrix;
};

/* TEXT may hold anything. 0, or -errno and ERROR: `file:line: cause`. */
int profile_parse(const char *file, const char *text, size_t len_bytes, struct profile *profile,
		  struct conf_error *error);

/*
 * NAME is a file if it has a / or ends in .conf; else NAME.conf is looked for in
 * $XDG_CONFIG_HOME/yoke/profiles (~/.config), /etc/yoke/profiles and where the program's own are.
 */
int profile_load(const char *name, struct profile *profile, struct conf_error *error);

/* A line each: name, what it tells, where it is from, of all that a name would find. */
void profile_list(FILE *out);

#endif
