/* SPDX-License-Identifier: MIT */
/* Sessions: who is the same as whom, numbers, room for commands, how they end. */
#include "tests/fake/session_rig.h"

#define HOST "iqn.1994-05.com.host:1"

static struct iscsi_conn conns[8];
static struct iscsi_session *sessions[8];
static unsigned up, down;

static void count_line(enum log_level level, const char *line)
{
	(void)level;
	up += strstr(line, "session-up") != NULL;
	down += strstr(line, "session-down") != NULL;
}

static void start(unsigned window)
{
	rig_start(window);
	log_redirect(count_line);
	up = down = 0;
}

/* Session N, of its own connection; TARGET NULL: for discovery. */
static struct iscsi_session *make(unsigned n, struct iscsi_target *target, uint8_t isid)
{
	static struct iscsi_login login;

	conns[n] = (struct iscsi_conn){ .server = &rig.server, .portal_group = 1 };
	strcpy(login.keys.initiator_name, HOST);
	login.isid[5] = isid;
	login.cmd_sn = 1;
	sessions[n] = iscsi_session_new(&conns[n], target, &login);
	ck_assert_ptr_nonnull(sessions[n]);
	return sessions[n];
}

static void end(unsigned n)
{
	iscsi_session_end(sessions[n], "test");
	fake_env_run(rig.env);
}

static struct iscsi_session *find(const char *initiator, uint8_t isid,
				  const struct iscsi_target *target, uint16_t group)
{
	uint8_t id[6] = { 0, 0, 0, 0, 0, isid };

	return iscsi_session_find(&rig.server, initiator, id, target, group);
}

START_TEST(a_session_is_the_same_only_if_all_four_are)
{
	struct iscsi_target other = { .server = &rig.server };

	start(4);
	make(0, &rig.target, 9);
	ck_assert_ptr_eq(find(HOST, 9, &rig.target, 1), sessions[0]);
	ck_assert_ptr_null(find(HOST "1", 9, &rig.target, 1));
	ck_assert_ptr_null(find("iqn.1994-05.com.host:", 9, &rig.target, 1));
	ck_assert_ptr_null(find(HOST, 8, &rig.target, 1));
	ck_assert_ptr_null(find(HOST, 9, &other, 1));
	ck_assert_ptr_null(find(HOST, 9, &rig.target, 2));
	end(0);
	ck_assert_ptr_null(find(HOST, 9, &rig.target, 1));
	make(0, NULL, 9); /* discovery sessions are nobody's twins */
	ck_assert_ptr_null(find(HOST, 9, NULL, 1));
	end(0);
	rig_stop();
}
END_TEST

START_TEST(a_tsih_is_never_0_and_never_one_in_use)
{
	unsigned i, k;

	start(4);
	rig.session->tsih = 3;
	rig.server.next_tsih = 0xfffd;
	for (i = 0; i < 6; i++)
		make(i, &rig.target, (uint8_t)i);
	for (i = 0; i < 6; i++) {
		static const uint16_t want[] = { 0xfffe, 0xffff, 1, 2, 4, 5 };

		ck_assert_uint_eq(sessions[i]->tsih, want[i]);
		for (k = 0; k < i; k++)
			ck_assert_uint_ne(sessions[k]->id, sessions[i]->id);
	}
	for (i = 0; i < 6; i++)
		end(i);
	rig_stop();
}
END_TEST

/* All sessions together have ISCSI_COMMANDS_MAX, and the last to come still gets something. */
START_TEST(room_for_commands_shrinks_as_sessions_come)
{
	static const struct {
		uint64_t taken;
		unsigned window;
	} rows[] = { { 0, 64 },
		     { ISCSI_COMMANDS_MAX - 8 * 64, 64 },
		     { ISCSI_COMMANDS_MAX - 8 * 63, 63 },
		     { ISCSI_COMMANDS_MAX - 8 * 5, 5 },
		     { ISCSI_COMMANDS_MAX - 8, ISCSI_WINDOW_MIN },
		     { ISCSI_COMMANDS_MAX, ISCSI_WINDOW_MIN },
		     { ISCSI_COMMANDS_MAX + 1000, ISCSI_WINDOW_MIN } };
	uint64_t before;
	unsigned i;

	start(64);
	before = rig.server.command_count;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		rig.server.command_count = rows[i].taken;
		make(0, &rig.target, 1);
		ck_assert_uint_eq(sessions[0]->window.size, rows[i].window);
		ck_assert_uint_eq(sessions[0]->cmd_count, rows[i].window + ISCSI_RESERVE);
		ck_assert_uint_eq(rig.server.command_count, rows[i].taken + sessions[0]->cmd_count);
		end(0);
		ck_assert_uint_eq(rig.server.command_count, rows[i].taken);
	}
	rig.server.command_count = before;
	make(0, NULL, 1);
	ck_assert_uint_eq(sessions[0]->window.size, ISCSI_WINDOW_MIN);
	end(0);
	rig_stop();
}
END_TEST

