/* SPDX-License-Identifier: MIT */
/*
 * Settings of a measurement: how each is written, and how lists of them multiply to points.
 *
 * Invariants:
 * 1. A value is taken exactly or refused with what to write instead; nothing is clamped.
 * 2. The order of points is that of the loops in matrix_points(): sessions outermost, so that
 *    they stay logged in as long as possible, depth innermost.
 *
 * Not here: which option or profile sets what (options.c, profile.c), whether settings go
 * together (options_check.c).
 */
#include "bench/matrix.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/conf.h"

#define MILLION 1000000u
#define RW(pattern, read_percent) ((uint64_t)(pattern) << 8 | (read_percent))
#define RW_PATTERN(rw) ((enum bench_pattern)((rw) >> 8))
#define RW_READ(rw) ((unsigned)((rw)&0xff))

/* TEXT with its letters in CASE; false if it is longer than any number with its unit. */
static bool recase(const char *text, int (*to)(int), char out[32])
{
	size_t len = strlen(text);

	if (len > 31)
		return false;
	for (size_t i = 0; i <= len; i++)
		out[i] = (char)to((unsigned char)text[i]);
	return true;
}

static int parse_count(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end)
		return -EINVAL;
	return errno ? -ERANGE : 0;
}

int matrix_parse_size(const char *text, uint64_t *bytes)
{
	size_t digits = strspn(text, "0123456789");
	char upper[32];

	if (!digits || !recase(text, toupper, upper))
		return -EINVAL;
	if (conf_size(upper, bytes) == 0)
		return 0;
	return !upper[digits] || (strchr("KMGTP", upper[digits]) && !upper[digits + 1]) ? -ERANGE :
											  -EINVAL;
}

int matrix_parse_time(const char *text, uint64_t *ns)
{
	size_t digits = strspn(text, "0123456789");
	uint64_t value;
	int err;

	if (text[digits])
		return conf_duration(text, ns);
	err = parse_count(text, &value);
	if (err)
		return err;
	return __builtin_mul_overflow(value, NS_PER_S, ns) ? -ERANGE : 0;
}

/* Commands a second: here k is 1000, as people count them. */
static int parse_rate(const char *text, uint64_t *value)
{
	size_t digits = strspn(text, "0123456789");
	bool thousands = digits && (text[digits] == 'k' || text[digits] == 'K') &&
			 !text[digits + 1];
	char number[32];

	if (!thousands)
		return parse_count(text, value);
	if (digits > sizeof(number) - 1)
		return -ERANGE;
	snprintf(number, sizeof(number), "%.*s", (int)digits, text);
	if (parse_count(number, value) || __builtin_mul_overflow(*value, 1000, value))
		return -ERANGE;
	return 0;
}

/* 0.9 as 900000. */
static int parse_share(const char *text, uint64_t *value)
{
	char *end;
	double share = strtod(text, &end);

	if (strspn(text, "0123456789.") != strlen(text) || !*text || *end)
		return -EINVAL;
	if (share > 1000)
		return -ERANGE;
	*value = (uint64_t)(share * MILLION + 0.5);
	return 0;
}

static int parse_flag(const char *text, uint64_t *value)
{
	*value = strcmp(text, "true") == 0;
	return *value || strcmp(text, "false") == 0 ? 0 : -EINVAL;
}

static int parse_pattern(const char *text, uint64_t *value)
{
	static const struct {
		const char *name;
		enum bench_pattern pattern;
	} patterns[] = {
		{ "rand", PATTERN_RANDOM },    { "random", PATTERN_RANDOM },
		{ "seq", PATTERN_SEQUENTIAL }, { "sequential", PATTERN_SEQUENTIAL },
		{ "zipf", PATTERN_ZIPF },
	};

	for (unsigned i = 0; i < ARRAY_LEN(patterns); i++) {
		*value = patterns[i].pattern;
		if (strcmp(text, patterns[i].name) == 0)
			return 0;
	}
	return -EINVAL;
}

