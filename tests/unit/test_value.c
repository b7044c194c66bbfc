/* SPDX-License-Identifier: MIT */
/*
 * Values of text keys: what is a number, a binary value, an item of a list; pairs being written.
 *
 * Invariants: none.
 *
 * Not here: keys (test_keys.c).
 */
#include "target/iscsi/value.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *text;
	bool is;
	uint64_t number;
} numbers[] = {
	{ "0", true, 0 },
	{ "1", true, 1 },
	{ "8192", true, 8192 },
	{ "0x0", true, 0 },
	{ "0x00ff", true, 255 },
	{ "0XfF", true, 255 },
	{ "18446744073709551615", true, UINT64_MAX },
	{ "0xffffffffffffffff", true, UINT64_MAX },
	{ "0x0000000000000000000000001", true, 1 },
	{ "18446744073709551616", false, 0 },
	{ "99999999999999999999", false, 0 },
	{ "0x10000000000000000", false, 0 },
	{ "", false, 0 },
	{ "0x", false, 0 },
	{ "00", false, 0 },
	{ "01", false, 0 },
	{ "-1", false, 0 },
	{ "+1", false, 0 },
	{ " 1", false, 0 },
	{ "1 ", false, 0 },
	{ "1k", false, 0 },
	{ "0x1g", false, 0 },
	{ "0b1", false, 0 },
	{ "1a", false, 0 },
	{ "\xff", false, 0 },
};

START_TEST(a_number_is_decimal_or_hexadecimal_and_nothing_else)
{
	uint64_t number = 0;

	ck_assert_msg(iscsi_number(numbers[_i].text, &number) == numbers[_i].is, "\"%s\"",
		      numbers[_i].text);
	ck_assert_uint_eq(number, numbers[_i].number);
}
END_TEST

static const struct {
	const char *text;
	int len;
	const char *bytes;
} binaries[] = {
	{ "0x01ff", 2, "\x01\xff" },
	{ "0XAbC", 2, "\x0a\xbc" },
	{ "0x0000", 2, "\0\0" },
	{ "0x", -EINVAL, "" },
	{ "0x1g", -EINVAL, "" },
	{ "0x112233445566778899", -E2BIG, "" },
	{ "0x1122334455667788", 8, "\x11\x22\x33\x44\x55\x66\x77\x88" },
	{ "0bAQID", 3, "\1\2\3" },
	{ "0BAQI=", 2, "\1\2" },
	{ "0bAQ==", 1, "\1" },
	{ "0b+/+/", 3, "\xfb\xff\xbf" },
	{ "0bAQIDBAUGBwg=", 8, "\1\2\3\4\5\6\7\x8" },
	{ "0bAQIDBAUGBwgJ", -E2BIG, "" },
	{ "0b", -EINVAL, "" },
	{ "0bAQI", -EINVAL, "" },
	{ "0bAQI=A", -EINVAL, "" },
	{ "0bA===", -EINVAL, "" },
	{ "0b====", -EINVAL, "" },
	{ "0b=AAA", -EINVAL, "" },
	{ "0bAQ!D", -EINVAL, "" },
	{ "0bAQ-_", -EINVAL, "" },
	{ "0bAR==", -EINVAL, "" }, /* bits under the padding */
	{ "0bAQJ=", -EINVAL, "" },
	{ "0", 1, "\0" },
	{ "31", 1, "\x1f" },
	{ "256", 2, "\1\0" },
	{ "18446744073709551615", 8, "\xff\xff\xff\xff\xff\xff\xff\xff" },
	{ "18446744073709551616", -EINVAL, "" },
	{ "", -EINVAL, "" },
	{ "abc", -EINVAL, "" },
};

START_TEST(a_binary_value_has_one_meaning_or_none)
{
	uint8_t bytes[8];
	int len = iscsi_binary(binaries[_i].text, bytes, sizeof(bytes));

	ck_assert_msg(len == binaries[_i].len, "\"%s\": %d", binaries[_i].text, len);
	if (len > 0)
		ck_assert_mem_eq(bytes, binaries[_i].bytes, (size_t)len);
}
END_TEST

START_TEST(nothing_is_written_past_the_size)
{
	uint8_t bytes[4] = { 9, 9, 9, 9 };

	ck_assert_int_eq(iscsi_binary("0bAQID", bytes, 2), -E2BIG);
	ck_assert_int_eq(iscsi_binary("0x010203", bytes, 2), -E2BIG);
	ck_assert_int_eq(iscsi_binary("65536", bytes, 2), -E2BIG);
	ck_assert_int_eq(iscsi_binary("0bAQI=", bytes, 2), 2);
	ck_assert_mem_eq(bytes, "\1\2\x09\x09", 4);
}
END_TEST

static const struct {
	const char *list, *what;
	bool has;
} lists[] = {
	{ "CHAP", "CHAP", true },
	{ "CHAP,None", "None", true },
	{ "KRB5,CHAP,None", "CHAP", true },
	{ "CHAP2", "CHAP", false },
	{ "XCHAP", "CHAP", false },
	{ "chap", "CHAP", false },
	{ "", "CHAP", false },
	{ ",,CHAP", "CHAP", true },
	{ "CHAP ,None", "CHAP", false },
	{ "55", "5", false },
	{ "7,05,5x", "5", false },
	{ "None,", "None", true },
};

START_TEST(a_list_holds_exact_items)
{
	ck_assert_int_eq(iscsi_list_has(lists[_i].list, lists[_i].what), lists[_i].has);
}
END_TEST

START_TEST(a_pair_that_does_not_fit_is_not_there_at_all)
{
	for (size_t size = 0; size < 16; size++) {
		char data[16];
		struct iscsi_out out = { .data = data, .size = size };

		memset(data, 'x', sizeof(data));
		iscsi_out_add(&out, "Key", "%s", "val"); /* 8 bytes with its NUL */
		ck_assert_int_eq(out.full, size < 8);
		ck_assert_uint_eq(out.len, size < 8 ? 0 : 8);
		for (size_t i = size; i < sizeof(data); i++)
			ck_assert_int_eq(data[i], 'x');
		iscsi_out_add(&out, "Ke", "%u", 7); /* 5 more */
		ck_assert_uint_eq(out.len, size < 5 ? 0 : size < 8 ? 5 : size < 13 ? 8 : 13);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("value");
	TCase *tc = tcase_create("value");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, a_number_is_decimal_or_hexadecimal_and_nothing_else, 0,
			    ARRAY_LEN(numbers));
	tcase_add_loop_test(tc, a_binary_value_has_one_meaning_or_none, 0, ARRAY_LEN(binaries));
	tcase_add_test(tc, nothing_is_written_past_the_size);
	tcase_add_loop_test(tc, a_list_holds_exact_items, 0, ARRAY_LEN(lists));
	tcase_add_test(tc, a_pair_that_does_not_fit_is_not_there_at_all);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
