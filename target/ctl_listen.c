/* SPDX-License-Identifier: MIT */
/*
 * Makes, takes over and removes the file of the control socket.
 *
 * A socket's file outlives a process that was killed. Whether somebody still
 * answers is found out by connecting; nothing else (pid files, ages) is believed.
 *
 * Invariants:
 * 1. The file never exists with a mode other than 0600: the mode is the socket's before it is bound.
 * 2. Looking and taking over happen under a lock on the directory, so that of two
 *    that start together one sees the other answer.
 * 3. What is not a socket is never removed.
 *
 * Not here: clients (ctl.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base.h"
#include "target/ctl_int.h"

#define BACKLOG 64
#define LOCK_TRIES 100
#define LOCK_WAIT (10 * 1000 * 1000) /* ns */

static int refuse(char *cause, size_t size, int err, const char *path, const char *fmt, ...)
	PRINTF_LIKE(5, 6);
static int refuse(char *cause, size_t size, int err, const char *path, const char *fmt, ...)
{
	int used = snprintf(cause, size, "control \"%s\": ", path);
	va_list ap;

	va_start(ap, fmt);
	if (used > 0 && (size_t)used < size)
		vsnprintf(cause + used, size - (size_t)used, fmt, ap);
	va_end(ap);
	return err;
}

/* Locks the directory DIR that FD is. 0, or -errno and CAUSE. */
static int lock(int fd, const char *dir, const char *path, char *cause, size_t size)
{
	struct timespec wait = { 0, LOCK_WAIT };
	struct stat st;

	if (fstat(fd, &st))
		return refuse(cause, size, -errno, path, "%s: %s", dir, strerror(errno));
	if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX))
		return refuse(cause, size, -EPERM, path,
			      "anybody may replace files in %s. chmod o-w it", dir);
	for (unsigned i = 0; flock(fd, LOCK_EX | LOCK_NB); i++) {
		if (i == LOCK_TRIES || (errno != EWOULDBLOCK && errno != EINTR))
			return refuse(cause, size, -EBUSY, path,
				      "%s is locked by another process. End it", dir);
		nanosleep(&wait, NULL);
	}
	return 0;
}

/* The directory of PATH, made if need be, open and locked; or -errno and CAUSE. */
static int lock_directory(const char *path, char *cause, size_t size)
{
	char copy[sizeof(((struct sockaddr_un *)0)->sun_path)];
	const char *dir;
	int fd, err;

	snprintf(copy, sizeof(copy), "%s", path);
	dir = dirname(copy);
	if (mkdir(dir, 0700) && errno != EEXIST)
		return refuse(cause, size, -errno, path, "cannot make %s: %s", dir,
			      strerror(errno));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return refuse(cause, size, -errno, path, "cannot open %s: %s", dir,
			      strerror(errno));
	err = lock(fd, dir, path, cause, size);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* Whether somebody answers at ADDR. A full queue of connections is an answer too. */
static bool answers(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool yes;

	if (fd < 0)
		return true;
	yes = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN ||
	      errno == EINPROGRESS || errno == EACCES || errno == EPERM;
	close(fd);
	return yes;
}

/* Removes a socket that was left behind. 0, or -errno and CAUSE. */
static int remove_stale(const struct sockaddr_un *addr, char *cause, size_t size)
{
	const char *path = addr->sun_path;
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 :
					 refuse(cause, size, -errno, path, "%s", strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return refuse(cause, size, -EEXIST, path,
			      "something that is not a socket is there. Move it away");
	if (answers(addr))
		return refuse(cause, size, -EADDRINUSE, path,
			      "another yoked answers there. Stop it, or give this node another "
			      "control");
	if (unlink(path))
		return refuse(cause, size, -errno, path, "cannot be replaced: %s", strerror(errno));
	return 0;
}

static int bind_listener(struct ctl_listener *l, const struct sockaddr_un *addr, char *cause,
			 size_t size)
{
	struct stat st;
	int err;

	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return refuse(cause, size, -errno, addr->sun_path, "%s", strerror(errno));
	/* Before bind() the mode is that of the file to come (Linux). */
	if (fchmod(l->fd, 0600) || bind(l->fd, (const struct sockaddr *)addr, sizeof(*addr)) ||
	    listen(l->fd, BACKLOG) || stat(addr->sun_path, &st)) {
		err = refuse(cause, size, -errno, addr->sun_path, "%s", strerror(errno));
		close(l->fd);
		return err;
	}
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	return 0;
}

int ctl_listener_open(struct ctl_listener *listener, const char *path, char *cause,
		      size_t cause_size)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int dir, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return refuse(cause, cause_size, -ENAMETOOLONG, path,
			      "longer than the %zu bytes that a socket's path may have",
			      sizeof(addr.sun_path) - 1);
	strcpy(addr.sun_path, path);
	strcpy(listener->path, path);
	dir = lock_directory(path, cause, cause_size);
	if (dir < 0)
		return dir;
	err = remove_stale(&addr, cause, cause_size);
	err = err ? err : bind_listener(listener, &addr, cause, cause_size);
	close(dir);
	return err;
}

void ctl_listener_close(struct ctl_listener *listener)
{
	struct stat st;

	close(listener->fd);
	if (lstat(listener->path, &st) == 0 && st.st_dev == listener->dev &&
	    st.st_ino == listener->ino)
		unlink(listener->path);
}
