/* SPDX-License-Identifier: MIT */
/*
 * Arrays are made.
 *
 *   probe ─▶ everything doubtful, durably ─▶ label ─▶ online: the resync makes copies equal
 *
 *   disk   | slots 0 1 | region pages | again | log | up to a MiB boundary | data ... | slots 2 3 |
 *
 * Invariants:
 *  1. The layout is the same on all members and follows from the smallest.
 *  2. A disk says that it is a member only when what is doubtful is durable.
 *  3. A label's sequence goes on from what the disk carried: no older one outlives it there.
 *
 * Not here: whether a disk carries something (whoever offers it).
 * Spec: yoke-disk(5).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "raid/start_int.h"

#define SMALLEST (4 * MIB)
#define LOG_MAX (128 * MIB)

/* --- what can be made --- */

static int refuse(char *text, size_t size, const char *name, const char *fmt, ...)
	PRINTF_LIKE(4, 5);

static int refuse(char *text, size_t size, const char *name, const char *fmt, ...)
{
	int used = snprintf(text, size, "array %.*s: ", LABEL_NAME_MAX, name);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + used, size - (size_t)used, fmt, args);
	va_end(args);
	return -EINVAL;
}

static int check_shape(const struct array_spec *spec, unsigned count, char *text, size_t size)
{
	const struct raid_level *level = raid_level(spec->level);
	uint32_t chunk = spec->chunk_bytes;

	if (!label_name_sound(spec->name))
		return refuse(text, size, spec->name,
			      "a name has 1 to %d printable characters, and no blanks",
			      LABEL_NAME_MAX - 1);
	if (!level)
		return refuse(text, size, spec->name, "there is no level %u. Use 0, 1, 5 or 10",
			      spec->level);
	if (count < level->roles_min || count > level->roles_max || count % level->roles_step)
		return refuse(text, size, spec->name, "level %u takes %u to %u disks%s, not %u",
			      spec->level, level->roles_min, level->roles_max,
			      level->roles_step > 1 ? ", an even number" : "", count);
	if (!level->chunked && chunk)
		return refuse(text, size, spec->name, "level %u has no chunks", spec->level);
	if (level->chunked && (chunk < 4 * KIB || chunk > MIB || chunk & (chunk - 1)))
		return refuse(text, size, spec->name,
			      "a chunk is a power of two from 4K to 1M, not %u", chunk);
	return 0;
}

static int check_disks(const struct array_spec *spec, const struct array_disk *disks,
		       unsigned count, char *text, size_t size)
{
	for (unsigned i = 0; i < count; i++) {
		const struct blk *blk = disks[i].blk;

		for (unsigned k = 0; k < i; k++)
			if (disks[k].blk == blk)
				return refuse(text, size, spec->name, "%s is named twice",
					      disks[i].name);
		if (blk->block_size != disks[0].blk->block_size)
			return refuse(text, size, spec->name,
				      "%s has blocks of %u bytes, %s of %u. Use disks of one kind",
				      disks[0].name, disks[0].blk->block_size, disks[i].name,
				      blk->block_size);
		if (blk->size_bytes < SMALLEST)
			return refuse(text, size, spec->name, "%s is smaller than 4 MiB",
				      disks[i].name);
		if (blk->features & BLK_READ_ONLY)
			return refuse(text, size, spec->name, "%s is read-only", disks[i].name);
	}
	return 0;
}

/* --- the layout --- */

/* A 256th of a disk: what is written between two flushes, and read at every start. */
static uint64_t log_bytes(const struct label *label, uint64_t size_bytes)
{
	uint64_t least = align_up(4ull * label->roles * label->chunk_bytes, MIB);

	return max_u64(least, min_u64(LOG_MAX, align_down(size_bytes / 256, MIB)));
}

/* False: there is no room for data. */
static bool lay_out(struct label *label, const struct array_spec *spec,
		    const struct array_disk *disks, unsigned count)
{
	const struct raid_level *level = raid_level(spec->level);
	uint64_t pages = level->equalise ? REGIONS_PAGES_MAX : 0; /* fewer bytes may need more */
	uint64_t unit = max_u64(spec->chunk_bytes, 64 * KIB);
	uint64_t end = 2 * LABEL_SIZE, size_bytes = UINT64_MAX;

	for (unsigned i = 0; i < count; i++)
		size_bytes = min_u64(size_bytes, disks[i].blk->size_bytes);
	label->roles = count;
	label->chunk_bytes = spec->chunk_bytes;
	for (unsigned copy = 0; pages && copy < 2; copy++) {
		label->maps[copy] = (struct label_area){ end, pages * REGIONS_PAGE };
		end += pages * REGIONS_PAGE;
	}
	if (level->replay) {
		label->log = (struct label_area){ end, log_bytes(label, size_bytes) };
		end += label->log.length;
	}
	label->data.offset = align_up(end, MIB);
	end = label_slot_offset(size_bytes, 2);
	if (label->data.offset + unit > end)
		return false;
	label->data.length = align_down(end - label->data.offset, unit);
	return true;
}

