/* SPDX-License-Identifier: MIT */
/*
 * Stamps blocks and says what became of them.
 *
 * Invariants:
 *  1. Whatever a sector holds, exactly one kind describes it; nothing read is trusted before
 *     its checksum fits.
 *  2. Two sectors with the same contents were written by the same command to the same place.
 *
 * Not here: whether a version may be read now (history.c), what it means (verify.c).
 * Spec: stamp.h is the format.
 */
#include "bench/stamp.h"

#include <string.h>

#include "core/crc32c.h"
#include "core/wire.h"

static const uint8_t magic[4] = { 'Y', 'k', 'b', 'S' };
static const uint8_t poison[4] = { 'n', 'o', 'n', 'e' };

/* On the LUN: bytes, so that no compiler pads. See stamp.h. */
struct label {
	uint8_t magic[4];
	uint8_t version;
	uint8_t sector;
	uint8_t lun[2];
	uint8_t run[8];
	uint8_t block[8];
	uint8_t sequence[8];
	uint8_t writer[4];
	uint8_t crc[4];
	uint8_t contents[472];
};
static_assert(sizeof(struct label) == STAMP_SECTOR, "a label fills its sector");
static_assert(offsetof(struct label, sector) == 5, "stamp.h");
static_assert(offsetof(struct label, run) == 8, "stamp.h");
static_assert(offsetof(struct label, writer) == 32, "stamp.h");
static_assert(offsetof(struct label, crc) == 36, "stamp.h");
static_assert(offsetof(struct label, contents) == 40, "stamp.h");

#define WORDS (sizeof(((struct label *)0)->contents) / sizeof(uint64_t))

/* The finaliser of MurmurHash3: every bit of the result depends on every bit of V. */
static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 33) * 0xff51afd7ed558ccd;
	v = (v ^ v >> 33) * 0xc4ceb9fe1a85ec53;
	return v ^ v >> 33;
}

/* Random words, the same in every process. */
static const uint64_t *pad(void)
{
	static uint64_t words[WORDS];

	if (words[0] == 0)
		for (unsigned i = 0; i < WORDS; i++)
			words[i] = mix(0x9e3779b97f4a7c15 * (i + 1));
	return words;
}

static uint32_t checksum(const struct label *label)
{
	uint32_t crc = crc32c_add(CRC32C_START, label, offsetof(struct label, crc));

	return crc32c_end(crc32c_add(crc, label->contents, sizeof(label->contents)));
}

/*
 * One key over random words: a multiplication a word would cost more than the checksum, and
 * what compares words of two blocks finds no two alike.
 */
static void fill(struct label *label, uint64_t key)
{
	const uint64_t *words = pad();

	for (unsigned i = 0; i < WORDS; i++)
		put_le64(label->contents + 8 * i, words[i] ^ key);
}

void stamp_write(void *block, const struct stamp *stamp)
{
	struct label *label = block;
	uint64_t key = mix(stamp->run +
			   mix(stamp->sequence + mix(stamp->block ^ (uint64_t)stamp->lun << 48)));

	for (uint8_t i = 0; i < STAMP_SECTORS; i++, label++) {
		memcpy(label->magic, magic, sizeof(magic));
		label->version = STAMP_VERSION;
		label->sector = i;
		put_le16(label->lun, stamp->lun);
		put_le64(label->run, stamp->run);
		put_le64(label->block, stamp->block);
		put_le64(label->sequence, stamp->sequence);
		put_le32(label->writer, stamp->writer);
		fill(label, mix(key + i));
		put_le32(label->crc, checksum(label));
	}
}

void stamp_poison(void *block)
{
	struct label *label = block;

	for (unsigned i = 0; i < STAMP_SECTORS; i++)
		memcpy(label[i].magic, poison, sizeof(poison));
}

static bool is_zero(const void *data, size_t length)
{
	const uint8_t *bytes = data;

	return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static void read_sector(const struct label *label, uint16_t lun, uint64_t block, uint8_t place,
			struct stamp_sector *found)
{
	*found = (struct stamp_sector){ .kind = STAMP_FOREIGN };
	if (memcmp(label->magic, poison, sizeof(poison)) == 0)
		found->kind = STAMP_MISSING;
	else if (is_zero(label, sizeof(*label)))
		found->kind = STAMP_ZERO;
	if (memcmp(label->magic, magic, sizeof(magic)) != 0 || label->version != STAMP_VERSION)
		return;
	found->place = label->sector;
	found->stamp = (struct stamp){
		.run = get_le64(label->run),
		.block = get_le64(label->block),
		.sequence = get_le64(label->sequence),
		.writer = get_le32(label->writer),
		.lun = get_le16(label->lun),
	};
	if (get_le32(label->crc) != checksum(label))
		found->kind = STAMP_CORRUPT;
	else if (found->stamp.block != block || found->stamp.lun != lun || found->place != place)
		found->kind = STAMP_MISPLACED;
	else
		found->kind = STAMP_GOOD;
}

static bool alike(const struct stamp_sector *a, const struct stamp_sector *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind != STAMP_GOOD && a->kind != STAMP_MISPLACED)
		return true;
	return a->stamp.run == b->stamp.run && a->stamp.sequence == b->stamp.sequence &&
	       a->stamp.block == b->stamp.block && a->stamp.lun == b->stamp.lun;
}

void stamp_read(const void *block, uint16_t lun, uint64_t block_at, struct stamp_found *found)
{
	const struct label *label = block;
	const struct stamp_sector *model = NULL; /* the first that can be believed */
	bool torn = false;

	for (uint8_t i = 0; i < STAMP_SECTORS; i++) {
		struct stamp_sector *sector = &found->sectors[i];

		read_sector(&label[i], lun, block_at, i, sector);
		if (sector->kind == STAMP_CORRUPT)
			continue;
		if (model == NULL)
			model = sector;
		else if (!alike(sector, model))
			torn = true;
	}
	found->damaged = false;
	for (unsigned i = 0; i < STAMP_SECTORS; i++)
		found->damaged |= found->sectors[i].kind == STAMP_CORRUPT;
	/* A flipped bit is damage to one version, not a mixture of two. */
	if (torn || (found->damaged && model != NULL && model->kind != STAMP_GOOD))
		found->kind = STAMP_TORN;
	else
		found->kind = found->damaged ? STAMP_CORRUPT : model->kind;
	found->stamp = model != NULL ? model->stamp : found->sectors[0].stamp;
}

uint64_t stamp_hash(const void *block)
{
	const uint8_t *bytes = block;
	uint64_t high = crc32c(bytes, STAMP_BLOCK / 2);

	return (high << 32 | crc32c(bytes + STAMP_BLOCK / 2, STAMP_BLOCK / 2)) & (UINT64_MAX >> 1);
}

const char *stamp_kind_name(enum stamp_kind kind)
{
	static const char *const names[] = {
		[STAMP_GOOD] = "good",
		[STAMP_ZERO] = "all zeroes",
		[STAMP_MISSING] = "not filled: nothing arrived",
		[STAMP_FOREIGN] = "not written by yoke-bench",
		[STAMP_CORRUPT] = "corrupt",
		[STAMP_MISPLACED] = "misplaced",
		[STAMP_TORN] = "torn",
	};

	return names[kind];
}
