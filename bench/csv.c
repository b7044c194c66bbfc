/* SPDX-License-Identifier: MIT */
/*
 * Rows for spreadsheets.
 *
 * Invariants:
 *  1. The unit is in the heading; a decimal point is a point; what is not known is empty.
 *  2. A row of text that holds a comma or a quote is quoted.
 *
 * Not here: everything else that there is of a result (json.c).
 * Spec: RFC 4180 but for its line ends.
 */
#include "bench/csv.h"

#include <inttypes.h>
#include <string.h>

#include "core/clean.h"

static const char *const side_names[BENCH_SIDES] = { "read", "write", "total" };

static void put_text(FILE *out, const char *text)
{
	bool quoted = strpbrk(text, ",\"\r\n") != NULL;

	if (quoted)
		fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	if (quoted)
		fputc('"', out);
}

static void put_percentile(FILE *out, const struct hist *hist, double percent)
{
	fputc(',', out);
	if (verdict_percentile_known(hist, percent))
		fprintf(out, "%.3f", (double)hist_percentile(hist, percent) / 1e3);
}

void csv_summary_head(FILE *out)
{
	fputs("profile,point,number,repeat,sessions,depth,measured_s,side,ops,iops,bytes_per_s,"
	      "mean_us,p50_us,p99_us,p99_9_us,p99_99_us,max_us,service_mean_us,in_flight,"
	      "steady,meaningful,warnings\n",
	      out);
}

void csv_summary(FILE *out, const struct outcome *outcome)
{
	const struct bench_result *result = outcome->result;
	const struct verdict *verdict = &outcome->verdict;

	for (unsigned side = 0; side < BENCH_SIDES; side++) {
		const struct bench_counts *c = &result->sides[side];

		if (!c->ops && side != BENCH_TOTAL)
			continue;
		put_text(out, outcome->plan->profile);
		fputc(',', out);
		put_text(out, result->point->name);
		fprintf(out, ",%u,%u,%u,%u,%.3f,%s,%" PRIu64 ",%.1f,%.0f", outcome->point,
			outcome->repeat, result->session_count, result->depth_asked,
			result->measured_s, side_names[side], c->ops, bench_iops(result, side),
			bench_bytes_s(result, side));
		if (c->latency.count)
			fprintf(out, ",%.3f", hist_mean(&c->latency) / 1e3);
		else
			fputc(',', out);
		put_percentile(out, &c->latency, 50);
		put_percentile(out, &c->latency, 99);
		put_percentile(out, &c->latency, 99.9);
		put_percentile(out, &c->latency, 99.99);
		if (c->latency.count)
			fprintf(out, ",%.3f,%.3f", (double)c->latency.max / 1e3,
				hist_mean(&c->service) / 1e3);
		else
			fputs(",,", out);
		fprintf(out, ",%.2f,%s,%d,", result->in_flight,
			!outcome->steady.known ? "" :
			outcome->steady.met    ? "1" :
						 "0",
			verdict->meaningful);
		for (unsigned i = 0; i < verdict->reason_count; i++)
			fprintf(out, "%s%s", i ? " " : "", verdict->reasons[i].code);
		fputc('\n', out);
	}
}

void csv_series_head(FILE *out, const struct bench_setup *setup)
{
	fputs("point,repeat,from_s,to_s,read_iops,write_iops,read_bytes_per_s,write_bytes_per_s,"
	      "mean_us,p50_us,p99_us,p99_9_us,p99_99_us,max_us,in_flight,cpu",
	      out);
	for (unsigned i = 0; i < setup->portal_count; i++) {
		char name[sizeof(setup->portals[i].address) + 8];

		snprintf(name, sizeof(name), "iops %s", setup->portals[i].address);
		clean_text(name);
		fputc(',', out);
		put_text(out, name);
	}
	fputc('\n', out);
}

void csv_series(FILE *out, const struct outcome *outcome)
{
	const struct bench_result *result = outcome->result;

	for (unsigned i = 0; i < result->series_count; i++) {
		const struct bench_interval *t = &result->series[i];
		double length = t->to_s > t->from_s ? t->to_s - t->from_s : 1;

		fprintf(out, "%u,%u,%.3f,%.3f,%.1f,%.1f,%.0f,%.0f", outcome->point, outcome->repeat,
			t->from_s, t->to_s, (double)t->ops[BENCH_READ] / length,
			(double)t->ops[BENCH_WRITE] / length, (double)t->bytes[BENCH_READ] / length,
			(double)t->bytes[BENCH_WRITE] / length);
		fprintf(out, ",%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.2f,%.3f", t->mean_ns / 1e3,
			(double)t->p50_ns / 1e3, (double)t->p99_ns / 1e3, (double)t->p999_ns / 1e3,
			(double)t->p9999_ns / 1e3, (double)t->max_ns / 1e3, t->in_flight, t->cpu);
		for (unsigned p = 0; p < result->setup->portal_count; p++)
			fprintf(out, ",%.1f", (double)t->portal_ops[p] / length);
		fputc('\n', out);
	}
}
