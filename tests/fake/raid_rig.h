/* SPDX-License-Identifier: MIT */
/*
 * For tests of raid/: disks with contents whose ios the test fails or holds by what they are
 * for, and an array over them.
 */
#ifndef TESTS_FAKE_RAID_RIG_H
#define TESTS_FAKE_RAID_RIG_H

#include "raid/array_int.h"
#include "tests/fake/fake_blk.h"
#include "tests/fake/fake_env.h"

#define RIG_DISKS 24
#define RIG_RECORDS 8192

struct rig_record {
	enum io_op op;
	enum io_purpose purpose;
	uint64_t offset, length;
	unsigned flags;
};

struct rig_disk {
	struct blk blk;
	char name[16];  /* "d0", "d1" ... */
	uint8_t *bytes; /* the owner's: a disk is opened anew over the same ones */
	bool *open;
	unsigned hold; /* bit P: ios of purpose P wait in `held` */
	struct io_list held;
	unsigned held_count;
	unsigned fail; /* bit P: writes and flushes of purpose P fail with `error` */
	unsigned fail_reads;
	int error;
	bool fail_slots[LABEL_SLOTS];    /* reads of a label's slot fail */
	uint64_t bad_offset, bad_length; /* reads fail with -EIO until it is written */
	struct rig_record records[RIG_RECORDS];
	unsigned record_count;
};

/* Of rig_disk's hold, fail and fail_reads. */
#define RIG_ALL (~0u)
#define LABELS (1u << IO_LABEL)
#define HOST (1u << IO_HOST)
#define MAPS (1u << IO_MAP)
#define RESYNC (1u << IO_RESYNC)

/* The world of a test. Disks are opened by the first use of their number. */
struct rig {
	struct env *env;
	struct array *array;
	struct rig_disk *disks[RIG_DISKS]; /* NULL: not open */
	uint8_t *bytes[RIG_DISKS];
	bool is_open[RIG_DISKS];
	uint64_t sizes[RIG_DISKS];
	uint32_t block_size;
	unsigned features;
	unsigned level;
	/* The newest answer. */
	unsigned answers;
	int error;
	char text[400];
};
extern struct rig rig;

/* COUNT disks of zeroes, SIZE bytes each. */
void rig_setup(unsigned count, uint64_t size_bytes);
/* The same, and an array of LEVEL over all of them, with nothing dirty. */
void rig_setup_clean(unsigned level, unsigned count, uint64_t size_bytes);
/* Stops the array if there is one. */
void rig_teardown(void);
/* One more disk, of zeroes; its number is COUNT, COUNT + 1 ... */
struct rig_disk *rig_disk(unsigned number);
/* Its device, as offered to an array. */
struct array_disk rig_offer(unsigned number);
/* An array_done_fn that counts and keeps the answer in RIG. */
void rig_answer(void *arg, struct array *array, int error, const char *text);

/* An array of LEVEL over disks 0 to COUNT - 1, online; everything runs until idle. */
int rig_create(unsigned level, unsigned count);
/* The same, and until nothing is dirty any more. */
void rig_create_clean(unsigned level, unsigned count);
/* The disks whose bit is set are offered; without a delay. Its answer. */
int rig_start(uint32_t disks, bool force);
int rig_start_how(uint32_t disks, const struct array_start *how);
int rig_add(unsigned disk);
int rig_remove(unsigned member);
int rig_stop(void);
/* What was in memory is lost, and what was on its way; disks keep what they have. */
void rig_power_cut(void);
/* Until no timer is near: what is dirty is cleaned. */
void rig_settle(void);

/* Serve the oldest held io; with an ERROR it does nothing. Runs until idle. */
void rig_end(unsigned disk, int error);
/* Hold these purposes, and no others, on every disk that is open. */
void rig_hold(unsigned purposes);
/* Hold nothing any more. */
void rig_release(unsigned disk);
/* Ios that DISK was sent since the last rig_forget(). */
unsigned rig_count(unsigned disk, enum io_op op, enum io_purpose purpose);
void rig_forget(void);

/* The newest label on DISK as array_probe() finds it; its error. */
int rig_probe(unsigned disk, struct label *label);
/* The same, from its bytes alone. -ENOENT: it has none that is sound. */
int rig_label(unsigned disk, struct label *label);
/* What LABEL becomes on DISK, in all its slots. */
void rig_put_label(unsigned disk, const struct label *label);
/* Of DISK's data area. */
uint8_t *rig_data(unsigned disk);
struct array_info rig_info(void);

/* A host's I/O of LENGTH bytes that follow from SEED. */
int rig_write(uint64_t offset, uint64_t length, uint64_t seed);
/* 0 if that is what is read there; -EILSEQ: it is not. */
int rig_read(uint64_t offset, uint64_t length, uint64_t seed);

/* An io under way, for tests that look at the moments between. */
struct rig_io {
	struct io io;
	struct iovec iov;
	struct fake_wait wait;
	uint8_t *buf;
};
struct rig_io *rig_send(enum io_op op, uint64_t offset, uint64_t length, uint64_t seed);
bool rig_ended(const struct rig_io *io);
/* It has ended; its error. Frees it. */
int rig_take(struct rig_io *io);

#endif