static int parse_data(const char *text, uint64_t *value)
{
	for (*value = DATA_RANDOM; *value <= DATA_ZERO; (*value)++)
		if (strcmp(text, bench_data_name((enum bench_data) * value)) == 0)
			return 0;
	return -EINVAL;
}

/* "randread", "write", "randrw:30", "zipfrw:70": 30 and 70 percent of the commands are reads. */
static int parse_rw(const char *text, uint64_t *value)
{
	enum bench_pattern pattern = PATTERN_SEQUENTIAL;
	uint64_t percent = 50;

	if (strncmp(text, "rand", 4) == 0 || strncmp(text, "zipf", 4) == 0) {
		pattern = *text == 'r' ? PATTERN_RANDOM : PATTERN_ZIPF;
		text += 4;
	}
	if (strcmp(text, "read") == 0) {
		percent = 100;
	} else if (strcmp(text, "write") == 0) {
		percent = 0;
	} else if (strncmp(text, "rw:", 3) == 0) {
		if (parse_count(text + 3, &percent) || percent > 100)
			return -EINVAL;
	} else if (strcmp(text, "rw") != 0) {
		return -EINVAL;
	}
	*value = RW(pattern, percent);
	return 0;
}

#define O MATRIX_IN_OPTION
#define P MATRIX_IN_PROFILE
#define S MATRIX_IN_STREAM
#define NOT_SIZE "is not a size. Write it like 4K or 10G (K M G T are powers of 1024)"
#define NOT_TIME "is not a time. Write it like 30s (ns us ms s m h)"
#define NOT_COUNT "is not a number"
#define HOURS(n) ((n)*3600 * NS_PER_S)

const struct matrix_field matrix_fields[MATRIX_KEYS] = {
	[MATRIX_RW] = { "rw", O | S, true, parse_rw,
			"is no workload. Write read, write, randread, randwrite, randrw:30 (30 % "
			"reads), rw:70, zipfread or zipfrw:70",
			0, UINT64_MAX, 0, "" },
	[MATRIX_PATTERN] = { "pattern", P, true, parse_pattern,
			     "is no pattern. Write rand, seq or zipf", 0, UINT64_MAX, 0, "" },
	[MATRIX_READ] = { "read", P, true, parse_count, NOT_COUNT, 0, 100, 0,
			  "0 to 100 (percent)" },
	[MATRIX_BS] = { "bs", O | P | S, true, matrix_parse_size, NOT_SIZE, 512, 16 * MIB, 512,
			"a multiple of 512 up to 16M" },
	[MATRIX_DEPTH] = { "depth", P, true, parse_count, NOT_COUNT, 1, 4096, 0, "1 to 4096" },
	[MATRIX_SESSIONS] = { "sessions", O | P | S, true, parse_count, NOT_COUNT, 1,
			      BENCH_SESSIONS_MAX, 0, "1 to 256" },
	[MATRIX_WORKERS] = { "workers", O | P | S, false, parse_count, NOT_COUNT, 1, 4096, 0,
			     "1 to 4096" },
	[MATRIX_VMS] = { "vms", P, false, parse_count, NOT_COUNT, 1, 1024, 0, "1 to 1024" },
	[MATRIX_SHIFT] = { "shift", O | P | S, true, matrix_parse_size, NOT_SIZE, 0, GIB, 512,
			   "a multiple of 512 up to 1G" },
	[MATRIX_RATE] = { "rate", O | P | S, true, parse_rate,
			  "is no rate. Write commands a second, like 5000 or 5k", 1, 100 * MILLION,
			  0, "1 to 100 million" },
	[MATRIX_THINK] = { "think", O | P | S, false, matrix_parse_time, NOT_TIME, 0, HOURS(1), 0,
			   "up to 1h" },
	[MATRIX_ZIPF] = { "zipf", O | P | S, false, parse_share, "is no skew. Write it like 0.9", 1,
			  MILLION - 1, 0, "more than 0 and less than 1" },
	[MATRIX_TIME] = { "time", O | P, false, matrix_parse_time, NOT_TIME, NS_PER_MS, HOURS(720),
			  0, "1ms to 720h" },
	[MATRIX_WARMUP] = { "warmup", O | P, false, matrix_parse_time, NOT_TIME, 0, HOURS(720), 0,
			    "up to 720h" },
	[MATRIX_RAMP] = { "ramp", O | P, false, matrix_parse_time, NOT_TIME, 0, HOURS(720), 0,
			  "up to 720h" },
	[MATRIX_SIZE] = { "size", O | P, false, matrix_parse_size, NOT_SIZE, 512, UINT64_MAX, 512,
			  "a multiple of 512" },
	[MATRIX_IO_SIZE] = { "io-size", O | P, false, matrix_parse_size, NOT_SIZE, 1, UINT64_MAX, 0,
			     "1 byte or more" },
	[MATRIX_DATA] = { "data", O | P, false, parse_data,
			  "is no kind of data. Write random, repeat or zero", 0, UINT64_MAX, 0,
			  "" },
	[MATRIX_SEED] = { "seed", O | P, false, parse_count, NOT_COUNT, 0, UINT64_MAX, 0, "" },
	[MATRIX_REPEAT] = { "repeat", O | P, false, parse_count, NOT_COUNT, 1, 100, 0, "1 to 100" },
	[MATRIX_STEADY] = { "steady", O | P, false, parse_flag, "is not true or false", 0, 1, 0,
			    "" },
};

