/* SPDX-License-Identifier: MIT */
/*
 * The state directory: who holds it, the identity of each backing, the last one of each array.
 *
 * Invariants:
 * 1. A backing's uuid, once shown to a host, is the same after any crash: the
 *    file is durable (fsync of file and folder) before identity_get() returns.
 * 2. One yoked holds a state directory at a time (flock on `lock`).
 *
 * Not here: what the uuid turns into on the wire (target/scsi/vpd.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/daemon.h"

#define UUID_TEXT 36

int identity_open(const char *dir, char *text, size_t text_size)
{
	int fd, lock;

	if (mkdir(dir, 0700) && errno != EEXIST) {
		int err = errno;

		snprintf(text, text_size,
			 "state_dir: %s: %s. Make its parent folder, or change state_dir", dir,
			 strerror(err));
		return -err;
	}
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		int err = errno;

		snprintf(text, text_size, "state_dir: %s: %s. Change state_dir", dir,
			 strerror(err));
		return -err;
	}
	lock = openat(fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB)) {
		int err = errno;

		snprintf(
			text, text_size, "state_dir: %s: %s", dir,
			err == EWOULDBLOCK ?
				"held by another yoked. Stop it, or give this one a folder of its own" :
				strerror(err));
		if (lock >= 0)
			close(lock);
		close(fd);
		return -err;
	}
	/* The lock's fd stays open as long as the process lives: that is the lock. */
	/* cppcheck-suppress resourceLeak */
	return fd;
}

static int read_uuid(int dir_fd, const char *file, uuid_t uuid)
{
	char buf[UUID_TEXT + 2];
	ssize_t n;
	/* Nothing that waits for somebody: what lies there may be no file of ours. */
	int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	n = read(fd, buf, sizeof(buf));
	close(fd);
	if (n < 0)
		return -EIO;
	if (n != UUID_TEXT + 1 || buf[UUID_TEXT] != '\n')
		return -EBADMSG;
	buf[UUID_TEXT] = '\0';
	return uuid_parse(buf, uuid) ? -EBADMSG : 0;
}

static int write_uuid(int dir_fd, const char *file, const uuid_t uuid)
{
	char buf[UUID_TEXT + 2], temp[CONF_NAME_MAX + 24];
	int fd, err = 0;

	uuid_unparse_lower(uuid, buf);
	buf[UUID_TEXT] = '\n';
	snprintf(temp, sizeof(temp), "%s.new", file);
	if (unlinkat(dir_fd, temp, 0) && errno != ENOENT)
		return -errno;
	fd = openat(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	errno = 0;
	if (write(fd, buf, UUID_TEXT + 1) != UUID_TEXT + 1 || fsync(fd))
		err = errno ? -errno : -ENOSPC;
	close(fd);
	if (!err && renameat(dir_fd, temp, dir_fd, file))
		err = -errno;
	if (!err && fsync(dir_fd))
		err = -errno;
	if (err)
		unlinkat(dir_fd, temp, 0);
	return err;
}

int identity_get(int dir_fd, const char *name, uuid_t uuid, char *text, size_t text_size)
{
	char file[CONF_NAME_MAX + 16];
	int err;

	/* Names are checked by the configuration: letters, digits and -_. only. */
	snprintf(file, sizeof(file), "backing-%s.uuid", name);
	err = read_uuid(dir_fd, file, uuid);
	if (err == -ENOENT) {
		uuid_generate_random(uuid);
		err = write_uuid(dir_fd, file, uuid);
	}
	if (err == -EBADMSG)
		snprintf(text, text_size,
			 "backing \"%s\": its identity file %s in the state directory is damaged. "
			 "Restore it, or delete it and hosts see a new disk",
			 name, file);
	else if (err)
		snprintf(text, text_size,
			 "backing \"%s\": cannot keep its identity in the state directory: %s. "
			 "Make room there, or change state_dir",
			 name, strerror(-err));
	return err;
}

int identity_array(int dir_fd, const char *name, uuid_t uuid, char *text, size_t text_size)
{
	char file[CONF_NAME_MAX + 16];
	uuid_t known = { 0 };
	int err;

	/* Names of arrays are those that a configuration may name. */
	snprintf(file, sizeof(file), "array-%s.uuid", name);
	err = read_uuid(dir_fd, file, known);
	if (uuid_is_null(uuid) && !err)
		uuid_copy(uuid, known);
	else if (!uuid_is_null(uuid) && (err || uuid_compare(known, uuid)))
		err = write_uuid(dir_fd, file, uuid);
	else if (err == -EBADMSG)
		err = -ENOENT; /* its disks will tell */
	if (err && err != -ENOENT)
		snprintf(text, text_size,
			 "array \"%s\": cannot keep its identity in the state directory: %s. Make "
			 "room there, or change state_dir",
			 name, strerror(-err));
	return err;
}
