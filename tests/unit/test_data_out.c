/* SPDX-License-Identifier: MIT */
/*
 * The plan of a WRITE's data: every combination of rules, and every way to break them.
 * timeout: 600
 */
#include <check.h>
#include <stdlib.h>

#include "target/iscsi/data_out.h"

static const uint64_t totals[] = { 1, 512, 4096, 65536, 65537, 262144, 1048576 };
static const uint32_t bursts[] = { 512, 4096, 65536, 262144 };
static const uint32_t windows[] = { 1, 2, 16, 100 };
static const uint32_t segments[] = { 512, 4095, 8192, 262144 };

/* A polite initiator: what it sends for a write of TOTAL, and what it was asked for. */
struct polite {
	struct iscsi_data_out out;
	uint64_t sent, asked, unsolicited;
	unsigned r2ts, most_outstanding;
};

static void send_sequence(struct polite *p, bool solicited, uint32_t r2t_sn, uint64_t end,
			  uint32_t segment)
{
	uint32_t datasn = 0;

	while (p->sent < end) {
		struct iscsi_data_pdu pdu = { .solicited = solicited, .r2t_sn = r2t_sn };

		pdu.datasn = datasn++;
		pdu.offset = (uint32_t)p->sent;
		pdu.length = (uint32_t)min_u64(segment, end - p->sent);
		pdu.final = p->sent + pdu.length == end;
		ck_assert(iscsi_data_out_owed(&p->out));
		ck_assert(iscsi_data_out_pdu(&p->out, &pdu));
		p->sent += pdu.length;
	}
}

static void write_politely(struct polite *p, const struct iscsi_data_rules *rules, uint64_t total,
			   uint64_t edtl, uint32_t segment)
{
	uint64_t first = min_u64(rules->first_burst, edtl);
	uint64_t immediate = rules->immediate_data ? min_u64(first, segment) : 0;
	bool more = !rules->initial_r2t && first > immediate;
	struct iscsi_r2t ring[ISCSI_R2T_MAX], r2t;
	unsigned head = 0, count = 0;

	*p = (struct polite){ .sent = immediate };
	iscsi_data_out_start(&p->out, rules, total, edtl, (uint32_t)immediate, !more);
	if (more)
		send_sequence(p, false, 0, first, segment);
	p->unsolicited = p->sent;
	while (!iscsi_data_out_complete(&p->out)) {
		while (iscsi_data_out_ask(&p->out, &r2t)) {
			ck_assert_uint_eq(r2t.sn, p->r2ts++);
			ck_assert_uint_eq(r2t.offset, p->unsolicited + p->asked);
			ck_assert_uint_ge(r2t.length, 1);
			ck_assert_uint_le(r2t.length, rules->max_burst);
			p->asked += r2t.length;
			ring[(head + count++) % ISCSI_R2T_MAX] = r2t;
		}
		if (count > p->most_outstanding)
			p->most_outstanding = count;
		ck_assert_uint_ge(count, 1);
		r2t = ring[head];
		head = (head + 1) % ISCSI_R2T_MAX;
		count--;
		send_sequence(p, true, r2t.sn, r2t.offset + r2t.length, segment);
	}
}

START_TEST(every_combination_of_rules_brings_all_data)
{
	uint64_t total = totals[_i];
	struct polite p;

	for (unsigned bits = 0; bits < 4; bits++)
		for (unsigned f = 0; f < ARRAY_LEN(bursts); f++)
			for (unsigned m = f; m < ARRAY_LEN(bursts); m++)
				for (unsigned k = 0; k < ARRAY_LEN(windows) * ARRAY_LEN(segments);
				     k++) {
					struct iscsi_data_rules rules = {
						.initial_r2t = bits & 1,
						.immediate_data = bits & 2,
						.first_burst = bursts[f],
						.max_burst = bursts[m],
						.max_r2t = windows[k / ARRAY_LEN(segments)],
					};
					uint64_t left, wait;

					write_politely(&p, &rules, total, total,
						       segments[k % ARRAY_LEN(segments)]);
					ck_assert_int_eq(p.out.error, ISCSI_DATA_OK);
					ck_assert_uint_eq(p.sent, total);
					ck_assert_uint_eq(p.asked, total - p.unsolicited);
					left = total - p.unsolicited;
					wait = (left + rules.max_burst - 1) / rules.max_burst;
					ck_assert_uint_eq(p.r2ts, wait);
					ck_assert_uint_eq(p.most_outstanding,
							  min_u64(wait, min_u64(rules.max_r2t,
										ISCSI_R2T_MAX)));
				}
}
END_TEST

START_TEST(no_more_is_asked_for_than_the_command_takes)
{
	struct iscsi_data_rules rules = { .first_burst = 4096, .max_burst = 4096, .max_r2t = 1 };
	struct polite p;

	rules.initial_r2t = true;
	write_politely(&p, &rules, 6000, 65536, 8192);
	ck_assert_uint_eq(p.asked, 6000);
	ck_assert_uint_eq(p.r2ts, 2);
	/* Unsolicited data may run past what the command takes: it is the initiator's length. */
	rules.initial_r2t = false;
	write_politely(&p, &rules, 512, 65536, 8192);
	ck_assert_uint_eq(p.sent, 4096);
	ck_assert_uint_eq(p.asked, 0);
	ck_assert_int_eq(p.out.error, ISCSI_DATA_OK);
}
END_TEST

