/* SPDX-License-Identifier: MIT */
/*
 * The table of options, and reading a command line by it.
 *
 * Invariants:
 * 1. An option exists by its row.
 * 2. Every refusal is one line that begins with the option and says what to write instead.
 *
 * Not here: whether options go together (options_check.c), how a value is written (matrix.c).
 */
#include "bench/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int say(char *cause, size_t cause_size, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int say(char *cause, size_t cause_size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cause, cause_size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int parse_number(const char *text, uint64_t max, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return strspn(text, "0123456789") == strlen(text) && *text && !errno && *number <= max ?
		       0 :
		       -EINVAL;
}

static int set_luns(struct options *o, const char *value, char *cause, size_t size)
{
	for (const char *at = value; *at;) {
		char *end;
		unsigned long first = strtoul(at, &end, 10), last = first;

		if (strspn(at, "0123456789") == 0)
			break;
		if (*end == '-' && strspn(end + 1, "0123456789"))
			last = strtoul(end + 1, &end, 10);
		if (last < first || last > 16383 || (*end && *end != ','))
			break;
		for (; first <= last; first++)
			if (url_add_lun(&o->plan.setup, (unsigned)first))
				return say(cause, size, "more than %d LUNs. Name fewer",
					   BENCH_LUNS_MAX);
		if (!*end)
			return 0;
		at = end + 1;
	}
	return say(cause, size,
		   "\"%.40s\" is no list of LUNs. Write numbers up to 16383, like 0,2-5", value);
}

static int set_stream(struct options *o, const char *value, char *cause, size_t size)
{
	struct matrix *stream = &o->streams[o->stream_count];
	char *copy, *word, *rest;
	int err = 0;

	if (o->stream_count == BENCH_STREAMS_MAX)
		return say(cause, size, "more than %d. Leave some out", BENCH_STREAMS_MAX);
	copy = rest = strdup(value);
	if (!copy)
		return -ENOMEM;
	while (!err && (word = strsep(&rest, " \t"))) {
		char *text = strchr(word, '='), inner[200];
		int key;

		if (!*word)
			continue;
		if (text)
			*text++ = '\0';
		key = matrix_key(word, MATRIX_IN_STREAM);
		if (key < 0 || !text)
			err = say(cause, size,
				  "\"%.40s\" is no setting of a stream. There are rw= bs= qd= "
				  "sessions= workers= shift= rate= think= zipf=",
				  word);
		else if (stream->of[key].count)
			err = say(cause, size, "%s twice. A stream has one of each", word);
		else if (matrix_add(stream, (enum matrix_key)key, text, inner, sizeof(inner)))
			err = say(cause, size, "%s: %s", word, inner);
	}
	free(copy);
	if (!err && !stream->of[MATRIX_RW].count)
		err = say(cause, size, "no rw. Add rw=read, rw=randwrite ...");
	o->stream_count++;
	return err;
}

static int set_failure(struct options *o, const char *value, char *cause, size_t size)
{
	struct bench_setup *setup = &o->plan.setup;
	struct bench_failure *failure = &setup->failures[setup->failure_count];
	char *copy, *at, *length;
	uint64_t portal = 0;
	int err = -EINVAL;

	if (setup->failure_count == ARRAY_LEN(setup->failures))
		return say(cause, size, "more than %zu. Leave some out",
			   ARRAY_LEN(setup->failures));
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	at = strchr(copy, '@');
	length = at ? strchr(at, '+') : NULL;
	if (at)
		*at++ = '\0';
	if (length)
		*length++ = '\0';
	failure->for_ns = 3 * NS_PER_S;
	if (at && !parse_number(copy, BENCH_PORTALS_MAX, &portal) && portal &&
	    !matrix_parse_time(at, &failure->at_ns) &&
	    (!length || (!matrix_parse_time(length, &failure->for_ns) && failure->for_ns)))
		err = 0;
	free(copy);
	if (err)
		return say(cause, size,
			   "\"%.40s\" is no failure of a path. Write like 1@10s or 2@10s+3s: the "
			   "portal, counted from 1, when, and for how long",
			   value);
	failure->portal = (unsigned)portal - 1;
	setup->failure_count++;
	return 0;
}

static int set_threads(struct options *o, const char *value, char *cause, size_t size)
{
	uint64_t threads;

	if (parse_number(value, BENCH_THREADS_MAX, &threads) || !threads)
		return say(cause, size, "\"%.40s\" is out of range. Write 1 to %d", value,
			   BENCH_THREADS_MAX);
	o->plan.setup.threads = (unsigned)threads;
	return 0;
}

