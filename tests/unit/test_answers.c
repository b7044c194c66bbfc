/* SPDX-License-Identifier: MIT */
/* A session's PDUs, cut anywhere: every answer has its question, and each question one answer. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "bench/answers.h"
#include "core/crc32c.h"
#include "core/wire.h"

static struct answers *answers;
static uint8_t stream[65536];
static size_t length;
static uint32_t statsn;
static bool digest;

static void setup(void)
{
	answers = malloc(sizeof(*answers));
	answers_init(answers, false);
	length = 0;
	statsn = 100;
	digest = false;
}

static void teardown(void)
{
	free(answers);
}

static void pdu(uint8_t opcode, uint8_t flags, uint32_t itt, uint32_t data, uint32_t sn)
{
	uint8_t *bhs = stream + length;

	memset(bhs, 0, 48);
	bhs[0] = opcode;
	bhs[1] = flags;
	put_be32(bhs + 4, data);
	put_be32(bhs + 16, itt);
	put_be32(bhs + 24, sn);
	length += 48;
	if (digest) {
		put_le32(stream + length, crc32c(bhs, 48));
		length += 4;
	}
	memset(stream + length, 0x21, align_up(data, 4));
	length += align_up(data, 4);
}

static void ask(uint32_t itt, uint32_t data)
{
	pdu(0x01, 0x80, itt, data, 7);
}

/* Hands over what was made, in pieces of STEP bytes. */
static bool in(size_t step)
{
	bool fine = true;

	for (size_t at = 0; at < length; at += step)
		fine = answers_in(answers, stream + at, min_u64(step, length - at));
	length = 0;
	return fine;
}

static void out(size_t step)
{
	for (size_t at = 0; at < length; at += step)
		answers_out(answers, stream + at, min_u64(step, length - at));
	length = 0;
}

static const size_t steps[] = { 1, 7, 48, 49, 52, 100, 65536 };

/* Digests (bit 0), and whether one was offered (bit 1). */
START_TEST(an_honest_session_is_fine_however_it_is_cut)
{
	size_t step = steps[_i % (int)ARRAY_LEN(steps)];
	int mode = _i / (int)ARRAY_LEN(steps);

	digest = mode & 1;
	answers_init(answers, mode > 0);
	for (uint32_t itt = 1; itt < 300; itt += 3) {
		ask(itt, 0);
		out(step);
		ask(itt + 1, 511);
		pdu(0x05, 0x80, itt + 1, 100, 0);
		ask(itt + 2, 0);
		out(step);
		pdu(0x25, 0x00, itt, 512, 0);
		pdu(0x21, 0x80, itt + 2, 0, statsn++);
		pdu(0x31, 0x80, itt + 1, 0, statsn);
		pdu(0x25, 0x81, itt, 3, statsn++);
		pdu(0x20, 0x80, UINT32_MAX, 0, statsn);
		pdu(0x20, 0x80, 77, 5, statsn++);
		pdu(0x21, 0x80, itt + 1, 20, statsn++);
		ck_assert_msg(in(step), "%s", answers->wrong);
	}
}
END_TEST

START_TEST(a_second_answer_is_noticed)
{
	ask(5, 0);
	ask(6, 0);
	out(100);
	pdu(0x21, 0x80, 6, 0, statsn++);
	pdu(0x21, 0x80, 5, 0, statsn++);
	ck_assert(in(100));
	pdu(0x21, 0x80, 6, 0, statsn);
	ck_assert(!in(100));
	ck_assert_str_eq(answers->wrong, "answered twice: SCSI Response with status 00 for tag "
					 "00000006 (StatSN 00000066), which had its status");
}
END_TEST

START_TEST(data_after_the_status_are_noticed)
{
	ask(5, 0);
	out(100);
	pdu(0x25, 0x81, 5, 512, statsn++);
	pdu(0x25, 0x00, 5, 512, 0);
	ck_assert(!in(100));
	ck_assert_ptr_nonnull(strstr(answers->wrong, "answered twice: Data-In"));
}
END_TEST

START_TEST(an_answer_to_nothing_is_noticed)
{
	ask(5, 0);
	out(100);
	pdu(0x21, 0x80, 5 + ANSWERS_SLOTS, 0, statsn);
	ck_assert(!in(100));
	ck_assert_ptr_nonnull(strstr(answers->wrong, "an answer to nothing: SCSI Response"));
}
END_TEST

START_TEST(a_gap_in_the_numbers_is_noticed)
{
	ask(5, 0);
	ask(6, 0);
	out(100);
	pdu(0x21, 0x80, 5, 0, 0xffffffff);
	ck_assert(in(100));
	pdu(0x21, 0x80, 6, 0, 1);
	ck_assert(!in(100));
	ck_assert_str_eq(answers->wrong, "StatSN 00000001 where 00000000 comes next: an answer is "
					 "missing or doubled");
}
END_TEST

START_TEST(more_commands_than_can_be_remembered_are_not_judged)
{
	for (uint32_t itt = 0; itt <= ANSWERS_SLOTS; itt++) {
		ask(itt, 0);
		out(48);
	}
	for (uint32_t itt = 0; itt <= ANSWERS_SLOTS; itt++) {
		pdu(0x21, 0x80, itt, 0, statsn++);
		ck_assert(in(48));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("answers");
	TCase *tcase = tcase_create("answers");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, an_honest_session_is_fine_however_it_is_cut, 0,
			    4 * (int)ARRAY_LEN(steps));
	tcase_add_test(tcase, a_second_answer_is_noticed);
	tcase_add_test(tcase, data_after_the_status_are_noticed);
	tcase_add_test(tcase, an_answer_to_nothing_is_noticed);
	tcase_add_test(tcase, a_gap_in_the_numbers_is_noticed);
	tcase_add_test(tcase, more_commands_than_can_be_remembered_are_not_judged);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
