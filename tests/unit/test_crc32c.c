/* SPDX-License-Identifier: MIT */
/* CRC32C against the published vectors, a bitwise model, and itself in pieces. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/crc32c.h"

/* The definition, a bit at a time. */
static uint32_t model(const uint8_t *data, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < len; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

START_TEST(the_published_vectors_hold)
{
	uint8_t data[32];

	ck_assert_uint_eq(crc32c("123456789", 9), 0xe3069283);
	ck_assert_uint_eq(crc32c("", 0), 0);
	/* RFC 3720 B.4; the RFC prints the bytes in the order of the wire. */
	ck_assert_uint_eq(crc32c(memset(data, 0, 32), 32), 0x8a9136aa);
	ck_assert_uint_eq(crc32c(memset(data, 0xff, 32), 32), 0x62a8ab43);
	for (unsigned i = 0; i < 32; i++)
		data[i] = (uint8_t)i;
	ck_assert_uint_eq(crc32c(data, 32), 0x46dd794e);
	for (unsigned i = 0; i < 32; i++)
		data[i] = (uint8_t)(31 - i);
	ck_assert_uint_eq(crc32c(data, 32), 0x113fdb5c);
}
END_TEST

START_TEST(every_length_and_alignment_gives_what_the_definition_gives)
{
	uint8_t data[700];

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * i + i / 3);
	for (unsigned at = 0; at < 9; at++)
		for (unsigned len = 0; len < 680; len++)
			ck_assert_uint_eq(crc32c(data + at, len), model(data + at, len));
}
END_TEST

START_TEST(pieces_give_what_the_whole_gives_however_it_is_cut)
{
	uint8_t data[257];

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37);
	for (unsigned cut = 0; cut <= sizeof(data); cut++) {
		struct iovec iov[3] = { { data, cut },
					{ NULL, 0 },
					{ data + cut, sizeof(data) - cut } };
		uint32_t state = crc32c_add_iov(CRC32C_START, iov, 3);

		ck_assert_uint_eq(crc32c_end(state), crc32c(data, sizeof(data)));
		state = crc32c_add(crc32c_add(CRC32C_START, data, cut), data + cut,
				   sizeof(data) - cut);
		ck_assert_uint_eq(crc32c_end(state), model(data, sizeof(data)));
	}
}
END_TEST

START_TEST(around_a_hole_its_bytes_count_as_zeroes)
{
	uint8_t bytes[64], zeroed[64];

	for (size_t hole = 0; hole + 4 <= sizeof(bytes); hole++) {
		for (unsigned i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)(i * 37 + 1);
		memcpy(zeroed, bytes, sizeof(bytes));
		memset(zeroed + hole, 0, 4);
		ck_assert_uint_eq(crc32c_around(bytes, sizeof(bytes), hole),
				  crc32c(zeroed, sizeof(zeroed)));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("crc32c");
	TCase *tc = tcase_create("crc32c");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, the_published_vectors_hold);
	tcase_add_test(tc, every_length_and_alignment_gives_what_the_definition_gives);
	tcase_add_test(tc, pieces_give_what_the_whole_gives_however_it_is_cut);
	tcase_add_test(tc, around_a_hole_its_bytes_count_as_zeroes);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
