/* SPDX-License-Identifier: MIT */
/*
 * The levels as a table: how big, made of what, what may differ.
 *
 * Not here: what they do (raid0.c, mirror.c, raid5.c).
 */
#include <errno.h>

#include "raid/array_int.h"
#include "raid/raid0.h"
#include "raid/raid5_int.h"

/* --- 0 --- */

static uint64_t size_striped(const struct label *label)
{
	return raid0_size(label->data.length, label->chunk_bytes, label->roles);
}

static struct blk *start_0(struct array *array)
{
	struct raid0_part parts[LABEL_ROLES_MAX];

	for (unsigned i = 0; i < array->label.roles; i++)
		parts[i] = (struct raid0_part){ array->roles[i]->blk, array->label.data.offset,
						array->label.data.length };
	return raid0_new(array->env, array->label.name, array->label.chunk_bytes, parts,
			 array->label.roles);
}

/* --- 1 --- */

static uint64_t size_1(const struct label *label)
{
	return label->data.length;
}

static struct blk *start_1(struct array *array)
{
	array->mirrors[0] = mirror_new(array, 0, array->label.roles);
	return array->mirrors[0];
}

/* Mirror by mirror; level 1 has one. */
static void equalise_next(void *arg, int error)
{
	struct array *array = arg;
	struct equalising *now = &array->equalising;

	if (error && !now->error)
		now->error = error;
	if (now->mirror == LABEL_ROLES_MAX / 2 || !array->mirrors[now->mirror]) {
		now->done(array, now->error);
		return;
	}
	mirror_equalise(array->mirrors[now->mirror++], now->offset, now->length, equalise_next,
			array);
}

static void equalise_mirrors(struct array *array, uint64_t offset, uint64_t length,
			     void (*done)(struct array *array, int error))
{
	array->equalising = (struct equalising){ .offset = offset, .length = length, .done = done };
	equalise_next(array, 0);
}

/* --- 5 --- */

static uint64_t size_5(const struct label *label)
{
	return raid0_size(label->data.length, label->chunk_bytes, label->roles - 1);
}

/* --- 10 --- */

static uint64_t size_10(const struct label *label)
{
	return raid0_size(label->data.length, label->chunk_bytes, label->roles / 2);
}

static struct blk *start_10(struct array *array)
{
	struct raid0_part parts[LABEL_ROLES_MAX / 2];
	unsigned count = array->label.roles / 2, made = 0;
	struct blk *blk = NULL;

	for (; made < count; made++) {
		array->mirrors[made] = mirror_new(array, 2 * made, 2);
		if (!array->mirrors[made])
			break;
		parts[made] =
			(struct raid0_part){ array->mirrors[made], 0, array->label.data.length };
	}
	if (made == count)
		blk = raid0_new(array->env, array->label.name, array->label.chunk_bytes, parts,
				count);
	/* What stands on them holds them. */
	while (made-- > 0) {
		blk_unref(array->mirrors[made]);
		if (!blk)
			array->mirrors[made] = NULL;
	}
	return blk;
}

const struct raid_level *raid_level(unsigned level)
{
	static const struct raid_level levels[] = {
		{ .level = 0,
		  .roles_min = 1,
		  .roles_max = 16,
		  .roles_step = 1,
		  .chunked = true,
		  .size = size_striped,
		  .start = start_0 },
		{ .level = 1,
		  .roles_min = 2,
		  .roles_max = 4,
		  .roles_step = 1,
		  .size = size_1,
		  .start = start_1,
		  .equalise = equalise_mirrors },
		{ .level = 5,
		  .roles_min = 3,
		  .roles_max = 16,
		  .roles_step = 1,
		  .chunked = true,
		  .size = size_5,
		  .start = raid5_new,
		  .equalise = raid5_equalise,
		  .take = raid5_take,
		  .replay = raid5_replay,
		  .returning = raid5_returning },
		{ .level = 10,
		  .roles_min = 4,
		  .roles_max = 16,
		  .roles_step = 2,
		  .chunked = true,
		  .size = size_10,
		  .start = start_10,
		  .equalise = equalise_mirrors },
	};

	for (unsigned i = 0; i < ARRAY_LEN(levels); i++)
		if (levels[i].level == level)
			return &levels[i];
	return NULL;
}
