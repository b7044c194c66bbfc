/* SPDX-License-Identifier: MIT */
/*
 * Writing a file whole or not at all.
 *
 * Invariants:
 *  1. Whatever fails, what was at the name stays, and nothing is left beside it.
 *  2. Only a file is replaced. A device, a pipe or a link is written through: for root, putting
 *     a file in the place of /dev/null is no problem at all.
 *
 * Not here: what stands in it (json.c, report.c).
 */
#include "bench/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(struct bench_fault *fault, const char *file, int err)
{
	snprintf(fault->text, sizeof(fault->text), "%.200s: %s. Name a file that can be written",
		 file, strerror(-err));
	return err;
}

/* What is at FILE, or what it is to be. */
static bool is_replaced(const char *file)
{
	struct stat st;

	return lstat(file, &st) || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

/* Nobody else's: what is there already may be a pipe that nobody reads. */
static FILE *open_new(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd >= 0 && !f) {
		close(fd);
		unlink(name);
	}
	return f;
}

/* What FILL puts into F, which is then closed. */
static int write_to(FILE *f, int (*fill)(FILE *f, const void *arg), const void *arg)
{
	int err = f ? fill(f, arg) : -errno;

	if (f && !err && ferror(f))
		err = -EIO;
	if (f && fclose(f) && !err)
		err = -errno;
	return err;
}

static int replace(const char *file, int (*fill)(FILE *f, const void *arg), const void *arg)
{
	char *beside;
	FILE *f;
	int err;

	if (asprintf(&beside, "%s.%d.part", file, (int)getpid()) < 0)
		return -ENOMEM;
	f = open_new(beside);
	err = write_to(f, fill, arg);
	if (!err && rename(beside, file))
		err = -errno;
	if (f && err)
		unlink(beside);
	free(beside);
	return err;
}

int whole_write(const char *file, int (*fill)(FILE *f, const void *arg), const void *arg,
		struct bench_fault *fault)
{
	int err = is_replaced(file) ? replace(file, fill, arg) :
				      write_to(fopen(file, "we"), fill, arg);

	return err ? refuse(fault, file, err) : 0;
}
