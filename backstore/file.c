/* SPDX-License-Identifier: MIT */
/*
 * The file leaf: a regular file or a block device behind env_disk_op.
 *
 * Invariants:
 *  1. At most one FLUSH is in flight. It serves those who waited when it began,
 *     all of whose writes had completed by then; who asks meanwhile shares the next.
 *  2. A FUA io ends with 0 only when it was written with FUA, or a FLUSH that
 *     began after it completed succeeded (I1).
 *  3. A failed FLUSH fails everybody who waits and turns the device BLK_FAILED:
 *     the kernel drops what it could not write, so a second FLUSH that succeeds
 *     says nothing about it. Only blk_reopen(), an administrator's word, leads
 *     back, over a new file descriptor and with nothing in flight.
 *  4. A regular file that became shorter than the device fails the device: reads
 *     never turn into zeroes, and no write is acknowledged as durable on it.
 *  5. Nothing here blocks; no memory is taken for an io.
 *
 * Not here: opening and measuring (file_open.c), short transfers and retries
 * (below the seam), order of overlapping ios (rangelock.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backstore/backing_int.h"
#include "core/canary.h"
#include "core/event.h"

#define FILL_MAX MIB /* zeroes written at once where the kernel has no better way */
#define FULL_EVENT_NS (60 * NS_PER_S)

struct file {
	struct blk blk;
	struct file_medium medium;
	const struct file_calls *calls;

	struct io_list waiting;  /* for the next flush */
	struct io_list flushing; /* served by the one in flight */
	struct env_disk_op flush;
	bool flush_in_flight;
	struct env_defer kick; /* starts a flush when this turn's completions are in */

	void *zeroes;           /* FILL_MAX of the kernel's zero page */
	bool no_punch, no_zero; /* the kernel refused it once */
	uint64_t checked_ns;    /* when the size was last seen right */
	uint64_t full_ns;       /* when backing-full was last told; 0: never */
	struct log_limit error_limit;
	struct env_work closing;

	struct backing_spec spec; /* its path is ours, its name the device's */
	struct env_work reopening;
	struct file_medium reopened;
	int reopen_error;
	char reopen_text[BACKING_TEXT_MAX];
	blk_reopen_fn *reopen_done;
	void *reopen_arg;
};

static struct file *file_of(struct blk *blk)
{
	return container_of(blk, struct file, blk);
}

static struct io *io_of(struct env_disk_op *op)
{
	return container_of(op, struct io, leaf.disk);
}

/* --- what may go wrong with the device as a whole --- */

