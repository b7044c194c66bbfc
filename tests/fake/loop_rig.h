/* SPDX-License-Identifier: MIT */
/* A real loop with a temporary file, for tests of the loop; it gives up after 30 s. */
#ifndef FAKE_LOOP_RIG_H
#define FAKE_LOOP_RIG_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/log.h"
#include "core/loop_int.h"

#define DEPTH 8
#define DEADLINE_NS (30 * NS_PER_S)

static struct loop *loop;
static struct env *env;
static unsigned wanted; /* the loop stops when this many callbacks ran */
static char path[4096];
static int fd;
static struct env_timer deadline;

static void too_late(struct env_timer *timer)
{
	(void)timer;
	ck_abort_msg("nothing happened for 30 s");
}

static void quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* False where io_uring is refused: then there is only one engine to test. */
static bool start(enum loop_engine engine)
{
	const char *dir = getenv("TMPDIR");

	log_redirect(quiet);
	loop = loop_new_with(engine, DEPTH);
	if (!loop && engine == LOOP_ENGINE_RING && (errno == EPERM || errno == ENOSYS))
		return false;
	ck_assert_ptr_nonnull(loop);
	env = loop_env(loop);
	snprintf(path, sizeof(path), "%s/yoke-loop-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	deadline = (struct env_timer){ .fn = too_late };
	env_timer_set(env, &deadline, DEADLINE_NS);
	return true;
}

static void stop(void)
{
	env_timer_cancel(env, &deadline);
	close(fd);
	unlink(path);
	loop_free(loop);
	log_redirect(NULL);
}

static void ran_one(void)
{
	if (--wanted == 0)
		loop_stop(loop);
}

static void run_until(unsigned count)
{
	wanted = count;
	loop_run(loop);
}

#endif
