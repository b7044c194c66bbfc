/* SPDX-License-Identifier: MIT */
/* Who gets data buffers: shares of sessions and logical units, turns, and no starving. */
#include <check.h>
#include <stdlib.h>

#include "target/iscsi/iscsi_int.h"
#include "tests/fake/fake_env.h"

#define UNITS 64u
#define COMMANDS 128

/* Logical units; only their addresses matter. */
static char lu_bytes[3][256];
#define LU(n) ((struct scsi_lu *)(void *)lu_bytes[n])

static struct env *env;
static struct iscsi_server server;
static struct iscsi_session sessions[8];
static struct iscsi_cmd cmds[COMMANDS];
static unsigned granted[COMMANDS], granted_count;

/* The real one goes on to Data-Out or to the device server. */
void iscsi_command_granted(struct iscsi_cmd *cmd)
{
	granted[granted_count++] = (unsigned)(cmd - cmds);
}

static void setup(void)
{
	env = fake_env_new(1);
	server = (struct iscsi_server){ .env = env, .pool = buf_pool_new(UNITS * BUF_UNIT) };
	iscsi_admit_init(&server);
	for (unsigned i = 0; i < ARRAY_LEN(sessions); i++) {
		sessions[i] = (struct iscsi_session){ .server = &server };
		TAILQ_INIT(&sessions[i].waiting);
	}
	memset(cmds, 0, sizeof(cmds));
	granted_count = 0;
}

static void teardown(void)
{
	for (unsigned i = 0; i < COMMANDS; i++) {
		if (cmds[i].session)
			iscsi_admit_cancel(&cmds[i]);
		cmds[i].state = ISCSI_CMD_OVER;
	}
	for (unsigned i = 0; i < COMMANDS; i++)
		if (cmds[i].session)
			iscsi_admit_give(&cmds[i]);
	fake_env_run(env);
	for (unsigned i = 0; i < ARRAY_LEN(sessions); i++)
		ck_assert_uint_eq(sessions[i].units, 0);
	ck_assert_uint_eq(buf_pool_free_units(server.pool), UNITS);
	ck_assert(TAILQ_EMPTY(&server.waiting));
	iscsi_admit_fini(&server);
	buf_pool_free(server.pool);
	fake_env_free(env);
}

static bool ask(unsigned n, unsigned session, unsigned lu, unsigned units)
{
	cmds[n].session = &sessions[session];
	cmds[n].task.lu = LU(lu);
	return iscsi_admit(&cmds[n], units * BUF_UNIT);
}

START_TEST(a_session_holds_at_most_a_quarter)
{
	unsigned n = 0;

	while (ask(n, 0, 0, 1))
		n++;
	ck_assert_uint_eq(n, UNITS / 4);
	ck_assert_uint_eq(sessions[0].units, UNITS / 4);
	/* Another session's next is not behind it. */
	ck_assert(!ask(n + 1, 1, 1, 1));
	fake_env_run(env);
	ck_assert_uint_eq(granted_count, 1);
	ck_assert_uint_eq(granted[0], n + 1);
	iscsi_admit_give(&cmds[0]);
	fake_env_run(env);
	ck_assert_uint_eq(granted_count, 2);
	ck_assert_uint_eq(granted[1], n);
}
END_TEST

START_TEST(a_logical_unit_holds_at_most_half)
{
	unsigned n = 0;

	for (unsigned session = 0; session < 4; session++)
		for (unsigned i = 0; i < UNITS / 4; i++)
			ask(n++, session, 0, 1);
	fake_env_run(env);
	ck_assert_uint_eq(buf_pool_free_units(server.pool), UNITS / 2);
	/* The other logical unit is served though everything waits for the first. */
	ask(n, 5, 1, 4);
	fake_env_run(env);
	ck_assert_uint_eq(granted[granted_count - 1], n);
	ck_assert_uint_eq(buf_pool_free_units(server.pool), UNITS / 2 - 4);
}
END_TEST

START_TEST(the_last_eighth_is_for_sessions_that_hold_nothing)
{
	for (unsigned i = 0; i < 4; i++)
		ck_assert(ask(i, i, i % 2, UNITS / 4 - UNITS / 32));
	ck_assert_uint_eq(buf_pool_free_units(server.pool), UNITS / 8);
	ck_assert(!ask(10, 0, 0, 1));
	ck_assert(!ask(11, 5, 1, 2));
	fake_env_run(env);
	ck_assert_uint_eq(granted_count, 1);
	ck_assert_uint_eq(granted[0], 11);
	/* With room beyond the eighth the others go on. */
	iscsi_admit_give(&cmds[1]);
	fake_env_run(env);
	ck_assert_uint_eq(granted_count, 2);
	ck_assert_uint_eq(granted[1], 10);
}
END_TEST

