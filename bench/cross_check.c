/* SPDX-License-Identifier: MIT */
/*
 * yoked's counters beside ours: two readings of traffic.show, and their difference.
 *
 * Invariants:
 *  1. A reading is of one moment: nothing is under way when it is taken, and one call tells all
 *     of a target.
 *  2. A backing is counted once, however many LUNs of however many targets show it.
 *  3. Devices are compared by bytes, and by operations only where none was in pieces.
 *  4. What was not checked, and what could not be, is no disagreement.
 *
 * Not here: our own counts (engine.c), what follows from a disagreement (verdict.c, outcome.c).
 * Spec: man/yoke-rpc.7, traffic.show.
 */
#include "bench/cross_check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rpc.h"
#include "core/units.h"

#define ANSWER_TIMEOUT_NS (10 * NS_PER_S)
#define BACKING_NAME_MAX 64
#define WHOLE_MAX (4 * MIB) /* a longer command may reach the device in pieces */
#define BACKINGS_MAX (BENCH_LUNS_MAX * BENCH_PORTALS_MAX)

struct reading {
	uint64_t sessions, luns, devices; /* reads and writes */
	uint64_t device_read_bytes, device_write_bytes;
	bool disks; /* every device reads past the page cache */
};

struct cross_check {
	const struct bench_setup *setup;
	struct rpc *rpc;
	struct reading before, after;
	bool have_before, have_after;
	char why[160];
	char (*backings)[BACKING_NAME_MAX]; /* counted in this reading */
	unsigned backing_count;
};

int cross_check_new(const char *path, const struct bench_setup *setup, struct cross_check **check,
		    struct bench_fault *fault)
{
	struct cross_check *c = calloc(1, sizeof(*c));
	struct rpc_error error;

	if (c)
		c->backings = calloc(BACKINGS_MAX, sizeof(*c->backings));
	if (!c || !c->backings) {
		snprintf(fault->text, sizeof(fault->text), "--cross-check: out of memory");
		free(c);
		return -ENOMEM;
	}
	c->setup = setup;
	c->rpc = rpc_open(path, &error);
	if (!c->rpc) {
		snprintf(fault->text, sizeof(fault->text), "--cross-check: %.300s", error.text);
		cross_check_free(c);
		return -ECONNREFUSED;
	}
	*check = c;
	return 0;
}

void cross_check_free(struct cross_check *check)
{
	if (!check)
		return;
	rpc_close(check->rpc);
	free(check->backings);
	free(check);
}

/* False: it is no number. */
static bool take(const json_t *object, const char *key, uint64_t *sum)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*sum += (uint64_t)json_integer_value(value);
	return true;
}

static bool take_ops(const json_t *object, uint64_t *sum)
{
	return take(object, "read_ops", sum) && take(object, "write_ops", sum);
}

static bool seen(struct cross_check *check, const char *backing)
{
	for (unsigned i = 0; i < check->backing_count; i++)
		if (strcmp(check->backings[i], backing) == 0)
			return true;
	if (check->backing_count < BACKINGS_MAX)
		snprintf(check->backings[check->backing_count++], BACKING_NAME_MAX, "%s", backing);
	return false;
}

static bool take_lun(struct cross_check *check, const json_t *row, struct reading *reading)
{
	const char *backing = json_string_value(json_object_get(row, "backing"));
	const json_t *device = json_object_get(row, "device");

	if (!backing || strlen(backing) >= BACKING_NAME_MAX)
		return false;
	if (seen(check, backing))
		return true;
	reading->disks &= json_is_true(json_object_get(row, "disk"));
	return take_ops(json_object_get(row, "unit"), &reading->luns) &&
	       take_ops(device, &reading->devices) &&
	       take(device, "read_bytes", &reading->device_read_bytes) &&
	       take(device, "write_bytes", &reading->device_write_bytes);
}

static bool take_target(struct cross_check *check, const json_t *result, struct reading *reading)
{
	const json_t *rows = json_object_get(result, "luns"), *row;
	size_t i;

	if (json_array_size(rows) != check->setup->lun_count ||
	    !take_ops(json_object_get(result, "sessions"), &reading->sessions))
		return false;
	json_array_foreach(rows, i, row) {
		if (!take_lun(check, row, reading))
			return false;
	}
	return true;
}

static int read_target(struct cross_check *check, const char *target, struct reading *reading,
		       struct bench_fault *fault)
{
	json_t *luns = json_array(), *params, *result;
	struct rpc_error error;
	char number[16];
	int err;

	for (unsigned i = 0; i < check->setup->lun_count; i++) {
		snprintf(number, sizeof(number), "%u", check->setup->luns[i]);
		json_array_append_new(luns, json_string(number));
	}
	params = json_pack("{s:s, s:o}", "target", target, "luns", luns);
	err = rpc_call(check->rpc, "traffic.show", params, ANSWER_TIMEOUT_NS, &result, &error);
	json_decref(params);
	if (err) {
		snprintf(fault->text, sizeof(fault->text), "--cross-check: %.300s", error.text);
		return err;
	}
	if (!take_target(check, result, reading)) {
		snprintf(fault->text, sizeof(fault->text),
			 "--cross-check: yoked's answer has no counters. Is it older than this "
			 "program?");
		err = -EPROTO;
	}
	json_decref(result);
	return err;
}

