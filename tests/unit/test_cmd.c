/* SPDX-License-Identifier: MIT */
/* Command structures: the pool, who holds one, when its number goes back. */
#include "tests/fake/session_rig.h"

#define WINDOW 4u
#define ALL (WINDOW + ISCSI_RESERVE)

static struct iscsi_cmd *take(uint32_t itt, unsigned keep)
{
	struct iscsi_bhs bhs;

	iscsi_bhs_init(&bhs, ISCSI_SCSI_COMMAND, ISCSI_FINAL, itt);
	return iscsi_cmd_new(rig.session, &bhs, keep);
}

START_TEST(there_is_one_for_each_number_and_a_reserve_and_no_more)
{
	struct iscsi_cmd *cmds[ALL];
	unsigned i;

	rig_start(WINDOW);
	for (i = 0; i < WINDOW; i++)
		ck_assert_ptr_nonnull(cmds[i] = take(i, ISCSI_RESERVE));
	ck_assert_ptr_null(take(99, ISCSI_RESERVE));
	for (; i < ALL; i++) {
		ck_assert_ptr_null(take(99, ALL - i));
		ck_assert_ptr_nonnull(cmds[i] = take(i, ALL - i - 1));
	}
	ck_assert_ptr_null(take(99, 0));
	ck_assert_uint_eq(rig.session->cmd_used, ALL);
	for (i = 0; i < ALL; i++)
		iscsi_cmd_over(cmds[i]);
	ck_assert_uint_eq(rig.session->cmd_used, 0);
	ck_assert_ptr_nonnull(cmds[0] = take(1, ALL - 1));
	/* The one that is warm in the cache; of the others none was ever needed. */
	ck_assert_ptr_eq(cmds[0], cmds[ALL - 1]);
	iscsi_cmd_over(cmds[0]);
	rig_stop();
}
END_TEST

START_TEST(one_that_comes_and_goes_touches_no_other)
{
	unsigned i;

	rig_start(WINDOW);
	for (i = 0; i < 100; i++)
		iscsi_cmd_over(take(i, 0));
	ck_assert_uint_eq(rig.session->cmd_touched, 1);
	rig_stop();
}
END_TEST

/* Tags that fall into one bucket too. */
START_TEST(a_command_is_found_by_its_tag_until_it_is_over)
{
	static const uint32_t tags[] = { 0,       1,       ISCSI_HASH, 2 * ISCSI_HASH,
					 0x10000, 0x10001, 0xfffffffe };
	struct iscsi_cmd *cmds[ARRAY_LEN(tags)];
	unsigned i, k;

	rig_start(WINDOW);
	for (i = 0; i < ARRAY_LEN(tags); i++) {
		cmds[i] = take(tags[i], 0);
		ck_assert_ptr_null(iscsi_cmd_find(rig.session, tags[i]));
		iscsi_cmd_hash(cmds[i]);
	}
	for (i = 0; i < ARRAY_LEN(tags); i++) {
		for (k = 0; k < ARRAY_LEN(tags); k++)
			ck_assert_ptr_eq(iscsi_cmd_find(rig.session, tags[k]),
					 k < i ? NULL : cmds[k]);
		iscsi_cmd_over(cmds[i]);
	}
	rig_stop();
}
END_TEST

/* Each that may hold a structure, alone and all together. */
START_TEST(the_last_that_lets_go_frees_it)
{
	unsigned who, holds = (unsigned)_i + 1;
	struct iscsi_cmd *cmd;

	rig_start(WINDOW);
	cmd = take(1, 0);
	cmd->entered = holds & 1;
	cmd->in_tx = holds & 2 ? 2 : 0;
	cmd->receiving = holds & 4;
	iscsi_cmd_over(cmd);
	for (who = 1; who < 8; who <<= 1) {
		if (!(holds & who))
			continue;
		ck_assert_int_eq(cmd->state, ISCSI_CMD_OVER);
		ck_assert_uint_eq(rig.session->cmd_used, 1);
		if (who == 1)
			cmd->entered = false;
		if (who == 2) {
			cmd->in_tx--;
			iscsi_cmd_release(cmd);
			ck_assert_uint_eq(rig.session->cmd_used, 1);
			cmd->in_tx--;
		}
		if (who == 4)
			cmd->receiving = false;
		iscsi_cmd_release(cmd);
	}
	ck_assert_int_eq(cmd->state, ISCSI_CMD_FREE);
	ck_assert_uint_eq(rig.session->cmd_used, 0);
	rig_stop();
}
END_TEST

