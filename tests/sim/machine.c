/* SPDX-License-Identifier: MIT */
/*
 * An array on the simulated machine.
 *
 * Invariants:
 *  1. Overlapping host commands of which one writes are never under way together.
 *  2. What a command that power cut short did is unknown, even if the software called it done.
 *
 * Not here: the host (host.c), which faults when (scenario.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"
#include "tests/sim/machine_int.h"

#define HOUR_NS (3600 * NS_PER_S)

/* --- disks --- */

static struct world *the_world; /* file leaves ask without an argument */

static unsigned disk_of(int fd)
{
	return (unsigned)fd % SIM_DISKS_MAX;
}

static int64_t medium_size(const struct file_medium *medium)
{
	return (int64_t)world_disk_size(the_world, disk_of(medium->fd));
}

static void medium_close(const struct file_medium *medium)
{
	(void)medium;
}

static int medium_probe(const struct backing_spec *spec, struct file_medium *medium, char *text)
{
	(void)spec;
	(void)medium;
	snprintf(text, BACKING_TEXT_MAX, "not on this machine");
	return -ENXIO;
}

static const struct file_calls calls = {
	.size = medium_size,
	.close = medium_close,
	.probe = medium_probe,
};

/* A leaf over DISK, or NULL: it is gone. */
static struct blk *leaf(struct machine *machine, unsigned disk)
{
	char name[16];
	const struct backing_spec spec = {
		.name = name,
		.driver = BACKING_FILE,
		.path = name,
		.block_size = machine->shape.block_bytes,
	};
	const struct file_medium medium = {
		.fd = world_disk_open(machine->world, machine->disks[disk]),
		.fua = machine->shape.fua_disks,
		.volatile_cache = true,
		.punch = true,
		.size_bytes = world_disk_size(machine->world, machine->disks[disk]),
		.block_size = machine->shape.block_bytes,
		.physical_block = machine->shape.block_bytes,
		.mem_align = 1,
	};

	snprintf(name, sizeof(name), "d%u", disk);
	if (medium.fd < 0)
		return NULL;
	return file_new(world_env(machine->world), &spec, &medium, &calls);
}

/* Who is asked about DISK from now on; for as long as nobody else is. */
static struct blk *new_leaf(struct machine *machine, unsigned disk)
{
	if (machine->leaves[disk])
		blk_unref(machine->leaves[disk]);
	machine->leaves[disk] = leaf(machine, disk);
	return machine->leaves[disk];
}

static void forget_leaves(struct machine *machine)
{
	for (unsigned i = 0; i < machine->shape.disks; i++) {
		if (machine->leaves[i])
			blk_unref(machine->leaves[i]);
		machine->leaves[i] = NULL;
	}
}

/* --- the array --- */

/* One answer at a time. */
static void answered(void *arg, struct array *array, int error, const char *text)
{
	struct machine *machine = arg;

	machine->array = array;
	machine->error = error;
	snprintf(machine->text, sizeof(machine->text), "%s", text);
	machine->done = true;
}

static int wait_answer(struct machine *machine)
{
	uint64_t until_ns = env_now_ns(world_env(machine->world)) + HOUR_NS;

	if (!world_run_until(machine->world, &machine->done, until_ns))
		machine_violated(machine, "the array does not answer within an hour");
	return machine->error;
}

static unsigned offer_all(struct machine *machine, uint32_t present, struct array_disk *disks,
			  char (*names)[16])
{
	unsigned count = 0;

	for (unsigned i = 0; i < machine->shape.disks; i++) {
		struct blk *blk = present >> i & 1 ? new_leaf(machine, i) : NULL;

		if (!blk)
			continue;
		snprintf(names[count], sizeof(names[count]), "d%u", i);
		disks[count] = (struct array_disk){ names[count], blk };
		count++;
	}
	return count;
}

static void host_begin(struct machine *machine)
{
	machine->lock = rangelock_new(world_env(machine->world));
	assert(machine->lock);
	machine->counts.starts++;
	if (!machine->oracle)
		machine->oracle = oracle_new(array_blk(machine->array)->size_bytes);
}

/* A start costs what its memory costs, and hosts run out of little of it more often. */
static void little_memory(struct array *array)
{
	assert(array);
	array->buffers_bytes = MIB;
}

