/* SPDX-License-Identifier: MIT */
/*
 * Arrays are found again by their labels.
 *
 *   probe ─▶ decide ─▶ flush ─▶ replay logs ─▶ load regions ─▶ label ─▶ void logs ─▶ online
 *              │  ▲
 *              ▼  │ array_offer(), or the delay is over
 *             waits
 *
 * Invariants:
 *  1. (I9) No host I/O before a label is durable on all members that says who they are.
 *
 * Not here: which disks (assembly.c), their logs and regions (start_load.c), making arrays
 * (create.c), members that come and go later, the end (change.c).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/event.h"
#include "raid/start_int.h"

static void decide(struct array_start_state *start);

/* --- the answer --- */

static void offered_free(struct array_start_state *start)
{
	struct offered *offered;

	while ((offered = STAILQ_FIRST(&start->disks))) {
		STAILQ_REMOVE_HEAD(&start->disks, link);
		assert(!offered->done);
		blk_unref(offered->disk.blk);
		free(offered);
	}
}

static struct offered *next_due(struct array_start_state *start)
{
	struct offered *offered;

	STAILQ_FOREACH(offered, &start->disks, link)
		if (offered->due)
			return offered;
	return NULL;
}

/* Whoever asked before now; disks may be offered from inside the answers. */
static void tell_run(struct env_defer *defer)
{
	struct array_start_state *start = container_of(defer, struct array_start_state, tell);
	struct array *array = start->array;
	array_done_fn *done = start->done;
	struct offered *offered;

	STAILQ_FOREACH(offered, &start->disks, link)
		offered->due = offered->done != NULL;
	start->done = NULL;
	if (done)
		done(start->arg, array, start->error, start->text);
	while ((offered = next_due(start))) {
		done = offered->done;
		offered->due = false;
		offered->done = NULL;
		done(offered->arg, array, start->error, start->text);
		array_change_ended(array);
	}
	if (array->blk)
		offered_free(start);
}

static void tell_later(struct array_start_state *start)
{
	if (!start->tell.queued)
		env_defer(start->array->env, &start->tell);
}

void array_start_tell(struct array_start_state *start, int error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(start->text, sizeof(start->text), fmt, args);
	va_end(args);
	start->error = error;
	if (error && start->array->waits == ARRAY_WAITS_NOT)
		start->array->waits = ARRAY_WAITS_CHOICE;
	if (error)
		snprintf(start->array->why, sizeof(start->array->why), "%s", start->text);
	tell_later(start);
	array_changed(start->array);
}

/* --- online --- */

/* Who was offered too late for the decision is taken in as at any other time. */
static void take_in_late(struct array_start_state *start)
{
	struct array *array = start->array;
	struct offered *offered;

	STAILQ_FOREACH(offered, &start->disks, link) {
		if (offered->probed ||
		    array_add(array, &offered->disk, offered->done, offered->arg) < 0)
			continue;
		offered->done = NULL;
		array_change_ended(array);
	}
}

/* Disks that are there, known, and not members now: they missed something and come back. Who was
 * taken out does not. */
static void take_back_returning(struct array_start_state *start)
{
	struct offered *offered;

	STAILQ_FOREACH(offered, &start->disks, link) {
		struct array *array = start->array;
		int index = offered->error ?
				    -1 :
				    label_find(&array->label,
					       offered->label.members[offered->label.self].uuid);

		if (index >= 0 && !array->members[index] &&
		    array->label.members[index].state == LABEL_FAILED)
			array_add(array, &offered->disk, NULL, NULL);
	}
}

static void settled(struct settle_wait *wait, int error)
{
	struct array_start_state *start = container_of(wait, struct array_start_state, settle);
	struct array *array = start->array;
	struct array_info info;
	char roles[LABEL_ROLES_MAX + 3];

	if (!error && array_start_void(start)) {
		array_start_label(start);
		return;
	}
	if (error || array_go_online(array) < 0) {
		array_start_tell(start, error ? error : -ENOMEM, "array %s: %s", array->label.name,
				 error ? "its labels cannot be written" : "out of memory");
		return;
	}
	array_info(array, &info);
	array_roles_text(&info, roles);
	event_emit(EVENT_ARRAY_STARTED, array->label.name, roles);
	take_back_returning(start);
	take_in_late(start);
	array_start_tell(start, 0, "array %s: %s %s", array->label.name,
			 array_state_name(array->state), roles);
}

void array_start_label(struct array_start_state *start)
{
	struct array *array = start->array;

	array_members_changed(array);
	membership_change(array);
	membership_wait(array, &start->settle);
}

/* --- start --- */

static struct offered *disk_of(struct array_start_state *start, const uuid_t member)
{
	struct offered *offered;

	STAILQ_FOREACH(offered, &start->disks, link)
		if (!offered->error &&
		    uuid_compare(offered->label.members[offered->label.self].uuid, member) == 0)
			return offered;
	return NULL;
}

