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
#define RAM_INLINE_MAX MIB

/* An opened file or block device: what file_probe() found out and file.c goes by. */
struct file_medium {
	int fd;
	bool device; /* a block device; else a regular file */
	bool read_only;
	bool fua;            /* a FUA write of its own costs less than a share in a flush */
	bool volatile_cache; /* completed writes may be lost without a flush */
	bool punch;          /* can deallocate so that it reads as zeroes */
	uint64_t size_bytes;
	uint32_t block_size;
	uint32_t physical_block;
	uint32_t optimal_io;
	uint32_t mem_align;
};

/* The calls that file.c makes itself, for tests to replace. */
struct file_calls {
	/* Bytes that are there now, or a negative errno. On the loop: does not block. */
	int64_t (*size)(const struct file_medium *medium);
	/* Off the loop. */
	void (*close)(const struct file_medium *medium);
	/* Off the loop; as file_run(). */
	int (*run)(const struct file_medium *medium, struct io *io);
	/* Off the loop; as file_probe(). */
	int (*probe)(const struct backing_spec *spec, struct file_medium *medium, char *text);
};

/*
 * Takes over medium->fd, unless it fails: NULL with errno set. SPEC is kept, for a second try.
 * CALLS NULL: the kernel's.
 */
struct blk *file_new(struct env *env, const struct backing_spec *spec,
		     const struct file_medium *medium, const struct file_calls *calls);

#define BACKING_TEXT_MAX 512

/*
 * Open, lock, perhaps create and measure spec->path. Blocks: for env_work. 0, or a negative
 * errno and TEXT (BACKING_TEXT_MAX) of path, cause and remedy; -EBUSY: somebody else has it,
 * as TEXT says, and trying again may help.
 */
int file_probe(const struct backing_spec *spec, struct file_medium *medium, char *text);

/*
 * STATUS of IO's range, by what a regular file has holes for; sets run and run_bytes. 0, or a
 * negative errno. Blocks: for env_work.
 */
int file_run(const struct file_medium *medium, struct io *io);

/* Who has the file or device that ST describes: "tgtd, pid 811", "a mount on /mnt". Blocks. */
struct stat;
void file_holder(const struct stat *st, char *text, size_t size_bytes);

#endif
