/* SPDX-License-Identifier: MIT */
/*
 * One request to the block layer.
 *
 * Offsets and lengths are bytes, whole logical blocks of the device asked.
 * The submitter owns the io, its iov table and the memory behind it; from
 * blk_submit() to its callback it touches none of them, and finds op, flags,
 * range and iov then as they were. Exactly one callback, never from inside
 * blk_submit(); a device does not touch the io after io_done().
 *
 * Errors, and no others: 0; -EIO (medium), -ENOSPC, -EROFS, -ENXIO (device
 * gone or not usable), -EAGAIN (becoming ready), -ECANCELED, -EINVAL (the layer above broke the contract),
 * -EOPNOTSUPP.
 */
#ifndef BACKSTORE_IO_H
#define BACKSTORE_IO_H

#include "core/env.h"

struct blk;
struct io;

enum io_op {
	IO_READ,
	IO_WRITE,
	IO_FLUSH, /* the whole device, range and iov do not matter: what completed before it
		     was submitted is durable when it succeeds */
	IO_UNMAP, /* may deallocate; reads as zeroes afterwards if the device says unmap_zeroes */
	IO_WRITE_ZEROES,
	IO_STATUS, /* whether what is there was written: answers run and run_bytes */
	IO_OP_COUNT
};

/* Flags. */
#define IO_FUA 1u  /* WRITE, UNMAP, WRITE_ZEROES: durable at completion */
#define IO_DPO 2u  /* the host does not expect to read it again */
#define IO_LANE 4u /* past bulk I/O that waits in queues */
#define IO_FLAGS (IO_FUA | IO_DPO | IO_LANE)

/* Why an io exists: counters and fault rules tell them apart. */
enum io_purpose {
	IO_HOST,
	IO_PARITY,
	IO_LOG,
	IO_LABEL,
	IO_MAP,
	IO_RESYNC,
	IO_MIRROR,
	IO_PURPOSE_COUNT
};

/* What IO_STATUS found. A device that cannot tell says UNKNOWN. */
enum io_run {
	IO_RUN_UNKNOWN,
	IO_RUN_DATA,
	IO_RUN_ZEROES, /* deallocated, and reads as zeroes */
};

#define IO_DEPTH 10     /* hops */
#define IO_IOV_MAX 1024 /* elements: what the kernel takes at once */

typedef void io_fn(struct io *io, void *arg);

/* What a hop pushed: whom to tell, and what io looked like above it. */
struct io_frame {
	io_fn *fn;
	void *arg;
	struct blk *blk;
	uint64_t offset;
	uint64_t length;
	uint64_t start_ns;
	enum io_op op;
	unsigned flags;
	bool pass; /* fn is for errors only */
};

struct io {
	STAILQ_ENTRY(io) link;  /* of the layer that holds it at the moment */
	struct env_defer defer; /* queued from io_done() to the callback */
	enum io_op op;
	unsigned flags;
	enum io_purpose purpose;
	int error;
	uint64_t offset;
	uint64_t length;
	struct iovec *iov; /* READ, WRITE: adds up to length */
	unsigned iov_count;
	/* STATUS that succeeded: the state of the first run_bytes of the range, > 0 and whole
	 * blocks. What follows, in the range or after it, may be in the same state. */
	enum io_run run;
	uint64_t run_bytes;
	unsigned depth;
	union { /* scratch of the layer that holds it at the moment */
		struct {
			struct env_disk_op disk;
			struct iovec disk_iov;
		};
		struct {
			struct env_timer timer;
			void *arg;
		};
		struct env_work work;
	} leaf;
	struct io_frame frames[IO_DEPTH];
};
STAILQ_HEAD(io_list, io);

/* Make IO fresh: op, range and buffers; no flags, purpose IO_HOST. IOV may be NULL with 0. */
void io_init(struct io *io, enum io_op op, uint64_t offset, uint64_t length, struct iovec *iov,
	     unsigned iov_count);

/*
 * For a device: IO is finished here, with an ERROR of those above. Its callback
 * runs later in this turn. Another or a second one is a bug of the device: asserted.
 */
void io_done(struct io *io, int error);

/* The device that has IO at the moment. */
static inline struct blk *io_blk(const struct io *io)
{
	return io->frames[io->depth - 1].blk;
}

static inline bool io_op_modifies(enum io_op op)
{
	return op == IO_WRITE || op == IO_UNMAP || op == IO_WRITE_ZEROES;
}

/* Whether an io of this OP may end with ERROR. */
bool io_error_allowed(enum io_op op, int error);

/* For devices that hold bytes in memory, aligned as blocks are: IO's iov from or to it. */
void io_copy_out(const struct io *io, const void *src);
void io_copy_in(const struct io *io, void *dst);
/* READ of zeroes. */
void io_zero(const struct io *io);

const char *io_op_name(enum io_op op);
const char *io_purpose_name(enum io_purpose purpose);

#endif
