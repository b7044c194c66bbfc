/* SPDX-License-Identifier: MIT */
/*
 * The simulated host: random commands, as a LUN would pass them on, and what their answers mean.
 *
 * Not here: the array's life (machine.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/machine_int.h"

#define HOUR_NS (3600 * NS_PER_S)
#define NEAR (512 * KIB) /* what hosts mostly use */
#define PIECE 4096u      /* of a read that failed: not all of it is lost */

static struct command *free_command(struct machine *machine)
{
	for (unsigned i = 0; i < MACHINE_IOS; i++) {
		struct command *command = &machine->commands[i];

		if (command->busy)
			continue;
		command->machine = machine;
		command->strict = false;
		command->error = NULL;
		command->pieces_end = 0;
		return command;
	}
	return NULL;
}

/* What was torn may be lost, where full stripes are not logged whole; nothing else is. */
static bool may_fail(const struct command *command)
{
	const struct machine *machine = command->machine;
	const struct io *io = &command->io;

	return machine->shape.intent && io->op == IO_READ &&
	       !oracle_read_failed(machine->oracle, io->offset, io->length);
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
	else if (command->strict && !may_fail(command))
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
			     machine->dark      ? ORACLE_UNKNOWN :
			     io->error          ? ORACLE_FAILED :
			     io->flags & IO_FUA ? ORACLE_DURABLE :
						  ORACLE_VOLATILE);
	}
	if (machine->dark || !io->error)
		return;
	machine->counts.errors++;
	if (machine->must_work && !may_fail(command))
		machine_violated(machine, "a command failed though enough disks work");
}

static void say(const struct command *command, const char *what, int error)
{
	const struct io *io = &command->io;
	uint64_t now_ns = env_now_ns(world_env(command->machine->world));

	if (command->machine->say)
		printf("%12.6f   %-12s %s%s sectors %" PRIu64 "+%" PRIu64 " %s\n",
		       (double)now_ns / NS_PER_S - 1000, what, io_op_name(io->op),
		       io->flags & IO_FUA ? " fua" : "", io->offset / SIM_SECTOR,
		       io->length / SIM_SECTOR, error ? strerror(-error) : "");
}

static void submit(struct command *command, enum io_op op, uint64_t offset, uint64_t length);

/* What of a long read cannot be had is in one place of it: the rest is, and is looked at. */
static void go_on_in_pieces(struct command *command)
{
	const struct io *io = &command->io;
	uint64_t next = io->offset + io->length;

	if (!command->pieces_end || command->machine->dark)
		return;
	if (io->error && io->length > PIECE)
		next = io->offset;
	if (next < command->pieces_end)
		submit(command, IO_READ, next, min_u64(PIECE, command->pieces_end - next));
}

static void command_done(struct io *io, void *arg)
{
	struct command *command = arg;
	struct machine *machine = command->machine;

	say(command, machine->dark ? "power cut" : "answered", io->error);
	judge(command);
	if (command->error)
		*command->error = io->error;
	if (io->op != IO_FLUSH)
		rangelock_release(machine->lock, &command->range);
	command->busy = false;
	machine->idle = --machine->busy == 0;
	go_on_in_pieces(command);
}

static void go(struct command *command)
{
	struct machine *machine = command->machine;
	struct io *io = &command->io;

	say(command, "begins", 0);
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
		say(command, "begins", 0);
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
	uint64_t near = min_u64(size, NEAR);
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

static struct command *next_command(struct machine *machine)
{
	struct command *command = free_command(machine);

	if (!command) {
		machine_drain(machine);
		command = free_command(machine);
	}
	return command;
}

/* Not all is answered in an hour: that is said, and nothing more is asked. */
static void read_range(struct machine *machine, uint64_t size, bool strict)
{
	struct command *command;

	for (uint64_t at = 0; at < size; at += MACHINE_IO_MAX) {
		command = next_command(machine);
		if (!command)
			return;
		command->strict = strict;
		command->pieces_end = min_u64(at + MACHINE_IO_MAX, size);
		submit(command, IO_READ, at, command->pieces_end - at);
	}
}

void machine_read_all(struct machine *machine, bool strict)
{
	read_range(machine, array_blk(machine->array)->size_bytes, strict);
	machine_drain(machine);
}

void machine_look(struct machine *machine)
{
	read_range(machine, min_u64(NEAR, array_blk(machine->array)->size_bytes), false);
}

int machine_do(struct machine *machine, enum io_op op, uint64_t offset, uint64_t length)
{
	struct command *command = next_command(machine);
	int error = -EINPROGRESS;

	if (!command)
		return error;
	command->error = &error;
	submit(command, op, offset, length);
	machine_drain(machine);
	return error;
}

bool machine_begin(struct machine *machine, enum io_op op, uint64_t offset, uint64_t length)
{
	struct command *command = free_command(machine);

	if (!command)
		return false;
	submit(command, op, offset, length);
	return true;
}

void machine_must_work(struct machine *machine, bool must)
{
	machine->must_work = must;
}

void machine_say(struct machine *machine, bool yes)
{
	machine->say = yes;
}
