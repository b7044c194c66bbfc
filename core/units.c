/* SPDX-License-Identifier: MIT */
/*
 * Numbers for people.
 *
 * Invariants:
 * 1. Rounding never makes a unit's next one: 1023.96 KiB is 1.0 MiB, not 1024.0 KiB.
 * 2. Only sizes and counts; what a number means is the caller's.
 *
 * Not here: reading sizes and durations (core/conf.h).
 */
#include "core/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base.h"

const char *units_size(uint64_t bytes, char *buf)
{
	static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes / 1024.0;
	unsigned unit = 0;

	if (bytes < 1024) {
		snprintf(buf, UNITS_SIZE, "%" PRIu64 " B", bytes);
		return buf;
	}
	while (value >= 1023.95 && unit < ARRAY_LEN(names) - 1) {
		value /= 1024.0;
		unit++;
	}
	snprintf(buf, UNITS_SIZE, "%.1f %s", value, names[unit]);
	return buf;
}

const char *units_count(uint64_t count, char *buf)
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *at = buf;

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	*at = '\0';
	return buf;
}

const char *units_rate(double per_s, char *buf)
{
	if (per_s >= 999.95)
		return units_count((uint64_t)(per_s + 0.5), buf);
	snprintf(buf, UNITS_SIZE, "%.1f", per_s);
	return buf;
}

const char *units_latency_us(double us, char *buf)
{
	if (us < 999.5)
		snprintf(buf, UNITS_SIZE, "%.0f us", us);
	else if (us < 9950.0)
		snprintf(buf, UNITS_SIZE, "%.1f ms", us / 1e3);
	else if (us < 999500.0)
		snprintf(buf, UNITS_SIZE, "%.0f ms", us / 1e3);
	else
		snprintf(buf, UNITS_SIZE, "%.1f s", us / 1e6);
	return buf;
}

const char *units_duration(uint64_t seconds, char *buf)
{
	uint64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;

	if (days >= 10)
		snprintf(buf, UNITS_SIZE, "%" PRIu64 " d", days);
	else if (days)
		snprintf(buf, UNITS_SIZE, "%" PRIu64 " d %" PRIu64 " h", days, hours % 24);
	else if (hours)
		snprintf(buf, UNITS_SIZE, "%" PRIu64 " h %02" PRIu64 " min", hours, minutes % 60);
	else if (minutes)
		snprintf(buf, UNITS_SIZE, "%" PRIu64 " min", minutes);
	else
		snprintf(buf, UNITS_SIZE, "%" PRIu64 " s", seconds);
	return buf;
}

const char *units_local_time(const char *utc, char *buf)
{
	struct tm tm = { 0 };
	const char *rest = strptime(utc, "%Y-%m-%dT%H:%M:%S", &tm);
	time_t when;
	size_t len;

	if (rest && *rest == '.')
		while (isdigit((unsigned char)*++rest))
			;
	if (!rest || strcmp(rest, "Z") != 0) {
		snprintf(buf, UNITS_SIZE, "%s", utc);
		return buf;
	}
	when = timegm(&tm);
	localtime_r(&when, &tm);
	len = strftime(buf, UNITS_SIZE, "%Y-%m-%d %H:%M:%S%z", &tm);
	/* "+0100" to "+01:00". */
	if (len > 2 && len + 2 < UNITS_SIZE) {
		memmove(buf + len - 1, buf + len - 2, 3);
		buf[len - 2] = ':';
	}
	return buf;
}
