/* SPDX-License-Identifier: MIT */
/*
 * Disks with contents, held and failed by purpose, and an array over them.
 *
 * Invariants:
 *  1. A write changes the disk when it is served; held or failed it changes nothing.
 *  2. What a disk holds outlives its device: arrays are started again over the same bytes.
 */
#include "tests/fake/raid_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct rig rig;

/* --- a disk --- */

static bool overlaps(const struct rig_disk *disk, const struct io *io)
{
	return disk->bad_length && io->offset < disk->bad_offset + disk->bad_length &&
	       disk->bad_offset < io->offset + io->length;
}

static bool in_bad_slot(const struct rig_disk *disk, const struct io *io)
{
	for (unsigned slot = 0; slot < LABEL_SLOTS; slot++)
		if (disk->fail_slots[slot] &&
		    io->offset == label_slot_offset(disk->blk.size_bytes, slot))
			return true;
	return false;
}

static int serve(struct rig_disk *disk, struct io *io)
{
	unsigned purpose = 1u << io->purpose;

	if (io->op == IO_READ ? disk->fail_reads & purpose : disk->fail & purpose)
		return disk->error;
	if (io->op == IO_READ && (overlaps(disk, io) || in_bad_slot(disk, io)))
		return -EIO;
	switch (io->op) {
	case IO_READ:
		io_copy_out(io, disk->bytes + io->offset);
		break;
	case IO_WRITE:
		io_copy_in(io, disk->bytes + io->offset);
		break;
	case IO_UNMAP:
	case IO_WRITE_ZEROES:
		memset(disk->bytes + io->offset, 0, io->length);
		break;
	default:
		break;
	}
	if (io_op_modifies(io->op) && overlaps(disk, io))
		disk->bad_length = 0;
	return 0;
}

static void disk_submit(struct blk *blk, struct io *io)
{
	struct rig_disk *disk = container_of(blk, struct rig_disk, blk);

	assert(disk->record_count < RIG_RECORDS);
	disk->records[disk->record_count++] = (struct rig_record){
		.op = io->op,
		.purpose = io->purpose,
		.offset = io->offset,
		.length = io->length,
		.flags = io->flags,
	};
	if (disk->hold >> io->purpose & 1) {
		STAILQ_INSERT_TAIL(&disk->held, io, link);
		disk->held_count++;
	} else {
		io_done(io, serve(disk, io));
	}
}

static void disk_close(struct blk *blk)
{
	struct rig_disk *disk = container_of(blk, struct rig_disk, blk);

	*disk->open = false;
	free(disk);
}

static const struct blk_ops disk_ops = {
	.driver = "rig",
	.submit = disk_submit,
	.close = disk_close,
};

struct rig_disk *rig_disk(unsigned number)
{
	struct rig_disk *disk;

	assert(number < RIG_DISKS);
	if (!rig.bytes[number]) {
		rig.bytes[number] = mmap(NULL, rig.sizes[number], PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		assert(rig.bytes[number] != MAP_FAILED);
	}
	if (rig.disks[number])
		return rig.disks[number];
	disk = calloc(1, sizeof(*disk));
	assert(disk);
	disk->blk.ops = &disk_ops;
	disk->blk.env = rig.env;
	snprintf(disk->name, sizeof(disk->name), "d%u", number);
	snprintf(disk->blk.name, sizeof(disk->blk.name), "d%u", number);
	disk->blk.size_bytes = rig.sizes[number];
	disk->blk.block_size = rig.block_size;
	disk->blk.physical_block = rig.block_size;
	disk->blk.features = rig.features;
	disk->bytes = rig.bytes[number];
	disk->error = -EIO;
	disk->open = &rig.is_open[number];
	STAILQ_INIT(&disk->held);
	blk_init(&disk->blk);
	rig.is_open[number] = true;
	rig.disks[number] = disk;
	return disk;
}

struct array_disk rig_offer(unsigned number)
{
	struct rig_disk *disk = rig_disk(number);