/* Each target once: several portals show the same. */
static int read_all(struct cross_check *check, struct reading *reading, struct bench_fault *fault)
{
	const struct bench_setup *setup = check->setup;

	*reading = (struct reading){ .disks = true };
	check->backing_count = 0;
	for (unsigned i = 0; i < setup->portal_count; i++) {
		unsigned first = 0;
		int err;

		while (strcasecmp(setup->portals[first].target, setup->portals[i].target) != 0)
			first++;
		if (first < i)
			continue;
		err = read_target(check, setup->portals[i].target, reading, fault);
		if (err) {
			snprintf(check->why, sizeof(check->why), "not compared: %.140s",
				 fault->text);
			return err;
		}
	}
	return 0;
}

int cross_check_before(struct cross_check *check, struct bench_fault *fault)
{
	int err;

	check->have_after = false;
	err = read_all(check, &check->before, fault);
	check->have_before = !err;
	return err;
}

int cross_check_after(struct cross_check *check, struct bench_fault *fault)
{
	int err = read_all(check, &check->after, fault);

	check->have_after = !err;
	return err;
}

/* Counters that went back are of another yoked. */
static bool went_back(const struct cross_check *check)
{
	const struct reading *a = &check->before, *b = &check->after;

	return b->sessions < a->sessions || b->luns < a->luns || b->devices < a->devices ||
	       b->device_read_bytes < a->device_read_bytes ||
	       b->device_write_bytes < a->device_write_bytes;
}

/* "initiator 100 = sessions = LUNs; disks 98" */
static void add_count(char *text, size_t size, const char *name, uint64_t count, uint64_t ours)
{
	size_t len = strlen(text);
	char number[UNITS_SIZE];

	if (count == ours)
		snprintf(text + len, size - len, " = %s", name);
	else
		snprintf(text + len, size - len, "; %s %s", name, units_count(count, number));
}

static double deviation(uint64_t count, uint64_t ours)
{
	if (count == ours)
		return 0;
	return ours ? fabs((double)count - (double)ours) / (double)ours : 1;
}

/* Whether a command may have been several operations of a device. */
static bool in_pieces(const struct bench_point *point)
{
	for (unsigned i = 0; i < point->stream_count; i++)
		if (point->streams[i].block_bytes > WHOLE_MAX)
			return true;
	return false;
}

/* The devices: into C's deviation and text. MOVED bytes in all. */
static void compare_devices(struct bench_cross_check *c, const struct bench_result *result,
			    uint64_t moved)
{
	const char *name = c->disks_known ? "disks" : "backings";
	uint64_t ours = result->sides[BENCH_TOTAL].bytes;
	char moved_text[UNITS_SIZE], ours_text[UNITS_SIZE];
	size_t len;

	c->deviation = fmax(c->deviation, deviation(moved, ours));
	if (!in_pieces(result->point)) {
		c->deviation = fmax(c->deviation, deviation(c->disks, c->initiator));
		add_count(c->text, sizeof(c->text), name, c->disks, c->initiator);
	} else if (moved == ours) {
		len = strlen(c->text);
		snprintf(c->text + len, sizeof(c->text) - len, "; %s agree in bytes", name);
	}
	len = strlen(c->text);
	if (moved != ours)
		snprintf(c->text + len, sizeof(c->text) - len, "; %s moved %s of %s", name,
			 units_size(moved, moved_text), units_size(ours, ours_text));
}

void cross_check_fill(const struct cross_check *check, struct bench_result *result)
{
	struct bench_cross_check *c = &result->cross_check;
	const struct reading *a = &check->before, *b = &check->after;
	char number[UNITS_SIZE];

	c->initiator = result->sides[BENCH_TOTAL].ops;
	c->initiator_read_bytes = result->sides[BENCH_READ].bytes;
	c->done = check->have_before && check->have_after && !went_back(check);
	if (!c->done) {
		snprintf(c->text, sizeof(c->text), "%s",
			 check->why[0] ? check->why :
			 check->have_before && check->have_after ?
					 "not compared: yoked was restarted meanwhile" :
					 "not compared: nothing was read from yoked");
		return;
	}
	c->sessions = b->sessions - a->sessions;
	c->luns = b->luns - a->luns;
	c->disks = b->devices - a->devices;
	c->disks_known = b->disks;
	c->disk_read_bytes = b->device_read_bytes - a->device_read_bytes;
	c->deviation = fmax(deviation(c->sessions, c->initiator), deviation(c->luns, c->initiator));
	snprintf(c->text, sizeof(c->text), "initiator %s", units_count(c->initiator, number));
	add_count(c->text, sizeof(c->text), "sessions", c->sessions, c->initiator);
	add_count(c->text, sizeof(c->text), "LUNs", c->luns, c->initiator);
	compare_devices(c, result,
			c->disk_read_bytes + b->device_write_bytes - a->device_write_bytes);
}

bool cross_check_agrees(const struct bench_cross_check *check)
{
	return !check->done || check->deviation <= CROSS_CHECK_DEVIATION_MAX + 1e-9;
}