START_TEST(an_unsolicited_sequence_may_end_early)
{
	struct iscsi_data_rules rules = { .first_burst = 8192, .max_burst = 65536, .max_r2t = 1 };
	struct iscsi_data_pdu pdu = { .length = 512, .final = true };
	struct iscsi_data_out out;
	struct iscsi_r2t r2t;

	iscsi_data_out_start(&out, &rules, 16384, 16384, 0, false);
	ck_assert(!iscsi_data_out_ask(&out, &r2t));
	ck_assert(iscsi_data_out_pdu(&out, &pdu));
	ck_assert(iscsi_data_out_ask(&out, &r2t));
	ck_assert_uint_eq(r2t.offset, 512);
	ck_assert_uint_eq(r2t.length, 16384 - 512);
}
END_TEST

/* One wrong PDU into a WRITE of 16384 whose first R2T (0 to 8192) is out. */
static const struct {
	struct iscsi_data_pdu pdu;
	enum iscsi_data_error error;
} wrong[] = {
	{ { true, 0, 0, 0, 8192, true }, ISCSI_DATA_OK },
	{ { true, 0, 0, 0, 4096, false }, ISCSI_DATA_OK },
	{ { true, 0, 1, 0, 4096, false }, ISCSI_DATA_SEQUENCE },
	{ { true, 1, 0, 0, 4096, false }, ISCSI_DATA_SEQUENCE },
	{ { true, 7, 0, 0, 4096, true }, ISCSI_DATA_SEQUENCE },
	{ { true, 0, 0, 512, 4096, false }, ISCSI_DATA_OFFSET },
	{ { true, 0, 0, 0xffffffff, 4096, false }, ISCSI_DATA_OFFSET },
	{ { true, 0, 0, 0, 8193, true }, ISCSI_DATA_AMOUNT },
	{ { true, 0, 0, 0, 4096, true }, ISCSI_DATA_AMOUNT },
	{ { true, 0, 0, 0, 8192, false }, ISCSI_DATA_AMOUNT },
	{ { false, 0, 0, 0, 4096, true }, ISCSI_DATA_UNSOLICITED },
	{ { false, 0, 0, 0, 0, false }, ISCSI_DATA_UNSOLICITED },
};

START_TEST(a_wrong_pdu_ends_the_command_with_its_reason)
{
	struct iscsi_data_rules rules = {
		.initial_r2t = true, .first_burst = 8192, .max_burst = 8192, .max_r2t = 1
	};
	struct iscsi_data_pdu last = { true, 0, 1, 4096, 4096, true };
	bool good = wrong[_i].error == ISCSI_DATA_OK;
	struct iscsi_data_out out;
	struct iscsi_r2t r2t;

	iscsi_data_out_start(&out, &rules, 16384, 16384, 0, true);
	ck_assert(iscsi_data_out_ask(&out, &r2t));
	ck_assert_int_eq(iscsi_data_out_pdu(&out, &wrong[_i].pdu), good);
	ck_assert_int_eq(out.error, wrong[_i].error);
	ck_assert(!iscsi_data_out_complete(&out) || !good);
	if (good)
		return;
	/* Nothing more is asked for; the F bit ends it, and the first reason stays. */
	ck_assert(!iscsi_data_out_ask(&out, &r2t));
	ck_assert_int_eq(iscsi_data_out_complete(&out), wrong[_i].pdu.final);
	ck_assert(!iscsi_data_out_pdu(&out, &last));
	ck_assert(iscsi_data_out_complete(&out));
	iscsi_data_out_fail(&out, ISCSI_DATA_DIGEST);
	ck_assert_int_eq(out.error, wrong[_i].error);
}
END_TEST

static const struct {
	bool initial_r2t, immediate_data;
	uint32_t immediate;
	bool final;
	enum iscsi_data_error error;
} starts[] = {
	{ true, false, 0, true, ISCSI_DATA_OK },
	{ true, false, 1, true, ISCSI_DATA_UNSOLICITED },
	{ true, false, 0, false, ISCSI_DATA_UNSOLICITED },
	{ true, true, 4096, true, ISCSI_DATA_OK },
	{ true, true, 4096, false, ISCSI_DATA_UNSOLICITED },
	{ true, true, 4097, true, ISCSI_DATA_AMOUNT },
	{ false, false, 0, false, ISCSI_DATA_OK },
	{ false, false, 512, false, ISCSI_DATA_UNSOLICITED },
	{ false, true, 512, false, ISCSI_DATA_OK },
	{ false, true, 8192, false, ISCSI_DATA_AMOUNT },
};

START_TEST(what_comes_with_the_command_obeys_the_rules)
{
	struct iscsi_data_rules rules = {
		.initial_r2t = starts[_i].initial_r2t,
		.immediate_data = starts[_i].immediate_data,
		.first_burst = 4096,
		.max_burst = 65536,
		.max_r2t = 1,
	};
	struct iscsi_data_out out;

	iscsi_data_out_start(&out, &rules, 65536, 65536, starts[_i].immediate, starts[_i].final);
	ck_assert_int_eq(out.error, starts[_i].error);
	/* A sequence that was announced is waited for even so. */
	ck_assert_int_eq(iscsi_data_out_owed(&out), !starts[_i].final);
	ck_assert_int_eq(iscsi_data_out_complete(&out),
			 starts[_i].final && starts[_i].error != ISCSI_DATA_OK);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("data_out");
	TCase *tcase = tcase_create("data_out");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, every_combination_of_rules_brings_all_data, 0,
			    (int)ARRAY_LEN(totals));
	tcase_add_test(tcase, no_more_is_asked_for_than_the_command_takes);
	tcase_add_test(tcase, an_unsolicited_sequence_may_end_early);
	tcase_add_loop_test(tcase, a_wrong_pdu_ends_the_command_with_its_reason, 0,
			    (int)ARRAY_LEN(wrong));
	tcase_add_loop_test(tcase, what_comes_with_the_command_obeys_the_rules, 0,
			    (int)ARRAY_LEN(starts));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
