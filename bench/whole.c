/* SPDX-License-Identifier: MIT */
/*
 * Writing a file whole or not at all.
 *
 * Invariants:
 *  1. Whatever fails, what was at the name stays, and nothing is left beside it.
 *
 * Not here: what stands in it (json.c, report.c).
 */
#include "bench/whole.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int refuse(struct bench_fault *fault, const char *file, int err)
{
	snprintf(fault->text, sizeof(fault->text), "%.200s: %s. Name a file that can be written",
		 file, strerror(-err));
	return err;
}

int whole_write(const char *file, int (*fill)(FILE *f, const void *arg), const void *arg,
		struct bench_fault *fault)
{
	char *beside;
	FILE *f;
	int err;

	if (asprintf(&beside, "%s.part", file) < 0)
		return refuse(fault, file, -ENOMEM);
	f = fopen(beside, "we");
	if (!f) {
		err = -errno;
		free(beside);
		return refuse(fault, file, err);
	}
	err = fill(f, arg);
	if (!err && ferror(f))
		err = -EIO;
	if (fclose(f) && !err)
		err = -errno;
	if (!err && rename(beside, file))
		err = -errno;
	if (err)
		unlink(beside);
	free(beside);
	return err ? refuse(fault, file, err) : 0;
}
