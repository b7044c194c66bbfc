/* SPDX-License-Identifier: MIT */
/* iSCSI targets: names in order, who may enter, what a change and a removal do to sessions. */
#include "tests/fake/session_rig.h"

#define BASE "iqn.2026-11.org.yoke:"
#define HOST "iqn.1994-05.com.host:"

static const char *const left[] = { "left" }, *const both[] = { "left", "right" };
static const char *const anyone[] = { "*" }, *const one[] = { HOST "1" };
static const char *const others[] = { HOST "2", "iqn.1998-01.com.vmware:*" };

static struct iscsi_target_conf conf(const char *name)
{
	return (struct iscsi_target_conf){
		.name = name,
		.portals = left,
		.portal_count = 1,
		.allow = anyone,
		.allow_count = 1,
		.nop_timeout_ns = NS_PER_S,
		.data_out_timeout_ns = 60 * NS_PER_S,
	};
}

static int add(const char *name)
{
	struct iscsi_target_conf c = conf(name);

	return iscsi_target_add(&rig.server, &c);
}

static struct iscsi_target *find(const char *name)
{
	return iscsi_target_find(&rig.server, name);
}

static void clear(void)
{
	struct iscsi_target *target;

	while ((target = TAILQ_FIRST(&rig.server.targets)))
		iscsi_target_free(target);
}

/* The rig's session goes into TARGET, as HOST "1" over the portal "left". */
static void enter(struct iscsi_target *target)
{
	static struct iscsi_login login;

	iscsi_conn_close(&rig.conn, "goes elsewhere");
	fake_env_run(rig.env);
	rig.closed = NULL;
	rig.conn.state = ISCSI_CONN_FULL;
	strcpy(rig.conn.portal_name, "left");
	login.cmd_sn = 1;
	strcpy(login.keys.initiator_name, HOST "1");
	rig.session = rig.conn.session = iscsi_session_new(&rig.conn, target, &login);
	ck_assert_ptr_nonnull(rig.session);
	iscsi_session_up(rig.session);
}

static void removed(void *arg)
{
	++*(unsigned *)arg;
}

START_TEST(targets_are_in_the_order_of_their_names)
{
	static const char *const names[] = { BASE "m", BASE "a", BASE "z", BASE "mm", BASE "L" };
	static const char *const order[] = { BASE "a", BASE "l", BASE "m", BASE "mm", BASE "z" };
	const struct iscsi_target *target;
	unsigned i = 0;

	rig_start(4);
	for (i = 0; i < ARRAY_LEN(names); i++)
		ck_assert_int_eq(add(names[i]), 0);
	i = 0;
	TAILQ_FOREACH(target, &rig.server.targets, link)
		ck_assert_str_eq(target->name, order[i++]);
	ck_assert_uint_eq(i, ARRAY_LEN(order));
	clear();
	rig_stop();
}
END_TEST

START_TEST(a_name_is_there_once_and_is_a_name)
{
	rig_start(4);
	ck_assert_int_eq(add(BASE "disk"), 0);
	ck_assert_int_eq(add(BASE "disk"), -EEXIST);
	ck_assert_int_eq(add(BASE "DISK"), -EEXIST);
	ck_assert_int_eq(add("disk"), -EINVAL);
	ck_assert_int_eq(add(BASE "a b"), -EINVAL);
	ck_assert_int_eq(add(""), -EINVAL);
	ck_assert_ptr_nonnull(find(BASE "disk"));
	ck_assert_ptr_null(find(BASE "dis"));
	ck_assert_ptr_eq(TAILQ_NEXT(find(BASE "disk"), link), NULL);
	clear();
	rig_stop();
}
END_TEST

