/* SPDX-License-Identifier: MIT */
/*
 * The table of commands is whole, and what is written elsewhere about it agrees:
 * completion, manual pages and their examples. Command lines that are wrong.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/conf_int.h"
#include "ctl/command.h"

static char *read_text(const char *file)
{
	char *text = calloc(1, 65536);
	FILE *f = fopen(file, "r");

	ck_assert_msg(f != NULL, "%s", file);
	ck_assert_uint_gt(fread(text, 1, 65535, f), 0);
	fclose(f);
	return text;
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at++) {
		const char *around = " \n\t\"|()*=[],.;";

		if ((at == text || strchr(around, at[-1])) && strchr(around, at[len]))
			return true;
	}
	return false;
}

START_TEST(each_row_of_the_table_can_be_run_and_shown)
{
	for (const struct command *c = commands; c->noun; c++) {
		ck_assert_ptr_eq(command_find(c->noun, c->verb), c);
		ck_assert_uint_gt(strlen(c->summary), 5);
		ck_assert_msg(!!c->run + !!c->show + !!c->table == 1, "%s", c->noun);
		ck_assert(c->run || c->method);
		for (const struct argument *a = c->arguments; a && a->name; a++) {
			ck_assert(a->option || a->meta);
			ck_assert(a->meta || a->kind == ARGUMENT_FLAG);
		}
	}
	ck_assert_ptr_null(command_find("session", NULL));
	ck_assert_ptr_null(command_find("session", "lis"));
	ck_assert_ptr_null(command_find("", NULL));
}
END_TEST

/* The words of NAME="..." in the completion, after LABEL) if that is not NULL. */
static void expect_words(const char *text, const char *label, const char *name, const char *words)
{
	char wanted[512];
	const char *at = text;

	if (label) {
		snprintf(wanted, sizeof(wanted), "\t%s)", label);
		at = strstr(text, wanted);
		ck_assert_msg(at != NULL, "%s", wanted);
	}
	snprintf(wanted, sizeof(wanted), "%s=\"%s\"", name, words);
	at = strstr(at, wanted);
	ck_assert_msg(at != NULL, "completion lacks %s", wanted);
}

START_TEST(completion_has_the_words_of_the_table)
{
	char *text = read_text("conf/completions/yokectl.bash");
	char nouns[256] = "";

	for (const struct command *c = commands; c->noun; c++) {
		char verbs[128] = "", options[256] = "";
		const struct command *d;

		for (d = commands; d != c && strcmp(d->noun, c->noun) != 0; d++)
			;
		if (d == c)
			snprintf(nouns + strlen(nouns), sizeof(nouns) - strlen(nouns), "%s%s",
				 *nouns ? " " : "", c->noun);
		for (d = commands; d->noun; d++)
			if (d->verb && strcmp(d->noun, c->noun) == 0)
				snprintf(verbs + strlen(verbs), sizeof(verbs) - strlen(verbs),
					 "%s%s", *verbs ? " " : "", d->verb);
		if (*verbs)
			expect_words(text, c->noun, "verbs", verbs);
		for (const struct argument *a = c->arguments; a && a->name; a++) {
			if (a->option)
				snprintf(options + strlen(options),
					 sizeof(options) - strlen(options), "%s%s",
					 *options ? " " : "", a->option);
			ck_assert_msg(!a->values || strstr(text, a->values), "%s", a->values);
		}
		if (*options)
			expect_words(text, c->noun, "options", options);
	}
	expect_words(text, NULL, "nouns", nouns);
	free(text);
}
END_TEST

START_TEST(the_manual_has_every_command_and_option)
{
	char *text = read_text("man/yokectl.8.scd");

	for (const struct command *c = commands; c->noun; c++) {
		char heading[64];

		snprintf(heading, sizeof(heading), "\n*%s%s%s*", c->noun, c->verb ? " " : "",
			 c->verb ? c->verb : "");
		ck_assert_msg(strstr(text, heading) != NULL, "yokectl(8) lacks %s", heading);
		for (const struct argument *a = c->arguments; a && a->name; a++)
			ck_assert_msg(has_word(text, a->option ? a->option : a->meta),
				      "yokectl(8) lacks %s", a->option ? a->option : a->meta);
	}
	free(text);
}
END_TEST

