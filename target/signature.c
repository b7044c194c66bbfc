/* SPDX-License-Identifier: MIT */
/*
 * What somebody else keeps on a disk: file systems, RAID members, partition tables.
 *
 * Not here: labels of ours (backstore/label.h).
 */
#include <blkid/blkid.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clean.h"
#include "target/disks.h"

static const char *value(blkid_probe probe, const char *name)
{
	const char *text = NULL;

	return blkid_probe_lookup_value(probe, name, &text, NULL) < 0 ? NULL : text;
}

static void describe(blkid_probe probe, char *text, size_t size)
{
	const char *type = value(probe, "TYPE"), *label = value(probe, "LABEL");
	const char *table = value(probe, "PTTYPE");

	if (type && label)
		snprintf(text, size, "%s \"%.64s\"", type, label);
	else if (type)
		snprintf(text, size, "%s", type);
	else
		snprintf(text, size, "a partition table (%s)", table ? table : "unknown");
}

bool signature_of(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	blkid_probe probe = fd < 0 ? NULL : blkid_new_probe();
	int found = -1;

	snprintf(text, size, "something that cannot be read");
	if (probe && blkid_probe_set_device(probe, fd, 0, 0) == 0) {
		blkid_probe_enable_superblocks(probe, 1);
		blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL);
		blkid_probe_enable_partitions(probe, 1);
		found = blkid_do_safeprobe(probe);
	}
	if (found == 0)
		describe(probe, text, size);
	else if (found == -2)
		snprintf(text, size, "several things at once");
	clean_text(text); /* a label may be of any bytes, or cut inside of a character */
	if (probe)
		blkid_free_probe(probe);
	if (fd >= 0)
		close(fd);
	return found != 1;
}
