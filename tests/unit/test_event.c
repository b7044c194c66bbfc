/* SPDX-License-Identifier: MIT */
/* Events: the catalogue, the ring, rows as JSON, watchers. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/event.h"
#include "core/log.h"

static char last[LOG_LINE_MAX];
static unsigned lines;

static void keep(enum log_level level, const char *line)
{
	(void)level;
	strcpy(last, line);
	lines++;
}

static const char *field(json_t *rows, size_t row, const char *name)
{
	json_t *fields = json_object_get(json_array_get(rows, row), "fields");

	return json_string_value(json_object_get(fields, name));
}

START_TEST(an_event_is_one_log_line_and_one_row)
{
	json_t *rows, *row;
	const char *when;

	log_redirect(keep);
	event_emit(EVENT_LOGIN_REFUSED, "iqn.a", "127.0.0.1:3260", "0201", "wrong secret");
	ck_assert_uint_eq(lines, 1);
	ck_assert_str_eq(last, "event login-refused initiator=iqn.a portal=127.0.0.1:3260 "
			       "status=0201 cause=wrong secret");
	rows = event_list(0, 10);
	ck_assert_uint_eq(json_array_size(rows), 1);
	row = json_array_get(rows, 0);
	ck_assert_int_eq(json_integer_value(json_object_get(row, "number")), 1);
	ck_assert_str_eq(json_string_value(json_object_get(row, "severity")), "WARN");
	ck_assert_str_eq(json_string_value(json_object_get(row, "name")), "login-refused");
	ck_assert_str_eq(field(rows, 0, "status"), "0201");
	ck_assert_str_eq(field(rows, 0, "cause"), "wrong secret");
	when = json_string_value(json_object_get(row, "time_utc"));
	ck_assert_uint_eq(strlen(when), strlen("2026-01-31T12:00:00.123Z"));
	ck_assert(when[10] == 'T' && when[19] == '.' && when[23] == 'Z');
	json_decref(rows);
}
END_TEST

START_TEST(every_kind_has_a_name_of_its_own_a_severity_and_fields)
{
	const char *values = "v";

	log_redirect(keep);
	for (unsigned i = 0; i < EVENT_COUNT; i++) {
		json_t *rows;
		unsigned n = 0;

		for (unsigned j = 0; j < i; j++)
			ck_assert_str_ne(event_name(i), event_name(j));
		for (const char *const *f = event_fields(i); *f; f++)
			n++;
		ck_assert(n >= 1 && n <= EVENT_FIELDS);
		ck_assert_uint_le(event_severity(i), EVENT_CRIT);
		event_emit(i, values, values, values, values, values, values);
		rows = event_list(i, 1);
		ck_assert_uint_eq(
			json_object_size(json_object_get(json_array_get(rows, 0), "fields")), n);
		json_decref(rows);
	}
	ck_assert_str_eq(event_name(EVENT_BACKING_FULL), "backing-full");
	ck_assert_int_eq(event_severity(EVENT_BACKING_FAILED), EVENT_CRIT);
}
END_TEST

START_TEST(the_ring_keeps_the_newest_and_lists_from_where_it_is_asked)
{
	json_t *rows;
	char id[16];

	log_redirect(keep);
	for (unsigned i = 1; i <= EVENT_RING + 100; i++) {
		snprintf(id, sizeof(id), "%u", i);
		event_emit(EVENT_FAULT_REMOVED, id);
	}
	ck_assert_uint_eq(event_newest(), EVENT_RING + 100);
	rows = event_list(0, UINT32_MAX);
	ck_assert_uint_eq(json_array_size(rows), EVENT_RING);
	ck_assert_str_eq(field(rows, 0, "id"), "101");
	ck_assert_str_eq(field(rows, EVENT_RING - 1, "id"), "1124");
	json_decref(rows);
	rows = event_list(1120, 2);
	ck_assert_uint_eq(json_array_size(rows), 2);
	ck_assert_str_eq(field(rows, 0, "id"), "1121");
	json_decref(rows);
	rows = event_list(1124, 10);
	ck_assert_uint_eq(json_array_size(rows), 0);
	json_decref(rows);
	rows = event_list(UINT64_MAX, 10);
	ck_assert_uint_eq(json_array_size(rows), 0);
	json_decref(rows);
}
END_TEST

START_TEST(hostile_values_are_escaped_cut_and_take_no_room_from_others)
{
	char *huge = malloc(10000);
	json_t *rows;

	log_redirect(keep);
	memset(huge, 0xff, 9999);
	huge[9999] = '\0';
	event_emit(EVENT_SESSION_DOWN, huge, "iqn.b", "4000", "a\nb", huge);
	rows = event_list(0, 1);
	ck_assert_str_eq(field(rows, 0, "initiator"), "iqn.b");
	ck_assert_str_eq(field(rows, 0, "portal"), "a\\x0ab");
	ck_assert_uint_ge(strlen(field(rows, 0, "target")), 100);
	ck_assert_uint_lt(strlen(field(rows, 0, "reason")), EVENT_TEXT / 5);
	json_decref(rows);
	free(huge);
}
END_TEST

START_TEST(a_flood_by_the_other_side_is_limited_in_the_log_and_whole_in_the_ring)
{
	json_t *rows;

	log_redirect(keep);
	for (unsigned i = 0; i < 50; i++)
		event_emit(EVENT_SESSION_UP, "t", "i", "1", "p");
	ck_assert_uint_eq(lines, LOG_BURST);
	for (unsigned i = 0; i < 50; i++)
		event_emit(EVENT_BACKING_FAILED, "b", "c");
	ck_assert_uint_eq(lines, LOG_BURST + 50);
	rows = event_list(0, 1000);
	ck_assert_uint_eq(json_array_size(rows), 100);
	json_decref(rows);
}
END_TEST

static uint64_t seen_a, seen_b;

static void watch_a(struct event_watch *watch, uint64_t number)
{
	json_t *rows = event_list(number - 1, 1);

	ck_assert_uint_eq(json_array_size(rows), 1);
	json_decref(rows);
	seen_a = number;
	if (number == 2)
		event_watch_remove(watch);
}

static void watch_b(struct event_watch *watch, uint64_t number)
{
	(void)watch;
	seen_b = number;
}

START_TEST(watchers_see_each_event_until_they_are_removed_even_from_within)
{
	struct event_watch a = { .fn = watch_a }, b = { .fn = watch_b };

	log_redirect(keep);
	event_watch_add(&b);
	event_watch_add(&a);
	for (unsigned i = 0; i < 3; i++)
		event_emit(EVENT_STOPPING, "test");
	ck_assert_uint_eq(seen_a, 2);
	ck_assert_uint_eq(seen_b, 3);
	event_watch_remove(&b);
	event_watch_remove(&b);
	event_emit(EVENT_STOPPING, "test");
	ck_assert_uint_eq(seen_b, 3);
}
END_TEST

START_TEST(times_are_shown_in_utc_with_milliseconds)
{
	char text[EVENT_TIME_MAX];

	event_time_text(text, 0);
	ck_assert_str_eq(text, "1970-01-01T00:00:00.000Z");
	event_time_text(text, 1709210096007999999);
	ck_assert_str_eq(text, "2024-02-29T12:34:56.007Z");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("event");
	TCase *tc = tcase_create("event");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, an_event_is_one_log_line_and_one_row);
	tcase_add_test(tc, every_kind_has_a_name_of_its_own_a_severity_and_fields);
	tcase_add_test(tc, the_ring_keeps_the_newest_and_lists_from_where_it_is_asked);
	tcase_add_test(tc, hostile_values_are_escaped_cut_and_take_no_room_from_others);
	tcase_add_test(tc, a_flood_by_the_other_side_is_limited_in_the_log_and_whole_in_the_ring);
	tcase_add_test(tc, watchers_see_each_event_until_they_are_removed_even_from_within);
	tcase_add_test(tc, times_are_shown_in_utc_with_milliseconds);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