static int parse_params(char *line, struct output *output, struct invocation *invocation)
{
	char *argv[32];
	bool help = false, version = false;
	int argc = 0;

	for (char *at, *word = strtok_r(line, " \t\n", &at); word;
	     word = strtok_r(NULL, " \t\n", &at))
		argv[argc++] = word;
	*invocation = (struct invocation){ .params = json_object(), .output = output };
	return arguments_parse(argc, argv, invocation, &help, &version);
}

static int parse(char *line, struct output *output, struct invocation *invocation)
{
	int code = parse_params(line, output, invocation);

	json_decref(invocation->params);
	return code;
}

START_TEST(the_examples_of_the_manual_are_understood)
{
	char *text = read_text("man/yokectl.8.scd"), *at = strstr(text, "# EXAMPLES"), *line;
	struct output output = { .out = stdout, .err = stderr };
	struct invocation invocation;
	unsigned count = 0;

	while ((at = strstr(at, "\n\tyokectl "))) {
		line = strndup(at + 2, strcspn(at + 2, "\n"));
		ck_assert_msg(parse(line, &output, &invocation) == EXIT_DONE, "%s", line);
		free(line);
		at++;
		count++;
	}
	ck_assert_uint_ge(count, 3);
	free(text);
}
END_TEST

START_TEST(the_manual_of_the_configuration_has_every_setting)
{
	static const char *const sections[] = { "node", "portal", "backing", "target", "lun" };
	char *text = read_text("man/yoke.conf.5.scd");

	for (unsigned i = 0; i < ARRAY_LEN(sections); i++) {
		struct conf_span root = { "root", 4 }, target = { "target", 6 };
		struct conf_span name = { sections[i], (unsigned)strlen(sections[i]) };
		const struct conf_schema *schema = conf_schema(i == 4 ? target : root, name);

		ck_assert_ptr_nonnull(schema);
		for (unsigned j = 0; j < schema->field_count; j++) {
			char wanted[64] = "*", *to = wanted + 1;

			for (const char *c = schema->fields[j].name; *c; c++) {
				if (*c == '_')
					*to++ = '\\';
				*to++ = *c;
			}
			*to = '*';
			to[1] = '\0';
			ck_assert_msg(strstr(text, wanted) != NULL, "yoke.conf(5) lacks %s",
				      wanted);
		}
	}
	free(text);
}
END_TEST

static const struct {
	const char *file;
	unsigned count;
} with_examples[] = { { "man/yoke.conf.5.scd", 4 }, { "README.md", 1 } };

START_TEST(the_examples_of_the_configuration_are_good)
{
	char *text = read_text(with_examples[_i].file), *at = text, *end;
	unsigned count = 0;

	while ((at = strstr(at, "\n```\n"))) {
		struct conf_error error;
		struct conf *conf;

		at += 5;
		end = strstr(at, "\n```\n");
		ck_assert_ptr_nonnull(end);
		ck_assert_msg(conf_parse("example", at, (size_t)(end - at), &conf, &error) == 0,
			      "%s", error.text);
		conf_free(conf);
		at = end + 4;
		count++;
	}
	ck_assert_uint_eq(count, with_examples[_i].count);
	free(text);
}
END_TEST

