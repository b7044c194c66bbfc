/* SPDX-License-Identifier: MIT */
/* Profiles: those that are shipped, those of users, and what is refused, with its line. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/profile.h"

#define GOOD "from = \"a\" tells = \"b\" pattern = { \"rand\" } read = { 100 }"

static struct profile profile;
static struct conf_error error;
static struct bench_plan plan;
static struct bench_fault fault;

static int parse(const char *text)
{
	return profile_parse("p.conf", text, strlen(text), &profile, &error);
}

static const struct {
	const char *name;
	unsigned points, repeat;
	const char *first, *last;
	unsigned depth; /* outstanding of the last point, over one portal */
	uint64_t time_ns;
} shipped[] = {
	{ "iometer", 2, 1, "4K random 10/90", "4K random 10/90", 32, 30 * NS_PER_S },
	{ "max-iops", 1, 1, "512 sequential read", "512 sequential read", 64, 30 * NS_PER_S },
	{ "max-throughput", 1, 1, "64K sequential read", "64K sequential read", 32, 30 * NS_PER_S },
	{ "diskspd-ha", 12, 1, "4K random read", "8K sequential 70/30", 200, 30 * NS_PER_S },
	{ "vmfleet", 2, 1, "4K random read", "4K random 70/30", 600, 30 * NS_PER_S },
	{ "alignment", 12, 3, "4K random read", "64K random write +32256", 8, 10 * NS_PER_S },
	{ "sweep", 64, 1, "4K random read", "256K random read", 8 * 64, 10 * NS_PER_S },
};

START_TEST(every_shipped_profile_measures_what_its_name_promises)
{
	struct bench_setup setup = { .portal_count = 1 };
	char path[64];

	snprintf(path, sizeof(path), "conf/profiles/%s.conf", shipped[_i].name);
	ck_assert_msg(profile_load(path, &profile, &error) == 0, "%s", error.text);
	ck_assert_str_eq(profile.name, shipped[_i].name);
	ck_assert(*profile.from && *profile.tells);
	ck_assert_int_eq(matrix_points(&profile.matrix, NULL, 0, &plan, &fault), 0);
	ck_assert_uint_eq(plan.point_count, shipped[_i].points);
	ck_assert_uint_eq(plan.repeat, shipped[_i].repeat);
	ck_assert_str_eq(plan.points[0].name, shipped[_i].first);
	ck_assert_str_eq(plan.points[plan.point_count - 1].name, shipped[_i].last);
	ck_assert_uint_eq(bench_point_depth(&setup, &plan.points[plan.point_count - 1]),
			  shipped[_i].depth);
	ck_assert_uint_eq(plan.points[0].time_ns, shipped[_i].time_ns);
	free(plan.points);
}
END_TEST

START_TEST(every_setting_has_its_place_in_a_profile)
{
	ck_assert_msg(
		parse("# comment\nprofile \"mine\" {\n  from = \"me\"  tells = \"nothing\"\n"
		      "  bs = { \"4K\", 64k } pattern = { rand, \"zipf\" } read = { 0, 100 }\n"
		      "  depth = {1,2} sessions = {1} workers = 3 vms = 2 shift = {\"512\"}\n"
		      "  rate = { 5k } think = 1ms zipf = \"0.5\" time = \"2s\" warmup = 1s\n"
		      "  ramp = 1s size = 1G io-size = 1M data = \"repeat\" seed = 9\n"
		      "  repeat = 2 steady = true\n}\n") == 0,
		"%s", error.text);
	ck_assert_str_eq(profile.name, "mine");
	ck_assert_str_eq(profile.from, "me");
	ck_assert_str_eq(profile.tells, "nothing");
	for (unsigned i = 0; i < MATRIX_KEYS; i++)
		ck_assert_msg(!(matrix_fields[i].places & MATRIX_IN_PROFILE) ||
				      profile.matrix.of[i].count > 0,
			      "%s", matrix_fields[i].name);
	ck_assert_uint_eq(profile.matrix.of[MATRIX_BS].values[1], 65536);
	ck_assert_uint_eq(profile.matrix.of[MATRIX_PATTERN].values[1], PATTERN_ZIPF);
	ck_assert_uint_eq(profile.matrix.of[MATRIX_THINK].values[0], NS_PER_MS);
}
END_TEST

