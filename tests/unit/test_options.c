/* SPDX-License-Identifier: MIT */
/* The command line: what it means, what is refused, and that help, page and completion have it. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/options.h"

#define URL "iscsi://192.0.2.1/iqn.t/0"

static struct options options;
static struct bench_fault fault;

/* Splits at single spaces; '~' in a word stands for one in it. */
static int parse(const char *line)
{
	static char words[1024];
	char *argv[64] = { "yoke-bench" }, *rest = words;
	int argc = 1, err;

	options_free(&options);
	snprintf(words, sizeof(words), "%s", line);
	for (char *word; (word = strsep(&rest, " "));) {
		for (char *c = word; *c; c++)
			*c = *c == '~' ? ' ' : *c;
		argv[argc++] = word;
	}
	err = options_parse(argc, argv, &options, &fault);
	err = err ? err : options_check(&options, &fault);
	return err ? err : options_plan(&options, &fault);
}

static void teardown(void)
{
	options_free(&options);
}

static void good(const char *line)
{
	ck_assert_msg(parse(line) == 0, "%s: %s", line, fault.text);
}

START_TEST(the_shorthand_that_people_know)
{
	const struct bench_point *p;

	good(URL " --rw randrw:30 --bs 4k --qd 32 --sessions 4 --time 30");
	ck_assert_uint_eq(options.plan.point_count, 1);
	p = &options.plan.points[0];
	ck_assert_str_eq(p->name, "4K random 30/70");
	ck_assert_uint_eq(p->streams[0].depth, 32);
	ck_assert_uint_eq(p->sessions, 4);
	ck_assert_uint_eq(p->time_ns, 30 * NS_PER_S);
	ck_assert_str_eq(options.plan.setup.portals[0].address, "192.0.2.1:3260");
	ck_assert_str_eq(options.plan.setup.portals[0].target, "iqn.t");
	ck_assert_uint_eq(options.plan.setup.luns[0], 0);
	ck_assert_str_eq(options.plan.setup.initiator, OPTIONS_INITIATOR);
	ck_assert(options.plan.setup.fill && !options.plan.setup.destroy);
	ck_assert_uint_eq(options.plan.setup.command_timeout_ns, 30 * NS_PER_S);
	ck_assert_uint_eq(options.plan.setup.cache_bytes, 8 * GIB);
	ck_assert_uint_ge(options.plan.setup.threads, 1);
	ck_assert_uint_le(options.plan.setup.threads, 4);
}
END_TEST

