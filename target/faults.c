/* SPDX-License-Identifier: MIT */
/*
 * Control methods for fault rules: `yokectl fault add|list|remove`.
 *
 * They exist in every yoked and refuse with a reason where `faults = true` is
 * not in the configuration: then no backing and no disk has a filter.
 *
 * Not here: what a rule does (backstore/fault.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/fault.h"
#include "core/event.h"
#include "target/daemon.h"

static const struct {
	const char *name;
	enum fault_kind kind;
} kinds[] = {
	{ "error", FAULT_ERROR },
	{ "delay", FAULT_DELAY },
	{ "stuck", FAULT_STUCK },
	{ "torn", FAULT_TORN },
};

static const struct {
	const char *name;
	unsigned ops;
} ops[] = {
	{ "any", (1u << IO_OP_COUNT) - 1 }, { "read", 1u << IO_READ },
	{ "write", 1u << IO_WRITE },        { "flush", 1u << IO_FLUSH },
	{ "unmap", 1u << IO_UNMAP },        { "write-zeroes", 1u << IO_WRITE_ZEROES },
	{ "status", 1u << IO_STATUS },
};

static const struct {
	const char *name;
	int error;
} errors[] = {
	{ "EIO", EIO },     { "ENOSPC", ENOSPC }, { "EROFS", EROFS },
	{ "ENXIO", ENXIO }, { "EAGAIN", EAGAIN },
};

static const char *errors_name(int error)
{
	for (unsigned i = 0; i < ARRAY_LEN(errors); i++)
		if (errors[i].error == -error)
			return errors[i].name;
	return "this error";
}

#define LOOKUP(table, text, index)                                                                 \
	do {                                                                                       \
		for ((index) = 0; (index) < ARRAY_LEN(table); (index)++)                           \
			if (!strcmp((table)[index].name, (text)))                                  \
				break;                                                             \
	} while (0)

static bool faults_enabled(struct yoked *yoked, struct ctl_request *request)
{
	if (yoked->faults)
		return true;
	ctl_fail(request, -EPERM,
		 "fault: not enabled. Write faults = true into the node section and restart");
	return false;
}

/* What belongs to another kind, or is missing, would be a rule that does not do what it says. */
static bool parts_fit(struct ctl_request *request, const struct fault_rule *rule)
{
	const char *refusal = NULL;

	if (rule->kind == FAULT_DELAY && !rule->delay_ns)
		refusal = "delay: no time. Add --delay TIME";
	else if (rule->kind != FAULT_DELAY && rule->delay_ns)
		refusal = "--delay is for kind delay. Leave it out";
	else if (rule->kind != FAULT_TORN && rule->torn_bytes)
		refusal = "--torn is for kind torn. Leave it out";
	else if (rule->kind == FAULT_TORN && rule->ops != 1u << IO_WRITE)
		refusal = "torn: only writes can tear. Write --op write, or no --op";
	else if (rule->kind != FAULT_ERROR && ctl_string(request, "error"))
		refusal = "--error is for kind error. Leave it out";
	if (refusal)
		ctl_fail(request, -EINVAL, "fault: %s", refusal);
	return !refusal;
}

/* False: refused, request answered. */
static bool parse_numbers(struct ctl_request *request, struct fault_rule *rule)
{
	const struct {
		const char *name;
		int64_t most;
	} numbers[] = {
		{ "offset", INT64_MAX }, { "length", INT64_MAX },     { "count", INT64_MAX },
		{ "delay_ms", 3600000 }, { "torn_bytes", INT32_MAX }, { "per_million", 1000000 },
	};
	int64_t value[ARRAY_LEN(numbers)];

	for (unsigned i = 0; i < ARRAY_LEN(numbers); i++) {
		value[i] = ctl_integer(request, numbers[i].name, 0);
		if (value[i] < 0 || value[i] > numbers[i].most) {
			ctl_fail(request, -EINVAL, "fault: %s: 0 to %" PRId64 ", not %" PRId64,
				 numbers[i].name, numbers[i].most, value[i]);
			return false;
		}
	}
	rule->offset = (uint64_t)value[0];
	rule->length = (uint64_t)value[1];
	rule->count = (uint64_t)value[2];
	rule->delay_ns = (uint64_t)value[3] * NS_PER_MS;
	rule->torn_bytes = (uint64_t)value[4];
	rule->probability = (uint32_t)value[5];
	return parts_fit(request, rule);
}

static bool parse_rule(struct ctl_request *request, struct fault_rule *rule)
{
	const char *kind = ctl_string(request, "kind"), *op = ctl_string(request, "op");
	const char *error = ctl_string(request, "error");
	unsigned k, o, e;

	memset(rule, 0, sizeof(*rule));
	LOOKUP(kinds, kind, k);
	if (!op)
		op = strcmp(kind, "torn") ? "any" : "write";
	LOOKUP(ops, op, o);
	LOOKUP(errors, error ? error : "EIO", e);
	if (k == ARRAY_LEN(kinds)) {
		ctl_fail(request, -EINVAL, "fault: kind \"%s\": error, delay, stuck or torn", kind);
		return false;
	}
	if (o == ARRAY_LEN(ops)) {
		ctl_fail(request, -EINVAL,
			 "fault: op \"%s\": any, read, write, flush, unmap, write-zeroes or status",
			 op);
		return false;
	}
	if (e == ARRAY_LEN(errors)) {
		ctl_fail(request, -EINVAL,
			 "fault: error \"%s\": EIO, ENOSPC, EROFS, ENXIO or EAGAIN", error);
		return false;
	}
	rule->kind = kinds[k].kind;
	rule->ops = ops[o].ops;
	rule->error = -errors[e].error;
	return parse_numbers(request, rule);
}

