/* SPDX-License-Identifier: MIT */
/*
 * The command window of a session: CmdSN in order, and MaxCmdSN from what is free.
 *
 * Invariants:
 * 1. MaxCmdSN never goes back: exp and outstanding grow together.
 * 2. A number inside the window has its place in `held`: size <= mask + 1.
 *
 * Not here: what commands are (command.c), when MaxCmdSN is told (answer.c).
 *
 * Spec: RFC 7143 section 4.2.2.1.
 */
#include "target/iscsi/window.h"

#include <stdlib.h>

#include "core/wire.h"

static char void_mark;
#define VOID ((void *)&void_mark)

bool iscsi_window_init(struct iscsi_window *w, unsigned size, uint32_t first)
{
	unsigned slots = 1;

	assert(size);
	while (slots < size)
		slots *= 2;
	*w = (struct iscsi_window){ .exp = first, .size = size, .mask = slots - 1 };
	w->told_max = iscsi_window_max(w);
	w->held = calloc(slots, sizeof(*w->held));
	return w->held != NULL;
}

void iscsi_window_fini(struct iscsi_window *w)
{
	free(w->held);
	w->held = NULL;
}

enum iscsi_window_verdict iscsi_window_check(const struct iscsi_window *w, uint32_t cmdsn)
{
	if (sna_lt(cmdsn, w->exp) || sna_lt(iscsi_window_max(w), cmdsn))
		return ISCSI_WINDOW_DROP;
	if (w->held[cmdsn & w->mask])
		return ISCSI_WINDOW_DROP;
	return cmdsn == w->exp ? ISCSI_WINDOW_NEXT : ISCSI_WINDOW_HOLD;
}

void iscsi_window_advance(struct iscsi_window *w)
{
	assert(w->outstanding < w->size);
	w->exp++;
	w->outstanding++;
}

void iscsi_window_release(struct iscsi_window *w)
{
	assert(w->outstanding);
	w->outstanding--;
}

void iscsi_window_hold(struct iscsi_window *w, uint32_t cmdsn, void *command)
{
	assert(iscsi_window_check(w, cmdsn) == ISCSI_WINDOW_HOLD);
	w->held[cmdsn & w->mask] = command;
	w->held_count++;
}

void iscsi_window_void(struct iscsi_window *w, uint32_t cmdsn)
{
	if (sna_lt(cmdsn, w->exp) || sna_lt(iscsi_window_max(w), cmdsn))
		return;
	if (!w->held[cmdsn & w->mask])
		w->held_count++;
	w->held[cmdsn & w->mask] = VOID;
}

void *iscsi_window_take(struct iscsi_window *w)
{
	void *command;

	do {
		command = w->held[w->exp & w->mask];
		if (!command)
			return NULL;
		w->held[w->exp & w->mask] = NULL;
		w->held_count--;
		iscsi_window_advance(w);
		if (command == VOID)
			iscsi_window_release(w);
	} while (command == VOID);
	return command;
}

void *iscsi_window_drain(struct iscsi_window *w)
{
	unsigned i;

	for (i = 0; i <= w->mask && w->held_count; i++) {
		void *command = w->held[i];

		if (!command)
			continue;
		w->held[i] = NULL;
		w->held_count--;
		if (command != VOID)
			return command;
	}
	return NULL;
}

void *iscsi_window_find(const struct iscsi_window *w, bool (*match)(void *arg, void *command),
			void *arg)
{
	unsigned i;

	for (i = 0; i <= w->mask && w->held_count; i++)
		if (w->held[i] && w->held[i] != VOID && match(arg, w->held[i]))
			return w->held[i];
	return NULL;
}
