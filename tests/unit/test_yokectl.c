/* SPDX-License-Identifier: MIT */
/*
 * What yokectl shows for given answers, held to transcripts in tests/golden/.
 * YOKE_GOLDEN=write writes them anew; look at the difference before you commit it.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/command.h"
#include "tests/fake/fake_rpc.h"

#define GOLDEN "tests/golden/"

static char dir[64], path[80];

static char *read_file(const char *name)
{
	char file[128], *text = calloc(1, 65536);
	FILE *f;

	snprintf(file, sizeof(file), GOLDEN "%s", name);
	f = fopen(file, "r");
	if (f) {
		ck_assert_uint_lt(fread(text, 1, 65535, f), 65535);
		fclose(f);
	}
	return text;
}

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.40s/yokectl-XXXXXX", tmp && strlen(tmp) <= 40 ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
	setenv("TZ", "XYZ-1", 1); /* an hour east, without a time zone database */
	tzset();
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	unsetenv("CLICOLOR_FORCE");
}

static void teardown(void)
{
	ck_assert_int_eq(rmdir(dir), 0);
}

struct run {
	char *out, *err;
	int code;
};

/* ARGS are words with spaces. */
static struct run run(const char *args, bool tty, unsigned width)
{
	char copy[256], *argv[32] = { (char *)"yokectl", (char *)"-s", path };
	struct output output = { .tty = tty, .width = width };
	struct run r;
	size_t size;
	int argc = 3;

	snprintf(copy, sizeof(copy), "%s", args);
	for (char *at, *word = strtok_r(copy, " ", &at); word; word = strtok_r(NULL, " ", &at))
		argv[argc++] = word;
	output.out = open_memstream(&r.out, &size);
	output.err = open_memstream(&r.err, &size);
	r.code = yokectl(argc, argv, &output);
	fclose(output.out);
	fclose(output.err);
	return r;
}

static void free_run(struct run *r)
{
	free(r->out);
	free(r->err);
}

struct show {
	const char *transcript; /* of tests/golden/, without .txt */
	const char *answer;     /* of tests/golden/, without .json; NULL: nobody answers */
	const char *args;
	unsigned width; /* 0: not a terminal */
};

static const struct show shows[] = {
	{ "status", "status-ok", "status", 80 },
	{ "status", "status-new", "status", 0 },
	{ "status", "status-warn", "status", 80 },
	{ "status", "status-crit", "status", 0 },
	{ "status", "status-crit", "status --color", 0 },
	{ "status", "status-ok", "status --json", 0 },
	{ "status", "status-ok", "status --check", 0 },
	{ "status", "status-warn", "status --check", 0 },
	{ "status", "status-crit", "status --check", 0 },
	{ "session", "session", "session list", 0 },
	{ "session", "session", "session list", 100 },
	{ "session", "session", "session list", 80 },
	{ "session", "session", "session list", 60 },
	{ "session", "session", "session list", 10 },
	{ "session", "session", "session list --wide", 80 },
	{ "session", "session", "session list -o id,State,p99,mib/s --no-header", 20 },
	{ "session", "session", "session list --bytes -o read,written", 80 },
	{ "session", "session", "session show 17", 80 },
	{ "session", "session", "session show 19 --json", 80 },
	{ "session", "session", "session show 18", 80 },
	{ "session", "id", "session kill 17", 80 },
	{ "session", "id", "session kill 17 --json=1", 80 },
	{ "lun", "lun", "lun list", 0 },
	{ "lun", "lun", "lun list", 72 },
	{ "lun", "lun", "lun list --wide --color=always", 0 },
	{ "lun", "lun", "lun list --bytes", 0 },
	{ "lun", "lun", "lun list -o lun,nonsense", 0 },
	{ "lists", "target", "target list", 80 },
	{ "lists", "target", "target list --wide", 80 },
	{ "lists", "backing", "backing list", 80 },
	{ "lists", "backing", "backing list", 0 },
	{ "lists", "backing", "backing list --wide", 0 },
	{ "lists", "fault", "fault list", 0 },
	{ "lists", "id", "fault add scratch delay --op write --delay 20ms", 0 },
	{ "lists", "id", "fault remove 17", 0 },
	{ "array", "array", "array list", 0 },
	{ "array", "array", "array list", 60 },
	{ "array", "array-degraded", "array show r10", 0 },
	{ "array", "array-degraded", "array show r10 --color", 0 },
	{ "array", "array-degraded", "array show r10 --json", 0 },
	{ "array", "array-waiting", "array show r1", 0 },
	{ "array", "array-degraded", "array create r10 --level 10 --chunk 64K A B C D", 0 },
	{ "array", "array-plan", "array create r1 --level 1 A B --force", 0 },
	{ "array", "array-plan", "array add r10 N --dry-run", 0 },
	{ "array", "disk", "disk list", 0 },
	{ "array", "disk", "disk list --json", 0 },
	{ "array", "disk-label", "disk label /srv/d0.img", 0 },
	{ "events", "events", "events", 0 },
	{ "events", "events", "events --json", 0 },
	{ "events", "events", "events", 80 },
	{ "reload", "changed", "reload", 0 },
	{ "reload", "unchanged", "reload", 0 },
	{ "reload", "changed", "reload --json", 0 },
};

