/* SPDX-License-Identifier: MIT */
/*
 * Control methods for disks: `yokectl disk list|test|label`.
 *
 * Not here: which disks there are (disks.c), measuring (disk_test.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/problem.h"
#include "target/daemon.h"

struct ask {
	struct yoked *yoked;
	struct ctl_request *request;
};

static void ask_start(struct yoked *yoked, struct ctl_request *request, disks_scan_fn *then)
{
	struct ask *ask = calloc(1, sizeof(*ask));

	if (!ask) {
		ctl_fail(request, -ENOMEM, "out of memory");
		return;
	}
	*ask = (struct ask){ yoked, request };
	disks_scan(yoked->disks, yoked->conf, false, then, ask);
}

/* ---- list ---- */

static const char *content_name(const struct disk *disk)
{
	if (disk->array)
		return "member";
	switch (disk->content) {
	case DISK_BLANK:
		return "blank";
	case DISK_LABEL:
		return "label";
	case DISK_FOREIGN:
		return "foreign";
	case DISK_CLOSED:
		break;
	}
	return disk->busy ? "in-use" : "unusable";
}

static json_t *disk_row(const struct disk *disk)
{
	return json_pack(
		"{s:s, s:s, s:s, s:I, s:i, s:s, s:s}", "disk", disk->name, "state",
		content_name(disk), "array", disk->content == DISK_LABEL ? disk->label.name : "",
		"size_bytes", (json_int_t)disk->size_bytes, "block_size_bytes",
		(int)disk->block_size, "carries",
		disk->content == DISK_LABEL || disk->content == DISK_FOREIGN ? disk->carries : "",
		"cause", disk->content == DISK_CLOSED ? disk->cause : "");
}

static void list_scanned(void *arg)
{
	struct ask *ask = arg;
	json_t *rows = json_array();
	struct disk *disk;

	TAILQ_FOREACH(disk, disks_list(ask->yoked->disks), link)
		json_array_append_new(rows, disk_row(disk));
	ctl_reply(ask->request,
		  json_pack("{s:s, s:o}", "schema", "yoke.disk.list/1", "disks", rows));
	free(ask);
}

static void disk_list(void *arg, struct ctl_request *request)
{
	ask_start(arg, request, list_scanned);
}

/* ---- label ---- */

static struct disk *find(struct ask *ask)
{
	const char *name = ctl_string(ask->request, "disk");
	struct disk *disk = disks_find(ask->yoked->disks, name);

	if (!disk)
		ctl_fail(
			ask->request, -ENOENT,
			"%s: not there, or not among `disks` of the node section. See yokectl disk "
			"list",
			name);
	return disk;
}

static json_t *id_text(uint64_t id)
{
	char text[24];

	snprintf(text, sizeof(text), "%016" PRIx64, id);
	return json_string(text);
}

static json_t *area(const struct label_area *area)
{
	return json_pack("{s:I, s:I}", "offset_bytes", (json_int_t)area->offset, "length_bytes",
			 (json_int_t)area->length);
}

static json_t *label_members(const struct label *label)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		const struct label_member *member = &label->members[i];
		char name[16], uuid[UUID_STR_LEN];

		if (member->state == LABEL_NONE)
			continue;
		snprintf(name, sizeof(name), "d%u", i);
		uuid_unparse_lower(member->uuid, uuid);
		json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:o}", "member", name,
						      "uuid", uuid, "state",
						      label_state_name(member->state), "role",
						      member->role == LABEL_NO_ROLE ?
							      json_null() :
							      json_integer(member->role)));
	}
	return rows;
}

static json_t *label_lost(const struct label *label)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < label->bad.count; i++) {
		const struct bad_range *range = &label->bad.all[i];

		json_array_append_new(rows, json_pack("{s:i, s:I, s:I}", "role", (int)range->role,
						      "offset_bytes", (json_int_t)range->from,
						      "length_bytes",
						      (json_int_t)(range->to - range->from)));
	}
	return rows;
}