START_TEST(who_may_enter_is_portal_and_name_together)
{
	struct iscsi_target_conf c = conf(BASE "disk");
	struct iscsi_target *target;

	rig_start(4);
	c.allow = others;
	c.allow_count = 2;
	ck_assert_int_eq(iscsi_target_add(&rig.server, &c), 0);
	target = find(BASE "disk");
	ck_assert(iscsi_target_admits(target, "left", HOST "2"));
	ck_assert(iscsi_target_admits(target, "left", "iqn.1998-01.com.vmware:esx"));
	ck_assert(!iscsi_target_admits(target, "left", HOST "1"));
	ck_assert(!iscsi_target_admits(target, "left", HOST "22"));
	ck_assert(!iscsi_target_admits(target, "right", HOST "2"));
	ck_assert(!iscsi_target_admits(target, "lef", HOST "2"));
	ck_assert(!iscsi_target_admits(target, "", HOST "2"));
	c.allow_count = 0; /* nobody */
	ck_assert_int_eq(iscsi_target_change(&rig.server, &c), 0);
	ck_assert(!iscsi_target_admits(target, "left", HOST "2"));
	clear();
	rig_stop();
}
END_TEST

/* What the configuration names is the caller's, and may go. */
START_TEST(a_target_keeps_its_own_copy_of_its_lists)
{
	char portal[] = "left", allow[] = HOST "1";
	const char *portals[] = { portal }, *allows[] = { allow };
	struct iscsi_target_conf c = conf(BASE "disk");

	rig_start(4);
	c.portals = portals;
	c.allow = allows;
	ck_assert_int_eq(iscsi_target_add(&rig.server, &c), 0);
	memset(portal, 'x', 4);
	memset(allow, 'x', 4);
	ck_assert(iscsi_target_admits(find(BASE "disk"), "left", HOST "1"));
	clear();
	rig_stop();
}
END_TEST

/* Another allow list or other portals, that name the session's host and portal or do not. */
static const struct {
	const char *const *portals, *const *allow;
	unsigned portal_count, allow_count;
	bool stays;
} changes[] = {
	{ left, anyone, 1, 1, true },  { both, one, 2, 1, true },
	{ left, others, 1, 2, false }, { both + 1, anyone, 1, 1, false },
	{ left, one, 1, 0, false },
};

START_TEST(a_change_ends_the_sessions_that_it_does_not_admit)
{
	struct iscsi_target_conf c = conf(BASE "disk");

	rig_start(4);
	ck_assert_int_eq(add(BASE "disk"), 0);
	ck_assert_int_eq(add(BASE "other"), 0);
	enter(find(_i < (int)ARRAY_LEN(changes) ? BASE "disk" : BASE "other"));
	c.portals = changes[_i % (int)ARRAY_LEN(changes)].portals;
	c.portal_count = changes[_i % (int)ARRAY_LEN(changes)].portal_count;
	c.allow = changes[_i % (int)ARRAY_LEN(changes)].allow;
	c.allow_count = changes[_i % (int)ARRAY_LEN(changes)].allow_count;
	ck_assert_int_eq(iscsi_target_change(&rig.server, &c), 0);
	if (_i >= (int)ARRAY_LEN(changes) || changes[_i].stays)
		ck_assert_ptr_null(rig.closed);
	else
		ck_assert_str_eq(rig.closed, "not allowed any more");
	c.name = BASE "nobody";
	ck_assert_int_eq(iscsi_target_change(&rig.server, &c), -ENOENT);
	c.name = "no name";
	ck_assert_int_eq(iscsi_target_change(&rig.server, &c), -EINVAL);
	iscsi_conn_close(&rig.conn, "test over");
	fake_env_run(rig.env);
	clear();
	rig_stop();
}
END_TEST

