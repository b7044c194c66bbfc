/* SPDX-License-Identifier: MIT */
/*
 * What an array that starts reads of its members.
 *
 *   flush ─▶ replay logs ─▶ flush ─▶ load regions ─▶ what was replayed is in the map ─▶ label
 *                                                                   logs are void ◀── settled
 *
 * Invariants:
 *  1. (I11) Members are flushed before anything of theirs is read, so what a read shows is held.
 *  2. (I10) What was dirty on any of them is doubtful; what a log told of is in the map before a
 *     label voids the log.
 *  3. (I7) A label voids logs only when one before it is settled that says what came of them: who
 *     missed what was replayed, and what is lost. A label that reaches some members only and does
 *     not count would take from their logs what the next start needs.
 *
 * Not here: who the members are, and the label (start.c).
 */
#include "raid/redo.h"
#include "raid/start_int.h"

bool array_start_void(struct array_start_state *start)
{
	struct array *array = start->array;

	if (!start->replayed || start->voided)
		return false;
	start->voided = true;
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		if (array->members[i] && array->members[i]->redo)
			array->members[i]->log_incarnation =
				redo_incarnation(array->members[i]->redo);
	return true;
}

static void regions_held(struct region_hold *hold, int error)
{
	struct array_start_state *start = container_of(hold, struct array_start_state, sync);

	if (error)
		array_start_tell(start, error, "array %s: its region map cannot be written",
				 start->array->label.name);
	else
		array_start_label(start);
}

static void loaded(struct array_start_state *start)
{
	struct array *array = start->array;

	if (array->regions)
		regions_loaded(array->regions);
	start->sync.fn = regions_held;
	if (!array->level->replay || regions_sync(array->regions, &start->sync))
		array_start_label(start);
}

static void page_read(struct member *member, unsigned page, const void *one, const void *two)
{
	struct array *array = member->array;
	struct array_start_state *start = array->start;

	regions_load(array->regions, page, one, two);
	if (page + 1 < regions_pages(array->label.data.length))
		member_read_page(member, page + 1, page_read);
	else if (--start->reading == 0)
		loaded(start);
}

static void load_regions(struct array_start_state *start)
{
	struct array *array = start->array;

	if (!array->regions) {
		loaded(start);
		return;
	}
	for (unsigned i = 0; i < array->label.roles; i++)
		start->reading += array->roles[i] != NULL;
	for (unsigned i = 0; i < array->label.roles; i++)
		if (array->roles[i])
			member_read_page(array->roles[i], 0, page_read);
}

static void replayed(struct array *array, int error)
{
	struct array_start_state *start = array->start;

	if (error) {
		array_start_tell(start, error, "array %s: its logs cannot be replayed",
				 array->label.name);
		return;
	}
	start->replayed = true;
	array_flush(array, &start->flush);
}

static void flushed(struct flush_wait *wait, int error)
{
	struct array_start_state *start = container_of(wait, struct array_start_state, flush);
	struct array *array = start->array;

	if (error)
		array_start_tell(start, error, "array %s: a member cannot flush",
				 array->label.name);
	else if (array->level->replay && !start->replayed)
		array->level->replay(array, replayed);
	else
		load_regions(start);
}

void array_start_load(struct array_start_state *start)
{
	start->flush.fn = flushed;
	array_flush(start->array, &start->flush);
}
