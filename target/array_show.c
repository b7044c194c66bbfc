/* SPDX-License-Identifier: MIT */
/*
 * Arrays as rows of JSON, and what is wrong with one.
 *
 * Not here: how it looks (ctl/), texts of a code (core/problem.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/problem.h"
#include "target/daemon.h"

#define SLOW_FACTOR 3 /* times the median of its peers */
#define SLOW_LEAST_NS NS_PER_MS
#define SLOW_SAMPLES 1000

static const char *const waits_names[] = {
	[ARRAY_WAITS_NOT] = "",          [ARRAY_WAITS_MOMENT] = "moment",
	[ARRAY_WAITS_FORCE] = "force",   [ARRAY_WAITS_DISKS] = "disks",
	[ARRAY_WAITS_CHOICE] = "choice",
};

/* ---- members ---- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool judged(const struct array_entry *entry, const struct array_member_info *member)
{
	const struct disk *disk = array_member_disk(entry, member->uuid);

	return disk && disk->latency && disk->latency->count >= SLOW_SAMPLES;
}

/* How many times slower than its peers INDEX is; 0: it is not. */
static unsigned slow_factor(const struct array_entry *entry, const struct array_info *info,
			    unsigned index)
{
	uint64_t peers[LABEL_MEMBERS_MAX], own = info->members[index].p99_ns, median;
	unsigned count = 0;

	for (unsigned i = 0; i < info->member_count; i++)
		if (i != index && judged(entry, &info->members[i]))
			peers[count++] = info->members[i].p99_ns;
	if (!count || !judged(entry, &info->members[index]) || own < SLOW_LEAST_NS)
		return 0;
	qsort(peers, count, sizeof(*peers), by_value);
	median = max_u64(peers[count / 2], 1);
	return own / median >= SLOW_FACTOR ? (unsigned)(own / median) : 0;
}

static bool wanted(const struct array_member_info *member)
{
	return member->state == LABEL_IN_SYNC || member->state == LABEL_REBUILDING ||
	       member->state == LABEL_FAILED;
}

/* Somebody else has its role. */
static bool replaced(const struct array_info *info, unsigned index)
{
	const struct array_member_info *member = &info->members[index];

	for (unsigned i = 0; i < info->member_count; i++)
		if (i != index && info->members[i].role == member->role &&
		    info->members[i].present && info->members[i].state != LABEL_FAILED &&
		    info->members[i].state != LABEL_REMOVED)
			return true;
	return false;
}

static const char *member_state(const struct array_entry *entry,
				const struct array_member_info *member)
{
	if (wanted(member) && !member->present && !array_member_disk(entry, member->uuid))
		return "missing";
	return label_state_name(member->state);
}

static const char *member_disk(const struct array_entry *entry,
			       const struct array_member_info *member)
{
	const struct disk *disk = array_member_disk(entry, member->uuid);

	return disk ? disk->name : member->name;
}

static json_t *member_row(const struct array_entry *entry, const struct array_info *info,
			  unsigned index)
{
	const struct array_member_info *member = &info->members[index];
	unsigned slow = slow_factor(entry, info, index);
	char name[16], note[64] = "", uuid[UUID_STR_LEN];

	snprintf(name, sizeof(name), "d%u", member->index);
	uuid_unparse_lower(member->uuid, uuid);
	if (slow)
		snprintf(note, sizeof(note), "slow: %u x peers", slow);
	else
		snprintf(note, sizeof(note), "%s", member->cause);
	return json_pack("{s:o, s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:s}", "role",
			 member->role == LABEL_NO_ROLE ? json_null() : json_integer(member->role),
			 "member", name, "uuid", uuid, "disk", member_disk(entry, member), "state",
			 member_state(entry, member), "read_errors",
			 (json_int_t)member->read_errors, "write_errors",
			 (json_int_t)member->write_errors, "p99_us",
			 member->p99_ns ? json_integer((json_int_t)(member->p99_ns / NS_PER_US)) :
					  json_null(),
			 "note", note);
}

static json_t *member_rows(const struct array_entry *entry, const struct array_info *info)
{
	json_t *rows = json_array();

	for (unsigned role = 0; role <= LABEL_NO_ROLE; role++)
		for (unsigned i = 0; i < info->member_count; i++)
			if (info->members[i].role == role &&
			    (wanted(&info->members[i]) || info->members[i].state == LABEL_SPARE))
				json_array_append_new(rows, member_row(entry, info, i));
	return rows;
}

