/* SPDX-License-Identifier: MIT */
/*
 * The label on disk.
 *
 * Invariants:
 *  1. What label_decode() returns 0 for is whole (CRC32C) and consistent in itself: counts and
 *     indices in range, each role in-sync once (in every ancestor, too), areas apart, on 4 KiB
 *     and not in the slots, a chunk of data at least.
 *  2. Bad ranges lie in the data area, in blocks, and only level 5 has some.
 *  3. Unused entries and reserved bytes are zero; a reader ignores reserved bytes.
 *
 * Not here: which label decides (raid/assembly.c), reading and writing slots (raid/member.c).
 * Spec: yoke-disk(5).
 *
 *   0  magic "YOKEDISK"     8  version          12  crc32c (of the label with this as 0)
 *  16  array uuid          32  name             96  sequence        104  id
 * 112  level 113 roles 114 flags 115 self      116  chunk           120  block
 * 124  ancestor count     128  log incarnation 136  created
 * 144  maps[2] 176 log 192 data (offset, length each)                   208  generation
 * 216  forced id         224  bad range count
 * 256  members: 32 x { uuid 16, state 1, role 1, reserved 6, reached 8 }
 * 1280 ancestors: 64 x { id 8, forced id 8, listed 4, reserved 4 }
 * 2816 bad ranges: 64 x { place and role 8, length 8 }
 */
#include "backstore/label.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "core/crc32c.h"
#include "core/wire.h"

#define VERSION 1
#define AREA_ALIGN 4096u
#define AREA_END_MAX (UINT64_MAX / 2) /* no sum of places is more than 64 bits */
#define COUNT_MAX (UINT64_MAX / 2)    /* of what rises by one: nobody gets there */
#define LOG_LEAST (512 * KIB)
#define LOG_MOST GIB
#define ROLE_ROOM 512u /* a place is in blocks: what is below them is the role */

enum {
	OFF_MAGIC = 0,
	OFF_VERSION = 8,
	OFF_CRC = 12,
	OFF_ARRAY = 16,
	OFF_NAME = 32,
	OFF_SEQUENCE = 96,
	OFF_ID = 104,
	OFF_LEVEL = 112,
	OFF_ROLES = 113,
	OFF_FLAGS = 114,
	OFF_SELF = 115,
	OFF_CHUNK = 116,
	OFF_BLOCK = 120,
	OFF_ANCESTOR_COUNT = 124,
	OFF_INCARNATION = 128,
	OFF_CREATED = 136,
	OFF_MAPS = 144,
	OFF_LOG = 176,
	OFF_DATA = 192,
	OFF_GENERATION = 208,
	OFF_FORCED = 216,
	OFF_BAD_COUNT = 224,
	OFF_MEMBERS = 256,
	MEMBER_SIZE = 32,
	OFF_ANCESTORS = OFF_MEMBERS + LABEL_MEMBERS_MAX * MEMBER_SIZE,
	ANCESTOR_SIZE = 24,
	OFF_BAD = OFF_ANCESTORS + LABEL_ANCESTORS_MAX * ANCESTOR_SIZE,
	BAD_SIZE = 16,
	OFF_END = OFF_BAD + BAD_RANGES_MAX * BAD_SIZE,
};

static_assert(OFF_ANCESTORS == 1280 && OFF_BAD == 2816, "yoke-disk(5)");
static_assert(OFF_END <= LABEL_SIZE, "a label is one block");
static_assert(LABEL_MEMBERS_MAX <= 32, "an ancestor's list is 32 bits");

static const char magic[8] = "YOKEDISK";

static void put_area(uint8_t *at, const struct label_area *area)
{
	put_le64(at, area->offset);
	put_le64(at + 8, area->length);
}

static struct label_area get_area(const uint8_t *at)
{
	return (struct label_area){ .offset = get_le64(at), .length = get_le64(at + 8) };
}