static const struct {
	const char *line, *said;
} wrong[] = {
	{ "yokectl", "what is to be done? See yokectl help" },
	{ "yokectl nothing", "no command \"nothing\". See yokectl help" },
	{ "yokectl lun", "lun what? It has list" },
	{ "yokectl session", "session what? It has list, show, kill" },
	{ "yokectl session lst", "no command \"session lst\". session has list, show, kill" },
	{ "yokectl session kill", "ID is missing. See yokectl help session" },
	{ "yokectl session kill 1 2", "\"2\" is too much for session. See yokectl help session" },
	{ "yokectl status extra", "\"extra\" is too much for status. See yokectl help status" },
	{ "yokectl status --chek", "no option --chek for status. See yokectl help" },
	{ "yokectl status --check=1", "--check takes no value" },
	{ "yokectl status --check --check", "--check is there twice" },
	{ "yokectl --check status", "no option --check. See yokectl help" },
	{ "yokectl -x status", "no option -x. See yokectl help" },
	{ "yokectl status -s", "-s needs a value" },
	{ "yokectl status --timeout 30", "--timeout: \"30\" is not a duration. Write like 30s" },
	{ "yokectl status --timeout 0s", "--timeout: \"0s\" is not a duration. Write like 30s" },
	{ "yokectl status --json=2", "--json=2: this yokectl writes version 1" },
	{ "yokectl status --color=red", "--color=red: write always, never or auto" },
	{ "yokectl status --wide=1", "--wide takes no value" },
	{ "yokectl events --max x", "--max: \"x\" is not a number" },
	{ "yokectl events --max -1", "--max: \"-1\" is not a number" },
	{ "yokectl events --after 9223372036854775808",
	  "--after: \"9223372036854775808\" is not a number" },
	{ "yokectl fault add b broken", "KIND: \"broken\" is not one of: error delay stuck torn" },
	{ "yokectl fault add b err", "KIND: \"err\" is not one of: error delay stuck torn" },
	{ "yokectl fault add b error --offset 1MB",
	  "--offset: \"1MB\" is not a size like 64K (K M G T P are powers of 1024)" },
	{ "yokectl fault add b delay --delay 20", "--delay: \"20\" is not a time like 20ms or 1s" },
	{ "yokectl fault add b delay --delay 1us",
	  "--delay: \"1us\" is not a time like 20ms or 1s" },
	{ "yokectl fault add b error --probability 0",
	  "--probability: \"0\" is not a share like 2.5% or 0.025" },
	{ "yokectl fault add b error --probability 101%",
	  "--probability: \"101%\" is not a share like 2.5% or 0.025" },
	{ "yokectl fault add b error --probability nan",
	  "--probability: \"nan\" is not a share like 2.5% or 0.025" },
	{ "yokectl session kill \xff", "ID: not UTF-8" },
	{ "yokectl array create --level 1", "NAME is missing. See yokectl help array" },
	{ "yokectl array create a --level 1", "DISK is missing. See yokectl help array" },
	{ "yokectl array create a /d0 /d1", "--level is missing. See yokectl help array" },
	{ "yokectl array create a /d0 --level five", "--level: \"five\" is not a number" },
	{ "yokectl array create a --level 5 --full-stripe-log all",
	  "--full-stripe-log: \"all\" is not one of: data intent" },
	{ "yokectl array show a b", "\"b\" is too much for array. See yokectl help array" },
	{ "yokectl array start a \xff", "DISK: not UTF-8" },
};

START_TEST(a_wrong_command_line_is_refused_with_a_sentence)
{
	char *line = strdup(wrong[_i].line), *said, wanted[256];
	struct output output = { .out = stdout };
	struct invocation invocation;
	size_t size;

	output.err = open_memstream(&said, &size);
	ck_assert_int_eq(parse(line, &output, &invocation), EXIT_USAGE);
	fclose(output.err);
	snprintf(wanted, sizeof(wanted), "yokectl: %s\n", wrong[_i].said);
	ck_assert_str_eq(said, wanted);
	free(said);
	free(line);
}
END_TEST

START_TEST(a_disk_may_be_a_path_from_here)
{
	struct output output = { .out = stdout, .err = stderr };
	char line[] =
		"yokectl array create a --level 1 Makefile /x backing:m0 not-here core/base.h";
	char one[] = "yokectl disk label Makefile", *here = get_current_dir_name(), wanted[4200];
	static const char *const texts[] = { "%s/Makefile", "/x", "backing:m0", "not-here",
					     "%s/core/base.h" };
	struct invocation invocation;
	json_t *disks;

	ck_assert_int_eq(parse_params(line, &output, &invocation), EXIT_DONE);
	disks = json_object_get(invocation.params, "disks");
	ck_assert_uint_eq(json_array_size(disks), ARRAY_LEN(texts));
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		bool from_here = texts[i][0] == '%';

		snprintf(wanted, sizeof(wanted), "%s%s", from_here ? here : "",
			 texts[i] + (from_here ? 2 : 0));
		ck_assert_str_eq(json_string_value(json_array_get(disks, i)), wanted);
	}
	json_decref(invocation.params);
	ck_assert_int_eq(parse_params(one, &output, &invocation), EXIT_DONE);
	snprintf(wanted, sizeof(wanted), "%s/Makefile", here);
	ck_assert_str_eq(json_string_value(json_object_get(invocation.params, "disk")), wanted);
	json_decref(invocation.params);
	free(here);
}
END_TEST