/* ---- the resync ---- */

void array_entry_progress(struct array_entry *entry, const struct array_info *info)
{
	if (info->regions_doubtful > entry->doubtful_most || !info->regions_doubtful) {
		entry->doubtful_most = info->regions_doubtful;
		entry->doubtful_since_ns = env_now_ns(entry->yoked->env);
	}
}

static json_t *resync_row(const struct array_entry *entry, const struct array_info *info)
{
	uint64_t left = (uint64_t)info->regions_doubtful * info->region_bytes;
	uint64_t done = (uint64_t)entry->doubtful_most * info->region_bytes - left;
	uint64_t ns = env_now_ns(entry->yoked->env) - entry->doubtful_since_ns;

	if (!info->regions_doubtful)
		return json_null();
	return json_pack("{s:I, s:I, s:I}", "left_bytes", (json_int_t)left, "done_bytes",
			 (json_int_t)done, "bytes_per_s",
			 (json_int_t)(ns ? (double)done * NS_PER_S / (double)ns : 0));
}

/* ---- rows ---- */

/* A member without which it does not run has failed under it. */
static const struct array_member_info *broken(const struct array_entry *entry,
					      const struct array_info *info)
{
	for (unsigned i = 0; i < info->member_count; i++) {
		const struct array_member_info *member = &info->members[i];
		const struct disk *disk = array_member_disk(entry, member->uuid);

		if (member->present && member->state == LABEL_IN_SYNC && disk && disk->blk &&
		    disk->blk->state != BLK_ONLINE)
			return member;
	}
	return NULL;
}

static const char *state_name(const struct array_entry *entry, const struct array_info *info)
{
	if (entry->array && info->state != ARRAY_WAITING && broken(entry, info))
		return array_state_name(ARRAY_FAILED);
	return array_state_name(entry->array ? info->state : ARRAY_WAITING);
}

json_t *array_row(const struct array_entry *entry, bool members)
{
	struct array_info info = { .level = 0 };
	char uuid[UUID_STR_LEN], roles[LABEL_ROLES_MAX + 3] = "", since[PROBLEM_UTC_SIZE];
	unsigned in_sync = 0;
	json_t *row;

	if (entry->array) {
		array_info(entry->array, &info);
		array_roles_text(&info, roles);
	}
	for (unsigned i = 0; i < info.member_count; i++)
		in_sync += info.members[i].state == LABEL_IN_SYNC && info.members[i].present;
	uuid_unparse_lower(entry->uuid, uuid);
	row = json_pack("{s:s, s:s, s:i, s:s, s:s, s:I, s:o, s:I, s:i, s:i, s:s, s:s, s:s, s:o, "
			"s:{s:i, s:i, s:i, s:I}, s:{s:i, s:I}}",
			"name", entry->name, "uuid", uuid, "level", (int)info.level, "state",
			state_name(entry, &info), "roles", roles, "size_bytes",
			(json_int_t)info.size_bytes, "chunk_bytes",
			info.chunk_bytes ? json_integer(info.chunk_bytes) : json_null(),
			"block_size_bytes", (json_int_t)info.block_bytes, "members_total",
			(int)info.roles, "members_in_sync", (int)in_sync, "cause",
			entry->array ? info.why : entry->refused, "waits", waits_names[info.waits],
			"since_utc", problem_utc(entry->since_s, since), "resync",
			resync_row(entry, &info), "regions", "total", (int)info.regions_total,
			"dirty", (int)info.regions_dirty, "doubtful", (int)info.regions_doubtful,
			"region_bytes", (json_int_t)info.region_bytes, "lost", "ranges",
			(int)info.bad_ranges, "bytes", (json_int_t)info.bad_bytes);
	if (members)
		json_object_set_new(row, "members", member_rows(entry, &info));
	return row;
}

/* ---- what is wrong ---- */

static void add(json_t *problems, const struct problem *problem)
{
	json_array_append_new(problems, problem_json(problem));
}

