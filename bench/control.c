/* SPDX-License-Identifier: MIT */
/*
 * A session of the caller's own, for what has to be known before and beside the load.
 *
 * Invariants:
 *  1. It lives for one question only: no session of it is open while a load runs, so that the
 *     target counts nothing but the load.
 *  2. Every wait ends: ANSWER_S for a login or an answer.
 *  3. Answers are from the wire: every length in them is checked against what came.
 *
 * Not here: the load (worker.c).
 *
 * Spec: SBC-3 5.15 (GET LBA STATUS), 5.16 (READ CAPACITY (16)), 6.5.4 (block limits);
 * SPC-4 6.11 (MODE SENSE), 7.8.6 (device identification).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/engine_int.h"
#include "bench/host.h"
#include "core/wire.h"

#define ANSWER_S 10.0
#define TRIES 8
#define READ_MAX 65536u
#define STATUS_DESCRIPTORS 256u
#define STATUS_REQUESTS 1000u /* a LUN more fragmented than that: not known */

struct control {
	struct engine *engine;
	unsigned portal;
	struct ev_loop *ev;
	struct initiator_loop loop;
	struct initiator in;
	struct initiator_cmd cmd;
	struct ev_timer timer;
	enum initiator_outcome outcome;
	bool timed_out;
	char reason[160];
};

static void control_up(struct initiator *in)
{
	ev_break(in->loop->ev, EVBREAK_ALL);
}

static void control_down(struct initiator *in, const char *reason)
{
	struct control *control = container_of(in, struct control, in);

	snprintf(control->reason, sizeof(control->reason), "%s", reason);
	ev_break(in->loop->ev, EVBREAK_ALL);
}

static const struct initiator_ops control_ops = { .up = control_up, .down = control_down };

static void answer_late(struct ev_loop *ev, struct ev_timer *timer, int revents)
{
	struct control *control = container_of(timer, struct control, timer);

	(void)revents;
	control->timed_out = true;
	ev_break(ev, EVBREAK_ALL);
}

static void answered(struct initiator_cmd *cmd, enum initiator_outcome outcome)
{
	struct control *control = container_of(cmd, struct control, cmd);

	control->outcome = outcome;
	ev_break(control->ev, EVBREAK_ALL);
}

/* Until something breaks the loop. */
static void control_wait(struct control *control)
{
	ev_timer_set(&control->timer, ANSWER_S, 0);
	ev_now_update(control->ev);
	ev_timer_start(control->ev, &control->timer);
	ev_run(control->ev, 0);
	ev_timer_stop(control->ev, &control->timer);
	if (control->timed_out)
		initiator_close(&control->in, "no answer in 10 s");
}

static void control_close(struct control *control)
{
	if (control->in.state == INITIATOR_UP) {
		initiator_leave(&control->in);
		control_wait(control);
	}
	initiator_fini(&control->in);
	initiator_loop_fini(&control->loop);
	ev_loop_destroy(control->ev);
}

static int control_open(struct control *control, struct engine *engine, unsigned portal,
			struct bench_fault *fault)
{
	const struct bench_setup *setup = engine->setup;
	struct initiator_conf conf = {
		.portal = setup->portals[portal].address,
		.target = setup->portals[portal].target,
		.name = setup->initiator,
		.chap = &setup->chap,
		.header_digest = setup->header_digest,
		.luns = setup->luns,
		.lun_count = setup->lun_count,
		.run = engine->run,
		.qualifier = 0,
	};

	*control = (struct control){ .engine = engine, .portal = portal };
	control->ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
	if (!control->ev)
		return engine_say(fault, -ENOMEM, "no memory for a session");
	control->cmd.done = answered;
	ev_init(&control->timer, answer_late);
	initiator_loop_init(&control->loop, control->ev);
	initiator_init(&control->in, &control->loop, &conf, &control_ops);
	initiator_open(&control->in);
	control_wait(control);
	if (control->in.state == INITIATOR_UP)
		return 0;
	engine_say(fault, -ECONNREFUSED, "%s (%s): %s", conf.portal, conf.target, control->reason);
	control_close(control);
	return -ECONNREFUSED;
}

/* True: it is busy or had something else to tell, and is to be asked again. */
static bool wait_outcome(struct control *control)
{
	control_wait(control);
	return initiator_again(control->outcome);
}

static bool ask(struct control *control, unsigned lun, const uint8_t *cdb, unsigned cdb_bytes,
		void *buf, uint32_t length)
{
	for (unsigned i = 0; i < TRIES; i++) {
		control->outcome = INITIATOR_LOST;
		memset(buf, 0, length);
		if (!initiator_cdb(&control->in, &control->cmd, lun, cdb, cdb_bytes, buf, length))
			return false;
		if (!wait_outcome(control))
			break;
	}
	return control->outcome == INITIATOR_GOOD;
}