START_TEST(one_command_may_be_larger_than_the_share)
{
	ck_assert(ask(0, 0, 0, UNITS / 2 + 8));
	ck_assert(!ask(1, 0, 1, 1));
	ck_assert(!ask(2, 1, 0, 1));
	fake_env_run(env);
	ck_assert_uint_eq(granted_count, 0);
	iscsi_admit_give(&cmds[0]);
	fake_env_run(env);
	ck_assert_uint_eq(granted_count, 2);
}
END_TEST

START_TEST(a_large_command_is_not_starved_by_small_ones)
{
	/* All but two units are out, over four sessions and two logical units. */
	for (unsigned i = 0; i < 4; i++)
		ck_assert(ask(i, i, i % 2, i ? UNITS / 4 : UNITS / 4 - 2));
	ck_assert(!ask(10, 4, 0, 8));
	ck_assert(!ask(11, 5, 1, 1));
	ck_assert(!ask(12, 6, 1, 1));
	fake_env_run(env);
	/* It may not pass by its logical unit's share; once it may, the others wait behind it. */
	iscsi_admit_give(&cmds[0]);
	fake_env_run(env);
	ck_assert_uint_ge(granted_count, 1);
	for (unsigned i = 0; i < granted_count; i++)
		if (granted[i] == 10)
			return;
	ck_abort_msg("8 units are free and the one that waits for them has none");
}
END_TEST

START_TEST(sessions_take_turns)
{
	ck_assert(ask(0, 7, 0, 16));
	ck_assert(ask(1, 6, 0, 16));
	ck_assert(ask(2, 5, 1, 16));
	ck_assert(ask(3, 4, 1, 16));
	/* Session 0 came first and with many, session 1 later with two. */
	for (unsigned i = 0; i < 6; i++)
		ck_assert(!ask(10 + i, 0, 0, 1));
	for (unsigned i = 0; i < 2; i++)
		ck_assert(!ask(20 + i, 1, 0, 1));
	fake_env_run(env);
	ck_assert_uint_eq(granted_count, 0);
	iscsi_admit_give(&cmds[0]);
	fake_env_run(env);
	ck_assert_uint_eq(granted_count, 8);
	ck_assert_uint_eq(granted[0], 10);
	ck_assert_uint_eq(granted[1], 20);
	ck_assert_uint_eq(granted[2], 11);
	ck_assert_uint_eq(granted[3], 21);
	ck_assert_uint_eq(granted[7], 15);
}
END_TEST

START_TEST(what_is_cancelled_is_never_granted)
{
	for (unsigned i = 0; i < 4; i++)
		ck_assert(ask(i, i, i % 2, 16));
	ck_assert(!ask(10, 4, 0, 1));
	ck_assert(!ask(11, 4, 0, 1));
	iscsi_admit_cancel(&cmds[10]);
	cmds[10].state = ISCSI_CMD_OVER;
	iscsi_admit_give(&cmds[0]);
	fake_env_run(env);
	ck_assert_uint_eq(granted_count, 1);
	ck_assert_uint_eq(granted[0], 11);
}
END_TEST

START_TEST(who_waited_behind_a_cancelled_one_goes_on)
{
	/* Two units are free, the others out for long; a large command is first in line. */
	ck_assert(ask(0, 0, 1, 40));
	ck_assert(ask(1, 1, 0, 16));
	ck_assert(ask(2, 2, 0, 6));
	ck_assert(!ask(10, 4, 0, 8));
	ck_assert(!ask(11, 5, 0, 1));
	fake_env_run(env);
	ck_assert_uint_eq(granted_count, 0);
	iscsi_admit_cancel(&cmds[10]);
	cmds[10].state = ISCSI_CMD_OVER;
	fake_env_run(env);
	ck_assert_uint_eq(granted_count, 1);
	ck_assert_uint_eq(granted[0], 11);
}
END_TEST

