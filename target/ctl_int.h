/* SPDX-License-Identifier: MIT */
/* The listening end of the control socket as a file that others may have left or hold. */
#ifndef TARGET_CTL_INT_H
#define TARGET_CTL_INT_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

struct ctl_listener {
	int fd;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	dev_t dev; /* of the socket's file: what we may remove */
	ino_t ino;
};

/* 0, or a negative errno and CAUSE. Blocks for up to a second. */
int ctl_listener_open(struct ctl_listener *listener, const char *path, char *cause,
		      size_t cause_size);
void ctl_listener_close(struct ctl_listener *listener);

/* For tests: instead of CTL_STALL_S, for clients that come from now on. */
struct ctl_server;
void ctl_server_set_stall(struct ctl_server *server, double seconds);

#endif
