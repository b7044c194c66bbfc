/* SPDX-License-Identifier: MIT */
/*
 * The mapped file: opening it with distrust, and changing records so that any moment will do.
 *
 * Invariants: journal.h.
 *
 * Not here: which versions are possible (history.c).
 * Spec: journal.h is the format.
 */
#include "bench/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/crc32c.h"
#include "core/wire.h"

#define MAGIC "YkbJrnl1"
#define RECORD (JOURNAL_ENTRIES * 8)
#define HEADER 4096u
#define CHECKED 2048u /* bytes of the header that its checksum covers */
#define STRIDE ((uint64_t)1 << 20)

/* In the file; see journal.h. */
struct header {
	uint8_t magic[8];
	uint8_t crc[4];
	uint8_t lun_count[4];
	uint8_t id[8];
	uint8_t zero[8];
	struct {
		uint8_t lun[4];
		uint8_t zero[4];
		uint8_t blocks[8];
	} luns[BENCH_LUNS_MAX];
	uint8_t unused[CHECKED - 32 - BENCH_LUNS_MAX * 16];
	_Atomic uint64_t limit;
	uint8_t rest[HEADER - CHECKED - 8];
};
static_assert(sizeof(struct header) == HEADER, "journal.h");
static_assert(offsetof(struct header, luns) == 32, "journal.h");
static_assert(offsetof(struct header, limit) == CHECKED, "journal.h");

struct record {
	_Atomic uint64_t entries[JOURNAL_ENTRIES];
};
static_assert(sizeof(struct record) == RECORD, "journal.h");

struct journal {
	int fd;
	struct header *header;
	struct record *records;
	size_t size;
	uint64_t id, blocks;
	uint64_t next, limit;
	bool existed;
};

static int refuse(struct bench_fault *fault, int error, const char *file, const char *cause,
		  const char *remedy)
{
	snprintf(fault->text, sizeof(fault->text), "journal %.90s: %.110s: %.90s", file, cause,
		 remedy);
	return -error;
}

/* BLOCK UINT64_MAX: the header's. */
static uint16_t check(uint64_t id, uint64_t block, uint64_t word)
{
	uint64_t v[3] = { htole64(id), htole64(block), htole64(word >> 16) };
	uint32_t crc = crc32c(v, sizeof(v));

	return (uint16_t)(crc ^ crc >> 16);
}

static uint64_t pack(const struct journal *journal, uint64_t block, struct journal_entry entry)
{
	uint64_t word = (uint64_t)entry.kind << 61 | entry.number << 16;

	assert(entry.number <= JOURNAL_NUMBER_MAX);
	return word | check(journal->id, block, word);
}

static struct journal_entry unpack(uint64_t word)
{
	return (struct journal_entry){ .kind = (enum journal_kind)(word >> 61),
				       .number = word >> 16 & JOURNAL_NUMBER_MAX };
}

static bool word_valid(const struct journal *journal, uint64_t block, uint64_t word)
{
	enum journal_kind kind = unpack(word).kind;

	return (uint16_t)word == check(journal->id, block, word) &&
	       (block == UINT64_MAX ? kind == JOURNAL_LIMIT :
				      kind > JOURNAL_NONE && kind < JOURNAL_LIMIT);
}

static uint32_t header_crc(const struct header *header)
{
	static const uint8_t zero[4];
	const uint8_t *bytes = (const uint8_t *)header;
	uint32_t crc = crc32c_add(CRC32C_START, bytes, offsetof(struct header, crc));

	crc = crc32c_add(crc, zero, sizeof(zero));
	return crc32c_end(crc32c_add(crc, bytes + offsetof(struct header, lun_count),
				     CHECKED - offsetof(struct header, lun_count)));
}

static void header_make(struct journal *journal, const struct journal_lun *luns, unsigned lun_count)
{
	struct header *header = journal->header;
	struct journal_entry limit = { JOURNAL_LIMIT, 1 };

	memcpy(header->magic, MAGIC, sizeof(header->magic));
	put_le32(header->lun_count, lun_count);
	put_le64(header->id, journal->id);
	for (unsigned i = 0; i < lun_count; i++) {
		put_le32(header->luns[i].lun, luns[i].lun);
		put_le64(header->luns[i].blocks, luns[i].blocks);
	}
	atomic_store(&header->limit, htole64(pack(journal, UINT64_MAX, limit)));
	put_le32(header->crc, header_crc(header));
}

static int map(struct journal *journal, const char *file, struct bench_fault *fault)
{
	void *at = mmap(NULL, journal->size, PROT_READ | PROT_WRITE, MAP_SHARED, journal->fd, 0);

	if (at == MAP_FAILED)
		return refuse(fault, errno, file, strerror(errno), "it cannot be mapped");
	assert(at != NULL);
	journal->header = at;
	journal->records = (struct record *)((uint8_t *)at + HEADER);
	return 0;
}