/* "d2 (/dev/disk/by-id/ata-X1) failed", of each that is not as it should be. */
static void members_text(const struct array_entry *entry, const struct array_info *info, char *text,
			 size_t size)
{
	size_t used = strlen(text);

	for (unsigned i = 0; i < info->member_count && used < size; i++) {
		const struct array_member_info *member = &info->members[i];
		const char *state = member_state(entry, member);
		const char *disk = member_disk(entry, member);

		if (!wanted(member) || replaced(info, i) ||
		    (member->present && member->state == LABEL_IN_SYNC))
			continue;
		used += (size_t)snprintf(text + used, size - used, "%s d%u%s%s%s %s%s%s",
					 text[used - 1] == ':' ? "" : ",", member->index,
					 *disk ? " (" : "", disk, *disk ? ")" : "", state,
					 *member->cause ? ", " : "", member->cause);
	}
}

static void degraded_problem(const struct array_entry *entry, const struct array_info *info,
			     json_t *problems)
{
	bool rebuilding = false, failed = false;
	char roles[LABEL_ROLES_MAX + 3], detail[512], doing[128] = "", remedy[256] = "";
	uint64_t left = (uint64_t)info->regions_doubtful * info->region_bytes;
	const struct problem problem = {
		.code = PROBLEM_ARRAY_DEGRADED,
		.object = entry->name,
		.detail = detail,
		.risk = "one more failure may lose data",
		.doing = doing,
		.what_to_do = remedy,
		.since_s = entry->since_s,
	};

	array_roles_text(info, roles);
	snprintf(detail, sizeof(detail), "%s %s:", entry->name, roles);
	members_text(entry, info, detail, sizeof(detail));
	if (detail[strlen(detail) - 1] == ':')
		snprintf(detail, sizeof(detail),
			 "%s %s: a member was taken out, no disk has its place", entry->name,
			 roles);
	for (unsigned i = 0; i < info->member_count; i++) {
		const struct array_member_info *member = &info->members[i];

		rebuilding |= member->present && member->state == LABEL_REBUILDING;
		failed |= wanted(member) && !replaced(info, i) &&
			  (!member->present || member->state == LABEL_FAILED);
	}
	if (rebuilding)
		snprintf(doing, sizeof(doing), "resync: %" PRIu64 " MiB left", left / MIB);
	if (failed)
		snprintf(remedy, sizeof(remedy),
			 "put it right or replace it, then: yokectl array add %s DISK",
			 entry->name);
	else if (rebuilding)
		snprintf(remedy, sizeof(remedy),
			 "nothing: it is healthy when the resync has ended");
	else
		snprintf(remedy, sizeof(remedy), "give it a disk: yokectl array add %s DISK",
			 entry->name);
	add(problems, &problem);
}

static void loss_problem(const struct array_entry *entry, const struct array_info *info,
			 json_t *problems)
{
	char detail[256];
	const struct problem problem = {
		.code = PROBLEM_ARRAY_LOSS,
		.object = entry->name,
		.detail = detail,
		.risk = "reads of these blocks end in 03/11/00",
		.doing = "",
		.what_to_do = "write them anew, from a copy",
		.since_s = entry->since_s,
	};

	snprintf(detail, sizeof(detail), "%s: %" PRIu64 " bytes in %u %s are lost", entry->name,
		 info->bad_bytes, info->bad_ranges, info->bad_ranges == 1 ? "place" : "places");
	add(problems, &problem);
}

static void failed_problem(const struct array_entry *entry, const struct array_member_info *member,
			   json_t *problems)
{
	const struct disk *disk = array_member_disk(entry, member->uuid);
	char detail[512];
	const struct problem problem = {
		.code = PROBLEM_ARRAY_FAILED,
		.object = entry->name,
		.detail = detail,
		.risk = "what lies on that member cannot be read or written (03/11, 03/0C)",
		.doing = "",
		.what_to_do = "",
		.since_s = entry->since_s,
	};

	snprintf(detail, sizeof(detail), "%s: d%u (%s), which it cannot do without: %s",
		 entry->name, member->index, disk->name, disk->blk->state_cause);
	add(problems, &problem);
}

static void halted_problem(const struct array_entry *entry, const struct array_info *info,
			   json_t *problems)
{
	char detail[512];
	const struct problem problem = {
		.code = PROBLEM_ARRAY_FAILED,
		.object = entry->name,
		.detail = detail,
		.risk = "writes end with 03/0C, and so do reads of what only its logs tell",
		.doing = "",
		.what_to_do = "put its disks right, then restart yoked",
		.since_s = entry->since_s,
	};

	snprintf(detail, sizeof(detail), "%s: %s", entry->name, info->why);
	add(problems, &problem);
}