/* ---- what has a filter: backings, and disks that are open */

typedef void filter_fn(void *arg, const char *name, struct fault *filter);

static void each_filter(struct yoked *yoked, filter_fn *fn, void *arg)
{
	struct store *store;
	struct disk *disk;

	if (!yoked->faults)
		return;
	TAILQ_FOREACH(store, &yoked->stores, link)
		if (!store->array)
			fn(arg, store->name, fault_of(store->blk));
	TAILQ_FOREACH(disk, disks_list(yoked->disks), link)
		if (!disk->store && disk->blk)
			fn(arg, disk->name, fault_of(disk->blk));
}

/* NULL: none such, REQUEST is answered. */
static struct fault *filter_named(struct yoked *yoked, const char *name,
				  struct ctl_request *request)
{
	struct store *store = store_find(yoked, name);
	struct disk *disk = *name == '/' ? disks_find(yoked->disks, name) : NULL;

	if (store)
		return fault_of(store->blk);
	if (disk && disk->blk)
		return fault_of(disk->blk);
	if (*name == '/')
		ctl_fail(request, -ENOENT, "fault: %s: no disk of an array. See yokectl disk list",
			 name);
	else
		ctl_fail(request, -ENOENT, "fault: no backing \"%s\". See yokectl backing list",
			 name);
	return NULL;
}

static void fault_add_run(void *arg, struct ctl_request *request)
{
	struct yoked *yoked = arg;
	struct fault_rule rule;
	struct fault *filter;
	uint64_t number;
	char id[24];

	if (!faults_enabled(yoked, request))
		return;
	filter = filter_named(yoked, ctl_string(request, "backing"), request);
	if (!filter || !parse_rule(request, &rule))
		return;
	number = fault_add(filter, &rule);
	if (!number) {
		ctl_fail(request, -EINVAL,
			 "fault: %s: not what each of its requests can end in. Name another --op",
			 errors_name(rule.error));
		return;
	}
	snprintf(id, sizeof(id), "%" PRIu64, number);
	event_emit(EVENT_FAULT_ADDED, id, ctl_string(request, "kind"));
	ctl_reply(request, json_pack("{s:s, s:s}", "schema", "yoke.fault.add/1", "id", id));
}

struct listing {
	json_t *rows;
	const char *name;
};

static void fault_row(void *arg, uint64_t id, const struct fault_rule *rule, uint64_t hits,
		      unsigned held)
{
	struct listing *listing = arg;
	const char *op = "any";
	char text[24];

	for (unsigned i = 0; i < ARRAY_LEN(ops); i++)
		if (ops[i].ops == rule->ops)
			op = ops[i].name;
	snprintf(text, sizeof(text), "%" PRIu64, id);
	json_array_append_new(
		listing->rows,
		json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "id", text,
			  "backing", listing->name, "kind", kinds[rule->kind].name, "op", op,
			  "offset", (json_int_t)rule->offset, "length", (json_int_t)rule->length,
			  "count_left", (json_int_t)rule->count, "delay_ms",
			  (json_int_t)(rule->delay_ns / NS_PER_MS), "hits", (json_int_t)hits,
			  "held", (json_int_t)held));
}

static void list_filter(void *arg, const char *name, struct fault *filter)
{
	struct listing *listing = arg;

	listing->name = name;
	fault_each(filter, fault_row, listing);
}

static void fault_list_run(void *arg, struct ctl_request *request)
{
	struct listing listing = { .rows = json_array() };

	each_filter(arg, list_filter, &listing);
	ctl_reply(request,
		  json_pack("{s:s, s:o}", "schema", "yoke.fault.list/1", "faults", listing.rows));
}

struct removal {
	uint64_t id;
	bool found;
};

static void remove_from(void *arg, const char *name, struct fault *filter)
{
	struct removal *removal = arg;

	(void)name;
	removal->found |= fault_remove(filter, removal->id);
}

static void fault_remove_run(void *arg, struct ctl_request *request)
{
	struct yoked *yoked = arg;
	const char *text = ctl_string(request, "id");
	struct removal removal = { 0 };
	char *end;

	if (!faults_enabled(yoked, request))
		return;
	removal.id = strtoull(text, &end, 10);
	if (end != text && !*end)
		each_filter(yoked, remove_from, &removal);
	if (!removal.found) {
		ctl_fail(request, -ENOENT, "fault: no rule \"%s\". See yokectl fault list", text);
		return;
	}
	event_emit(EVENT_FAULT_REMOVED, text);
	ctl_reply(request, json_pack("{s:s, s:s}", "schema", "yoke.fault.remove/1", "id", text));
}

void faults_register(struct yoked *yoked)
{
	static const struct ctl_param add_params[] = {
		{ "backing", CTL_STRING, true },
		{ "kind", CTL_STRING, true },
		{ "op", CTL_STRING, false },
		{ "error", CTL_STRING, false },
		{ "delay_ms", CTL_INTEGER, false },
		{ "offset", CTL_INTEGER, false },
		{ "length", CTL_INTEGER, false },
		{ "count", CTL_INTEGER, false },
		{ "torn_bytes", CTL_INTEGER, false },
		{ "per_million", CTL_INTEGER, false },
		{ 0 },
	};
	static const struct ctl_param remove_params[] = { { "id", CTL_STRING, true }, { 0 } };
	static const struct ctl_command commands[] = {
		{ "fault.add", "make a backing or disk misbehave", add_params, fault_add_run },
		{ "fault.list", "fault rules and how often they acted", NULL, fault_list_run },
		{ "fault.remove", "end a fault; what it held goes on", remove_params,
		  fault_remove_run },
		{ 0 },
	};

	ctl_register(yoked->ctl, commands, yoked);
}
