/* SPDX-License-Identifier: MIT */
/* iscsi://[USER@]HOST[:PORT][/TARGET[/LUN]], as libiscsi and QEMU write it, but for the secret. */
#ifndef BENCH_URL_H
#define BENCH_URL_H

#include "bench/engine.h"

#define URL_MAX 128

struct url {
	struct bench_portal portal; /* target "": not named */
	char user[256];             /* "": none */
	int lun;                    /* -1: not named */
};

/* 0, or -EINVAL and FAULT. */
int url_parse(const char *text, struct url *url, struct bench_fault *fault);

/*
 * The portals and LUNs of all URLS, each once, in their order, LUNs after those that are there
 * and ascending. -EINVAL and FAULT if they are too many, or if one target's LUNs are not the
 * other's: every LUN is reached over every portal.
 */
int url_gather(const struct url *urls, unsigned count, struct bench_setup *setup,
	       struct bench_fault *fault);

/* Adds LUN in its place. 0 or -ENOSPC. */
int url_add_lun(struct bench_setup *setup, unsigned lun);

#endif