/* Its session still has a command with the device server. */
START_TEST(a_removed_target_is_found_by_nobody_and_goes_with_its_last_session)
{
	struct iscsi_target *target;
	struct iscsi_bhs bhs;
	struct iscsi_cmd *cmd;
	unsigned done = 0;

	rig_start(4);
	ck_assert_int_eq(add(BASE "disk"), 0);
	target = find(BASE "disk");
	enter(target);
	ck_assert_uint_eq(iscsi_target_sessions(&rig.server, BASE "disk"), 1);
	iscsi_bhs_init(&bhs, ISCSI_SCSI_COMMAND, ISCSI_FINAL, 1);
	cmd = iscsi_cmd_new(rig.session, &bhs, 0);
	cmd->in_tx = 1; /* its bytes are on their way */
	iscsi_target_remove(&rig.server, BASE "DISK", removed, &done);
	fake_env_run(rig.env);
	ck_assert_str_eq(rig.closed, "target removed");
	ck_assert_uint_eq(done, 0);
	ck_assert_ptr_null(find(BASE "disk"));
	ck_assert_uint_eq(iscsi_target_sessions(&rig.server, BASE "disk"), 0);
	/* Its name is free at once. */
	ck_assert_int_eq(add(BASE "disk"), 0);
	ck_assert_ptr_ne(find(BASE "disk"), target);
	cmd->in_tx = 0;
	iscsi_cmd_release(cmd);
	fake_env_run(rig.env);
	ck_assert_uint_eq(done, 1);
	ck_assert_ptr_nonnull(find(BASE "disk"));
	ck_assert_ptr_null(TAILQ_NEXT(TAILQ_FIRST(&rig.server.targets), link));
	clear();
	rig_stop();
}
END_TEST

START_TEST(what_sessions_moved_stays_counted_when_they_are_gone)
{
	struct iscsi_traffic sum;
	struct iscsi_target *target;

	rig_start(4);
	ck_assert_int_eq(add(BASE "disk"), 0);
	ck_assert_int_eq(add(BASE "other"), 0);
	target = find(BASE "disk");
	for (unsigned i = 1; i <= 2; i++) {
		enter(target);
		rig.session->traffic = (struct iscsi_traffic){ .read_ops = 3,
							       .write_ops = 2,
							       .other_ops = 1,
							       .read_bytes = 4096,
							       .write_bytes = 8192 };
		/* The first has ended by the second time. */
		iscsi_target_traffic(&rig.server, BASE "disk", &sum);
		ck_assert_uint_eq(target->sessions, 1);
		ck_assert_uint_eq(sum.read_ops, 3 * i);
		ck_assert_uint_eq(sum.write_ops, 2 * i);
		ck_assert_uint_eq(sum.other_ops, i);
		ck_assert_uint_eq(sum.read_bytes, 4096 * i);
		ck_assert_uint_eq(sum.write_bytes, 8192 * i);
	}
	iscsi_target_traffic(&rig.server, BASE "other", &sum);
	ck_assert_uint_eq(sum.read_ops + sum.write_ops + sum.other_ops, 0);
	iscsi_target_traffic(&rig.server, BASE "none", &sum);
	ck_assert_uint_eq(sum.read_ops + sum.write_ops + sum.other_ops, 0);
	iscsi_conn_close(&rig.conn, "done");
	fake_env_run(rig.env);
	clear();
	rig_stop();
}
END_TEST

START_TEST(removing_what_nobody_uses_or_what_is_not_there_is_done_at_once)
{
	unsigned done = 0;

	rig_start(4);
	ck_assert_int_eq(add(BASE "disk"), 0);
	iscsi_target_remove(&rig.server, BASE "disk", removed, &done);
	ck_assert_uint_eq(done, 1);
	ck_assert(TAILQ_EMPTY(&rig.server.targets));
	iscsi_target_remove(&rig.server, BASE "disk", removed, &done);
	ck_assert_uint_eq(done, 2);
	iscsi_target_remove(&rig.server, "no name", removed, &done);
	ck_assert_uint_eq(done, 3);
	iscsi_target_remove(&rig.server, BASE "disk", NULL, NULL);
	rig_stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("target");
	TCase *tc = tcase_create("target");

	tcase_add_test(tc, targets_are_in_the_order_of_their_names);
	tcase_add_test(tc, a_name_is_there_once_and_is_a_name);
	tcase_add_test(tc, who_may_enter_is_portal_and_name_together);
	tcase_add_test(tc, a_target_keeps_its_own_copy_of_its_lists);
	tcase_add_loop_test(tc, a_change_ends_the_sessions_that_it_does_not_admit, 0,
			    2 * ARRAY_LEN(changes));
	tcase_add_test(tc, a_removed_target_is_found_by_nobody_and_goes_with_its_last_session);
	tcase_add_test(tc, what_sessions_moved_stays_counted_when_they_are_gone);
	tcase_add_test(tc, removing_what_nobody_uses_or_what_is_not_there_is_done_at_once);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
