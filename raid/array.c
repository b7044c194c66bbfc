/* SPDX-License-Identifier: MIT */
/*
 * An array as a whole: its members by index and role, what it is, what it asks of all members.
 *
 * Invariants:
 *  1. roles[] are the members that take host I/O; regions know whether that is everybody.
 *  2. A round of flushes serves those who asked before it began.
 *  3. A page of regions is stored when every member that takes I/O has it, or is out.
 *
 * Not here: coming (create.c, start.c) and going (change.c), labels (membership.c), I/O (the levels).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/canary.h"
#include "core/event.h"
#include "raid/array_int.h"

#define DIRTY_MAX 1024
#define BUFFERS (16 * MIB)
#define CLEAN_AFTER_NS (5 * NS_PER_S)

/* --- who is there --- */

uint32_t array_held_roles(const struct array *array)
{
	uint32_t held = 0;

	for (unsigned i = 0; i < array->label.roles; i++)
		if (array->roles[i] && array->roles[i]->state == MEMBER_IN_SYNC)
			held |= 1u << i;
	return held;
}

static bool whole(const struct array *array)
{
	return array_held_roles(array) == (1u << array->label.roles) - 1;
}

void array_changed(struct array *array)
{
	struct array_watch *watch, *next;

	LIST_FOREACH_SAFE(watch, &array->watches, link, next)
		watch->changed(watch);
}

void array_members_changed(struct array *array)
{
	memset(array->roles, 0, sizeof(array->roles));
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		struct member *member = array->members[i];

		if (member && member->state != MEMBER_OUT)
			array->roles[member->role] = member;
	}
	if (array->regions)
		regions_set_whole(array->regions, whole(array));
	if (array->blk)
		array->state = array->halted ? ARRAY_FAILED :
			       whole(array)  ? ARRAY_HEALTHY :
					       ARRAY_DEGRADED;
	if (array->resync)
		resync_kick(array->resync);
	array_changed(array);
}

bool array_fits(const struct label *label, const struct blk *blk)
{
	const struct raid_level *level = raid_level(label->level);
	uint64_t maps = level && level->equalise ?
				(uint64_t)regions_pages(label->data.length) * REGIONS_PAGE :
				0;

	return blk->block_size == label->block_bytes &&
	       blk->size_bytes >= LABEL_SLOTS * LABEL_SIZE &&
	       label->data.offset + label->data.length <= label_slot_offset(blk->size_bytes, 2) &&
	       label->maps[0].length >= maps && label->maps[1].length >= maps;
}

struct member *array_take(struct array *array, const struct array_disk *disk, unsigned index,
			  enum member_state state)
{
	const struct label_member *entry = &array->label.members[index];
	struct member *member;

	assert(!array->members[index]);
	member = member_new(array, disk, index, entry->role,
			    array->level->equalise ? regions_pages(array->label.data.length) : 0);
	if (!member)
		return NULL;
	if (array->level->take && array->level->take(member) < 0) {
		member_free(member);
		return NULL;
	}
	member->state = state;
	array->members[index] = member;
	return member;
}

void array_bury(struct array *array, unsigned index)
{
	struct member *member = array->members[index];

	if (!member)
		return;
	assert(member->state == MEMBER_OUT);
	array->members[index] = NULL;
	TAILQ_INSERT_TAIL(&array->buried, member, buried);
	member_left(member);
}

void array_halt(struct array *array)
{
	if (array->halted)
		return;
	array->halted = true;
	array->state = ARRAY_FAILED;
	snprintf(array->why, sizeof(array->why),
		 "a write was left half done, and no member is left to do without. Nothing is "
		 "written until it starts anew, which makes it whole");
	event_emit(EVENT_ARRAY_HALTED, array->label.name);
	array_changed(array);
}

void array_lose(struct array *array, const struct bad_range *range)
{
	char bytes[24];

	bad_ranges_add(&array->bad, range);
	snprintf(bytes, sizeof(bytes), "%" PRIu64, range->to - range->from);
	event_emit(EVENT_BLOCKS_LOST, array->label.name, bytes);
	array_changed(array);
}

/* --- flush --- */

static void flush_begin(struct array *array);

static void flush_end(struct array *array)
{
	STAILQ_HEAD(, flush_wait) due = STAILQ_HEAD_INITIALIZER(due);
	struct flush_wait *wait;
	int error = array->flush_error;

	STAILQ_CONCAT(&due, &array->flush_now);
	flush_begin(array);
	while ((wait = STAILQ_FIRST(&due))) {
		STAILQ_REMOVE_HEAD(&due, link);
		wait->fn(wait, error);
	}
}