START_TEST(every_option_arrives)
{
	const struct bench_setup *s = &options.plan.setup;
	const struct bench_point *p;

	good("--rw=randread --bs 8K,16K --qd 2 --sessions 1 --workers 3 --think 1ms --zipf 0.7 "
	     "--shift 512 --time 2s --warmup 1s --ramp 500ms --io-size 1G --repeat 3 --lun 0,2-4 "
	     "--size 64M --policy failover --initiator iqn.2000-01.x:y --header-digest --timeout 5s "
	     "--threads 2 --fail-path 1@1s+200ms --data repeat --seed 11 --no-fill --destroy "
	     "--expect iops>=100k,~read.p99<=2ms --cache 1G --cross-check /s --json j --csv c "
	     "--report r --color never " URL);
	ck_assert_uint_eq(options.plan.point_count, 2);
	ck_assert_uint_eq(options.plan.repeat, 3);
	p = &options.plan.points[1];
	ck_assert_str_eq(p->name, "16K zipf read +512");
	ck_assert_uint_eq(p->streams[0].workers, 3);
	ck_assert_uint_eq(p->streams[0].think_ns, NS_PER_MS);
	ck_assert_double_eq_tol(p->streams[0].zipf_theta, 0.7, 1e-9);
	ck_assert_uint_eq(p->warmup_ns, NS_PER_S);
	ck_assert_uint_eq(p->ramp_ns, NS_PER_S / 2);
	ck_assert_uint_eq(p->max_bytes, GIB);
	ck_assert_uint_eq(p->range_bytes, 64 * MIB);
	ck_assert_uint_eq(p->data, DATA_REPEAT);
	ck_assert_uint_eq(p->seed, 11);
	ck_assert_uint_eq(s->lun_count, 4);
	ck_assert_uint_eq(s->luns[1], 2);
	ck_assert_uint_eq(s->luns[3], 4);
	ck_assert_uint_eq(s->policy, PATH_FAILOVER);
	ck_assert_str_eq(s->initiator, "iqn.2000-01.x:y");
	ck_assert(s->header_digest && s->destroy && !s->fill);
	ck_assert_uint_eq(s->command_timeout_ns, 5 * NS_PER_S);
	ck_assert_uint_eq(s->threads, 2);
	ck_assert_uint_eq(s->failure_count, 1);
	ck_assert_uint_eq(s->failures[0].portal, 0);
	ck_assert_uint_eq(s->failures[0].at_ns, NS_PER_S);
	ck_assert_uint_eq(s->failures[0].for_ns, NS_PER_S / 5);
	ck_assert_uint_eq(s->cache_bytes, GIB);
	ck_assert_uint_eq(options.expect.count, 2);
	ck_assert_str_eq(options.json, "j");
	ck_assert_str_eq(options.csv, "c");
	ck_assert_str_eq(options.report, "r");
	ck_assert_str_eq(options.cross_check, "/s");
	ck_assert_uint_eq(options.color, COLOR_NEVER);
}
END_TEST

START_TEST(several_urls_are_several_portals_and_luns)
{
	const struct bench_setup *s = &options.plan.setup;

	good("--rw read iscsi://[::1]:3261/iqn.t/2 iscsi://a/iqn.t/0 iscsi://[::1]:3261/iqn.t/0");
	ck_assert_uint_eq(s->portal_count, 2);
	ck_assert_str_eq(s->portals[0].address, "[::1]:3261");
	ck_assert_str_eq(s->portals[1].address, "a:3260");
	ck_assert_uint_eq(s->lun_count, 2);
	ck_assert_uint_eq(s->luns[0], 0);
	ck_assert_uint_eq(s->luns[1], 2);
}
END_TEST

START_TEST(options_override_a_profile)
{
	good(URL " --profile conf/profiles/diskspd-ha.conf --time 2s --sessions 2 --bs 64K");
	ck_assert_str_eq(options.plan.profile, "diskspd-ha");
	ck_assert_str_eq(options.plan.tells, "what a mirrored pair costs");
	ck_assert_uint_eq(options.plan.point_count, 6);
	ck_assert_uint_eq(options.plan.points[0].time_ns, 2 * NS_PER_S);
	ck_assert_uint_eq(options.plan.points[0].sessions, 2);
	ck_assert_uint_eq(options.plan.points[0].streams[0].workers, 10);
	ck_assert_str_eq(options.plan.points[5].name, "64K sequential 70/30");
}
END_TEST

START_TEST(streams_run_side_by_side)
{
	good(URL " --stream rw=read~bs=64k~qd=8~sessions=1 --stream rw=randwrite~rate=5k~zipf=0.5 "
		 "--sessions 2 --time 5s");
	ck_assert_uint_eq(options.plan.point_count, 1);
	ck_assert_uint_eq(options.plan.points[0].stream_count, 2);
	ck_assert_uint_eq(options.plan.points[0].sessions, 2);
	ck_assert_uint_eq(options.plan.points[0].streams[0].sessions, 1);
	ck_assert_uint_eq(options.plan.points[0].streams[1].pattern, PATTERN_ZIPF);
	ck_assert_double_eq(options.plan.points[0].streams[1].rate, 5000);
}
END_TEST

START_TEST(verify_neither_fills_nor_has_threads)
{
	good(URL " --rw randrw:50 --verify --sessions 8");
	ck_assert(!options.plan.setup.fill);
	ck_assert_uint_eq(options.plan.setup.threads, 1);
}
END_TEST

