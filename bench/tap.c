/* SPDX-License-Identifier: MIT */
/*
 * A relay of two sockets on a libev loop.
 *
 * Invariants:
 *  1. A side is read only while what was read from it before is passed on: each direction has
 *     one buffer, and the slower side sets the pace.
 *  2. When one side ends, what it had sent reaches the other before the end does.
 *
 * Not here: what is right and wrong in it (answers.c).
 */
#include "bench/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/answers.h"

#define BUFFER ((size_t)(256 * KIB))

/* One direction. */
struct flow {
	int from, to;
	size_t start, end; /* of what is to be passed on */
	bool ended;
	uint8_t *buf;
};

struct tap {
	struct ev_loop *ev;
	struct ev_io real_io, near_io;
	struct flow in, out;
	tap_wrong_fn *wrong;
	void *arg;
	bool told;
	struct answers answers;
	uint8_t bufs[2][BUFFER];
};

static bool later(void)
{
	return errno == EAGAIN || errno == EINTR;
}

static void look(struct tap *tap, const struct flow *flow, size_t length)
{
	if (flow == &tap->out) {
		answers_out(&tap->answers, flow->buf, length);
	} else if (!answers_in(&tap->answers, flow->buf, length) && !tap->told) {
		tap->told = true;
		tap->wrong(tap->arg, tap->answers.wrong);
	}
}

/* Passes on what it can. */
static void flow_run(struct tap *tap, struct flow *flow)
{
	ssize_t n;

	if (flow->start == flow->end && !flow->ended) {
		flow->start = flow->end = 0;
		n = recv(flow->from, flow->buf, BUFFER, 0);
		if (n > 0) {
			flow->end = (size_t)n;
			look(tap, flow, (size_t)n);
		} else if (n == 0 || !later()) {
			flow->ended = true;
			shutdown(flow->to, SHUT_WR);
		}
	}
	if (flow->start < flow->end) {
		n = send(flow->to, flow->buf + flow->start, flow->end - flow->start, MSG_NOSIGNAL);
		if (n > 0)
			flow->start += (size_t)n;
		else if (!later())
			flow->start = flow->end; /* the other direction tells of the end */
	}
}

static void watch_side(struct tap *tap, struct ev_io *io, const struct flow *read,
		       const struct flow *write)
{
	int wanted = (read->start == read->end && !read->ended ? EV_READ : 0) |
		     (write->start < write->end ? EV_WRITE : 0);

	if (ev_is_active(io) && (io->events & (EV_READ | EV_WRITE)) == wanted)
		return;
	ev_io_stop(tap->ev, io);
	ev_io_set(io, io->fd, wanted);
	if (wanted)
		ev_io_start(tap->ev, io);
}

static void side_ready(struct ev_loop *ev, struct ev_io *io, int revents)
{
	struct tap *tap = io->data;

	(void)ev, (void)revents;
	flow_run(tap, &tap->out);
	flow_run(tap, &tap->in);
	watch_side(tap, &tap->real_io, &tap->in, &tap->out);
	watch_side(tap, &tap->near_io, &tap->out, &tap->in);
}

struct tap *tap_open(struct ev_loop *ev, int fd, bool header_digest, tap_wrong_fn *wrong, void *arg)
{
	struct tap *tap = malloc(sizeof(*tap));
	int pair[2] = { -1, -1 }, real = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (tap == NULL || real < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
		goto fail;
	if (dup3(pair[0], fd, O_CLOEXEC) < 0)
		goto fail;
	close(pair[0]);
	tap->ev = ev;
	tap->wrong = wrong;
	tap->arg = arg;
	tap->told = false;
	answers_init(&tap->answers, header_digest);
	tap->in = (struct flow){ .from = real, .to = pair[1], .buf = tap->bufs[0] };
	tap->out = (struct flow){ .from = pair[1], .to = real, .buf = tap->bufs[1] };
	ev_io_init(&tap->real_io, side_ready, real, EV_READ);
	ev_io_init(&tap->near_io, side_ready, pair[1], EV_READ);
	tap->real_io.data = tap->near_io.data = tap;
	ev_io_start(ev, &tap->real_io);
	ev_io_start(ev, &tap->near_io);
	return tap;
fail:
	for (unsigned i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
	if (real >= 0)
		close(real);
	free(tap);
	return NULL;
}

void tap_close(struct tap *tap)
{
	if (tap == NULL)
		return;
	ev_io_stop(tap->ev, &tap->real_io);
	ev_io_stop(tap->ev, &tap->near_io);
	close(tap->in.from);
	close(tap->in.to);
	free(tap);
}