static int set_timeout(struct options *o, const char *value, char *cause, size_t size)
{
	uint64_t *ns = &o->plan.setup.command_timeout_ns;

	if (matrix_parse_time(value, ns) || *ns < NS_PER_MS || *ns > 3600 * NS_PER_S)
		return say(cause, size, "\"%.40s\" is no time from 1ms to 1h. Write it like 30s",
			   value);
	return 0;
}

static int set_cache(struct options *o, const char *value, char *cause, size_t size)
{
	if (matrix_parse_size(value, &o->plan.setup.cache_bytes))
		return say(cause, size, "\"%.40s\" is not a size. Write it like 8G", value);
	return 0;
}

static int set_policy(struct options *o, const char *value, char *cause, size_t size)
{
	if (path_policy_parse(value, &o->plan.setup.policy))
		return say(cause, size,
			   "\"%.40s\" is no policy. Write round-robin, least-in-flight or failover",
			   value);
	return 0;
}

static int set_initiator(struct options *o, const char *value, char *cause, size_t size)
{
	char *name = o->plan.setup.initiator;

	if (strlen(value) >= sizeof(o->plan.setup.initiator) || strcspn(value, " \t\r\n") < 4 ||
	    value[strcspn(value, " \t\r\n")] ||
	    (strncmp(value, "iqn.", 4) != 0 && strncmp(value, "eui.", 4) != 0 &&
	     strncmp(value, "naa.", 4) != 0))
		return say(cause, size, "\"%.40s\" is no iSCSI name. Write like %s", value,
			   OPTIONS_INITIATOR);
	memcpy(name, value, strlen(value) + 1);
	return 0;
}

static int set_color(struct options *o, const char *value, char *cause, size_t size)
{
	static const char *const names[] = { "auto", "always", "never" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		o->color = (enum color_option)i;
		if (strcmp(value, names[i]) == 0)
			return 0;
	}
	return say(cause, size, "\"%.40s\" is no choice. Write auto, always or never", value);
}

static int set_expect(struct options *o, const char *value, char *cause, size_t size)
{
	struct bench_fault fault;

	if (o->expect_text)
		return say(cause, size, "given twice. Write the conditions in one, with commas");
	o->expect_text = value;
	if (expect_parse(value, &o->expect, &fault))
		return say(cause, size, "%s", fault.text);
	return 0;
}

