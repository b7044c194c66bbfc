/* SPDX-License-Identifier: MIT */
/*
 * Backings: checks a spec, opens the leaf, waits for whoever still has it.
 *
 * Invariants:
 *  1. DONE runs exactly once, never from inside backing_open().
 *  2. What fails leaves nothing open, and one line of text.
 *  3. Who finds a file in use tries again every BUSY_RETRY_NS until
 *     spec->wait_ns are over: a process that is being stopped holds its files for
 *     a while (I16), one that is not holds them for ever.
 *
 * Not here: what the leaves do.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backstore/backing_int.h"
#include "backstore/fault.h"
#include "core/log.h"

#define BUSY_RETRY_NS (100 * NS_PER_MS)
#define BLOCK_MAX 65536

struct opening {
	struct env *env;
	struct backing_spec spec; /* its strings are ours */
	backing_open_fn *done;
	void *arg;
	struct env_defer defer;
	struct env_work work;
	struct env_timer retry;
	uint64_t deadline_ns;
	bool waits;
	struct file_medium medium;
	struct blk *blk;
	int error;
	char cause[BACKING_TEXT_MAX];
};

static void refuse(struct opening *opening, int error, const char *fmt, ...) PRINTF_LIKE(3, 4);

static void refuse(struct opening *opening, int error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(opening->cause, sizeof(opening->cause), fmt, args);
	va_end(args);
	opening->error = error;
}

static bool power_of_two(uint64_t v)
{
	return v != 0 && (v & (v - 1)) == 0;
}

static void check_blocks(struct opening *opening)
{
	const struct backing_spec *spec = &opening->spec;

	if (!spec->block_size && spec->driver == BACKING_FILE)
		return;
	if (spec->block_size != 512 && spec->block_size != 4096)
		refuse(opening, -EINVAL, "block_size is %u. Use 512 or 4096", spec->block_size);
	else if (spec->physical_block &&
		 (!power_of_two(spec->physical_block) || spec->physical_block < spec->block_size ||
		  spec->physical_block > BLOCK_MAX))
		refuse(opening, -EINVAL,
		       "physical_block is %u. Use a power of two from %u to %u, or leave it out",
		       spec->physical_block, spec->block_size, BLOCK_MAX);
	else if (spec->size_bytes % spec->block_size)
		refuse(opening, -EINVAL,
		       "size is %" PRIu64 " bytes, not a multiple of block_size %u. Round it",
		       spec->size_bytes, spec->block_size);
	else if (spec->size_bytes > INT64_MAX)
		refuse(opening, -EINVAL, "size is %" PRIu64 " bytes. Use at most 8 EiB - 1",
		       spec->size_bytes);
}

static void check_spec(struct opening *opening)
{
	const struct backing_spec *spec = &opening->spec;

	check_blocks(opening);
	if (opening->error)
		return;
	if (spec->driver == BACKING_FILE && !spec->path[0])
		refuse(opening, -EINVAL, "driver \"file\" needs a path. Give one");
	if (spec->driver != BACKING_FILE && spec->size_bytes == 0)
		refuse(opening, -EINVAL, "driver \"%s\" needs a size. Give one",
		       spec->driver == BACKING_RAM ? "ram" : "null");
}

/* --- the end --- */

static void add_faults(struct opening *opening)
{
	struct blk *filter = fault_new(opening->blk);

	if (filter) {
		opening->blk = filter;
		return;
	}
	blk_unref(opening->blk);
	opening->blk = NULL;
	refuse(opening, -ENOMEM, "out of memory");
}

static void finish(struct opening *opening)
{
	char text[BACKING_TEXT_MAX + BLK_NAME_MAX + 16] = "";

	if (opening->blk && opening->spec.faults)
		add_faults(opening);
	if (!opening->blk)
		snprintf(text, sizeof(text), "backing \"%.*s\": %s", BLK_NAME_MAX,
			 opening->spec.name, opening->cause);
	opening->done(opening->arg, opening->blk, opening->error, text);
	free((char *)opening->spec.name);
	free((char *)opening->spec.path);
	free(opening);
}

static void finish_deferred(struct env_defer *defer)
{
	finish(container_of(defer, struct opening, defer));
}

/* --- files --- */

static void probe_run(struct env_work *work)
{
	struct opening *opening = container_of(work, struct opening, work);

	opening->error = file_probe(&opening->spec, &opening->medium, opening->cause);
}

static void probe_again(struct env_timer *timer)
{
	struct opening *opening = container_of(timer, struct opening, retry);

	env_work_submit(opening->env, &opening->work);
}

static bool wait_for_holder(struct opening *opening)
{
	if (opening->error != -EBUSY || env_now_ns(opening->env) >= opening->deadline_ns)
		return false;
	if (!opening->waits)
		log_line(LOG_L_INFO, "backing", opening->spec.name, "waiting", "cause=\"%s\"",
			 opening->cause);
	opening->waits = true;
	env_timer_set(opening->env, &opening->retry, BUSY_RETRY_NS);
	return true;
}

static void close_run(struct env_work *work)
{
	struct opening *opening = container_of(work, struct opening, work);

	close(opening->medium.fd);
}

static void close_done(struct env_work *work)
{
	finish(container_of(work, struct opening, work));
}

static void probe_done(struct env_work *work)
{
	struct opening *opening = container_of(work, struct opening, work);

	if (wait_for_holder(opening))
		return;
	if (!opening->error) {
		opening->blk = file_new(opening->env, &opening->spec, &opening->medium, NULL);
		if (!opening->blk) {
			refuse(opening, -ENOMEM, "out of memory");
			opening->work.run = close_run;
			opening->work.done = close_done;
			env_work_submit(opening->env, &opening->work);
			return;
		}
	}
	finish(opening);
}

static void open_memory(struct opening *opening)
{
	bool ram = opening->spec.driver == BACKING_RAM;

	opening->blk = ram ? ram_new(opening->env, &opening->spec) :
			     null_new(opening->env, &opening->spec);
	if (!opening->blk)
		refuse(opening, -errno, "%" PRIu64 " bytes of memory: %s. Give a smaller size",
		       opening->spec.size_bytes, strerror(errno));
}

static struct opening *opening_new(struct env *env, const struct backing_spec *spec)
{
	struct opening *opening = calloc(1, sizeof(*opening));

	if (!opening)
		return NULL;
	opening->env = env;
	opening->spec = *spec;
	opening->spec.name = strdup(spec->name);
	opening->spec.path = strdup(spec->path ? spec->path : "");
	if (!opening->spec.name || !opening->spec.path) {
		free((char *)opening->spec.name);
		free((char *)opening->spec.path);
		free(opening);
		return NULL;
	}
	opening->deadline_ns = env_now_ns(env) + (spec->wait_ns ? spec->wait_ns : BACKING_WAIT_NS);
	opening->defer.fn = finish_deferred;
	opening->work.run = probe_run;
	opening->work.done = probe_done;
	opening->retry.fn = probe_again;
	return opening;
}

void backing_open(struct env *env, const struct backing_spec *spec, backing_open_fn *done,
		  void *arg)
{
	struct opening *opening = opening_new(env, spec);

	assert(opening); /* a few hundred bytes at start: nothing to be saved without them */
	opening->done = done;
	opening->arg = arg;
	check_spec(opening);
	if (!opening->error && spec->driver == BACKING_FILE) {
		env_work_submit(env, &opening->work);
		return;
	}
	if (!opening->error)
		open_memory(opening);
	env_defer(env, &opening->defer);
}
