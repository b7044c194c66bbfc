/* SPDX-License-Identifier: MIT */
/* What this machine has: processors, and the link behind a connection. */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/base.h"

/* That this process may use: its affinity, and its control group's quota. */
double host_cpus(void);

/* For how long a thread of this process has been ready to run and had no processor; -1: not known. */
double host_wait_s(pid_t tid);

struct host_link {
	bool local;         /* the peer is this machine */
	char interface[16]; /* "": not found */
	uint64_t bytes_s;   /* 0: not known */
};

/* Of a connected socket. */
void host_link(int fd, struct host_link *link);

#endif
