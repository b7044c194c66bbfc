/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes a whole connection: bytes into the socket of a server with one target and one ram LUN.
 *
 * Input: a byte of settings, then the stream.
 *
 *     bit 0    a normal session is logged in before the stream begins
 *     bit 1    with header digests
 *     bit 2    with data digests
 *     bit 3    without InitialR2T and with immediate data
 *     bits 4-7 the stream is written in pieces of 2^n bytes
 *
 * Invariants:
 * 1. When the other end has closed, connection and session are gone within the input: nothing of
 *    one input is left for the next, in memory, buffers or tasks.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backstore/backing_int.h"
#include "target/iscsi/iscsi_int.h"
#include "target/scsi/device.h"

#define NAME "iqn.2026-11.org.yoke:fuzz"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct world {
	struct loop *loop;
	struct shard *shard;
	struct buf_pool *pool;
	struct iscsi_server *server;
	struct scsi_device *device;
} world;

struct peer {
	struct env_timer step;
	int fd;
	const uint8_t *data;
	size_t size, at, piece;
	bool closed; /* said all that it has to say */
};

static void quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void start(void)
{
	static const char *const portals[] = { "p" }, *const allow[] = { "*" };
	struct iscsi_target_conf conf = {
		.name = NAME,
		.portals = portals,
		.portal_count = 1,
		.allow = allow,
		.allow_count = 1,
		.nop_interval_ns = 3600 * NS_PER_S,
		.nop_timeout_ns = 3600 * NS_PER_S,
		.data_out_timeout_ns = 3600 * NS_PER_S,
	};
	struct iscsi_limits limits = {
		.sessions_max = 8,
		.connections_max = 8,
		.login_timeout_ns = 3600 * NS_PER_S,
		.login_exchanges_max = 16,
		.commands_per_session = 16,
	};
	struct backing_spec spec = {
		.name = "ram", .driver = BACKING_RAM, .size_bytes = MIB, .block_size = 512
	};
	struct scsi_lu_config lu = { 0 };
	char text[256];

	log_redirect(quiet);
	world.loop = loop_new();
	world.shard = shard_new(world.loop, 0);
	shard_enter(world.shard);
	world.pool = buf_pool_new(4 * MIB);
	world.device = scsi_device_new(NAME, world.shard);
	lu.home = world.shard;
	lu.blk = ram_new(shard_env(world.shard), &spec);
	assert(!scsi_device_map(world.device, 0, scsi_lu_new(&lu), false));
	world.server = iscsi_server_new(world.shard, world.pool, &limits);
	assert(!iscsi_portal_add(world.server, "p", 1, NULL, 0, text, sizeof(text)));
	conf.device = world.device;
	assert(!iscsi_target_add(world.server, &conf));
}

/* A login that is accepted, with the keys that the settings ask for. */
static size_t login(uint8_t *out, uint8_t settings)
{
	struct iscsi_bhs bhs = { .opcode = ISCSI_LOGIN_REQUEST | ISCSI_IMMEDIATE, .flags = 0x87 };
	char *text = (char *)out + ISCSI_BHS_BYTES;
	int n;

	n = snprintf(text, 1024,
		     "InitiatorName=iqn.2026-11.org.yoke:i%cSessionType=Normal%c"
		     "TargetName=" NAME "%cHeaderDigest=%s%cDataDigest=%s%c"
		     "InitialR2T=%s%cImmediateData=%s%c",
		     0, 0, 0, settings & 2 ? "CRC32C" : "None", 0, settings & 4 ? "CRC32C" : "None",
		     0, settings & 8 ? "No" : "Yes", 0, settings & 8 ? "Yes" : "No", 0);
	memset(text + n, 0, 4);
	put_be24(bhs.length, (uint32_t)n);
	memcpy(bhs.lun, "\x80\0\0\0\0\1", 6);
	memcpy(out, &bhs, sizeof(bhs));
	return ISCSI_BHS_BYTES + (size_t)n + iscsi_pad((uint32_t)n);
}

/* Once a turn: say the next piece, hear what comes, stop when all is gone. */
static void step(struct env_timer *timer)
{
	struct peer *peer = container_of(timer, struct peer, step);
	uint8_t scratch[65536];
	size_t n;

	while (recv(peer->fd, scratch, sizeof(scratch), MSG_DONTWAIT) > 0)
		;
	if (peer->at < peer->size) {
		n = min_u64(peer->piece, peer->size - peer->at);
		if (send(peer->fd, peer->data + peer->at, n, MSG_DONTWAIT | MSG_NOSIGNAL) ==
		    (ssize_t)n)
			peer->at += n;
		else if (errno != EAGAIN)
			peer->at = peer->size;
	} else if (!peer->closed) {
		shutdown(peer->fd, SHUT_WR);
		peer->closed = true;
	} else if (!world.server->conn_count && !world.server->session_count) {
		loop_stop(world.loop);
		return;
	}
	env_timer_set(shard_env(world.shard), timer, 1);
}

static void converse(const uint8_t *data, size_t size, size_t piece)
{
	struct iscsi_portal *portal = iscsi_portal_find(world.server, "p");
	struct sockaddr_storage from = { 0 };
	struct peer peer = { .data = data, .size = size, .piece = piece };
	int pair[2];

	assert(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
	peer.fd = pair[0];
	peer.step.fn = step;
	iscsi_conn_accept(portal, pair[1], &from);
	env_timer_set(shard_env(world.shard), &peer.step, 1);
	loop_run(world.loop);
	close(peer.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *stream, settings;
	size_t length = 0;

	if (!world.loop)
		start();
	if (!size || size > 65536)
		return 0;
	settings = data[0];
	stream = malloc(size + 2048);
	assert(stream);
	if (settings & 1)
		length = login(stream, settings);
	memcpy(stream + length, data + 1, size - 1);
	converse(stream, length + size - 1, (size_t)1 << (settings >> 4));
	free(stream);
	assert(buf_pool_free_units(world.pool) == buf_pool_units(world.pool));
	return 0;
}