void label_encode(const struct label *label, void *buf)
{
	uint8_t *out = buf;

	memset(out, 0, LABEL_SIZE);
	memcpy(out + OFF_MAGIC, magic, sizeof(magic));
	put_le32(out + OFF_VERSION, VERSION);
	memcpy(out + OFF_ARRAY, label->array, sizeof(uuid_t));
	memcpy(out + OFF_NAME, label->name, strnlen(label->name, LABEL_NAME_MAX - 1));
	put_le64(out + OFF_SEQUENCE, label->sequence);
	put_le64(out + OFF_ID, label->id);
	out[OFF_LEVEL] = (uint8_t)label->level;
	out[OFF_ROLES] = (uint8_t)label->roles;
	out[OFF_FLAGS] = (uint8_t)label->flags;
	out[OFF_SELF] = (uint8_t)label->self;
	put_le32(out + OFF_CHUNK, label->chunk_bytes);
	put_le32(out + OFF_BLOCK, label->block_bytes);
	put_le32(out + OFF_ANCESTOR_COUNT, label->ancestor_count);
	put_le64(out + OFF_INCARNATION, label->log_incarnation);
	put_le64(out + OFF_CREATED, (uint64_t)label->created_s);
	put_le64(out + OFF_GENERATION, label->generation);
	put_le64(out + OFF_FORCED, label->forced_id);
	put_area(out + OFF_MAPS, &label->maps[0]);
	put_area(out + OFF_MAPS + 16, &label->maps[1]);
	put_area(out + OFF_LOG, &label->log);
	put_area(out + OFF_DATA, &label->data);
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		uint8_t *at = out + OFF_MEMBERS + i * MEMBER_SIZE;

		if (label->members[i].state == LABEL_NONE)
			continue;
		memcpy(at, label->members[i].uuid, sizeof(uuid_t));
		at[16] = (uint8_t)label->members[i].state;
		at[17] = label->members[i].role;
		put_le64(at + 24, label->members[i].reached);
	}
	for (unsigned i = 0; i < label->ancestor_count; i++) {
		uint8_t *at = out + OFF_ANCESTORS + i * ANCESTOR_SIZE;

		put_le64(at, label->ancestors[i].id);
		put_le64(at + 8, label->ancestors[i].forced_id);
		put_le32(at + 16, label->ancestors[i].listed);
	}
	put_le32(out + OFF_BAD_COUNT, label->bad.count);
	for (unsigned i = 0; i < label->bad.count; i++) {
		const struct bad_range *bad = &label->bad.all[i];
		uint8_t *at = out + OFF_BAD + i * BAD_SIZE;

		put_le64(at, bad->from | bad->role);
		put_le64(at + 8, bad->to - bad->from);
	}
	put_le32(out + OFF_CRC, crc32c_around(out, LABEL_SIZE, OFF_CRC));
}

/* False: there are too many. */
static bool bad_decode(const uint8_t *in, struct bad_ranges *bad)
{
	bad->count = get_le32(in + OFF_BAD_COUNT);
	if (bad->count > BAD_RANGES_MAX)
		return false;
	for (unsigned i = 0; i < bad->count; i++) {
		const uint8_t *at = in + OFF_BAD + i * BAD_SIZE;
		uint64_t place = get_le64(at), from = align_down(place, ROLE_ROOM);

		bad->all[i] = (struct bad_range){ (unsigned)(place % ROLE_ROOM), from,
						  from + get_le64(at + 8) };
	}
	return true;
}

static void members_decode(const uint8_t *in, struct label *label)
{
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		const uint8_t *at = in + OFF_MEMBERS + i * MEMBER_SIZE;
		struct label_member *member = &label->members[i];

		memcpy(member->uuid, at, sizeof(uuid_t));
		member->state = at[16];
		member->role = member->state == LABEL_NONE ? LABEL_NO_ROLE : at[17];
		member->reached = member->state == LABEL_NONE ? 0 : get_le64(at + 24);
	}
	for (unsigned i = 0; i < label->ancestor_count; i++) {
		const uint8_t *at = in + OFF_ANCESTORS + i * ANCESTOR_SIZE;

		label->ancestors[i].id = get_le64(at);
		label->ancestors[i].forced_id = get_le64(at + 8);
		label->ancestors[i].listed = get_le32(at + 16);
	}
}

static bool area_sound(const struct label_area *area, uint64_t after)
{
	return !area->length ||
	       (area->offset >= after && area->offset % AREA_ALIGN == 0 &&
		area->offset <= AREA_END_MAX && area->length <= AREA_END_MAX - area->offset);
}

