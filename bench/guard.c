/* SPDX-License-Identifier: MIT */
/*
 * The guard before the first write: libblkid on a sparse file that is as large as the LUN and
 * has its first and last MiBs.
 *
 * Invariants:
 * 1. Nothing is written anywhere but to that file in memory.
 * 2. In doubt it refuses: a signature with a wrong checksum is one, and so are several that
 *    contradict each other.
 *
 * Not here: when it is asked (main.c).
 */
#include "bench/guard.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* VMFS has its signatures behind the first and the second MiB, LUKS2 a copy behind the fourth. */
#define HEAD_BYTES (5 * MIB)
#define TAIL_BYTES MIB
#define READ_BYTES (128 * KIB) /* at a time; whole blocks of any size that is taken */

static int fail(struct bench_fault *fault, int err, const char *what)
{
	snprintf(fault->text, sizeof(fault->text), "%s: %s", what, strerror(-err));
	return err;
}

static int copy(const struct guard *guard, unsigned lun, int fd, uint64_t from, uint64_t to,
		struct bench_fault *fault)
{
	char *buf = malloc(READ_BYTES);
	int err = buf ? 0 : fail(fault, -ENOMEM, "looking at a LUN");

	while (!err && from < to) {
		size_t length = (size_t)min_u64(READ_BYTES, to - from);

		err = guard->read(guard->arg, lun, from, buf, length, fault);
		if (!err && pwrite(fd, buf, length, (off_t)from) != (ssize_t)length)
			err = fail(fault, -EIO, "looking at a LUN");
		from += length;
	}
	free(buf);
	return err;
}

static void add(char *carries, size_t size, const char *name, const char *kind)
{
	size_t used = strlen(carries);

	snprintf(carries + used, size - used, "%s%s%s%s", used ? ", " : "", name, *kind ? " " : "",
		 kind);
}

/* What the probe found in its last step: of one chain, superblocks or partitions. */
static void name_found(blkid_probe probe, char *carries, size_t size)
{
	const char *type = NULL, *usage = NULL;

	if (blkid_probe_lookup_value(probe, "TYPE", &type, NULL) == 0) {
		blkid_probe_lookup_value(probe, "USAGE", &usage, NULL);
		add(carries, size, type,
		    usage && strcmp(usage, "filesystem") == 0 ? "filesystem" :
		    usage && strcmp(usage, "raid") == 0       ? "member" :
								"");
	}
	if (blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL) == 0)
		add(carries, size, type, "partition table");
}

static int probe_file(int fd, const struct bench_lun *lun, char *carries, size_t size,
		      struct bench_fault *fault)
{
	blkid_probe probe = blkid_new_probe();
	int rc = -1;

	if (!probe)
		return fail(fault, -ENOMEM, "looking at a LUN");
	if (blkid_probe_set_device(probe, fd, 0, 0) == 0) {
		blkid_probe_set_sectorsize(probe, lun->block_bytes);
		blkid_probe_enable_superblocks(probe, 1);
		blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE |
								 BLKID_SUBLKS_BADCSUM);
		blkid_probe_enable_partitions(probe, 1);
		blkid_probe_set_partitions_flags(probe, BLKID_PARTS_FORCE_GPT);
		while ((rc = blkid_do_probe(probe)) == 0 && strlen(carries) < size / 2)
			name_found(probe, carries, size);
	}
	blkid_free_probe(probe);
	return rc < 0 ? fail(fault, -EIO, "looking at a LUN: libblkid") : 0;
}

int guard_look(const struct guard *guard, unsigned lun, char *carries, size_t size,
	       struct bench_fault *fault)
{
	const struct bench_lun *l = &guard->luns[lun];
	uint64_t head = min_u64(HEAD_BYTES, l->size_bytes);
	uint64_t tail = l->size_bytes - min_u64(TAIL_BYTES, l->size_bytes);
	int fd = memfd_create("lun", MFD_CLOEXEC), err;

	*carries = '\0';
	if (fd < 0 || ftruncate(fd, (off_t)l->size_bytes))
		err = fail(fault, -errno, "looking at a LUN");
	else
		err = copy(guard, lun, fd, 0, head, fault);
	err = err ? err : copy(guard, lun, fd, max_u64(tail, head), l->size_bytes, fault);
	err = err ? err : probe_file(fd, l, carries, size, fault);
	if (fd >= 0)
		close(fd);
	return err;
}

int guard_check(const struct guard *guard, const char *target, struct bench_fault *fault)
{
	for (unsigned i = 0; i < guard->lun_count; i++) {
		char carries[96];
		int err = guard_look(guard, i, carries, sizeof(carries), fault);

		if (err)
			return err;
		if (!*carries)
			continue;
		snprintf(fault->text, sizeof(fault->text),
			 "LUN %u of %.100s carries: %s. --no-fill with a load that only reads "
			 "leaves it as it is; --destroy overwrites it",
			 guard->luns[i].lun, target, carries);
		return -EEXIST;
	}
	return 0;
}