static const struct {
	const char *line, *refusal;
} bad[] = {
	{ "--rw randread",
	  "no URL of a LUN. Write iscsi://HOST/TARGET/LUN; yoke-bench --help has more" },
	{ URL, "nothing to do. Write --rw randread, or --profile NAME (--list-profiles)" },
	{ URL " --rv read", "no option --rv. yoke-bench --help lists them" },
	{ URL " -x", "no option -x. yoke-bench --help lists them" },
	{ URL " --rw", "--rw: no value. Write --rw WORKLOAD,..." },
	{ URL " --rw rread",
	  "--rw: \"rread\" is no workload. Write read, write, randread, randwrite, randrw:30 (30 % "
	  "reads), rw:70, zipfread or zipfrw:70" },
	{ URL " --rw read --bs 4GB",
	  "--bs: \"4GB\" is not a size. Write it like 4K or 10G (K M G T are powers of 1024)" },
	{ URL " --rw read --time 10x",
	  "--time: \"10x\" is not a time. Write it like 30s (ns us ms s m h)" },
	{ URL " --rw read --time 1s --time 2s", "--time: a second value, 2s. Write one" },
	{ URL " --rw read --verify=yes", "--verify: takes no value" },
	{ URL " --rw read --json a --json b", "--json: given twice. Write it once" },
	{ URL " --rw read --json=", "--json: empty. Write FILE" },
	{ URL " --profile nonsense",
	  "profile \"nonsense\": there is none. yoke-bench --list-profiles shows which there are; a "
	  "file of your own is named with its path, ./nonsense.conf" },
	{ URL " --rw read --policy best",
	  "--policy: \"best\" is no policy. Write round-robin, least-in-flight or failover" },
	{ URL " --rw read --threads 0", "--threads: \"0\" is out of range. Write 1 to 64" },
	{ URL " --rw read --timeout 0s",
	  "--timeout: \"0s\" is no time from 1ms to 1h. Write it like 30s" },
	{ URL " --rw read --cache 8GB", "--cache: \"8GB\" is not a size. Write it like 8G" },
	{ URL " --rw read --initiator me",
	  "--initiator: \"me\" is no iSCSI name. Write like iqn.2026-11.org.yoke:bench" },
	{ URL " --rw read --color blue",
	  "--color: \"blue\" is no choice. Write auto, always or never" },
	{ URL " --rw read --luns 1-",
	  "--luns: \"1-\" is no list of LUNs. Write numbers up to 16383, like 0,2-5" },
	{ URL " --rw read --lun 5-2",
	  "--luns: \"5-2\" is no list of LUNs. Write numbers up to 16383, like 0,2-5" },
	{ URL " --rw read --luns 0-64", "--luns: more than 64 LUNs. Name fewer" },
	{ URL " --rw read --fail-path 1",
	  "--fail-path: \"1\" is no failure of a path. Write like 1@10s or 2@10s+3s: the portal, "
	  "counted from 1, when, and for how long" },
	{ URL " --rw read --fail-path 0@1s",
	  "--fail-path: \"0@1s\" is no failure of a path. Write like 1@10s or 2@10s+3s: the portal, "
	  "counted from 1, when, and for how long" },
	{ URL " --rw read --fail-path 2@1s",
	  "--fail-path: there is no portal 2, there is 1. Portals count from 1, in the order of the "
	  "URLs" },
	{ URL " --rw read --time 5s --fail-path 1@5s",
	  "--fail-path: fails portal 1 after the end. Lengthen --time or let it fail earlier" },
	{ URL " --rw read --ramp 1m",
	  "--ramp: longer than --warmup and --time together. Shorten it" },
	{ URL " --rw read --zipf 0.5", "--zipf: nothing is random. Write --rw randread ..." },
	{ URL " --rw read --rate 5k --think 1ms",
	  "--rate: says when commands begin, and so does --think. Leave one out" },
	{ URL " --rw read --bs 64K --size 32K",
	  "--size: less than one command of 64K sequential read. Enlarge it" },
	{ URL " --rw read --sessions 200 iscsi://b/iqn.t/0",
	  "--sessions: 200 to each of 2 portals are more than 256. Lower it" },
	{ URL " --rw read --qd 4096 --workers 4096",
	  "--qd: 16777216 commands outstanding in all are more than 65536. Lower --qd, --workers or "
	  "--sessions" },
	{ URL " --profile conf/profiles/sweep.conf --repeat 9",
	  "--repeat: 64 points x 9 are more than 512. Lower it" },
	{ URL " --rw read --journal f", "--journal: only with --verify. Add it" },
	{ URL " --rw read --verify --check-journal",
	  "--check-journal: no journal. Add --journal FILE" },
	{ URL " --rw read --verify --threads 2", "--verify: has one thread. Leave --threads out" },
	{ URL " --rw read --verify --data zero",
	  "--verify: writes data that it knows again. Leave --data out" },
	{ URL " --rw read --verify --bs 512",
	  "--verify: judges blocks of 4K. Make --bs and --shift multiples of it" },
	{ URL " --rw read --steady --io-size 1G",
	  "--steady: goes on until steady, --io-size ends it. Leave one out" },
	{ URL " --stream rw=read --profile x",
	  "--stream: not together with --profile. Leave one out" },
	{ URL " --stream rw=read --bs 4K",
	  "--stream: a load beside it is one more --stream. Write rw=, bs=, qd= ... in it" },
	{ URL " --stream rw=read~sessions=2 --sessions 1",
	  "--stream: 2 sessions of 1. Raise --sessions or leave it out" },
	{ URL " --stream bs=4k", "--stream: no rw. Add rw=read, rw=randwrite ..." },
	{ URL " --stream rw=read~time=4",
	  "--stream: \"time\" is no setting of a stream. There are rw= bs= qd= sessions= workers= "
	  "shift= rate= think= zipf=" },
	{ URL " --stream rw=read~bs=4KB",
	  "--stream: bs: \"4KB\" is not a size. Write it like 4K or 10G (K M G T are powers of "
	  "1024)" },
	{ URL " --stream rw=read~rw=write", "--stream: rw twice. A stream has one of each" },
	{ "--rw read 192.0.2.1", "\"192.0.2.1\" is no URL of a LUN. Write it like "
				 "iscsi://192.0.2.1:3260/iqn.2026-11.org.example:name/0" },
	{ "--rw read iscsi://me%secret@h/t/0",
	  "URL of user me: a secret there is seen by everyone on this machine. Put it in a file, "
	  "--chap-file FILE" },
	{ "--rw read iscsi://me@h/t/0",
	  "user me: no secret. Write it to a file, --chap-file FILE, see yoke-bench(1)" },
	{ "--rw read iscsi://h:0/t/0", "iscsi://h:0/t/0: no host and port. Write it like "
				       "iscsi://192.0.2.1:3260/iqn.2026-11.org.example:name/0" },
	{ "--rw read iscsi://h:70000/t/0",
	  "iscsi://h:70000/t/0: no host and port. Write it like "
	  "iscsi://192.0.2.1:3260/iqn.2026-11.org.example:name/0" },
	{ "--rw read iscsi://[::1/t/0", "iscsi://[::1/t/0: no host and port. Write it like "
					"iscsi://192.0.2.1:3260/iqn.2026-11.org.example:name/0" },
	{ "--rw read iscsi:///t/0", "iscsi:///t/0: no host and port. Write it like "
				    "iscsi://192.0.2.1:3260/iqn.2026-11.org.example:name/0" },
	{ "--rw read iscsi://h/t/x",
	  "iscsi://h/t/x: no LUN at its end. Write a number from 0 to 16383" },
	{ "--rw read iscsi://h/t/16384",
	  "iscsi://h/t/16384: no LUN at its end. Write a number from 0 to 16383" },
	{ "--rw read iscsi://h/t", "iscsi://h:3260/t: no LUN. Write it at the end, or --luns 0" },
	{ "--rw read iscsi://h",
	  "iscsi://h:3260: no target. Write iscsi://h:3260/TARGET/LUN, or add --discover" },
	{ "--rw read iscsi://h/t/0 iscsi://i/u/1",
	  "LUN 1 is named at u, not at t. Every LUN is reached over every portal: name it there too, "
	  "or measure one target at a time" },
	{ "--rw read --discover iscsi://h/t/0 iscsi://i/t/0",
	  "--discover: finds the portals from one URL. Leave the others out" },
	{ URL " --rw read --chap-file /nonexistent",
	  "/nonexistent: cannot be read: No such file or directory. Write user NAME and secret SECRET "
	  "to it" },
};

