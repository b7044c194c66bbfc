/* SPDX-License-Identifier: MIT */
/*
 * Log lines: formatted, escaped and written with one write() each.
 *
 * Invariants:
 * 1. One call is one line: nothing in its arguments can start a second one.
 * 2. A line is never split between two write() calls, so threads do not mix theirs.
 * 3. Logging never fails the caller and never changes errno.
 *
 * Not here: what happened, as data for tools (core/event.c).
 */
#include "core/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEBUG_MODULES_MAX 32
#define DEBUG_NAME_MAX 32

static const char *const level_names[] = { "ERROR", "WARN", "INFO", "DEBUG" };
static const char level_syslog[] = { '3', '4', '6', '7' };

/* Names are only ever added; the count is published after the name. */
static char debug_modules[DEBUG_MODULES_MAX][DEBUG_NAME_MAX];
static unsigned debug_count;

static void (*redirect)(enum log_level level, const char *line);

void log_redirect(void (*fn)(enum log_level level, const char *line))
{
	__atomic_store_n(&redirect, fn, __ATOMIC_RELEASE);
}

void log_debug_enable(const char *module)
{
	unsigned n = debug_count;

	if (n == DEBUG_MODULES_MAX || strlen(module) >= DEBUG_NAME_MAX)
		return;
	memcpy(debug_modules[n], module, strlen(module) + 1);
	__atomic_store_n(&debug_count, n + 1, __ATOMIC_RELEASE);
}

bool log_debug_on(const char *module)
{
	unsigned n = __atomic_load_n(&debug_count, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < n; i++)
		if (!strcmp(debug_modules[i], "all") || !strcmp(debug_modules[i], module))
			return true;
	return false;
}

/* Length of the UTF-8 character at S, 0 if there is none (RFC 3629: no surrogates, no overlong). */
static size_t utf8_length(const unsigned char *s)
{
	unsigned char lo = 0x80, hi = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		lo = 0xa0;
	else if (s[0] == 0xed)
		hi = 0x9f;
	else if (s[0] == 0xf0)
		lo = 0x90;
	else if (s[0] == 0xf4)
		hi = 0x8f;
	if (s[1] < lo || s[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return n;
}

/* C0, DEL and C1; terminals obey the last in UTF-8, too. */
static bool is_control(const unsigned char *s)
{
	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

size_t log_printable(const char *in)
{
	const unsigned char *s = (const unsigned char *)in;

	return *s && !is_control(s) ? utf8_length(s) : 0;
}

size_t log_escape(char *out, size_t size, const char *in)
{
	size_t len = 0;

	assert(size > 0);
	while (*in) {
		size_t n = log_printable(in);
		bool plain = n > 0 && *in != '\\';

		if (!plain)
			n = 1;
		if (len + (plain ? n : 4) >= size)
			break;
		if (plain)
			memcpy(out + len, in, n);
		else
			snprintf(out + len, 5, "\\x%02x", (unsigned char)*in);
		len += plain ? n : 4;
		in += n;
	}
	out[len] = '\0';
	return len;
}

/* Standard error as the journal named it in $JOURNAL_STREAM (systemd.exec(5)). */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
}

static bool to_journal;

static void detect_journal(void)
{
	to_journal = stderr_is_journal();
}

static void write_line(enum log_level level, const char *line)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char text[LOG_LINE_MAX + 64];
	struct timespec ts;
	struct tm tm;
	int n;

	pthread_once(&once, detect_journal);
	if (to_journal) {
		n = snprintf(text, sizeof(text), "<%c>%s\n", level_syslog[level], line);
	} else {
		clock_gettime(CLOCK_REALTIME, &ts);
		gmtime_r(&ts.tv_sec, &tm);
		n = snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ %-5s %s\n",
			     tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
			     tm.tm_sec, ts.tv_nsec / 1000000, level_names[level], line);
	}
	/* Nobody can be told when even this fails. */
	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		return;
}

struct line {
	char text[LOG_LINE_MAX];
	size_t len;
	bool cut;
};

static void line_add(struct line *line, const char *text)
{
	size_t room = sizeof(line->text) - sizeof("...") + 1 - line->len;
	char raw[LOG_LINE_MAX];

	if (line->cut || !*text)
		return;
	if (line->len > 0 && room > 1) {
		line->text[line->len++] = ' ';
		room--;
	}
	/* One byte more than fits tells a cut text from one that just fits. */
	log_escape(raw, sizeof(raw), text);
	line->cut = strlen(raw) >= room;
	line->len += log_escape(line->text + line->len, room, text);
	if (line->cut)
		line->len = (size_t)(stpcpy(line->text + line->len, "...") - line->text);
}

static void emit(enum log_level level, const char *const head[3], const char *fields,
		 const char *tail)
{
	void (*fn)(enum log_level, const char *) = __atomic_load_n(&redirect, __ATOMIC_ACQUIRE);
	struct line line = { .len = 0 };

	for (int i = 0; i < 3; i++)
		line_add(&line, head[i]);
	line_add(&line, fields);
	line_add(&line, tail);
	if (fn)
		fn(level, line.text);
	else
		write_line(level, line.text);
}

void log_line(enum log_level level, const char *module, const char *object, const char *event,
	      const char *fmt, ...)
{
	char fields[LOG_LINE_MAX];
	int saved = errno;
	va_list ap;

	if (level == LOG_L_DEBUG && !log_debug_on(module))
		return;
	va_start(ap, fmt);
	if (vsnprintf(fields, sizeof(fields), fmt, ap) < 0)
		fields[0] = '\0';
	va_end(ap);
	emit(level, (const char *const[]){ module, object, event }, fields, "");
	errno = saved;
}

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Whether this place may speak now; *SWALLOWED is what to confess when it does. */
static bool limit_admits(struct log_limit *limit, unsigned *swallowed)
{
	uint64_t start_ns = __atomic_load_n(&limit->window_start_ns, __ATOMIC_RELAXED);
	uint64_t now_ns = monotonic_ns();

	*swallowed = 0;
	/* Who wins the exchange opens the new window; a rival counts into it. */
	if ((start_ns == 0 || now_ns - start_ns >= LOG_WINDOW_NS) &&
	    __atomic_compare_exchange_n(&limit->window_start_ns, &start_ns, now_ns, false,
					__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		__atomic_store_n(&limit->in_window, 0, __ATOMIC_RELAXED);
		*swallowed = __atomic_exchange_n(&limit->swallowed, 0, __ATOMIC_RELAXED);
	}
	if (__atomic_fetch_add(&limit->in_window, 1, __ATOMIC_RELAXED) < LOG_BURST)
		return true;
	__atomic_fetch_add(&limit->swallowed, 1, __ATOMIC_RELAXED);
	return false;
}

void log_limited(struct log_limit *limit, enum log_level level, const char *module,
		 const char *object, const char *event, const char *fmt, ...)
{
	char fields[LOG_LINE_MAX], tail[32] = "";
	int saved = errno;
	unsigned swallowed;
	va_list ap;

	if (level == LOG_L_DEBUG && !log_debug_on(module))
		return;
	if (!limit_admits(limit, &swallowed))
		return;
	if (swallowed > 0)
		snprintf(tail, sizeof(tail), "swallowed=%u", swallowed);
	va_start(ap, fmt);
	if (vsnprintf(fields, sizeof(fields), fmt, ap) < 0)
		fields[0] = '\0';
	va_end(ap);
	emit(level, (const char *const[]){ module, object, event }, fields, tail);
	errno = saved;
}