START_TEST(a_session_ends_once_and_says_so_once)
{
	bool normal = _i;

	start(4);
	make(0, normal ? &rig.target : NULL, 1);
	ck_assert_uint_eq(rig.server.live_count, 2);
	ck_assert_uint_eq(up, 0);
	iscsi_session_up(sessions[0]);
	ck_assert_uint_eq(up, normal);
	iscsi_session_end(sessions[0], "once");
	iscsi_session_end(sessions[0], "again");
	ck_assert_uint_eq(down, normal);
	ck_assert_uint_eq(rig.server.live_count, 1);
	ck_assert_uint_eq(rig.server.session_count, 2); /* until it is freed */
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig.server.session_count, 1);
	ck_assert_uint_eq(rig.target.sessions, 1);
	rig_stop();
}
END_TEST

START_TEST(one_that_never_came_up_says_nothing)
{
	start(4);
	make(0, &rig.target, 1);
	end(0);
	ck_assert_uint_eq(up + down, 0);
	rig_stop();
}
END_TEST

/* Its bytes are in a socket's queue; meanwhile its initiator may be back. */
START_TEST(an_ending_session_waits_for_its_commands_and_is_in_nobody_s_way)
{
	struct iscsi_session *old;
	struct iscsi_cmd *cmd;
	struct iscsi_bhs bhs;

	start(4);
	old = make(0, &rig.target, 1);
	iscsi_bhs_init(&bhs, ISCSI_SCSI_COMMAND, ISCSI_FINAL, 1);
	cmd = iscsi_cmd_new(old, &bhs, 0);
	cmd->in_tx = 1;
	end(0);
	ck_assert_uint_eq(rig.server.session_count, 2);
	ck_assert_int_eq(old->state, ISCSI_SESSION_ENDING);
	ck_assert_ptr_null(find(HOST, 1, &rig.target, 1));
	make(1, &rig.target, 1);
	ck_assert_ptr_eq(find(HOST, 1, &rig.target, 1), sessions[1]);
	ck_assert_uint_ne(sessions[1]->tsih, old->tsih);
	cmd->in_tx = 0;
	iscsi_cmd_release(cmd);
	ck_assert_uint_eq(rig.server.session_count, 3); /* not from inside its own command */
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig.server.session_count, 2);
	ck_assert_ptr_eq(find(HOST, 1, &rig.target, 1), sessions[1]);
	end(1);
	rig_stop();
}
END_TEST

START_TEST(an_isid_is_twelve_digits)
{
	static const uint8_t isid[] = { 0x40, 0x00, 0x01, 0x37, 0xab, 0x0c };
	char text[13];

	iscsi_isid_text(isid, text);
	ck_assert_str_eq(text, "40000137ab0c");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("session");
	TCase *tc = tcase_create("session");

	tcase_add_test(tc, a_session_is_the_same_only_if_all_four_are);
	tcase_add_test(tc, a_tsih_is_never_0_and_never_one_in_use);
	tcase_add_test(tc, room_for_commands_shrinks_as_sessions_come);
	tcase_add_loop_test(tc, a_session_ends_once_and_says_so_once, 0, 2);
	tcase_add_test(tc, one_that_never_came_up_says_nothing);
	tcase_add_test(tc, an_ending_session_waits_for_its_commands_and_is_in_nobody_s_way);
	tcase_add_test(tc, an_isid_is_twelve_digits);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