START_TEST(what_cannot_be_meant_is_refused_in_one_line)
{
	ck_assert_msg(parse(bad[_i].line) == -EINVAL, "%s", bad[_i].line);
	ck_assert_str_eq(fault.text, bad[_i].refusal);
	ck_assert_ptr_null(strchr(fault.text, '\n'));
}
END_TEST

START_TEST(a_wrong_expectation_is_told_by_its_option)
{
	ck_assert_int_eq(parse(URL " --rw read --expect iops>=much"), -EINVAL);
	ck_assert_msg(strncmp(fault.text, "--expect \"iops>=much\": ", 23) == 0, "%s", fault.text);
	ck_assert_int_eq(parse(URL " --rw read --expect iops>=1 --expect iops>=2"), -EINVAL);
	ck_assert_str_eq(fault.text,
			 "--expect: given twice. Write the conditions in one, with commas");
}
END_TEST

static char secrets[] = "/tmp/test_options.XXXXXX";

static const struct {
	const char *text, *refusal; /* the latter behind the file's name */
} files[] = {
	{ "# mine\nuser me\nsecret top secret 1234\n\nmutual_user it\nmutual_secret x\n", NULL },
	{ "user me\n", ": a line is missing. Add secret SECRET" },
	{ "user me\nsecret hushhush\nmutual_user it\n",
	  ": a line is missing. Add mutual_secret SECRET" },
	{ "user me\nsecret hushhush\nmutual_secret it\n",
	  ": a line is missing. Add mutual_user NAME" },
	{ "user me\nsecret hushhush\nsecret hushhush\n", ":3: a second time. Leave one" },
	{ "user me\nsecret\n", ":2: no value of up to 255 bytes behind it. Write one" },
	{ "hushhush\n",
	  ":1: not understood. Write user NAME, secret SECRET, mutual_user NAME or mutual_secret "
	  "SECRET" },
};