int array_check(const struct array_spec *spec, const struct array_disk *disks, unsigned count,
		char *text, size_t text_size)
{
	int error = check_shape(spec, count, text, text_size);
	struct label label;

	if (!error)
		error = check_disks(spec, disks, count, text, text_size);
	if (!error && !lay_out(&label, spec, disks, count))
		error = refuse(text, text_size, spec->name,
			       "its disks are too small for a log and a chunk of %" PRIu32
			       " KiB. Use smaller chunks or larger disks",
			       spec->chunk_bytes / (uint32_t)KIB);
	return error;
}

/* --- the label --- */

static void random_uuid(struct env *env, uuid_t uuid)
{
	env_random(env, uuid, sizeof(uuid_t));
	uuid[6] = (unsigned char)((uuid[6] & 0x0f) | 0x40); /* RFC 4122: version 4 */
	uuid[8] = (unsigned char)((uuid[8] & 0x3f) | 0x80);
}

static void first_label(struct array *array, const struct array_spec *spec,
			const struct array_disk *disks, unsigned count)
{
	struct label *label = &array->label;
	bool room;

	snprintf(label->name, sizeof(label->name), "%s", spec->name);
	random_uuid(array->env, label->array);
	label->id = 1; /* of no disk: the first that is written succeeds it */
	label->level = spec->level;
	label->block_bytes = disks[0].blk->block_size;
	label->flags = spec->log_stripes ? LABEL_LOG_STRIPES : 0;
	label->created_s = spec->created_s;
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		label->members[i].role = LABEL_NO_ROLE;
	for (unsigned i = 0; i < count; i++) {
		random_uuid(array->env, label->members[i].uuid);
		label->members[i].state = LABEL_IN_SYNC;
		label->members[i].role = (uint8_t)i;
		array->wanted[i] = LABEL_IN_SYNC;
	}
	room = lay_out(label, spec, disks, count);
	assert(room); /* array_check() */
}

static void doubt_stored(struct region_hold *hold, int error)
{
	struct array_start_state *start = container_of(hold, struct array_start_state, sync);

	if (error)
		array_start_tell(start, error, "array %s: a disk cannot be written",
				 start->array->label.name);
	else
		array_start_label(start);
}

/* Copies hold whatever the disks held: equal only once the resync has been there. */
static void create_begin(struct array_start_state *start)
{
	struct array *array = start->array;

	array_members_changed(array);
	if (!array->regions) {
		array_start_label(start);
		return;
	}
	regions_doubt_all(array->regions);
	start->sync.fn = doubt_stored;
	if (regions_sync(array->regions, &start->sync))
		array_start_label(start);
}

static void probe_ended(struct array_start_state *start)
{
	const char *name = start->array->label.name;

	if (--start->probing)
		return;
	if (start->unread)
		array_start_tell(start, -EIO, "array %s: %s cannot be read", name,
				 start->unread->name);
	else if (start->error)
		array_start_tell(start, start->error, "array %s: out of memory", name);
	else
		create_begin(start);
}

static void probed(void *arg, int error, const struct label *label)
{
	struct member *member = arg;
	struct array_start_state *start = member->array->start;

	if (!error)
		member->sequence = label->sequence;
	else if (error == -EIO)
		start->unread = member;
	probe_ended(start);
}

static void probe_members(struct array_start_state *start, unsigned count)
{
	struct array *array = start->array;

	start->probing = 1;
	for (unsigned i = 0; i < count; i++) {
		if (array_probe(array->env, array->members[i]->blk, probed, array->members[i]) == 0)
			start->probing++;
		else
			start->error = -ENOMEM;
	}
	probe_ended(start);
}

struct array *array_create(struct env *env, const struct array_spec *spec,
			   const struct array_disk *disks, unsigned count, array_done_fn *done,
			   void *arg)
{
	struct array_start_state *start = array_start_new(env, done, arg);
	struct array *array;
	char text[256];

	if (!start)
		return NULL;
	array = start->array;
	start->begun = true;
	if (array_check(spec, disks, count, text, sizeof(text)) < 0) {
		array_start_tell(start, -EINVAL, "%s", text);
		return array;
	}
	array->level = raid_level(spec->level);
	first_label(array, spec, disks, count);
	for (unsigned i = 0; i < count; i++)
		if (!array_take(array, &disks[i], i, MEMBER_IN_SYNC))
			break;
	if (!array->members[count - 1] || array_make_regions(array) < 0)
		array_start_tell(start, -ENOMEM, "array %s: out of memory", spec->name);
	else
		probe_members(start, count);
	return array;
}
