/* SPDX-License-Identifier: MIT */
/*
 * The simulated host: random commands, as a LUN would pass them on, and what their answers mean.
 *
 * Not here: the array's life (machine.c).
 */
#include <stdio.h>

#include "tests/sim/machine_int.h"

#define HOUR_NS (3600 * NS_PER_S)

static struct command *free_command(struct machine *machine)
{
	for (unsigned i = 0; i < MACHINE_IOS; i++)
		if (!machine->commands[i].busy)
			return &machine->commands[i];
	return NULL;
}

static void judge_read(struct command *command)
{
	struct machine *machine = command->machine;
	const struct io *io = &command->io;
	const char *wrong = NULL;

	if (machine->dark)
		return;
	if (!io->error)
		wrong = oracle_read(machine->oracle, io->offset, io->length, command->buf);
	else if (command->strict)
		wrong = "a read failed though nothing is wrong any more";
	if (wrong)
		machine_violated(machine, wrong);
}

static void judge(struct command *command)
{
	struct machine *machine = command->machine;
	const struct io *io = &command->io;
	bool good = !io->error && !machine->dark;

	switch (io->op) {
	case IO_READ:
		judge_read(command);
		break;
	case IO_FLUSH:
		if (good)
			oracle_flushed(machine->oracle, command->mark);
		break;
	default:
		oracle_ended(machine->oracle, io->offset, io->length,
			     !good              ? ORACLE_UNKNOWN :
			     io->flags & IO_FUA ? ORACLE_DURABLE :
						  ORACLE_VOLATILE);
	}
	machine->counts.errors += io->error != 0 && !machine->dark;
}

static void command_done(struct io *io, void *arg)
{
	struct command *command = arg;
	struct machine *machine = command->machine;

	judge(command);
	if (io->op != IO_FLUSH)
		rangelock_release(machine->lock, &command->range);
	command->busy = false;
	machine->idle = --machine->busy == 0;
}

static void go(struct command *command)
{
	struct machine *machine = command->machine;
	struct io *io = &command->io;

	if (io_op_modifies(io->op))
		oracle_write(machine->oracle, io->offset, io->length,
			     io->op == IO_WRITE ? command->buf : NULL, io->op != IO_WRITE);
	blk_submit(array_blk(machine->array), io, command_done, command);
}

static void granted(struct rangelock_hold *range)
{
	go(container_of(range, struct command, range));
}

static void submit(struct command *command, enum io_op op, uint64_t offset, uint64_t length)
{
	struct machine *machine = command->machine;
	struct io *io = &command->io;

	command->busy = true;
	machine->busy++;
	machine->idle = false;
	command->iov = (struct iovec){ command->buf, length };
	io_init(io, op, offset, length, &command->iov, op == IO_READ || op == IO_WRITE);
	if (op == IO_FLUSH) {
		command->mark = oracle_flush_begins(machine->oracle);
		blk_submit(array_blk(machine->array), io, command_done, command);
		return;
	}
	if (io_op_modifies(op) && !machine->shape.write_cache)
		io->flags = IO_FUA;
	command->range = (struct rangelock_hold){
		.offset = offset,
		.length = length,
		.exclusive = io_op_modifies(op),
		.fn = granted,
	};
	if (rangelock_take(machine->lock, &command->range))
		go(command);
}

/* Most commands are small and near each other, some are long, some anywhere. */
static void random_range(struct machine *machine, uint64_t *offset, uint64_t *length)
{
	struct world *world = machine->world;
	uint32_t block = machine->shape.block_bytes;
	uint64_t size = array_blk(machine->array)->size_bytes;
	uint64_t near = min_u64(size, 512 * KIB);
	uint64_t from = world_chance(world, 80) ? near : size;
	uint64_t most = world_chance(world, 80) ? 8 : MACHINE_IO_MAX / block;

	*offset = world_random(world) % (from / block) * block;
	*length = (1 + world_random(world) % most) * block;
	*length = min_u64(*length, size - *offset);
}

bool machine_submit(struct machine *machine)
{
	struct command *command = free_command(machine);
	struct world *world = machine->world;
	unsigned features = array_blk(machine->array)->features;
	unsigned kind = world_below(world, 100);
	uint64_t offset, length;

	if (!command)
		return false;
	command->machine = machine;
	command->strict = false;
	random_range(machine, &offset, &length);
	if (kind < 45) {
		machine->counts.reads++;
		submit(command, IO_READ, offset, length);
	} else if (kind < 90 || (kind < 96 && !(features & BLK_WRITE_ZEROES))) {
		machine->counts.writes++;
		submit(command, IO_WRITE, offset, length);
	} else if (kind < 96) {
		machine->counts.writes++;
		submit(command, kind < 93 && features & BLK_UNMAP ? IO_UNMAP : IO_WRITE_ZEROES,
		       offset, length);
	} else {
		machine->counts.flushes++;
		submit(command, IO_FLUSH, 0, 0);
	}
	return true;
}

bool machine_drain(struct machine *machine)
{
	uint64_t until_ns = env_now_ns(world_env(machine->world)) + HOUR_NS;

	machine->idle = machine->busy == 0;
	if (world_run_until(machine->world, &machine->idle, until_ns))
		return true;
	machine_violated(machine, "a command is not answered within an hour");
	return false;
}

void machine_read_all(struct machine *machine, bool strict)
{
	uint64_t size = array_blk(machine->array)->size_bytes;

	for (uint64_t at = 0; at < size; at += MACHINE_IO_MAX) {
		struct command *command = free_command(machine);

		if (!command) {
			machine_drain(machine);
			command = free_command(machine);
		}
		command->machine = machine;
		command->strict = strict;
		submit(command, IO_READ, at, min_u64(MACHINE_IO_MAX, size - at));
	}
	machine_drain(machine);
}
