/* SPDX-License-Identifier: MIT */
/*
 * Feeds a committed corpus to one fuzz target, for builds without libFuzzer.
 *
 * Usage: fuzz_X FILE|DIRECTORY...
 *
 * Invariants:
 * 1. Each input lies in its own allocation of exactly its size, so that ASan sees the first byte
 *    read past it.
 * 2. An input that cannot be read, and a corpus without inputs, fail: a replay that replays
 *    nothing must not look like one that found nothing.
 *
 * Not here: finding new inputs (`make fuzz`).
 */
#include <errno.h>
#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path, size_t len_bytes)
{
	uint8_t *data = malloc(len_bytes ? len_bytes : 1);
	FILE *f = fopen(path, "rb");
	int err = -1;

	if (data && f && fread(data, 1, len_bytes, f) == len_bytes) {
		/* Named first: the line above a sanitizer's report is the input that caused it. */
		fprintf(stderr, "%s\n", path);
		LLVMFuzzerTestOneInput(data, len_bytes);
		err = 0;
	} else {
		fprintf(stderr, "%s: cannot read: %s\n", path, strerror(errno));
	}
	if (f)
		fclose(f);
	free(data);
	return err;
}

int main(int argc, char **argv)
{
	unsigned int count = 0, unread = 0;
	FTSENT *e;
	FTS *fts;

	if (argc < 2) {
		fprintf(stderr, "usage: %s FILE|DIRECTORY...\n", argv[0]);
		return 2;
	}
	fts = fts_open(argv + 1, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	if (!fts)
		return 2;
	while ((e = fts_read(fts))) {
		if (e->fts_info == FTS_F) {
			if (replay(e->fts_path, (size_t)e->fts_statp->st_size))
				unread++;
			count++;
		} else if (e->fts_info == FTS_ERR || e->fts_info == FTS_NS ||
			   e->fts_info == FTS_DNR) {
			fprintf(stderr, "%s: %s\n", e->fts_path, strerror(e->fts_errno));
			unread++;
		}
	}
	fts_close(fts);
	printf("%u inputs replayed\n", count - unread);
	return count == 0 || unread > 0;
}
