/* SPDX-License-Identifier: MIT */
/*
 * The cheapest possible iSCSI target, as a measuring stick: whatever is read is already there,
 * whatever is written is forgotten.
 *
 * What an initiator reaches against it is the most that this machine's loopback
 * TCP and that initiator allow a target of one thread on plain sockets. Those bytes
 * stay in the processor's cache; as "ceiling copying" it copies what is read out of
 * 256 MiB, which nobody who keeps a disk in memory gets around.
 *
 * Invariants:
 * 1. It listens on loopback only, and ends with whoever started it.
 * 2. A turn costs an epoll_wait, a recv and a sendmsg, however many commands it answers.
 * 3. Answers refer to memory that stays; requests wait while some are not sent.
 *
 * Not here: everything that makes a target. It believes its initiator, which is
 * a test's own: no negotiation, no digests, no R2T, no order of commands, no store.
 *
 * Spec: RFC 7143 section 11.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/wire.h"
#include "target/iscsi/pdu.h"

#define BLOCK_BYTES 512u
#define BLOCKS (UINT32_C(1) << 19) /* 256 MiB */
#define READ_MAX (UINT32_C(1) << 20)
#define COPIES_BYTES (2 * READ_MAX)
#define BUFFER_BYTES (1 << 20)
#define ANSWERS 400
#define ANSWER_BYTES 512 /* header and what is not by reference: the login's keys are the most */
#define EVENTS 16

struct conn {
	int fd;
	uint32_t stat_sn, exp_cmd_sn;
	size_t have;                  /* received and not yet answered */
	unsigned answers, iovs, sent; /* of this turn; SENT elements are gone */
	size_t copied;                /* of the answers' payload, while copying */
	uint32_t waits_for;           /* EPOLLIN, or EPOLLOUT while the socket is full */
	struct iovec iov[2 * ANSWERS];
	uint8_t answer[ANSWERS][ANSWER_BYTES];
	uint8_t buffer[BUFFER_BYTES];
};

static uint8_t payload[COPIES_BYTES];
static const uint8_t *disk; /* not NULL: copying */
static int epoll;

static bool is_payload(const uint8_t *data)
{
	return data >= payload && data < payload + sizeof(payload);
}

/* BYTES at DATA go out behind the answer's header: by reference, or copied with their padding. */
static void answer(struct conn *conn, struct iscsi_bhs *bhs, const void *data, uint32_t bytes)
{
	uint8_t *out = conn->answer[conn->answers++];
	uint32_t copied = is_payload(data) ? 0 : bytes;

	put_be24(bhs->length, bytes);
	put_be32(bhs->word24, conn->stat_sn++);
	put_be32(bhs->word28, conn->exp_cmd_sn);
	put_be32(bhs->word32, conn->exp_cmd_sn + 255);
	memcpy(out, bhs, sizeof(*bhs));
	memset(out + sizeof(*bhs) + copied, 0, 4);
	memcpy(out + sizeof(*bhs), data, copied);
	conn->iov[conn->iovs++] = (struct iovec){ out, sizeof(*bhs) + copied + iscsi_pad(copied) };
	if (copied < bytes)
		conn->iov[conn->iovs++] = (struct iovec){ (void *)data, bytes };
}

static void answer_data(struct conn *conn, const struct iscsi_bhs *request, const void *data,
			uint32_t bytes)
{
	uint32_t wanted = get_be32(request->word20);
	struct iscsi_bhs bhs;

	iscsi_bhs_init(&bhs, ISCSI_DATA_IN, ISCSI_FINAL | ISCSI_DATA_STATUS, iscsi_itt(request));
	put_be32(bhs.word20, ISCSI_NO_TAG);
	if (bytes < wanted) {
		bhs.flags |= ISCSI_UNDERFLOW;
		put_be32(bhs.word44, wanted - bytes);
	}
	answer(conn, &bhs, data, bytes < wanted ? bytes : wanted);
}

static void answer_read(struct conn *conn, const struct iscsi_bhs *request, uint64_t lba,
			uint32_t blocks)
{
	uint64_t from = lba % BLOCKS * BLOCK_BYTES, end = (uint64_t)BLOCKS * BLOCK_BYTES;
	uint64_t bytes = min_u64((uint64_t)blocks * BLOCK_BYTES, min_u64(READ_MAX, end - from));
	uint8_t *data = payload + conn->copied;

	if (disk) {
		memcpy(data, disk + from, bytes);
		conn->copied += bytes;
	}
	answer_data(conn, request, data, (uint32_t)bytes);
}

