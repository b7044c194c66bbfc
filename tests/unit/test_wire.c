/* SPDX-License-Identifier: MIT */
/* Wire integers: every width and order, at every alignment; serial numbers. */
#include <check.h>
#include <string.h>

#include "core/wire.h"

START_TEST(each_accessor_puts_its_bytes_in_its_order)
{
	uint8_t b[16];

	for (unsigned at = 0; at < 8; at++) {
		put_be16(b + at, 0x0102);
		ck_assert_mem_eq(b + at, "\x01\x02", 2);
		ck_assert_uint_eq(get_be16(b + at), 0x0102);
		ck_assert_uint_eq(get_le16(b + at), 0x0201);
		put_le32(b + at, 0x01020304);
		ck_assert_mem_eq(b + at, "\x04\x03\x02\x01", 4);
		ck_assert_uint_eq(get_le32(b + at), 0x01020304);
		ck_assert_uint_eq(get_be32(b + at), 0x04030201);
		put_be64(b + at, 0x0102030405060708);
		ck_assert_mem_eq(b + at, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
		ck_assert_uint_eq(get_be64(b + at), 0x0102030405060708);
		ck_assert_uint_eq(get_le64(b + at), 0x0807060504030201);
		put_le16(b + at, 0xfffe);
		ck_assert_mem_eq(b + at, "\xfe\xff", 2);
		put_be32(b + at, 0xfffefdfc);
		ck_assert_mem_eq(b + at, "\xff\xfe\xfd\xfc", 4);
		put_le64(b + at, 1);
		ck_assert_mem_eq(b + at, "\x01\0\0\0\0\0\0\0", 8);
	}
}
END_TEST

START_TEST(three_bytes_leave_the_fourth_alone)
{
	uint8_t b[4] = { 9, 9, 9, 9 };

	put_be24(b, 0xff123456);
	ck_assert_mem_eq(b, "\x12\x34\x56\x09", 4);
	ck_assert_uint_eq(get_be24(b), 0x123456);
	memset(b, 0xff, 4);
	ck_assert_uint_eq(get_be24(b), 0xffffff);
}
END_TEST

START_TEST(serial_numbers_compare_across_the_wrap)
{
	ck_assert(sna_lt(1, 2) && !sna_lt(2, 1) && !sna_lt(2, 2) && sna_lte(2, 2));
	ck_assert(sna_lt(UINT32_MAX, 0) && sna_lt(0xfffffff0, 5) && !sna_lt(5, 0xfffffff0));
	ck_assert(sna_lt(0, 0x7fffffff) && !sna_lt(0x7fffffff, 0));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("wire");
	TCase *tc = tcase_create("wire");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, each_accessor_puts_its_bytes_in_its_order);
	tcase_add_test(tc, three_bytes_leave_the_fourth_alone);
	tcase_add_test(tc, serial_numbers_compare_across_the_wrap);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
