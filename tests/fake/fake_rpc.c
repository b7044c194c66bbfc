/* SPDX-License-Identifier: MIT */
/*
 * A yoked that says what it was told to say.
 *
 * Invariants:
 * 1. One connection at a time, on a thread of its own, which ends with fake_rpc_stop().
 */
#include "tests/fake/fake_rpc.h"

#include <assert.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct fake_rpc {
	pthread_t thread;
	enum fake_rpc_mood mood;
	const char *const *answers;
	int listener;
	int stop[2]; /* closed at its writing end to stop */
	char path[108];
	FILE *log;
	char *requests;
	size_t requests_size;
};

/* Whether FD is readable; false: stop. */
static int wait_readable(struct fake_rpc *fake, int fd)
{
	struct pollfd p[2] = { { .fd = fake->stop[0], .events = POLLIN },
			       { .fd = fd, .events = POLLIN } };

	while (poll(p, 2, -1) <= 0)
		;
	return p[0].revents == 0;
}

static void say(int fd, const char *text)
{
	size_t len = strlen(text);

	while (len > 0) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

static void say_bytewise(int fd, const char *text)
{
	for (char byte[2] = ""; *text; text++) {
		byte[0] = *text;
		say(fd, byte);
	}
}

/* False: this connection is over. */
static int answer(struct fake_rpc *fake, int fd, const char *line)
{
	json_t *request = json_loads(line, 0, NULL);
	long long id = json_integer_value(json_object_get(request, "id"));
	const char *text = fake->answers ? fake->answers[0] : "";
	char *response = NULL;
	int go_on = 1;

	json_decref(request);
	fprintf(fake->log, "%s\n", line);
	switch (fake->mood) {
	case FAKE_RPC_RESULTS:
	case FAKE_RPC_DRIBBLE:
		assert(asprintf(&response, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":%s}\n", id,
				text) > 0);
		if (fake->answers[1])
			fake->answers++;
		if (fake->mood == FAKE_RPC_DRIBBLE) {
			say(fd, "{\"jsonrpc\":\"2.0\",\"id\":\"another\",\"result\":1}\n");
			say_bytewise(fd, response);
		} else {
			say(fd, response);
		}
		break;
	case FAKE_RPC_ERROR:
		assert(asprintf(&response,
				"{\"jsonrpc\":\"2.0\",\"id\":%lld,\"error\":{\"code\":-32000,"
				"\"message\":\"%s\",\"data\":{\"errno\":\"EBUSY\"}}}\n",
				id, text) > 0);
		say(fd, response);
		break;
	case FAKE_RPC_RAW:
		say(fd, text);
		go_on = 0;
		break;
	case FAKE_RPC_CLOSE:
		go_on = 0;
		break;
	case FAKE_RPC_SILENT:
		break;
	}
	free(response);
	return go_on;
}

static void serve(struct fake_rpc *fake, int fd)
{
	char line[65536];
	size_t len = 0;

	while (len < sizeof(line) - 1 && wait_readable(fake, fd)) {
		if (recv(fd, line + len, 1, 0) != 1)
			return;
		if (line[len++] != '\n')
			continue;
		line[len - 1] = '\0';
		len = 0;
		if (!answer(fake, fd, line))
			return;
	}
}

static void *run(void *arg)
{
	struct fake_rpc *fake = arg;

	while (wait_readable(fake, fake->listener)) {
		int fd = accept(fake->listener, NULL, NULL);

		serve(fake, fd);
		close(fd);
	}
	return NULL;
}

struct fake_rpc *fake_rpc_start(const char *path, enum fake_rpc_mood mood,
				const char *const *answers)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct fake_rpc *fake = calloc(1, sizeof(*fake));

	assert(fake && strlen(path) < sizeof(addr.sun_path));
	fake->mood = mood;
	fake->answers = answers;
	strcpy(addr.sun_path, path);
	strcpy(fake->path, path);
	fake->log = open_memstream(&fake->requests, &fake->requests_size);
	fake->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert(fake->log && fake->listener >= 0);
	assert(bind(fake->listener, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	assert(listen(fake->listener, 8) == 0);
	assert(pipe(fake->stop) == 0);
	assert(pthread_create(&fake->thread, NULL, run, fake) == 0);
	return fake;
}

char *fake_rpc_stop(struct fake_rpc *fake)
{
	char *requests;

	close(fake->stop[1]);
	pthread_join(fake->thread, NULL);
	close(fake->stop[0]);
	close(fake->listener);
	unlink(fake->path);
	fclose(fake->log);
	requests = fake->requests;
	free(fake);
	return requests;
}
