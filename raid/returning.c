/* SPDX-License-Identifier: MIT */
/*
 * RAID 5: what the log of a disk that returns tells.
 *
 * When it was lost with a crash, its log alone has which stripes were being written whose parity
 * it has: nobody replays it any more, and lazy regions may not know.
 *
 * Invariants:
 *  1. (I7) Its records are a list of stripes to be made right, and nothing else.
 *
 * Not here: logs that are replayed (replay.c), taking the disk in (change.c), which voids the log.
 */
#include <errno.h>
#include <stdlib.h>

#include "raid/raid5_int.h"
#include "raid/redo_scan.h"

#define PIECE MIB
#define ALIGN 4096u

struct returning {
	struct array *array;
	struct blk *blk;
	uint64_t incarnation;
	void (*done)(void *arg, int error);
	void *arg;
	struct io io;
	struct iovec iov;
	uint64_t at; /* of the log, what has been read */
	char *memory;
	struct redo_scan scan;
};

static void end(struct returning *returning, int error)
{
	void (*done)(void *arg, int error) = returning->done;
	void *arg = returning->arg;

	free(returning->memory);
	free(returning);
	done(arg, error);
}

static int doubt(struct redo_scan *scan, const struct redo_head *head, uint64_t at)
{
	struct array *array = container_of(scan, struct returning, scan)->array;
	const struct label *label = &array->label;

	(void)at;
	if (head->stripe < label->data.length / label->chunk_bytes)
		regions_doubt(array->regions, head->stripe * label->chunk_bytes,
			      label->chunk_bytes);
	return 0;
}

static void doubted(struct redo_scan *scan, int error)
{
	end(container_of(scan, struct returning, scan), error);
}

static void doubt_records(struct returning *returning)
{
	const struct label *label = &returning->array->label;

	returning->scan = (struct redo_scan){
		.env = returning->array->env,
		.log = returning->memory,
		.length = label->log.length,
		.block_bytes = label->block_bytes,
		.tag = array_tag(label),
		.incarnation = returning->incarnation,
		.found = doubt,
		.done = doubted,
	};
	redo_scan_start(&returning->scan);
}

static void read_piece(struct returning *returning);

static void piece_read(struct io *io, void *arg)
{
	struct returning *returning = arg;

	returning->at += io->length;
	if (io->error)
		end(returning, io->error);
	else if (returning->at < returning->array->label.log.length)
		read_piece(returning);
	else
		doubt_records(returning);
}

static void read_piece(struct returning *returning)
{
	const struct label_area *log = &returning->array->label.log;
	uint64_t length = min_u64(PIECE, log->length - returning->at);

	returning->iov = (struct iovec){ returning->memory + returning->at, length };
	io_init(&returning->io, IO_READ, log->offset + returning->at, length, &returning->iov, 1);
	returning->io.purpose = IO_LOG;
	blk_submit(returning->blk, &returning->io, piece_read, returning);
}

int raid5_returning(struct array *array, struct blk *blk, const struct label *label,
		    void (*done)(void *arg, int error), void *arg)
{
	struct returning *returning = calloc(1, sizeof(*returning));

	if (returning)
		returning->memory = aligned_alloc(ALIGN, array->label.log.length);
	if (!returning || !returning->memory) {
		free(returning);
		return -ENOMEM;
	}
	returning->array = array;
	returning->blk = blk;
	returning->incarnation = label->log_incarnation;
	returning->done = done;
	returning->arg = arg;
	read_piece(returning);
	return 0;
}
