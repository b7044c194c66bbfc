/* SPDX-License-Identifier: MIT */
/*
 * Sessions of the initiators here that Python is too slow for.
 *
 * Invariants:
 * 1. A session that is lost stays lost: nothing is sent twice.
 * 2. Whatever goes wrong ends the program with status 1 and a reason.
 *
 * Not here: what they do (lock_load.c, lock_fight.c), the target (target.py).
 */
#ifndef TESTS_WIRE_PEER_H
#define TESTS_WIRE_PEER_H

#include <err.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

#define BLOCK 512
#define PEERS_MAX 16

static inline _Noreturn void give_up(const char *what, const char *why)
{
	warnx("%s: %s", what, why);
	exit(1);
}

static inline uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static inline uint64_t chance(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

struct peer {
	struct iscsi_context *iscsi;
	int lun;
};

static inline void peer_open(struct peer *peer, const char *url, const char *who)
{
	char name[64];
	struct iscsi_url *parts;

	snprintf(name, sizeof(name), "iqn.2026-11.org.yoke.test:%s", who);
	peer->iscsi = iscsi_create_context(name);
	if (!peer->iscsi)
		give_up("start", "no memory");
	parts = iscsi_parse_full_url(peer->iscsi, url);
	if (!parts)
		give_up("url", iscsi_get_error(peer->iscsi));
	peer->lun = parts->lun;
	iscsi_set_targetname(peer->iscsi, parts->target);
	iscsi_set_session_type(peer->iscsi, ISCSI_SESSION_NORMAL);
	iscsi_set_header_digest(peer->iscsi, ISCSI_HEADER_DIGEST_NONE);
	/* It would send writes again, and the count of locks would mean nothing. */
	iscsi_set_noautoreconnect(peer->iscsi, 1);
	if (iscsi_full_connect_sync(peer->iscsi, parts->portal, parts->lun))
		give_up(who, iscsi_get_error(peer->iscsi));
	iscsi_destroy_url(parts);
}

static inline void peer_close(struct peer *peer)
{
	iscsi_logout_sync(peer->iscsi);
	iscsi_destroy_context(peer->iscsi);
}

/* Let COUNT sessions send and receive what can be sent and received. */
static inline void peers_serve(struct peer **peers, unsigned count, int timeout_ms)
{
	struct pollfd fds[PEERS_MAX];
	unsigned i;

	for (i = 0; i < count; i++) {
		fds[i].fd = iscsi_get_fd(peers[i]->iscsi);
		fds[i].events = (short)iscsi_which_events(peers[i]->iscsi);
	}
	if (poll(fds, count, timeout_ms) < 0)
		err(1, "poll");
	for (i = 0; i < count; i++)
		if (fds[i].revents && iscsi_service(peers[i]->iscsi, fds[i].revents) < 0)
			give_up("connection lost", iscsi_get_error(peers[i]->iscsi));
}

/* A block that holds NUMBER, WHO in every eight bytes. */
static inline void stamp(uint8_t *block, uint32_t number, uint32_t who)
{
	for (unsigned at = 0; at < BLOCK; at += 8) {
		memcpy(block + at, &number, 4);
		memcpy(block + at + 4, &who, 4);
	}
}

static inline void peer_write(struct peer *peer, uint8_t *block)
{
	struct scsi_task *task =
		iscsi_write16_sync(peer->iscsi, peer->lun, 0, block, BLOCK, BLOCK, 0, 0, 0, 0, 0);

	if (!task || task->status != SCSI_STATUS_GOOD)
		give_up("write", iscsi_get_error(peer->iscsi));
	scsi_free_scsi_task(task);
}

#endif