static uint64_t area_end(const struct label_area *area, uint64_t before)
{
	return area->length ? area->offset + area->length : before;
}

/* A ring that holds a whole stripe and more, and can be read into memory. */
static bool log_sound(const struct label *label)
{
	uint64_t length = label->log.length;

	return length >= LOG_LEAST && length <= LOG_MOST && length % AREA_ALIGN == 0 &&
	       length >= 2 * (uint64_t)label->roles * label->chunk_bytes;
}

/* In the order maps, log, data; the last one is what the array is for. */
static bool areas_sound(const struct label *label)
{
	const struct label_area *all[] = { &label->maps[0], &label->maps[1], &label->log,
					   &label->data };
	uint64_t end = 2 * LABEL_SIZE;

	for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
		if (!area_sound(all[i], end))
			return false;
		end = area_end(all[i], end);
	}
	if (label->level == 5 && !log_sound(label))
		return false;
	return label->data.length && label->data.length % label->block_bytes == 0 &&
	       label->data.length >= label->chunk_bytes;
}

/* Who was in-sync then still has its role, and nobody else had it then. */
static bool ancestor_sound(const struct label *label, const struct label_ancestor *ancestor)
{
	uint32_t filled = 0;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		const struct label_member *member = &label->members[i];

		if (!(ancestor->listed >> i & 1))
			continue;
		if (member->state == LABEL_NONE || member->role == LABEL_NO_ROLE ||
		    filled >> member->role & 1)
			return false;
		filled |= 1u << member->role;
	}
	return ancestor->id && filled;
}

static bool members_sound(const struct label *label)
{
	uint32_t filled = 0;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++) {
		const struct label_member *member = &label->members[i];

		if (member->state >= LABEL_STATES)
			return false;
		if (member->state == LABEL_NONE)
			continue;
		if (member->reached > label->generation)
			return false;
		if (member->role != LABEL_NO_ROLE && member->role >= label->roles)
			return false;
		if (uuid_is_null(member->uuid) || label_find(label, member->uuid) != (int)i)
			return false;
		if (member->state != LABEL_IN_SYNC && member->state != LABEL_REBUILDING)
			continue;
		if (member->role == LABEL_NO_ROLE || filled >> member->role & 1)
			return false;
		filled |= 1u << member->role;
	}
	for (unsigned i = 0; i < label->ancestor_count; i++)
		if (!ancestor_sound(label, &label->ancestors[i]))
			return false;
	return label->members[label->self].state != LABEL_NONE;
}

static bool bad_sound(const struct label *label)
{
	for (unsigned i = 0; i < label->bad.count; i++) {
		const struct bad_range *bad = &label->bad.all[i];

		if (bad->role >= label->roles || bad->to > label->data.length ||
		    (bad->from | bad->to) % label->block_bytes)
			return false;
	}
	return bad_ranges_sound(&label->bad) && (!label->bad.count || label->level == 5);
}

static bool geometry_sound(const struct label *label)
{
	static const struct {
		unsigned level, roles_min, roles_max, even;
		bool chunked;
	} levels[] = {
		{ 0, 1, 16, 0, true },
		{ 1, 2, 4, 0, false },
		{ 5, 3, 16, 0, true },
		{ 10, 4, 16, 1, true },
	};
	uint32_t chunk = label->chunk_bytes;

	if (label->block_bytes != 512 && label->block_bytes != 4096)
		return false;
	for (unsigned i = 0; i < ARRAY_LEN(levels); i++) {
		if (levels[i].level != label->level)
			continue;
		if (label->roles < levels[i].roles_min || label->roles > levels[i].roles_max ||
		    (levels[i].even && label->roles % 2))
			return false;
		return levels[i].chunked ?
			       chunk >= 4 * KIB && chunk <= MIB && !(chunk & (chunk - 1)) :
			       !chunk;
	}
	return false;
}

bool label_name_sound(const char *name)
{
	size_t length = strnlen(name, LABEL_NAME_MAX);

	if (!length || length == LABEL_NAME_MAX)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)name[i]))
			return false;
	return true;
}

