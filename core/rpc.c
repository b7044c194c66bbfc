/* SPDX-License-Identifier: MIT */
/*
 * The client's end of the control socket.
 *
 * Invariants:
 * 1. No call takes longer than its time-out, however yoked behaves.
 * 2. An answer belongs to a call by its id; anything else is passed over.
 *
 * Not here: the server (target/ctl.c). Shapes of answers: yoke-rpc(7).
 */
#include "core/rpc.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MAX (64 * MIB)

struct rpc {
	int fd;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	json_int_t next_id;
	char *buf; /* from the last newline on */
	size_t len, size;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static int fail(struct rpc_error *error, int err, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int fail(struct rpc_error *error, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
	return err;
}

static void say_unreachable(struct rpc_error *error, const char *path, int err)
{
	if (err == EACCES || err == EPERM)
		fail(error, 0, "%s: you may not open it. Try as root", path);
	else
		fail(error, 0, "no yoked answers on %s: %s. Start it, or name its socket with -s",
		     path, strerror(err));
}

struct rpc *rpc_open(const char *path, struct rpc_error *error)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct rpc *rpc = calloc(1, sizeof(*rpc));

	if (!rpc || strlen(path) >= sizeof(addr.sun_path)) {
		say_unreachable(error, path, rpc ? ENAMETOOLONG : ENOMEM);
		free(rpc);
		return NULL;
	}
	strcpy(addr.sun_path, path);
	strcpy(rpc->path, path);
	/* Non-blocking: a full queue is told at once, and reads and writes have a time-out. */
	rpc->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (rpc->fd < 0 || connect(rpc->fd, (struct sockaddr *)&addr, sizeof(addr))) {
		say_unreachable(error, path, errno);
		if (rpc->fd >= 0)
			close(rpc->fd);
		free(rpc);
		return NULL;
	}
	return rpc;
}

void rpc_close(struct rpc *rpc)
{
	if (!rpc)
		return;
	close(rpc->fd);
	free(rpc->buf);
	free(rpc);
}

/* Waits for EVENTS until DEADLINE: 0 or -ETIMEDOUT. */
static int wait_for(struct rpc *rpc, short events, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = rpc->fd, .events = events };

	for (;;) {
		uint64_t now = now_ns();
		struct timespec left;

		if (now >= deadline_ns)
			return -ETIMEDOUT;
		left.tv_sec = (time_t)((deadline_ns - now) / NS_PER_S);
		left.tv_nsec = (long)((deadline_ns - now) % NS_PER_S);
		if (ppoll(&p, 1, &left, NULL) > 0)
			return 0;
	}
}

static int send_all(struct rpc *rpc, const char *text, size_t len, uint64_t deadline_ns)
{
	while (len > 0) {
		ssize_t n = send(rpc->fd, text, len, MSG_NOSIGNAL);

		if (n > 0) {
			text += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN || errno == EINTR) {
			int err = wait_for(rpc, POLLOUT, deadline_ns);

			if (err)
				return err;
		} else {
			return -EPIPE;
		}
	}
	return 0;
}

/* More bytes into the buffer: 0 or -errno. */
static int receive(struct rpc *rpc, uint64_t deadline_ns)
{
	ssize_t n;
	int err;

	if (rpc->size - rpc->len < 65536) {
		size_t size = rpc->size ? rpc->size * 2 : 131072;
		char *bigger = size <= ANSWER_MAX ? realloc(rpc->buf, size) : NULL;

		if (!bigger)
			return -EPROTO;
		rpc->buf = bigger;
		rpc->size = size;
	}
	for (;;) {
		n = recv(rpc->fd, rpc->buf + rpc->len, rpc->size - rpc->len, 0);
		if (n > 0) {
			rpc->len += (size_t)n;
			return 0;
		}
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return -EPIPE;
		err = wait_for(rpc, POLLIN, deadline_ns);
		if (err)
			return err;
	}
}

/* The next line as JSON: 0 or -errno. */
static int next_answer(struct rpc *rpc, uint64_t deadline_ns, json_t **answer)
{
	size_t looked = 0;
	char *newline;
	int err;

	while (!(newline = rpc->len > looked ? memchr(rpc->buf + looked, '\n', rpc->len - looked) :
					       NULL)) {
		looked = rpc->len;
		err = receive(rpc, deadline_ns);
		if (err)
			return err;
	}
	*answer = json_loadb(rpc->buf, (size_t)(newline - rpc->buf), 0, NULL);
	rpc->len -= (size_t)(newline + 1 - rpc->buf);
	memmove(rpc->buf, newline + 1, rpc->len);
	return *answer ? 0 : -EPROTO;
}

/* The result or error in ANSWER, which is ours. */
static int take(const json_t *answer, json_t **result, struct rpc_error *error)
{
	const json_t *refusal = json_object_get(answer, "error");
	const char *why = json_string_value(json_object_get(refusal, "message"));

	*result = json_incref(json_object_get(answer, "result"));
	if (*result)
		return 0;
	return fail(error, -EREMOTEIO, "%s", why ? why : "yoked failed without saying why");
}

static int say_lost(struct rpc *rpc, int err, uint64_t timeout_ns, struct rpc_error *error)
{
	if (err == -ETIMEDOUT)
		return fail(error, err, "%s: no answer within %.1f s. Is yoked stopped or busy?",
			    rpc->path, (double)timeout_ns / (double)NS_PER_S);
	if (err == -EPIPE)
		return fail(error, err, "%s: yoked closed the connection. Is it stopping?",
			    rpc->path);
	return fail(error, err, "%s: what answers there is not yoked", rpc->path);
}

int rpc_call(struct rpc *rpc, const char *method, json_t *params, uint64_t timeout_ns,
	     json_t **result, struct rpc_error *error)
{
	uint64_t deadline_ns = now_ns() + timeout_ns;
	json_int_t id = ++rpc->next_id;
	json_t *request = json_pack("{s:s, s:I, s:s, s:O*}", "jsonrpc", "2.0", "id", id, "method",
				    method, "params", params);
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	json_t *answer = NULL;
	int err;

	json_decref(request);
	if (!text)
		return fail(error, -EREMOTEIO, "out of memory, or text that is not UTF-8");
	err = send_all(rpc, text, strlen(text), deadline_ns);
	err = err ? err : send_all(rpc, "\n", 1, deadline_ns);
	free(text);
	/* A server that refuses us says why before it closes: read although sending failed. */
	while (err == 0 || err == -EPIPE) {
		const json_t *got;

		err = next_answer(rpc, deadline_ns, &answer);
		if (err)
			break;
		got = json_object_get(answer, "id");
		if ((json_is_integer(got) && json_integer_value(got) == id) || json_is_null(got)) {
			err = take(answer, result, error);
			json_decref(answer);
			return err;
		}
		json_decref(answer);
	}
	return say_lost(rpc, err, timeout_ns, error);
}