	return (struct array_disk){ disk->name, &disk->blk };
}

void rig_end(unsigned number, int error)
{
	struct rig_disk *disk = rig.disks[number];
	struct io *io = STAILQ_FIRST(&disk->held);

	assert(io);
	STAILQ_REMOVE_HEAD(&disk->held, link);
	disk->held_count--;
	io_done(io, error ? error : serve(disk, io));
	fake_env_run(rig.env);
}

void rig_hold(unsigned purposes)
{
	for (unsigned i = 0; i < RIG_DISKS; i++)
		if (rig.disks[i])
			rig.disks[i]->hold = purposes;
}

void rig_release(unsigned number)
{
	struct rig_disk *disk = rig.disks[number];

	disk->hold = 0;
	while (disk->held_count)
		rig_end(number, 0);
}

unsigned rig_count(unsigned number, enum io_op op, enum io_purpose purpose)
{
	const struct rig_disk *disk = rig.disks[number];
	unsigned count = 0;

	for (unsigned i = 0; i < disk->record_count; i++)
		count += disk->records[i].op == op && disk->records[i].purpose == purpose;
	return count;
}

void rig_forget(void)
{
	for (unsigned i = 0; i < RIG_DISKS; i++)
		if (rig.disks[i])
			rig.disks[i]->record_count = 0;
}

/* --- labels --- */

struct probing {
	struct label *label;
	int error;
	bool done;
};

static void probe_done(void *arg, int error, const struct label *label)
{
	struct probing *probing = arg;

	probing->error = error;
	probing->done = true;
	if (!error)
		*probing->label = *label;
}

int rig_probe(unsigned number, struct label *label)
{
	struct probing probing = { .label = label };
	struct blk *blk = &rig_disk(number)->blk;
	int error = array_probe(rig.env, blk, probe_done, &probing);

	assert(!error);
	fake_env_run(rig.env);
	assert(probing.done);
	return probing.error;
}

int rig_label(unsigned number, struct label *label)
{
	struct label found;
	uint64_t newest = 0;
	int error = -ENOENT;

	for (unsigned slot = 0; slot < LABEL_SLOTS; slot++) {
		const uint8_t *at = rig.bytes[number] + label_slot_offset(rig.sizes[number], slot);

		if (label_decode(at, &found) < 0 || found.sequence < newest)
			continue;
		newest = found.sequence;
		*label = found;
		error = 0;
	}
	return error;
}

void rig_put_label(unsigned number, const struct label *label)
{
	const struct rig_disk *disk = rig_disk(number);

	for (unsigned slot = 0; slot < LABEL_SLOTS; slot++)
		label_encode(label, disk->bytes + label_slot_offset(disk->blk.size_bytes, slot));
}

uint8_t *rig_data(unsigned number)
{
	struct label label;

	assert(rig_label(number, &label) == 0);
	return rig.bytes[number] + label.data.offset;
}

/* --- the array --- */

void rig_answer(void *arg, struct array *array, int error, const char *text)
{
	(void)arg;
	if (array)
		rig.array = array;
	rig.answers++;
	rig.error = error;
	snprintf(rig.text, sizeof(rig.text), "%s", text);
}

static int answer(unsigned before)
{
	fake_env_run(rig.env);
	assert(rig.answers == before + 1);
	return rig.error;
}

int rig_create(unsigned level, unsigned count)
{
	const struct array_spec spec = {
		.name = "a",
		.level = level,
		.chunk_bytes = level == 1 ? 0 : 64 * KIB,
	};
	struct array_disk disks[RIG_DISKS];
	unsigned before = rig.answers;

	rig.level = level;
	for (unsigned i = 0; i < count; i++)
		disks[i] = rig_offer(i);
	assert(array_create(rig.env, &spec, disks, count, rig_answer, NULL));
	return answer(before);
}

void rig_settle(void)
{
	fake_env_advance(rig.env, 60 * NS_PER_S);
}

void rig_create_clean(unsigned level, unsigned count)
{
	int error = rig_create(level, count);

	assert(!error);
	rig_settle();
	rig_forget();
}

/* The array that the disks name. */
static void uuid_of(uint32_t disks, uuid_t uuid)
{
	struct label label = { .sequence = 0 };

	for (unsigned i = 0; i < RIG_DISKS; i++)
		if (disks >> i & 1 && rig_label(i, &label) == 0)
			uuid_copy(uuid, label.array);
}

int rig_start_how(uint32_t disks, const struct array_start *how)
{
	struct array_disk offered[RIG_DISKS];
	unsigned count = 0, before = rig.answers;
	uuid_t uuid = { 0 };

	uuid_of(disks, uuid);
	rig_forget();
	for (unsigned i = 0; i < RIG_DISKS; i++)
		if (disks >> i & 1)
			offered[count++] = rig_offer(i);
	assert(array_start(rig.env, uuid, offered, count, how, rig_answer, NULL));
	return how->wait_ns ? 0 : answer(before);
}

int rig_start(uint32_t disks, bool force)
{
	return rig_start_how(disks, &(struct array_start){ .force = force });
}

int rig_add(unsigned number)
{
	const struct array_disk disk = rig_offer(number);
	unsigned before = rig.answers;

	assert(array_add(rig.array, &disk, rig_answer, NULL) == 0);
	return answer(before);
}

int rig_remove(unsigned member)
{
	unsigned before = rig.answers;

	assert(array_remove(rig.array, member, rig_answer, NULL) == 0);
	return answer(before);
}

static void close_disks(void)
{
	for (unsigned i = 0; i < RIG_DISKS; i++) {
		if (rig.disks[i])
			blk_unref(&rig.disks[i]->blk);
		rig.disks[i] = NULL;
		assert(!rig.is_open[i]); /* nobody kept a reference */
	}
}

int rig_stop(void)
{
	unsigned before = rig.answers;
	int error;

	array_stop(rig.array, rig_answer, NULL);
	error = answer(before);
	rig.array = NULL;
	close_disks();
	return error;
}

/* Disks fail from now on, so nothing changes them while the array is taken down. */
void rig_power_cut(void)
{
	for (unsigned i = 0; i < RIG_DISKS; i++) {
		struct rig_disk *disk = rig.disks[i];

		if (!disk)
			continue;
		disk->fail = disk->fail_reads = RIG_ALL;
		disk->error = -EIO;
		rig_release(i);
	}
	fake_env_run(rig.env);
	if (rig.array)
		rig_stop();
	else
		close_disks();
}

struct array_info rig_info(void)
{
	struct array_info info;