START_TEST(options_may_stand_anywhere_and_be_joined)
{
	struct output output = { .out = stdout, .err = stderr };
	char a[] = "yokectl -s/tmp/x lun --wide list -o a,b", b[] = "yokectl lun list --columns=c";
	char c[] = "yokectl -- lun list", d[] = "yokectl --socket=/y --timeout=2m --json lun list";
	struct invocation invocation;

	ck_assert_int_eq(parse(a, &output, &invocation), EXIT_DONE);
	ck_assert_str_eq(invocation.socket, "/tmp/x");
	ck_assert_str_eq(output.columns, "a,b");
	ck_assert(output.wide);
	ck_assert_ptr_eq(invocation.command, command_find("lun", "list"));
	ck_assert_int_eq(parse(b, &output, &invocation), EXIT_DONE);
	ck_assert_str_eq(output.columns, "c");
	ck_assert_int_eq(parse(c, &output, &invocation), EXIT_DONE);
	ck_assert_int_eq(parse(d, &output, &invocation), EXIT_DONE);
	ck_assert_str_eq(invocation.socket, "/y");
	ck_assert_uint_eq(invocation.timeout_ns, 120 * NS_PER_S);
	ck_assert(output.json);
}
END_TEST

START_TEST(what_cannot_be_written_is_a_failure)
{
	char *argv[] = { (char *)"yokectl", (char *)"explain" }, *said;
	struct output output = { .out = fopen("/dev/full", "w") };
	size_t size;

	output.err = open_memstream(&said, &size);
	ck_assert_int_eq(yokectl(2, argv, &output), EXIT_REFUSED);
	fclose(output.err);
	fclose(output.out);
	ck_assert_str_eq(said, "yokectl: cannot write: No space left on device\n");
	free(said);
}
END_TEST

START_TEST(help_is_of_as_much_as_was_written)
{
	static const struct {
		const char *words[3], *has, *lacks;
	} rows[] = {
		{ { "--help" }, "usage: yokectl", NULL },
		{ { "session", "--help" }, "yokectl session show ID", "usage: yokectl" },
		{ { "session", "kill", "-h" }, "yokectl session kill ID", "session show" },
		{ { "help", "session", "list" }, "yokectl session list", "session show" },
		{ { "help", "status" }, "yokectl status [--check]", "session" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		char *argv[4] = { (char *)"yokectl" }, *said;
		struct output output = { .err = stderr };
		int argc = 1;
		size_t size;

		for (unsigned j = 0; j < 3 && rows[i].words[j]; j++)
			argv[argc++] = (char *)rows[i].words[j];
		output.out = open_memstream(&said, &size);
		ck_assert_int_eq(yokectl(argc, argv, &output), EXIT_DONE);
		fclose(output.out);
		ck_assert_msg(strstr(said, rows[i].has) != NULL, "%s", said);
		ck_assert_msg(!rows[i].lacks || !strstr(said, rows[i].lacks), "%s", said);
		free(said);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("command");
	TCase *tcase = tcase_create("command");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, each_row_of_the_table_can_be_run_and_shown);
	tcase_add_test(tcase, completion_has_the_words_of_the_table);
	tcase_add_test(tcase, the_manual_has_every_command_and_option);
	tcase_add_test(tcase, the_examples_of_the_manual_are_understood);
	tcase_add_test(tcase, the_manual_of_the_configuration_has_every_setting);
	tcase_add_loop_test(tcase, the_examples_of_the_configuration_are_good, 0,
			    ARRAY_LEN(with_examples));
	tcase_add_loop_test(tcase, a_wrong_command_line_is_refused_with_a_sentence, 0,
			    ARRAY_LEN(wrong));
	tcase_add_test(tcase, a_disk_may_be_a_path_from_here);
	tcase_add_test(tcase, options_may_stand_anywhere_and_be_joined);
	tcase_add_test(tcase, what_cannot_be_written_is_a_failure);
	tcase_add_test(tcase, help_is_of_as_much_as_was_written);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
