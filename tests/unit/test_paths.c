/* SPDX-License-Identifier: MIT */
/* When a path is missing, and when it is not. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/paths.h"

#define HOST "iqn.2026-11.org.example:host"
#define DEMO "iqn.2026-11.org.yoke:demo"

static struct paths *paths;
static char seen[1024];

static void setup(void)
{
	paths = paths_new();
	ck_assert_ptr_nonnull(paths);
}

static void teardown(void)
{
	paths_free(paths);
}

static void note(void *arg, const char *initiator, const char *target, const char *portal,
		 uint64_t down_ns)
{
	size_t used = strlen(seen);

	(void)arg;
	snprintf(seen + used, sizeof(seen) - used, "%s>%s/%s %u;", strrchr(initiator, ':') + 1,
		 strrchr(target, ':') + 1, portal, (unsigned)(down_ns / NS_PER_S));
}

static const char *missing(uint64_t now_s)
{
	seen[0] = '\0';
	paths_missing(paths, now_s * NS_PER_S, note, NULL);
	return seen;
}

static void up(const char *initiator, const char *target, const char *portal, uint64_t now_s)
{
	paths_up(paths, initiator, target, portal, now_s * NS_PER_S);
}

static void down(const char *initiator, const char *target, const char *portal, uint64_t now_s)
{
	paths_down(paths, initiator, target, portal, now_s * NS_PER_S);
}

START_TEST(a_path_is_missing_after_a_minute_without_it)
{
	up(HOST, DEMO, "left", 1);
	up(HOST, DEMO, "right", 1);
	ck_assert_str_eq(missing(1000), "");
	down(HOST, DEMO, "right", 1000);
	ck_assert_str_eq(missing(1059), "");
	ck_assert_str_eq(missing(1060), "host>demo/right 60;");
	up(HOST, DEMO, "right", 1100);
	ck_assert_str_eq(missing(9999), "");
}
END_TEST

START_TEST(a_host_that_is_off_misses_nothing)
{
	up(HOST, DEMO, "left", 1);
	up(HOST, DEMO, "right", 1);
	down(HOST, DEMO, "right", 10);
	down(HOST, DEMO, "left", 11);
	ck_assert_str_eq(missing(1000), "");
	up(HOST, DEMO, "left", 2000);
	ck_assert_str_eq(missing(2000), "host>demo/right 1990;");
}
END_TEST

START_TEST(the_last_of_several_sessions_makes_the_path_go)
{
	up(HOST, DEMO, "left", 1);
	up(HOST, DEMO, "right", 1);
	up(HOST, DEMO, "right", 1);
	down(HOST, DEMO, "right", 10);
	ck_assert_str_eq(missing(1000), "");
	down(HOST, DEMO, "right", 1000);
	ck_assert_str_eq(missing(1100), "host>demo/right 100;");
}
END_TEST

START_TEST(other_hosts_and_other_targets_do_not_count)
{
	up(HOST, DEMO, "left", 1);
	up(HOST "2", DEMO, "left", 1);
	up(HOST "2", DEMO, "right", 1);
	up(HOST, DEMO "2", "right", 1);
	down(HOST, DEMO, "left", 2);
	down(HOST "2", DEMO, "left", 2);
	ck_assert_str_eq(missing(100), "host2>demo/left 98;");
}
END_TEST

START_TEST(after_a_week_it_is_forgotten)
{
	const uint64_t week_s = PATHS_MEMORY_NS / NS_PER_S;

	up(HOST, DEMO, "left", 1);
	up(HOST, DEMO, "right", 1);
	down(HOST, DEMO, "right", 1);
	ck_assert_str_ne(missing(week_s + 1), "");
	ck_assert_str_eq(missing(week_s + 2), "");
	ck_assert_str_eq(missing(100), "");
}
END_TEST

static bool not_right(void *arg, const char *target, const char *portal)
{
	(void)arg;
	(void)target;
	return strcmp(portal, "right") != 0;
}

START_TEST(what_is_not_offered_any_more_is_not_missed)
{
	up(HOST, DEMO, "left", 1);
	up(HOST, DEMO, "right", 1);
	down(HOST, DEMO, "right", 1);
	ck_assert_str_ne(missing(100), "");
	paths_prune(paths, not_right, NULL);
	ck_assert_str_eq(missing(100), "");
}
END_TEST

START_TEST(a_down_without_an_up_is_nothing)
{
	down(HOST, DEMO, "left", 1);
	up(HOST, DEMO, "right", 1);
	ck_assert_str_eq(missing(100), "");
}
END_TEST

START_TEST(the_table_is_bounded_and_keeps_what_is_up)
{
	char name[64];

	up(HOST, DEMO, "left", 1);
	for (unsigned i = 0; i < 2 * PATHS_MAX; i++) {
		snprintf(name, sizeof(name), HOST "-%u", i);
		up(name, DEMO, "left", 2 + i);
		down(name, DEMO, "left", 2 + i);
	}
	up(HOST, DEMO, "right", 2);
	down(HOST, DEMO, "left", 3);
	ck_assert_str_eq(missing(1000), "host>demo/left 997;");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("paths");
	TCase *tc = tcase_create("paths");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_path_is_missing_after_a_minute_without_it);
	tcase_add_test(tc, a_host_that_is_off_misses_nothing);
	tcase_add_test(tc, the_last_of_several_sessions_makes_the_path_go);
	tcase_add_test(tc, other_hosts_and_other_targets_do_not_count);
	tcase_add_test(tc, after_a_week_it_is_forgotten);
	tcase_add_test(tc, what_is_not_offered_any_more_is_not_missed);
	tcase_add_test(tc, a_down_without_an_up_is_nothing);
	tcase_add_test(tc, the_table_is_bounded_and_keeps_what_is_up);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