static void member_flushed(struct member *member, int error)
{
	struct array *array = member->array;

	if (error && array->regions)
		regions_doubt_unflushed(array->regions);
	if (error && !membership_failed(array, member, error, "flush"))
		array->flush_error = error;
	if (--array->flushing == 0)
		flush_end(array);
}

static void flush_begin(struct array *array)
{
	if (array->flushing || STAILQ_EMPTY(&array->flush_next))
		return;
	STAILQ_CONCAT(&array->flush_now, &array->flush_next);
	array->flush_error = 0;
	for (unsigned i = 0; i < array->label.roles; i++)
		array->flushing += array->roles[i] != NULL;
	assert(array->flushing);
	for (unsigned i = 0; i < array->label.roles; i++)
		if (array->roles[i])
			member_flush(array->roles[i], member_flushed);
}

void array_flush(struct array *array, struct flush_wait *wait)
{
	STAILQ_INSERT_TAIL(&array->flush_next, wait, link);
	flush_begin(array);
}

/* --- regions --- */

static void page_stored(struct member *member, unsigned page, int error)
{
	struct array *array = member->array;

	if (error)
		membership_failed(array, member, error, "region map");
	else if (member->state == MEMBER_IN_SYNC)
		array->pages[page].held++;
	if (--array->pages[page].pending == 0)
		regions_stored(array->regions, page, array->pages[page].held ? 0 : -EIO);
}

static void store_page(void *arg, unsigned page, unsigned copy, const void *bytes)
{
	struct array *array = arg;

	array->pages[page].pending = array->pages[page].held = 0;
	for (unsigned i = 0; i < array->label.roles; i++)
		array->pages[page].pending += array->roles[i] != NULL;
	assert(array->pages[page].pending);
	for (unsigned i = 0; i < array->label.roles; i++)
		if (array->roles[i])
			member_write_page(array->roles[i], page, copy, bytes, page_stored);
}

static void regions_flush_done(struct flush_wait *wait, int error)
{
	struct array *array = container_of(wait, struct array, regions_flush);

	regions_flushed(array->regions, error);
}

static void flush_for_regions(void *arg)
{
	struct array *array = arg;

	array->regions_flush.fn = regions_flush_done;
	if (canary(CANARY_CLEAN)) {
		regions_flushed(array->regions, 0);
		return;
	}
	array_flush(array, &array->regions_flush);
}

static void regions_idle(void *arg)
{
	struct array *array = arg;

	array->regions_ended(array);
}

int array_make_regions(struct array *array)
{
	static const struct regions_ops ops = {
		.store = store_page,
		.flush = flush_for_regions,
		.idle = regions_idle,
	};
	const struct regions_conf conf = {
		.env = array->env,
		.size_bytes = array->label.data.length,
		.tag = array_tag(&array->label),
		/* Lives begin with new labels, and store less often than that. */
		.sequence_floor = array->label.generation << 32,
		.dirty_max = DIRTY_MAX,
		.clean_after_ns = CLEAN_AFTER_NS,
		.lazy = array->level->replay != NULL,
		.ops = &ops,
		.arg = array,
	};

	if (!array->level->equalise)
		return 0;
	array->regions = regions_new(&conf);
	return array->regions ? 0 : -ENOMEM;
}

/* The array's uuid, folded: pages of another array on the same disk are none of ours. */
uint64_t array_tag(const struct label *label)
{
	uint64_t halves[2];

	static_assert(sizeof(halves) == sizeof(uuid_t), "two halves");
	memcpy(halves, label->array, sizeof(halves));
	return halves[0] ^ halves[1];
}

/* --- life --- */

int array_go_online(struct array *array)
{
	struct resync *resync = array->level->equalise ? resync_new(array) : NULL;

	if (array->level->equalise && !resync)
		return -ENOMEM;
	array->blk = array->level->start(array);
	if (!array->blk) {
		free(resync);
		return -ENOMEM;
	}
	array->resync = resync;
	array->why[0] = '\0';
	array_members_changed(array);
	return 0;
}

struct array *array_new(struct env *env)
{
	struct array *array = calloc(1, sizeof(*array));