static void create(struct machine *machine)
{
	const struct array_spec spec = {
		.name = "sim",
		.level = machine->shape.level,
		.chunk_bytes = machine->shape.chunk_bytes,
		.log_stripes = !machine->shape.intent,
	};
	struct array_disk disks[SIM_DISKS_MAX];
	char names[SIM_DISKS_MAX][16];
	unsigned count = offer_all(machine, ~0u, disks, names);

	machine->done = false;
	little_memory(
		array_create(world_env(machine->world), &spec, disks, count, answered, machine));
	if (wait_answer(machine)) {
		machine_violated(machine, machine->text);
		return;
	}
	host_begin(machine);
}

/* The uuid of the array that the first labelled disk names. */
static void label_read(void *arg, int error, const struct label *label)
{
	struct machine *machine = arg;

	if (!error)
		memcpy(machine->uuid, label->array, sizeof(machine->uuid));
	machine->done = true;
}

static void find_uuid(struct machine *machine, struct array_disk *disks, unsigned count)
{
	memset(machine->uuid, 0, sizeof(machine->uuid));
	for (unsigned i = 0; i < count && uuid_is_null(machine->uuid); i++) {
		machine->done = false;
		array_probe(world_env(machine->world), disks[i].blk, label_read, machine);
		world_run_until(machine->world, &machine->done, UINT64_MAX);
	}
}

static void start_begins(struct machine *machine, uint32_t present)
{
	const struct array_start how = { 0 };
	struct array_disk disks[SIM_DISKS_MAX];
	char names[SIM_DISKS_MAX][16];
	unsigned count = offer_all(machine, present, disks, names);

	find_uuid(machine, disks, count);
	machine->done = false;
	little_memory(array_start(world_env(machine->world), machine->uuid, disks, count, &how,
				  answered, machine));
}

int machine_start(struct machine *machine, uint32_t present)
{
	struct array_info info;

	start_begins(machine, present);
	if (wait_answer(machine)) {
		int error = machine->error;

		machine->counts.waits++;
		machine_stop(machine);
		return error;
	}
	array_info(machine->array, &info);
	machine->counts.degraded_starts += info.state != ARRAY_HEALTHY;
	host_begin(machine);
	return 0;
}

/* A disk that was out may have come back in another role. */
static void note_roles(struct machine *machine)
{
	for (unsigned i = 0; i < LABEL_ROLES_MAX; i++) {
		const struct member *member = machine->array->roles[i];

		if (member)
			machine->in_role[i] = (unsigned)atoi(member->name + 1);
	}
}

void machine_stop(struct machine *machine)
{
	if (!machine->array)
		return;
	note_roles(machine);
	if (machine->lock) {
		rangelock_free(machine->lock);
		machine->lock = NULL;
	}
	machine->done = false;
	array_stop(machine->array, answered, machine);
	wait_answer(machine);
	machine->array = NULL;
	forget_leaves(machine);
}

/* All of the old life is over but the software, which is taken down. */
static void power_returns(struct machine *machine)
{
	oracle_power_cut(machine->oracle);
	machine_stop(machine);
	world_run_until(machine->world, &(bool){ false }, UINT64_MAX);
	machine->dark = false;
	world_power_on(machine->world);
}

void machine_cut(struct machine *machine, enum world_cut cut)
{
	world_power_cut(machine->world, cut);
	machine->dark = true;
	machine_drain(machine);
	power_returns(machine);
}

bool machine_cut_in_start(struct machine *machine, uint32_t present, unsigned happenings,
			  enum world_cut cut)
{
	bool early;

	start_begins(machine, present);
	while (!machine->done && happenings-- > 0 && world_step(machine->world))
		;
	early = !machine->done;
	world_power_cut(machine->world, cut);
	machine->dark = true;
	wait_answer(machine);
	power_returns(machine);
	return early;
}

/* Of a request to the running array. */
static void request_answered(void *arg, struct array *array, int error, const char *text)
{
	struct machine *machine = arg;

	(void)array;
	machine->error = error;
	snprintf(machine->text, sizeof(machine->text), "%s", text);
	machine->done = true;
}

/*
 * A disk that dropped out is opened anew; until then all have the same of it. Whom the array has
 * let go is ours alone, as are those that it never took.
 */
