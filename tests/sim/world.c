/* SPDX-License-Identifier: MIT */
/*
 * The simulated machine.
 *
 * Invariants:
 *  1. What happens follows from the seed and the calls alone: events run in the order of
 *     (time, number), numbers in the order of the asking.
 *  2. An operation of an earlier life has no effect and fails.
 *
 * Not here: what becomes of bytes (disk.c), which faults when (scenario.c).
 */
#include "tests/sim/disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"

#define SLOW 20
#define HAPPENINGS_MAX 8192 /* at once */

/* Something that will happen: the end of a disk operation or of work. */
struct happening {
	union {
		RB_ENTRY(happening) node;
		SLIST_ENTRY(happening) free;
	};
	uint64_t at_ns;
	uint64_t number;
	struct env_disk_op *op;
	struct env_work *work;
	struct change *change;  /* of a write */
	uint64_t flush_version; /* a FLUSH covers versions up to it */
};

static int happening_cmp(const struct happening *a, const struct happening *b)
{
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

RB_HEAD(happening_tree, happening);
RB_GENERATE_INTERNAL(happening_tree, happening, node, happening_cmp, static __attribute__((unused)))

struct world {
	struct env env;
	uint64_t now_ns;
	uint64_t chance, software; /* states of the two random streams */
	uint64_t number, version;
	struct happening_tree coming;
	SLIST_HEAD(, happening) unused;
	struct happening happenings[HAPPENINGS_MAX];
	STAILQ_HEAD(, env_disk_op) held[SIM_DISKS_MAX]; /* STUCK */
	struct disk disks[SIM_DISKS_MAX];
	unsigned disk_count;
	unsigned life;
	bool dark; /* power is cut */
	uint64_t trace;
	struct world_counts counts;
};

static struct world *world_of(struct env *env)
{
	return container_of(env, struct world, env);
}

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t world_random(struct world *world)
{
	return draw(&world->chance);
}

unsigned world_below(struct world *world, unsigned bound)
{
	return (unsigned)((world_random(world) >> 32) * bound >> 32);
}

void world_chance_from(struct world *world, uint64_t seed)
{
	world->chance = seed;
}

bool world_chance(struct world *world, unsigned percent)
{
	return world_below(world, 100) < percent;
}

/* --- what is asked of it --- */

static uint64_t now(struct env *env)
{
	return world_of(env)->now_ns;
}

static void random_bytes(struct env *env, void *buf, size_t len_bytes)
{
	uint8_t *out = buf;

	for (size_t i = 0; i < len_bytes; i++)
		out[i] = (uint8_t)draw(&world_of(env)->software);
}

static void come(struct world *world, uint64_t in_ns, struct happening what)
{
	struct happening *next = SLIST_FIRST(&world->unused);

	assert(next);
	SLIST_REMOVE_HEAD(&world->unused, free);
	*next = what;
	next->at_ns = world->now_ns + in_ns;
	next->number = ++world->number;
	RB_INSERT(happening_tree, &world->coming, next);
}

static unsigned disk_index(const struct world *world, int fd)
{
	unsigned disk = (unsigned)fd % SIM_DISKS_MAX;

	assert(fd >= 0 && disk < world->disk_count);
	return disk;
}

static uint64_t service_ns(struct world *world, const struct disk *disk,
			   const struct env_disk_op *op)
{
	uint64_t ns = 20 * NS_PER_US + world_below(world, 180) * NS_PER_US;

	if (op->kind == ENV_DISK_FLUSH)
		ns *= 3;
	if (world_chance(world, 2))
		ns *= 10;
	return disk->fault == WORLD_FAULT_SLOW ? ns * SLOW : ns;
}

static bool current(const struct world *world, const struct env_disk_op *op)
{
	return !world->dark && (unsigned)op->fd / SIM_DISKS_MAX == world->life;
}

static bool fits(const struct disk *disk, const struct env_disk_op *op)
{
	return op->kind == ENV_DISK_FLUSH ||
	       (op->offset <= disk->size_bytes && op->length <= disk->size_bytes - op->offset);
}

static void begin(struct world *world, struct env_disk_op *op)
{
	struct disk *disk = &world->disks[disk_index(world, op->fd)];
	struct happening end = { .op = op, .flush_version = world->version };

	if (current(world, op) && fits(disk, op))
		end.change = disk_begin(disk, op);
	come(world, service_ns(world, disk, op), end);
}

static void disk_submit(struct env *env, struct env_disk_op *op)
{
	struct world *world = world_of(env);
	unsigned index = disk_index(world, op->fd);

	assert(op->offset % SIM_SECTOR == 0 && op->length % SIM_SECTOR == 0);
	world->counts.ops[op->kind]++;
	if (world->disks[index].fault == WORLD_FAULT_STUCK && !world->dark)
		STAILQ_INSERT_TAIL(&world->held[index], op, link);
	else
		begin(world, op);
}

static void work_submit(struct env *env, struct env_work *work)
{
	struct world *world = world_of(env);

	come(world, world_below(world, 500) * NS_PER_US, (struct happening){ .work = work });
}

static const struct env_ops world_ops = {
	.now_ns = now,
	.boottime_ns = now,
	.random = random_bytes,
	.disk_submit = disk_submit,
	.work_submit = work_submit,
};

/* --- what becomes of it --- */

static void trace(struct world *world, uint64_t value)
{
	world->trace = (world->trace ^ value) * 0x9e3779b97f4a7c15;
	world->trace ^= world->trace >> 29;
}

static void trace_op(struct world *world, const struct env_disk_op *op)
{
	trace(world, world->now_ns);
	trace(world, (uint64_t)op->fd << 8 | op->kind);
	trace(world, op->offset);
	trace(world, op->length << 8 | (uint8_t)-op->result);
	if (op->result || (op->kind != ENV_DISK_READ && op->kind != ENV_DISK_WRITE))
		return;
	for (unsigned i = 0; i < op->iov_count; i++)
		for (size_t at = 0; at + 8 <= op->iov[i].iov_len; at += SIM_SECTOR)
			trace(world, get_le64((const uint8_t *)op->iov[i].iov_base + at));
}

uint64_t world_trace(const struct world *world)
{
	return world->trace;
}

static int end_op(struct world *world, struct happening *end)
{
	struct env_disk_op *op = end->op;
	struct disk *disk = &world->disks[disk_index(world, op->fd)];
	int error;

	if (!current(world, op))
		return -EIO;
	if (!fits(disk, op))
		return op->kind == ENV_DISK_READ ? -ENODATA : -ENOSPC;
	error = disk_end(disk, op, end->change, end->flush_version, world, &world->version);
	world->counts.failed += error != 0;
	return error;
}

static void happen(struct world *world)
{
	struct happening *next = RB_MIN(happening_tree, &world->coming);
	struct env_disk_op *op = next->op;
	struct env_work *work = next->work;

	RB_REMOVE(happening_tree, &world->coming, next);
	world->now_ns = max_u64(world->now_ns, next->at_ns);
	if (op)
		op->result = end_op(world, next);
	SLIST_INSERT_HEAD(&world->unused, next, free);
	if (op) {
		trace_op(world, op);
		op->done(op);
	} else {
		work->run(work);
		work->done(work);
	}
}

bool world_step(struct world *world)
{
	struct happening *next = RB_MIN(happening_tree, &world->coming);
	uint64_t timer_ns = env_next_timer_ns(&world->env);

	world->counts.events++;
	if (!STAILQ_EMPTY(&world->env.deferred)) {
		env_run_deferred(&world->env);
	} else if (timer_ns != UINT64_MAX && (!next || timer_ns <= next->at_ns)) {
		world->now_ns = max_u64(world->now_ns, timer_ns);
		env_run_timers(&world->env);
	} else if (next) {
		happen(world);
	} else {
		return false;
	}
	return true;
}

static uint64_t next_ns(struct world *world)
{
	struct happening *next = RB_MIN(happening_tree, &world->coming);

	if (!STAILQ_EMPTY(&world->env.deferred))
		return world->now_ns;
	return min_u64(env_next_timer_ns(&world->env), next ? next->at_ns : UINT64_MAX);
}

bool world_run_until(struct world *world, const bool *done, uint64_t until_ns)
{
	while (!*done && next_ns(world) <= until_ns)
		if (!world_step(world))
			break;
	return *done;
}

void world_run_for(struct world *world, uint64_t ns)
{
	uint64_t end_ns = world->now_ns + ns;

	while (next_ns(world) <= end_ns && world_step(world))
		;
	world->now_ns = max_u64(world->now_ns, end_ns);
}

/* --- disks --- */

unsigned world_disk_add(struct world *world, uint64_t size_bytes)
{
	assert(world->disk_count < SIM_DISKS_MAX);
	disk_init(&world->disks[world->disk_count], size_bytes);
	STAILQ_INIT(&world->held[world->disk_count]);
	return world->disk_count++;
}

uint64_t world_disk_size(const struct world *world, unsigned disk)
{
	return world->disks[disk].size_bytes;
}

int world_disk_open(struct world *world, unsigned disk)
{
	assert(disk < world->disk_count && !world->dark);
	if (world->disks[disk].fault == WORLD_FAULT_GONE)
		return -ENOENT;
	return (int)(world->life * SIM_DISKS_MAX + disk);
}

static void let_go(struct world *world, unsigned disk)
{
	struct env_disk_op *op;

	while ((op = STAILQ_FIRST(&world->held[disk]))) {
		STAILQ_REMOVE_HEAD(&world->held[disk], link);
		begin(world, op);
	}
}

void world_disk_fault(struct world *world, unsigned disk, enum world_fault fault)
{
	world->disks[disk].fault = fault;
	if (fault != WORLD_FAULT_STUCK)
		let_go(world, disk);
}

enum world_fault world_disk_fault_now(const struct world *world, unsigned disk)
{
	return world->disks[disk].fault;
}

void world_disk_bad(struct world *world, unsigned disk, uint64_t offset, uint64_t length)
{
	memset(world->disks[disk].bad + offset / SIM_SECTOR, 1, length / SIM_SECTOR);
}

void world_disk_mend(struct world *world, unsigned disk)
{
	memset(world->disks[disk].bad, 0, world->disks[disk].size_bytes / SIM_SECTOR);
}

bool world_disk_has_bad(const struct world *world, unsigned disk)
{
	const struct disk *of = &world->disks[disk];

	return memchr(of->bad, 1, of->size_bytes / SIM_SECTOR) != NULL;
}

bool world_disk_fill(struct world *world, unsigned disk)
{
	struct disk *of = &world->disks[disk];

	if (!disk_forget(of))
		return false;
	memset(of->bad, 0, of->size_bytes / SIM_SECTOR);
	for (uint64_t i = 0; i < of->size_bytes; i += 8)
		put_le64(of->seen + i, world_random(world));
	memcpy(of->stable, of->seen, of->size_bytes);
	world->version++;
	for (uint64_t i = 0; i < of->size_bytes / SIM_SECTOR; i++)
		of->versions[i] = world->version;
	return true;
}

unsigned world_writes_in(const struct world *world, uint64_t from, uint64_t to)
{
	struct happening *next;
	unsigned count = 0;

	RB_FOREACH(next, happening_tree, &((struct world *)world)->coming)
		count += next->op && next->op->kind == ENV_DISK_WRITE && next->op->offset >= from &&
			 next->op->offset < to;
	return count;
}

uint8_t *world_disk_bytes(struct world *world, unsigned disk)
{
	return world->disks[disk].seen;
}

void world_disk_remember(struct world *world, unsigned disk)
{
	struct disk *of = &world->disks[disk];

	if (!of->memory)
		of->memory = malloc(of->size_bytes);
	assert(of->memory);
	memcpy(of->memory, of->seen, of->size_bytes);
}

void world_disk_recall(struct world *world, unsigned disk)
{
	struct disk *of = &world->disks[disk];

	assert(of->memory && TAILQ_EMPTY(&of->changes));
	memcpy(of->seen, of->memory, of->size_bytes);
	memcpy(of->stable, of->memory, of->size_bytes);
	for (uint64_t i = 0; i < of->size_bytes / SIM_SECTOR; i++)
		of->versions[i] = world->version;
}

/* --- power --- */

void world_power_cut(struct world *world, enum world_cut cut)
{
	struct happening *next;

	assert(!world->dark);
	RB_FOREACH(next, happening_tree, &world->coming)
		next->change = NULL;
	for (unsigned i = 0; i < world->disk_count; i++)
		disk_cut(&world->disks[i], cut, world, &world->version, &world->counts);
	world->dark = true;
	for (unsigned i = 0; i < world->disk_count; i++)
		let_go(world, i);
}

static bool idle(struct world *world)
{
	return RB_EMPTY(&world->coming) && STAILQ_EMPTY(&world->env.deferred) &&
	       RB_EMPTY(&world->env.timers);
}

void world_power_on(struct world *world)
{
	assert(world->dark && idle(world));
	world->dark = false;
	world->life++;
}

const struct world_counts *world_counts(const struct world *world)
{
	return &world->counts;
}

struct env *world_env(struct world *world)
{
	return &world->env;
}

struct world *world_new(uint64_t seed)
{
	struct world *world = calloc(1, sizeof(*world));

	assert(world);
	env_init(&world->env, &world_ops);
	world->now_ns = 1000 * NS_PER_S;
	world->chance = seed;
	world->software = ~seed;
	RB_INIT(&world->coming);
	SLIST_INIT(&world->unused);
	for (unsigned i = HAPPENINGS_MAX; i-- > 0;)
		SLIST_INSERT_HEAD(&world->unused, &world->happenings[i], free);
	return world;
}

void world_free(struct world *world)
{
	assert(idle(world));
	for (unsigned i = 0; i < world->disk_count; i++)
		disk_free(&world->disks[i]);
	free(world);
}
