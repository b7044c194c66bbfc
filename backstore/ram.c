/* SPDX-License-Identifier: MIT */
/*
 * The ram leaf: a device of anonymous memory, for tests and measuring.
 *
 * Invariants:
 *  1. Memory is mapped whole at start and backed by the kernel at first touch, in huge pages
 *     where it has them; what was never written or was unmapped reads as zeroes.
 *  2. What `written` says of a page is true between ios: it is set before a write begins and
 *     cleared when an unmap has ended, both on the loop.
 *  3. An io longer than RAM_INLINE_MAX is worked on off the loop, and so is what touches a piece
 *     first: clearing a huge page takes milliseconds on a virtual machine. Others at once.
 *
 * Not here: order between overlapping ios (rangelock.c); durability: a ram
 * device has none to give, so FUA and FLUSH find nothing left to do.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backstore/backing_int.h"
#include "backstore/pagemap.h"

#define PIECE (2 * MIB) /* a huge page */

struct ram {
	struct blk blk;
	uint8_t *memory;
	bool *backed; /* by PIECE: was written to as a whole or in part, and not unmapped whole */
	struct pagemap written;
	struct env_work work; /* the closing */
};

static struct ram *ram_of(struct blk *blk)
{
	return container_of(blk, struct ram, blk);
}

static int ram_read(struct ram *ram, struct io *io)
{
	io_copy_out(io, ram->memory + io->offset);
	return 0;
}

static int ram_write(struct ram *ram, struct io *io)
{
	io_copy_in(io, ram->memory + io->offset);
	return 0;
}

static int ram_flush(struct ram *ram, struct io *io)
{
	(void)ram, (void)io;
	return 0;
}

static int ram_zero(struct ram *ram, struct io *io)
{
	memset(ram->memory + io->offset, 0, io->length);
	return 0;
}

/* Whole pages go back to the kernel, the rest is cleared. */
static int ram_unmap(struct ram *ram, struct io *io)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t from = align_up(io->offset, page);
	uint64_t to = align_down(io->offset + io->length, page);

	if (from >= to || madvise(ram->memory + from, to - from, MADV_DONTNEED) < 0)
		return ram_zero(ram, io);
	memset(ram->memory + io->offset, 0, from - io->offset);
	memset(ram->memory + to, 0, io->offset + io->length - to);
	return 0;
}

static int ram_status(struct ram *ram, struct io *io)
{
	bool set;

	io->run_bytes = pagemap_run(&ram->written, io->offset, io->length, &set);
	io->run = set ? IO_RUN_DATA : IO_RUN_ZEROES;
	return 0;
}

static int (*const ram_op[IO_OP_COUNT])(struct ram *ram, struct io *io) = {
	[IO_READ] = ram_read,   [IO_WRITE] = ram_write,       [IO_FLUSH] = ram_flush,
	[IO_UNMAP] = ram_unmap, [IO_WRITE_ZEROES] = ram_zero, [IO_STATUS] = ram_status,
};

static uint64_t pieces(uint64_t bytes)
{
	return (bytes + PIECE - 1) / PIECE;
}

static bool is_backed(const struct ram *ram, const struct io *io)
{
	uint64_t end = pieces(io->offset + io->length);

	for (uint64_t n = io->offset / PIECE; n < end; n++)
		if (!ram->backed[n])
			return false;
	return true;
}

static void set_backed(struct ram *ram, uint64_t from, uint64_t end, bool backed)
{
	for (uint64_t n = from; n < end; n++)
		ram->backed[n] = backed;
}

static bool at_once(const struct ram *ram, const struct io *io)
{
	if (io->op == IO_FLUSH || io->op == IO_STATUS)
		return true;
	return io->length <= RAM_INLINE_MAX && (!io_op_modifies(io->op) || is_backed(ram, io));
}

static void ram_work_run(struct env_work *work)
{
	struct io *io = container_of(work, struct io, leaf.work);

	io->error = ram_op[io->op](ram_of(io_blk(io)), io);
}

static void ram_end(struct ram *ram, struct io *io, int error)
{
	uint64_t end = io->offset + io->length;

	if (io->op == IO_UNMAP && !error) {
		pagemap_clear(&ram->written, io->offset, io->length);
		set_backed(ram, pieces(io->offset), end / PIECE, false);
	}
	io_done(io, error);
}

static void ram_work_done(struct env_work *work)
{
	struct io *io = container_of(work, struct io, leaf.work);
	struct ram *ram = ram_of(io_blk(io));

	if (io->op == IO_WRITE || io->op == IO_WRITE_ZEROES)
		set_backed(ram, io->offset / PIECE, pieces(io->offset + io->length), true);
	ram_end(ram, io, io->error);
}

static void ram_submit(struct blk *blk, struct io *io)
{
	struct ram *ram = ram_of(blk);

	if (io->op == IO_WRITE || io->op == IO_WRITE_ZEROES)
		pagemap_set(&ram->written, io->offset, io->length);
	if (at_once(ram, io)) {
		ram_end(ram, io, ram_op[io->op](ram, io));
		return;
	}
	io->leaf.work.run = ram_work_run;
	io->leaf.work.done = ram_work_done;
	env_work_submit(blk->env, &io->leaf.work);
}

/* Giving back gigabytes takes the kernel many milliseconds. */
static void ram_close_run(struct env_work *work)
{
	struct ram *ram = container_of(work, struct ram, work);

	munmap(ram->memory, ram->blk.size_bytes);
}

static void ram_free(struct ram *ram)
{
	pagemap_free(&ram->written);
	free(ram->backed);
	free(ram);
}

static void ram_close_done(struct env_work *work)
{
	ram_free(container_of(work, struct ram, work));
}

static void ram_close(struct blk *blk)
{
	struct ram *ram = ram_of(blk);

	ram->work.run = ram_close_run;
	ram->work.done = ram_close_done;
	env_work_submit(blk->env, &ram->work);
}

static const struct blk_ops ram_ops = {
	.driver = "ram",
	.submit = ram_submit,
	.close = ram_close,
};

struct blk *ram_new(struct env *env, const struct backing_spec *spec)
{
	struct ram *ram = calloc(1, sizeof(*ram));
	void *memory;

	if (!ram)
		return NULL;
	memory = mmap(NULL, spec->size_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		ram_free(ram);
		return NULL;
	}
	ram->backed = calloc(pieces(spec->size_bytes), sizeof(*ram->backed));
	if (!ram->backed || !pagemap_init(&ram->written, spec->size_bytes)) {
		munmap(memory, spec->size_bytes);
		ram_free(ram);
		return NULL;
	}
	/* Refused by a kernel without them, and then all pages are small. */
	madvise(memory, spec->size_bytes, MADV_HUGEPAGE);
	ram->memory = memory;
	ram->blk.ops = &ram_ops;
	ram->blk.env = env;
	snprintf(ram->blk.name, sizeof(ram->blk.name), "%s", spec->name);
	ram->blk.size_bytes = spec->size_bytes;
	ram->blk.block_size = spec->block_size;
	ram->blk.physical_block = spec->physical_block ? spec->physical_block : spec->block_size;
	ram->blk.features = BLK_FUA | BLK_UNMAP | BLK_UNMAP_ZEROES | BLK_WRITE_ZEROES | BLK_ATOMIC;
	if (spec->read_only)
		ram->blk.features |= BLK_READ_ONLY;
	blk_init(&ram->blk);
	return &ram->blk;
}
