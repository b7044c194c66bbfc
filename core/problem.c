/* SPDX-License-Identifier: MIT */
/*
 * The catalogue of problem codes, and problems as JSON.
 *
 * Invariants:
 * 1. A code keeps its name and meaning for ever; new ones are added.
 * 2. Every code says what hosts see and what to do.
 *
 * Not here: finding problems (the layers), printing them (ctl/).
 */
#include "core/problem.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clean.h"

static const struct problem_entry catalogue[] = {
	[PROBLEM_ARRAY_DEGRADED] = {
		"array-degraded", PROBLEM_WARN,
		"An array works without one of its members, or one of them is being brought up to date.",
		"Nothing. Data is on the members that are left; another failure among them may lose it.",
		"Look at the member that is named (yokectl array show NAME, kernel log). Put it right or "
		"replace it, then yokectl array add NAME DISK, which copies what it lacks.",
	},
	[PROBLEM_ARRAY_FAILED] = {
		"array-failed", PROBLEM_CRIT,
		"A member failed without which the array cannot work.",
		"MEDIUM ERROR (03/11/00 reads, 03/0C/00 writes) or NOT READY 02/04/03 for what lies on "
		"that member; what lies on others is served, but level 5 takes no writes any more.",
		"Bring that disk back: look at its cable, its power and the kernel's log. If it was only "
		"away, restart yoked. If it is lost, so is what it held.",
	},
	[PROBLEM_ARRAY_INCOMPLETE] = {
		"array-incomplete", PROBLEM_CRIT,
		"An array is not started: too few of its disks are here, or one that is absent may hold "
		"newer data, or its disks contradict each other.",
		"NOT READY: 02/04/01 while a disk that comes would start it, 02/04/03 where somebody has "
		"to decide, or too many disks are away. A LUN whose array was never seen is not there.",
		"Connect the disks that are named, then yokectl reload. If what may be newer is lost for "
		"good, yokectl array start NAME --force starts without it and loses what only it held.",
	},
	[PROBLEM_ARRAY_LOSS] = {
		"array-loss", PROBLEM_CRIT,
		"Blocks of an array cannot be known any more: more failed at once than it is made for.",
		"MEDIUM ERROR 03/11/00 for reads of exactly these blocks, until they are written. All "
		"else is served.",
		"Find what lies there (the host's file system check) and restore it from a copy: blocks "
		"that are written are well again.",
	},
	[PROBLEM_BACKING_FAILED] = {
		"backing-failed", PROBLEM_CRIT,
		"A backing's file or device failed as a whole: a flush failed, it was cut short, or it "
		"is gone.",
		"The commands that met it end in MEDIUM ERROR (03/11/00 reads, 03/0C/00 writes), all "
		"later ones in NOT READY 02/04/03. Nothing is answered that did not happen.",
		"Look at the kernel's log for the device. Repair or replace it, then yokectl reload, "
		"which opens it again.",
	},
	[PROBLEM_BACKING_FULL] = {
		"backing-full", PROBLEM_CRIT,
		"The file system under a sparse backing has no room for a new block.",
		"Writes to blocks that were never written end in DATA PROTECT 07/27/07. Overwrites and "
		"reads go on.",
		"Make room on that file system, or unmap blocks on hosts. Writes succeed again by "
		"themselves.",
	},
	[PROBLEM_BACKING_READ_ONLY] = {
		"backing-read-only", PROBLEM_CRIT,
		"A backing that should be writable became read-only, or its file system did.",
		"Writes end in DATA PROTECT 07/27/00. Reads go on.",
		"Find out why (kernel log, mount options, permissions), remount it, then yokectl "
		"reload. If it is meant to be so, set read_only = true on the LUN.",
	},
	[PROBLEM_CONFIG_REFUSED] = {
		"config-refused", PROBLEM_WARN,
		"The newest configuration was refused. yoked runs on with the older one.",
		"Nothing; the next start of yoked would fail.",
		"Correct the line that is named, try it with yokectl check FILE, then yokectl reload.",
	},
	[PROBLEM_FAULTS_ACTIVE] = {
		"faults-active", PROBLEM_WARN,
		"Faults are being injected into a backing on purpose.",
		"The errors and delays that were asked for.",
		"yokectl fault list shows them, yokectl fault remove ID ends one. Set faults = false "
		"where nobody tests.",
	},
	[PROBLEM_LOOP_SLOW] = {
		"loop-slow", PROBLEM_WARN,
		"A turn of the event loop took longer than 10 ms: everything waited for it.",
		"A pause of that length in all sessions at once.",
		"Look whether the machine is short of processor time or memory (swap). If it is not, "
		"report it with yokectl status --json.",
	},
	[PROBLEM_PATH_MISSING] = {
		"path-missing", PROBLEM_WARN,
		"An initiator has lost a path to a target 60 s ago or more and still has another.",
		"Multipath software shows failed paths, or never saw them. I/O goes on over the "
		"others.",
		"Check that host's link and its iSCSI configuration for the portal that is named. If "
		"it is meant to be so, it is forgotten after 7 days.",
	},
	[PROBLEM_SANITIZE_FAILED] = {
		"sanitize-failed", PROBLEM_CRIT,
		"A SANITIZE of a host failed or was cut short by a stop of yoked: the medium is closed, "
		"some of the old data may still be on it.",
		"Commands that need the medium end in MEDIUM ERROR 03/31/03, after a restart as well.",
		"Run SANITIZE again from a host. If it had AUSE, EXIT FAILURE MODE opens the medium as "
		"it is.",
	},
};

static_assert(ARRAY_LEN(catalogue) == PROBLEM_COUNT, "each code has its entry");

const struct problem_entry *problem_entry(enum problem_code code)
{
	assert((unsigned)code < PROBLEM_COUNT);
	return &catalogue[code];
}

const struct problem_entry *problem_find(const char *name)
{
	for (unsigned i = 0; i < PROBLEM_COUNT; i++)
		if (strcmp(catalogue[i].name, name) == 0)
			return &catalogue[i];
	return NULL;
}

const char *problem_severity_name(enum problem_severity severity)
{
	return severity == PROBLEM_CRIT ? "CRIT" : "WARN";
}

const char *problem_utc(int64_t time_s, char *buf)
{
	time_t when = (time_t)time_s;
	struct tm tm;

	if (!gmtime_r(&when, &tm) ||
	    strftime(buf, PROBLEM_UTC_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		buf[0] = '\0';
	return buf;
}

json_t *problem_json(const struct problem *problem)
{
	const struct problem_entry *entry = problem_entry(problem->code);
	char utc[PROBLEM_UTC_SIZE];

	return json_pack("{s:s, s:s, s:o, s:o, s:s, s:s, s:o, s:s}", "code", entry->name,
			 "severity", problem_severity_name(entry->severity), "object",
			 clean_json(problem->object), "detail", clean_json(problem->detail), "risk",
			 problem->risk, "doing", problem->doing, "do",
			 clean_json(*problem->what_to_do ? problem->what_to_do : entry->what_to_do),
			 "since_utc", problem_utc(problem->since_s, utc));
}

const char *problem_health(const json_t *problems)
{
	const char *worst = "OK";
	const json_t *row;
	size_t i;

	json_array_foreach(problems, i, row) {
		const char *severity = json_string_value(json_object_get(row, "severity"));

		if (severity && strcmp(severity, "CRIT") == 0)
			return "CRIT";
		worst = "WARN";
	}
	return worst;
}
