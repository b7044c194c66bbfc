/* SPDX-License-Identifier: MIT */
/*
 * status.show: is all well, and if not, what is wrong, what it risks, what to do.
 *
 * Problems are derived from what is so at the moment of the question; what was
 * put right is gone from the next answer, what was a moment from those after ten
 * minutes.
 *
 * Not here: the texts of a code (core/problem.h), how it looks (ctl/).
 */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backstore/fault.h"
#include "core/problem.h"
#include "core/version.h"
#include "target/daemon.h"

#define LOOP_SLOW_SHOWN_NS (600 * NS_PER_S) /* a slow turn is a moment; it is shown so long */

static void add(json_t *problems, const struct problem *problem)
{
	json_array_append_new(problems, problem_json(problem));
}

/* When AT_NS, of env_now_ns(), was on the wall. */
static int64_t wall_s(const struct yoked *yoked, uint64_t at_ns)
{
	return time(NULL) - (int64_t)((env_now_ns(yoked->env) - at_ns) / NS_PER_S);
}

static void backing_problem(const struct yoked *yoked, const struct store *store, json_t *problems)
{
	struct problem problem = {
		.object = store->name,
		.detail = store->blk->state_cause,
		.doing = "",
		.what_to_do = "",
		.since_s = store->state_since_s,
	};

	switch (store->blk->state) {
	case BLK_ONLINE:
		if (!store_full(store))
			return;
		problem.code = PROBLEM_BACKING_FULL;
		problem.detail = "no room for a block that was never written";
		problem.risk = "new blocks fail (07/27/07); overwrites go on";
		problem.since_s = wall_s(yoked, store->blk->full_ns);
		break;
	case BLK_READ_ONLY_NOW:
		problem.code = PROBLEM_BACKING_READ_ONLY;
		problem.risk = "writes of its hosts fail (07/27/00)";
		break;
	case BLK_WAITING: /* of arrays only */
		return;
	case BLK_FAILED:
		problem.code = PROBLEM_BACKING_FAILED;
		problem.risk = "its LUNs answer nothing but errors";
		break;
	}
	add(problems, &problem);
}

static void count_rule(void *arg, uint64_t id, const struct fault_rule *rule, uint64_t hits,
		       unsigned held)
{
	(void)id;
	(void)rule;
	(void)hits;
	(void)held;
	++*(unsigned *)arg;
}

static void fault_problem(const struct store *store, json_t *problems)
{
	unsigned rules = 0;
	char detail[64];
	struct problem problem = {
		.code = PROBLEM_FAULTS_ACTIVE,
		.object = store->name,
		.detail = detail,
		.risk = "its hosts see the errors and delays that were asked for",
		.doing = "",
		.what_to_do = "",
		.since_s = time(NULL),
	};

	fault_each(fault_of(store->blk), count_rule, &rules);
	snprintf(detail, sizeof(detail), "%u fault rule%s", rules, rules == 1 ? "" : "s");
	if (rules)
		add(problems, &problem);
}

static void sanitize_problem(const struct yoked *yoked, const struct store *store, json_t *problems)
{
	uint64_t failed_ns;
	struct problem problem = {
		.code = PROBLEM_SANITIZE_FAILED,
		.object = store->name,
		.detail = "its medium is closed since a SANITIZE that did not end well",
		.risk = "its hosts get 03/31/03; old data may still be there",
		.doing = "",
		.what_to_do = "",
	};

	if (scsi_lu_sanitize(store->lu, &failed_ns) != LU_SANITIZE_FAILED)
		return;
	problem.since_s = wall_s(yoked, failed_ns);
	add(problems, &problem);
}

static void config_problem(const struct yoked *yoked, json_t *problems)
{
	const struct problem problem = {
		.code = PROBLEM_CONFIG_REFUSED,
		.object = yoked->conf_path,
		.detail = yoked->conf_refused,
		.risk = "the next start of yoked would fail",
		.doing = "running with the file that was taken before",
		.what_to_do = "",
		.since_s = yoked->conf_refused_s,
	};

	if (yoked->conf_refused[0])
		add(problems, &problem);
}

static void loop_problem(struct yoked *yoked, const struct loop_stats *stats, json_t *problems)
{
	uint64_t ago_ns = env_now_ns(yoked->env) - stats->slow_turn_at_ns;
	char detail[64];
	const struct problem problem = {
		.code = PROBLEM_LOOP_SLOW,
		.object = "loop",
		.detail = detail,
		.risk = "hosts see pauses of that length",
		.doing = "",
		.what_to_do = "",
		.since_s = wall_s(yoked, stats->slow_turn_at_ns),
	};

	if (!stats->slow_turn_ns || ago_ns > LOOP_SLOW_SHOWN_NS)
		return;
	snprintf(detail, sizeof(detail), "a turn took %.1f ms",
		 (double)stats->slow_turn_ns / (double)NS_PER_MS);
	add(problems, &problem);
}