/* Under another name until it is whole: no run finds half a journal. */
static int create(struct journal *journal, const char *file, const struct journal_lun *luns,
		  unsigned lun_count, struct bench_fault *fault)
{
	char *temporary = NULL;
	int rc;

	if (asprintf(&temporary, "%s.%d.new", file, (int)getpid()) < 0)
		return refuse(fault, ENOMEM, file, "no memory", "end other programs");
	journal->fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (journal->fd < 0) {
		rc = refuse(fault, errno, file, strerror(errno), "give another place");
		free(temporary);
		return rc;
	}
	/* A hole that cannot be filled later would be a fatal signal. */
	rc = posix_fallocate(journal->fd, 0, (off_t)journal->size);
	if (rc)
		rc = refuse(fault, rc, file, strerror(rc),
			    "it takes 1.6 % of the range: make room or give a smaller --size");
	else
		rc = map(journal, file, fault);
	if (!rc && getrandom(&journal->id, sizeof(journal->id), 0) != sizeof(journal->id))
		rc = refuse(fault, EIO, file, "no random number", "look at the system's log");
	if (!rc) {
		header_make(journal, luns, lun_count);
		if (flock(journal->fd, LOCK_EX | LOCK_NB) || link(temporary, file))
			rc = refuse(fault, errno, file, strerror(errno), "is another run at it?");
	}
	unlink(temporary);
	free(temporary);
	return rc;
}

static int check_header(const struct header *header, const char *file,
			const struct journal_lun *luns, unsigned lun_count,
			struct bench_fault *fault)
{
	char cause[160];
	unsigned count = get_le32(header->lun_count);

	if (get_le32(header->crc) != header_crc(header))
		return refuse(fault, EBADMSG, file, "its header is damaged",
			      "it proves nothing any more; give another file");
	for (unsigned i = 0; i < lun_count && i < count; i++) {
		uint32_t lun = get_le32(header->luns[i].lun);
		uint64_t blocks = get_le64(header->luns[i].blocks);

		if (lun == luns[i].lun && blocks == luns[i].blocks)
			continue;
		snprintf(cause, sizeof(cause),
			 "it is for LUN %u and %" PRIu64 " MiB, not LUN %u and %" PRIu64 " MiB",
			 lun, blocks / 256, luns[i].lun, luns[i].blocks / 256);
		return refuse(fault, EINVAL, file, cause, "use the same --luns and --size");
	}
	if (count != lun_count) {
		snprintf(cause, sizeof(cause), "it is for %u LUNs, not %u", count, lun_count);
		return refuse(fault, EINVAL, file, cause, "use the same --luns and --size");
	}
	return 0;
}

static int check_records(struct journal *journal, const char *file, struct bench_fault *fault)
{
	uint64_t limit = le64toh(atomic_load(&journal->header->limit));
	char cause[100];

	if (!word_valid(journal, UINT64_MAX, limit))
		return refuse(fault, EBADMSG, file, "its header is damaged",
			      "it proves nothing any more; give another file");
	if (unpack(limit).number > JOURNAL_NUMBER_MAX / 2)
		return refuse(fault, EBADMSG, file, "its sequences are used up",
			      "give another file");
	journal->next = journal->limit = unpack(limit).number;
	for (uint64_t block = 0; block < journal->blocks; block++) {
		for (unsigned i = 0; i < JOURNAL_ENTRIES; i++) {
			uint64_t word = le64toh(atomic_load_explicit(
				&journal->records[block].entries[i], memory_order_relaxed));

			if (word == 0 || word_valid(journal, block, word))
				continue;
			snprintf(cause, sizeof(cause), "record %" PRIu64 " is damaged", block);
			return refuse(fault, EBADMSG, file, cause,
				      "it proves nothing any more; give another file");
		}
	}
	return 0;
}

static int reopen(struct journal *journal, const char *file, const struct journal_lun *luns,
		  unsigned lun_count, struct bench_fault *fault)
{
	struct header header = { 0 };
	struct stat st;
	int rc;

	if (fstat(journal->fd, &st))
		return refuse(fault, errno, file, strerror(errno), "give another file");
	if (!S_ISREG(st.st_mode) || pread(journal->fd, &header, sizeof(header), 0) < 0 ||
	    memcmp(header.magic, MAGIC, sizeof(header.magic)) != 0)
		return refuse(fault, EINVAL, file, "is no journal of yoke-bench",
			      "give another file, or one that does not exist yet");
	if (flock(journal->fd, LOCK_EX | LOCK_NB))
		return refuse(fault, EBUSY, file, "another yoke-bench uses it", "wait for its end");
	rc = st.st_size < (off_t)HEADER ? 0 : check_header(&header, file, luns, lun_count, fault);
	if (rc)
		return rc;
	if ((uint64_t)st.st_size != journal->size)
		return refuse(fault, EBADMSG, file, "is cut off or has grown",
			      "it proves nothing any more; give another file");
	rc = map(journal, file, fault);
	if (rc)
		return rc;
	journal->id = get_le64(header.id);
	journal->existed = true;
	return check_records(journal, file, fault);
}

