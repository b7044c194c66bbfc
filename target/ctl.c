/* SPDX-License-Identifier: MIT */
/*
 * Serves the control commands over a unix socket.
 *
 * A client's life (flags may hold together; the function per arrow):
 *
 *   open --read_lines: end of input--> draining --done: all answered and sent--> freed
 *     |                                    |
 *     +---- drop: error, stall, too long --+--> dropped --last answer--> freed
 *
 * Invariants:
 * 1. Memory a client: one line of CTL_LINE_MAX, and answers to CTL_IN_FLIGHT_MAX requests.
 * 2. A client is freed by maybe_free() alone: at the end of a callback, no request under way.
 * 3. The socket's file is removed only while it is ours (same inode).
 * 4. A client that neither reads nor writes costs a slot, never time.
 *
 * Not here: JSON and commands (core/ctl.c), how to get at the socket (core/rpc.c).
 */
#include "target/ctl.h"

#include <bsd/sys/queue.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "target/ctl_int.h"

#define READ_SIZE 65536
#define LINES_PER_TURN 32
#define ACCEPT_PAUSE_S 0.2 /* after running out of file descriptors */

struct client {
	LIST_ENTRY(client) link;
	struct ctl_server *server; /* NULL once dropped */
	struct ev_loop *ev;
	ev_io readable;
	ev_io writable;
	ev_timer stall;
	int fd;
	char *in; /* a line that is not whole yet */
	size_t in_len, in_size;
	char *out; /* from out_sent to out_len: unsent */
	size_t out_len, out_sent, out_size;
	unsigned in_flight;
	bool busy;      /* in pump(), which uses it after answers have come */
	bool end_of_in; /* nothing more comes: free when all is answered and sent */
};

struct ctl_server {
	struct loop *loop;
	struct ctl *ctl;
	struct ctl_listener listener;
	ev_io acceptable;
	ev_timer accept_pause;
	double stall_s;
	LIST_HEAD(, client) clients;
	unsigned client_count;
};

static void pump(struct client *c);

static void maybe_free(struct client *c)
{
	if (c->server || c->in_flight || c->busy)
		return;
	free(c->in);
	free(c->out);
	free(c);
}

/* Ends the connection. The structure stays until maybe_free() finds nobody who needs it. */
static void drop(struct client *c)
{
	if (!c->server)
		return;
	LIST_REMOVE(c, link);
	c->server->client_count--;
	c->server = NULL;
	ev_io_stop(c->ev, &c->readable);
	ev_io_stop(c->ev, &c->writable);
	ev_timer_stop(c->ev, &c->stall);
	close(c->fd);
}

/* The room for LEN more bytes, or NULL. */
static void *reserve(char **buf, size_t *size, size_t used, size_t len)
{
	size_t want = *size ? *size : 4096;
	char *bigger;

	if (*size - used >= len)
		return *buf + used;
	while (want - used < len)
		want *= 2;
	bigger = realloc(*buf, want);
	if (!bigger)
		return NULL;
	*buf = bigger;
	*size = want;
	return bigger + used;
}

/* Sends what the socket takes now; the rest waits for it to become writable. */
static void send_out(struct client *c)
{
	while (c->out_sent < c->out_len) {
		ssize_t n = send(c->fd, c->out + c->out_sent, c->out_len - c->out_sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			ev_io_start(c->ev, &c->writable);
			if (!ev_is_active(&c->stall))
				ev_timer_again(c->ev, &c->stall);
			return;
		}
		if (n < 0) {
			drop(c);
			return;
		}
		c->out_sent += (size_t)n;
		if (ev_is_active(&c->stall))
			ev_timer_again(c->ev, &c->stall);
	}
	c->out_len = c->out_sent = 0;
	if (c->out_size > CTL_UNSENT_MAX) {
		free(c->out);
		c->out = NULL;
		c->out_size = 0;
	}
	ev_io_stop(c->ev, &c->writable);
	ev_timer_stop(c->ev, &c->stall);
}

static void queue_line(struct client *c, const char *text, size_t len_bytes)
{
	char *at;

	if (c->out_sent && c->out_sent == c->out_len)
		c->out_len = c->out_sent = 0;
	at = reserve(&c->out, &c->out_size, c->out_len, len_bytes + 1);
	if (!at) {
		drop(c);
		return;
	}
	memcpy(at, text, len_bytes);
	at[len_bytes] = '\n';
	c->out_len += len_bytes + 1;
}

static void on_answer(void *arg, const char *text, size_t len_bytes)
{
	struct client *c = arg;

	c->in_flight--;
	if (c->server)
		queue_line(c, text, len_bytes);
	/* Within pump() the answer is sent, and reading goes on, from there. */
	if (c->server && !c->busy)
		pump(c);
	maybe_free(c);
}

static bool may_take(const struct client *c)
{
	return c->server && c->in_flight < CTL_IN_FLIGHT_MAX &&
	       c->out_len - c->out_sent < CTL_UNSENT_MAX;
}

/* Refuses outside of any request, and takes nothing more from this client. */
static void refuse_client(struct client *c, const char *why)
{
	char text[256];
	int len = snprintf(text, sizeof(text),
			   "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,"
			   "\"message\":\"%s\"}}",
			   why);

	c->in_len = 0;
	c->end_of_in = true;
	queue_line(c, text, (size_t)len);
}

