/* SPDX-License-Identifier: MIT */
/*
 * A file of secrets: lines of `user NAME`, `secret SECRET`, `mutual_user NAME`,
 * `mutual_secret SECRET`; # begins a comment line.
 *
 * Invariants:
 * 1. No message has anything of a secret in it.
 * 2. A file that others may read is refused: a secret they know is none.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/options.h"

struct key {
	const char *name;
	size_t offset;
};

static const struct key keys[] = {
	{ "user", offsetof(struct bench_chap, user) },
	{ "secret", offsetof(struct bench_chap, secret) },
	{ "mutual_user", offsetof(struct bench_chap, mutual_user) },
	{ "mutual_secret", offsetof(struct bench_chap, mutual_secret) },
};
#define VALUE_MAX 255 /* of each, and their arrays are one longer */

static_assert(sizeof(((struct bench_chap *)NULL)->secret) == VALUE_MAX + 1, "room for each value");

static const char *take_line(char *line, struct bench_chap *chap)
{
	size_t word = strcspn(line, " \t");
	char *value = line + word + strspn(line + word, " \t");

	for (unsigned i = 0; i < ARRAY_LEN(keys); i++) {
		char *to = (char *)chap + keys[i].offset;

		if (strlen(keys[i].name) != word || strncmp(line, keys[i].name, word) != 0)
			continue;
		if (*to)
			return "a second time. Leave one";
		if (!*value || strlen(value) > VALUE_MAX)
			return "no value of up to 255 bytes behind it. Write one";
		memcpy(to, value, strlen(value) + 1);
		return NULL;
	}
	return "not understood. Write user NAME, secret SECRET, mutual_user NAME or mutual_secret "
	       "SECRET";
}

static int read_lines(FILE *f, const char *path, struct bench_chap *chap, struct bench_fault *fault)
{
	const char *missing = NULL;
	char line[1024];

	for (unsigned number = 1; fgets(line, sizeof(line), f); number++) {
		const char *wrong = NULL;

		if (!strchr(line, '\n') && !feof(f))
			wrong = "too long. Shorten it";
		line[strcspn(line, "\r\n")] = '\0';
		if (!wrong && *line && *line != '#')
			wrong = take_line(line, chap);
		if (wrong) {
			snprintf(fault->text, sizeof(fault->text), "%.128s:%u: %s", path, number,
				 wrong);
			return -EINVAL;
		}
	}
	explicit_bzero(line, sizeof(line));
	if (!*chap->secret)
		missing = "secret SECRET";
	else if (*chap->mutual_user && !*chap->mutual_secret)
		missing = "mutual_secret SECRET";
	else if (*chap->mutual_secret && !*chap->mutual_user)
		missing = "mutual_user NAME";
	if (missing) {
		snprintf(fault->text, sizeof(fault->text), "%.128s: a line is missing. Add %s",
			 path, missing);
		return -EINVAL;
	}
	return 0;
}

int chap_read(const char *path, struct bench_chap *chap, struct bench_fault *fault)
{
	/* A pipe is refused, and not waited for before that. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	struct stat st;
	int err = -EINVAL;

	memset(chap, 0, sizeof(*chap));
	if (!f || fstat(fileno(f), &st)) {
		snprintf(fault->text, sizeof(fault->text),
			 "%.128s: cannot be read: %s. Write user NAME and secret SECRET to it",
			 path, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		snprintf(fault->text, sizeof(fault->text), "%.128s: not a regular file", path);
	} else if (st.st_mode & 077) {
		snprintf(fault->text, sizeof(fault->text),
			 "%.128s: others may read it. chmod 600 %.128s", path, path);
	} else {
		err = read_lines(f, path, chap, fault);
	}
	if (f)
		fclose(f);
	return err;
}
