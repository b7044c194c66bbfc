/* SPDX-License-Identifier: MIT */
/*
 * Control methods for arrays: `yokectl array list|show|create|add|remove|start`.
 *
 * What loses something is refused unless it is forced and confirmed by the array's name; with
 * dry_run it only tells what would be lost.
 *
 *   parameters ─▶ scan ─▶ disks there, free, nobody else's? ─▶ losses? ─▶ open ─▶ arrays_*()
 *
 * Invariants:
 *  1. A disk that carries anything is touched only with force and the name.
 *  2. What a person is told is of a scan that began after the question, and holds until it is done:
 *     a disk that another command has under way is refused, since the scan passed it over.
 *
 * Not here: doing it (array_change.c, arrays.c).
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clean.h"
#include "target/daemon.h"

#define CHUNK_DEFAULT (64 * KIB)

struct ask {
	struct yoked *yoked;
	struct ctl_request *request;
	const char *name;
	struct array_entry *entry;
	struct disk *disks[LABEL_ROLES_MAX];
	unsigned count, opened;
	json_t *losses;                 /* "DISK: ext4" */
	bool loses;                     /* something, also if the list has no memory for it */
	void (*check)(struct ask *ask); /* after the scan */
	void (*run)(struct ask *ask);   /* disks are open, nothing is against it */
	unsigned member;
	struct env_timer shown;
};

static void ask_end(struct ask *ask)
{
	for (unsigned i = 0; i < ask->count; i++) {
		ask->disks[i]->commands--;
		ask->disks[i]->users--;
		disk_release(ask->disks[i]);
	}
	json_decref(ask->losses);
	free(ask);
}

#define REFUSE(ask, error, ...)                                                                    \
	do {                                                                                       \
		ctl_fail((ask)->request, (error), __VA_ARGS__);                                    \
		ask_end(ask);                                                                      \
	} while (0)