static void add_to_transcript(FILE *transcript, const struct show *show)
{
	char name[64], *answer;
	const char *answers[2] = { NULL, NULL };
	struct fake_rpc *fake;
	struct run r;

	snprintf(name, sizeof(name), "%s.json", show->answer);
	answers[0] = answer = read_file(name);
	ck_assert_msg(*answer, "%s", name);
	answer[strcspn(answer, "\n")] = '\0';
	fake = fake_rpc_start(path, FAKE_RPC_RESULTS, answers);
	r = run(show->args, show->width != 0, show->width);
	free(fake_rpc_stop(fake));
	fprintf(transcript, "$ yokectl %s", show->args);
	if (show->width)
		fprintf(transcript, "  (on %u columns)", show->width);
	fprintf(transcript, "\n%s%s%s", r.out, *r.err ? "stderr: " : "", r.err);
	if (r.code)
		fprintf(transcript, "exit %d\n", r.code);
	fputc('\n', transcript);
	free_run(&r);
	free(answer);
}

static const char *const transcripts[] = { "status", "session", "lun",   "lists",
					   "array",  "events",  "reload" };

START_TEST(what_is_shown_is_what_the_transcript_says)
{
	char name[64], file[128], *text, *wanted;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	for (unsigned i = 0; i < ARRAY_LEN(shows); i++)
		if (strcmp(shows[i].transcript, transcripts[_i]) == 0)
			add_to_transcript(f, &shows[i]);
	fclose(f);
	snprintf(name, sizeof(name), "%s.txt", transcripts[_i]);
	if (getenv("YOKE_GOLDEN") && strcmp(getenv("YOKE_GOLDEN"), "write") == 0) {
		snprintf(file, sizeof(file), GOLDEN "%s", name);
		f = fopen(file, "w");
		fputs(text, f);
		fclose(f);
	}
	wanted = read_file(name);
	ck_assert_str_eq(text, wanted);
	free(wanted);
	free(text);
}
END_TEST

START_TEST(on_any_width_no_line_is_longer_and_no_value_is_cut)
{
	char *answer = read_file("lun.json");
	const char *answers[2] = { answer, NULL };
	struct fake_rpc *fake;

	answer[strcspn(answer, "\n")] = '\0';
	fake = fake_rpc_start(path, FAKE_RPC_RESULTS, answers);
	for (unsigned width = 48; width <= 160; width++) {
		struct run r = run("lun list --color=never", true, width);

		for (char *at, *line = strtok_r(r.out, "\n", &at); line;
		     line = strtok_r(NULL, "\n", &at))
			ck_assert_uint_le(strlen(line), width);
		free_run(&r);
		r = run("lun list --color=never", true, width);
		ck_assert_ptr_nonnull(strstr(r.out, "iqn.2026-11.org.yoke:demo 16383 "));
		ck_assert(strstr(r.out, ": --wide\n") || strstr(r.out, "IN-FLIGHT"));
		free_run(&r);
	}
	free(fake_rpc_stop(fake));
	free(answer);
}
END_TEST