static void answer_plain(struct conn *conn, const struct iscsi_bhs *request,
			 enum iscsi_opcode opcode)
{
	struct iscsi_bhs bhs;

	iscsi_bhs_init(&bhs, opcode, ISCSI_FINAL, iscsi_itt(request));
	if (opcode == ISCSI_NOP_IN)
		put_be32(bhs.word20, ISCSI_NO_TAG);
	answer(conn, &bhs, "", 0);
}

static void answer_login(struct conn *conn, const struct iscsi_bhs *request)
{
	static const char security[] = "AuthMethod=None";
	static const char operational[] =
		"MaxRecvDataSegmentLength=262144\0ImmediateData=Yes\0InitialR2T=No\0"
		"MaxBurstLength=262144\0FirstBurstLength=262144\0HeaderDigest=None\0"
		"DataDigest=None\0MaxOutstandingR2T=1\0TargetPortalGroupTag=1";
	struct iscsi_bhs bhs = *request;

	if (!conn->stat_sn)
		conn->exp_cmd_sn = iscsi_cmdsn(request);
	iscsi_bhs_init(&bhs, ISCSI_LOGIN_RESPONSE, request->flags, iscsi_itt(request));
	memcpy(bhs.lun, request->lun, sizeof(bhs.lun));
	bhs.lun[7] = 1; /* TSIH */
	if (request->flags >> 2 & 3)
		answer(conn, &bhs, operational, sizeof(operational));
	else
		answer(conn, &bhs, security, sizeof(security));
}

static void answer_command(struct conn *conn, const struct iscsi_bhs *request)
{
	static const uint8_t inquiry[36] = "\0\0\6\2\37\0\0\0YOKE    CEILING         1";
	static const uint8_t mode[4] = { 3 };
	const uint8_t *cdb = iscsi_cdb(request);
	uint8_t capacity[32] = { 0 }, luns[16] = { [3] = 8 };

	switch (cdb[0]) {
	case 0x28: /* READ(10) */
		answer_read(conn, request, get_be32(cdb + 2), get_be16(cdb + 7));
		break;
	case 0x88: /* READ(16) */
		answer_read(conn, request, get_be64(cdb + 2), get_be32(cdb + 10));
		break;
	case 0x12: /* INQUIRY */
		answer_data(conn, request, inquiry, sizeof(inquiry));
		break;
	case 0x1a: /* MODE SENSE(6) */
		answer_data(conn, request, mode, sizeof(mode));
		break;
	case 0x25: /* READ CAPACITY(10) */
		put_be32(capacity, BLOCKS - 1);
		put_be32(capacity + 4, BLOCK_BYTES);
		answer_data(conn, request, capacity, 8);
		break;
	case 0x9e: /* READ CAPACITY(16) */
		put_be64(capacity, BLOCKS - 1);
		put_be32(capacity + 8, BLOCK_BYTES);
		answer_data(conn, request, capacity, sizeof(capacity));
		break;
	case 0xa0: /* REPORT LUNS */
		answer_data(conn, request, luns, sizeof(luns));
		break;
	default:
		answer_plain(conn, request, ISCSI_SCSI_RESPONSE);
	}
}

/* False: something that this target is too cheap for. */
static bool take_pdu(struct conn *conn, const struct iscsi_bhs *request)
{
	uint8_t opcode = iscsi_opcode(request);

	if (opcode == ISCSI_DATA_OUT) /* unsolicited: the command is answered already */
		return true;
	if (opcode != ISCSI_LOGIN_REQUEST && !iscsi_is_immediate(request))
		conn->exp_cmd_sn++;
	switch (opcode) {
	case ISCSI_SCSI_COMMAND:
		answer_command(conn, request);
		return true;
	case ISCSI_LOGIN_REQUEST:
		answer_login(conn, request);
		return true;
	case ISCSI_NOP_OUT:
		if (iscsi_itt(request) != ISCSI_NO_TAG)
			answer_plain(conn, request, ISCSI_NOP_IN);
		return true;
	case ISCSI_LOGOUT_REQUEST:
		answer_plain(conn, request, ISCSI_LOGOUT_RESPONSE);
		return true;
	default:
		return false;
	}
}