static void incomplete_problem(const struct array_entry *entry, const struct array_info *info,
			       json_t *problems)
{
	char detail[512], remedy[256] = "";
	const struct problem problem = {
		.code = PROBLEM_ARRAY_INCOMPLETE,
		.object = entry->name,
		.detail = detail,
		.risk = "it is not served",
		.doing = info->waits == ARRAY_WAITS_MOMENT ? "starts without them in a moment" : "",
		.what_to_do = remedy,
		.since_s = entry->since_s,
	};
	const char *why = entry->array ? info->why : entry->refused;
	size_t len = strlen(entry->name);

	/* "array r1: ..." as raid/ says it. */
	if (!strncmp(why, "array ", 6) && !strncmp(why + 6, entry->name, len) &&
	    !strncmp(why + 6 + len, ": ", 2))
		why += 6 + len + 2;
	snprintf(detail, sizeof(detail), "%s: %s", entry->name, why);
	if (info->waits == ARRAY_WAITS_FORCE)
		snprintf(remedy, sizeof(remedy),
			 "connect it, then: yokectl reload. If it is lost: yokectl array start %s "
			 "--force, and what only it holds is lost",
			 entry->name);
	else if (info->waits == ARRAY_WAITS_CHOICE)
		snprintf(remedy, sizeof(remedy),
			 "yokectl array start %s DISK... with those that count", entry->name);
	if (!entry->array)
		snprintf(remedy, sizeof(remedy), "disconnect the disks of one of them");
	add(problems, &problem);
}

/* Disks whose file systems have no room: writes fail, and no member is to blame. */
static void full_problem(const struct array_entry *entry, const struct array_info *info,
			 json_t *problems)
{
	char detail[512];
	struct problem problem = {
		.code = PROBLEM_BACKING_FULL,
		.object = entry->name,
		.detail = detail,
		.risk = "new blocks fail (07/27/07); overwrites go on",
		.doing = "",
		.what_to_do = "",
	};

	for (unsigned i = 0; i < info->member_count; i++) {
		const struct disk *disk = array_member_disk(entry, info->members[i].uuid);
		uint64_t ago_ns;

		if (!info->members[i].present || !disk || !disk->blk || !device_full(disk->blk))
			continue;
		ago_ns = env_now_ns(entry->yoked->env) - disk->blk->full_ns;
		problem.since_s = time(NULL) - (int64_t)(ago_ns / NS_PER_S);
		snprintf(detail, sizeof(detail),
			 "%s: no room on %s for a block that was never written", entry->name,
			 disk->name);
		add(problems, &problem);
		return;
	}
}

void array_problems(const struct array_entry *entry, json_t *problems)
{
	struct array_info info = { .level = 0 };
	const struct array_member_info *member;

	if (!array_entry_ready(entry))
		return; /* it will be something in a moment */
	if (entry->array)
		array_info(entry->array, &info);
	if (!entry->array || info.state == ARRAY_WAITING)
		incomplete_problem(entry, &info, problems);
	else if ((member = broken(entry, &info)))
		failed_problem(entry, member, problems);
	else if (info.state == ARRAY_FAILED)
		halted_problem(entry, &info, problems);
	else if (info.state == ARRAY_DEGRADED)
		degraded_problem(entry, &info, problems);
	if (info.bad_ranges)
		loss_problem(entry, &info, problems);
	if (entry->array)
		full_problem(entry, &info, problems);
}

/* A LUN whose array no disk tells of. */
void absent_problems(const struct yoked *yoked, json_t *problems)
{
	const struct export *export;

	TAILQ_FOREACH(export, &yoked->exports, link) {
		for (unsigned i = 0; i < export->conf->lun_count; i++) {
			const char *name = export->conf->luns[i].array;
			char detail[256];
			const struct problem problem = {
				.code = PROBLEM_ARRAY_INCOMPLETE,
				.object = name,
				.detail = detail,
				.risk = "its LUN is not served",
				.doing = "",
				.what_to_do =
					"connect its disks and see yokectl disk list, or make it "
					"with yokectl array create",
				.since_s = yoked->conf_loaded_s,
			};

			if (!*name || arrays_find(yoked->arrays, name))
				continue;
			snprintf(detail, sizeof(detail), "%s: no disk here is a member of it",
				 name);
			add(problems, &problem);
		}
	}
}
