/* SPDX-License-Identifier: MIT */
/* Numbers for people, at the edges of their units. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "core/base.h"
#include "core/units.h"

static char buf[UNITS_SIZE];

START_TEST(sizes_are_iec_and_never_1024_of_a_unit)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1536, "1.5 KiB" },
		{ 1048524, "1023.9 KiB" },
		{ 1048525, "1.0 MiB" },
		{ 268435456, "256.0 MiB" },
		{ 644245094400, "600.0 GiB" },
		{ 644137720218, "599.9 GiB" },
		{ 1ULL << 50, "1.0 PiB" },
		{ UINT64_MAX, "16.0 EiB" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_str_eq(units_size(cases[i].bytes, buf), cases[i].text);
}
END_TEST

START_TEST(counts_have_separators)
{
	ck_assert_str_eq(units_count(0, buf), "0");
	ck_assert_str_eq(units_count(999, buf), "999");
	ck_assert_str_eq(units_count(1000, buf), "1,000");
	ck_assert_str_eq(units_count(96480, buf), "96,480");
	ck_assert_str_eq(units_count(UINT64_MAX, buf), "18,446,744,073,709,551,615");
	ck_assert_str_eq(units_rate(0.04, buf), "0.0");
	ck_assert_str_eq(units_rate(16.44, buf), "16.4");
	ck_assert_str_eq(units_rate(999.94, buf), "999.9");
	ck_assert_str_eq(units_rate(999.96, buf), "1,000");
}
END_TEST

START_TEST(latencies_have_about_two_digits)
{
	static const struct {
		double us;
		const char *text;
	} cases[] = {
		{ 0, "0 us" },       { 850, "850 us" },    { 999.4, "999 us" },
		{ 999.6, "1.0 ms" }, { 2100, "2.1 ms" },   { 9949, "9.9 ms" },
		{ 9950, "10 ms" },   { 45000, "45 ms" },   { 999499, "999 ms" },
		{ 999500, "1.0 s" }, { 1234567, "1.2 s" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_str_eq(units_latency_us(cases[i].us, buf), cases[i].text);
}
END_TEST

START_TEST(durations_have_one_or_two_units)
{
	static const struct {
		uint64_t s;
		const char *text;
	} cases[] = {
		{ 0, "0 s" },
		{ 59, "59 s" },
		{ 60, "1 min" },
		{ 3599, "59 min" },
		{ 3600, "1 h 00 min" },
		{ 11300, "3 h 08 min" },
		{ 86399, "23 h 59 min" },
		{ 86400, "1 d 0 h" },
		{ 194400, "2 d 6 h" },
		{ 863999, "9 d 23 h" },
		{ 864000, "10 d" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_str_eq(units_duration(cases[i].s, buf), cases[i].text);
}
END_TEST

START_TEST(times_are_local_with_their_offset)
{
	static const struct {
		const char *zone, *utc, *text;
	} cases[] = {
		{ "XYZ-1", "2026-11-30T13:02:11Z", "2026-11-30 14:02:11+01:00" },
		{ "XYZ-1", "2026-12-31T23:30:00.123Z", "2027-01-01 00:30:00+01:00" },
		{ "XYZ3:30", "2026-03-01T00:00:00Z", "2026-02-28 20:30:00-03:30" },
		{ "UTC0", "2028-02-29T00:00:00Z", "2028-02-29 00:00:00+00:00" },
		{ "UTC0", "yesterday", "yesterday" },
		{ "UTC0", "2026-11-30T13:02:11", "2026-11-30T13:02:11" },
		{ "UTC0", "2026-11-30T13:02:11Zx", "2026-11-30T13:02:11Zx" },
		{ "UTC0", "", "" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		setenv("TZ", cases[i].zone, 1);
		tzset();
		ck_assert_str_eq(units_local_time(cases[i].utc, buf), cases[i].text);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("units");
	TCase *tcase = tcase_create("units");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, sizes_are_iec_and_never_1024_of_a_unit);
	tcase_add_test(tcase, counts_have_separators);
	tcase_add_test(tcase, latencies_have_about_two_digits);
	tcase_add_test(tcase, durations_have_one_or_two_units);
	tcase_add_test(tcase, times_are_local_with_their_offset);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