static json_t *label_json(const struct disk *disk, const struct label *label)
{
	char uuid[UUID_STR_LEN], self[16], created[PROBLEM_UTC_SIZE];
	const char *stripes = label->level != 5                ? "" :
			      label->flags & LABEL_LOG_STRIPES ? "data" :
								 "intent";
	json_t *ancestors = json_array();

	uuid_unparse_lower(label->array, uuid);
	snprintf(self, sizeof(self), "d%u", label->self);
	for (unsigned i = 0; i < label->ancestor_count; i++)
		json_array_append_new(ancestors, id_text(label->ancestors[i].id));
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:s, s:b, s:s, s:o, s:o, "
			 "s:I, s:I, s:o, s:o, s:[o, o], s:o, s:o, s:o}",
			 "schema", "yoke.disk.label/1", "disk", disk->name, "array", label->name,
			 "array_uuid", uuid, "self", self, "level", (int)label->level, "roles",
			 (int)label->roles, "chunk_bytes", (json_int_t)label->chunk_bytes,
			 "block_size_bytes", (json_int_t)label->block_bytes, "full_stripe_log",
			 stripes, "clean", (int)!!(label->flags & LABEL_CLEAN), "created_utc",
			 problem_utc(label->created_s, created), "id", id_text(label->id),
			 "forced_id", id_text(label->forced_id), "generation",
			 (json_int_t)label->generation, "sequence", (json_int_t)label->sequence,
			 "ancestors", ancestors, "members", label_members(label), "maps",
			 area(&label->maps[0]), area(&label->maps[1]), "log", area(&label->log),
			 "data", area(&label->data), "lost", label_lost(label));
}

struct reading {
	struct ask *ask;
	struct disk *disk;
};

static void reading_end(struct reading *reading)
{
	reading->disk->commands--;
	reading->disk->users--;
	disk_release(reading->disk);
	free(reading->ask);
	free(reading);
}

static void label_read(void *arg, int error, const struct label *label)
{
	struct reading *reading = arg;
	struct ctl_request *request = reading->ask->request;
	const char *name = reading->disk->name;

	if (!error)
		ctl_reply(request, label_json(reading->disk, label));
	else if (error == -ENOENT)
		ctl_fail(request, error, "%s: carries no label of an array", name);
	else if (error == -EILSEQ)
		ctl_fail(request, error, "%s: its label is damaged", name);
	else if (error == -ENOTSUP)
		ctl_fail(request, error, "%s: its label is of a newer yoked. Install that", name);
	else
		ctl_fail(request, error, "%s: cannot be read. Check the disk", name);
	reading_end(reading);
}

static void label_opened(void *arg, struct disk *disk, int error, const char *text)
{
	struct reading *reading = arg;

	if (error) {
		ctl_fail(reading->ask->request, error, "%s", text);
		reading_end(reading);
	} else if (array_probe(reading->ask->yoked->env, disk->blk, label_read, reading)) {
		ctl_fail(reading->ask->request, -ENOMEM, "out of memory");
		reading_end(reading);
	}
}

static void tested(void *arg, int error, const struct disk_result *result)
{
	struct reading *reading = arg;
	struct disk *disk = reading->disk;

	if (error)
		ctl_fail(reading->ask->request, error, "%s: cannot be read: %s. Check the disk",
			 disk->name, strerror(-error));
	else
		ctl_reply(reading->ask->request,
			  json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "schema",
				    "yoke.disk.test/1", "disk", disk->name, "size_bytes",
				    (json_int_t)disk->size_bytes, "read_p50_us",
				    (json_int_t)(result->p50_ns / NS_PER_US), "read_p99_us",
				    (json_int_t)(result->p99_ns / NS_PER_US), "reads",
				    (json_int_t)result->reads, "read_bytes_per_s",
				    (json_int_t)result->bytes_per_s));
	reading_end(reading);
}

static void test_opened(void *arg, struct disk *disk, int error, const char *text)
{
	struct reading *reading = arg;

	if (error) {
		ctl_fail(reading->ask->request, error, "%s", text);
		reading_end(reading);
	} else {
		disk_test(reading->ask->yoked->env, disk->blk, tested, reading);
	}
}

static void with_disk(struct ask *ask, disk_open_fn *then)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	struct disk *disk = find(ask);

	if (!reading && disk)
		ctl_fail(ask->request, -ENOMEM, "out of memory");
	if (!reading || !disk) {
		free(reading);
		free(ask);
		return;
	}
	*reading = (struct reading){ ask, disk };
	disk->commands++;
	disk->users++;
	disk_open(ask->yoked->disks, disk, then, reading);
}

static void label_scanned(void *arg)
{
	with_disk(arg, label_opened);
}

static void disk_label(void *arg, struct ctl_request *request)
{
	ask_start(arg, request, label_scanned);
}

static void test_scanned(void *arg)
{
	with_disk(arg, test_opened);
}

static void disk_test_ask(void *arg, struct ctl_request *request)
{
	ask_start(arg, request, test_scanned);
}

void disk_ctl_register(struct yoked *yoked)
{
	static const struct ctl_param disk_params[] = { { "disk", CTL_STRING, true }, { 0 } };
	static const struct ctl_command commands[] = {
		{ "disk.list", "disks that may be members, and what they carry", NULL, disk_list },
		{ "disk.label", "what a disk says of its array", disk_params, disk_label },
		{ "disk.test", "measure a disk alone, by reading", disk_params, disk_test_ask },
		{ 0 },
	};

	ctl_register(yoked->ctl, commands, yoked);
}