START_TEST(a_call_carries_the_parameters_of_the_table)
{
	static const struct {
		const char *args, *call;
	} cases[] = {
		{ "status", "\"method\":\"status.show\"}" },
		{ "session kill 9007199254740993",
		  "\"method\":\"session.kill\",\"params\":{\"id\":\"9007199254740993\"}}" },
		{ "fault add b torn --op=write --torn 512 --offset 1M --length 64K --count 3",
		  "\"method\":\"fault.add\",\"params\":{\"backing\":\"b\",\"kind\":\"torn\",\"op\":"
		  "\"write\",\"torn_bytes\":512,\"offset\":1048576,\"length\":65536,\"count\":3}}" },
		{ "fault --error ENOSPC add --probability 2.5% -- b error", "" },
		{ "fault add --error ENOSPC --probability 2.5% -- b error",
		  "\"method\":\"fault.add\",\"params\":{\"error\":\"ENOSPC\",\"per_million\":25000,"
		  "\"backing\":\"b\",\"kind\":\"error\"}}" },
		{ "fault add b delay --delay 2s --probability 0.000001",
		  "\"params\":{\"backing\":\"b\",\"kind\":\"delay\",\"delay_ms\":2000,"
		  "\"per_million\":1}}" },
		{ "events --after 880 --max 10",
		  "\"method\":\"events.list\",\"params\":{\"after\":880,\"max\":10}}" },
		{ "--json reload --color=never", "\"method\":\"config.reload\"}" },
	};
	static const char *const answers[] = { "{\"id\":\"1\"}", NULL };

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct fake_rpc *fake = fake_rpc_start(path, FAKE_RPC_RESULTS, answers);
		struct run r = run(cases[i].args, false, 0);
		char *got = fake_rpc_stop(fake);

		ck_assert_int_eq(r.code, *cases[i].call ? EXIT_DONE : EXIT_USAGE);
		ck_assert_msg(strstr(got, cases[i].call) != NULL, "%s: %s", cases[i].args, got);
		if (!*cases[i].call)
			ck_assert_str_eq(got, "");
		free(got);
		free_run(&r);
	}
}
END_TEST

START_TEST(a_list_in_pages_is_one_list)
{
	static const char *const pages[] = {
		"{\"schema\":\"yoke.target.list/1\",\"targets\":[{\"name\":\"a\"}],\"next\":\"64\"}",
		"{\"schema\":\"yoke.target.list/1\",\"targets\":[{\"name\":\"b\"}],\"next\":\"128\"}",
		"{\"schema\":\"yoke.target.list/1\",\"targets\":[{\"name\":\"c\"}]}",
		NULL,
	};
	struct fake_rpc *fake = fake_rpc_start(path, FAKE_RPC_RESULTS, pages);
	struct run r = run("target list --json", false, 0);
	char *got = fake_rpc_stop(fake);

	ck_assert_int_eq(r.code, EXIT_DONE);
	ck_assert_str_eq(r.out, "{\"schema\":\"yoke.target.list/1\",\"targets\":[{\"name\":\"a\"},"
				"{\"name\":\"b\"},{\"name\":\"c\"}]}\n");
	ck_assert_ptr_nonnull(strstr(got, "\"params\":{\"after\":\"64\"}"));
	ck_assert_ptr_nonnull(strstr(got, "\"params\":{\"after\":\"128\"}"));
	free(got);
	free_run(&r);
}
END_TEST

START_TEST(a_list_without_end_ends)
{
	static const char *const page[] = { "{\"targets\":[],\"next\":\"64\"}", NULL };
	struct fake_rpc *fake = fake_rpc_start(path, FAKE_RPC_RESULTS, page);
	struct run r = run("target list --json", false, 0);

	ck_assert_int_eq(r.code, EXIT_DONE);
	free(fake_rpc_stop(fake));
	free_run(&r);
}
END_TEST

START_TEST(each_failure_has_its_exit_code_and_sentence)
{
	static const struct {
		enum fake_rpc_mood mood;
		const char *answer, *args, *sentence;
		int code;
	} cases[] = {
		{ FAKE_RPC_ERROR, "session 9: no such session", "session kill 9",
		  "yokectl: session 9: no such session\n", EXIT_REFUSED },
		{ FAKE_RPC_ERROR, "no", "events", "yokectl: no\n", EXIT_REFUSED },
		{ FAKE_RPC_CLOSE, "", "lun list",
		  "yokectl: %s: yoked closed the connection. Is it stopping?\n", EXIT_UNREACHABLE },
		{ FAKE_RPC_RAW, "HTTP/1.1 400 Bad Request\n", "lun list",
		  "yokectl: %s: what answers there is not yoked\n", EXIT_UNREACHABLE },
		{ FAKE_RPC_RAW, "{\"id\":1,\"res", "lun list",
		  "yokectl: %s: yoked closed the connection. Is it stopping?\n", EXIT_UNREACHABLE },
		{ FAKE_RPC_SILENT, "", "--timeout 50ms status",
		  "yokectl: %s: no answer within 0.1 s. Is yoked stopped or busy?\n",
		  EXIT_UNREACHABLE },
		{ FAKE_RPC_RAW,
		  "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,"
		  "\"message\":\"full\"}}\n",
		  "status", "yokectl: full\n", EXIT_REFUSED },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		const char *answers[] = { cases[i].answer, NULL };
		struct fake_rpc *fake = fake_rpc_start(path, cases[i].mood, answers);
		struct run r = run(cases[i].args, false, 0);
		char wanted[256];

		snprintf(wanted, sizeof(wanted), cases[i].sentence, path);
		ck_assert_str_eq(r.err, wanted);
		ck_assert_str_eq(r.out, "");
		ck_assert_int_eq(r.code, cases[i].code);
		free(fake_rpc_stop(fake));
		free_run(&r);
	}
}
END_TEST

