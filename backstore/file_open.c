/* SPDX-License-Identifier: MIT */
/*
 * Opening a file or block device: lock it, perhaps create it, measure it.
 *
 * Invariants:
 *  1. What file_probe() returns is ours alone: O_EXCL on a block device, a flock
 *     on a regular file, taken before anything is changed (I16).
 *  2. A file created here is durable, name and size, before anybody writes to it;
 *     one that could not be finished is removed again.
 *  3. Each refusal is one line: the path, the cause, the remedy.
 *
 * Not here: waiting for somebody who still has it (backing.c), io (file.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backstore/backing_int.h"

struct probe {
	const struct backing_spec *spec;
	struct file_medium *medium;
	struct stat st;
	uint32_t block_size; /* 0: not asked for and not known yet */
	char *text;
};

/* The error, as a negative errno, and the text that goes with it. */
static int refuse(struct probe *probe, int err, const char *fmt, ...) PRINTF_LIKE(3, 4);

static int refuse(struct probe *probe, int err, const char *fmt, ...)
{
	int used = snprintf(probe->text, BACKING_TEXT_MAX, "%s: ", probe->spec->path);
	va_list args;

	if (used < 0 || used >= BACKING_TEXT_MAX)
		used = 0;
	va_start(args, fmt);
	vsnprintf(probe->text + used, (size_t)(BACKING_TEXT_MAX - used), fmt, args);
	va_end(args);
	return -err;
}

static int refuse_busy(struct probe *probe)
{
	char holder[128];

	file_holder(&probe->st, holder, sizeof(holder));
	return refuse(probe, EBUSY, "in use by %s. Stop it, or name another path", holder);
}

static int refuse_errno(struct probe *probe, int err)
{
	switch (err) {
	case ENOENT:
		if (probe->spec->read_only)
			return refuse(probe, err, "no such file. Create it");
		return refuse(probe, err, "no such file. Create it or give a size");
	case EACCES:
	case EPERM:
		return refuse(probe, err,
			      "no permission. Change its owner or mode, or yoked's user");
	case EROFS:
		return refuse(probe, err, "on a read-only file system. Remount it read-write");
	case ENXIO:
	case ENODEV:
	case ENOMEDIUM:
		return refuse(probe, err, "no device behind it. Connect it or name another path");
	case ETXTBSY:
		return refuse(probe, err, "in use as a program or as swap. Name another path");
	default:
		return refuse(probe, err, "%s. Correct the path or the cause", strerror(err));
	}
}

/* --- opening --- */

static const char *kind_name(mode_t mode)
{
	return S_ISDIR(mode)  ? "a directory" :
	       S_ISCHR(mode)  ? "a character device" :
	       S_ISFIFO(mode) ? "a pipe" :
				"a socket";
}

static int check_kind(struct probe *probe)
{
	probe->medium->device = S_ISBLK(probe->st.st_mode);
	if (S_ISREG(probe->st.st_mode) || probe->medium->device)
		return 0;
	return refuse(probe, EINVAL, "is %s. Name a regular file or a block device",
		      kind_name(probe->st.st_mode));
}