/* Who is what from now on; members of those who hold everything, or were on their way to. */
static int take_members(struct array_start_state *start)
{
	struct array *array = start->array;
	const struct assembly *decision = &start->decision;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		const struct label_member *entry = &array->label.members[i];
		struct offered *offered = disk_of(start, entry->uuid);
		bool resumes = entry->state == LABEL_REBUILDING && offered &&
			       offered->label.id == array->label.id;
		struct member *member;

		array->wanted[i] = entry->state;
		if (entry->state != LABEL_IN_SYNC && entry->state != LABEL_REBUILDING)
			continue;
		if (!offered || (!resumes && !(decision->joining >> i & 1))) {
			array->wanted[i] = LABEL_FAILED;
			continue;
		}
		member = array_take(array, &offered->disk, i,
				    resumes ? MEMBER_REBUILDING : MEMBER_IN_SYNC);
		if (!member)
			return -ENOMEM;
		member->sequence = offered->label.sequence;
		member->log_incarnation = offered->label.log_incarnation;
	}
	return 0;
}

/* Each disk fits its own label; whether all are about one array, only its decision can tell. */
static bool all_fit(struct array_start_state *start)
{
	const struct label *label = &start->array->label;
	struct offered *offered;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		offered = label->members[i].state == LABEL_NONE ?
				  NULL :
				  disk_of(start, label->members[i].uuid);
		if (offered && !array_fits(label, offered->disk.blk))
			return false;
	}
	return true;
}

static void begin(struct array_start_state *start)
{
	struct array *array = start->array;

	env_timer_cancel(array->env, &start->delay);
	array->label = start->decision.label;
	array->bad = array->label.bad;
	array->why[0] = '\0';
	array->waits = ARRAY_WAITS_NOT;
	array->forced = start->decision.verdict == ASSEMBLY_WAIT;
	array->level = raid_level(array->label.level);
	start->begun = true;
	start->error = 0;
	if (!array->level) {
		array_start_tell(start, -ENOTSUP, "array %s: level %u is not known to this version",
				 array->label.name, array->label.level);
		return;
	}
	if (!all_fit(start)) {
		array_start_tell(start, -EINVAL,
				 "array %s: the labels of its disks contradict "
				 "each other",
				 array->label.name);
		return;
	}
	if (take_members(start) < 0 || array_make_regions(array) < 0) {
		array_start_tell(start, -ENOMEM, "array %s: out of memory", array->label.name);
		return;
	}
	array_members_changed(array);
	array_start_load(start);
}

/* --- deciding --- */

static void absent_text(const struct array_start_state *start, char *text, size_t size)
{
	const struct assembly *decision = &start->decision;
	size_t used = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		if (decision->absent >> i & 1 && used < size)
			used += (size_t)snprintf(text + used, size - used, "%sd%u", used ? " " : "",
						 i);
	}
}

