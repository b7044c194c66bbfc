/* SPDX-License-Identifier: MIT */
/* XOR over scattered memory: right for every cut, and each byte counted once. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "raid/parity.h"
#include "tests/fake/fake_blk.h"

#define LENGTH 8192u
#define MOST PARITY_SOURCES_MAX

static uint8_t source[MOST][LENGTH] __attribute__((aligned(64)));
static uint8_t result[LENGTH] __attribute__((aligned(64)));
static struct iovec iov[MOST + 1][LENGTH / PARITY_ALIGN];

/* BYTES in pieces of random multiples of 64. */
static struct parity_at scatter(unsigned i, uint8_t *bytes)
{
	unsigned count = 0, piece;

	for (unsigned at = 0; at < LENGTH; at += piece) {
		piece = PARITY_ALIGN * (1 + (unsigned)rand() % 30);
		piece = piece > LENGTH - at ? LENGTH - at : piece;
		iov[i][count++] = (struct iovec){ bytes + at, piece };
	}
	return (struct parity_at){ iov[i], 0 };
}

START_TEST(it_is_the_xor_of_all)
{
	unsigned count = 2 + (unsigned)_i % (MOST - 1);
	struct parity_at at[MOST], to;
	uint64_t xored = 5;

	srand((unsigned)_i);
	for (unsigned i = 0; i < count; i++) {
		fake_fill(source[i], LENGTH, i + 1);
		at[i] = scatter(i, source[i]);
	}
	to = scatter(MOST, result);
	parity_xor(&to, at, count, LENGTH, &xored);
	ck_assert_uint_eq(xored, 5 + count * LENGTH);
	for (unsigned k = 0; k < LENGTH; k++) {
		uint8_t sum = 0;

		for (unsigned i = 0; i < count; i++)
			sum ^= source[i][k];
		ck_assert_uint_eq(result[k], sum);
	}
}
END_TEST

START_TEST(the_result_may_be_one_of_the_sources)
{
	uint8_t before[LENGTH];
	struct parity_at at[3], to;
	uint64_t xored = 0;

	srand(1);
	for (unsigned i = 0; i < 3; i++) {
		fake_fill(source[i], LENGTH, i + 1);
		at[i] = scatter(i, source[i]);
	}
	memcpy(before, source[0], LENGTH);
	to = at[0];
	parity_xor(&to, at, 3, LENGTH, &xored);
	for (unsigned k = 0; k < LENGTH; k++)
		ck_assert_uint_eq(source[0][k], before[k] ^ source[1][k] ^ source[2][k]);
}
END_TEST

START_TEST(places_move_and_compare_and_copy)
{
	struct parity_at a, b, to;

	srand(2);
	fake_fill(source[0], LENGTH, 1);
	memcpy(source[1], source[0], LENGTH);
	source[1][LENGTH - 1] ^= 1;
	a = scatter(0, source[0]);
	b = scatter(1, source[1]);
	parity_move(&a, 640);
	parity_move(&b, 640);
	ck_assert(parity_equal(&a, &b, LENGTH - 640 - PARITY_ALIGN));
	ck_assert(!parity_equal(&a, &b, PARITY_ALIGN));
	a = scatter(0, source[0]);
	to = scatter(2, result);
	parity_copy(&to, &a, LENGTH);
	ck_assert_mem_eq(result, source[0], LENGTH);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("parity");
	TCase *tcase = tcase_create("parity");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tcase, it_is_the_xor_of_all, 0, 64);
	tcase_add_test(tcase, the_result_may_be_one_of_the_sources);
	tcase_add_test(tcase, places_move_and_compare_and_copy);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