static json_t *problems_now(struct yoked *yoked, const struct loop_stats *loop, unsigned *missing)
{
	json_t *problems = json_array();
	struct array_entry *entry;
	struct store *store;

	TAILQ_FOREACH(store, &yoked->stores, link) {
		sanitize_problem(yoked, store, problems);
		if (store->array)
			continue;
		backing_problem(yoked, store, problems);
		if (yoked->faults)
			fault_problem(store, problems);
	}
	TAILQ_FOREACH(entry, arrays_list(yoked->arrays), link)
		array_problems(entry, problems);
	absent_problems(yoked, problems);
	*missing = path_problems(yoked, problems);
	config_problem(yoked, problems);
	loop_problem(yoked, loop, problems);
	return problems;
}

/* Whether hosts can use the medium of its LUNs. */
static bool serves(const struct store *store)
{
	uint64_t failed_ns;

	return store->blk->state != BLK_FAILED && store->blk->state != BLK_WAITING &&
	       scsi_lu_sanitize(store->lu, &failed_ns) == LU_SANITIZE_NONE;
}

static json_t *luns(const struct yoked *yoked)
{
	const struct export *export;
	unsigned total = 0, online = 0;

	TAILQ_FOREACH(export, &yoked->exports, link) {
		for (unsigned i = 0; i < export->conf->lun_count; i++) {
			const struct store *store = store_of_lun(yoked, &export->conf->luns[i]);

			total++;
			online += store && serves(store);
		}
	}
	return json_pack("{s:i, s:i}", "total", (int)total, "online", (int)online);
}

static json_t *iscsi_counters(const struct iscsi_stats *stats)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "logins", (json_int_t)stats->logins,
			 "logins_refused", (json_int_t)stats->logins_refused, "pdus_in",
			 (json_int_t)stats->pdus_in, "pdus_out", (json_int_t)stats->pdus_out,
			 "payload_copies", (json_int_t)stats->payload_copies);
}

/* Exact where resident memory is not: what allocations hold, not what the kernel gave for them. */
static json_t *memory(void)
{
	const struct mallinfo2 info = mallinfo2();

	return json_pack("{s:I}", "heap_in_use_bytes",
			 (json_int_t)info.uordblks + (json_int_t)info.hblkhd);
}

static void status_show(void *arg, struct ctl_request *request)
{
	struct yoked *yoked = arg;
	struct iscsi_stats iscsi;
	struct loop_stats loop;
	char loaded[PROBLEM_UTC_SIZE];
	unsigned missing;
	json_t *problems;

	loop_stats(yoked->loop, &loop);
	iscsi_server_stats(yoked->iscsi, &iscsi);
	problems = problems_now(yoked, &loop, &missing);
	ctl_reply(
		request,
		json_pack(
			"{s:s, s:s, s:s, s:I, s:s, s:o, s:{s:i, s:i}, s:o, s:{s:I, s:I, s:s, s:I, "
			"s:I}, s:o, s:o, s:{s:s, s:s, s:s?}}",
			"schema", "yoke.status/1", "node", yoked->conf->node.name, "version",
			yoke_version(), "uptime_s",
			(json_int_t)((env_now_ns(yoked->env) - yoked->started_ns) / NS_PER_S),
			"health", problem_health(problems), "luns", luns(yoked), "paths", "up",
			(int)iscsi.sessions, "missing", (int)missing, "problems", problems, "loop",
			"turn_max_us", (json_int_t)(loop.turn_max_ns / NS_PER_US), "slow_turns",
			(json_int_t)loop.slow_turns, "engine", loop_disk_engine(yoked->loop),
			"turns", (json_int_t)loop.turns, "syscalls", (json_int_t)loop.syscalls,
			"memory", memory(), "iscsi", iscsi_counters(&iscsi), "config", "file",
			yoked->conf_path, "loaded_utc", problem_utc(yoked->conf_loaded_s, loaded),
			"refused", yoked->conf_refused[0] ? yoked->conf_refused : NULL));
}

void status_register(struct yoked *yoked)
{
	static const struct ctl_command commands[] = {
		{ "status.show", "is all well, and if not, what to do", NULL, status_show },
		{ 0 },
	};

	ctl_register(yoked->ctl, commands, yoked);
}