static void file_fail(struct file *file, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void file_fail(struct file *file, const char *fmt, ...)
{
	char cause[sizeof(file->blk.state_cause)];
	va_list args;

	if (file->blk.state == BLK_FAILED)
		return;
	va_start(args, fmt);
	vsnprintf(cause, sizeof(cause), fmt, args);
	va_end(args);
	event_emit(EVENT_BACKING_FAILED, file->blk.name, cause);
	blk_set_state(&file->blk, BLK_FAILED, "%s", cause);
}

static void file_turned_read_only(struct file *file, int err)
{
	char cause[sizeof(file->blk.state_cause)];

	if (file->blk.state != BLK_ONLINE)
		return;
	snprintf(cause, sizeof(cause), "turned read-only: %s", strerror(-err));
	event_emit(EVENT_BACKING_FAILED, file->blk.name, cause);
	blk_set_state(&file->blk, BLK_READ_ONLY_NOW, "%s", cause);
}

/* A thin file's file system is full: overwrites go on, so the device stays online. */
static void file_full(struct file *file)
{
	uint64_t now_ns = env_now_ns(file->blk.env);

	if (file->full_ns && now_ns - file->full_ns < FULL_EVENT_NS)
		return;
	file->full_ns = now_ns;
	event_emit(EVENT_BACKING_FULL, file->blk.name);
}

/*
 * Whether the medium still has its size; fails the device if not. A write beyond the
 * end of a file cut short would silently make it longer, with zeroes where data were,
 * and nothing in the kernel prevents it: so files are looked at before the first write
 * of each turn, and again before writes are acknowledged as durable.
 */
static bool file_whole(struct file *file, bool again)
{
	uint64_t now_ns = env_now_ns(file->blk.env);
	int64_t size;

	if (file->blk.state == BLK_FAILED)
		return false;
	if (!again && file->checked_ns == now_ns)
		return true;
	file->checked_ns = now_ns;
	size = file->calls->size(&file->medium);
	if (size < 0 || (uint64_t)size >= file->blk.size_bytes)
		return true;
	if (file->medium.device && size == 0)
		file_fail(file, "the device is gone");
	else
		file_fail(file, "cut short: %" PRId64 " of %" PRIu64 " bytes left", size,
			  file->blk.size_bytes);
	return false;
}

/* From the kernel's many errors to the few of io.h; changes the state where one says so. */
static int file_error(struct file *file, const struct io *io, int err)
{
	bool modifies = io_op_modifies(io->op);

	if (err == 0)
		return 0;
	log_limited(&file->error_limit, LOG_L_WARN, "file", file->blk.name, "io-error",
		    "op=%s offset=%" PRIu64 " length=%" PRIu64 " error=\"%s\"", io_op_name(io->op),
		    io->offset, io->length, strerror(-err));
	switch (err) {
	case -ENODEV:
	case -ENXIO:
		file_fail(file, "the device is gone: %s", strerror(-err));
		return -ENXIO;
	case -EROFS:
	case -EPERM:
	case -EACCES:
		if (!modifies)
			return -EIO;
		file_turned_read_only(file, err);
		return -EROFS;
	case -ENOSPC:
	case -EDQUOT:
		if (!modifies)
			return -EIO;
		file_full(file);
		return -ENOSPC;
	default:
		/* ENODATA: the end of a file, or a bad sector. EIO: perhaps a dead device. */
		file_whole(file, true);
		return -EIO;
	}
}

/* --- flush --- */

static void flush_start(struct env_defer *kick)
{
	struct file *file = container_of(kick, struct file, kick);

	assert(!file->flush_in_flight && !STAILQ_EMPTY(&file->waiting));
	STAILQ_CONCAT(&file->flushing, &file->waiting);
	file->flush_in_flight = true;
	env_disk_submit(file->blk.env, &file->flush);
}

/* Deferred, so that all writes that complete in this turn share it. */
static void flush_want(struct file *file)
{
	if (!file->flush_in_flight && !file->kick.queued && !STAILQ_EMPTY(&file->waiting))
		env_defer(file->blk.env, &file->kick);
}

static void file_wait_flush(struct file *file, struct io *io)
{
	STAILQ_INSERT_TAIL(&file->waiting, io, link);
	flush_want(file);
}

static void end_all(struct io_list *list, int error)
{
	struct io *io;

	while ((io = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, link);
		io_done(io, error);
	}
}

static void flush_done(struct env_disk_op *op)
{
	struct file *file = container_of(op, struct file, flush);

	file->flush_in_flight = false;
	if (op->result < 0 && !canary(CANARY_FLUSH_IGNORED))
		file_fail(file, "flush failed: %s", strerror(-op->result));
	else if (!file->medium.device)
		file_whole(file, true);
	if (file->blk.state == BLK_FAILED) {
		end_all(&file->flushing, -EIO);
		end_all(&file->waiting, -EIO);
		return;
	}
	end_all(&file->flushing, 0);
	flush_want(file);
}

/* --- ios --- */

static void file_disk_done(struct env_disk_op *op);

static void file_start(struct file *file, struct io *io, enum env_disk_kind kind)
{
	struct env_disk_op *op = &io->leaf.disk;

	op->kind = kind;
	op->fua = kind == ENV_DISK_WRITE && io->flags & IO_FUA && file->medium.fua;
	op->nowait_lane = io->flags & IO_LANE;
	op->fd = file->medium.fd;
	op->offset = io->offset;
	op->length = io->length;
	op->iov = io->iov;
	op->iov_count = io->iov_count;
	op->done = file_disk_done;
	env_disk_submit(file->blk.env, op);
}

/* Zeroes by plain writes, FILL_MAX at a time, from OFFSET on. */
static void file_fill(struct file *file, struct io *io, uint64_t offset)
{
	struct env_disk_op *op = &io->leaf.disk;

	io->leaf.disk_iov.iov_base = file->zeroes;
	io->leaf.disk_iov.iov_len = min_u64(FILL_MAX, io->offset + io->length - offset);
	op->kind = ENV_DISK_WRITE;
	op->fua = false;
	op->nowait_lane = io->flags & IO_LANE;
	op->fd = file->medium.fd;
	op->offset = offset;
	op->length = io->leaf.disk_iov.iov_len;
	op->iov = &io->leaf.disk_iov;
	op->iov_count = 1;
	op->done = file_disk_done;
	env_disk_submit(file->blk.env, op);
}

/* UNMAP and WRITE_ZEROES: the best way that the kernel has not refused yet. */
static void file_clear(struct file *file, struct io *io)
{
	if (io->op == IO_UNMAP && !file->no_punch)
		file_start(file, io, ENV_DISK_PUNCH);
	else if (!file->no_zero)
		file_start(file, io, ENV_DISK_ZERO);
	else
		file_fill(file, io, io->offset);
}

static void file_end(struct file *file, struct io *io, int result)
{
	int error = file_error(file, io, result);

	if (!error && file->blk.state == BLK_FAILED)
		/* It may lie behind the FLUSH that failed, or have made a cut file longer. */
		error = io_op_modifies(io->op) ? -EIO : -ENXIO;
	if (!error && io->flags & IO_FUA && !io->leaf.disk.fua)
		file_wait_flush(file, io);
	else
		io_done(io, error);
}

static void file_disk_done(struct env_disk_op *op)
{
	struct io *io = io_of(op);
	struct file *file = file_of(io_blk(io));
	uint64_t end = op->offset + op->length;

	if (op->result == -EOPNOTSUPP && op->kind == ENV_DISK_PUNCH) {
		file->no_punch = true;
		file_clear(file, io);
	} else if (op->result == -EOPNOTSUPP && op->kind == ENV_DISK_ZERO) {
		file->no_zero = true;
		file_clear(file, io);
	} else if (op->result == 0 && end < io->offset + io->length &&
		   file->blk.state != BLK_FAILED) {
		file_fill(file, io, end);
	} else {
		file_end(file, io, op->result);
	}
}

/* --- what is allocated --- */

static void file_run_run(struct env_work *work)
{
	struct io *io = container_of(work, struct io, leaf.work);
	struct file *file = file_of(io_blk(io));

	io->error = file->calls->run(&file->medium, io);
}

static void file_run_done(struct env_work *work)
{
	struct io *io = container_of(work, struct io, leaf.work);

	io_done(io, file_error(file_of(io_blk(io)), io, io->error));
}

static void file_status(struct file *file, struct io *io)
{
	if (file->medium.device) { /* tells of none */
		io_done(io, 0);
		return;
	}
	io->leaf.work.run = file_run_run;
	io->leaf.work.done = file_run_done;
	env_work_submit(file->blk.env, &io->leaf.work);
}

static void file_submit(struct blk *blk, struct io *io)
{
	struct file *file = file_of(blk);

	if (io_op_modifies(io->op) && !file->medium.device && !file_whole(file, false)) {
		io_done(io, -EIO);
		return;
	}
	switch (io->op) {
	case IO_READ:
		file_start(file, io, ENV_DISK_READ);
		break;
	case IO_WRITE:
		file_start(file, io, ENV_DISK_WRITE);
		break;
	case IO_UNMAP:
	case IO_WRITE_ZEROES:
		file_clear(file, io);
		break;
	case IO_FLUSH:
		file_wait_flush(file, io);
		break;
	case IO_STATUS:
		file_status(file, io);
		break;
	default:
		io_done(io, -EOPNOTSUPP);
	}
}

/* --- begin and end --- */

static int64_t kernel_size(const struct file_medium *medium)
{
	struct statx stx;
	uint64_t size;

	if (medium->device)
		return ioctl(medium->fd, BLKGETSIZE64, &size) < 0 ? -errno : (int64_t)size;
	/* DONT_SYNC: what the kernel knows; a network file system is not asked. */
	if (statx(medium->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE, &stx) < 0)
		return -errno;
	return (int64_t)stx.stx_size;
}

static void kernel_close(const struct file_medium *medium)
{
	close(medium->fd);
}

static const struct file_calls kernel_calls = {
	.size = kernel_size,
	.close = kernel_close,
	.run = file_run,
	.probe = file_probe,
};

/* --- a second try --- */

/* The old one first: its lock would be in the way of the new one's. */
static void file_reopen_run(struct env_work *work)
{
	struct file *file = container_of(work, struct file, reopening);
	struct file_medium *medium = &file->reopened;

	if (file->medium.fd >= 0)
		file->calls->close(&file->medium);
	file->medium.fd = -1;
	file->reopen_error = file->calls->probe(&file->spec, medium, file->reopen_text);
	if (file->reopen_error || medium->size_bytes >= file->blk.size_bytes)
		return;
	snprintf(file->reopen_text, sizeof(file->reopen_text),
		 "cut short: %" PRIu64 " of %" PRIu64 " bytes left", medium->size_bytes,
		 file->blk.size_bytes);
	file->calls->close(medium);
	file->reopen_error = -EIO;
}

static void file_reopen_done(struct env_work *work)
{
	struct file *file = container_of(work, struct file, reopening);
	struct blk *blk = &file->blk;

	if (file->reopen_error) {
		blk_set_state(blk, BLK_FAILED, "%s", file->reopen_text);
	} else {
		/* What hosts were told of it once holds: size and blocks stay as they were. */
		file->medium = file->reopened;
		file->flush.fd = file->medium.fd;
		file->checked_ns = UINT64_MAX;
		event_emit(EVENT_BACKING_RECOVERED, blk->name);
		blk_set_state(blk, BLK_ONLINE, "%s", "");
	}
	file->reopen_done(file->reopen_arg, file->reopen_error, file->reopen_text);
	blk_unref(blk);
}

static void file_reopen(struct blk *blk, blk_reopen_fn *done, void *arg)
{
	struct file *file = file_of(blk);

	if (blk->state == BLK_READ_ONLY_NOW) {
		/* The file is the same; the next write tells whether it takes writes again. */
		event_emit(EVENT_BACKING_RECOVERED, blk->name);
		blk_set_state(blk, BLK_ONLINE, "%s", "");
		done(arg, 0, "");
		return;
	}
	if (blk->in_flight || file->flush_in_flight) {
		done(arg, -EBUSY, "I/O of before is still under way");
		return;
	}
	file->reopen_text[0] = '\0';
	file->reopen_done = done;
	file->reopen_arg = arg;
	file->reopening.run = file_reopen_run;
	file->reopening.done = file_reopen_done;
	blk_ref(blk);
	env_work_submit(blk->env, &file->reopening);
}

/* The last close of a device writes back and drops its page cache. */
static void file_close_run(struct env_work *work)
{
	struct file *file = container_of(work, struct file, closing);

	if (file->medium.fd >= 0)
		file->calls->close(&file->medium);
}

static void file_close_done(struct env_work *work)
{
	struct file *file = container_of(work, struct file, closing);

	munmap(file->zeroes, FILL_MAX);
	free((char *)file->spec.path);
	free(file);
}

static void file_close(struct blk *blk)
{
	struct file *file = file_of(blk);

	assert(!file->flush_in_flight && STAILQ_EMPTY(&file->waiting));
	file->closing.run = file_close_run;
	file->closing.done = file_close_done;
	env_work_submit(blk->env, &file->closing);
}

static const struct blk_ops file_ops = {
	.driver = "file",
	.submit = file_submit,
	.close = file_close,
	.reopen = file_reopen,
};

static unsigned file_features(const struct file_medium *medium)
{
	unsigned features = BLK_FUA | BLK_WRITE_ZEROES;

	if (medium->punch)
		features |= BLK_UNMAP | BLK_UNMAP_ZEROES;
	if (medium->read_only)
		features |= BLK_READ_ONLY;
	if (medium->volatile_cache)
		features |= BLK_VOLATILE;
	return features;
}

struct blk *file_new(struct env *env, const struct backing_spec *spec,
		     const struct file_medium *medium, const struct file_calls *calls)
{
	struct file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->spec = *spec;
	file->spec.name = file->blk.name;
	file->spec.size_bytes = 0; /* whatever it has: a second try creates nothing */
	file->spec.path = strdup(spec->path);
	file->zeroes = mmap(NULL, FILL_MAX, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (file->zeroes == MAP_FAILED || !file->spec.path) {
		if (file->zeroes != MAP_FAILED)
			munmap(file->zeroes, FILL_MAX);
		free((char *)file->spec.path);
		free(file);
		return NULL;
	}
	file->medium = *medium;
	file->calls = calls ? calls : &kernel_calls;
	STAILQ_INIT(&file->waiting);
	STAILQ_INIT(&file->flushing);
	file->flush.kind = ENV_DISK_FLUSH;
	file->flush.fd = medium->fd;
	file->flush.nowait_lane = true; /* many wait for it, and it for nobody in the queue */
	file->flush.done = flush_done;
	file->kick.fn = flush_start;
	file->checked_ns = UINT64_MAX;
	file->blk.ops = &file_ops;
	file->blk.env = env;
	snprintf(file->blk.name, sizeof(file->blk.name), "%s", spec->name);
	file->blk.size_bytes = medium->size_bytes;
	file->blk.block_size = medium->block_size;
	file->blk.physical_block = medium->physical_block;
	file->blk.optimal_io = medium->optimal_io;
	file->blk.mem_align = medium->mem_align;
	file->blk.features = file_features(medium);
	blk_init(&file->blk);
	return &file->blk;
}