static const char *trouble(const struct control *control)
{
	return *control->reason ? control->reason : initiator_error(&control->in);
}

static bool read_capacity(struct control *control, struct bench_lun *lun)
{
	const uint8_t cdb16[16] = { 0x9e, 0x10, [13] = 32 };
	const uint8_t cdb10[10] = { 0x25 };
	uint8_t data[32];
	uint64_t last;

	if (ask(control, lun->lun, cdb16, sizeof(cdb16), data, sizeof(data))) {
		last = get_be64(data);
		lun->block_bytes = get_be32(data + 8);
	} else if (ask(control, lun->lun, cdb10, sizeof(cdb10), data, 8)) {
		last = get_be32(data);
		lun->block_bytes = get_be32(data + 4);
	} else {
		return false;
	}
	if (lun->block_bytes < 512 || lun->block_bytes > 65536 ||
	    lun->block_bytes & (lun->block_bytes - 1) || last >= INT64_MAX / 65536) {
		snprintf(control->reason, sizeof(control->reason),
			 "a capacity of %llu blocks of %u bytes makes no sense",
			 (unsigned long long)last + 1, lun->block_bytes);
		return false;
	}
	lun->size_bytes = (last + 1) * lun->block_bytes;
	return true;
}

/* The caching page's WCE. */
static bool write_cache(struct control *control, unsigned lun)
{
	const uint8_t cdb[10] = { 0x5a, 0x08, 0x08, [8] = 64 };
	uint8_t data[64];
	unsigned page;

	if (!ask(control, lun, cdb, sizeof(cdb), data, sizeof(data)))
		return false;
	page = 8 + get_be16(data + 6);
	return page + 3 <= sizeof(data) && (data[page] & 0x3f) == 0x08 && data[page + 2] & 0x04;
}

/* The most that a command may move; UINT32_MAX: no limit is told. */
static uint32_t transfer_max(struct control *control, const struct bench_lun *lun)
{
	const uint8_t cdb[6] = { 0x12, 1, 0xb0, 0, 64 };
	uint8_t data[64];
	uint64_t blocks;

	if (!ask(control, lun->lun, cdb, sizeof(cdb), data, sizeof(data)) || data[1] != 0xb0)
		return UINT32_MAX;
	blocks = get_be32(data + 8);
	return blocks ? (uint32_t)min_u64(blocks * lun->block_bytes, UINT32_MAX) : UINT32_MAX;
}

/* The designation descriptors of the logical unit, those of the port left out. */
static unsigned identity(struct control *control, unsigned lun, uint8_t id[252])
{
	const uint8_t cdb[6] = { 0x12, 1, 0x83, 0, 252 };
	uint8_t data[252];
	unsigned end, kept = 0;

	if (!ask(control, lun, cdb, sizeof(cdb), data, sizeof(data)) || data[1] != 0x83)
		return 0;
	end = (unsigned)min_u64(4u + get_be16(data + 2), sizeof(data));
	for (unsigned at = 4; at + 4 <= end && at + 4 + data[at + 3] <= end;
	     at += 4 + data[at + 3]) {
		if (data[at + 1] & 0x30)
			continue;
		memcpy(id + kept, data + at, 4u + data[at + 3]);
		kept += 4u + data[at + 3];
	}
	return kept;
}

/* What is known of a LUN over the first portal, to be found again over the others. */
struct known {
	unsigned length;
	uint8_t id[252];
};

static int look_at_lun(struct control *control, unsigned index, struct known *known,
		       struct bench_fault *fault)
{
	struct engine *engine = control->engine;
	const struct bench_portal *portals = engine->setup->portals;
	struct bench_lun seen = { .lun = engine->setup->luns[index], .mapped = -1 };
	struct bench_lun *lun = &engine->luns[index];
	struct known here;

	if (!read_capacity(control, &seen))
		return engine_say(fault, -ENODEV, "LUN %u over %s: %s", seen.lun,
				  portals[control->portal].address, trouble(control));
	here.length = identity(control, seen.lun, here.id);
	if (control->portal == 0) {
		seen.write_cache = write_cache(control, seen.lun);
		engine->transfer_max =
			(uint32_t)min_u64(engine->transfer_max, transfer_max(control, &seen));
		*lun = seen;
		*known = here;
		return 0;
	}
	if (seen.size_bytes == lun->size_bytes && seen.block_bytes == lun->block_bytes &&
	    here.length == known->length && memcmp(here.id, known->id, here.length) == 0)
		return 0;
	return engine_say(
		fault, -ENODEV,
		"LUN %u is not the same disk over %s as over %s: name portals of one disk",
		seen.lun, portals[control->portal].address, portals[0].address);
}