static void wait_for_disks(struct array_start_state *start, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void wait_for_disks(struct array_start_state *start, const char *fmt, ...)
{
	const struct offered *offered;
	char text[256];
	va_list args;
	int used;

	va_start(args, fmt);
	used = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	STAILQ_FOREACH(offered, &start->disks, link)
		if (offered->error == -EINVAL && (size_t)used < sizeof(text))
			used += snprintf(
				text + used, sizeof(text) - (size_t)used,
				". %s is not as its label says: smaller, or of other blocks",
				offered->name);
	event_emit(EVENT_ARRAY_WAITING, start->decision.label.name, text);
	array_start_tell(start, -EAGAIN, "array %s: %s", start->decision.label.name, text);
}

static void act_on(struct array_start_state *start)
{
	const struct assembly *decision = &start->decision;
	const struct label *label = &decision->label;
	char absent[128];

	absent_text(start, absent, sizeof(absent));
	switch (decision->verdict) {
	case ASSEMBLY_START:
		if (!decision->absent || start->delayed || start->how.force ||
		    !start->how.wait_ns) {
			begin(start);
		} else {
			if (!start->delay.armed)
				env_timer_set(start->array->env, &start->delay, start->how.wait_ns);
			start->array->waits = ARRAY_WAITS_MOMENT;
			snprintf(start->array->why, sizeof(start->array->why),
				 "waits a moment for %s", absent);
			array_changed(start->array);
		}
		break;
	case ASSEMBLY_WAIT:
		start->array->waits = ARRAY_WAITS_FORCE;
		if (start->how.force)
			begin(start);
		else
			wait_for_disks(start,
				       "%s is not there and may hold newer writes. Connect it, or "
				       "start with --force and lose them",
				       absent);
		break;
	case ASSEMBLY_ASK:
		start->array->waits = ARRAY_WAITS_CHOICE;
		array_start_tell(
			start, -EBUSY,
			"array %s: its disks went on apart. Offer only those whose data count",
			start->array->label.name);
		break;
	case ASSEMBLY_IMPOSSIBLE:
		start->array->waits = ARRAY_WAITS_DISKS;
		wait_for_disks(start, "needs %u more of its %u disks. Connect %s", decision->needed,
			       label->roles, absent);
		break;
	}
}

/* Two disks that say they are the same member: a copy was made of one. */
static bool twins(struct array_start_state *start)
{
	struct offered *a, *b;

	STAILQ_FOREACH(a, &start->disks, link) {
		if (a->error)
			continue;
		b = disk_of(start, a->label.members[a->label.self].uuid);
		if (b == a)
			continue;
		array_start_tell(start, -EBUSY,
				 "array %s: %s and %s carry the same label. Disconnect the copy",
				 a->label.name, a->name, b->name);
		return true;
	}
	return false;
}

static void decide(struct array_start_state *start)
{
	const struct label *labels[LABEL_MEMBERS_MAX];
	struct offered *offered;
	unsigned count = 0;

	if (start->array->ending) {
		array_start_tell(start, -ECANCELED, "array %s: it is being stopped",
				 start->array->label.name);
		return;
	}
	if (twins(start))
		return;
	STAILQ_FOREACH(offered, &start->disks, link) {
		if (!offered->error && count < LABEL_MEMBERS_MAX)
			labels[count++] = &offered->label;
		if (offered->error == -ENOMEM) {
			array_start_tell(start, -ENOMEM, "out of memory");
			return;
		}
	}
	if (!count) {
		array_start_tell(start, -ENOENT, "no disk carries a label of this array");
		return;
	}
	memcpy(start->array->label.name, labels[0]->name, LABEL_NAME_MAX);
	assembly_decide(labels, count, &start->decision);
	if (start->decision.verdict != ASSEMBLY_ASK)
		start->array->label = start->decision.label; /* what it would be, for people */
	act_on(start);
}

static void delay_over(struct env_timer *timer)
{
	struct array_start_state *start = container_of(timer, struct array_start_state, delay);

	start->delayed = true;
	if (!start->probing)
		decide(start);
}

static void probed(void *arg, int error, const struct label *label)
{
	struct offered *offered = arg;
	struct array_start_state *start = offered->array->start;

	offered->error = error;
	if (!error && uuid_compare(label->array, start->uuid) != 0)
		offered->error = -ENOENT;
	else if (!error && !array_fits(label, offered->disk.blk))
		offered->error = -EINVAL;
	else if (!error)
		offered->label = *label;
	if (--start->probing == 0)
		decide(start);
}

static struct offered *offer(struct array_start_state *start, const struct array_disk *disk)
{
	struct offered *offered = calloc(1, sizeof(*offered));

	if (!offered)
		return NULL;
	offered->array = start->array;
	snprintf(offered->name, sizeof(offered->name), "%s", disk->name);
	offered->disk = (struct array_disk){ offered->name, blk_ref(disk->blk) };
	offered->error = -EAGAIN;
	STAILQ_INSERT_TAIL(&start->disks, offered, link);
	return offered;
}

static void probe_all(struct array_start_state *start)
{
	struct offered *offered;

	STAILQ_FOREACH(offered, &start->disks, link) {
		if (offered->probed)
			continue;
		offered->probed = true;
		if (array_probe(start->array->env, offered->disk.blk, probed, offered) < 0)
			offered->error = -ENOMEM;
		else
			start->probing++;
	}
	if (!start->probing)
		decide(start);
}

struct array_start_state *array_start_new(struct env *env, array_done_fn *done, void *arg)
{
	struct array_start_state *start = calloc(1, sizeof(*start));
	struct array *array = array_new(env);

	if (!start || !array) {
		free(start);
		if (array)
			array_free(array);
		return NULL;
	}
	start->array = array;
	start->done = done;
	start->arg = arg;
	start->tell.fn = tell_run;
	start->delay.fn = delay_over;
	start->settle.fn = settled;
	STAILQ_INIT(&start->disks);
	array->start = start;
	return start;
}

void array_start_free(struct array *array)
{
	struct array_start_state *start = array->start;

	assert(!start->probing && !start->done);
	offered_free(start);
	env_timer_cancel(array->env, &start->delay);
	env_defer_cancel(array->env, &start->tell);
	free(start);
}

struct array *array_start(struct env *env, const uuid_t uuid, const struct array_disk *disks,
			  unsigned count, const struct array_start *how, array_done_fn *done,
			  void *arg)
{
	struct array_start_state *start = array_start_new(env, done, arg);

	if (!start)
		return NULL;
	uuid_copy(start->uuid, uuid);
	start->how = *how;
	for (unsigned i = 0; i < count; i++) {
		if (!offer(start, &disks[i])) {
			array_start_tell(start, -ENOMEM, "out of memory");
			return start->array;
		}
	}
	probe_all(start);
	return start->array;
}

int array_offer(struct array *array, const struct array_disk *disk, array_done_fn *done, void *arg)
{
	struct array_start_state *start = array->start;
	struct offered *offered;

	if (array->blk)
		return array_add(array, disk, done, arg);
	offered = offer(start, disk);
	if (!offered)
		return -ENOMEM;
	offered->done = done;
	offered->arg = arg;
	array->changes++;
	if (!start->begun) {
		array->why[0] = '\0';
		array->waits = ARRAY_WAITS_NOT;
		probe_all(start);
	} else if (start->error) {
		tell_later(start);
	}
	return 0;
}

void array_start_cancel(struct array *array)
{
	struct array_start_state *start = array->start;

	if (!start->delay.armed)
		return;
	env_timer_cancel(array->env, &start->delay);
	decide(start);
}