static bool dropped_out(const struct machine *machine, const struct blk *blk)
{
	const struct array *array = machine->array;
	const struct member *member;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		if (array->members[i] && array->members[i]->blk == blk)
			return array->members[i]->state == MEMBER_OUT;
	TAILQ_FOREACH(member, &array->buried, buried)
		if (member->blk == blk)
			return true;
	return blk->refs == 1;
}

bool machine_begin_add(struct machine *machine, unsigned disk)
{
	struct blk *blk = machine->leaves[disk];
	char name[16];

	if (!blk || dropped_out(machine, blk))
		blk = new_leaf(machine, disk);

	if (!blk)
		return false;
	snprintf(name, sizeof(name), "d%u", disk);
	machine->done = false;
	machine->counts.adds++;
	array_add(machine->array, &(struct array_disk){ name, blk }, request_answered, machine);
	return true;
}

int machine_add(struct machine *machine, unsigned disk)
{
	return machine_begin_add(machine, disk) ? wait_answer(machine) : -ENOENT;
}

/* Its entry that counts; what it was before may be known, too. */
static int index_of(struct machine *machine, unsigned disk, struct array_info *info)
{
	char name[16];
	int at = -1;

	snprintf(name, sizeof(name), "d%u", disk);
	array_info(machine->array, info);
	for (unsigned i = 0; i < info->member_count; i++)
		if (strcmp(info->members[i].name, name) == 0 &&
		    (at < 0 || info->members[i].state == LABEL_IN_SYNC ||
		     info->members[i].state == LABEL_REBUILDING))
			at = (int)i;
	return at;
}

enum label_state machine_member(struct machine *machine, unsigned disk)
{
	struct array_info info;
	int at = index_of(machine, disk, &info);

	return at < 0 ? LABEL_NONE : info.members[at].state;
}

bool machine_begin_remove(struct machine *machine, unsigned disk)
{
	struct array_info info;
	int at = index_of(machine, disk, &info);

	if (at < 0)
		return false;
	machine->done = false;
	array_remove(machine->array, info.members[at].index, request_answered, machine);
	return true;
}

int machine_remove(struct machine *machine, unsigned disk)
{
	return machine_begin_remove(machine, disk) ? wait_answer(machine) : -ENOENT;
}

bool machine_settled(struct machine *machine)
{
	return membership_settled(machine->array);
}

uint64_t machine_data_offset(const struct machine *machine)
{
	return machine->data.offset;
}

/* --- what became of it --- */

static const uint8_t *data_in_role(struct machine *machine, unsigned role)
{
	unsigned disk = machine->disks[machine->in_role[role]];

	return world_disk_bytes(machine->world, disk) + machine->data.offset;
}

static bool all_alike(struct machine *machine, unsigned first, unsigned count, uint64_t *at)
{
	const struct label_area *data = &machine->data;
	const uint8_t *a = data_in_role(machine, first);

	for (unsigned i = 1; i < count; i++) {
		const uint8_t *b = data_in_role(machine, first + i);

		for (*at = 0; *at < data->length; *at += SIM_SECTOR)
			if (memcmp(a + *at, b + *at, SIM_SECTOR) != 0)
				return false;
	}
	return true;
}

static void check_parity(struct machine *machine)
{
	const struct label_area *data = &machine->data;
	const uint8_t *members[SIM_DISKS_MAX];
	char text[96];

	for (unsigned i = 0; i < machine->shape.disks; i++)
		members[i] = world_disk_bytes(machine->world, machine->disks[i]) + data->offset;
	for (uint64_t at = 0; at < data->length; at += 8) {
		uint64_t sum = 0;

		for (unsigned i = 0; i < machine->shape.disks; i++)
			sum ^= get_le64(members[i] + at);
		if (!sum)
			continue;
		snprintf(text, sizeof(text), "parity is wrong at %" PRIu64 " of the data area", at);
		machine_violated(machine, text);
		return;
	}
}