static void lose(struct ask *ask, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void lose(struct ask *ask, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	clean_text(text); /* cut, perhaps inside of a character */
	ask->loses = true;
	json_array_append_new(ask->losses, json_string(text));
}

/* ---- what there is ---- */

static void array_list(void *arg, struct ctl_request *request)
{
	struct yoked *yoked = arg;
	json_t *rows = json_array();
	struct array_entry *entry;

	TAILQ_FOREACH(entry, arrays_list(yoked->arrays), link)
		json_array_append_new(rows, array_row(entry, false));
	ctl_reply(request, json_pack("{s:s, s:o}", "schema", "yoke.array.list/1", "arrays", rows));
}

static struct array_entry *find(struct yoked *yoked, struct ctl_request *request)
{
	const char *name = ctl_string(request, "name");
	struct array_entry *entry = arrays_find(yoked->arrays, name);

	if (!entry)
		ctl_fail(request, -ENOENT,
			 "array %s: no disk here is a member of one of this name. "
			 "See yokectl array list",
			 name);
	return entry;
}

static json_t *show(const struct array_entry *entry)
{
	json_t *row = array_row(entry, true);

	json_object_set_new(row, "schema", json_string("yoke.array.show/1"));
	return row;
}

static void array_show(void *arg, struct ctl_request *request)
{
	struct array_entry *entry = find(arg, request);

	if (entry)
		ctl_reply(request, show(entry));
}

/* ---- disks ---- */

/* The backing whose file or device has this PATH; NULL: none. */
static const struct store *backing_at(const struct yoked *yoked, const char *path)
{
	const struct store *store;

	TAILQ_FOREACH(store, &yoked->stores, link)
		if (!store->array && *path && !strcmp(store->conf->path, path))
			return store;
	return NULL;
}

/* One of its disks as somebody named it; NULL: refused. */
static struct disk *take_disk(struct ask *ask, const char *name)
{
	struct disk *disk = disks_find(ask->yoked->disks, name);
	const struct store *backing = disk ? NULL : backing_at(ask->yoked, name);

	if (backing)
		ctl_fail(ask->request, -EBUSY,
			 "%s: it is backing \"%s\". Name backing:%s, if no LUN shows it", name,
			 backing->name, backing->name);
	else if (!disk && !strncmp(name, "backing:", 8))
		ctl_fail(ask->request, -ENOENT,
			 "%s: no such backing, or a LUN shows it. See yokectl disk list", name);
	else if (!disk)
		ctl_fail(
			ask->request, -ENOENT,
			"%s: not there, or not among `disks` of the node section. Add it there and "
			"reload",
			name);
	if (!disk)
		return NULL;
	for (unsigned i = 0; i < ask->count; i++) {
		if (ask->disks[i] != disk)
			continue;
		ctl_fail(ask->request, -EINVAL, "%s: named twice. Name another disk", name);
		return NULL;
	}
	if (ask->count == ARRAY_LEN(ask->disks)) {
		ctl_fail(ask->request, -EINVAL, "array %s: at most %d disks", ask->name,
			 LABEL_ROLES_MAX);
		return NULL;
	}
	if (disk->commands) {
		ctl_fail(ask->request, -EBUSY, "%s: another command has it under way. Try again",
			 name);
		return NULL;
	}
	disk->commands++;
	disk->users++;
	ask->disks[ask->count++] = disk;
	return disk;
}

static bool may_be_member(struct ask *ask, const struct disk *disk)
{
	if (disk->array && disk->array != ask->entry)
		ctl_fail(ask->request, -EBUSY, "%s: a member of array %s. Name another disk",
			 disk->name, disk->array->name);
	else if (disk->content == DISK_CLOSED && !disk->blk)
		ctl_fail(ask->request, disk->busy ? -EBUSY : -EIO, "%s", disk->cause);
	else if (disk->store && disk->store->conf->driver == CONF_DRIVER_NULL)
		ctl_fail(ask->request, -EINVAL, "%s: keeps nothing. Name another disk", disk->name);
	else
		return true;
	return false;
}

/* False: refused, or told in a dry run, and ASK has ended. */
static bool confirmed(struct ask *ask)
{
	const char *confirm = ctl_string(ask->request, "confirm");
	bool dry = ctl_bool(ask->request, "dry_run");
	const char *first = json_string_value(json_array_get(ask->losses, 0));

	if (!first)
		first = "something would be lost";
	if (!dry && ask->loses && !ctl_bool(ask->request, "force")) {
		REFUSE(ask, -EEXIST, "%s. Nothing was touched. Use --force to lose it", first);
	} else if (!dry && ask->loses && (!confirm || strcmp(confirm, ask->name))) {
		REFUSE(ask, -EPERM, "%s. Nothing was touched. Confirm with --confirm %s", first,
		       ask->name);
	} else if (dry) {
		ctl_reply(ask->request, json_pack("{s:s, s:b, s:O}", "schema", "yoke.array.plan/1",
						  "dry_run", 1, "losses", ask->losses));
		ask_end(ask);
	} else {
		return true;
	}
	return false;
}

static void open_next(struct ask *ask);
static void ask_done(void *arg, int error, const char *text);

static void disk_opened(void *arg, struct disk *disk, int error, const char *text)
{
	struct ask *ask = arg;

	(void)disk;
	ask->opened++;
	if (error)
		REFUSE(ask, error, "%s", text);
	else
		open_next(ask);
}

static void open_next(struct ask *ask)
{
	if (ask->opened == ask->count)
		ask->run(ask);
	else
		disk_open(ask->yoked->disks, ask->disks[ask->opened], disk_opened, ask);
}

/* Its LUN is there when the answer is. */
static void ask_shown(struct env_timer *timer)
{
	ask_done(container_of(timer, struct ask, shown), 0, "");
}

static void ask_done(void *arg, int error, const char *text)
{
	struct ask *ask = arg;
	struct array_entry *entry = arrays_find(ask->yoked->arrays, ask->name);

	if (!error && entry && entry->showing) {
		ask->shown.fn = ask_shown;
		env_timer_set(ask->yoked->env, &ask->shown, NS_PER_MS);
		return;
	}
	if (error)
		ctl_fail(ask->request, error, "%s", *text ? text : strerror(-error));
	else if (entry)
		ctl_reply(ask->request, show(entry));
	else
		ctl_fail(ask->request, -ENOENT, "array %s: gone again", ask->name);
	ask_end(ask);
}

static void ask_scanned(void *arg)
{
	struct ask *ask = arg;

	ask->check(ask);
}

static void ask_start(struct yoked *yoked, struct ctl_request *request,
		      void (*check)(struct ask *ask))
{
	struct ask *ask = calloc(1, sizeof(*ask));

	if (!ask) {
		ctl_fail(request, -ENOMEM, "out of memory");
		return;
	}
	ask->yoked = yoked;
	ask->request = request;
	ask->name = ctl_string(request, "name");
	ask->losses = json_array();
	ask->check = check;
	disks_scan(yoked->disks, yoked->conf, false, ask_scanned, ask);
}

/* ---- create ---- */

static bool is_name(const char *text)
{
	size_t len = strlen(text);

	for (const char *at = text; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("._-", *at))
			return false;
	return len >= 1 && len < CONF_NAME_MAX && isalnum((unsigned char)*text);
}

static void create_run(struct ask *ask)
{
	int64_t level = ctl_integer(ask->request, "level", 0);
	const char *stripes = ctl_string(ask->request, "full_stripe_log");
	const struct array_spec spec = {
		.name = ask->name,
		.level = (unsigned)level,
		.chunk_bytes = (uint32_t)ctl_integer(ask->request, "chunk_bytes",
						     level == 1 ? 0 : CHUNK_DEFAULT),
		.log_stripes = level == 5 && (!stripes || !strcmp(stripes, "data")),
	};

	arrays_create(ask->yoked->arrays, &spec, ask->disks, ask->count, ask_done, ask);
}

static void create_check(struct ask *ask)
{
	const json_t *names = ctl_param(ask->request, "disks"), *name;
	size_t i;

	if (arrays_find(ask->yoked->arrays, ask->name)) {
		REFUSE(ask, -EEXIST, "array %s: there is one of this name. Use another", ask->name);
		return;
	}
	json_array_foreach(names, i, name) {
		struct disk *disk = take_disk(ask, json_string_value(name));

		if (!disk || !may_be_member(ask, disk)) {
			ask_end(ask);
			return;
		}
		if (disk->content == DISK_LABEL || disk->content == DISK_FOREIGN)
			lose(ask, "%s: carries %s", disk->name, disk->carries);
	}
	ask->run = create_run;
	if (confirmed(ask))
		open_next(ask);
}

static void array_create_ask(void *arg, struct ctl_request *request)
{
	const char *stripes = ctl_string(request, "full_stripe_log");
	int64_t level = ctl_integer(request, "level", 0);
	int64_t chunk = ctl_integer(request, "chunk_bytes", CHUNK_DEFAULT);
	const char *name = ctl_string(request, "name");

	if (!is_name(name))
		ctl_fail(request, -EINVAL,
			 "array \"%s\": not a name. Use 1 to %d letters, digits, . _ -", name,
			 CONF_NAME_MAX - 1);
	else if (level < 0 || level > 10)
		ctl_fail(request, -EINVAL, "array %s: there is no level %lld. Use 0, 1, 5 or 10",
			 name, (long long)level);
	else if (chunk < 0 || chunk > (int64_t)MIB)
		ctl_fail(request, -EINVAL, "array %s: a chunk is a power of two from 4K to 1M",
			 name);
	else if (stripes && strcmp(stripes, "data") && strcmp(stripes, "intent"))
		ctl_fail(request, -EINVAL, "array %s: full_stripe_log: data or intent", name);
	else
		ask_start(arg, request, create_check);
}

/* ---- add ---- */

/* False: refused, and ASK has ended. */
static bool find_online(struct ask *ask)
{
	ask->entry = arrays_find(ask->yoked->arrays, ask->name);
	if (ask->entry && ask->entry->array && array_blk(ask->entry->array))
		return true;
	REFUSE(ask, -ENOENT, "array %s: not online. See yokectl array show %s", ask->name,
	       ask->name);
	return false;
}

static void add_run(struct ask *ask)
{
	arrays_add(ask->entry, ask->disks[0], ask_done, ask);
}

/* It comes back to where it belongs, and gets what it missed. */
static bool returns(const struct ask *ask, const struct disk *disk)
{
	return disk->content == DISK_LABEL && !uuid_compare(disk->label.array, ask->entry->uuid);
}

static void add_check(struct ask *ask)
{
	struct disk *disk;

	if (!find_online(ask))
		return;
	disk = take_disk(ask, ctl_string(ask->request, "disk"));
	if (!disk || !may_be_member(ask, disk)) {
		ask_end(ask);
		return;
	}
	if (!array_entry_returns(ask->entry, disk) && disk->content != DISK_BLANK)
		lose(ask, "%s: carries %s%s", disk->name, disk->carries,
		     returns(ask, disk) ? ", as a copy of a member that works" : "");
	ask->run = add_run;
	if (confirmed(ask))
		open_next(ask);
}

static void array_add_ask(void *arg, struct ctl_request *request)
{
	if (find(arg, request))
		ask_start(arg, request, add_check);
}

/* ---- remove ---- */

/* By "d2" or by the disk's name; -1: none such. */
static int member_index(const struct ask *ask, const char *text, enum label_state *state)
{
	struct array_info info;

	array_info(ask->entry->array, &info);
	for (unsigned i = 0; i < info.member_count; i++) {
		const struct array_member_info *member = &info.members[i];
		const struct disk *disk = array_member_disk(ask->entry, member->uuid);
		char name[16];

		snprintf(name, sizeof(name), "d%u", member->index);
		if (member->state == LABEL_REMOVED ||
		    (strcmp(text, name) && (!disk || strcmp(text, disk->name))))
			continue;
		*state = member->present ? member->state : LABEL_FAILED;
		return (int)member->index;
	}
	return -1;
}

static void remove_run(struct ask *ask)
{
	arrays_remove(ask->entry, ask->member, ask_done, ask);
}

static void remove_check(struct ask *ask)
{
	const char *text = ctl_string(ask->request, "member");
	enum label_state state = LABEL_NONE;
	int member;

	if (!find_online(ask))
		return;
	member = member_index(ask, text, &state);
	if (member < 0) {
		REFUSE(ask, -ENOENT, "array %s: no member %s. See yokectl array show %s", ask->name,
		       text, ask->name);
		return;
	}
	ask->member = (unsigned)member;
	if (state == LABEL_IN_SYNC)
		lose(ask, "array %s: works without a copy of d%d's data from then on", ask->name,
		     member);
	ask->run = remove_run;
	if (confirmed(ask))
		ask->run(ask);
}

static void array_remove_ask(void *arg, struct ctl_request *request)
{
	if (find(arg, request))
		ask_start(arg, request, remove_check);
}

/* ---- start ---- */

/* It waits, and nobody else is at it; false: refused, and ASK has ended. */
static bool may_start(struct ask *ask)
{
	ask->entry = arrays_find(ask->yoked->arrays, ask->name);
	if (!ask->entry || ask->entry->changes || !array_entry_ready(ask->entry))
		REFUSE(ask, -EBUSY, "array %s: something is under way. Try again", ask->name);
	else if (ask->entry->array && array_blk(ask->entry->array))
		REFUSE(ask, -EALREADY, "array %s: it is online", ask->name);
	else
		return true;
	return false;
}

static void start_run(struct ask *ask)
{
	/* Opening takes time, in which a disk may have come, or another start. */
	if (may_start(ask))
		arrays_start(ask->entry, ask->disks, ask->count, ctl_bool(ask->request, "force"),
			     ask_done, ask);
}

static void start_check(struct ask *ask)
{
	const json_t *names = ctl_param(ask->request, "disks"), *name;
	struct array_info info;
	size_t i;

	if (!may_start(ask))
		return;
	json_array_foreach(names, i, name) {
		struct disk *disk = take_disk(ask, json_string_value(name));

		if (disk && !returns(ask, disk))
			ctl_fail(ask->request, -EINVAL, "%s: no member of array %s", disk->name,
				 ask->name);
		if (!disk || !returns(ask, disk)) {
			ask_end(ask);
			return;
		}
	}
	if (ask->entry->array) {
		array_info(ask->entry->array, &info);
		if (ctl_bool(ask->request, "force") || ask->count)
			lose(ask, "%s", info.why);
	}
	ask->run = start_run;
	if (confirmed(ask))
		open_next(ask);
}

static void array_start_ask(void *arg, struct ctl_request *request)
{
	if (find(arg, request))
		ask_start(arg, request, start_check);
}

void array_ctl_register(struct yoked *yoked)
{
#define DESTROYS                                                                                   \
	{ "force", CTL_BOOL, false }, { "confirm", CTL_STRING, false },                            \
		{ "dry_run", CTL_BOOL, false },                                                    \
	{                                                                                          \
		0                                                                                  \
	}
	static const struct ctl_param name_params[] = { { "name", CTL_STRING, true }, { 0 } };
	static const struct ctl_param create_params[] = {
		{ "name", CTL_STRING, true },
		{ "level", CTL_INTEGER, true },
		{ "disks", CTL_STRINGS, true },
		{ "chunk_bytes", CTL_INTEGER, false },
		{ "full_stripe_log", CTL_STRING, false },
		DESTROYS,
	};
	static const struct ctl_param add_params[] = {
		{ "name", CTL_STRING, true },
		{ "disk", CTL_STRING, true },
		DESTROYS,
	};
	static const struct ctl_param remove_params[] = {
		{ "name", CTL_STRING, true },
		{ "member", CTL_STRING, true },
		DESTROYS,
	};
	static const struct ctl_param start_params[] = {
		{ "name", CTL_STRING, true },
		{ "disks", CTL_STRINGS, false },
		DESTROYS,
	};
#undef DESTROYS
	static const struct ctl_command commands[] = {
		{ "array.list", "arrays and how they are", NULL, array_list },
		{ "array.show", "one array with its members", name_params, array_show },
		{ "array.create", "make an array of disks", create_params, array_create_ask },
		{ "array.add", "give an array a disk, or one back", add_params, array_add_ask },
		{ "array.remove", "take a member out", remove_params, array_remove_ask },
		{ "array.start", "start an array that waits", start_params, array_start_ask },
		{ 0 },
	};

	ctl_register(yoked->ctl, commands, yoked);
}
