/* SPDX-License-Identifier: MIT */
/* Sizes, durations, addresses and names at their edges. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/conf_int.h"

START_TEST(sizes_are_powers_of_1024_and_exact)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 },
		{ "512", 512 },
		{ "1K", 1024 },
		{ "256M", 268435456 },
		{ "3G", 3221225472 },
		{ "2T", 2199023255552 },
		{ "5P", 5629499534213120 },
		{ "16383P", 16383ULL << 50 },
		{ "18446744073709551615", UINT64_MAX },
		{ "007K", 7168 },
	};
	static const char *const wrong[] = { "",
					     "K",
					     "-1",
					     "+1",
					     " 1",
					     "1 ",
					     "1k",
					     "1KB",
					     "1KiB",
					     "1.5G",
					     "0x10",
					     "1E",
					     "18446744073709551616",
					     "16384P",
					     "1KK",
					     "1\n" };
	uint64_t bytes;

	for (unsigned i = 0; i < ARRAY_LEN(good); i++) {
		ck_assert_int_eq(conf_size(good[i].text, &bytes), 0);
		ck_assert_uint_eq(bytes, good[i].bytes);
	}
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_msg(conf_size(wrong[i], &bytes) == -EINVAL, "%s", wrong[i]);
}
END_TEST

START_TEST(durations_need_a_unit_and_do_not_overflow)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "1ns", 1 },
		{ "20us", 20000 },
		{ "300ms", 300000000 },
		{ "30s", 30000000000 },
		{ "5m", 300000000000 },
		{ "24h", 86400000000000 },
		{ "0s", 0 },
		{ "5124095h", 5124095ULL * 3600 * NS_PER_S },
	};
	static const char *const wrong[] = { "",
					     "s",
					     "30",
					     "30 s",
					     "-1s",
					     "1.5s",
					     "1d",
					     "1S",
					     "1mss",
					     "5124096h",
					     "18446744073709551616ns" };
	uint64_t ns;

	for (unsigned i = 0; i < ARRAY_LEN(good); i++) {
		ck_assert_int_eq(conf_duration(good[i].text, &ns), 0);
		ck_assert_uint_eq(ns, good[i].ns);
	}
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_msg(conf_duration(wrong[i], &ns) == -EINVAL, "%s", wrong[i]);
}
END_TEST

START_TEST(addresses_are_numeric_with_a_port)
{
	static const char *const good[] = { "127.0.0.1:3260", "0.0.0.0:1", "[::]:65535",
					    "[::ffff:192.0.2.1]:3260", "127.0.0.1:0" };
	static const char *const wrong[] = {
		"",          ":3260",         "127.0.0.1",        "127.0.0.1:", "127.0.0.1:65536",
		"127.1:1",   "127.0.0.1:1x",  "127.0.0.01:1 ",    "[::1]",      "[::1]3260",
		"[::1:3260", "[127.0.0.1]:1", "[fe80::1%lo]:1",   "::1:3260",   "*:3260",
		"host:3260", "127.0.0.1:-1",  "127.0.0.1:000080", "[]:1",       "127.0.0.1:1:1",
	};
	struct conf_address address;
	char cause[256];

	for (unsigned i = 0; i < ARRAY_LEN(good); i++) {
		ck_assert_msg(conf_value_address(good[i], &address, cause, sizeof(cause)) == 0,
			      "%s", good[i]);
		ck_assert_str_eq(address.text, good[i]);
		free(address.text);
	}
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_msg(conf_value_address(wrong[i], &address, cause, sizeof(cause)) ==
				      -EINVAL,
			      "%s", wrong[i]);
}
END_TEST

START_TEST(iscsi_names_follow_the_rfc)
{
	static const char *const good[] = {
		"iqn.2026-11.org.yoke",   "iqn.2026-01.org.yoke:a:b-c.d",
		"IQN.2026-12.ORG.YOKE:X", "eui.02004567a425678d",
		"naa.52004567ba64678d",   "naa.62004567ba64678d0123456789abcdef",
		"iqn.2026-11.org.yoke:",
	};
	static const char *const wrong[] = {
		"",
		"iqn.",
		"iqn.2026",
		"iqn.2026-11",
		"iqn.2026-11.",
		"iqn.2026-00.org",
		"iqn.2026-13.org",
		"iqn.2026-11..org",
		"iqn.2026-11.org.:x",
		"iqn.2026-11.:x",
		"iqn.202a-11.org",
		"iqn.2026-11.org x",
		"iqn.2026-11.org/x",
		"iqn.2026-11.org:\xc3\xa4",
		"eui.02004567a425678",
		"eui.02004567a425678dd",
		"eui.02004567a425678g",
		"naa.52004567ba64678d0",
		"naa.",
		"iq.2026-11.org",
	};
	char cause[160];

	for (unsigned i = 0; i < ARRAY_LEN(good); i++)
		ck_assert_msg(conf_value_iscsi_name(good[i], cause, sizeof(cause)) == 0, "%s",
			      good[i]);
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_msg(conf_value_iscsi_name(wrong[i], cause, sizeof(cause)) == -EINVAL,
			      "%s", wrong[i]);
}
END_TEST

START_TEST(an_iscsi_name_of_223_bytes_is_the_longest)
{
	char name[226] = "iqn.2026-11.org:";
	char cause[160];

	memset(name + 16, 'x', 223 - 16);
	ck_assert_int_eq(conf_value_iscsi_name(name, cause, sizeof(cause)), 0);
	name[223] = 'x';
	ck_assert_int_eq(conf_value_iscsi_name(name, cause, sizeof(cause)), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conf_value");
	TCase *tcase = tcase_create("values");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, sizes_are_powers_of_1024_and_exact);
	tcase_add_test(tcase, durations_need_a_unit_and_do_not_overflow);
	tcase_add_test(tcase, addresses_are_numeric_with_a_port);
	tcase_add_test(tcase, iscsi_names_follow_the_rfc);
	tcase_add_test(tcase, an_iscsi_name_of_223_bytes_is_the_longest);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
