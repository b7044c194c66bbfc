/* SPDX-License-Identifier: MIT */
/*
 * Who else has a file or block device: for the message, never for a decision.
 *
 * Invariants:
 *  1. Whatever /proc and /sys hold, there is an answer, if only "another program".
 *
 * Not here: finding out that somebody has it (file_open.c).
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backstore/backing_int.h"

static void name_process(long pid, char *text, size_t size_bytes)
{
	char path[64], name[32] = "";
	FILE *comm;

	if (pid == (long)getpid()) {
		snprintf(text, size_bytes, "another backing of this yoked");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	comm = fopen(path, "re");
	if (comm) {
		if (!fgets(name, sizeof(name), comm))
			name[0] = '\0';
		fclose(comm);
	}
	name[strcspn(name, "\n")] = '\0';
	snprintf(text, size_bytes, "%s, pid %ld", name[0] ? name : "a program", pid);
}

/* "1: FLOCK  ADVISORY  WRITE 811 fe:00:1234 0 EOF": device in hex, inode in decimal. */
static bool flock_holder(const struct stat *st, char *text, size_t size_bytes)
{
	FILE *locks = fopen("/proc/locks", "re");
	char line[256];
	bool found = false;

	while (locks && !found && fgets(line, sizeof(line), locks)) {
		unsigned dev_major, dev_minor;
		uint64_t inode;
		long pid;

		/* Waiting ones have "->" after the number and do not match. */
		if (sscanf(line, "%*d: FLOCK %*s %*s %ld %x:%x:%" SCNu64, &pid, &dev_major,
			   &dev_minor, &inode) != 4)
			continue;
		found = inode == st->st_ino && dev_major == major(st->st_dev) &&
			dev_minor == minor(st->st_dev);
		if (found)
			name_process(pid, text, size_bytes);
	}
	if (locks)
		fclose(locks);
	return found;
}

/* "36 35 98:0 /root /mnt rw ...": the third field is the device, the fifth the place. */
static bool mount_holder(dev_t dev, char *text, size_t size_bytes)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t line_bytes = 0;
	bool found = false;

	while (mounts && !found && getline(&line, &line_bytes, mounts) > 0) {
		unsigned dev_major, dev_minor;
		char place[96];

		if (sscanf(line, "%*d %*d %u:%u %*s %95s", &dev_major, &dev_minor, place) != 3)
			continue;
		found = dev_major == major(dev) && dev_minor == minor(dev);
		if (found)
			snprintf(text, size_bytes, "a mount on %s", place);
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

/* Device mapper, md and the like. */
static bool layer_holder(dev_t dev, char *text, size_t size_bytes)
{
	char path[96];
	struct dirent *entry;
	bool found = false;
	DIR *holders;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/holders", major(dev), minor(dev));
	holders = opendir(path);
	while (holders && !found && (entry = readdir(holders))) {
		found = entry->d_name[0] != '.';
		if (found)
			snprintf(text, size_bytes, "the device %s", entry->d_name);
	}
	if (holders)
		closedir(holders);
	return found;
}

void file_holder(const struct stat *st, char *text, size_t size_bytes)
{
	bool found;

	if (S_ISBLK(st->st_mode))
		found = mount_holder(st->st_rdev, text, size_bytes) ||
			layer_holder(st->st_rdev, text, size_bytes);
	else
		found = flock_holder(st, text, size_bytes);
	if (!found)
		snprintf(text, size_bytes, "another program");
}