START_TEST(without_yoked_the_exit_code_is_3_and_a_check_is_unknown)
{
	struct run r = run("lun list", false, 0);
	char wanted[256];

	snprintf(wanted, sizeof(wanted),
		 "no yoked answers on %s: No such file or directory. Start it, or name its socket "
		 "with -s\n",
		 path);
	ck_assert_int_eq(r.code, EXIT_UNREACHABLE);
	ck_assert_str_eq(r.out, "");
	ck_assert_str_eq(r.err + strlen("yokectl: "), wanted);
	free_run(&r);

	r = run("status --check", false, 0);
	ck_assert_int_eq(r.code, EXIT_UNREACHABLE);
	ck_assert_int_eq(strncmp(r.out, "UNKNOWN ", 8), 0);
	ck_assert_str_eq(r.out + strlen("UNKNOWN "), wanted);
	ck_assert_str_eq(r.err, "");
	free_run(&r);
}
END_TEST

START_TEST(a_refused_reload_tells_the_line_first_and_that_nothing_changed)
{
	static const char *const answers[] = {
		"/etc/yoke/yoke.conf:9: portal \\\"left\\\": no group. Add group = N", NULL
	};
	struct fake_rpc *fake = fake_rpc_start(path, FAKE_RPC_ERROR, answers);
	struct run r = run("reload", false, 0);

	ck_assert_int_eq(r.code, EXIT_REFUSED);
	ck_assert_str_eq(r.err, "/etc/yoke/yoke.conf:9: portal \"left\": no group. Add group = N\n"
				"  nothing changed\n");
	free(fake_rpc_stop(fake));
	free_run(&r);
}
END_TEST

START_TEST(an_answer_in_pieces_after_a_stray_one_is_found)
{
	static const char *const answers[] = { "{\"id\":\"5\"}", NULL };
	struct fake_rpc *fake = fake_rpc_start(path, FAKE_RPC_DRIBBLE, answers);
	struct run r = run("fault remove 5", false, 0);

	ck_assert_str_eq(r.out, "fault 5 removed\n");
	free(fake_rpc_stop(fake));
	free_run(&r);
}
END_TEST

#define EVENT(n)                                                                                   \
	"{\"events\":[{\"number\":" n ",\"time_utc\":\"\",\"severity\":\"INFO\",\"name\":\"a\"}]}"

START_TEST(following_goes_on_after_the_last_number_until_yoked_ends)
{
	static const char *const answers[] = { EVENT("7"), "{\"events\":[]}", EVENT("8"), "\"\"} x",
					       NULL };
	struct fake_rpc *fake = fake_rpc_start(path, FAKE_RPC_RESULTS, answers);
	struct run r = run("events --follow --after 6 --json", false, 0);
	char *got = fake_rpc_stop(fake);

	ck_assert_ptr_nonnull(strstr(r.out, "\"number\":7"));
	ck_assert_ptr_nonnull(strstr(r.out, "\"number\":8"));
	ck_assert_int_eq(r.code, EXIT_UNREACHABLE);
	ck_assert_ptr_nonnull(strstr(got, "{\"after\":6}"));
	ck_assert_ptr_nonnull(strstr(got, "{\"after\":7}"));
	ck_assert_ptr_nonnull(strstr(got, "{\"after\":8}"));
	free(got);
	free_run(&r);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("yokectl");
	TCase *tcase = tcase_create("yokectl");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, what_is_shown_is_what_the_transcript_says, 0,
			    ARRAY_LEN(transcripts));
	tcase_add_test(tcase, on_any_width_no_line_is_longer_and_no_value_is_cut);
	tcase_add_test(tcase, a_call_carries_the_parameters_of_the_table);
	tcase_add_test(tcase, a_list_in_pages_is_one_list);
	tcase_add_test(tcase, a_list_without_end_ends);
	tcase_add_test(tcase, each_failure_has_its_exit_code_and_sentence);
	tcase_add_test(tcase, without_yoked_the_exit_code_is_3_and_a_check_is_unknown);
	tcase_add_test(tcase, a_refused_reload_tells_the_line_first_and_that_nothing_changed);
	tcase_add_test(tcase, an_answer_in_pieces_after_a_stray_one_is_found);
	tcase_add_test(tcase, following_goes_on_after_the_last_number_until_yoked_ends);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
