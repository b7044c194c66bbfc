/* SPDX-License-Identifier: MIT */
/*
 * The live line.
 *
 * Invariants:
 *  1. It never is wider than the terminal, where it could not be rewritten: fields are left out
 *     whole, the least telling first. How far it is and the errors stay.
 *  2. What is not a terminal gets whole lines, and no control character.
 *
 * Not here: the figures (engine.c).
 */
#include "bench/live.h"

#include <stdarg.h>
#include <string.h>

#include "core/units.h"

#define FIELDS_MAX 8

struct fields {
	char text[FIELDS_MAX][64];
	unsigned keep[FIELDS_MAX]; /* 0: always; the highest goes first */
	unsigned count;
};

static void add(struct fields *fields, unsigned keep, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void add(struct fields *fields, unsigned keep, const char *fmt, ...)
{
	va_list ap;

	assert(fields->count < FIELDS_MAX);
	va_start(ap, fmt);
	vsnprintf(fields->text[fields->count], sizeof(fields->text[0]), fmt, ap);
	va_end(ap);
	fields->keep[fields->count++] = keep;
}

/* "850", "96.1k", "1.25M": as wide from second to second. */
static const char *short_count(double value, char *buf, size_t size)
{
	if (value < 999.5)
		snprintf(buf, size, "%.0f", value);
	else if (value < 999950)
		snprintf(buf, size, "%.1fk", value / 1e3);
	else
		snprintf(buf, size, "%.2fM", value / 1e6);
	return buf;
}

static void measuring(struct fields *fields, const struct engine_progress *p)
{
	char reads[16], writes[16], latency[UNITS_SIZE], rate[UNITS_SIZE];

	short_count(p->iops[BENCH_READ], reads, sizeof(reads));
	short_count(p->iops[BENCH_WRITE], writes, sizeof(writes));
	if (p->done_s < 0)
		add(fields, 0, "warming up, %.0f s left", -p->done_s);
	else
		add(fields, 0, "%.0f/%.0f s", p->done_s, p->of_s);
	if (p->iops[BENCH_READ] > 0 && p->iops[BENCH_WRITE] > 0)
		add(fields, 1, "r %s w %s IOPS", reads, writes);
	else
		add(fields, 1, "%s %s IOPS", p->iops[BENCH_WRITE] > 0 ? "w" : "r",
		    p->iops[BENCH_WRITE] > 0 ? writes : reads);
	add(fields, 4, "%s MiB/s", units_rate(p->bytes_s / (double)MIB, rate));
	add(fields, 2, "p99 %s", units_latency_us((double)p->p99_ns / 1e3, latency));
	add(fields, 5, "in-flight %u", p->in_flight);
	add(fields, 6, "cpu %.0f %%", p->cpu * 100);
	add(fields, 3, "paths %u/%u", p->sessions_up, p->sessions);
	add(fields, 0, "err %llu", (unsigned long long)p->errors);
}

static size_t line_width(const struct fields *fields)
{
	size_t width = 0;

	for (unsigned i = 0; i < fields->count; i++)
		width += strlen(fields->text[i]) + (i > 0);
	return width;
}

static void drop_one(struct fields *fields)
{
	unsigned worst = 0;

	for (unsigned i = 1; i < fields->count; i++)
		if (fields->keep[i] > fields->keep[worst])
			worst = i;
	fields->count--;
	for (unsigned i = worst; i < fields->count; i++) {
		memcpy(fields->text[i], fields->text[i + 1], sizeof(fields->text[0]));
		fields->keep[i] = fields->keep[i + 1];
	}
}

static bool due(struct live *live, const struct engine_progress *progress)
{
	if (!live->phase || strcmp(live->phase, progress->phase) != 0) {
		live->phase = progress->phase;
		live->ticks = 0;
	}
	live->ticks++;
	return live->tty || live->ticks % LIVE_PLAIN_TICKS == 0;
}

void live_progress(void *arg, const struct engine_progress *progress)
{
	struct fields fields = { 0 };
	struct live *live = arg;

	if (!due(live, progress))
		return;
	if (strcmp(progress->phase, "filling") == 0)
		/* 99.9 until it is done. */
		add(&fields, 0, "filling %.1f %%",
		    progress->share < 0.999 || progress->share >= 1 ? progress->share * 100 : 99.9);
	else if (progress->done_s < 0 || strcmp(progress->phase, "measuring") == 0)
		measuring(&fields, progress);
	else
		add(&fields, 0, "%s", progress->phase);
	/* One column is left free: a full line moves some terminals on. */
	while (live->tty && live->width && line_width(&fields) >= live->width && fields.count > 2)
		drop_one(&fields);
	if (live->tty)
		fputc('\r', live->out);
	for (unsigned i = 0; i < fields.count; i++)
		fprintf(live->out, "%s%s", i ? " " : "", fields.text[i]);
	fputs(live->tty ? "\033[K" : "\n", live->out);
	fflush(live->out);
	live->shown = live->tty;
}

void live_end(struct live *live)
{
	if (live->shown)
		fputs("\r\033[K", live->out);
	fflush(live->out);
	live->shown = false;
}