START_TEST(secrets_from_a_pipe_are_refused_without_waiting)
{
	char dir[] = "/tmp/yoke-secret-XXXXXX", pipe[sizeof(dir) + 8], wanted[100];
	struct bench_chap chap;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(pipe, sizeof(pipe), "%s/pipe", dir);
	ck_assert_int_eq(mkfifo(pipe, 0600), 0);
	ck_assert_int_eq(chap_read(pipe, &chap, &fault), -EINVAL);
	snprintf(wanted, sizeof(wanted), "%s: not a regular file", pipe);
	ck_assert_str_eq(fault.text, wanted);
	unlink(pipe);
	rmdir(dir);
}
END_TEST

START_TEST(secrets_come_from_a_file_and_never_show)
{
	struct bench_chap chap;
	char wanted[300];
	int fd = mkstemp(secrets);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, files[_i].text, strlen(files[_i].text)), strlen(files[_i].text));
	close(fd);
	if (!files[_i].refusal) {
		ck_assert_int_eq(chap_read(secrets, &chap, &fault), 0);
		ck_assert_str_eq(chap.user, "me");
		ck_assert_str_eq(chap.secret, "top secret 1234");
		ck_assert_str_eq(chap.mutual_user, "it");
		ck_assert_str_eq(chap.mutual_secret, "x");
		chmod(secrets, 0640);
		ck_assert_int_eq(chap_read(secrets, &chap, &fault), -EINVAL);
		snprintf(wanted, sizeof(wanted), "%s: others may read it. chmod 600 %s", secrets,
			 secrets);
	} else {
		ck_assert_int_eq(chap_read(secrets, &chap, &fault), -EINVAL);
		snprintf(wanted, sizeof(wanted), "%s%s", secrets, files[_i].refusal);
	}
	unlink(secrets);
	ck_assert_str_eq(fault.text, wanted);
}
END_TEST