static const struct {
	const char *text, *refusal;
} bad[] = {
	{ "", "p.conf: no profile. Write profile \"NAME\" { }" },
	{ "bs = { 4K }\n", "p.conf: no profile. Write profile \"NAME\" { }" },
	{ "profile { " GOOD " }\n",
	  "p.conf:1: profile: no name of up to 63 bytes. Write profile \"NAME\" { }" },
	{ "profile \"\" { " GOOD " }\n",
	  "p.conf:1: profile: no name of up to 63 bytes. Write profile \"NAME\" { }" },
	{ "profile \"a\" { " GOOD " }\nprofile \"b\" { " GOOD " }\n",
	  "p.conf:2: a second profile. Write it to a file of its own" },
	{ "profil \"a\" { }\n", "p.conf:1: profil: no such section. Write profile \"NAME\" { }" },
	{ "profile \"a\" { profile \"b\" { } }\n",
	  "p.conf:1: profile: no such section. Write profile \"NAME\" { }" },
	{ "profile \"a\" { }\nbs = { 4K }\n",
	  "p.conf:2: bs: outside of the profile. Move it into its braces" },
	{ "profile \"a\" {\n pattern = { rand } read = { 100 } tells = \"x\" }\n",
	  "p.conf:1: profile \"a\": does not say where it is from and what it tells. Add from = "
	  "\"...\" tells = \"...\"" },
	{ "profile \"a\" {\n from = \"x\" tells = \"\" }\n",
	  "p.conf:1: profile \"a\": does not say where it is from and what it tells. Add from = "
	  "\"...\" tells = \"...\"" },
	{ "profile \"a\" {\n from = \"x\" tells = \"y\" read = { 100 } }\n",
	  "p.conf:1: profile \"a\": no pattern or no read. Add pattern = { \"rand\" } read = { 100 "
	  "}" },
	{ "profile \"a\" {\n" GOOD "\n depth = {\n 1,\n 0 } }\n",
	  "p.conf:5: depth: 0 is out of range. Write 1 to 4096" },
	{ "profile \"a\" {\n" GOOD "\n bs = { \"4KB\" } }\n",
	  "p.conf:3: bs: \"4KB\" is not a size. Write it like 4K or 10G (K M G T are powers of "
	  "1024)" },
	{ "profile \"a\" {\n" GOOD "\n workers = { 1 } }\n",
	  "p.conf:3: workers: takes one value. Write it without braces" },
	{ "profile \"a\" {\n" GOOD "\n from = { 1 } }\n",
	  "p.conf:3: from: set already in line 2. Remove one" },
	{ "profile \"a\" {\n" GOOD "\n bs = { } }\n", "p.conf:3: bs: no value. Write one" },
	{ "profile \"a\" {\n" GOOD "\n rw = { randread } }\n",
	  "p.conf:3: profile: no setting rw. There are from, tells, pattern, read, bs, depth, "
	  "sessions, workers, vms, shift, rate, think, zipf, time, warmup, ramp, size, io-size, data, "
	  "seed, repeat, steady" },
	{ "profile \"a\" {\n" GOOD "\n", "p.conf:1: profile: never closed. Add a }" },
	{ "profile \"${HOME}\" { }\n", "p.conf:1: ${...} is not replaced here. Write it out" },
};

START_TEST(a_wrong_profile_is_refused_with_its_line)
{
	ck_assert_int_eq(parse(bad[_i].text), -EINVAL);
	ck_assert_str_eq(error.text, bad[_i].refusal);
}
END_TEST

START_TEST(a_list_of_one_needs_no_braces)
{
	ck_assert_msg(
		parse("profile \"a\" { from = a tells = b pattern = rand read = 100 bs = 8K }") ==
			0,
		"%s", error.text);
	ck_assert_uint_eq(profile.matrix.of[MATRIX_BS].count, 1);
	ck_assert_uint_eq(profile.matrix.of[MATRIX_BS].values[0], 8192);
}
END_TEST

START_TEST(a_name_finds_the_users_own_profile_and_a_path_any_file)
{
	char home[] = "/tmp/test_profile.XXXXXX", path[128], listed[4096];
	FILE *f;

	ck_assert_ptr_nonnull(mkdtemp(home));
	setenv("XDG_CONFIG_HOME", home, 1);
	snprintf(path, sizeof(path), "%s/yoke", home);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/yoke/profiles", home);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/yoke/profiles/mine.conf", home);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs("profile \"mine\" { " GOOD " }\n", f);
	fclose(f);

	ck_assert_msg(profile_load("mine", &profile, &error) == 0, "%s", error.text);
	ck_assert_str_eq(profile.name, "mine");
	ck_assert_msg(profile_load(path, &profile, &error) == 0, "%s", error.text);
	f = fmemopen(listed, sizeof(listed), "w");
	profile_list(f);
	fclose(f);
	ck_assert_msg(strstr(listed, "mine             b (a)\n") != NULL, "%s", listed);

	ck_assert_int_eq(profile_load("yours", &profile, &error), -ENOENT);
	ck_assert_str_eq(error.text, "profile \"yours\": there is none. yoke-bench --list-profiles "
				     "shows which there are; a file of your own is named with its "
				     "path, ./yours.conf");
	ck_assert_int_eq(profile_load("./yours.conf", &profile, &error), -ENOENT);
	ck_assert_str_eq(error.text, "./yours.conf: no such file. yoke-bench --list-profiles shows "
				     "those that have a name");
	unlink(path);
	for (unsigned i = 0; i < 3; i++) {
		*strrchr(path, '/') = '\0';
		ck_assert_int_eq(rmdir(path), 0);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("profile");
	TCase *tcase = tcase_create("profile");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, every_shipped_profile_measures_what_its_name_promises, 0,
			    ARRAY_LEN(shipped));
	tcase_add_test(tcase, every_setting_has_its_place_in_a_profile);
	tcase_add_loop_test(tcase, a_wrong_profile_is_refused_with_its_line, 0, ARRAY_LEN(bad));
	tcase_add_test(tcase, a_list_of_one_needs_no_braces);
	tcase_add_test(tcase, a_name_finds_the_users_own_profile_and_a_path_any_file);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