int journal_open(const char *file, const struct journal_lun *luns, unsigned lun_count,
		 bool must_exist, struct journal **journal, struct bench_fault *fault)
{
	struct journal *j = calloc(1, sizeof(*j));
	int rc;

	*journal = NULL;
	assert(lun_count <= BENCH_LUNS_MAX);
	if (j == NULL)
		return refuse(fault, ENOMEM, file, "no memory", "end other programs");
	for (unsigned i = 0; i < lun_count; i++)
		j->blocks += luns[i].blocks;
	j->size = HEADER + j->blocks * RECORD;
	j->next = j->limit = 1;
	j->fd = open(file, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (j->fd >= 0)
		rc = reopen(j, file, luns, lun_count, fault);
	else if (errno != ENOENT)
		rc = refuse(fault, errno, file, strerror(errno), "give another file");
	else if (must_exist)
		rc = refuse(fault, ENOENT, file, strerror(ENOENT),
			    "name the file that --journal of the earlier run wrote");
	else
		rc = create(j, file, luns, lun_count, fault);
	if (rc)
		journal_close(j);
	else
		*journal = j;
	return rc;
}

void journal_close(struct journal *journal)
{
	if (journal == NULL)
		return;
	if (journal->header)
		munmap(journal->header, journal->size);
	if (journal->fd >= 0)
		close(journal->fd);
	free(journal);
}

bool journal_existed(const struct journal *journal)
{
	return journal->existed;
}

uint64_t journal_id(const struct journal *journal)
{
	return journal->id;
}

uint64_t journal_sequence(struct journal *journal)
{
	if (journal->next == journal->limit) {
		struct journal_entry limit = { JOURNAL_LIMIT, journal->limit + STRIDE };

		atomic_store_explicit(&journal->header->limit,
				      htole64(pack(journal, UINT64_MAX, limit)),
				      memory_order_release);
		journal->limit += STRIDE;
	}
	return journal->next++;
}

unsigned journal_get(const struct journal *journal, uint64_t block,
		     struct journal_entry entries[JOURNAL_ENTRIES])
{
	unsigned count = 0;

	assert(block < journal->blocks);
	for (unsigned i = 0; i < JOURNAL_ENTRIES; i++) {
		uint64_t word = le64toh(atomic_load_explicit(&journal->records[block].entries[i],
							     memory_order_relaxed));

		if (word != 0)
			entries[count++] = unpack(word);
	}
	return count;
}

/* The place of WORD among WORDS; -1: none. */
static int place_of(const uint64_t *words, uint64_t word)
{
	for (unsigned i = 0; i < JOURNAL_ENTRIES; i++)
		if (words[i] == word)
			return (int)i;
	return -1;
}

void journal_set(struct journal *journal, uint64_t block, const struct journal_entry *entries,
		 unsigned count)
{
	struct record *record = &journal->records[block];
	uint64_t words[JOURNAL_ENTRIES];
	uint64_t missing[JOURNAL_ENTRIES];
	unsigned missing_count = 0;
	uint8_t kept = 0;

	assert(block < journal->blocks && count > 0 && count <= JOURNAL_ENTRIES);
	for (unsigned i = 0; i < JOURNAL_ENTRIES; i++)
		words[i] = atomic_load_explicit(&record->entries[i], memory_order_relaxed);
	for (unsigned i = 0; i < count; i++) {
		uint64_t word = htole64(pack(journal, block, entries[i]));
		int place = place_of(words, word);

		if (place >= 0)
			kept |= (uint8_t)(1u << place);
		else
			missing[missing_count++] = word;
	}
	/* Into free places first; what then lacks one replaces what goes anyway. */
	for (int taken = 0; taken < 2; taken++) {
		for (unsigned i = 0; i < JOURNAL_ENTRIES && missing_count > 0; i++) {
			if (kept & 1u << i || (words[i] != 0) != taken)
				continue;
			atomic_store_explicit(&record->entries[i], missing[--missing_count],
					      memory_order_release);
			kept |= (uint8_t)(1u << i);
		}
	}
	for (unsigned i = 0; i < JOURNAL_ENTRIES; i++)
		if (!(kept & 1u << i) && words[i] != 0)
			atomic_store_explicit(&record->entries[i], 0, memory_order_release);
}