START_TEST(the_user_of_a_url_and_that_of_the_file_are_one)
{
	char line[256], copy[] = "/tmp/test_options.XXXXXX";
	int fd = mkstemp(copy);

	ck_assert_int_eq(write(fd, "user me\nsecret hushhush\n", 24), 24);
	close(fd);
	snprintf(line, sizeof(line), "--rw read iscsi://me@h/t/0 --chap-file %s", copy);
	good(line);
	ck_assert_str_eq(options.plan.setup.chap.user, "me");
	ck_assert_str_eq(options.plan.setup.chap.secret, "hushhush");
	snprintf(line, sizeof(line), "--rw read iscsi://you@h/t/0 --chap-file %s", copy);
	ck_assert_int_eq(parse(line), -EINVAL);
	unlink(copy);
	ck_assert_ptr_nonnull(strstr(fault.text, ": is of user me, the URL says you. Change one"));
	ck_assert_ptr_null(strstr(fault.text, "hush"));
}
END_TEST

static char *read_text(const char *path)
{
	static char text[1 << 16];
	FILE *f = fopen(path, "r");

	ck_assert_msg(f != NULL, "%s", path);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

static void has_every_option(const char *text, const char *format, const char *where)
{
	for (const struct option_row *row = options_table; row->name; row++) {
		char wanted[64];

		snprintf(wanted, sizeof(wanted), format, row->name);
		ck_assert_msg(strstr(text, wanted) != NULL, "%s has no %s", where, row->name);
	}
}

START_TEST(the_help_has_every_option_in_lines_that_fit)
{
	static char text[1 << 14];
	FILE *f = fmemopen(text, sizeof(text), "w");

	options_help(f);
	fclose(f);
	has_every_option(text, "  %s", "the help");
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
		ck_assert_msg(end - line <= 96 && (end == line || end[-1] != ' '), "%.*s",
			      (int)(end - line), line);
}
END_TEST

START_TEST(the_manual_page_has_every_option)
{
	has_every_option(read_text("man/yoke-bench.1.scd"), "*%s*", "the manual page");
}
END_TEST

START_TEST(the_completion_has_every_option)
{
	has_every_option(read_text("conf/completions/yoke-bench.bash"), "%s", "the completion");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("options");
	TCase *tcase = tcase_create("options");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_test(tcase, the_shorthand_that_people_know);
	tcase_add_test(tcase, every_option_arrives);
	tcase_add_test(tcase, several_urls_are_several_portals_and_luns);
	tcase_add_test(tcase, options_override_a_profile);
	tcase_add_test(tcase, streams_run_side_by_side);
	tcase_add_test(tcase, verify_neither_fills_nor_has_threads);
	tcase_add_loop_test(tcase, what_cannot_be_meant_is_refused_in_one_line, 0, ARRAY_LEN(bad));
	tcase_add_test(tcase, a_wrong_expectation_is_told_by_its_option);
	tcase_add_test(tcase, secrets_from_a_pipe_are_refused_without_waiting);
	tcase_add_loop_test(tcase, secrets_come_from_a_file_and_never_show, 0, ARRAY_LEN(files));
	tcase_add_test(tcase, the_user_of_a_url_and_that_of_the_file_are_one);
	tcase_add_test(tcase, the_help_has_every_option_in_lines_that_fit);
	tcase_add_test(tcase, the_manual_page_has_every_option);
	tcase_add_test(tcase, the_completion_has_every_option);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