/* Dispatches the whole lines that have arrived, as far as this client may now. */
static void take_lines(struct client *c)
{
	size_t at = 0;

	for (unsigned n = 0; n < LINES_PER_TURN && may_take(c); n++) {
		char *start = c->in + at;
		char *newline = c->in_len > at ? memchr(start, '\n', c->in_len - at) : NULL;
		size_t len = newline ? (size_t)(newline - start) : c->in_len - at;

		if (len > CTL_LINE_MAX) {
			refuse_client(c, "a line longer than 1 MiB");
			return;
		}
		if (!newline && (!c->end_of_in || len == 0))
			break;
		at += len + (newline ? 1 : 0);
		/* Empty lines are nothing: people press Enter. */
		if (strspn(start, " \t\r") >= len)
			continue;
		c->in_flight++;
		ctl_dispatch(c->server->ctl, start, len, on_answer, c);
	}
	c->in_len -= at;
	if (at && c->in_len)
		memmove(c->in, c->in + at, c->in_len);
}

/* Takes, sends and, when nothing is left, ends; then waits for what it can go on with. */
static void pump(struct client *c)
{
	c->busy = true;
	take_lines(c);
	if (c->server)
		send_out(c);
	if (c->server && c->end_of_in && c->in_len == 0 && c->in_flight == 0 && c->out_len == 0)
		drop(c);
	if (c->server) {
		bool more = may_take(c);

		if (more && !c->end_of_in)
			ev_io_start(c->ev, &c->readable);
		else
			ev_io_stop(c->ev, &c->readable);
		/* Lines that are left are for the next turn: it comes at once. */
		if (more && c->in_len && (c->end_of_in || memchr(c->in, '\n', c->in_len)))
			ev_io_start(c->ev, &c->writable);
	}
	c->busy = false;
}

/* Takes in what has come; false: the connection is over. */
static bool read_more(struct client *c)
{
	/* One byte stays for the NUL that string functions stop at. */
	char *at = reserve(&c->in, &c->in_size, c->in_len, READ_SIZE + 1);
	ssize_t n;

	if (!at)
		return false;
	n = recv(c->fd, at, READ_SIZE, MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
	if (n == 0)
		c->end_of_in = true;
	c->in_len += (size_t)n;
	c->in[c->in_len] = '\0';
	return true;
}

static void on_readable(struct ev_loop *ev, ev_io *io, int revents)
{
	struct client *c = io->data;

	(void)ev;
	(void)revents;
	if (read_more(c))
		pump(c);
	else
		drop(c);
	maybe_free(c);
}

static void on_writable(struct ev_loop *ev, ev_io *io, int revents)
{
	struct client *c = io->data;

	(void)ev;
	(void)revents;
	pump(c);
	maybe_free(c);
}

static void on_stall(struct ev_loop *ev, ev_timer *timer, int revents)
{
	struct client *c = timer->data;

	(void)ev;
	(void)revents;
	drop(c);
	maybe_free(c);
}

static struct client *client_new(struct ctl_server *server, int fd)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->server = server;
	c->ev = loop_ev(server->loop);
	c->fd = fd;
	ev_io_init(&c->readable, on_readable, fd, EV_READ);
	ev_io_init(&c->writable, on_writable, fd, EV_WRITE);
	ev_init(&c->stall, on_stall);
	c->stall.repeat = server->stall_s;
	c->readable.data = c->writable.data = c->stall.data = c;
	LIST_INSERT_HEAD(&server->clients, c, link);
	server->client_count++;
	ev_io_start(c->ev, &c->readable);
	return c;
}

static void on_acceptable(struct ev_loop *ev, ev_io *io, int revents)
{
	static const char full[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,"
				   "\"message\":\"control: 64 clients are connected already. End "
				   "one\",\"data\":{\"errno\":\"EUSERS\"}}}\n";
	struct ctl_server *server = io->data;
	int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)revents;
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			/* Asked again at once it would answer the same and keep the loop busy. */
			ev_io_stop(ev, &server->acceptable);
			ev_timer_start(ev, &server->accept_pause);
		}
		return;
	}
	if (server->client_count < CTL_CLIENTS_MAX && client_new(server, fd))
		return;
	send(fd, full, sizeof(full) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

static void on_accept_pause(struct ev_loop *ev, ev_timer *timer, int revents)
{
	struct ctl_server *server = timer->data;

	(void)revents;
	ev_io_start(ev, &server->acceptable);
}

struct ctl_server *ctl_server_new(struct loop *loop, struct ctl *ctl, const char *path, char *cause,
				  size_t cause_size)
{
	struct ctl_server *server = calloc(1, sizeof(*server));

	if (!server) {
		snprintf(cause, cause_size, "control \"%s\": out of memory", path);
		return NULL;
	}
	server->loop = loop;
	server->ctl = ctl;
	server->stall_s = CTL_STALL_S;
	LIST_INIT(&server->clients);
	if (ctl_listener_open(&server->listener, path, cause, cause_size)) {
		free(server);
		return NULL;
	}
	ev_io_init(&server->acceptable, on_acceptable, server->listener.fd, EV_READ);
	ev_timer_init(&server->accept_pause, on_accept_pause, ACCEPT_PAUSE_S, 0.0);
	server->acceptable.data = server->accept_pause.data = server;
	ev_io_start(loop_ev(loop), &server->acceptable);
	return server;
}

void ctl_server_free(struct ctl_server *server)
{
	struct client *c, *next;

	if (!server)
		return;
	ev_io_stop(loop_ev(server->loop), &server->acceptable);
	ev_timer_stop(loop_ev(server->loop), &server->accept_pause);
	ctl_listener_close(&server->listener);
	LIST_FOREACH_SAFE(c, &server->clients, link, next) {
		drop(c);
		maybe_free(c);
	}
	free(server);
}

unsigned ctl_server_clients(const struct ctl_server *server)
{
	return server->client_count;
}

void ctl_server_set_stall(struct ctl_server *server, double seconds)
{
	server->stall_s = seconds;
}