void machine_check_copies(struct machine *machine)
{
	unsigned group = machine->shape.level == 1 ? machine->shape.disks : 2;
	char text[96];
	uint64_t at;

	if (machine->shape.level == 5)
		check_parity(machine);
	if (machine->shape.level != 1 && machine->shape.level != 10)
		return;
	for (unsigned first = 0; first < machine->shape.disks; first += group) {
		if (all_alike(machine, first, group, &at))
			continue;
		snprintf(text, sizeof(text), "copies differ at %" PRIu64 " of the data area", at);
		machine_violated(machine, text);
	}
}

void machine_violated(struct machine *machine, const char *text)
{
	if (!machine->violation[0])
		snprintf(machine->violation, sizeof(machine->violation), "%s", text);
}

const char *machine_violation(const struct machine *machine)
{
	return machine->violation[0] ? machine->violation : NULL;
}

const struct machine_counts *machine_counts(const struct machine *machine)
{
	return &machine->counts;
}

struct array *machine_array(struct machine *machine)
{
	return machine->array;
}

/* --- life --- */

#define LOG_MOST (16 * MIB) /* a simulated disk is memory */

/* Mostly few disks: those stories are quick. 0: 1-16, 1: 2-4, 5: 3-16, 10: 4-16 in pairs. */
static unsigned any_disks(struct world *world, unsigned level)
{
	static const unsigned least[] = { [0] = 1, [1] = 2, [5] = 3, [10] = 4 };
	static const unsigned few[] = { [0] = 5, [1] = 3, [5] = 4, [10] = 3 };
	static const unsigned all[] = { [0] = 16, [1] = 3, [5] = 14, [10] = 7 };
	unsigned kinds = world_chance(world, 80) ? few[level] : all[level];

	return least[level] + world_below(world, kinds) * (level == 10 ? 2 : 1);
}

static uint32_t any_chunk(struct world *world, unsigned level, unsigned disks)
{
	uint32_t chunk = 4096u << world_below(world, 9);

	if (level == 1)
		return 0;
	while (level == 5 && 4ull * disks * chunk > LOG_MOST)
		chunk /= 2;
	return chunk;
}

void machine_shape_any(struct world *world, int level, struct machine_shape *shape)
{
	static const unsigned levels[] = { 0, 1, 1, 1, 5, 5, 5, 10, 10, 10 };

	shape->level = level >= 0 ? (unsigned)level : levels[world_below(world, ARRAY_LEN(levels))];
	shape->disks = any_disks(world, shape->level);
	shape->intent = shape->level == 5 && world_chance(world, 50);
	shape->chunk_bytes = any_chunk(world, shape->level, shape->disks);
	/* Stripes that hosts often write whole. */
	while (shape->intent && shape->chunk_bytes > 4096 &&
	       (shape->disks - 1) * shape->chunk_bytes > MACHINE_IO_MAX / 4)
		shape->chunk_bytes /= 2;
	shape->block_bytes = world_chance(world, 50) ? 512 : 4096;
	shape->disk_bytes =
		4 * MIB + world_below(world, 3) * MIB + world_below(world, 64) * shape->block_bytes;
	if (shape->level == 5) /* its log has room for stripes */
		shape->disk_bytes += align_up(4ull * shape->disks * shape->chunk_bytes, MIB);
	shape->fua_disks = world_chance(world, 50);
	shape->write_cache = world_chance(world, 40);
	shape->uneven = world_chance(world, 50);
	shape->garbage = world_chance(world, 50);
}

struct machine *machine_new(struct world *world, const struct machine_shape *shape)
{
	struct machine *machine = aligned_alloc(_Alignof(struct machine), sizeof(*machine));

	assert(machine);
	memset(machine, 0, sizeof(*machine));
	the_world = world;
	machine->world = world;
	machine->shape = *shape;
	for (unsigned i = 0; i < shape->disks; i++) {
		uint64_t more = shape->uneven ? world_below(world, 2048) * shape->block_bytes : 0;

		machine->disks[i] = world_disk_add(world, shape->disk_bytes + more);
		if (shape->garbage)
			world_disk_fill(world, machine->disks[i]);
	}
	create(machine);
	if (machine->array)
		machine->data = machine->array->label.data;
	return machine;
}

void machine_free(struct machine *machine)
{
	machine_stop(machine);
	world_run_until(machine->world, &(bool){ false }, UINT64_MAX);
	if (machine->oracle)
		oracle_free(machine->oracle);
	free(machine);
}