int matrix_key(const char *name, enum matrix_place place)
{
	/* People know it from fio's shorthand; profiles have room for the whole word. */
	if (strcmp(name, "qd") == 0 && place != MATRIX_IN_PROFILE)
		return MATRIX_DEPTH;
	for (int i = 0; i < MATRIX_KEYS; i++)
		if ((matrix_fields[i].places & place) && strcmp(matrix_fields[i].name, name) == 0)
			return i;
	return -1;
}

int matrix_add(struct matrix *matrix, enum matrix_key key, const char *text, char *cause,
	       size_t cause_size)
{
	const struct matrix_field *field = &matrix_fields[key];
	unsigned *count = &matrix->of[key].count;
	uint64_t value;
	int err = field->parse(text, &value);

	if (err == -EINVAL) {
		snprintf(cause, cause_size, "\"%.40s\" %s", text, field->like);
		return -EINVAL;
	}
	if (err || value < field->min || value > field->max ||
	    (field->multiple && value % field->multiple)) {
		snprintf(cause, cause_size, "%.40s is out of range. Write %s", text, field->range);
		return -EINVAL;
	}
	if (!field->list && *count) {
		snprintf(cause, cause_size, "a second value, %.40s. Write one", text);
		return -EINVAL;
	}
	if (*count == MATRIX_VALUES_MAX) {
		snprintf(cause, cause_size, "more than %d values. Measure in several runs",
			 MATRIX_VALUES_MAX);
		return -EINVAL;
	}
	matrix->of[key].values[(*count)++] = value;
	return 0;
}

int matrix_add_list(struct matrix *matrix, enum matrix_key key, const char *text, char *cause,
		    size_t cause_size)
{
	for (;;) {
		size_t len = strcspn(text, ",");
		char *item = strndup(text, len);
		int err = item ? matrix_add(matrix, key, item, cause, cause_size) : -ENOMEM;

		free(item);
		if (err || !text[len])
			return err;
		text += len + 1;
	}
}

void matrix_overlay(struct matrix *into, const struct matrix *over)
{
	if (over->of[MATRIX_RW].count)
		into->of[MATRIX_PATTERN].count = into->of[MATRIX_READ].count = 0;
	/* VMs are a profile's way to say how many workers; an option says how many in all. */
	if (over->of[MATRIX_WORKERS].count)
		into->of[MATRIX_VMS].count = 0;
	for (unsigned i = 0; i < MATRIX_KEYS; i++)
		if (over->of[i].count)
			into->of[i] = over->of[i];
}

static uint64_t nth(const struct matrix *matrix, enum matrix_key key, unsigned n, uint64_t fallback)
{
	return matrix->of[key].count ? matrix->of[key].values[n] : fallback;
}

