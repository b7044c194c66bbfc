/* SPDX-License-Identifier: MIT */
/*
 * A binary heap of due times.
 *
 * Invariants:
 *  1. slots[1..count] is a heap by at_ns, and slots[i]->place is i.
 *  2. due_run() ends even if all that it runs is due again at once.
 *
 * Not here: the clock, and who sleeps until the next one (thread.c).
 */
#include "bench/due.h"

#include <errno.h>
#include <stdlib.h>

int due_heap_grow(struct due_heap *heap, unsigned room)
{
	struct due **slots;

	if (heap->slots && room <= heap->room)
		return 0;
	slots = reallocarray(heap->slots, (size_t)room + 1, sizeof(struct due *));
	if (!slots)
		return -ENOMEM;
	heap->slots = slots;
	heap->room = room;
	return 0;
}

void due_heap_fini(struct due_heap *heap)
{
	free(heap->slots);
	*heap = (struct due_heap){ 0 };
}

static void put(struct due_heap *heap, unsigned place, struct due *due)
{
	heap->slots[place] = due;
	due->place = place;
}

static void up(struct due_heap *heap, unsigned place)
{
	struct due *due = heap->slots[place];

	while (place > 1 && heap->slots[place / 2]->at_ns > due->at_ns) {
		put(heap, place, heap->slots[place / 2]);
		place /= 2;
	}
	put(heap, place, due);
}

static void down(struct due_heap *heap, unsigned place)
{
	struct due *due = heap->slots[place];
	unsigned child;

	while ((child = 2 * place) <= heap->count) {
		if (child < heap->count &&
		    heap->slots[child + 1]->at_ns < heap->slots[child]->at_ns)
			child++;
		if (heap->slots[child]->at_ns >= due->at_ns)
			break;
		put(heap, place, heap->slots[child]);
		place = child;
	}
	put(heap, place, due);
}

void due_clear(struct due_heap *heap, struct due *due)
{
	unsigned place = due->place;
	struct due *last;

	if (place == 0)
		return;
	due->place = 0;
	last = heap->slots[heap->count--];
	if (last == due)
		return;
	put(heap, place, last);
	up(heap, place);
	down(heap, last->place);
}

void due_set(struct due_heap *heap, struct due *due, uint64_t at_ns)
{
	due_clear(heap, due);
	assert(heap->count < heap->room);
	due->at_ns = at_ns;
	put(heap, ++heap->count, due);
	up(heap, heap->count);
}

void due_run(struct due_heap *heap, uint64_t now_ns)
{
	for (unsigned left = heap->count; left > 0 && due_next(heap) <= now_ns; left--) {
		struct due *due = heap->slots[1];

		due_clear(heap, due);
		due->run(due, now_ns);
	}
}

uint64_t due_next(const struct due_heap *heap)
{
	return heap->count ? heap->slots[1]->at_ns : UINT64_MAX;
}

uint64_t due_lag(const struct due *due, uint64_t busy_until_ns, uint64_t now_ns)
{
	return due->at_ns < busy_until_ns ? now_ns - due->at_ns : 0;
}