#define VALUES(k) .kind = OPTION_MATRIX, .key = (k)
#define TEXT(member) .kind = OPTION_TEXT, .offset = offsetof(struct options, member)
#define FLAG(member) .kind = OPTION_FLAG, .offset = offsetof(struct options, member)
#define SET(function) .kind = OPTION_SET, .set = (function)
/* clang-format off: a row is one or two lines, as it reads in the help */
const struct option_row options_table[] = {
	{ "What to do (lists multiply: --bs 4K,64K --qd 1,16 are four points)", "--rw", NULL,
	  "WORKLOAD,...",
	  "read write randread randwrite, rw:70 and randrw:30 with the "
	  "percent of reads, zipfread zipfwrite zipfrw:70",
	  VALUES(MATRIX_RW) },
	{ NULL, "--bs", NULL, "SIZE,...", "bytes of a command; 4K", VALUES(MATRIX_BS) },
	{ NULL, "--qd", NULL, "N,...", "commands outstanding, of each session or worker; 32",
	  VALUES(MATRIX_DEPTH) },
	{ NULL, "--sessions", NULL, "N,...", "sessions to each portal; 1",
	  VALUES(MATRIX_SESSIONS) },
	{ NULL, "--workers", NULL, "N", "how many keep --qd commands outstanding; one a session",
	  VALUES(MATRIX_WORKERS) },
	{ NULL, "--rate", NULL, "N,...", "open loop: so many commands a second, answered or not",
	  VALUES(MATRIX_RATE) },
	{ NULL, "--think", NULL, "TIME", "pause between an answer and the next command",
	  VALUES(MATRIX_THINK) },
	{ NULL, "--zipf", NULL, "SKEW",
	  "random accesses prefer some blocks, the more the closer to 1; "
	  "0.9",
	  VALUES(MATRIX_ZIPF) },
	{ NULL, "--shift", NULL, "SIZE,...", "move every access by so much; 0",
	  VALUES(MATRIX_SHIFT) },
	{ NULL, "--stream", NULL, "\"rw=... bs=...\"",
	  "one of several loads side by side: rw= bs= qd= "
	  "sessions= workers= shift= rate= think= zipf=",
	  SET(set_stream) },
	{ NULL, "--profile", NULL, "NAME|FILE", "what people run; options override it",
	  TEXT(profile) },
	{ NULL, "--list-profiles", NULL, NULL, "which there are, and what each tells",
	  FLAG(list_profiles) },

	{ "How long", "--time", NULL, "TIME", "measured; 30s", VALUES(MATRIX_TIME) },
	{ NULL, "--warmup", NULL, "TIME", "before it, not counted; 5s", VALUES(MATRIX_WARMUP) },
	{ NULL, "--ramp", NULL, "TIME", "workers begin one after the other over so long; 0s",
	  VALUES(MATRIX_RAMP) },
	{ NULL, "--io-size", NULL, "SIZE", "end after so many bytes, too", VALUES(MATRIX_IO_SIZE) },
	{ NULL, "--steady", NULL, NULL, "go on until steady, ten times --time at most",
	  VALUES(MATRIX_STEADY) },
	{ NULL, "--repeat", NULL, "N", "measure every point so often; 1", VALUES(MATRIX_REPEAT) },

	{ "Where", "--luns", "--lun", "LIST", "LUNs besides those of the URLs, like 0,2-5",
	  SET(set_luns) },
	{ NULL, "--size", NULL, "SIZE", "of each LUN, from its start; all of it",
	  VALUES(MATRIX_SIZE) },
	{ NULL, "--discover", NULL, NULL, "over all portals of the URL's target", FLAG(discover) },
	{ NULL, "--policy", NULL, "POLICY",
	  "which path takes a command: round-robin, least-in-flight, "
	  "failover",
	  SET(set_policy), .values = "round-robin least-in-flight failover" },
	{ NULL, "--initiator", NULL, "NAME", "name to log in with; " OPTIONS_INITIATOR,
	  SET(set_initiator) },
	{ NULL, "--chap-file", NULL, "FILE", "user and secret, see yoke-bench(1)",
	  TEXT(chap_file) },
	{ NULL, "--header-digest", NULL, NULL, "CRC32C over every header",
	  FLAG(plan.setup.header_digest) },
	{ NULL, "--timeout", NULL, "TIME",
	  "a path that does not answer a command so long is closed; 30s", SET(set_timeout) },
	{ NULL, "--threads", NULL, "N", "of this program; a processor each, if there are sessions",
	  SET(set_threads) },
	{ NULL, "--fail-path", NULL, "N@TIME[+TIME]", "close portal N, open it again after 3s",
	  SET(set_failure) },

	{ "What is written", "--data", NULL, "KIND",
	  "random, repeat (one block again and again) or zero; random", VALUES(MATRIX_DATA),
	  .values = "random repeat zero" },
	{ NULL, "--seed", NULL, "N", "the same accesses and data again", VALUES(MATRIX_SEED) },
	{ NULL, "--no-fill", NULL, NULL, "measure the LUN as it is; it is filled first otherwise",
	  FLAG(no_fill) },
	{ NULL, "--destroy", NULL, NULL,
	  "also write a LUN that carries a filesystem, partitions ...", FLAG(plan.setup.destroy) },

	{ "What is checked", "--expect", NULL, "CONDITIONS",
	  "exit 1 unless met: \"iops>=100k, read.p99<=2ms\"", SET(set_expect) },
	{ NULL, "--cache", NULL, "SIZE", "what the target may hold in memory; 8G", SET(set_cache) },
	{ NULL, "--cross-check", NULL, "SOCKET", "compare with the counters of this yoked",
	  TEXT(cross_check) },
	{ NULL, "--verify", NULL, NULL, "does every read see what was written? Exit 1 if not",
	  FLAG(verify) },
	{ NULL, "--journal", NULL, "FILE", "remember what was written and promised",
	  TEXT(journal) },
	{ NULL, "--check-journal", NULL, NULL, "first verify what an earlier run left",
	  FLAG(check_journal) },

	{ "What is shown", "--json", NULL, "FILE",
	  "fio's format and more; of several points a file each", TEXT(json) },
	{ NULL, "--csv", NULL, "FILE", "a row a measurement; its intervals in FILE-series",
	  TEXT(csv) },
	{ NULL, "--report", NULL, "FILE", "one HTML page with charts", TEXT(report) },
	{ NULL, "--color", NULL, "WHEN", "auto, always or never", SET(set_color),
	  .values = "auto always never" },
	{ NULL, "--help", "-h", NULL, "this", FLAG(help) },
	{ NULL, "--version", "-V", NULL, "the version", FLAG(version) },
	{ 0 },
};
/* clang-format on */

static const struct option_row *find(const char *word, size_t len)
{
	for (const struct option_row *row = options_table; row->name; row++) {
		const char *names[] = { row->name, row->alias };

		for (unsigned i = 0; i < 2; i++)
			if (names[i] && strlen(names[i]) == len && !strncmp(names[i], word, len))
				return row;
	}
	return NULL;
}