static uint64_t only(const struct matrix *matrix, enum matrix_key key, uint64_t fallback)
{
	return nth(matrix, key, 0, fallback);
}

/* One value of each list, by key. */
struct choice {
	uint64_t of[MATRIX_KEYS];
};

static const uint64_t defaults[MATRIX_KEYS] = {
	[MATRIX_BS] = 4 * KIB,
	[MATRIX_DEPTH] = 32,
	[MATRIX_SESSIONS] = 1,
};

static void fill_stream(const struct matrix *m, const struct choice *c, struct bench_stream *s)
{
	uint64_t vms = only(m, MATRIX_VMS, 0), workers = only(m, MATRIX_WORKERS, 0);

	*s = (struct bench_stream){
		.pattern = RW_PATTERN(c->of[MATRIX_RW]),
		.zipf_theta = (double)only(m, MATRIX_ZIPF, 900000) / MILLION,
		.block_bytes = (uint32_t)c->of[MATRIX_BS],
		.shift_bytes = c->of[MATRIX_SHIFT],
		.read_percent = RW_READ(c->of[MATRIX_RW]),
		.workers = (unsigned)(vms ? vms * max_u64(workers, 1) : workers),
		.depth = (unsigned)c->of[MATRIX_DEPTH],
		.think_ns = only(m, MATRIX_THINK, 0),
		.rate = (double)c->of[MATRIX_RATE],
	};
	/* --zipf 0.9 says how random "random" is to be. */
	if (m->of[MATRIX_ZIPF].count && s->pattern == PATTERN_RANDOM)
		s->pattern = PATTERN_ZIPF;
}

static void size_name(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = { "", "K", "M", "G" };
	unsigned unit = 0;

	for (; bytes && bytes % KIB == 0 && unit < ARRAY_LEN(units) - 1; unit++)
		bytes /= KIB;
	snprintf(buf, size, "%llu%s", (unsigned long long)bytes, units[unit]);
}

/* "4K random 70/30", "64K sequential read +512"; several with " | " between them. */
static void name_point(struct bench_point *point)
{
	size_t used = 0;

	for (unsigned i = 0; i < point->stream_count && used < sizeof(point->name); i++) {
		const struct bench_stream *s = &point->streams[i];
		char size[24], mix[16], shift[32] = "";

		size_name(s->block_bytes, size, sizeof(size));
		snprintf(mix, sizeof(mix), "%u/%u", s->read_percent, 100 - s->read_percent);
		if (s->shift_bytes) {
			size_name(s->shift_bytes, shift + 2, sizeof(shift) - 2);
			memcpy(shift, " +", 2);
		}
		used += (size_t)snprintf(point->name + used, sizeof(point->name) - used,
					 "%s%s %s %s%s", i ? " | " : "", size,
					 bench_pattern_name(s->pattern),
					 s->read_percent == 100 ? "read" :
					 s->read_percent == 0   ? "write" :
								  mix,
					 shift);
	}
}

static void fill_point(const struct matrix *m, uint64_t seed, struct bench_point *point)
{
	point->data = (enum bench_data)only(m, MATRIX_DATA, DATA_RANDOM);
	point->range_bytes = only(m, MATRIX_SIZE, 0);
	point->time_ns = only(m, MATRIX_TIME, 30 * NS_PER_S);
	point->warmup_ns = only(m, MATRIX_WARMUP, 5 * NS_PER_S);
	point->ramp_ns = only(m, MATRIX_RAMP, 0);
	point->max_bytes = only(m, MATRIX_IO_SIZE, 0);
	point->steady = only(m, MATRIX_STEADY, false);
	point->seed = seed;
	name_point(point);
}