static void add_link(struct engine *engine, struct control *control, struct host_link *links)
{
	struct host_link *link = &links[control->portal];

	host_link(iscsi_get_fd(control->in.iscsi), link);
	engine->local &= link->local;
	for (unsigned i = 0; i < control->portal; i++)
		if (strcmp(links[i].interface, link->interface) == 0)
			return;
	engine->link_known &= link->bytes_s > 0;
	engine->link_bytes_s += link->bytes_s;
}

int control_look(struct engine *engine, struct bench_fault *fault)
{
	const struct bench_setup *setup = engine->setup;
	struct host_link links[BENCH_PORTALS_MAX];
	struct known *known = calloc(setup->lun_count, sizeof(*known));
	struct control control;
	int rc = known ? 0 : -ENOMEM;

	engine->transfer_max = UINT32_MAX;
	engine->local = engine->link_known = true;
	for (unsigned p = 0; p < setup->portal_count && rc == 0; p++) {
		rc = control_open(&control, engine, p, fault);
		if (rc != 0)
			break;
		add_link(engine, &control, links);
		for (unsigned i = 0; i < setup->lun_count && rc == 0; i++)
			rc = look_at_lun(&control, i, &known[i], fault);
		control_close(&control);
	}
	if (!engine->link_known)
		engine->link_bytes_s = 0;
	free(known);
	return rc;
}

/* The share of the first RANGE bytes that is allocated; -1: the LUN does not say. */
static double mapped(struct control *control, const struct bench_lun *lun, uint64_t range)
{
	uint8_t cdb[16] = { 0x9e, 0x12 }, data[8 + 16 * STATUS_DESCRIPTORS];
	uint64_t at = 0, end = range / lun->block_bytes, sum = 0;

	put_be32(cdb + 10, sizeof(data));
	for (unsigned i = 0; at < end && i < STATUS_REQUESTS; i++) {
		uint64_t before = at;
		unsigned length;

		put_be64(cdb + 2, at);
		if (!ask(control, lun->lun, cdb, sizeof(cdb), data, sizeof(data)))
			return -1;
		length = (unsigned)min_u64((uint64_t)get_be32(data) + 4, sizeof(data));
		for (unsigned d = 8; d + 16 <= length && at < end; d += 16) {
			uint64_t stop = get_be64(data + d) + get_be32(data + d + 8);

			if (get_be64(data + d) > at || stop <= at)
				return -1;
			stop = min_u64(stop, end);
			sum += (data[d + 12] & 0x0f) == 0 ? stop - at : 0;
			at = stop;
		}
		if (at == before)
			return -1;
	}
	return at >= end && end > 0 ? (double)sum / (double)end : -1;
}

int control_mapped(struct engine *engine, const uint64_t *range_bytes, struct bench_fault *fault)
{
	struct control control;
	int rc = control_open(&control, engine, 0, fault);

	if (rc != 0)
		return rc;
	for (unsigned i = 0; i < engine->setup->lun_count; i++)
		engine->luns[i].mapped = mapped(&control, &engine->luns[i], range_bytes[i]);
	control_close(&control);
	return 0;
}

/* All of it or nothing: parameter data may be shorter than what was asked for, blocks may not. */
static bool read_blocks(struct control *control, const struct bench_lun *from, uint64_t offset,
			void *buf, uint32_t length)
{
	for (unsigned i = 0; i < TRIES; i++) {
		control->outcome = INITIATOR_LOST;
		if (!initiator_rw(&control->in, &control->cmd, from->lun, false,
				  offset / from->block_bytes, from->block_bytes, buf, length))
			return false;
		if (!wait_outcome(control))
			break;
	}
	return control->outcome == INITIATOR_GOOD;
}

int control_read(struct engine *engine, unsigned lun, uint64_t offset, void *buf, size_t length,
		 struct bench_fault *fault)
{
	const struct bench_lun *from = &engine->luns[lun];
	const uint32_t piece = workload_piece(READ_MAX, engine->transfer_max, from->block_bytes);
	struct control control;
	int rc = control_open(&control, engine, 0, fault);

	if (rc != 0)
		return rc;
	for (size_t done = 0; done < length && rc == 0; done += piece) {
		uint32_t part = (uint32_t)min_u64(piece, length - done);

		if (!read_blocks(&control, from, offset + done, (uint8_t *)buf + done, part))
			rc = engine_say(fault, -EIO, "LUN %u: read at %llu: %s", from->lun,
					(unsigned long long)(offset + done), trouble(&control));
	}
	control_close(&control);
	return rc;
}