/* One unit stands in the struct, many in a table of their own: LIST has them all the same. */
START_TEST(detached_buffers_count_for_nobody_until_they_are_returned)
{
	unsigned units = _i ? 30 : 2;
	struct buf_list list;

	ck_assert(ask(0, 0, 0, units));
	buf_write(&cmds[0].task.data, BUF_UNIT - 2, "abcd", 4);
	iscsi_admit_detach(&cmds[0], &list);
	ck_assert_uint_eq(sessions[0].units, 0);
	ck_assert_uint_eq(cmds[0].units, 0);
	ck_assert_uint_eq(cmds[0].task.data.length, 0);
	ck_assert_uint_eq(list.length, units * BUF_UNIT);
	ck_assert_mem_eq(list.iov[1].iov_base, "cd", 2);
	ck_assert(ask(1, 1, 0, 31));
	ck_assert(!ask(2, 2, 1, 31));
	fake_env_run(env);
	ck_assert_uint_eq(granted_count, 0);
	iscsi_admit_return(&server, &list);
	fake_env_run(env);
	ck_assert_uint_eq(granted_count, 1);
	ck_assert_uint_eq(granted[0], 2);
}
END_TEST

START_TEST(nothing_needs_nothing_and_express_does_not_queue)
{
	for (unsigned i = 0; i < 16; i++)
		ck_assert(ask(i, 0, 0, 1));
	ck_assert(!ask(20, 0, 0, 1));
	ck_assert(ask(21, 0, 0, 0));
	ck_assert_uint_eq(cmds[21].units, 0);
	cmds[22].task.express = true;
	ck_assert(ask(22, 1, 1, 1));
	ck_assert_uint_eq(cmds[22].units, 1);
}
END_TEST

/* 256 units, of which bulk I/O leaves two. */
START_TEST(express_gets_in_where_bulk_io_has_all_it_may_and_has_a_share_too)
{
	struct buf_pool *small = server.pool;
	unsigned n, e = 0;

	server.pool = buf_pool_new(256 * BUF_UNIT);
	for (n = 0; n < 4; n++)
		ck_assert(ask(n, n, n % 2, 60)); /* and a table each */
	ck_assert(!ask(4, 4, 2, 11));
	iscsi_admit_cancel(&cmds[4]);
	cmds[4].state = ISCSI_CMD_RECEIVED;
	ck_assert(ask(4, 4, 2, 10));
	ck_assert(!ask(5, 5, 2, 1));
	ck_assert_uint_eq(buf_pool_free_units(server.pool), 2);
	for (n = 10; n < 30; n++)
		cmds[n].task.express = true;
	ck_assert(ask(10, 0, 0, 2));
	ck_assert_uint_eq(buf_pool_free_units(server.pool), 0);
	iscsi_admit_give(&cmds[0]);
	/* A session has an eighth of what it has of bulk I/O. */
	for (n = 11; n < 30; n++)
		e += ask(n, 0, 0, 1);
	ck_assert_uint_eq(e, 256 / 32 - 2);
	for (n = 0; n < COMMANDS; n++)
		if (cmds[n].session)
			iscsi_admit_cancel(&cmds[n]);
	for (n = 0; n < COMMANDS; n++) {
		cmds[n].state = ISCSI_CMD_OVER;
		if (cmds[n].session)
			iscsi_admit_give(&cmds[n]);
	}
	fake_env_run(env);
	ck_assert_uint_eq(buf_pool_free_units(server.pool), 256);
	buf_pool_free(server.pool);
	server.pool = small;
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("admission");
	TCase *tcase = tcase_create("admission");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_session_holds_at_most_a_quarter);
	tcase_add_test(tcase, a_logical_unit_holds_at_most_half);
	tcase_add_test(tcase, the_last_eighth_is_for_sessions_that_hold_nothing);
	tcase_add_test(tcase, one_command_may_be_larger_than_the_share);
	tcase_add_test(tcase, a_large_command_is_not_starved_by_small_ones);
	tcase_add_test(tcase, sessions_take_turns);
	tcase_add_test(tcase, what_is_cancelled_is_never_granted);
	tcase_add_test(tcase, who_waited_behind_a_cancelled_one_goes_on);
	tcase_add_loop_test(tcase, detached_buffers_count_for_nobody_until_they_are_returned, 0, 2);
	tcase_add_test(tcase, nothing_needs_nothing_and_express_does_not_queue);
	tcase_add_test(tcase, express_gets_in_where_bulk_io_has_all_it_may_and_has_a_share_too);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