static int open_flags(const struct probe *probe)
{
	return (probe->spec->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY |
	       (probe->spec->direct ? O_DIRECT : 0);
}

/* Looked at before it is opened: to open a tape or a pipe has effects of its own. */
static int open_existing(struct probe *probe)
{
	int flags = open_flags(probe);
	struct stat before;
	int err;

	if (stat(probe->spec->path, &probe->st) < 0)
		return refuse_errno(probe, errno);
	err = check_kind(probe);
	if (err)
		return err;
	if (probe->medium->device)
		flags |= O_EXCL;
	probe->medium->fd = open(probe->spec->path, flags);
	if (probe->medium->fd < 0) {
		if (errno == EBUSY)
			return refuse_busy(probe);
		if (errno == EINVAL && probe->spec->direct)
			return refuse(probe, EINVAL,
				      "no direct I/O on this file system. Set direct = false");
		return refuse_errno(probe, errno);
	}
	before = probe->st;
	if (fstat(probe->medium->fd, &probe->st) < 0)
		return refuse_errno(probe, errno);
	if (before.st_ino != probe->st.st_ino || before.st_dev != probe->st.st_dev)
		return refuse(probe, EAGAIN, "was replaced while it was opened. Try again");
	return 0;
}

static int lock_file(struct probe *probe)
{
	if (probe->medium->device || flock(probe->medium->fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return refuse_busy(probe);
	return refuse(probe, errno, "cannot be locked: %s. Use a file system with flock",
		      strerror(errno));
}

/* --- creating --- */

static int sync_directory(const char *path)
{
	char *copy = strdup(path);
	int fd, err = 0;

	if (!copy)
		return ENOMEM;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		err = errno;
	if (fd >= 0)
		close(fd);
	free(copy);
	return err;
}

/* Sparse: blocks are allocated as they are written. */
static int give_size(struct probe *probe)
{
	uint64_t size = probe->spec->size_bytes;
	int err = 0;

	if (ftruncate(probe->medium->fd, (off_t)size) < 0 || fsync(probe->medium->fd) < 0)
		err = errno;
	if (!err)
		err = sync_directory(probe->spec->path);
	if (!err && fstat(probe->medium->fd, &probe->st) < 0)
		err = errno;
	if (err)
		return refuse(probe, err,
			      "cannot be made %" PRIu64 " bytes long: %s. Give a smaller size, or "
			      "another path",
			      size, strerror(err));
	return 0;
}

static int create(struct probe *probe)
{
	const char *path = probe->spec->path;
	int err;

	probe->medium->fd = open(path, open_flags(probe) | O_CREAT | O_EXCL, 0600);
	if (probe->medium->fd < 0 && errno == ENOENT)
		return refuse(probe, ENOENT, "no such directory. Create it");
	if (probe->medium->fd < 0 && errno == EINVAL) {
		/* The kernel creates it and only then finds that it cannot open it so. */
		unlink(path);
		return refuse(probe, EINVAL,
			      "no direct I/O on this file system. Set direct = false");
	}
	if (probe->medium->fd < 0)
		return refuse_errno(probe, errno);
	if (fstat(probe->medium->fd, &probe->st) < 0)
		return refuse_errno(probe, errno);
	err = lock_file(probe);
	if (!err)
		err = give_size(probe);
	if (err)
		unlink(path);
	return err;
}

static int open_or_create(struct probe *probe)
{
	const struct backing_spec *spec = probe->spec;
	struct stat st;
	int err;

	if (spec->size_bytes && !spec->read_only && stat(spec->path, &st) < 0 && errno == ENOENT)
		return create(probe);
	err = open_existing(probe);
	if (!err)
		err = lock_file(probe);
	/* Empty: an earlier creation was cut off before it had its size. */
	if (!err && S_ISREG(probe->st.st_mode) && probe->st.st_size == 0 && spec->size_bytes &&
	    !spec->read_only)
		err = give_size(probe);
	return err;
}

/* --- measuring --- */

/* A number or word in the queue directory of the device's disk; false: not there. */
static bool queue_attribute(dev_t dev, const char *name, char *value, size_t size_bytes)
{
	/* A partition has no queue of its own: ".." of it is its disk. */
	static const char *const forms[] = { "/sys/dev/block/%u:%u/queue/%s",
					     "/sys/dev/block/%u:%u/../queue/%s" };

	for (unsigned i = 0; i < ARRAY_LEN(forms); i++) {
		char path[128];
		ssize_t len;
		int fd;

		snprintf(path, sizeof(path), i ? forms[1] : forms[0], major(dev), minor(dev), name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		len = read(fd, value, size_bytes - 1);
		close(fd);
		if (len <= 0)
			continue;
		value[len] = '\0';
		return true;
	}
	return false;
}

/*
 * How durability is had most cheaply:
 *  - A block device without a volatile cache: a direct write is durable when it ends, and
 *    asking for FUA costs nothing.
 *  - One with a cache and FUA: FUA writes; no other write waits for the cache to empty.
 *  - One with a cache and no FUA: the kernel would follow each FUA write with a flush of
 *    its own, so we share flushes instead.
 *  - A regular file: a write may have to be followed by a journal commit (blocks allocated,
 *    unwritten extents converted), which RWF_DSYNC would wait for once a write; a shared
 *    fdatasync() pays it once for all.
 *  - Anything through the page cache: written back by a shared flush.
 */
static void measure_cache(struct probe *probe)
{
	struct file_medium *medium = probe->medium;
	char cache[32], fua[32];

	medium->volatile_cache = true;
	medium->fua = false;
	if (!medium->device || !probe->spec->direct)
		return;
	if (queue_attribute(probe->st.st_rdev, "write_cache", cache, sizeof(cache)) &&
	    strncmp(cache, "write through", 13) == 0)
		medium->volatile_cache = false;
	if (queue_attribute(probe->st.st_rdev, "fua", fua, sizeof(fua)))
		medium->fua = fua[0] == '1';
	if (!medium->volatile_cache)
		medium->fua = true;
}

static int measure_device(struct probe *probe, uint32_t *sector)
{
	struct file_medium *medium = probe->medium;
	unsigned physical = 0, optimal = 0;
	char value[32];
	int logical = 0, read_only = 0;

	if (ioctl(medium->fd, BLKGETSIZE64, &medium->size_bytes) < 0 ||
	    ioctl(medium->fd, BLKSSZGET, &logical) < 0 ||
	    ioctl(medium->fd, BLKPBSZGET, &physical) < 0 ||
	    ioctl(medium->fd, BLKIOOPT, &optimal) < 0 ||
	    ioctl(medium->fd, BLKROGET, &read_only) < 0)
		return refuse_errno(probe, errno);
	if (read_only && !probe->spec->read_only)
		return refuse(probe, EROFS,
			      "the device is read-only. Make it writable with "
			      "blockdev --setrw");
	*sector = (uint32_t)logical;
	medium->physical_block = physical;
	if (!probe->block_size)
		probe->block_size = *sector > 512 ? 4096 : 512;
	medium->optimal_io = optimal % probe->block_size ? 0 : optimal;
	medium->punch = queue_attribute(probe->st.st_rdev, "write_zeroes_max_bytes", value,
					sizeof(value)) &&
			strtoull(value, NULL, 10) > 0;
	return 0;
}

/* Punching beyond the end changes nothing, and says whether the file system can. */
static bool can_punch(const struct probe *probe)
{
	return fallocate(probe->medium->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 probe->st.st_size, 4096) == 0;
}

static int measure_file(struct probe *probe)
{
	struct file_medium *medium = probe->medium;
	blksize_t block = probe->st.st_blksize;

	medium->size_bytes = (uint64_t)probe->st.st_size;
	medium->physical_block = block >= 4096 || block <= 0 ? 4096 : (uint32_t)block;
	medium->punch = !probe->spec->read_only && can_punch(probe);
	return 0;
}

static int measure_direct(struct probe *probe, uint32_t sector)
{
	uint32_t block_size = probe->block_size;
	struct statx stx;
	uint32_t block = sector, mem = 512;

	if (statx(probe->medium->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0 &&
	    stx.stx_mask & STATX_DIOALIGN) {
		if (stx.stx_dio_offset_align == 0)
			return refuse(probe, EINVAL,
				      "no direct I/O on this file system. Set direct = false");
		block = (uint32_t)max_u64(block, stx.stx_dio_offset_align);
		mem = stx.stx_dio_mem_align;
	}
	if (!probe->spec->block_size && (block > block_size || mem > block_size))
		block_size = probe->block_size = 4096;
	if (block > block_size || mem > block_size)
		return refuse(probe, EINVAL,
			      "direct I/O here needs blocks of %u bytes, block_size is %u. Set "
			      "block_size = 4096, or direct = false",
			      block > mem ? block : mem, block_size);
	probe->medium->mem_align = mem > 1 ? mem : 0;
	return 0;
}

/* The first block: whether it can be read at all, and with this block size. */
static int try_reading(struct probe *probe)
{
	size_t len = probe->block_size;
	void *block = NULL;
	ssize_t got;
	int err;

	if (posix_memalign(&block, 4096, len) != 0)
		return refuse(probe, ENOMEM, "out of memory");
	do {
		got = pread(probe->medium->fd, block, len, 0);
	} while (got < 0 && errno == EINTR);
	err = got < 0 ? errno : (size_t)got < len ? EIO : 0;
	free(block);
	if (err == EINVAL && probe->spec->direct)
		return refuse(probe, EINVAL,
			      "direct I/O here does not work in blocks of %zu bytes. Set "
			      "block_size = 4096, or direct = false",
			      len);
	if (err)
		return refuse(probe, err, "cannot be read: %s. Check the disk", strerror(err));
	return 0;
}

static int check_size(struct probe *probe)
{
	uint64_t size = probe->medium->size_bytes, want = probe->spec->size_bytes;
	uint32_t block_size = probe->block_size;

	if (size == 0 && probe->medium->device)
		return refuse(probe, ENOMEDIUM, "the device has no medium. Insert one");
	if (size == 0)
		return refuse(probe, EINVAL, "is empty. Give a size, or fill it");
	if (want && probe->medium->device && want != size)
		return refuse(probe, EINVAL,
			      "a block device of %" PRIu64 " bytes, size says %" PRIu64
			      ". Leave size out",
			      size, want);
	if (want && want != size)
		return refuse(probe, EINVAL,
			      "has %" PRIu64 " bytes, size says %" PRIu64
			      ". Correct size, or leave it out",
			      size, want);
	if (size < block_size)
		return refuse(probe, EINVAL,
			      "has %" PRIu64 " bytes, less than a block of %u. Make it longer",
			      size, block_size);
	if (size % block_size)
		return refuse(probe, EINVAL,
			      "has %" PRIu64 " bytes, not a multiple of block_size %u. Make it "
			      "%" PRIu64 " long",
			      size, block_size, align_up(size, block_size));
	return 0;
}

static int measure(struct probe *probe)
{
	struct file_medium *medium = probe->medium;
	uint32_t sector = 512;
	int err;

	probe->block_size = probe->spec->block_size;
	err = medium->device ? measure_device(probe, &sector) : measure_file(probe);
	if (!probe->block_size)
		probe->block_size = 512;
	if (!err)
		err = check_size(probe);
	if (!err && probe->spec->direct)
		err = measure_direct(probe, sector);
	if (!err && probe->block_size != probe->spec->block_size)
		err = check_size(probe); /* its blocks may have grown */
	if (!err)
		err = try_reading(probe);
	if (err)
		return err;
	measure_cache(probe);
	medium->block_size = probe->block_size;
	if (probe->spec->physical_block)
		medium->physical_block = probe->spec->physical_block;
	if (medium->physical_block < medium->block_size ||
	    medium->physical_block % medium->block_size)
		medium->physical_block = medium->block_size;
	return 0;
}

int file_probe(const struct backing_spec *spec, struct file_medium *medium, char *text)
{
	struct probe probe = { .spec = spec, .medium = medium, .text = text };
	int err;

	memset(medium, 0, sizeof(*medium));
	medium->fd = -1;
	medium->read_only = spec->read_only;
	text[0] = '\0';
	err = open_or_create(&probe);
	if (!err)
		err = measure(&probe);
	if (err && medium->fd >= 0) {
		close(medium->fd);
		medium->fd = -1;
	}
	return err;
}