static int stream_point(const struct matrix *m, const struct matrix *streams, unsigned count,
			uint64_t seed, struct bench_plan *plan)
{
	struct bench_point *point = calloc(1, sizeof(*plan->points));
	uint64_t most = 1;

	if (!point)
		return -ENOMEM;
	plan->points = point;
	plan->point_count = 1;
	for (unsigned i = 0; i < count; i++) {
		struct choice c;

		for (unsigned key = 0; key < MATRIX_KEYS; key++)
			c.of[key] = only(&streams[i], (enum matrix_key)key, defaults[key]);
		fill_stream(&streams[i], &c, &point->streams[i]);
		point->streams[i].sessions = (unsigned)only(&streams[i], MATRIX_SESSIONS, 0);
		most = max_u64(most, point->streams[i].sessions);
	}
	point->stream_count = count;
	point->sessions = (unsigned)only(m, MATRIX_SESSIONS, most);
	fill_point(m, seed, point);
	return 0;
}

/* Patterns and read percents multiply to workloads. */
static int multiply_workloads(struct matrix *m, struct bench_fault *fault)
{
	unsigned patterns = m->of[MATRIX_PATTERN].count, reads = m->of[MATRIX_READ].count;

	if (patterns * reads > MATRIX_VALUES_MAX) {
		snprintf(fault->text, sizeof(fault->text),
			 "%u patterns x read percents are more than %d. Shorten a list",
			 patterns * reads, MATRIX_VALUES_MAX);
		return -EINVAL;
	}
	for (unsigned i = 0; i < patterns * reads; i++)
		m->of[MATRIX_RW].values[m->of[MATRIX_RW].count++] =
			RW(m->of[MATRIX_PATTERN].values[i / reads],
			   m->of[MATRIX_READ].values[i % reads]);
	return 0;
}

static int product(const struct matrix *said, uint64_t seed, struct bench_plan *plan,
		   struct bench_fault *fault)
{
	static const enum matrix_key loops[] = { MATRIX_SESSIONS, MATRIX_BS,   MATRIX_RW,
						 MATRIX_SHIFT,    MATRIX_RATE, MATRIX_DEPTH };
	struct matrix m = *said;
	uint64_t count = 1;
	int err = multiply_workloads(&m, fault);

	if (err)
		return err;
	for (unsigned i = 0; i < ARRAY_LEN(loops); i++)
		count *= max_u64(m.of[loops[i]].count, 1);
	if (count > MATRIX_POINTS_MAX) {
		snprintf(fault->text, sizeof(fault->text),
			 "%llu points are more than %d. Shorten a list", (unsigned long long)count,
			 MATRIX_POINTS_MAX);
		return -EINVAL;
	}
	plan->points = calloc(count, sizeof(*plan->points));
	if (!plan->points)
		return -ENOMEM;
	for (unsigned n = 0; n < count; n++) {
		struct bench_point *point = &plan->points[plan->point_count++];
		unsigned rest = n;
		struct choice c;

		/* N's digits, the innermost loop's first, each in the base of its list's length. */
		for (unsigned i = ARRAY_LEN(loops); i-- > 0;) {
			unsigned base = (unsigned)max_u64(m.of[loops[i]].count, 1);

			c.of[loops[i]] = nth(&m, loops[i], rest % base, defaults[loops[i]]);
			rest /= base;
		}
		fill_stream(&m, &c, &point->streams[0]);
		point->stream_count = 1;
		point->sessions = (unsigned)c.of[MATRIX_SESSIONS];
		fill_point(&m, seed, point);
	}
	return 0;
}

int matrix_points(const struct matrix *matrix, const struct matrix *streams, unsigned stream_count,
		  struct bench_plan *plan, struct bench_fault *fault)
{
	uint64_t seed;
	int err;

	/* Another one each time: a target that has seen the data could otherwise know them. */
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = 1;
	/* JSON readers keep 53 bits of a number. */
	seed = only(matrix, MATRIX_SEED, seed >> 11);
	plan->repeat = (unsigned)only(matrix, MATRIX_REPEAT, 1);
	if (stream_count)
		err = stream_point(matrix, streams, stream_count, seed, plan);
	else
		err = product(matrix, seed, plan, fault);
	if (err == -ENOMEM)
		snprintf(fault->text, sizeof(fault->text), "out of memory");
	return err;
}