/* Send what there is to send; false: the connection is gone. */
static bool flush(struct conn *conn)
{
	struct msghdr message = { 0 };
	struct iovec *iov = conn->iov + conn->sent;
	ssize_t n;

	while (conn->sent < conn->iovs) {
		message.msg_iov = iov;
		message.msg_iovlen = conn->iovs - conn->sent;
		n = sendmsg(conn->fd, &message, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN;
		for (; conn->sent < conn->iovs && (size_t)n >= iov->iov_len; iov++, conn->sent++)
			n -= (ssize_t)iov->iov_len;
		if (conn->sent < conn->iovs) {
			iov->iov_base = (uint8_t *)iov->iov_base + n;
			iov->iov_len -= (size_t)n;
		}
	}
	conn->answers = conn->iovs = conn->sent = 0;
	conn->copied = 0;
	return true;
}

/* Another request may need more than there is. */
static bool is_full(const struct conn *conn)
{
	return conn->answers == ANSWERS || conn->copied > COPIES_BYTES - READ_MAX;
}

/* Answer the requests that are complete, as long as the socket takes the answers. */
static bool consume(struct conn *conn)
{
	size_t at = 0, bytes;

	while (conn->have - at >= ISCSI_BHS_BYTES) {
		const struct iscsi_bhs *request = (const void *)(conn->buffer + at);
		uint32_t length = iscsi_length(request);

		bytes = ISCSI_BHS_BYTES + request->ahs_words * 4 + length + iscsi_pad(length);
		if (bytes > sizeof(conn->buffer))
			return false;
		if (conn->have - at < bytes)
			break;
		if (is_full(conn) && !flush(conn))
			return false;
		if (is_full(conn))
			break;
		if (!take_pdu(conn, request))
			return false;
		at += bytes;
	}
	memmove(conn->buffer, conn->buffer + at, conn->have - at);
	conn->have -= at;
	return flush(conn);
}

/* One event: true, or the connection is gone. */
static bool serve(struct conn *conn)
{
	struct epoll_event event = { .data.ptr = conn };
	ssize_t n;

	if (conn->waits_for == EPOLLOUT) {
		if (!flush(conn) || (!conn->iovs && !consume(conn)))
			return false;
	} else {
		n = recv(conn->fd, conn->buffer + conn->have, sizeof(conn->buffer) - conn->have, 0);
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		conn->have += (size_t)n;
		if (!consume(conn))
			return false;
	}
	event.events = conn->iovs ? EPOLLOUT : EPOLLIN;
	if (event.events != conn->waits_for)
		epoll_ctl(epoll, EPOLL_CTL_MOD, conn->fd, &event);
	conn->waits_for = event.events;
	return true;
}

static void welcome(int listener)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), one = 1;
	struct conn *conn;

	if (fd < 0)
		return;
	conn = calloc(1, sizeof(*conn));
	if (!conn)
		err(1, "ceiling");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	conn->fd = fd;
	conn->waits_for = EPOLLIN;
	event.data.ptr = conn;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		err(1, "ceiling: epoll");
}

static void run(int listener)
{
	struct epoll_event events[EVENTS];
	int n;

	for (;;) {
		n = epoll_wait(epoll, events, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			struct conn *conn = events[i].data.ptr;

			if (!conn) {
				welcome(listener);
			} else if (!serve(conn)) {
				close(conn->fd);
				free(conn);
			}
		}
	}
}

/* As large as the disk, and written to: a page that never was is not read from memory. */
static const uint8_t *make_disk(void)
{
	size_t bytes = (size_t)BLOCKS * BLOCK_BYTES;
	uint8_t *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		err(1, "ceiling");
	madvise(memory, bytes, MADV_HUGEPAGE);
	memset(memory, 0xa5, bytes);
	return memory;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);
	struct epoll_event event = { .events = EPOLLIN };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "copying")))
		errx(2, "usage: %s [copying]    (listens on 127.0.0.1 and prints its port)",
		     argv[0]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc == 2)
		disk = make_disk();
	memset(payload, 0x5a, sizeof(payload));
	epoll = epoll_create1(0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 16) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) < 0 || epoll < 0 ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0)
		err(1, "ceiling");
	printf("%u\n", ntohs(address.sin_port));
	fflush(stdout);
	run(listener);
}
