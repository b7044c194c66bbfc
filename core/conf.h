/* SPDX-License-Identifier: MIT */
/*
 * The configuration as data: what yoke.conf says, checked, with the line of
 * each thing, so that whoever refuses it later can still point there.
 *
 * conf_load() refuses the file as a whole or returns it whole. Nothing in it
 * names a thing that exists: opening and binding is the daemon's.
 * Strings are never NULL; what was not written has its default.
 */
#ifndef CORE_CONF_H
#define CORE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/base.h"

#define CONF_NAME_MAX 64

struct conf_strings {
	char **items;
	unsigned count;
};

struct conf_address {
	char *text; /* as written: "127.0.0.1:3260", "[::1]:3260" */
	struct sockaddr_storage addr;
	socklen_t addr_len;
};

struct conf_node {
	char *name;
	unsigned number; /* 1 or 2 */
	char *state_dir;
	char *control;
	unsigned threads;
	struct conf_strings disks;
	bool faults;
	uint64_t oui;              /* 0: none; else 24 bits */
	uint64_t buffers_bytes;    /* data buffers, default 256 MiB */
	uint64_t login_timeout_ns; /* default 15 s */
	unsigned sessions_max;     /* default 1024 */
	uint64_t array_wait_ns; /* for absent members where it could start without, default 10 s */
	int line;
};

struct conf_portal {
	char *name;
	struct conf_address *listen;
	unsigned listen_count;
	uint16_t group; /* target portal group tag, relative target port id */
	int line;
};

enum conf_driver { CONF_DRIVER_RAM, CONF_DRIVER_NULL, CONF_DRIVER_FILE };

struct conf_backing {
	char *name;
	enum conf_driver driver;
	char *path;          /* file */
	uint64_t size_bytes; /* ram, null; file: 0, or the size to create it with */
	uint32_t block_size; /* 512 or 4096 */
	uint32_t physical_block;
	bool direct;
	bool write_cache;
	int line;
};

struct conf_lun {
	uint16_t number; /* 0 to 16383 */
	char *backing;   /* one of the two; the other is "" */
	char *array;
	bool read_only;
	bool write_cache;          /* of an array; a backing says it itself */
	struct conf_strings allow; /* empty: everyone the target allows */
	int line;
};

struct conf_target {
	char *name;
	struct conf_strings portals;
	struct conf_strings allow; /* "*" or names, a trailing * is a prefix */
	struct conf_lun *luns;     /* ascending numbers */
	unsigned lun_count;
	uint64_t nop_interval_ns;
	uint64_t nop_timeout_ns;
	uint64_t data_out_timeout_ns;
	int line;
};

struct conf {
	char *file;
	struct conf_node node;
	struct conf_portal *portals;
	unsigned portal_count;
	struct conf_backing *backings;
	unsigned backing_count;
	struct conf_target *targets;
	unsigned target_count;
};

/* One refusal: `file:line: cause`, with the remedy in the same sentence. */
struct conf_error {
	char text[512];
};

/* 0 and *CONF (the caller's, conf_free), or -EINVAL, -ENOENT, -EACCES, ... and ERROR. */
int conf_load(const char *path, struct conf **conf, struct conf_error *error);
/* The same from memory; NAME stands for the file in messages. TEXT may hold anything. */
int conf_parse(const char *name, const char *text, size_t len_bytes, struct conf **conf,
	       struct conf_error *error);
void conf_free(struct conf *conf);

/* What a good file has, for people: `node "alpha", 2 portals, 1 backing, 1 target, 3 LUNs`. */
void conf_summary(const struct conf *conf, char *text, size_t size_bytes);
unsigned conf_lun_count(const struct conf *conf);

const struct conf_portal *conf_portal(const struct conf *conf, const char *name);
const struct conf_backing *conf_backing(const struct conf *conf, const char *name);
const struct conf_target *conf_target(const struct conf *conf, const char *name);

/* "256M" to bytes, "300ms" to ns: K M G T P are powers of 1024; ns us ms s m h. 0 or -EINVAL. */
int conf_size(const char *text, uint64_t *bytes);
int conf_duration(const char *text, uint64_t *ns);

/* Whether NAME is in LIST, whose entries may end in `*`. */
bool conf_allows(const struct conf_strings *list, const char *name);

#endif