	array_info(rig.array, &info);
	return info;
}

/* --- host I/O --- */

struct rig_io *rig_send(enum io_op op, uint64_t offset, uint64_t length, uint64_t seed)
{
	struct rig_io *io = calloc(1, sizeof(*io));

	assert(io);
	io->buf = aligned_alloc(4096, max_u64(align_up(length, 4096), 4096));
	assert(io->buf);
	if (op == IO_WRITE)
		fake_fill(io->buf, length, seed);
	io->iov = (struct iovec){ io->buf, length };
	io_init(&io->io, op, offset, length, &io->iov, op == IO_READ || op == IO_WRITE);
	io->io.flags = io_op_modifies(op) ? IO_FUA : 0;
	blk_submit(array_blk(rig.array), &io->io, fake_wait_done, &io->wait);
	fake_env_run(rig.env);
	return io;
}

bool rig_ended(const struct rig_io *io)
{
	assert(io->wait.calls <= 1);
	return io->wait.calls;
}

int rig_take(struct rig_io *io)
{
	int error = io->wait.error;

	assert(rig_ended(io));
	free(io->buf);
	free(io);
	return error;
}

int rig_write(uint64_t offset, uint64_t length, uint64_t seed)
{
	return rig_take(rig_send(IO_WRITE, offset, length, seed));
}

int rig_read(uint64_t offset, uint64_t length, uint64_t seed)
{
	struct rig_io *io = rig_send(IO_READ, offset, length, 0);
	uint8_t *wanted = malloc(length);
	bool same;

	assert(wanted);
	fake_fill(wanted, length, seed);
	same = memcmp(io->buf, wanted, length) == 0;
	free(wanted);
	if (io->wait.error || !same) {
		int error = rig_take(io);

		return error ? error : -EILSEQ;
	}
	return rig_take(io);
}

/* --- life --- */

static void quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

void rig_setup(unsigned count, uint64_t size_bytes)
{
	memset(&rig, 0, sizeof(rig));
	log_redirect(quiet);
	rig.env = fake_env_new(1);
	rig.block_size = 512;
	rig.features = BLK_FUA | BLK_UNMAP | BLK_UNMAP_ZEROES | BLK_WRITE_ZEROES;
	for (unsigned i = 0; i < RIG_DISKS; i++)
		rig.sizes[i] = size_bytes;
	for (unsigned i = 0; i < count; i++)
		rig_disk(i);
}

void rig_setup_clean(unsigned level, unsigned count, uint64_t size_bytes)
{
	rig_setup(count, size_bytes);
	rig_create_clean(level, count);
}

void rig_teardown(void)
{
	for (unsigned i = 0; i < RIG_DISKS; i++)
		if (rig.disks[i])
			rig_release(i);
	if (rig.array)
		rig_stop();
	close_disks();
	fake_env_free(rig.env);
	for (unsigned i = 0; i < RIG_DISKS; i++)
		if (rig.bytes[i])
			munmap(rig.bytes[i], rig.sizes[i]);
}
