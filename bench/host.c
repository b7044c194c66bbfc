/* SPDX-License-Identifier: MIT */
/*
 * Processors and links, from the kernel.
 *
 * Invariants:
 *  1. What cannot be found out is said to be unknown, never guessed.
 *
 * Not here: whether they were the bottleneck (verdict.c).
 *
 * Spec: sched_getaffinity(2), cgroups(7), getifaddrs(3), sysfs class/net, the kernel's
 * scheduler/sched-stats.rst.
 */
#include "bench/host.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

double host_cpus(void)
{
	double cpus = 1, quota, period;
	cpu_set_t set;
	FILE *file;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		cpus = CPU_COUNT(&set);
	file = fopen("/sys/fs/cgroup/cpu.max", "re");
	if (!file)
		return cpus;
	/* "max 100000" without a quota. */
	if (fscanf(file, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0 &&
	    quota / period < cpus)
		cpus = quota / period;
	fclose(file);
	return cpus;
}

double host_wait_s(pid_t tid)
{
	unsigned long long wait_ns;
	char path[64];
	FILE *file;
	double wait = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)tid);
	file = fopen(path, "re");
	if (!file)
		return wait;
	if (fscanf(file, "%*u %llu", &wait_ns) == 1)
		wait = (double)wait_ns / 1e9;
	fclose(file);
	return wait;
}

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	if (a->sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr,
					  &((const struct sockaddr_in6 *)b)->sin6_addr);
	return false;
}

static uint64_t speed(const char *interface)
{
	long long mbit = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%.15s/speed", interface);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%lld", &mbit) != 1 || mbit < 0)
		mbit = 0;
	fclose(file);
	return (uint64_t)mbit * 1000000 / 8;
}

void host_link(int fd, struct host_link *link)
{
	union {
		struct sockaddr sa;
		struct sockaddr_storage room;
	} here = { 0 }, there = { 0 };
	socklen_t here_length = sizeof(here), there_length = sizeof(there);
	struct ifaddrs *all, *one;

	*link = (struct host_link){ 0 };
	if (getsockname(fd, &here.sa, &here_length) != 0 ||
	    getpeername(fd, &there.sa, &there_length) != 0 || getifaddrs(&all) != 0)
		return;
	for (one = all; one; one = one->ifa_next) {
		if (!one->ifa_addr)
			continue;
		/* All of 127.0.0.0/8 is this machine, though the interface has one of it. */
		link->local |= same_address(one->ifa_addr, &there.sa) ||
			       same_address(&here.sa, &there.sa);
		if (!*link->interface && same_address(one->ifa_addr, &here.sa))
			snprintf(link->interface, sizeof(link->interface), "%s", one->ifa_name);
	}
	freeifaddrs(all);
	if (there.sa.sa_family == AF_INET &&
	    ntohl(((struct sockaddr_in *)&there.sa)->sin_addr.s_addr) >> 24 == 127)
		link->local = true;
	if (*link->interface)
		link->bytes_s = speed(link->interface);
}