START_TEST(one_that_is_not_over_is_not_freed_by_letting_go)
{
	struct iscsi_cmd *cmd;

	rig_start(WINDOW);
	cmd = take(1, 0);
	iscsi_cmd_release(cmd);
	ck_assert_uint_eq(rig.session->cmd_used, 1);
	iscsi_cmd_answer(cmd);
	iscsi_cmd_answer(cmd); /* asked for twice is queued once */
	ck_assert_ptr_eq(TAILQ_FIRST(&rig.session->answers), cmd);
	ck_assert_ptr_null(TAILQ_NEXT(cmd, answer_link));
	iscsi_cmd_over(cmd);
	ck_assert(TAILQ_EMPTY(&rig.session->answers));
	ck_assert_uint_eq(rig.session->cmd_used, 0);
	rig_stop();
}
END_TEST

START_TEST(a_number_goes_back_once_with_its_answer_or_without)
{
	struct iscsi_window *window;
	struct iscsi_cmd *cmd;
	bool answered = _i;
	uint32_t max;

	rig_start(WINDOW);
	window = &rig.session->window;
	max = iscsi_window_max(window);
	cmd = take(1, 0);
	iscsi_window_advance(window);
	cmd->numbered = true;
	ck_assert_uint_eq(iscsi_window_max(window), max);
	if (answered) {
		iscsi_cmd_answered(cmd);
		ck_assert_uint_eq(iscsi_window_max(window), max + 1);
		iscsi_cmd_answered(cmd);
	}
	iscsi_cmd_over(cmd);
	ck_assert_uint_eq(iscsi_window_max(window), max + 1);
	ck_assert_uint_eq(window->outstanding, 0);
	rig_stop();
}
END_TEST

/* An initiator that may send nothing waits for a PDU that lets it: nobody else sends one. */
START_TEST(a_closed_window_that_opens_without_an_answer_is_told)
{
	struct iscsi_cmd *cmds[WINDOW];
	struct iscsi_window *window;
	bool closed = _i;
	unsigned i;

	rig_start(WINDOW);
	window = &rig.session->window;
	for (i = 0; i < WINDOW; i++) {
		cmds[i] = take(i, 0);
		iscsi_window_advance(window);
		cmds[i]->numbered = true;
	}
	window->told_max = window->exp - (closed ? 1 : 0);
	iscsi_cmd_over(cmds[0]);
	ck_assert_int_eq(rig.session->want_window, closed);
	rig.session->want_window = false;
	for (i = 1; i < WINDOW; i++)
		iscsi_cmd_over(cmds[i]);
	rig_stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cmd");
	TCase *tc = tcase_create("cmd");

	tcase_add_test(tc, there_is_one_for_each_number_and_a_reserve_and_no_more);
	tcase_add_test(tc, one_that_comes_and_goes_touches_no_other);
	tcase_add_test(tc, a_command_is_found_by_its_tag_until_it_is_over);
	tcase_add_loop_test(tc, the_last_that_lets_go_frees_it, 0, 7);
	tcase_add_test(tc, one_that_is_not_over_is_not_freed_by_letting_go);
	tcase_add_loop_test(tc, a_number_goes_back_once_with_its_answer_or_without, 0, 2);
	tcase_add_loop_test(tc, a_closed_window_that_opens_without_an_answer_is_told, 0, 2);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
