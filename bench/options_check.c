/* SPDX-License-Identifier: MIT */
/*
 * From options to a plan: whether they go together, and what follows from them.
 *
 * Invariants:
 * 1. What passes here can be run, as far as can be known without asking the target.
 * 2. Every refusal is one line of object, cause and remedy.
 *
 * Not here: a single value (matrix.c, options.c), what the LUNs allow (engine.c, guard.c).
 */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options.h"
#include "bench/profile.h"
#include "bench/verify.h"

#define DEPTH_MAX 65536 /* commands outstanding; each has a buffer of its own */

static int refuse(struct bench_fault *fault, const char *fmt, ...) PRINTF_LIKE(2, 3);
static int refuse(struct bench_fault *fault, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fault->text, sizeof(fault->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static bool said(const struct options *o, enum matrix_key key)
{
	return o->matrix.of[key].count > 0;
}

/* Options that exclude or need one another. */
static int check_together(const struct options *o, struct bench_fault *fault)
{
	bool load = o->stream_count || o->profile || said(o, MATRIX_RW);
	/* Of --stream these are said inside. */
	bool outside = said(o, MATRIX_RW) || said(o, MATRIX_BS) || said(o, MATRIX_DEPTH) ||
		       said(o, MATRIX_WORKERS) || said(o, MATRIX_RATE) || said(o, MATRIX_THINK) ||
		       said(o, MATRIX_ZIPF) || said(o, MATRIX_SHIFT);
	const struct {
		bool wrong;
		const char *text;
	} rules[] = {
		{ !o->url_count,
		  "no URL of a LUN. Write iscsi://HOST/TARGET/LUN; yoke-bench --help has more" },
		{ !load,
		  "nothing to do. Write --rw randread, or --profile NAME (--list-profiles)" },
		{ o->stream_count && o->profile,
		  "--stream: not together with --profile. Leave one out" },
		{ o->stream_count && outside,
		  "--stream: a load beside it is one more --stream. Write rw=, bs=, qd= ... in it" },
		{ o->stream_count && o->matrix.of[MATRIX_SESSIONS].count > 1,
		  "--sessions: one number with --stream. Measure in several runs" },
		{ o->discover && o->url_count > 1,
		  "--discover: finds the portals from one URL. Leave the others out" },
		{ o->journal && !o->verify, "--journal: only with --verify. Add it" },
		{ o->check_journal && !o->journal,
		  "--check-journal: no journal. Add --journal FILE" },
		{ o->verify && o->plan.setup.threads > 1,
		  "--verify: has one thread. Leave --threads out" },
		{ o->verify && said(o, MATRIX_DATA),
		  "--verify: writes data that it knows again. Leave --data out" },
		{ said(o, MATRIX_STEADY) && said(o, MATRIX_IO_SIZE),
		  "--steady: goes on until steady, --io-size ends it. Leave one out" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rules); i++)
		if (rules[i].wrong)
			return refuse(fault, "%s", rules[i].text);
	return 0;
}

static int check_setup(struct options *o, struct bench_fault *fault)
{
	const struct bench_setup *setup = &o->plan.setup;

	for (unsigned i = 0; i < setup->portal_count; i++)
		if (!*setup->portals[i].target)
			return refuse(fault,
				      "iscsi://%.100s: no target. Write iscsi://%.100s/TARGET/LUN, "
				      "or add --discover",
				      setup->portals[i].address, setup->portals[i].address);
	if (!setup->lun_count)
		return refuse(fault,
			      "iscsi://%.60s/%.100s: no LUN. Write it at the end, or --luns 0",
			      setup->portals[0].address, setup->portals[0].target);
	for (unsigned i = 0; i < setup->failure_count; i++)
		if (setup->failures[i].portal >= setup->portal_count)
			return refuse(fault, "--fail-path: there is no portal %u, there %s %u. %s",
				      setup->failures[i].portal + 1,
				      setup->portal_count == 1 ? "is" : "are", setup->portal_count,
				      "Portals count from 1, in the order of the URLs");
	return 0;
}

static int read_chap(struct options *o, struct bench_fault *fault)
{
	struct bench_chap *chap = &o->plan.setup.chap;
	const char *user = "";

	for (unsigned i = 0; i < o->url_count; i++) {
		if (*user && *o->urls[i].user && strcmp(user, o->urls[i].user) != 0)
			return refuse(fault, "URLs: two users, %.64s and %.64s. Name one", user,
				      o->urls[i].user);
		if (*o->urls[i].user)
			user = o->urls[i].user;
	}
	if (*user && !o->chap_file)
		return refuse(fault,
			      "user %.64s: no secret. Write it to a file, --chap-file FILE, see "
			      "yoke-bench(1)",
			      user);
	if (!o->chap_file)
		return 0;
	if (chap_read(o->chap_file, chap, fault))
		return -EINVAL;
	if (*user && *chap->user && strcmp(user, chap->user) != 0)
		return refuse(fault, "%.128s: is of user %.64s, the URL says %.64s. Change one",
			      o->chap_file, chap->user, user);
	if (!*chap->user)
		memcpy(chap->user, user, strlen(user) + 1);
	if (!*chap->user)
		return refuse(fault, "%.128s: no user. Add a line: user NAME", o->chap_file);
	return 0;
}

/* The profile's matrix with the options over it. */
static int merge_profile(struct options *o, struct matrix *matrix, struct bench_fault *fault)
{
	struct conf_error error;
	struct profile profile;

	memset(matrix, 0, sizeof(*matrix));
	if (o->profile) {
		if (profile_load(o->profile, &profile, &error))
			return refuse(fault, "%.300s", error.text);
		*matrix = profile.matrix;
		memcpy(o->plan.profile, profile.name, sizeof(profile.name));
		memcpy(o->plan.tells, profile.tells, sizeof(profile.tells));
	}
	matrix_overlay(matrix, &o->matrix);
	return 0;
}

static int check_stream(const struct options *o, const struct bench_point *point,
			const struct bench_stream *s, struct bench_fault *fault)
{
	if (point->range_bytes && point->range_bytes < s->block_bytes + s->shift_bytes)
		return refuse(fault, "--size: less than one command of %s. Enlarge it",
			      point->name);
	if (o->verify && (s->block_bytes % VERIFY_BLOCK || s->shift_bytes % VERIFY_BLOCK))
		return refuse(fault,
			      "--verify: judges blocks of 4K. Make --bs and --shift multiples "
			      "of it");
	if (s->sessions > point->sessions)
		return refuse(fault,
			      "--stream: %u sessions of %u. Raise --sessions or leave it out",
			      s->sessions, point->sessions);
	if (s->rate > 0 && s->think_ns)
		return refuse(fault, "--rate: says when commands begin, and so does --think. Leave "
				     "one out");
	return 0;
}

static int check_point(const struct options *o, const struct bench_point *point,
		       struct bench_fault *fault)
{
	const struct bench_setup *setup = &o->plan.setup;
	unsigned depth = bench_point_depth(setup, point);

	for (unsigned i = 0; i < point->stream_count; i++)
		if (check_stream(o, point, &point->streams[i], fault))
			return -EINVAL;
	if (point->sessions * setup->portal_count > BENCH_SESSIONS_MAX)
		return refuse(fault,
			      "--sessions: %u to each of %u portals are more than %d. Lower it",
			      point->sessions, setup->portal_count, BENCH_SESSIONS_MAX);
	if (depth > DEPTH_MAX)
		return refuse(fault,
			      "--qd: %u commands outstanding in all are more than %d. Lower "
			      "--qd, --workers or --sessions",
			      depth, DEPTH_MAX);
	if (point->ramp_ns > point->warmup_ns + point->time_ns)
		return refuse(fault,
			      "--ramp: longer than --warmup and --time together. Shorten it");
	for (unsigned i = 0; i < setup->failure_count; i++)
		if (setup->failures[i].at_ns >= point->time_ns)
			return refuse(fault,
				      "--fail-path: fails portal %u after the end. Lengthen "
				      "--time or let it fail earlier",
				      setup->failures[i].portal + 1);
	return 0;
}

/* A skew that no stream uses would be a silent mistake. */
static int check_zipf(const struct options *o, struct bench_fault *fault)
{
	bool used = !said(o, MATRIX_ZIPF);

	for (unsigned i = 0; i < o->plan.point_count && !used; i++)
		used = o->plan.points[i].streams[0].pattern == PATTERN_ZIPF;
	return used ? 0 : refuse(fault, "--zipf: nothing is random. Write --rw randread ...");
}

static unsigned processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

static void set_threads(struct options *o)
{
	struct bench_setup *setup = &o->plan.setup;
	unsigned sessions = 1;

	for (unsigned i = 0; i < o->plan.point_count; i++)
		sessions = (unsigned)max_u64(sessions,
					     o->plan.points[i].sessions * setup->portal_count);
	if (!setup->threads)
		setup->threads = o->verify ? 1 : (unsigned)min_u64(processors(), sessions);
	setup->threads = (unsigned)min_u64(setup->threads, BENCH_THREADS_MAX);
}

int options_check(struct options *options, struct bench_fault *fault)
{
	return check_together(options, fault) || read_chap(options, fault) ? -EINVAL : 0;
}

int options_plan(struct options *options, struct bench_fault *fault)
{
	struct matrix matrix;

	/* Stamped blocks would be lost, and what an earlier run left is what is to be read. */
	options->plan.setup.fill = !options->no_fill && !options->verify;
	if (check_setup(options, fault) || merge_profile(options, &matrix, fault) ||
	    matrix_points(&matrix, options->streams, options->stream_count, &options->plan, fault))
		return -EINVAL;
	if (options->plan.point_count * options->plan.repeat > MATRIX_POINTS_MAX)
		return refuse(fault, "--repeat: %u points x %u are more than %d. Lower it",
			      options->plan.point_count, options->plan.repeat, MATRIX_POINTS_MAX);
	for (unsigned i = 0; i < options->plan.point_count; i++)
		if (check_point(options, &options->plan.points[i], fault))
			return -EINVAL;
	if (check_zipf(options, fault))
		return -EINVAL;
	set_threads(options);
	return 0;
}