static int apply(struct options *options, const struct option_row *row, const char *value,
		 char *cause, size_t cause_size)
{
	const char **text = (const char **)(void *)((char *)options + row->offset);

	switch (row->kind) {
	case OPTION_MATRIX:
		return matrix_add_list(&options->matrix, row->key, value ? value : "true", cause,
				       cause_size);
	case OPTION_SET:
		return row->set(options, value, cause, cause_size);
	case OPTION_FLAG:
		*(bool *)(void *)((char *)options + row->offset) = true;
		return 0;
	case OPTION_TEXT:
		break;
	}
	if (*text)
		return say(cause, cause_size, "given twice. Write it once");
	if (!*value)
		return say(cause, cause_size, "empty. Write %s", row->meta);
	*text = value;
	return 0;
}

/* The option at ARGV[*AT]; moves past it and its value. */
static int parse_option(struct options *options, int argc, char *const *argv, int *at,
			struct bench_fault *fault)
{
	const char *word = argv[(*at)++];
	size_t len = strcspn(word, "=");
	const char *value = word[len] ? word + len + 1 : NULL;
	const struct option_row *row = find(word, len);
	char cause[sizeof(fault->text)] = "out of memory";

	if (!row)
		return say(fault->text, sizeof(fault->text),
			   "no option %.*s. yoke-bench --help lists them", (int)min_u64(len, 64),
			   word);
	if (!row->meta && value)
		return say(fault->text, sizeof(fault->text), "%s: takes no value", row->name);
	if (row->meta && !value) {
		if (*at == argc)
			return say(fault->text, sizeof(fault->text), "%s: no value. Write %s %s",
				   row->name, row->name, row->meta);
		value = argv[(*at)++];
	}
	if (!apply(options, row, value, cause, sizeof(cause)))
		return 0;
	if (strncmp(cause, row->name, strlen(row->name)) == 0)
		return say(fault->text, sizeof(fault->text), "%s", cause);
	return say(fault->text, sizeof(fault->text), "%s: %.280s", row->name, cause);
}

static int parse_url(struct options *options, const char *text, struct bench_fault *fault)
{
	if (options->url_count == URL_MAX)
		return say(fault->text, sizeof(fault->text), "more than %d URLs. Name fewer",
			   URL_MAX);
	return url_parse(text, &options->urls[options->url_count++], fault);
}

int options_parse(int argc, char *const *argv, struct options *options, struct bench_fault *fault)
{
	bool no_more = false;
	int at = 1, err = 0;

	memset(options, 0, sizeof(*options));
	options->plan.setup.command_timeout_ns = 30 * NS_PER_S;
	options->plan.setup.cache_bytes = 8 * GIB;
	memcpy(options->plan.setup.initiator, OPTIONS_INITIATOR, sizeof(OPTIONS_INITIATOR));
	while (at < argc && !err) {
		if (!no_more && strcmp(argv[at], "--") == 0) {
			no_more = true;
			at++;
		} else if (!no_more && argv[at][0] == '-') {
			err = parse_option(options, argc, argv, &at, fault);
		} else {
			err = parse_url(options, argv[at++], fault);
		}
	}
	if (err || options->help || options->version || options->list_profiles)
		return err;
	return url_gather(options->urls, options->url_count, &options->plan.setup, fault);
}

void options_free(struct options *options)
{
	free(options->plan.points);
	memset(options, 0, sizeof(*options));
}

/* TEXT in lines of up to 76 columns that begin at COLUMN; the first has begun. */
static void wrap(FILE *out, const char *text, unsigned column, unsigned width)
{
	unsigned used = column;

	while (*text) {
		unsigned len = (unsigned)strcspn(text, " ");

		if (used + len > width && used > column) {
			fprintf(out, "\n%*s", (int)column, "");
			used = column;
		}
		fprintf(out, "%.*s", (int)len, text);
		used += len + 1;
		text += len;
		if (*text == ' ' && text++)
			fputs(*text && used + strcspn(text, " ") <= width ? " " : "", out);
	}
	fputc('\n', out);
}

void options_help(FILE *out)
{
	fputs("usage: yoke-bench [OPTIONS] iscsi://[USER@]HOST[:PORT]/TARGET/LUN ...\n"
	      "       yoke-bench report A.json... [--against B.json...] --out FILE.html\n\n"
	      "Measures iSCSI LUNs over all the portals that are named. Sizes are like 4K (K M G T are\n"
	      "powers of 1024), times like 30s. yoke-bench(1) says how to read the numbers.\n",
	      out);
	for (const struct option_row *row = options_table; row->name; row++) {
		char left[64];

		if (row->group)
			fprintf(out, "\n%s\n", row->group);
		snprintf(left, sizeof(left), "%s%s%s", row->name, row->meta ? " " : "",
			 row->meta ? row->meta : "");
		fprintf(out, "  %-28s%s", left, strlen(left) > 27 ? " " : "");
		wrap(out, row->help, 30, 96);
	}
}