int label_decode(const void *buf, struct label *label)
{
	const uint8_t *in = buf;

	if (memcmp(in + OFF_MAGIC, magic, sizeof(magic)) != 0)
		return -ENOENT;
	if (get_le32(in + OFF_CRC) != crc32c_around(in, LABEL_SIZE, OFF_CRC))
		return -EILSEQ;
	if (get_le32(in + OFF_VERSION) != VERSION)
		return -ENOTSUP;
	memset(label, 0, sizeof(*label));
	memcpy(label->array, in + OFF_ARRAY, sizeof(uuid_t));
	memcpy(label->name, in + OFF_NAME, LABEL_NAME_MAX);
	label->sequence = get_le64(in + OFF_SEQUENCE);
	label->id = get_le64(in + OFF_ID);
	label->level = in[OFF_LEVEL];
	label->roles = in[OFF_ROLES];
	label->flags = in[OFF_FLAGS];
	label->self = in[OFF_SELF];
	label->chunk_bytes = get_le32(in + OFF_CHUNK);
	label->block_bytes = get_le32(in + OFF_BLOCK);
	label->ancestor_count = get_le32(in + OFF_ANCESTOR_COUNT);
	label->log_incarnation = get_le64(in + OFF_INCARNATION);
	label->created_s = (int64_t)get_le64(in + OFF_CREATED);
	label->generation = get_le64(in + OFF_GENERATION);
	label->forced_id = get_le64(in + OFF_FORCED);
	label->maps[0] = get_area(in + OFF_MAPS);
	label->maps[1] = get_area(in + OFF_MAPS + 16);
	label->log = get_area(in + OFF_LOG);
	label->data = get_area(in + OFF_DATA);
	if (!label->id || uuid_is_null(label->array) || label->self >= LABEL_MEMBERS_MAX ||
	    label->flags & ~LABEL_FLAGS || label->ancestor_count > LABEL_ANCESTORS_MAX ||
	    label->generation < label->ancestor_count || label->sequence > COUNT_MAX ||
	    label->generation > COUNT_MAX)
		return -EILSEQ;
	members_decode(in, label);
	if (!bad_decode(in, &label->bad) || !label_name_sound(label->name) ||
	    !geometry_sound(label) || !areas_sound(label) || !members_sound(label) ||
	    !bad_sound(label))
		return -EILSEQ;
	return 0;
}

uint64_t label_slot_offset(uint64_t size_bytes, unsigned slot)
{
	uint64_t end = align_down(size_bytes, LABEL_SIZE);

	assert(slot < LABEL_SLOTS && end >= LABEL_SLOTS * LABEL_SIZE);
	return slot < 2 ? slot * LABEL_SIZE : end - (LABEL_SLOTS - slot) * LABEL_SIZE;
}

uint32_t label_listed(const struct label *label)
{
	uint32_t listed = 0;

	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		if (label->members[i].state == LABEL_IN_SYNC)
			listed |= 1u << i;
	return listed;
}

int label_find(const struct label *label, const uuid_t member)
{
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX; i++)
		if (label->members[i].state != LABEL_NONE &&
		    uuid_compare(label->members[i].uuid, member) == 0)
			return (int)i;
	return -1;
}

int label_succeed(struct label *label, uint64_t id)
{
	assert(id && id != label->id);
	if (label->ancestor_count == LABEL_ANCESTORS_MAX)
		return -ENOSPC;
	label->ancestors[label->ancestor_count++] = (struct label_ancestor){
		.id = label->id,
		.forced_id = label->forced_id,
		.listed = label_listed(label),
	};
	label->id = id;
	label->generation++;
	label->flags &= ~LABEL_CLEAN;
	return 0;
}

bool label_worn(const struct label *label)
{
	return label->sequence > COUNT_MAX / 2 || label->generation > COUNT_MAX / 2;
}

void label_settled(struct label *label)
{
	memset(label->ancestors, 0, sizeof(label->ancestors));
	label->ancestor_count = 0;
}

const char *label_state_name(enum label_state state)
{
	static const char *const names[LABEL_STATES] = {
		[LABEL_NONE] = "none",
		[LABEL_IN_SYNC] = "in-sync",
		[LABEL_REBUILDING] = "rebuilding",
		[LABEL_FAILED] = "failed",
		[LABEL_SPARE] = "spare",
		[LABEL_REMOVED] = "removed",
	};

	return names[state];
}
