/* SPDX-License-Identifier: MIT */
/*
 * Numbers for people: IEC sizes, counts with separators, durations, times.
 * Each writes into BUF of UNITS_SIZE bytes and returns it.
 */
#ifndef CORE_UNITS_H
#define CORE_UNITS_H

#include <stdint.h>

#define UNITS_SIZE 48

const char *units_size(uint64_t bytes, char *buf);       /* "599.9 GiB", "512 B" */
const char *units_count(uint64_t count, char *buf);      /* "96,480" */
const char *units_rate(double per_s, char *buf);         /* "16.4", "1,204" */
const char *units_latency_us(double us, char *buf);      /* "850 us", "2.1 ms", "45 ms", "1.2 s" */
const char *units_duration(uint64_t seconds, char *buf); /* "42 s", "5 min", "3 h 08 min", "12 d" */
/* "2026-11-30T13:02:11.000Z" as "2026-11-30 14:02:11+01:00"; unchanged if it is no such time. */
const char *units_local_time(const char *utc, char *buf);

#endif