	if (!array)
		return NULL;
	array->env = env;
	array->state = ARRAY_WAITING;
	array->buffers_bytes = BUFFERS;
	STAILQ_INIT(&array->flush_next);
	STAILQ_INIT(&array->flush_now);
	TAILQ_INIT(&array->buried);
	array->membership = membership_new(array);
	if (!array->membership) {
		free(array);
		return NULL;
	}
	return array;
}

void array_free(struct array *array)
{
	struct member *member, *next;

	assert(!array->resync && !array->flushing && LIST_EMPTY(&array->watches));
	if (array->blk)
		blk_unref(array->blk);
	if (array->regions)
		regions_free(array->regions);
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		if (array->members[i])
			member_free(array->members[i]);
	TAILQ_FOREACH_SAFE(member, &array->buried, buried, next)
		member_free(member);
	membership_free(array->membership);
	free(array);
}

/* --- what it is --- */

struct blk *array_blk(struct array *array)
{
	return array->blk;
}

void array_watch(struct array *array, struct array_watch *watch)
{
	LIST_INSERT_HEAD(&array->watches, watch, link);
}

void array_unwatch(struct array_watch *watch)
{
	LIST_REMOVE(watch, link);
}

static void member_info(const struct array *array, unsigned index, struct array_member_info *info)
{
	const struct label_member *entry = &array->label.members[index];
	const struct member *member = array->members[index];

	*info = (struct array_member_info){
		.index = index,
		.role = entry->role,
		.state = entry->state,
		.present = member != NULL,
	};
	uuid_copy(info->uuid, entry->uuid);
	if (!member)
		return;
	snprintf(info->name, sizeof(info->name), "%s", member->name);
	member_errors(member, &info->read_errors, &info->write_errors);
	if (member->state == MEMBER_OUT && entry->state != LABEL_REMOVED) {
		info->state = LABEL_FAILED;
		memcpy(info->cause, member->cause, sizeof(info->cause));
	}
	if (member->blk && member->blk->latency)
		info->p99_ns = hist_percentile(member->blk->latency, 99);
}

const char *array_member_text(unsigned index, char *text)
{
	snprintf(text, 8, "d%u", index % LABEL_MEMBERS_MAX);
	return text;
}

void array_info(const struct array *array, struct array_info *info)
{
	const struct label *label = &array->label;
	const struct raid_level *level = raid_level(label->level);
	struct regions_counts counts = { 0 };

	memset(info, 0, sizeof(*info));
	uuid_copy(info->uuid, label->array);
	memcpy(info->name, label->name, sizeof(info->name));
	memcpy(info->why, array->why, sizeof(info->why));
	info->state = array->state;
	info->waits = array->waits;
	info->level = label->level;
	info->roles = label->roles;
	info->chunk_bytes = label->chunk_bytes;
	info->block_bytes = label->block_bytes;
	info->size_bytes = level ? level->size(label) : 0;
	info->log_stripes = label->flags & LABEL_LOG_STRIPES;
	if (array->regions)
		regions_counts(array->regions, &counts);
	info->regions_total = counts.total;
	info->regions_dirty = counts.dirty;
	info->regions_doubtful = counts.doubtful;
	info->region_bytes = regions_region_bytes(label->data.length);
	info->bad_ranges = array->bad.count;
	info->bad_bytes = bad_ranges_bytes(&array->bad);
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		if (label->members[i].state != LABEL_NONE)
			member_info(array, i, &info->members[info->member_count++]);
}

/* A role's letter: U in-sync, r rebuilding, _ nobody. */
void array_roles_text(const struct array_info *info, char *text)
{
	char *at = text;

	*at++ = '[';
	memset(at, '_', info->roles);
	for (unsigned i = 0; i < info->member_count; i++) {
		const struct array_member_info *member = &info->members[i];

		if (!member->present || member->role >= info->roles)
			continue;
		if (member->state == LABEL_IN_SYNC)
			at[member->role] = 'U';
		else if (member->state == LABEL_REBUILDING)
			at[member->role] = 'r';
	}
	at += info->roles;
	*at++ = ']';
	*at = '\0';
}

const char *array_state_name(enum array_state state)
{
	static const char *const names[] = {
		[ARRAY_WAITING] = "incomplete",
		[ARRAY_HEALTHY] = "healthy",
		[ARRAY_DEGRADED] = "degraded",
		[ARRAY_FAILED] = "failed",
	};

	return names[state];
}
