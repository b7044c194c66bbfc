/* SPDX-License-Identifier: MIT */
/*
 * Who listens on a port: for the message of a portal that cannot.
 *
 * Reads /proc once, on that error alone: /proc/net/tcp names the socket's
 * inode, /proc/PID/fd the process that has it open.
 *
 * Invariants:
 * 1. What cannot be read (another user's process) is not found, and no error.
 *
 * Not here: the message (target/apply.c), listening (portal.c).
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/iscsi/iscsi_int.h"

#define TCP_LISTEN_STATE 0x0a

/* The inode of a listening socket on PORT in FILE; 0: none. */
static unsigned long listening_inode(const char *file, unsigned port)
{
	unsigned long inode = 0, found = 0;
	unsigned local_port, state;
	char line[512];
	FILE *f = fopen(file, "re");

	if (!f)
		return 0;
	while (!found && fgets(line, sizeof(line), f)) {
		if (sscanf(line,
			   " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*u %*u "
			   "%lu",
			   &local_port, &state, &inode) != 3)
			continue;
		if (local_port == port && state == TCP_LISTEN_STATE)
			found = inode;
	}
	fclose(f);
	return found;
}

static bool has_socket(const char *pid, const char *wanted)
{
	char path[320], target[64];
	struct dirent *entry;
	bool found = false;
	ssize_t len;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	/* cppcheck-suppress readdirCalled ; a stream of our own */
	while (!found && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%.16s/fd/%.32s", pid, entry->d_name);
		len = readlink(path, target, sizeof(target) - 1);
		if (len > 0) {
			target[len] = '\0';
			found = !strcmp(target, wanted);
		}
	}
	closedir(dir);
	return found;
}

static void name_of(const char *pid, char *text, size_t size)
{
	char path[64], name[64] = "?";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
	f = fopen(path, "re");
	if (f) {
		if (fgets(name, sizeof(name), f))
			name[strcspn(name, "\n")] = '\0';
		fclose(f);
	}
	snprintf(text, size, "%s, pid %.16s", name, pid);
}

bool iscsi_port_user(const struct sockaddr_storage *addr, char *text, size_t size)
{
	unsigned port = iscsi_address_port(addr);
	unsigned long inode = listening_inode("/proc/net/tcp", port);
	struct dirent *entry;
	bool found = false;
	char wanted[64];
	DIR *dir;

	if (!inode)
		inode = listening_inode("/proc/net/tcp6", port);
	dir = inode ? opendir("/proc") : NULL;
	if (!dir)
		return false;
	snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	/* cppcheck-suppress readdirCalled ; a stream of our own */
	while (!found && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]) || !has_socket(entry->d_name, wanted))
			continue;
		name_of(entry->d_name, text, size);
		found = true;
	}
	closedir(dir);
	return found;
}
